"""`judgebench init`: write the files of a benchmark from tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from judgebench.data.layout import Layout, layout_lines
from judgebench.data.layout_yaml import as_yaml
from judgebench.data.reading import GivenTables, infer_layout, sources_of
from judgebench.data.settings import settings_of
from judgebench.errors import Problem, SetupError, some
from judgebench.files import all_or_nothing, write_atomically
from judgebench.words import as_name

BENCH, LAYOUT, RUBRIC = "bench.yaml", "layout.yaml", "rubric.yaml"
LABELS = "labels-template.csv"


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
    columns: Mapping[str, Any] = {},
) -> Started:
    """Write the files of a benchmark from tables of answers, human labels and verdicts: a
    layout.yaml that says what every column is, a rubric and a bench.yaml, into the folder `to`, by
    default that of the first.

    `columns` is as in `jb.layout`. Without an `order`, metrics are written without an order of
    severity, and a comment in the rubric says how to state it.

    Raises SetupError where a file cannot be read, or one would be overwritten, and Unsettled where
    the tables can be read in several ways; nothing is written then.

    >>> import judgebench as jb
    >>> [path.name for path in jb.init("answers.csv", "mine").files]
    ['bench.yaml', 'layout.yaml', 'rubric.yaml', 'labels-template.csv']
    """
    paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    folder = Path(to) if to is not None else paths[0].parent
    tables = GivenTables(unsorted=[s for path in paths for s in sources_of(path, path.name)])
    return save(infer_layout(tables, settings_of(columns), labelled=False), folder)


def save(layout: Layout, folder: Path, truth: Mapping[str, object] = {}) -> Started:
    """Write what the tables are as the files of a benchmark, with these keys of its `truth`. Raises
    SetupError."""
    from judgebench.runs.load import load_bench

    lacking = not any(sheet.has_labels for sheet in layout.sheets)
    if lacking and not any(sheet.of("text", "messages") for sheet in layout.sheets):
        columns = some(c for sheet in layout.sheets for c in sheet.columns)
        message = "holds neither texts to judge nor labels: say where they stand, as in --column "
        message += "'COLUMN=text' or --column 'COLUMN=label'"
        raise SetupError(Problem(message, layout.name, 1, "", columns))
    source = layout.sheets[0].source.path.name
    texts = {
        BENCH: _bench_text(layout, source, truth),
        LAYOUT: as_yaml(replace(layout, truth=truth), folder, RUBRIC),
        RUBRIC: _filled(_RUBRIC, rubric=layout.rubric, source=source, is_example=lacking),
    }
    paths = [folder / name for name in (*texts, *([LABELS] if lacking else []))]
    with all_or_nothing(folder, paths):
        for path, text in zip(paths, texts.values(), strict=False):
            write_atomically(path, text.encode())
        with closing(load_bench(folder / BENCH)) as bench:  # which is an error if it cannot run
            answers = bench.dataset.answers
        if lacking:
            ids = [metric.id for metric in layout.rubric.metrics]
            blank = ["your-name", *[""] * len(ids)]
            rows = [["item_id", "annotator", *ids], *([one.item_id, *blank] for one in answers)]
            out = io.StringIO()
            csv.writer(out, lineterminator="\n").writerows(rows)
            write_atomically(folder / LABELS, out.getvalue().encode())
    has_texts = any(answer.text for answer in answers)
    steps = _next_steps(layout, folder, lacking, has_texts)
    return Started(tuple(paths), tuple(layout_lines(layout)), tuple(steps))


def _quoted(text: str) -> str:
    """The text as YAML reads it back, on one line."""
    plain = re.fullmatch(r"[A-Za-z][\w-]*( [\w-]+)*", text, re.ASCII)
    if plain and isinstance(yaml.safe_load(text), str):
        return text
    dumped = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**9)
    return str(dumped).rstrip("\n")


_RUBRIC = """\
# Written by judgebench from {{ source|comment }}.
#
{% if rubric.metrics|selectattr("order")|list %}
# ORDER THE LABELS. Which label is worse than which cannot be guessed. Until you say so,
# every metric is nominal: its labels have no order, and severe answers are not looked for.
# Where one label is worse than another, sort the labels from the least to the most severe
# and write `kind: ordinal`.
#
{% endif %}
# Delete metrics that are none, such as a column that describes the item. A label that gives
# no grade, as "not applicable", goes from `labels` to `abstain: not applicable`; several
# go to `abstain: [not applicable, cannot tell]`.
{% if is_example %}
#
# The file holds no labels: the metric below is an EXAMPLE. Replace it.
{% endif %}
name: {{ rubric.name|quoted }}
version: "1"
instructions: Give each answer one label for each metric. # as the annotators read it
metrics:
{% for metric in rubric.metrics %}
  - id: {{ metric.id|quoted }}
    title: {{ metric.title|quoted }}
    question: {{ metric.question|quoted }} # as the annotators were asked
{% if metric.several %}
    several: true # labels may be right at once
{% endif %}
{% if metric.order %}
    kind: nominal # ordinal, once the labels are in order of severity
    order: unknown # until you sort them; or delete this line if no label is worse than another
    labels: # not in order of severity yet
{% elif metric.preference %}
    kind: preference # of the first or the second response
{% elif metric.kind == "nominal" %}
    kind: nominal
    labels: # none is worse than another
{% elif metric.severe %}
    kind: ordinal
    severe: none # all labels are alike but for their order
    labels: # from the lowest to the highest
{% else %}
    kind: ordinal
    labels: # from the least to the most severe
{% endif %}
{% for text in metric.label_texts if not metric.preference %}
      - text: {{ text|quoted }}
{% endfor %}
{% endfor %}
"""


def _filled(template: str, **values: Any) -> str:
    """The text that a template makes of values: `quoted` as YAML reads them back, or
    `comment`s."""
    environment = Environment(  # of text that is no HTML
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined,
        autoescape=False,
    )  # fmt: skip
    environment.filters |= {"quoted": _quoted, "comment": lambda text: " ".join(text.split())}
    return environment.from_string(template).render(values)


def _bench_text(layout: Layout, source: str, truth: Mapping[str, object]) -> str:
    """The bench.yaml of tables whose first is read from `source`."""
    given = {key: [*value] if isinstance(value, tuple) else value for key, value in truth.items()}
    rule = given.pop("rule", "median")
    keys = yaml.safe_dump(given) if given else ""
    judges = map(as_name, layout.judges)
    return _filled(
        _BENCH, name=layout.rubric.name, source=source, judges=[*judges], rule=rule, keys=keys,
        layout=LAYOUT,
    )  # fmt: skip


_BENCH = """\
# Written by judgebench from {{ source|comment }}.
# docs/bench.md explains every key.
name: {{ name|quoted }} # names the run folder: runs/{{ name }}
rubric: rubric.yaml # the order of labels
data: [{{ layout }}] # further files of labels go here

# Who is compared with the annotators.
{% if judges %}
judges:
{% else %}
# Take the brackets and the # away, and fill in one or more.
judges: []
{% endif %}
{% for judge in judges %}
  - {name: {{ judge|quoted }}, verdicts: {{ layout }}}
{% endfor %}
#  - name: my-judge
#    backend: openai-compatible:MODEL # or litellm:PROVIDER/MODEL: `judgebench list backends`
#    settings: {base_url: "http://127.0.0.1:8000/v1"}

# How several labels of an item become one reference label.
truth:
  rule: {{ rule }} # or majority, dawid_skene, each; of a nominal metric the majority
{% if keys %}
  {{ keys|trim|indent(2) }}
{% endif %}
  # ties: lower # or upper, none; without it upper, and none between nominal labels

# report: {level: 0.95} # of all intervals
# notes: [Sentences that every report repeats.]
"""


def _next_steps(layout: Layout, folder: Path, lacking: bool, has_texts: bool) -> list[str]:
    names = {"bench": BENCH, "layout": LAYOUT, "rubric": RUBRIC, "labels": LABELS}
    paths = {name: folder / file for name, file in names.items()}
    unordered = [m.title for m in layout.rubric.metrics if m.order]
    return _filled(
        _NEXT_STEPS, judges=layout.judges, unordered=unordered, lacking=lacking,
        has_texts=has_texts, **paths,
    ).splitlines()  # fmt: skip


_NEXT_STEPS = """\
{% if lacking %}
In {{ rubric }}, replace the example by your metrics and labels.
{% elif unordered %}
In {{ rubric }}, sort the labels from the least to the most severe and write `kind: ordinal`: \
their order cannot be guessed. Where no label is worse than another, delete `order: unknown`.
{% endif %}
{% if lacking %}
Collect labels: judgebench annotate init {{ bench }} --to study, with \
`annotate: {annotators: [ann, ben]}` in that file (docs/annotate.md); or have annotators \
fill copies of {{ labels }} and add these to `data` in {{ bench }}.
{% endif %}
{% if not judges and has_texts %}
In {{ bench }}, name the judges.
{% elif not judges %}
The tables hold no answers. Give a judge's verdicts as well; or, for a judge that is called, name \
the file of the answers in {{ layout }}.
{% endif %}
judgebench check {{ bench }}
{% if judges or has_texts %}
judgebench run {{ bench }}{{ "" if judges else " --dry-run" }}
{% endif %}
"""
