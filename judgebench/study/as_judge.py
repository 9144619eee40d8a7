"""Annotators in a judge's place, held against the truth of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from judgebench.errors import Problem, SetupError
from judgebench.records import HumanLabel, Status, Verdict, content_hash, is_slot
from judgebench.rubric import Rubric
from judgebench.study.answers import IndexedAnswers
from judgebench.study.study import JudgeVerdicts
from judgebench.study.truth import TruthConfig, fits


def annotators_as_judges(
    names: Sequence[str], rubric: Rubric, answers: IndexedAnswers, labels: Iterable[HumanLabel]
) -> list[JudgeVerdicts]:
    """One judge per annotator: a verdict on each answer that they gave any label.

    `names` may be patterns, such as `expert*`. A metric that an annotator did not label is one
    without a label of the judge. Raises SetupError for a name or pattern of nobody who labelled
    anything, and for places in a list.
    """
    if not names:
        return []
    given: dict[str, dict[str, dict[str, str]]] = {}
    metrics = {metric.id for metric in rubric.metrics}
    for label in labels:
        if label.label is not None and not label.adjudicated and label.metric in metrics:
            of_item = given.setdefault(label.annotator, {}).setdefault(label.item_id, {})
            of_item[label.metric] = label.label
    judges = []
    for name in _people(names, given):
        items = given[name]
        about = {"judge": "annotator", "name": name}
        signature = content_hash(about)
        verdicts = {
            i: Verdict(i, answers.content_hash(row), name, signature, Status.OK, labels)
            for i, labels in items.items()
            if (row := answers.row(i)) >= 0
        }
        judges.append(JudgeVerdicts(name, "judge", signature, verdicts, about=about))
    return judges


def _people(names: Sequence[str], labelled: Collection[str]) -> list[str]:
    """The annotators that names and patterns stand for, each once. Raises SetupError."""
    people = sorted(name for name in labelled if not is_slot(name))
    found, problems = dict[str, None](), []
    for name in names:
        fitting = [a for a in labelled if fits(a, name)]
        persons = [a for a in people if a in fitting]
        found.update(dict.fromkeys([name] if name in persons else persons))
        message = "is not an annotator with a label"
        if fitting:
            place = f"{min(fitting)} is a place in a list, not a person"
            message = f"{place}: different people stand there on different items"
        if not persons:
            problems.append(Problem(message, "", None, "as_judges", name, _some(people)))
    if problems:
        raise SetupError(problems)
    return list(found)


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
