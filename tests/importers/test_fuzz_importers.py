"""Whatever becomes of another tool's file: it is imported, or refused with an error of ours and
nothing written."""

import json
import tempfile
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from fuzz_budget import PIECES, TEXT, fuzzed
from hypothesis import given
from hypothesis import strategies as st

import judgebench as jb

FILES = Path(__file__).parent / "files"
NAMES = sorted(path.name for path in FILES.iterdir() if path.suffix in (".json", ".jsonl"))
UNSEEN = st.sampled_from([" ", "\t", "\r", "\u200b", "\u2028", "\x7f", "\x85", "a\ud800b"])
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400), 1e308])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT | PIECES | UNSEEN
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2)
)
KEYS = TEXT | PIECES | UNSEEN | st.sampled_from(["metric", "label", "text", "item_id", "group"])


def change(value: Any, draw: st.DataObject) -> Any:
    """The value with something in it replaced, renamed or taken out."""
    if not isinstance(value, dict | list) or not value or draw.draw(st.integers(0, 5)) == 0:
        return draw.draw(VALUES)
    if isinstance(value, list):
        place = draw.draw(st.integers(0, len(value) - 1))
        return [*value[:place], change(value[place], draw), *value[place + 1 :]]
    key = draw.draw(st.sampled_from(sorted(value)))
    match draw.draw(st.integers(0, 5)):
        case 0:
            return {k: v for k, v in value.items() if k != key}
        case 1:
            new = draw.draw(KEYS)
            return {new if k == key else k: v for k, v in value.items()}
        case _:
            return {**value, key: change(value[key], draw)}


def everywhere(value: Any, old: Any, new: Any) -> Any:
    """The value with each of its scalars `old` made `new`: the columns of a name, and its rows."""
    if isinstance(value, list):
        return [everywhere(one, old, new) for one in value]
    if isinstance(value, dict):
        return {
            new if isinstance(new, str) and k == old else k: everywhere(v, old, new)
            for k, v in value.items()
        }
    return new if type(value) is type(old) and value == old else value


def scalars(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        inner = [*value.values(), *value] if isinstance(value, dict) else value
        return [one for part in inner for one in scalars(part)]
    return [value]


def changed(name: str, draw: st.DataObject) -> bytes:
    text = (FILES / name).read_text()
    lines = name.endswith(".jsonl")
    found = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    for _ in range(draw.draw(st.integers(1, 3))):
        if draw.draw(st.booleans()):
            found = change(found, draw)
        else:
            old = draw.draw(st.sampled_from(scalars(found) or [None]))
            found = everywhere(found, old, draw.draw(SCALARS))
    lined = lines and isinstance(found, list)
    return ("\n".join(map(json.dumps, found)) if lined else json.dumps(found)).encode()


def is_imported_or_refused(path: Path) -> bool:
    """Whether it is imported. Then all files are there; else nothing was written."""
    to = path.parent / "to"
    files, refused = (), ""
    try:
        files = jb.import_file(path, to).files
    except jb.SetupError as error:
        refused = str(error)
    if refused:
        assert refused.encode().startswith(str(path).encode())
        assert not to.exists()
        return False
    assert files
    assert all(written.exists() for written in files)
    return True


@pytest.mark.parametrize("name", NAMES)
@fuzzed(0.2)
@given(draw=st.data())
def test_a_changed_file_is_imported_or_refused(name: str, draw: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log").with_suffix(Path(name).suffix)
        path.write_bytes(changed(name, draw))
        is_imported_or_refused(path)


def tasks(tmp_path: Path, **of_second: Any) -> Path:
    """Two annotated tasks of which the second is changed."""
    values = [
        {
            "id": f"r{n}", "data": {"text": f"Answer {n}."},
            "annotations": [{"completed_by": n, "result": [
                {"from_name": "tone", "type": "choices", "value": {"choices": [label]}}
            ]}],
        }
        for n, label in enumerate(("good", "bad"))
    ]  # fmt: skip
    values[1] |= of_second
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize(
    ("of_second", "imported"),
    [
        ({"data": {"a\ud800": "x"}}, True),
        ({"data": dict.fromkeys(("a\ud800", "a\ud801"), "x")}, True),
        ({"data": {"size": 10**400}}, True),
        ({"data": {"text": "\u200b"}}, True),
        ({"data": {"text": "Two.", "\x7f": "x"}}, True),
        ({"id": " "}, True),
        ({"data": None}, False),
        ({"annotations": [{"result": 5}]}, False),
        ({"data": {"deep": reduce(lambda inner, _: {"a": inner}, range(800), 1)}}, True),
    ],
)
def test_odd_texts_and_numbers_are_imported_or_one_clear_error(
    tmp_path: Path, of_second: dict[str, Any], imported: bool
) -> None:
    assert is_imported_or_refused(tasks(tmp_path, **of_second)) is imported


def test_a_list_where_a_name_is_meant_is_its_text(tmp_path: Path) -> None:
    value = json.loads((FILES / "inspect.json").read_text())
    value["eval"]["model"] = ["a", {"b": 1}]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(value))
    assert is_imported_or_refused(path)


def test_a_number_too_large_to_count_with_is_imported_as_its_text(tmp_path: Path) -> None:
    text = (FILES / "lm-eval-choices.jsonl").read_text()
    first, *rest = text.splitlines()
    row = json.loads(first)
    row["filtered_resps"][0][0] = 10**400
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join([json.dumps(row), *rest]))
    assert is_imported_or_refused(path)
