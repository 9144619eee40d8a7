"""Nested logs of other tools as answers, human labels and verdicts.

What the evaluated model wrote is an answer; what a scorer, a metric or an assertion says of it is a
verdict. A person's choice is a label, a model's prediction a verdict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from judgebench.data.conversation import turns_of
from judgebench.data.formats import Nested, Table, scalar_text
from judgebench.data.vocabulary import Column, columns_by_role, last_word
from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import check_unpacked, open_bytes, read_errors
from judgebench.records import canonical_json, in_words
from judgebench.text import as_name

LOG_SHEETS = ("answers", "labels", "verdicts")
_CORRECT = "correct"  # the metric of values that say whether an answer is right

Row = dict[str, str]
Value = Any  # of JSON; its numbers are texts


class Statement(NamedTuple):
    """What somebody says of an answer; where a judge says no label, `status` is why."""

    by: Value
    metric: str
    label: Value
    raw: Value = ""
    status: str = "failed"


class Sample(NamedTuple):
    """An answer to what `key` names. Its text is None where the evaluated model failed."""

    key: Value
    columns: Mapping[str, Value]
    verdicts: Iterable[Statement] = ()
    labels: Iterable[Statement] = ()


@dataclass
class Log:
    """What a tool wrote, as rows with columns of our names, and what was left out, by reason."""

    file: str
    tool: str = ""
    rows: dict[str, list[Row]] = field(default_factory=lambda: {kind: [] for kind in LOG_SHEETS})
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def fail(self, message: str) -> SetupError:
        """The error to raise about the file."""
        return SetupError(Problem(message, self.file))

    def add(self, samples: Iterable[Sample]) -> None:
        """Add the rows of samples. Another text about the same is a further item, and a further
        verdict of a judge on one item a repeat."""
        items: dict[tuple[str, str], str] = {}
        counts = Counter[object]()
        for sample in samples:
            key, text = as_text(sample.key), sample.columns["text"]
            if text is None:
                self.left_out["samples that ended in an error, without an answer"] += 1
                continue
            if (key, as_text(text)) not in items:
                counts[key] += 1
                item = f"{key}#{counts[key]}" if counts[key] > 1 else key
                items[key, as_text(text)] = item
                row = {name: as_text(value) for name, value in sample.columns.items()}
                row["group"] = "" if row.get("question") else key
                self.rows["answers"].append({"item_id": item, **row})
            item = items[key, as_text(text)]
            for by, metric, label, *_ in sample.labels:
                self.rows["labels"].append({
                    "item_id": item, "annotator": as_text(by), "metric": metric,
                    "label": as_text(label),
                })  # fmt: skip
            for by, metric, label, raw, status in sample.verdicts:
                label_text = as_text(label)
                self.rows["verdicts"].append({
                    "item_id": item, "judge": as_name(as_text(by)), "metric": metric,
                    "label": label_text, "raw": as_text(raw),
                    "status": "ok" if label_text else status,
                    "repeat": str(counts[item, by, metric]),
                })  # fmt: skip
                counts[item, by, metric] += 1


def read_log(path: Path) -> Log | None:
    """The log in a file, known by its content; None where no tool is known to write such a file.

    Raises SetupError where it is damaged or laid out otherwise than its kind is, and MissingExtra
    where a package that reads it is not installed.
    """
    with read_errors(path), open_bytes(path) as file:
        start = file.read(100).lstrip(b"\xef\xbb\xbf\n\r\t ")
        is_json = start[:1] in (b"{", b"[")
        data = start + file.read() if is_json else b""
    log = Log(str(path))
    value = _unpacked(path, log) if start[:2] == b"PK" else _parsed(data)
    for reader in (_inspect, _lm_eval, _promptfoo, _deepeval, _label_studio):
        try:
            log.add(reader(value, log))
        except _LAID_OUT_OTHERWISE as error:
            raise log.fail(f"is like {log.tool}, but laid out otherwise ({error!r})") from error
        if log.tool:
            log.left_out = +log.left_out  # those that occur
            return log
    return None


_LAID_OUT_OTHERWISE = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip


def _parsed(data: bytes) -> Value:
    """The value of JSON, or the list of those in its lines; None where there is none."""
    with suppress(ValueError, RecursionError):
        text = data.decode()
        try:
            return _loaded(text)
        except ValueError:
            return [_loaded(line) for line in filter(str.strip, text.split("\n"))]
    return None


def _unpacked(path: Path, log: Log) -> Value:
    """The JSON of an archive of inspect_ai, which packs it as the standard library cannot read
    before Python 3.14; None of another archive. Raises SetupError."""
    try:
        with ZipFile(path) as archive:
            sizes = {member.filename: member.file_size for member in archive.infolist()}
    except BadZipFile:
        raise log.fail("is a damaged or incomplete zip archive: copy the file again") from None
    if not {"header.json", "_journal/start.json"} & sizes.keys():
        return None
    with read_errors(path):
        check_unpacked(sum(sizes.values()), path.stat().st_size)
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise MissingExtra("Reading an .eval log", "inspect", "inspect-ai") from None
    unread = {"events", "events_data", "messages", "store", "timelines"}
    try:
        read = read_eval_log(str(path), format="eval", exclude_fields=unread)
        return _loaded(read.model_dump_json())
    except Exception as error:  # of any kind, for the archive may hold anything
        raise log.fail(f"is damaged: inspect_ai cannot read it ({error})") from None


def log_tables(log: Log) -> list[Table]:
    """The answers, labels and verdicts that there are, each a sheet of the file."""
    return [
        Table(log.file, _columns_of(rows), range(1, len(rows) + 1), kind)
        for kind, rows in log.rows.items()
        if rows
    ]


def _columns_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The cells (rows,) of each column, blank where a row lacks it."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, "") for row in rows] for name in names}


def log_columns(table: Table) -> dict[str, Column]:
    """What the columns of a table of a log are."""
    roles = {"item_id": "item", "label": "verdict" if table.sheet == "verdicts" else "label"}
    return {name: Column(roles.get(name, name), why="its log") for name in table.columns}


# Values ----------------------------------------------------------------------------------------


def as_text(value: Value) -> str:
    """A value of JSON as a text."""
    try:
        return scalar_text(value)
    except ValueError:
        return json.dumps(value, ensure_ascii=False)


def _loaded(text: str) -> Value:
    """The value of JSON, in which each number is the text that stands there, 1.0 as 1."""
    return json.loads(text, parse_int=str, parse_float=lambda number: number.removesuffix(".0"))


def _at(value: Value, path: str) -> Value:
    """The value at the end of a path of keys; None where there is none."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _first(value: Value) -> Value:
    """The first of a list; any other value itself."""
    return (value[0] if value else None) if isinstance(value, list) else value


def _chat_text(value: Value) -> str:
    """The text of a chat, which may be JSON: the one message that is no instruction, or all."""
    turns, faults = turns_of(Nested(value) if isinstance(value, list) else as_text(value))
    asked = [turn.text for turn in turns if turn.role not in ("system", "developer")]
    if faults:
        return as_text(value)
    return asked[0] if len(asked) == 1 else in_words(turns)


def _named(columns: Mapping[str, Value], *roles: str) -> dict[str, Value]:
    """The values of the columns whose names say these roles."""
    return {role: columns[name] for role, name in columns_by_role(columns, roles).items()}


# inspect_ai ------------------------------------------------------------------------------------


_GRADES = ("C", "I", "P", "N")  # correct, incorrect, partially correct, no answer
_NO_GRADE = "Grade not found in model output: "
_UNREAD = ("grader_failed", "invalid_response_format")


def _inspect(value: Value, log: Log) -> Iterator[Sample]:
    if not _at(value, "eval.task"):
        return
    model, samples, status = _at(value, "eval.model"), value["samples"], value["status"]
    log.tool = f"inspect_ai {_at(value, 'eval.packages.inspect_ai')}, model {model}"
    if status != "success":
        log.notes.append(f"the log is incomplete: its status is {status!r}")
    graded = {
        name
        for sample in samples
        for name, score in (sample["scores"] or {}).items()
        if as_text(_scored(score)) in _GRADES
    }
    valid = [sample for sample in samples if not sample.get("invalidation")]
    if n := len(samples) - len(valid):
        log.left_out["samples that were marked as invalid"] += n
    read = [_inspect_sample(sample, model, graded) for sample in valid]
    scorers = dict.fromkeys((one.by, one.metric) for sample in read for one in sample.verdicts)
    for sample in read:
        # A scorer without a score was asked, too: its request failed.
        lacking = scorers.keys() - {(one.by, one.metric) for one in sample.verdicts}
        failed = [Statement(by, metric, None) for by, metric in sorted(lacking)]
        yield sample._replace(verdicts=[*sample.verdicts, *failed])


def _scored(score: Value) -> Value:
    """The value that the scorer itself gave, before anybody edited it."""
    first = _at(_first(score.get("history")), "value")
    return score["value"] if first in (None, "UNCHANGED") else first


def _inspect_sample(sample: Value, model: str, graded: set[str]) -> Sample:
    attached = sample.get("attachments") or {}

    def whole(value: Value) -> str:
        return re.sub(
            "attachment://([0-9a-f]+)", lambda m: attached.get(m[1], m[0]), as_text(value)
        )

    error, text = _at(sample, "error.message"), whole(_at(sample, "output.completion"))
    verdicts = []
    for name, score in (sample["scores"] or {}).items():
        value, raw = _scored(score), whole(score.get("explanation"))
        # Before 0.3.245 a grade that was not found was scored `I`.
        is_lost = raw.startswith(_NO_GRADE)
        status = "unparsed" if is_lost or score.get("reason") in _UNREAD else "failed"
        metric = _CORRECT if name in graded else name
        for key, label in (value if isinstance(value, dict) else {metric: value}).items():
            label = None if is_lost else label
            verdicts.append(Statement(name, key, label, raw.removeprefix(_NO_GRADE), status))
    columns = {
        "question": whole(_chat_text(sample["input"])),
        "text": None if error and not text else text,
        "system": model,
        "reference": sample["target"],
    }
    return Sample(sample["id"], columns, verdicts)


# lm-evaluation-harness ---------------------------------------------------------------------------


def _lm_eval(value: Value, log: Log) -> Iterator[Sample]:
    if _at(_first(value), "filtered_resps") is None:
        return
    log.tool = "lm-evaluation-harness"
    log.notes.append("the file does not name the model: `system` is blank")
    places = [(row["doc_id"], row["filter"]) for row in value]
    if len({*places}) < len(places):
        raise log.fail("has several rows of one document and filter: import each task by itself")
    filters = {rule for _, rule in places}
    for row in value:
        doc = row["doc"] if isinstance(row["doc"], dict) else {"document": row["doc"]}
        arguments = [[*pair.values()] for pair in row["arguments"].values()]
        columns = {
            "question": _chat_text(_first(_first(_first(arguments)))),
            "text": _lm_eval_text(row, arguments),
            "reference": row["target"],
            **_named(doc, "question"),
        }
        rule = f".{row['filter']}" if len(filters) > 1 else ""
        yield Sample(row["doc_id"], columns, _lm_eval_verdicts(row, rule))


def _lm_eval_text(row: Value, arguments: Value) -> str:
    """The text that the metrics are about: the likeliest continuation, or what the filter left."""
    filtered, replies = row["filtered_resps"], _first(row["resps"])
    choices = [pair[1] for pair in arguments if isinstance(pair[-1], str) and len(pair) > 1]
    if choices and len(choices) == len(filtered):
        likelihoods = [float(_first(pair)) for pair in filtered]
        return as_text(choices[likelihoods.index(max(likelihoods))]).strip()
    return as_text(_first(_first(filtered)) if len(replies) > 1 else _first(replies))


def _lm_eval_verdicts(row: Value, rule: str) -> Iterator[Statement]:
    for name in row["metrics"]:
        label = row.get(name)
        is_right = name.startswith(("acc", "exact_match")) and as_text(label) in ("0", "1")
        if not isinstance(label, list | dict):  # what a result is made of
            yield Statement(name + rule, _CORRECT if is_right else name, label)


# promptfoo -------------------------------------------------------------------------------------


_UNREADABLE = ("Could not extract JSON", "produced malformed response")  # reasons before 0.121


def _promptfoo(value: Value, log: Log) -> Iterator[Sample]:
    results = _at(value, "results.results") or _at(value, "results")  # or its summary alone
    if not _at(_first(results), "vars"):
        return
    log.tool = "promptfoo"
    tests = dict[str, str]()
    for result in results:
        test = canonical_json(result["vars"])
        tests.setdefault(test, f"test-{len(tests) + 1}")
        system, output = _provider(result["provider"]), _at(result, "response.output")
        columns = {
            "question": _chat_text(_at(result, "prompt.raw")),
            "text": output or (None if result.get("failureReason") == "2" else output),
            "system": system,
            **_named(result["vars"], "question", "reference"),
        }
        statements = [*_assertions(result)]
        labels = [statement for statement in statements if statement.by == "human"]
        if labels and not log.notes:
            log.notes.append(
                "ratings by hand are of nobody, who may have seen the graders' results"
            )
        verdicts = [statement for statement in statements if statement.by != "human"]
        yield Sample(f"{tests[test]}@{system}", columns, verdicts, labels)


def _provider(about: Value) -> str:
    return as_text(_at(about, "label") or _at(about, "id") or about)


def _assertions(result: Value) -> Iterator[Statement]:
    """What graders say of a result, and people in the web page."""
    types = Counter[str]()
    for part in _at(result, "gradingResult.componentResults") or ():
        assertion = part["assertion"] or {}
        kind, grader, metric = (assertion.get(name) for name in ("type", "provider", "metric"))
        if kind is None:  # the result of a whole set of assertions
            continue
        by, reason = f"{kind} ({_provider(grader)})" if grader else kind, as_text(part["reason"])
        types[by] += not metric
        number = f" {types[by]}" if types[by] > 1 else ""
        # Where the grader failed, promptfoo says `fail`.
        is_unread = any(words in reason for words in _UNREADABLE)
        is_failed = is_unread or _at(part, "metadata.graderError")
        label = None if is_failed else "pass" if part["pass"] else "fail"
        status = "unparsed" if is_unread else "failed"
        name = "result" if kind == "human" else kind  # of the whole test, in the web page
        yield Statement(by, metric or name + number, label, reason, status)


# DeepEval --------------------------------------------------------------------------------------


def _deepeval(value: Value, log: Log) -> Iterator[Sample]:
    cases = _at(value, "testRunData.testCases") or _at(value, "testCases")
    if _at(_first(cases), "metricsData") is None:
        return
    log.tool = "DeepEval"
    log.notes.append("a verdict says whether a score reaches the threshold of its metric")
    for case in cases:
        columns = {
            "question": case["input"], "text": case["actualOutput"] or "",
            "reference": case.get("expectedOutput"),
        }  # fmt: skip
        yield Sample(case["name"], columns, map(_deepeval_verdict, case["metricsData"] or ()))


def _deepeval_verdict(metric: Value) -> Statement:
    name, error = metric["name"].removesuffix(" [GEval]"), metric.get("error")
    label = "success" if metric["success"] else "no success"  # of `Harm` it may mean: no harm
    is_failed = error or metric["score"] is None
    judge, raw = metric.get("evaluationModel") or name, metric.get("reason") or error
    return Statement(judge, name, None if is_failed else label, raw)


# Label Studio ----------------------------------------------------------------------------------


_SINGLE = ("choices", "rating", "taxonomy", "number", "pairwise")


def _label_studio(value: Value, log: Log) -> Iterator[Sample]:
    task = _first(value)
    is_task = isinstance(_at(task, "data"), dict)
    if not is_task or not ("annotations" in task or task.keys() <= {"id", "data"}):
        return
    log.tool = "Label Studio, JSON"
    names = dict.fromkeys(name for task in value for name in task["data"])
    named = columns_by_role(names, ("item", "question", "text", "system", "reference"))
    ids = [name for name in names if last_word(name) == "id"]
    item = named.pop("item", ids[0] if ids else "")
    items = {as_text(task["data"].get(item)) for task in value} - {""}
    for number, task in enumerate(value, start=1):
        data = task["data"]
        key = data[item] if len(items) == len(value) else task.get("id", number)
        columns = {"text": "", **{role: data.get(name, "") for role, name in named.items()}}
        predictions = task.get("predictions") or []
        whole = [prediction for prediction in predictions if isinstance(prediction, dict)]
        reason = "predictions of which the export has the id alone (a snapshot has all of them)"
        log.left_out[reason] += len(predictions) - len(whole)
        models = [(p, p.get("model_version") or "prediction") for p in whole]
        verdicts = chain.from_iterable(_choices(*prediction, log) for prediction in models)
        yield Sample(key, columns, verdicts, _people(task, log))


def _people(task: Value, log: Log) -> Iterator[Statement]:
    """What each person says in an annotation that was not skipped."""
    for annotation in task.get("annotations") or ():
        person = annotation.get("completed_by")
        person = _at(person, "email") or _at(person, "id") or person or "annotator"
        if annotation.get("was_cancelled") or not annotation["result"]:
            log.left_out["annotations that were skipped, or have no result"] += 1
        else:
            yield from _choices(annotation, person, log)


def _choices(annotation: Value, by: Value, log: Log) -> Iterator[Statement]:
    """What was chosen in each control of an annotation: one label, or a list of several."""
    for result in annotation["result"] or ():
        name, kind, value = result["from_name"], result["type"], result["value"]
        chosen = (_at(value, kind) or _at(value, "selected")) if kind in _SINGLE else None
        if chosen:
            label = chosen[0] if isinstance(chosen, list) and len(chosen) == 1 else chosen
            is_path = kind == "taxonomy" and isinstance(label, list)
            yield Statement(by, name, " / ".join(label) if is_path else label)
        else:
            log.left_out[f"values of {name!r} ({kind}), which are no label of the answer"] += 1
