"""How much worse is a judge that is picked by one forced choice per annotator, where several labels
are right?

Made-up annotators and judges as in the synthetic experiments of Guerdan et al. (2025,
arXiv 2503.05965; github.com/lguerdan/indeterminacy): on every item a share of the annotators
accepts each set of labels (Dirichlet), judges share these up to noise of a size of their own, and
whoever accepts several labels and must choose one takes it with a preference for the first or the
last of them (exp(-beta × place)). Annotators and judges may prefer differently: that is what forced
choices confuse with quality.

From finitely many ratings of each item one judge in fifty is picked by each statistic: agreement of
the most common forced choice, Jensen-Shannon divergence of forced choices, and, of response sets,
hit and mean squared error. Printed is how well the judges that were picked do downstream: on how
many items the share that accepts the first label lies on the same side of one half as the
annotators' does, less the same for the best of the fifty. The paper's figures on real tasks (up to
31 % worse) rest on model replies that are not part of its repository.

    python benchmarks/response_sets.py
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.agreement import members, response_sets

Floats = NDArray[np.float64]
ITEMS, JUDGES, LEAST_NOISE, MOST_NOISE, SPREAD = 100, 50, 0.02, 0.5, 0.05
CHOICES = {  # (beta, sign) of annotators and judges: whom the first or the last label attracts
    "no preference": ((0, 1), (0, 1)),
    "the same preference": ((2, 1), (2, 1)),
    "people last, judges first": ((1, -1), (2, 1)),
    "people first, judges last": ((2, 1), (1, -1)),
}
BY = {
    "same": "same label (forced choice)", "js": "JS divergence (forced choice)",
    "hit": "hit (response sets)", "mse": "MSE (response sets)",
}  # fmt: skip


def on_simplex(values: Floats) -> Floats:
    """The nearest rows that are shares: (n, m) -> (n, m). Duchi et al. (2008)."""
    ordered = -np.sort(-values, axis=1)
    above = np.cumsum(ordered, axis=1) - 1
    count = np.arange(1, values.shape[1] + 1)
    last = (ordered - above / count > 0).sum(axis=1) - 1
    rows = np.arange(len(values))
    return np.maximum(values - (above[rows, last] / (last + 1))[:, None], 0)


def forced(sets: NDArray[np.bool_], taste: tuple[int, int], rng: np.random.Generator) -> Floats:
    """The chance that each label (items, sets, k) is chosen by who accepts a set (sets, k)."""
    place = sets.cumsum(axis=1) - 1
    beta, sign = taste
    place = place if sign > 0 else sets.sum(axis=1, keepdims=True) - 1 - place
    drawn = np.exp(-beta * place) + rng.normal(0, SPREAD, (ITEMS, *sets.shape))
    weight = np.maximum(drawn, 1e-9) * sets
    return np.asarray(weight / weight.sum(axis=2, keepdims=True))


def picked(
    k: int, ratings: int, tastes: tuple[tuple[int, int], tuple[int, int]], seed: int
) -> dict[str, float]:
    """By each statistic, how far the judge that it picks is behind the best, downstream."""
    rng = np.random.default_rng(seed)
    codes = np.arange(1, 1 << k)
    sets = members(codes, k)
    theta = rng.dirichlet(np.ones(len(codes)), ITEMS)
    choice = forced(sets, tastes[0], rng)
    drawn = np.stack([rng.choice(len(codes), ratings, p=p) for p in theta])  # (items, ratings)
    accepted = sets[drawn].mean(axis=1)
    chance = choice[np.arange(ITEMS)[:, None], drawn]
    chosen = (rng.random((ITEMS, ratings, 1)) > chance.cumsum(axis=2)).sum(axis=2).clip(max=k - 1)
    votes = np.stack([(chosen == label).mean(axis=1) for label in range(k)], axis=1)
    truth = (theta @ sets)[:, 0] > 0.5
    found: list[tuple[float, ...]] = []
    for _ in range(JUDGES):
        noise = rng.normal(0, rng.uniform(LEAST_NOISE, MOST_NOISE), theta.shape)
        own = on_simplex(theta + noise)
        said = np.einsum("is,isk->ik", own, forced(sets, tastes[1], rng))
        accepts, label = own @ sets, said.argmax(axis=1)
        responses = response_sets(accepted)
        hit = members(responses, k)[np.arange(ITEMS), label][responses >= 0].mean()
        same = (label == votes.argmax(axis=1)).mean()
        mse = ((accepts - accepted) ** 2).sum(axis=1).mean()
        found.append((((accepts[:, 0] > 0.5) == truth).mean(), same, -js(votes, said), hit, -mse))
    right, *by = np.array(found).T
    return {name: right.max() - right[scores.argmax()] for name, scores in zip(BY, by, strict=True)}


def js(a: Floats, b: Floats) -> float:
    """The mean Jensen-Shannon distance of rows."""
    middle = np.maximum((a + b) / 2, 1e-12)
    terms = [np.where(p > 0, p * np.log(np.maximum(p, 1e-12) / middle), 0) for p in (a, b)]
    return float(np.sqrt(np.maximum((terms[0] + terms[1]).sum(axis=1) / 2, 0)).mean())


def table(
    trials: int, sizes: tuple[int, ...], ratings: tuple[int, ...]
) -> Mapping[str, dict[str, float]]:
    """The mean over sizes, numbers of ratings and trials, by preference and statistic."""
    found = {}
    for name, tastes in CHOICES.items():
        runs = [picked(k, n, tastes, seed) for k, n, seed in product(sizes, ratings, range(trials))]
        found[name] = {by: float(np.mean([run[by] for run in runs])) for by in BY}
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="two trials of one size")
    given = parser.parse_args()
    sizes, ratings = ((3,), (5,)) if given.quick else ((2, 3, 4), (3, 10, 100))
    found = table(2 if given.quick else given.trials, sizes, ratings)
    print(
        "points of downstream agreement lost against the best of fifty judges, by what picked them"
    )
    for name, lost in found.items():
        print(f"\n{name}")
        for by, heading in BY.items():
            print(f"  {heading:32}{100 * lost[by]:6.1f}")


if __name__ == "__main__":
    main()
