"""Sheets of arguments, and experts who rank them; synthetic."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from judgebench.ranking.human import AskedItem, HumanRank, HumanRanks, RankedItem

SYSTEMS = ("gold", "grand-model", "tiny-model", "mid-model")
LABELS = ("supported", "refuted")


def items(n: int = 6, task: str = "claims", systems: Sequence[str] = SYSTEMS) -> list[RankedItem]:
    """`n` items with an argument of every system, none of which names it."""
    return [
        RankedItem(
            task=task,
            item_id=f"{task}-{i}",
            group=f"page-{i // 2}",
            question=f"Does remedy {i} help against a cold?",
            label_text=LABELS[i % 2],
            context=f"Trial {i}: 40 people, half of them with the remedy.",
            arguments={s: f"Remedy {i}: reason number {at}." for at, s in enumerate(systems)},
        )
        for i in range(n)
    ]


def fill(sheet: Path, rank: Callable[[dict[str, str]], str], delimiter: str = ",") -> None:
    """Give every row a rank, as a spreadsheet would save it."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    ranks = [rank(row) for row in rows]  # it may change the row
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows({**row, "rank": r} for row, r in zip(rows, ranks, strict=True))


def by_reason(row: dict[str, str]) -> str:
    """1 for the first system, 4 for the last: the number stands in the text."""
    return str(int(row["text"].rstrip(".").rsplit(" ", 1)[1]) + 1)


def ranks_of(values: np.ndarray, labels: Sequence[str] = (), task: str = "claims") -> HumanRanks:
    """(items, systems, experts) as ranks; 0 is none. Each item is a group of its own."""
    n, k, experts = values.shape
    asked = {
        (task, f"i{i}"): AskedItem(task, f"i{i}", f"i{i}", labels[i] if labels else "")
        for i in range(n)
    }
    ranks = [
        HumanRank(task, f"i{i}", f"e{e}", f"s{j}", int(values[i, j, e]))
        for i in range(n)
        for j in range(k)
        for e in range(experts)
        if values[i, j, e]
    ]
    return HumanRanks(tuple(ranks), asked)


def world(
    seed: int, n: int = 5, noise: float | None = 0.3, systems: int = 4, experts: int = 2
) -> np.ndarray:
    """Ranks (items, systems, experts) by a signal that experts share, each with `noise` of their
    own; at random where `noise` is None."""
    rng = np.random.default_rng(seed)
    shared = np.arange(systems) + rng.normal(0, 0.7, (n, systems))
    own = rng.normal(0, 1, (n, systems, experts))
    seen = own if noise is None else shared[:, :, None] + noise * own
    return 1 + seen.argsort(axis=1).argsort(axis=1)
