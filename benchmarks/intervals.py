"""How often do intervals hold the number of the population, and what do they cost?

    python benchmarks/intervals.py            # 600 studies a line, a minute on a core
    python benchmarks/intervals.py --systems  # correlations of systems' mean scores, 200 studies
    python benchmarks/intervals.py --quick    # 20 studies a line

A study has clusters (questions) of several items each, three ordered labels and one judge. Both the
labels and the judge's errors differ between questions (intraclass correlations 0.15 and 0.1). The
number of the population is that of 400,000 items or more. Beside judgebench stands the percentile
bootstrap over clusters, 400 resamples. In brackets: the share of studies without an interval, where
it is 1 % or more. Milliseconds are those of all statistics of a study.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from judgebench.stats.agreement import krippendorff_alpha_of_two
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.association import Rated, association
from judgebench.stats.classification import (
    ACCURACY,
    BALANCED_ACCURACY,
    KENDALL_TAU_B,
    MACRO_F1,
    MATTHEWS,
    SPEARMAN,
    cohen_kappa,
    confusion_by_cluster,
    limit_of_agreement,
    mean_absolute_severity_error,
    of_label,
    pearson,
)
from judgebench.stats.intervals import ClusterCounts, Statistic, clustered_estimate

SEVERITIES = (0, 1, 2)
STATISTICS: Mapping[str, Statistic] = {
    "accuracy": ACCURACY, "balanced": BALANCED_ACCURACY, "macro-F1": MACRO_F1,
    "κ": cohen_kappa(), "weighted κ": cohen_kappa("quadratic"),
    "α": krippendorff_alpha_of_two("ordinal"), "ρ": SPEARMAN, "r": pearson(),
    "τ-b": KENDALL_TAU_B, "MAE": mean_absolute_severity_error(SEVERITIES),
    "MCC": MATTHEWS, "severe F1": of_label("f1", 2),
    "upper limit": limit_of_agreement(SEVERITIES, 1),
}  # fmt: skip
SKILL, RESAMPLES = 0.8, 400


class Design(NamedTuple):
    """The clusters and the items in each, and the share of severe items."""

    clusters: int
    items: int
    severe: float = 0.15


DESIGNS = (
    Design(5, 20), Design(10, 20), Design(20, 20), Design(20, 20, 0.1), Design(50, 20),
    Design(50, 8), Design(20, 1), Design(50, 1), Design(200, 1),
)  # fmt: skip


def draw(design: Design, rng: np.random.Generator) -> FloatArray:
    """Confusion counts by cluster (clusters, 3, 3)."""
    shape = design.clusters, design.items
    base = np.array([0.75 - design.severe, 0.25, design.severe])
    labels = np.tile(base, (design.clusters, 1))
    skill = np.full((design.clusters, 1), SKILL)
    if design.items > 1:
        labels = rng.dirichlet(base * (1 / 0.15 - 1), design.clusters)
        spread = 1 / 0.1 - 1
        skill = rng.beta(SKILL * spread, (1 - SKILL) * spread, (design.clusters, 1))
    truth = (rng.random(shape)[..., None] > labels.cumsum(axis=1)[:, None]).sum(axis=-1).clip(max=2)
    near = np.where(truth == 1, rng.choice([0, 2], shape, p=[0.7, 0.3]), 1)
    wrong = np.where((truth != 1) & (rng.random(shape) < 0.2), 2 - truth, near)
    judged = np.where(rng.random(shape) < skill, truth, wrong)
    clusters = Clusters(np.repeat(np.arange(design.clusters), design.items), design.clusters)
    return confusion_by_cluster(truth.ravel(), judged.ravel(), clusters, 3)


def bootstrap(counts: FloatArray, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """The percentile limits over resampled clusters; none where a tenth is undefined."""
    G = len(counts)
    drawn = rng.multinomial(G, np.full(G, 1 / G), RESAMPLES).astype(float)
    totals, limits = np.tensordot(drawn, counts, axes=1), {}
    for name, statistic in STATISTICS.items():
        values = statistic.formula(totals)
        if np.isnan(values).mean() < 0.1:
            low, high = np.nanquantile(values, [0.025, 0.975])
            limits[name] = (float(low), float(high))
    return limits


def jackknife(counts: FloatArray) -> dict[str, tuple[float, float]]:
    """The limits of judgebench."""
    sample, limits, n = ClusterCounts(counts), {}, int(counts.sum())
    for name, statistic in STATISTICS.items():
        estimate = clustered_estimate(sample, statistic, n=n)
        if estimate.low is not None and estimate.high is not None:
            limits[name] = (estimate.low, estimate.high)
    return limits


def line(design: Design, studies: int, seed: int) -> Iterator[str]:
    """The lines of judgebench and of the bootstrap."""
    rng = np.random.default_rng([seed, design.clusters, design.items, int(100 * design.severe)])
    population = draw(Design(400_000 // design.items, *design[1:]), rng).sum(axis=0)
    drawn = [draw(design, rng) for _ in range(studies)]
    for name in ("judgebench", "percentile"):
        start = time.perf_counter()
        limits = [jackknife(c) if name == "judgebench" else bootstrap(c, rng) for c in drawn]
        seconds = (time.perf_counter() - start) / studies
        cells = []
        for key, statistic in STATISTICS.items():
            pairs, true = [x[key] for x in limits if key in x], statistic.formula(population)
            held = sum(low <= true <= high for low, high in pairs) / max(1, len(pairs))
            lacking = 1 - len(pairs) / studies
            cells.append(f"{100 * held:.0f}" + (f" ({lacking:.0%})" if lacking >= 0.01 else ""))
        of = f"{design.clusters} × {design.items}"
        of += ", 10 % severe" if design.severe < 0.15 else ""
        yield f"| {of} | {name} | {' | '.join(cells)} | {1000 * seconds:.1f} ms |"


class Systems(NamedTuple):
    """Systems that each answered the same questions. `spread` is how far they lie apart, beside
    noise of 1; the score knows them as far as it is `good`, and has a bias of its own for each."""

    name: str
    systems: int
    questions: int
    spread: float
    good: float = 1.0


SYSTEMS = (
    Systems("8, far apart", 8, 100, 1.0), Systems("8, 30 questions", 8, 30, 0.5),
    Systems("12, 50 questions", 12, 50, 0.35), Systems("14, near each other", 14, 100, 0.2),
    Systems("14, a poor score", 14, 30, 0.5, 0.0), Systems("20", 20, 100, 0.5),
)  # fmt: skip
_MANY = 3000  # questions that the true number is taken from


def scored(of: Systems, abilities: FloatArray, questions: int, rng: np.random.Generator) -> Rated:
    """Answers with a score and a human label of 0 to 4. `abilities` (2, systems): how good they
    are, and how much too high the score ranks them."""
    good, bias = abilities
    hard, shape = rng.normal(size=(questions, 1)), (questions, of.systems)
    human = np.clip(np.round(2 + good + 0.7 * hard + rng.normal(size=shape)), 0, 4)
    score = of.good * (0.8 * good + 0.4 * (human - 2)) + 0.5 * bias + 0.5 * hard
    score += rng.normal(size=shape)
    clusters = Clusters(np.repeat(np.arange(questions), of.systems), questions)
    return Rated(score.ravel(), human.ravel(), clusters, np.tile(np.arange(of.systems), questions))


def over_systems(of: Systems, studies: int, seed: int) -> str:
    """The coverage of Pearson's r of mean scores and mean labels, and its mean width."""
    rng, held, width = np.random.default_rng([seed, of.systems, of.questions]), 0, 0.0
    for _ in range(studies):
        abilities = rng.normal(size=(2, of.systems)) * of.spread
        rated, every = (scored(of, abilities, n, rng) for n in (of.questions, _MANY))
        true = association(every, "system", "pearson").estimate.value
        estimate = association(rated, "system", "pearson").estimate
        assert true is not None
        if estimate.low is not None and estimate.high is not None:
            held += estimate.low <= true <= estimate.high
            width += (estimate.high - estimate.low) / studies
    return f"| {of.name} | {held / studies:.0%} | {width:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=600, help="studies a line")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--systems", action="store_true", help="correlations over systems instead")
    parser.add_argument("--quick", action="store_true", help="20 studies a line")
    asked = parser.parse_args()
    if asked.systems:
        print("| systems | held | width |\n|---|--:|--:|")
        for of in SYSTEMS[:2] if asked.quick else SYSTEMS:
            print(over_systems(of, 5 if asked.quick else 200, asked.seed), flush=True)
        return
    print(f"| clusters × items | | {' | '.join(STATISTICS)} | a study |")
    print(f"|---|---|{'--:|' * (len(STATISTICS) + 1)}")
    for design in DESIGNS:
        for text in line(design, 20 if asked.quick else asked.studies, asked.seed):
            print(text, flush=True)


if __name__ == "__main__":
    main()
