"""The presentation of one analysis, in the same way in every format: blocks of text, tables and
figures.

An analysis makes a `Part`; the writers beside it write parts as text on a terminal, HTML, Markdown
and LaTeX and draw their figures. No writer knows an analysis, and no analysis knows a format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judgebench.records import Estimate
from judgebench.results.items import Items, Passage
from judgebench.results.rows import Results
from judgebench.results.tables import Look, Table, in_per_cent
from judgebench.words import counted, percent

# What a block answers, in the order in which a reader asks it; empty: what the part is about.
Asks = Literal["", "sure", "people", "wrong", "what_if"]
MISSES = "worst misses"  # in a next step: the items on which a judge is farthest off
FEW_OUTCOMES = 4  # so many on a screen, and each stands with its next step
UNDERSTOOD = "Understood: "  # before a note on how a table was read, which is no caveat
LaneKind = Literal["judge", "control", "human"]
# By name, what makes the rows of a file; the first row names the columns.
Files = Mapping[str, Callable[[], Iterator[Sequence[str]]]]


@dataclass(frozen=True, slots=True)
class Lane:
    """One interval among several on a line of `Intervals`."""

    name: str
    kind: LaneKind
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Intervals:
    """Points with their intervals: a band for each line, a lane for each judge, control or human.

    `bounds` are vertical lines, by what they mean; `down` is the title of the lines; with `counts`
    a figure says under each line on how many data it rests; `percent` says that values are shares.
    """

    key: str
    title: str
    lines: tuple[tuple[str, tuple[Lane, ...]], ...]  # (name of the line, its lanes)
    axis: str = ""
    bounds: Mapping[str, float] = field(default_factory=dict)
    limits: tuple[float, float] | None = None
    down: str = "Metric"
    counts: bool = True
    percent: bool = False

    def shown(self, lane: Lane) -> str:
        """The number of a lane with its interval."""
        return in_per_cent(lane.estimate) if self.percent else str(lane.estimate)


@dataclass(frozen=True, slots=True)
class Drawing:
    """Any other figure: `draw` makes a matplotlib figure with `results.figure`'s helpers."""

    key: str
    title: str
    draw: Callable[[], Any]


Figure = Intervals | Drawing


@dataclass(frozen=True, slots=True)
class Card:
    """One case to look at, such as an answer on which judge and humans differ.

    `texts` are (heading, text), `folded` those that are closed until they are opened; `grid` is a
    small table. A reader can filter by `facets`: the card is shown where any one of them has all
    that was chosen, such as {"Judge": "m", "Metric": "Tone", "Direction": "more severe"}.
    """

    title: str
    about: tuple[str, ...] = ()  # stands beside the title
    texts: tuple[tuple[str, Passage], ...] = ()
    folded: tuple[tuple[str, Passage], ...] = ()
    grid: Table | None = None
    facets: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """One judge on one metric in a line: an outcome, the shares that it is read beside, a sentence
    why and a sentence what to do next.

    `judge` and `metric` are as they are shown. `accuracy`, `humans` (one annotator against the
    others), `annotators` (each of them by name) and `baseline` are shares of answers with the
    reference label. Of a judge the `failures`, answers without a label, count as wrong; `asked`
    says of how many answers its share is, as in `48 of 500 asked`, where not of all. The decision
    allows a judge to be `margin` below the annotators; 0 where it rests on something else.
    `numbers` are those behind `why`.
    """

    judge: str
    metric: str
    outcome: str
    look: Look
    accuracy: Estimate
    failures: int
    asked: str
    humans: Estimate
    annotators: Mapping[str, Estimate]
    baseline: Estimate
    baseline_name: str
    margin: float
    why: str
    next: str
    numbers: str = ""

    @property
    def shares(self) -> str:
        """`judge 79 %  humans 96 %  best baseline 50 %`; a dash where one is undefined."""
        shown = {"judge": self.accuracy, "humans": self.humans, "best baseline": self.baseline}
        return "  ".join(f"{name} {percent(e.value):<4}" for name, e in shown.items()).rstrip()


def margin_words(standings: Sequence[Standing]) -> str:
    """`within 5 points of the annotators`, of the margins that standings have, and when one has
    none; empty without."""
    if not (points := sorted({round(100 * one.margin) for one in standings} - {0})):
        return ""
    least = f"{points[0]} to " if len(points) > 1 else ""
    some = "" if all(one.margin for one in standings) else ", where agreement decided"
    return f"within {least}{counted(points[-1], 'point')} of the annotators{some}"


@dataclass(frozen=True, slots=True)
class Block:
    """A heading with what stands under it: sentences, tables, figures, cards to browse.

    `lead` blocks stand before the caveats in every format, and the first of them in the head of a
    page; the terminal shows standings, tables and sentences of blocks that are `on_screen`; a
    `brief` tables are printed there with two digits and an interval beside each; a
    `folded` block of a page belongs to the heading before it, and `asks` says under which question
    it stands; `gist` says beside the heading, in a few words and a number, what is inside. `cards`,
    in their order, stand in the page alone; of the figures, a page shows intervals, and all become
    files where these are asked for. Tables without rows are left out, and so is a block in which
    nothing is left.
    """

    heading: str = ""
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    cards: tuple[Card, ...] = ()
    standings: tuple[Standing, ...] = ()
    lead: bool = False
    on_screen: bool = False
    folded: bool = False
    brief: bool = False
    asks: Asks = ""
    gist: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """The presentation of one analysis. `key` names it in results.csv and is its anchor in the
    page.

    `title` stands after the name of the study in the report's title: "judges against human labels".
    `notes` are the caveats; those that are `urgent` come first, and stand on any screen. `results`
    are the rows behind it; with `own_file` they also stand in a CSV file that `key` names. `facts`
    are a few words each on what was compared (answers, annotators, metrics, date), `headline` says
    in a line what was studied, and `answer` in a sentence what came out; `accuracies` are lines
    without an outcome, to plot where no standings are; `terms` are half a sentence each on what
    words of the page mean. `items` makes the list of every item.
    `screen` is what a terminal shows of it unless everything is asked for, `paper` the tables that
    a paper would show, and `files` are tables of texts beside it, each a CSV file.
    """

    key: str
    title: str
    results: Results
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    screen: tuple[Block, ...] = ()
    paper: tuple[Table, ...] = ()
    urgent: tuple[str, ...] = ()
    files: Files = field(default_factory=dict)
    own_file: bool = False
    headline: str = ""
    accuracies: tuple[Standing, ...] = ()
    answer: str = ""
    terms: tuple[str, ...] = ()
    items: Callable[[], Items] | None = None

    @property
    def standings(self) -> tuple[Standing, ...]:
        """An outcome each, by metric and then by judge."""
        return tuple(one for block in self.screen for one in block.standings)


def incomplete(part: Part, gaps: tuple[str, ...]) -> Part:
    """The part of a study with these `gaps`: under each table, first among the caveats and on the
    screen, and in a column `caveat` of the CSV files."""
    if not gaps:
        return part

    def noted(block: Block) -> Block:
        tables = (replace(table, notes=(*gaps, *table.notes)) for table in block.tables)
        return replace(block, tables=tuple(tables))

    caveat = " ".join(gaps)
    rows = (replace(row, keys={**row.keys, "caveat": caveat}) for row in part.results)
    return replace(
        part,
        results=Results(tuple(rows)),
        blocks=tuple(map(noted, part.blocks)),
        notes=(*gaps, *part.notes),
        screen=(Block(text=gaps), *map(noted, part.screen)) if part.screen else (),
        paper=noted(Block(tables=part.paper)).tables,
    )


def report_title(parts: Sequence[Part], name: str) -> str:
    """`demo: judges against human labels`; the first part says what the report is about."""
    return ": ".join(text for text in (name, parts[0].title if parts else "") if text)


def blocks_of(parts: Sequence[Part], *, lead: bool | None = None) -> list[Block]:
    """The blocks that stand before the caveats, those after them, or all in that order; without
    tables that have no rows, and without blocks in which nothing is left."""
    leading_first = sorted((b for part in parts for b in part.blocks), key=lambda b: not b.lead)
    filled = (
        replace(block, tables=tuple(table for table in block.tables if table.rows))
        for block in leading_first
        if lead in (None, block.lead)
    )
    return [b for b in filled if b.tables or b.text or b.figures or b.cards]


def one_screen(parts: Sequence[Part], tables: bool = False) -> list[Block]:
    """The blocks that a terminal shows first: where `tables` are asked for, those of a paper; the
    screens of the parts; else of the first part the tables of a paper, its lead blocks or its first
    block."""
    papers = [block for part in parts for block in _paper(part)]
    if tables and papers:
        return papers[-1:]
    screens = [block for part in parts for block in part.screen]
    if screens or not parts:
        return screens
    shown = [block for block in blocks_of(parts[:1]) if block.on_screen]
    return _paper(parts[0]) or [block for block in shown if block.lead] or shown[:1]


def _paper(part: Part) -> list[Block]:
    """The tables of a paper as a block, where there are any."""
    tables = tuple(table for table in part.paper if table.rows)
    return [Block(tables=tables, brief=True)] if tables else []


def caveats(parts: Sequence[Part], *, read: bool = True) -> list[str]:
    """The caveats of all parts, each once; with `read` what was understood of tables, too."""
    notes = dict.fromkeys((*urgent(parts), *(note for part in parts for note in part.notes)))
    return [note for note in notes if read or not note.startswith(UNDERSTOOD)]


def urgent(parts: Sequence[Part]) -> list[str]:
    """The caveats that stand on any screen, each once."""
    return list(dict.fromkeys(note for part in parts for note in part.urgent))


def figures_of(parts: Sequence[Part]) -> Iterator[Figure]:
    """Every figure, in the order in which they stand."""
    for block in blocks_of(parts):
        yield from block.figures
