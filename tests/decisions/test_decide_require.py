"""Demands on the decisions, as a pipeline makes them."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from align_case import metric, rubric

import judgebench as jb
from judgebench.decisions.decision import Decision, Decisions, Outcome
from judgebench.decisions.rule import DecisionRule
from judgebench.errors import NotReached, SetupError

RUBRIC = rubric(metric(), metric(id="tone", title="Tone of voice"))
MADE = (
    Decision("j", "harm", Outcome.REPLACE, "r"),
    Decision(
        "k",
        "harm",
        Outcome.DO_NOT_USE,
        "r",
        numbers="gap −0.2 [−0.3, −0.1]",
        advice="Read its misses.",
    ),
    Decision("j", "tone", Outcome.ASSIST, "r"),
    Decision("k", "tone", Outcome.CANT_TELL, "r"),
)
DECISIONS = Decisions(
    "d", RUBRIC, DecisionRule(), MADE, judges={"j": "judge", "k": "judge", "a:b": "judge"}
)


def _require(demand: str) -> None:
    DECISIONS.require(*demand.split(":", 2))


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("REPLACE:harm:j", True),
        ("REPLACE:harm:k", False),
        ("ASSIST:harm:j", True),
        ("REPLACE:tone:j", False),
        ("ASSIST:tone:j", True),
        ("ASSIST:tone:k", False),
        ("REPLACE:Harm:j", True),  # by its title
        ("DO NOT USE:harm:k", True),
        ("ASSIST:tone:a:b", False),  # a judge's name may hold a colon
    ],
)
def test_a_demand_is_reached_by_its_outcome_or_a_stronger_one(text: str, reached: bool) -> None:
    with nullcontext() if reached else pytest.raises(NotReached):
        _require(text)


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        (
            "REPLACE:Harm:k",
            "REPLACE:Harm:k: the outcome is DO NOT USE. r Read its misses.\ngap −0.2 [−0.3, −0.1]",
        ),
        ("ASSIST:tone:k", "ASSIST:tone:k: the outcome is CAN'T TELL. r"),
        ("ASSIST:tone:a:b", "ASSIST:tone:a:b: nothing was decided"),
    ],
)
def test_the_error_says_what_came_out_and_why(demand: str, message: str) -> None:
    with pytest.raises(NotReached) as caught:
        _require(demand)
    assert str(caught.value) == message
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, jb.JudgebenchError)


def test_a_demand_names_its_judge_where_there_are_several() -> None:
    with pytest.raises(SetupError, match=r"names no judge.*; allowed: j, k, a:b"):
        DECISIONS.require("REPLACE", metric="harm")
    alone = replace(DECISIONS, judges={"j": "judge"})
    alone.require(jb.Outcome.REPLACE, metric="harm")


@pytest.mark.parametrize(
    ("demand", "allowed"),
    [
        ("NEVER:harm", "REPLACE, ASSIST, DO NOT USE"),
        ("REPLACE:nope", "harm, tone"),
        ("ASSIST:harm:nobody", "j, k, a:b"),
    ],
)
def test_an_unknown_name_is_an_error_with_those_that_exist(demand: str, allowed: str) -> None:
    with pytest.raises(SetupError, match=f"allowed: {allowed}"):
        _require(demand)


@pytest.mark.parametrize(
    ("demand", "meant"),
    [("REPLAC:harm:j", "REPLACE"), ("REPLACE:hram:j", "harm"), ("ASSIST:harm:a;b", "a:b")],
)
def test_a_misspelt_name_is_an_error_with_the_nearest(demand: str, meant: str) -> None:
    with pytest.raises(SetupError, match=f"did you mean '{meant}'"):
        _require(demand)
