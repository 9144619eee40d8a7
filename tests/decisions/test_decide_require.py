"""Demands on the decisions, as a pipeline makes them."""

from dataclasses import replace

import pytest
from align_case import metric, rubric

from judgebench.decisions.decision import Decision, Decisions, Outcome, unreached
from judgebench.decisions.rule import DecisionRule
from judgebench.errors import SetupError

RUBRIC = rubric(metric(), metric(id="tone", title="Tone of voice"))
MADE = (
    Decision("j", "harm", Outcome.REPLACE, "r"),
    Decision("k", "harm", Outcome.DO_NOT_USE, "r", advice="Read its misses."),
    Decision("j", "tone", Outcome.ASSIST, "r"),
    Decision("k", "tone", Outcome.CANT_TELL, "r"),
)
DECISIONS = Decisions(
    "d", RUBRIC, DecisionRule(), MADE, judges={"j": "judge", "k": "judge", "a:b": "judge"}
)


def _unreached(*texts: str) -> list[str]:
    return [*unreached(texts, DECISIONS)]


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
    assert (not _unreached(text)) is reached


def test_the_line_on_what_was_not_reached_says_what_came_out_and_why() -> None:
    missed = unreached(["REPLACE:Harm:k", "ASSIST:tone:k", "ASSIST:tone:a:b"], DECISIONS)
    assert [*missed.values()] == [
        "REPLACE:Harm:k: the outcome is DO NOT USE. r Read its misses.",
        "ASSIST:tone:k: the outcome is CAN'T TELL. r",
        "ASSIST:tone:a:b: nothing was decided",
    ]


def test_a_demand_names_its_judge_where_there_are_several() -> None:
    with pytest.raises(SetupError, match=r"names no judge.*REPLACE:harm:j, REPLACE:harm:k"):
        unreached(["REPLACE:harm"], DECISIONS)
    alone = replace(DECISIONS, judges={"j": "judge"})
    assert not unreached(["REPLACE:harm"], alone)


def test_every_demand_that_makes_no_sense_is_told_with_what_is_allowed() -> None:
    with pytest.raises(SetupError) as caught:
        unreached(["NEVER:harm", "REPLACE", "REPLACE:nope", "ASSIST:harm:nobody"], DECISIONS)
    told = [str(problem) for problem in caught.value.problems]
    assert len(told) == 4
    assert "REPLACE:METRIC, ASSIST:METRIC, DO NOT USE:METRIC" in told[0]
    assert "harm, tone" in told[1]
    assert "harm, tone" in told[2]
    assert "j, k, a:b" in told[3]


@pytest.mark.parametrize(
    ("text", "meant"),
    [("REPLAC:harm:j", "REPLACE"), ("REPLACE:hram:j", "harm"), ("ASSIST:harm:a;b", "a:b")],
)
def test_what_is_misspelt_is_told_with_the_nearest(text: str, meant: str) -> None:
    with pytest.raises(SetupError, match=f"did you mean '{meant}'"):
        unreached([text], DECISIONS)
