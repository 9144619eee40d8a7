"""Does a verdict stay where it must: under edits that change nothing, however the judge is asked,
and whatever a text planted in the answer tells it to say?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from judgebench.align.statistics import NOMINAL
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters
from judgebench.stats.paired import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    SHIFT,
    holm,
    moves_by_cluster,
    sign_test,
)
from judgebench.stats.resample import Statistic
from judgebench.stress.pairs import Pairs, VariantVerdicts
from judgebench.stress.result import EVERY
from judgebench.study.truth import Labels


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
    return np.array(
        [
            [m.index(d[m.id]) if m.id in d else -1 for m in pairs.rubric.metrics]
            for d in (pairs.items[i].demand for i in items)
        ],
        dtype=np.int64,
    )


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
