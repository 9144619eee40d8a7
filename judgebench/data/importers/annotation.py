"""Exports of tools in which people annotate: Label Studio and Argilla.

An annotator's choice or rating, a user's response, is a human label. A prediction of a model, a
suggestion of an agent, is a verdict. Tasks that nobody has labelled yet are answers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from judgebench.data.guess import roles_by_name
from judgebench.data.importers.log import Content, Given, Log, are_labels, label_text, sample_reader

LABEL_STUDIO = "Label Studio exports (JSON, JSON_MIN, CSV)"
_OF_ANNOTATION = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time")
_IDS = {"id", *_OF_ANNOTATION, "agreement"}
_SINGLE = ("choices", "rating", "taxonomy", "number", "pairwise")
_SEVERAL = "several"
Row = Mapping[str, Any]


def read_label_studio(found: Content) -> Log | None:
    """The export in a file; None where it holds none. Raises SetupError."""
    tasks = found.objects("data")
    if tasks and isinstance(tasks[0]["data"], dict):
        numbered = [{"id": n, "annotations": (), **task} for n, task in enumerate(tasks, start=1)]
        return _log(numbered, "Label Studio, JSON", found)
    if rows := found.objects("annotation_id", "annotator", "lead_time"):
        tool, controls = "Label Studio, JSON_MIN", _controls_by_place(rows)
    elif found.kind == "table" and set(_OF_ANNOTATION) <= set(found.value[0]):
        rows = [{name: _cell(cell) for name, cell in row.items()} for row in found.value]
        tool, controls = "Label Studio, CSV", _controls_by_values(rows)
    else:
        return None
    log = _log(_rebuilt(rows, controls), tool, found)
    log.notes += [
        f"columns taken for labels: {', '.join(controls) or 'none'}; this export does not say "
        "which are, the JSON export does",
        "this export lacks predictions and the annotations that were skipped",
    ]
    return log


# The whole export ------------------------------------------------------------------------------


def _log(tasks: Sequence[Row], tool: str, found: Content) -> Log:
    log = Log(tool)
    found.check_once((task.get("id") for task in tasks), "has several tasks with one id")
    several = {  # controls where somebody chose several things at once
        str(result.get("from_name"))
        for task in tasks
        for who in (*task["annotations"], *_whole(task.get("predictions")))
        for result in who.get("result") or ()
        if _value(result.get("value"), str(result.get("type"))) == _SEVERAL
    }
    read = sample_reader([task["data"] for task in tasks], log.notes)
    for task in tasks:
        sample = read(task["data"], str(task.get("id")))
        log.samples.append(sample)
        for annotation in _latest(task["annotations"], log.left_out):
            who = _person(annotation.get("completed_by"))
            results = annotation.get("result") or ()
            sample.labels += _given(who, results, several, log.left_out)
        predictions = task.get("predictions") or ()
        for prediction in _whole(predictions):
            who = str(prediction.get("model_version") or "prediction")
            results = prediction.get("result") or ()
            sample.verdicts += _given(who, results, several, log.left_out)
        if named := len(predictions) - len(_whole(predictions)):
            reason = "predictions of which the export has the id alone (a snapshot has all of them)"
            log.left_out[reason] += named
    return log


def _whole(predictions: Sequence[Any] | None) -> list[Row]:
    return [p for p in predictions or () if isinstance(p, dict)]


def _latest(annotations: Iterable[Row], left_out: Counter[str]) -> Iterator[Row]:
    """The last annotation of each person that was not skipped and holds anything."""
    latest: dict[str, Row] = {}
    for annotation in sorted(annotations, key=lambda a: str(a.get("updated_at") or "")):
        if annotation.get("was_cancelled"):
            left_out["annotations that were skipped"] += 1
        elif not annotation.get("result"):
            left_out["annotations without any result"] += 1
        else:
            who = _person(annotation.get("completed_by"))
            if who in latest:
                left_out["earlier annotations of one task by the same person"] += 1
            latest[who] = annotation
    yield from latest.values()


def _person(who: Any) -> str:
    if isinstance(who, dict):
        return str(who.get("email") or who.get("id") or "annotator")
    return "annotator" if who in (None, "") else label_text(who)


def _given(
    who: str, results: Iterable[Row], several: set[str], left_out: Counter[str]
) -> Iterator[Given]:
    for result in results:
        kind, name = str(result.get("type")), str(result.get("from_name"))
        label = _value(result.get("value"), kind)
        if name in several:
            left_out[f"values of {name!r}, where several can be chosen"] += 1
        elif label is None:
            left_out[f"values of {name!r} ({kind}), which are no label of the answer"] += 1
        else:
            yield Given(who, name, label)


def _value(value: Any, kind: str) -> str | None:
    """The one thing that was chosen; None where the kind of control holds no labels."""
    if kind not in _SINGLE or not isinstance(value, dict):
        return None
    chosen = value.get(kind, value.get("selected"))
    if isinstance(chosen, list):
        if len(chosen) > 1:
            return _SEVERAL
        chosen = chosen[0] if chosen else None
    if isinstance(chosen, list):  # a path in a taxonomy
        chosen = " / ".join(map(str, chosen))
    return label_text(chosen) or None


# JSON_MIN and CSV: a row per annotation, without predictions and what was skipped ---------------


def _rebuilt(rows: Sequence[Row], controls: Sequence[str]) -> list[dict[str, Any]]:
    """The tasks as the whole export has them."""
    tasks: dict[str, dict[str, Any]] = {}
    for row in rows:
        data = {name: cell for name, cell in row.items() if name not in (*controls, *_IDS)}
        new: dict[str, Any] = {"id": row.get("id"), "data": data, "annotations": []}
        task = tasks.setdefault(label_text(row.get("id")), new)
        if row.get("annotation_id"):  # else nobody has labelled it yet
            results = [made for name in controls for made in _results(name, row.get(name))]
            about = {"completed_by": row["annotator"], "updated_at": row.get("updated_at")}
            task["annotations"].append({**about, "result": results})
    return list(tasks.values())


def _results(name: str, cell: Any) -> Iterator[dict[str, Any]]:
    """Rebuild what the export made one cell of: a text for a single choice, else a list or an
    object."""
    for value in cell if isinstance(cell, list) else [cell]:
        if isinstance(value, dict):
            kinds = [key for key in value if isinstance(value[key], list) or key in _SINGLE]
            yield {"from_name": name, "type": (kinds or ["of an unknown kind"])[0], "value": value}
        elif value not in (None, ""):
            yield {"from_name": name, "type": "choices", "value": {"choices": [value]}}


def _controls_by_place(rows: Sequence[Row]) -> list[str]:
    """The columns between the task's id and the annotator: the task's own columns come first."""
    found: dict[str, None] = {}
    for row in rows:
        names = list(row)
        found |= dict.fromkeys(names[names.index("id") + 1 : names.index("annotator")])
    return [name for name in found if _values(rows, name) is not None]


def _controls_by_values(rows: Sequence[Row]) -> list[str]:
    """The columns of few different values, of which one at least occurs twice, that no usual name
    of a task's column has."""
    names = [name for name in rows[0] if name not in _IDS]
    usual = set(roles_by_name(names).values())
    found = {name: _values(rows, name) for name in names if name not in usual}
    return [n for n, texts in found.items() if texts is not None and len(set(texts)) < len(texts)]


def _values(rows: Sequence[Row], name: str) -> list[str] | None:
    """The values of a column, as texts; None where its texts are no labels."""
    texts = [str(row.get(name)) for row in rows if row.get(name)]
    plain = [str(row.get(name)) for row in rows if isinstance(row.get(name), str)]
    return texts if are_labels(plain) else None


def _cell(cell: str) -> Any:
    if cell[:1] in ("[", "{"):
        with suppress(ValueError):
            return json.loads(cell)
    return cell


ARGILLA = "Argilla records (to_json, to_list(flatten=True) as JSON)"
_SAID, _BY, _STATUS = ".responses", ".responses.users", ".responses.status"
_SUGGESTED, _AGENT = ".suggestion", ".suggestion.agent"


class _Value(NamedTuple):
    """The value that a user or an agent gave to one question; `status` is None where the file
    lacks it."""

    question: str
    by: str
    value: Any
    status: str | None = None


def read_argilla(found: Content) -> Log | None:
    """The records in a file; None where it holds none. Raises SetupError."""
    if records := found.objects("fields", "responses", "suggestions"):
        notes = [
            "to_json leaves out which responses were submitted: drafts and discarded ones may be "
            "among the labels. The list of records.to_list(flatten=True), saved as JSON, says it"
        ]
        said = [_nested(record) for record in records]
        columns = [{**record["fields"], **(record.get("metadata") or {})} for record in records]
    else:
        records, notes = found.objects("_server_id", "status"), []
        if not any(key.endswith((_SAID, _SUGGESTED)) for key in (records or [{}])[0]):
            return None
        said = [_nested(_unflattened(record)) for record in records]
        columns = [_record_columns(record) for record in records]
    names = [str(record.get("id") or record.get("_server_id")) for record in records]
    found.check_once(names, "has several records with one id")
    log = Log("Argilla", notes=notes)
    make = sample_reader(columns, log.notes)
    no_labels = _no_labels([value for responses, agents in said for value in (*responses, *agents)])
    for name, row, (responses, agents) in zip(names, columns, said, strict=True):
        sample = make(row, name)
        log.samples.append(sample)
        for value in responses:
            if value.status not in (None, "submitted"):
                log.left_out[f"responses with the status {value.status}"] += 1
            else:
                sample.labels += _values_given(value, no_labels, log.left_out)
        for value in agents:
            sample.verdicts += _values_given(value, no_labels, log.left_out)
    return log


def _values_given(
    value: _Value, no_labels: Mapping[str, str], left_out: Counter[str]
) -> Iterator[Given]:
    if why := no_labels.get(value.question):
        left_out[f"values of {value.question!r}, {why}"] += 1
    elif label := label_text(value.value):
        yield Given(value.by, value.question, label)


def _no_labels(values: Sequence[_Value]) -> dict[str, str]:
    """The questions whose values are no labels, and why."""
    why = {}
    by_question: dict[str, list[Any]] = {}
    for value in values:
        by_question.setdefault(value.question, []).append(value.value)
    for question, found in by_question.items():
        if any(isinstance(value, list | dict) for value in found):
            why[question] = "which are lists"
        elif not are_labels(map(label_text, found)):
            why[question] = "which are texts"
    return why


def _nested(record: Mapping[str, Any]) -> tuple[list[_Value], list[_Value]]:
    responses = [
        _Value(question, str(given.get("user_id")), given.get("value"), given.get("status"))
        for question, values in (record["responses"] or {}).items()
        for given in values
    ]
    agents = [
        _Value(question, str(given.get("agent") or "suggestion"), given.get("value"))
        for question, given in (record["suggestions"] or {}).items()
    ]
    return responses, agents


def _unflattened(record: Mapping[str, Any]) -> dict[str, Any]:
    """The responses and suggestions of a flat record as a nested one has them."""
    responses, suggestions = dict[str, Any](), dict[str, Any]()
    for key, values in record.items():
        if key.endswith(_SAID) and values:
            name = key.removesuffix(_SAID)
            about = zip(values, record[f"{name}{_BY}"], record[f"{name}{_STATUS}"], strict=True)
            responses[name] = [{"value": v, "user_id": who, "status": s} for v, who, s in about]
        elif key.endswith(_SUGGESTED) and values is not None:
            name = key.removesuffix(_SUGGESTED)
            suggestions[name] = {"value": values, "agent": record.get(f"{name}{_AGENT}")}
    return {"responses": responses, "suggestions": suggestions}


def _record_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields and metadata, which a flat record has beside each other."""
    ours = (_SAID, _BY, _STATUS, _SUGGESTED, f"{_SUGGESTED}.score", _AGENT)
    return {
        key: value
        for key, value in record.items()
        if key not in ("id", "status", "_server_id", "score") and not key.endswith(ours)
    }
