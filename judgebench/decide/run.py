"""Verdicts, truth, a stress test and a rule in; one decision a judge and metric out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.decide.alternative import alternative_tests
from judgebench.decide.conditions import NO_OVERLAP, NO_TRUTH, findings
from judgebench.decide.counts import Counted, HumanSide, counted_of
from judgebench.decide.filter import assist_conditions
from judgebench.decide.jury import jury_values
from judgebench.decide.outcome import outcome_of, reason_for
from judgebench.decide.plan import TOO_FEW, more_data
from judgebench.decide.result import (
    Condition,
    Decision,
    Decisions,
    MoreData,
    Outcome,
    TriageCurve,
)
from judgebench.decide.rule import DecisionRule
from judgebench.decide.stressed import stress_conditions
from judgebench.decide.triage import triage_curves
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
from judgebench.stress.result import StressResult
from judgebench.study.study import JudgeVerdicts, Study

NOT_ASKED = "The judge was asked about no item that has a human label"


@dataclass(frozen=True)
class _Side:
    """A metric's human labels, the rows of `Study.answers` they stand in, and what controls say."""

    humans: HumanSide
    rows: IntArray
    controls: Mapping[str, IntArray]


def decide(
    study: Study, rule: DecisionRule = DecisionRule(), stress: StressResult | None = None
) -> Decisions:
    """Every decision, and what it is judged by: triage, the value of a jury, the alternative test.

    `stress` is what a stress run says of the same judges. Raises SetupError where the rule names
    a metric or label that the rubric lacks.
    """
    rule.check(study.rubric)
    metrics, judges = study.rubric.metrics, study.judges
    curves = tuple(triage_curves(study, metrics, judges, rule))
    return Decisions(
        name=study.name,
        rubric=study.rubric,
        rule=rule,
        decisions=tuple(decisions(study, metrics, judges, rule, curves, stress)),
        curves=curves,
        juries=tuple(jury_values(study, metrics, judges, study.resampling.seed)),
        alternative_tests=tuple(alternative_tests(study, metrics, judges)),
        judges={judge.name: judge.kind for judge in judges if judge.kind != "control"},
        in_words=tuple(rule.in_words()),
        notes=tuple(_notes(study, judges, stress)),
    )


def _notes(
    study: Study, judges: Sequence[JudgeVerdicts], stress: StressResult | None
) -> Iterator[str]:
    """What a reader of the decisions must not overlook."""
    real = sum(judge.kind != "control" for judge in judges)
    made = real * len(study.humans)
    if made > 1:
        yield (
            f"{made} decisions are made here, each with its own chance of error: among many, one "
            "may be clear by luck."
        )
    if made and stress is None:
        yield "There is no stress test: how the judges stand altered answers was not asked."


def decisions(
    study: Study,
    metrics: Sequence[Metric],
    judges: Sequence[JudgeVerdicts],
    rule: DecisionRule,
    curves: Sequence[TriageCurve] = (),
    stress: StressResult | None = None,
) -> Iterator[Decision]:
    """One for each metric and each judge that is no control judge, in that order."""
    for metric in metrics:
        side = _side(study, metric, judges, rule)
        for judge in judges:
            if judge.kind != "control":
                yield _decision(study, metric, side, judge, rule, curves, stress)


def _side(
    study: Study, metric: Metric, judges: Sequence[JudgeVerdicts], rule: DecisionRule
) -> _Side:
    humans = study.humans[metric.id]
    own = humans.made.values.astype(np.int64)
    others = np.full_like(own, -1)
    for column, annotator in enumerate(humans.makers):
        others[:, column] = humans.truth_without(annotator)
    rated = (own >= 0).any(axis=1)
    rows = humans.ratings.rows[rated]
    side = HumanSide(
        truth=humans.truth[rows], own=own[rated], others=others[rated],
        clusters=humans.clusters[rated],
        k=len(metric.labels), severe=rule.severe_index(metric),
    )  # fmt: skip
    controls = {j.name: study.judged(j, metric)[rows] for j in judges if j.kind == "control"}
    return _Side(side, rows, controls)


def _decision(
    study: Study,
    metric: Metric,
    side: _Side,
    judge: JudgeVerdicts,
    rule: DecisionRule,
    curves: Sequence[TriageCurve],
    stress: StressResult | None,
) -> Decision:
    judged = study.judged(judge, metric)[side.rows]
    asked = study.asked(judge)[side.rows]
    if not asked.any():
        return Decision(judge.name, metric.id, Outcome.CANT_TELL, f"{NOT_ASKED}.", (), ())
    counted = counted_of(side.humans, judged, asked, side.controls)
    gate = _gate(counted)
    has_severity = metric.kind == "ordinal"
    one = counted.how_many[None, :]
    found = findings(counted, rule, one, has_severity=has_severity)
    replace = (
        *(finding.condition() for finding in found),
        *stress_conditions(stress, judge.name, metric.id, rule),
    )
    assist = assist_conditions(curves, judge.name, metric.id, rule) if has_severity else ()
    outcome = Outcome.CANT_TELL if gate else outcome_of(replace, assist)
    reason = f"{gate}." if gate else reason_for(outcome, replace, assist)
    more = _more(counted, rule, replace, outcome, gate, has_severity, study.resampling.seed)
    return Decision(judge.name, metric.id, outcome, reason, replace, assist, more)


def _more(
    counted: Counted,
    rule: DecisionRule,
    conditions: tuple[Condition, ...],
    outcome: Outcome,
    gate: str,
    has_severity: bool,
    seed: int,
) -> MoreData | None:
    if outcome is not Outcome.CANT_TELL:
        return None
    if gate:
        return MoreData(None, None, None, None, None, f"Nothing to plan from: {gate}")
    return more_data(counted, rule, conditions, has_severity=has_severity, seed=seed)


def _gate(counted: Counted) -> str:
    """Why nothing can be said at all, whatever the numbers are; empty where something can."""
    if counted.how_many @ counted.asked[:, 1] == counted.total_asked:
        return f"The judge gave no label on any of {counted.total_asked:,} labelled items"
    if not counted.items.any():
        return NO_TRUTH[:1].upper() + NO_TRUTH[1:]
    if not counted.pairs.any():
        return NO_OVERLAP[:1].upper() + NO_OVERLAP[1:]
    if (counted.items.sum(axis=0) > 0).sum() == 1:
        return (
            "Humans gave one and the same label to every item: "
            "agreement on it says nothing about a judge"
        )
    clusters = int(counted.how_many @ (counted.pairs.sum(axis=1) > 0))
    if clusters < TOO_FEW:
        return (
            f"Only {clusters} questions were labelled by two annotators: fewer than "
            f"{TOO_FEW} carry no decision"
        )
    return ""
