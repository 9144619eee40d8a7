"""Looks at a judge's decision while labels come in: when one is due, and what is kept of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from judgebench.annotation.config import WITHOUT_RUBRIC
from judgebench.annotation.export import key_of, rows_of
from judgebench.annotation.lead import ROUNDS, Collected
from judgebench.annotation.store import Store
from judgebench.errors import Problem, SetupError
from judgebench.words import listed


class Look(NamedTuple):
    """A look that is due: at these complete screens of so many, and the shares that were complete
    at each look so far, this one last."""

    screens: Collection[str]
    of: int
    shares: Sequence[float]


def due_look(store: Store) -> Look:
    """The look that may be made now. Raises SetupError where none may: each declared number of
    complete items allows one look, and the end of the labels allows the last."""
    now = Collected(store)
    if (task := now.meta["task"]) in WITHOUT_RUBRIC:
        raise SetupError(Problem(f"does not apply to the task {task}", field="look"))
    main = now.in_round(ROUNDS[0])
    complete = main & now.complete
    last = max((look["items"] for look in store.looks), default=0)
    left = [n for n in store.meta.get("looks", ()) if last < n < len(main)]
    states = (state for own in now.states.values() for s, state in own.items() if s in main)
    ended = bool(main) and all(state in ("done", "skipped") for state in states)
    if len(complete) <= last or not (ended or (left and left[0] <= len(complete))):
        at = f"at {left[0]:,} complete items" if left else "at the end of all labels"
        next_one = "there is none after the end" if ended else f"the next one is {at}"
        past = f"the last was at {last:,}" if last else "none was made"
        now_at = f"{len(complete):,} of {len(main):,} are complete, and {past}"
        raise SetupError(Problem(f"is not due: {next_one}; {now_at}", field="look"))
    shares = [*(look["share"] for look in store.looks), len(complete) / len(main)]
    return Look(complete, len(main), shares)


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


def keep_look(store: Store, look: Look, decided: Any) -> Sequence[str]:
    """Keeps the decisions of a look, and no verdict, beside the labels. Returns them in words, and
    what data would settle each judge's metrics."""
    titles, n = decided.titles, len(look.screens)
    said = [
        f"Look {len(look.shares)}, at {n:,} of {look.of:,} items, with intervals of "
        f"{100 * decided.rule.level:.4g} %."
    ]
    plans = defaultdict[str, dict[str, list[str]]](lambda: defaultdict(list))
    for d in decided.decisions:
        said.append(f"{d.judge}: {d.outcome.value} for {titles[d.metric]}. {d.reason}")
        needed = "nothing needs to be added for"
        if d.more is not None:
            severe = f" ({d.more.severe:,} severe)" if d.more.severe else ""
            about = f"about {d.more.items or 0:,} more items{severe} settle"
            needed = "nothing settles" if d.more.items is None else about
        plans[d.judge][needed].append(titles[d.metric])
    for judge, needs in plans.items():
        clauses = (f"{needed} {listed(metrics)}" for needed, metrics in needs.items())
        said.append(f"{judge}: {'; '.join(clauses)}.")
    store.add_look(n, {"share": look.shares[-1], "level": decided.rule.level, "said": said})
    return said
