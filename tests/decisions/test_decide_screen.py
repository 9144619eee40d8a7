"""What one screen says of decisions: a table, a sentence for what is not REPLACE, the bars."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from decide_report_case import in_context, make_decisions
from rich.console import Console

from judgebench.decisions.decision import Condition, Decision, Decisions, MoreData, Outcome, State
from judgebench.decisions.rule import DecisionRule
from judgebench.decisions.sentences import reason_for, severe_sentence
from judgebench.records import Estimate, Results, Row
from judgebench.results.shown import to_json
from judgebench.results.terminal import print_parts
from judgebench.rubric import Rubric, load_rubric

SHORT = "It agrees with the annotators 42 points less often than they agree with each other."
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
    decisions = tuple(Decision(*one) for one in made)
    return in_context(
        replace(make_decisions(), decisions=decisions, judges=judges),
        rows=Results((*scores, *ceiling)), compared="9 answers.", bars=("Bar: ann and ben.",),
    )  # fmt: skip


def screen(decisions: Decisions, width: int = 100) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    print_parts([decisions.part], console, "study", everything=False)
    return out.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def test_outcome_and_the_numbers_to_read_it_by_stand_in_one_line() -> None:
    made = [("one", "bias", Outcome.REPLACE, "fine"), ("two", "bias", Outcome.DO_NOT_USE, SHORT)]
    text = screen(decided(made), width=80)
    assert "\nPossibility of Bias\n  one  REPLACE     judge 75 %  humans 88 %  best" in text
    assert "\n  two  DO NOT USE  judge 75 %  humans 88 %  best baseline 62 %\n" in text
    assert f"{SHORT} Next: read its worst misses (in the report), then change" in words(text)
    assert "9 answers.\n" in text


def test_outcomes_come_before_how_to_read_them() -> None:
    made = decided([("one", "bias", Outcome.REPLACE, "fine")])
    text = screen(made)
    assert text.index("REPLACE") < text.index("Shares:") < text.index("Not known whether")
    assert [one.judge for one in made] == ["one"]


def test_a_bar_that_is_all_annotators_is_not_repeated_and_any_other_is() -> None:
    made = decided([("one", "bias", Outcome.DO_NOT_USE, SHORT)])
    assert "Bar" not in screen(made)
    left_out = "Bar: ann; kim is left out of the bar (agrees 40 points less with the others)."
    assert left_out in screen(in_context(made, bars=(left_out,)))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_many_judges_and_metrics_stay_readable_at_any_width(width: int) -> None:
    judges = dict.fromkeys(("gpt-4o-2024-08-06", "a" * 40, "small", "jury"), "judge")
    made = [
        (judge, metric, Outcome.CANT_TELL, SHORT.replace("42", str(40 + i)))
        for i, metric in enumerate(("bias", "empathy", "grammaticality"))
        for judge in judges
    ]
    text = screen(decided(made, judges), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("judge 75 %  humans 88 %  best baseline 62 %") == len(made)
    assert all(words(text).count(reason) == len(judges) for *_, reason in made)
    assert not re.search(r"\d to \d", text)


def test_of_many_decisions_a_common_next_step_stands_once_and_what_is_left_is_said() -> None:
    judges = dict.fromkeys(("one", "two", "three", "four", "five"), "judge")
    made = [(judge, "bias", Outcome.DO_NOT_USE, SHORT) for judge in judges]
    text = words(screen(decided(made, judges)))
    assert text.count("read its worst misses") == 1
    several = [
        Decision(
            judge,
            "bias",
            Outcome.CANT_TELL,
            "Few.",
            plan=partial(MoreData, items=10 * n, severe=2),
        )
        for n, judge in enumerate(judges, 1)
    ]
    text = words(screen(replace(decided(made, judges), decisions=tuple(several))))
    assert text.count("Next, for") == 3
    assert "-v and the page add 2 other next steps" in text


def test_the_weaker_of_two_clauses_alike_is_said_once() -> None:
    plain, balanced = (
        Condition(key, "", State.UNCLEAR, Estimate(0.01, -0.1, 0.1, "t", 99), bound, True)
        for key, bound in (("humans_accuracy", -0.03), ("humans_balanced_accuracy", -0.04))
    )
    said, _ = reason_for(Outcome.CANT_TELL, (plain, balanced), ())
    assert said.count("than they agree with each other") == 1
    assert "at most 4 points less often" in said


def test_verbose_adds_numbers_and_next_steps_and_drops_nothing() -> None:
    made = make_decisions()
    made = replace(made, decisions=made.decisions[:8])

    def shown(everything: bool) -> str:
        out = io.StringIO()
        console = Console(file=out, width=100, color_system=None)
        print_parts([made.part], console, everything=everything)
        return out.getvalue()

    brief, whole = shown(False), shown(True)
    said = [" ".join(s.why.split()) for s in made.part.standings]
    assert all(reason in words(whole) for reason in said)
    assert all(reason in words(brief) for reason in said)
    assert "required ≥" in whole
    assert "required ≥" not in brief


def test_json_has_no_number_that_json_cannot_write() -> None:
    decisions = decided([("one", "bias", Outcome.DO_NOT_USE, SHORT)])
    endless = Row("triage", "sent", Estimate(0.5), keys={"threshold": float("-inf")})
    found = json.loads(to_json({"decide": decisions}, "study", beside=[endless.plain()]))
    assert found["beside"][0]["threshold"] == "-inf"
    (one,) = found["decisions"]
    assert (one["accuracy"]["value"], one["best_control"]["judge"]) == (0.75, "prior")
    assert found["bars"] == ["Bar: ann and ben."]


def test_a_line_says_which_labels_count_as_severe_and_stays_short() -> None:
    metrics, rule = load_rubric("medical-safety").metrics, DecisionRule()
    assert severe_sentence(metrics, rule).startswith("Severe: the last label of each metric")
    harm = [metric for metric in metrics if metric.id == "extent_of_harm"]
    assert severe_sentence(harm, rule).startswith("Severe: 'Death or severe harm' (Extent of")
    wider = DecisionRule(severe_from={"extent_of_harm": "Moderate or mild harm"})
    assert "'Moderate or mild harm' and 'Death or severe harm'" in severe_sentence(harm, wider)
    unordered = Rubric.from_labels({"topic": ["a", "b"]}, nominal=["topic"]).metrics
    assert severe_sentence(unordered, rule) == ""
