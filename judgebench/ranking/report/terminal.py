"""The rankings in a terminal: what they show in words, medal grids and scores."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from judgebench.ranking.report.medals import has_controls, medal_tables
from judgebench.ranking.report.tables import average_tables, score_table, with_rows
from judgebench.ranking.report.words import HOW_SURE, NO_RANKINGS, summary
from judgebench.ranking.result import Rankings
from judgebench.report.terminal_table import print_table
from judgebench.report.words import printable


def print_rankings(rankings: Rankings, console: Console) -> None:
    """Print the summary, then each task's grid and scores, then the averages."""
    console.print(Text("\nWhose arguments help to decide?", style="bold"))
    said = summary(rankings)
    for title, sentences in said:
        console.print(Text(f"\n{printable(title)}", style="bold"))
        for sentence in sentences:
            console.print(Text(f"- {printable(sentence)}"))
    console.print(Text(f"\n{HOW_SURE if said else NO_RANKINGS}", style="dim" if said else ""))
    for number, task in enumerate(rankings.tasks, start=1):
        grids = medal_tables(rankings, task, number)
        widest = grids[-1] if has_controls(rankings, task) else grids[0]
        for table in with_rows([widest, score_table(rankings, task, number)]):
            print_table(table, console)
    for table in average_tables(rankings):
        print_table(table, console)
