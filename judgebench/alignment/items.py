"""Every item of a study with its labels and texts, to be browsed in a report's page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgebench.records import TRAINED_ON, Answer, Status
from judgebench.results.answer_texts import reasons_of, texts_of
from judgebench.results.items import (
    NOT_ABOUT,
    NOT_LABELLED,
    SIGNS,
    Items,
    Passage,
    Said,
    Texts,
    sign,
)
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.verdicts import weighed


def items_of(study: Study) -> Items:
    """Every item in its order; control judges are left out."""
    ids = tuple(study.answers.item_ids())
    said = [_said(study, metric, ids) for metric in study.rubric.metrics]
    systems = [answer.system if not answer.responses else "" for answer in study.answers]
    return Items(ids, systems, said, _texts(study))


def _said(study: Study, metric: Metric, ids: tuple[str, ...]) -> Said:
    humans = study.humans[metric.id]
    ratings, about = humans.ratings, study.answers.of_kind(metric, study.rubric)
    return Said(
        metric.title,
        weighed(metric),
        metric.severities if metric.kind == "ordinal" else (),
        "".join(map(_reference, humans.truth.tolist(), about.tolist())),
        {
            annotator: _of_rows(ratings.rows, ratings.values[:, column], len(ids))
            for column, annotator in enumerate(ratings.annotators)
        },
        {j.name: _of_judge(study, j, metric, ids) for j in study.real_judges if j.judges(metric)},
    )


def _reference(label: int, about: bool) -> str:
    return sign(label) if about else NOT_ABOUT


def _of_rows(rows: IntArray, labels: IntArray, n: int) -> str:
    whole = np.full(n, -1, dtype=np.int64)
    whole[rows] = labels
    return "".join(map(sign, whole.tolist()))


def _of_judge(study: Study, judge: JudgeVerdicts, metric: Metric, ids: tuple[str, ...]) -> str:
    """A judge's signs. Only where it gave no label that counts is the verdict itself read."""
    judged = study.judged(judge, metric)
    signs = [*map(sign, judged.tolist())]
    about = study.answers.of_kind(metric, study.rubric)
    for row in np.flatnonzero(judged < 0).tolist():
        signs[row] = _without(judge, metric, ids[row]) if about[row] else NOT_ABOUT
    return "".join(signs)


def _without(judge: JudgeVerdicts, metric: Metric, item: str) -> str:
    """The sign of an abstention, or of the reason why there is no label."""
    if (verdict := judge.verdicts.get(item)) is None:
        return SIGNS["not judged"]
    if verdict.reason == TRAINED_ON:
        return SIGNS[TRAINED_ON]
    if (label := verdict.labels.get(metric.id)) in metric.abstain:
        return sign(weighed(metric).index(label or ""))
    ended = "no label" if verdict.status is Status.OK else verdict.status.value
    return SIGNS.get(ended, NOT_LABELLED)


def _texts(study: Study) -> Iterator[tuple[Texts, Texts]]:
    for answer in study.answers:
        yield texts_of(answer), tuple(_reasons(study, answer))


def _reasons(study: Study, answer: Answer) -> Iterator[tuple[str, Passage]]:
    for judge in study.real_judges:
        if (verdict := judge.verdicts.get(answer.item_id)) is not None:
            yield from reasons_of(judge.name, verdict, answer, study.rubric)
