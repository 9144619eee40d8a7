"""Responses side by side: the rows of responses in order, of systems, and of criteria.

Rows `order` hold `right`, `chance` and, of preferences, `intransitive`, by `size` of the tuple and
`failures`; rows `response` the correlation and agreement of scores; rows
`vote` the agreement with each vote. Rows without a judge are those of `who`.

Rows `win_rate` hold `humans`, `judge` and `difference` of a `system`, `against` another or all
others (empty); `strength` the Bradley-Terry log strengths by `humans` and `judge`; `ranking` the
agreement of the two; `longer` and `own_system` the win rates of the longer response and of the
judge's own model. All are over the pairs that humans compared, ties half.

An item's score is the points of the criteria that are met over the positive points. The first label
of the metric means that a criterion is met. Rows `item_score` hold `humans`, `judge`, `difference`,
`pearson` and `icc` over items; rows `criterion` the `agreement` with the humans' truth by `tag`, of
which one stands for all criteria, and by `criterion`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Estimate, Part, is_slot
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, mean_of_defined, ratio
from judgebench.stats.interrater import OBSERVED_AGREEMENT, vote_pairs_by_cluster
from judgebench.stats.jackknife import (
    ClusterCounts,
    clustered_estimate,
    random_groups,
)
from judgebench.stats.means import Kind, clustered_mean
from judgebench.stats.ranks import (
    MAX_REFITS,
    MOST_TUPLES,
    Flags,
    count_tuples,
    nearest_label,
    places_of,
    rankings,
    right,
    right_by_chance,
    signs,
    triples_of_pairs,
    tuples_within,
    wins_by_cluster,
)
from judgebench.stats.repeated import AMONG_HUMANS, BESIDE_HUMANS, score_agreement
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.verdicts import is_model

WON = np.array([1.0, 0.0, 0.5, np.nan])  # of the first response, by label; the last: no label


@dataclass(frozen=True)
class Given:
    """The verdicts of a judge on some items: `values` (items,), scores or labels, NaN or -1 if none
    came, and whether one was `due` (items,)."""

    values: NDArray[Any]
    due: Flags


@dataclass(frozen=True)
class Rows:
    """The facts of the answers, read once: the number of the question of each (answers,), its
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
    """The measure of responses, an ordinal metric or a composite: the mean penalty over
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
        each = np.stack([_penalties(study, m, annotators) for m in scale.metrics])
        humans = each.mean(axis=0)
        known = np.flatnonzero(~np.isnan(humans).all(axis=1))
        if len(known) < 2:
            continue
        given = {judge.name: _scores(study, judge, scale) for judge in study.judges}
        # A judge of the aspects rounds each of them, another one their mean.
        means = each if scale.of_judge == scale.metrics else humans[None]
        nearest = [
            nearest_label(
                mean_of_defined(x[known]), np.array(sorted(m.penalties), dtype=np.float64)
            )
            for x, m in zip(means, scale.of_judge, strict=True)
        ]
        yield Scored(
            scale.id, scale.title, known, np.unique(rows.question[known], return_inverse=True)[1],
            study.clusters[known].occurring(), humans[known], any(map(is_slot, annotators)),
            np.mean(nearest, axis=0),
            {name: Given(x.values[known], x.due[known]) for name, x in given.items()},
        )  # fmt: skip


def _penalties(study: Study, metric: Metric, annotators: Sequence[str]) -> FloatArray:
    """The penalty by each annotator's label of each answer (answers, annotators)."""
    made = study.humans[metric.id].made
    found = np.full((len(study.answers), len(annotators)), np.nan)
    columns = np.array([annotators.index(a) for a in made.annotators], dtype=np.int64)
    found[made.rows[:, None], columns] = np.array([*metric.penalties, np.nan])[made.values]
    return found


def _scores(study: Study, judge: JudgeVerdicts, scale: Scale) -> Given:
    """Of every answer."""
    # -1 is no label.
    penalties = [np.array([*m.penalties, np.nan])[study.judged(judge, m)] for m in scale.of_judge]
    due = np.all([study.asked(judge, m) for m in scale.of_judge], axis=0)
    return Given(np.mean(penalties, axis=0), due)


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
    pairs = tuples_within(found.question, 2)
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
        j.name: Given(study.judged(j, metric)[at], study.asked(j, metric)[at]) for j in study.judges
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
    """The preferences that judges' scores of single responses mean for pairs, whose rows are
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
    """The preference (pairs,) that two scores (pairs, 2) mean: the lower one wins; -1 where
    one is missing."""
    sign = signs(scores)[:, 0]
    return np.select([sign < 0, sign > 0, sign == 0], [0, 1, 2], default=-1)


FORMAT_CEILING = "human mean, rounded"
HUMANS = "humans"
_MOST_AT_ONCE = 8  # responses to one question
_NO_LABEL = "the judge gave a label to none of these"
_SIGNS = np.array([1, -1, 0, np.nan])  # of first, second, tie and no label
_FILLED: Mapping[str, float] = {"left_out": np.nan, "worst": 0.0, "best": 1.0}


@dataclass(frozen=True)
class _Tuples:
    """Tuples, or votes, and their clusters (tuples,)."""

    analysis: str
    metric: str
    keys: Mapping[str, str]
    clusters: IntArray
    level: float

    def row(
        self, statistic: str, values: FloatArray, used: Flags, judge: str = "", **keys: str
    ) -> Row:
        """The mean of the values (tuples,) that are used, NaN where the judge gave no label."""
        estimate = clustered_mean(
            values[used], self.clusters[used], _NO_LABEL, self.level, kind="share"
        )
        return Row(self.analysis, statistic, estimate, judge, self.metric, {**self.keys, **keys})

    def of_judge(
        self, judge: str, hit: FloatArray, chance: FloatArray, used: Flags
    ) -> Iterator[Row]:
        """The share that a judge has right, three ways where labels are missing, and by chance."""
        missing = np.isnan(hit)
        name = "agreement" if self.analysis == "vote" else "right"
        for failures, filled in _FILLED.items():
            if failures == "left_out" or missing[used].any():
                share = np.where(missing, filled, hit)
                yield self.row(name, share, used, judge, failures=failures)
        yield self.row("chance", chance, used, judge)


def score_rows(found: Scored, level: float) -> Iterator[Row]:
    """Tuples of the responses to one question, and correlations over all responses."""
    largest = int(np.bincount(found.question).max())
    for size in dict.fromkeys((2, 3, largest)):
        if size <= min(largest, _MOST_AT_ONCE):
            yield from _score_tuples(found, tuples_within(found.question, size), level)
    for name, given in found.judges.items():
        if not given.due.any():
            continue
        both = np.stack([given.values, found.mean], axis=1)[given.due]
        clusters = found.clusters[given.due].occurring()
        beside = score_agreement(both, BESIDE_HUMANS, clusters, level)
        yield from (Row("response", s, e, name, found.id) for s, e in beside.items())
    if found.humans.shape[1] > 1:
        wanted = ("alpha",) if found.has_places else AMONG_HUMANS
        among = score_agreement(found.humans, wanted, found.clusters, level)
        for statistic, estimate in among.items():
            yield Row("response", statistic, estimate, "", found.id, {"who": HUMANS})


def _score_tuples(found: Scored, tuples: IntArray, level: float) -> Iterator[Row]:
    truth = signs(found.mean[tuples])
    clusters, group = found.clusters.codes[tuples[:, 0]], found.question[tuples[:, 0]]
    of = _Tuples("order", found.id, {"size": str(tuples.shape[1])}, clusters, level)
    ceiling = right(truth, signs(found.as_reply[tuples]))
    every = np.ones(len(tuples), dtype=np.bool_)
    yield of.row("right", ceiling, every, failures="left_out", who=FORMAT_CEILING)
    for name, one in found.judges.items():
        due = np.asarray(one.due[tuples].all(axis=1))
        if due.any():
            judged = signs(np.where(due[:, None], one.values[tuples], np.nan))
            chance = right_by_chance(truth, judged, group)
            yield from of.of_judge(name, right(truth, judged), chance, due)


def samples(found: Scored) -> Iterator[str]:
    """A sentence where not all tuples were looked at."""
    for size in (2, 3):
        n = count_tuples(found.question, size)
        if n > MOST_TUPLES:
            yield (
                f"{found.title}: of {n:,} tuples of {size} responses about {MOST_TUPLES:,} were "
                "drawn at random, the same share from each question."
            )


# --- preferences ----------------------------------------------------------------------------------


def preference_rows(found: Preferred, level: float) -> Iterator[Row]:
    """Pairs and triples beside the truth, and the agreement with each vote."""
    pairs = np.arange(len(found.truth))[:, None]
    upright = np.ones(pairs.shape)
    triples = triples_of_pairs(found.question, found.responses)
    yield from _preference_tuples(found, pairs, upright, level)
    if len(triples[0]):
        yield from _preference_tuples(found, *triples, level)
    yield from _vote_rows(found, level)


def _preference_tuples(
    found: Preferred, pairs: IntArray, upright: FloatArray, level: float
) -> Iterator[Row]:
    """The pairs (tuples, 1) or the three pairs of each triple (tuples, 3)."""
    keys = {"size": "2" if pairs.shape[1] == 1 else "3"}
    known = np.asarray((found.truth[pairs] >= 0).all(axis=1))
    truth = _SIGNS[found.truth[pairs]] * upright
    ordered = places_of(truth)[1]
    codes = found.compared.clusters.codes[pairs[:, 0]]
    of = _Tuples("order", found.compared.id, keys, codes, level)
    if keys["size"] == "3" and known.any():
        yield of.row("intransitive", np.where(ordered, 0.0, 1.0), known, who=HUMANS)
    for name, one in found.compared.judges.items():
        used = np.asarray(one.due[pairs].all(axis=1) & known & ordered)
        if not used.any():
            continue
        judged = _SIGNS[one.values[pairs]] * upright
        hit = right(truth, judged)
        shares = _shares(one.values[one.due])
        chance = np.where(np.isnan(hit), np.nan, shares[found.truth[pairs]].prod(axis=1))
        yield from of.of_judge(name, hit, chance, used)
        if keys["size"] == "3":
            wrong = np.where(np.isnan(hit), np.nan, 1.0 - places_of(judged)[1])
            yield of.row("intransitive", wrong, used, name)


def _shares(labels: IntArray) -> FloatArray:
    """The share of each of the three labels (3,)."""
    found = np.bincount(labels[labels >= 0], minlength=3)
    return np.asarray(found / max(1, found.sum()))


def _vote_rows(found: Preferred, level: float) -> Iterator[Row]:
    """The share of votes that a judge agrees with, and of two votes that are the same, with ties
    and without: setups S1 and S2 of Zheng et al. (2023), section 4.2."""
    metric, clusters = found.compared.id, found.compared.clusters
    for ties, k in {"counted": 3, "left out": 2}.items():
        votes = np.where(found.votes < k, found.votes, -1)
        if votes.shape[1] > 1:
            among = vote_pairs_by_cluster(votes, clusters, k)
            e = clustered_estimate(among, OBSERVED_AGREEMENT, level, n=round(among.sum()))
            keys = {"ties": ties, "failures": "left_out", "who": HUMANS}
            yield Row("vote", "agreement", e, "", metric, keys)
        pair, _ = np.nonzero(votes >= 0)
        vote = votes[votes >= 0]
        of = _Tuples("vote", metric, {"ties": ties}, clusters.codes[pair], level)
        for name, one in found.compared.judges.items():
            said = one.values[pair]
            used = one.due[pair] & (said < k)
            if used.any():
                hit = np.where(said < 0, np.nan, vote == said)
                chance = np.where(said < 0, np.nan, _shares(said[used])[vote])
                yield from of.of_judge(name, hit, chance, used)


# --- systems compared in pairs --------------------------------------------------------------------


MOST_SYSTEMS = 20
_NOT_COMPARED = "these two were not compared"


def system_rows(found: Compared, models: Mapping[str, str], level: float) -> Iterator[Row]:
    """All of these; `models` says which model stands behind a judge."""
    known = ~np.isnan(found.humans)
    named = known & (found.sides >= 0).all(axis=1)
    several = 2 <= len(found.systems) <= MOST_SYSTEMS
    for judge in ("", *found.judges):
        due = found.judges[judge].due if judge else known
        if several and (named & due).any():
            yield from _win_rates(found, judge, named & due, models.get(judge, ""), level)
            yield from _ranking(found, judge, named & due, level)
        unlike = known & due & (found.longer != 0)
        if judge and unlike.any():
            wins = _won(found, judge, unlike, found.longer > 0, level)
            yield from (Row("longer", *one, judge, found.id) for one in wins)


def too_many(found: Compared) -> Iterator[str]:
    """A sentence where there are more systems than are ranked."""
    if len(found.systems) > MOST_SYSTEMS:
        yield (
            f"{found.title}: win rates and rankings of {len(found.systems):,} systems, more than "
            f"{MOST_SYSTEMS}, are left out."
        )


def _won(
    found: Compared, judge: str, used: Flags, first: Flags, level: float
) -> Iterator[tuple[str, Estimate]]:
    """The share won by the first response, or the second where it is not `first`, by the humans, by
    the judge if one is named, and the difference, on the same pairs."""
    outcomes = {"humans": found.humans}
    if judge:
        judged = WON[found.judges[judge].values]
        outcomes["humans"] = np.where(np.isnan(judged), np.nan, found.humans)
        outcomes["judge"] = judged
    won = {side: np.where(first, x, 1 - x)[used] for side, x in outcomes.items()}
    if judge:
        won["difference"] = won["judge"] - won["humans"]
    codes = found.clusters.codes[used]
    for side, x in won.items():
        kind: Kind = "difference" if side == "difference" else "share"
        yield side, clustered_mean(x, codes, _NOT_COMPARED, level, kind=kind)


def _win_rates(found: Compared, judge: str, used: Flags, model: str, level: float) -> Iterator[Row]:
    """Each system against all others and against each later one, and the judge's own model."""
    for i, system in enumerate(found.systems):
        mine, first = used & (found.sides == i).any(axis=1), found.sides[:, 0] == i
        of = [({"system": system}, mine)]
        of += [
            ({"system": system, "against": other}, mine & (found.sides == j).any(axis=1))
            for j, other in enumerate(found.systems[i + 1 :], i + 1)
        ]
        for keys, pairs in of:
            for side, estimate in _won(found, judge, pairs, first, level):
                yield Row("win_rate", side, estimate, judge, found.id, keys)
                if pairs is mine and is_model(system, model):
                    yield Row("own_system", side, estimate, judge, found.id, keys)


def _ranking(found: Compared, judge: str, used: Flags, level: float) -> Iterator[Row]:
    """The strengths of all systems by each side, and how the two rankings agree."""
    outcomes = {"humans": found.humans}
    if judge:
        outcomes["judge"] = WON[found.judges[judge].values]
    given = used & ~np.isnan(list(outcomes.values())).any(axis=0)
    clusters = found.clusters[given].occurring()
    groups = random_groups(clusters, MAX_REFITS)
    wins = [
        wins_by_cluster(found.sides[given], x[given], groups, len(found.systems))
        for x in outcomes.values()
    ]
    missing = int((used & ~given).sum())
    strengths, agreement = rankings(ClusterCounts(np.stack(wins, axis=1)), missing, level)
    rows = [
        ("strength", side, estimate, {"system": system})
        for side, of in zip(outcomes, strengths, strict=True)
        for system, estimate in zip(found.systems, of, strict=True)
    ]
    if judge:
        rows += [("ranking", name, estimate, {}) for name, estimate in agreement.items()]
    for analysis, name, estimate, keys in rows:
        yield Row(analysis, name, estimate, judge, found.id, keys)


# --- criteria that items bring --------------------------------------------------------------------


ALL = "all criteria"  # as a tag
MOST_CRITERIA = 30  # of those that several items have
_NO_CRITERION = "no such criterion has a reference label and a label of the judge"
_NO_SCORE = "no item has a reference label and a label of the judge on every criterion"


@dataclass(frozen=True)
class _Criteria:
    """All arrays are (criteria,) but `cluster` (items,): the item of each and its points. `groups`
    holds those of all, of a tag, and of a criterion that several items have."""

    rows: IntArray
    item: IntArray
    points: FloatArray
    cluster: IntArray
    groups: Sequence[tuple[Mapping[str, str], IntArray]]

    def scores(self, met: IntArray) -> FloatArray:
        """The score of each item (items,) of what is met (criteria,), 1, 0 or -1 where unknown; NaN
        where any is unknown or no points can be won."""
        of = Clusters(self.item, len(self.cluster))
        won, best, unknown = of.sums(self.points * (met > 0), self.points.clip(min=0), met < 0).T
        return np.where(unknown > 0, np.nan, ratio(won, best))


def criterion_rows(study: Study, metric: Metric) -> Iterator[Row]:
    """Of every judge, over the criteria that have a reference label."""
    found = _criteria(study)
    truth = study.humans[metric.id].truth[found.rows]
    human = np.where(truth < 0, -1, truth == 0)
    for judge in study.judges:
        due = study.asked(judge, metric)[found.rows]
        if not (due & (truth >= 0)).any():
            continue
        said = study.judged(judge, metric)[found.rows]
        asked = np.where(due, truth, -1), said
        yield from _criterion_agreement(study, judge.name, metric, found, asked)
        met = np.where(due, human, -1), np.where(said < 0, -1, said == 0)
        yield from _item_scores(study, judge.name, metric, found, met)


def _criteria(study: Study) -> _Criteria:
    of = [
        (row, c.item_id, (c.name, c.text), float(answer.metadata.get("points") or 1),
         answer.metadata.get("tags", "").split("|"))
        for row, answer in enumerate(study.answers)
        if (c := answer.criterion) is not None
    ]  # fmt: skip
    numbers = {name: n for n, name in enumerate(dict.fromkeys(item_id for _, item_id, *_ in of))}
    item = np.array([numbers[item_id] for _, item_id, *_ in of], dtype=np.int64)
    rows = np.array([row for row, *_ in of], dtype=np.int64)
    tags: dict[str, list[int]] = {}
    named: dict[tuple[str, str], list[int]] = {}
    for place, (_, _, name, _, of_tags) in enumerate(of):
        for tag in filter(None, of_tags):
            tags.setdefault(tag, []).append(place)
        named.setdefault(name, []).append(place)
    several = sorted((key for key in named if len(named[key]) > 1), key=lambda k: -len(named[k]))
    groups = [
        ({"tag": ALL}, np.arange(len(rows))),
        *(({"tag": tag}, np.array(tags[tag])) for tag in sorted(tags)),
        *(({"criterion": key[0]}, np.array(named[key])) for key in several[:MOST_CRITERIA]),
    ]
    points = np.array([points for _, _, _, points, _ in of])
    first = np.unique(item, return_index=True)[1]
    return _Criteria(rows, item, points, study.clusters.codes[rows[first]], groups)


def _criterion_agreement(
    study: Study, judge: str, metric: Metric, found: _Criteria, pair: tuple[IntArray, IntArray]
) -> Iterator[Row]:
    """The share of criteria on which the judge gives the humans' label."""
    truth, said = pair
    for keys, group in found.groups:
        at = group[truth[group] >= 0]
        hit = np.where(said[at] < 0, np.nan, said[at] == truth[at])
        estimate = clustered_mean(
            hit, found.cluster[found.item[at]], _NO_CRITERION, study.level, kind="share"
        )
        yield Row("criterion", "agreement", estimate, judge, metric.id, keys)


def _item_scores(
    study: Study, judge: str, metric: Metric, found: _Criteria, met: tuple[IntArray, IntArray]
) -> Iterator[Row]:
    """The items' scores, three ways where the judge gave no label to some criterion: what is
    missing counts for the judge as not what the humans say, or as that. An item on which humans
    labelled some criteria, and not all that the judge was asked about, is missing too."""
    human, said = met
    scores = found.scores(human)
    known = ~np.isnan(scores)
    partly = len(np.unique(found.item[human >= 0])) - int(known.sum())
    clusters = Clusters(found.cluster, int(found.cluster.max()) + 1)[known].occurring()
    scores = scores[known]
    for failures, filled in {"left_out": said, "worst": 1 - human, "best": human}.items():
        judged = found.scores(np.where(said < 0, filled, said))[known]
        if failures != "left_out" and not ((said < 0) & (human >= 0)).any():
            break
        both = np.where(np.isnan(judged), np.nan, scores)
        rows = {
            name: clustered_mean(x, clusters.codes, _NO_SCORE, study.level)
            for name, x in (("humans", both), ("judge", judged), ("difference", judged - both))
        }
        scored = np.stack([judged, scores], axis=1)
        rows |= score_agreement(scored, ("pearson", "icc"), clusters, study.level)
        for name, estimate in rows.items():
            whole = replace(estimate, n_missing=estimate.n_missing + partly)
            yield Row("item_score", name, whole, judge, metric.id, {"failures": failures})
