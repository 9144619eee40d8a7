"""Triage: each judge as a first-pass filter.

A signal is held against a threshold; an answer at or above it goes to humans. Severe on
any metric (EVERY) has the largest signal over the ordinal metrics: of probabilities, the chance of
the likeliest severe label; of labels, the severity as a share of the metric's least severe label
that counts as severe, so that 1 means severe somewhere and 0.5 half the way to it. A judge that
follows from a score has that score as its first signal: it is finer than what was fitted to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from judgebench.decisions.result import EVERY, TriageCurve
from judgebench.decisions.rule import AssistRule, DecisionRule
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, IntArray, ratio, value_counts
from judgebench.stats.thresholds import (
    Choice,
    cautious_choice,
    fixed_choice,
    triage_points,
    why_no_choice,
)
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.truth import Labels

PROBABILITY = "probability of a severe label"
SEVERITY = "severity of the label"
VOTES = "votes for a severe label"
SCORE = "score, more being more severe"
DISAGREEMENT = "disagreement of the members"

Signals = Mapping[str, FloatArray]  # (answers,) each, NaN where there is no verdict


def triage_curves(
    study: Study, rule: DecisionRule, truth: Callable[[str], Labels] | None = None
) -> Iterator[TriageCurve]:
    """The curves of every judge that is not a control: one for each signal and ordinal metric,
    then EVERY where there are several such metrics.

    `truth` gives a metric's truth of every answer, -1 where there is none; default: the study's.
    Answers that the judge was not asked about are left out. Those without a label, or with one
    on some of the metrics only, go to humans.
    """
    metrics = [metric for metric in study.rubric.metrics if metric.has_severe]
    truth_of = truth or (lambda metric: study.humans[metric].truth)
    # By answer: 1 where the truth is severe (on any metric), 0 where not, -1 where there is none.
    severe = {
        m.id: np.where(truth_of(m.id) < 0, -1, truth_of(m.id) >= _severe_from(m, rule))
        for m in metrics
    }
    rated = {metric.id: study.humans[metric.id].ratings.rows for metric in metrics}
    fixed = {m.id: m.severities[_severe_from(m, rule)] for m in metrics} | {EVERY: 1.0}
    if len(metrics) > 1:
        known = np.stack([severe[metric.id] for metric in metrics])
        all_known = np.where((known < 0).any(axis=0), -1, 0)
        severe[EVERY] = np.where((known == 1).any(axis=0), 1, all_known)
        rated[EVERY] = np.unique(np.concatenate(list(rated.values())))
    for judge in study.real_judges:
        judged, asked = [m for m in metrics if judge.judges(m)], study.asked(judge)
        if not judged:
            continue
        for metric_id, signals in _signals(study, judged, judge, rule).items():
            if metric_id == EVERY and len(judged) < len(metrics):
                continue
            rows = rated[metric_id]
            for name, signal in signals.items():
                known = np.where(asked, severe[metric_id], -1)
                seen = (signal[rows], known[rows], study.clusters.codes[rows])
                severe_at = fixed[metric_id] if name == SEVERITY else None
                about = judge.name, metric_id, name
                yield _curve(about, seen, rule, severe_at)


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
    choice = None if severe_at is None else fixed_choice(*seen, severe_at, rule.level)
    if choice is None or not filters_well(choice, rule.assist):
        choice = cautious_choice(*seen, rule.assist.missed, rule.level)
    return TriageCurve(*about, points, n, n_severe, choice)


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
) -> dict[str, Signals]:
    """A judge's signals by metric, and last the largest of each over several metrics (EVERY)."""
    found: dict[str, Signals] = _probabilities(study, metrics, judge, rule)
    if not found:
        for m in metrics:
            severities = np.array([*m.severities, np.nan])  # the last: -1 is no label
            found[m.id] = {SEVERITY: severities[study.judged(judge, m)]}
    score = study.scores(judge)
    if not np.isnan(score).all():
        found = {metric: {SCORE: score, **own} for metric, own in found.items()}
    if members := _members(judge, study.judges):
        for metric in metrics:
            own = _signals_of_jury(study, metric, judge, members, rule)
            found[metric.id] = {**found[metric.id], **own}
    if len(metrics) > 1:
        severe_from = {m.id: m.severities[_severe_from(m, rule)] for m in metrics}
        found[EVERY] = {
            name: np.maximum.reduce(
                [
                    found[m.id][name] / (severe_from[m.id] if name == SEVERITY else 1)
                    for m in metrics
                ]
            )
            for name in found[metrics[0].id]
        }
    return found


def _probabilities(
    study: Study, metrics: Sequence[Metric], judge: JudgeVerdicts, rule: DecisionRule
) -> dict[str, Signals]:
    """The summed probability of the severe labels; empty unless there are some on every metric."""
    known = [(metric, study.probabilities(judge, metric)) for metric in metrics]
    found: dict[str, Signals] = {
        metric.id: {PROBABILITY: p[:, _severe_from(metric, rule) :].sum(axis=1)}
        for metric, p in known
        if p is not None
    }
    return found if len(found) == len(metrics) else {}


def _members(judge: JudgeVerdicts, judges: Sequence[JudgeVerdicts]) -> list[JudgeVerdicts]:
    """The members of a jury; empty for other judges, and where a member's verdicts are not here."""
    named = (judge.about or {}).get("members", {}) if judge.kind == "jury" else {}
    here = {other.name: other for other in judges}
    return [here[name] for name in named] if set(named) <= set(here) else []


def _signals_of_jury(
    study: Study, metric: Metric, jury: JudgeVerdicts, members: Sequence[JudgeVerdicts],
    rule: DecisionRule,
) -> Signals:  # fmt: skip
    """The share of members' labels that are severe, and 1 - the share of the commonest label.

    Whatever the jury itself calls severe has disagreement 1, so that it is sent in any case.
    """
    votes: IntArray = np.stack([study.judged(member, metric) for member in members], axis=1)
    counts = value_counts(votes, len(metric.labels))
    total = counts.sum(axis=1)
    verdict, severe = study.judged(jury, metric), _severe_from(metric, rule)
    for_severe = ratio(counts[:, severe:].sum(axis=1), total)
    apart = np.where(verdict >= severe, 1.0, 1 - ratio(counts.max(axis=1), total))
    none = verdict < 0
    return {VOTES: np.where(none, np.nan, for_severe), DISAGREEMENT: np.where(none, np.nan, apart)}
