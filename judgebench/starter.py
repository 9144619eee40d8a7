"""`judgebench init`: write the files of a benchmark from the columns of a file."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from judgebench.data.guess import NAMES, Guess, guess, keys_of
from judgebench.errors import shorten, some
from judgebench.files import all_or_nothing, write_atomically
from judgebench.rubric import normalise

BENCH, DATA, RUBRIC = "bench.yaml", "data.yaml", "rubric.yaml"
LABELS, ANSWERS = "labels-template.csv", "answers-template.csv"
_MOST_NAMED = 50  # columns that are not read
_ITEM = ("question", "text", "system", "reference", "group")
EXAMPLE = {"Quality": ("Good", "Acceptable", "Poor")}  # where the file holds no labels


@dataclass(frozen=True, repr=False)
class Started:
    """The files that were written, what the columns were taken for, and what to do next."""

    files: tuple[Path, ...]
    found: tuple[str, ...]
    next_steps: tuple[str, ...]

    def __repr__(self) -> str:
        steps = (f"  {i}. {step}" for i, step in enumerate(self.next_steps, start=1))
        return "\n".join([*self.found, *(f"Wrote {path}" for path in self.files), "Next:", *steps])


def init(file: str | Path, to: str | Path | None = None) -> Started:
    """Write the files of a benchmark from a file of answers, labels or both, as `judgebench check`
    passes them: into the folder `to`, by default the file's own.

    Which label is worse than which cannot be guessed: metrics are written without an order of
    severity, and a comment in the rubric says how to state it.

    Raises SetupError where the file cannot be read as it is, or a file would be overwritten;
    nothing is written then.

    >>> import judgebench as jb
    >>> [path.name for path in jb.init("answers.csv", "mine").files]
    ['bench.yaml', 'data.yaml', 'rubric.yaml', 'labels-template.csv']
    """
    found = guess(Path(file))
    folder = Path(to) if to is not None else found.path.parent
    names = [BENCH, DATA, RUBRIC, LABELS, *([ANSWERS] if found.needs_answers else [])]
    paths = [folder / name for name in names]
    ids = metric_ids(found.metrics or EXAMPLE)
    with all_or_nothing(folder, paths):
        rubric = rubric_text(stem_of(found.path), found.path.name, found.metrics, ids)
        write_atomically(folder / RUBRIC, rubric.encode())
        write_atomically(folder / DATA, _data(found, ids, folder).encode())
        if found.needs_answers:
            rows = ([*key, f"Write the answer of {' '.join(key)} here."] for key in keys_of(found))
            write_atomically(folder / ANSWERS, csv_text([*found.key, "text"], rows).encode())
        judges = [
            f"{{name: {_quoted(name)}, column: {{{_quoted(ids[metric])}: {_quoted(column)}}}}}"
            for name, (column, metric) in found.judges.items()
        ]
        write_atomically(folder / BENCH, bench_text(found.path, [DATA], judges).encode())
        rows = ([item, "your-name", *[""] * len(ids)] for item in _items(folder / BENCH))
        write_atomically(
            folder / LABELS, csv_text(["item_id", "annotator", *ids.values()], rows).encode()
        )
    return Started(tuple(paths), tuple(_in_words(found)), tuple(_next_steps(found, folder)))


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


def stem_of(path: Path) -> str:
    """The file's name as the name of a benchmark and a rubric."""
    return re.sub("[^A-Za-z0-9_-]+", "-", path.name.split(".")[0]).strip("-_")[:60] or "mine"


def metric_ids(metrics: Iterable[str]) -> dict[str, str]:
    """The id of each metric by what the file calls it; no two ids or titles are the same."""
    titles = {title: normalise(title) for title in metrics}
    taken, numbers = set(titles.values()), Counter[str]()
    ids: dict[str, str] = {}
    used = {*NAMES, "silver"} - {"metric", "label"}  # columns that are never of labels
    for title, plain in titles.items():
        slug = re.sub("[^a-z0-9]+", "_", plain).strip("_")
        slug = slug if slug[:1].isalpha() else f"metric_{slug}".rstrip("_")
        found_id = slug
        while found_id in used or (found_id in taken and found_id != plain):
            numbers[slug] += 1
            found_id = f"{slug}_{numbers[slug] + 1}"
        used.add(found_id)
        ids[title] = found_id
    return ids


def rubric_text(
    name: str, source: str, metrics: Mapping[str, Sequence[str]], ids: Mapping[str, str]
) -> str:
    """The rubric of these metrics and labels, in which no label is worse than another yet. Without
    metrics it is an example."""
    return filled(_RUBRIC, name=name, source=source, metrics=metrics, ids=ids, example=EXAMPLE)


_RUBRIC = """\
# Written by judgebench from {{ source|comment }}.
#
# ORDER THE LABELS. Which label is worse than which cannot be guessed. Until you say so,
# every metric is nominal: its labels have no order, and severe answers are not looked for.
# Where one label is worse than another, sort the labels from the least to the most severe
# and write `kind: ordinal`.
#
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
{% for title, labels in (metrics or example).items() %}
{% set question = "Which label does the answer deserve for " ~ title ~ "?" %}
  - id: {{ ids[title]|quoted }}
    title: {{ title|quoted }}
    question: {{ question|quoted }} # as the annotators were asked
    kind: nominal # ordinal, once the labels are in order of severity
    labels: # not in order of severity yet
{% for text in labels %}
      - text: {{ text|quoted }}
{% endfor %}
{% if labels|length < 2 %}
      - text: (write the other labels here) # the file has one label only
{% endif %}
{% endfor %}
"""


def filled(template: str, **values: Any) -> str:
    """The text that a template makes of values: `quoted` as YAML reads them back, or
    `comment`s."""
    environment = Environment(  # of text that is no HTML
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined,
        autoescape=False,
    )  # fmt: skip
    environment.filters |= {"quoted": _quoted, "comment": lambda text: " ".join(text.split())}
    return environment.from_string(template).render(values)


def _data(found: Guess, ids: Mapping[str, str], folder: Path) -> str:
    """The data.yaml, which says what each column is."""
    inside = Path(os.path.relpath(found.path.absolute(), folder.absolute())).as_posix()
    if inside.startswith("../.."):
        inside = found.path.absolute().as_posix()
    entries: Mapping[str, Mapping[str, str]] = found.columns if found.metrics else {}
    if "metric" in found.roles:  # annotators and metrics are in the rows
        entries = {"": {}}
    return filled(
        _DATA, found=found, ids=ids, inside=inside, settings=_settings(found), entries=entries,
        item_id=_item_id(found), items=_ITEM, column=partial(_column, found),
        annotator=partial(_annotator, found), unused=_unused(found),
    )  # fmt: skip


_DATA = """\
# Written by `judgebench init` from {{ found.path.name|comment }}: which column is what.
# Check the guesses; docs/data_reference.md explains every key.
files:
  - path: {{ inside|quoted }}
{% for name, value in settings %}
    {{ name }}: {{ value|quoted }}
{% endfor %}
{% macro labels(who, columns) %}
annotator: {{ annotator(who) }}
{% if "metric" in found.roles %}
metric: {{ column("metric") }}
label: {{ column("label") }}
{% else %}
metrics: # id in rubric.yaml: column
{% for metric, name in columns.items() %}
  {{ ids[metric]|quoted }}: {{ name|quoted }}
{% endfor %}
{% endif %}
{% endmacro %}
{% if found.needs_answers %}
    labels:
{% for who, columns in entries.items() %}
      - item_id: {{ item_id }}
        {{ labels(who, columns)|trim|indent(8) }}
{% endfor %}
  # The file holds no answers. Write them into this table, or name the file that has
  # them here.
  - path: answers-template.csv
    items: {item_id: {{ item_id.split(" #")[0] }}, text: text}
{% else %}
    items:
      - item_id: {{ item_id }}
{% for role in items if role in found.roles %}
        {{ role }}: {{ column(role) }}
{% endfor %}
{% if found.blank_texts %}
        if_empty: keep # an empty text is an answer too; with skip such rows are no items
{% endif %}
{% if entries %}
        labels:
{% endif %}
{% for who, columns in entries.items() %}
          - {{ labels(who, columns)|trim|indent(12) }}
{% endfor %}
{% endif %}
{% if found.strays %}
spellings: # cells that are no label; null means blank
{% endif %}
{% for metric, texts in found.strays.items() %}
  {{ ids[metric]|quoted }}: { {%- for text in texts %}
{{ text|quoted }}: null{{ "" if loop.last else ", " }}
{%- endfor %}}
{% endfor %}
{% if found.unused %}
# Columns that are not read:
{% endif %}
{% for column in unused %}
#   {{ column|comment }}
{% endfor %}
"""


def _settings(found: Guess) -> Iterator[tuple[str, str]]:
    """The settings by which the file is read, where not as usual."""
    for name in ("quoting", "sheet"):
        if value := getattr(found.source, name):
            yield name, value


def _annotator(found: Guess, who: str) -> str:
    if who or "annotator" not in found.roles:
        about = "" if who else " # no column says who labelled"
        return f"{{value: {_quoted(who or 'annotator')}}}{about}"
    return _column(found, "annotator")


def _item_id(found: Guess) -> str:
    if "item_id" in found.roles:
        return _column(found, "item_id")
    if not found.key:
        return "{row: true} # no columns distinguish the items: each row is one"
    columns = ", ".join(map(_quoted, found.key))
    return f"{{hash_of: [{columns}]}} # no column alone distinguishes the items"


def _column(found: Guess, role: str) -> str:
    guessed = " # guessed from its content" if role in found.by_content else ""
    return f"{_quoted(found.roles[role])}{guessed}"


def bench_text(path: Path, data: Sequence[str], judges: Sequence[str] = ()) -> str:
    """The bench.yaml of data read from the file `path`, with the entries of its judges."""
    name, source = stem_of(path), path.name
    return filled(_BENCH, name=name, source=source, data=", ".join(data), judges=judges)


_BENCH = """\
# Written by judgebench from {{ source|comment }}.
# docs/bench.md explains every key.
name: {{ name|quoted }} # names the run folder: runs/{{ name }}
rubric: rubric.yaml # order the labels there
data: [{{ data }}] # further files of labels go here, such as a filled labels-template.csv

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

# How several labels of an item become one truth.
truth:
  rule: median # or majority, dawid_skene, each; of a nominal metric the majority
  # ties: lower # or upper, none; without it upper, and none between nominal labels

# report: {resamples: 2000, level: 0.95} # of all intervals
# notes: [Sentences that every report repeats.]
"""


def _in_words(found: Guess) -> Iterator[str]:
    """Describe what the columns were taken for."""
    for name, value in _settings(found):
        yield f"read with `{name}: {value}`"
    for role, column in found.roles.items():
        guessed = ", guessed from its content" if role in found.by_content else ""
        yield f"{role}: column {column!r}{guessed}"
    if "item_id" not in found.roles:
        yield f"item_id: {' and '.join(map(repr, found.key)) or 'each row is an item'}"
    for metric, labels in found.metrics.items():
        people = [who for who, columns in found.columns.items() if who and metric in columns]
        by = f" by {some(people)}" if people else ""
        yield f"metric {metric!r}{by}: {', '.join(labels)}"
    for metric, texts in found.strays.items():
        yield f"no labels of {metric!r}, read as blank: {some(texts)}"
    for name, (column, metric) in found.judges.items():
        yield f"judge {name!r}: verdicts on {metric!r} in column {column!r}"
    if not found.metrics:
        yield "no column looks like labels: the rubric holds an example to replace"
    for column in _unused(found):
        yield f"not read: column {column}"


def _unused(found: Guess) -> Iterator[str]:
    """The columns that are not read, and why; many of them are counted."""
    for column, why in islice(found.unused.items(), _MOST_NAMED):
        yield f"{shorten(column)}: {why}"
    if (more := len(found.unused) - _MOST_NAMED) > 0:
        yield f"… and {more:,} more"


def _next_steps(found: Guess, folder: Path) -> list[str]:
    names = {"bench": BENCH, "data": DATA, "rubric": RUBRIC, "labels": LABELS, "answers": ANSWERS}
    paths = {name: folder / file for name, file in names.items()}
    return filled(_NEXT_STEPS, found=found, **paths).splitlines()


_NEXT_STEPS = """\
{% if found.metrics %}
In {{ rubric }}, sort the labels from the least to the most severe and write `kind: ordinal`: \
their order cannot be guessed.
{% else %}
In {{ rubric }}, replace the example by your metrics and labels.
{% endif %}
{% if found.needs_answers %}
Write the answers into {{ answers }}, or name their file in {{ data }}.
{% endif %}
{% if not found.metrics or "annotator" not in found.roles %}
Have annotators fill copies of {{ labels }} and add these to `data` in {{ bench }}.
{% endif %}
{% if not found.judges %}
In {{ bench }}, name the judges.
{% endif %}
judgebench check {{ bench }}
judgebench run {{ bench }}{{ "" if found.judges else " --dry-run" }}
"""
