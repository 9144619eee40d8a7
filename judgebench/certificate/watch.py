"""A certificate beside new verdicts and labels: whether it still holds. Nothing is stored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from judgebench.certificate.issue import (
    LEVEL,
    JudgedLabels,
    as_json,
    judge_of,
    judged_labels,
    shortfall,
)
from judgebench.certificate.record import ALONE, Certificate, LabelTest, Role, read
from judgebench.records import Answer, Estimate, Results, Row, Status
from judgebench.results.shown import Shown
from judgebench.runs.from_tables import Tables, study_from
from judgebench.runs.from_tables import study as study_of_tables
from judgebench.runs.open import is_run
from judgebench.stats.arrays import FloatArray
from judgebench.stats.betting import log_capital
from judgebench.stats.intervals import clopper_pearson, exact_share
from judgebench.studies.answers import likeness
from judgebench.studies.reference_labels import Mask
from judgebench.studies.study import Study

if TYPE_CHECKING:
    from judgebench.data.layout import Layout

_REJUDGED_LEVEL = 0.025  # one-sided, of all roles together at one look
_NOTHING_NEW = Estimate(None, reason="there is nothing new to test")


@dataclass(frozen=True)
class Reason:
    """Why a certificate is not valid: it expired, the judge gives other verdicts on the same
    answers of a metric (changed), or new labels show that it falls short in a role (fallen).
    `subject` is the title of the metric, or the name of the role."""

    kind: Literal["expired", "changed", "fallen"]
    subject: str = ""


@dataclass(frozen=True)
class RoleCheck:
    """A certified role beside new verdicts and labels.

    `changed` is the share of the certified answers on which the judge gives another verdict now,
    `share` that of the test on new labels; `lacks` is the signal of the role that the new verdicts
    lack. `capital` is the log of the largest capital that a bettor against the judge ever had,
    after `questions` new ones, and `alarm` the number of questions after which it was enough; None
    where it never was.
    """

    role: Role
    changed: Estimate = _NOTHING_NEW
    share: Estimate = _NOTHING_NEW
    lacks: str = ""
    questions: int = 0
    capital: float = 0.0
    alarm: int | None = None


@dataclass(frozen=True, repr=False)
class Watched(Shown):
    """A certificate with its checks. `judge` is the name of the judge in the new tables, and
    `differing` are its settings that are other than at issue, where both are known."""

    presented_by: ClassVar[str] = "judgebench.certificate.report:watch_part"

    certificate: Certificate
    now: datetime
    checks: tuple[RoleCheck, ...]
    judge: str = ""
    differing: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"certificate of {self.certificate.judge.name}"

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Every reason why it is not valid; that it expired is the last."""
        allowed, until = self.certificate.rule["certificate"]["changed"], self.certificate.until
        reasons = []
        for check in self.checks:
            if check.changed.low is not None and check.changed.low > allowed:
                reasons.append(Reason("changed", check.role.title))
            if check.alarm is not None:
                reasons.append(Reason("fallen", check.role.name))
        if until is not None and self.now >= until:
            reasons.append(Reason("expired"))
        return tuple(dict.fromkeys(reasons))

    @property
    def state(self) -> Literal["valid", "expired", "revoked"]:
        """Revoked where a metric changed or fell, whether or not it expired too."""
        kinds = [reason.kind for reason in self.reasons]
        if not kinds:
            return "valid"
        return "expired" if kinds[0] == "expired" else "revoked"

    @property
    def results(self) -> Results:
        """Of each certified role: `changed`, `share`, and `evidence`, in powers of ten, with the
        number of questions after which it revoked the certificate (`alarm_after`)."""
        return Results(tuple(self._rows()))

    def _rows(self) -> Iterator[Row]:
        for check in self.checks:
            about, test = (self.certificate.judge.name, check.role.metric), check.role.test
            role = {"role": check.role.outcome}
            tested = {"of": test.kind, "at_issue": test.value, "bound": test.bound} if test else {}
            evidence = Estimate(
                check.capital / math.log(10), n=check.questions, reason="evidence has no interval"
            )
            alarm = {"alarm_after": "never" if check.alarm is None else check.alarm}
            yield Row("watch", "changed", check.changed, *about, role)
            yield Row("watch", "share", check.share, *about, {**role, **tested})
            yield Row("watch", "evidence", evidence, *about, {**role, **alarm})


def watch_study(certificate: Certificate, study: Study | None = None) -> Watched:
    """Compare a certificate with the clock and, in a study, with new verdicts and labels. Raises
    SetupError where the study is not about the judge and the labels of the certificate."""
    now = datetime.now(UTC)
    if study is None:
        return Watched(certificate, now, tuple(map(RoleCheck, certificate.roles)))
    judge = judge_of(study, certificate.judge.name)
    is_certified = np.array([_is_certified(certificate, answer) for answer in study.answers])
    checks = (
        _check(certificate, judged_labels(study, judge, role), is_certified)
        for role in certificate.roles
    )
    settings, certified = as_json(judge.about or {}), certificate.judge
    both_known = settings.keys() & certified.settings.keys()
    differing = tuple(key for key in certified.differing(settings) if key in both_known)
    return Watched(certificate, now, tuple(checks), judge.name, differing)


def _is_certified(certificate: Certificate, answer: Answer) -> bool:
    """True for an answer of the certificate, by its id and, where both are known, by its text."""
    text = certificate.texts.get(answer.item_id)
    return text is not None and (text == 0 or likeness(answer) in (0, text))


def _check(certificate: Certificate, data: JudgedLabels, is_certified: Mask) -> RoleCheck:
    """The check of a role; `is_certified` marks the certified answers of the study (items,)."""
    role, n_roles, is_flagged = data.role, len(certificate.roles), data.is_flagged
    rows = np.flatnonzero(is_certified).tolist()
    items = [data.study.answers[row].item_id for row in rows]
    changed = _changed(certificate, data, items, 1 - 2 * _REJUDGED_LEVEL / n_roles)
    if role.test is None or is_flagged is None:
        return RoleCheck(role, changed, lacks=role.signal if role.test else "")
    share, capital = _tested(data.at(~is_certified[data.rows]), role.test, is_flagged)
    alarms = np.flatnonzero(capital >= -math.log(LEVEL / n_roles))
    alarm = int(alarms[0]) + 1 if len(alarms) else None
    largest = float(capital.max(initial=0.0))
    return RoleCheck(role, changed, share, "", len(capital), largest, alarm)


def _changed(
    certificate: Certificate, data: JudgedLabels, items: Sequence[str], level: float
) -> Estimate:
    """The share of the certified answers that the judge judged again with another label. An answer
    without any reply was not judged again."""
    verdicts, here, metric = data.judge.verdicts, data.metric.id, data.role.metric
    is_changed = [
        certificate.verdicts[item][metric] != verdicts[item].labels.get(here, "")
        for item in items
        if item in verdicts and verdicts[item].status not in (Status.FAILED, Status.SKIPPED)
    ]
    return clopper_pearson(sum(is_changed), len(is_changed), level)


def _tested(data: JudgedLabels, test: LabelTest, is_flagged: Mask) -> tuple[Estimate, FloatArray]:
    """The share that is tested, of the new labels, and the log of the capital after each
    question."""
    if test.kind == "severe":
        judge, annotators = is_flagged[data.rows].astype(np.float64), data.called_severe
        weights = annotators
    else:
        if data.role.outcome == ALONE:
            data = data.at(~is_flagged[data.rows])
        judge, annotators = data.agreement, None
        weights = np.ones(len(judge))
    x, n = data.clusters.sums(weights * judge, weights).T
    share = exact_share(x, n, np.ones(data.clusters.n), 0.95)
    falls, floor = shortfall(test, judge, annotators)
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
    if isinstance(study, Study) or is_run(study):
        return watch_study(certificate, study_from(study, verdicts, None, columns))
    rubric = certificate.rubric
    tables = study_of_tables(study, verdicts, rubric=rubric, columns=columns, expected="rows")
    return watch_study(certificate, tables)
