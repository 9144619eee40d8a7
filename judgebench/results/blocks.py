"""Every item of a study with what annotators and judges say of it, to be browsed in a page.

A label is one sign of a text that has a sign for each item, so that 20,000 items by six people are
120 kB: the label's place among those of its metric, from `0` on, or one of NO_LABEL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judgebench.records import TRAINED_ON, Answer, Estimate, Part, Results, Showing, Status, Verdict
from judgebench.results.tables import CellTone, Table, in_per_cent
from judgebench.rubric import Rubric
from judgebench.text import counted, percent, printable

# What a stretch of text is: plain, deleted or inserted; or the heading of what follows it, which is
# a turn of a conversation or a column beside others.
Mark = Literal["", "del", "ins", "turn", "column"]
HEADINGS: tuple[Mark, ...] = ("turn", "column")
Passage = str | Sequence[tuple[Mark, str]]
Texts = tuple[tuple[str, Passage], ...]  # under headings
# Signs of what is no label, and the words for them. All stand before `0` in ASCII.
NO_LABEL: Mapping[str, str] = {
    " ": "", "!": "unparsed", "#": "refused", "$": "failed", "%": "skipped", "*": "no label",
    "-": "not judged", ".": TRAINED_ON, "/": "",
}  # fmt: skip
NOT_LABELLED, NOT_ABOUT = " ", "/"
SIGNS: Mapping[str, str] = {words: sign for sign, words in NO_LABEL.items() if words}
_FIRST = ord("0")


def sign(place: int) -> str:
    """The sign of the label in that place; of none where the place is negative.

    >>> sign(0), sign(2), sign(-1)
    ('0', '2', ' ')
    """
    return chr(_FIRST + place) if place >= 0 else NOT_LABELLED


@dataclass(frozen=True, slots=True)
class ItemVerdict:
    """The labels of one metric: a sign for each item in `reference` and in the text of each
    annotator and each judge. `severities` of the labels are empty where these have no order."""

    title: str
    labels: Sequence[str]
    severities: Sequence[float]
    reference: str
    annotators: Mapping[str, str]
    judges: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Items:
    """All items: their ids, the system that answered each, what was said by metric, and of each the
    texts that are shown and those that are folded."""

    ids: Sequence[str]
    systems: Sequence[str]
    said: Sequence[ItemVerdict]
    texts: Iterable[tuple[Texts, Texts]]

    def data(self) -> dict[str, Any]:
        """The data of a page, for JSON. A text that occurs several times stands there once."""
        places: dict[str, int] = {}

        def place(text: str) -> int:
            return places.setdefault(text, len(places))

        def passage(text: Passage) -> Any:
            if isinstance(text, str):
                return place(text)
            shown = ((mark, printable(x) if mark in HEADINGS else x) for mark, x in text)
            return [[mark, place(part)] for mark, part in shown]

        def texts(named: Texts) -> list[Any]:
            return [[place(printable(heading)), passage(text)] for heading, text in named]

        of_items = [(texts(shown), texts(folded)) for shown, folded in self.texts]
        return {
            "ids": self.ids, "systems": [place(printable(system)) for system in self.systems],
            "noLabel": NO_LABEL, "metrics": [*map(_metric, self.said)],
            "texts": [shown for shown, _ in of_items], "strings": list(places),
            "folded": {i: folded for i, (_, folded) in enumerate(of_items) if folded},
        }  # fmt: skip


def _metric(said: ItemVerdict) -> dict[str, Any]:
    return {
        "title": said.title, "labels": [*said.labels], "severities": [*said.severities],
        "reference": _short(said.reference), "annotators": _by_name(said.annotators),
        "judges": _by_name(said.judges),
    }  # fmt: skip


def _by_name(signs: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, _short(text)) for name, text in signs.items()]


def _short(signs: str) -> str:
    """The signs with long runs of missing labels as their number: `2(30)1`."""
    return re.sub(r" {6,}", lambda run: f"({len(run[0])})", signs)


# What a block answers, in the order in which a reader asks it; empty: what the part is about.
Asks = Literal["", "sure", "people", "wrong", "what_if"]
STRESSED = "results in the stress test"  # in a next step, where these decided
MISSES = "worst misses"  # in a next step: the items on which a judge is farthest off
FEW_OUTCOMES = 4  # so many on a screen, and each stands with its next step
UNDERSTOOD = "Understood: "  # before a note on how a table was read, which is no caveat
IntervalKind = Literal["judge", "control", "human"]
# By name, what makes the rows of a file; the first row names the columns.
Files = Mapping[str, Callable[[], Iterator[Sequence[str]]]]


@dataclass(frozen=True, slots=True)
class LabelledInterval:
    """One interval among several on a line of `Intervals`."""

    name: str
    kind: IntervalKind
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Intervals:
    """Points with their intervals: a band for each line, a lane for each judge, control or human.

    `bounds` are vertical lines, by what they mean; `down` is the title of the lines; with `counts`
    a figure says under each line on how many data it rests; `percent` says that values are shares.
    """

    key: str
    title: str
    lines: tuple[tuple[str, tuple[LabelledInterval, ...]], ...]  # (name of the line, its lanes)
    axis: str = ""
    bounds: Mapping[str, float] = field(default_factory=dict)
    limits: tuple[float, float] | None = None
    down: str = "Metric"
    counts: bool = True
    percent: bool = False

    def shown(self, lane: LabelledInterval) -> str:
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
class DecisionSummary:
    """One judge on one metric in a line: an outcome, the shares that it is read beside, a sentence
    why and a sentence what to do next.

    `judge` and `metric` are as they are shown. `accuracy`, `humans` (one annotator against the
    others), `annotators` (each of them by name) and `baseline` are shares of answers with the
    reference label. Of a judge the `failures`, answers without a label by kind, count as wrong;
    `asked` says of how many answers its share is, as in `48 of 500 asked`, where not of all. The
    decision allows a judge to be `margin` below the annotators; 0 where it rests on something else.
    `numbers` are those behind `why`. `alone` says how much the judge may decide alone where it may
    not decide all; empty where nothing.
    """

    judge: str
    metric: str
    outcome: str
    look: CellTone
    accuracy: Estimate
    failures: str
    asked: str
    humans: Estimate
    annotators: Mapping[str, Estimate]
    baseline: Estimate
    baseline_name: str
    margin: float
    why: str
    next: str
    numbers: str = ""
    alone: str = ""

    @property
    def shares(self) -> str:
        """`judge 79 %  humans 96 %  best baseline 50 %`; a dash where one is undefined."""
        shown = {"judge": self.accuracy, "humans": self.humans, "best baseline": self.baseline}
        return "  ".join(f"{name} {percent(e.value):<4}" for name, e in shown.items()).rstrip()


def margin_words(standings: Sequence[DecisionSummary]) -> str:
    """`at most 5 points below the annotators`, of the margins that standings have, and when one has
    none; empty without."""
    if not (points := sorted({round(100 * one.margin) for one in standings} - {0})):
        return ""
    least = f" (on some metrics {points[0]})" if len(points) > 1 else ""
    some = "" if all(one.margin for one in standings) else ", where agreement decided"
    return f"at most {counted(points[-1], 'point')} below the annotators{least}{some}"


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
    standings: tuple[DecisionSummary, ...] = ()
    lead: bool = False
    on_screen: bool = False
    folded: bool = False
    brief: bool = False
    asks: Asks = ""
    gist: str = ""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """The presentation of one analysis. `key` names it in results.csv and is its anchor in the
    page.

    `title` stands after the name of the study in the report's title: "judges against human labels".
    `notes` are the caveats; those that are `urgent` come first, and stand on any screen. `results`
    are the rows behind it; with `own_file` they also stand in a CSV file that `key` names. `facts`
    are a few words each on what was compared (answers, annotators, metrics, date), `headline` says
    in a line what was studied, and `answer` in a sentence what came out; `terms` are half a
    sentence each on what words of the page mean. `items` makes the list of every item.
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
    answer: str = ""
    terms: tuple[str, ...] = ()
    items: Callable[[], Items] | None = None

    @property
    def standings(self) -> tuple[DecisionSummary, ...]:
        """An outcome each, by metric and then by judge."""
        return tuple(one for block in self.screen for one in block.standings)


def incomplete(part: ReportSection, gaps: tuple[str, ...]) -> ReportSection:
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


def report_title(parts: Sequence[ReportSection], name: str) -> str:
    """`demo: judges against human labels`; the first part says what the report is about."""
    return ": ".join(text for text in (name, parts[0].title if parts else "") if text)


def blocks_of(parts: Sequence[ReportSection], *, lead: bool | None = None) -> list[Block]:
    """The blocks that stand before the caveats, those after them, or all in that order; without
    tables that have no rows, and without blocks in which nothing is left."""
    leading_first = sorted((b for part in parts for b in part.blocks), key=lambda b: not b.lead)
    filled = (
        replace(block, tables=tuple(table for table in block.tables if table.rows))
        for block in leading_first
        if lead in (None, block.lead)
    )
    return [b for b in filled if b.tables or b.text or b.figures or b.cards]


def one_screen(parts: Sequence[ReportSection], tables: bool = False) -> list[Block]:
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


def _paper(part: ReportSection) -> list[Block]:
    """The tables of a paper as a block, where there are any."""
    tables = tuple(table for table in part.paper if table.rows)
    return [Block(tables=tables, brief=True)] if tables else []


def caveats(parts: Sequence[ReportSection], *, read: bool = True) -> list[str]:
    """The caveats of all parts, each once; with `read` what was understood of tables, too."""
    notes = dict.fromkeys((*urgent(parts), *(note for part in parts for note in part.notes)))
    return [note for note in notes if read or not note.startswith(UNDERSTOOD)]


def urgent(parts: Sequence[ReportSection]) -> list[str]:
    """The caveats that stand on any screen, each once."""
    return list(dict.fromkeys(note for part in parts for note in part.urgent))


def figures_of(parts: Sequence[ReportSection]) -> Iterator[Figure]:
    """Every figure, in the order in which they stand."""
    for block in blocks_of(parts):
        yield from block.figures


# Characters of a reply or a rationale that a page shows.
MOST_SHOWN = 4000
_PLACES = ("First response", "Second response")


def asked_of(answer: Answer) -> Texts:
    """The texts before the one that is judged: a question, or a conversation turn by turn."""
    if not answer.question:
        return ()
    if answer.turns and not answer.is_conversation:
        return (("Conversation before it", _turns(answer.turns)),)
    return (("Question", answer.question),)


def texts_of(answer: Answer) -> Texts:
    """The whole answer: one text, two responses, or a conversation; with what it is checked by.

    >>> texts_of(Answer("1", "Yes.", question="Is it safe?"))
    (('Question', 'Is it safe?'), ('Answer', 'Yes.'))
    """
    found = [*asked_of(answer)]
    if answer.responses:
        pieces = [
            (f"{place}, by {part.name}" if part.name else place, part.text)
            for place, part in zip(_PLACES, answer.responses, strict=True)
        ]
        found.append(("Responses", _pieces("column", pieces)))
    elif answer.is_conversation:
        found.append(("Conversation", _turns(answer.turns)))
    else:
        found.append(("Answer", answer.text or "(no text)"))
    if answer.criterion:
        about = {key: answer.metadata.get(key, "") for key in ("points", "tags")}
        facts = [f"{key}: {text.replace('|', ', ')}" for key, text in about.items() if text]
        name = f"Criterion {answer.criterion.name}".rstrip()
        found.append((f"{name} ({'; '.join(facts)})" if facts else name, answer.criterion.text))
    if answer.reference is not None:
        found.append(("Reference", answer.reference))
    return tuple(found)


def reasons_of(judge: str, verdict: Verdict, answer: Answer, rubric: Rubric) -> Texts:
    """The reason why a verdict is none, with the reply; and the judge's rationale, its thoughts,
    what it looked up, and what it said in each order in which it was shown several texts."""
    found: list[tuple[str, Passage]] = []
    if verdict.status is not Status.OK:
        why = f": {verdict.reason}" if verdict.reason else ""
        said = f"{judge} gave no usable verdict ({verdict.status.value}){why}"
        found.append((said, _cut(verdict.raw, "reply") or "(no reply)"))
    looked_up = [
        (f"Looked up: {one.question}", "\n\n".join(one.passages) or "(no passage was found)")
        for one in verdict.transcript
    ]
    shown = [_shown(one, answer, rubric) for one in verdict.shown]
    if shown and verdict.status is Status.OK and verdict.reason:
        shown.append(("Both together", verdict.reason))
    groups = {
        "its rationale": [("Rationale", _cut(verdict.rationale, "rationale"))],
        "its thoughts": [("Thoughts", _cut(verdict.reasoning, "reasoning"))],
        "what it looked up": looked_up, "how it was shown": shown,
    }  # fmt: skip
    names = [name for name, texts in groups.items() if any(text for _, text in texts)]
    if names:
        texts = (pair for name in names for pair in groups[name])
        found.append((f"{judge}: {', '.join(names)}", _pieces("column", texts)))
    return tuple(found)


def _shown(one: Showing, answer: Answer, rubric: Rubric) -> tuple[str, str]:
    """The way in which a row was shown, and what the judge said of it then."""
    title = f"Shown as number {one.place + 1} of {one.of}"
    if answer.responses:
        title = f"The {'second' if one.place else 'first'} response shown first"
    said = []
    for metric in (metric for metric in rubric.metrics if metric.id in one.labels):
        label = one.labels[metric.id]
        said.append(f"{metric.title}: {label}")
        if one.place and metric.swapped(label) != label:
            said[-1] += f" as shown, so {metric.swapped(label)} as listed above"
    return title, "\n".join(said) or "(no label)"


def _turns(turns: Iterable[Part]) -> Passage:
    return _pieces("turn", ((turn.role, turn.text) for turn in turns))


def _pieces(kind: Mark, pieces: Iterable[tuple[str, str]]) -> Passage:
    marked: list[tuple[Mark, str]] = []
    for heading, text in pieces:
        marked += [(kind, heading), ("", text or "(no text)")]
    return marked


def _cut(text: str, what: str) -> str:
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[:MOST_SHOWN]}\n[cut; the {what} has {len(text)} characters]"
