"""`judgebench import`: write the logs and exports of other tools as files of judgebench."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from judgebench.data.cells import is_blank
from judgebench.data.columns import is_run
from judgebench.data.guess import MOST_LABELS, ordered
from judgebench.data.importers import read_log
from judgebench.data.importers.log import Row, Tables, as_judge, tables
from judgebench.data.load import load_data
from judgebench.data.understand import EXAMPLE, metric_ids, stem_of
from judgebench.errors import Problem, SetupError, shorten, some
from judgebench.files import all_or_nothing, to_line, write_atomically
from judgebench.judges.config import JUDGE_NAME
from judgebench.rubric import Rubric, normalise
from judgebench.runs.load import load_bench
from judgebench.starter import (
    BENCH,
    DATA,
    LABELS,
    RUBRIC,
    UNORDERED,
    Started,
    bench_text,
    csv_text,
    filled,
    rubric_text,
)
from judgebench.words import counted

_NAMES = ("answers", "labels", "verdicts", "other-labels", "other-verdicts")
_ITEM = ("item_id", "question", "text", "system", "reference", "group")
_LONGEST_CELL = 32_767  # characters; spreadsheets cut off what is longer


def import_file(
    file: str | Path, to: str | Path | None = None, *, replies_as_verdicts: str | None = None
) -> Started:
    """Write the answers, human labels and verdicts in a log or export of another tool, and a
    rubric of the labels in it, into the folder `to`, by default the file's own.

    What a file is follows from its content: a log of inspect_ai, samples of lm-evaluation-harness,
    results of promptfoo, an export of Label Studio or records of Argilla. Labels of people are
    human labels; scorers, assertions, predictions and suggestions are judges. Where the evaluated
    model is itself a judge, `replies_as_verdicts` names it: its replies are then verdicts to be
    parsed.

    Raises SetupError where the file is damaged or unknown, or a file would be overwritten; nothing
    is written then. Raises MissingExtra for an `.eval` log without inspect_ai.

    >>> import judgebench as jb
    >>> [path.name for path in jb.import_file("samples_library.jsonl", "imported").files]
    ['answers.csv', 'verdicts.csv', 'rubric.yaml', 'labels-template.csv', 'bench.yaml']
    """
    path = Path(file)
    if replies_as_verdicts is not None and not re.fullmatch(JUDGE_NAME, replies_as_verdicts):
        raise SetupError(
            Problem(
                "is no name of a judge: letters, digits and . _ - only",
                found=repr(replies_as_verdicts),
            )
        )
    log = read_log(path)
    if replies_as_verdicts is not None:
        log = as_judge(log, replies_as_verdicts)
    found = tables(log)
    if not found.answers:
        message = "holds no answer to import"
        why = ", ".join(f"{what} ({count})" for what, count in found.left_out.items())
        raise SetupError(Problem(message, str(path), found=why))
    folder = Path(to) if to is not None else path.parent
    kept, rest = _apart(found)
    contents = _contents(path, folder, kept, rest)
    taken = {folder / f"{name}{end}" for name in _NAMES for end in (".csv", ".jsonl")}
    with all_or_nothing(folder, sorted({*contents, *taken})):
        for target, text in contents.items():
            write_atomically(target, text.encode())
        _check(contents, path)
    facts = (log.tool, *_in_words(found), *log.notes)
    left_out = {what: count for what, count in found.left_out.items() if count}
    return Started(tuple(contents), facts, tuple(_next_steps(kept, contents)), left_out)


def _check(written: Collection[Path], source: Path) -> None:
    """Raise SetupError where the files could not be read again, for what stands in `source`."""
    by_name = {path.name: path for path in written}
    try:
        if BENCH in by_name:
            load_bench(by_name[BENCH]).close()
        else:
            answers = next(path for name, path in by_name.items() if name.startswith("answers"))
            load_data(by_name.get(DATA, answers), Rubric.from_labels(EXAMPLE))
    except SetupError as error:
        raise SetupError([_of_source(problem, source) for problem in error.problems]) from None


def _of_source(problem: Problem, source: Path) -> Problem:
    """A problem of a file that was to be written, as one of the file it is made of."""
    row = "" if problem.line is None else f", row {problem.line}"
    return replace(
        problem,
        file=str(source),
        line=None,
        message=f"makes no benchmark: in {Path(problem.file).name}{row}, {problem.message}",
    )


def _apart(found: Tables) -> tuple[Tables, Tables]:
    """The rows of metrics that the rubric holds, and the others: no benchmark could read those.
    Without any rubric all are kept."""
    metrics = _metrics(found)

    def rows(of: Sequence[Row], inside: bool) -> list[Row]:
        return [row for row in of if (not metrics or row["metric"] in metrics) is inside]

    kept, rest = (
        replace(found, labels=rows(found.labels, inside), verdicts=rows(found.verdicts, inside))
        for inside in (True, False)
    )
    return kept, rest


def _contents(path: Path, folder: Path, found: Tables, rest: Tables) -> dict[Path, str]:
    """The text of each file to write."""
    tables = (found.answers, found.labels, found.verdicts, rest.labels, rest.verdicts)
    kinds = zip(_NAMES, tables, strict=True)
    named = {f"{kind}{_end(rows)}": rows for kind, rows in kinds if rows}
    files = {name: _table(name, rows) for name, rows in named.items()}
    data = [name for name in named if name.startswith(_NAMES[:2])]
    if any(is_blank(row["text"]) for row in found.answers):
        files[DATA] = _kept_empty(data[0], _filled(found.answers))
        data[0] = DATA
    if metrics := _metrics(found):
        ids = metric_ids(metrics)
        listed = [
            {**UNORDERED, "id": ids[title], "title": title, "labels": labels}
            for title, labels in metrics.items()
        ]
        files[RUBRIC] = rubric_text(stem_of(path), path.name, listed)
        if not found.labels:
            blank = [[row["item_id"], "your-name", *[""] * len(ids)] for row in found.answers]
            files[LABELS] = csv_text(["item_id", "annotator", *ids.values()], blank)
            data.append(LABELS)
        verdicts = next((name for name in named if name.startswith("verdicts")), "")
        judges = dict.fromkeys(row["judge"] for row in found.verdicts)
        entries = [_flow({"name": judge, "verdicts": verdicts}) for judge in judges]
        files[BENCH] = bench_text(path, data, entries)
    return {folder / name: text for name, text in files.items()}


def _kept_empty(name: str, columns: Sequence[str]) -> str:
    """The data.yaml of answers that may be empty."""
    item: dict[str, object] = {column: column for column in columns if column in _ITEM}
    if metadata := [column for column in columns if column not in _ITEM]:
        item["metadata"] = metadata
    value = {"files": [{"path": name, "items": [{**item, "if_empty": "keep"}]}]}
    head = "# Written by judgebench: an answer may be empty, which plain files do not allow.\n"
    return head + str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False))


def _flow(value: object) -> str:
    """On one line, as in `{name: a}`."""
    text = yaml.safe_dump(
        value, allow_unicode=True, sort_keys=False, default_flow_style=True, width=10**9
    )
    return str(text).strip()


def _metrics(found: Tables) -> dict[str, tuple[str, ...]]:
    """The metrics that have labels and no scores; each label in its first spelling."""
    metrics = {}
    for metric, labels in found.metrics.items():
        spelt: dict[str, str] = {}
        for label in labels:
            spelt.setdefault(normalise(label), label)
        if len(spelt) <= MOST_LABELS and all(spelt):
            metrics[metric] = ordered(spelt.values())
    return metrics


def _end(rows: Sequence[Row]) -> str:
    """CSV, or JSONL where a spreadsheet would spoil or run a text."""
    texts = [text for row in rows for text in row.values()]
    spoilt = any(len(text) > _LONGEST_CELL or "\r" in text or is_run(text) for text in texts)
    return ".jsonl" if spoilt else ".csv"


def _filled(rows: Sequence[Row]) -> list[str]:
    """The columns that are not blank, and those that every file of their kind has."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return [c for c in columns if c in ("item_id", "text") or any(row.get(c) for row in rows)]


def _table(name: str, rows: Sequence[Row]) -> str:
    columns = _filled(rows)
    if name.endswith(".jsonl"):
        return "".join(to_line({c: row.get(c, "") for c in columns}) for row in rows)
    return csv_text(columns, ([row.get(c, "") for c in columns] for row in rows))


def _in_words(found: Tables) -> Iterator[str]:
    groups = {row["question"] or row["group"] for row in found.answers}
    systems = {row["system"] for row in found.answers} - {""}
    of = f" of {some(sorted(systems))}" if systems else ""
    count, asked = counted(len(found.answers), "answer"), counted(len(groups), "question")
    yield f"{count}{of} to {asked}"
    if found.labels:
        people = dict.fromkeys(row["annotator"] for row in found.labels)
        yield f"{counted(len(found.labels), 'human label')} by {some(people)}"
    states: dict[str, Counter[str]] = {}
    for row in found.verdicts:
        states.setdefault(row["judge"], Counter())[row["status"] or "to be parsed"] += 1
    for judge, its in states.items():
        each = [f"{n:,} {state}" for state, n in sorted(its.items())]
        yield f"{counted(its.total(), 'verdict')} of {judge}: {', '.join(each)}"
    metrics = _metrics(found)
    for metric, labels in found.metrics.items():
        if metric in metrics:
            yield f"metric {metric!r}: {', '.join(metrics[metric])}"
        else:
            kinds = f"{len(labels):,} different values, such as {shorten(labels[0])}"
            yield f"metric {metric!r} is left out of the rubric, for these are no labels: {kinds}"
    given = (row["metric"] for row in (*found.labels, *found.verdicts))
    for metric in dict.fromkeys(name for name in given if name and name not in found.metrics):
        yield f"metric {metric!r} is left out of the rubric: it has no label at all"


def _next_steps(found: Tables, contents: Mapping[Path, str]) -> list[str]:
    names = ("bench", "rubric", "data", "answers", "labels", "verdicts")
    paths = {
        path.name.split(".")[0].removesuffix("-template"): quote(str(path)) for path in contents
    }
    about: dict[str, Any] = {name: paths.get(name, "") for name in names}
    first = found.verdicts[0]["judge"] if found.verdicts else ""
    about["entry"] = _flow({"name": first, "verdicts": about["verdicts"], "reply": "json"})
    return filled(_NEXT_STEPS, labelled=found.labels, **about).splitlines()


_NEXT_STEPS = """\
{% if not bench %}
Write a rubric.yaml: the metrics and labels that people and judges use.
Have people label the answers with `judgebench annotate` (docs/annotate.md), or in a CSV: item_id, \
annotator, metric, label.
Write a bench.yaml with the rubric, both files and {{ \
"the judge " ~ entry ~ " (`reply` may also be brackets or likert)" if verdicts else "the judges" }}.
{% else %}
In {{ rubric }}, sort the labels from the least to the most severe and write `kind: ordinal` \
where they have an order.
{% if not labelled %}
Collect labels: judgebench annotate init {{ bench }} --to study, with \
`annotate: {annotators: [ann, ben]}` in that file (docs/annotate.md); or fill \
{{ labels }} and copies of it.
{% endif %}
{% if not verdicts %}
In {{ bench }}, name the judges.
{% endif %}
judgebench check {{ bench }}
judgebench run {{ bench }}
{% if verdicts %}
Or: judgebench decide --labels {{ labels }} --verdicts {{ verdicts }} --answers \
{{ data or answers }} --rubric {{ rubric }}
{% endif %}
{% endif %}
"""
