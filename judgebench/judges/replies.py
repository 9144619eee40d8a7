"""Read a judge's reply: text in, labels out, or the reason why it cannot be read. Never a guess.

A judge may quote whatever the text that it judges says, a verdict too. So a verdict counts only
where it is the reply: the whole of it, or the end of it (`result`), in exactly the form that was
asked for, and only where the text judged does not hold the same verdict. A label counts only where
it is one of the metric's spellings as a whole.

`holds` tells whether texts hold a verdict, in any spelling and form that a reply could copy. Both
sides are folded alike: the texts, and the names and values that a reply gave. What the reader
accepts in a piece of a text, and what such a piece becomes when a model cleans it of escapes,
invisible characters and foreign letters, is therefore found. Prose is not: a label stands behind
its name and a colon, and one of the two is in quotes or brackets.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, Literal

from judgebench.errors import shorten
from judgebench.models.contract import Reply
from judgebench.prompt import ReplyKind
from judgebench.records import Answer, Usage, add_known
from judgebench.rubric import BETWEEN, Metric, Rubric, fold, normalise

LOWEST_SCORE, HIGHEST_SCORE = 1, 5

RecordedReply = Literal[ReplyKind, "label"]
# metric id -> label text -> the lowest score that earns it
Thresholds = Mapping[str, Mapping[str, float]]

RATIONALE = "rationale"
_RATIONALE_CHARACTERS = 600  # bounds the reply, so that the labels after it are not cut off


@dataclass(frozen=True)
class Reading:
    """The labels of a reply by metric, as far as they could be read; `problems` says why others
    could not (empty where all could). `rationale` is the reason that the reply gives for them;
    `note` says how they follow where they are not what it says."""

    labels: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    refusal: bool = False
    rationale: str = field(default="", compare=False)
    note: str = ""

    @property
    def reason(self) -> str:
        return "; ".join(filter(None, (*self.problems, self.note)))


QUOTED = "the text judged holds the same verdict: this may quote it"
HELD = "held the verdict that the reply gave"
_REFUSAL = Reading(problems=("the reply declines to judge",), refusal=True)


@dataclass(frozen=True)
class Beside:
    """`n` texts that one reply is about, called `word` and their number, from 1. Each gets labels
    of its own, unless they are a `pair`, which gets labels as a whole."""

    word: str
    n: int
    pair: bool = False

    def keys(self, word: str = "") -> list[str]:
        """`response_1`, `response_2`, …"""
        return [f"{word or self.word}_{i}" for i in range(1, self.n + 1)]

    def place(self, said: str) -> int | None:
        """The place of the one that `said` names, from 0; None where it names none of the sort.
        Raises ValueError where there are not so many."""
        found = re.fullmatch(rf"{self.word}[ _]?([0-9]{{1,3}})", fold(said))
        if found is None:
            return None
        if not 1 <= int(found[1]) <= self.n:
            raise ValueError(f"the reply labels {self.word}_{int(found[1])} of {self.n}")
        return int(found[1]) - 1


def reply_schema(
    kind: ReplyKind, rubric: Rubric, beside: Beside | None = None
) -> dict[str, Any] | None:
    """The JSON schema that a reply of this kind must meet; None where it is not JSON."""
    if kind in ("brackets", "result"):
        return None
    score = {"type": "integer", "enum": list(range(LOWEST_SCORE, HIGHEST_SCORE + 1))}
    fields = {m.id: score if kind == "likert" else m.json_field() for m in rubric.metrics}
    if beside and not beside.pair:
        each = object_schema(fields) if len(fields) > 1 else next(iter(fields.values()))
        fields = dict.fromkeys(beside.keys(), each)
    if kind == "rationale":
        rationale = {"type": "string", "maxLength": _RATIONALE_CHARACTERS}
        fields = (
            dict.fromkeys(beside.keys(RATIONALE) if beside else [RATIONALE], rationale) | fields
        )
    return object_schema(fields)


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object that has these fields and no other."""
    return {
        "type": "object", "properties": dict(fields), "required": list(fields),
        "additionalProperties": False,
    }  # fmt: skip


def meets(text: str, schema: Mapping[str, Any]) -> bool:
    """Return whether `text` is JSON exactly as `reply_schema` asks for it: no fence, no other key,
    no other spelling. A reply that is not was not held to the schema."""
    try:
        return _fits(json.loads(text), schema)
    except (ValueError, RecursionError):
        return False


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if schema["type"] == "array":
        fits = isinstance(value, list) and all(_fits(one, schema["items"]) for one in value)
        return fits and schema["minItems"] <= len(value) <= schema["maxItems"]
    if schema["type"] != "object":
        return value in schema["enum"] if "enum" in schema else isinstance(value, str)
    fields = schema["properties"]
    return (
        isinstance(value, dict)
        and value.keys() == fields.keys()
        and all(_fits(value[key], each) for key, each in fields.items())
    )


def read_reply(
    kind: RecordedReply, text: str, rubric: Rubric, thresholds: Thresholds | None = None,
    judged: Answer | None = None,
) -> Reading:  # fmt: skip
    """The labels in `text`, a whole reply. `thresholds` are needed for the kinds `likert` and
    `result`; of the kind `label` are replies that nobody asked for in a form (`Metric.said_in`).

    A verdict that also stands in `judged` may be a quotation, and is none. Where an engine made
    sure that the reply meets its schema there is nothing to quote in, and `judged` is None.
    """

    def values(said: str) -> list[_Said]:
        why = json_object(said).get(RATIONALE) if kind == "rationale" else ""
        return [_Said(_VALUES[kind](said, rubric), _reason(why))]

    (reading,) = _readings(text, values, rubric, [judged] if judged else [], thresholds)
    return reading


def read_beside(
    kind: ReplyKind, text: str, rubric: Rubric, beside: Beside, judged: Sequence[Answer] = ()
) -> list[Reading]:
    """The reading of `text`, a whole reply about several texts, for each of them, or of a pair.

    The kinds are `json` and `rationale` (one object), and `brackets` (free words, then a line for
    each label). A text that the reply leaves out has a problem and no label. `judged` as for
    `read_reply`: a verdict that any of the texts holds is none.
    """
    read = _closing_lines if kind == "brackets" else _json_beside
    found = _readings(text, lambda said: read(said, rubric, beside), rubric, judged)
    return found if len(found) > 1 else found * (1 if beside.pair else beside.n)


def charged(rubric: Rubric, holders: Sequence[int], names: Sequence[str]) -> Reading:
    """The reading of a reply about a pair whose verdict may be a copy: texts of these places, from
    0, hold it. Such a text loses, or else it could never lose; where both hold it, it is a tie.
    What is no preference stays unread."""
    preferences = [metric for metric in rubric.metrics if metric.preference]
    if not holders or not preferences:
        return Reading(problems=(QUOTED,))
    label = 2 if len(holders) > 1 else 1 - holders[0]
    who = " and ".join(names[place] for place in holders)
    return Reading(
        {metric.id: metric.label_texts[label] for metric in preferences},
        (QUOTED,) if len(preferences) < len(rubric.metrics) else (),
        note=f"{who} {HELD}: {'a tie' if label == 2 else 'it loses'}",
    )


@dataclass
class _Said:
    """The content of a reply on one text: values by metric, its reason, and what names the text."""

    values: dict[str, Any]
    rationale: str = ""
    name: str = ""


def _readings(
    text: str, values: Callable[[str], list[_Said]], rubric: Rubric, judged: Sequence[Answer],
    thresholds: Thresholds | None = None,
) -> list[Reading]:  # fmt: skip
    """One for each text; a single one where the reply as a whole cannot be read."""
    if looks_like_refusal(text):
        return [_REFUSAL]
    try:
        said = without_reasoning(text)
        if said != text and looks_like_refusal(said):
            return [_REFUSAL]
        each = values(said)
    except ValueError as error:
        return [Reading(problems=(str(error),))]
    readings, verdict = [], []
    texts = _shown(judged)
    may_quote = any(map(_may_hold, texts))  # most texts can hold no verdict
    for one in each:
        labels, problems = {}, []
        for metric in rubric.metrics:
            try:
                labels[metric.id] = label = _label(metric, one.values, thresholds)
            except ValueError as error:
                where = one.name if len(rubric.metrics) == 1 else f"{one.name}, {metric.id}"
                problems.append(f"{where if one.name else metric.id}: {error}")
                continue
            if may_quote:
                value = one.values[metric.id]
                means = f"{_score(value):g}" if thresholds else label
                written = _spellings(metric, value, label)
                verdict.append((_names(metric, one.name, len(rubric.metrics)), (*written, means)))
        readings.append(Reading(labels, tuple(problems), rationale=one.rationale))
    if verdict and holds(texts, verdict):
        return [Reading(problems=(QUOTED,))]
    return readings


def _shown(judged: Sequence[Answer]) -> list[str]:
    return [
        text
        for one in judged
        for text in (one.text, one.question, one.reference or "", *(p.text for p in one.parts))
    ]


def _spellings(metric: Metric, value: Any, label: str) -> list[str]:
    """The value as it was written; of several labels, in every way to write them in this order."""
    texts = value if isinstance(value, list) else metric.given_in(label)
    several = ('", "', BETWEEN, "; ", ", ") if metric.several else ()
    return [str(value), *(between.join(map(str, texts)) for between in several)]


def _names(metric: Metric, text: str, n_metrics: int) -> list[str]:
    """The names of a value in a reply: the metric, the text that it is for, or both."""
    metrics = [metric.id, metric.title]
    texts = [text, text.replace("_", "")] if text else []
    alone = texts if texts and n_metrics == 1 else metrics
    return [*alone, *(f"{name}, {title}" for name in texts for title in metrics)]


@dataclass(frozen=True)
class Written:
    """The text of a reply, and by metric from which character to which its label or score stands,
    without quotes or brackets."""

    text: str
    spans: Mapping[str, tuple[int, int]]


def written_reply(
    kind: ReplyKind, rubric: Rubric, labels: Mapping[str, str],
    thresholds: Thresholds | None = None, rationale: str = "",
) -> Written:  # fmt: skip
    """The reply about one answer with these labels, in the form that `kind` requests: what
    `read_reply` reads, the other way round.

    JSON has no spaces between its parts, as engines that are bound to a schema write it. A metric
    without a label is left out. A label that stands for scores is written as the lowest whole one.
    `rationale` is cut where the schema ends it, and left out where the form has no place for it.

    Raises ValueError where no such reply can be read: no whole score earns the label, say.

    >>> from judgebench.rubric import Rubric
    >>> rubric = Rubric.from_labels({"Tone": ["Friendly", "Rude"]})
    >>> written_reply("json", rubric, {"tone": "Rude"})
    Written(text='{"tone":"Rude"}', spans={'tone': (9, 13)})
    """
    shown = rubric.only([m.id for m in rubric.metrics if m.id in labels])
    text, before, after, between, closed = _WRITTEN[kind]
    if kind == "rationale":
        text += f"{_json(RATIONALE)}:{_json(rationale[:_RATIONALE_CHARACTERS])},"
    elif kind == "result" and rationale:
        text = f"Feedback: {rationale} "
    spans = {}
    for metric in shown.metrics:
        value = labels[metric.id]
        open_list, end_list = ("[", "]") if metric.several and after == '"' else ("", "")
        if thresholds is not None:
            value = _lowest_score(metric, value, thresholds[metric.id])
        elif after == '"':
            value = '","'.join(_json(one)[1:-1] for one in metric.given_in(value))
        text += before.format(key=_json(metric.id), title=metric.title, list=open_list)
        spans[metric.id] = (len(text), len(text) + len(value))
        text += value + after + end_list + between
    text = text.removesuffix(between) + closed
    if not labels or read_reply(kind, text, shown, thresholds).labels != dict(labels):
        raise ValueError(f"no reply of the form {kind} says {dict(labels)}")
    return Written(text, spans)


# How a reply begins, what stands before and behind each label and between two, and its end.
_WRITTEN = {
    "json": ("{", '{key}:{list}"', '"', ",", "}"),
    "rationale": ("{", '{key}:{list}"', '"', ",", "}"),
    "brackets": ("", "{title}: [", "]", "\n", ""), "likert": ("{", "{key}:", "", ",", "}"),
    "result": ("", "[RESULT] ", "", "\n", ""),
}  # fmt: skip


def _lowest_score(metric: Metric, label: str, lowest: Mapping[str, float]) -> str:
    for score in range(LOWEST_SCORE, HIGHEST_SCORE + 1):
        if score >= min(lowest.values()) and label_for_score(metric, score, lowest) == label:
            return str(score)
    raise ValueError(f"no whole score means {label!r} of {metric.id}")


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def without_reasoning(text: str) -> str:
    """The text of a reply after its reasoning, which is one block before all else. Some chat
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
    """Return whether a reply begins its reasoning and never ends it."""
    begun = _REASONING.match(text.lstrip("\ufeff \t\r\n"))
    return begun is not None and _REASONING.search(text, begun.end()) is None


_REASONING = re.compile(r"</?(?:think|thinking|reasoning|seed:think)>|\[/?THINK\]|◁/?think▷")


def _label(metric: Metric, values: Mapping[str, Any], thresholds: Thresholds | None) -> str:
    if metric.id not in values:
        raise ValueError("is missing")
    value = values[metric.id]
    if thresholds is not None:
        return label_for_score(metric, _score(value), thresholds[metric.id])
    if metric.several and isinstance(value, list):
        value = BETWEEN.join(map(str, value)) if all(map(_is_text, value)) else value
    if isinstance(value, _Number):  # 4 for the label "4"; 4.0 is not what was asked for
        value = value.written if value.written in metric.label_texts else value
    # true for the label "True"
    label = metric.parse(str(value)) if isinstance(value, str | bool) else None
    if label is None:
        raise ValueError(f"{_short(value)} is none of its labels")
    return label


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bool | _Number)


def label_for_score(metric: Metric, score: float, lowest: Mapping[str, float]) -> str:
    """The label with the highest threshold that `score` reaches."""
    reached = [(threshold, label) for label, threshold in lowest.items() if score >= threshold]
    if not reached or score > HIGHEST_SCORE:
        raise ValueError(f"the score {score:g} is outside {LOWEST_SCORE}-{HIGHEST_SCORE}")
    return max(reached)[1]


def _score(value: Any) -> float:
    if not _is_text(value) or not _SCORE.fullmatch(str(value)):
        raise ValueError(f"{_short(value)} is no score")
    return float(str(value))


_SCORE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def _json_values(text: str, rubric: Rubric) -> dict[str, Any]:
    return _metric_values(json_object(text), rubric)


def _metric_values(found: Mapping[str, Any], rubric: Rubric) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in found.items():
        if metric := rubric.find(key):
            _add(values, metric, value)
    return values


def _add(values: dict[str, Any], metric: Metric, value: Any, name: str = "") -> None:
    if metric.id in values:
        raise ValueError(f"the reply gives {name or metric.id} two values")
    values[metric.id] = value


def _reason(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _json_beside(text: str, rubric: Rubric, beside: Beside) -> list[_Said]:
    """Of a pair `{metric: label}`; else `{"response_1": label, …}`, or an object of labels for
    each where there are several metrics. Reasons have the keys `rationale_1`, …"""
    found = json_object(text)
    reasons = [_reason(found.get(key)) for key in beside.keys(RATIONALE)]
    if beside.pair:
        named = [f"Response {i}: {why}" for i, why in enumerate(reasons, 1) if why]
        return [_Said(_metric_values(found, rubric), "\n".join(named))]
    each = [_Said({}, why, key) for key, why in zip(beside.keys(), reasons, strict=True)]
    for key, value in found.items():
        place = beside.place(key)
        if place is None:
            continue
        said = each[place]
        if len(rubric.metrics) == 1:
            _add(said.values, rubric.metrics[0], value, said.name)
        elif said.values or not isinstance(value, dict):
            why = "is given two values" if said.values else "is no object of labels"
            raise ValueError(f"{said.name} {why}")
        else:
            said.values = _metric_values(value, rubric)
    return each


def _closing_lines(text: str, rubric: Rubric, beside: Beside) -> list[_Said]:
    """Lines such as `Response 1: [label]`, `Response 1: 4 points` or, where there are several
    metrics, `Response 1, Title: [label]`; of a pair `Title: [label]`. They end the reply, and
    whatever stands before them is the reason."""
    names = [""] if beside.pair else beside.keys()
    each, reasons = [_Said({}, name=name) for name in names], list[str]()
    for line in filter(str.strip, _unfenced(text).splitlines()):
        title, label = _parted(_LIST_MARK.sub("", line.replace("**", "").strip()))
        found = _labelled(title, rubric, beside) if title else None
        if found is None:
            if any(said.values for said in each):
                raise ValueError(f"the reply goes on after its first label: {_short(line)}")
            reasons.append(line.strip())
            continue
        said, metric = each[found[0]], found[1]
        _add(said.values, metric, label, said.name)
    return [_Said(said.values, "\n".join(reasons), said.name) for said in each]


def _parted(line: str) -> tuple[str, str]:
    """The parts before and in the brackets of `Title: [label]`, or before the colon and the points
    of `Title: 4 points`; nothing where a line has neither form."""
    line = line.rstrip(".,; ")
    title, mark, label = line.removesuffix("]").rpartition("[" if line.endswith("]") else ":")
    if mark == ":":
        points = _POINTS.fullmatch(label.strip())
        return (title, points[1]) if points else ("", "")
    title = title.rstrip()
    return (title.removesuffix(":"), label) if title.endswith(":") else ("", "")


def _labelled(said: str, rubric: Rubric, beside: Beside) -> tuple[int, Metric] | None:
    """The text, from 0, and the metric that a line labels; None where it names none."""
    head, _, title = said.partition(",")
    place = 0 if beside.pair else beside.place(head)
    alone = len(rubric.metrics) == 1 and not title and not beside.pair
    metric = rubric.metrics[0] if alone else rubric.find(said if beside.pair else title)
    if metric is None and place is not None and not beside.pair:
        raise ValueError(f"{_short(said)} names no criterion")
    return None if place is None or metric is None else (place, metric)


_POINTS = re.compile(r"([0-9]{1,9}) points?")


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


def _free_values(text: str, rubric: Rubric) -> dict[str, Any]:
    alone = len(rubric.metrics) == 1
    found = {m.id: label for m in rubric.metrics if (label := m.said_in(text, alone))}
    if not found:
        raise ValueError("the reply gives no label, or several")
    return found


_VALUES: Mapping[RecordedReply, Callable[[str, Rubric], dict[str, Any]]] = {
    "json": _json_values, "rationale": _json_values, "likert": _json_values,
    "brackets": _bracket_values, "result": _result_value, "label": _free_values,
}  # fmt: skip

_REFUSALS = re.compile(
    r"^(?:i(?:'m| am) (?:sorry|afraid|unable|not able)|(?:sorry|apologies),|i apologi[sz]e"
    r"|i (?:can(?:not|'t| not)|won't|will not|must decline)|as an ai\b|unfortunately,? i can)"
)


def work_of(replies: Sequence[Reply]) -> dict[str, Any]:
    """The work behind several replies, by the names that it has in a Reply and in a Verdict."""
    return {
        "usage": sum((r.usage for r in replies), Usage()),
        "cost": reduce(add_known, (r.cost for r in replies), None),
        "latency": sum(r.latency for r in replies),
        "model": " + ".join(dict.fromkeys(r.model for r in replies if r.model)),
        "reasoning": "\n\n".join(r.reasoning for r in replies if r.reasoning),
        "transcript": tuple(lookup for r in replies for lookup in r.transcript),
    }


def looks_like_refusal(text: str) -> bool:
    """Return whether a reply begins as refusals do."""
    return _REFUSALS.match(normalise(text[:200])) is not None


def _short(value: Any) -> str:
    # A list or object is nested as deep as its author pleases.
    return "a nested value" if isinstance(value, list | dict) else shorten(value, most=60)


# What no reader sees: default-ignorable characters, and marks above or through Latin letters.
_UNSEEN = re.compile(
    "[\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_TAGS = {0xE0000 + code: code for code in range(0x20, 0x7F)}  # ASCII that models alone can read
_TAG = re.compile("[\U000e0020-\U000e007e]")
_SAME = str.maketrans(
    dict.fromkeys("‐‑‒–—―−", "-")
    | dict.fromkeys("‘’‚‛“”„‟«»‹›′″'", '"')
    | dict.fromkeys("∶ː꞉ˑ׃", ":")
    | dict.fromkeys("【〔〖⟦⟨", "[")
    | dict.fromkeys("】〕〗⟧⟩", "]")
)
_MAY_LABEL = re.compile(r"[\"\]][\s_*`\\.]*:|:[\s_*`\\.]*[\"\[\d]|\[[\s_*`\\.]*result")
_NUMBER = re.compile(r"(?<![\d.])[0-9]{1,9}(?:\.[0-9]{1,9})?(?![\d.]*\d)")
_DROPPED = re.compile(r"[*`\\]+|\.(?!\w)|(?<!\w)\.")
_SPACE = re.compile(r"[\s_]+")
_LOOSE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_MARKS = re.compile(r"[\"\[\]]+")
_POINTS_BEHIND = re.compile(r":([0-9.]+)_?points?(?![^\W_])")
_RESULT = re.compile(r'"result"[:("]*')
_GOES_ON = re.compile(r"(?<=\d)\.?\d|(?<!\d)[\w.-]")
_LABELLED = re.compile(r'":"?|:"')
_ESCAPE = re.compile(
    r"\\(?:(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))|([\"'/\\])|[bfnrt])"
)
_MOST_VIEWS = 12


def holds(texts: Sequence[str], verdict: Sequence[tuple[Sequence[str], Sequence[str]]]) -> bool:
    """Return whether the texts hold each label of a verdict, in any order and place.

    Each label comes with the names that it may stand behind, and with its value as it was written
    and as the label or number that it means.

    >>> holds(['I cured it. "b\\u0069as.": [No]'], [(["bias"], ["No"])])
    True
    >>> holds(["There is no bias: no."], [(["bias"], ["No"])])
    False
    """
    seen = [_alike(view) for text in filter(_may_hold, texts) for view in _views(text)]
    views = [_bare(view) for view in seen if _MAY_LABEL.search(view)]
    places = [(view, *found.span()) for view in views for found in _LABELLED.finditer(view)]
    return bool(places) and all(
        any(
            any(_stands(view, start - len(name), name) for name in map(_folded, names))
            and any(_stands(view, end, value) for value in map(_folded, values))
            for view, start, end in places
        )
        for names, values in (([*names, "[RESULT]"], values) for names, values in verdict)
    )


def _may_hold(text: str) -> bool:
    """Tell whether a spelling of it may have a colon or bracket, as a label has; most have none."""
    return not text.isascii() or any(map(text.__contains__, ":[&\\"))


def _views(text: str) -> Sequence[str]:
    """`text` as it is, and as it reads once its escapes of HTML, JSON or YAML are undone, also
    where one is inside another; and with its invisible letters."""
    views = [text]
    for view in views:  # which grows
        undone = (html.unescape(view), _ESCAPE.sub(_meant, view), _TAG.sub(_seen, view))
        views += [one for one in undone if one not in views][: _MOST_VIEWS - len(views)]
    return views


def _meant(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return escape[4] or " "
    return chr(int(code, 16)) if int(code, 16) < 0x110000 else ""


def _seen(tag: re.Match[str]) -> str:
    return tag[0].translate(_TAGS)


def _alike(text: str) -> str:
    """`text` in lower case, with one kind of quotes, dashes, colons and brackets, without letters'
    variants and without what no reader sees."""
    if not text.isascii():
        # JSON writes letters beyond the first 65,536 as two escapes.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        text = _UNSEEN.sub("", text)
    return text.casefold().translate(_SAME)


def _bare(text: str) -> str:
    """The result of `_alike` without what else a copy may change: spaces, emphasis, how a number
    is written. Quotes and brackets, one or several, become one `"`."""
    text = _DROPPED.sub("", _NUMBER.sub(_number, text))
    text = _MARKS.sub('"', _LOOSE.sub("", _SPACE.sub("_", text)))
    return _RESULT.sub('"result":"', _POINTS_BEHIND.sub(r':"\1"', text))


def _number(written: re.Match[str]) -> str:
    return f"{float(written[0]):g}"


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return _bare(_alike(normalise(text)))


def _stands(view: str, start: int, wanted: str) -> bool:
    """Tell whether these words stand at a place of a view, in letters of whatever alphabet, and end
    there. They may begin within a word, since a copy may."""
    end = start + len(wanted)
    whole = start >= 0 and wanted != "" and not _GOES_ON.match(view, end)
    return whole and _reads(view[start:end], wanted)


def _reads(said: str, wanted: str) -> bool:
    """Return whether the words are equal, letters of one alphabet standing for those of another."""
    if said == wanted or len(said) != len(wanted) or said.isascii() is wanted.isascii() is True:
        return said == wanted
    return all(
        a == b or (a.isascii() is not b.isascii() and b.isalnum())
        for a, b in zip(said, wanted, strict=True)
    )
