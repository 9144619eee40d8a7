"""A certificate of a judge, from the study and the decision that it rests on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import judgebench
from judgebench.certificate import levels
from judgebench.certificate.reading import rows_of
from judgebench.certificate.record import (
    CERTIFIED,
    Anchor,
    Certificate,
    CertifiedMetric,
    Judged,
    Labelled,
    Noise,
    Tested,
    Validity,
    sealed,
)
from judgebench.certificate.seen import (
    AGREEMENT,
    BASELINE,
    BY_CHANCE,
    BY_SEVERITY,
    FAILURES,
    MISSED,
    RECALL,
    SENT,
    Seen,
    by_question,
    judge_of,
    noise,
    noise_of,
    population_of,
    same,
    seen_of,
    values_of,
    watched,
)
from judgebench.errors import Problem, SetupError
from judgebench.records import content_hash
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray
from judgebench.studies.study import JudgeVerdicts, Study

_SAME_AGAIN = "self-consistency"  # the recipe of a stress test that judges the same answer again
_MOST = 4  # shares that are watched of one metric


@dataclass(frozen=True)
class Terms:
    """How a certificate is issued: with verdicts of the same judge on the same answers `again`
    (studies or tables), with the texts of its anchors, signed by the private key in the file `key`,
    at the time `now` (default: now)."""

    again: Sequence[Any] = ()
    with_anchors: bool = False
    key: Path | None = None
    now: datetime | None = None


def issue(
    study: Study, name: str, decided: Shown, stress: Results | None, rule: Mapping[str, Any],
    terms: Terms = Terms(),
) -> Certificate:  # fmt: skip
    """The certificate of the judge of that name; of the only one, where the name is empty.

    Raises SetupError for another name, and where no metric has the outcome REPLACE or ASSIST.
    """
    judge = judge_of(study, name)
    rows = seen_of(study, judge)
    metrics = {
        m.id: _decided(study, judge, m, decided, rule)
        for m in study.rubric.metrics
        if judge.judges(m)
    }
    certified = [m for m, one in metrics.items() if one.outcome in CERTIFIED]
    if not certified:
        told = ", ".join(f"{one.title}: {one.outcome}" for one in metrics.values())
        message = "nothing to certify: no metric is decided REPLACE or ASSIST"
        raise SetupError(Problem(message, field=judge.name, found=told))
    if study.config.blind != "yes" and any(m.outcome == "REPLACE" for m in metrics.values()):
        message = "REPLACE is certified only of labels made without sight of any model's label"
        allowed = "--blind yes (in Python truth={'blind': 'yes'}), where they did not"
        raise SetupError(Problem(message, "", None, "blind", study.config.blind, allowed))
    again = [r for one in terms.again for r in rows_of(one, study.rubric, judge.name)]
    asked = rule["certificate"]
    anchors = tuple(_anchors(study, rows, certified, asked["anchors"], terms.with_anchors))
    first, ids = {row.item: row for row in rows}, {anchor.id for anchor in anchors}
    for metric_id in certified:
        one, alpha = metrics[metric_id], levels.NOISE / len(certified)
        metrics[metric_id] = one.model_copy(update={
            "watched": tuple(
                watched(key, title, x, bound, _MOST * len(certified), at_least)
                for key, title, x, bound, at_least in _shares(
                    study, judge, rows, metric_id, one, rule
                )
            ),
            "noise": noise_of(first, again, metric_id, ids, alpha) if again
            else _stressed(stress, judge.name, metric_id, len(anchors), alpha),
        })  # fmt: skip
    _warn_of_copies(metrics)
    now = (terms.now or datetime.now(UTC)).replace(microsecond=0)
    until = None if asked["days"] is None else now + timedelta(days=asked["days"])
    made = Certificate(
        study=study.name, issued=now, judgebench=judgebench.__version__,
        judge=Judged(
            name=judge.name, signature=judge.signature, about=_plain(judge.about or {}),
            models=tuple(sorted({row.model for row in rows if row.model})),
        ),
        rubric=study.rubric.model_dump(mode="json"), rule=_plain(rule),
        labels=Labelled(
            annotators=len(study.makers), labels=study.n_labels, rule=study.config.rule,
            blind=study.config.blind,
        ),
        metrics=metrics, anchors=anchors,
        population=population_of(rows, study.rubric, asked["encoder"]),
        valid=Validity(
            until=until, answers=asked["answers"], model_changes=asked["model_changes"]
        ),
    )  # fmt: skip
    return sealed(made, terms.key)


def _warn_of_copies(metrics: Mapping[str, CertifiedMetric]) -> None:
    noises = [one.noise for one in metrics.values() if one.noise and one.noise.pairs]
    if noises and not any(noise.changed for noise in noises):
        warnings.warn(
            f"the verdicts --again are the same on all {noises[0].pairs:,} answers: if they are a "
            "copy, and the judge did not judge again, its noise will look like a change",
            stacklevel=2,
        )


def certify(
    study: Study, name: str, decided: Shown, stress: Results | None, rule: Mapping[str, Any],
    terms: Mapping[str, Any],
) -> Certificate:  # fmt: skip
    """The certificate that `issue` makes on Terms of these names."""
    key = Path(terms["key"]) if terms.get("key") else None
    return issue(study, name, decided, stress, rule, Terms(**{**terms, "key": key}))


def _plain(value: Any) -> Any:
    """The value as JSON holds it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _decided(
    study: Study, judge: JudgeVerdicts, metric: Metric, decided: Shown, rule: Mapping[str, Any]
) -> CertifiedMetric:
    """The decision with its conditions."""
    about = {"judge": judge.name, "metric": metric.id}
    found = decided.results
    decision, rows = found.select("decision", **about)[0], found.select("condition", **about)
    shown = (judge.name, metric.title)
    standing = next((s for s in decided.part.standings if (s.judge, s.metric) == shown), None)
    triage = found.select("triage", "expected_sent", **about)[:1]
    severe = rule["severe_from"].get(metric.id, metric.label_texts[-1])
    return CertifiedMetric(
        title=metric.title, outcome=decision["outcome"],
        reason=standing.why if standing else decision.estimate.reason,
        conditions=tuple(_shown(row) for row in rows if not row["who"]),
        severe_from=severe if metric.kind == "ordinal" else "",
        signal=triage[0]["signal"] if triage else "",
        threshold=float(triage[0].keys["threshold"]) if triage else None,
    )  # fmt: skip


def _shown(row: Row) -> Tested:
    e = row.estimate
    value, low, high = (None if x is None else round(x, 6) for x in (e.value, e.low, e.high))
    return Tested(
        outcome=row["outcome"], key=row.statistic, title=row["title"], state=row["state"],
        value=value, low=low, high=high, n=e.n, bound=round(float(row.keys["bound"]), 6),
        at_least=row["at_least"] == "true",
    )  # fmt: skip


def _shares(
    study: Study, judge: JudgeVerdicts, rows: Sequence[Seen], metric_id: str,
    about: CertifiedMetric, rule: Mapping[str, Any],
) -> Iterator[tuple[str, str, FloatArray, float, bool]]:  # fmt: skip
    """What fresh labels and verdicts can say of the conditions that were met, as shares: key,
    title, what is seen of each question, bound, and true where it must be at least that."""
    metric = study.humans[metric_id].metric

    def now(key: str) -> FloatArray:
        return values_of(rows, metric_id, about, metric, key)

    found = list[tuple[str, str, FloatArray, float, bool]]()
    if about.outcome == "REPLACE":
        x, replace = now(AGREEMENT), rule["replace"]
        among, margin = _among(rows, metric_id), _bound(about, "humans_accuracy")
        if len(x) and among is not None and margin is not None:
            title = "agreement with an annotator"
            found.append((AGREEMENT, title, x, among + margin, True))
        if len(x) and (best := _best_baseline(study, judge, rows, metric_id)):
            title = f"the same, beside the baseline {best[0]}"
            found.append((BASELINE, title, x, best[1], True))
        x = now(RECALL) if about.severe_from else np.array([])
        if len(x) and (caught := _caught(about, "severe_recall", x)):
            title = "severe answers found, by one annotator's labels"
            found.append((RECALL, title, x, caught, True))
        title = "answers without a label"
        found.append((FAILURES, title, now(FAILURES), replace["failures"], False))
    elif about.signal in (BY_SEVERITY, BY_CHANCE):
        x, assist = now(MISSED), rule["assist"]
        if len(x) and (caught := _caught(about, "missed", 1 - x)):
            title = "severe answers missed, by one annotator's labels"
            found.append((MISSED, title, x, 1 - caught, False))
        title = "answers sent to humans"
        found.append((SENT, title, now(SENT), assist["sent"], False))
    yield from (w for w in found if (w[2].mean() > w[3] if w[4] else w[2].mean() < w[3]))


def _caught(about: CertifiedMetric, key: str, x: FloatArray) -> float | None:
    """The least share of what one annotator calls severe that must be caught, where `x` (n,) is
    caught now: as much less as the bound of the condition, which is about the consensus, allows. A
    part of what one annotator calls severe is not, and that part stays."""
    c = next((c for c in about.conditions if c.key == key and c.value is not None), None)
    if c is None or c.value is None:
        return None
    value, bound = (c.value, c.bound) if c.at_least else (1 - c.value, 1 - c.bound)
    return float(x.mean()) * bound / value if value > 0 else None


def _among(rows: Sequence[Seen], metric: str) -> float | None:
    """How often two annotators of an answer agree (mean over questions); None where none has
    two."""
    shares = by_question(rows, lambda row: same(row, metric))
    return float(shares.mean()) if len(shares) else None


def _bound(about: CertifiedMetric, key: str) -> float | None:
    return next((c.bound for c in about.conditions if c.key == key), None)


def _best_baseline(
    study: Study, judge: JudgeVerdicts, rows: Sequence[Seen], metric: str
) -> tuple[str, float] | None:
    """The baseline that agrees the most often with an annotator, and how often."""
    texts, given = study.humans[metric].metric.label_texts, {r.item: r.labels for r in rows}
    found: dict[str, float] = {}
    for control in study.controls:
        labels = study.judged(control, study.humans[metric].metric)
        shares = [
            np.mean([label == (texts[labels[row]] if labels[row] >= 0 else "") for label in people])
            for row, item in enumerate(study.answers.item_ids())
            if (people := [*given.get(item, {}).get(metric, {}).values()])
        ]
        if shares:
            found[control.name] = float(np.mean(shares))
    return max(found.items(), key=lambda one: one[1]) if found else None


def _stressed(stress: Results | None, judge: str, metric: str, anchors: int, alpha: float) -> Noise:
    """The noise by a stress test that judged answers again, if there is one."""
    about = {"judge": judge, "metric": metric, "recipe": _SAME_AGAIN}
    kept = stress.select("invariance", "robustness", **about) if stress else []
    e = kept[0].estimate if kept else None
    pairs, value = (0, 1.0) if e is None or e.value is None else (e.n, e.value)
    return noise(pairs, round(pairs * (1 - value)), alpha, anchors)


def _anchors(
    study: Study, rows: Sequence[Seen], metrics: Sequence[str], n: int, texts: bool
) -> Iterator[Anchor]:
    """Up to n answers with human labels, drawn at random by their ids, in the order drawn: the
    first of them are such a sample, too."""
    labelled = [row for row in rows if any(row.labels.get(m) for m in metrics)]
    drawn = sorted(labelled, key=lambda row: content_hash(["anchor", row.item]))[:n]
    place = {item: row for row, item in enumerate(study.answers.item_ids())}
    for row in drawn:
        answer = study.answers[place[row.item]]
        read = {"question": answer.question, "text": answer.text, "reference": answer.reference}
        people = {a: str(i) for i, a in enumerate(study.makers, start=1)}
        yield Anchor(
            id=row.item, hash=row.hash, group=row.group, system=row.system,
            verdicts={m: row.verdicts.get(m, "") for m in metrics},
            labels={
                m: {people[a]: label for a, label in row.labels[m].items() if a in people}
                for m in metrics
                if m in row.labels
            },
            **(read if texts else {}),
        )  # fmt: skip
