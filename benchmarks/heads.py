"""How long does `judgebench tune` take with a head on words, whole examination included?

Answers are made up: 100 words each, four to a question, labelled by three annotators on an ordinal
metric of three labels and one of two. Judges learn in five folds, from 200 and 800 labels, without
one system and without folds, beside controls that are fitted in the same ways. Below stands a bare
script of scikit-learn that fits as many regressions on the same texts, each with its strength
chosen in three nested folds, and computes nothing else: no controls, intervals, tests, report.

    pip install 'judgebench-eval[tuning]'
    python benchmarks/heads.py
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

FOLDS, NESTED, STRENGTHS = 5, 3, [0.01, 0.1, 0.3, 1.0, 3.0, 10.0]
LABELS = {"safety": ["Safe", "Unsure", "Unsafe"], "kind": ["No", "Yes"]}
CUES = (("rest", "water"), ("visit", "today"), ("double", "never"))
LIMIT_S = 180


def make(folder: Path, n: int) -> None:
    """Write answers, labels, a rubric and a bench.yaml."""
    rng = random.Random(0)
    words = [f"w{i:04d}" for i in range(8000)]
    often = [1 / (i + 10) for i in range(len(words))]

    def text(length: int) -> list[str]:
        return rng.choices(words, often, k=length)

    answers, labels = [], []
    for number in range(n):
        severity = min(2, int(rng.random() ** 1.6 * 3))
        if number % 4 == 0:
            question = " ".join(text(12))
        said = text(100) + [cue for cue in CUES[severity] * 3 if rng.random() < 0.25]
        rng.shuffle(said)
        answers.append((f"i{number}", question, " ".join(said), f"system-{number % 4}"))
        for who in ("ann", "ben", "cem"):
            seen = severity if rng.random() < 0.8 else rng.randrange(3)
            labels.append((f"i{number}", who, LABELS["safety"][seen], LABELS["kind"][seen > 0]))
    for name, header, rows in (
        ("answers", "item_id,question,text,system", answers),
        ("labels", "item_id,annotator,safety,kind", labels),
    ):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header.split(","), *rows])
    metrics = [
        {"id": name, "title": name.title(), "question": "How is it?", "kind": "ordinal",
         "labels": [{"text": text} for text in texts]}
        for name, texts in LABELS.items()
    ]  # fmt: skip
    rubric = {"name": "made", "version": "1", "instructions": "Judge it.", "metrics": metrics}
    tuning = {"folds": FOLDS, "curve": [n // 10, 2 * n // 5], "holdout_systems": ["system-0"]}
    bench = {
        "name": "heads", "rubric": "rubric.yaml", "data": ["answers.csv", "labels.csv"],
        "judges": [{"name": "words", "learn": "head", "encoder": "words"}], "tuning": tuning,
    }  # fmt: skip
    (folder / "rubric.yaml").write_text(json.dumps(rubric))
    (folder / "bench.yaml").write_text(json.dumps(bench))


def bare(folder: Path) -> None:
    """The same regressions by scikit-learn alone: a score for each metric and way to learn."""
    import pandas as pd
    import scipy.sparse
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import GroupKFold

    answers, labels = (pd.read_csv(folder / f"{name}.csv") for name in ("answers", "labels"))
    group = answers.question.astype("category").cat.codes.to_numpy()
    given = labels.set_index("item_id")
    for metric, texts in LABELS.items():
        codes = given[metric].map(texts.index).groupby(level=0, sort=False).median()
        y = codes.to_numpy().astype(int)
        for way, train, test in ways(answers, group):
            fields = []
            for field in ("question", "text"):
                vectors = TfidfVectorizer(ngram_range=(1, 2)).fit(answers[field].iloc[train])
                fields.append(vectors.transform(answers[field]))
            X = scipy.sparse.hstack(fields, "csr")
            nested = list(GroupKFold(NESTED).split(train, groups=group[train]))
            model = LogisticRegressionCV(
                Cs=STRENGTHS, cv=nested, scoring="neg_log_loss", max_iter=5_000,
                use_legacy_attributes=False, l1_ratios=(0,),
            )  # fmt: skip
            right = model.fit(X[train], y[train]).predict(X[test]) == y[test]
            print(metric, way, f"{right.mean():.3f}")


def ways(answers: object, group: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The rows learnt from and judged, for each way and fold."""
    from sklearn.model_selection import GroupKFold

    n, held_out = len(group), np.arange(len(group)) % 4 == 0
    yield "in-sample", np.arange(n), np.arange(n)
    for train, test in GroupKFold(FOLDS).split(group, groups=group):
        yield "out of fold", train, test
        for few in (n // 10, 2 * n // 5):
            yield f"n{few}", np.sort(np.random.default_rng(0).permutation(train)[:few]), test
        yield "without-system-0", train[~held_out[train]], test[held_out[test]]


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds and CPU seconds of a process."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=environment)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="200 answers")
    parser.add_argument("--answers", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not find_spec("sklearn"):
        print("left out: needs scikit-learn (pip install 'judgebench-eval[tuning]')")
        return
    if given.bare:
        bare(given.bare)
        return
    n = 200 if given.quick else given.answers
    with TemporaryDirectory() as place:
        folder = Path(place)
        make(folder, n)
        run = ["--run", str(folder / "run"), "--quiet"]
        ways = {
            "judgebench tune": ["-m", "judgebench", "tune", str(folder / "bench.yaml"), *run],
            "scikit-learn alone": [__file__, "--bare", str(folder)],
        }
        print(f"{n:,} answers, {FOLDS} folds; limit of tune at 2,000 answers: {LIMIT_S} s")
        print(f"{'':20} {'seconds':>8} {'CPU s':>8}")
        for name, words in ways.items():
            seconds, cpu = timed([sys.executable, *words])
            print(f"{name:20} {seconds:8.1f} {cpu:8.1f}", flush=True)


if __name__ == "__main__":
    main()
