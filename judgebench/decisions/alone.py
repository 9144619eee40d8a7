"""The share that a judge may decide alone: answers it is sure of, and does not call severe.

A threshold on the judge's confidence is chosen on one half of the questions and checked on the
other. Thresholds come from the surest down, one for each twentieth of the answers that may be
decided alone (fixed-sequence tests; Maurer, Hothorn and Lehmacher, 1995; over thresholds of a model
Angelopoulos et al., 2021, "Learn then Test", section 4.2). The sequence begins with the first
threshold that passes, as on the surest few answers nothing can be shown, and ends before the first
after it that does not. No confidence interval of the first half is believed: what is said rests on
the one threshold that is left, on questions that had no part in its choice.

Of severe answers the share that is decided alone, and so is missed, only grows as the threshold
falls. To be wrong about any threshold, the count at the first that misses too many must be too
small: the level of one interval covers all of them, on all questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile, takewhile

import numpy as np

from judgebench.decisions.conditions import agreement_gap
from judgebench.decisions.counts import Bools, HumanSide, adjudicated, study_counts
from judgebench.decisions.decision import AlonePoint, Condition, ShareAlone, State
from judgebench.decisions.rule import DecisionRule
from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.classification import first_half
from judgebench.stats.intervals import exact_share
from judgebench.studies.confidence import Confidence

NO_CONFIDENCE = "the judge gives no probability, score or repeated draw that says how sure it is"
NONE_PASSES = "on none of the answers that it is surest of is it shown to be as good as annotators"
FAILS_CHECK = "what was chosen on one half of the questions is not shown on the other"
_MISSED = "share of severe answers that it decides alone, and so misses"
_SHARES = np.arange(20) / 20  # of the answers that may be decided alone, the least sure left out


def not_alone(reason: str, signal: str = "", points: tuple[AlonePoint, ...] = ()) -> ShareAlone:
    """Return that nothing may be decided alone, for this reason."""
    return ShareAlone(signal, AlonePoint(share=Estimate(None, reason=reason)), points)


def share_alone(
    side: HumanSide, judged: IntArray, sure: Confidence, rule: DecisionRule
) -> ShareAlone:
    """Return the largest share of the items that a judge may decide alone.

    `judged` (items,) are its labels of the items of `side`, all of which it was asked about, and
    `sure` its confidence in those that are not severe. The halves are drawn from the questions,
    those with an answer that goes to people whatever the threshold for themselves.
    """

    def at(threshold: float, half: Bools) -> AlonePoint:
        """Measure a threshold on a half of the items (items,), and on all severe answers."""
        alone = sure.values >= threshold
        share = _share(side, half, alone, rule.level)
        gap = _gap(side, judged, np.flatnonzero(half & alone), rule)
        return AlonePoint(threshold, share, (gap, *_severe(side, alone, rule)) if gap else ())

    eligible = ~np.isnan(sure.values)
    first = first_half(1 - eligible, side.clusters.codes, seed=0)
    confidences = sure.values[first & eligible]
    if not len(confidences):
        return not_alone(NONE_PASSES if sure.signal else NO_CONFIDENCE, sure.signal)
    thresholds = np.quantile(confidences, _SHARES, method="inverted_cdf")
    points = tuple(at(threshold, first) for threshold in np.unique(thresholds)[::-1].tolist())
    begun = dropwhile(lambda point: not point.is_met, points)
    passing = [*takewhile(lambda point: point.is_met, begun)]
    if not passing:
        return not_alone(NONE_PASSES, sure.signal, points)
    check = at(passing[-1].threshold, ~first)
    if not check.is_met:
        check = replace(check, share=Estimate(None, reason=FAILS_CHECK))
    return ShareAlone(sure.signal, check, points)


def _share(side: HumanSide, weight: FloatArray | Bools, alone: Bools, level: float) -> Estimate:
    """The share of the weight (items,) that is decided alone; items that stand for more count as
    many times as much."""
    if side.stands_for is not None:
        weight = weight * side.stands_for / side.stands_for.mean()
    decided, total = side.clusters.sums(weight * alone, weight).T
    return exact_share(decided, total, np.ones(len(total)), level)


def _gap(side: HumanSide, judged: IntArray, rows: IntArray, rule: DecisionRule) -> Condition | None:
    """The agreement of judge minus annotator on the items at these rows. None where the adjudicated
    labels among them are too few to speak for the others."""
    part, labels, is_due = side.at(rows), judged[rows], np.ones(len(rows), dtype=np.bool_)
    if part.gold is not None and adjudicated(part, labels, is_due)[2]:
        return None
    counts = study_counts(part, labels, is_due, {})
    return agreement_gap(counts, rule, counts.how_many[None]).condition(rule.level, 0)


def _severe(side: HumanSide, alone: Bools, rule: DecisionRule) -> Iterator[Condition]:
    """The share of severe answers that are decided alone; nothing where the rule does not ask, or
    no label is severe."""
    bound = rule.replace.bounds.get("severe_gap")
    if bound is not None and side.severe is not None:
        missed = _share(side, side.severe_labels, alone, rule.level)
        high = 1.0 if missed.high is None else missed.high
        state = State.MET if high <= -bound else State.UNCLEAR
        yield Condition("severe_alone", _MISSED, state, missed, -bound, at_least=False)
