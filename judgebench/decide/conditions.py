"""What REPLACE requires, measured on one study or on many simulated ones at once.

An answer without a label counts as wrong where a condition is to be met, and as right where it is
to be failed: a lower limit is that of the worst case, an upper limit that of the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from judgebench.decide.counts import StudyCounts
from judgebench.decide.result import Condition, State
from judgebench.decide.rule import DecisionRule, Measure
from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray
from judgebench.stats.intervals import (
    CLUSTERED_EXACT,
    SMOOTHED_T,
    OfSamples,
    clustered_share,
    mean_difference,
)

NO_OVERLAP = "no item was labelled by two annotators: there is no human to compare with"
NO_TRUTH = "no item that the judge was asked about has a human truth"
NO_CONTROL = "there is no control judge to compare with"
NO_SEVERE = "no item has a severe label as its truth"
_MEASURES: dict[Measure, str] = {
    "accuracy": "agreement",
    "balanced_accuracy": "balanced agreement",
}
WORST_AND_BEST = "; a missing label is wrong for the lower limit and right for the upper one"

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """A condition in each of R studies; the arrays are (R,). NaN is undefined, and unclear.

    `reason` says why it is undefined. `n` counts what it rests on.
    """

    key: str
    title: str
    bound: float
    at_least: bool
    value: FloatArray
    low: FloatArray
    high: FloatArray
    met: Bools
    not_met: Bools
    n: FloatArray
    method: str
    level: float
    n_missing: int = 0
    reason: str = ""
    missing: str = ""
    rival: str = ""

    def condition(self) -> Condition:
        """The condition of the first study as a record."""
        state = State.MET if self.met[0] else State.NOT_MET if self.not_met[0] else State.UNCLEAR
        numbers = (self.value[0], self.low[0], self.high[0])
        value, low, high = (None if np.isnan(x) else float(x) for x in numbers)
        estimate = Estimate(
            value, low, high, "" if value is None else self.method, round(float(self.n[0])),
            self.n_missing, self.reason if low is None else "", self.level,
        )  # fmt: skip
        missing = self.missing if state is State.UNCLEAR else ""
        return Condition(
            self.key, self.title, state, estimate, self.bound, self.at_least, missing, self.rival
        )


def findings(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Iterator[Finding]:
    """Everything that `rule.replace` requires of the judge's labels, in each of the R samples that
    `how_many` (R, U) draws from the study's kinds of clusters."""
    for measure in rule.replace.humans.measures:
        yield _humans(counts, rule, how_many, measure)
    if rule.replace.controls:
        same = _same_as_a_control(counts, how_many, rule)
        for measure in rule.replace.controls:
            yield _controls(counts, rule, how_many, measure, same)
    if counts.has_severity and rule.replace.severe is not None:
        yield from _severe(counts, rule, how_many)
    yield _failures(counts, rule, how_many)


def _humans(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, measure: Measure
) -> Finding:
    both = _worst_and_best(
        counts.judge_pairs - counts.annotator_pairs, counts.failed_pairs, counts.pairs,
        how_many, rule, measure,
    )  # fmt: skip
    margin = -rule.replace.humans.margin
    return Finding(
        key=f"humans_{measure}",
        title=f"{_MEASURES[measure]} with the other annotators, judge minus annotator",
        bound=margin, at_least=True, value=both.value, low=both.low, high=both.high,
        met=both.low >= margin, not_met=both.high < margin,
        n=how_many @ counts.pairs.sum(axis=1),
        method=f"n counts pairs of an item and an annotator; {_method(counts, SMOOTHED_T)}",
        level=rule.level, n_missing=counts.n_not_asked, reason=NO_OVERLAP,
    )  # fmt: skip


def _controls(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, measure: Measure, same: Bools
) -> Finding:
    """The judge must beat every control; reported is the one that decides. `same` (controls, R) are
    those that it cannot beat, being the same."""
    found = [
        _worst_and_best(
            counts.judge_items - counts.control_items[:, c], counts.failed_items, counts.items,
            how_many, rule, measure,
        )
        for c in range(len(counts.controls))
    ]  # fmt: skip
    empty = np.full(len(how_many), np.nan)
    value, low, high = (
        np.stack([getattr(f, which) for f in found]) if found else empty[None]
        for which in ("value", "low", "high")
    )
    # The rival that decides: one with the same labels, else one that is better, else the nearest.
    decisive = np.where(same, -np.inf, np.where(high < 0, high - 2, low))
    rival = np.where(np.isnan(decisive), np.inf, decisive).argmin(axis=0)
    at = (rival, np.arange(len(how_many)))
    name = counts.controls[rival[0]] if found else "control"
    about = "which labels the items the same" if same[at][0] else "the strongest control"
    return Finding(
        key=f"controls_{measure}",
        title=f"{_MEASURES[measure]} with the truth, judge minus {name}, {about}",
        bound=0.0, at_least=True, value=value[at], low=low[at], high=high[at],
        met=np.all(low > 0, axis=0), not_met=np.any(high < 0, axis=0) | same.any(axis=0),
        n=how_many @ counts.items.sum(axis=1),
        method=_method(counts, SMOOTHED_T), level=rule.level,
        n_missing=counts.n_not_asked, reason=NO_TRUTH if found else NO_CONTROL, rival=name,
    )  # fmt: skip


def _same_as_a_control(counts: StudyCounts, how_many: FloatArray, rule: DecisionRule) -> Bools:
    """Whether the judge is right and wrong on the very items that a control is, and that on so
    many that it differs on no more of all items than the margin for humans: (controls, R)."""
    n = counts.items.sum(axis=1)
    same = np.zeros((max(1, len(counts.controls)), len(how_many)), dtype=np.bool_)
    for c in range(len(counts.controls)):
        differs = np.abs(counts.judge_items - counts.control_items[:, c]).sum(axis=1)
        share = clustered_share(np.minimum(differs, n), n, how_many, rule.level)
        same[c] = (share.value == 0) & (share.high <= rule.replace.humans.margin)
    return same


def _worst_and_best(
    x: FloatArray, failed: FloatArray, n: FloatArray,
    how_many: FloatArray, rule: DecisionRule, measure: Measure,
) -> OfSamples:  # fmt: skip
    balanced = measure == "balanced_accuracy"
    worst = mean_difference(x, n, how_many, rule.level, balanced=balanced)
    if not failed.any():
        return worst
    best = mean_difference(x + failed, n, how_many, rule.level, balanced=balanced)
    return replace(worst, high=best.high)


def _severe(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Iterator[Finding]:
    asked = rule.replace.severe
    assert asked is not None
    n, found, failed, pairs, by_annotator = counts.severe.T
    count = how_many @ n
    nan = np.full(len(how_many), np.nan)
    yield Finding(
        key="severe_items", title="severe answers with a human truth",
        bound=asked.items, at_least=True, value=count, low=nan, high=nan,
        met=count >= asked.items, not_met=np.zeros(len(how_many), dtype=np.bool_),
        n=how_many @ counts.items.sum(axis=1), method="a count", level=rule.level,
        n_missing=counts.n_not_asked, reason="a count has no interval",
        missing=f"{max(0, asked.items - round(float(count[0])))} more severe answers are needed",
    )  # fmt: skip
    worst = clustered_share(found, n, how_many, rule.level)
    best = clustered_share(found + failed, n, how_many, rule.level) if failed.any() else worst
    # Where annotators miss the bar themselves, the labels are too noisy to hold a judge to it.
    humans = clustered_share(by_annotator, pairs, how_many, rule.level)
    too_noisy = humans.value < asked.recall
    yield Finding(
        key="severe_recall", title="share of severe answers that the judge finds",
        bound=asked.recall, at_least=True, value=worst.value, low=worst.low, high=best.high,
        met=worst.low >= asked.recall, not_met=(best.high < asked.recall) & ~too_noisy,
        n=count, method=_method(counts, CLUSTERED_EXACT), level=rule.level,
        n_missing=counts.n_not_asked, reason=NO_SEVERE,
        missing=(
            f"one annotator finds {humans.value[0]:.3f} of what the others call severe: no judge "
            "can be held to more"
            if too_noisy[0] and best.high[0] < asked.recall
            else ""
        ),
    )  # fmt: skip


def _failures(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Finding:
    n, failed = counts.asked.T
    share = clustered_share(failed, n, how_many, rule.level)
    most = rule.replace.failures
    return Finding(
        key="failures", title="share of answers without a label of the judge",
        bound=most, at_least=False, value=share.value, low=share.low, high=share.high,
        met=share.high <= most, not_met=share.low > most,
        n=how_many @ n, method=CLUSTERED_EXACT, level=rule.level,
        n_missing=counts.n_not_asked, reason="the judge was asked about no labelled item",
    )  # fmt: skip


def _method(counts: StudyCounts, method: str) -> str:
    return method + (WORST_AND_BEST if counts.asked[:, 1].any() else "")
