"""The common form of the files of other tools: its content (a zip archive, JSON, JSON lines or a
table), the texts in it, and what people and judges said of each.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, ZipFile

from judgebench.data.cells import FORBIDDEN, clean, mark_forbidden
from judgebench.data.conversation import text_of
from judgebench.data.findings import Findings
from judgebench.data.formats import read_delimited
from judgebench.data.guess import LONGEST_LABEL, MOST_LABELS, as_name, roles_by_name
from judgebench.data.open_table import as_table
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.files import open_bytes, read_errors
from judgebench.records import Part, in_words
from judgebench.rubric import normalise

_MARKED = "characters that no text may hold, replaced by U+FFFD"
_LONGEST_INTEGER = 300  # digits; what is longer is no float, either


@dataclass(frozen=True)
class Content:
    """`value` is the names in an archive, a value of JSON, a list of objects (`lines`), or the
    rows of a table by column (`table`). `left_out` counts what of it no file of ours may hold."""

    path: Path
    kind: Literal["zip", "json", "lines", "table"]
    value: Any
    left_out: Counter[str] = field(default_factory=Counter)

    def objects(self, *keys: str) -> list[dict[str, Any]]:
        """The objects of a list or of lines, if the first has all these keys; else none."""
        found = [self.value] if isinstance(self.value, dict) else self.value
        if self.kind not in ("json", "lines") or not isinstance(found, list) or not found:
            return []
        first = found[0]
        return found if isinstance(first, dict) and first.keys() >= set(keys) else []

    @property
    def in_words(self) -> str:
        """A description of the content, for an error message."""
        value = self.value
        if self.kind == "zip":
            return "a zip archive with " + (some(value, 5) or "nothing in it")
        if self.kind == "table":
            return f"a table with the columns {some(value[0])}"
        kind = "lines of JSON" if self.kind == "lines" else "JSON"
        if isinstance(value, list):
            kind, value = f"{kind}: a list of {len(value)}", value[0] if value else None
        if isinstance(value, dict):
            return f"{kind} with the keys {some(value, 12) or 'none'}"
        return kind

    def cleaned(self, value: Any) -> Any:
        """The value with a mark for each character that no text may hold, in keys as well. Raises
        SetupError where two keys of an object then are the same."""
        if isinstance(value, str):
            self.left_out[_MARKED] += len(FORBIDDEN.findall(value))
            return mark_forbidden(value)
        if isinstance(value, list):
            return list(map(self.cleaned, value))
        if not isinstance(value, dict):
            return value
        found = {self.cleaned(key): self.cleaned(one) for key, one in value.items()}
        if len(found) < len(value):
            raise self.fail("has keys that differ only in characters that no text may hold")
        return found

    def check_once(self, names: Iterable[object], message: str) -> None:
        """Raise SetupError where one of the names, by which its parts are known, occurs twice."""
        if twice := [str(name) for name, count in Counter(names).items() if count > 1]:
            raise self.fail(message, found=", ".join(twice[:5]))

    def fail(self, message: str, line: int | None = None, **about: str) -> SetupError:
        """The error to raise about this file."""
        return SetupError(Problem(message, str(self.path), line, **about))


def open_content(path: Path) -> Content:
    """Open a file of another tool. Raises SetupError where it is missing, empty, torn or no
    text."""
    found = _opened(path)
    try:
        return replace(found, value=found.cleaned(found.value))
    except RecursionError:
        raise found.fail("is nested too deeply") from None


def parse_json(text: str | bytes) -> Any:
    """The value in JSON; a number of so many digits that Python counts with none such is its
    text."""

    def integer(digits: str) -> int | str:
        return digits if len(digits) > _LONGEST_INTEGER else int(digits)

    return json.loads(text, parse_int=integer)


def _opened(path: Path) -> Content:
    with read_errors(path), open_bytes(path) as file:
        data = file.read()
    if data.startswith(b"PK"):
        try:
            with ZipFile(path) as archive:
                return Content(path, "zip", archive.namelist())
        except (BadZipFile, OSError):
            message = "is a damaged or incomplete zip archive: copy the file again"
            raise SetupError(Problem(message, str(path))) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SetupError(
            Problem(f"is neither a zip archive nor text in UTF-8 (byte {error.start:,})", str(path))
        ) from None
    if not text.strip():
        raise SetupError(Problem("is empty", str(path)))
    return _json(path, text) if text.lstrip()[0] in "[{" else _table(path, text)


def _json(path: Path, text: str) -> Content:
    try:
        return Content(path, "json", parse_json(text))
    except (ValueError, RecursionError) as error:
        whole = error
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    found, findings = [], Findings()
    for number, line in lines:
        try:
            found.append(parse_json(line))
        except (ValueError, RecursionError):
            findings.add("malformed", "is not JSON", (str(path), number), found=line)
    if found and isinstance(found[0], dict):
        raise_any(findings.errors)
        return Content(path, "lines", found)
    torn_at = getattr(whole, "lineno", None)
    reason = getattr(whole, "msg", "is nested too deeply")
    raise SetupError(Problem(f"is not JSON, or not all of it: {reason}", str(path), torn_at))


def _table(path: Path, text: str) -> Content:
    """Raises SetupError with every problem of the table."""
    findings, marked = Findings(), io.StringIO(mark_forbidden(text), newline="")
    rows = read_delimited(marked, "csv", None, (), str(path), findings)
    table = as_table(str(path), rows, findings)
    named = (
        [dict(zip(table.columns, row.cells, strict=True)) for row in table.rows] if table else []
    )
    raise_any(findings.errors)
    return Content(path, "table", named, Counter({_MARKED: len(FORBIDDEN.findall(text))}))


Row = dict[str, str]
VERDICT = "verdict"  # the metric of replies that are themselves labels
CORRECT = "correct"  # the metric of values that say whether an answer is right
_OURS = frozenset((
    "item_id", "question", "text", "system", "reference", "group", "annotator", "judge", "metric",
    "label", "status", "raw", "repeat",
))  # fmt: skip


@dataclass(frozen=True)
class Given:
    """The label that one annotator or judge gave to one text; `status` and `raw` are a judge's."""

    by: str
    metric: str
    label: str = ""
    status: str = "ok"
    raw: str = ""


@dataclass
class Sample:
    """One text of a log. `id` is that of what was asked, which several systems may have answered,
    or one of them several times. `prompt` is the whole of what the model read, where that is more
    than the question; `replies` are all that it wrote there, where some are not the text, and
    `readings` what the tool read from the one reply, by the tool's name for how; `error` says why
    there is no text."""

    id: str
    text: str
    question: str = ""
    system: str = ""
    reference: str = ""
    prompt: str = ""
    error: str = ""
    replies: tuple[str, ...] = ()
    readings: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    labels: list[Given] = field(default_factory=list)
    verdicts: list[Given] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("id", "text", "question", "system", "reference", "prompt", "error"):
            setattr(self, name, _text(getattr(self, name)))  # whatever the file held there


@dataclass
class Log:
    """A whole log: what wrote it, its samples, and what of it was left out, by reason."""

    tool: str
    samples: list[Sample] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Tables:
    """Rows as judgebench reads them; a row lacks what it does not know."""

    answers: list[Row]
    labels: list[Row]
    verdicts: list[Row]
    left_out: Counter[str]

    @property
    def metrics(self) -> dict[str, tuple[str, ...]]:
        """The labels that each metric was given, in the order in which they first occur."""
        found: dict[str, dict[str, None]] = {}
        for row in (*self.labels, *self.verdicts):
            if row.get("label"):
                found.setdefault(row["metric"], {})[row["label"]] = None
        return {metric: tuple(labels) for metric, labels in found.items()}


def tables(log: Log) -> Tables:
    """The rows of the three files."""
    found = Tables([], [], [], Counter(log.left_out))
    several = len({sample.system for sample in log.samples}) > 1
    seen: dict[str, dict[str, tuple[int, int]]] = {}  # by text: which one, how often
    labelled: set[tuple[str, str, str]] = set()
    judges = _judge_names(given.by for sample in log.samples for given in sample.verdicts)
    metrics: dict[str, str] = {}  # the first spelling of each
    for given in (one for s in log.samples for one in (*s.labels, *s.verdicts) if one.metric):
        metrics.setdefault(normalise(given.metric), clean(given.metric)[0] or "unnamed")
    for sample in log.samples:
        if sample.error and not sample.text:
            found.left_out["samples that ended in an error, without an answer"] += 1
            continue
        key = f"{sample.id}@{sample.system}" if several else sample.id
        texts = seen.setdefault(key, {})
        number, repeat = texts.get(sample.text, (len(texts) + 1, 0))
        texts[sample.text] = number, repeat + 1
        item = key if number == 1 else f"{key}#{number}"
        if not repeat:
            found.answers.append(_answer(item, sample, metrics))
        for given in sample.labels:
            metric = metrics.get(normalise(given.metric), "")
            if (item, given.by, metric) in labelled:
                found.left_out["further labels of one text by the same person"] += 1
                continue
            labelled.add((item, given.by, metric))
            row = {"item_id": item, "annotator": given.by, "metric": metric}
            found.labels.append({**row, "label": given.label})
        for given in sample.verdicts:
            metric = metrics.get(normalise(given.metric), "")
            row = {"item_id": item, "judge": judges[given.by], "metric": metric}
            row |= {"label": given.label, "status": given.status, "raw": given.raw}
            found.verdicts.append({**row, "repeat": str(repeat)})
    if count := sum(len(s.replies) - (s.text in s.replies) for s in log.samples):
        reason = "replies that no metric is about (`--replies-as-verdicts` reads all)"
        found.left_out[reason] += count
    if all(row["repeat"] == "0" for row in found.verdicts):
        for row in found.verdicts:
            del row["repeat"]
    return found


def _judge_names(names: Iterable[str]) -> dict[str, str]:
    """The name of each judge as bench.yaml allows it; no two are the same."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    numbers = Counter[str]()
    for name in dict.fromkeys(names):
        free = stem = as_name(name)[:60] or "judge"
        while free in taken:
            numbers[stem] += 1
            free = f"{stem}-{numbers[stem] + 1}"
        taken.add(free)
        found[name] = free
    return found


# The evaluated model as a judge ----------------------------------------------------------------


def as_judge(log: Log, judge: str) -> Log:
    """The log of a model that is itself the judge `judge`: its replies are verdicts, and what it
    read is what was judged.

    Replies, or what the tool read from each, are labels of the metric `verdict` where they are
    short and of few kinds; others are to be parsed.
    """
    samples = list(_each_reply(log.samples))
    texts = [label for sample in samples for label in _readings(sample).values() if label]
    are = are_labels(texts) and len(set(texts)) <= len(texts) / 2
    made = Log(log.tool, left_out=Counter(log.left_out))
    for sample in samples:
        judged = _judged(sample)
        made.samples.append(judged)
        for how, label in _readings(sample).items():
            name = f"{judge}.{how}" if how else judge
            failed = bool(sample.error) and not sample.text
            status = "failed" if failed else "" if not are else "ok" if label else "unparsed"
            given = (VERDICT, label) if are else ("", "")
            raw = sample.text or first_line(sample.error)
            judged.verdicts.append(Given(name, *given, status, raw))
    if count := sum(bool(v.label) for s in log.samples for v in s.verdicts):
        made.left_out["values that the tool gave to the judge's replies"] += count
    return made


def _each_reply(samples: Iterable[Sample]) -> Iterator[Sample]:
    """A sample for each reply of the model."""
    done = set()
    for sample in samples:
        if len(sample.replies) < 2:
            yield sample
        elif sample.id not in done:
            done.add(sample.id)
            yield from (replace(sample, text=reply, readings={}) for reply in sample.replies)


def _readings(sample: Sample) -> dict[str, str]:
    return sample.readings or {"": sample.text.strip()}


def _judged(sample: Sample) -> Sample:
    """The text to be judged, which is what the model read: the answer among the sample's columns
    if one has such a name, else all of it."""
    roles = roles_by_name(sample.metadata)
    known = {role: sample.metadata[column] for role, column in roles.items()}
    if "text" not in known:
        whole = sample.prompt or sample.question
        return Sample(sample.id, whole, reference=sample.reference, metadata=sample.metadata)
    question = known.get("question", "")
    rest = {k: v for k, v in sample.metadata.items() if k != roles["text"]}
    return Sample(sample.id, known["text"], question, reference=sample.reference, metadata=rest)


# Rows --------------------------------------------------------------------------------------------


def _answer(item: str, sample: Sample, metrics: Collection[str]) -> Row:
    row = {"item_id": item, "question": sample.question, "text": sample.text}
    row |= {"system": sample.system, "reference": sample.reference}
    row |= {"group": "" if sample.question else sample.id}
    for name, value in sample.metadata.items():
        if row.get(name.casefold()) != value:
            clash = name.casefold() in _OURS or normalise(name) in metrics
            row[f"metadata.{name}" if clash else name] = value
    return row


def sample_reader(
    rows: Sequence[Mapping[str, Any]], notes: list[str]
) -> Callable[[Mapping[str, Any], str], Sample]:
    """Make the reader of a sample from the columns of one item and its id in the tool.

    Columns are known by their names; without a usual one the longest texts are the answers.
    """
    texts = [scalars(row) for row in rows]
    sizes: Counter[str] = Counter()
    for row in texts:
        for name, text in row.items():
            sizes[name] += len(text)
    roles = roles_by_name(sizes)
    free = [name for name, _ in sizes.most_common() if name not in roles.values()]
    if "text" not in roles and free:
        roles["text"] = free[0]
    ids = {row.get(roles.get("item_id", ""), "") for row in texts}
    if len(ids) < len(rows) or "" in ids:
        roles.pop("item_id", None)  # no name of one item each
    used = [
        role for role in ("item_id", "text", "question", "system", "reference") if role in roles
    ]
    notes.append("columns of the answers: " + ", ".join(f"{r} from {roles[r]!r}" for r in used))

    def read(row: Mapping[str, Any], tool_id: str) -> Sample:
        known = scalars(row)
        parts: dict[str, Any] = {role: known.pop(roles[role], "") for role in used}
        name = parts.pop("item_id", tool_id)
        return replace(Sample(name, parts.pop("text", ""), metadata=known), **parts)

    return read


# Values ----------------------------------------------------------------------------------------


def label_text(value: Any) -> str:
    """A single value as a label: a whole number without its point, a missing one as nothing."""
    if value is None or value != value:  # a number that is NaN
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def scalars(values: Mapping[str, Any]) -> dict[str, str]:
    """The single values of an object as texts; lists and objects in it as JSON."""
    return {str(name): _text(value) for name, value in values.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return label_text(value)


def chat_text(messages: Any) -> str:
    """The text of a chat with a model: the one message that is no instruction, else all of
    them."""
    if not isinstance(messages, list):
        return str(messages)
    turns = [Part(str(m.get("role", "")), content_text(m.get("content"))) for m in messages]
    asked = [turn.text for turn in turns if turn.role not in ("system", "developer")]
    return asked[0] if len(asked) == 1 else in_words(turns)


def first_line(error: str) -> str:
    """The first line of an error, without the request that it may repeat."""
    return error.strip().split("\n")[0][:200]


def content_text(content: Any) -> str:
    """The text of a message, whose parts that are no text are named in brackets."""
    text = text_of(content)
    return str(content) if text is None else text


def are_labels(values: Iterable[str]) -> bool:
    """True where texts can be labels: short, of one line, and few different ones."""
    found = {value for value in values if value}
    fit = (len(value) <= LONGEST_LABEL and "\n" not in value for value in found)
    return len(found) <= MOST_LABELS and all(fit)
