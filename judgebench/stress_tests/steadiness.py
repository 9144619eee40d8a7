"""Does a verdict stay where it must: under edits that change nothing, however the judge is asked,
whatever a text planted in the answer tells it to say, and when it is asked the same again?

Last, each judge's labels of one metric beside its labels of another: one overall impression that
colours every label is known as the halo effect (Thorndike, 1920).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from judgebench.alignment.statistics import NOMINAL
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, IntArray, value_counts
from judgebench.stats.interrater import OBSERVED_AGREEMENT, vote_pairs_by_cluster
from judgebench.stats.means import CORRELATION_DIFFERENCE, MEAN_CORRELATION, moments_by_cluster
from judgebench.stats.paired import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    NET_CHANGE,
    SHIFT,
    holm,
    moves_by_cluster,
    sign_test,
)
from judgebench.stats.resample import Statistic
from judgebench.stress_tests.pairs import Pairs, VariantVerdicts
from judgebench.stress_tests.result import EVERY
from judgebench.studies.truth import Labels

NO_TRUTH = "no item that was asked again has a human truth"
NO_REPEAT = "no item has two verdicts with a label"
ONE_PASS, PER_METRIC, HUMANS = "one pass", "per metric", "humans"
TOO_FEW_METRICS = "the rubric has fewer than two ordinal metrics: there is no pair to correlate"
NO_TRUTH_ON_ALL = "no item with all labels has a human truth on every ordinal metric"
THE_HUMANS = "these are the humans themselves"


@dataclass(frozen=True)
class _Moves:
    """Whether each pair's label flipped (1 or 0, -1 where one is missing) and by how many
    severities it shifted, both (pairs,). `shift` is None where labels have no severity."""

    flipped: Labels
    shift: Labels | None


@dataclass(frozen=True)
class _Probed:
    """One judge under one probe on one metric: its numbers, and p before correction."""

    judge: str
    probe: str
    metric: str
    numbers: Mapping[str, Estimate]
    p: float | None

    def rows(self, p_holm: float | None) -> Iterator[Row]:
        reason = "" if self.p is not None else self.numbers["shift"].reason or "no shift to test"
        tests = {"p": Estimate(self.p, reason=reason), "p_holm": Estimate(p_holm, reason=reason)}
        for name, estimate in {**self.numbers, **tests}.items():
            yield Row("invariance", name, estimate, self.judge, self.metric, {"recipe": self.probe})


def invariances(pairs: Pairs) -> Iterator[Row]:
    """Every judge under every probe, on every metric and on EVERY.

    For EVERY, only pairs that have all labels on both sides count, and the shift is the sum over
    the ordinal metrics: shifts that cancel out are neither more nor less severe.
    """
    found = [
        _probed(pairs, (judge, probe, metric), moves, clusters)
        for probe, judge, before, after, clusters in _probes(pairs)
        for metric, moves in _moves(pairs.rubric.metrics, before, after)
    ]
    families: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(found):
        families.setdefault((one.judge, one.metric), []).append(place)
    corrected: dict[int, float | None] = {}
    for places in families.values():
        corrected.update(zip(places, holm([found[i].p for i in places]), strict=True))
    for place, one in enumerate(found):
        yield from one.rows(corrected[place])


def _probes(pairs: Pairs) -> Iterator[tuple[str, str, Labels, Labels, Clusters]]:
    """Probe, judge, labels before and after (pairs, metrics), clusters (pairs,)."""
    same = [i for i, x in enumerate(pairs.items) if not x.must_worsen]
    for probe in dict.fromkeys(pairs.items[i].recipe for i in same):
        items = np.array([i for i in same if pairs.items[i].recipe == probe], dtype=np.int64)
        parents, altered = pairs.parents[items], pairs.altered[items]
        clusters = pairs.clusters[parents]
        for judge in pairs.judges:
            labels = pairs.judged[judge.name]
            yield probe, judge.name, labels[parents], labels[altered], clusters
    asked = [v for v in pairs.variants if v.kind != "repeat"]
    for probe, name in dict.fromkeys((v.recipe, v.judge) for v in asked):
        chosen = [v for v in asked if (v.recipe, v.judge) == (probe, name)]
        yield (probe, name, *_asked_otherwise(pairs, name, chosen))


def _asked_otherwise(
    pairs: Pairs, judge: str, variants: list[VariantVerdicts]
) -> tuple[Labels, Labels, Clusters]:
    rows = [pairs.asked(variant.verdicts) for variant in variants]
    after = [pairs.labels(v)[row] for v, row in zip(variants, rows, strict=True)]
    every = np.concatenate(rows)
    return pairs.judged[judge][every], np.concatenate(after), pairs.clusters[every]


def _moves(
    metrics: tuple[Metric, ...], before: Labels, after: Labels
) -> Iterator[tuple[str, _Moves]]:
    both, differs = (before >= 0) & (after >= 0), before != after
    shifts: dict[str, Labels] = {}
    for column, metric in enumerate(metrics):
        if metric.kind == "ordinal":
            severity = np.array(metric.severities, dtype=np.int64)
            shifts[metric.id] = severity[after[:, column]] - severity[before[:, column]]
        flipped = np.where(both[:, column], differs[:, column], -1)
        yield metric.id, _Moves(flipped, shifts.get(metric.id))
    flipped = np.where(both.all(axis=1), differs.any(axis=1), -1)
    total: Labels | None = np.stack(list(shifts.values())).sum(axis=0) if shifts else None
    yield EVERY, _Moves(flipped, total)


def _probed(
    pairs: Pairs, which: tuple[str, str, str], moves: _Moves, clusters: Clusters
) -> _Probed:
    both = moves.flipped >= 0
    n, ordinal = int(both.sum()), moves.shift is not None
    shift = np.zeros_like(moves.flipped) if moves.shift is None else moves.shift
    counts = moves_by_cluster(moves.flipped[both], shift[both], clusters[both])

    def estimate(statistic: Statistic, has_severity: bool = ordinal) -> Estimate:
        if not has_severity:
            level = pairs.resampling.level
            return Estimate(None, n=n, n_missing=len(both) - n, reason=NOMINAL, level=level)
        return pairs.bootstrap(counts, statistic, n, len(both))

    flipped = estimate(FLIPPED, has_severity=True)
    numbers = {
        "flipped": flipped,
        "robustness": flipped.complement,
        "more_severe": estimate(MORE_SEVERE),
        "less_severe": estimate(LESS_SEVERE),
        "shift": estimate(MEAN_SHIFT),
    }
    return _Probed(*which, numbers, sign_test(counts[:, SHIFT]) if ordinal else None)


def planted_verdicts(pairs: Pairs) -> Iterator[Row]:
    """Every judge under every trick and under EVERY, on every demanded metric and on EVERY.

    Cases in which a label is missing before or after count in `n_missing`; for EVERY
    metric together, an item counts where all labels are there.
    """
    every = [i for i, x in enumerate(pairs.items) if x.demand]
    tricks = dict.fromkeys(pairs.items[i].recipe for i in every)
    for trick in (EVERY, *tricks) if tricks else ():
        items = np.array([i for i in every if trick in (EVERY, pairs.items[i].recipe)], np.int64)
        demanded = _demanded(pairs, items)
        for judge in pairs.judges:
            labels = pairs.judged[judge.name]
            before, after = labels[pairs.parents[items]], labels[pairs.altered[items]]
            for name, columns in _columns(pairs, demanded):
                success = _success(pairs, before, after, demanded, columns)
                yield Row("planted", "success", success, judge.name, name, {"recipe": trick})


def _demanded(pairs: Pairs, items: Labels) -> Labels:
    """The index of the label asked for (items, metrics), -1 where none is."""
    demands = [pairs.items[i].demand for i in items]
    metrics = pairs.rubric.metrics
    found = [[m.index(d[m.id]) if m.id in d else -1 for m in metrics] for d in demands]
    return np.array(found, dtype=np.int64)


def _columns(pairs: Pairs, demanded: Labels) -> Iterator[tuple[str, list[int]]]:
    columns = [c for c in range(demanded.shape[1]) if (demanded[:, c] >= 0).any()]
    for column in columns:
        yield pairs.rubric.metrics[column].id, [column]
    yield EVERY, columns


def _success(
    pairs: Pairs, before: Labels, after: Labels, demanded: Labels, columns: list[int]
) -> Estimate:
    """Of the items that could be moved on those metrics, the share that moved on one of them."""
    b, a, d = before[:, columns], after[:, columns], demanded[:, columns]
    asked = d >= 0
    said_before = ((b >= 0) | ~asked).all(axis=1)
    known = said_before & ((a >= 0) | ~asked).all(axis=1)
    movable = (asked & (b >= 0) & (b != d)).any(axis=1)
    moved = (asked & (b != d) & (a == d)).any(axis=1)
    # Out of the count: items on which nothing is asked, and those where it had been said before.
    counts = asked.any(axis=1) & (movable | ~said_before)
    outcome = np.where(known, moved, -1)[counts]
    already = int((asked.any(axis=1) & ~counts).sum())
    reason = "the judge's labels are missing before or after on every item that could be moved"
    if already and not counts.any():
        reason = f"the judge had said so already on all {already} items"
    return pairs.share(outcome, reason)


# --- asked the same again ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Repeated:
    """Label indices `ratings` (items, asked) of up to `k` labels, -1 for none, the first verdict
    first, and the truth (items,)."""

    ratings: Labels
    truth: Labels
    clusters: Clusters
    k: int


def self_consistency(pairs: Pairs) -> Iterator[Row]:
    """Each judge that was asked again, on every metric, and on EVERY with all labels pooled.

    Several recipes that repeat are kept apart, in their order.
    """
    repeats = [v for v in pairs.variants if v.kind == "repeat"]
    asked = list(dict.fromkeys((v.judge, v.recipe) for v in repeats))
    several = len({recipe for _, recipe in asked}) > 1
    for name, recipe in asked:
        chosen = [v for v in repeats if (v.judge, v.recipe) == (name, recipe)]
        keys = {"recipe": recipe} if several else {}
        for metric, repeated in _repeated(pairs, name, sorted(chosen, key=lambda v: v.repeat)):
            for statistic, estimate in _numbers(pairs, repeated).items():
                yield Row("consistency", statistic, estimate, name, metric, keys)


def _repeated(
    pairs: Pairs, judge: str, repeats: list[VariantVerdicts]
) -> Iterator[tuple[str, _Repeated]]:
    """What is compared on every metric, and on EVERY."""
    rows = pairs.asked({key for repeat in repeats for key in repeat.verdicts})
    asked = [pairs.judged[judge], *(pairs.labels(v) for v in repeats)]
    ratings = np.stack([labels[rows] for labels in asked], axis=-1)  # (items, metrics, asked)
    metrics = pairs.rubric.metrics
    truth, clusters = pairs.truth[rows], pairs.clusters[rows]
    for c, metric in enumerate(metrics):
        yield metric.id, _Repeated(ratings[:, c], truth[:, c], clusters, len(metric.labels))
    pooled = Clusters(clusters.codes.repeat(len(metrics)), clusters.n)
    most = max(len(m.labels) for m in metrics)
    yield EVERY, _Repeated(ratings.reshape(-1, len(asked)), truth.ravel(), pooled, most)


def _numbers(pairs: Pairs, repeated: _Repeated) -> Mapping[str, Estimate]:
    items, asked = repeated.ratings.shape
    votes = vote_pairs_by_cluster(repeated.ratings, repeated.clusters, repeated.k)
    n, possible = round(votes.sum()), items * asked * (asked - 1) // 2
    agreement = pairs.bootstrap(votes, OBSERVED_AGREEMENT, n, possible)
    if n == 0:
        agreement = replace(agreement, reason=NO_REPEAT)
    gain = _majority_gain(pairs, repeated)
    return {"asked": Estimate(asked), "agreement": agreement, "majority_gain": gain}


def _majority_gain(pairs: Pairs, repeated: _Repeated) -> Estimate:
    """Accuracy of the majority minus accuracy of the first verdict, on items with a truth."""
    known = repeated.truth >= 0
    ratings, truth = repeated.ratings[known], repeated.truth[known]
    first = ratings[:, 0]
    right_first = np.where(first < 0, -1, first == truth)
    right = np.where(first < 0, -1, majority(ratings, repeated.k) == truth)
    gain = pairs.compared(right_first, right, repeated.clusters[known], NET_CHANGE)
    return gain if known.any() else replace(gain, reason=NO_TRUTH)


def majority(ratings: IntArray, k: int) -> Labels:
    """The most frequent label (items,) of ratings (items, asked); -1 where there is none.

    Of tied labels it is the first rating's where that is among them, else the lowest.
    """
    votes = value_counts(ratings, k).astype(np.float64)
    given = np.flatnonzero(ratings[:, 0] >= 0)
    votes[given, ratings[given, 0]] += 0.5  # half a vote settles ties and nothing else
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)


# --- the labels of one metric beside those of another --------------------------------------------


def halo(pairs: Pairs) -> Iterator[Row]:
    """Each real judge in one pass, metric by metric where it was asked so, and the humans.

    All on the unaltered answers, or on those that were asked metric by metric (by the first
    recipe that does). Both ways of asking use the items that have every ordinal label in both.
    """
    for judge in pairs.real_judges:
        passes, rows = {ONE_PASS: pairs.judged[judge.name]}, pairs.unaltered
        apart = [v for v in pairs.variants if (v.judge, v.kind) == (judge.name, "per-metric")]
        if apart:
            passes[PER_METRIC] = pairs.labels(apart[0])
            rows = pairs.asked(apart[0].verdicts)
        yield from _halo_of(pairs, judge.name, passes, rows)


def _halo_of(pairs: Pairs, judge: str, passes: Mapping[str, Labels], rows: Labels) -> Iterator[Row]:
    metrics = pairs.rubric.metrics
    columns = [c for c, m in enumerate(metrics) if m.kind == "ordinal"]
    truth = pairs.truth[:, columns]
    said = {who: labels[:, columns] for who, labels in passes.items()}
    whole = rows[np.all([_complete(labels[rows]) for labels in said.values()], axis=0)]
    true = whole[_complete(truth[whole])]
    found: dict[str, tuple[Estimate, Estimate]] = {}
    for who, labels in said.items():
        own = _correlation(pairs, [labels], whole, len(rows))
        found[who] = own, _correlation(pairs, [labels, truth], true, len(rows))
    humans = _correlation(pairs, [truth], rows[_complete(truth[rows])], len(rows))
    itself = Estimate(None, reason=THE_HUMANS, level=pairs.resampling.level)
    for who, (own, beyond) in {**found, HUMANS: (humans, itself)}.items():
        yield Row("halo", "correlation", own, judge, keys={"who": who})
        yield Row("halo", "beyond_humans", beyond, judge, keys={"who": who})


def _complete(labels: Labels) -> NDArray[np.bool_]:
    complete: NDArray[np.bool_] = np.all(labels >= 0, axis=1)
    return complete


def _correlation(pairs: Pairs, sides: list[Labels], rows: Labels, asked: int) -> Estimate:
    """The mean correlation of one side, or of the first minus the second, on those rows.

    A side is label indices (texts, ordinal metrics), whole on `rows`.
    """
    n = len(rows)
    ordinal = [m for m in pairs.rubric.metrics if m.kind == "ordinal"]
    if len(ordinal) < 2:
        level = pairs.resampling.level
        return Estimate(None, n=n, n_missing=asked - n, reason=TOO_FEW_METRICS, level=level)
    severities = [
        np.column_stack([np.array(m.severities)[side[rows, c]] for c, m in enumerate(ordinal)])
        for side in sides
    ]
    moments = [moments_by_cluster(s, pairs.clusters[rows]) for s in severities]
    single = len(sides) == 1
    statistic = MEAN_CORRELATION if single else CORRELATION_DIFFERENCE
    counts = moments[0] if single else np.stack(moments, axis=1)
    found = pairs.bootstrap(counts, statistic, n, asked)
    return found if n or single else replace(found, reason=NO_TRUTH_ON_ALL)
