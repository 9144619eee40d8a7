"""Interim analyses: a judge's decision while labels come in, as often as was declared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from judgebench.annotation.export import key_of, rows_of
from judgebench.annotation.lead import Collected
from judgebench.annotation.store import Store
from judgebench.errors import Problem, SetupError
from judgebench.text import counted


class InterimAnalysis(NamedTuple):
    """One that is due: the rows of the labels on complete items, the number of these, and the
    shares of all items that were complete at each so far, this one last."""

    rows: Sequence[dict[str, str]]
    n_items: int
    shares: Sequence[float]


def due_look(store: Store) -> InterimAnalysis:
    """The interim analysis that may be made now. Raises SetupError where none may: each declared
    number of complete items allows one, and then the end of the labels the last."""
    collected = Collected(store)
    declared, made = collected.meta.get("looks"), collected.meta.get("looks_made", [])
    if not declared:
        message = "No interim analysis was planned: decide when all labels are in, or say `looks`"
        raise SetupError(Problem(f"{message} in annotate.yaml of the next study"))
    main = collected.in_round("main")
    complete, last = main & collected.complete, max((n for n, _ in made), default=0)
    left = (
        name for own in collected.states.values() for name, state in own.items()
        if name in main and state not in ("done", "skipped")
    )  # fmt: skip
    due = next((n for n in declared if n > last), len(main))
    if len(complete) <= last or (len(complete) < due and any(left)):
        following = "the last one was made" if last == len(main) else f"the next one is at {due:,}"
        size = f"{len(complete):,} of {counted(len(main), 'item is', 'items are')} complete"
        raise SetupError(Problem(f"No interim analysis is due: {size}; {following}"))
    shares = [*(share for _, share in made), len(complete) / len(main)]
    return InterimAnalysis(labels_on(store, complete), len(complete), shares)


def labels_on(store: Store, screens: Collection[str]) -> list[dict[str, str]]:
    """The labels on these screens as rows of a table, under the names of the data; items of one
    question are one `group`."""
    key = key_of(store)
    groups = {
        target.columns["item_id"]: store.screens[screen].screen.group
        for screen in screens
        for target in key.screens[screen].values()
    }
    return [{**row, "group": groups[row["item_id"]]} for row in rows_of(store, key, screens)]


def keep_look(store: Store, look: InterimAnalysis) -> None:
    """Note that an interim analysis was made; no verdict and no decision is kept."""
    store.set(looks_made=[*store.meta.get("looks_made", ()), (look.n_items, look.shares[-1])])
