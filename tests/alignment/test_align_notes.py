"""What a reader must not overlook."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from align_case import agreed, aligned, answers, labels, metric, rubric, verdicts
from aligned import align

import judgebench as jb
from judgebench.alignment.notes import reversed_labels
from judgebench.results.blocks import caveats
from judgebench.studies.reference_labels import TruthConfig


def test_missing_truth_abstentions_and_blanks_are_counted() -> None:
    found = aligned({"ann": "ab.?__", "bob": "aa.???"})
    *notes, few = found.notes
    assert notes == [
        "Harm: 4 of 6 answers have no reference label.",
        "Harm: 4 human labels of abstention.",
        "Harm: 2 blank cells, taken as no label.",
    ]
    assert few.startswith("Few questions: 5 groups of answers with labels.")
    assert (found.n_answers, found.study.n_labels) == (6, 8)


def test_tied_nominal_labels_are_undecided_and_counted() -> None:
    humans = {"ann": "aab.", "bob": "abc."}
    found = aligned(humans, measured=metric("nominal"))
    assert found.notes[0] == "Harm: 3 of 4 answers have no reference label."
    stated = aligned(humans, measured=metric("nominal"), ties="upper")
    assert stated.notes[0] == "Harm: 1 of 4 answers have no reference label."


def test_partial_overlap_says_which_items_the_terms_of_agreement_rest_on() -> None:
    found = aligned({"ann": "aabbaaabc...", "bob": "abbbaacb.aa."})
    for statistic in ("ac", "fleiss"):
        estimate = agreed(found, statistic)
        assert (estimate.n, estimate.n_missing) == (8, 4)
        assert estimate.method.startswith("agreement on the 8 items with two labels or more")
    whole = aligned({"ann": "aabbaabbaa", "bob": "abbbaabbba"})
    assert whole.notes == ()
    assert agreed(whole, "fleiss").method.startswith("jackknife-t over 10 clusters")


def test_a_model_or_judge_in_the_truth_is_told_wherever_the_truth_is() -> None:
    found = aligned({"ann": "abca", "llm-1": "abca", "m": "abca"}, {"m": "abca"})
    told = (
        "Reference labels: the median of ann, llm-1 (which is named like a model) and m (which has "
        "the name of a judge); ties go to the more severe label."
    )
    assert told in found.compared[0]
    assert told in str(found.part.blocks[0].text)
    assert found.records()["truth"] == [found.compared[0]]
    fix = "leave it out with `truth: {annotators: [ann]}` or compare it with "
    notes = [note for note in found.notes if "makes the reference labels" in note]
    assert [note.partition(" makes")[0] for note in notes] == ["'llm-1'", "'m'"]
    assert all(fix in note for note in notes)


def test_who_uses_labels_as_nobody_else_does_is_named() -> None:
    truth = "aaab" * 30
    flipped = truth.translate(str.maketrans("ab", "ba"))
    strict = "bbab" * 30
    (note,) = [n for n in aligned({"ann": truth, "bob": truth, "cem": flipped}).notes if "cem" in n]
    assert note.startswith(
        "Harm: cem gave 'a' on 25 % and the others on 75 % of the same 120 items, and"
    )
    assert "seems to have exchanged 'a' and 'b'. Ask how cem" in note
    (note,) = [n for n in aligned({"ann": truth, "bob": truth, "cem": strict}).notes if "cem" in n]
    assert "exchanged" not in note
    both = [n for n in aligned({"ann": truth, "cem": flipped}).notes if "gave" in n]
    assert [note.split()[1] for note in both] == ["ann", "cem"]  # nothing shows who is odd


@pytest.mark.parametrize(
    ("labels", "is_asked"),
    [("ab" * 15, True), ("ab" * 14, False), ("a" * 30, False), ("." + "ab" * 15, True)],
)
def test_labels_that_are_the_same_on_all_items_are_asked_about(labels: str, is_asked: bool) -> None:
    alignment = aligned({"ann": labels, "bob": labels, "cem": labels[:20] + "." * len(labels[20:])})
    asked = "all 30 items that two or more labelled: was one label copied into each row?"
    assert any(asked in note for note in alignment.part.urgent) == is_asked
    other = aligned({"ann": labels, "bob": labels, "cem": labels[:-1] + "c"})
    assert not other.part.urgent


def test_labels_of_each_annotator_are_counted() -> None:
    found = aligned({"ann": "aab.", "bob": "abb.", "cem": "...c"})
    counts = {
        (row["who"], row["human_label"]): (row.estimate.value, row.estimate.n)
        for row in found.results.select("annotator_labels", "count")
    }
    assert (counts["ann", "a"], counts["bob", "b"], counts["cem", "c"]) == ((2, 3), (2, 3), (1, 1))


def test_the_number_of_ties_is_said() -> None:
    tied = aligned({"ann": "aabb", "bob": "abbb"}).compared[0]
    assert "the median of ann and bob; ties (1 of 4) go to the more severe label." in tied
    never = aligned({"ann": "aabb", "bob": "abbb", "cem": "aabb"}).compared[0]
    assert "; ties go to the more severe label." in never
    by_majority = aligned({"ann": "abc", "bob": "aab", "cem": "aca"}, rule="majority")
    assert "ties (2 of 3) go" in by_majority.compared[0]


def test_the_labels_of_one_annotator_need_no_rule() -> None:
    two = rubric(metric(), metric("nominal", "xy", id="kind", title="Kind", question="Which?"))
    human = [*labels({"ann": "ab"}), *labels({"ann": "xy"}, "kind")]
    found = align("x", two, answers(2), human, [])
    assert found.compared == (
        "2 answers and 4 human labels. Reference labels: those of ann.", "Bar: ann.",
    )  # fmt: skip


def test_where_nothing_is_missing_nothing_is_told() -> None:
    ten = "abcabcabca"
    assert aligned({"ann": ten}, {"m": ten}, controls={"random": "bcabcabcab"}).notes == ()
    (few,) = aligned({"ann": ten[1:]}, {"m": ten[1:]}).notes
    assert few == (
        "Few questions: 9 groups of answers with labels. Below 10 an interval is a rough one; "
        "below 5 there is none, but for shares of independent answers."
    )


def test_a_judge_that_says_one_thing_only_is_named() -> None:
    found = aligned({"ann": "abca"}, {"m": "aaaa", "k": "ab.a"}, controls={"fixed": "aaaa"})
    assert found.part.urgent == (
        "m gives nearly one label throughout: 'a' on 4 of 4 items of Harm, by the humans on 2.",
    )
    assert caveats([found.part])[0] == found.part.urgent[0]
    assert found.part.urgent[0] in " ".join(str(found).split())


# 221 of 233 verdicts are one label, of which the humans gave 97.
@pytest.mark.parametrize(
    ("human", "judge", "told"),
    [
        ("a" * 97 + "b" * 136, "a" * 90 + "b" * 7 + "a" * 131 + "b" * 5, True),
        ("a" * 221 + "b" * 12, "b" * 12 + "a" * 221, False),  # as skewed, though all wrong
        ("a" * 200 + "b" * 33, "a" * 233, True),
        ("a" * 200 + "b" * 33, "a" * 210 + "b" * 23, False),  # what it says otherwise is right
        ("ab" * 116 + "a", "a" * 150 + "b" * 83, False),  # bad, and no constant
    ],
)
def test_nearly_one_label_is_named_where_humans_differ(human: str, judge: str, told: bool) -> None:
    found = aligned({"ann": human}, {"m": judge})
    assert bool(found.part.urgent) == told


def test_the_constant_control_follows_the_truth_and_says_what_it_says() -> None:
    """Its file says `b` and nothing, as one that was learnt on other questions."""
    items, humans = answers(5), labels({"ann": "aabba", "bob": "bbbbb"})
    control = verdicts("constant-majority", "b.bb.", items, "control")
    control = replace(control, about={"control": "constant-majority"})
    judge = verdicts("m", "aabba", items)
    for people, label, right in ((("ann",), "a", 0.6), (("ann", "bob"), "b", 1.0)):
        truth = TruthConfig(annotators=people)
        found = align("x", rubric(), items, humans, [judge, control], truth)
        score = found.score("accuracy", "constant-majority", "harm")
        assert (score.value, score.n) == (right, 5)
        (note,) = [note for note in found.notes if "constant-majority" in note]
        assert f"always says {label!r} on Harm" in note


def test_a_label_that_a_judge_never_gives_is_named_where_that_is_no_chance() -> None:
    humans = {"ann": "aabc" * 6}
    (note,) = aligned(humans, {"m": "aabb" * 6}).notes[-1:]
    assert note.startswith("m never gave 'c' on Harm, which is 25 % of the human labels")
    few = aligned({"ann": "aabc" * 3}, {"m": "aabb" * 3})
    rare = aligned({"ann": "aab" * 30 + "c"}, {"m": "aab" * 30 + "b"})
    assert not any("never gave" in note for note in (*few.notes, *rare.notes))


@pytest.mark.parametrize(
    ("judge", "control", "told"),
    [("abb", "abb", True), ("abb", "acb", False), ("abb", "abc", True), ("...", "abc", False)],
)
def test_a_judge_that_a_control_matches_is_named(judge: str, control: str, told: bool) -> None:
    found = aligned({"ann": "abc"}, {"m": judge}, controls={"random": control})
    note = "m is no more accurate than a baseline on Harm."
    assert (note in found.notes) == told


def test_labels_that_run_the_other_way_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    grades = rng.integers(1, 6, 60)
    labels = ["id,annotator,quality"]
    for name in ("ann", "ben", "cem"):
        noisy = np.clip(grades + rng.integers(-1, 2, 60), 1, 5)
        given = 6 - noisy if name == "cem" else noisy
        labels += [f"a{i},{name},{grade}" for i, grade in enumerate(given)]
    (tmp_path / "labels.csv").write_text("\n".join(labels))
    for name, given in (("judge", grades), ("reversed", 6 - grades)):
        rows = [f"a{i},{grade}" for i, grade in enumerate(given)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,quality", *rows]))

    study = jb.study(tmp_path / "labels.csv", [tmp_path / "judge.csv", tmp_path / "reversed.csv"])

    named = [note.partition(":")[0] for note in reversed_labels(study)]
    assert named == ["reversed", "cem"]
    assert "`--order` holds for all tables" in str(jb.decide(study))
