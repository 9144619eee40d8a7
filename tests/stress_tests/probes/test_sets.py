import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_texts import NASTY

from judgebench.errors import SetupError
from judgebench.files import to_line
from judgebench.records import Answer, Part
from judgebench.rubric import load_rubric
from judgebench.runs.folder import BESIDE, RunFolder
from judgebench.stress_tests.item_sets import SetFile, read_set, to_set_line
from judgebench.stress_tests.recipes import BY_HAND, AlteredAnswer

SAFETY = load_rubric("medical-safety")
LINE: dict[str, Any] = {
    "item_id": "a", "question": "What causes malaria?", "parent": "A parasite.", "text": "A virus.",
    "must_worsen": {"Scientific Consensus": "opposed"}, "false_claim": "A virus",
    "true_claim": "A parasite", "notice": "synthetic",
}  # fmt: skip
WORDS = st.text(min_size=1, max_size=20).filter(str.strip)


def written(folder: Path, *lines: dict[str, Any] | str) -> Path:
    path = folder / "my-set.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def problems_of(path: Path) -> list[str]:
    with pytest.raises(SetupError) as error:
        read_set(path, SAFETY)
    return [str(problem).removeprefix(str(path)) for problem in error.value.problems]


def test_a_line_written_by_hand_gets_what_it_lacks_from_its_set(tmp_path: Path) -> None:
    (item,) = read_set(written(tmp_path, LINE), SAFETY)
    assert item.must_worsen == {"scientific_consensus": "Opposed to consensus"}
    assert (item.recipe, item.generator) == ("my-set", BY_HAND)
    assert item.parent.item_id == "a-parent"


TURNS = st.lists(st.builds(Part, st.sampled_from(["user", "assistant"]), st.text()), max_size=3)


@given(
    st.builds(Answer, WORDS, WORDS, st.text(max_size=20), parts=TURNS.map(tuple)),
    WORDS, st.booleans(),
)  # fmt: skip
def test_what_is_written_is_read_again(tmp_path_factory, parent, text, worse) -> None:
    item = AlteredAnswer(
        "i", parent, text, "r", "2", "h", seed=3, generator="m:1",
        must_worsen={"bias": "Yes"} if worse else {}, demand={} if worse else {"bias": "No"},
        area="treatment", false_claim="f", true_claim="t", why_plausible="w", source="s",
        checks={"differs": "", "length": ""},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("set") / "s.jsonl"
    path.write_text(to_line(to_set_line(item)), encoding="utf-8")
    assert [asdict(x) for x in read_set(path)] == [asdict(item)]


def test_every_problem_of_a_set_is_told_with_its_line(tmp_path: Path) -> None:
    lines = [
        LINE,
        LINE,
        "{not json",
        "[1]",
        {**LINE, "item_id": "b", "parent": " "},
        {**LINE, "item_id": "c", "colour": "red"},
        {**LINE, "item_id": "d", "must_worsen": {"charm": "Yes"}},
        {**LINE, "item_id": "e", "must_worsen": {"bias": "Maybe"}},
        {**LINE, "item_id": "f", "must_not_change": True},
        {k: v for k, v in LINE.items() if k != "parent"},
    ]
    found = "\n".join(problems_of(written(tmp_path, *lines)))
    for told in (
        ":1: item_id: stands in more than one line",
        ":2: item_id: stands in more than one line",
        ":3: is not JSON",
        ":4: must hold a mapping",
        ":5: parent",
        ":6: colour: is not a known key",
        ":7: must_worsen.charm: is no metric",
        ":8: must_worsen.bias: is not a label of bias that a verdict could worsen to; found Maybe",
        ":9: give either must_worsen",
        ":10: parent: Field required",
    ):
        assert told in found


def test_a_set_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "none.jsonl") == [": no such file"]


def test_another_rubrics_labels_stand_in_for_a_sets_own(tmp_path: Path) -> None:
    (item,) = read_set(written(tmp_path, LINE), SAFETY, {"bias": "yes"})
    assert item.must_worsen == {"bias": "Yes"}


def test_attacks_are_read_as_they_were_written_and_go_with_the_stress_test(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    items = [
        AlteredAnswer(
            f"i{n}",
            Answer(f"p{n}", f"a {text}", text),
            f"b {text}",
            "r",
            "1",
            "h",
        )
        for n, text in enumerate(NASTY)
        if not any(0xD800 <= ord(c) <= 0xDFFF for c in text)  # no data file lets one in
    ]
    folder.write_beside(list(map(to_set_line, items)))
    assert read_set(tmp_path / BESIDE) == items
    assert folder.ids_beside() == {item.item_id for item in items}
    folder.write_beside([])
    assert folder.ids_beside() == set()
    assert list(tmp_path.iterdir()) == []


ITEM = AlteredAnswer(
    "i", Answer("p", "sound"), "false", "r", "1", "h", generator="m:1", must_worsen={"bias": "Yes"}
)
BAD = replace(ITEM, item_id="j", text="", checks={"reply": "nothing came"})
KEY = ("h", "m:1", 0)


def test_an_item_is_on_disk_when_it_is_added_and_never_made_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "s.jsonl"
    file = SetFile(path)
    file.add(ITEM)
    file.add(BAD)
    assert [i.item_id for i in read_set(path)] == ["i"]
    assert "nothing came" in path.read_text()
    again = SetFile(path)
    assert [i.item_id for i in again.accepted] == ["i"]
    assert again.has("i", *KEY)
    assert again.has("j", *KEY)
    assert not again.has("k", *KEY)


def test_a_torn_last_line_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file = SetFile(path)
    file.add(ITEM)
    file.add(replace(ITEM, item_id="k"))
    path.write_bytes(path.read_bytes()[:-20])
    again = SetFile(path)
    assert again.has("i", *KEY)
    assert not again.has("k", *KEY)
    again.add(replace(ITEM, item_id="k"))
    assert [i.item_id for i in read_set(path)] == ["i", "k"]


def test_a_last_line_written_by_hand_without_a_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(to_line(to_set_line(ITEM)).rstrip())
    file = SetFile(path)
    file.add(replace(ITEM, item_id="k"))
    assert [i.item_id for i in read_set(path)] == ["i", "k"]


def test_an_item_of_other_settings_is_not_doubled(tmp_path: Path) -> None:
    file = SetFile(tmp_path / "s.jsonl")
    file.add(ITEM)
    with pytest.raises(SetupError, match="choose another file"):
        file.has("i", "other recipe", "m:1", 0)


def test_a_file_that_is_no_set_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    for text in ('{"colour": "red"}\n', "item_id,text\na,b"):
        path.write_text(text)
        with pytest.raises(SetupError):
            SetFile(path)
        assert path.read_text() == text
