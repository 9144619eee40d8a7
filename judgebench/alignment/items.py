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
from judgebench.stats.response_sets import least_severe
from judgebench.studies.item_table import reference_sets
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.verdicts import weighed


def items_of(study: Study) -> Items:
    """Every item in its order; control judges are left out."""
    ids = tuple(study.answers.item_ids())
    said = [_said(study, metric, ids) for metric in study.rubric.metrics]
    systems = [answer.system if not answer.responses else "" for answer in study.answers]
    return Items(ids, systems, said, _texts(study))


def _said(study: Study, metric: Metric, ids: tuple[str, ...]) -> Said:
    humans, labels = study.humans[metric.id], weighed(metric)
    ratings, about = humans.ratings, study.answers.of_kind(metric, study.rubric)
    judges = [judge for judge in study.real_judges if judge.judges(metric)]
    reference: IntArray = humans.truth
    values = ratings.values
    judged: list[IntArray] = [
        (study.judged_sets if metric.several else study.judged)(j, metric) for j in judges
    ]
    if ratings.sets is not None:  # what is more than one label comes behind all labels
        reference, values = reference_sets(study, metric), ratings.sets
        found = np.unique(np.concatenate([reference, values.ravel(), *judged]))
        several = found[(found > 0) & (found & (found - 1) > 0)]
        labels = (*labels, *map(metric.text_of, several.tolist()))

        def place(sets: IntArray) -> IntArray:
            behind = len(weighed(metric)) + np.searchsorted(several, sets)
            return np.where(np.isin(sets, several), behind, least_severe(sets))

        reference, values, judged = place(reference), place(values), [*map(place, judged)]
    return Said(
        metric.title,
        labels,
        metric.severities if metric.kind == "ordinal" else (),
        "".join(map(_reference, reference.tolist(), about.tolist())),
        {
            annotator: _of_rows(ratings.rows, values[:, column], len(ids))
            for column, annotator in enumerate(ratings.annotators)
        },
        {
            judge.name: _of_judge(study, judge, metric, ids, codes)
            for judge, codes in zip(judges, judged, strict=True)
        },
    )


def _reference(label: int, about: bool) -> str:
    return sign(label) if about else NOT_ABOUT


def _of_rows(rows: IntArray, labels: IntArray, n: int) -> str:
    whole = np.full(n, -1, dtype=np.int64)
    whole[rows] = labels
    return "".join(map(sign, whole.tolist()))


def _of_judge(
    study: Study, judge: JudgeVerdicts, metric: Metric, ids: tuple[str, ...], judged: IntArray
) -> str:
    """A judge's signs. Only where it gave no label that counts is the verdict itself read."""
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
