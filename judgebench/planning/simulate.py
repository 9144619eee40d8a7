"""Drawn studies, decided by the code that decides real ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgebench.decisions.conditions import (
    by_latent_classes,
    choose_threshold,
    conditions_of,
    filters_well,
)
from judgebench.decisions.counts import HumanSide, StudyCounts, study_counts
from judgebench.decisions.decision import Condition, Outcome, State, outcome_of
from judgebench.decisions.rule import DecisionRule
from judgebench.planning.design import Draw
from judgebench.stats.annotator_bar import Bar, fit_bar
from judgebench.stats.arrays import IntArray
from judgebench.stats.classification import why_no_choice
from judgebench.stats.consensus import median_label


def outcome(study: Draw, rule: DecisionRule) -> Outcome:
    """Return the decision on the judge of a drawn study, in which nobody copies from anybody."""
    side, bar = side_of(study, rule)
    controls = {f"constant {code}": np.full_like(side.truth, code) for code in range(side.k)}
    counts = study_counts(side, study.judged, np.ones_like(study.judged, np.bool_), controls)
    if counts.how_many.sum() < rule.questions or (counts.items.sum(axis=0) > 0).sum() == 1:
        return Outcome.CANT_TELL
    labels = np.column_stack([study.own, study.judged])
    ended = outcome_of(conditions_by(labels, side, bar, counts, rule), ())
    return Outcome.ASSIST if ended is not Outcome.REPLACE and _filters(study, side, rule) else ended


def conditions_by(
    labels: IntArray, side: HumanSide, bar: Bar, counts: StudyCounts, rule: DecisionRule
) -> list[Condition]:
    """Return what REPLACE requires, with the severe gap of two latent classes of the labels (items,
    annotators and the judge) where a decision takes it from these, and may hang on it."""
    conditions = conditions_of(counts, rule)
    is_binary = (side.severe, side.k) == (1, 2) and counts.alone
    has_classes = is_binary and labels.shape[1] > 3 and bar.kept.sum() > 1
    if has_classes and (labels >= 0).all() and _depends_on_gap(conditions):
        return by_latent_classes(conditions, counts, rule, labels, bar)
    return conditions


def _depends_on_gap(conditions: Sequence[Condition]) -> bool:
    """True where the severe gap alone decides: two latent classes are slow to fit."""
    gap = {c.state for c in conditions if c.key == "severe_gap"}
    others = {c.state for c in conditions if c.key != "severe_gap"}
    return others == {State.MET} or (State.NOT_MET in gap and State.NOT_MET not in others)


def side_of(study: Draw, rule: DecisionRule) -> tuple[HumanSide, Bar]:
    """Return what the judge is held against, and the bar that annotators set."""
    k = study.n_labels
    bar = fit_bar(study.own, study.clusters, k, rule.replace.humans.bar)
    own = study.own[:, bar.kept]
    others = [median_label(np.delete(own, a, axis=1), "upper") for a in range(own.shape[1])]
    side = HumanSide(
        median_label(own, "upper"), own, np.stack(others, axis=1), study.clusters, k, k - 1,
        bar.weights[:, bar.kept], bar.spread, stands_for=study.stands_for,
        with_alarms=rule.replace.false_alarms is not None, levels=k - 1 if k > 2 else 0,
    )  # fmt: skip
    return side, bar


def _filters(study: Draw, side: HumanSide, rule: DecisionRule) -> bool:
    """True where people need to read no more than what the judge calls severe, or a little more.
    Where answers stand for different numbers of others no filter is measured."""
    is_severe = side.truth == study.n_labels - 1
    seen = (study.judged.astype(np.float64), is_severe.astype(np.int64), study.clusters.codes)
    if study.stands_for is not None or why_no_choice(*seen):
        return False
    return filters_well(choose_threshold(seen, study.n_labels - 1, rule), rule.assist)
