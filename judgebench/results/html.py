"""One self-contained page: no request leaves it, and all text in it is shown, never run.

Four walls stand between an answer's text and the page: Jinja escapes every value, items are JSON
that a script shows with `textContent` only, figures that somebody drew are images, in which nothing
runs, and the page's own policy lets run only the one script whose hash it names.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup, escape

from judgebench.people.page import json_for_page, page_environment, page_script, script_hash
from judgebench.results.figure import described
from judgebench.results.items import HEADINGS, Items, Passage
from judgebench.results.part import (
    MISSES,
    UNDERSTOOD,
    Block,
    Card,
    Intervals,
    Part,
    Standing,
    blocks_of,
    caveats,
    margin_words,
    one_screen,
    report_title,
    urgent,
)
from judgebench.results.strip import key_mark, lane_strip, limits_of, standing_strip
from judgebench.results.tables import Cell, Table, anchor, footnotes
from judgebench.words import counted, listed, printable

_HERE = Path(__file__).parent
QUESTIONS: Mapping[str, str] = {
    "sure": "How sure is this?", "people": "Who are the annotators?",
    "wrong": "Where does it go wrong?", "what_if": "What if?",
}  # fmt: skip
_MOST_NAMED = 3  # judges in a title
_CODE = re.compile(r"`([^`]+)`")


def to_html(parts: Sequence[Part], name: str, images: Sequence[bytes] = ()) -> str:
    """The whole page; `images` are the SVG of every figure, in the order of `figures_of`, where
    they are to stand in it."""
    script = page_script(_HERE / "page.js")
    sources = (f"data:image/svg+xml;base64,{b64encode(image).decode()}" for image in images)
    sections = [
        (block, _section(block, sources))
        for lead in (True, False)
        for block in blocks_of(parts, lead=lead)
    ]
    shown = [(block, section) for block, section in sections if _there(section)]
    items = next((part.items() for part in parts if part.items), None)
    standings = [standing for part in parts for standing in part.standings]
    said = blocks_of([part for part in parts if part.standings], lead=True)  # by the standings
    open_at_once = [] if standings else _opened(parts)
    ahead = blocks_of([part for part in parts if part.on_page_alone], lead=True)
    told = (*open_at_once, *said, *ahead)
    warned = caveats(parts, read=False)
    return _environment().get_template("page.html.jinja").render(
        title=_title(parts, name, standings),
        facts=[fact for part in parts for fact in part.facts],
        answers=[part.answer for part in parts if part.answer],
        groups=list(_groups(standings, items)), within=margin_words(standings),
        looks=list(dict.fromkeys(one.look for one in standings)),
        level=next((f"{100 * one.accuracy.level:g}" for one in standings), ""),
        points=any(" point" in one.why for one in standings),
        urgent=[note.partition(": ")[::2] for note in urgent(parts)], notes=warned,
        read=[n.removeprefix(UNDERSTOOD) for n in caveats(parts) if n not in warned],
        ahead=[section for block, section in shown if block in ahead],
        first=[section for block, section in shown if block in open_at_once],
        questions=_questions(parts, [x for x in shown if x[0] not in told]),
        items=json_for_page(items.data()) if items else None,
        n_items=len(items.ids) if items else 0,
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script), script_hash=script_hash(script),
    )  # fmt: skip


def fragment(part: Part) -> str:
    """The first thing that a part shows on a screen, its urgent caveats, and folded all others and
    how tables were read, as a piece of a page; for notebooks."""
    plain: Any = _environment().get_template("tables.html.jinja").module
    pressing = urgent([part])
    shown = (
        *sorted(one_screen([part]), key=lambda block: not block.standings),
        Block(text=tuple(pressing)),
    )
    return "".join(
        "".join(plain.plain(table) for table in (*_outcomes(block), *block.tables))
        + _paragraphs(block.text)
        for block in shown
    ) + _folded([note for note in caveats([part]) if note not in pressing])


def _paragraphs(text: Iterable[str]) -> str:
    return "".join(Markup("<p>{}</p>").format(printable(said)) for said in text)


def _folded(notes: Sequence[str]) -> str:
    """Caveats, and then how tables were read, to be opened; empty where there is neither."""
    read = [note for note in notes if note.startswith(UNDERSTOOD)]
    n = len(notes) - len(read)
    heading = [*[counted(n, "caveat")][:n], *["how the tables were read"][: len(read)]]
    summary = ", ".join(heading)
    inside = _paragraphs(sorted(notes, key=lambda note: note in read))
    return f"<details><summary>{summary}</summary>{inside}</details>" if notes else ""


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


@cache
def _environment() -> Environment:
    environment = page_environment(_HERE, printable)
    environment.filters |= {
        "breakable": _breakable, "sentences": re.compile(r"(?<=[.:])(?= )").split,
        "minus": lambda number: number.replace("-", "−"),
        "code": lambda text: Markup(_CODE.sub(r"<code>\1</code>", str(escape(printable(text))))),
    }  # fmt: skip
    environment.globals["footnotes"] = footnotes
    environment.globals |= {"lane_strip": lane_strip, "key_mark": key_mark, "anchor": anchor}
    return environment


def _breakable(text: str) -> Markup:
    """Escaped text that may break after the signs inside a model's name."""
    return Markup("<wbr>").join(re.split(r"(?<=[/:_.@-])(?=\w)", printable(text)))


def _title(parts: Sequence[Part], name: str, standings: Sequence[Standing]) -> str:
    """`Can gpt-4 or string-match replace the annotators of “xstest”?`"""
    judges = list(dict.fromkeys(standing.judge for standing in standings))
    judges = ["the judge" if name.lower() == "judge" else name for name in judges]
    if not judges or parts[0].on_page_alone:
        return report_title(parts, name)
    who = listed(judges).replace(" and ", " or ") if len(judges) <= _MOST_NAMED else ""
    of = f" of “{name}”" if name else ""
    return f"Can {who or f'any of {len(judges)} judges'} replace the annotators{of}?"


def _groups(standings: Sequence[Standing], items: Items | None) -> Iterator[tuple[str, list[Any]]]:
    """Each metric, and of each of its judges the standing, its plot, and its next step in three
    pieces, of which the second is a link to the items on which the judge is farthest off."""
    there = items is not None
    for metric, same in groupby(standings, lambda standing: standing.metric):
        yield metric, [(x, standing_strip(x), _next_step(x, there), _misses(x)) for x in same]


def _misses(standing: Standing) -> str:
    return f"#misses-{quote(standing.metric, safe='')}={quote(standing.judge, safe='')}"


def _next_step(standing: Standing, with_items: bool) -> tuple[str, str, str]:
    """The words before the link, those of the link, and those after it."""
    before, link, after = standing.next.partition(MISSES)
    if not with_items:
        return standing.next, "", ""
    return (before, link, after) if link else (f"{before} ", f"See its {MISSES}", ".")


def _opened(parts: Sequence[Part]) -> list[Block]:
    """The blocks that a page without decisions shows at once."""
    return [*blocks_of(parts, lead=True)] or [b for b in blocks_of(parts[:1]) if b.heading][:1]


def _questions(
    parts: Sequence[Part], shown: Sequence[tuple[Block, dict[str, Any]]]
) -> Iterator[tuple[str, str, list[list[dict[str, Any]]]]]:
    """Anchor, heading and folds of each question that a reader asks; then of each other part."""
    for asks, heading in QUESTIONS.items():
        yield (
            f"q-{asks}",
            heading,
            _folds(section for block, section in shown if block.asks == asks),
        )
    for part in parts:
        own = [b for b in blocks_of([part]) if not b.asks]
        heading = part.title[:1].upper() + part.title[1:]
        yield part.key, heading, _folds(section for block, section in shown if block in own)


def _folds(sections: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Sections that open together: one with a heading, and what belongs to it."""
    found: list[list[dict[str, Any]]] = []
    for section in sections:
        block = section["block"]
        if not found or (block.heading and not block.folded):
            found.append([])
        found[-1].append(section)
    return found


def _section(block: Block, sources: Iterator[str]) -> dict[str, Any]:
    """The content of a block for the template. Intervals need no image: they are drawn as rows of a
    table."""
    drawn = [(figure, next(sources, "")) for figure in block.figures]
    return {
        "block": block,
        "figures": [(described(figure), source) for figure, source in drawn if source],
        "intervals": [
            (figure, limits_of(figure))
            for figure, source in drawn
            if isinstance(figure, Intervals) and not source
        ],
        "n_cards": len(block.cards),
        "cards": json_for_page(_cards(block.cards)) if block.cards else None,
    }


def _there(section: dict[str, Any]) -> bool:
    """True where more is left than figures that are not drawn."""
    block: Block = section["block"]
    return any((block.text, block.tables, block.cards, section["figures"], section["intervals"]))


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
