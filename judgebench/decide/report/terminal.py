"""The decisions in a terminal: one line a metric and judge, the outcome in colour and in words."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from judgebench.decide.report.lookup import (
    decided_judges,
    decided_metrics,
    decision_index,
    metric_title,
)
from judgebench.decide.report.words import NO_DECISIONS, missing_data, outcomes_sentence
from judgebench.decide.result import Decision, Decisions, Outcome
from judgebench.report.words import printable
from judgebench.results.tables import NO_REASON

_STYLES: Mapping[Outcome, str] = {
    Outcome.REPLACE: "bold blue",
    Outcome.ASSIST: "cyan",
    Outcome.DONT: "bold red",
    Outcome.CANT_TELL: "yellow",
}
_INDENT = 2


def print_decisions(decisions: Decisions, console: Console) -> None:
    """Print each metric with a line a judge: the outcome, its reason, and what data is missing."""
    judges, found = decided_judges(decisions), decision_index(decisions)
    console.print(Text("\nMay these judges stand in for the annotators?", style="bold"))
    if not found:
        console.print(Text(NO_DECISIONS))
        return
    for metric in decided_metrics(decisions):
        console.print(Text(f"\n{printable(metric_title(decisions, metric))}", style="bold"))
        grid = RichTable.grid(padding=(0, _INDENT, 0, 0))
        grid.add_column(no_wrap=True, min_width=_INDENT + max(map(len, Outcome)))
        grid.add_column(overflow="fold")
        for judge in judges:
            if (judge, metric) in found:
                decision = found[judge, metric]
                style = _STYLES[decision.outcome]
                grid.add_row(
                    Text(" " * _INDENT + decision.outcome.value, style=style), _line(decision)
                )
        console.print(grid)
    console.print(Text(f"\n{outcomes_sentence()}\n", style="dim"))


def _line(decision: Decision) -> Text:
    """`judge: reason`, and dimmed how much more data would make it clear."""
    line = Text(f"{printable(decision.judge)}: ")
    line.append(printable(decision.reason or NO_REASON))
    if more := missing_data(decision):
        line.append(f" {printable(more)}", style="dim")
    return line
