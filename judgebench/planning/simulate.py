"""Drawn studies, decided by the code that decides real ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgebench.decisions.conditions import filters_well, findings, use_latent_class_gap
from judgebench.decisions.counts import HumanSide, StudyCounts, study_counts
from judgebench.decisions.decision import Condition, Outcome, State, outcome_of
from judgebench.decisions.guards import why_derived
from judgebench.decisions.rule import DecisionRule
from judgebench.planning.design import Draw
from judgebench.stats.annotator_bar import Bar, camps, find_copy, fit_bar
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.classification import cautious_choice, fixed_choice, why_no_choice
from judgebench.stats.consensus import median_label, recall_gap
from judgebench.stats.intervals import LEVEL


def outcome(found: Draw, k: int, rule: DecisionRule, rng: np.random.Generator) -> Outcome:
    """The decision on the judge of a drawn study."""
    side, bar = side_of(found, k, rule)
    everything = np.ones(len(found.judged), dtype=np.bool_)
    counts = study_counts(side, found.judged, everything, _baselines(side.truth, k, rng))
    if counts.how_many.sum() < rule.questions or (counts.items.sum(axis=0) > 0).sum() == 1:
        return Outcome.CANT_TELL
    ended = outcome_of(_conditions(found, side, bar, counts, rule), ())
    if ended is not Outcome.REPLACE and _filters(found, side.truth, k, rule):
        ended = Outcome.ASSIST
    favours = ended in (Outcome.REPLACE, Outcome.ASSIST)
    return Outcome.CANT_TELL if favours and _looks_copied(found, side, k) else ended


def side_of(found: Draw, k: int, rule: DecisionRule) -> tuple[HumanSide, Bar]:
    """What the judge is held against."""
    bar = fit_bar(found.own, found.clusters, k, rule.replace.humans.bar)
    own = found.own[:, bar.kept]
    others = [median_label(np.delete(own, a, axis=1), "upper") for a in range(own.shape[1])]
    side = HumanSide(
        median_label(own, "upper"), own, np.stack(others, axis=1), found.clusters, k, k - 1,
        bar.weights[:, bar.kept], bar.spread, stands_for=found.stands_for,
        with_alarms=rule.replace.false_alarms is not None, levels=k - 1 if k > 2 else 0,
    )  # fmt: skip
    return side, bar


def _baselines(truth: IntArray, k: int, rng: np.random.Generator) -> dict[str, IntArray]:
    """Those of every study: each label alone, and labels drawn as often as they occur."""
    shares = np.bincount(truth, minlength=k) / len(truth)
    prior = rng.choice(k, size=len(truth), p=shares)
    return {f"constant {label}": np.full(len(truth), label) for label in range(k)} | {
        "prior": prior
    }


def _looks_copied(found: Draw, side: HumanSide, k: int) -> bool:
    """True where labels may be copies, or annotators in camps, by chance: no judge then gets
    anything."""
    names = [str(a) for a in range(side.own.shape[1])]
    return bool(
        find_copy(found.own, found.clusters)
        or camps(found.own, found.clusters, k)
        or why_derived(found.judged, side, names)
    )


def _conditions(
    found: Draw, side: HumanSide, bar: Bar, counts: StudyCounts, rule: DecisionRule
) -> list[Condition]:
    """What REPLACE requires of the labels."""
    measured = findings(counts, rule, counts.how_many[None, :])
    conditions = [finding.condition(rule.level, 0) for finding in measured]
    bound = rule.replace.bounds.get("severe_gap")
    of_classes = side.k == 2 and bar.kept.sum() > 1 and found.own.shape[1] > 2 and counts.alone
    if bound is None or not of_classes or counts.is_weighted or not _depends_on_gap(conditions):
        return conditions
    weights: FloatArray = bar.weights.mean(axis=0)
    labels = np.column_stack([found.own, found.judged])
    by_classes = recall_gap(labels, weights / weights.sum(), -bound)
    return [use_latent_class_gap(c, *by_classes, rule) for c in conditions]


def _depends_on_gap(conditions: Sequence[Condition]) -> bool:
    """True where the severe gap alone decides: two latent classes are slow to fit."""
    gap = {c.state for c in conditions if c.key == "severe_gap"}
    others = {c.state for c in conditions if c.key != "severe_gap"}
    return others == {State.MET} or (State.NOT_MET in gap and State.NOT_MET not in others)


def _filters(found: Draw, truth: IntArray, k: int, rule: DecisionRule) -> bool:
    """True where people need to read no more than what the judge calls severe, or a little more."""
    if found.stands_for is not None:
        return False  # a filter is not weighed
    severe = (truth == k - 1).astype(np.int64)
    seen = (found.judged.astype(np.float64), severe, found.clusters.codes)
    if why_no_choice(*seen):
        return False
    if filters_well(fixed_choice(*seen, k - 1, LEVEL), rule.assist):
        return True
    return filters_well(cautious_choice(*seen, rule.assist.missed, LEVEL), rule.assist)
