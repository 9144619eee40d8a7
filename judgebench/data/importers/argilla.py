"""Records of Argilla 2: `records.to_json` and `records.to_list(flatten=True)` as JSON.

A user's response is a human label. A suggestion is an agent's, and so a verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from judgebench.data.importers.content import Content
from judgebench.data.importers.log import Given, Log, are_labels, label_text, sample_reader

ABOUT = "Argilla records (to_json, to_list(flatten=True) as JSON)"
_SAID, _BY, _STATUS = ".responses", ".responses.users", ".responses.status"
_SUGGESTED, _AGENT = ".suggestion", ".suggestion.agent"


class _Value(NamedTuple):
    """What a user or an agent gave to one question; `status` is None where the file lacks it."""

    question: str
    by: str
    value: Any
    status: str | None = None


def read(found: Content) -> Log | None:
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
        said = [_flat(record) for record in records]
        columns = [_columns(record) for record in records]
    names = [str(record.get("id") or record.get("_server_id")) for record in records]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise found.fail("has several records with one id", found=", ".join(twice[:5]))
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
                sample.labels += _given(value, no_labels, log.left_out)
        for value in agents:
            sample.verdicts += _given(value, no_labels, log.left_out)
    return log


def _given(value: _Value, no_labels: Mapping[str, str], left_out: Counter[str]) -> Iterator[Given]:
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


def _flat(record: Mapping[str, Any]) -> tuple[list[_Value], list[_Value]]:
    responses, agents = [], []
    for key, values in record.items():
        if key.endswith(_SAID) and values:
            question = key.removesuffix(_SAID)
            people, states = record[f"{question}{_BY}"], record[f"{question}{_STATUS}"]
            for value, who, status in zip(values, people, states, strict=True):
                responses.append(_Value(question, str(who), value, status))
        elif key.endswith(_SUGGESTED) and values is not None:
            question = key.removesuffix(_SUGGESTED)
            who = str(record.get(f"{question}{_AGENT}") or "suggestion")
            agents.append(_Value(question, who, values))
    return responses, agents


def _columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields and metadata, which a flat record has beside each other."""
    ours = (_SAID, _BY, _STATUS, _SUGGESTED, f"{_SUGGESTED}.score", _AGENT)
    return {
        key: value
        for key, value in record.items()
        if key not in ("id", "status", "_server_id", "score") and not key.endswith(ours)
    }
