"""What labels say of a judge, in the same way when a certificate is issued and later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judgebench.certificate.record import CertifiedMetric, LabelTest
from judgebench.errors import Problem, SetupError
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.studies.study import JudgeVerdicts, Study

LEVEL = 0.02  # at which new labels revoke a judge that stayed as it was, all metrics together
ISSUE_LEVEL = 0.005  # at which the share at issue looked better than it is, all together
SEVERITY, PROBABILITY = "severity of the label", "probability of a severe label"  # signals


@dataclass(frozen=True)
class JudgedLabels:
    """Labelled answers of one metric that the judge judged, in their order.

    `metric` is the certified metric as the study names it; `rows` (n,) are those of the study,
    `labels` (n, annotators) and `verdicts` (n,) places in the certified metric, -1 without a label.
    """

    rows: IntArray
    labels: IntArray
    verdicts: IntArray
    clusters: Clusters  # of these answers
    metric: Metric

    def at(self, mask: NDArray[np.bool_]) -> JudgedLabels:
        """Only the answers of the mask (n,)."""
        clusters = Clusters.of(self.clusters.codes[mask].tolist())
        return JudgedLabels(
            self.rows[mask], self.labels[mask], self.verdicts[mask], clusters, self.metric
        )

    def by_question(self, values: FloatArray) -> FloatArray:
        """The mean of the values (n,) for each question, in the order in which they come."""
        sums = self.clusters.sums(values, np.ones(len(values)))
        return np.asarray(sums[:, 0] / sums[:, 1])


def judge_of(study: Study, name: str) -> JudgeVerdicts:
    """The judge of that name; the only judge, where the study has one. Raises SetupError."""
    judges = {judge.name: judge for judge in study.real_judges}
    if name in judges:
        return judges[name]
    if not judges:
        raise SetupError(Problem("give the judge's verdicts too: the tables hold labels alone"))
    if len(judges) != 1:
        message = "is not a judge of the study" if name else "name one of the judges: JUDGE=FILE"
        raise SetupError(Problem(message, "", None, "judge", name, ", ".join(judges)))
    return next(iter(judges.values()))


def _metric_in(study: Study, metric: Metric, certified: Rubric) -> Metric | None:
    """The certified metric as the study names it; where both have one metric alone, whatever its
    name, because a lone column of labels is often called by who gave them."""
    is_only = len(study.rubric.metrics) == len(certified.metrics) == 1
    only = study.rubric.metrics[0] if is_only else None
    return study.rubric.find(metric.id) or study.rubric.find(metric.title) or only


def judged_labels(
    study: Study, judge: JudgeVerdicts, metric: Metric, certified: Rubric
) -> JudgedLabels:
    """The labelled answers of a metric, in whose words labels are read. Raises SetupError where the
    study lacks the metric, or has other labels."""
    here = _metric_in(study, metric, certified)
    texts = here.label_texts if here else ()
    if here is None or not {*texts} <= {*metric.label_texts}:
        message = "the labels are not those of the certificate"
        shown = ", ".join(texts) or "no such metric"
        allowed = ", ".join(metric.label_texts)
        raise SetupError(Problem(message, "", None, metric.title, shown, allowed))
    places = np.array([*map(metric.index, texts), -1])  # the last one stands for no label
    ratings = study.humans[here.id].made
    is_judged = study.asked(judge, here)[ratings.rows] & (ratings.values >= 0).any(axis=1)
    rows = ratings.rows[is_judged]
    return JudgedLabels(
        rows, places[ratings.values[is_judged]], places[study.judged(judge, here)[rows]],
        Clusters.of(study.clusters.codes[rows].tolist()), here,
    )  # fmt: skip


def flags(
    study: Study, judge: JudgeVerdicts, metric: Metric, about: CertifiedMetric, data: JudgedLabels
) -> NDArray[np.bool_]:
    """True where the judge calls an answer severe or, as a filter, sends it to humans (n,); what
    has no label is sent."""
    severe_from = metric.index(about.severe_from)
    if about.outcome == "REPLACE" or about.threshold is None:
        return np.asarray(data.verdicts >= severe_from)
    if about.signal == SEVERITY:
        signal = np.array([*metric.severities, np.inf])[data.verdicts]
        return np.asarray(signal >= about.threshold)
    p = study.probabilities(judge, data.metric)
    if p is None:
        return np.ones(len(data.rows), dtype=np.bool_)
    is_severe = [metric.index(text) >= severe_from for text in data.metric.label_texts]
    return np.asarray(~(p[data.rows][:, is_severe].sum(axis=1) < about.threshold))


def agreement(data: JudgedLabels) -> FloatArray:
    """The share of an answer's annotators whose label the judge gives (n,)."""
    is_same = (data.labels == data.verdicts[:, None]) & (data.labels >= 0)
    return np.asarray(is_same.sum(axis=1) / (data.labels >= 0).sum(axis=1))


def called_severe(data: JudgedLabels, severe_from: int) -> FloatArray:
    """The share of an answer's annotators who call it severe (n,)."""
    return np.asarray((data.labels >= severe_from).sum(axis=1) / (data.labels >= 0).sum(axis=1))


def shortfall(
    test: LabelTest, judge: FloatArray, annotators: FloatArray | None
) -> tuple[FloatArray, float]:
    """Observations (n,) with a mean above 0 where the judge falls short of the bound, and how far
    below 0 they can lie.

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
