"""How fast is the cluster bootstrap? Against a loop that resamples rows and asks `krippendorff`.

A study like that of medical safety judges: 270 questions answered by 4 systems (1,080 answers),
3 annotators, 8 metrics of 3 labels, 6 judges. For each metric and judge: accuracy against the
median of the annotators, and ordinal alpha of annotators and judge together, each with an
interval from 2,000 resamples of whole questions.

Both are timed in turn, five times, each time with other draws, so that nothing is kept from the
time before. The loop is timed on few resamples and scaled up. It is given every advantage: label
counts are made once, outside the clock, and so are the rows of each question. Times are of the
processor (all threads), so that a busy machine changes the ratio little.

That both give the same numbers is shown on the first metric in full: the point values, and how far
the limits are from the loop's, beside how far two loops with different draws are from each other.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bootstrap.py  # idle threads of BLAS cost time too
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

import numpy as np

from judgebench.stats.arrays import Clusters, IntArray, value_counts
from judgebench.stats.confusion import ACCURACY, confusion_by_cluster
from judgebench.stats.consensus import median_label
from judgebench.stats.interrater import coincidences_by_cluster, krippendorff_alpha
from judgebench.stats.resample import Resampling, cluster_bootstrap

try:
    import krippendorff
except ImportError:
    sys.exit("this benchmark needs the package krippendorff: pip install krippendorff")

Limits = list[tuple[float, float, float]]  # value, low, high

QUESTIONS, SYSTEMS, ANNOTATORS, METRICS, JUDGES, K = 270, 4, 3, 8, 6, 3
RESAMPLES, TIMED, TIMES = 2000, 20, 5
ITEMS = QUESTIONS * SYSTEMS
CLUSTERS = np.repeat(np.arange(QUESTIONS), SYSTEMS)


def noisy(rng: np.random.Generator, labels: IntArray, columns: int, kept: float) -> IntArray:
    """Copies of `labels` (items,) as (items, columns), each cell kept or drawn anew."""
    keep = rng.random((len(labels), columns)) < kept
    return np.where(keep, labels[:, None], rng.integers(K, size=keep.shape))


def study() -> list[tuple[IntArray, IntArray]]:
    """Ratings (items, annotators) and judges' labels (items, judges), metric by metric."""
    rng = np.random.default_rng(0)
    drawn = [rng.choice(K, ITEMS, p=[0.8, 0.15, 0.05]) for _ in range(METRICS)]
    return [(noisy(rng, t, ANNOTATORS, 0.85), noisy(rng, t, JUDGES, 0.7)) for t in drawn]


def with_judgebench(metrics: list[tuple[IntArray, IntArray]], resampling: Resampling) -> Limits:
    """Accuracy and alpha of each metric and judge, in turn."""
    limits: Limits = []
    for ratings, judges in metrics:
        truth = median_label(ratings, "upper")
        for judged in judges.T:
            together = np.column_stack([ratings, judged])
            confusion = confusion_by_cluster(truth, judged, Clusters(CLUSTERS, QUESTIONS), K)
            coincidences = coincidences_by_cluster(together, Clusters(CLUSTERS, QUESTIONS), K)
            for counts, statistic in (
                (confusion, ACCURACY),
                (coincidences, krippendorff_alpha("ordinal")),
            ):
                found = cluster_bootstrap(counts, statistic, resampling, n=ITEMS)
                limits.append((found.value or 0.0, found.low or 0.0, found.high or 0.0))
    return limits


def with_a_loop(
    metrics: list[tuple[IntArray, IntArray]], resamples: int, seed: int
) -> tuple[float, Limits]:
    """Seconds for `resamples` of them, and the limits."""
    rng = np.random.default_rng(seed)
    rows_of = np.arange(ITEMS).reshape(QUESTIONS, SYSTEMS)
    seconds, limits = 0.0, []
    for ratings, judges in metrics:
        truth = median_label(ratings, "upper")
        for judged in judges.T:
            counts = value_counts(np.column_stack([ratings, judged]), K)
            accuracies, alphas = [np.mean(truth == judged)], [alpha(counts)]
            start = time.process_time()
            for _ in range(resamples):
                rows = rows_of[rng.integers(QUESTIONS, size=QUESTIONS)].ravel()
                accuracies.append(np.mean(truth[rows] == judged[rows]))
                alphas.append(alpha(counts[rows]))
            seconds += time.process_time() - start
            for value, *replicates in (accuracies, alphas):
                low, high = np.quantile(replicates, [0.025, 0.975])
                limits.append((float(value), float(low), float(high)))
    return seconds, limits


def alpha(counts: IntArray) -> float:
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="ordinal"))


def show_times(metrics: list[tuple[IntArray, IntArray]], times: int, timed: int) -> None:
    """Both in turn, and the ratio of each turn."""
    ours, loops = [], []
    for seed in range(times):
        start = time.process_time()
        with_judgebench(metrics, Resampling(RESAMPLES, seed))
        ours.append(time.process_time() - start)
        loops.append(with_a_loop(metrics, timed, seed)[0] * RESAMPLES / timed)
    ratios = [loop / fast for fast, loop in zip(ours, loops, strict=True)]
    print(f"  {'median of ' + str(times):24}{'':>9}   min-max")
    print(f"  {'judgebench':24}{median(ours):9.2f} s {min(ours):.2f}-{max(ours):.2f}")
    print(
        f"  {'krippendorff loop':24}{median(loops):9.2f} s {min(loops):.2f}-{max(loops):.2f}",
        end="",
    )
    print(f"  ({timed} resamples timed, scaled up)")
    print(f"  {'ratio (wanted: 50)':24}{median(ratios):9.0f}   {min(ratios):.0f}-{max(ratios):.0f}")


def show_numbers(metrics: list[tuple[IntArray, IntArray]], resamples: int) -> None:
    """How far apart the numbers of both are, and those of two loops with other draws."""
    fast = np.array(with_judgebench(metrics, Resampling(resamples)))
    one, other = (np.array(with_a_loop(metrics, resamples, seed)[1]) for seed in (0, 1))
    apart, noise = np.abs(fast - one), np.abs(one - other)
    print(f"  first metric, {resamples} resamples: point values differ by at most ", end="")
    print(f"{apart[:, 0].max():.1e},")
    print(f"  limits by {apart[:, 1:].max():.4f} (two loops: {noise[:, 1:].max():.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one metric, one turn")
    quick = parser.parse_args().quick
    metrics = study()[: 1 if quick else METRICS]
    print(
        f"{len(metrics)} metrics x {JUDGES} judges, {ITEMS} answers, {ANNOTATORS} annotators, ",
        end="",
    )
    print(f"{RESAMPLES} resamples of {QUESTIONS} questions: accuracy and ordinal alpha")
    show_times(metrics, 1 if quick else TIMES, 2 if quick else TIMED)
    show_numbers(metrics[:1], 50 if quick else RESAMPLES)


if __name__ == "__main__":
    main()
