from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judges import RUBRIC, answers

from judgebench.records import Answer, Status, Verdict
from judgebench.runner import ledger as module
from judgebench.runner.ledger import AnswerIndex, Ledger, label_rows, rows_of_shard, with_rows

ITEMS = answers(5)
ROWS = rows_of_shard(len(ITEMS))


def verdict(row: int, status: Status = Status.OK, **more) -> Verdict:
    answer = ITEMS[row]
    found = Verdict(answer.item_id, answer.content_hash, "m", "sig", status)
    return replace(found, **more)


def ledger(*verdicts: Verdict, reasks: int = 1) -> Ledger:
    made = Ledger(AnswerIndex(ITEMS), "sig", reasks)
    made.note_all(verdicts)
    return made


def test_what_has_an_ending_is_not_asked_again() -> None:
    made = ledger(
        verdict(0),
        verdict(1, Status.FAILED),
        verdict(2, Status.UNPARSED, reason="hm"),
        verdict(3, Status.REFUSED),
    )
    assert made.never_ended(ROWS).tolist() == [1, 4]
    assert [(row, last.reason) for row, last in made.to_reask(ROWS)] == [(2, "hm")]
    assert made.done(ROWS) == 2
    assert made.untouched(ROWS) == 1
    assert made.to_ask(ROWS, again=False).tolist() == [1, 4]
    assert made.to_ask(ROWS, again=True).tolist() == [2]


def test_the_last_verdict_counts() -> None:
    made = ledger(verdict(0, Status.UNPARSED), verdict(0, attempt=1), verdict(1, Status.FAILED))
    made.note(verdict(1))
    assert made.to_reask(ROWS) == []
    assert made.never_ended(ROWS).tolist() == [2, 3, 4]


def test_an_unreadable_reply_ends_it_once_reasks_are_used_up() -> None:
    unread = verdict(0, Status.UNPARSED, attempt=1)
    assert ledger(unread, reasks=1).done(ROWS) == 1
    assert [row for row, _ in ledger(unread, reasks=2).to_reask(ROWS)] == [0]


def test_verdicts_of_other_settings_or_other_texts_are_counted_and_change_nothing() -> None:
    made = Ledger(AnswerIndex(ITEMS), "sig")
    strangers = [
        verdict(0, signature="older"),
        verdict(1, content_hash="of another text"),
        verdict(2, item_id="gone"),
    ]
    assert made.note_all([*strangers, verdict(3)]) == 3
    assert made.untouched(ROWS) == 4


def test_two_answers_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash that takes two answers for one must not let either stand for the other."""
    true_hash = AnswerIndex._hash

    def poor(self: AnswerIndex, item_id: str, content_hash: str) -> int:
        weak = self._salt == bytes(8)
        return 7 if weak and item_id in ("i0", "i3") else true_hash(self, item_id, content_hash)

    monkeypatch.setattr(module.AnswerIndex, "_hash", poor)
    index = AnswerIndex(ITEMS)
    assert [index.row(verdict(row)) for row in range(5)] == [0, 1, 2, 3, 4]


@given(ids=st.lists(st.text(max_size=6), unique=True, max_size=30))
def test_every_answer_is_found_in_its_own_row(ids: list[str]) -> None:
    items = [Answer(item_id, f"text of {item_id}") for item_id in ids]
    index = AnswerIndex(items)
    for row, item in enumerate(items):
        found = Verdict(item.item_id, item.content_hash, "m", "s", Status.OK)
        assert index.row(found) == row
        assert index.row(replace(found, content_hash="other")) is None


@given(n=st.integers(0, 200), of=st.integers(1, 9))
def test_shards_share_every_row_out_once(n: int, of: int) -> None:
    parts = [rows_of_shard(n, number, of) for number in range(1, of + 1)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_labels_are_read_by_row_and_what_is_missing_is_minus_one() -> None:
    index = AnswerIndex(ITEMS)
    found = [
        verdict(0, labels={"harm": "Much", "kind": "B"}),
        verdict(2, Status.UNPARSED, labels={"harm": "None"}),
        verdict(0, labels={"harm": "Some", "kind": "A"}),
        verdict(1, labels={"harm": "Some"}, signature="older"),
    ]
    rows = label_rows(with_rows(found, index, "sig"), len(ITEMS), RUBRIC)
    assert rows["harm"].tolist() == [1, -1, 0, -1, -1]
    assert rows["kind"].tolist() == [0, -1, -1, -1, -1]
