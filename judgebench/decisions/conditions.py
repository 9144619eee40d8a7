"""Triage: each judge as a first-pass filter.

A judge's signal is held against a threshold; an answer at or above it goes to humans. The signal is
the finest that it has: the score that it follows from, the probability of a severe label, or the
label. Severe on any metric (EVERY) has the largest signal over the ordinal metrics: of
probabilities, the chance of the likeliest severe label; of labels, the severity as a share of the
metric's least severe label that counts as severe, so that 1 means severe somewhere and 0.5 half the
way to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from judgebench.decisions.anchors import BOTH_MISS
from judgebench.decisions.counts import Bools, StudyCounts
from judgebench.decisions.decision import (
    AT_SEVERE,
    EVERY,
    KINDS,
    NO_FILTER,
    Condition,
    Conditions,
    State,
    TriageCurve,
    title_of,
)
from judgebench.decisions.rule import STRESSED, AssistRule, DecisionRule, Measure
from judgebench.records import Estimate, Results, Row
from judgebench.rubric import Metric
from judgebench.stats.annotator_bar import Bar, attenuation_factor
from judgebench.stats.arrays import FloatArray, IntArray, mean_of_defined, ratio
from judgebench.stats.classification import (
    Choice,
    Point,
    cautious_choice,
    fixed_choice,
    triage_points,
    why_no_choice,
)
from judgebench.stats.consensus import CRITICAL_ROOT, recall_gap
from judgebench.stats.intervals import (
    CLUSTERED_EXACT,
    SMOOTHED_T,
    SampledIntervals,
    clopper_pearson,
    clustered_share,
    mean_difference,
    paired_difference,
)
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.text import counted, listed

PROBABILITY = "probability of a severe label"
SEVERITY = "severity of the label"
SCORE = "score, more being more severe"


def triage_curves(
    study: Study, rule: DecisionRule, truth: Mapping[str, Labels] | None = None
) -> Iterator[TriageCurve]:
    """The curves of every judge that is not a control: one for each ordinal metric, then EVERY
    where there are several such metrics.

    `truth` is each metric's truth of every answer, -1 where there is none; default: the study's.
    Answers that the judge was not asked about are left out. Those without a label, or with one
    on some of the metrics only, go to humans.
    """
    metrics = [metric for metric in study.rubric.metrics if metric.has_severe]
    truth = truth or {metric: humans.truth for metric, humans in study.humans.items()}
    # By answer: 1 where the truth is severe (on any metric), 0 where not, -1 where there is none.
    severe = {
        m.id: np.where(truth[m.id] < 0, -1, truth[m.id] >= _severe_from(m, rule)) for m in metrics
    }
    rated = {metric.id: study.humans[metric.id].ratings.rows for metric in metrics}
    fixed = {m.id: m.severities[_severe_from(m, rule)] for m in metrics} | {EVERY: 1.0}
    if len(metrics) > 1:
        on_each = np.stack([*severe.values()])
        all_known = np.where((on_each < 0).any(axis=0), -1, 0)
        severe[EVERY] = np.where((on_each == 1).any(axis=0), 1, all_known)
        rated[EVERY] = np.unique(np.concatenate([*rated.values()]))
    for judge in study.real_judges:
        asked, judged = study.asked(judge), [m for m in metrics if judge.judges(m)]
        name, signals = _signals(study, judged, judge, rule)
        if len(judged) == len(metrics) > 1:
            unit = fixed if name == SEVERITY else dict.fromkeys(fixed, 1.0)
            signals[EVERY] = np.maximum.reduce([x / unit[m] for m, x in signals.items()])
        for metric_id, signal in signals.items():
            rows = rated[metric_id]
            known = np.where(asked, severe[metric_id], -1)
            seen = (signal[rows], known[rows], study.clusters.codes[rows])
            severe_at = fixed[metric_id] if name == SEVERITY else None
            yield _curve((judge.name, metric_id, name), seen, rule, severe_at)


def _curve(
    about: tuple[str, str, str], seen: tuple[FloatArray, Labels, IntArray], rule: DecisionRule,
    severe_at: float | None,
) -> TriageCurve:  # fmt: skip
    """`about` are judge, metric and signal; `seen` is the signal, what is severe, and clusters. No
    threshold is chosen where the judge's own line, `severe_at`, is a good filter."""
    points = tuple(triage_points(*seen, rule.level))
    severe = seen[1]
    n, n_severe = int((severe >= 0).sum()), int((severe == 1).sum())
    if reason := why_no_choice(*seen):
        return TriageCurve(*about, points, n, n_severe, reason=reason)
    return TriageCurve(*about, points, n, n_severe, choose_threshold(seen, severe_at, rule))


def choose_threshold(
    seen: tuple[FloatArray, Labels, IntArray], severe_at: float | None, rule: DecisionRule
) -> Choice:
    """Return the threshold that is recommended: the judge's own line `severe_at`, where it filters
    well, else a cautious one. `seen` is the signal, what is severe, and clusters."""
    fixed = None if severe_at is None else fixed_choice(*seen, severe_at, rule.level)
    if fixed and filters_well(fixed, rule.assist):
        return fixed
    return cautious_choice(*seen, rule.assist.missed, rule.level)


def filters_well(choice: Choice, rule: AssistRule) -> bool:
    """True where a threshold is sure to send, and to miss, no more than ASSIST allows."""
    sent, missed = choice.expected_sent.high, choice.expected_missed.high
    return sent is not None and sent <= rule.sent and missed is not None and missed <= rule.missed


def _severe_from(metric: Metric, rule: DecisionRule) -> int:
    index = rule.severe_index(metric)
    assert index is not None, f"{metric.id} is nominal"
    return index


def _signals(
    study: Study, metrics: Sequence[Metric], judge: JudgeVerdicts, rule: DecisionRule
) -> tuple[str, dict[str, FloatArray]]:
    """The judge's signal and its values by metric, (answers,) each: NaN where there is no verdict.
    A probability is that of the severe labels together, where there is one on every metric."""
    score = study.scores(judge)
    if not np.isnan(score).all():
        return SCORE, {metric.id: score for metric in metrics}
    given = [(metric, study.probabilities(judge, metric)) for metric in metrics]
    probabilities = {
        m.id: p[:, _severe_from(m, rule) :].sum(axis=1) for m, p in given if p is not None
    }
    if len(probabilities) == len(metrics):
        return PROBABILITY, probabilities
    severities = {m.id: np.array([*m.severities, np.nan]) for m in metrics}  # last: -1 is no label
    return SEVERITY, {m.id: severities[m.id][study.judged(judge, m)] for m in metrics}


NO_OVERLAP = "on no item can an annotator be compared with others"
NO_TRUTH = "no item that the judge was asked about has a reference label"
NO_CONTROL = "there is no baseline to compare with"
NO_SEVERE = "no item has a severe label as its reference label"
NO_SEVERE_PAIR = "no item is severe to most of the other annotators"
NO_MILD_PAIR = "every item is severe to most of the other annotators"
_OF_GROUPS = "met means not shown to fall short; "
_PAIRS = "n counts pairs of an item and an annotator; "
_WORST_AND_BEST = "; a missing label is wrong for the lower limit and right for the upper one"
LATENT_CLASSES = "likelihood ratio of two latent classes (Dawid and Skene, 1979)"
_NOISY = 0.7  # the share of severe answers that an annotator finds, by the others' labels
_LEAST_ROOT = 1e-3  # from which its sign is more than rounding
_FROM_QUESTIONS = 50  # where no verdict failed, failures count verdicts, and not questions
_EVERY_TRICK = "all"  # as the recipe of a stress row
_BEST_OF = " with `best-of-16` under `stress: attacks:`"


NO_ANCHORS = Estimate(
    None,
    reason="the rule names `anchors`, and no answer with a known severe label has labels of both "
    "annotators and judge: give a file of them with --anchors (in Python anchors=) and have the "
    "judge label them too",
)


@dataclass(frozen=True)
class Finding:
    """A condition in each of R studies; the arrays are (R,). NaN is undefined, and unclear.

    `reason` says why it is undefined. `n` counts what it rests on. `detail` stands in the title
    after that of the kind.
    """

    key: str
    bound: float
    found: SampledIntervals
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
    bounds = rule.replace.bounds
    if counts.of_sets and rule.replace.humans.measures:  # their labels cannot be balanced
        bounds = {"humans_accuracy": -rule.replace.humans.margin, **bounds}
        bounds.pop("humans_balanced_accuracy", None)
    for key, measure in _MEASURES.items():
        if key in bounds and counts.has(key):
            yield measure(counts, rule, how_many, bounds[key])


def conditions_of(counts: StudyCounts, rule: DecisionRule) -> list[Condition]:
    """Return what REPLACE requires of the judge's labels."""
    measured = findings(counts, rule, counts.how_many[None, :])
    return [finding.condition(rule.level, counts.n_not_asked) for finding in measured]


def by_latent_classes(
    conditions: list[Condition], counts: StudyCounts, rule: DecisionRule, labels: IntArray, bar: Bar
) -> list[Condition]:
    """Return the conditions with the severe gap that two latent classes of the labels (items,
    annotators and the judge) say. Not of adjudicated labels, nor of items that stand for others."""
    bound = rule.replace.bounds.get("severe_gap")
    if bound is None or counts.by_gold or counts.is_weighted:
        return conditions
    weights: FloatArray = bar.weights.mean(axis=0)
    gap = recall_gap(labels, weights / weights.sum(), -bound)
    return [use_latent_class_gap(c, *gap, rule) for c in conditions]


def _humans(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, bound: float,
    measure: Measure = "accuracy",
) -> Finding:  # fmt: skip
    """Judge minus annotator, where the labels of other annotators stand in for the truth: of the
    margin counts what they leave of it (`attenuation_factor`)."""
    right = counts.annotator_pairs
    pairs = (counts.pairs, counts.judge_pairs, counts.failed_pairs, right)
    labels = counts.used(measure, rule.rare)
    gaps = [_worst_and_best(counts, of, how_many, rule, labels) for of in _by_bar(*pairs)]
    total, agreeing = (np.einsum("ru,ubk->rbk", how_many, x) for x in (counts.pairs, right))
    among = ratio(agreeing.sum(axis=2), total.sum(axis=2))
    if measure == "balanced_accuracy":
        among = mean_of_defined(ratio(agreeing, total))
    # As many labels of which one is right as leave that chance.
    k = np.array(1 / counts.chance) if counts.chance else (total > 0).sum(axis=2)
    left = 1.0 if counts.by_gold else np.nan_to_num(attenuation_factor(among, k), nan=1)
    margin = bound * np.broadcast_to(left, among.shape)
    return _beside_annotators(
        gaps, margin + counts.spread, margin,
        key=f"{'gold' if counts.by_gold else 'humans'}_{measure}",
        n=how_many @ counts.pairs[:, 0].sum(axis=1), method=_pairs_method(counts),
        reason=NO_OVERLAP, detail="any label that they accept is right" if counts.of_sets else "",
    )  # fmt: skip


def agreement_gap(counts: StudyCounts, rule: DecisionRule, how_many: FloatArray) -> Finding:
    """Plain agreement of judge minus annotator, within the margin of the rule, whatever other
    measures that names."""
    return _humans(counts, rule, how_many, -rule.replace.humans.margin)


def _by_bar(
    n: FloatArray, judge: FloatArray, failed: FloatArray, annotator: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Of each bar the differences, the failures and the number of pairs (U, k); of the counts
    (U, bars, k)."""
    for bar in range(n.shape[1]):
        yield judge[:, bar] - annotator[:, bar], failed[:, bar], n[:, bar]


def _distance(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, bound: float
) -> Finding:
    """Judge minus annotator in levels from the truth of the others, on average over the pairs
    where the judge gives a label (the others are failures). An error by two levels counts twice."""
    gaps = [
        _difference(counts)((judge - annotator) / counts.levels, n, how_many, rule.level)
        for n, judge, annotator in counts.distances.transpose(1, 2, 0)[..., None]
    ]
    farthest = _chosen(gaps, np.stack([gap.high for gap in gaps]).argmax(axis=0))
    value, low, high = (counts.levels * x for x in (farthest.value, farthest.low, farthest.high))
    return Finding(
        key="humans_distance", bound=bound, at_least=False,
        found=SampledIntervals(value, low, high),
        met=high <= bound, not_met=low > bound, n=how_many @ counts.distances[:, 0, 0],
        method=f"{_pairs(counts)}{SMOOTHED_T}", reason=NO_OVERLAP,
    )  # fmt: skip


def _chosen(measured: Sequence[SampledIntervals], index: IntArray) -> SampledIntervals:
    """Of several measures of the R samples, in each that of the index (R,)."""
    limits = np.stack([(m.value, m.low, m.high) for m in measured])
    return SampledIntervals(*limits[index, :, np.arange(len(index))].T)


def _beside_annotators(
    gaps: Sequence[SampledIntervals], met_from: FloatArray, fails_below: FloatArray, **about: Any
) -> Finding:
    """Of several bars (R, bars) all must be reached, and none where the condition fails; reported
    is the one that the judge is furthest from reaching."""
    low, high = (np.stack([getattr(gap, end) for gap in gaps], axis=1) for end in ("low", "high"))
    hardest = np.where(np.isnan(low), np.inf, low - met_from).argmin(axis=1)
    return Finding(
        bound=float(met_from[0, hardest[0]]), found=_chosen(gaps, hardest),
        met=np.all(low >= met_from, axis=1), not_met=np.all(high < fails_below, axis=1), **about,
    )  # fmt: skip


def _controls(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, bound: float
) -> Finding:
    """The judge must beat every control; reported is the one that decides."""
    labels, names = counts.balanced_over(rule.rare), counts.controls or ("control",)
    by_control = counts.control_items.swapaxes(0, 1)
    leads = [
        _worst_and_best(
            counts, (counts.judge_items - control, counts.failed_items, counts.items), how_many,
            rule, labels,
        )
        for control in by_control
    ]  # fmt: skip
    alike = [_is_alike(counts, rule, how_many, control) for control in by_control]
    n = how_many @ counts.items.sum(axis=1)
    leads = leads or [SampledIntervals(*np.full((3, len(n)), np.nan))]
    same: Bools = np.stack(alike or [np.zeros(len(n), dtype=np.bool_)])
    low, high = (np.stack([getattr(lead, end) for lead in leads]) for end in ("low", "high"))
    failed = same | (high < 0)
    # The rival that decides: one with the same labels, else one that is better, else the nearest.
    decisive = np.where(same, -np.inf, np.where(failed, high - 2, low))
    rival = np.where(np.isnan(decisive), np.inf, decisive).argmin(axis=0)
    name = names[rival[0]]
    role = "which labels the items the same" if same[rival[0], 0] else "the strongest baseline"
    return Finding(
        key="controls", detail=f"judge minus {name}, {role}", bound=bound,
        found=_chosen(leads, rival), met=np.all(low > bound, axis=0),
        not_met=np.any(failed, axis=0), n=n, method=_method(counts, SMOOTHED_T),
        reason=NO_TRUTH if counts.controls else NO_CONTROL,
        rival=name.split(' "')[0],  # the title says which label, the reason need not
    )  # fmt: skip


def _is_alike(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, control: FloatArray
) -> Bools:
    """True where the judge is right and wrong on the very items that a control (U, k) is, and that
    on so many that it differs on no more of all items than the margin for humans: (R,)."""
    n = counts.items.sum(axis=1)
    differs = np.minimum(np.abs(counts.judge_items - control).sum(axis=1), n)
    share = clustered_share(differs, n, how_many, rule.level)
    return np.asarray((share.value == 0) & (share.high <= rule.replace.humans.margin))


def _worst_and_best(
    counts: StudyCounts, of: tuple[FloatArray, FloatArray, FloatArray], how_many: FloatArray,
    rule: DecisionRule, labels: Bools | None = None,
) -> SampledIntervals:  # fmt: skip
    """`of` are the differences, the failures and the number of pairs. Balanced over these `labels`
    (k,); plain where there are none to balance over."""
    x, failed, n = of if labels is None else (counted[:, labels] for counted in of)
    measure = _difference(counts) if labels is None else partial(mean_difference, balanced=True)
    worst = measure(x, n, how_many, rule.level)
    if not failed.any():
        return worst
    best = measure(x + failed, n, how_many, rule.level)
    return replace(worst, high=best.high)


def _difference(counts: StudyCounts) -> Callable[..., SampledIntervals]:
    """The measure of a difference that is not balanced: items that share no question are pairs."""
    return paired_difference if counts.alone else partial(mean_difference, balanced=False)


def _severe_recall(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, bound: float
) -> Finding:
    n, found, failed = counts.severe.T
    worst = clustered_share(found, n, how_many, rule.level)
    best = clustered_share(found + failed, n, how_many, rule.level) if failed.any() else worst
    return Finding(
        key="severe_recall", bound=bound, found=replace(worst, high=best.high),
        met=worst.low >= bound, not_met=best.high < bound, n=how_many @ n,
        method=_method(counts, CLUSTERED_EXACT), reason=NO_SEVERE,
    )  # fmt: skip


def _gap(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, pairs: FloatArray, bound: float
) -> Finding:
    """Judge minus annotator on those of the `pairs` (U, bars, 4) that most of the others call the
    same, or the adjudicator. Where the others are wrong neither is right: of the margin counts the
    share that an annotator gets right."""
    parts = _by_bar(*np.moveaxis(pairs, 2, 0)[..., None])
    gaps = [_worst_and_best(counts, of, how_many, rule) for of in parts]
    right = _share_of_annotators(pairs, how_many)
    left = 1.0 if counts.by_gold else np.nan_to_num(right, nan=1)
    required = bound * np.broadcast_to(left, right.shape)
    return _beside_annotators(
        gaps, required, required, key="severe_gap", n=how_many @ pairs[:, 0, 0],
        method=_pairs_method(counts), reason=NO_SEVERE_PAIR,
    )  # fmt: skip


def _share_of_annotators(pairs: FloatArray, how_many: FloatArray) -> FloatArray:
    """The share of the `pairs` (U, bars, 4) that an annotator gets right: (R, bars)."""
    total = np.einsum("ru,ubx->rbx", how_many, pairs)
    return ratio(total[..., 3], total[..., 0])


def _false_alarms(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, bound: float
) -> Finding:
    gap = _gap(counts, rule, how_many, counts.mild_pairs, bound)
    return replace(gap, key="false_alarms", reason=NO_MILD_PAIR)


def _severe_gap(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, bound: float
) -> Finding:
    gap = _gap(counts, rule, how_many, counts.severe_pairs, bound)
    if counts.by_gold:
        return gap
    # What annotators hardly agree on fails no judge.
    by_humans = _share_of_annotators(counts.severe_pairs, how_many).min(axis=1)
    is_noisy = by_humans < _NOISY
    if is_noisy[0]:
        noisy = f"an annotator finds only {100 * by_humans[0]:.0f} % of what the others call severe"
        gap = replace(gap, missing=noisy)
    return replace(gap, not_met=gap.not_met & ~is_noisy)


def use_latent_class_gap(c: Condition, gap: float, root: float, rule: DecisionRule) -> Condition:
    """The severe gap by `recall_gap`; every other condition as it is. The interval is the one whose
    limit meets the bound where the root is critical; it fails only where the interval
    of the labels at hand fails too."""
    if c.key != "severe_gap" or abs(root) < _LEAST_ROOT:
        return c
    bound = rule.replace.bounds["severe_gap"]
    critical = CRITICAL_ROOT * float(ndtri((1 + rule.level) / 2) / ndtri(0.975))
    half = critical * (gap - bound) / root
    fails = c.state is State.NOT_MET and root <= -critical
    state = State.MET if root >= critical else State.NOT_MET if fails else State.UNCLEAR
    low, high = max(-1.0, gap - half), min(1.0, gap + half)
    found = replace(c.estimate, value=gap, low=low, high=high, method=LATENT_CLASSES)
    return replace(c, state=state, estimate=found, bound=bound, missing="")


def of_groups(groups: Mapping[str, StudyCounts], rule: DecisionRule) -> Iterator[Condition]:
    """The groups of answers, by name, on which the judge falls short beside annotators on the same
    answers: its value lies below the margin, and the whole interval, corrected for the number of
    groups, below 0. Without such a group the one where the interval is lowest."""
    bound = rule.replace.bounds.get("groups")
    if bound is None or not groups:
        return
    level = 1 - (1 - rule.level) / len(groups)
    strict, title = rule.model_copy(update={"level": level}), KINDS["groups"].title
    measured = [
        replace(
            agreement_gap(counts, strict, counts.how_many[None, :]).condition(level, 0),
            key="groups", title=title.format(rival=name), state=State.MET, bound=bound,
            missing="", rival=name,
        )
        for name, counts in groups.items()
    ]  # fmt: skip
    measured = [
        replace(c, estimate=replace(c.estimate, method=_OF_GROUPS + c.estimate.method))
        for c in measured
    ]
    defined = [(c.estimate.high, c) for c in measured if c.estimate.high is not None]
    lowest_first = [c for _, c in sorted(defined, key=lambda pair: pair[0])]
    short = [
        replace(c, state=State.NOT_MET) for c in lowest_first
        if (c.estimate.value or 0.0) < bound and (c.estimate.high or 0.0) < 0
    ]  # fmt: skip
    yield from short or lowest_first[:1]


def _failures(
    counts: StudyCounts, rule: DecisionRule, how_many: FloatArray, bound: float
) -> Finding:
    n, failed = counts.asked.T
    share = clustered_share(failed, n, how_many, rule.level, one_sided=True)
    if not failed.any() and 0 < bound < 1:
        # Where questions are many, that one of them lacks all its labels would have shown.
        of_items = 1 - (1 - rule.level) ** ratio(1, how_many @ n)
        many = how_many @ (n > 0) >= _FROM_QUESTIONS
        share = replace(share, high=np.where(many, of_items, share.high))
    return Finding(
        key="failures", bound=bound, at_least=False, found=share,
        met=share.high <= bound, not_met=share.low > bound, n=how_many @ n, method=CLUSTERED_EXACT,
        reason="the judge was asked about no labelled item",
    )  # fmt: skip


_MEASURES: Mapping[str, Callable[[StudyCounts, DecisionRule, FloatArray, float], Finding]] = {
    "humans_accuracy": _humans,
    "humans_balanced_accuracy": partial(_humans, measure="balanced_accuracy"),
    "humans_distance": _distance,
    "controls": _controls,
    "severe_recall": _severe_recall,
    "severe_gap": _severe_gap,
    "false_alarms": _false_alarms,
    "failures": _failures,
}


def _method(counts: StudyCounts, method: str) -> str:
    return method + (_WORST_AND_BEST if counts.asked[:, 1].any() else "")


def _pairs_method(counts: StudyCounts) -> str:
    return f"{_pairs(counts)}{_method(counts, SMOOTHED_T)}"


def _pairs(counts: StudyCounts) -> str:
    return _PAIRS + ("annotators weighted as the bar says; " if counts.is_pooled else "")


def assist_conditions(
    curves: Sequence[TriageCurve], judge: str, metric: str, rule: DecisionRule, why_none: str = ""
) -> Conditions:
    """The shares of new answers that the recommended threshold is expected to send and to miss.

    Empty where the judge has no curve on this metric; nothing is known where there is a reason
    `why_none`.
    """
    required, about = rule.assist, (judge, metric)
    curve = next((c for c in curves if (c.judge, c.metric) == about), None)
    if curve is None:
        return ()
    if curve.choice is None or why_none:
        none = Estimate(None, n=curve.n, reason=why_none or curve.reason)
        title = "no threshold can be recommended"
        return (Condition("missed", title, State.UNCLEAR, none, required.missed, False),)
    # The recommended threshold errs to the safe side: that it sends too much shows no more than
    # that severe answers are few, as long as another threshold may do.
    can_fail = not within_reach(curve, required)
    at = AT_SEVERE if curve.choice.fixed else ""
    sent = _at_most("sent", curve.choice.expected_sent, required.sent, can_fail, at)
    if curve.choice.sends_all:
        return (replace(sent, missing=NO_FILTER),)
    return sent, _at_most("missed", curve.choice.expected_missed, required.missed, can_fail, at)


def _at_most(
    key: str, estimate: Estimate, bound: float, can_fail: bool = True, detail: str = ""
) -> Condition:
    """The condition on a number that must lie below `bound`; unclear without an interval."""
    state = State.UNCLEAR
    if estimate.high is not None and estimate.high <= bound:
        state = State.MET
    elif can_fail and estimate.low is not None and estimate.low > bound:
        state = State.NOT_MET
    missing = KINDS[key].missing if state is State.UNCLEAR else ""
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
    """What the rows of a stress test measured of this judge and metric; unclear is what the rule
    names and no stress test measured. A rule that leaves them out does not ask for one."""
    bounds = rule.replace.bounds
    measured = list(_stressed(stress or Results(), judge, metric, bounds))
    yield from measured
    named = rule.replace.model_fields_set - {condition.key for condition in measured}
    unmeasured = [key for key in STRESSED if key in bounds and key in named]
    for key in unmeasured:
        none, is_least = Estimate(None, reason=_not_stressed(unmeasured)), key == "robustness"
        title, rival = title_of(key), "in a stress test"
        yield Condition(key, title, State.UNCLEAR, none, bounds[key], is_least, rival=rival)


def _not_stressed(keys: Sequence[str]) -> str:
    """Say what the rule names and no stress test measured, and what to do."""
    names, how = listed([f"`{key}`" for key in keys]), _BEST_OF if "attack_gain" in keys else ""
    return (
        f"no stress test measured {names}, which the rule names: run "
        f"`judgebench stress bench.yaml`{how}"
    )


def _stressed(
    stress: Results, judge: str, metric: str, bounds: Mapping[str, float]
) -> Iterator[Condition]:
    about = {"judge": judge, "metric": metric}
    planted = stress.values("recipe", "planted")  # each trick counts once: as followed or not
    probes = [
        (row["recipe"], row.estimate)
        for row in stress.select("invariance", "robustness", **about)
        if row.estimate.low is not None and row["recipe"] not in planted
    ]
    if probes and "robustness" in bounds:
        yield _robustness(probes, bounds["robustness"])
    if "planted" in bounds:
        tricks = stress.select("planted", recipe=_EVERY_TRICK, **about)
        yield from _planted({row.statistic: row.estimate for row in tricks}, bounds["planted"])
    gains = stress.select("best_of", "attack_gain", **about)
    rises = [row for row in gains if row.estimate.value is not None]
    if rises and "attack_gain" in bounds:
        yield _attack_gain(rises, bounds["attack_gain"])


def _planted(shares: Mapping[str, Estimate], bound: float) -> Iterator[Condition]:
    """The condition on planted verdicts: met only if it also is where every planted answer that
    ended without a label counts as followed. None where the judge had said all of it before."""
    followed, unread = shares.get("success", Estimate(None)), shares.get("no_label", Estimate(None))
    if followed.value is None and not followed.n_missing:
        return
    why, n_lost = "", round((unread.value or 0.0) * unread.n)
    if n_lost:
        why = f"{n_lost} of {unread.n} planted answers ended without a label"
        n_followed = round((followed.value or 0.0) * followed.n)
        worst = clopper_pearson(n_followed + n_lost, unread.n, unread.level).high
        followed = replace(followed, high=worst if followed.n else None)
    if followed.value is None:
        followed = replace(followed, reason=why or followed.reason)
    condition = _at_most("planted", followed, bound)
    is_open = condition.state is State.UNCLEAR
    yield replace(condition, missing=why or condition.missing) if is_open else condition


def anchor_conditions(
    anchors: Results, judge: str, metric: str, rule: DecisionRule
) -> Iterator[Condition]:
    """The share of severe anchors that annotators and judge both miss, where the rule names it;
    unclear without anchors."""
    bound = rule.replace.anchors
    if bound is None:
        return
    rows = anchors.select("anchors", BOTH_MISS, judge=judge, metric=metric)
    yield _at_most("anchors", rows[0].estimate if rows else NO_ANCHORS, bound)


def _attack_gain(rows: Sequence[Row], bound: float) -> Condition:
    """The condition on the largest rise of all N."""
    row = max(rows, key=lambda row: (row.estimate.value, row.keys["attempts"]))
    good = f"called good: {row['label']}"
    detail = f"best of {row.keys['attempts']}, {good}"
    return replace(_at_most("attack_gain", row.estimate, bound, detail=detail), rival=good)


def _robustness(probes: Sequence[tuple[str, Estimate]], least: float) -> Condition:
    """Met on the mean over the probes, but not where one probe alone fails it.

    The mean of lower limits is no more than the lower limit of the mean, whatever the probes have
    in common.
    """
    mean = _mean([estimate for _, estimate in probes])
    key = "robustness"
    if failed := [pair for pair in probes if _fails(pair[1], least, among=len(probes))]:
        probe, worst = min(failed, key=lambda pair: pair[1].value or 0.0)
        title = title_of(key, f"under {probe}")
        return Condition(key, title, State.NOT_MET, worst, least, True, rival=f"under {probe}")
    state = State.MET if (mean.low or 0.0) >= least else State.UNCLEAR
    mean_over = f"mean over {counted(len(probes), 'probe')}"
    missing = "" if state is State.MET else KINDS[key].missing
    title = title_of(key, mean_over)
    return Condition(key, title, state, mean, least, True, missing, rival=mean_over)


def _fails(robustness: Estimate, least: float, among: int) -> bool:
    """True where a probe shows less than required, also as one of many (Bonferroni): otherwise,
    among forty probes of three pairs each, one would seem to fail with a steady judge."""
    value, n = robustness.value or 0.0, robustness.n
    corrected = clopper_pearson(round(value * n), n, 1 - (1 - robustness.level) / among)
    return max(robustness.high or 0.0, corrected.high or 0.0) < least


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    limits = np.array([(e.value, e.low, e.high) for e in estimates], dtype=np.float64)
    value, low, high = limits.mean(axis=0).tolist()
    return replace(
        estimates[0], value=value, low=low, high=high, n=sum(e.n for e in estimates),
        n_missing=sum(e.n_missing for e in estimates), reason="",
        method="mean over the probes of value and of both limits",
    )  # fmt: skip
