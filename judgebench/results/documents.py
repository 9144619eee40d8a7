"""How a report came to be: when, with what, from which files, and by which command."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup, escape

from judgebench.data.formats import is_run, to_csv
from judgebench.files import disk_errors, write_atomically
from judgebench.people.page import json_for_page, page_environment, page_script, script_hash
from judgebench.records import Results
from judgebench.results.blocks import (
    HEADINGS,
    MISSES,
    STRESSED,
    UNDERSTOOD,
    Block,
    Card,
    DecisionSummary,
    Intervals,
    Mark,
    ReportSection,
    Texts,
    blocks_of,
    caveats,
    figures_of,
    margin_words,
    one_screen,
    report_title,
    urgent,
)
from judgebench.results.figures import annotator_dots, drawn, limits_of, numbers_below
from judgebench.results.latex import to_latex
from judgebench.results.tables import Cell, Table, footnotes, in_per_cent
from judgebench.text import counted, listed, percent, printable
from judgebench.version import VERSION

# The command line that runs, as it was given; empty in Python, where no line repeats a report.
COMMAND: ContextVar[str] = ContextVar("command", default="")
_DIGITS = 12  # of a hash that are shown


@dataclass(frozen=True, slots=True)
class Provenance:
    """The day, the SHA-256 of each file that a study was read from, by name (empty of a data
    frame), and the command, empty where there was none.

    >>> Provenance("2026-11-29", {"labels.csv": "ab" * 32, "verdicts": ""}).files
    ['labels.csv (SHA-256 abababababab…)', 'verdicts (a DataFrame, which has no hash)']
    """

    day: str
    sources: Mapping[str, str]
    command: str = ""
    version: str = VERSION

    @property
    def files(self) -> list[str]:
        """Each source with the beginning of its hash."""
        return [
            f"{name} (SHA-256 {digest[:_DIGITS]}…)"
            if digest
            else f"{name} (a DataFrame, which has no hash)"
            for name, digest in self.sources.items()
        ]


# A backslash before a bar would end a cell in some readers, so it is written as an entity.
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "&#92;"} | {
    c: f"\\{c}" for c in "`*_[]|~$#@"
}
_LIST_OR_RULE = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")


def to_markdown(parts: Sequence[ReportSection], name: str) -> str:
    """The whole report: lead blocks, caveats, all other blocks."""
    facts = Block(text=tuple(fact for part in parts for fact in part.facts))
    notes = Block("Caveats", tuple(caveats(parts)))
    blocks = (facts, *blocks_of(parts, lead=True), notes, *blocks_of(parts, lead=False))
    lines = (line for block in blocks for line in _block_lines(block))
    return "\n".join((f"# {escape_markdown(report_title(parts, name))}", "", *lines))


def _block_lines(block: Block) -> Iterator[str]:
    if block.heading and (block.text or block.tables):
        yield from (f"## {escape_markdown(block.heading)}", "")
    if block.text:
        yield from (*bullets(block.text), "")
    for table in block.tables:
        yield from (*table_lines(table), "")


def escape_markdown(text: str) -> str:
    """`text` on one line, as Markdown that shows it as it is."""
    return "".join(_ESCAPED.get(c, c) for c in " ".join(printable(text).split()))


def _sentence(text: str) -> str:
    """Escaped text that begins a line, where a number or a dash would begin a list."""
    return _LIST_OR_RULE.sub(r"\1\\", escape_markdown(text))


def bullets(sentences: Iterable[str]) -> list[str]:
    """A list with one sentence per line."""
    return [f"- {_sentence(sentence)}" for sentence in sentences]


def table_lines(table: Table) -> Iterator[str]:
    """A heading, the table, and under it what its numbers rest on."""
    notes = footnotes(table)
    yield f"### {escape_markdown(table.title)}"
    yield ""
    yield _row(escape_markdown(column) for column in table.columns)
    yield _row("---" if i < table.stubs else "---:" for i in range(len(table.columns)))
    for row in table.rows:
        yield _row(_cell(cell, notes.mark(cell)) for cell in row)
    yield ""
    yield from (f"{_sentence(sentence)}  " for sentence in notes.sentences(table))
    yield from (
        f"<sup>{mark}</sup> {escape_markdown(text)}  " for text, mark in notes.marks.items()
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell, mark: str) -> str:
    shown = cell.value if cell.estimate else escape_markdown(cell.text)
    if cell.best and shown:
        shown = f"**{shown}**"
    if cell.interval:
        shown += f" {cell.interval}"
    return shown + (f"<sup>{mark}</sup>" if mark else "")


_HERE = Path(__file__).parent
QUESTIONS: Mapping[str, str] = {
    "sure": "How sure is this?", "people": "Who are the annotators?",
    "wrong": "Where does it go wrong?", "what_if": "What if?",
}  # fmt: skip
_MAX_NAMED = 3  # judges in a title
_CODE = re.compile(r"`([^`]+)`")


def to_html(parts: Sequence[ReportSection], name: str, made: Provenance | None = None) -> str:
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


def fragment(part: ReportSection) -> str:
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
    environment.globals |= {"footnotes": footnotes, "MISSES": MISSES, "STRESSED": STRESSED}
    return environment


def _breakable(text: str) -> Markup:
    """Escaped text that may break after the signs inside a model's name."""
    return Markup("<wbr>").join(re.split(r"(?<=[/:_.@-])(?=\w)", printable(text)))


def _title(parts: Sequence[ReportSection], name: str, standings: Sequence[DecisionSummary]) -> str:
    """`Can gpt-4 or string-match replace the annotators of “xstest”?`"""
    judges = list(dict.fromkeys(standing.judge for standing in standings))
    if not judges:
        return report_title(parts, name)
    named = ["the judge" if judge.lower() == "judge" else judge for judge in judges]
    which = listed(named).replace(" and ", " or ")
    if len(judges) > _MAX_NAMED:
        which = f"any of {len(judges)} judges"
    return f"Can {which} replace the annotators{f' of “{name}”' if name else ''}?"


def _misses(standing: DecisionSummary) -> str:
    """The link to the items on which a judge is farthest off."""
    return f"#misses-{quote(standing.metric, safe='')}={quote(standing.judge, safe='')}"


def _opened(parts: Sequence[ReportSection], standings: Sequence[DecisionSummary]) -> list[Block]:
    """The blocks whose content stands above the questions: standings say that of the decisions;
    others are shown at once."""
    if standings:
        return blocks_of([part for part in parts if part.standings], lead=True)
    return blocks_of(parts, lead=True) or [b for b in blocks_of(parts[:1]) if b.heading][:1]


def _questions(
    parts: Sequence[ReportSection], opened: Sequence[Block]
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


_SIZE = "report.json"  # beside the report: on how many answers it is


class Written(dict[str, Path]):
    """The path of each file of a report by its key; shown, the page and how many files there are
    beside it."""

    def __repr__(self) -> str:
        page = self["html"]
        return f"{page} and {counted(len(self) - 1, 'other file')} in {page.parent}"


def write_in_place(
    parts: Sequence[ReportSection], folder: Path, *, name: str, answers: int, figures: bool = False,
    sources: Mapping[str, str] = {},
) -> tuple[Mapping[str, Path], str]:  # fmt: skip
    """Write the report on so many answers, read from these `sources`, into `folder`
    (`write_report`). Where that holds the report of more, it goes into a folder beside it, and a
    sentence says so.

    Raises DiskFailed.
    """
    with disk_errors(folder):
        place, notice, there = folder, "", _answers_of(folder)
        if there > answers:
            named = folder if folder.name not in ("", "..") else folder.resolve()
            place = named.with_name(f"{named.name}-{answers}-answers")
            notice = (
                f"{folder} holds the report of {there:,} answers and was left as it is: this one, "
                f"of {answers:,}, is in {place}"
            )
        place.mkdir(parents=True, exist_ok=True)
        write_atomically(place / _SIZE, json.dumps({"answers": answers}).encode())
        made = Provenance(date.today().isoformat(), sources, COMMAND.get())
        return write_report(parts, place, name=name, figures=figures, made=made), notice


def _answers_of(folder: Path) -> int:
    """The number of answers that the report in that folder is on; 0 where none says so."""
    try:
        return int(json.loads((folder / _SIZE).read_bytes())["answers"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def write_report(
    parts: Sequence[ReportSection], folder: Path, *, name: str = "", figures: bool = False,
    made: Provenance | None = None,
) -> Written:  # fmt: skip
    """Write every file of the report into `folder` and return their paths.

    The keys are `html`, `markdown`, and of all others the path inside `folder`, such as
    `results.csv`, `latex/appendix.tex` or, with `figures`, `plots/label_distribution.png`. A file
    is the old one or the new one, never half of either.
    """
    written = Written()
    for key, inside, content in _files(parts, name, figures, made):
        path = folder / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        written[key] = path
    return written


def _files(
    parts: Sequence[ReportSection], name: str, figures: bool, made: Provenance | None
) -> Iterator[tuple[str, str, bytes]]:
    """Key, path inside the folder and content of each file."""
    yield "results.csv", "results.csv", results_csv(parts).encode()
    for part in parts:
        if part.own_file:
            yield f"{part.key}.csv", f"{part.key}.csv", part_csv(part).encode()
        for file, make in part.files.items():
            rows = ([str(safe(cell)) for cell in row] for row in make())
            yield file, file, to_csv(next(rows), rows)
    yield "markdown", "tables.md", to_markdown(parts, name).encode()
    for file, text in to_latex(parts).items():
        yield f"latex/{file}", f"latex/{file}", text.encode()
    yield "html", "report.html", to_html(parts, name, made).encode()
    for stem, saved in drawn(figures_of(parts)).items() if figures else ():
        for kind, content in saved.items():
            yield f"plots/{stem}.{kind}", f"plots/{stem}.{kind}", content


def results_csv(parts: Sequence[ReportSection]) -> str:
    """The rows of all parts as one long table; `part` says whose a row is. See `part_csv`."""
    results = Results(tuple(row for part in parts for row in part.results))
    rows = ({"part": part.key, **row.plain()} for part in parts for row in part.results)
    return _csv_text(dict.fromkeys(("part", *results.columns)), rows)


def part_csv(part: ReportSection) -> str:
    """The rows of a part as the text of a CSV file, lines ended by a line feed.

    A text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a line break)
    gets a leading apostrophe. What a row lacks is an empty cell, and so is an undefined
    `value`. A label may read `None` or `NA`, which pandas reads as missing unless it is given
    `keep_default_na=False, na_values=[""]`.
    """
    return _csv_text(part.results.columns, (row.plain() for row in part.results))


def _csv_text(columns: Collection[str], rows: Iterable[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: safe(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def safe(value: Any) -> Any:
    """A text that no spreadsheet runs; other values as they are, None as an empty cell."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if is_run(text) else text
