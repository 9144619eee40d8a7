"""The page on which an expert ranks arguments; `web_page` tells how text is kept from running.

The script writes the same table as `sheet.write_sheets` does, with the ranks filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from judgebench.data.cells import mark_forbidden
from judgebench.data.spreadsheet import quoted
from judgebench.records import content_hash
from judgebench.web.page import json_for_page, page_environment, page_script, script_hash

_HERE = Path(__file__).parent

Row = Mapping[str, str]  # column -> text


@dataclass(frozen=True)
class SheetPage:
    """What the page shows: the rows of each item, as they stand in the table of that file name."""

    expert: str
    table: str
    columns: Sequence[str]
    items: Sequence[Sequence[Row]]


def to_html(page: SheetPage) -> str:
    """The whole page."""
    script = page_script(_HERE / "sheet_page.js")
    items = [_item(rows, page.columns) for rows in page.items]
    data = {
        "store": f"judgebench ranks of {page.expert} {content_hash(items)}",
        "table": page.table,
        "columns": page.columns,
        "items": items,
    }
    return (
        page_environment(_HERE, mark_forbidden)
        .get_template("sheet_page.html.jinja")
        .render(
            expert=page.expert,
            table=page.table,
            data=json_for_page(data),
            style=Markup((_HERE / "sheet_page.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=script_hash(script),
        )
    )


def _item(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, Any]:
    first = rows[0]
    return {
        "task": first["task"],
        "question": first["question"],
        "answer": first["right_answer"],
        "document": first["document"],
        "arguments": [
            {
                "letter": row["letter"],
                "text": row["text"],
                "cells": [quoted(row[column]) for column in columns],
            }
            for row in rows
        ],
    }
