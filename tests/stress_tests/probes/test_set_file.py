from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.files import to_line
from judgebench.records import Answer
from judgebench.stress_tests.probes.altered import AlteredAnswer
from judgebench.stress_tests.probes.sets import SetFile, read_set, rejected_path, to_set_line

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
    assert "nothing came" in rejected_path(path).read_text()
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


def test_what_fails_a_later_check_moves_to_the_rejected(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    other = replace(ITEM, item_id="k")
    file = SetFile(path)
    file.add(ITEM)
    file.add(other)
    file.replace_checked(
        [
            replace(ITEM, checks={"second_opinion": "no"}),
            replace(other, checks={"second_opinion": ""}),
        ]
    )
    file.add(replace(ITEM, item_id="l"))
    found = read_set(path)
    assert [i.item_id for i in found] == ["k", "l"]
    assert found[0].checks == {"second_opinion": ""}
    assert '"item_id":"i"' in rejected_path(path).read_text()


def test_a_file_that_is_no_set_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    for text in ('{"colour": "red"}\n', "item_id,text\na,b"):
        path.write_text(text)
        with pytest.raises(SetupError):
            SetFile(path)
        assert path.read_text() == text
