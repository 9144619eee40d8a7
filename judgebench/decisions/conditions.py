"""The requirements of REPLACE and ASSIST: of labels, of triage (ASSIST), and of the stress test.

Labels are measured on one study or on many simulated ones at once. An answer without a label
counts as wrong where a condition is to be met, and as right where it is to be failed: a lower limit
is that of the worst case, an upper limit that of the best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from judgebench.decisions.counts import Bools, StudyCounts
from judgebench.decisions.kinds import KINDS, title_of
from judgebench.decisions.result import AT_SEVERE, NO_FILTER, Condition, State, TriageCurve
from judgebench.decisions.rule import AssistRule, DecisionRule, Measure
from judgebench.records import Estimate
from judgebench.results.rows import Results
from judgebench.stats.arrays import FloatArray, mean_of_defined, ratio
from judgebench.stats.consensus import CRITICAL_ROOT
from judgebench.stats.copies import signal_left
from judgebench.stats.intervals import (
    CLUSTERED_EXACT,
    PRECISION,
    SMOOTHED_T,
    OfSamples,
    clopper_pearson,
    clustered_share,
    mean_difference,
    more_for_precision,
)
from judgebench.stats.thresholds import Point

NO_OVERLAP = "on no item can an annotator be compared with others"
NO_TRUTH = "no item that the judge was asked about has a reference label"
NO_CONTROL = "there is no baseline to compare with"
NO_SEVERE = "no item has a severe label as its reference label"
_WORST_AND_BEST = "; a missing label is wrong for the lower limit and right for the upper one"
LATENT_CLASSES = "likelihood ratio of two latent classes (Dawid and Skene, 1979)"
_LEAST_ROOT = 1e-3  # from which its sign is more than rounding
_EVERY_TRICK = "all"  # as the recipe of a stress row


@dataclass(frozen=True)
class Finding:
    """A condition in each of R studies; the arrays are (R,). NaN is undefined, and unclear.

    `reason` says why it is undefined. `n` counts what it rests on. `detail` stands in the title
    after that of the kind.
    """

    key: str
    bound: float
    found: OfSamples
    met: Bools
    not_met: Bools
    n: FloatArray
    method: str
    reason: str
    at_least: bool = True
    missing: str = ""
    rival: str = ""
    detail: str = ""

    def condition(self, level: float, n_missing: int) -> Condition:
        """The condition of the first study as a record."""
        state = State.MET if self.met[0] else State.NOT_MET if self.not_met[0] else State.UNCLEAR
        numbers = (self.found.value[0], self.found.low[0], self.found.high[0])
        value, low, high = (None if np.isnan(x) else float(x) for x in numbers)
        estimate = Estimate(
            value, low, high, "" if value is None else self.method, round(float(self.n[0])),
            n_missing, self.reason if low is None else "", level,
        )  # fmt: skip
        missing = self.missing if state is State.UNCLEAR else ""
        return Condition(
            self.key, title_of(self.key, self.detail), state, estimate, self.bound, self.at_least,
            missing, self.rival,
        )  # fmt: skip


def findings(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Iterator[Finding]:
    """Everything that `rule.replace` requires of the judge's labels, in each of the R samples that
    `how_many` (R, U) draws from the study's kinds of clusters."""
    measures = counts.measures(rule.replace.humans.measures)
    beside = [_humans(counts, rule, how_many, m) for m in measures]
    yield from beside
    if counts.levels and rule.replace.humans.distance is not None:
        yield _distance(counts, rule, how_many, rule.replace.humans.distance)
    if rule.replace.controls:
        same = _same_as_a_control(counts, how_many, rule)
        poor = np.any(
            [np.zeros(len(how_many), dtype=np.bool_), *(f.not_met for f in beside)], axis=0
        )
        for measure in counts.measures(rule.replace.controls):
            yield _controls(counts, rule, how_many, measure, same, poor)
    if counts.has_severity and rule.replace.severe is not None:
        yield from _severe(counts, rule, how_many)
    yield _failures(counts, rule, how_many)


def _humans(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, measure: Measure
) -> Finding:
    """Judge minus annotator, where the labels of other annotators stand in for the truth: of the
    margin counts what they leave of it (`signal_left`)."""
    found = [
        _worst_and_best(
            counts.judge_pairs[:, b] - counts.annotator_pairs[:, b], counts.failed_pairs[:, b],
            counts.pairs[:, b], how_many, rule, counts.used(measure, rule.rare),
        )
        for b in range(counts.pairs.shape[1])
    ]  # fmt: skip
    total, right = (
        np.einsum("ru,ubk->rbk", how_many, x) for x in (counts.pairs, counts.annotator_pairs)
    )
    among = ratio(right.sum(axis=2), total.sum(axis=2))
    if measure == "balanced_accuracy":
        among = mean_of_defined(ratio(right, total))
    # As many labels of which one is right as leave that chance.
    labels = np.array(1 / counts.chance) if counts.chance else (total > 0).sum(axis=2)
    left = signal_left(among, labels)
    margin = -rule.replace.humans.margin * np.nan_to_num(left, nan=1)
    return _beside_annotators(
        found, margin + counts.spread, margin,
        key=f"humans_{measure}",
        n=how_many @ counts.pairs[:, 0].sum(axis=1),
        method=f"n counts pairs of an item and an annotator; {_method(counts, SMOOTHED_T)}",
        reason=NO_OVERLAP, detail="any label that they accept is right" if counts.of_sets else "",
    )  # fmt: skip


def _distance(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, margin: float
) -> Finding:
    """Judge minus annotator in levels from the truth of the others, on average over the pairs
    where the judge gives a label (the others are failures). An error by two levels counts twice."""
    most = counts.levels
    found = [
        mean_difference((judge - annotator) / most, n, how_many, rule.level, balanced=False)
        for n, judge, annotator in counts.distances.transpose(1, 2, 0)[..., None]
    ]
    at = (np.stack([f.high for f in found]).argmax(axis=0), np.arange(len(how_many)))
    parts = (np.stack([getattr(f, which) for f in found]) for which in ("value", "low", "high"))
    value, low, high = (most * part[at] for part in parts)
    return Finding(
        key="humans_distance", bound=margin, at_least=False, found=OfSamples(value, low, high),
        met=high <= margin, not_met=low > margin, n=how_many @ counts.distances[:, 0, 0],
        method=f"n counts pairs of an item and an annotator; {SMOOTHED_T}", reason=NO_OVERLAP,
    )  # fmt: skip


def _beside_annotators(
    found: Sequence[OfSamples], met_from: FloatArray, fails_below: FloatArray, **about: Any
) -> Finding:
    """Of several bars (R, bars) all must be reached, and none where the condition fails; reported
    is the one that the judge is furthest from reaching."""
    value, low, high = (
        np.stack([getattr(f, which) for f in found], axis=1) for which in ("value", "low", "high")
    )
    short = np.where(np.isnan(low), np.inf, low - met_from)
    at = np.arange(len(low)), short.argmin(axis=1)
    return Finding(
        bound=float(met_from[at][0]), found=OfSamples(value[at], low[at], high[at]),
        met=np.all(low >= met_from, axis=1), not_met=np.all(high < fails_below, axis=1), **about,
    )  # fmt: skip


def _controls(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, measure: Measure,
    same: Bools, poor: Bools,
) -> Finding:  # fmt: skip
    """The judge must beat every control; reported is the one that decides. `same` (controls, R) are
    those that it cannot beat, being the same. To be worse than a control is no failure unless the
    annotators are shown to beat it, or the judge to be worse than they are: `poor` (R,)."""
    found = [
        _worst_and_best(
            counts.judge_items - counts.control_items[:, c], counts.failed_items, counts.items,
            how_many, rule, counts.used(measure, rule.rare),
        )
        for c in range(len(counts.controls))
    ]  # fmt: skip
    empty = np.full(len(how_many), np.nan)
    value, low, high = (
        np.stack([getattr(f, which) for f in found]) if found else empty[None]
        for which in ("value", "low", "high")
    )
    worse = high < 0
    beaten = _beaten_by_annotators(counts, rule, how_many, measure, worse & ~poor)
    failed: Bools = same | (worse & (poor | beaten))
    # The rival that decides: one with the same labels, else one that is better, above all where
    # annotators beat it, else the nearest.
    decisive = np.where(same, -np.inf, np.where(worse, high - 2 - failed, low))
    rival = np.where(np.isnan(decisive), np.inf, decisive).argmin(axis=0)
    at = (rival, np.arange(len(how_many)))
    name = counts.controls[rival[0]] if found else "control"
    about = "which labels the items the same" if same[at][0] else "the strongest baseline"
    excused = worse[at][0] and not failed[at][0]
    return Finding(
        key=f"controls_{measure}",
        detail=f"judge minus {name}, {about}",
        bound=0.0, found=OfSamples(value[at], low[at], high[at]),
        met=np.all(low > 0, axis=0), not_met=np.any(failed, axis=0),
        n=how_many @ counts.items.sum(axis=1),
        method=_method(counts, SMOOTHED_T), reason=NO_TRUTH if found else NO_CONTROL,
        rival=name.split(' "')[0],  # the title says which label, the reason need not
        missing="nor are the annotators shown to beat it" if excused else "",
    )  # fmt: skip


def _beaten_by_annotators(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, measure: Measure, needed: Bools
) -> Bools:
    """False where the annotators of the bar are not shown to agree with each other more often than
    a control does with them; True where nobody can know: (controls, R), found where `needed`."""
    labels, found = counts.used(measure, rule.rare), np.ones_like(needed)
    right, n = counts.annotator_pairs.sum(axis=1), counts.pairs.sum(axis=1)
    for c in np.flatnonzero(needed.any(axis=1)):
        lead = right - counts.control_pairs[:, c]
        found[c] = ~(_worst_and_best(lead, np.zeros_like(n), n, how_many, rule, labels).low <= 0)
    return found


def _same_as_a_control(counts: StudyCounts, how_many: FloatArray, rule: DecisionRule) -> Bools:
    """True where the judge is right and wrong on the very items that a control is, and that on so
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
    how_many: FloatArray, rule: DecisionRule, labels: Bools | None = None,
) -> OfSamples:  # fmt: skip
    """Balanced over these `labels` (k,); plain where there are none to balance over."""
    if labels is not None:
        x, failed, n = (counted[:, labels] for counted in (x, failed, n))
    balanced = labels is not None
    worst = mean_difference(x, n, how_many, rule.level, balanced=balanced)
    if not failed.any():
        return worst
    best = mean_difference(x + failed, n, how_many, rule.level, balanced=balanced)
    return replace(worst, high=best.high)


def _severe(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Iterator[Finding]:
    asked = rule.replace.severe
    assert asked is not None
    n, found, failed = counts.severe.T
    count = how_many @ n
    nan = np.full(len(how_many), np.nan)
    more = more_for_precision(found, n, how_many[0]) if count[0] else 0
    needed = f"{more:,} more are needed to know the recall within ±{PRECISION:g}"
    yield Finding(
        key="severe_items", bound=asked.items, found=OfSamples(count, nan, nan),
        met=count >= asked.items, not_met=np.zeros(len(how_many), dtype=np.bool_),
        n=how_many @ counts.items.sum(axis=1), method="a count", reason="a count has no interval",
        missing=needed if more else "",
    )  # fmt: skip
    worst = clustered_share(found, n, how_many, rule.level)
    best = clustered_share(found + failed, n, how_many, rule.level) if failed.any() else worst
    # Where annotators miss the bar themselves, the labels are too noisy to hold a judge to it.
    pairs = np.einsum("ru,ubx->rbx", how_many, counts.severe_pairs)
    by_humans = ratio(pairs[..., 3], pairs[..., 0]).min(axis=1)
    too_noisy = by_humans < asked.recall
    yield Finding(
        key="severe_recall", bound=asked.recall, found=replace(worst, high=best.high),
        met=worst.low >= asked.recall, not_met=(best.high < asked.recall) & ~too_noisy,
        n=count, method=_method(counts, CLUSTERED_EXACT), reason=NO_SEVERE,
        missing=(
            f"a single annotator finds only {100 * by_humans[0]:.0f} % of the answers that the "
            "others call severe, and no judge can be required to find more"
            if too_noisy[0] and best.high[0] < asked.recall
            else ""
        ),
    )  # fmt: skip
    if asked.margin is not None:
        beside = _severe_gap(counts, rule, how_many, asked.margin)
        yield replace(beside, not_met=beside.not_met & ~too_noisy)


def _severe_gap(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, margin: float
) -> Finding:
    """Judge minus annotator where most of the others see a severe answer. Where these are wrong
    neither finds anything: of the margin counts the share that an annotator finds."""
    found = [
        _worst_and_best(judge - annotator, failed, n, how_many, rule)
        for n, judge, failed, annotator in counts.severe_pairs.transpose(1, 2, 0)[..., None]
    ]
    pairs = np.einsum("ru,ubx->rbx", how_many, counts.severe_pairs)
    bound = -margin * np.nan_to_num(ratio(pairs[..., 3], pairs[..., 0]), nan=1)
    return _beside_annotators(
        found, bound, bound,
        key="severe_gap", n=pairs[:, 0, 0],
        method=f"n counts pairs of an item and an annotator; {_method(counts, SMOOTHED_T)}",
        reason="no item is severe to most of the other annotators",
    )  # fmt: skip


def of_classes(c: Condition, gap: float, root: float, rule: DecisionRule) -> Condition:
    """The severe gap by `recall_gap`; every other condition as it is. The interval is the one whose
    limit meets the bound where the root is critical; it fails only where the interval
    of the labels at hand fails too."""
    asked = rule.replace.severe
    if c.key != "severe_gap" or abs(root) < _LEAST_ROOT or asked is None or asked.margin is None:
        return c
    critical = CRITICAL_ROOT * float(ndtri((1 + rule.level) / 2) / ndtri(0.975))
    half = critical * (gap + asked.margin) / root
    fails = c.state is State.NOT_MET and root <= -critical
    state = State.MET if root >= critical else State.NOT_MET if fails else State.UNCLEAR
    low, high = max(-1.0, gap - half), min(1.0, gap + half)
    found = replace(c.estimate, value=gap, low=low, high=high, method=LATENT_CLASSES)
    return replace(c, state=state, estimate=found, bound=-asked.margin)


def of_systems(by_system: Mapping[str, StudyCounts], rule: DecisionRule) -> Iterator[Condition]:
    """The system on whose answers the judge falls short the most, beside annotators on the same
    answers. It fails where the whole interval does, corrected for the number of systems."""
    most = rule.replace.systems
    if most is None or len(by_system) < 2:
        return
    level = 1 - (1 - rule.level) / len(by_system)
    margin = rule.replace.humans.model_copy(update={"margin": most})
    replaced = rule.replace.model_copy(update={"humans": margin})
    strict = rule.model_copy(update={"level": level, "replace": replaced})
    found = {
        system: _humans(counts, strict, counts.how_many[None, :], "accuracy")
        for system, counts in by_system.items()
    }
    if known := {s: one for s, one in found.items() if not np.isnan(one.found.high[0])}:
        system = min(known, key=lambda s: known[s].found.high[0])
        worst = known[system].condition(level, 0)
        state = worst.state if worst.state is State.NOT_MET else State.MET
        title = KINDS["systems"].title.format(rival=system)
        yield replace(worst, key="systems", title=title, state=state, missing="", rival=system)


def _failures(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Finding:
    n, failed = counts.asked.T
    share = clustered_share(failed, n, how_many, rule.level, one_sided=True)
    most, enough = rule.replace.failures, ""
    if not failed.any() and 0 < most < 1:  # so many must all have a label to show that few lack one
        needed = math.ceil(math.log(1 - rule.level) / math.log(1 - most))
        enough = f"{needed} questions would show it"
    return Finding(
        key="failures", bound=most, at_least=False, found=share,
        met=share.high <= most, not_met=share.low > most, n=how_many @ n, method=CLUSTERED_EXACT,
        reason="the judge was asked about no labelled item", missing=enough,
    )  # fmt: skip


def _method(counts: StudyCounts, method: str) -> str:
    return method + (_WORST_AND_BEST if counts.asked[:, 1].any() else "")


def assist_conditions(
    curves: Sequence[TriageCurve], judge: str, metric: str, rule: DecisionRule
) -> tuple[Condition, ...]:
    """The shares of new answers that the recommended threshold is expected to send and to miss.

    Of several signals the first counts, so that no signal is picked for its luck. Empty where
    the judge has no curve on this metric.
    """
    if not (mine := [c for c in curves if (c.judge, c.metric) == (judge, metric)]):
        return ()
    curve = mine[0]
    if curve.choice is None:
        none = Estimate(None, n=curve.n, reason=curve.reason)
        title = "no threshold can be recommended"
        return (Condition("missed", title, State.UNCLEAR, none, rule.assist.missed, False),)
    sent, missed = curve.choice.expected_sent, curve.choice.expected_missed
    # The recommended threshold errs to the safe side: that it sends too much shows no more than
    # that severe answers are few, as long as another threshold may do.
    can_fail = not within_reach(curve, rule.assist)
    more, most = "more severe answers would lower what must be sent", rule.assist
    at = AT_SEVERE if curve.choice.fixed else ""
    of_sent = _at_most("sent", sent, most.sent, more, can_fail, at)
    if curve.choice.sends_all:
        return (replace(of_sent, missing=NO_FILTER),)
    more = "more severe answers are needed"
    return of_sent, _at_most("missed", missed, most.missed, more, can_fail, at)


def _at_most(
    key: str,
    estimate: Estimate,
    bound: float,
    missing: str,
    can_fail: bool = True,
    detail: str = "",
) -> Condition:
    """The condition on a number that must lie below `bound`; unclear without an interval, and for
    want of what is missing."""
    state = State.UNCLEAR
    if estimate.high is not None and estimate.high <= bound:
        state, missing = State.MET, ""
    elif can_fail and estimate.low is not None and estimate.low > bound:
        state, missing = State.NOT_MET, ""
    return Condition(key, title_of(key, detail), state, estimate, bound, False, missing)


def within_reach(curve: TriageCurve, rule: AssistRule) -> bool:
    """True where the intervals of any one threshold leave both requirements of ASSIST open.

    With few severe answers the recommended threshold sends far more than it would have to; only
    where this is False has a judge been shown to be no filter. True where a share has no interval.
    """

    def may_be_met(point: Point) -> bool:
        least_sent, most_caught = point.sent.low or 0.0, point.caught.high
        missed = 0.0 if most_caught is None else 1 - most_caught
        return least_sent <= rule.sent and missed <= rule.missed

    return not curve.points or any(map(may_be_met, curve.points))


def stress_conditions(
    stress: Results | None, judge: str, metric: str, rule: DecisionRule
) -> Iterator[Condition]:
    """Robustness and planted verdicts, where the rows of a stress test measured this judge and
    metric."""
    if stress is None:
        return
    about = {"judge": judge, "metric": metric}
    if rule.replace.robustness is not None:
        rows = stress.select("invariance", "robustness", **about)
        probes = [(row["recipe"], row.estimate) for row in rows if row.estimate.low is not None]
        if probes:
            yield _robustness(probes, rule.replace.robustness)
    if rule.replace.planted is not None:
        for row in stress.select("planted", "success", recipe=_EVERY_TRICK, **about):
            if row.estimate.value is not None:
                more = "more answers with planted verdicts are needed"
                yield _at_most("planted", row.estimate, rule.replace.planted, more)


def _robustness(probes: Sequence[tuple[str, Estimate]], least: float) -> Condition:
    """Met on the mean over the probes, but not where one probe alone fails it.

    The mean of lower limits is no more than the lower limit of the mean, whatever the probes have
    in common.
    """
    mean = _mean([estimate for _, estimate in probes])
    key = "robustness"
    if failed := [pair for pair in probes if _fails(pair[1], least, among=len(probes))]:
        probe, worst = min(failed, key=lambda pair: pair[1].high or 0.0)
        title = title_of(key, f"under {probe}")
        return Condition(key, title, State.NOT_MET, worst, least, True)
    state = State.MET if (mean.low or 0.0) >= least else State.UNCLEAR
    title = title_of(key, f"mean over {len(probes)} probes")
    missing = "" if state is State.MET else "more altered answers are needed"
    return Condition(key, title, state, mean, least, True, missing)


def _fails(robustness: Estimate, least: float, among: int) -> bool:
    """True where a probe shows less than required, also as one of many (Bonferroni): otherwise,
    among forty probes of three pairs each, one would seem to fail with a steady judge."""
    value, n = robustness.value or 0.0, robustness.n
    corrected = clopper_pearson(round(value * n), n, 1 - (1 - robustness.level) / among)
    return max(robustness.high or 0.0, corrected.high or 0.0) < least


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    value, low, high = (
        sum(getattr(e, part) or 0.0 for e in estimates) / len(estimates)
        for part in ("value", "low", "high")
    )
    return replace(
        estimates[0],
        value=value,
        low=low,
        high=high,
        n=sum(e.n for e in estimates),
        n_missing=sum(e.n_missing for e in estimates),
        reason="",
        method="mean over the probes of value and of both limits",
    )
