"""How often the intervals of `judgebench compare` hold the true difference of two judges.

    python benchmarks/differences.py                # 300 studies of 60 and of 20 questions
    python benchmarks/differences.py --studies 50

A study has two answers to each question, two annotators and two judges whose errors share their
hard questions. The true difference is that of 8,000 questions. Printed are the differences and the
share of studies whose interval holds them, which should be 0.95.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

import judgebench as jb
from judgebench.alignment.raters import TESTED
from judgebench.comparison.analysis import Compared, differences
from judgebench.records import Results

KEYS = (
    "accuracy", "kappa", "kappa_quadratic", "severity_error", "mae",
    "severe_recall", "alpha",
)  # fmt: skip
LABELS = np.array(["none", "some", "harm"])
# Of two annotators, then of two judges: errors on easy and on hard questions.
ERRORS = {"ann": (0.05, 0.15), "bob": (0.05, 0.15), "a": (0.1, 0.7), "b": (0.2, 0.6)}


def study(questions: int, seed: int) -> jb.Study:
    """Draw a study."""
    rng, n = np.random.default_rng(seed), 2 * questions
    true = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    hard = np.repeat(rng.random(questions) < 0.3, 2)
    tables = {}
    for name, (on_easy, on_hard) in ERRORS.items():
        is_wrong = rng.random(n) < np.where(hard, on_hard, on_easy)
        label = LABELS[np.where(is_wrong, rng.integers(0, 3, n), true)]
        rows = {"item_id": np.arange(n), "group": np.arange(n) // 2, "harm": label}
        who = "judge" if name in "ab" else "annotator"
        tables[name] = pd.DataFrame(rows).assign(**{who: name})
    return jb.study(
        pd.concat([tables["ann"], tables["bob"]]),
        pd.concat([tables["a"], tables["b"]]).drop(columns="group"),
        rubric=jb.Rubric.from_labels({"harm": [*LABELS]}),
    )


def measured(questions: int, seed: int) -> Results:
    """Return the differences of b and a."""
    of = study(questions, seed)
    pair = tuple(judge for judge in of.judges if judge.name in ("a", "b"))
    return Results(tuple(differences(Compared(of, pair, of.rubric.metrics[0]))))


def main() -> None:
    """Print a line for each statistic and size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=300, help="studies of each size")
    parser.add_argument("--quick", action="store_true", help="5 studies of each size")
    asked = parser.parse_args()
    studies = 5 if asked.quick else asked.studies
    warnings.simplefilter("ignore")
    whole = measured(8000, 0)
    for questions, keys in ((60, KEYS), (20, TESTED)):
        drawn = [measured(questions, seed) for seed in range(1, studies + 1)]
        for key in keys:
            true = whole.find(key, "difference", failures="left_out").value
            found = [one.find(key, "difference", failures="left_out") for one in drawn]
            held = np.mean([e.low is not None and e.low <= true <= e.high for e in found])
            print(f"{questions} questions  {key:24} {true:+.3f} {held:.3f}", flush=True)


if __name__ == "__main__":
    main()
