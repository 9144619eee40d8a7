"""An annotator in the judge's place."""

from dataclasses import replace

import pytest
from align_case import answers, labels, metric, rubric

from judgebench.errors import SetupError
from judgebench.judges.recorded import (
    annotators_as_judges,
    lacking_labels,
    truth_of_others,
)
from judgebench.records import HumanLabel, Status
from judgebench.studies.answers import indexed
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, study_of

HUMANS = labels({"ann": "ab.", "bob": "aba", "eve": "_.."})


def given(judge: JudgeVerdicts) -> dict[str, str | None]:
    return {i: v.labels.get("harm") for i, v in judge.verdicts.items()}


def test_without_a_row_an_annotator_was_not_asked() -> None:
    items = indexed(answers(5))
    (ann,) = annotators_as_judges(["ann"], rubric(), items, HUMANS)
    assert (ann.name, ann.kind) == ("ann", "judge")
    assert given(ann) == {"i0": "a", "i1": "b"}
    assert ann.verdicts["i0"].content_hash == answers(3)[0].content_hash
    study = replace(study_of(rubric(), items, HUMANS, TruthConfig()), judges=(ann,))
    assert study.gaps == ("ann: 2 of 3 asked; its numbers are of these.",)  # of those labelled


def test_a_blank_cell_fails() -> None:
    part = labels({"ann": "ab_..", "bob": "abaab"})
    (ann,) = annotators_as_judges({"ann": "rows"}, rubric(), indexed(answers(5)), part)
    assert given(ann) == {"i0": "a", "i1": "b", "i2": None}
    assert ann.verdicts["i2"].status is Status.FAILED
    assert list(lacking_labels([ann])) == [
        "ann, in a judge's place, left 1 of 3 items blank: they count as failed"
    ]
    with pytest.raises(SetupError, match=r"as_judges: is none of items and rows; found part"):
        annotators_as_judges({"ann": "part"}, rubric(), indexed(answers(5)), part)


def test_of_a_metric_without_a_row_nothing_is_due() -> None:
    two = rubric(metric(), metric(id="tone", title="Tone"))
    (bob,) = annotators_as_judges(["bob"], two, indexed(answers(3)), HUMANS)
    assert dict(bob.verdicts["i2"].labels) == {"harm": "a"}
    assert [bob.judges(measured) for measured in two.metrics] == [True, False]


def test_labels_of_other_metrics_and_of_unknown_items_are_left_out() -> None:
    more = [*HUMANS, HumanLabel("zz", "ann", "harm", "a"), HumanLabel("i2", "ann", "other", "x")]
    (ann,) = annotators_as_judges(["ann"], rubric(), indexed(answers(3)), more)
    assert set(ann.verdicts) == {"i0", "i1"}


def test_whoever_labelled_nothing_is_named_with_those_who_did() -> None:
    with pytest.raises(SetupError) as caught:
        annotators_as_judges(["eve", "nobody", "ann"], rubric(), indexed(answers(3)), HUMANS)
    told = [str(problem) for problem in caught.value.problems]
    assert len(told) == 2
    assert "eve" in told[0]
    assert "ann, bob" in told[0]


def test_patterns_stand_for_people_and_each_is_one_judge() -> None:
    crowd = labels({"ann": "ab", "bob": "ab", "bea": "ba", "b#1": "aa"})
    found = annotators_as_judges(["b*", "bob", "ann"], rubric(), indexed(answers(2)), crowd)
    assert [judge.name for judge in found] == ["bea", "bob", "ann"]


@pytest.mark.parametrize("asked", ["crowd#2", "crowd#*", "crowd*"])
def test_places_in_a_list_are_refused_with_the_reason(asked: str) -> None:
    crowd = labels({"ann": "ab", "crowd#1": "ab", "crowd#2": "aa"})
    with pytest.raises(SetupError) as caught:
        annotators_as_judges([asked], rubric(), indexed(answers(2)), crowd)
    assert str(caught.value) == (
        "as_judges: is not an annotator with a label (places in a list, as crowd#1, are no "
        f"people); found {asked}; allowed: ann"
    )


def test_he_has_no_part_in_the_truth() -> None:
    assert truth_of_others(TruthConfig(), ["ann"], HUMANS).annotators == ("bob", "eve")
    assert truth_of_others(TruthConfig(annotators=("b*",)), ["ann"], HUMANS).annotators == ("bob",)
    assert truth_of_others(TruthConfig(), [], HUMANS) == TruthConfig()


def test_somebody_must_be_left() -> None:
    with pytest.raises(SetupError, match="leaves no annotator"):
        truth_of_others(TruthConfig(annotators=("ann",)), ["ann"], HUMANS)
