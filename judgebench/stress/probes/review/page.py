"""The page on which people accept or reject altered answers.

`web.page` tells how text is kept from running. The script writes the same table as
`sheet.write_review` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebench.stress.probes.altered import AlteredAnswer, Change, apply_changes, span_diff
from judgebench.web.page import fill_in_page

Piece = tuple[str, bool]  # a text, and whether it is changed
Row = Mapping[str, str]  # column -> text


@dataclass(frozen=True)
class ReviewPage:
    """What the page shows, and what it needs to write the table.

    Each item comes with its row and with the cells of that row as the table holds them. `kept` are
    the cells of rows about texts that are gone or have changed; `notices` what the set says of
    itself, such as that it is synthetic.
    """

    name: str
    table: str  # the file name
    notices: Sequence[str]
    columns: Sequence[str]
    items: Sequence[tuple[AlteredAnswer, Row, Sequence[str]]]
    kept: Sequence[Sequence[str]]


def to_html(page: ReviewPage) -> str:
    """The whole page."""
    data = {
        "name": page.name,
        "table": page.table,
        "columns": page.columns,
        "items": [_item(*item) for item in page.items],
        "kept": page.kept,
    }
    return fill_in_page(
        Path(__file__).with_name("page"),
        data,
        name=page.name,
        notices=page.notices,
        n_kept=len(page.kept),
    )


def _item(item: AlteredAnswer, row: Row, cells: Sequence[str]) -> dict[str, Any]:
    parent, text = marked(item)
    return {
        "id": row["item_id"],
        "hash": row["content_hash"],
        "answer": {key: row[key] for key in ("decision", "reviewer", "remark")},
        "cells": cells,
        "recipe": f"{item.recipe} {item.recipe_version}".strip(),
        "maker": item.made_by,
        "area": item.area,
        "question": item.parent.question,
        "parent": parent,
        "text": text,
        "false_claim": item.false_claim,
        "true_claim": item.true_claim,
        "why_plausible": item.why_plausible,
        "source": item.source,
        "must_worsen": dict(item.must_worsen),
        "demand": dict(item.demand),
        "checks": list(item.checks.items()),
    }


def marked(item: AlteredAnswer) -> tuple[list[Piece], list[Piece]]:
    """The sound and the altered text in pieces, with what differs marked.

    Marked pieces of the two stand beside each other in order; one is '' where something was left
    out or added. Pieces come from here because a browser counts characters otherwise.
    """
    old, changes = item.parent.text, item.changes
    if apply_changes(old, changes) != item.text:  # a set written by hand need not name its changes
        changes = span_diff(old, item.text)
    parent, text, end = [], [], 0
    for change in _joined(old, changes):
        same = (old[end : change.start], False)
        parent += [same, (change.old, True)]
        text += [same, (change.new, True)]
        end = change.end
    return [*parent, (old[end:], False)], [*text, (old[end:], False)]


def _joined(old: str, changes: Sequence[Change]) -> list[Change]:
    """Changes with nothing but white space between them as one, so that a phrase is one mark."""
    joined: list[Change] = []
    for change in changes:
        gap = old[joined[-1].end : change.start] if joined else "-"
        if gap.strip():
            joined.append(change)
        else:
            last = joined.pop()
            text = last.old + gap + change.old, last.new + gap + change.new
            joined.append(Change(last.start, change.end, *text))
    return joined
