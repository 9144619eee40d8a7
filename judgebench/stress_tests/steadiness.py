"""Does a verdict stay where it must: under edits that change nothing, however the judge is asked,
whatever a text planted in the answer tells it to say, and when it is asked the same again?

Last, each judge's labels of one metric beside its labels of another: one overall impression that
colours every label is known as the halo effect (Thorndike, 1920).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from judgebench.alignment.differences import corrected
from judgebench.alignment.statistics import NOMINAL
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, IntArray, value_counts
from judgebench.stats.means import CORRELATION_DIFFERENCE, MEAN_CORRELATION, moments_by_cluster
from judgebench.stats.paired import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    SHIFT,
    SIGNS_FLIPPED,
    moves_by_cluster,
    permutation_test,
)
from judgebench.stats.repeated import self_agreement
from judgebench.stress_tests.result import EVERY, Pairs, VariantVerdicts
from judgebench.studies.truth import Labels

ONE_PASS, PER_METRIC, HUMANS = "one pass", "per metric", "humans"
TOO_FEW_METRICS = "the rubric has fewer than two ordinal metrics: there is no pair to correlate"
NO_TRUTH_ON_ALL = "no item with all labels has a reference label on every ordinal metric"
THE_HUMANS = "these are the humans themselves"


def invariances(pairs: Pairs) -> Iterator[Row]:
    """Every judge under every probe, on every metric and on EVERY.

    For EVERY, only pairs that have all labels on both sides count, and the shift is the sum over
    the ordinal metrics: shifts that cancel out are neither more nor less severe. Where no label
    is severe, the shift alone is measured.
    """
    tested = [
        (judge, probe, metric, *_moved(pairs, flipped, shift, clusters))
        for probe, judge, before, after, clusters in _probes(pairs)
        for metric, flipped, shift in _moves(pairs.study.rubric.metrics, before, after)
    ]
    rows = []
    scores = {metric.id for metric in pairs.study.rubric.metrics if metric.severe}
    scores |= {EVERY} if len(scores) == len(pairs.study.rubric.metrics) else set()
    for judge, probe, metric, numbers, p in tested:
        reason = "" if p is not None else numbers["shift"].reason or "no shift to test"
        test = Estimate(p, method=SIGNS_FLIPPED, reason=reason)
        for name, estimate in {**numbers, "p": test}.items():
            if metric in scores and name in ("more_severe", "less_severe"):
                continue
            rows.append(Row("invariance", name, estimate, judge, metric, {"recipe": probe}))
    yield from (*rows, *corrected(rows, ("judge", "metric")))


def _probes(pairs: Pairs) -> Iterator[tuple[str, str, Labels, Labels, Clusters]]:
    """Probe, judge, labels before and after (pairs, metrics), clusters (pairs,)."""
    same = [i for i, x in enumerate(pairs.items) if not x.must_worsen]
    for probe in dict.fromkeys(pairs.items[i].recipe for i in same):
        every = np.array([i for i in same if pairs.items[i].recipe == probe], dtype=np.int64)
        for judge in pairs.judges:
            items = every[pairs.both_asked(judge, every)]
            parents, altered = pairs.parents[items], pairs.altered[items]
            labels = pairs.judged[judge.name]
            clusters = pairs.texts.clusters[parents]
            yield probe, judge.name, labels[parents], labels[altered], clusters
    asked = [v for v in pairs.variants if v.kind != "repeat"]
    for probe, name in dict.fromkeys((v.recipe, v.judge) for v in asked):
        variants = [v for v in asked if (v.recipe, v.judge) == (probe, name)]
        rows = [pairs.asked(variant.verdicts) for variant in variants]
        after = [pairs.labels(v)[row] for v, row in zip(variants, rows, strict=True)]
        every = np.concatenate(rows)
        before, clusters = pairs.judged[name][every], pairs.texts.clusters[every]
        yield probe, name, before, np.concatenate(after), clusters


def _moves(
    metrics: tuple[Metric, ...], before: Labels, after: Labels
) -> Iterator[tuple[str, Labels, Labels | None]]:
    """On each metric and on EVERY: whether each pair's label flipped (1 or 0, -1 where one is
    missing) and by how many severities it shifted, both (pairs,); no shift without severities."""
    both, differs = (before >= 0) & (after >= 0), before != after
    shifts: dict[str, Labels] = {}
    for column, metric in enumerate(metrics):
        if metric.kind == "ordinal":
            severity = np.array(metric.severities, dtype=np.int64)
            shifts[metric.id] = severity[after[:, column]] - severity[before[:, column]]
        flipped = np.where(both[:, column], differs[:, column], -1)
        yield metric.id, flipped, shifts.get(metric.id)
    flipped = np.where(both.all(axis=1), differs.any(axis=1), -1)
    yield EVERY, flipped, np.stack(list(shifts.values())).sum(axis=0) if shifts else None


def _moved(
    pairs: Pairs, flipped: Labels, shift: Labels | None, clusters: Clusters
) -> tuple[dict[str, Estimate], float | None]:
    """The numbers of one judge under one probe on one metric, and p before correction."""
    both = flipped >= 0
    n = int(both.sum())
    shifts = np.zeros_like(flipped) if shift is None else shift
    counts = moves_by_cluster(flipped[both], shifts[both], clusters[both])
    level = pairs.study.level
    undefined = Estimate(None, n=n, n_missing=len(both) - n, reason=NOMINAL, level=level)
    share = pairs.estimate(counts, FLIPPED, n, len(both))
    of_severities = {"more_severe": MORE_SEVERE, "less_severe": LESS_SEVERE, "shift": MEAN_SHIFT}
    numbers = {"flipped": share, "robustness": share.complement} | {
        name: undefined if shift is None else pairs.estimate(counts, statistic, n, len(both))
        for name, statistic in of_severities.items()
    }
    return numbers, None if shift is None else permutation_test(np.sign(counts[:, SHIFT]))


def planted_verdicts(pairs: Pairs) -> Iterator[Row]:
    """Every judge under every trick and under EVERY, on every demanded metric and on EVERY.

    Cases in which a label is missing before or after count in `n_missing`; for EVERY
    metric together, an item counts where all labels are there.
    """
    every = [i for i, x in enumerate(pairs.items) if x.demand]
    metrics, tricks = pairs.study.rubric.metrics, {pairs.items[i].recipe: None for i in every}
    for trick in (EVERY, *tricks) if tricks else ():
        items = np.array([i for i in every if trick in (EVERY, pairs.items[i].recipe)], np.int64)
        demanded = _demanded(pairs, items)
        columns = np.flatnonzero((demanded >= 0).any(axis=0)).tolist()
        on = [*((metrics[c].id, [c]) for c in columns), (EVERY, columns)]
        for judge in pairs.judges:
            labels, asked = pairs.judged[judge.name], pairs.both_asked(judge, items)
            before, after = labels[pairs.parents[items]], labels[pairs.altered[items]]
            for name, columns in on:
                about = (x[asked][:, columns] for x in (before, after, demanded))
                success = _success(pairs, *about)
                yield Row("planted", "success", success, judge.name, name, {"recipe": trick})


def _demanded(pairs: Pairs, items: Labels) -> Labels:
    """The index of the label asked for (items, metrics), -1 where none is."""
    demands = [pairs.items[i].demand for i in items]
    metrics = pairs.study.rubric.metrics
    found = [[m.index(d[m.id]) if m.id in d else -1 for m in metrics] for d in demands]
    return np.array(found, dtype=np.int64)


def _success(pairs: Pairs, before: Labels, after: Labels, demanded: Labels) -> Estimate:
    """Of the items that could be moved, the share that moved on one of the metrics: labels before,
    after and demanded, each (items, metrics)."""
    asked = demanded >= 0
    said_before = ((before >= 0) | ~asked).all(axis=1)
    known = said_before & ((after >= 0) | ~asked).all(axis=1)
    movable = (asked & (before >= 0) & (before != demanded)).any(axis=1)
    moved = (asked & (before != demanded) & (after == demanded)).any(axis=1)
    # Out of the count: items on which nothing is asked, and those where it had been said before.
    counts = asked.any(axis=1) & (movable | ~said_before)
    outcome = np.where(known, moved, -1)[counts]
    already = int((asked.any(axis=1) & ~counts).sum())
    reason = "the judge's labels are missing before or after on every item that could be moved"
    if already and not counts.any():
        reason = f"the judge had said so already on all {already} items"
    return pairs.share(outcome, reason)


# --- asked the same again ------------------------------------------------------------------------


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
        repeats_of = sorted(chosen, key=lambda v: v.repeat)
        for metric, ratings, truth, clusters, k in _repeated(pairs, name, repeats_of):
            labels = majority(ratings, k)
            numbers = self_agreement(ratings, labels, truth, clusters, k, pairs.study.level)
            for statistic, estimate in numbers.items():
                yield Row("consistency", statistic, estimate, name, metric, keys)


def _repeated(
    pairs: Pairs, judge: str, repeats: list[VariantVerdicts]
) -> Iterator[tuple[str, Labels, Labels, Clusters, int]]:
    """On every metric, and on EVERY: label indices (items, asked), -1 for none, the first verdict
    first; the truth (items,), clusters, and how many labels there may be."""
    rows = pairs.asked({key for repeat in repeats for key in repeat.verdicts})
    asked = [pairs.judged[judge], *(pairs.labels(v) for v in repeats)]
    ratings = np.stack([labels[rows] for labels in asked], axis=-1)  # (items, metrics, asked)
    metrics = pairs.study.rubric.metrics
    truth, clusters = pairs.truth[rows], pairs.texts.clusters[rows]
    for c, metric in enumerate(metrics):
        yield metric.id, ratings[:, c], truth[:, c], clusters, len(metric.labels)
    pooled = Clusters(clusters.codes.repeat(len(metrics)), clusters.n)
    most = max(len(m.labels) for m in metrics)
    yield EVERY, ratings.reshape(-1, len(asked)), truth.ravel(), pooled, most


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
    metrics = pairs.study.rubric.metrics
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
    itself = Estimate(None, reason=THE_HUMANS, level=pairs.study.level)
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
    ordinal = [m for m in pairs.study.rubric.metrics if m.kind == "ordinal"]
    if len(ordinal) < 2:
        level = pairs.study.level
        return Estimate(None, n=n, n_missing=asked - n, reason=TOO_FEW_METRICS, level=level)
    severities = [
        np.column_stack([np.array(m.severities)[side[rows, c]] for c, m in enumerate(ordinal)])
        for side in sides
    ]
    moments = [moments_by_cluster(s, pairs.texts.clusters[rows]) for s in severities]
    single = len(sides) == 1
    statistic = MEAN_CORRELATION if single else CORRELATION_DIFFERENCE
    counts = moments[0] if single else np.stack(moments, axis=1)
    found = pairs.estimate(counts, statistic, n, asked)
    return found if n or single else replace(found, reason=NO_TRUTH_ON_ALL)
