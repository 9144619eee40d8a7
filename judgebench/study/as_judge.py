"""Judges of a study that were not run: annotators, held against the truth of the others, and
existing verdicts that are given as labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.records import HumanLabel, Status, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.study.answers import IndexedAnswers
from judgebench.study.study import JudgeVerdicts, Study
from judgebench.study.truth import TruthConfig


def annotators_as_judges(
    names: Sequence[str], rubric: Rubric, answers: IndexedAnswers, labels: Iterable[HumanLabel]
) -> list[JudgeVerdicts]:
    """One judge per annotator: a verdict on each answer that they gave any label.

    A metric that they did not label is one without a label of the judge. Raises SetupError for a
    name that labelled nothing.
    """
    if not names:
        return []
    given: dict[str, dict[str, dict[str, str]]] = {name: {} for name in names}
    known: set[str] = set()
    metrics = {metric.id for metric in rubric.metrics}
    for label in labels:
        known.add(label.annotator)
        if label.annotator in given and label.label is not None and label.metric in metrics:
            of_item = given[label.annotator].setdefault(label.item_id, {})
            of_item[label.metric] = label.label
    problems = [
        Problem("is not an annotator with a label", "", None, "as_judges", name, _some(known))
        for name, items in given.items()
        if not items
    ]
    if problems:
        raise SetupError(problems)
    judges = []
    for name, items in given.items():
        about = {"judge": "annotator", "name": name}
        signature = content_hash(about)
        verdicts = {
            i: Verdict(i, answers.content_hash(row), name, signature, Status.OK, labels)
            for i, labels in items.items()
            if (row := answers.row(i)) >= 0
        }
        judges.append(JudgeVerdicts(name, "judge", signature, verdicts, about=about))
    return judges


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


def judges_of(
    said: Iterable[HumanLabel], unread: Mapping[tuple[str, str, str], str], answers: IndexedAnswers
) -> list[JudgeVerdicts]:
    """One judge for each name that `said` calls an annotator, in their order.

    A judge owes a label on every metric that it labels at all. Where one is lacking, the verdict is
    unparsed if `unread` (by item, judge and metric) holds a text that is not a label, else failed:
    a blank is never taken for an item that the judge was not asked about.
    """
    cells: dict[str, dict[str, dict[str, str | None]]] = {}
    for one in said:
        of_item = cells.setdefault(one.annotator, {}).setdefault(one.item_id, {})
        of_item[one.metric] = one.label
    judges = []
    for name, of_judge in cells.items():
        about = {"judge": "given verdicts", "name": name}
        signature = content_hash(about)
        due = list(dict.fromkeys(metric for of_item in of_judge.values() for metric in of_item))
        verdicts = {}
        for item_id, of_item in of_judge.items():
            labels = {metric: label for metric, label in of_item.items() if label is not None}
            lacking = [metric for metric in due if metric not in labels]
            raw = [unread[key] for metric in lacking if (key := (item_id, name, metric)) in unread]
            status = Status.OK if not lacking else Status.UNPARSED if raw else Status.FAILED
            verdicts[item_id] = Verdict(
                item_id, answers.content_hash(answers.row(item_id)), name, signature,
                status, labels, raw="; ".join(raw),
                reason=f"no label for {', '.join(lacking)}" if lacking else "",
            )  # fmt: skip
        judges.append(JudgeVerdicts(name, "judge", signature, verdicts, about=about))
    return judges


def gaps(study: Study) -> Iterator[str]:
    """A sentence for each judge that has no row for some items with human labels."""
    labelled = np.zeros(len(study.answers), dtype=np.bool_)
    for humans in study.humans.values():
        labelled |= humans.truth >= 0
    for judge in study.judges:
        if lacking := int((labelled & ~study.asked(judge)).sum()):
            yield (
                f"{judge.name} has no row for {lacking:,} of {int(labelled.sum()):,} items with "
                "human labels. Agreement counts them as missing; decisions leave them out."
            )
