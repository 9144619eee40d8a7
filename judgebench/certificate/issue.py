"""A certificate of a judge, from the decision and the study that it rests on; and what labels say
of a judge, in the same way when the certificate is issued and later."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from judgebench.certificate.record import (
    ALONE,
    CERTIFIED,
    FORMAT,
    Certificate,
    CertifiedJudge,
    CertifiedMetric,
    LabelledAnswers,
    LabelTest,
)
from judgebench.errors import Problem, SetupError
from judgebench.results.shown import Shown
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.answers import likeness
from judgebench.studies.confidence import confidence, decided_alone
from judgebench.studies.reference_labels import Mask
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.version import VERSION

LEVEL = 0.02  # at which new labels revoke a judge that stayed as it was, all metrics together
ISSUE_LEVEL = 0.005  # at which the share at issue looked better than it is, all together
SEVERITY, PROBABILITY = "severity of the label", "probability of a severe label"  # signals
_CAUGHT = {"REPLACE": "severe_gap", "ASSIST": "missed"}  # the condition on severe answers


@dataclass(frozen=True)
class JudgedLabels:
    """Labelled answers of one metric that the judge judged, in their order.

    `rows` (n,) are those of the study, `labels` (n, annotators) and `verdicts` (n,) places in the
    certified metric, -1 without a label.
    """

    study: Study
    judge: JudgeVerdicts
    metric: Metric  # as it is certified
    here: Metric  # as the study names it
    rows: IntArray
    labels: IntArray
    verdicts: IntArray
    clusters: Clusters  # of these answers

    def at(self, mask: Mask) -> JudgedLabels:
        """Only the answers of the mask (n,)."""
        return replace(
            self,
            rows=self.rows[mask],
            labels=self.labels[mask],
            verdicts=self.verdicts[mask],
            clusters=Clusters.of(self.clusters.codes[mask].tolist()),
        )

    def by_question(self, values: FloatArray) -> FloatArray:
        """The mean of the values (n,) for each question, in the order in which they come."""
        sums = self.clusters.sums(values, np.ones(len(values)))
        return np.asarray(sums[:, 0] / sums[:, 1])

    @property
    def agreement(self) -> FloatArray:
        """The share of an answer's annotators whose label the judge gives (n,)."""
        is_same = (self.labels == self.verdicts[:, None]) & (self.labels >= 0)
        return np.asarray(is_same.sum(axis=1) / (self.labels >= 0).sum(axis=1))

    def is_alone(self, about: CertifiedMetric) -> Mask:
        """True for the answers of the study that the judge decides alone (items,)."""
        return decides_alone(self.study, self.judge, self.here, self.metric, about)

    def called_severe(self, about: CertifiedMetric) -> FloatArray:
        """The share of an answer's annotators who call it severe (n,)."""
        is_severe = self.labels >= self.metric.index(about.severe_from)
        return np.asarray(is_severe.sum(axis=1) / (self.labels >= 0).sum(axis=1))

    def flagged(self, about: CertifiedMetric) -> FloatArray:
        """1 where the judge calls an answer severe or, as a filter, sends it to humans, or does not
        decide it alone (n,), else 0; what has no label is sent."""
        if about.outcome == ALONE:
            return np.asarray(1.0 - self.is_alone(about)[self.rows])
        severe_from = self.metric.index(about.severe_from)
        if about.outcome == "REPLACE" or about.threshold is None:
            return (self.verdicts >= severe_from).astype(np.float64)
        p = self.study.probabilities(self.judge, self.here)
        signal = np.full(len(self.rows), np.inf)
        if about.signal == SEVERITY:
            signal = np.array([*self.metric.severities, np.inf])[self.verdicts]
        elif p is not None:
            texts = self.here.label_texts
            is_severe = [self.metric.index(text) >= severe_from for text in texts]
            signal = p[self.rows][:, is_severe].sum(axis=1)
        return np.asarray(~(signal < about.threshold), dtype=np.float64)


def decides_alone(
    study: Study, judge: JudgeVerdicts, here: Metric, metric: Metric, about: CertifiedMetric
) -> Mask:
    """Return True for the answers (items,) that the judge decides alone by its certificate. `here`
    is the study's metric, and `metric` the certified one."""
    sure = confidence(study, judge, here)
    if about.alone_from is None or sure.signal != about.alone_signal:
        return np.zeros(len(study.answers), dtype=np.bool_)
    labels = np.array([*map(metric.index, here.label_texts), -1])[study.judged(judge, here)]
    severe_from = metric.index(about.severe_from) if about.severe_from else None
    return decided_alone(labels, sure.values, severe_from, about.alone_from)


def judge_of(study: Study, name: str) -> JudgeVerdicts:
    """Return the judge of that name; the only judge, where the study has one. Raises SetupError."""
    judges = {judge.name: judge for judge in study.real_judges}
    if name in judges:
        return judges[name]
    if not judges:
        raise SetupError(Problem("give the judge's verdicts too: the tables hold labels alone"))
    if len(judges) != 1:
        message = "is not a judge of the study" if name else "name one of the judges: JUDGE=FILE"
        raise SetupError(Problem(message, "", None, "judge", name, ", ".join(judges)))
    return next(iter(judges.values()))


def judged_labels(study: Study, judge: JudgeVerdicts, metric: Metric) -> JudgedLabels:
    """Return the labelled answers of a certified metric. Raises SetupError where the study lacks
    the metric, or has other labels."""
    here = study.rubric.find(metric.id) or study.rubric.find(metric.title)
    texts = here.label_texts if here else ()
    if here is None or not {*texts} <= {*metric.label_texts}:
        message = "the labels are not those of the certificate"
        labels, allowed = ", ".join(texts) or "no such metric", ", ".join(metric.label_texts)
        raise SetupError(Problem(message, "", None, metric.title, labels, allowed))
    places = np.array([*map(metric.index, texts), -1])  # the last: no label
    made = study.humans[here.id].made
    is_judged = study.asked(judge, here)[made.rows] & (made.values >= 0).any(axis=1)
    rows = made.rows[is_judged]
    return JudgedLabels(
        study, judge, metric, here, rows, places[made.values[is_judged]],
        places[study.judged(judge, here)[rows]], Clusters.of(study.clusters.codes[rows].tolist()),
    )  # fmt: skip


# --- the certificate ------------------------------------------------------------------------------


def certify(study: Study, name: str, decisions: Shown, rule: Mapping[str, Any]) -> Certificate:
    """Return the certificate of the judge of that name; of the only one, where the name is empty.

    Raises SetupError for another name, and where no metric has the outcome REPLACE or ASSIST.
    """
    judge = judge_of(study, name)
    if name not in ("", judge.name):
        message = "is not a judge of the study"
        raise SetupError(Problem(message, "", None, "judge", name, judge.name))
    samples = [judged_labels(study, judge, m) for m in study.rubric.metrics if judge.judges(m)]
    metrics = {data.metric.id: _decision(data, decisions, rule) for data in samples}
    certified = [key for key, metric in metrics.items() if metric.roles]
    if not certified:
        outcomes = "; ".join(f"{m.title}: {m.outcome}. {m.reason}" for m in metrics.values())
        message = "nothing to certify: no metric is decided REPLACE, ASSIST, or in part alone"
        raise SetupError(Problem(message, field=judge.name, found=outcomes))
    n_tests = sum(1 if metrics[key].alone_from is None else 3 for key in certified)
    limits = (ISSUE_LEVEL / n_tests, rule["certificate"]["severe"])
    alone = {data.metric.id: _alone_items(data, metrics[data.metric.id]) for data in samples}
    for data in samples:
        about = metrics[data.metric.id]
        if about.roles:
            tests = {
                "test": _label_test(data, about, limits),
                "alone_tests": _alone_tests(data, about, rule["replace"], limits[0]),
            }
            metrics[data.metric.id] = about.model_copy(update=tests)
    rows = sorted({row for data in samples for row in data.rows.tolist()})
    answers = [study.answers[row] for row in rows]
    verdicts = {a.item_id: judge.verdicts[a.item_id] for a in answers}
    hashes = {a.item_id: likeness(a) for a in answers}
    now, days = datetime.now(UTC).replace(microsecond=0), rule["certificate"]["days"]
    return Certificate(
        format=FORMAT,
        study=study.name,
        issued=now,
        until=None if days is None else now + timedelta(days=days),
        judgebench=VERSION,
        judge=CertifiedJudge(
            name=judge.name,
            signature=judge.signature,
            models=tuple(sorted({v.model for v in verdicts.values() if v.model})),
            settings=as_json(judge.about or {}),
        ),
        metrics=metrics,
        labelled=LabelledAnswers(
            items=len(rows),
            questions=len({*study.clusters.codes[rows].tolist()}),
            systems=dict(Counter(a.system for a in answers if a.system)),
            annotators=len(study.makers),
            labels=study.n_labels,
            rule=study.config.rule,
            blind=study.config.blind,
        ),
        rule=as_json(rule),
        rubric=study.rubric,
        texts={item: f"{number:016x}" for item, number in hashes.items() if number},
        verdicts={
            item: {key: verdict.labels.get(key, "") for key in metrics}
            for item, verdict in verdicts.items()
        },
        alone={key: items for key, items in alone.items() if items},
    ).sealed()


def as_json(value: Mapping[str, Any]) -> Any:
    """Return the value as JSON holds it."""
    return json.loads(json.dumps(value, default=str))


def _decision(data: JudgedLabels, decisions: Shown, rule: Mapping[str, Any]) -> CertifiedMetric:
    """The decision on a metric with its conditions."""
    metric = data.metric
    keys = {"judge": data.judge.name, "metric": metric.id}
    (decision,) = decisions.results.select("decision", **keys)
    filters = decisions.results.select("triage", "expected_sent", **keys)
    shares = decisions.results.select("alone", "share", **keys)
    alone = [row for row in shares if row.estimate.value is not None]
    conditions = decisions.results.select("condition", **keys, who="")
    severe_from = rule["severe_from"].get(metric.id, rule["severe_from"].get(metric.title))
    return CertifiedMetric(
        title=metric.title,
        outcome=decision["outcome"],
        reason=decision.estimate.reason,
        conditions=tuple(row.plain() for row in conditions),
        severe_from=(severe_from or metric.label_texts[-1]) if metric.has_severe else "",
        signal=filters[0]["signal"] if filters else "",
        threshold=float(filters[0].keys["threshold"]) if filters else None,
        alone_signal=alone[0]["signal"] if alone else "",
        alone_from=float(alone[0].keys["threshold"]) if alone else None,
    )


# --- the test of new labels -----------------------------------------------------------------------


def _label_test(
    data: JudgedLabels, about: CertifiedMetric, limits: tuple[float, float]
) -> LabelTest | None:
    """The test of new labels: of severe answers where the decision has a condition on them, else
    of agreement; None where neither can be tested, as of a filter by a jury's votes. `limits` are
    its level, and the least share of severe answers that a judge in the place of annotators must
    find."""
    is_tested = about.outcome == "REPLACE" or about.signal in (SEVERITY, PROBABILITY)
    if about.outcome not in CERTIFIED or not is_tested:
        return None
    conditions = {c["statistic"]: c for c in about.conditions if c["value"] is not None}
    caught = conditions.get(_CAUGHT[about.outcome])
    test = _severe_test(data, about, caught, limits) if caught and about.severe_from else None
    gap = conditions.get("humans_accuracy", conditions.get("gold_accuracy"))
    if test is None and about.outcome == "REPLACE" and gap:
        return _agreement_test(data, round(float(gap["bound"]), 6), limits[0])
    return test


def _alone_items(data: JudgedLabels, about: CertifiedMetric) -> tuple[str, ...]:
    """The labelled answers that the judge decides alone."""
    rows = data.rows[data.is_alone(about)[data.rows]]
    return tuple(data.study.answers[row].item_id for row in rows.tolist())


def _alone_tests(
    data: JudgedLabels, about: CertifiedMetric, required: Mapping[str, Any], level: float
) -> dict[str, LabelTest | None]:
    """The tests of what the judge decides alone, by name: agreement, and severe answers among it,
    both with the margins of REPLACE."""
    if about.alone_from is None:
        return {}
    margin = (required["severe"] or {}).get("margin")
    role = about.model_copy(update={"outcome": ALONE})
    decided = data.at(data.is_alone(about)[data.rows])
    tests = {"alone": _agreement_test(decided, -required["humans"]["margin"], level)}
    if about.severe_from and margin is not None:
        tests["alone, severe"] = _severe_test(data, role, {}, (level, 1 - margin))
    return tests


def _severe_test(
    data: JudgedLabels, about: CertifiedMetric, caught: Mapping[str, Any],
    limits: tuple[float, float],
) -> LabelTest | None:  # fmt: skip
    """The limit says how much less of the reference labels may be found; the bound is as much
    less of what one annotator calls severe, a part of which is a false alarm and stays."""
    level, required = limits
    severe_from = data.metric.index(about.severe_from)
    is_flagged, annotators = data.flagged(about), data.called_severe(about)
    truth = data.study.humans[data.metric.id].truth[data.rows]
    is_severe = truth[truth >= 0] >= severe_from
    if annotators.sum() == 0 or is_severe.all() or not is_severe.any():
        return None
    value = float((annotators * is_flagged).sum() / annotators.sum())
    finds = float(is_flagged[truth >= 0][is_severe].mean())
    if about.outcome == "ASSIST":
        missed, allowed = (round(float(caught[key]), 6) for key in ("value", "bound"))
        finds, required = 1 - missed, 1 - allowed
    share, alarms = float(is_severe.mean()), _annotator_alarms(data, severe_from)
    test = LabelTest(
        kind="severe",
        value=round(value, 6),
        bound=_bound(value, value * required / finds, annotators.sum(), level) if finds else 1.0,
        severe_share=round(share, 6),
        called_severe=round(float(annotators.mean()), 6),
        annotator_alarms=round(alarms, 6),
        judge_alarms=round(float(is_flagged[truth >= 0][~is_severe].mean()), 6),
    )
    is_told_apart = test.called_severe > (1 - share) * alarms + 0.5 * share
    return test if is_told_apart and test.bound < test.value else None


def _annotator_alarms(data: JudgedLabels, severe_from: int) -> float:
    """How often an annotator calls severe what the others agree is not; 0 where nobody else
    labelled."""
    humans = data.study.humans[data.metric.id]
    n_alarms = n_labels = 0
    for annotator, labels in zip(humans.makers, humans.made.values.T, strict=True):
        others = humans.truth_without(annotator, ties=False)
        is_free = (labels >= 0) & (others >= 0) & (others < severe_from)
        n_alarms += int((labels[is_free] >= severe_from).sum())
        n_labels += int(is_free.sum())
    return n_alarms / n_labels if n_labels else 0.0


def _agreement_test(data: JudgedLabels, margin: float, level: float) -> LabelTest | None:
    """The bound is the agreement among annotators and the margin of the condition."""
    several = data.at((data.labels >= 0).sum(axis=1) > 1)
    if not len(several.rows):
        return None
    among = []
    for i, column in enumerate(several.labels.T):
        others = replace(several, labels=np.delete(several.labels, i, axis=1), verdicts=column)
        among.append(others.agreement[column >= 0])
    judge = data.by_question(data.agreement)
    value, bound = float(judge.mean()), float(np.concatenate(among).mean()) + margin
    if value <= bound:
        return None
    bound = _bound(value, bound, len(judge), level)
    return LabelTest(kind="agreement", value=round(value, 6), bound=bound)


def _bound(value: float, bound: float, n: float, level: float) -> float:
    """The bound; less, where the share was measured on so few answers that it may lie below it."""
    n_items = math.floor(n)
    n_short = min(n_items, math.ceil(n_items * (1 - value)))
    low = clopper_pearson(n_items - n_short, n_items, 1 - 2 * level).low
    return round(min(bound, low or 0.0), 6)


def shortfall(
    test: LabelTest, judge: FloatArray, annotators: FloatArray | None
) -> tuple[FloatArray, float]:
    """Return observations (n,) with a mean above 0 where the judge falls short of the bound, and
    how far below 0 they can lie.

    Of agreement that is the bound minus the agreement. Of severe answers the bound is about what
    an annotator calls severe, of which more is a false alarm where fewer answers are severe. So it
    is corrected: A is the share of `annotators` whose label is severe, J is 1 where the `judge`
    finds the answer severe and else 0. The mean of A (J - b) + k (1 - A) has the sign of the
    judge's sensitivity less the least one that the bound means at issue, however many answers are
    severe.
    """
    if annotators is None:
        return test.bound - judge, max(1 - test.bound, 1e-6)
    f, g, p = test.annotator_alarms, test.judge_alarms, test.severe_share
    false_alarms = (1 - p) * f
    true_alarms = test.called_severe - false_alarms
    least = (test.bound * test.called_severe - false_alarms * g) / true_alarms
    missed = f / (1 - f) * (p - true_alarms) / true_alarms  # by annotators, of severe answers
    b = (least - missed * g) / (1 - missed)
    k = f * (b - g) / (1 - f)
    return annotators * (b - judge) - k * (1 - annotators), max(1 - b, k, 1e-6)
