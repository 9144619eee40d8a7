"""Does a plan keep its promise? Sixty drawn designs, each planned, and then simulated at one size.

Each design is drawn at random: annotators, agreement, severe share, labels, answers a question, the
judge, oversampled or not, and a number of answers between 100 and 5,000. `jb.plan` says the chance
of REPLACE, and of any clear outcome, at that size; then so many fresh studies of the size are drawn
and decided. Reported is by how much the stated chances are off, in points, and of how many designs
both are within 5.

    python benchmarks/plans.py            # 60 designs, 1,600 studies each: an hour of two cores
    python benchmarks/plans.py --quick    # 2 designs, 40 studies each
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import judgebench as jb
from judgebench.decisions.decision import Outcome
from judgebench.decisions.rule import DecisionRule
from judgebench.errors import SetupError
from judgebench.planning.design import Design, draw
from judgebench.planning.plan import simulate
from judgebench.planning.report import described
from judgebench.planning.simulate import outcome

WITHIN = 0.05
TIMED = 3  # designs whose whole plan is timed


def drawn(n: int, seed: int) -> Iterator[tuple[Design, int]]:
    """So many designs that can be, each with a number of answers."""
    rng = np.random.default_rng(seed)
    while n:
        agreement, per_question = float(rng.uniform(0.7, 0.97)), int(rng.choice([1, 1, 4, 10]))
        known: dict[str, Any] = {
            "n_annotators": int(rng.choice([2, 3, 4, 5])), "agreement": round(agreement, 3),
            "severe_share": round(float(rng.uniform(0.03, 0.5)), 3),
            "n_labels": int(rng.choice([2, 2, 3, 5])),
            "per_question": per_question, "judge": round(float(rng.normal(0, 0.04)), 3),
            "oversampled": bool(rng.random() < 0.2),
        }  # fmt: skip
        try:
            design = Design(**known)
        except SetupError:
            continue
        n -= 1
        yield design, round(float(np.exp(rng.uniform(np.log(100), np.log(5000)))))


def ended(design: Design, answers: int, studies: int, seed: int) -> Counter[Outcome]:
    """Count the outcomes of fresh studies."""
    rng, rule = np.random.default_rng([seed, 99]), DecisionRule()
    return Counter(outcome(draw(design, answers, rng), rule) for _ in range(studies))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--designs", type=int, default=60)
    parser.add_argument("--studies", type=int, default=1600, help="fresh ones of each design")
    parser.add_argument("--planned", type=int, default=750, help="studies that a plan simulates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help="2 designs, 40 studies")
    asked = parser.parse_args()
    designs, studies = (2, 40) if asked.quick else (asked.designs, asked.studies)
    planned, kept, seconds = 60 if asked.quick else asked.planned, 0, list[float]()
    with ProcessPoolExecutor(asked.workers) as pool:
        for number, (design, answers) in enumerate(drawn(designs, asked.seed)):
            if number < TIMED:
                began = time.perf_counter()
                jb.plan(studies=planned, **design.model_dump())
                seconds.append(time.perf_counter() - began)
            (plan,) = simulate({design: planned}, DecisionRule()).values()
            stated = plan.at(answers)
            parts = [studies // asked.workers] * asked.workers
            counts = pool.map(
                partial(ended, design, answers),
                parts,
                [number * 100 + i for i in range(len(parts))],
            )
            total: Counter[Outcome] = sum(counts, Counter())
            n = total.total()
            off = [
                (stated[Outcome.REPLACE].value or 0.0) - total[Outcome.REPLACE] / n,
                total[Outcome.CANT_TELL] / n - (stated[Outcome.CANT_TELL].value or 0.0),
            ]
            kept += max(map(abs, off)) <= WITHIN
            print(
                f"{described(design)}; {answers:,} answers:"
                f" REPLACE {total[Outcome.REPLACE] / n:.3f}, off by {off[0]:+.3f};"
                f" clear {1 - total[Outcome.CANT_TELL] / n:.3f},"
                f" off by {off[1]:+.3f}",
                flush=True,
            )
    print(
        f"within {100 * WITHIN:.0f} points: {kept} of {designs} designs, {studies:,} studies each"
    )
    print(f"a plan takes {np.median(seconds):.1f} s (median), {max(seconds):.1f} s at most")


if __name__ == "__main__":
    main()
