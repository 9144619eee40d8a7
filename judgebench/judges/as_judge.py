"""Annotators in a judge's place, held against the truth of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from judgebench.data.gather import Position, Said
from judgebench.errors import Problem, SetupError
from judgebench.judges.config import RecordedConfig
from judgebench.judges.judge import Task
from judgebench.judges.recorded import NO_ROW, RecordedJudge, Rows
from judgebench.records import HumanLabel, Status, is_slot
from judgebench.rubric import Rubric
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.study import JudgeVerdicts
from judgebench.studies.truth import TruthConfig, fits

AsJudges = Collection[str] | Mapping[str, Literal["items", "rows"]]
"""Names or patterns of annotators; or each with what was due: every item that others labelled, as
usual, or the `rows` that they have."""

_LABELS = "labels"  # where the verdicts of annotators stand
_ITEMS = dict[str, list[tuple[str, Said]]]


def annotators_as_judges(
    asked: AsJudges, rubric: Rubric, answers: IndexedAnswers, labels: Iterable[HumanLabel]
) -> list[JudgeVerdicts]:
    """One judge per annotator. A label is due from them on each metric of which they have a row, on
    every item that somebody else labelled; with `rows` on those that they have a row of.

    Raises SetupError for a name or pattern of nobody who labelled anything, and for places in a
    list.
    """
    if not asked:
        return []
    given: dict[str, _ITEMS] = {}
    labelled: dict[str, set[str]] = {}  # by whom each item was
    metrics = {metric.id for metric in rubric.metrics}
    for label in labels:
        if not label.adjudicated and label.metric in metrics:
            of_item = given.setdefault(label.annotator, {}).setdefault(label.item_id, [])
            of_item.append((label.metric, Said(Position(_LABELS, 0), label.label)))
            if label.label is not None:
                labelled.setdefault(label.item_id, set()).add(label.annotator)
    judges = []
    for name, expected in _people(asked, set().union(*labelled.values())).items():
        due = [i for i, who in labelled.items() if expected == "items" and who != {name}]
        rows: Rows = {**dict.fromkeys(due, ()), **given[name]}
        # What is due has a row here, so that it is `rows` for the judge either way.
        facts = {"annotator": name, "due": expected}
        own = RecordedConfig.model_construct(name=name, expected="rows", about=facts)
        judge = RecordedJudge(own, rubric, rows, _LABELS)
        known = [row for row in map(answers.row, rows) if row >= 0]
        tasks = (Task(answers[row], None, answers.content_hash(row)) for row in known)
        verdicts = {verdict.item_id: verdict for verdict in judge.judge(tasks)}
        about = judge.describe()
        judges.append(JudgeVerdicts(name, "judge", judge.signature, verdicts, about=about))
    return judges


def lacking_labels(judges: Iterable[JudgeVerdicts]) -> Iterator[str]:
    """A sentence on each of these annotators who lack a label that is due."""
    for judge in judges:
        lacking = [v for v in judge.verdicts.values() if v.status is not Status.OK]
        without = sum(verdict.reason == NO_ROW for verdict in lacking)
        hint = f" ({without:,} without a row; expected is `rows` for who was given a part)"
        if lacking:
            yield (
                f"{judge.name}, in a judge's place, lacks a label on {len(lacking):,} of "
                f"{len(judge.verdicts):,} items{hint if without else ''}: they count as failed"
            )


def _people(asked: AsJudges, labelled: Collection[str]) -> dict[str, str]:
    """The annotators that names and patterns stand for, each once, with what they were asked about.
    Raises SetupError."""
    people = sorted(name for name in labelled if not is_slot(name))
    expected = asked if isinstance(asked, Mapping) else dict.fromkeys(asked, "items")
    found, problems = dict[str, str](), []
    for name, due in expected.items():
        fitting = [a for a in labelled if fits(a, name)]
        persons = [a for a in people if a in fitting]
        found |= dict.fromkeys([name] if name in persons else persons, due)
        message = "is not an annotator with a label"
        if fitting:
            place = f"{min(fitting)} is a place in a list, not a person"
            message = f"{place}: different people stand there on different items"
        if due not in ("items", "rows"):
            problems.append(Problem("is none of items and rows", "", None, "as_judges", str(due)))
        elif not persons:
            problems.append(Problem(message, "", None, "as_judges", name, _some(people)))
    if problems:
        raise SetupError(problems)
    return found


def truth_of_others(
    truth: TruthConfig, names: Sequence[str], labels: Iterable[HumanLabel]
) -> TruthConfig:
    """The same rule with a truth that those annotators have no part in.

    Raises SetupError where no annotator is left.
    """
    if not names:
        return truth
    others = [a for a in truth.choose({x.annotator for x in labels}) if a not in names]
    if not others:
        message = "leaves no annotator to make the truth"
        raise SetupError(Problem(message, field="as_judges", found=", ".join(names)))
    return truth.model_copy(update={"annotators": tuple(others)})


def _some(names: Iterable[str], most: int = 20) -> str:
    every = sorted(names)
    return ", ".join(every[:most]) + (", …" if len(every) > most else "")
