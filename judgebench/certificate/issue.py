"""A certificate of a judge, from the decision and the study that it rests on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

import judgebench
from judgebench.certificate.labels import (
    ISSUE_LEVEL,
    PROBABILITY,
    SEVERITY,
    JudgedLabels,
    agreement,
    called_severe,
    flags,
    judge_of,
    judged_labels,
)
from judgebench.certificate.record import (
    CERTIFIED,
    FORMAT,
    Certificate,
    CertifiedCondition,
    CertifiedJudge,
    CertifiedMetric,
    LabelledAnswers,
    LabelTest,
    ReferenceLabels,
)
from judgebench.errors import Problem, SetupError
from judgebench.results.rows import Row
from judgebench.results.shown import Shown
from judgebench.rubric import Metric
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.answers import likeness
from judgebench.studies.study import JudgeVerdicts, Study

_ASSIST_SIGNALS = (SEVERITY, PROBABILITY)  # of others, such as a jury's votes, nothing is tested
_CAUGHT = {"REPLACE": "severe_gap", "ASSIST": "missed"}  # the condition on severe answers


def certify(study: Study, name: str, decisions: Shown, rule: Mapping[str, Any]) -> Certificate:
    """The certificate of the judge of that name; of the only one, where the name is empty.

    Raises SetupError for another name, and where no metric has the outcome REPLACE or ASSIST.
    """
    judge = judge_of(study, name)
    if name not in ("", judge.name):
        message = "is not a judge of the study"
        raise SetupError(Problem(message, "", None, "judge", name, judge.name))
    judged = [metric for metric in study.rubric.metrics if judge.judges(metric)]
    metrics = {m.id: _decision(judge, m, decisions, rule) for m in judged}
    n_certified = sum(metric.outcome in CERTIFIED for metric in metrics.values())
    if not n_certified:
        outcomes = "; ".join(f"{m.title}: {m.outcome}. {m.reason}" for m in metrics.values())
        message = "nothing to certify: no metric is decided REPLACE or ASSIST"
        raise SetupError(Problem(message, field=judge.name, found=outcomes))
    samples = {metric.id: judged_labels(study, judge, metric, study.rubric) for metric in judged}
    for metric in judged:
        if metrics[metric.id].outcome in CERTIFIED:
            limits = (ISSUE_LEVEL / n_certified, rule["certificate"]["severe"])
            test = _label_test(study, judge, metric, metrics[metric.id], samples[metric.id], limits)
            metrics[metric.id] = metrics[metric.id].model_copy(update={"test": test})
    rows = sorted({row for data in samples.values() for row in data.rows.tolist()})
    now = datetime.now(UTC).replace(microsecond=0)
    days = rule["certificate"]["days"]
    answers = [study.answers[row] for row in rows]
    verdicts = {a.item_id: judge.verdicts[a.item_id] for a in answers}
    hashes = {a.item_id: likeness(a) for a in answers}
    return Certificate(
        format=FORMAT,
        study=study.name,
        issued=now,
        until=None if days is None else now + timedelta(days=days),
        judgebench=judgebench.__version__,
        judge=CertifiedJudge(
            name=judge.name,
            signature=judge.signature,
            models=tuple(sorted({v.model for v in verdicts.values() if v.model})),
            settings=_as_json(judge.about or {}),
        ),
        metrics=metrics,
        labels=ReferenceLabels(
            annotators=len(study.makers),
            labels=study.n_labels,
            rule=study.config.rule,
            blind=study.config.blind,
        ),
        population=LabelledAnswers(
            items=len(rows),
            questions=len({*study.clusters.codes[rows].tolist()}),
            systems=dict(Counter(a.system for a in answers if a.system)),
            reference={m.id: _reference_counts(study, m, samples[m.id]) for m in judged},
        ),
        rule=_as_json(rule),
        rubric=study.rubric,
        texts={item: f"{number:016x}" for item, number in hashes.items() if number},
        verdicts={
            item: {m.id: verdict.labels.get(m.id, "") for m in judged}
            for item, verdict in verdicts.items()
        },
    ).sealed()


def _decision(
    judge: JudgeVerdicts, metric: Metric, decisions: Shown, rule: Mapping[str, Any]
) -> CertifiedMetric:
    """The decision on a metric with its conditions."""
    keys = {"judge": judge.name, "metric": metric.id}
    (decision,) = decisions.results.select("decision", **keys)
    filters = [*decisions.results.select("triage", "expected_sent", **keys)]
    severe_from = rule["severe_from"].get(metric.id, rule["severe_from"].get(metric.title))
    return CertifiedMetric(
        title=metric.title,
        outcome=decision["outcome"],
        reason=decision.estimate.reason,
        conditions=tuple(
            _condition(row)
            for row in decisions.results.select("condition", **keys)
            if not row["who"]
        ),
        severe_from=(severe_from or metric.label_texts[-1]) if metric.has_severe else "",
        signal=filters[0]["signal"] if filters else "",
        threshold=float(filters[0].keys["threshold"]) if filters else None,
    )


def _condition(row: Row) -> CertifiedCondition:
    e = row.estimate
    value, low, high = (None if x is None else round(x, 6) for x in (e.value, e.low, e.high))
    return CertifiedCondition(
        outcome=row["outcome"],
        key=row.statistic,
        title=row["title"],
        state=row["state"],
        value=value,
        low=low,
        high=high,
        n=e.n,
        bound=round(float(row.keys["bound"]), 6),
        at_least=row["at_least"] == "true",
    )


def _label_test(
    study: Study, judge: JudgeVerdicts, metric: Metric, about: CertifiedMetric,
    data: JudgedLabels, limits: tuple[float, float],
) -> LabelTest | None:  # fmt: skip
    """The test of new labels: of severe answers where the decision has a condition on them, else
    of agreement; None where neither can be tested. `limits` are its level, and the least share of
    severe answers that a judge in the place of annotators must find."""
    conditions = {c.key: c for c in about.conditions if c.value is not None}
    caught = conditions.get(_CAUGHT[about.outcome]) if about.severe_from else None
    if about.outcome == "ASSIST" and about.signal not in _ASSIST_SIGNALS:
        return None
    if caught and (test := _severe_test(study, judge, metric, about, data, caught, limits)):
        return test
    gap = conditions.get("humans_accuracy", conditions.get("gold_accuracy"))
    if about.outcome == "REPLACE" and gap:
        return _agreement_test(data, gap.bound, limits[0])
    return None


def _severe_test(
    study: Study, judge: JudgeVerdicts, metric: Metric, about: CertifiedMetric,
    data: JudgedLabels, caught: CertifiedCondition, limits: tuple[float, float],
) -> LabelTest | None:  # fmt: skip
    """The limit says how much less of the reference labels may be found; the bound is as much
    less of what one annotator calls severe, a part of which is a false alarm and stays."""
    severe_from = metric.index(about.severe_from)
    is_flagged = flags(study, judge, metric, about, data).astype(np.float64)
    annotators = called_severe(data, severe_from)
    truth = study.humans[metric.id].truth[data.rows]
    is_severe = truth[truth >= 0] >= severe_from
    if annotators.sum() == 0 or is_severe.all() or not is_severe.any():
        return None
    value = float((annotators * is_flagged).sum() / annotators.sum())
    level, required = limits
    found = float(is_flagged[truth >= 0][is_severe].mean())
    if about.outcome == "ASSIST":
        found, required = 1 - (caught.value or 0.0), 1 - caught.bound
    severe_share, alarms = float(is_severe.mean()), _annotator_alarms(study, metric, severe_from)
    test = LabelTest(
        kind="severe",
        value=round(value, 6),
        bound=_bound(value, value * required / found, annotators.sum(), level) if found else 1.0,
        severe_share=round(severe_share, 6),
        called_severe=round(float(annotators.mean()), 6),
        annotator_alarms=round(alarms, 6),
        judge_alarms=round(float(is_flagged[truth >= 0][~is_severe].mean()), 6),
    )
    is_told_apart = test.called_severe > (1 - severe_share) * alarms + 0.5 * severe_share
    return test if is_told_apart and test.bound < test.value else None


def _annotator_alarms(study: Study, metric: Metric, severe_from: int) -> float:
    """How often an annotator calls severe what the others agree is not; 0 where nobody else
    labelled."""
    humans = study.humans[metric.id]
    n_alarms = n_labels = 0
    for annotator, labels in zip(humans.makers, humans.made.values.T, strict=True):
        others = humans.truth_without(annotator, ties=False)
        is_free = (labels >= 0) & (others >= 0) & (others < severe_from)
        n_alarms += int((labels[is_free] >= severe_from).sum())
        n_labels += int(is_free.sum())
    return n_alarms / n_labels if n_labels else 0.0


def _agreement_test(data: JudgedLabels, margin: float, level: float) -> LabelTest | None:
    """The bound is the agreement among annotators and the margin of the condition."""
    n_labels = (data.labels >= 0).sum(axis=1)
    several = data.at(n_labels > 1)
    if not len(several.rows):
        return None
    same = [
        agreement(replace(several, labels=others, verdicts=column))[column >= 0]
        for i, column in enumerate(several.labels.T)
        if (others := np.delete(several.labels, i, axis=1)).size
    ]
    judge = data.by_question(agreement(data))
    value, bound = float(judge.mean()), float(np.concatenate(same).mean()) + margin
    if value <= bound:
        return None
    return LabelTest(
        kind="agreement", value=round(value, 6), bound=_bound(value, bound, len(judge), level)
    )


def _bound(value: float, bound: float, n: float, level: float) -> float:
    """The bound; less, where the share was measured on so few answers that it may lie below it."""
    n_items = math.floor(n)
    n_short = min(n_items, math.ceil(n_items * (1 - value)))
    low = clopper_pearson(n_items - n_short, n_items, 1 - 2 * level).low
    return round(min(bound, low or 0.0), 6)


def _reference_counts(study: Study, metric: Metric, data: JudgedLabels) -> dict[str, int]:
    truth = study.humans[metric.id].truth[data.rows]
    return {text: int((truth == i).sum()) for i, text in enumerate(metric.label_texts)}


def _as_json(value: Any) -> Any:
    """The value as JSON holds it."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
