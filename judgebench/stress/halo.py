"""Do a judge's labels of different metrics go together more than the humans' do?

One overall impression that colours every label is known as the halo effect (Thorndike, 1920).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.stats.association import (
    CORRELATION_DIFFERENCE,
    MEAN_CORRELATION,
    moments_by_cluster,
)
from judgebench.stress.pairs import Pairs
from judgebench.study.truth import Labels

ONE_PASS, PER_METRIC, HUMANS = "one pass", "per metric", "humans"
TOO_FEW_METRICS = "the rubric has fewer than two ordinal metrics: there is no pair to correlate"
NO_TRUTH = "no item with all labels has a human truth on every ordinal metric"
THE_HUMANS = "these are the humans themselves"


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
        yield from _of_judge(pairs, judge.name, passes, rows)


def _of_judge(
    pairs: Pairs, judge: str, passes: Mapping[str, Labels], rows: Labels
) -> Iterator[Row]:
    metrics = pairs.rubric.metrics
    columns = [c for c, m in enumerate(metrics) if m.kind == "ordinal"]
    truth = pairs.truth[:, columns]
    said = {who: labels[:, columns] for who, labels in passes.items()}
    whole = rows[np.all([_complete(labels[rows]) for labels in said.values()], axis=0)]
    true = whole[_complete(truth[whole])]
    for who, labels in said.items():
        own = _correlation(pairs, [labels], whole, len(rows))
        beyond = _correlation(pairs, [labels, truth], true, len(rows))
        yield from _rows(judge, who, own, beyond)
    humans = _correlation(pairs, [truth], rows[_complete(truth[rows])], len(rows))
    itself = Estimate(None, reason=THE_HUMANS, level=pairs.resampling.level)
    yield from _rows(judge, HUMANS, humans, itself)


def _rows(judge: str, who: str, correlation: Estimate, beyond: Estimate) -> Iterator[Row]:
    yield Row("halo", "correlation", correlation, judge, keys={"who": who})
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
    return found if n or single else replace(found, reason=NO_TRUTH)
