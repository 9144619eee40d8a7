"""A certificate of a judge, from the decision and the study that it rests on; and what labels say
of a judge, in the same way when the certificate is issued and later."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from judgebench.certificate.record import (
    ALONE,
    Certificate,
    CertifiedJudge,
    LabelledAnswers,
    LabelTest,
    Role,
)
from judgebench.errors import Problem, SetupError
from judgebench.records import Results, Verdict
from judgebench.results.shown import Shown
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.answers import likeness
from judgebench.studies.confidence import confidence
from judgebench.studies.reference_labels import Mask
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.version import VERSION

LEVEL = 0.02  # at which new labels revoke a judge that stayed as it was, all roles together
ISSUE_LEVEL = 0.005  # at which the share at issue looked better than it is, all together
SEVERITY, PROBABILITY = "severity of the label", "probability of a severe label"  # signals
# The condition on severe answers of each role.
_SEVERE = {"REPLACE": "severe_gap", "ASSIST": "missed", ALONE: "severe_alone"}
_RESULTS = ("decision", "condition", "alone")  # analyses whose rows are written down


@dataclass(frozen=True)
class JudgedLabels:
    """Labelled answers of a role's metric that the judge judged, in their order.

    `rows` (n,) are those of the study, `labels` (n, annotators) -1 where there is none.
    """

    study: Study
    judge: JudgeVerdicts
    metric: Metric
    role: Role
    rows: IntArray
    labels: IntArray

    def at(self, mask: Mask) -> JudgedLabels:
        """Only the answers of the mask (n,)."""
        return replace(self, rows=self.rows[mask], labels=self.labels[mask])

    @property
    def clusters(self) -> Clusters:
        """The questions of these answers, in the order in which they come."""
        return Clusters.of(self.study.clusters.codes[self.rows].tolist())

    def by_question(self, values: FloatArray) -> FloatArray:
        """The mean of the values (n,) for each question, in the order in which they come."""
        sums = self.clusters.sums(values, np.ones(len(values)))
        return np.asarray(sums[:, 0] / sums[:, 1])

    def _share_of_labels(self, is_so: Mask) -> FloatArray:
        """The share of an answer's labels of which something is so (n, annotators): (n,)."""
        has_label = self.labels >= 0
        return np.asarray((is_so & has_label).sum(axis=1) / has_label.sum(axis=1))

    @property
    def agreement(self) -> FloatArray:
        """The share of an answer's annotators whose label the judge gives (n,)."""
        verdicts = self.study.judged(self.judge, self.metric)[self.rows]
        return self._share_of_labels(self.labels == verdicts[:, None])

    @property
    def severe_from(self) -> int:
        """The index of the least severe label that counts as severe; past all where none does."""
        named = self.role.severe_from
        return self.metric.index(named) if named else len(self.metric.labels)

    @property
    def called_severe(self) -> FloatArray:
        """The share of an answer's annotators who call it severe (n,)."""
        return self._share_of_labels(self.labels >= self.severe_from)

    @property
    def is_flagged(self) -> Mask | None:
        """True where the judge calls an answer of the study severe or, if it does not replace
        annotators, leaves it to people (items,), as it does without a label. None where its
        verdicts lack what the threshold of the role is about, or are compared by no test with it.
        """
        judged, role = self.study.judged(self.judge, self.metric), self.role
        if role.threshold is None:
            return np.asarray(judged >= self.severe_from)
        if role.outcome == ALONE:
            sure = confidence(self.study, self.judge, self.metric, self.severe_from)
            return ~(sure.values >= role.threshold) if sure.signal == role.signal else None
        if role.signal == SEVERITY:
            signal = np.array([*self.metric.severities, np.inf])[judged]
        else:
            p = self.study.probabilities(self.judge, self.metric)
            if p is None or role.signal != PROBABILITY:
                return None
            signal = p[:, self.severe_from :].sum(axis=1)
        return ~(signal < role.threshold)


def judge_of(study: Study, name: str, *, exact: bool = False) -> JudgeVerdicts:
    """Return the judge of that name; unless `exact` the only judge, where the study has one. Raises
    SetupError."""
    judges = {judge.name: judge for judge in study.real_judges}
    if name in judges:
        return judges[name]
    if exact or len(judges) != 1:
        message, allowed = "must be one of the judges whose verdicts are given", ", ".join(judges)
        raise SetupError(Problem(message, "", None, "judge", name, allowed or "none, as yet"))
    return next(iter(judges.values()))


def judged_labels(study: Study, judge: JudgeVerdicts, role: Role) -> JudgedLabels:
    """Return the labelled answers of a certified metric. Raises SetupError where the study lacks
    the metric, or has other labels."""
    metric = study.rubric.find(role.metric)
    if metric is None or metric.label_texts != role.labels:
        message = "the labels are not those of the certificate"
        labels = ", ".join(metric.label_texts) if metric else "no such metric"
        raise SetupError(Problem(message, "", None, role.title, labels, ", ".join(role.labels)))
    made = study.humans[metric.id].made
    is_judged = study.asked(judge, metric)[made.rows] & (made.values >= 0).any(axis=1)
    return JudgedLabels(study, judge, metric, role, made.rows[is_judged], made.values[is_judged])


# --- the certificate ------------------------------------------------------------------------------


def certify(study: Study, name: str, decisions: Shown, rule: Mapping[str, Any]) -> Certificate:
    """Return the certificate of the judge of that name; of the only one, where the name is empty.

    Raises SetupError for another name, and where the judge may do nothing on any metric.
    """
    judge, results = judge_of(study, name, exact=bool(name)), decisions.results
    metrics = [metric for metric in study.rubric.metrics if judge.judges(metric)]
    roles = [role for metric in metrics for role in _roles(results, judge.name, metric, rule)]
    if not roles:
        decided = results.select("decision", judge=judge.name)
        outcomes = "; ".join(f"{r.metric}: {r['outcome']}. {r.estimate.reason}" for r in decided)
        message = "nothing to certify: no metric is decided REPLACE, ASSIST, or in part alone"
        raise SetupError(Problem(message, field=judge.name, found=outcomes))
    samples = [judged_labels(study, judge, role) for role in roles]
    tests = (_test(data, results, rule, ISSUE_LEVEL / len(roles)) for data in samples)
    rows = np.unique(np.concatenate([data.rows for data in samples])).tolist()
    answers = [study.answers[row] for row in rows]
    now, days = datetime.now(UTC).replace(microsecond=0), rule["certificate"]["days"]
    keys = {"judge": judge.name, "who": ""}
    return Certificate(
        format="judgebench certificate 1",
        study=study.name,
        issued=now,
        until=None if days is None else now + timedelta(days=days),
        judgebench=VERSION,
        judge=CertifiedJudge(
            name=judge.name,
            signature=judge.signature,
            models=tuple(judge.models),
            settings=as_json(judge.about or {}),
        ),
        roles=tuple(
            role.model_copy(update={"test": test}) for role, test in zip(roles, tests, strict=True)
        ),
        results=tuple(row.plain() for kind in _RESULTS for row in results.select(kind, **keys)),
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
        texts={answer.item_id: likeness(answer) for answer in answers},
        verdicts={a.item_id: _labels(judge.verdicts[a.item_id], roles) for a in answers},
    ).sealed()


def _labels(verdict: Verdict, roles: Sequence[Role]) -> dict[str, str]:
    """The label of each certified metric; empty where there is none."""
    return {role.metric: verdict.labels.get(role.metric, "") for role in roles}


def as_json(value: Mapping[str, Any]) -> Any:
    """Return the value as JSON holds it."""
    return json.loads(json.dumps(value, default=str))


def _roles(results: Results, judge: str, metric: Metric, rule: Mapping[str, Any]) -> Iterator[Role]:
    """The roles that are decided on a metric, without tests."""
    keys = {"judge": judge, "metric": metric.id}
    (decision,) = results.select("decision", **keys)
    named = rule["severe_from"]
    severe_from = named.get(metric.id, named.get(metric.title, metric.label_texts[-1]))
    outcome = decision["outcome"]
    sources = {"REPLACE": [decision], "ASSIST": results.select("triage", "expected_sent", **keys)}
    shares = results.select("alone", "share", **keys)
    defined = (row for row in shares if row.estimate.value is not None)
    for row in (*sources.get(outcome, ()), *defined):
        yield Role(
            metric=metric.id,
            title=metric.title,
            labels=metric.label_texts,
            outcome=ALONE if row.analysis == "alone" else outcome,
            severe_from=severe_from if metric.has_severe else "",
            signal=row["signal"],
            threshold=float(row["threshold"]) if row["threshold"] else None,
        )


# --- the test of new labels -----------------------------------------------------------------------


def _test(
    data: JudgedLabels, results: Results, rule: Mapping[str, Any], level: float
) -> LabelTest | None:
    """The test of new labels: of severe answers where the decision has a condition on them, else
    of agreement; None where neither can be tested, as of a filter by a jury's votes."""
    role, is_flagged = data.role, data.is_flagged
    if is_flagged is None:
        return None
    about = {"judge": data.judge.name, "metric": role.metric, "who": ""}
    rows = results.select("condition", outcome=role.outcome, **about)
    rows = rows or results.select("alone", **about)
    conditions = {row.statistic: row for row in rows if row.estimate.value is not None}
    test = None
    if severe := conditions.get(_SEVERE[role.outcome]):
        required, missed = 1 - float(severe["bound"]), severe.estimate.value
        if role.outcome == "REPLACE":  # its condition is a difference
            required, missed = rule["certificate"]["severe"], None
        test = _severe_test(data, is_flagged, required, missed, level)
    gap = conditions.get("humans_accuracy", conditions.get("gold_accuracy"))
    if test is None and gap:
        decided = data.at(~is_flagged[data.rows]) if role.outcome == ALONE else data
        return _agreement_test(decided, float(gap["bound"]), level)
    return test


def _severe_test(
    data: JudgedLabels, is_flagged: Mask, required: float, missed: float | None, level: float
) -> LabelTest | None:
    """The limit says how much less of the reference labels may be found; the bound is as much
    less of what one annotator calls severe, a part of which is a false alarm and stays. `required`
    is the share of severe answers to be found, `missed` the share that is expected to be missed, by
    the decision; where it expects none, that is the share here."""
    truth, called_severe = data.study.humans[data.metric.id].truth[data.rows], data.called_severe
    is_severe, is_mild = truth >= data.severe_from, (truth >= 0) & (truth < data.severe_from)
    if not (called_severe.any() and is_severe.any() and is_mild.any()):
        return None
    flagged = is_flagged[data.rows].astype(np.float64)
    found = flagged[is_severe].mean() if missed is None else 1 - missed
    if not found:
        return None
    n_called = called_severe.sum()
    value = float(called_severe @ flagged / n_called)
    test = LabelTest(
        kind="severe",
        value=value,
        bound=_bound(value, value * required / found, n_called, level),
        severe_share=is_severe.sum() / (is_severe | is_mild).sum(),
        called_severe=called_severe.mean(),
        annotator_alarms=_annotator_alarms(data),
        judge_alarms=flagged[is_mild].mean(),
    )
    false_alarms = (1 - test.severe_share) * test.annotator_alarms
    is_told_apart = test.called_severe > false_alarms + 0.5 * test.severe_share
    return test if is_told_apart and test.bound < test.value else None


def _annotator_alarms(data: JudgedLabels) -> float:
    """The share of labels that call severe what the other annotators agree is not; 0 where nobody
    else labelled."""
    humans = data.study.humans[data.metric.id]
    n_alarms = n_labels = 0
    for annotator, labels in zip(humans.makers, humans.made.values.T, strict=True):
        others = humans.truth_without(annotator, ties=False)
        is_free = (labels >= 0) & (others >= 0) & (others < data.severe_from)
        n_alarms += int((labels[is_free] >= data.severe_from).sum())
        n_labels += int(is_free.sum())
    return n_alarms / n_labels if n_labels else 0.0


def _agreement_test(data: JudgedLabels, margin: float, level: float) -> LabelTest | None:
    """The bound is the agreement among annotators and the margin of the condition."""
    n_labels = (data.labels >= 0).sum(axis=1)
    labels, n_others = data.labels[n_labels > 1], n_labels[n_labels > 1] - 1
    if not len(labels):
        return None
    n_same = (labels[:, :, None] == labels[:, None, :]).sum(axis=2) - 1
    among = (n_same / n_others[:, None])[labels >= 0].mean()
    judge = data.by_question(data.agreement)
    value, bound = float(judge.mean()), float(among) + margin
    if value <= bound:
        return None
    return LabelTest(kind="agreement", value=value, bound=_bound(value, bound, len(judge), level))


def _bound(value: float, bound: float, n: float, level: float) -> float:
    """The bound; less, where the share was measured on so few answers that it may lie below it."""
    n_items = math.floor(n)
    n_found = n_items - math.ceil(n_items * (1 - value))
    return min(bound, clopper_pearson(n_found, n_items, 1 - 2 * level).low or 0.0)


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
