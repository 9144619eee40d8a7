"""A study, a rule and the rows of a stress test in; a decision for each judge and metric out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.decide.alternative import alternative_tests
from judgebench.decide.conditions import NO_OVERLAP, NO_TRUTH, findings
from judgebench.decide.counts import HumanSide, StudyCounts, study_counts
from judgebench.decide.further_conditions import assist_conditions, stress_conditions
from judgebench.decide.jury import jury_rows
from judgebench.decide.outcome import outcome_of
from judgebench.decide.plan import more_data
from judgebench.decide.result import Decision, Decisions, MoreData, Outcome, TriageCurve
from judgebench.decide.rule import DecisionRule
from judgebench.decide.triage import triage_curves
from judgebench.decide.words import reason_for
from judgebench.results.rows import Results
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
from judgebench.study.study import JudgeVerdicts, Study

NOT_ASKED = "The judge was asked about no item that has a human label"


def decide(
    study: Study, rule: DecisionRule = DecisionRule(), stress: Results | None = None
) -> Decisions:
    """Every decision with its conditions, triage, the value of a jury, the alternative test.

    `stress` are the rows of a stress test of the same judges. Raises SetupError where the rule
    names a metric or label that the rubric lacks.
    """
    rule.check(study.rubric)
    curves = tuple(triage_curves(study, rule))
    return Decisions(
        name=study.name,
        rubric=study.rubric,
        rule=rule,
        decisions=tuple(decisions(study, rule, curves, stress)),
        curves=curves,
        beside=Results((*jury_rows(study), *alternative_tests(study, rule.alternative_test))),
        judges={judge.name: judge.kind for judge in study.judges if judge.kind != "control"},
        notes=tuple(_notes(study, stress)),
    )


def _notes(study: Study, stress: Results | None) -> Iterator[str]:
    """What a reader of the decisions must not overlook."""
    made = sum(judge.kind != "control" for judge in study.judges) * len(study.humans)
    if made > 1:
        yield (
            f"There are {made} decisions, each with its own chance of error: among many, one may "
            "be clear by luck."
        )
    if made and stress is None:
        yield "There was no stress test: how the judges respond to altered answers is unknown."


def decisions(
    study: Study,
    rule: DecisionRule,
    curves: Sequence[TriageCurve] = (),
    stress: Results | None = None,
) -> Iterator[Decision]:
    """One for each metric and each judge that is not a control judge, in that order."""
    for metric in study.rubric.metrics:
        side = _side(study, metric, rule)
        for judge in study.judges:
            if judge.kind == "control":
                continue
            counts = _counts(study, side, judge)
            if counts is None:
                yield Decision(judge.name, metric.id, Outcome.CANT_TELL, f"{NOT_ASKED}.")
                continue
            about = (judge.name, metric.id, rule)
            replace = (
                *(found.condition() for found in findings(counts, rule, counts.how_many[None, :])),
                *stress_conditions(stress, *about),
            )
            assist = assist_conditions(curves, *about) if counts.has_severity else ()
            gate = _gate(counts, rule)
            outcome = Outcome.CANT_TELL if gate else outcome_of(replace, assist)
            reason, numbers = (f"{gate}.", "") if gate else reason_for(outcome, replace, assist)
            more = None
            if gate:
                more = MoreData(reason=f"Nothing to plan from: {gate}")
            elif outcome is Outcome.CANT_TELL:
                more = more_data(counts, rule, replace, study.resampling.seed)
            yield Decision(
                judge.name, metric.id, outcome, reason, numbers, replace, assist, more
            )  # fmt: skip


@dataclass(frozen=True)
class _Side:
    """A metric's human labels, their rows in `Study.answers`, and the labels of control judges."""

    metric: Metric
    humans: HumanSide
    rows: IntArray
    controls: Mapping[str, IntArray]


def _side(study: Study, metric: Metric, rule: DecisionRule) -> _Side:
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
    controls = {j.name: study.judged(j, metric)[rows] for j in study.judges if j.kind == "control"}
    return _Side(metric, side, rows, controls)


def _counts(study: Study, side: _Side, judge: JudgeVerdicts) -> StudyCounts | None:
    """None where the judge was asked about no item that has a human label."""
    judged = study.judged(judge, side.metric)[side.rows]
    asked = study.asked(judge)[side.rows]
    return study_counts(side.humans, judged, asked, side.controls) if asked.any() else None


def _gate(counts: StudyCounts, rule: DecisionRule) -> str:
    """Why nothing can be said at all, whatever the numbers are; empty where something can."""
    if counts.how_many @ counts.asked[:, 1] == counts.total_asked:
        return f"The judge gave no label on any of {counts.total_asked:,} labelled items"
    if not counts.items.any():
        return NO_TRUTH[:1].upper() + NO_TRUTH[1:]
    if not counts.pairs.any():
        return NO_OVERLAP[:1].upper() + NO_OVERLAP[1:]
    if (counts.items.sum(axis=0) > 0).sum() == 1:
        return "Annotators gave every item the same label: agreement on it says nothing of a judge"
    questions = int(counts.how_many @ (counts.pairs.sum(axis=1) > 0))
    if questions < rule.questions:
        return (
            f"Only {questions} questions were labelled by two annotators; at least "
            f"{rule.questions} are required"
        )
    return ""
