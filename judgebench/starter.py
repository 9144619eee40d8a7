"""`judgebench init`: write the files of a benchmark from the columns of a file."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined, Template

from judgebench.data.guess import ColumnNames, Guess, Hints
from judgebench.data.understand import (
    EXAMPLE,
    ONLY_ONE,
    JudgeTable,
    Understood,
    metric_ids,
    stem_of,
    understand_files,
)
from judgebench.errors import shorten, some
from judgebench.files import all_or_nothing, write_atomically

BENCH, DATA, RUBRIC = "bench.yaml", "data.yaml", "rubric.yaml"
LABELS = "labels-template.csv"
_MOST_NAMED = 50  # columns that are not read


@dataclass(frozen=True, repr=False)
class Started:
    """The files that were written, what the columns were taken for, what to do next, and of an
    imported log what was left out, how often and why."""

    files: tuple[Path, ...]
    found: tuple[str, ...]
    next_steps: tuple[str, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        left_out = (f"Left out: {what} ({count:,})" for what, count in self.left_out.items())
        written = (f"Wrote {path}" for path in self.files)
        steps = (f"  {i}. {step}" for i, step in enumerate(self.next_steps, start=1))
        return "\n".join([*self.found, *left_out, *written, "Next:", *steps])


def init(
    files: str | Path | Sequence[str | Path],
    to: str | Path | None = None,
    columns: Mapping[str, ColumnNames] = {},
) -> Started:
    """Write the files of a benchmark from tables of answers, human labels and verdicts, as
    `judgebench check` passes them: into the folder `to`, by default that of the first.

    Which label is worse than which cannot be guessed: unless `columns` gives the `order`, metrics
    are written without an order of severity, and a comment in the rubric says how to state it. The
    other keys of `columns` are as in `study`.

    Raises SetupError where a file cannot be understood, or one would be overwritten; nothing is
    written then.

    >>> import judgebench as jb
    >>> [path.name for path in jb.init("answers.csv", "mine").files]
    ['bench.yaml', 'data.yaml', 'rubric.yaml', 'labels-template.csv']
    """
    paths = [files] if isinstance(files, str | Path) else files
    found = understand_files([Path(path) for path in paths], Hints.given(columns), labelled=False)
    return save(found, Path(to) if to is not None else found.found.path.parent)


def save(found: Understood, folder: Path, truth: Mapping[str, object] = {}) -> Started:
    """Write what was understood of tables as the files of a benchmark, with these keys of its
    `truth`. Raises SetupError."""
    lacking = found.lacks_labels
    names = [BENCH, DATA, RUBRIC, *([LABELS] if lacking else [])]
    paths = [folder / name for name in names]
    source = found.found.path
    with all_or_nothing(folder, paths):
        metrics = [
            {
                "id": m.id,
                "title": m.title,
                "kind": "preference" if m.preference else m.kind,
                "order": m.order,
                "labels": m.label_texts,
            }
            for m in (found.rubric.metrics if found.found.metrics else ())
        ]
        rubric = rubric_text(stem_of(source), source.name, metrics)
        write_atomically(folder / RUBRIC, rubric.encode())
        write_atomically(folder / DATA, _data(found, folder).encode())
        judges = [entry for judge in found.judges for entry in _entries(judge)]
        write_atomically(folder / BENCH, bench_text(source, [DATA], judges, truth).encode())
        items = _items(folder / BENCH)
        ids = [metric.id for metric in found.rubric.metrics]
        rows = ([item, "your-name", *[""] * len(ids)] for item in items)
        if lacking:
            table = csv_text(["item_id", "annotator", *ids], rows)
            write_atomically(folder / LABELS, table.encode())
    return Started(tuple(paths), tuple(_in_words(found)), tuple(_next_steps(found, folder)))


def _entries(judge: JudgeTable) -> Iterator[str]:
    """The judges of a table as entries of bench.yaml."""
    columns = ", ".join(f"{_quoted(m)}: {_quoted(c)}" for m, c in judge.columns.items())
    where = f"column: {{{columns}}}" if columns else f"from: {DATA}"
    where += ", reply: label" * bool(judge.replies)
    for name in judge.names:
        yield f"{{name: {_quoted(name)}, {where}}}"


def _items(bench: Path) -> list[str]:
    """The ids of the items, as the benchmark reads them. Raises SetupError."""
    from judgebench.runs.load import load_bench

    loaded = load_bench(bench)
    try:
        return [answer.item_id for answer in loaded.dataset.answers]
    finally:
        loaded.close()


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def _quoted(text: str) -> str:
    """The text as YAML reads it back, on one line."""
    plain = re.fullmatch(r"[A-Za-z][\w-]*( [\w-]+)*", text, re.ASCII)
    if plain and isinstance(yaml.safe_load(text), str):
        return text
    dumped = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**9)
    return str(dumped).rstrip("\n")


UNORDERED = {"kind": "nominal", "order": "unknown"}  # a metric that nobody has said more of


def rubric_text(name: str, source: str, metrics: Sequence[Mapping[str, Any]]) -> str:
    """The rubric of these metrics; without any it is an example."""
    about = {"metrics": metrics, "example": _example(), "only_one": ONLY_ONE}
    return filled(_RUBRIC, name=name, source=source, **about)


def _example() -> list[dict[str, Any]]:
    ids = metric_ids(EXAMPLE)
    return [{**UNORDERED, "id": ids[t], "title": t, "labels": x} for t, x in EXAMPLE.items()]


_RUBRIC = """\
# Written by judgebench from {{ source|comment }}.
#
{% if not metrics or metrics|selectattr("order")|list %}
# ORDER THE LABELS. Which label is worse than which cannot be guessed. Until you say so,
# every metric is nominal: its labels have no order, and severe answers are not looked for.
# Where one label is worse than another, sort the labels from the least to the most severe
# and write `kind: ordinal`.
#
{% endif %}
# Delete metrics that are none, such as a column that describes the item. A label that gives
# no grade, as "not applicable", goes from `labels` to `abstain: not applicable`; several
# go to `abstain: [not applicable, cannot tell]`.
{% if not metrics %}
#
# The file holds no labels: the metric below is an EXAMPLE. Replace it.
{% endif %}
name: {{ name|quoted }}
version: "1"
instructions: Give each answer one label for each metric. # as the annotators read it
metrics:
{% for metric in metrics or example %}
{% set question = "Which label does the answer deserve for " ~ metric.title ~ "?" %}
  - id: {{ metric.id|quoted }}
    title: {{ metric.title|quoted }}
    question: {{ question|quoted }} # as the annotators were asked
{% if metric.order %}
    kind: nominal # ordinal, once the labels are in order of severity
    order: unknown # until you sort them; or delete this line if no label is worse than another
    labels: # not in order of severity yet
{% elif metric.kind == "nominal" %}
    kind: nominal
    labels: # none is worse than another
{% elif metric.kind == "ordinal" %}
    kind: ordinal
    labels: # from the least to the most severe
{% else %}
    kind: {{ metric.kind }} # of the first or the second response
{% endif %}
{% for text in metric.labels if metric.kind != "preference" %}
      - text: {{ text|quoted }}
{% endfor %}
{% if metric.labels|length < 2 %}
      - text: {{ only_one }} # the file has one label only
{% endif %}
{% endfor %}
"""


def filled(template: str, **values: Any) -> str:
    """The text that a template makes of values: `quoted` as YAML reads them back, or
    `comment`s."""
    return _template(template).render(values)


@cache
def _template(text: str) -> Template:
    environment = Environment(  # of text that is no HTML
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined,
        autoescape=False,
    )  # fmt: skip
    environment.filters |= {"quoted": _quoted, "comment": lambda text: " ".join(text.split())}
    return environment.from_string(text)


def _data(found: Understood, folder: Path) -> str:
    """The data.yaml, which says what each column is."""
    spec = found.as_spec()
    for file in spec["files"]:
        file["path"] = _from(folder, Path(file["path"]))
    dumped = yaml.safe_dump(
        spec, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    guessed = [
        f"{r} (column {c})" for r, c in found.found.roles.items() if r in found.found.by_content
    ]
    names = ", ".join(found.tables)
    return filled(
        _DATA, names=names, spec=dumped, guessed=guessed, unused=list(_unused(found.found))
    )  # fmt: skip


def _from(folder: Path, path: Path) -> str:
    """The path as a file in the folder writes it."""
    inside = Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()
    return path.absolute().as_posix() if inside.startswith("../..") else inside


_DATA = """\
# Written by judgebench from {{ names|comment }}: which column is what.
# Check the guesses; docs/data_reference.md explains every key.
{% if guessed %}
# Guessed from content, not from names: {{ guessed|join(", ")|comment }}
{% endif %}
{{ spec }}
{%- if unused %}
# Columns that are not read:
{% endif %}
{% for column in unused %}
#   {{ column|comment }}
{% endfor %}
"""


def bench_text(
    path: Path,
    data: Sequence[str],
    judges: Sequence[str] = (),
    truth: Mapping[str, object] = {},
) -> str:
    """The bench.yaml of data read from the file `path`, with the entries of its judges and these
    keys of its `truth`."""
    name, source = stem_of(path), path.name
    given = {key: [*value] if isinstance(value, tuple) else value for key, value in truth.items()}
    rule = given.pop("rule", "median")
    keys = yaml.safe_dump(given).splitlines() if given else []
    return filled(
        _BENCH, name=name, source=source, data=", ".join(data), judges=judges, rule=rule, keys=keys
    )


_BENCH = """\
# Written by judgebench from {{ source|comment }}.
# docs/bench.md explains every key.
name: {{ name|quoted }} # names the run folder: runs/{{ name }}
rubric: rubric.yaml # the order of labels
data: [{{ data }}] # further files of labels go here

# Who is compared with the annotators.
{% if judges %}
judges:
{% else %}
# Take the brackets and the # away, and fill in one or more.
judges: []
{% endif %}
{% for entry in judges %}
  - {{ entry }}
{% endfor %}
#  - name: my-judge
#    backend: openai-compatible:MODEL # or litellm:PROVIDER/MODEL: `judgebench list backends`
#    settings: {base_url: "http://127.0.0.1:8000/v1"}

# How several labels of an item become one reference label.
truth:
  rule: {{ rule }} # or majority, dawid_skene, each; of a nominal metric the majority
{% for line in keys %}
  {{ line }}
{% endfor %}
  # ties: lower # or upper, none; without it upper, and none between nominal labels

# report: {resamples: 2000, level: 0.95} # of all intervals
# notes: [Sentences that every report repeats.]
"""


def _in_words(found: Understood) -> Iterator[str]:
    """Describe what the columns were taken for."""
    seen = found.found
    yield from found.lines
    for name in ("quoting", "sheet", "encoding"):
        if value := getattr(seen.source, name, None):
            yield f"read with `{name}: {value}`"
    for role, column in seen.roles.items():
        guessed = ", guessed from its content" if role in seen.by_content else ""
        yield f"{role}: column {column!r}{guessed}"
    for metric, texts in seen.strays.items():
        yield f"no labels of {metric!r}, read as blank: {some(texts)}"
    if not seen.metrics:
        yield "no column looks like labels: the rubric holds an example to replace"
    for column in _unused(seen):
        yield f"not read: column {column}"


def _unused(found: Guess) -> Iterator[str]:
    """The columns that are not read, and why; many of them are counted."""
    for column, why in islice(found.unused.items(), _MOST_NAMED):
        yield f"{shorten(column)}: {why}"
    if (more := len(found.unused) - _MOST_NAMED) > 0:
        yield f"… and {more:,} more"


def _next_steps(found: Understood, folder: Path) -> list[str]:
    names = {"bench": BENCH, "data": DATA, "rubric": RUBRIC, "labels": LABELS}
    paths = {name: folder / file for name, file in names.items()}
    nominal = [m.title for m in found.rubric.metrics if m.order]
    return filled(
        _NEXT_STEPS, found=found, seen=found.found, nominal=nominal, **paths,
        has_texts=found.found.has_texts or found.answers is not None,
    ).splitlines()  # fmt: skip


_NEXT_STEPS = """\
{% if not seen.metrics %}
In {{ rubric }}, replace the example by your metrics and labels.
{% elif nominal %}
In {{ rubric }}, sort the labels from the least to the most severe and write `kind: ordinal`: \
their order cannot be guessed. Where no label is worse than another, delete `order: unknown`.
{% endif %}
{% if found.lacks_labels %}
Collect labels: judgebench annotate init {{ bench }} --to study, with \
`annotate: {annotators: [ann, ben]}` in that file (docs/annotate.md); or have annotators \
fill copies of {{ labels }} and add these to `data` in {{ bench }}.
{% endif %}
{% if not found.judges and has_texts %}
In {{ bench }}, name the judges.
{% elif not found.judges %}
The tables hold no answers. Give a judge's verdicts as well; or, for a judge that is called, name \
the file of the answers in {{ data }}.
{% endif %}
judgebench check {{ bench }}
{% if found.judges or has_texts %}
judgebench run {{ bench }}{{ "" if found.judges else " --dry-run" }}
{% endif %}
"""
