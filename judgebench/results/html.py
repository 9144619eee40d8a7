"""One self-contained page: no request leaves it, and all text in it is shown, never run.

Three walls stand between an answer's text and the page: Jinja escapes every value, items are JSON
that a script shows with `textContent` only, and the page's own policy lets run only the one script
whose hash it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup, escape

from judgebench.people.page import json_for_page, page_environment, page_script, script_hash
from judgebench.results.items import HEADINGS, Mark, Texts
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
from judgebench.results.provenance import Provenance
from judgebench.results.strip import annotator_dots, limits_of, numbers_below
from judgebench.results.tables import Table, footnotes, in_per_cent
from judgebench.words import listed, percent, printable

_HERE = Path(__file__).parent
QUESTIONS: Mapping[str, str] = {
    "sure": "How sure is this?", "people": "Who are the annotators?",
    "wrong": "Where does it go wrong?", "what_if": "What if?",
}  # fmt: skip
_MAX_NAMED = 3  # judges in a title
_CODE = re.compile(r"`([^`]+)`")


def to_html(parts: Sequence[Part], name: str, made: Provenance | None = None) -> str:
    """The whole page, with how it was made at its end."""
    script = page_script(_HERE / "page.js")
    standings = [standing for part in parts for standing in part.standings]
    opened = _opened(parts, standings)
    items = next((part.items() for part in parts if part.items), None)
    notes = caveats(parts, read=False)
    return _environment().get_template("page.html.jinja").render(
        title=_title(parts, name, standings), made=made,
        parts=parts, standings=standings,
        groups=[(metric, [*same]) for metric, same in groupby(standings, lambda one: one.metric)],
        within=margin_words(standings),
        urgent=[note.partition(": ")[::2] for note in urgent(parts)], notes=notes,
        read=[n.removeprefix(UNDERSTOOD) for n in caveats(parts) if n not in notes],
        first=[] if standings else [*map(_section, opened)],
        questions=_questions(parts, opened),
        items=json_for_page(items.data()) if items else None,
        n_items=len(items.ids) if items else 0,
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script), script_hash=script_hash(script),
    )  # fmt: skip


def fragment(part: Part) -> str:
    """The first thing that a part shows on a screen, its urgent caveats, and folded all others and
    how tables were read, as a piece of a page; for notebooks."""
    pressing = urgent([part])
    others = [note for note in caveats([part]) if note not in pressing]
    return _environment().get_template("notebook.html.jinja").render(
        blocks=sorted(one_screen([part]), key=lambda block: not block.standings), urgent=pressing,
        notes=[note for note in others if not note.startswith(UNDERSTOOD)],
        read=[note for note in others if note.startswith(UNDERSTOOD)],
    )  # fmt: skip


@cache
def _environment() -> Environment:
    environment = page_environment(_HERE, printable)
    environment.filters |= {
        "breakable": _breakable, "sentences": re.compile(r"(?<=[.:])(?= )").split,
        "minus": lambda number: number.replace("-", "−"), "percent": percent, "misses": _misses,
        "code": lambda text: Markup(_CODE.sub(r"<code>\1</code>", str(escape(printable(text))))),
        "annotator_dots": annotator_dots, "numbers_below": numbers_below,
        "in_per_cent": in_per_cent, "listed": listed,
    }  # fmt: skip
    environment.globals |= {"footnotes": footnotes, "MISSES": MISSES}
    return environment


def _breakable(text: str) -> Markup:
    """Escaped text that may break after the signs inside a model's name."""
    return Markup("<wbr>").join(re.split(r"(?<=[/:_.@-])(?=\w)", printable(text)))


def _title(parts: Sequence[Part], name: str, standings: Sequence[Standing]) -> str:
    """`Can gpt-4 or string-match replace the annotators of “xstest”?`"""
    judges = list(dict.fromkeys(standing.judge for standing in standings))
    if not judges:
        return report_title(parts, name)
    named = ["the judge" if judge.lower() == "judge" else judge for judge in judges]
    which = listed(named).replace(" and ", " or ")
    if len(judges) > _MAX_NAMED:
        which = f"any of {len(judges)} judges"
    return f"Can {which} replace the annotators{f' of “{name}”' if name else ''}?"


def _misses(standing: Standing) -> str:
    """The link to the items on which a judge is farthest off."""
    return f"#misses-{quote(standing.metric, safe='')}={quote(standing.judge, safe='')}"


def _opened(parts: Sequence[Part], standings: Sequence[Standing]) -> list[Block]:
    """The blocks whose content stands above the questions: standings say that of the decisions;
    others are shown at once."""
    if standings:
        return blocks_of([part for part in parts if part.standings], lead=True)
    return blocks_of(parts, lead=True) or [b for b in blocks_of(parts[:1]) if b.heading][:1]


def _questions(
    parts: Sequence[Part], opened: Sequence[Block]
) -> list[tuple[str, str, list[list[dict[str, Any]]]]]:
    """Anchor, heading and folds of each question that a reader asks; then of each other part."""
    headings = {f"q-{asks}": heading for asks, heading in QUESTIONS.items()}
    headings |= {part.key: part.title[:1].upper() + part.title[1:] for part in parts}
    sections: dict[str, list[dict[str, Any]]] = {key: [] for key in headings}
    for part in parts:
        for block in blocks_of([part]):
            section = _section(block)
            # Figures that are files only have no place on the page.
            is_shown = block.text or block.tables or block.cards or section["intervals"]
            if is_shown and block not in opened:
                sections[f"q-{block.asks}" if block.asks else part.key].append(section)
    return [(key, heading, _folds(sections[key])) for key, heading in headings.items()]


def _folds(sections: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Sections that open together: one with a heading, and what belongs to it."""
    folds: list[list[dict[str, Any]]] = []
    for section in sections:
        block = section["block"]
        if folds and (block.folded or not block.heading):
            folds[-1].append(section)
        else:
            folds.append([section])
    return folds


def _section(block: Block) -> dict[str, Any]:
    """The content of a block for the template; of its figures the intervals, with their limits,
    which are drawn as rows of a table."""
    figures = (figure for figure in block.figures if isinstance(figure, Intervals))
    return {
        "block": block,
        "intervals": [(figure, limits_of(figure)) for figure in figures],
        "cards": json_for_page(_cards(block.cards)) if block.cards else None,
    }


def _cards(cards: Sequence[Card]) -> dict[str, Any]:
    """The data of a list to browse: what it can be filtered by, and the cards themselves."""
    choices: dict[str, dict[str, None]] = {}
    for name, choice in (pair for card in cards for facet in card.facets for pair in facet.items()):
        choices.setdefault(name, {})[choice] = None
    shown = [
        {
            "title": card.title, "about": card.about, "texts": [*_stretches(card.texts)],
            "folded": [*_stretches(card.folded)], "grid": _grid(card.grid) if card.grid else None,
            "facets": card.facets,
        }
        for card in cards
    ]  # fmt: skip
    return {"facets": [[name, [*values]] for name, values in choices.items()], "cards": shown}


def _stretches(texts: Texts) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for heading, text in texts:
        yield printable(heading), [("", text)] if isinstance(text, str) else [*map(_stretch, text)]


def _stretch(piece: tuple[Mark, str]) -> tuple[str, str]:
    mark, text = piece
    return mark, printable(text) if mark in HEADINGS else text


def _grid(table: Table) -> dict[str, Any]:
    rows = [[[c.value, c.look, c.remark, c.best] for c in row] for row in table.rows]
    return {"columns": table.columns, "stubs": table.stubs, "rows": rows}
