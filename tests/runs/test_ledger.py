from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scripted_judges import answers

from judgebench.records import Answer, Status, Verdict
from judgebench.runs.verdict_log import FiledVerdicts, VerdictWriter
from judgebench.studies.answers import indexed

ITEMS = answers(5)
ROWS = np.arange(len(ITEMS))


def verdict(row: int, status: Status = Status.OK, **more) -> Verdict:
    answer = ITEMS[row]
    found = Verdict(answer.item_id, answer.content_hash, "m", "sig", status)
    return replace(found, **more)


def log(path: Path, *verdicts: Verdict) -> FiledVerdicts:
    """Half of the verdicts are read from the file, the others noted as they are written."""
    half = len(verdicts) // 2
    with VerdictWriter(path) as writer:
        for one in verdicts[:half]:
            writer.write(one)
        made = FiledVerdicts(path, "sig", indexed(ITEMS))
        for one in verdicts[half:]:
            made.note(one, writer.write(one))
    return made


def test_what_has_an_ending_is_not_asked_again(tmp_path: Path) -> None:
    made = log(
        tmp_path / "v.jsonl",
        verdict(0),
        verdict(1, Status.FAILED),
        verdict(2, Status.UNPARSED, reason="hm"),
        verdict(3, Status.REFUSED),
    )
    assert made.never_ended(ROWS).tolist() == [1, 4]
    assert [(row, last.reason) for row, last in made.to_ask_again(ROWS, 1)] == [(2, "hm")]
    assert made.to_ask_again(ROWS, 0) == []
    assert made.to_ask_again(ROWS[:2], 1) == []


def test_verdicts_of_other_settings_or_other_texts_are_counted_and_change_nothing(
    tmp_path: Path,
) -> None:
    strangers = [
        verdict(0, signature="older"),
        verdict(1, content_hash="of another text"),
        verdict(2, item_id="gone"),
    ]
    made = log(tmp_path / "v.jsonl", *strangers, verdict(3))
    assert made.n_unused == 3
    assert len(made.never_ended(ROWS)) == 4


@given(ids=st.lists(st.text(max_size=6), unique=True, max_size=30))
def test_every_answer_is_found_in_its_own_row(ids: list[str]) -> None:
    items = [Answer(item_id, f"text of {item_id}") for item_id in ids]
    index = indexed(items)
    for row, item in enumerate(items):
        assert index.row_of(item.item_id, item.content_hash) == row
        assert index.row_of(item.item_id, "other") == -1
