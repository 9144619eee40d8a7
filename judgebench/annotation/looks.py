"""Interim analyses: a judge's decision while labels come in, as often as was declared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from judgebench.annotation.export import key_of, rows_of
from judgebench.annotation.store import Store, now
from judgebench.errors import Problem, SetupError
from judgebench.text import counted

if TYPE_CHECKING:
    from judgebench.annotation.lead import Collected


class InterimAnalysis(NamedTuple):
    """One that is due: at these complete screens of so many, and the shares that were complete at
    each so far, this one last."""

    screens: Collection[str]
    of: int
    shares: Sequence[float]


def _is_ended(collected: Collected) -> bool:
    """True where no item of the main round is left to label."""
    main = collected.in_round("main")
    every = (item for own in collected.states.values() for item in own.items())
    return bool(main) and all(s in ("done", "skipped") for name, s in every if name in main)


def _not_due(collected: Collected) -> str:
    """A sentence on when the next interim analysis is; none where it is due."""
    size = collected.size("main")
    complete, of = size["complete"], size["of"]
    last, is_ended = max((x["items"] for x in collected.looks), default=0), _is_ended(collected)
    left = [n for n in collected.meta["looks"] if last < n < of]
    if complete > last and (is_ended or (left and left[0] <= complete)):
        return ""
    following = (
        f"the last one was at {last:,}" if is_ended else f"the next one is at {(left or [of])[0]:,}"
    )
    return (
        f"No interim analysis is due: {complete:,} of {counted(of, 'item is', 'items are')} "
        f"complete; {following}"
    )


def next_decision(collected: Collected) -> str:
    """The next step towards a decision; none where there is nothing to do but to label."""
    is_ended, study = _is_ended(collected), quote(str(collected.path))
    if not collected.meta.get("looks"):
        is_ranking = collected.meta.get("task") == "ranking"
        command = f"annotate export {study}" if is_ranking else f"decide {study} VERDICTS"
        return f"All labels are in. Next: judgebench {command}" if is_ended else ""
    not_due = _not_due(collected)
    if not_due and is_ended:
        return "The last interim analysis is made."
    return (
        f"{not_due or 'An interim analysis is due'}. It is made with “judgebench annotate look”. "
        "Until then, nothing more about the judge is shown."
    )


def due_look(collected: Collected) -> InterimAnalysis:
    """The interim analysis that may be made now. Raises SetupError where none may: each declared
    number of complete items allows one, and then the end of the labels the last."""
    if collected.meta["task"] == "ranking":
        raise SetupError(Problem("does not apply to the task ranking", field="look"))
    if not collected.meta.get("looks"):
        message = "No interim analysis was planned; `looks` in annotate.yaml plans some"
        raise SetupError(Problem(f"{message}. {next_decision(collected)}"))
    if not_due := _not_due(collected):
        raise SetupError(Problem(not_due))
    main = collected.in_round("main")
    complete = main & collected.complete
    shares = [*(look["share"] for look in collected.looks), len(complete) / len(main)]
    return InterimAnalysis(complete, len(main), shares)


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


def keep_look(store: Store, look: InterimAnalysis, decided: Any) -> Sequence[str]:
    """Keeps the decisions of a look, and no verdict, beside the labels. Returns them in words."""
    titles, n = decided.titles, len(look.screens)
    sentences = [
        f"Interim analysis {len(look.shares)}, at {n:,} of {look.of:,} items, with intervals of "
        f"{100 * decided.rule.level:.4g} %.",
        *(f"{d.judge}: {d.shown} for {titles[d.metric]}. {d.reason}" for d in decided.decisions),
    ]
    found = {"items": n, "share": look.shares[-1], "level": decided.rule.level, "said": sentences}
    store.set(looks_made=[*store.meta.get("looks_made", ()), {**found, "at": now()}])
    return sentences
