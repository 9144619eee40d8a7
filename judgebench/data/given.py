"""Labels and verdicts given as files or DataFrames, with or without answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgebench.data.findings import Findings
from judgebench.data.gather import Collected
from judgebench.data.load import read_into
from judgebench.data.recognise import NO_TEXT
from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Rubric

# What is usual where tables are not written for judgebench, and changes nothing.
_USUAL = ("blank_label", "blank_question", "duplicate_item")


@dataclass(frozen=True)
class GivenData:
    """What was given. `verdicts` are the labels of judges, blank ones too; `unread` are
    the texts that are not labels. Without answers, `answers` have ids and groups alone."""

    answers: Sequence[Answer]
    labels: Sequence[HumanLabel]
    verdicts: Sequence[HumanLabel]
    unread: Mapping[tuple[str, str, str], str]  # by item, judge and metric
    has_texts: bool
    warnings: Sequence[Problem]


def read_given(labels: Any, verdicts: Any, answers: Any, rubric: Rubric) -> GivenData:
    """Read all three, of which verdicts and answers may be None.

    Raises SetupError with every problem of all of them.
    """
    gathered = Collected(rubric, rubric, Findings())
    gathered.without_texts = answers is None
    if answers is not None:
        read_into(gathered, answers, "answers")
    read_into(gathered, labels, "labels")
    if gathered.without_texts:  # unless the labels bring their texts along
        gathered.without_texts = not gathered.n_answers or gathered.text_of(0) == NO_TEXT
    gathered.settle()
    people = gathered.begin_verdicts()
    if verdicts is not None:
        read_into(gathered, verdicts, "verdicts")
        gathered.settle()
    said = list(gathered.human_labels())
    if not gathered.findings.errors:
        _check(people, None if verdicts is None else said, gathered)
    if gathered.findings.errors:
        raise SetupError(gathered.findings.errors)
    found = gathered.answers()
    if gathered.without_texts:
        found = _by_id([replace(answer, text="") for answer in found], [*people, *said])
    warnings = [w for w in gathered.findings.warnings if w.kind not in _USUAL]
    return GivenData(
        found, people, said, dict(gathered.unread.items()), not gathered.without_texts, warnings
    )


def _by_id(known: Sequence[Answer], labels: Sequence[HumanLabel]) -> Sequence[Answer]:
    """An answer for every item that has a label or a verdict, its group where that is known."""
    by_id = {answer.item_id: answer for answer in known}
    for label in labels:
        if label.item_id not in by_id:
            by_id[label.item_id] = Answer(label.item_id, "")
    return list(by_id.values())


def _check(
    labels: Sequence[HumanLabel], verdicts: Sequence[HumanLabel] | None, gathered: Collected
) -> None:
    """Labels and verdicts that can be compared; what prevents it is reported."""
    labelled = {label.item_id for label in labels if label.label is not None}
    if not labelled:
        gathered.findings.add("no_rows", "holds no human label", ("labels", None))
    elif verdicts is not None and not any(said.item_id in labelled for said in verdicts):
        message = "no item of the verdicts has a human label"
        some = verdicts[0].item_id if verdicts else ""
        allowed = f"item ids of the labels, such as {min(labelled)!r}"
        gathered.findings.add("unknown_item", message, ("verdicts", None), "item_id", some, allowed)
