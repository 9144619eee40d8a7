"""The view in a terminal: decisions, rankings, stress test, alignment, caveats."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.text import Text

from judgebench.align import Alignment, JudgeSummary
from judgebench.decide.result import Decisions
from judgebench.ranking.rankings import Rankings
from judgebench.records import Status
from judgebench.report.old.contents import (
    NO_LABELS,
    all_notes,
    compared_sentences,
    ranked_part,
    shows_alignment,
)
from judgebench.report.tables import accuracy_table, agreement_table, failures_table, severe_table
from judgebench.report.terminal import print_parts
from judgebench.report.terminal_table import print_table
from judgebench.report.words import printable
from judgebench.stress.result import StressResult


def print_tables(
    alignment: Alignment,
    console: Console,
    stress: StressResult | None = None,
    decisions: Decisions | None = None,
    rankings: Rankings | None = None,
) -> None:
    """Print what matters most, caveats last; the files of the report hold the rest."""
    if rankings is not None:
        print_parts([ranked_part(alignment, rankings)], console, alignment.name)
        return
    console.print(Text(printable(alignment.name), style="bold"))
    if decisions is not None:
        print_parts([replace(decisions.part, notes=())], console)
    for sentence in compared_sentences(alignment, rankings):
        console.print(Text(printable(sentence)))
    for judge in alignment.judges:
        if judge.kind != "control" or judge.statuses.get(Status.OK, 0) < judge.n:
            console.print(_failures_line(judge))
    if stress is not None:
        print_parts([replace(stress.part, notes=())], console)
    if shows_alignment(alignment, stress, rankings):
        _print_alignment(alignment, console)
    elif alignment.judges or rankings is None:
        console.print(Text(f"\n{NO_LABELS}"))
    notes = all_notes(alignment, stress, decisions, rankings)
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
            print_table(table, console)


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
