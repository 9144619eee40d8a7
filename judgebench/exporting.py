"""Verdicts, each with the outcome of its judge, written where teams look: MLflow, OpenTelemetry and
inspect.

The id of an item is the id of what was judged there: a trace, a response, a sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import all_or_nothing, to_line, write_atomically
from judgebench.studies.item_table import judge_labels
from judgebench.version import VERSION

if TYPE_CHECKING:
    from judgebench.decisions.decision import Decisions
    from judgebench.rubric import Metric

_EVENT = "gen_ai.evaluation.result"


@dataclass(frozen=True)
class ExportedVerdict:
    """The label that a judge gave an item on a metric, and what was decided about the judge."""

    item_id: str
    judge: str
    metric: str
    label: str  # empty where none could be read
    value: float | None  # of the label: its severity, where labels have an order
    status: str
    explanation: str
    outcome: str


def export(decisions: Decisions, to: str) -> int:
    """Write the verdicts of all judges with the outcomes of the decisions; return their number.

    `to` is `mlflow:URI`, where each verdict becomes an assessment (feedback) of the trace whose id
    the item has; `otel:FILE`, events `gen_ai.evaluation.result` as OTLP in JSON lines, which a
    collector reads; or `inspect:FILE`, scores for `inspect_ai.scorer.precomputed_scores`, a record
    for each item. Raises SetupError where the file exists or MLflow has no such trace, and
    MissingExtra without mlflow.

    >>> import judgebench as jb
    >>> jb.export(jb.decide(jb.open_run("runs/small")), "otel:events.jsonl")
    72
    """
    kind, _, place = to.partition(":")
    if kind not in _WRITERS or not place:
        allowed = "mlflow:URI, otel:FILE, inspect:FILE"
        raise SetupError(Problem("is no place to write verdicts to", "", None, "to", to, allowed))
    verdicts = [*_exported(decisions)]
    _WRITERS[kind](verdicts, place)
    return len(verdicts)


def _exported(decisions: Decisions) -> Iterator[ExportedVerdict]:
    study = decisions.study
    if study is None:
        raise SetupError("the decisions were made without a study")
    metrics = {metric.id: metric for metric in study.rubric.metrics}
    judges = {judge.name: judge for judge in study.real_judges}
    for decision in decisions:
        judge, metric = judges[decision.judge], metrics[decision.metric]
        values = _values(metric)
        rows = zip(study.answers, *judge_labels(study, judge, metric), strict=True)
        asked = study.asked(judge, metric)
        for answer, label, status in compress(rows, asked.tolist()):
            verdict = judge.verdicts[answer.item_id]
            yield ExportedVerdict(
                answer.item_id, judge.name, metric.id, label, values.get(label), status,
                verdict.rationale or verdict.reason, decision.shown,
            )  # fmt: skip


def _values(metric: Metric) -> dict[str, float]:
    """The number of each label, where labels have an order."""
    if metric.kind == "nominal":
        return {}
    return dict(zip(metric.label_texts, map(float, metric.values), strict=True))


def _to_mlflow(verdicts: Sequence[ExportedVerdict], uri: str) -> None:
    """Log each verdict as feedback of an LLM judge on a trace."""
    try:
        import mlflow
        from mlflow.entities import AssessmentError, AssessmentSource
    except ImportError as error:
        raise MissingExtra("mlflow:", "mlflow", "mlflow-skinny") from error
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        for verdict in verdicts:
            unread = None if verdict.label else AssessmentError(verdict.status, verdict.explanation)
            mlflow.log_feedback(
                trace_id=verdict.item_id,
                name=verdict.metric,
                value=verdict.label or None,
                source=AssessmentSource(source_type="LLM_JUDGE", source_id=verdict.judge),
                error=unread,
                rationale=verdict.explanation or None,
                metadata={"judgebench.outcome": verdict.outcome, "judgebench.version": VERSION},
            )
    except mlflow.exceptions.MlflowException as error:
        message = f"takes no assessment of this item, whose id must be that of a trace: {error}"
        raise SetupError(Problem(message, uri, found=verdict.item_id)) from error
    finally:
        mlflow.set_tracking_uri(before)


def _to_otel(verdicts: Sequence[ExportedVerdict], file: str) -> None:
    """Write OTLP logs, a line for each verdict (opentelemetry.io, Semantic conventions for
    generative AI events, and OTLP file exporter)."""
    now = str(time.time_ns())

    def lines() -> Iterator[Mapping[str, Any]]:
        for verdict in verdicts:
            texts = {
                "gen_ai.evaluation.name": verdict.metric,
                "gen_ai.evaluation.score.label": verdict.label,
                "gen_ai.evaluation.explanation": verdict.explanation,
                "gen_ai.response.id": verdict.item_id,
                "error.type": "" if verdict.label else verdict.status,
                "judgebench.judge": verdict.judge,
                "judgebench.outcome": verdict.outcome,
            }
            attributes: list[dict[str, Any]] = [
                {"key": key, "value": {"stringValue": text}} for key, text in texts.items() if text
            ]
            if verdict.value is not None:
                number = {"doubleValue": verdict.value}
                attributes.append({"key": "gen_ai.evaluation.score.value", "value": number})
            record = {"timeUnixNano": now, "eventName": _EVENT, "attributes": attributes}
            scope = {"name": "judgebench", "version": VERSION}
            logs = {"scope": scope, "logRecords": [record]}
            yield {"resourceLogs": [{"resource": {}, "scopeLogs": [logs]}]}

    _write(lines(), file)


def _to_inspect(verdicts: Sequence[ExportedVerdict], file: str) -> None:
    """Write a record for each item, with a value for each metric and judge."""
    records: dict[str, dict[str, Any]] = {}
    several = len({verdict.judge for verdict in verdicts}) > 1
    for verdict in verdicts:
        key = f"{verdict.judge}: {verdict.metric}" if several else verdict.metric
        empty: dict[str, Any] = {"id": verdict.item_id, "value": {}, "metadata": {}}
        record = records.setdefault(verdict.item_id, empty)
        record["value"][key] = verdict.label or None if verdict.value is None else verdict.value
        about = {"judge": verdict.judge, "label": verdict.label, "outcome": verdict.outcome}
        record["metadata"][key] = {**about, "explanation": verdict.explanation}
    _write(records.values(), file)


def _write(lines: Any, file: str) -> None:
    path = Path(file)
    with all_or_nothing(path.parent, [path]):
        write_atomically(path, "".join(map(to_line, lines)).encode())


_WRITERS: Mapping[str, Callable[[Sequence[ExportedVerdict], str], None]] = {
    "mlflow": _to_mlflow, "otel": _to_otel, "inspect": _to_inspect,
}  # fmt: skip
