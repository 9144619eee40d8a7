"""The view in a terminal: decisions, stress test, alignment, caveats."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from judgebench.align import Alignment, JudgeSummary
from judgebench.decide.result import Decisions
from judgebench.records import Status
from judgebench.report.cells import Cell, Footnotes, Table, footnotes, split_columns
from judgebench.report.contents import NO_LABELS, all_notes, shows_alignment
from judgebench.report.decide.terminal import print_decisions
from judgebench.report.stress.summary import summary_table
from judgebench.report.stress.tables import flips_table, planted_sentences
from judgebench.report.tables import accuracy_table, agreement_table, failures_table, severe_table
from judgebench.report.words import describe, printable, wrapped
from judgebench.stress.result import StressResult

_STUB = 22  # the width that the first column may take before it is folded
_WORST_PROBES = 8
_VALUE = 16  # the width of a value over its interval, with padding


def print_tables(
    alignment: Alignment,
    console: Console,
    stress: StressResult | None = None,
    decisions: Decisions | None = None,
) -> None:
    """Print what matters most, caveats last; the files of the report hold the rest."""
    console.print(Text(printable(alignment.name), style="bold"))
    if decisions is not None:
        print_decisions(decisions, console)
    for sentence in describe(alignment):
        console.print(Text(printable(sentence)))
    for judge in alignment.judges:
        if judge.kind != "control" or judge.statuses.get(Status.OK, 0) < judge.n:
            console.print(_failures_line(judge))
    if stress is not None:
        _print_stress(stress, console)
    if shows_alignment(alignment, stress):
        _print_alignment(alignment, console)
    else:
        console.print(Text(f"\n{NO_LABELS}"))
    notes = all_notes(alignment, stress, decisions)
    if notes:
        console.print()
    for note in notes:
        console.print(Text(f"! {printable(note)}", style="yellow"))


def _print_alignment(alignment: Alignment, console: Console) -> None:
    shown = [accuracy_table(alignment)]
    if any(score.statistic == "severe_recall" for score in alignment.scores):
        shown.append(severe_table(alignment))
    shown += [failures_table(alignment, "accuracy"), agreement_table(alignment)]
    for table in shown:
        if table.rows:
            _print_table(table, console)


def _print_stress(stress: StressResult, console: Console) -> None:
    """The summary, the worst probes and each judge's worst trick."""
    for table in (summary_table(stress), flips_table(stress, most=_WORST_PROBES)):
        if table.rows:
            _print_table(table, console)
    sentences = planted_sentences(stress)
    if sentences:
        console.print(Text("\nPlanted verdicts", style="bold"))
    for sentence in sentences:
        console.print(Text(printable(sentence)))


def _failures_line(judge: JudgeSummary) -> Text:
    """`judge: 96 of 100 verdicts read; 3 unparsed, 1 refused`."""
    failed = [
        f"{judge.statuses[status]:,} {status.value}"
        for status in Status
        if status is not Status.OK and judge.statuses.get(status)
    ]
    read = f"{judge.statuses.get(Status.OK, 0):,} of {judge.n:,} verdicts read"
    line = f"{printable(judge.name)}: {read}" + (f"; {', '.join(failed)}" if failed else "")
    return Text(line, style="red" if failed else "")


def _print_table(table: Table, console: Console) -> None:
    notes = footnotes(table)
    room = console.width - table.stubs * _STUB
    for i, part in enumerate(split_columns(table, max(1, room // _VALUE))):
        console.print()
        title = table.title if i == 0 else f"{table.title} (continued)"
        console.print(Text(printable(title), style="bold"))
        console.print(_grid(part, notes))
    for sentence in notes.sentences(table):
        console.print(Text(printable(sentence), style="dim"))
    for text, mark in notes.marks.items():
        console.print(Text(f"{mark}: {printable(text)}", style="dim"))


def _grid(table: Table, notes: Footnotes) -> RichTable:
    grid = RichTable(show_edge=False, header_style="bold")
    for i, column in enumerate(table.columns):
        left = i < table.stubs
        heading = Text(wrapped(column, _STUB if left else _VALUE - 2))
        grid.add_column(heading, justify="left" if left else "right", overflow="fold")
    for row in table.rows:
        grid.add_row(*(_cell(cell, notes.mark(cell)) for cell in row))
    return grid


def _cell(cell: Cell, mark: str) -> Text:
    """The value with its mark, and under it the interval."""
    text = Text(wrapped(cell.value, _STUB))
    if mark:
        text.append(f" {mark}", style="dim")
    if cell.interval:
        text.append(f"\n{cell.interval}", style="dim")
    return text
