"""Responses side by side: the rows of responses in order, of systems, and of places.

Rows `order` hold `right`, `chance` and, of preferences, `intransitive`, by `size` of the tuple and
`failures`; rows `response` the correlation and agreement of scores; rows `vote` the agreement with
each vote. Rows without a judge are those of `who`.

Rows `win_rate` hold `humans`, `judge` and `difference` of a `system`, `against` another or all
others (empty); `strength` the Bradley-Terry log strengths by `humans` and `judge`; `ranking` the
agreement of the two; `longer` and `own_system` the win rates of the longer response and of the
judge's own model. All are over the pairs that humans compared, ties half.

Rows `position` hold, of the pairs asked in both orders, `flipped`, the share on which the judge
prefers another response, and `changed`, on which the two replies differ, ties among them; and
`first_place`, the share won by the response that was shown first, ties left out. Rows `place` hold
the mean severity by the `place` in a list. See `criteria` for the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgebench.judges.replies import charged_notes
from judgebench.preferences.criteria import criterion_rows
from judgebench.records import Estimate, Part, Results, Row, is_slot
from judgebench.results.shown import JudgesShown, Shown
from judgebench.rubric import Metric
from judgebench.runs.open import findings
from judgebench.stats.agreement import OBSERVED_AGREEMENT, vote_pairs_by_cluster
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, mean_of_defined
from judgebench.stats.intervals import (
    ClusterCounts,
    Kind,
    clustered_estimate,
    clustered_mean,
    random_groups,
)
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
from judgebench.stats.repeated_measures import AMONG_HUMANS, BESIDE_HUMANS, score_agreement
from judgebench.studies.study import JudgeKind, JudgeVerdicts, Study, backend_fact
from judgebench.studies.verdicts import is_model

FORMAT_CEILING = "human mean, rounded"
HUMANS = "humans"
MOST_SYSTEMS = 20
_MOST_AT_ONCE = 8  # responses to one question
_WON = np.array([1.0, 0.0, 0.5, np.nan])  # of the first response, by label; the last: no label
_SIGNS = np.array([1, -1, 0, np.nan])  # of first, second, tie and no label
_FILLED: Mapping[str, float] = {"left_out": np.nan, "worst": 0.0, "best": 1.0}
_NO_LABEL = "the judge gave a label to none of these"
_NO_FLIP = "no pair has two verdicts, one in each order"
_ALL_TIES = "every verdict is a tie"
_NO_LABEL_AT_PLACE = "no response at this place has a label"
_NOT_COMPARED = "these two were not compared"


@dataclass(frozen=True, repr=False)
class Preferences(JudgesShown):
    """The comparisons of responses to one question by judges and humans, and criteria of items.

    The analyses of the rows are those of this module and of `criteria`. `judges` says what each
    judge is, also those whose scores of single responses are compared (`NAME, by TITLE`); `titles`
    are those of the metrics and composites, of which the win rates by those in `drawn` have
    figures, or by the first alone.
    """

    presented_by = "judgebench.preferences.report:preferences_part"

    judges: Mapping[str, JudgeKind]
    titles: Mapping[str, str]
    drawn: Collection[str]
    rows: Results
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


def measure_preferences(study: Study) -> Preferences | None:
    """Return the comparisons of several responses to one question, and verdicts on criteria; None
    where the study holds neither. Where `preferences` stands beside the study as False, also None
    where nobody compared anything: there are no preferences, criteria, composites or texts that a
    judge was shown side by side."""
    only_answers = study.rubric.kinds == {"answer"}
    if only_answers and study.clusters.n == len(study.answers):
        return None
    real = (judge for judge in study.judges if judge.kind == "judge")
    place_rows = [row for judge in real for row in position_rows(study, judge)]
    is_asked = study.beside.get("preferences", True)
    if only_answers and not (is_asked or place_rows or study.rubric.composite):
        return None
    judges = {judge.name: judge for judge in study.judges}
    # A judge stands also under the names by which its scores of single responses are compared.
    whole = {scale.id: scale.title for scale in whole_scales(study)}
    judges |= {by_scores(j.name, title): j for j in study.judges for title in whole.values()}
    models = {name: str(backend_fact(j.about, "model") or j.name) for name, j in judges.items()}
    rows, notes, comparisons = list[Row](), [*charged_notes(study)], list[Compared]()
    question = Clusters.of((answer.group, answer.question) for answer in study.answers).codes
    for scored in _scored(study, question):
        rows += score_rows(scored, study.level)
        notes += _samples(scored)
        if scored.id in whole:
            comparisons.append(_compared(study, scored))
    for metric in study.rubric.metrics:
        if metric.preference and (preferred := _preferred(study, question, metric)):
            rows += preference_rows(preferred, study.level)
            comparisons.append(preferred.compared)
        if metric.of == "criterion":
            rows += criterion_rows(study, metric)
    for compared in comparisons:
        rows += system_rows(compared, models, study.level)
        notes += _too_many_systems(compared)
    rows += place_rows
    if not rows:
        return None
    titles = {metric.id: metric.title for metric in study.rubric.metrics}
    return Preferences(
        {name: judge.kind for name, judge in judges.items()},
        titles | {scale.id: scale.title for scale in scales(study)},
        {*study.rubric.composite, *(m.id for m in study.rubric.metrics if m.preference)},
        Results(tuple(rows)),
        tuple(notes),
        study.gaps,
    )


# --- scores of single responses -------------------------------------------------------------------


@dataclass(frozen=True)
class JudgeValues:
    """The verdicts of a judge on some items: `values` (items,), scores or labels, NaN or -1 if none
    came, and whether one `is_due` (items,)."""

    values: NDArray[Any]
    is_due: Flags


@dataclass(frozen=True)
class Scale:
    """The measure of responses, an ordinal metric or a composite: the mean penalty over
    `metrics`, of a judge over `of_judge`."""

    id: str
    title: str
    metrics: tuple[Metric, ...]
    of_judge: tuple[Metric, ...]


def scales(study: Study) -> list[Scale]:
    """Return each ordinal metric of answers and each composite.

    A composite with the id of a metric takes its place: humans' scores are the means of their
    labels on the composite's metrics, whether or not they labelled that metric too, and a judge's
    is its own label on it.
    """
    metrics = {m.id: m for m in study.rubric.metrics if m.kind == "ordinal" and m.of == "answer"}
    by_id = {m.id: Scale(m.id, m.title, (m,), (m,)) for m in metrics.values()}
    for name, ids in study.rubric.composite.items():
        parts = tuple(metrics[i] for i in ids)
        composite = Scale(name, name.replace("_", " ").capitalize(), parts, parts)
        by_id[name] = replace(by_id.get(name, composite), metrics=parts)
    return list(by_id.values())


def whole_scales(study: Study) -> list[Scale]:
    """Return the scales without the metrics that are part of a composite: those that systems and
    pairs are compared by."""
    parts = {name for ids in study.rubric.composite.values() for name in ids}
    return [scale for scale in scales(study) if scale.id not in parts]


@dataclass(frozen=True)
class Scored:
    """The responses that humans gave a score on a metric or composite; lower is better.

    `humans` is the mean penalty over the metrics, NaN where one is missing; `as_reply` the mean of
    the annotators as a judge can say it that has the labels only. With `has_places` some annotators
    are places in a list.
    """

    id: str
    title: str
    rows: IntArray  # (responses,) in the study
    question: IntArray  # (responses,)
    clusters: Clusters  # (responses,)
    humans: FloatArray  # (responses, annotators)
    has_places: bool
    as_reply: FloatArray  # (responses,)
    judges: Mapping[str, JudgeValues]

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of the annotators (responses,)."""
        return mean_of_defined(self.humans)


def _scored(study: Study, question: IntArray) -> Iterator[Scored]:
    """One for each of the `scales` on which humans gave a score to several responses to one
    question (answers,)."""
    for scale in scales(study):
        annotators = sorted({a for m in scale.metrics for a in study.humans[m.id].makers})
        by_metric = np.stack([_penalties(study, m, annotators) for m in scale.metrics])
        humans = by_metric.mean(axis=0)
        rows = np.flatnonzero(~np.isnan(humans).all(axis=1))
        questions = Clusters.of(question[rows].tolist())
        if questions.n == len(rows):
            continue  # one response to each question
        # A judge of the aspects rounds each of them, another one their mean.
        means = by_metric if scale.of_judge == scale.metrics else humans[None]
        nearest = [
            nearest_label(mean_of_defined(x[rows]), np.array(sorted(m.penalties), dtype=np.float64))
            for x, m in zip(means, scale.of_judge, strict=True)
        ]
        judges = {judge.name: _scores(study, judge, scale, rows) for judge in study.judges}
        yield Scored(
            scale.id, scale.title, rows, questions.codes, study.clusters[rows].occurring(),
            humans[rows], any(map(is_slot, annotators)), np.mean(nearest, axis=0), judges,
        )  # fmt: skip


def _penalties(study: Study, metric: Metric, annotators: Sequence[str]) -> FloatArray:
    """The penalty by each annotator's label of each answer (answers, annotators)."""
    made = study.humans[metric.id].made
    penalties = np.full((len(study.answers), len(annotators)), np.nan)
    columns = np.array([annotators.index(a) for a in made.annotators], dtype=np.int64)
    penalties[made.rows[:, None], columns] = np.array([*metric.penalties, np.nan])[made.values]
    return penalties


def _scores(study: Study, judge: JudgeVerdicts, scale: Scale, rows: IntArray) -> JudgeValues:
    """The scores of these rows (responses, ...), -1 for a row that is not there."""
    penalties = [
        np.array([*m.penalties, np.nan])[study.judged(judge, m)[rows]] for m in scale.of_judge
    ]
    is_due = np.all([study.asked(judge, m)[rows] for m in scale.of_judge], axis=0)
    return JudgeValues(np.mean(penalties, axis=0), is_due & (rows >= 0))


def score_rows(scored: Scored, level: float) -> Iterator[Row]:
    """Tuples of the responses to one question, and correlations over all responses."""
    largest = int(np.bincount(scored.question).max())
    for size in dict.fromkeys((2, 3, largest)):
        if size <= min(largest, _MOST_AT_ONCE):
            yield from _score_tuples(scored, tuples_within(scored.question, size), level)
    for name, judge in scored.judges.items():
        if judge.is_due.any():
            both = np.stack([judge.values, scored.mean], axis=1)[judge.is_due]
            clusters = scored.clusters[judge.is_due].occurring()
            beside = score_agreement(both, BESIDE_HUMANS, clusters, level)
            yield from (Row("response", s, e, name, scored.id) for s, e in beside.items())
    if scored.humans.shape[1] > 1:
        statistics = ("alpha",) if scored.has_places else AMONG_HUMANS
        among = score_agreement(scored.humans, statistics, scored.clusters, level)
        keys = {"who": HUMANS}
        yield from (Row("response", s, e, "", scored.id, keys) for s, e in among.items())


def _score_tuples(scored: Scored, tuples: IntArray, level: float) -> Iterator[Row]:
    truth, first = signs(scored.mean[tuples]), tuples[:, 0]
    keys = {"size": str(tuples.shape[1])}
    shares = _Shares("order", scored.id, keys, scored.clusters.codes[first], level)
    ceiling = right(truth, signs(scored.as_reply[tuples]))
    every = np.ones(len(tuples), dtype=np.bool_)
    yield shares.row("right", ceiling, every, failures="left_out", who=FORMAT_CEILING)
    for name, judge in scored.judges.items():
        is_due = np.asarray(judge.is_due[tuples].all(axis=1))
        if is_due.any():
            judged = signs(np.where(is_due[:, None], judge.values[tuples], np.nan))
            chance = right_by_chance(truth, judged, scored.question[first])
            yield from shares.of_judge(name, "right", right(truth, judged), chance, is_due)


def _samples(scored: Scored) -> Iterator[str]:
    """A sentence where not all tuples were looked at."""
    for size in (2, 3):
        n = count_tuples(scored.question, size)
        if n > MOST_TUPLES:
            yield (
                f"{scored.title}: of {n:,} tuples of {size} responses about {MOST_TUPLES:,} were "
                "drawn at random, the same share from each question."
            )


@dataclass(frozen=True)
class _Shares:
    """The rows of shares of tuples, or of votes."""

    analysis: str
    metric: str
    keys: Mapping[str, str]
    clusters: IntArray  # (tuples,)
    level: float

    def row(
        self, statistic: str, hit: FloatArray, used: Flags, judge: str = "", **keys: str
    ) -> Row:
        """The mean over the tuples that are used, NaN where the judge gave no label."""
        e = clustered_mean(hit[used], self.clusters[used], _NO_LABEL, self.level, kind="share")
        return Row(self.analysis, statistic, e, judge, self.metric, {**self.keys, **keys})

    def of_judge(
        self, judge: str, statistic: str, hit: FloatArray, chance: FloatArray, used: Flags
    ) -> Iterator[Row]:
        """The share that a judge has right, three ways where labels are missing, and by chance."""
        is_missing = np.isnan(hit)
        for failures, filled in _FILLED.items():
            if failures == "left_out" or is_missing[used].any():
                share = np.where(is_missing, filled, hit)
                yield self.row(statistic, share, used, judge, failures=failures)
        yield self.row("chance", np.where(is_missing, np.nan, chance), used, judge)


# --- pairs of responses ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Pairs of responses to one question, and who prefers which.

    `humans` is the share of human votes for the first, ties half, NaN without any; the values of
    `judges` are labels, 0 first, 1 second, 2 tie, -1 none. `longer` is 1 where the first is the
    longer text, -1 where the second is.
    """

    id: str
    title: str
    names: NDArray[np.str_]  # (pairs, 2) of the systems, "" where one has none
    clusters: Clusters  # (pairs,)
    humans: FloatArray  # (pairs,)
    judges: Mapping[str, JudgeValues]  # (pairs,)
    longer: FloatArray  # (pairs,)

    @cached_property
    def systems(self) -> list[str]:
        """The names of the systems."""
        return sorted({*self.names.ravel().tolist()} - {""})

    @cached_property
    def sides(self) -> IntArray:
        """The numbers of the systems (pairs, 2), -1 for one without a name."""
        return np.where(self.names == "", -1, np.searchsorted(self.systems, self.names))

    def outcomes(self, judge: str) -> dict[str, FloatArray]:
        """The share won by the first (pairs,) by the humans and, of a judge, on the pairs to which
        it gave a label, by both."""
        if not judge:
            return {"humans": self.humans}
        judged = _WON[self.judges[judge].values]
        return {"humans": np.where(np.isnan(judged), np.nan, self.humans), "judge": judged}


def _compared(study: Study, scored: Scored) -> Compared:
    """Every two responses of different systems to one question: the lower score is preferred."""
    pairs = tuples_within(scored.question, 2)
    rows = scored.rows[pairs]
    names = study.cells["system"][rows].astype(str)
    is_used = (names != "").all(axis=1) & (names[:, 0] != names[:, 1])
    pairs, rows, names = pairs[is_used], rows[is_used], names[is_used]
    judges = {
        name: JudgeValues(label_of(judge.values[pairs]), judge.is_due[pairs].all(axis=1))
        for name, judge in scored.judges.items()
    }
    return Compared(
        scored.id, scored.title, names, scored.clusters[pairs[:, 0]].occurring(),
        _WON[label_of(scored.mean[pairs])], judges,
        np.sign(study.lengths[rows] @ np.array([1, -1])),
    )  # fmt: skip


@dataclass(frozen=True)
class Preferred:
    """The pairs of a preference metric, with labels as those of judges in `compared`, of whom some
    gave scores to single responses. `responses` are numbered by item or else by system."""

    compared: Compared
    question: IntArray  # (pairs,)
    responses: IntArray  # (pairs, 2)
    votes: IntArray  # (pairs, annotators)
    truth: IntArray  # (pairs,)


def _preferred(study: Study, question: IntArray, metric: Metric) -> Preferred | None:
    """The pairs that are to be judged on a preference metric; None where humans compared none."""
    humans = study.humans[metric.id]
    is_pair = study.answers.of_kind(metric, study.rubric)[humans.ratings.rows]
    rows, votes = humans.ratings.rows[is_pair], humans.made.values[is_pair]
    if not len(rows):
        return None
    pairs = [study.answers[row].responses for row in rows.tolist()]

    def of_parts(fact: Callable[[Part], Any]) -> NDArray[Any]:
        return np.array([[fact(part) for part in pair] for pair in pairs])

    judges = {
        j.name: JudgeValues(study.judged(j, metric)[rows], study.asked(j, metric)[rows])
        for j in study.judges
    }
    answers = of_parts(lambda part: study.answers.row(part.item_id))
    real = [judge for judge in study.judges if judge.kind != "control"]
    for scale, judge in product(whole_scales(study), real):
        scores = _scores(study, judge, scale, answers)
        is_due = np.asarray(scores.is_due.all(axis=1))
        labels = np.where(is_due, label_of(scores.values), -1)
        judges[by_scores(judge.name, scale.title)] = JudgeValues(labels, is_due)
    compared = Compared(
        metric.id, metric.title, of_parts(lambda part: part.name),
        study.clusters[rows].occurring(), mean_of_defined(_WON[votes]),
        {name: judge for name, judge in judges.items() if judge.is_due.any()},
        np.sign(of_parts(lambda part: len(part.text)) @ np.array([1, -1])),
    )  # fmt: skip
    responses = of_parts(lambda part: part.item_id or part.name)
    numbers = Clusters.of(responses.ravel().tolist()).codes.reshape(-1, 2)
    return Preferred(compared, question[rows], numbers, votes, humans.truth[rows])


def by_scores(judge: str, title: str) -> str:
    """Return whose preferences these are, where a judge gave scores to single responses."""
    return f"{judge}, by {title}"


def label_of(scores: FloatArray) -> IntArray:
    """Return the preference (pairs,) that two scores (pairs, 2) mean: the lower one wins; -1
    where one is missing."""
    sign = signs(scores)[:, 0]
    return np.select([sign < 0, sign > 0, sign == 0], [0, 1, 2], default=-1)


def preference_rows(preferred: Preferred, level: float) -> Iterator[Row]:
    """Pairs and triples beside the reference labels, and the agreement with each vote."""
    pairs = np.arange(len(preferred.truth))[:, None]
    triples, upright = triples_of_pairs(preferred.question, preferred.responses)
    yield from _preference_tuples(preferred, pairs, np.ones(pairs.shape), level)
    if len(triples):
        yield from _preference_tuples(preferred, triples, upright, level)
    yield from _vote_rows(preferred, level)


def _preference_tuples(
    preferred: Preferred, pairs: IntArray, upright: FloatArray, level: float
) -> Iterator[Row]:
    """The pairs (tuples, 1) or the three pairs of each triple (tuples, 3)."""
    compared, is_triple = preferred.compared, pairs.shape[1] == 3
    is_known = np.asarray((preferred.truth[pairs] >= 0).all(axis=1))
    truth = _SIGNS[preferred.truth[pairs]] * upright
    is_order = places_of(truth)[1]
    codes, keys = compared.clusters.codes[pairs[:, 0]], {"size": "3" if is_triple else "2"}
    shares = _Shares("order", compared.id, keys, codes, level)
    if is_triple and is_known.any():
        yield shares.row("intransitive", np.where(is_order, 0.0, 1.0), is_known, who=HUMANS)
    for name, judge in compared.judges.items():
        used = np.asarray(judge.is_due[pairs].all(axis=1) & is_known & is_order)
        if used.any():
            judged = _SIGNS[judge.values[pairs]] * upright
            hit, label_shares = right(truth, judged), _label_shares(judge.values[judge.is_due])
            chance = label_shares[preferred.truth[pairs]].prod(axis=1)
            yield from shares.of_judge(name, "right", hit, chance, used)
            if is_triple:
                circle = np.where(np.isnan(hit), np.nan, 1.0 - places_of(judged)[1])
                yield shares.row("intransitive", circle, used, name)


def _label_shares(labels: IntArray) -> FloatArray:
    """The share of each of the three labels (3,)."""
    counts = np.bincount(labels[labels >= 0], minlength=3)
    return np.asarray(counts / max(1, counts.sum()))


def _vote_rows(preferred: Preferred, level: float) -> Iterator[Row]:
    """The share of votes that a judge agrees with, and of two votes that are the same, with ties
    and without: setups S1 and S2 of Zheng et al. (2023), section 4.2."""
    metric, clusters = preferred.compared.id, preferred.compared.clusters
    for ties, k in {"counted": 3, "left out": 2}.items():
        votes = np.where(preferred.votes < k, preferred.votes, -1)
        if votes.shape[1] > 1:
            among = vote_pairs_by_cluster(votes, clusters, k)
            e = clustered_estimate(among, OBSERVED_AGREEMENT, level, n=round(among.sum()))
            keys = {"ties": ties, "failures": "left_out", "who": HUMANS}
            yield Row("vote", "agreement", e, "", metric, keys)
        pair, vote = np.nonzero(votes >= 0)[0], votes[votes >= 0]
        shares = _Shares("vote", metric, {"ties": ties}, clusters.codes[pair], level)
        for name, judge in preferred.compared.judges.items():
            labels = judge.values[pair]
            used = judge.is_due[pair] & (labels < k)
            if used.any():
                hit = np.where(labels < 0, np.nan, vote == labels)
                chance = _label_shares(labels[used])[vote]
                yield from shares.of_judge(name, "agreement", hit, chance, used)


# --- systems compared in pairs --------------------------------------------------------------------


def system_rows(compared: Compared, models: Mapping[str, str], level: float) -> Iterator[Row]:
    """Win rates, strengths and biases; `models` says which model stands behind a judge."""
    is_known = ~np.isnan(compared.humans)
    is_named = is_known & (compared.sides >= 0).all(axis=1)
    is_several = 2 <= len(compared.systems) <= MOST_SYSTEMS
    for judge in ("", *compared.judges):
        is_due = compared.judges[judge].is_due if judge else is_known
        used = is_named & is_due
        if is_several and used.any():
            yield from _win_rates(compared, judge, used, models.get(judge, ""), level)
            yield from _ranking(compared, judge, used, level)
        unequal = is_known & is_due & (compared.longer != 0)
        if judge and unequal.any():
            wins = _wins(compared, judge, unequal, compared.longer > 0, level)
            yield from (Row("longer", *win, judge, compared.id) for win in wins)


def _too_many_systems(compared: Compared) -> Iterator[str]:
    """A sentence where there are more systems than are ranked."""
    if len(compared.systems) > MOST_SYSTEMS:
        yield (
            f"{compared.title}: win rates and rankings of {len(compared.systems):,} systems, more "
            f"than {MOST_SYSTEMS}, are left out."
        )


def _wins(
    compared: Compared, judge: str, used: Flags, is_first: Flags, level: float
) -> Iterator[tuple[str, Estimate]]:
    """The share won by the first response, or the second where not `is_first`, by the humans, by
    the judge if one is named, and the difference, on the same pairs."""
    outcomes = compared.outcomes(judge)
    won = {side: np.where(is_first, x, 1 - x)[used] for side, x in outcomes.items()}
    if judge:
        won["difference"] = won["judge"] - won["humans"]
    codes = compared.clusters.codes[used]
    for side, x in won.items():
        kind: Kind = "difference" if side == "difference" else "share"
        yield side, clustered_mean(x, codes, _NOT_COMPARED, level, kind=kind)


def _win_rates(
    compared: Compared, judge: str, used: Flags, model: str, level: float
) -> Iterator[Row]:
    """Each system against all others and against each later one, and the judge's own model."""
    for i, system in enumerate(compared.systems):
        is_first = compared.sides[:, 0] == i
        of_system = used & (compared.sides == i).any(axis=1)
        pairs_by_rival = {"": of_system} | {
            rival: of_system & (compared.sides == j).any(axis=1)
            for j, rival in enumerate(compared.systems)
            if j > i
        }
        for against, pairs in pairs_by_rival.items():
            keys = {"system": system, "against": against} if against else {"system": system}
            for side, estimate in _wins(compared, judge, pairs, is_first, level):
                yield Row("win_rate", side, estimate, judge, compared.id, keys)
                if not against and is_model(system, model):
                    yield Row("own_system", side, estimate, judge, compared.id, keys)


def _ranking(compared: Compared, judge: str, used: Flags, level: float) -> Iterator[Row]:
    """The strengths of all systems by each side, and how the two rankings agree."""
    outcomes = compared.outcomes(judge)
    is_given = used & ~np.isnan([*outcomes.values()]).any(axis=0)
    groups = random_groups(compared.clusters[is_given].occurring(), MAX_REFITS)
    sides, n_systems = compared.sides[is_given], len(compared.systems)
    wins = [wins_by_cluster(sides, x[is_given], groups, n_systems) for x in outcomes.values()]
    missing = int((used & ~is_given).sum())
    strengths, agreement = rankings(ClusterCounts(np.stack(wins, axis=1)), missing, level)
    for side, by_system in zip(outcomes, strengths, strict=True):
        for system, e in zip(compared.systems, by_system, strict=True):
            yield Row("strength", side, e, judge, compared.id, {"system": system})
    for name, e in agreement.items() if judge else ():
        yield Row("ranking", name, e, judge, compared.id)


# --- the place of a response ----------------------------------------------------------------------


def position_rows(study: Study, judge: JudgeVerdicts) -> Iterator[Row]:
    """Rows on texts at different places; none where the judge saw one text at a time."""
    about = judge.about or {}
    if about.get("judge") == "language model" and "places" not in about:
        return  # its verdicts, which may be a million in a file, need not be read
    metrics = {
        m.id: m for m in study.rubric.metrics
        if m.preference or (m.kind == "ordinal" and m.of == "answer")
    }  # fmt: skip
    shown: dict[str, list[tuple[int, int, int]]] = defaultdict(list)  # row, place, label
    for item_id, verdict in judge.verdicts.items():
        row = study.answers.row(item_id) if verdict.shown else -1
        for showing in verdict.shown:
            for name, label in showing.labels.items():
                index = metrics[name].index(label) if name in metrics else -1
                if row >= 0 and index >= 0 and showing.of > 1:
                    shown[name].append((row, showing.place, index))
    for name, places in shown.items():
        rows_of = _order_rows if metrics[name].preference else _list_rows
        yield from rows_of(study, judge, metrics[name], np.array(places))


def _order_rows(
    study: Study, judge: JudgeVerdicts, metric: Metric, shown: IntArray
) -> Iterator[Row]:
    """Of pairs shown in one order or both."""
    row, place, label = shown.T
    items, number = np.unique(row, return_inverse=True)
    # The label of the two in their own order: 0 and 1 change sides where the first stood second.
    by_place = np.full((len(items), 2), -1)
    by_place[number, place] = np.where((place == 1) & (label < 2), 1 - label, label)
    is_changed = by_place[:, 0] != by_place[:, 1]
    is_flipped = is_changed & (by_place < 2).all(axis=1)
    in_both_orders = np.where((by_place >= 0).all(axis=1), 1.0, np.nan)
    is_decided, n_due = label < 2, int(study.asked(judge, metric).sum())
    # Pairs that were never read; of replies, as many a pair as any pair has.
    unread, unread_replies = n_due - len(items), n_due * np.bincount(number).max() - len(row)
    measures = {
        "flipped": (in_both_orders * is_flipped, items, _NO_FLIP, unread),
        "changed": (in_both_orders * is_changed, items, _NO_FLIP, unread),
        "first_place": (
            (label[is_decided] == 0) * 1.0, row[is_decided], _ALL_TIES, unread_replies,
        ),
    }  # fmt: skip
    for name, (x, rows, undefined, n_missing) in measures.items():
        codes = study.clusters.codes[rows]
        estimate = clustered_mean(
            x, codes, undefined, study.level, n_missing=int(n_missing), kind="share"
        )
        yield Row("position", name, estimate, judge.name, metric.id)


def _list_rows(
    study: Study, judge: JudgeVerdicts, metric: Metric, shown: IntArray
) -> Iterator[Row]:
    """Of responses at each place of a list."""
    row, places, label = shown.T
    severity = np.array(metric.values, dtype=np.float64)[label]
    for place in np.unique(places).tolist():
        is_here, keys = places == place, {"place": str(place + 1)}
        codes = study.clusters.codes[row[is_here]]
        estimate = clustered_mean(severity[is_here], codes, _NO_LABEL_AT_PLACE, study.level)
        yield Row("place", "severity", estimate, judge.name, metric.id, keys)


def prefer(study: Study | str | Path) -> Shown:
    """Measure how judges and humans compare several responses to one question: pairs and triples
    in the right order beside chance and the ceiling of the reply format, agreement with each vote,
    position bias, win rates and rankings of systems, scores by criteria.

    Raises SetupError where the study holds neither several responses nor criteria.

    >>> import judgebench as jb
    >>> found = jb.prefer(jb.open_run("runs/small"))
    """
    return findings(study, "preferences", "question with several responses")
