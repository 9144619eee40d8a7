"""A judge beside some annotators: those of the bar, or those of a camp; and why its labels may be
copied or derived from theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from judgebench.alignment.notes import copy_in_words
from judgebench.decisions.alone import share_alone
from judgebench.decisions.conditions import NO_TRUTH, by_latent_classes, conditions_of, of_groups
from judgebench.decisions.counts import (
    Bools,
    HumanSide,
    StudyCounts,
    adjudicated,
    study_counts,
)
from judgebench.decisions.decision import Conditions, ShareAlone
from judgebench.decisions.rule import DecisionRule
from judgebench.records import SEVERAL, is_slot
from judgebench.rubric import Metric
from judgebench.stats.agreement import as_sets, response_sets, shares_of_others
from judgebench.stats.annotator_bar import is_copy_of, partly_derived_from, same_as_truth
from judgebench.stats.arrays import IntArray
from judgebench.studies.confidence import confidence
from judgebench.studies.reference_labels import Ratings
from judgebench.studies.study import (
    MOST_GROUPS,
    NOT_COMPARED,
    Humans,
    JudgeVerdicts,
    LabelledPart,
    Study,
    labelled_part,
)
from judgebench.text import counted


def why_derived(judged: IntArray, side: HumanSide, names: Sequence[str]) -> str:
    """Say why a judge's labels cannot be taken for its own judgements; empty where they can.

    `names` are the annotators of the bar.
    """
    if copied := _first(is_copy_of(judged, side.own, side.clusters), names):
        return (
            f"The judge gives the labels of {copied} on almost all items where another annotator "
            "differs: they may be copied or leaked"
        )
    if same_as_truth(judged, side.truth, side.own, side.clusters, side.k):
        return (
            "The judge gives the consensus of the annotators on almost all items where they "
            "differ, more often than it can be right: its labels may be derived from it"
        )
    if leaning := _first(partly_derived_from(judged, side.own, side.clusters, side.k), names):
        return (
            f"Where {leaning} deviates from the others, the judge does too, in both directions and "
            "far more often than with anybody else: its labels may be derived in part"
        )
    return ""


def _first(which: Bools, names: Sequence[str]) -> str:
    return next((name for name, is_it in zip(names, which, strict=True) if is_it), "")


_NOT_ASKED = "The judge was asked about no item that anybody else labelled"
_CHECK = "Check whether these labels were in its prompt, its examples or what it was trained on."
_CHECK_PEOPLE = (
    "Check whether one saw the labels of the other, or one file was read under two names."
)
NOT_LABELLED = "No item has a human label on this metric"
_LEAST_OF_GROUP = 30  # answers
_FEW_HEAVY, _MOST_HEAVY = 10, 0.25  # labelled answers, and the share of all that they stand for
_BY_TWO = "Have two annotators label the same items."
_ASK_THE_REST = (
    "Have the judge label the others, or, if only this part was meant for it, say so with "
    "`--expected rows` (in Python expected='rows')."
)
_RESUME = "Run the benchmark again: it resumes where it stopped."
_OF_ONE = " For how often each label occurs, one annotator is enough: `judgebench estimate`."


class Blocker(NamedTuple):
    """A reason why nothing can be decided, or not in favour of a judge; and what to do about it."""

    why: str
    advice: str


_NOBODY_ASKED = Blocker(_NOT_ASKED, "Have the judge label the items that annotators labelled.")
_NOBODY_LABELLED = Blocker(NOT_LABELLED, "Have annotators label it.")


@dataclass(frozen=True)
class Gold:
    """On `known` of the `of` items where judge and annotators do not all agree there is an
    adjudicated label; `lacking` more are needed before these speak for the others."""

    known: int
    of: int
    lacking: int

    @property
    def obstacle(self) -> Blocker:
        """Too few are adjudicated to decide by them, and to decide without them would be easier for
        a judge that shares errors with annotators."""
        return Blocker(
            f"Of {counted(self.of, 'answer')} on which judge and annotators do not all agree, only "
            f"{self.known:,} are adjudicated, or too few of those on which the judge alone differs",
            f"Adjudicate at least {self.lacking:,} more, chosen at random from all of them "
            "(`judgebench annotate draw disagreements`, of a run folder or the layout of --save).",
        )


@dataclass(frozen=True)
class Measured:
    """One judge on one metric: counts and conditions.

    `gate` says why nothing can be decided, and is None as a rule. `basis` says how many answers,
    questions and annotators the conditions rest on. `groups` are the groups of answers on which the
    judge falls short, else the one where it comes nearest to it. `part` are the labelled answers
    beside all, and `gold` says how many are adjudicated.
    """

    counts: StudyCounts | None
    conditions: Conditions
    gate: Blocker | None
    basis: str = ""
    groups: Conditions = ()
    part: LabelledPart = NOT_COMPARED
    gold: Gold | None = None

    @property
    def no_filter(self) -> str:
        """The reason why no filter can be measured, which counts each answer once; else empty."""
        if self.counts is not None and self.counts.is_weighted:
            return "a filter is not weighed by how the labelled answers were drawn"
        partly = self.gold is not None and self.gold.known < self.gold.of
        return "a filter cannot be held against a part of the adjudicated labels" if partly else ""


@dataclass(frozen=True)
class AnnotatorComparison:
    """The annotators `names` whom judges are held against on a metric."""

    study: Study
    metric: Metric
    rule: DecisionRule
    names: tuple[str, ...]

    @property
    def humans(self) -> Humans:
        return self.study.humans[self.metric.id]

    @cached_property
    def side(self) -> HumanSide:
        """Their labels on the items that any of them labelled; where several may be right, the sets
        of them."""
        config, k = self.study.config, len(self.metric.labels)
        ratings, by = self.humans.ratings.of(self.names).at(self._rated), config.accepted_by
        if (sets := ratings.sets) is None:
            return self._first
        others, truth = shares_of_others(sets, k), ratings.shares(k, config)
        return replace(
            self._first, own=sets, others=response_sets(others, by),
            truth=response_sets(truth, by), k=1, sets=k, levels=0, gold=None, tied=None,
        )  # fmt: skip

    @cached_property
    def _first(self) -> HumanSide:
        """Their labels, of several the first."""
        humans, kind, rated = self.humans, self.rule.replace.humans.bar, self._rated
        makers, weights, spread = self.names, np.ones((1, len(self.names))), 0.0
        if self.names == humans.in_bar(kind):
            bar, makers = humans.bar(kind), humans.trusted(kind)
            weights, spread = bar.weights[:, bar.kept], bar.spread
        others = [humans.truth_without(name, makers)[rated] for name in self.names]
        gold = humans.gold[rated]
        tied = humans.ratings.of(makers).tied(self.metric, self.study.config)[rated]
        k = len(self.metric.labels)
        return HumanSide(
            truth=humans.truth_of(makers)[self.rows],
            own=self._own[rated], others=np.stack(others, axis=1).astype(np.int64),
            clusters=humans.clusters[rated], k=k,
            severe=self.rule.severe_index(self.metric), weights=weights, spread=spread,
            gold=gold if (gold >= 0).any() else None, tied=tied,
            with_alarms=self.rule.replace.false_alarms is not None,
            levels=k - 1 if self.metric.kind == "ordinal" and k > 2 else 0,
        )  # fmt: skip

    @cached_property
    def _own(self) -> IntArray:
        return self.humans.ratings.of(self.names).values.astype(np.int64)

    @cached_property
    def _rated(self) -> Bools:
        return np.asarray((self._own >= 0).any(axis=1))

    @cached_property
    def rows(self) -> IntArray:
        """The rows of these items in `Study.answers`."""
        return self.humans.ratings.rows[self._rated]

    @cached_property
    def _controls(self) -> dict[str, IntArray]:
        """The baselines, if there are any, and a constant for each label: beside these
        annotators the strongest need not be the one that is the strongest beside all."""
        controls, n = self.study.controls, len(self.rows)
        labels = enumerate(self.metric.label_texts if controls else ())
        codes = {f'constant "{text}"': np.full(n, code) for code, text in labels}
        constants = {k: as_sets(v) if self.side.sets else v for k, v in codes.items()}
        fitted = (judge for judge in controls if not judge.is_majority)
        return constants | {judge.name: self._judged(judge) for judge in fitted}

    def _judged(self, judge: JudgeVerdicts) -> IntArray:
        judged = self.study.judged_sets if self.side.sets else self.study.judged
        return judged(judge, self.metric)[self.rows]

    def measure(self, judge: JudgeVerdicts, stressed: Conditions) -> Measured:
        """Measure what REPLACE requires of a judge; `stressed` are its conditions in a stress
        test."""
        asked = self.study.asked(judge, self.metric)
        if not asked[self.rows].any():
            return Measured(None, (), _NOBODY_ASKED if len(self.rows) else _NOBODY_LABELLED)
        judged, here = self._judged(judge), asked[self.rows]
        part, side = self._part(judge), self.side
        if part.weights is not None:
            side = replace(side, stands_for=part.weights[self.rows])
        gold = Gold(*adjudicated(side, judged, here)) if side.gold is not None else None
        if gold and gold.lacking:
            return Measured(None, (), gold.obstacle, part=part, gold=gold)
        counts = study_counts(side, judged, here, self._controls)
        conditions, labels = conditions_of(counts, self.rule), self._labels_of_classes(judge)
        if labels is not None:
            bar = self.humans.bar(self.rule.replace.humans.bar)
            conditions = by_latent_classes(conditions, counts, self.rule, labels, bar)
        return Measured(
            counts, (*conditions, *stressed),
            self._incomplete(judge) or _heavy(side) or self._gate(counts, asked),
            ", ".join(filter(None, self._basis(counts, part, gold))),
            tuple(of_groups(self._by_group(side, judged, here), self.rule)), part, gold,
        )  # fmt: skip

    def alone(self, judge: JudgeVerdicts, part: LabelledPart) -> ShareAlone:
        """Return how much a judge may decide alone."""
        rows = np.flatnonzero(self.study.asked(judge, self.metric)[self.rows])
        side = self.side.at(rows)
        sure = confidence(self.study, judge, self.metric, side.severe)
        if part.weights is not None:
            side = replace(side, stands_for=part.weights[self.rows[rows]])
        sure = sure._replace(values=sure.values[self.rows[rows]])
        return share_alone(side, self._judged(judge)[rows], sure, self.rule)

    def _basis(self, counts: StudyCounts, part: LabelledPart, gold: Gold | None) -> Iterator[str]:
        """`399 answers to 50 questions`, `3 annotators`; each question counts once."""
        answers, questions = counts.total_asked, round(float(counts.how_many.sum()))
        yield f"{answers:,} answers" + (
            f" to {questions:,} questions" if questions < answers else ""
        )
        yield counted(len(self.names), "annotator")
        yield f"{part.by[:1].lower()}{part.by[1:].rstrip('.')}"
        yield f"{gold.known:,} of {gold.of:,} disagreements adjudicated" if gold else ""

    def _part(self, judge: JudgeVerdicts) -> LabelledPart:
        labelled = np.zeros(len(self.study.answers), dtype=np.bool_)
        labelled[self.rows] = True
        return labelled_part(self.study, judge, self.metric, labelled)

    def _labels_of_classes(self, judge: JudgeVerdicts) -> IntArray | None:
        """The labels (items, annotators and the judge) where the model of `recall_gap` holds: two
        labels, every one of them given, by three annotators or more, left out of the bar or not,
        and no two items of one question."""
        humans, made = self.humans, self.humans.made
        is_bar = self.names == humans.in_bar(self.rule.replace.humans.bar)
        several = len(self.names) > 1 and len(made.annotators) > 2 and not humans.has_places
        if not (is_bar and several) or (self.side.severe, self.side.k) != (1, 2):
            return None
        asked = self.study.asked(judge, self.metric)[made.rows]
        judged = self.study.judged(judge, self.metric)[made.rows]
        labels = np.column_stack([made.values, judged])[asked].astype(np.int64)
        n_questions = len(np.unique(humans.clusters.codes[asked]))
        return None if n_questions < len(labels) or (labels < 0).any() else labels

    def _by_group(self, side: HumanSide, judged: IntArray, asked: Bools) -> dict[str, StudyCounts]:
        """The counts of the answers of each system, and of each value of a kept column, that belong
        to enough questions, and are enough."""
        groups, drawn = {}, (self.study.drawn.weight, self.study.drawn.probability)
        for column, texts in self.study.cells.items():
            here = texts[self.rows]
            values = sorted({*here[asked].tolist()}) if column not in drawn else []
            for value in values if 1 < len(values) <= MOST_GROUPS else ():
                rows = np.flatnonzero(asked & (here == value))
                of_group, labels = side.at(rows), judged[rows]
                every = np.ones(len(rows), dtype=np.bool_)
                if side.gold is not None and adjudicated(of_group, labels, every)[2]:
                    of_group = replace(of_group, gold=None)  # beside the others, then
                if len(rows) >= _LEAST_OF_GROUP and of_group.clusters.n >= self.rule.questions:
                    groups[_group_name(column, value)] = study_counts(of_group, labels, every, {})
        return groups

    def derived(self, judge: JudgeVerdicts) -> Blocker | None:
        """Say why a judge's labels cannot be taken for its own judgements; None where they can.
        Places in a list are nobody whose labels could be copied."""
        if any(map(is_slot, self.names)) or judge.name in self.rule.independent:
            return None
        judged = self.study.judged(judge, self.metric)[self.rows]
        why = why_derived(judged, self._first, self.names)
        return Blocker(why, _CHECK) if why else None

    @cached_property
    def copied(self) -> Blocker | None:
        """Say why the annotators' labels cannot all be taken for their own; None where they
        can."""
        copy = self.humans.copied_pair(self.rule.independent)
        return Blocker(copy_in_words(copy, self.humans.makers), _CHECK_PEOPLE) if copy else None

    def _incomplete(self, judge: JudgeVerdicts) -> Blocker | None:
        """Say that the judge was asked about a part that need not be like the rest; None where it
        was asked about all, or a part alone was meant for it."""
        n_asked, n = self.study.n_asked(judge, [self.metric])
        if n_asked == n or judge.asked_in_part:
            return None
        return Blocker(
            f"The judge was asked about {n_asked:,} of {n:,} {SEVERAL[self.metric.of]}: one that "
            "leaves out the hard ones looks better than it is",
            _ASK_THE_REST if judge.is_recorded else _RESUME,
        )

    def _gate(self, counts: StudyCounts, asked: Bools) -> Blocker | None:
        """Say why nothing can be known at all, whatever the numbers are; None where something can.

        `asked` (items,) says about which of all items the judge was asked.
        """
        if counts.how_many @ counts.asked[:, 1] == counts.total_asked:
            why = f"The judge gave no label on any of {counts.total_asked:,} labelled items"
            return Blocker(why, "Read why: verdicts.csv of a report has a reason for each.")
        if not counts.items.any():
            why = NO_TRUTH[:1].upper() + NO_TRUTH[1:]
            return Blocker(why, "Have annotators label items that the judge was asked about.")
        if not counts.pairs.any() and self.rule.assist.annotators > 1:
            return self._no_pairs(asked)
        by_two = (counts.pairs > 0).any(axis=(1, 2))
        known = by_two if by_two.any() else counts.items.any(axis=1)
        questions, required = int(counts.how_many @ known), self.rule.questions
        if questions < required:
            who = "two annotators" if by_two.any() else "an annotator"
            labelled = counted(questions, "question was", "questions were")
            return Blocker(
                f"Only {labelled} labelled by {who}; at least {required} are required",
                f"Have {who} label at least {required - questions} more.",
            )
        if not counts.of_sets and (counts.items.sum(axis=0) > 0).sum() == 1:
            return Blocker(
                "The reference label is the same on every item: agreement on it says nothing of a "
                "judge",
                "Add items to which annotators give another label.",
            )
        return None

    def _no_pairs(self, asked: Bools) -> Blocker:
        """Say why no annotator can be compared with others on any item, and what to do."""
        ratings = self.humans.ratings
        if not _labelled_by_two(ratings).any():
            why = "No item was labelled by two annotators: there is no human to compare with"
            more = _OF_ONE if asked.sum() > np.count_nonzero(self._rated) else ""
            return Blocker(why, f"Have a second annotator label the same items.{more}")
        left_out = [name for name in ratings.annotators if name not in self.names]
        if not _labelled_by_two(ratings.of(self.names)).any():
            names = ", ".join(left_out[:3]) + (" and others" if len(left_out) > 3 else "")
            why = f"Too few annotators are left to compare with: without {names}, no item was "
            return Blocker(f"{why}labelled by two annotators", _BY_TWO)
        return Blocker(
            "On no item that the judge was asked about do the others give a reference label with "
            "one annotator left out",
            "Have it label the items that two annotators labelled, or a third annotator label "
            "them.",
        )


def _heavy(side: HumanSide) -> Blocker | None:
    """Say that a few labelled answers stand for many, so that no interval holds; None where not."""
    if side.stands_for is None:
        return None
    heaviest = np.sort(side.stands_for)[-_FEW_HEAVY:].sum()
    if heaviest <= _MOST_HEAVY * side.stands_for.sum():
        return None
    return Blocker(
        f"{_FEW_HEAVY} labelled answers stand for more than a quarter of all",
        "Label more of those that stand for many.",
    )


def _group_name(column: str, value: str) -> str:
    if not value:
        return f"{column} blank"
    return value if column == "system" else f"{column} = {value}"


def _labelled_by_two(ratings: Ratings) -> Bools:
    return np.asarray(np.count_nonzero(ratings.values >= 0, axis=1) >= 2)
