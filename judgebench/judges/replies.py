"""Read a judge's reply: text in, labels out, or the reason why it cannot be read. Never a guess.

A judge may quote whatever the text that it judges says, a verdict too. So a verdict counts only
where it is the reply: the whole of it, or the end of it (`result`), in exactly the form that was
asked for, and only where the text judged does not hold the same verdict. A label counts only where
it is one of the metric's spellings as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgebench.errors import shorten
from judgebench.prompt import ReplyKind
from judgebench.records import Answer
from judgebench.rubric import Metric, Rubric, fold, normalise

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
    kind: ReplyKind, text: str, rubric: Rubric, thresholds: Thresholds | None = None,
    judged: Answer | None = None,
) -> Reading:  # fmt: skip
    """The labels in `text`, a whole reply. `thresholds` are needed for the kinds `likert` and
    `result`.

    A verdict that also stands in `judged` may be a quotation, and is none. Where an engine made
    sure that the reply meets its schema there is nothing to quote in, and `judged` is None.
    """
    if looks_like_refusal(text):
        return _REFUSAL
    try:
        said = without_reasoning(text)
        if looks_like_refusal(said):
            return _REFUSAL
        values = _VALUES[kind](said, rubric)
    except ValueError as error:
        return Reading(problems=(str(error),))
    labels, problems, verdict = {}, [], []
    for metric in rubric.metrics:
        try:
            labels[metric.id] = label = _label(metric, values, thresholds)
        except ValueError as error:
            problems.append(f"{metric.id}: {error}")
            continue
        value = values[metric.id]
        verdict.append((metric, value, f"{_score(value):g}" if thresholds else label))
    if verdict and judged and _holds(judged, verdict):
        return Reading(problems=("the text judged holds the same verdict: this may quote it",))
    return Reading(labels, tuple(problems))


def without_reasoning(text: str) -> str:
    """What a reply says after its reasoning, which is one block before all else. Some chat
    templates begin the block themselves, so that the reply holds only its end."""
    said = text.strip().removeprefix("\ufeff").strip()
    marks = [] if said[:1] in "{`" else list(_REASONING.finditer(said))
    if not marks:
        return said
    *begins, end = marks
    whole = [(0, end.group().replace("/", ""))]
    if "/" not in end.group() or [(m.start(), m.group()) for m in begins] not in ([], whole):
        raise ValueError("the reply's reasoning is not one closed block before all else")
    return said[end.end() :].strip()


def is_only_reasoning(text: str) -> bool:
    """Whether a reply begins its reasoning and never ends it."""
    begun = _REASONING.match(text.lstrip("\ufeff \t\r\n"))
    return begun is not None and _REASONING.search(text, begun.end()) is None


_REASONING = re.compile(r"</?(?:think|thinking|reasoning|seed:think)>|\[/?THINK\]|◁/?think▷")


def _holds(judged: Answer, verdict: Sequence[tuple[Metric, Any, str]]) -> bool:
    """Whether what the judge was shown holds this verdict, in any form of reply and any order.

    Each metric comes with its value as it was written, and with the label or number that it means.
    """
    shown = _squeezed("\n".join([judged.text, judged.question, judged.reference or ""]))
    return all(
        any(
            _squeezed(form.format(title=title, value=value)) in shown
            for form in _FORMS
            for title in (metric.id, metric.title)
            for value in values
        )
        for metric, *values in verdict
    )


def _squeezed(text: str) -> str:
    """`text` without what a copy of it may change: spaces, case, kinds of quotes, Markdown."""
    return fold(text).translate(_UNSTABLE)


_UNSTABLE = str.maketrans("'", '"', " *`\\")
_FORMS = (
    '"{title}":"{value}"', '"{title}":{value}', "{title}:[{value}]", "[RESULT]{value}",
    "[RESULT]({value}",
)  # fmt: skip


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
    if not isinstance(value, str | _Number) or not _SCORE.fullmatch(str(value)):
        raise ValueError(f"{_short(value)} is no score")
    return float(str(value))


_SCORE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def _json_values(text: str, rubric: Rubric) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in json_object(text).items():
        metric = rubric.find(key)
        if metric is not None:
            _add(values, metric, value)
    return values


def _add(values: dict[str, Any], metric: Metric, value: Any) -> None:
    if metric.id in values:
        raise ValueError(f"the reply gives {metric.id} two values")
    values[metric.id] = value


def json_object(text: str) -> dict[str, Any]:
    """The JSON object that `text` is, from its first to its last character or in one code fence.

    Raises ValueError that says what else `text` is.
    """
    text = _unfenced(text)
    if not text.startswith("{"):
        found = "does not begin with its" if "{" in text else "holds no"
        raise ValueError(f"the reply {found} JSON object")
    try:
        value, end = _DECODER.raw_decode(text)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("the reply holds a damaged JSON object") from None
    if text[end:].strip():
        raise ValueError("the reply goes on after its JSON object")
    assert isinstance(value, dict)
    return value


def _unfenced(text: str) -> str:
    fenced = _FENCED.fullmatch(text)
    return fenced[1].strip() if fenced else text


@dataclass(frozen=True, repr=False)
class _Number:
    """A number of JSON, as it was written: `4e0` is no score, nor is it the label "4"."""

    written: str

    def __repr__(self) -> str:
        return self.written


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the reply gives one key two values")
    return found


_FENCED = re.compile(r"```[^`\n]*\n(.*?)```", re.DOTALL)
_DECODER = json.JSONDecoder(
    object_pairs_hook=_each_once, parse_int=_Number, parse_float=_Number, parse_constant=_Number
)


def _bracket_values(text: str, rubric: Rubric) -> dict[str, Any]:
    """Lines `Title: [label]` and nothing else. A list's mark and bold type may be around them."""
    values: dict[str, Any] = {}
    for line in filter(str.strip, _unfenced(text).splitlines()):
        title, _, label = _LIST_MARK.sub("", line.replace("**", "").strip()).rpartition("[")
        metric = rubric.find(title.rstrip().removesuffix(":"))
        if metric is None or not title.rstrip().endswith(":") or not label.endswith("]"):
            raise ValueError(f"{_short(line)} is no line of the form 'Criterion: [label]'")
        _add(values, metric, label.removesuffix("]"))
    return values


_LIST_MARK = re.compile(r"(?:[-*•]|[0-9]{1,2}[.)])[ \t]+")


def _result_value(text: str, rubric: Rubric) -> dict[str, Any]:
    before, mark, after = text.rpartition("[RESULT]")
    if "[result]" in fold(before):
        raise ValueError("the reply holds [RESULT] more than once")
    score = after.strip()
    score = score[1:-1].strip() if score[:1] + score[-1:] == "()" else score
    if not mark or not _SCORE.fullmatch(score):
        raise ValueError("the reply does not end with [RESULT] and a score")
    return {rubric.metrics[0].id: score}


_VALUES: Mapping[ReplyKind, Callable[[str, Rubric], dict[str, Any]]] = {
    "json": _json_values, "rationale": _json_values, "likert": _json_values,
    "brackets": _bracket_values, "result": _result_value,
}  # fmt: skip

_REFUSALS = re.compile(
    r"^(?:i(?:'m| am) (?:sorry|afraid|unable|not able)|(?:sorry|apologies),|i apologi[sz]e"
    r"|i (?:can(?:not|'t| not)|won't|will not|must decline)|as an ai\b|unfortunately,? i can)"
)


def looks_like_refusal(text: str) -> bool:
    """Whether a reply begins as refusals do."""
    return _REFUSALS.match(normalise(text[:200])) is not None


def _short(value: Any) -> str:
    # A list or object is nested as deep as its author pleases.
    return "a nested value" if isinstance(value, list | dict) else shorten(value, most=60)
