"""Judges scored apart on items that all annotators agree on and on those where they differ."""

import numpy as np
import pytest
from align_case import aligned, metric, only
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.alignment import Alignment
from judgebench.alignment.against_truth import parts
from judgebench.alignment.alignment_tables import PARTS
from judgebench.records import Estimate

# Four unanimous items, four split ones, two with one label, one with none.
HUMANS = {
    "ann": "aabc" "abac" "a." ".",
    "bob": "aabc" "bcca" ".c" ".",
    "cy_": "...." "..cb" ".." ".",
}  # fmt: skip
# truth: aabc    bccb    ac   .
JUDGE = {"m": "aaac" "bcca" "bc" "a"}  # fmt: skip


def estimate(
    found: Alignment, part: str, statistic: str = "accuracy", judge: str = "m"
) -> Estimate:
    return only(found, "unanimity", statistic, who=part, judge=judge)


def test_accuracy_on_each_part_by_hand() -> None:
    found = aligned(HUMANS, JUDGE)
    assert [estimate(found, part).value for part in PARTS] == [3 / 4, 3 / 4, 1 / 2]
    assert [estimate(found, part).n for part in PARTS] == [4, 4, 2]
    assert [estimate(found, part).n_missing for part in PARTS] == [0, 0, 0]


def test_soft_agreement_is_the_share_of_annotators_on_the_judges_side() -> None:
    found = aligned(HUMANS, JUDGE)
    split = (1 / 2 + 1 / 2 + 2 / 3 + 1 / 3) / 4
    assert estimate(found, "unanimous", "soft_agreement").value == 3 / 4
    assert estimate(found, "split", "soft_agreement").value == pytest.approx(split)
    assert estimate(found, "single", "soft_agreement").value == 1 / 2


def test_failures_are_missing_and_counted_on_their_part() -> None:
    found = aligned(HUMANS, {"m": "aa.cbc...ca"})
    assert [estimate(found, part).n for part in PARTS] == [3, 2, 1]
    assert [estimate(found, part).n_missing for part in PARTS] == [1, 2, 1]
    assert [estimate(found, part, "soft_agreement").n_missing for part in PARTS] == [1, 2, 1]


def test_a_part_without_items_is_undefined_with_a_reason() -> None:
    found = aligned({"ann": "abc"}, {"m": "abc"})
    for part in ("unanimous", "split"):
        for statistic in ("accuracy", "severe_recall", "soft_agreement"):
            e = estimate(found, part, statistic)
            assert (e.value, e.n, e.n_missing) == (None, 0, 0)
            assert e.reason
    assert estimate(found, "single").value == 1


def test_controls_are_scored_too_and_nominal_metrics_have_no_severe_recall() -> None:
    found = aligned(HUMANS, JUDGE, controls={"const": "a" * 11}, measured=metric("nominal"))
    assert {x.judge for x in found.results.select("unanimity")} == {"m", "const"}
    assert {x.statistic for x in found.results.select("unanimity")} == {
        "accuracy",
        "soft_agreement",
    }
    assert estimate(found, "unanimous", judge="const").value == 2 / 4


def test_only_those_who_make_the_truth_agree_or_differ() -> None:
    humans = {"expert": "aabb", "nurse": "bbbb"}
    found = aligned(humans, {"m": "aabb"}, annotators=["expert"])
    assert estimate(found, "single").n == 4
    assert estimate(found, "split").n == 0


def test_under_each_every_label_counts_and_splits_are_still_by_item() -> None:
    found = aligned(HUMANS, JUDGE, rule="each")
    assert [estimate(found, part).n for part in PARTS] == [8, 10, 2]
    assert estimate(found, "unanimous").value == 6 / 8
    soft = aligned(HUMANS, JUDGE)
    for part in PARTS:
        e = estimate(found, part, "soft_agreement")
        assert e == estimate(soft, part, "soft_agreement")


def test_a_tie_that_nobody_settles_has_no_truth_but_soft_labels() -> None:
    found = aligned({"ann": "aab", "bob": "bab"}, {"m": "aab"}, ties="none")
    assert estimate(found, "split").n == 0
    assert estimate(found, "split", "soft_agreement").value == 0.5


ratings = st.tuples(st.integers(0, 12), st.integers(0, 4)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(-1, 2))
)


@settings(deadline=None)
@given(ratings)
def test_every_item_with_a_label_is_in_one_part(values) -> None:
    found = parts(values)
    for i, unit in enumerate(values):
        said = [int(x) for x in unit if x >= 0]
        expected = {
            "unanimous": len(said) > 1 and len(set(said)) == 1,
            "split": len(set(said)) > 1,
            "single": len(said) == 1,
        }
        assert {part: bool(rows[i]) for part, rows in found.items()} == expected
