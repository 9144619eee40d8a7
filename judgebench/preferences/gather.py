"""The responses of a study side by side: their scores, and which of two is preferred."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Part, is_slot
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, mean_of_defined
from judgebench.stats.ranks import Flags, nearest_label, signs, tuples_within
from judgebench.studies.study import JudgeVerdicts, Study

WON = np.array([1.0, 0.0, 0.5, np.nan])  # of the first response, by label; the last: no label


@dataclass(frozen=True)
class Given:
    """What one judge said of some items: `values` (items,), scores or labels, NaN or -1 where none
    came, and whether one was `due` (items,)."""

    values: NDArray[Any]
    due: Flags


@dataclass(frozen=True)
class Rows:
    """What is needed of the answers, read once: the number of the question of each (answers,), its
    system and length, and by its row the two responses of each pair."""

    question: IntArray
    systems: Sequence[str]
    length: IntArray
    pairs: Mapping[int, tuple[Part, ...]]


def rows_of(study: Study) -> Rows:
    """One pass over the answers."""
    numbers: dict[tuple[str, str], int] = {}
    question, length = [], []
    systems, pairs = [], {}
    for row, answer in enumerate(study.answers):
        question.append(numbers.setdefault((answer.group, answer.question), len(numbers)))
        length.append(len(answer.text))
        systems.append(answer.system)
        if responses := answer.responses:
            pairs[row] = responses
    return Rows(np.array(question), systems, np.array(length), pairs)


@dataclass(frozen=True)
class Scored:
    """The responses that humans gave a score on a metric or composite; lower is better.

    `humans` is (responses, annotators), the mean severity over the metrics, NaN where one is
    missing; `mean` (responses,) that of the annotators, and `as_reply` the same as a judge can say
    it that has the labels only. With `has_places` some annotators are places in a list. `rows` are
    their rows in the study, `question` and `clusters` those of them, `judges` what each said.
    """

    id: str
    title: str
    rows: IntArray
    question: IntArray
    clusters: Clusters
    humans: FloatArray
    has_places: bool
    as_reply: FloatArray
    judges: Mapping[str, Given]

    @cached_property
    def mean(self) -> FloatArray:
        return mean_of_defined(self.humans)


@dataclass(frozen=True)
class Scale:
    """What responses are scored by, an ordinal metric or a composite: the mean severity over
    `metrics`, of a judge over `of_judge`."""

    id: str
    title: str
    metrics: tuple[Metric, ...]
    of_judge: tuple[Metric, ...]


def scales(study: Study) -> list[Scale]:
    """Each ordinal metric of answers and each composite.

    A composite with the id of a metric takes its place: humans' scores are the means of their
    labels on the composite's metrics, whether or not they labelled that metric too, and a judge's
    is its own label on it.
    """
    metrics = {m.id: m for m in study.rubric.metrics if m.kind == "ordinal" and m.of == "answer"}
    found = {m.id: Scale(m.id, m.title, (m,), (m,)) for m in metrics.values()}
    for name, ids in study.rubric.composite.items():
        of = tuple(metrics[i] for i in ids)
        own = metrics.get(name)
        title = own.title if own else name.replace("_", " ").capitalize()
        found[name] = Scale(name, title, of, (own,) if own else of)
    return list(found.values())


def whole_scales(study: Study) -> list[Scale]:
    """The scales without the metrics that are part of a composite: those that systems and pairs are
    compared by."""
    within = {name for of in study.rubric.composite.values() for name in of}
    return [scale for scale in scales(study) if scale.id not in within]


def scored(study: Study, rows: Rows) -> Iterator[Scored]:
    """One for each of the `scales` that humans gave any score on."""
    for scale in scales(study):
        annotators = sorted({a for m in scale.metrics for a in study.humans[m.id].makers})
        each = np.stack([_severities(study, m, annotators) for m in scale.metrics])
        humans = each.mean(axis=0)
        known = np.flatnonzero(~np.isnan(humans).all(axis=1))
        if len(known) < 2:
            continue
        given = {judge.name: _scores(study, judge, scale) for judge in study.judges}
        # A judge of the aspects rounds each of them, another one their mean.
        means = each if scale.of_judge == scale.metrics else humans[None]
        nearest = [
            nearest_label(mean_of_defined(x[known]), np.array(m.severities, dtype=np.float64))
            for x, m in zip(means, scale.of_judge, strict=True)
        ]
        yield Scored(
            scale.id, scale.title, known, np.unique(rows.question[known], return_inverse=True)[1],
            study.clusters[known].occurring(), humans[known], any(map(is_slot, annotators)),
            np.mean(nearest, axis=0),
            {name: Given(x.values[known], x.due[known]) for name, x in given.items()},
        )  # fmt: skip


def _severities(study: Study, metric: Metric, annotators: Sequence[str]) -> FloatArray:
    """What each annotator gave each answer (answers, annotators)."""
    made = study.humans[metric.id].made
    found = np.full((len(study.answers), len(annotators)), np.nan)
    columns = np.array([annotators.index(a) for a in made.annotators], dtype=np.int64)
    found[made.rows[:, None], columns] = _by_label(metric)[made.values]
    return found


def _by_label(metric: Metric) -> FloatArray:
    return np.array([*metric.severities, np.nan])  # -1 is no label


def _scores(study: Study, judge: JudgeVerdicts, scale: Scale) -> Given:
    """Of every answer."""
    severities = [_by_label(m)[study.judged(judge, m)] for m in scale.of_judge]
    due = np.all([study.due(judge, m) for m in scale.of_judge], axis=0)
    return Given(np.mean(severities, axis=0), due)


@dataclass(frozen=True)
class Compared:
    """Pairs of responses to one question of two systems, and who prefers which.

    All but `systems` are by pair: `sides` (pairs, 2) numbers the systems, -1 where one has no name;
    `humans` is the share of human votes for the first, ties half, NaN without any; those of
    `judges` are labels, 0 first, 1 second, 2 tie, -1 none. `longer` is 1 where the first is the
    longer text, -1 where the second is.
    """

    id: str
    title: str
    systems: tuple[str, ...]
    sides: IntArray
    clusters: Clusters
    humans: FloatArray
    judges: Mapping[str, Given]
    longer: IntArray


def _sides(names: NDArray[np.str_]) -> tuple[tuple[str, ...], IntArray]:
    """The systems and the numbers of those of each pair (pairs, 2)."""
    systems = sorted(set(names.flat) - {""})
    return tuple(map(str, systems)), np.where(names == "", -1, np.searchsorted(systems, names))


def compared(study: Study, rows: Rows, found: Scored) -> Compared | None:
    """Every two responses of different systems to one question: the lower score is preferred."""
    names = np.array([rows.systems[row] for row in found.rows.tolist()])
    pairs = tuples_within(found.question, 2, seed=study.resampling.seed)
    pairs = pairs[(names[pairs] != "").all(axis=1) & (names[pairs[:, 0]] != names[pairs[:, 1]])]
    if not len(pairs):
        return None
    judges = {
        name: Given(label_of(given.values[pairs]), given.due[pairs].all(axis=1))
        for name, given in found.judges.items()
    }
    return Compared(
        found.id, found.title, *_sides(names[pairs]), found.clusters[pairs[:, 0]].occurring(),
        WON[label_of(found.mean[pairs])], judges,
        np.sign(rows.length[found.rows[pairs]] @ np.array([1, -1])),
    )  # fmt: skip


@dataclass(frozen=True)
class Preferred:
    """The pairs of a preference metric, with labels as those of judges in `compared`.

    `responses` (pairs, 2) numbers them, by item or else by system. `votes` is (pairs, annotators),
    `truth` (pairs,) the truth of the study. The judges of `compared` are also those that gave
    scores to single responses.
    """

    compared: Compared
    question: IntArray
    responses: IntArray
    votes: IntArray
    truth: IntArray


def preferred(study: Study, rows: Rows, metric: Metric) -> Preferred | None:
    """The pairs that are to be judged on a preference metric; None where humans compared none."""
    humans = study.humans[metric.id]
    at = np.array([row for row in humans.ratings.rows.tolist() if row in rows.pairs])
    if not len(at):
        return None
    responses = [rows.pairs[row] for row in at.tolist()]
    votes = humans.made.values[np.isin(humans.ratings.rows, at)]
    said = {
        j.name: Given(study.judged(j, metric)[at], study.due(j, metric)[at]) for j in study.judges
    }
    said = {name: given for name, given in said.items() if given.due.any()}
    said |= _by_scores(study, [[study.answers.row(p.item_id) for p in pair] for pair in responses])
    length = np.array([[len(part.text) for part in pair] for pair in responses])
    compared = Compared(
        metric.id, metric.title, *_sides(np.array([[p.name for p in pair] for pair in responses])),
        study.clusters[at].occurring(), mean_of_defined(WON[votes]), said,
        np.sign(length @ np.array([1, -1])),
    )  # fmt: skip
    names = np.array([[part.item_id or part.name for part in pair] for pair in responses])
    of = np.unique(names, return_inverse=True)[1].reshape(names.shape)
    return Preferred(compared, rows.question[at], of, votes, humans.truth[at])


def by_scores(judge: str, title: str) -> str:
    """Whose preferences these are, where a judge gave scores to single responses."""
    return f"{judge}, by {title}"


def _by_scores(study: Study, answers: Sequence[Sequence[int]]) -> Mapping[str, Given]:
    """What the scores that judges gave to single responses mean for pairs of them, whose rows are
    `answers` (pairs, 2), -1 for none."""
    at = np.array(answers)
    found: dict[str, Given] = {}
    for scale in whole_scales(study):
        for judge in (judge for judge in study.judges if judge.kind != "control"):
            scores = _scores(study, judge, scale)
            due = (scores.due[at] & (at >= 0)).all(axis=1)
            if due.any():
                labels = np.where(due, label_of(scores.values[at]), -1)
                found[by_scores(judge.name, scale.title)] = Given(labels, due)
    return found


def label_of(scores: FloatArray) -> IntArray:
    """The preference (pairs,) that two scores (pairs, 2) mean: the less severe one wins; -1 where
    one is missing."""
    sign = signs(scores)[:, 0]
    return np.select([sign < 0, sign > 0, sign == 0], [0, 1, 2], default=-1)
