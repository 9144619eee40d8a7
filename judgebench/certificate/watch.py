"""A certificate beside new verdicts and labels: whether it still holds. Nothing is stored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from judgebench.certificate.labels import (
    LEVEL,
    JudgedLabels,
    agreement,
    called_severe,
    flags,
    judge_of,
    judged_labels,
    shortfall,
)
from judgebench.certificate.record import Certificate, CertifiedMetric, LabelTest, read
from judgebench.records import Estimate, Status
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.rubric import Metric
from judgebench.runs.from_tables import Tables, study_from
from judgebench.runs.from_tables import study as study_of_tables
from judgebench.runs.open import is_run
from judgebench.stats.betting import log_capital, needed
from judgebench.stats.intervals import clopper_pearson, exact_share
from judgebench.studies.answers import likeness
from judgebench.studies.study import JudgeVerdicts, Study

if TYPE_CHECKING:
    from judgebench.data.layout import Layout


PLANNED = (250, 500, 1000, 5000)  # numbers of labels for which the smallest loss is printed
_REJUDGED_LEVEL = 0.025  # one-sided, of all metrics together at one look
_UNTESTED = "new labels say nothing of this metric"


@dataclass(frozen=True)
class Reason:
    """Why a certificate is not valid: it expired, or a metric has other verdicts on the same
    answers (changed) or falls short on new labels (fallen)."""

    kind: Literal["expired", "changed", "fallen"]
    metric: str = ""


@dataclass(frozen=True)
class MetricCheck:
    """What new verdicts and labels say of a certified metric.

    `changed` is the share of the certified answers on which the judge gives another verdict now,
    `share` that of the test on new labels. `capital` is the log of the largest capital that a
    bettor against the judge ever had, after `questions` new ones, and `alarm` the number of
    questions after which it was enough; None where it never was.
    """

    metric: str
    changed: Estimate
    share: Estimate
    questions: int = 0
    capital: float = 0.0
    alarm: int | None = None


@dataclass(frozen=True, repr=False)
class Watched(Shown):
    """How a certificate stands. `uncovered` counts new answers by system, of systems of which the
    certificate says nothing; `judge` is the name of the judge in the new tables."""

    presented_by: ClassVar[str] = "judgebench.certificate.report:watch_part"

    certificate: Certificate
    now: datetime
    checks: tuple[MetricCheck, ...] = ()
    uncovered: dict[str, int] = field(default_factory=dict)
    judge: str = ""
    n_answers: int = 0

    @property
    def name(self) -> str:
        return f"certificate of {self.certificate.judge.name}"

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Every reason why it is not valid."""
        return tuple(self._reasons())

    def _reasons(self) -> Iterator[Reason]:
        allowed = self.certificate.rule["certificate"]["changed"]
        for check in self.checks:
            if check.changed.low is not None and check.changed.low > allowed:
                yield Reason("changed", check.metric)
            if check.alarm is not None:
                yield Reason("fallen", check.metric)
        if self.certificate.until is not None and self.now >= self.certificate.until:
            yield Reason("expired")

    @property
    def state(self) -> Literal["valid", "expired", "revoked"]:
        """Revoked where a metric changed or fell, whether or not it expired too."""
        kinds = {reason.kind for reason in self.reasons}
        if kinds - {"expired"}:
            return "revoked"
        return "expired" if kinds else "valid"

    @cached_property
    def results(self) -> Results:
        """Of each certified metric: `changed`, `share`, and `evidence`, in powers of ten."""
        return Results(tuple(self._rows()))

    def _rows(self) -> Iterator[Row]:
        judge = self.certificate.judge.name
        for check in self.checks:
            yield Row("watch", "changed", check.changed, judge, check.metric)
            test = self.certificate.metrics[check.metric].test
            keys = {"of": test.kind, "at_issue": test.value, "bound": test.bound} if test else {}
            yield Row("watch", "share", check.share, judge, check.metric, keys)
            evidence = Estimate(
                check.capital / math.log(10), n=check.questions, reason="evidence has no interval"
            )
            alarm = {"alarm": "no" if check.alarm is None else check.alarm}
            yield Row("watch", "evidence", evidence, judge, check.metric, alarm)


def watch_study(certificate: Certificate, study: Study | None = None) -> Watched:
    """Compare a certificate with the clock and, in a study, with new verdicts and labels. Raises
    SetupError where the study is not about the judge and the labels of the certificate."""
    now = datetime.now(UTC)
    if study is None:
        return Watched(certificate, now)
    judge = judge_of(study, certificate.judge.name)
    known = _certified_items(certificate, study)
    asked = study.asked(judge)
    new = Counter(
        answer.system
        for answer, is_asked in zip(study.answers, asked.tolist(), strict=True)
        if is_asked and answer.item_id not in known
    )
    covered = certificate.population.systems
    uncovered = {name: n for name, n in new.items() if covered and name and name not in covered}
    metrics = {metric.id: metric for metric in certificate.rubric.metrics}
    checks = (
        _check(certificate, study, judge, metrics[key], known, uncovered)
        for key in certificate.certified
    )
    return Watched(certificate, now, tuple(checks), uncovered, judge.name, int(asked.sum()))


def _certified_items(certificate: Certificate, study: Study) -> set[str]:
    """The answers of the study that are those of the certificate, by id and, where it is known, by
    text."""
    texts = certificate.texts
    return {
        answer.item_id
        for answer in study.answers
        if answer.item_id in certificate.verdicts
        and (
            not (number := likeness(answer))
            or texts.get(answer.item_id, f"{number:016x}") == f"{number:016x}"
        )
    }


def _check(
    certificate: Certificate, study: Study, judge: JudgeVerdicts, metric: Metric, known: set[str],
    uncovered: dict[str, int],
) -> MetricCheck:  # fmt: skip
    about, n_metrics = certificate.certified[metric.id], len(certificate.certified)
    data = judged_labels(study, judge, metric, certificate.rubric)
    changed = _changed(
        certificate, judge, metric, data.metric, known, 2 * _REJUDGED_LEVEL / n_metrics
    )
    if about.test is None:
        return MetricCheck(metric.id, changed, Estimate(None, reason=_UNTESTED))
    answers = [study.answers[row] for row in data.rows.tolist()]
    is_new = [a.item_id not in known and a.system not in uncovered for a in answers]
    data = data.at(np.array(is_new, dtype=np.bool_))
    share, capital = _tested(study, judge, metric, about, about.test, data)
    alarms = np.flatnonzero(capital >= -math.log(LEVEL / n_metrics))
    return MetricCheck(
        metric.id, changed, share, len(capital), float(capital.max(initial=0.0)),
        int(alarms[0]) + 1 if len(alarms) else None,
    )  # fmt: skip


def _changed(
    certificate: Certificate, judge: JudgeVerdicts, metric: Metric, here: Metric, known: set[str],
    alpha: float,
) -> Estimate:  # fmt: skip
    """The share of the certified answers that the judge judged again with another label. An answer
    without any reply was not judged again."""
    replies = {item: judge.verdicts[item] for item in known if item in judge.verdicts}
    pairs = [
        (certificate.verdicts[item].get(metric.id, ""), verdict.labels.get(here.id, ""))
        for item, verdict in replies.items()
        if verdict.status not in (Status.FAILED, Status.SKIPPED)
    ]
    n_changed = sum(then != now for then, now in pairs)
    return clopper_pearson(n_changed, len(pairs), 1 - alpha)


def _tested(
    study: Study, judge: JudgeVerdicts, metric: Metric, about: CertifiedMetric, test: LabelTest,
    data: JudgedLabels,
) -> tuple[Estimate, np.ndarray]:  # fmt: skip
    """The share that is tested, of the new labels, and the log of the capital after each
    question."""
    one_sample = np.ones(data.clusters.n)
    if test.kind == "agreement":
        values = agreement(data)
        x, n = data.clusters.sums(values, np.ones(len(values))).T
        falls, floor = shortfall(test, values, None)
    else:
        is_flagged = flags(study, judge, metric, about, data).astype(np.float64)
        annotators = called_severe(data, metric.index(about.severe_from))
        x, n = data.clusters.sums(annotators * is_flagged, annotators).T
        falls, floor = shortfall(test, is_flagged, annotators)
    share = exact_share(x, n, one_sample, 0.95)
    return replace(share, n=data.clusters.n), log_capital(data.by_question(falls), floor)


def smallest_loss(test: LabelTest, n_labels: int, n_metrics: int) -> float | None:
    """About the smallest loss from the share at issue that so many new labels, of one annotator
    each, are expected to show; None where they show none."""
    share = test.called_severe if test.kind == "severe" else 1.0
    for points in range(1, math.floor(100 * test.value) + 1):
        lower = test.value - points / 100
        if lower < test.bound:
            n = needed(lower, test.bound, LEVEL / n_metrics)
            if n is not None and n <= share * n_labels:
                return points / 100
    return None


def watch(
    certificate: Certificate | str | Path,
    study: Study | Tables | Layout | None = None,
    verdicts: Tables | None = None,
    *,
    columns: Mapping[str, Any] = {},
) -> Watched:
    """Compare a certificate with all new labels and verdicts, in the order of time: of a study or a
    run folder, or of tables, which are understood as in `decide`. Without any it says whether the
    file is unchanged and has not expired.

    Answers of the certificate that were judged again show whether the judge changed; labels of new
    answers show whether it still agrees with people. In tables a verdict is due on the items with a
    row alone. Raises SetupError where the certificate was changed after it was issued.

    >>> import judgebench as jb
    >>> watched = jb.watch("judge.json", "new-labels.csv", "new-verdicts.csv")
    >>> watched.state, watched.reasons
    ('valid', ())
    """
    if not isinstance(certificate, Certificate):
        certificate = read(Path(certificate))
    if study is None:
        return watch_study(certificate)
    if not (isinstance(study, Study) or is_run(study)):
        known = certificate.rubric
        study = study_of_tables(study, verdicts, rubric=known, columns=columns, expected="rows")
        verdicts = None
        columns = {}
    return watch_study(certificate, study_from(study, verdicts, None, columns))
