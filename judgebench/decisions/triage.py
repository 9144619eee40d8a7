"""Triage: each judge as a first-pass filter.

A judge's signal is held against a threshold; an answer at or above it goes to humans. The signal is
the finest that it has: the score that it follows from, the probability of a severe label, or the
label. Severe on any metric (EVERY) has the largest signal over the ordinal metrics: of
probabilities, the chance of the likeliest severe label; of labels, the severity as a share of the
metric's least severe label that counts as severe, so that 1 means severe somewhere and 0.5 half the
way to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from judgebench.decisions.result import EVERY, TriageCurve
from judgebench.decisions.rule import AssistRule, DecisionRule
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, IntArray
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
    metrics = [metric for metric in study.rubric.metrics if metric.kind == "ordinal"]
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
