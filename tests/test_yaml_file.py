import re
import time
from pathlib import Path

import pytest
from hostile_files import yaml_bombs
from pydantic import BaseModel, ConfigDict, Field

from judgebench.errors import SetupError
from judgebench.files import load_model, load_with_lines, load_yaml, parse_yaml, validate


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Part(Strict):
    title: str
    weight: int = 0


class Whole(Strict):
    name: str
    version: str
    parts: tuple[Part, ...]
    best: Part | None = None


GOOD = """\
name: x
version: "1"
parts:
  - title: a
    weight: 1
  - title: b
"""


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems(path: Path):
    with pytest.raises(SetupError) as caught:
        load_model(path, Whole)
    assert all(p.file == str(path) for p in caught.value.problems)
    return {p.field: p for p in caught.value.problems}


def test_a_good_file(tmp_path: Path) -> None:
    found = load_model(write(tmp_path, GOOD), Whole)
    assert found == Whole(name="x", version="1", parts=(Part(title="a", weight=1), Part(title="b")))


def test_a_byte_order_mark_and_windows_lines_are_no_matter(tmp_path: Path) -> None:
    text = "\ufeff" + GOOD.replace("\n", "\r\n")
    assert load_model(write(tmp_path, text), Whole).name == "x"


def test_every_problem_is_told_at_once_with_line_and_field(tmp_path: Path) -> None:
    text = """\
nam: x
version: [1.0]
parts:
  - title: a
    wieght: 1
  - weight: much
best:
  title: null
"""
    found = problems(write(tmp_path, text))
    assert {field: p.line for field, p in found.items()} == {
        "nam": 1,  # and not also that `name` is missing
        "version": 2,
        "parts.0.wieght": 5,
        "parts.1.title": 6,  # what is missing is told where the mapping begins that lacks it
        "parts.1.weight": 6,
        "best.title": 8,
    }
    assert found["best.title"].found == "None"


def test_numbers_dates_and_bare_words_are_texts_as_written_where_texts_are_meant(
    tmp_path: Path,
) -> None:
    class Named(Strict):
        name: str
        of: str | tuple[str, ...] = ()
        by: dict[str, str | None] = {}
        pages: dict[str, int] = {}
        number: float = 0
        shown: bool = False

    text = """\
name: 1.10
of: [2024-01-02, no, 0x1F, 010, 1:30, 1_000, ON, "x"]
by: {1.10: 2.0, No: yes, 0: ~, 2024-01-02: .inf}
pages: {1: 2, 02: 0x10}
number: 1.10
shown: yes
"""
    found = load_model(write(tmp_path, text), Named)
    assert found.name == "1.10"
    assert found.of == ("2024-01-02", "no", "0x1F", "010", "1:30", "1_000", "ON", "x")
    assert found.by == {"1.10": "2.0", "No": "yes", "0": None, "2024-01-02": ".inf"}
    assert found.pages == {"1": 2, "02": 16}
    assert (found.number, found.shown) == (1.1, True)
    one = load_model(write(tmp_path, "name: x\nof: 2024-01-02\n"), Named)
    assert one.of == "2024-01-02"


def test_a_merged_key_and_an_alias_are_as_written_too(tmp_path: Path) -> None:
    text = "base: &b {title: 1.0, weight: 2}\nname: &n 1.10\nversion: *n\n"
    text += "parts: [{<<: *b}, {<<: *b, title: No}]\n"

    class More(Whole):
        base: Part

    found = load_model(write(tmp_path, text), More)
    assert (found.name, found.version) == ("1.10", "1.10")
    assert found.parts == (Part(title="1.0", weight=2), Part(title="No", weight=2))


def test_many_keys_and_values_as_written_take_no_long_time(tmp_path: Path) -> None:
    class Names(Strict):
        names: dict[str, str]

    text = "names:\n" + "".join(f"  {n}: {n}.10\n" for n in range(5000))
    value, node = load_with_lines(write(tmp_path, text))
    start = time.perf_counter()
    assert validate(value, Names, "", node).names["4999"] == "4999.10"
    assert time.perf_counter() - start < 3


def test_a_number_in_place_of_a_text_is_refused_where_no_file_says_how_it_is_written() -> None:
    with pytest.raises(SetupError, match="version: must be text: put it in quotes; found 1"):
        validate({"name": "x", "version": 1, "parts": []}, Whole)


def test_an_unknown_key_is_answered_with_the_nearest_or_else_with_those_allowed(
    tmp_path: Path,
) -> None:
    found = problems(write(tmp_path, GOOD.replace("weight", "wieght") + "colour: 2\n"))
    assert found["parts.0.wieght"].message == "is not a known key; did you mean 'weight'?"
    assert found["parts.0.wieght"].allowed == ""
    assert found["colour"].message == "is not a known key"
    assert found["colour"].allowed == "name, version, parts, best"


def test_without_a_file_there_is_no_line() -> None:
    with pytest.raises(SetupError) as caught:
        validate({"name": "x"}, Whole)
    assert {p.field for p in caught.value.problems} == {"version", "parts"}
    assert {(p.file, p.line) for p in caught.value.problems} == {("", None)}


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a'"),
        ("x:\n  - a: 1\n    'a': 2\n", 3, "'a'"),
        ("{a: 1, a: 1}", 1, "'a'"),
        ("1: a\n'1': b\n", 2, "'1'"),  # a key is a text
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path: Path, text: str, line: int, key: str) -> None:
    with pytest.raises(SetupError) as caught:
        load_yaml(write(tmp_path, text))
    (problem,) = caught.value.problems
    assert problem.line == line
    assert f"duplicate key {key}" in problem.message


def test_the_same_key_in_two_mappings_is_fine(tmp_path: Path) -> None:
    assert load_yaml(write(tmp_path, "- a: 1\n- a: 2\n")) == [{"a": 1}, {"a": 2}]


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    text = "base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\nlast: {<<: *b}\n"
    found = load_yaml(write(tmp_path, text))
    assert found["more"] == {"x": 1, "y": 3}
    assert found["last"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 2\n",
        "a: b: c\n",
        "\tindented: by tab\n",
        "? [a, list]\n: as a key\n",
        "day: 2026-13-45\n",
        "n: !!int twelve\n",
        "x: !!python/object:os.system ls\n",
        'x: "\x01"\n',
        b"x: \xff\n",
        "[" * 1000,
    ],
)
def test_what_is_not_yaml_is_told_and_never_a_traceback(tmp_path: Path, text: str | bytes) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SetupError) as caught:
        load_yaml(path)
    assert caught.value.problems[0].file == str(path)


def test_the_line_of_a_syntax_error_counts_from_the_first_line_given() -> None:
    with pytest.raises(SetupError) as caught:
        parse_yaml("a: 1\nb: [\n", "f", first_line=11)
    assert caught.value.problems[0].line == 13  # where the list had to end


@pytest.mark.parametrize(
    ("text", "found"), [("", "nothing"), ("- a\n", "list"), ("words\n", "str")]
)
def test_what_holds_no_mapping(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(SetupError, match="must hold a mapping") as caught:
        load_model(write(tmp_path, text), Whole)
    assert caught.value.problems[0].found == found


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such file"):
        load_yaml(tmp_path / "none.yaml")
    with pytest.raises(SetupError, match="cannot be read"):
        load_yaml(tmp_path)


def test_a_long_value_is_shown_short(tmp_path: Path) -> None:
    found = problems(write(tmp_path, GOOD.replace("weight: 1", "weight: " + "x" * 500)))
    assert len(found["parts.0.weight"].found) == 80


def test_a_list_too_short_only_because_its_entries_are_wrong_is_not_blamed(tmp_path: Path) -> None:
    class Pair(Strict):
        parts: tuple[Part, ...] = Field(min_length=2)

    with pytest.raises(SetupError) as caught:
        load_model(write(tmp_path, "parts: [{title: a}, {title: []}]"), Pair)
    assert [p.field for p in caught.value.problems] == ["parts.1.title"]
    with pytest.raises(SetupError) as caught:
        load_model(write(tmp_path, "parts: [{title: a}]"), Pair)
    assert [p.field for p in caught.value.problems] == ["parts"]


@pytest.mark.parametrize("kind", yaml_bombs())
def test_yaml_that_would_cost_much_is_refused_at_once_and_in_few_words(
    tmp_path: Path, kind: str
) -> None:
    path = write(tmp_path, yaml_bombs()[kind])
    began = time.monotonic()
    with pytest.raises(SetupError) as caught:
        load_model(path, Whole)
    assert time.monotonic() - began < 20, "nine of these took hours"
    assert all(p.file == str(path) for p in caught.value.problems)
    assert len(caught.value.problems) <= 101
    assert max(len(str(p)) - len(str(path)) for p in caught.value.problems) < 5000


@pytest.mark.parametrize(
    ("kind", "line", "told"),
    [
        ("lists", 6, "more than 1,000,000 characters, aliases filled in"),
        ("deep lines", 101, "nested more than 100 deep"),
        ("a merge of itself", 1, "an alias stands inside of what it names"),
        ("digits of sixteen", 1, "a number of more than 100 characters"),
        ("a long file", None, "is too large for YAML that people write: 1,000,001 characters"),
    ],
)
def test_a_bound_is_named_with_the_line_that_exceeds_it(
    tmp_path: Path, kind: str, line: int | None, told: str
) -> None:
    with pytest.raises(SetupError, match=re.escape(told)) as caught:
        load_yaml(write(tmp_path, yaml_bombs()[kind]))
    assert caught.value.problems[0].line == line


def test_of_very_many_problems_the_first_hundred_are_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has more problems; these come first"):
        load_model(write(tmp_path, yaml_bombs()["many keys"]), Whole)


def test_an_alias_may_be_used_often(tmp_path: Path) -> None:
    text = "a: &a {x: [1, 2, 3]}\nb: [" + "*a, " * 1000 + "]\n"
    assert load_yaml(write(tmp_path, text))["b"] == [{"x": [1, 2, 3]}] * 1000
