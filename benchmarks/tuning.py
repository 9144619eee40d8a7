"""How long do a head on words and its learning curve take, from the tables to the last verdict?

Answers of Zipf's words, a third of them with a word that makes the label, labelled by three people
who err in one of ten cases. A regression on words is fitted in five folds beside the baselines, as
`judgebench run` does it; then with everything that `judgebench tune` adds, a learning curve among
it. CPU seconds of all threads and seconds on the clock; two quiet cores are allowed 10 and 60
seconds for the first.

    pip install 'judgebench-eval[tuning]'
    python benchmarks/tuning.py            # minutes
    python benchmarks/tuning.py --quick
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import judgebench as jb

RUBRIC = """
{name: signs, version: "1", instructions: Judge the answer., metrics: [{id: sign, title: Sign,
question: Which sign does it hold?, kind: ordinal, labels: [{text: none, severity: 0}, {text: weak,
severity: 1}, {text: strong, severity: 2}]}]}
"""
LABELS = np.array(["none", "weak", "strong"])
BENCH = """
{name: signs, rubric: rubric.yaml, data: labels.csv, tuning: {folds: 5, curve: [CURVE]}, judges:
[{name: words, learn: head, encoder: words}]}
"""
# What is timed: answers, words of an answer, labels that the curve learns from.
CASES = {"short answers": (233, 15, (50, 100)), "answers": (2_000, 120, (200, 800))}


def write(folder: Path, n: int, n_words: int, curve: tuple[int, ...]) -> Path:
    """Write a benchmark of `n` answers of about so many words each."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, 20_001)
    signs, rows = rng.integers(0, 3, n), []
    for number, sign in enumerate(signs):
        words = rng.choice(len(weights), rng.poisson(n_words) + 5, p=weights / weights.sum())
        text = " ".join([f"sign{sign}", *(f"w{word}" for word in words)])
        for annotator in ("Ann", "Bob", "Cat"):
            label = sign if rng.random() < 0.9 else rng.integers(0, 3)
            item = (f"i{number}", f"Question {number // 2}?", text, f"q{number // 2}")
            rows.append((*item, annotator, LABELS[label]))
    columns = ["item_id", "question", "text", "group", "annotator", "sign"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "labels.csv", index=False)
    (folder / "rubric.yaml").write_text(RUBRIC)
    bench = folder / "bench.yaml"
    bench.write_text(BENCH.replace("CURVE", ", ".join(map(str, curve))))
    return bench


def timed(name: str, call: Callable[[], object]) -> None:
    """Print the seconds that a call takes."""
    began, cpu = time.perf_counter(), os.times()
    call()
    used = sum(os.times()[:4]) - sum(cpu[:4])
    print(f"{name:28} {used:8.1f} {time.perf_counter() - began:8.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the short answers alone")
    quick = parser.parse_args().quick
    print(f"{'':28} {'CPU s':>8} {'seconds':>8}")
    for case, (n, n_words, curve) in list(CASES.items())[: 1 if quick else None]:
        with TemporaryDirectory() as home:
            bench, run = write(Path(home), n, n_words, curve), Path(home) / "run"
            timed(f"{n:,} {case}: run", lambda b=bench, r=run: jb.run(b, r))
            timed(f"{n:,} {case}: and tune", lambda b=bench, r=run: jb.tune(b, r))


if __name__ == "__main__":
    main()
