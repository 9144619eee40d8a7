"""How often the intervals of `judgebench estimate` hold the true rate, in simulated studies.

    python benchmarks/rates.py                              # 1,000 studies of each world
    python benchmarks/rates.py --studies 200 --worlds rare  # of those whose name has "rare"

A world is a population of answers in questions, a judge with known errors, and a way to draw the
answers that people label. Printed are coverage and mean width of each way beside each other, how
often a study alarms because labelled answers look unlike the others, and the ratio of the widths of
PPI++ and of human labels alone.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from judgebench.stats.arrays import Clusters
from judgebench.stats.partly_labelled import (
    Asked,
    Prediction,
    Sample,
    cross_fitted,
    of_labels,
    prediction_powered,
    rogan_gladen,
    unlike,
)


@dataclass(frozen=True)
class World:
    """A population and a study of it. `icc` is the correlation of two answers to one question."""

    name: str
    rate: float = 0.1
    sensitivity: float = 0.86
    specificity: float = 0.86
    labels: int = 200
    cluster: int = 1
    icc: float = 0.2
    answers: int = 5000
    drawn: str = "random"  # or by what the judge says: "weights", "strata", "unsaid", "doubt"
    judges: int = 1
    bias: float = 0.0  # how much less specific the judge is on the answers of one system of two
    asked: Asked = field(default_factory=Asked)

    def study(self, random: np.random.Generator) -> tuple[Sample, np.ndarray, np.ndarray]:
        """A sample, the verdicts (answers, judges) and the truth."""
        questions = -(-self.answers // self.cluster)
        spread = (1 - self.icc) / self.icc
        chance = np.full(questions, self.rate)
        if self.cluster > 1:
            chance = random.beta(self.rate * spread, (1 - self.rate) * spread, questions)
        codes = np.repeat(np.arange(questions), self.cluster)[: self.answers]
        truth = random.random(self.answers) < chance[codes]
        said = random.random((self.answers, self.judges))
        specificity = self.specificity - self.bias * (np.arange(self.answers) % 2)[:, None]
        flips = np.where(truth[:, None], said > self.sensitivity, said > specificity)
        verdicts = (truth[:, None] ^ flips).astype(float)
        odds = np.where((verdicts[:, 0] == 1) & (self.drawn != "random"), 4.0, 1.0)
        if self.drawn == "doubt":  # by what the first two judges disagree about
            odds = np.where(verdicts[:, 0] != verdicts[:, 1], 1.0, 0.3)
        labelled = np.zeros(self.answers, dtype=bool)
        if self.cluster > 1:
            whole = random.permutation(questions)[: max(2, round(self.labels / self.cluster))]
            labelled[np.isin(codes, whole)] = True
            probability = np.ones(self.answers)
        else:
            probability = np.minimum(1, self.labels * odds / odds.sum())
            labelled = random.random(self.answers) < probability
        y = np.where(labelled, truth.astype(float), np.nan)
        clusters = Clusters(codes, questions)
        weights = 1 / probability if self.drawn in ("weights", "doubt") else None
        strata = verdicts[:, 0].astype(np.int64) if self.drawn == "strata" else None
        return Sample(y, clusters, weights, strata), verdicts, truth


def worlds() -> list[World]:
    """Rates from .5 to 20 %, judges from .6 to .98, 50 to 2,000 labels, questions of 1 to 50."""
    found = [
        World(f"{'rare ' if rate < 0.05 else ''}{rate:.3f} judge {q} n {n}", rate, q, q, n)
        for rate in (0.005, 0.02, 0.05, 0.2)
        for q in (0.6, 0.86, 0.98)
        for n in (50, 200, 2000)
    ]
    found += [
        World(f"questions of {size} n {n}", 0.1, labels=n, cluster=size)
        for size in (2, 5, 50)
        for n in (200, 2000)
    ]
    base = World("", 0.1)
    found += [
        replace(base, name=f"drawn: {how}", drawn=how) for how in ("weights", "strata", "unsaid")
    ]
    found += [
        replace(base, name="lenient judge", sensitivity=0.5, specificity=0.99),
        replace(base, name="severe judge", sensitivity=0.99, specificity=0.7),
        replace(base, name="bias by system", specificity=0.95, bias=0.3),
        replace(base, name="three judges", judges=3, sensitivity=0.75, specificity=0.8),
        *(
            replace(
                base,
                name=f"two judges {q}, {how}",
                judges=2,
                drawn=how,
                sensitivity=q,
                specificity=q,
            )
            for q in (0.8, 0.9, 0.95)
            for how in ("random", "doubt")
        ),
        replace(base, name="all looks", asked=Asked(anytime=True)),
    ]
    return found


def measure(world: World, studies: int) -> dict[str, tuple[float, float]]:
    """By way: the share of studies whose interval holds the rate, and its mean width."""
    random = np.random.default_rng(20261126)
    hits, widths = defaultdict(list), defaultdict(list)
    for _ in range(studies):
        sample, verdicts, _ = world.study(random)
        if sample.why_none:
            continue
        first = verdicts[:, 0]
        everybody = replace(sample, y=first, weights=None, strata=None)
        F = Prediction(first, first)
        if world.judges > 1:
            F = cross_fitted(sample.y, verdicts, sample.clusters)
        found = {
            "labels": of_labels(sample, world.asked),
            "verdicts": of_labels(everybody, world.asked),
            "PPI++": prediction_powered(sample, F, world.asked).estimate,
            "Rogan-Gladen": rogan_gladen(sample, first, world.asked),
        }
        for way, e in found.items():
            if e.low is not None:
                hits[way].append(e.low <= world.rate <= e.high)
                widths[way].append(e.high - e.low)
        hits["alarm"].append(bool(unlike(sample, {"judge": first})))
    return {way: (np.mean(h), np.mean(widths.get(way, [np.nan]))) for way, h in hits.items()}


def main() -> None:
    """Print a line for each world."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=1000, help="studies of each world")
    parser.add_argument("--worlds", default="", help="only worlds with this in their name")
    parser.add_argument("--quick", action="store_true", help="20 studies of two worlds")
    asked = parser.parse_args()
    studies = 20 if asked.quick else asked.studies
    named = asked.worlds or ("0.050 judge 0.98 n 2" if asked.quick else "")
    ways = ("labels", "verdicts", "PPI++", "Rogan-Gladen")
    print(f"{'world':32}" + "".join(f"{way:>18}" for way in ways) + "   alarms  width ratio")
    for world in worlds():
        if named in world.name:
            found = measure(world, studies)
            cells = (
                f"{found[w][0]:10.3f} ({found[w][1]:.3f})" if w in found else "-" for w in ways
            )
            ratio = found["PPI++"][1] / found["labels"][1]
            line = "".join(f"{cell:>18}" for cell in cells)
            print(f"{world.name:32}{line}{found['alarm'][0]:9.3f}{ratio:9.2f}", flush=True)


if __name__ == "__main__":
    main()
