from dataclasses import replace

import pytest
from ranking_case import bare_rankings, planted_rankings

from judgebench.ranking.rankers import Rankings
from judgebench.ranking.report import ranking_sentences
from judgebench.records import Estimate, Results

PLANTED = planted_rankings()


def said(rankings: Rankings, task: int = 0) -> list[str]:
    return ranking_sentences(rankings, rankings.tasks[task])


@pytest.mark.parametrize(
    "sentence",
    [
        "expert-trained: misled by label-only (above 2 of 3 arguments).",
        "llm-trained: not misled: no-argument, label-only, noise and passages rank below every "
        "argument.",
        "expert-trained and judge/one-8b (judge): gold ranks above every other argument.",
        "llm-trained: gold and smollm2-135m share the best score.",
    ],
)
def test_rankers_are_told_with_what_is_clear_of_them(sentence: str) -> None:
    assert sentence in said(PLANTED)


def test_what_the_resamples_do_not_bear_is_not_said() -> None:
    sentences = said(PLANTED)
    unsure = "passages cannot be distinguished from some arguments"
    assert (
        f"judge/one-8b (judge): no control case clearly ranks above an argument, but {unsure}."
        in sentences
    )
    humans = "humans: gold has the best score, but cannot be distinguished from qwen-1.5b and "
    humans += "smollm2-135m."
    assert humans in sentences
    rows = tuple(row for row in PLANTED.rows if row.analysis != "above")
    without = replace(PLANTED, rows=Results(rows))
    assert not [s for s in said(without) if "misled" in s or "above every" in s]


def test_agreement_with_the_humans_is_claimed_only_beyond_0() -> None:
    beyond, none = (s for s in said(PLANTED) if "with the humans" in s)
    assert beyond == (
        "Agreement with the humans beyond chance: expert-trained (tau-b 0.62 [0.42, 0.82])."
    )
    assert none.startswith("No agreement with the humans is shown: baseline (tau-b 0.05 [-0.05")
    assert "constant" not in none


def test_of_control_rankers_nothing_is_said() -> None:
    agreed = [
        replace(r, estimate=Estimate(0.0001 if r.statistic == "p" else 0.9))
        if r["ranker"] == "constant" and r.analysis in ("agreement", "length_bias", "above")
        else r
        for r in PLANTED.rows
    ]
    found = said(replace(PLANTED, rows=Results(tuple(agreed))))
    assert found
    assert not [s for s in found if "constant" in s]


def test_a_claim_is_divided_by_the_rankers_it_may_be_made_of() -> None:
    def with_p(p: float) -> list[str]:
        rows = tuple(
            replace(r, estimate=Estimate(p))
            if r.statistic == "p" and r["ranker"] == "expert-trained"
            else r
            for r in PLANTED.rows
        )
        return [s for s in said(replace(PLANTED, rows=Results(rows))) if "expert-trained" in s]

    # five rankers of which something may be said; 4 x 3 pairs of a control case and an argument
    assert "expert-trained and judge/one-8b (judge): gold ranks above" in with_p(0.0099)[0]
    assert "expert-trained: gold has the best score, but cannot be" in with_p(0.0101)[0]
    misled = [any("misled by label-only" in s for s in with_p(p)) for p in (0.0008, 0.0009)]
    assert misled == [True, False]
    agree = [any("beyond chance: expert" in s for s in with_p(p)) for p in (0.012, 0.013)]
    assert agree == [True, False]  # the four that rank beside the humans


def test_of_an_order_that_is_not_sure_nothing_is_claimed_and_the_reason_is_said() -> None:
    unsure = Estimate(None, reason="it was trained once")
    rows = tuple(
        replace(r, estimate=unsure)
        if (r.analysis, r.statistic, r["ranker"]) == ("above", "p", "expert-trained")
        else r
        for r in PLANTED.rows
    )
    found = [s for s in said(replace(PLANTED, rows=Results(rows))) if "expert-trained" in s]
    assert found[0] == "expert-trained: gold has the best score, but it was trained once."
    assert not [s for s in found if "misled" in s or "control case" in s]


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


def test_without_resamples_humans_and_controls_little_is_said() -> None:
    assert said(bare_rankings()) == [
        "baseline: gold has the best score, but cannot be distinguished from m."
    ]
    assert said(replace(bare_rankings(), rows=Results())) == []
