"""The Alternative Annotator Test of real judges, and its guard."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from align_case import answers, labels, metric, verdicts
from align_case import rubric as rubric_of
from decide_case import noisy

from judgebench.decisions.context import alternative_tests
from judgebench.decisions.rule import AlternativeTestRule, DecisionRule
from judgebench.records import Results
from judgebench.stats.paired_tests import DuelTerms, alternative_annotator_test
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import study_of

N = 120
RARE = "a" * 114 + "b" * 6


def ended(
    humans: dict[str, str], judge: str, controls: dict[str, str], epsilon: float = 0.1,
    kind: str = "ordinal",
) -> SimpleNamespace:  # fmt: skip
    """The test of one judge on one metric."""
    one, items = rubric_of(metric(kind)), answers(len(judge))
    said = [verdicts("m", judge, items)]
    said += [verdicts(name, row, items, "control") for name, row in controls.items()]
    study = study_of(one, items, labels(humans), TruthConfig())
    study = replace(study, judges=tuple(said))
    rule = DecisionRule(alternative_test=AlternativeTestRule(epsilon=epsilon))
    found = Results(tuple(alternative_tests(study, rule)))
    assert {(row.judge, row.metric) for row in found} == {("m", "harm")}  # no control is tested
    rows = {row.statistic: row.estimate for row in found}
    reason = rows["passes"].reason
    numbers = {name: e if name == "advantage" else e.value for name, e in rows.items()}
    return SimpleNamespace(**numbers, reason=reason)


def people(true: str, how_many: int = 3, wrong: float = 0.05) -> dict[str, str]:
    return {f"h{i}": noisy(true, wrong, i) for i in range(how_many)}


EVEN = "abc" * 40
CONTROLS = {"fixed": "a" * N, "random": noisy("bca" * 40, 0.3, 8)}


def test_a_judge_as_good_as_the_annotators_passes_and_beats_every_control() -> None:
    test = ended(people(EVEN), noisy(EVEN, 0.01, 9), CONTROLS)
    assert (test.passes, test.guarded, test.annotators) == (True, True, 3)
    assert test.winning_rate == 1
    assert test.advantage.low <= test.advantage.value <= test.advantage.high
    assert test.advantage.value > 0.9
    assert test.epsilon == 0.1
    assert test.reason == ""


def test_a_constant_judge_passes_where_a_label_is_rare_and_the_guard_does_not_let_it() -> None:
    found = ended(people(RARE), "a" * N, {"fixed": "a" * N})
    assert found.passes == 1
    assert found.guarded == 0
    assert "not shown to be more accurate than fixed" in found.reason


def test_every_control_must_be_beaten() -> None:
    judge = noisy(EVEN, 0.05, 9)
    found = ended(people(EVEN), judge, {**CONTROLS, "lucky": noisy(EVEN, 0.05, 10)})
    assert (found.passes, found.guarded) == (True, False)
    assert found.reason == "not shown to be more accurate than lucky"


def test_without_a_control_a_pass_stays_unguarded_and_a_failure_stays_one() -> None:
    good = ended(people(EVEN), noisy(EVEN, 0.01, 9), {})
    assert (good.passes, good.guarded) == (True, None)
    assert "no baseline" in good.reason
    bad = ended(people(EVEN), noisy(EVEN, 0.6, 9), {})
    assert (bad.passes, bad.guarded, bad.reason) == (False, False, "")


def test_a_larger_tolerance_lets_a_weaker_judge_pass() -> None:
    judge = noisy(EVEN, 0.1, 9)
    strict, lax = (ended(people(EVEN), judge, CONTROLS, epsilon=e) for e in (0.0, 0.3))
    assert (strict.passes, lax.passes) == (False, True)
    assert lax.epsilon == 0.3


@pytest.mark.parametrize(
    ("humans", "told"),
    [
        ({"ann": EVEN}, "the test needs two annotators"),
        ({"crowd#1": EVEN, "crowd#2": EVEN, "ann": EVEN}, "the test needs two annotators"),
        ({"ann": "." * N, "bob": "." * N}, "the test needs two annotators"),
        ({"ann": EVEN[:29] + "." * 91, "bob": EVEN}, "30 items"),
    ],
)
def test_where_there_is_nothing_to_test_the_reason_says_so(humans, told: str) -> None:
    test = ended(humans, EVEN, CONTROLS)
    assert (test.passes, test.guarded, test.winning_rate, test.annotators) == (
        None, None, None, 0,
    )  # fmt: skip
    assert test.advantage.value is None
    assert told in test.reason
    assert test.advantage.reason


def test_a_judge_that_failed_throughout_is_not_tested() -> None:
    test = ended(people(EVEN), "." * N, CONTROLS)
    assert test.passes is test.guarded is None
    assert "30 items" in test.reason


def test_two_annotators_are_told_that_there_is_no_consensus() -> None:
    found = ended(people(EVEN, 2, 0.1), noisy(EVEN, 0.01, 9), CONTROLS)
    assert found.annotators == 2
    assert "with two annotators" in found.reason


def test_places_in_a_list_do_not_count_among_the_others() -> None:
    humans = people(EVEN)
    slots = {"crowd#1": noisy(EVEN, 0.9, 20), "crowd#2": noisy(EVEN, 0.9, 21)}
    judge = noisy(EVEN, 0.02, 9)
    alone, beside = (ended(h, judge, CONTROLS) for h in (humans, humans | slots))
    assert (alone.winning_rate, alone.advantage.value) == (
        beside.winning_rate, beside.advantage.value,
    )  # fmt: skip


# --- the test as the paper writes it --------------------------------------------------------------


@pytest.mark.parametrize(("kind", "severities"), [("nominal", None), ("ordinal", (0, 1, 2))])
def test_the_published_test_is_that_of_the_paper_with_all_annotators(kind: str, severities) -> None:
    humans = people(EVEN, 4, 0.15) | {f"careless{i}": noisy(EVEN, 0.7, 30 + i) for i in range(2)}
    humans["h0"] = humans["h0"][:80] + "." * 40
    humans["few"] = noisy(EVEN, 0.1, 40)[:29] + "." * 91  # too few items to be tested
    judge = noisy(EVEN, 0.25, 9)
    found = ended(humans, judge, CONTROLS, kind=kind)
    codes = np.array([["abc.".index(x) for x in row] for row in (*humans.values(), judge)])
    codes = np.where(codes == 3, -1, codes)
    of_paper = alternative_annotator_test(
        codes[:-1].T, codes[-1], 3, DuelTerms(severities=severities)
    )
    assert (found.annotators, found.winning_rate) == (
        of_paper.tested,
        pytest.approx(of_paper.winning_rate),
    )
    assert found.annotators == 6
