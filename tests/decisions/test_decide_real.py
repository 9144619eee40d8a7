"""Decisions on real people and a real judge, read as a careful statistician would."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from crowd_tables import crowd_tables
from decide_case import condition
from mtbench import first_turns

from judgebench.data.load import load_data
from judgebench.decisions.decide import decide_study
from judgebench.decisions.decision import Decisions, Outcome, State
from judgebench.decisions.rule import DecisionRule
from judgebench.judges.recorded import annotators_as_judges
from judgebench.records import Answer, Status, Verdict
from judgebench.rubric import Metric, Rubric, load_rubric
from judgebench.studies.answers import indexed
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, Study, study_of


def _controls(study: Study, measured: Metric) -> list[JudgeVerdicts]:
    """A constant judge with the commonest label, and one that draws labels as often as they are."""
    truth = [measured.label_texts[i] for i in study.humans[measured.id].truth if i >= 0]
    items: Sequence[Answer] = list(study.answers)
    common = Counter(truth).most_common(1)[0][0]
    drawn = np.random.default_rng(0).choice(truth, size=len(items))
    rows = {"constant": [common] * len(items), "prior": drawn.tolist()}
    return [
        JudgeVerdicts(name, "control", "s", {
            item.item_id: Verdict(
                item.item_id, item.content_hash, name, "s", Status.OK, {measured.id: label}
            )
            for item, label in zip(items, row, strict=True)
        })
        for name, row in rows.items()
    ]  # fmt: skip


@pytest.fixture(scope="module")
def crowd(
    shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Rubric, Study, list[JudgeVerdicts]]:
    """The expert in the judge's place, against the median of the crowd."""
    risk = load_rubric("medical-query-risk").only(["query_risk"])
    tables = crowd_tables(shared_data, tmp_path_factory.mktemp("tables"))
    dataset = load_data(tables / "queries.csv", risk)
    answers = indexed(dataset.answers)
    expert = annotators_as_judges(["expert"], risk, answers, dataset.labels)
    config = TruthConfig(annotators=("crowd#*",))
    study = study_of(risk, answers, dataset.labels, config)
    return risk, study, [*expert, *_controls(study, risk.metrics[0])]


def _decided(
    case: tuple[Rubric, Study, list[JudgeVerdicts]], rule: DecisionRule = DecisionRule()
) -> Decisions:
    measured, study, judges = case
    return decide_study(replace(study, rubric=measured, judges=tuple(judges)), rule)


def test_the_expert_is_no_worse_than_the_crowd_but_severe_queries_are_too_few(
    crowd: tuple[Rubric, Study, list[JudgeVerdicts]],
) -> None:
    (found,) = _decided(crowd).decisions
    assert found.outcome is Outcome.CANT_TELL
    # better than one more crowd worker, and far better than what reads nothing
    assert condition(found, "humans_accuracy").state is State.MET
    assert condition(found, "controls").state is State.MET
    assert condition(found, "severe_gap").state is State.UNCLEAR  # of 12 critical queries


def test_with_serious_counted_as_severe_there_are_items_enough(
    crowd: tuple[Rubric, Study, list[JudgeVerdicts]],
) -> None:
    (found,) = _decided(crowd, DecisionRule(severe_from={"query_risk": "Serious"})).decisions
    assert condition(found, "severe_gap").estimate.n > 80


def test_gpt4_against_experts_on_which_answer_is_better(shared_data: Path) -> None:
    study = first_turns(shared_data / "mtbench-human", "majority")
    (found,) = _decided((study.rubric, study, list(study.judges))).decisions
    against = condition(found, "humans_accuracy")
    assert against.estimate.n == 780  # of 892: a tie of the others is no truth
    assert condition(found, "controls").state is State.MET
    assert found.assist == ()
