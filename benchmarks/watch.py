"""How often is a certificate revoked for nothing, and how many labels does a real loss take?

A made-up judge is certified on 1,000 answers of three made-up annotators. Then one annotator labels
answers one by one. "uncorrected" is the same bet on the answers that the annotator calls severe
alone, without the correction for false alarms.

    python benchmarks/watch.py            # 200 streams of 5,000 labels a scenario
    python benchmarks/watch.py --quick    # 10 streams
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

import judgebench as jb
from judgebench.certificate.issue import LEVEL, shortfall
from judgebench.certificate.record import LabelTest
from judgebench.stats.arrays import FloatArray
from judgebench.stats.betting import log_capital

ANSWERS, LABELS, ANNOTATORS = 1000, 5000, ("ann", "ben", "cem")


@dataclass(frozen=True)
class World:
    """The share of severe answers; how often the judge and annotators call severe what is, and
    what is not."""

    severe: float = 0.3
    finds: float = 0.97
    alarms: float = 0.03
    annotator_finds: float = 0.93
    annotator_alarms: float = 0.07


SCENARIOS = {
    "nothing changes": World(),
    "5 % of the answers are severe, not 30 %": World(severe=0.05),
    "annotators call 10 % of other answers severe": World(annotator_alarms=0.10),
    "the same, with 10 % severe answers": World(severe=0.10, annotator_alarms=0.10),
    "the judge finds 50 % of severe answers, not 97 %": World(finds=0.5),
    "the same, with 5 % severe answers": World(severe=0.05, finds=0.5),
    "the judge finds 70 %": World(finds=0.7),
    "the judge finds 80 %": World(finds=0.8),
}


def draw(
    rng: np.random.Generator, world: World, n: int, annotators: int
) -> tuple[FloatArray, FloatArray]:
    """What the judge (n,) and each annotator (n, annotators) call severe, as 0 and 1."""
    severe = rng.random(n) < world.severe
    judge = rng.random(n) < np.where(severe, world.finds, world.alarms)
    chance = np.where(severe, world.annotator_finds, world.annotator_alarms)
    labels = rng.random((n, annotators)) < chance[:, None]
    return judge.astype(float), labels.astype(float)


def issued(rng: np.random.Generator) -> LabelTest:
    """The test of the certificate of a judge that was decided on."""
    judge, labels = draw(rng, World(), ANSWERS, len(ANNOTATORS))
    words, items = np.array(["no", "yes"]), np.arange(ANSWERS)
    rows = [
        pd.DataFrame({"item_id": items, "annotator": name, "harmful": words[column.astype(int)]})
        for name, column in zip(ANNOTATORS, labels.T, strict=True)
    ]
    verdicts = pd.DataFrame({"item_id": items, "judge": "m", "harmful": words[judge.astype(int)]})
    rubric = jb.Rubric.from_labels({"harmful": ["no", "yes"]})
    truth = {"blind": "yes", "independent_items": True}
    decided = jb.decide(jb.study(pd.concat(rows), verdicts, rubric=rubric, truth=truth))
    return decided.certificate().roles[0].test  # type: ignore[no-any-return]


def alarms(test: LabelTest, judge: FloatArray, annotator: FloatArray) -> Iterator[float]:
    """The number of labels until an alarm, as `watch` gives it and uncorrected; else infinity."""
    called = annotator == 1
    plain = (test.bound - judge[called], max(1 - test.bound, 1e-6))
    places = (np.arange(1, len(judge) + 1), np.flatnonzero(called) + 1)
    for place, (y, floor) in zip(places, (shortfall(test, judge, annotator), plain), strict=True):
        reached = place[log_capital(y, floor) >= -math.log(LEVEL)]
        yield float(reached[0]) if len(reached) else math.inf


def cells(labels: FloatArray) -> str:
    """The share of streams (streams,) with an alarm, and the median labels until then."""
    reached = labels[np.isfinite(labels)]
    median = f"{np.median(reached):,.0f}" if len(reached) else "–"
    return f"{100 * len(reached) / len(labels):.0f} % | {median}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 streams a scenario, not 200")
    streams = 10 if parser.parse_args().quick else 200
    warnings.simplefilter("ignore")
    tests = [issued(np.random.default_rng(seed)) for seed in range(max(2, streams // 10))]
    print("| since the certificate | revoked | median labels | uncorrected: revoked | median |")
    print("|---|---|---|---|---|")
    for name, world in SCENARIOS.items():
        lines = []
        for stream in range(streams):
            judge, labels = draw(np.random.default_rng([1, stream]), world, LABELS, 1)
            lines.append([*alarms(tests[stream % len(tests)], judge, labels[:, 0])])
        watched, uncorrected = np.transpose(lines)
        print(f"| {name} | {cells(watched)} | {cells(uncorrected)} |", flush=True)


if __name__ == "__main__":
    main()
