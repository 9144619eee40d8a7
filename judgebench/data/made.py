"""Rows that are made of what files hold: of two answers, and those that labels name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.data.findings import DERIVED
from judgebench.data.open_table import open_table
from judgebench.data.pairs import (
    WantedPairs,
    chosen,
    compared_by,
    ids_of,
    linked,
    pair_of,
    preferences,
)
from judgebench.errors import SetupError, some
from judgebench.records import SEVERAL, Answer, Kind

if TYPE_CHECKING:
    from judgebench.data.gather import Collected, Position

_HOW: dict[Kind, str] = {
    "pair": "`pairs: all` in bench.yaml, which compares the answers to each question, or labels "
    "with `pair: [column, column]` in a data.yaml",
    "criterion": "`criteria` in a data.yaml, and labels with `criterion: column`",
}


def add_made_rows(gathered: Collected) -> None:
    """Add the rows that labels name, the pairs that are wanted, and people's preferences."""
    if gathered.kinds == {"answer"} or gathered.findings.lost_rows:
        return
    _add_named(gathered)
    if gathered.pairs and "pair" in gathered.kinds:
        _add_chosen(gathered, gathered.pairs)


def _add_named(gathered: Collected) -> None:
    """Add what labels name. Where there are answers, only pairs of these: other labels are then of
    unknown items."""
    named = [(row, at) for row, at in gathered.named.values() if row.kind in gathered.kinds]
    ids: dict[tuple[str, str], str] = {}
    for _, answer in gathered.plain_answers() if named else ():
        key = (answer.group, answer.system)
        ids[key] = "" if key in ids else answer.item_id  # of several, none is meant

    def find(question: str, name: str) -> Answer | None:
        return gathered.find(ids.get((question, name)) or name)

    for row, place in named:
        if not gathered.has_answers:
            gathered.textless[place.file] = None
            gathered.add_item(row, place)
        elif row.kind == "pair" and (pair := linked(row, find)):
            gathered.add_item(pair, place)


def _add_chosen(gathered: Collected, wanted: WantedPairs) -> None:
    """Add the pairs of answers that are wanted and not there yet."""
    from judgebench.data.gather import Key, Position

    place = Position(wanted.file, 0)
    rows = (row for made in gathered.made if (row := gathered.find(made)) and row.responses)
    there = {frozenset(part.item_id for part in row.responses): ids_of(row) for row in rows}
    try:
        for a, b in _chosen(gathered, wanted):
            if (both := frozenset((a.item_id, b.item_id))) not in there:
                pair = pair_of(a, b)
                there[both] = ids_of(pair)
                gathered.add_item(pair, place)
    except SetupError as error:
        named = (replace(problem, file=wanted.file, field="pairs") for problem in error.problems)
        gathered.findings.extend("bad_pair", named)
    if not wanted.prefer or gathered.findings.errors:
        return
    by, on = compared_by(wanted, gathered.rubric)
    who: dict[str, None] = {}
    for label in preferences(there.values(), gathered.human_labels(), by, on):
        key = Key(label.item_id, label.annotator, label.metric)
        if key not in gathered.labels:
            gathered.labels[key] = (label.label, place)
            who[label.annotator] = None
    if not who:
        message = "nobody labelled both responses of a pair, so that no preference follows"
        gathered.findings.add("bad_pair", message, (wanted.file, None), "pairs.prefer")
        return
    message = (
        f"the preferences of {some(who)} on {on.id} are derived: of two responses they prefer the "
        f"one to which they gave the better label of {wanted.prefer}"
    )
    gathered.findings.add(DERIVED, message, ("", None))


def _chosen(gathered: Collected, wanted: WantedPairs) -> Iterator[tuple[Answer, Answer]]:
    if isinstance(wanted.source, Path):
        yield from _named_in(wanted.source, gathered)
        return
    questions: dict[tuple[str, str], list[int]] = {}
    for row, answer in gathered.plain_answers():
        questions.setdefault((answer.group, answer.question), []).append(row)
    number = wanted.source if isinstance(wanted.source, int) else None
    for i, j in chosen(list(questions.values()), number, wanted.seed):
        yield gathered.answer(i), gathered.answer(j)


def _named_in(path: Path, gathered: Collected) -> Iterator[tuple[Answer, Answer]]:
    """The pairs that a file names in its two columns; what is wrong with it is reported."""
    findings = gathered.findings
    table = open_table(path, findings)
    if table is None:
        return
    if len(table.columns) != 2:
        message = "a file of pairs has two columns, of item ids"
        findings.add("bad_pair", message, (table.file, 1), found=some(table.columns))
        return
    seen: dict[frozenset[str], int] = {}
    for line, cells, sound, _ in table.rows:
        if not sound:
            continue
        ids = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
        a, b = (gathered.find(item_id) for item_id in ids)
        known = [answer is not None and answer.kind == "answer" for answer in (a, b)]
        faults = {i: "no answer has this id" for i in (0, 1) if not known[i]}
        first = seen.setdefault(frozenset(ids), line)
        if a and b and not faults:
            if ids[0] == ids[1]:
                faults[1] = "is the same answer"
            elif (a.group, a.question) != (b.group, b.question):
                faults[1] = "answers another question"
            elif first != line:
                faults[1] = f"is the pair of row {first} again"
            else:
                yield a, b
        for i, message in faults.items():
            at = (table.file, line)
            findings.add("bad_pair", message, at, table.columns[i], ids[i])


def check_kinds(gathered: Collected) -> None:
    """Report labels of a metric of pairs on what is none, and so on."""
    of = {metric.id: metric.of for metric in gathered.rubric.metrics}
    if set(of.values()) == {"answer"} or gathered.findings.lost_rows:
        return
    told: set[Position] = set()
    for key, (label, place) in list(gathered.labels.items()):
        wanted, kind = of[key.metric], gathered.made.get(key.item_id, "answer")
        if kind == wanted:
            continue
        if label is None:
            del gathered.labels[key]  # of a wide table, in which rows of all kinds stand
        elif place not in told and (gathered.has(key.item_id) or not gathered.has_answers):
            told.add(place)
            one = "an answer" if kind == "answer" else f"a {kind}"
            message = f"the metric {key.metric} is about {SEVERAL[wanted]}, and this is {one}"
            allowed = _HOW.get(wanted, "")
            gathered.findings.add("unknown_item", message, place, "item_id", key.item_id, allowed)


def report_lacking(gathered: Collected) -> None:
    """Report that there is nothing of a kind that the wanted metrics are about."""
    for kind in sorted(gathered.kinds - {"answer", *gathered.made.values()}):
        message = f"the rubric has metrics of {SEVERAL[kind]}, and the data hold none"
        gathered.findings.add("no_answers", message, ("", None), allowed=_HOW[kind])
