"""Read a judge's reply: text in, labels out, or the reason why it cannot be read. Never a guess.

A judge may quote whatever the text that it judges says, a verdict too. So a verdict counts only
where it is the reply: the whole of it, or the end of it (`result`), in exactly the form that was
asked for, and only where the text judged does not hold the same verdict. A label counts only where
it is one of the metric's spellings as a whole.

Every form gives names with values; `Beside.meaning` says which text and metric a name means. A text
holds a verdict where its names and values stand in it, in any spelling and form that a reply could
copy. Both sides are folded alike: what the reader accepts in a piece of a text, and what such a
piece becomes when a model cleans it of escapes, invisible characters and foreign letters, is
therefore found. Prose is not: a label stands behind its name and a colon, and one of the two is in
quotes or brackets.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import compress, starmap
from typing import TYPE_CHECKING, Any, Literal

from judgebench.errors import shorten
from judgebench.models.contract import Reply
from judgebench.prompt import ReplyKind
from judgebench.records import Answer, Usage, add_known
from judgebench.rubric import BETWEEN, Metric, Rubric, fold, normalise
from judgebench.text import counted

if TYPE_CHECKING:
    from judgebench.studies.study import Study

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
HELD, _LOSES = "held the verdict that the reply gave", "it loses"
_CHARGE = re.compile(f"(?:^|; )([^;]+) {HELD}: ({_LOSES}|a tie)")
_REFUSAL = Reading(problems=("the reply declines to judge",), refusal=True)


@dataclass(frozen=True)
class Beside:
    """`n` texts that one reply is about, called `word` and their number, from 1. Each gets labels
    of its own, unless they are a `pair`, which gets labels as a whole. Without a word it is one
    text alone."""

    word: str = ""
    n: int = 1
    pair: bool = False

    @property
    def names(self) -> list[str]:
        """`response_1`, `response_2`, … of texts that get labels of their own; else one, empty."""
        return self.keys(self.word) if self.word and not self.pair else [""]

    def keys(self, word: str) -> list[str]:
        """`rationale_1`, `rationale_2`, …; of a text alone `rationale`."""
        return [f"{word}_{i}" for i in range(1, self.n + 1)] if self.word else [word]

    def label_name(self, place: int, metric: Metric) -> str:
        """`response_1, tone`, or `tone` of a pair or a text alone."""
        return f"{self.names[place]}, {metric.id}".removeprefix(", ")

    def meaning(self, name: str, rubric: Rubric) -> tuple[int, Metric] | None:
        """The place of a text, from 0, and the metric that a name in a reply means: `Response 2,
        Tone`, or the half of it that tells; None where it means none. Raises ValueError where there
        are not so many texts."""
        place, title = 0, name
        if self.names != [""]:
            head, _, title = name.partition(",")
            number = re.fullmatch(rf"{self.word}[ _]?([0-9]{{1,3}})", fold(head))
            if number is None:
                return None
            place = int(number[1]) - 1
            if not 0 <= place < self.n:
                raise ValueError(f"the reply labels {self.word}_{int(number[1])} of {self.n}")
            title = title or (rubric.metrics[0].id if len(rubric.metrics) == 1 else "")
        metric = rubric.find(title)
        return (place, metric) if metric else None


ALONE = Beside()


def reply_schema(kind: ReplyKind, rubric: Rubric, beside: Beside = ALONE) -> dict[str, Any] | None:
    """The JSON schema that a reply of this kind must meet; None where it is not JSON."""
    if kind in ("brackets", "result"):
        return None
    fields = {metric.id: metric.json_field() for metric in rubric.metrics}
    if beside.names != [""]:
        each = object_schema(fields) if len(fields) > 1 else next(iter(fields.values()))
        fields = dict.fromkeys(beside.names, each)
    if kind == "rationale":
        rationale = {"type": "string", "maxLength": _RATIONALE_CHARACTERS}
        fields = dict.fromkeys(beside.keys(RATIONALE), rationale) | fields
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
    match schema:
        case {"enum": allowed}:
            return value in allowed
        case {"items": each}:
            of_items = isinstance(value, list) and 0 < len(value) <= len(each["enum"])
            return of_items and all(_fits(item, each) for item in value)
        case {"properties": fields}:
            is_object = isinstance(value, dict) and value.keys() == fields.keys()
            return is_object and all(_fits(value[key], each) for key, each in fields.items())
    return isinstance(value, str)


def read_reply(
    kind: RecordedReply, text: str, rubric: Rubric, beside: Beside = ALONE,
    judged: Sequence[Answer] = (), thresholds: Thresholds | None = None,
) -> list[Reading]:  # fmt: skip
    """The labels in `text`, a whole reply, for each text that gets labels of its own.

    `thresholds` are needed for the kind `result`; of the kind `label` are replies that nobody asked
    for in a form (`Metric.said_in`). A text that the reply leaves out has a
    problem and no label.

    A verdict that also stands in `judged` may be a quotation, and is none. Where an engine made
    sure that the reply meets its schema there is nothing to quote in, and `judged` is empty.
    """
    names = beside.names
    if looks_like_refusal(text):
        return [_REFUSAL] * len(names)
    try:
        reply = without_reasoning(text)
        if looks_like_refusal(reply):
            return [_REFUSAL] * len(names)
        found, reasons = _READERS[kind](reply, rubric, beside)
        values = _by_meaning(found, rubric, beside)
    except ValueError as error:
        return [Reading(problems=(str(error),))] * len(names)
    readings, verdict = [], []
    for place, name in enumerate(names):
        labels, problems = {}, []
        for metric in rubric.metrics:
            try:
                value = values.get((place, metric.id))
                labels[metric.id] = label = _label(metric, value, thresholds)
            except ValueError as error:
                problems.append(f"{beside.label_name(place, metric)}: {error}")
                continue
            written = value[0] if isinstance(value, list) else value
            meant = () if thresholds else metric.given_in(label)[:1]
            verdict.append(
                ((metric.id, metric.title, name, name.replace("_", "")), (str(written), *meant))
            )
        readings.append(Reading(labels, tuple(problems), rationale=reasons[place]))
    if verdict and _hold(_shown(judged), starmap(_pattern, verdict)):
        return [Reading(problems=(QUOTED,))] * len(names)
    return readings


def charged(rubric: Rubric, names: Sequence[str], held: Sequence[bool]) -> Reading:
    """The reading of a reply about a pair whose verdict may be a copy: the texts of these names
    that `held` it, in the order in which they were shown. Such a text loses, or else it could never
    lose; where both hold it, it is a tie. What is no preference stays unread."""
    preferences = [metric for metric in rubric.metrics if metric.preference]
    if not any(held) or not preferences:
        return Reading(problems=(QUOTED,))
    place, ending = (2, "a tie") if all(held) else (held.index(False), _LOSES)
    return Reading(
        {metric.id: metric.label_texts[place] for metric in preferences},
        (QUOTED,) if len(preferences) < len(rubric.metrics) else (),
        note="; ".join(f"{name} {HELD}: {ending}" for name in compress(names, held)),
    )


def charged_notes(study: Study) -> Iterator[str]:
    """A sentence for each judge and system with texts that were `charged`: how many comparisons
    they lost or tied for it."""
    for judge in study.judges:
        of_pairs = "orders" in (judge.about or {}).get("places", ())
        verdicts = judge.verdicts.values() if of_pairs else ()
        counts = Counter(charge for v in verdicts for charge in {*_CHARGE.findall(v.reason)})
        for (name, ending), n in counts.items():
            outcome = "lost" if ending == _LOSES else "tied"
            yield f"{judge.name}: {counted(n, 'comparison')} {outcome} by {name}: its text {HELD}."


def _shown(judged: Sequence[Answer]) -> list[str]:
    return [
        text
        for one in judged
        for text in (one.text, one.question, one.reference or "", *(p.text for p in one.parts))
    ]


def written_reply(
    kind: ReplyKind, rubric: Rubric, labels: Mapping[str, str], rationale: str = ""
) -> str:
    """The reply about one answer with these labels, in JSON or in brackets: what `read_reply`
    reads, the other way round.

    JSON has no spaces between its parts, as engines that are bound to a schema write it. A metric
    without a label is left out. `rationale` is cut where the schema ends it.

    >>> from judgebench.rubric import Rubric
    >>> rubric = Rubric.from_labels({"Tone": ["Friendly", "Rude"]})
    >>> written_reply("json", rubric, {"tone": "Rude"})
    '{"tone":"Rude"}'
    """
    metrics = [metric for metric in rubric.metrics if metric.id in labels]
    if kind == "brackets":
        return "\n".join(f"{metric.title}: [{labels[metric.id]}]" for metric in metrics)
    reason = {RATIONALE: rationale[:_RATIONALE_CHARACTERS]} if kind == "rationale" else {}
    given = {m.id: m.given_in(labels[m.id]) if m.several else labels[m.id] for m in metrics}
    return json.dumps(reason | given, ensure_ascii=False, separators=(",", ":"))


def label_spans(text: str) -> list[tuple[int, int]]:
    """From which character to which the labels stand in a written JSON reply, without quotes or
    brackets around them.

    >>> label_spans('{"rationale":"It is.","tone":"Rude","safe":"No"}')
    [(30, 34), (44, 46)]
    """
    return [match.span(2) for match in _WRITTEN.finditer(text)]


_STRING = r'"(?:[^"\\]|\\.)*"'
# Between the labels of a list, and of a list alone, stand a quote, a comma and a quote.
_WRITTEN = re.compile(
    rf'(?<=[{{,])(?!"{RATIONALE}":){_STRING}:(\[)?"((?:[^"\\]|\\.|(?(1)","|(?!)))*)"'
)


def without_reasoning(text: str) -> str:
    """The text of a reply after its reasoning, which is one block before all else. Some chat
    templates begin the block themselves, so that the reply holds only its end."""
    said = text.strip().removeprefix("\ufeff").strip()
    marks = [] if said[:1] in "{`" else _REASONING.findall(said)
    if not marks:
        return said
    *begins, end = marks
    begin = end.replace("/", "")
    is_block = not begins or (begins == [begin] and said.startswith(begin))
    if begin == end or not is_block:
        raise ValueError("the reply's reasoning is not one closed block before all else")
    return said.rpartition(end)[2].strip()


_REASONING = re.compile(r"</?(?:think|thinking|reasoning|seed:think)>|\[/?THINK\]|◁/?think▷")


def _label(metric: Metric, value: Any, thresholds: Thresholds | None) -> str:
    if value is None:
        raise ValueError("is missing")
    if thresholds is not None:
        return label_for_score(metric, _score(value), thresholds[metric.id])
    if metric.several and isinstance(value, list) and all(map(_is_text, value)):
        value = BETWEEN.join(map(str, value))
    label = metric.parse(str(value)) if _is_text(value) else None
    if label is None:
        raise ValueError(f"{_short(value)} is none of its labels")
    return label


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bool)  # true for the label "True"


def label_for_score(metric: Metric, score: float, lowest: Mapping[str, float]) -> str:
    """The label with the highest threshold that `score` reaches."""
    reached = [(threshold, label) for label, threshold in lowest.items() if score >= threshold]
    if not reached or score > HIGHEST_SCORE:
        raise ValueError(f"the score {score:g} is outside {LOWEST_SCORE}-{HIGHEST_SCORE}")
    return max(reached)[1]


def _score(value: Any) -> float:
    if not isinstance(value, str) or not _SCORE.fullmatch(value):
        raise ValueError(f"{_short(value)} is no score")
    return float(value)


_SCORE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


# What a reader finds in a reply: values by name, and the reason for each text's labels.
_Found = tuple[Iterable[tuple[str, Any]], Sequence[str]]


def _in_json(text: str, rubric: Rubric, beside: Beside) -> _Found:
    """Of a pair or a text alone `{metric: label}`; else `{"response_1": label, …}`, or an object of
    labels for each. Reasons have the keys `rationale_1`, …"""
    found, nested = json_object(text), beside.names != [""]
    values = [
        (f"{key}, {name}" if name else key, each)
        for key, value in found.items()
        for name, each in (value.items() if nested and isinstance(value, dict) else [("", value)])
    ]
    whys = [why if isinstance(why := found.get(k), str) else "" for k in beside.keys(RATIONALE)]
    reasons = [why.strip() for why in whys]
    if beside.pair:
        reasons = ["\n".join(f"Response {i}: {why}" for i, why in enumerate(reasons, 1) if why)]
    return values, reasons


def _in_lines(text: str, rubric: Rubric, beside: Beside) -> _Found:
    """Lines such as `Title: [label]`, `Response 1: 4 points` or `Response 1, Title: [label]`. A
    list's mark and bold type may be around them. On texts that stand side by side, they end the
    reply, and whatever stands before them is the reason; on a text alone there is nothing else."""
    values, reasons = list[tuple[str, Any]](), list[str]()
    for line in filter(str.strip, _unfenced(text).splitlines()):
        match = _LINE.fullmatch(_LIST_MARK.sub("", line.replace("**", "").strip()))
        if match and beside.meaning(match[1], rubric):
            values.append((match[1], match[2]))
        elif values or not beside.word:
            raise ValueError(f"{_short(line)} is no line of the form 'Criterion: [label]'")
        else:
            reasons.append(line.strip())
    return values, ["\n".join(reasons)] * len(beside.names)


_LINE = re.compile(r"(.+):[ \t]*(\[[^\[]*\]|[0-9]{1,9}(?= points?))(?: points?)?[.,; ]*")
_LIST_MARK = re.compile(r"(?:[-*•]|[0-9]{1,2}[.)])[ \t]+")


def _at_the_end(text: str, rubric: Rubric, beside: Beside) -> _Found:
    match = _AT_THE_END.fullmatch(text)
    if match is None or "[result]" in fold(match[1]):
        raise ValueError("the reply does not end with one [RESULT] and a score")
    return [(rubric.metrics[0].id, match[3])], [""]


_AT_THE_END = re.compile(
    r"(.*)\[RESULT\]\s*(?:(\()\s*)?([0-9]+(?:\.[0-9]+)?)(?(2)\s*\))", re.DOTALL
)


def _in_free_words(text: str, rubric: Rubric, beside: Beside) -> _Found:
    alone = len(rubric.metrics) == 1
    found = [(m.id, label) for m in rubric.metrics if (label := m.said_in(text, alone))]
    if not found:
        raise ValueError("the reply gives no label, or several")
    return found, [""]


_READERS: Mapping[RecordedReply, Callable[[str, Rubric, Beside], _Found]] = {
    "json": _in_json, "rationale": _in_json, "brackets": _in_lines, "result": _at_the_end,
    "label": _in_free_words,
}  # fmt: skip


def _by_meaning(
    values: Iterable[tuple[str, Any]], rubric: Rubric, beside: Beside
) -> dict[tuple[int, str], Any]:
    """Values by the place of a text and the metric."""
    found = dict[tuple[int, str], Any]()
    for name, value in values:
        if meaning := beside.meaning(name, rubric):
            place, metric = meaning
            if (place, metric.id) in found:
                raise ValueError(f"the reply gives {beside.label_name(place, metric)} two values")
            found[place, metric.id] = value
    return found


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


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the reply gives one key two values")
    return found


_FENCED = re.compile(r"```[^`\n]*\n(.*?)```", re.DOTALL)
_DECODER = json.JSONDecoder(  # a number stays as it was written: `4e0` is no score
    object_pairs_hook=_each_once, parse_int=str, parse_float=str, parse_constant=str
)

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
_GOES_ON = r"(?!(?<=\d)\.?\d|(?<!\d)[\w.-])"
_ESCAPE = re.compile(
    r"\\(?:(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))|([\"'/\\])|[bfnrt])"
)
_MOST_VIEWS = 12


def _hold(texts: Iterable[str], verdict: Iterable[re.Pattern[str]]) -> bool:
    """Return whether the texts hold each label of a verdict, in any order and place."""
    seen = [_alike(view) for text in filter(_may_hold, texts) for view in _views(text)]
    views = [_bare(view) for view in seen if _MAY_LABEL.search(view)]
    return bool(views) and all(any(map(pattern.search, views)) for pattern in verdict)


@lru_cache(maxsize=4096)
def _pattern(names: Sequence[str], values: Sequence[str]) -> re.Pattern[str]:
    """The pattern of a view that holds one of the values behind one of the names, which may
    begin within a word, since a copy may."""
    heads = "|".join(f"(?<={_letters(name)})" for name in (*names, "[RESULT]") if name)
    tails = "|".join(map(_letters, values))
    return re.compile(rf'(?=[":])(?:{heads})(?:":"?|:")(?:{tails}){_GOES_ON}')


def _letters(text: str) -> str:
    """A pattern of the words, with letters of any other alphabet in place of those of theirs."""
    return "".join(
        rf"(?:{c}|[{'^' * c.isascii()}\x00-\x7f])" if c.isalnum() else re.escape(c)
        for c in _bare(_alike(normalise(text)))
    )


def _may_hold(text: str) -> bool:
    """Tell whether a spelling of it may have a colon or bracket, as a label has; most have none."""
    return not text.isascii() or any(map(text.__contains__, ":[&\\"))


def _views(text: str) -> Sequence[str]:
    """`text` as it is, and as it reads once its escapes of HTML, JSON or YAML are undone, also
    where one is inside another; and with its invisible letters."""
    views = [text]
    for view in views:  # which grows
        undone = (html.unescape(view), _ESCAPE.sub(_meant, view), view.translate(_TAGS))
        views += [one for one in undone if one not in views][: _MOST_VIEWS - len(views)]
    return views


def _meant(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return escape[4] or " "
    return chr(int(code, 16)) if int(code, 16) < 0x110000 else ""


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
