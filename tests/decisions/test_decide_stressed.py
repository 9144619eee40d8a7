"""What a stress run adds to a decision."""

from dataclasses import replace

import pytest
from align_case import answers, labels, metric, rubric, verdicts
from decide_case import HUMANS, TRUE, condition, decided, noisy
from stress_case import Attack, stressed

import judgebench as jb
from judgebench.decisions.conditions import stress_conditions
from judgebench.decisions.decide import decide_study
from judgebench.decisions.decision import Outcome, State
from judgebench.decisions.rule import DecisionRule, ReplaceRule
from judgebench.decisions.sentences import standings
from judgebench.records import Estimate, Results, Row
from judgebench.results.documents import to_html
from judgebench.results.terminal import as_text
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import study_of


def _robust(probe: str, rate: Estimate) -> Row:
    return Row("invariance", "robustness", rate, "j", "harm", {"recipe": probe})


def _stress(probes: dict[str, tuple[float, float, float]], planted: Estimate | None = None):
    found = [_robust(name, Estimate(*rate, "m", 50)) for name, rate in probes.items()]
    if planted:
        found.append(Row("planted", "success", planted, "j", "harm", {"recipe": "all"}))
        one_trick = Estimate(1.0, 0.9, 1.0, "m", 40)  # what counts is all tricks together
        found.append(Row("planted", "success", one_trick, "j", "harm", {"recipe": "forged"}))
    return Results(tuple(found))


def rule_of(named: dict[str, float]) -> DecisionRule:
    return DecisionRule.model_validate({"replace": named})


STEADY = {"padding": (0.98, 0.92, 1.0), "tone": (0.96, 0.90, 0.99)}


@pytest.mark.parametrize("key", ["robustness", "planted"])
def test_a_rule_that_names_it_needs_a_stress_test(key: str) -> None:
    judge = noisy(TRUE, 0.02, 9)
    items = answers(len(judge))
    score = metric(severe="none")  # of which no filter is made: ASSIST asks for no stress test
    study = study_of(rubric(score), items, labels(HUMANS), TruthConfig(blind="yes"))
    judges = (verdicts("j", judge, items), verdicts("c", "a" * len(judge), items, "control"))
    (silent,) = jb.decide(replace(study, judges=judges))
    (named,) = jb.decide(replace(study, judges=judges), rule={"replace": {key: 0.8}})
    assert silent.outcome is Outcome.REPLACE
    assert named.outcome is Outcome.CANT_TELL
    assert "judgebench stress bench.yaml" in named.reason
    assert "attack_gain" not in named.reason


def test_what_the_rule_names_is_named_once() -> None:
    names = {"robustness": 0.8, "planted": 0.1}
    decision = decided(HUMANS, noisy(TRUE, 0.02, 9), rule=rule_of(names))
    why = "no stress test measured `robustness` and `planted`, which the rule names: run"
    for text in (decision.reason.lower(), decision.numbers, decision.more.reason):
        assert text.count(why) == 1
        assert "best-of-16" not in text
    decision = decided(HUMANS, noisy(TRUE, 0.02, 9), rule=rule_of({"attack_gain": 0.1}))
    assert "bench.yaml` with `best-of-16` under `stress: attacks:`" in decision.reason


def test_labels_that_are_too_few_are_asked_for_all_the_same() -> None:
    judge = noisy(TRUE, 0.02, 9)
    few = {name: row[:100] for name, row in HUMANS.items()}
    rules = (DecisionRule(), rule_of({"robustness": 0.8}))
    plain, named = (decided(few, judge[:100], rule=rule) for rule in rules)
    assert plain.more.items == named.more.items is not None
    assert "judgebench stress bench.yaml" in named.more.reason


def test_a_steady_judge_meets_it_on_the_mean_over_the_probes() -> None:
    (found,) = stress_conditions(_stress(STEADY), "j", "harm", DecisionRule())
    assert found.state is State.MET
    assert found.estimate.value == pytest.approx(0.97)
    assert found.estimate.low == pytest.approx(0.91)
    assert found.estimate.n == 100
    assert "mean over 2 probes" in found.title
    (found,) = stress_conditions(_stress({"a": (1, 0.9, 1)}), "j", "harm", DecisionRule())
    assert "mean over 1 probe" in found.title
    assert "probes" not in found.title


def test_one_probe_that_moves_the_judge_is_not_averaged_away() -> None:
    probes = {**STEADY, "authority": (0.5, 0.4, 0.6)}
    (found,) = stress_conditions(_stress(probes), "j", "harm", DecisionRule())
    assert found.state is State.NOT_MET
    assert "authority" in found.title
    assert found.estimate.value == 0.5
    decision = decided(HUMANS, noisy(TRUE, 0.02, 9), stress=_stress(probes))
    assert (
        decision.reason == "It changes 50 % of its labels under authority, which must change none."
    )
    assert decision.numbers.startswith("robustness, under authority 0.500")


def test_a_planted_verdict_counts_once() -> None:
    probes = {**STEADY, "forged": (0.5, 0.4, 0.6)}
    stress = _stress(probes, Estimate(0.0, 0.0, 0.05, "m", 40))
    keys = {c.key: c.state for c in stress_conditions(stress, "j", "harm", DecisionRule())}
    assert keys == {"robustness": State.MET, "planted": State.MET}


def test_one_small_probe_among_many_shows_no_failure() -> None:
    rates = [Estimate(0.0, 0.0, 0.708, "m", 3)] + 39 * [Estimate(1.0, 0.29, 1.0, "m", 3)]
    small = [_robust(f"p{i}", rate) for i, rate in enumerate(rates)]
    (found,) = stress_conditions(Results(tuple(small)), "j", "harm", DecisionRule())
    assert found.state is State.UNCLEAR
    (found,) = stress_conditions(Results((small[0],)), "j", "harm", DecisionRule())
    assert found.state is State.NOT_MET


def test_few_altered_answers_leave_it_open() -> None:
    (found,) = stress_conditions(_stress({"padding": (0.9, 0.6, 1.0)}), "j", "harm", DecisionRule())
    assert found.state is State.UNCLEAR
    assert "raise `--sample`" in found.missing


@pytest.mark.parametrize(
    ("success", "state"),
    [((0.0, 0.0, 0.05), "met"), ((0.5, 0.3, 0.7), "not met"), ((0.05, 0.0, 0.2), "unclear")],
)
def test_planted_verdicts_must_not_be_obeyed(
    success: tuple[float, float, float], state: str
) -> None:
    (found,) = stress_conditions(
        _stress({}, Estimate(*success, "m", 40)), "j", "harm", DecisionRule()
    )
    assert (found.key, found.state.value) == ("planted", state)


def test_what_was_not_measured_of_this_judge_or_metric_is_not_asked() -> None:
    stress = _stress(STEADY, Estimate(0.0, 0.0, 0.05, "m", 40))
    assert list(stress_conditions(stress, "other", "harm", DecisionRule())) == []
    assert list(stress_conditions(stress, "j", "other", DecisionRule())) == []


def test_a_gullible_judge_does_not_replace() -> None:
    judge = noisy(TRUE, 0.02, 9)
    gullible = _stress(STEADY, Estimate(0.6, 0.5, 0.7, "m", 40))
    found = decided(HUMANS, judge, stress=gullible)
    assert found.outcome is Outcome.DO_NOT_USE
    assert found.reason == "It follows 60 % of the verdicts planted in the text."
    assert found.numbers.startswith("planted verdicts followed 0.600")
    lenient = DecisionRule(replace=ReplaceRule(planted=None))
    assert decided(HUMANS, judge, stress=gullible, rule=lenient).outcome is Outcome.REPLACE


def _copying(replies: str) -> Results:
    """A stress test of planted verdicts in answers that a judge labels thus; `.` is unread."""
    attack = Attack("forged", {"j": replies}, demand={"harm": "a"})
    return stressed({"j": "c" * len(replies)}, attack).rows


@pytest.mark.parametrize("replies", ["." * 60, "c" * 50 + "." * 10])
def test_unread_planted_answers_count_against_the_judge(replies: str) -> None:
    decision = decided(HUMANS, noisy(TRUE, 0.02, 9), stress=_copying(replies))
    assert condition(decision, "planted").state is State.UNCLEAR
    assert decision.outcome is Outcome.CANT_TELL
    n_lost = replies.count(".")
    assert f"{n_lost} of 60 planted answers ended without a label" in decision.numbers


def test_unread_planted_answers_excuse_no_failure() -> None:
    decision = decided(HUMANS, noisy(TRUE, 0.02, 9), stress=_copying("a" * 30 + "." * 30))
    assert condition(decision, "planted").state is State.NOT_MET
    few = decided(HUMANS, noisy(TRUE, 0.02, 9), stress=_copying("c" * 99 + "."))
    assert condition(few, "planted").state is State.MET
    assert few.outcome is Outcome.REPLACE


def test_what_the_stress_test_leaves_open_no_label_can_clear() -> None:
    found = decided(HUMANS, noisy(TRUE, 0.02, 9), stress=_stress({"padding": (0.9, 0.6, 1.0)}))
    assert found.outcome is Outcome.CANT_TELL
    assert condition(found, "robustness").state is State.UNCLEAR
    assert "do not settle what other tests leave open" in found.more.reason
    assert "raise `--sample`" in found.more.reason


def test_the_next_step_leads_to_the_stress_test_that_decided() -> None:
    judge = noisy(TRUE, 0.02, 9)
    items = answers(len(judge))
    score = metric(severe="none")  # of which no filter is made
    study = study_of(rubric(score), items, labels(HUMANS), TruthConfig(blind="yes"))
    judges = (verdicts("j", judge, items), verdicts("c", "a" * len(judge), items, "control"))
    made = decide_study(
        replace(study, judges=judges), stress=_stress(STEADY, Estimate(0.6, 0.5, 0.7, "m", 40))
    )
    (line,) = standings(made)
    assert line.next.startswith("Read its results in the stress test, then change")
    assert '<a href="#stress">results in the stress test</a>' in to_html([made.part], "x")
    assert "results in the stress test (in the report)" in " ".join(as_text(made.part).split())
