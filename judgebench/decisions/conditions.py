"""The requirements of REPLACE and ASSIST: of labels, of triage (ASSIST), and of the stress test.

Labels are measured on one study or on many simulated ones at once. An answer without a label
counts as wrong where a condition is to be met, and as right where it is to be failed: a lower limit
is that of the worst case, an upper limit that of the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
    SMOOTHED_T,
    OfSamples,
    clopper_pearson,
    clustered_share,
    mean_difference,
    paired_difference,
)
from judgebench.stats.thresholds import Point

NO_OVERLAP = "on no item can an annotator be compared with others"
NO_TRUTH = "no item that the judge was asked about has a reference label"
NO_CONTROL = "there is no baseline to compare with"
NO_SEVERE = "no item has a severe label as its reference label"
NO_SEVERE_PAIR = "no item is severe to most of the other annotators"
NO_MILD_PAIR = "every item is severe to most of the other annotators"
_WORST_AND_BEST = "; a missing label is wrong for the lower limit and right for the upper one"
LATENT_CLASSES = "likelihood ratio of two latent classes (Dawid and Skene, 1979)"
_NOISY = 0.7  # the share of severe answers that an annotator finds, by the others' labels
_LEAST_ROOT = 1e-3  # from which its sign is more than rounding
_FROM_QUESTIONS = 50  # where no verdict failed, failures count verdicts, and not questions
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
    for measure in counts.measures(rule.replace.humans.measures):
        yield _humans(counts, rule, how_many, measure)
    if counts.levels and rule.replace.humans.distance is not None:
        yield _distance(counts, rule, how_many, rule.replace.humans.distance)
    if rule.replace.controls:
        yield _controls(counts, rule, how_many)
    severe = rule.replace.severe if counts.has_severity else None
    if severe is not None and severe.recall is not None:
        yield _severe_recall(counts, rule, how_many, severe.recall)
    if severe is not None and severe.margin is not None:
        yield _severe_gap(counts, rule, how_many, severe.margin)
    alarms = rule.replace.false_alarms if counts.has_severity else None
    if alarms is not None:
        yield _gap(
            counts, rule, how_many, counts.mild_pairs, alarms.margin, "false_alarms",
            NO_MILD_PAIR,
        )  # fmt: skip
    yield _failures(counts, rule, how_many)


def _humans(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, measure: Measure
) -> Finding:
    """Judge minus annotator, where the labels of other annotators stand in for the truth: of the
    margin counts what they leave of it (`signal_left`)."""
    found = [
        _worst_and_best(
            counts,
            (counts.judge_pairs[:, b] - counts.annotator_pairs[:, b], counts.failed_pairs[:, b],
             counts.pairs[:, b]),
            how_many, rule, counts.used(measure, rule.rare),
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
    left = 1.0 if counts.by_gold else np.nan_to_num(signal_left(among, labels), nan=1)
    margin = -rule.replace.humans.margin * np.broadcast_to(left, among.shape)
    return _beside_annotators(
        found, margin + counts.spread, margin,
        key=f"{'gold' if counts.by_gold else 'humans'}_{measure}",
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
        _difference(counts)((judge - annotator) / most, n, how_many, rule.level)
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


def _controls(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Finding:
    """The judge must beat every control; reported is the one that decides."""
    same = _same_as_a_control(counts, how_many, rule)
    found = [
        _worst_and_best(
            counts,
            (counts.judge_items - counts.control_items[:, c], counts.failed_items, counts.items),
            how_many, rule, counts.balanced_over(rule.rare),
        )
        for c in range(len(counts.controls))
    ]  # fmt: skip
    empty = np.full(len(how_many), np.nan)
    value, low, high = (
        np.stack([getattr(f, which) for f in found]) if found else empty[None]
        for which in ("value", "low", "high")
    )
    failed: Bools = same | (high < 0)
    # The rival that decides: one with the same labels, else one that is better, else the nearest.
    decisive = np.where(same, -np.inf, np.where(failed, high - 2, low))
    rival = np.where(np.isnan(decisive), np.inf, decisive).argmin(axis=0)
    at = (rival, np.arange(len(how_many)))
    name = counts.controls[rival[0]] if found else "control"
    about = "which labels the items the same" if same[at][0] else "the strongest baseline"
    return Finding(
        key="controls",
        detail=f"judge minus {name}, {about}",
        bound=0.0, found=OfSamples(value[at], low[at], high[at]),
        met=np.all(low > 0, axis=0), not_met=np.any(failed, axis=0),
        n=how_many @ counts.items.sum(axis=1),
        method=_method(counts, SMOOTHED_T), reason=NO_TRUTH if found else NO_CONTROL,
        rival=name.split(' "')[0],  # the title says which label, the reason need not
    )  # fmt: skip


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
    counts: StudyCounts, of: tuple[FloatArray, FloatArray, FloatArray], how_many: FloatArray,
    rule: DecisionRule, labels: Bools | None = None,
) -> OfSamples:  # fmt: skip
    """`of` are the differences, the failures and the number of pairs. Balanced over these `labels`
    (k,); plain where there are none to balance over."""
    x, failed, n = of if labels is None else (counted[:, labels] for counted in of)
    measure = _difference(counts) if labels is None else partial(mean_difference, balanced=True)
    worst = measure(x, n, how_many, rule.level)
    if not failed.any():
        return worst
    best = measure(x + failed, n, how_many, rule.level)
    return replace(worst, high=best.high)


def _difference(counts: StudyCounts) -> Callable[..., OfSamples]:
    """The measure of a difference that is not balanced: items that share no question are pairs."""
    return paired_difference if counts.alone else partial(mean_difference, balanced=False)


def _severe_recall(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, least: float
) -> Finding:
    n, found, failed = counts.severe.T
    worst = clustered_share(found, n, how_many, rule.level)
    best = clustered_share(found + failed, n, how_many, rule.level) if failed.any() else worst
    return Finding(
        key="severe_recall", bound=least, found=replace(worst, high=best.high),
        met=worst.low >= least, not_met=best.high < least, n=how_many @ n,
        method=_method(counts, CLUSTERED_EXACT), reason=NO_SEVERE,
    )  # fmt: skip


def _gap(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, pairs: FloatArray,
    margin: float, key: str, reason: str,
) -> Finding:  # fmt: skip
    """Judge minus annotator on those of the `pairs` (U, bars, 4) that most of the others call the
    same, or the adjudicator. Where the others are wrong neither is right: of the margin counts the
    share that an annotator gets right."""
    found = [
        _worst_and_best(counts, (judge - annotator, failed, n), how_many, rule)
        for n, judge, failed, annotator in pairs.transpose(1, 2, 0)[..., None]
    ]
    total = np.einsum("ru,ubx->rbx", how_many, pairs)
    left = 1.0 if counts.by_gold else np.nan_to_num(ratio(total[..., 3], total[..., 0]), nan=1)
    bound = -margin * np.broadcast_to(left, total.shape[:2])
    return _beside_annotators(
        found, bound, bound, key=key, n=total[:, 0, 0],
        method=f"n counts pairs of an item and an annotator; {_method(counts, SMOOTHED_T)}",
        reason=reason,
    )  # fmt: skip


def _severe_gap(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, margin: float
) -> Finding:
    pairs, key = counts.severe_pairs, "severe_gap"
    gap = _gap(counts, rule, how_many, pairs, margin, key, NO_SEVERE_PAIR)
    n_severe, least = how_many[0] @ counts.severe[:, 0], _least_severe(margin, rule.level)
    few = f"fewer than {least} severe answers cannot show a margin of {margin:g}"
    gap = replace(gap, missing=few if 0 < n_severe < least else "")
    if counts.by_gold:
        return gap
    # What annotators hardly agree on fails no judge.
    total = np.einsum("ru,ubx->rbx", how_many, pairs)
    by_humans = ratio(total[..., 3], total[..., 0]).min(axis=1)
    is_noisy = by_humans < _NOISY
    if is_noisy[0]:
        noisy = f"an annotator finds only {100 * by_humans[0]:.0f} % of what the others call severe"
        gap = replace(gap, missing=noisy)
    return replace(gap, not_met=gap.not_met & ~is_noisy)


def _least_severe(margin: float, level: float) -> int:
    """So many severe answers a judge must find, all of them, to show that it misses few: with fewer
    one that misses the margin finds them all by luck."""
    return math.ceil(math.log((1 - level) / 2) / math.log(1 - margin)) if 0 < margin < 1 else 1


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
    return replace(c, state=state, estimate=found, bound=-asked.margin, missing="")


def of_groups(groups: Mapping[str, StudyCounts], rule: DecisionRule) -> Iterator[Condition]:
    """The groups of answers, by name, on which the judge falls short beside annotators on the same
    answers: its value lies below the margin, and the whole interval, corrected for the number of
    groups, below 0. Without such a group the one where the interval is lowest."""
    most = rule.replace.groups
    if most is None or not groups:
        return
    level = 1 - (1 - rule.level) / len(groups)
    strict = rule.model_copy(update={"level": level})
    found = {
        name: _humans(counts, strict, counts.how_many[None, :], "accuracy")
        for name, counts in groups.items()
    }
    known = {name: one for name, one in found.items() if not np.isnan(one.found.high[0])}
    lowest_first = sorted(known, key=lambda name: known[name].found.high[0])
    short = [
        name for name in lowest_first
        if known[name].found.value[0] < -most and known[name].found.high[0] < 0
    ]  # fmt: skip
    for name in short or lowest_first[:1]:
        about = known[name].condition(level, 0)
        state, title = State.NOT_MET if short else State.MET, KINDS["groups"].title
        yield replace(
            about, key="groups", title=title.format(rival=name), state=state, bound=-most,
            missing="", rival=name,
        )  # fmt: skip


def _failures(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Finding:
    n, failed = counts.asked.T
    share = clustered_share(failed, n, how_many, rule.level, one_sided=True)
    most, enough = rule.replace.failures, ""
    if not failed.any() and 0 < most < 1:  # so many must all have a label to show that few lack one
        # Where questions are many, that one of them lacks all its labels would have shown.
        of_items = 1 - (1 - rule.level) ** ratio(1, how_many @ n)
        many = how_many @ (n > 0) >= _FROM_QUESTIONS
        share = replace(share, high=np.where(many, of_items, share.high))
        needed = math.ceil(math.log(1 - rule.level) / math.log(1 - most))
        enough = f"{needed} answers to {_FROM_QUESTIONS} questions would show it"
    return Finding(
        key="failures", bound=most, at_least=False, found=share,
        met=share.high <= most, not_met=share.low > most, n=how_many @ n, method=CLUSTERED_EXACT,
        reason="the judge was asked about no labelled item", missing=enough,
    )  # fmt: skip


def _method(counts: StudyCounts, method: str) -> str:
    return method + (_WORST_AND_BEST if counts.asked[:, 1].any() else "")


def assist_conditions(
    curves: Sequence[TriageCurve], judge: str, metric: str, rule: DecisionRule, why_none: str = ""
) -> tuple[Condition, ...]:
    """The shares of new answers that the recommended threshold is expected to send and to miss.

    Of several signals the first counts, so that no signal is picked for its luck. Empty where
    the judge has no curve on this metric; nothing is known where there is a reason `why_none`.
    """
    if not (mine := [c for c in curves if (c.judge, c.metric) == (judge, metric)]):
        return ()
    curve = mine[0]
    if curve.choice is None or why_none:
        none = Estimate(None, n=curve.n, reason=why_none or curve.reason)
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
