"""How fast is the cluster bootstrap? Against a loop that resamples rows and asks `krippendorff`.

A study like that of medical safety judges: 270 questions answered by 4 systems (1,080 answers),
3 annotators, 8 metrics of 3 labels, 6 judges. For each metric and judge: accuracy against the
median of the annotators, and ordinal alpha of annotators and judge together, each with an
interval from 2,000 resamples of whole questions.

The loop is timed on few resamples and scaled up. It is given every advantage: label counts are
made once, outside the clock, and so are the rows of each question. Times are of the processor
(all threads), so that a busy machine does not change the ratio.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bootstrap.py  # idle threads of BLAS cost time too
"""

from __future__ import annotations

import time

import krippendorff
import numpy as np

from judgebench.stats import IntArray
from judgebench.stats.agreement import coincidences_by_cluster, krippendorff_alpha
from judgebench.stats.arrays import value_counts
from judgebench.stats.confusion import ACCURACY, confusion_by_cluster
from judgebench.stats.resample import Resampling, cluster_bootstrap
from judgebench.stats.truth import median_label

QUESTIONS, SYSTEMS, ANNOTATORS, METRICS, JUDGES, K = 270, 4, 3, 8, 6, 3
RESAMPLES, TIMED = 2000, 20
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


def with_judgebench(metrics: list[tuple[IntArray, IntArray]]) -> list[tuple[float, ...]]:
    resampling = Resampling(RESAMPLES)
    limits: list[tuple[float, ...]] = []
    for ratings, judges in metrics:
        truth = median_label(ratings, "upper")
        for judged in judges.T:
            together = np.column_stack([ratings, judged])
            confusion = confusion_by_cluster(truth, judged, CLUSTERS, K, QUESTIONS)
            coincidences = coincidences_by_cluster(together, CLUSTERS, K, QUESTIONS)
            for counts, statistic in (
                (confusion, ACCURACY),
                (coincidences, krippendorff_alpha("ordinal")),
            ):
                found = cluster_bootstrap(counts, statistic, resampling, n=ITEMS)
                limits.append((found.low or 0.0, found.high or 0.0))
    return limits


def with_a_loop(
    metrics: list[tuple[IntArray, IntArray]], resamples: int
) -> tuple[float, list[tuple[float, ...]]]:
    """Seconds for `resamples` of them, and the limits."""
    rng = np.random.default_rng(0)
    rows_of = np.arange(ITEMS).reshape(QUESTIONS, SYSTEMS)
    seconds, limits = 0.0, []
    for ratings, judges in metrics:
        truth = median_label(ratings, "upper")
        for judged in judges.T:
            counts = value_counts(np.column_stack([ratings, judged]), K)
            accuracies, alphas = [], []
            start = time.process_time()
            for _ in range(resamples):
                rows = rows_of[rng.integers(QUESTIONS, size=QUESTIONS)].ravel()
                accuracies.append(np.mean(truth[rows] == judged[rows]))
                alphas.append(
                    krippendorff.alpha(value_counts=counts[rows], level_of_measurement="ordinal")
                )
            seconds += time.process_time() - start
            limits += [tuple(np.quantile(x, [0.025, 0.975])) for x in (accuracies, alphas)]
    return seconds, limits


def main() -> None:
    metrics = study()
    start = time.process_time()
    fast = with_judgebench(metrics)
    seconds = time.process_time() - start
    timed, _ = with_a_loop(metrics, TIMED)
    scaled = timed * RESAMPLES / TIMED

    _, loop = with_a_loop(metrics[:1], RESAMPLES)  # one metric in full, to see the same limits
    apart = np.abs(np.subtract(fast[: len(loop)], loop)).max()

    print(
        f"{METRICS} metrics x {JUDGES} judges, {ITEMS} answers, {ANNOTATORS} annotators, ", end=""
    )
    print(f"{RESAMPLES} resamples of {QUESTIONS} questions: accuracy and ordinal alpha")
    print(f"  judgebench          {seconds:9.2f} s")
    print(f"  krippendorff loop   {scaled:9.2f} s  ({TIMED} resamples timed, scaled up)")
    print(f"  ratio               {scaled / seconds:9.0f}")
    print(f"  limits of the first metric differ by at most {apart:.4f}")


if __name__ == "__main__":
    main()
