"""A certificate beside new verdicts and labels: whether it still holds. Nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.certificate.record import read
from judgebench.runs.from_tables import Tables, study_from
from judgebench.runs.from_tables import study as study_of_tables
from judgebench.runs.open import is_run

if TYPE_CHECKING:
    from judgebench.data.layout import Layout

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import ClassVar, Literal

import numpy as np

from judgebench.certificate.issue import (
    LEVEL,
    JudgedLabels,
    judge_of,
    judged_labels,
    shortfall,
)
from judgebench.certificate.record import ALONE, Certificate, CertifiedMetric
from judgebench.records import Estimate, Results, Row, Status
from judgebench.results.shown import Shown
from judgebench.stats.arrays import FloatArray
from judgebench.stats.betting import log_capital
from judgebench.stats.intervals import clopper_pearson, exact_share
from judgebench.studies.answers import likeness
from judgebench.studies.confidence import SHARE_OF_VOTES, confidence
from judgebench.studies.study import Study

_REJUDGED_LEVEL = 0.025  # one-sided, of all metrics together at one look
_UNTESTED = "one annotator's labels cannot say whether it holds"
_NO_SIGNAL = "the new verdicts hold no {}"
_NOTHING_NEW = "no new labels and verdicts are given"


@dataclass(frozen=True)
class Reason:
    """Why a certificate is not valid: it expired, or a metric has other verdicts on the same
    answers (changed) or falls short on new labels (fallen)."""

    kind: Literal["expired", "changed", "fallen"]
    metric: str = ""


@dataclass(frozen=True)
class MetricCheck:
    """What new verdicts and labels say of a certified metric, by its key in `certified`.

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
    """How a certificate stands. `judge` is the name of the judge in the new tables."""

    presented_by: ClassVar[str] = "judgebench.certificate.report:watch_part"

    certificate: Certificate
    now: datetime
    checks: tuple[MetricCheck, ...]
    judge: str = ""
    n_answers: int = 0

    @property
    def name(self) -> str:
        return f"certificate of {self.certificate.judge.name}"

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Every reason why it is not valid."""
        allowed, until = self.certificate.rule["certificate"]["changed"], self.certificate.until
        reasons = []
        for check in self.checks:
            if check.changed.low is not None and check.changed.low > allowed:
                reasons.append(Reason("changed", check.metric))
            if check.alarm is not None:
                reasons.append(Reason("fallen", check.metric))
        if until is not None and self.now >= until:
            reasons.append(Reason("expired"))
        return tuple(reasons)

    @property
    def state(self) -> Literal["valid", "expired", "revoked"]:
        """Revoked where a metric changed or fell, whether or not it expired too."""
        kinds = {reason.kind for reason in self.reasons}
        if kinds - {"expired"}:
            return "revoked"
        return "expired" if kinds else "valid"

    @property
    def results(self) -> Results:
        """Of each certified metric: `changed`, `share`, and `evidence`, in powers of ten."""
        return Results(tuple(self._rows()))

    def _rows(self) -> Iterator[Row]:
        judge = self.certificate.judge.name
        for check in self.checks:
            yield Row("watch", "changed", check.changed, judge, check.metric)
            test = self.certificate.certified[check.metric].test
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
        nothing, untested = (Estimate(None, reason=why) for why in (_NOTHING_NEW, _UNTESTED))
        checks = (
            MetricCheck(key, nothing, nothing if about.test else untested)
            for key, about in certificate.certified.items()
        )
        return Watched(certificate, now, tuple(checks))
    judge = judge_of(study, certificate.judge.name)
    certified = _certified_items(certificate, study)
    checks = (
        _check(certificate, key, judged_labels(study, judge, metric), certified)
        for metric in certificate.rubric.metrics
        for key in certificate.certified
        if key.partition(", ")[0] == metric.id
    )
    return Watched(certificate, now, tuple(checks), judge.name, int(study.asked(judge).sum()))


def _certified_items(certificate: Certificate, study: Study) -> set[str]:
    """The answers of the study that are those of the certificate, by id and, where it is known, by
    text."""
    texts = certificate.texts
    hashes = {a.item_id: likeness(a) for a in study.answers if a.item_id in certificate.verdicts}
    return {
        item for item, number in hashes.items()
        if not number or texts.get(item, f"{number:016x}") == f"{number:016x}"
    }  # fmt: skip


def _check(
    certificate: Certificate, key: str, data: JudgedLabels, certified: set[str]
) -> MetricCheck:
    n_metrics = len(certificate.certified)
    changed = _changed(certificate, data, certified, 1 - 2 * _REJUDGED_LEVEL / n_metrics)
    about = certificate.certified[key]
    if about.test is None:
        return MetricCheck(key, changed, Estimate(None, reason=_UNTESTED))
    if about.outcome == ALONE and _signal(data) != about.alone_signal:
        reason = _NO_SIGNAL.format(about.alone_signal)
        return MetricCheck(key, changed, Estimate(None, reason=reason))
    answers = [data.study.answers[row] for row in data.rows.tolist()]
    is_new = [answer.item_id not in certified for answer in answers]
    share, capital = _tested(data.at(np.array(is_new, dtype=np.bool_)), about)
    alarms = np.flatnonzero(capital >= -math.log(LEVEL / n_metrics))
    alarm = int(alarms[0]) + 1 if len(alarms) else None
    return MetricCheck(key, changed, share, len(capital), float(capital.max(initial=0.0)), alarm)


def _signal(data: JudgedLabels) -> str:
    """What says in the new verdicts how sure the judge is."""
    return confidence(data.study, data.judge, data.here).signal


def _changed(
    certificate: Certificate, data: JudgedLabels, certified: set[str], level: float
) -> Estimate:
    """The share of the certified answers that the judge judged again with another label, or that
    it decides alone now and did not before, or the reverse. Votes vary by chance, and count by
    their label. An answer without any reply was not judged again."""
    verdicts, about = data.judge.verdicts, certificate.metrics[data.metric.id]
    alone = alone_now = {*certificate.alone.get(data.metric.id, ())}
    if about.alone_signal != SHARE_OF_VOTES and about.alone_signal == _signal(data):
        rows = np.flatnonzero(data.is_alone(about)).tolist()
        alone_now = {data.study.answers[row].item_id for row in rows}
    replies = {item: verdicts[item] for item in certified if item in verdicts}
    is_changed = [
        certificate.verdicts[item].get(data.metric.id, "") != verdict.labels.get(data.here.id, "")
        or (item in alone) != (item in alone_now)
        for item, verdict in replies.items()
        if verdict.status not in (Status.FAILED, Status.SKIPPED)
    ]
    return clopper_pearson(sum(is_changed), len(is_changed), level)


def _tested(data: JudgedLabels, about: CertifiedMetric) -> tuple[Estimate, FloatArray]:
    """The share that is tested, of the new labels, and the log of the capital after each
    question."""
    assert about.test is not None
    if about.outcome == ALONE and about.test.kind == "agreement":
        data = data.at(data.is_alone(about)[data.rows])
    judge, annotators = data.agreement, None
    weights = np.ones(len(judge))
    if about.test.kind == "severe":
        judge = data.flagged(about)
        weights = annotators = data.called_severe(about)
    x, n = data.clusters.sums(weights * judge, weights).T
    share = exact_share(x, n, np.ones(data.clusters.n), 0.95)
    falls, floor = shortfall(about.test, judge, annotators)
    return replace(share, n=data.clusters.n), log_capital(data.by_question(falls), floor)


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
