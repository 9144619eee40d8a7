from __future__ import annotations

from dataclasses import replace

from ranking_case import bare_rankings, planted_rankings

from judgebench.ranking.rankings import Rankings
from judgebench.ranking.sentences import direction, ranking_sentences
from judgebench.records import Estimate
from judgebench.results.rows import Results

PLANTED = planted_rankings()


def said(rankings: Rankings, task: int = 0) -> list[str]:
    return ranking_sentences(rankings, rankings.tasks[task])


def test_a_misled_evaluator_is_named_with_what_misleads_it() -> None:
    assert "expert-trained: misled by label-only (above 2 of 3 arguments)." in said(PLANTED)


def test_one_that_is_not_misled_is_named_too() -> None:
    words = "no-argument, label-only, noise and passages rank below every argument"
    assert f"llm-trained: not misled: {words}." in said(PLANTED)


def test_what_the_resamples_do_not_bear_is_not_said() -> None:
    sentences = said(PLANTED)
    unsure = "passages cannot be distinguished from some arguments"
    assert (
        f"judge/one-8b (judge): no control case clearly ranks above an argument, but {unsure}."
        in sentences
    )
    humans = "humans: gold has the best score, but cannot be distinguished from qwen-1.5b."
    assert humans in sentences
    rows = tuple(row for row in PLANTED.rows if row.analysis != "above")
    without = replace(PLANTED, rows=Results(rows))
    assert not [s for s in said(without) if "misled" in s or "above every" in s]


def test_the_best_argument_is_named_where_it_clearly_is() -> None:
    sentences = said(PLANTED)
    together = "expert-trained and judge/one-8b (judge): gold ranks above every other argument."
    assert together in sentences
    assert "llm-trained: gold and smollm2-135m share the best score." in sentences


def test_a_flat_ranker_is_told_with_its_p() -> None:
    found = [s for s in said(PLANTED) if s.startswith("Friedman")]
    assert found == [
        "Friedman's test shows no difference between the systems for baseline (p = 0.561) and "
        "constant (control judge) (p = 0.561)."
    ]


def test_agreement_with_the_humans_is_claimed_only_beyond_0() -> None:
    beyond, none = (s for s in said(PLANTED) if "with the humans" in s)
    assert beyond == (
        "Agreement with the humans beyond chance: expert-trained (tau-b 0.62 [0.42, 0.82])."
    )
    assert none.startswith("No agreement with the humans is shown: baseline (tau-b 0.05 [-0.05")
    assert "constant" not in none


def test_biases_are_told_where_their_interval_leaves_0_out() -> None:
    length = [s for s in said(PLANTED) if "arguments rank higher" in s]
    assert length == [
        "Longer arguments rank higher with judge/one-8b (judge) (rho 0.31 [0.21, 0.41])."
    ]
    own = "judge/one-8b (judge) ranks qwen-1.5b higher than the other rankers do, by 0.50 "
    assert [s for s in said(PLANTED) if "ranks qwen" in s] == [
        f"{own}[0.30, 0.70] places (of the family qwen)."
    ]
    assert not [s for s in said(PLANTED, 1) if "ranks qwen" in s]


def test_shorter_arguments_may_stand_higher() -> None:
    (bias,) = PLANTED.rows.select("length_bias", "rho", task="claims", ranker="baseline")
    short = replace(bias, estimate=Estimate(-0.3, -0.4, -0.2, "m", 9))
    made = replace(PLANTED, rows=Results(tuple(short if r is bias else r for r in PLANTED.rows)))
    assert "Shorter arguments rank higher with baseline (rho -0.30 [-0.40, -0.20])." in said(made)


def test_without_resamples_humans_and_controls_little_is_said() -> None:
    assert said(bare_rankings()) == [
        "baseline: gold has the best score, but cannot be distinguished from m."
    ]
    assert said(replace(bare_rankings(), rows=Results())) == []


def test_the_direction_of_an_interval() -> None:
    assert direction(Estimate(0.2, 0.1, 0.3)) == "up"
    assert direction(Estimate(-0.2, -0.3, -0.1)) == "down"
    assert direction(Estimate(0.0, -0.1, 0.1)) == direction(Estimate(0.5)) == ""
