"""How often a ranking claims what is not so, and how often it finds what is: drawn rankings of four
real arguments beside four control cases, read as a report reads them.

Trainings differ by `spread` in how much each argument helps them. "Coins" are judges that score
at random, also beside humans. A claim is a sentence of the summary, for all rankers together.

    python benchmarks/rankings.py            # 400 rankings a world, minutes
    python benchmarks/rankings.py --quick    # 40 rankings
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

import numpy as np

from judgebench.ranking.rank import rank
from judgebench.ranking.rankers import RankedTask, RankerKind, RankerScores, Rankings, System, agree
from judgebench.ranking.report import ranking_sentences
from judgebench.records import Results, Row
from judgebench.stats.arrays import FloatArray

ARGUMENTS = ("gold", "m1", "m2", "m3")
CONTROLS = ("no-argument", "label-only", "noise", "passages")
SYSTEMS = (
    System("gold", "gold"), *(System(name, "model") for name in ARGUMENTS[1:]),
    *(System(name, "control") for name in CONTROLS),
)  # fmt: skip
TASK = RankedTask("t", "Task", SYSTEMS)
CLAIMS = {
    "ranks above every other argument": "a first argument", "misled by": "misled",
    "Agreement with the humans beyond": "agreement", "Disagreement": "agreement",
}  # fmt: skip


def scores(ranker: str, kind: RankerKind, values: FloatArray, **more: FloatArray) -> RankerScores:
    """One ranker's scores of all systems on as many items, each a group of its own."""
    n = len(values)
    items = tuple(f"i{i}" for i in range(n))
    names = (*ARGUMENTS, *CONTROLS)[: values.shape[1]]
    return RankerScores("t", ranker, kind, names, items, np.arange(n), values, **more)


def evaluators(
    rng: np.random.Generator, n: int, spread: float, lead: float, draws: int
) -> Iterator[RankerScores]:
    """Three evaluators that share items, and nothing else."""
    help_of = np.array([0.4 + lead, 0.4, 0.4, 0.4, -0.6, -0.6, -0.6, -0.6])
    items = rng.normal(size=(1, n, 1))
    for name in ("baseline", "expert-trained", "llm-trained"):
        good = help_of + rng.normal(0, spread, (draws, 1, 8)) + items
        good = good + rng.normal(0, 0.7, (1, n, 8)) + rng.normal(0, 0.5, (draws, n, 8))
        right = (good > 0).astype(float)
        yield scores(name, name, good.mean(axis=0), trainings=right, drawn=good)  # type: ignore[arg-type]


def coins(rng: np.random.Generator, n: int) -> Iterator[RankerScores]:
    """Three judges that score at random, and humans who rank the arguments."""
    for i in range(3):
        yield scores(f"coin-{i}", "judge", rng.random((n, 8)))
    yield scores("humans", "humans", -rng.integers(1, 6, (n, 4)).astype(float))


def said(rankers: list[RankerScores]) -> list[str]:
    """The sentences of a report on them."""
    rows: list[Row] = []
    for one in rankers:
        rows += rank(one, SYSTEMS)
        if rankers[-1].kind == "humans" and one.kind != "humans":
            rows += agree(one, rankers[-1], ARGUMENTS)
    return ranking_sentences(Rankings("r", (TASK,), Results(tuple(rows))), TASK)


def share_of(world: str, n: int, count: int, draws: int = 3, spread: float = 0.0) -> str:
    """In how many of the drawn rankings each kind of claim was made."""
    rng, found = np.random.default_rng([n, draws, int(100 * spread)]), Counter[str]()
    for _ in range(count):
        if world == "coins":
            rankers = list(coins(rng, n))
        else:
            lead = 0.8 if world == "better" else 0.0
            rankers = list(evaluators(rng, n, spread, lead, draws))
        sentences = said(rankers)
        found.update({name for words, name in CLAIMS.items() if any(words in s for s in sentences)})
        found["gold first"] += any("gold ranks above every other" in s for s in sentences)
    named = ("a first argument", "gold first", "misled", "agreement")
    cells = " | ".join(f"{100 * found[name] / count:.1f} %" for name in named)
    return f"| {world} | {n} | {draws} | {spread:g} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 40 if parser.parse_args().quick else 400
    print("| world | items | trainings | spread | first | gold first | misled | agreement |")
    print("|---|---|---|---|---|---|---|---|")
    for n in (39, 61, 147):  # as many as the paper ranked
        for spread in (0.0, 0.1, 0.3):
            print(share_of("equal", n, count, spread=spread), flush=True)
    for n in (8, 39, 147):
        print(share_of("coins", n, count), flush=True)
    for n in (39, 61, 147):
        for draws, spread in ((3, 0.0), (3, 0.1), (5, 0.1), (3, 0.3), (5, 0.3)):
            print(share_of("better", n, count, draws, spread), flush=True)


if __name__ == "__main__":
    main()
