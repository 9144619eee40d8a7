"""Read a judge's reply: text in, labels out, or the reason why it cannot be read. Never a guess.

A label counts only where it is one of the metric's spellings as a whole. Anything that could be
read in two ways (a key twice with two values, two JSON objects, two scores) is unreadable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judgebench.prompt import ReplyKind
from judgebench.rubric import Metric, Rubric, normalise

LOWEST_SCORE, HIGHEST_SCORE = 1, 5

# metric id -> label text -> the lowest score that earns it
Thresholds = Mapping[str, Mapping[str, float]]

RATIONALE = "rationale"
_RATIONALE_CHARACTERS = 600  # bounds the reply, so that the labels after it are not cut off


@dataclass(frozen=True)
class Reading:
    """The labels of a reply by metric, as far as they could be read; `problems` says why others
    could not (empty where all could)."""

    labels: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    refusal: bool = False

    @property
    def reason(self) -> str:
        return "; ".join(self.problems)


_REFUSAL = Reading(problems=("the reply declines to judge",), refusal=True)


def reply_schema(kind: ReplyKind, rubric: Rubric) -> dict[str, Any] | None:
    """The JSON schema that a reply of this kind must meet; None where it is not JSON."""
    if kind in ("brackets", "result"):
        return None
    score = {"type": "integer", "enum": list(range(LOWEST_SCORE, HIGHEST_SCORE + 1))}
    fields = {m.id: score if kind == "likert" else m.json_field() for m in rubric.metrics}
    if kind == "rationale":
        rationale = {"type": "string", "maxLength": _RATIONALE_CHARACTERS}
        fields = {RATIONALE: rationale, **fields}
    return {
        "type": "object", "properties": fields, "required": list(fields),
        "additionalProperties": False,
    }  # fmt: skip


def read_reply(
    kind: ReplyKind, text: str, rubric: Rubric, thresholds: Thresholds | None = None
) -> Reading:
    """The labels in `text`. `thresholds` are needed for the kinds `likert` and `result`."""
    try:
        values = _VALUES[kind](text, rubric)
    except ValueError as error:
        return _REFUSAL if looks_like_refusal(text) else Reading(problems=(str(error),))
    labels, problems = {}, []
    for metric in rubric.metrics:
        try:
            labels[metric.id] = _label(metric, values, thresholds)
        except ValueError as error:
            problems.append(f"{metric.id}: {error}")
    refused = not labels and looks_like_refusal(text)
    return _REFUSAL if refused else Reading(labels, tuple(problems))


def _label(metric: Metric, values: Mapping[str, Any], thresholds: Thresholds | None) -> str:
    if metric.id not in values:
        raise ValueError("is missing")
    value = values[metric.id]
    if thresholds is not None:
        return label_for_score(metric, _score(value), thresholds[metric.id])
    label = metric.parse(value) if isinstance(value, str) else None
    if label is None:
        raise ValueError(f"{_short(value)} is none of its labels")
    return label


def label_for_score(metric: Metric, score: float, lowest: Mapping[str, float]) -> str:
    """The label with the highest threshold that `score` reaches."""
    reached = [(threshold, label) for label, threshold in lowest.items() if score >= threshold]
    if not reached or score > HIGHEST_SCORE:
        raise ValueError(f"the score {score:g} is outside {LOWEST_SCORE}-{HIGHEST_SCORE}")
    return max(reached)[1]


def _score(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{_short(value)} is no score")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{_short(value)} is no score") from None


def _json_values(text: str, rubric: Rubric) -> dict[str, Any]:
    objects = list(_json_objects(text))
    if len(objects) != 1:
        found = "no JSON object" if not objects else f"{len(objects)} JSON objects"
        raise ValueError(f"the reply holds {found}")
    values: dict[str, Any] = {}
    for key, value in objects[0]:
        metric = rubric.find(key)
        if metric is None:
            continue
        nested = isinstance(value, list)
        if metric.id in values and (nested or values[metric.id] != value):
            raise ValueError(f"the reply gives {metric.id} two values")
        values[metric.id] = value
    return values


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that a duplicate key is noticed."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs)
_OBJECT_BEGINS = re.compile(r'\{\s*["}]')


def _json_objects(text: str) -> Iterator[_Pairs]:
    """Every outermost JSON object in `text`, whatever surrounds it.

    Raises ValueError for one that is not closed: what it holds is not a verdict.
    """
    end = 0
    while begin := _OBJECT_BEGINS.search(text, end):
        try:
            value, end = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            raise ValueError("the reply holds a damaged JSON object") from None
        yield value


def _bracket_values(text: str, rubric: Rubric) -> dict[str, Any]:
    """`Title: [label]` lines; else, where there is one bracket per metric, brackets in order."""
    named: dict[str, Any] = {}
    for line in text.splitlines():
        metric, end = None, 0
        for bracket in _BRACKET.finditer(line):
            metric = _titled(line[end : bracket.start()], rubric) or metric
            end = bracket.end()
            if metric and named.setdefault(metric.id, bracket[1]) != bracket[1]:
                raise ValueError(f"the reply gives {metric.id} two values")
    if named:
        return named
    found = [bracket[1] for bracket in _BRACKET.finditer(text)]
    if len(found) != len(rubric.metrics):
        raise ValueError(f"the reply holds {len(found)} brackets for {len(rubric.metrics)} metrics")
    return {m.id: value for m, value in zip(rubric.metrics, found, strict=True)}


def _titled(text: str, rubric: Rubric) -> Metric | None:
    """The metric whose title or id precedes a bracket, with or without a list's mark."""
    title = text.strip(" \t:=-–*_|,;")
    return rubric.find(title) or rubric.find(title.lstrip("0123456789.)#-* \t"))


def _result_value(text: str, rubric: Rubric) -> dict[str, Any]:
    scores = set()
    for match in _RESULT.finditer(text):
        if re.search(r"\d", match["rest"]):
            raise ValueError("the reply holds another number after its score")
        scores.add(float(match["score"]))
    if len(scores) != 1:
        raise ValueError(f"the reply holds {len(scores)} different scores after [RESULT]")
    return {rubric.metrics[0].id: scores.pop()}


_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RESULT = re.compile(
    r"\[RESULT\]\s*(?:\(\s*)?(?P<score>\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*5\b)?(?P<rest>.*)"
)


_VALUES: Mapping[ReplyKind, Callable[[str, Rubric], dict[str, Any]]] = {
    "json": _json_values, "rationale": _json_values, "likert": _json_values,
    "brackets": _bracket_values, "result": _result_value,
}  # fmt: skip

_REFUSALS = re.compile(
    r"^(?:i(?:'m| am) (?:sorry|afraid|unable|not able)|(?:sorry|apologies),|i apologi[sz]e"
    r"|i (?:can(?:not|'t| not)|won't|will not|must decline)|as an ai\b|unfortunately,? i can)"
)


def looks_like_refusal(text: str) -> bool:
    """Whether a reply without any label begins as refusals do."""
    return _REFUSALS.match(normalise(text[:200])) is not None


def _short(value: Any) -> str:
    if isinstance(value, list):  # of JSON, nested as deep as its author pleases
        return "a nested value"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
