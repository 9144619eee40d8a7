"""Rows that are made of what files hold: of two answers, and of an answer and a criterion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.data.criteria import criterion_row
from judgebench.data.findings import DERIVED
from judgebench.data.open_table import open_table
from judgebench.data.pairs import (
    WantedPairs,
    chosen,
    compared_by,
    ids_of,
    linked,
    of_key,
    pair_of,
    preference_of,
    preferences,
)
from judgebench.errors import SetupError, some
from judgebench.records import SEVERAL, Answer, Kind

if TYPE_CHECKING:
    from judgebench.data.gather import Collected, Position

_ONE: dict[Kind, str] = {"answer": "an answer", "pair": "a pair", "criterion": "a criterion"}
_HOW: dict[Kind, str] = {
    "pair": "`pairs: all` in bench.yaml, which compares the answers to each question, or labels "
    "with `pair: [column, column]` in a data.yaml",
    "criterion": "`criteria` in a data.yaml, and labels with `criterion: column`",
}


def add_made_rows(gathered: Collected) -> None:
    """Add the pairs and criteria that the wanted metrics are about, and people's preferences."""
    kinds, n, had_answers = gathered.kinds, gathered.n_answers, gathered.has_answers
    if kinds == {"answer"} or gathered.findings.lost_rows:
        return
    _add_named(gathered, n, had_answers)
    if gathered.pairs and "pair" in kinds:
        _add_chosen(gathered, gathered.pairs, n)
    for item_id, criteria in gathered.criteria.items() if "criterion" in kinds else ():
        answer = gathered.find(item_id)
        for one, place in criteria.values():
            if answer:
                gathered.add_row(criterion_row(answer, one), place)
            elif item_id not in gathered.left_out:
                gathered.report_unknown(item_id, place, guess=False)


def _add_named(gathered: Collected, n: int, had_answers: bool) -> None:
    """Add what labels name. Where there are answers, only pairs of these: other labels are then of
    unknown items."""
    named = [(row, at) for row, at in gathered.named.values() if row.kind in gathered.kinds]
    rows: dict[tuple[str, str], int] = {}
    for place_of, answer in enumerate(map(gathered.answer, range(n if named else 0))):
        key = (answer.group, answer.system)
        rows[key] = -1 if key in rows else place_of  # of several, none is meant

    def find(question: str, name: str) -> Answer | None:
        found = rows.get((question, name), -1)
        return gathered.find(name) if found < 0 else gathered.answer(found)

    for row, place in named:
        if not had_answers:
            gathered.textless[place.file] = None
            gathered.add_row(row, place)
        elif row.kind == "pair" and (pair := linked(row, find)):
            gathered.add_row(pair, place)


def _add_chosen(gathered: Collected, wanted: WantedPairs, n: int) -> None:
    """Add the pairs of the first `n` rows, the answers, that are wanted and not there yet."""
    from judgebench.data.gather import Key, Position

    place = Position(wanted.file, 0)
    rows = (row for made in gathered.made if (row := gathered.find(made)) and row.responses)
    there = {frozenset(part.item_id for part in row.responses): ids_of(row) for row in rows}
    try:
        for a, b in _chosen(gathered, wanted, n):
            if (both := frozenset((a.item_id, b.item_id))) not in there:
                pair = pair_of(a, b)
                there[both] = ids_of(pair)
                gathered.add_row(pair, place)
        if not wanted.prefer or gathered.findings.errors:
            return
        by, on = compared_by(wanted.prefer, gathered.rubric), preference_of(gathered.rubric)
    except SetupError as error:
        gathered.findings.extend("bad_pair", of_key(error, wanted).problems)
        return
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


def _chosen(gathered: Collected, wanted: WantedPairs, n: int) -> Iterator[tuple[Answer, Answer]]:
    if isinstance(wanted.source, Path):
        yield from _named_in(wanted.source, gathered)
        return
    questions: dict[tuple[str, str], list[int]] = {}
    for row, answer in enumerate(map(gathered.answer, range(n))):
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
        ids = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
        faults = list(_faults(ids, gathered))
        first = seen.setdefault(frozenset(ids), line)
        if not faults and first != line:
            faults = [(1, f"is the pair of row {first} again", ids[1])]
        for column, message, found in faults:
            findings.add("bad_pair", message, (table.file, line), table.columns[column], found)
        if sound and not faults:
            a, b = (answer for item_id in ids if (answer := gathered.find(item_id)))
            yield a, b


def _faults(ids: Sequence[str], gathered: Collected) -> Iterator[tuple[int, str, str]]:
    """What is wrong with a row of two item ids: the column, in words, and what was found."""
    answers = [gathered.find(item_id) for item_id in ids]
    for column, answer in enumerate(answers):
        if answer is None or answer.kind != "answer":
            yield column, "no answer has this id", ids[column]
    a, b = answers
    if a and b and ids[0] == ids[1]:
        yield 1, "is the same answer", ids[1]
    elif a and b and (a.group, a.question) != (b.group, b.question):
        yield 1, "answers another question", ids[1]


def check_kinds(gathered: Collected) -> None:
    """Report labels of a metric of pairs on what is none, and so on."""
    of = {metric.id: metric.of for metric in gathered.rubric.metrics}
    if set(of.values()) == {"answer"} or gathered.findings.lost_rows:
        return
    told: set[Position] = set()
    for key, (label, place) in list(gathered.labels.items()):
        wanted, kind = of[key.metric], gathered.made.get(key.item_id, "answer")
        if kind != wanted and label is None:
            del gathered.labels[key]  # of a wide table, in which rows of all kinds stand
        if kind == wanted or label is None or place in told:
            continue
        if gathered.has(key.item_id) or not gathered.has_answers:
            told.add(place)
            message = (
                f"the metric {key.metric} is about {SEVERAL[wanted]}, and this is {_ONE[kind]}"
            )
            allowed = _HOW.get(wanted, "")
            gathered.findings.add("unknown_item", message, place, "item_id", key.item_id, allowed)


def report_lacking(gathered: Collected) -> None:
    """Report that there is nothing of a kind that the wanted metrics are about."""
    there = {*gathered.made.values(), *(["answer"] if gathered.has_answers else [])}
    for kind in sorted(gathered.kinds - {"answer"} - there):
        message = f"the rubric has metrics of {SEVERAL[kind]}, and the data hold none"
        gathered.findings.add("no_answers", message, ("", None), allowed=_HOW[kind])
