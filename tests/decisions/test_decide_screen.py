"""What one screen says of decisions: a table, a sentence for what is not REPLACE, the bars."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace

from decide_report_case import make_decisions
from rich.console import Console

from judgebench.decisions.result import Decision, Decisions, MoreData, Outcome
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.results.shown import to_json
from judgebench.results.terminal import print_parts

SHORT = "It agrees with annotators 42 points less often than they agree with each other."
JUDGES = {"one": "judge", "two": "judge"}


def decided(
    made: Sequence[tuple[str, str, Outcome, str]], judges: dict[str, str] = JUDGES
) -> Decisions:
    """Decisions by hand: judge, metric, outcome, reason; all with the same accuracy."""
    scores = [
        Row("score", "accuracy", Estimate(value, n=9), judge, metric, {"failures": "left_out"})
        for metric in dict.fromkeys(metric for _, metric, *_ in made)
        for judge, value in [*((j, 0.75) for j in judges), ("random", 0.5), ("prior", 0.625)]
    ]
    ceiling = [
        Row("ceiling", "accuracy", Estimate(0.875, n=9), "", row.metric, {"who": "all"})
        for row in scores
    ]
    return replace(
        make_decisions(),
        decisions=tuple(Decision(*one) for one in made),
        beside=Results((*scores, *ceiling)),
        judges=judges,
        compared="9 answers.",
        bars=("Bar: ann and ben.",),
    )


def screen(decisions: Decisions, width: int = 100) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    print_parts([decisions.part], console, "study", everything=False)
    return out.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def test_outcome_accuracy_best_control_and_ceiling_stand_in_one_row() -> None:
    made = [("one", "bias", Outcome.REPLACE, "fine"), ("two", "bias", Outcome.DO_NOT_USE, SHORT)]
    text = screen(decided(made))
    (row,) = [line for line in text.splitlines() if "│" in line]
    cells = [cell.strip() for cell in row.split("│")]
    assert cells == ["Possibility of Bias", "REPLACE 0.750", "DO NOT USE 0.750", "0.625", "0.875"]
    assert "the best control judge (prior)" in words(text)
    assert "9 answers.\nBar: ann and ben.\n" in text
    assert f"DO NOT USE for Possibility of Bias (two). {SHORT}" in words(text)
    assert "REPLACE for Possibility of Bias (one)" not in text


def test_four_judges_fit_one_table_at_100_columns() -> None:
    judges = dict.fromkeys(("gpt-4o-2024-08-06", "llama-3-70b-instruct", "small", "jury"), "judge")
    made = [
        (judge, metric, Outcome.CANT_TELL, SHORT)
        for metric in ("bias", "empathy")
        for judge in judges
    ]
    text = screen(decided(made, judges))
    assert max(map(len, text.splitlines())) <= 100
    assert "continued" not in text
    assert text.count("CAN'T TELL") == 8 + 1  # one sentence for all


def test_nothing_is_explained_where_all_is_replace() -> None:
    text = screen(decided([("one", "bias", Outcome.REPLACE, "fine")]))
    assert "Why not REPLACE" not in text


def test_the_same_words_stand_in_one_sentence() -> None:
    made = [
        ("one", "bias", Outcome.DO_NOT_USE, SHORT),
        ("one", "empathy", Outcome.DO_NOT_USE, SHORT),
        ("two", "bias", Outcome.DO_NOT_USE, SHORT),
        ("two", "empathy", Outcome.CANT_TELL, ""),
    ]
    text = words(screen(decided(made)))
    which = "Possibility of Bias and Empathy (one); Possibility of Bias (two)"
    assert f"DO NOT USE for {which}. {SHORT}" in text
    assert "CAN'T TELL for Empathy (two). no reason was given" in text


def test_where_room_is_short_numbers_are_given_as_a_range_and_the_rest_is_counted() -> None:
    metrics = [metric.id for metric in make_decisions().rubric.metrics]
    made = [
        (judge, metric, Outcome.DO_NOT_USE, SHORT.replace("42", str(20 + 10 * i + 3 * j)))
        for i, metric in enumerate(metrics)
        for j, judge in enumerate(JUDGES)
    ]
    made[0] = ("one", metrics[0], Outcome.CANT_TELL, "A long story. " * 200)
    text = words(screen(decided(made)))
    assert "It agrees with annotators 23 to 93 points less often" in text
    assert "… and 1 more decision, for other reasons." in text
    assert "A long story" not in text


def test_what_more_data_would_settle_is_said_where_there_is_room() -> None:
    few = decided([("one", "bias", Outcome.CANT_TELL, "Too few to tell.")])
    (made,) = few.decisions
    few = replace(few, decisions=(replace(made, more=MoreData(items=88)),))
    assert "Too few to tell. About 88 more answers" in words(screen(few))


def test_more_bars_than_fit_are_counted() -> None:
    made = [("one", "bias", Outcome.DO_NOT_USE, SHORT)]
    bars = tuple(f"Bar for {i}: ann." for i in range(5))
    text = screen(replace(decided(made), bars=bars))
    assert "Bar for 2: ann.\n… and 2 more bars, for other metrics.\n" in text


def test_json_has_no_number_that_json_cannot_write() -> None:
    decisions = decided([("one", "bias", Outcome.DO_NOT_USE, SHORT)])
    endless = Row("triage", "sent", Estimate(0.5), keys={"threshold": float("-inf")})
    found = json.loads(to_json({"decide": decisions}, "study", beside=[endless.plain()]))
    assert found["beside"][0]["threshold"] == "-inf"
    (one,) = found["decisions"]
    assert (one["accuracy"]["value"], one["best_control"]["judge"]) == (0.75, "prior")
    assert found["bars"] == ["Bar: ann and ben."]
