"""One self-contained page: no request leaves it, and all text in it is shown, never run.

Four walls stand between an answer's text and the page: Jinja escapes every value, the cards are
JSON that a script shows with `textContent` only, figures are images, in which nothing runs, and
the page's own policy lets run only the one script whose hash it names.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from judgebench.people.page import json_for_page, page_environment, page_script, script_hash
from judgebench.results.figure import described
from judgebench.results.part import (
    HEADINGS,
    Block,
    Card,
    Part,
    Passage,
    blocks_of,
    caveats,
    one_screen,
    report_title,
)
from judgebench.results.tables import Cell, Table, footnotes
from judgebench.words import printable

_HERE = Path(__file__).parent


def to_html(parts: Sequence[Part], name: str, images: Sequence[bytes] = ()) -> str:
    """The whole page; `images` are the SVG of every figure, in the order of `figures_of`."""
    script = page_script(_HERE / "page.js")
    sources = (f"data:image/svg+xml;base64,{b64encode(image).decode()}" for image in images)
    leading = _sections(blocks_of(parts, lead=True), sources)
    following = [(part.key, _sections(blocks_of([part], lead=False), sources)) for part in parts]
    return _environment().get_template("page.html.jinja").render(
        title=report_title(parts, name), name=name, about=parts[0].title if parts else "",
        facts=[fact for part in parts for fact in part.facts],
        leading=leading, following=following, notes=caveats(parts),
        before_use="Read this before you rely on them" if leading else "Read this first",
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script), script_hash=script_hash(script),
    )  # fmt: skip


def fragment(part: Part) -> str:
    """The first thing that a part shows on a screen, as a piece of a page; for notebooks."""
    plain: Any = _environment().get_template("tables.html.jinja").module
    return "".join(
        "".join(plain.plain(table) for table in (*_outcomes(block), *block.tables))
        + "".join(Markup("<p>{}</p>").format(printable(said)) for said in block.text)
        for block in one_screen([part])
    )


def _outcomes(block: Block) -> Iterator[Table]:
    """The standings of a block as a table."""
    if block.standings:
        columns = ("Metric", "Judge", "Outcome", "Shares", "Why", "Next")
        rows = (
            (one.metric, one.judge, one.outcome, one.shares, one.why, one.next)
            for one in block.standings
        )
        cells = tuple(tuple(map(Cell, row)) for row in rows)
        yield Table("outcomes", "Can the judge replace the annotators?", columns, cells, stubs=2)


def _environment() -> Environment:
    environment = page_environment(_HERE, printable)
    environment.filters["breakable"] = _breakable
    environment.globals["footnotes"] = footnotes
    return environment


def _breakable(text: str) -> Markup:
    """Escaped text that may break after the signs inside a model's name."""
    return Markup("<wbr>").join(re.split(r"(?<=[/:_.@-])(?=\w)", printable(text)))


def _sections(blocks: Sequence[Block], sources: Iterator[str]) -> list[dict[str, Any]]:
    """The content of blocks for the template; figures have no source where none were drawn."""
    return [
        {
            "block": block, "number": number, "n_cards": len(block.cards),
            "figures": [(described(figure), next(sources, "")) for figure in block.figures],
            "cards": json_for_page(_cards(block.cards)) if block.cards else None,
        }
        for number, block in enumerate(blocks, start=1)
    ]  # fmt: skip


def _cards(cards: Sequence[Card]) -> dict[str, Any]:
    """The data of a list to browse: what it can be filtered by, and the cards themselves."""
    facets: dict[str, dict[str, None]] = {}
    for name, choice in (pair for card in cards for facet in card.facets for pair in facet.items()):
        facets.setdefault(name, {})[choice] = None
    choices = [[name, list(choices)] for name, choices in facets.items()]
    shown = [
        {
            "title": card.title, "about": card.about,
            "texts": [[printable(heading), _stretches(text)] for heading, text in card.texts],
            "folded": [[printable(heading), _stretches(text)] for heading, text in card.folded],
            "grid": _grid(card.grid) if card.grid else None,
            "facets": [dict(facet) for facet in card.facets],
        }
        for card in cards
    ]  # fmt: skip
    return {"facets": choices, "cards": shown}


def _stretches(text: Passage) -> list[tuple[str, str]]:
    if isinstance(text, str):
        return [("", text)]
    return [(mark, printable(said) if mark in HEADINGS else said) for mark, said in text]


def _grid(table: Table) -> dict[str, Any]:
    rows = [[[c.value, c.look, c.remark, c.best] for c in row] for row in table.rows]
    return {"columns": table.columns, "stubs": table.stubs, "rows": rows}
