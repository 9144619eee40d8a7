"""A study, a rule and the rows of a stress test in; a decision for each judge and metric out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgebench.align.alignment import accuracies
from judgebench.align.caveats import compared_with
from judgebench.decide.beside import alternative_tests, jury_rows
from judgebench.decide.conditions import NO_TRUTH, assist_conditions, findings, stress_conditions
from judgebench.decide.counts import Bools, HumanSide, StudyCounts, study_counts
from judgebench.decide.outcome import outcome_of
from judgebench.decide.plan import more_data
from judgebench.decide.result import Decision, Decisions, MoreData, Outcome, TriageCurve
from judgebench.decide.rule import DecisionRule
from judgebench.decide.triage import triage_curves
from judgebench.decide.words import reason_for
from judgebench.results.rows import Results
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
from judgebench.study.study import Humans, Study
from judgebench.study.truth import Ratings

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
    beside = Results(
        (*accuracies(study), *jury_rows(study), *alternative_tests(study, rule.alternative_test))
    )
    return Decisions(
        study.name, study.rubric, rule, tuple(decisions(study, rule, curves, stress)), curves,
        beside, {judge.name: judge.kind for judge in study.judges if judge.kind != "control"},
        tuple(_notes(study, stress)),
        compared_with(len(study.answers), study.n_labels, study.makers),
    )  # fmt: skip


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
    study: Study, rule: DecisionRule, curves: Sequence[TriageCurve] = (),
    stress: Results | None = None,
) -> Iterator[Decision]:  # fmt: skip
    """One for each metric and each judge that is not a control judge, in that order."""
    for metric in study.rubric.metrics:
        rows, humans = _side(study, metric, rule)
        labels = {judge.name: study.judged(judge, metric)[rows] for judge in study.judges}
        controls = {j.name: labels[j.name] for j in study.judges if j.kind == "control"}
        for judge in study.judges:
            if judge.kind == "control":
                continue
            asked = study.asked(judge)[rows]
            if not asked.any():
                yield Decision(judge.name, metric.id, Outcome.CANT_TELL, f"{NOT_ASKED}.")
                continue
            counts = study_counts(humans, labels[judge.name], asked, controls)
            about = (judge.name, metric.id, rule)
            found = findings(counts, rule, counts.how_many[None, :])
            replace = (
                *(one.condition(rule.level, counts.n_not_asked) for one in found),
                *stress_conditions(stress, *about),
            )
            assist = assist_conditions(curves, *about) if counts.has_severity else ()
            gate, more = _gate(counts, rule, study.humans[metric.id], study.asked(judge)), None
            outcome = Outcome.CANT_TELL if gate else outcome_of(replace, assist)
            reason, numbers = (f"{gate}.", "") if gate else reason_for(outcome, replace, assist)
            if gate:
                more = MoreData(reason=f"Nothing to plan from: {gate}")
            elif outcome is Outcome.CANT_TELL:
                more = more_data(counts, rule, replace, study.resampling.seed)
            yield Decision(judge.name, metric.id, outcome, reason, numbers, replace, assist, more)


def _side(study: Study, metric: Metric, rule: DecisionRule) -> tuple[IntArray, HumanSide]:
    """A metric's human labels, and before them their rows in `Study.answers`."""
    humans = study.humans[metric.id]
    own = humans.made.values.astype(np.int64)
    others = np.full_like(own, -1)
    for column, annotator in enumerate(humans.makers):
        others[:, column] = humans.truth_without(annotator)
    rated = (own >= 0).any(axis=1)
    rows = humans.ratings.rows[rated]
    return rows, HumanSide(
        truth=humans.truth[rows], own=own[rated], others=others[rated],
        clusters=humans.clusters[rated],
        k=len(metric.labels), severe=rule.severe_index(metric),
    )  # fmt: skip


def _gate(counts: StudyCounts, rule: DecisionRule, humans: Humans, asked: Bools) -> str:
    """Why nothing can be said at all, whatever the numbers are; empty where something can.

    `asked` (items,) says about which of all items the judge was asked.
    """
    if counts.how_many @ counts.asked[:, 1] == counts.total_asked:
        return f"The judge gave no label on any of {counts.total_asked:,} labelled items"
    if not counts.items.any():
        return NO_TRUTH[:1].upper() + NO_TRUTH[1:]
    if not counts.pairs.any():
        return _no_pairs(humans, asked)
    if (counts.items.sum(axis=0) > 0).sum() == 1:
        return "Annotators gave every item the same label: agreement on it says nothing of a judge"
    questions = int(counts.how_many @ (counts.pairs.sum(axis=1) > 0))
    if questions < rule.questions:
        return (
            f"Only {questions} questions were labelled by two annotators; at least "
            f"{rule.questions} are required"
        )
    return ""


def _no_pairs(humans: Humans, asked: Bools) -> str:
    """Why no annotator can be compared with others on any item."""
    if not _labelled_by_two(humans.ratings).any():
        return "No item was labelled by two annotators: there is no human to compare with"
    by_two = _labelled_by_two(humans.made)
    if not by_two.any():
        left_out = [name for name in humans.ratings.annotators if name not in humans.makers]
        names = ", ".join(left_out[:3]) + (" and others" if len(left_out) > 3 else "")
        return (
            f"Too few annotators are left to compare with: without {names}, no item was labelled "
            "by two annotators"
        )
    if not (by_two & asked[humans.ratings.rows]).any():
        return "The judge was asked about no item that two annotators labelled"
    return "With one annotator left out, the others give no truth on any item"


def _labelled_by_two(ratings: Ratings) -> Bools:
    by_two: Bools = np.count_nonzero(ratings.values >= 0, axis=1) >= 2
    return by_two
