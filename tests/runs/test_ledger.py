from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scripted_judges import answers

from judgebench.records import Answer, Status, Verdict
from judgebench.runs.judging import Ledger
from judgebench.studies.answers import indexed

ITEMS = answers(5)
ROWS = np.arange(len(ITEMS))


def verdict(row: int, status: Status = Status.OK, **more) -> Verdict:
    answer = ITEMS[row]
    found = Verdict(answer.item_id, answer.content_hash, "m", "sig", status)
    return replace(found, **more)


def ledger(*verdicts: Verdict, parse_retries: int = 1) -> Ledger:
    made = Ledger(indexed(ITEMS), "sig", parse_retries)
    for verdict in verdicts:
        made.note(verdict)
    return made


def test_what_has_an_ending_is_not_asked_again() -> None:
    made = ledger(
        verdict(0),
        verdict(1, Status.FAILED),
        verdict(2, Status.UNPARSED, reason="hm"),
        verdict(3, Status.REFUSED),
    )
    assert made.never_ended(ROWS).tolist() == [1, 4]
    assert [(row, last.reason) for row, last in made.to_ask_again(ROWS)] == [(2, "hm")]
    assert made.done(ROWS) == 2
    assert made.never_ended(ROWS).tolist() == [1, 4]
    assert [row for row, _ in made.to_ask_again(ROWS)] == [2]


def test_verdicts_of_other_settings_or_other_texts_are_counted_and_change_nothing() -> None:
    made = Ledger(indexed(ITEMS), "sig")
    strangers = [
        verdict(0, signature="older"),
        verdict(1, content_hash="of another text"),
        verdict(2, item_id="gone"),
    ]
    assert [made.note(found) for found in (*strangers, verdict(3))] == [False, False, False, True]
    assert len(made.never_ended(ROWS)) == 4


@given(ids=st.lists(st.text(max_size=6), unique=True, max_size=30))
def test_every_answer_is_found_in_its_own_row(ids: list[str]) -> None:
    items = [Answer(item_id, f"text of {item_id}") for item_id in ids]
    index = indexed(items)
    for row, item in enumerate(items):
        assert index.row_of(item.item_id, item.content_hash) == row
        assert index.row_of(item.item_id, "other") == -1
