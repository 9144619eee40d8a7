"""Does a ranking claim the same whatever the seed? Exam questions of CasiMedicos with the doctor's
explanation, its first half, and the explanation of another question.

The evaluator is a bag of words, so that nothing but the base install is needed: it weighs an option
by the words around its own words in the explanation (a conditional logit). Each of its trainings
begins elsewhere and resamples the training questions; three make one ranking.

    python benchmarks/casimedicos.py --data-folder DATA      # holds casimedicos-arg/, see tasks/
"""

from __future__ import annotations

import argparse
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from judgebench.ranking.rank import rank
from judgebench.ranking.rankers import RankedTask, RankerScores, Rankings, System
from judgebench.ranking.report import ranking_sentences
from judgebench.ranking.task import TaskInstance
from judgebench.ranking.task_file import load_task
from judgebench.records import Results
from judgebench.stats.arrays import FloatArray

SYSTEMS = (System("gold", "gold"), System("half-gold", "model"), System("shuffled", "model"))
TASK = RankedTask("casimedicos", "CasiMedicos", SYSTEMS)
WIDTH, AROUND, EPOCHS, DRAWS = 2048, 4, 15, 3


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def features(instance: TaskInstance, argument: str) -> FloatArray:
    """(options, WIDTH): the share of an option's own words that the argument has, and the words
    around them."""
    said, options = words(argument), [set(words(option)) for option in instance.options]
    found = np.zeros((len(options), WIDTH))
    for row, own in zip(found, options, strict=True):
        rare = {w for w in own if len(w) > 3 and sum(w in other for other in options) == 1}
        places = [at for at, word in enumerate(said) if word in rare]
        row[0] = len(rare & set(said)) / max(len(rare), 1)
        for at in places:
            for word in said[max(at - AROUND, 0) : at + AROUND + 1]:
                row[1 + zlib.crc32(word.encode()) % (WIDTH - 1)] += 1 / len(places)
    return found


def trained(train: Sequence[tuple[FloatArray, int]], seed: Sequence[int]) -> FloatArray:
    """Weights (WIDTH,) from one resample of the questions, in one order."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 0.01, WIDTH)
    drawn = rng.integers(len(train), size=len(train))
    for epoch in range(EPOCHS):
        for k in rng.permutation(drawn):
            x, right = train[k]
            p = chances(x, weights)
            p[right] -= 1
            weights -= 0.3 / (1 + epoch) * (p @ x + 1e-4 * weights)
    return weights


def chances(x: FloatArray, weights: FloatArray) -> FloatArray:
    e = np.exp((z := x @ weights) - z.max())
    return np.asarray(e / e.sum())


def ranked(
    train: Sequence[tuple[FloatArray, int]], test: Sequence[TaskInstance],
    x: Sequence[Sequence[FloatArray]], seed: int,
) -> tuple[list[float], list[str]]:  # fmt: skip
    """The accuracy with each system's arguments, and what a report says."""
    right = [int(i.label) - 1 for i in test]
    weights = [trained(train, (seed, draw)) for draw in range(DRAWS)]
    both = np.array([
        [[(p[at], p.argmax() == at) for p in (chances(one, w) for one in row)]
         for row, at in zip(x, right, strict=True)]
        for w in weights
    ], dtype=float)  # fmt: skip
    drawn, hits = both[..., 0], both[..., 1]
    names = tuple(s.name for s in SYSTEMS)
    scores = RankerScores(
        TASK.name, "expert-trained", "expert-trained", names, tuple(i.item_id for i in test),
        np.arange(len(test)), drawn.mean(axis=0), hits, drawn=drawn,
    )  # fmt: skip
    rows = rank(scores, SYSTEMS)
    said = ranking_sentences(Rankings("r", (TASK,), Results(tuple(rows))), TASK)
    return hits.mean(axis=(0, 1)).tolist(), said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-folder", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3, help="rankings (3)")
    parser.add_argument("--quick", action="store_true", help="one ranking")
    given = parser.parse_args()
    task = load_task("multiple-choice", data_folder=given.data_folder)
    train = [(features(i, i.argument), int(i.label) - 1) for i in task.of("train")]
    test = task.ranked
    print(f"{len(train)} training questions in all orders, {len(test)} of the test split")
    print("| seed | gold | half-gold | shuffled | what is said |\n|---|---|---|---|---|")
    for seed in range(1 if given.quick else given.seeds):
        other = np.random.default_rng(seed).integers(1, len(test))
        x = []
        for at, i in enumerate(test):
            half = i.argument.split()
            texts = (i.argument, " ".join(half[: len(half) // 2]),
                     test[(at + other) % len(test)].argument)  # fmt: skip
            x.append([features(i, text) for text in texts])
        scores, said = ranked(train, test, x, seed)
        print(f"| {seed} | " + " | ".join(f"{s:.3f}" for s in scores) + f" | {' '.join(said)} |",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
