from __future__ import annotations

import io
from dataclasses import replace

import pytest
from decide_report_case import JUDGES, hostile_decisions, make_decisions
from rich.console import Console

from judgebench.align import Alignment
from judgebench.decide.report.terminal import print_decisions
from judgebench.decide.report.words import NO_DECISIONS
from judgebench.decide.result import Decisions
from judgebench.report.old.write import print_tables

DECIDED = make_decisions()


def printed(decisions: Decisions, width: int = 120, colours: bool = False) -> str:
    out = io.StringIO()
    system = "standard" if colours else None
    console = Console(file=out, width=width, color_system=system, force_terminal=colours)
    print_decisions(decisions, console)
    return out.getvalue()


@pytest.mark.parametrize("width", [50, 80, 120, 200])
def test_every_decision_is_told_and_nothing_is_wider_than_the_terminal(width: int) -> None:
    text = printed(DECIDED, width)
    assert max(map(len, text.split("\n"))) <= width
    assert "…" not in text
    joined = "".join(text.split())
    for d in DECIDED.decisions:
        assert d.outcome.value in text
        words = f"{d.judge}: {d.reason}"
        assert width < 200 or "".join(words.split()) in joined


def test_each_metric_has_one_line_a_judge() -> None:
    lines = printed(DECIDED, 400).split("\n")
    for metric in DECIDED.rubric.metrics:
        start = lines.index(metric.title) + 1
        found = {(d.judge, d.metric): d for d in DECIDED.decisions}
        for line, judge in zip(lines[start : start + len(JUDGES)], JUDGES, strict=True):
            decision = found[judge, metric.id]
            assert line.split(judge)[0].strip() == decision.outcome.value
            assert decision.reason in line


def test_outcomes_are_coloured_and_written() -> None:
    text = printed(DECIDED, 400, colours=True)
    codes = {
        line.split(word)[0].split("\x1b")[1]
        for word in ("REPLACE", "ASSIST", "DON'T", "CAN'T TELL")
        for line in text.split("\n")
        if f"m  {word}" in line
    }
    assert len(codes) == 4


def test_hostile_names_are_neither_markup_nor_escape_codes() -> None:
    bad = "[bold]x[/bold]\x1b[31mred\x07"
    decision = replace(DECIDED.decisions[0], judge=bad, reason=bad)
    text = printed(replace(DECIDED, decisions=(decision,)))
    assert text.count("[bold]x[/bold]\ufffd[31mred\ufffd") == 2
    assert not set(printed(hostile_decisions(), 60)) & {"\x1b", "\x07", "\u0000"}


def test_the_decisions_are_printed_first(realistic: Alignment) -> None:
    out = io.StringIO()
    print_tables(realistic, Console(file=out, width=120, color_system=None), None, DECIDED)
    text = out.getvalue()
    assert text.index("May these judges stand in") < text.index("Accuracy against the human")
    assert f"! {DECIDED.notes[0]}" in text


def test_where_nothing_was_decided_one_sentence_says_so() -> None:
    assert NO_DECISIONS in printed(replace(DECIDED, decisions=()))
