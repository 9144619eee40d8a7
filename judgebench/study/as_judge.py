"""Annotators as judges: their labels against the truth of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from judgebench.errors import Problem, SetupError
from judgebench.records import HumanLabel, Status, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.study.answers import IndexedAnswers
from judgebench.study.study import JudgeVerdicts
from judgebench.study.truth import TruthConfig


def annotators_as_judges(
    names: Sequence[str],
    rubric: Rubric,
    answers: IndexedAnswers,
    labels: Iterable[HumanLabel],
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
    return [_judge(name, items, answers) for name, items in given.items()]


def _judge(
    name: str, items: Mapping[str, Mapping[str, str]], answers: IndexedAnswers
) -> JudgeVerdicts:
    about = {"judge": "annotator", "name": name}
    signature = content_hash(about)
    verdicts = {
        item_id: Verdict(
            item_id, answers.content_hash(row), name, signature,
            Status.OK, labels,
        )
        for item_id, labels in items.items()
        if (row := answers.row(item_id)) >= 0
    }  # fmt: skip
    return JudgeVerdicts(name, "judge", signature, verdicts, about=about)


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
