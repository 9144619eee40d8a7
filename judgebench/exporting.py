"""Verdicts, each with the outcome of its judge, written where teams look: MLflow, OpenTelemetry and
inspect.

The id of an item is the id of what was judged there: a trace, a response, a sample.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import all_or_nothing, check_new, write_lines
from judgebench.studies.item_table import judge_labels
from judgebench.version import VERSION

if TYPE_CHECKING:
    from judgebench.decisions.decision import Decisions

Attributes = Mapping[str, Any]  # of the event of a verdict, by the names of OpenTelemetry


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
    kind, place = check_place(to)
    verdicts = [*_attributes(decisions)]
    if kind == "mlflow":
        _to_mlflow(verdicts, place)
    else:
        path = Path(place)
        with all_or_nothing(path.parent, [path]):
            write_lines(path, map(_event, verdicts) if kind == "otel" else _scores(verdicts))
    return len(verdicts)


def check_place(to: str) -> tuple[str, str]:
    """The kind of a place for verdicts, and where it is. Raises SetupError where nothing can be
    written there, and MissingExtra without mlflow."""
    kind, _, place = to.partition(":")
    if kind not in ("mlflow", "otel", "inspect") or not place:
        problem = "is no place for verdicts; pages and tables: `judgebench report --to FOLDER`"
        raise SetupError(
            Problem(problem, field="to", found=to, allowed="mlflow:URI, otel:FILE, inspect:FILE")
        )
    if kind != "mlflow":
        check_new(Path(place))
    elif find_spec("mlflow") is None:
        raise MissingExtra("mlflow:", "mlflow", "mlflow-skinny")
    return kind, place


def _attributes(decisions: Decisions) -> Iterator[Attributes]:
    """Yield what is known of each verdict: the number of a label where labels have an order, the
    error where there is no label."""
    if (study := decisions.study) is None:
        raise SetupError("the decisions were made without a study")
    metrics = {metric.id: metric for metric in study.rubric.metrics}
    judges = {judge.name: judge for judge in study.real_judges}
    for decision in decisions:
        judge, metric = judges[decision.judge], metrics[decision.metric]
        numbers = () if metric.kind == "nominal" else map(float, metric.values)
        values = dict(zip(metric.label_texts, numbers, strict=False))
        rows = zip(study.answers, *judge_labels(study, judge, metric), strict=True)
        for answer, label, status in compress(rows, study.asked(judge, metric)):
            verdict = judge.verdicts[answer.item_id]
            attributes = {
                "gen_ai.response.id": answer.item_id,
                "gen_ai.evaluation.name": metric.id,
                "gen_ai.evaluation.score.label": label,
                "gen_ai.evaluation.score.value": values.get(label),
                "gen_ai.evaluation.explanation": verdict.rationale or verdict.reason,
                "error.type": "" if label else status,
                "judgebench.judge": judge.name,
                "judgebench.outcome": decision.shown,
            }
            yield {key: value for key, value in attributes.items() if value not in ("", None)}


def _to_mlflow(verdicts: Iterable[Attributes], uri: str) -> None:
    """Log each verdict as feedback of an LLM judge on a trace."""
    import mlflow
    from mlflow.entities import AssessmentError, AssessmentSource

    mlflow.set_tracking_uri(uri)
    for verdict in verdicts:
        reason, why = verdict.get("error.type"), verdict.get("gen_ai.evaluation.explanation")
        try:
            mlflow.log_feedback(
                trace_id=verdict["gen_ai.response.id"],
                name=verdict["gen_ai.evaluation.name"],
                value=verdict.get("gen_ai.evaluation.score.label"),
                source=AssessmentSource("LLM_JUDGE", verdict["judgebench.judge"]),
                error=AssessmentError(reason, why) if reason else None,
                rationale=why,
                metadata={"judgebench.outcome": verdict["judgebench.outcome"]},
            )
        except mlflow.exceptions.MlflowException as error:
            message = f"takes no assessment of this item, whose id must be that of a trace: {error}"
            raise SetupError(Problem(message, uri, found=verdict["gen_ai.response.id"])) from error


def _event(verdict: Attributes) -> Attributes:
    """Return OTLP logs with one record (opentelemetry.io, Semantic conventions for generative AI
    events, and OTLP file exporter)."""
    attributes = [
        {"key": key, "value": {"stringValue" if isinstance(value, str) else "doubleValue": value}}
        for key, value in verdict.items()
    ]
    record = {
        "timeUnixNano": str(time.time_ns()),
        "eventName": "gen_ai.evaluation.result",
        "attributes": attributes,
    }
    scope = {"scope": {"name": "judgebench", "version": VERSION}, "logRecords": [record]}
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [scope]}]}


def _scores(verdicts: Iterable[Attributes]) -> Iterable[Attributes]:
    """Return a record of inspect for each item, with a value for each judge and metric."""
    records: dict[str, dict[str, Any]] = {}
    for verdict in verdicts:
        item_id = verdict["gen_ai.response.id"]
        key = f"{verdict['judgebench.judge']}: {verdict['gen_ai.evaluation.name']}"
        record = records.setdefault(item_id, {"id": item_id, "value": {}, "metadata": {}})
        label = verdict.get("gen_ai.evaluation.score.label")
        record["value"][key] = verdict.get("gen_ai.evaluation.score.value", label)
        record["metadata"][key] = verdict
    return records.values()
