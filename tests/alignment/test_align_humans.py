"""The humans among themselves: agreement, the ceiling, the distribution of labels."""

from dataclasses import replace

import krippendorff
import numpy as np
import pytest
from align_case import agreed, aligned, ceiling, metric
from crowd_case import crowd

from judgebench.alignment.judge_scores import MOST_ANNOTATORS_IN_PAIRS
from judgebench.results.latex import to_latex

THREE = {"ann": "aabbc", "bob": "aabcc", "cy": "abbc."}
ICC = {"icc2"}


def alpha_of(humans: dict[str, str], level: str) -> float:
    rows = [[np.nan if x in "._?" else "abc".index(x) for x in row] for row in humans.values()]
    return krippendorff.alpha(reliability_data=np.array(rows), level_of_measurement=level)


# --- agreement -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
def test_alpha_at_the_metrics_level_of_measurement(kind: str) -> None:
    found = aligned(THREE, measured=metric(kind))
    alpha = agreed(found, "alpha")
    assert alpha.value == pytest.approx(alpha_of(THREE, kind), abs=1e-12)
    assert alpha.n == 5
    assert alpha.method.startswith(f"{kind} level of measurement; ")
    pair = {a: THREE[a] for a in ("ann", "cy")}
    found_pair = agreed(found, "alpha", "ann ~ cy")
    assert found_pair.value == pytest.approx(alpha_of(pair, kind), abs=1e-12)
    assert (found_pair.n, found_pair.n_missing) == (4, 1)


def test_shares_of_agreement_by_hand() -> None:
    # items: aaa, aab, bbb, bcc, cc
    found = aligned(THREE)
    assert agreed(found, "at_least_two").value == 1
    assert agreed(found, "all_agree").value == pytest.approx(3 / 5)
    # pairs that agree: 3 of 3, 1 of 3, 3 of 3, 1 of 3, 1 of 1
    observed = agreed(found, "observed")
    assert observed.value == pytest.approx(9 / 13)
    assert observed.n == 13
    assert observed.method.startswith("n counts pairs of labels; ")


def test_gwet_and_fleiss_by_hand() -> None:
    # items: aaa, aab, bbb, bcc, cc. Of the pairs agree 1, 1/3, 1, 1/3, 1; shares a (1 + 2/3) / 5,
    # b (1/3 + 1 + 1/3) / 5, c (2/3 + 1) / 5: a third each.
    nominal = aligned(THREE, measured=metric("nominal"))
    p_a = (3 + 2 / 3) / 5
    assert agreed(nominal, "ac").value == pytest.approx((p_a - 1 / 3) / (1 - 1 / 3))
    # The disagreeing pairs are one step apart, and (1/2)^2 is their weight; p_e = 6 / 6 * 2/3.
    ordinal = aligned(THREE)
    assert agreed(ordinal, "ac").value == pytest.approx(1 - (1 - p_a) / 4 / (1 - 2 / 3))
    for found in (nominal, ordinal):
        assert agreed(found, "fleiss").value == pytest.approx((p_a - 1 / 3) / (1 - 1 / 3))
        assert agreed(found, "fleiss").n == 5


def test_intraclass_correlation_is_of_people_and_severities() -> None:
    nominal = aligned(THREE, measured=metric("nominal"))
    assert not {a.statistic for a in nominal.results.select("agreement")} & ICC
    alone = aligned({"ann": "abc", "crowd#1": "abc", "crowd#2": "abb"})
    assert not {a.statistic for a in alone.results.select("agreement")} & ICC
    slots = aligned({**THREE, "crowd#1": "ccccc", "crowd#2": "aaaaa"})
    assert agreed(slots, "icc2") == agreed(aligned(THREE), "icc2")
    far = aligned(THREE, measured=metric(severities=(0, 1, 10)))
    assert agreed(far, "icc2").value != pytest.approx(agreed(slots, "icc2").value)


def test_items_with_one_label_do_not_count() -> None:
    found = aligned({"ann": "aab.", "bob": "a.bc"})
    for name in ("alpha", "ac", "fleiss", "icc2", "at_least_two", "all_agree"):
        assert (agreed(found, name).n, agreed(found, name).n_missing) == (2, 2)
    assert agreed(found, "all_agree").value == 1


def test_all_pairs_of_named_annotators_are_listed() -> None:
    found = aligned(THREE)
    assert [a["who"] for a in found.results.select("agreement") if a.statistic == "alpha"] == [
        "all", "ann ~ bob", "ann ~ cy", "bob ~ cy",
    ]  # fmt: skip


@pytest.mark.parametrize("n", [MOST_ANNOTATORS_IN_PAIRS, MOST_ANNOTATORS_IN_PAIRS + 1])
def test_too_many_pairs_are_left_out(n: int) -> None:
    found = aligned({f"p{i:02}": "abc" for i in range(n)})
    pairs = [a for a in found.results.select("agreement", "alpha") if a["who"] != "all"]
    few = n <= MOST_ANNOTATORS_IN_PAIRS
    assert len(pairs) == (n * (n - 1) // 2 if few else 0)


def test_slots_are_pooled_and_never_a_pair() -> None:
    humans = {"crowd#1": "aabb", "crowd#2": "abbb", "crowd#3": "ab..", "expert": "aabb"}
    found = aligned(humans)
    assert {a["who"] for a in found.results.select("agreement")} == {"all"}
    assert agreed(found, "alpha").value == pytest.approx(alpha_of(humans, "ordinal"))
    # Who stood in which slot is no matter, item by item.
    mixed = {"crowd#1": "ab.b", "crowd#2": "abb.", "crowd#3": "a.bb", "expert": "aabb"}
    same = {"crowd#1": "abbb", "crowd#2": "abbb", "crowd#3": "a...", "expert": "aabb"}
    assert not {a.statistic for a in found.results.select("agreement")} & ICC
    for name in ("alpha", "ac", "fleiss", "observed", "at_least_two", "all_agree"):
        assert agreed(aligned(mixed), name) == agreed(aligned(same), name)
    assert {c["who"] for c in found.results.select("ceiling")} == {"all", "expert"}
    assert any("are places in a list, not people" in note for note in found.notes)


def test_everybody_agreeing_on_one_label_is_undefined_and_not_1() -> None:
    found = aligned({"ann": "aaaa", "bob": "aaaa"})
    for name in ("alpha", "ac", "fleiss"):
        assert agreed(found, name).value is None
        assert "only one label was ever used" in agreed(found, name).reason
    assert agreed(found, "icc2").value is None
    assert "the same severity" in agreed(found, "icc2").reason
    assert agreed(found, "observed").value == 1
    assert agreed(found, "observed").low < 1  # type: ignore[operator]
    kappa = ceiling(found, "kappa")
    assert kappa.value is None
    assert "one label only" in kappa.reason


@pytest.mark.parametrize(
    "humans",
    [
        {"ann": "abca"},  # one annotator only
        {"ann": "ab..", "bob": "..ca"},  # nobody overlaps
        {"ann": "ab__", "bob": "??ca"},  # blanks and abstentions are no labels
        {"ann": "...."},
    ],
)
def test_without_overlap_there_is_no_agreement_and_it_says_so(humans) -> None:
    found = aligned(humans)
    for a in found.results.select("agreement"):
        if a["who"] == "all":
            assert (a.estimate.value, a.estimate.n) == (None, 0)
            who = "every annotator" if a.statistic in ICC else "two annotators"
            assert a.estimate.reason.startswith(f"no item was labelled by {who}")
    for c in found.results.select("ceiling"):
        assert c.estimate.value is None
        assert c.estimate.reason == "no item was labelled by this annotator and another"
    each = aligned(humans, rule="each")
    assert all(
        c.estimate.value is None and c.estimate.reason for c in each.results.select("ceiling")
    )


# --- the ceiling ---------------------------------------------------------------------------------


def test_each_annotator_against_the_truth_of_the_others_by_hand() -> None:
    # Where the two others differ, an item is left out: ann against bob+cy (a . b c c) is right on 3
    # of 4, bob against ann+cy (a . b . c) on 3 of 3, cy against ann+bob (a a b . c) on 2 of 3.
    found = aligned(THREE)
    assert ceiling(found, "accuracy", "ann").value == pytest.approx(3 / 4)
    assert ceiling(found, "accuracy", "bob").value == pytest.approx(3 / 3)
    assert ceiling(found, "accuracy", "cy").value == pytest.approx(2 / 3)
    pooled = ceiling(found, "accuracy")
    assert (pooled.value, pooled.n, pooled.n_missing) == (pytest.approx(8 / 10), 10, 4)


def test_the_ceiling_has_kappas_as_a_judge_would() -> None:
    from sklearn.metrics import cohen_kappa_score

    humans = {"ann": "aabbccab", "bob": "abbbcaab"}
    found = aligned(humans)
    a, b = (list(row) for row in humans.values())
    assert ceiling(found, "kappa", "ann").value == pytest.approx(cohen_kappa_score(a, b))
    assert ceiling(found, "kappa_quadratic", "bob").value == pytest.approx(
        cohen_kappa_score(a, b, weights="quadratic")
    )
    nominal = aligned(humans, measured=metric("nominal"))
    assert {c.statistic for c in nominal.results.select("ceiling", who="ann")} == {
        "accuracy", "kappa", "alpha",
    }  # fmt: skip


def test_an_annotator_is_scored_as_the_judge_that_says_the_same() -> None:
    humans = {"ann": "aabbccab", "bob": "abbbcaab", "cy": "aabcccbb"}
    others = {name: row for name, row in humans.items() if name != "ann"}
    judged = {
        s.statistic: s.estimate
        for s in aligned(others, {"m": humans["ann"]}, ties="none").results.select("score")
    }
    found = aligned(humans)
    for name in ("accuracy", "kappa", "kappa_quadratic"):
        own = ceiling(found, name, "ann")
        assert own.n_missing == 4  # the others tie there
        assert replace(own, n_missing=0) == judged[name]


def test_who_does_not_make_the_truth_is_measured_against_those_who_do() -> None:
    humans = {"expert": "abab", "crowd#1": "aabb", "crowd#2": "aabb"}
    found = aligned(humans, annotators=("crowd#*",))
    assert ceiling(found, "accuracy", "expert").value == pytest.approx(1 / 2)
    assert ceiling(found, "accuracy").value == 1  # the crowd among itself
    assert {a["who"] for a in found.results.select("agreement")} == {"all"}
    assert agreed(found, "observed").value == 1


def test_labels_that_nobody_can_check_are_counted() -> None:
    found = ceiling(aligned({"ann": "abc.", "bob": "ab.a"}), "accuracy", "ann")
    assert (found.value, found.n, found.n_missing) == (1, 2, 1)


def test_under_each_the_ceiling_is_the_agreement_of_pairs() -> None:
    found = aligned(THREE, rule="each")
    assert {c["who"] for c in found.results.select("ceiling")} == {"all"}
    accuracy, observed = ceiling(found, "accuracy"), agreed(found, "observed")
    assert (accuracy.value, accuracy.low, accuracy.high, accuracy.n) == (
        observed.value, observed.low, observed.high, 13,
    )  # fmt: skip


# --- distribution --------------------------------------------------------------------------------


def shares(found) -> dict[str, tuple[int, int]]:
    rows = found.results.select("distribution")
    return {r["human_label"]: (r.estimate.value, r.estimate.n) for r in rows}


def test_blank_cells_are_no_labels_in_the_distribution() -> None:
    found = aligned({"ann": "aabc__._?"})
    assert shares(found) == {"a": (2, 4), "b": (1, 4), "c": (1, 4)}
    assert "Harm: 3 blank cells, taken as no label." in found.notes


def test_under_each_all_labels_are_counted() -> None:
    found = aligned({"ann": "ab_", "bob": "bb."}, rule="each")
    assert shares(found) == {"a": (1, 4), "b": (3, 4), "c": (0, 4)}


# --- answers that nobody rated -------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["median", "each"])
def test_answers_that_nobody_rated_change_nothing_but_what_is_missing(rule: str) -> None:
    judge = {"m": "abbc.a"}
    few = {"ann": "aabb.c", "bob": "abbcca", "cy": "a.bcc_"}
    alone = aligned(few, judge, rule=rule, groups="ppqqrr")
    among = aligned(
        {who: f"...{row}..." for who, row in few.items()}, {"m": "cab" + judge["m"] + "..a"},
        rule=rule, groups="xyp" + "ppqqrr" + "qzz",
    )  # fmt: skip
    for analysis in ("score", "ceiling", "distribution", "confusion"):
        assert among.results.select(analysis) == alone.results.select(analysis)
    for many, one in zip(
        among.results.select("agreement"), alone.results.select("agreement"), strict=True
    ):
        extra = 0 if one.statistic == "observed" else 6
        estimate = replace(one.estimate, n_missing=one.estimate.n_missing + extra)
        assert many == replace(one, estimate=estimate)


def test_who_is_out_of_the_bar_is_named_wherever_one_annotator_stands() -> None:
    labelled = crowd([0.05, 0.03, 0.03, 0.45])
    judge, *people = ("".join("ab"[label] for label in column) for column in labelled.T)
    found = aligned(dict(zip(("ann", "bob", "kim"), people, strict=True)), {"m": judge})
    careful = ceiling(found, "accuracy")
    assert careful.method.startswith("without kim, who is out of the bar; ")
    assert careful.value > ceiling(found, "accuracy", "kim").value + 0.2
    said = "One annotator: without kim, who is out of the bar."
    assert said in to_latex([found.part])["main.tex"]
    assert said in " ".join(str(found).split())
