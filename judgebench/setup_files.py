"""Files of a study: imported from the log of another tool, checked, listed, begun."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from judgebench.alignment.notes import (
    bar_lines,
    compared_with,
    overlap_lines,
    unusual_label_use_notes,
)
from judgebench.data.layout import Layout, as_yaml, is_layout, layout_lines, load_layout
from judgebench.data.load import load_data
from judgebench.data.logs import read_log
from judgebench.data.reading import given_tables, infer_layout
from judgebench.data.settings import LISTED_SETTINGS, TableSettings, settings_of
from judgebench.data.vocabulary import ROLES, role_words
from judgebench.errors import Problem, SetupError, some
from judgebench.features import FEATURES, Feature, FileKind
from judgebench.files import (
    all_or_nothing,
    load_with_lines,
    load_yaml,
    open_bytes,
    shipped_folder,
    shipped_names,
    write_atomically,
    write_lines,
)
from judgebench.judges.llm import LLMJudge
from judgebench.judges.recorded import truth_of_others
from judgebench.records import SEVERAL, Dataset
from judgebench.rubric import Rubric, load_rubric, one_or_more, shipped_rubrics
from judgebench.runs.features import Lines
from judgebench.runs.from_tables import layout_of
from judgebench.runs.from_tables import study as study_of_tables
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import Study, study_of
from judgebench.studies.verdicts import suspicions
from judgebench.supported import StudyOrigin, Support, support_lines, supports_of
from judgebench.text import as_name, counted

_LOGS = "logs of inspect_ai, lm-evaluation-harness, promptfoo, DeepEval, Label Studio"


def import_file(file: str | Path, to: str | Path | None = None) -> Started:
    """Write the answers, human labels and verdicts in a log of another tool as tables into the
    folder `to`, by default the file's own.

    What a file is follows from its content: a log of inspect_ai, samples of lm-evaluation-harness,
    results of promptfoo, a test run of DeepEval or annotations of Label Studio. Labels of people
    are human labels; scorers, assertions and predictions are judges.

    Raises SetupError where the file is damaged or unknown, or a file would be overwritten; nothing
    is written then. Raises MissingExtra for an `.eval` log without inspect_ai.

    >>> import judgebench as jb
    >>> [path.name for path in jb.import_file("samples_library.jsonl", "imported").files]
    ['answers.jsonl', 'verdicts.jsonl']
    """
    path = Path(file)
    log = read_log(path)
    if log is None:
        message = "is no log that judgebench knows; tables need no import: give them as they are"
        raise SetupError(Problem(message, str(path), allowed=_LOGS))
    if not any(log.rows.values()):
        why = ", ".join(f"{what} ({count})" for what, count in log.left_out.items())
        raise SetupError(Problem("holds no answer to import", str(path), found=why))
    folder = Path(to) if to is not None else path.parent
    files = {kind: folder / f"{kind}.jsonl" for kind, rows in log.rows.items() if rows}
    with all_or_nothing(folder, list(files.values())):
        for kind, target in files.items():
            write_lines(target, log.rows[kind])
    counts = (counted(len(log.rows[kind]), kind.removesuffix("s")) for kind in files)
    if "labels" in files:
        step = f"judgebench {'decide' if 'verdicts' in files else 'init'} {quote(str(path))}"
    else:
        step = f"judgebench init {quote(str(files['answers']))}, and collect labels as it says"
    return Started(tuple(files.values()), (log.tool, *counts, *log.notes), (step,), log.left_out)


USUAL_RUBRIC = "medical-safety"  # of sets of altered answers
_MAX_LINE = 1 << 27  # bytes


@dataclass(repr=False)
class CheckReport:
    """The facts found, in words; `warnings` and `errors` one a problem; and each use of the data,
    with the next command or what is missing."""

    facts: list[str] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    supports: list[Support] = field(default_factory=list)  # each use of the data

    def __repr__(self) -> str:
        warnings = [f"warning: {problem}" for problem in self.warnings]
        errors = [f"error: {problem}" for problem in self.errors] or ["No errors."]
        return "\n".join([*self.facts, *warnings, *errors, *support_lines(self.supports)])


def check(
    files: str | Path | Sequence[str | Path],
    rubric: str | Path | None = None,
    *,
    data_folder: str | Path | None = None,
    columns: Mapping[str, Any] = {},
) -> CheckReport:
    """Every problem in files of any kind, with file and row, and what they support today: the next
    command for each use, or what is missing. Calls no model.

    Data files are checked together, against `rubric` or a rubric among the files; without any, by
    the layout that they have, with these `columns`, as in `layout`. Paths in YAML files start at
    `data_folder`, where it is given. Raises nothing for what a file holds.

    >>> import judgebench as jb
    >>> print(jb.check(["bench.yaml"]))
    bench.yaml: a benchmark of 24 answers with 188 human labels, 1 judge and 6 baselines
    24 answers and 188 human labels. Reference labels: the median of annotator-1, ...
    Bar: annotator-1, annotator-2 and annotator-3.
    Overlap: 24 of 24 items with a label have two or more.
    warning: labels.csv:34: scientific_consensus: blank cell, counted as no label (1 time, row 34)
    No errors.
    These files support:
      verdicts of its judges           yes  judgebench run bench.yaml
    ...
    """
    known = str(rubric) if rubric else None
    folder = Path(data_folder) if data_folder else None
    report, data = CheckReport(), list[Path]()
    for path in map(Path, one_or_more(files)):
        try:
            kind = _kind(path)
            if kind == "bench":
                known = known or _rubric_of(path)
                _check_bench(report, path, folder)
            elif kind in ("", "layout"):
                data.append(path)
            else:
                says = _CHECKS.get(kind) or _check_of_feature(kind)
                report.facts.append(f"{path}: {says(path, known or USUAL_RUBRIC)}")
                known = known or (str(path) if kind == "rubric" else None)
        except SetupError as error:
            report.errors += [replace(p, file=p.file or str(path)) for p in error.problems]
    if data:
        try:
            _check_data(report, data, known, folder, settings_of(columns))
        except SetupError as error:
            report.errors += error.problems
    return report


def _kind(path: Path) -> str:
    """Tell the kind of a file by the keys that only its kind has; empty for data."""
    kinds = [_FIRST_KIND, *(kind for f in FEATURES.values() for kind in f.files), *_KINDS]
    if path.suffix not in (".yaml", ".yml"):
        others = (kind for kind in kinds if kind.suffix == path.suffix)
        return next((kind.name for kind in others if _first_keys(path) >= set(kind.keys)), "")
    value, kinds = load_yaml(path), [kind for kind in kinds if kind.suffix == ".yaml"]
    given = set(value) if isinstance(value, dict) else set()
    if kind := next((kind for kind in kinds if given & set(kind.keys)), None):
        return kind.name
    known = ", ".join(f"{kind.name} ({', '.join(kind.keys)})" for kind in kinds)
    found = ", ".join(map(str, given)) or "no keys"
    raise SetupError(Problem(f"is none of: {known}", str(path), found=found))


def _first_keys(path: Path) -> set[str]:
    """The keys of the object on the first line; none where there is no such line."""
    try:
        with open_bytes(path) as file:
            first = json.loads(file.readline(_MAX_LINE).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return set()
    return {*first} if isinstance(first, dict) else set()


def _check_of_feature(kind: str) -> Callable[[Path, str], str]:
    feature = next(f for f in FEATURES.values() if kind in {file.name for file in f.files})
    check: Callable[[Path, str], str] = feature.parts.checks[kind]
    return check


def _check_data(
    report: CheckReport, files: Sequence[Path], name: str | None, folder: Path | None,
    settings: TableSettings,
) -> None:  # fmt: skip
    """Check tables against the rubric of that name or of a layout among them, or else by the layout
    that is inferred. Raises SetupError."""
    tables: Sequence[Path | Layout] = files
    given = given_tables(files, settings)
    layouts = [path for path in files if is_layout(path)]
    layout = load_layout(layouts[0]) if layouts else None
    if name is not None:
        rubric = load_rubric(name)
    elif layout is not None:
        rubric = layout.rubric
    else:
        layout = infer_layout(given, settings, labelled=False)
        report.facts += layout_lines(layout)
        labelled = any(sheet.has_labels for sheet in layout.sheets)
        rubric = layout.rubric if labelled else load_rubric(USUAL_RUBRIC)
        tables = [layout]
    data = load_data(tables, rubric, folder=folder)
    counts = Counter(answer.kind for answer in data.answers)
    rows = [counted(n, kind, SEVERAL[kind]) for kind, n in counts.items()]
    report.facts.append(f"{', '.join(rows)}, {counted(data.n_labels, 'human label')}")
    truth = truth_of_others(TruthConfig(annotators=settings.person), settings.as_judge, data.labels)
    study = _check_truth(report, rubric, data, truth)
    report.warnings += data.warnings
    report.warnings += suspicions(study.makers)
    words = [quote(str(path)) for path in layouts[:1] or files]
    words += [f"--rubric {quote(name)}"] if name is not None else []
    arguments = " ".join(filter(None, (*words, settings.flags())))
    report.supports = _supports_of_tables(
        study, arguments, layout, settings.as_judge, lambda: layout_of(given, settings, rubric)
    )


def _supports_of_tables(
    study: Study,
    arguments: str,
    layout: Layout | None,
    as_judges: Sequence[str],
    infer: Callable[[], Layout],
) -> list[Support]:
    """Every use of tables. Their verdicts are read only here, and only beside labels."""
    judges = layout.judges if layout else ()
    try:
        if study.n_labels:
            study = _with_judges(layout or infer(), as_judges)
            judges = tuple(judge.name for judge in study.real_judges)
    except SetupError as error:
        return [Support("decision", "", str(error.problems[0]))]
    return supports_of(study, StudyOrigin(arguments, [*map(as_name, judges)]))


def _with_judges(layout: Layout, as_judges: Sequence[str]) -> Study:
    """The study of the tables of a layout, with their judges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report has those of the data
        return study_of_tables(layout, as_judges=as_judges)


def _check_truth(
    report: CheckReport, rubric: Rubric, dataset: Dataset, truth: TruthConfig, file: str = ""
) -> Study:
    """Report who makes the truth by which rule, who is left out of the bar, and who uses labels
    oddly; `file` is that of the rule. Return the study, without judges."""
    used = {label.metric for label in dataset.labels if label.label is not None}
    if not used:
        return study_of(rubric, dataset.answers, (), truth)
    measured = rubric.only([metric.id for metric in rubric.metrics if metric.id in used])
    study = study_of(measured, dataset.answers, dataset.labels, truth)
    before = "" if file else "unless a bench.yaml says otherwise: "
    report.facts += [f"{before}{compared_with(study)}", *bar_lines(study), *overlap_lines(study)]
    report.warnings += [
        Problem(note.rstrip("."), file)
        for humans in study.humans.values()
        for note in unusual_label_use_notes(humans)
    ]
    return study


def _rubric_of(path: Path) -> str | None:
    """The rubric that a bench.yaml names, for sets and recipes that are checked with it."""
    name = load_yaml(path).get("rubric")
    beside = path.parent / str(name)
    return str(beside) if beside.is_file() else name


def _check_bench(report: CheckReport, path: Path, data_folder: Path | None) -> None:
    from judgebench.runs.bench import default_run_folder
    from judgebench.runs.load import load_bench

    value = load_yaml(path)
    for feature in FEATURES.values():
        if feature.section in value and feature.parts.check:
            report.facts.append(f"{path}: {feature.parts.check(path)}")
            return
    bench = load_bench(path, data_folder=data_folder)
    bench.close()
    report.facts.append(f"{path}: {bench.in_words}")
    study = _check_truth(report, bench.rubric, bench.dataset, bench.config.truth, str(path))
    report.warnings += bench.warnings
    judges = bench.names - {control.name for control in bench.controls}
    run = quote(str(default_run_folder(bench.config)))
    gives_probabilities = any(judge.config.probabilities for judge in bench.judges)
    origin = StudyOrigin(
        run, sorted(judges), quote(str(path)), bool(bench.judges), gives_probabilities
    )
    report.supports = supports_of(study, origin)
    report.warnings += [p for judge in bench.judges for p in _unset_keys(str(path), judge)]


def _unset_keys(file: str, judge: LLMJudge) -> Iterator[Problem]:
    try:
        judge.config.settings.sent_headers()
    except SetupError as error:
        for problem in error.problems:
            yield replace(problem, file=file, field=f"judges.{judge.name}.{problem.field}")


def _check_rubric(path: Path, rubric: str) -> str:
    found = load_rubric(path)
    return f"the rubric {found.name}, version {found.version}, {len(found.metrics)} metrics"


def _check_judge(path: Path, rubric: str) -> str:
    from judgebench.judges.config import CalibrationConfig, JudgeConfig, judge_entry

    value, node = load_with_lines(path)
    found = judge_entry(value, str(path), node)
    if isinstance(found, CalibrationConfig):
        return f"the calibrated judge {found.name}, from verdicts of {found.calibrate}"
    return f"the {'judge' if isinstance(found, JudgeConfig) else 'jury'} {found.name}"


def _check_prompt(path: Path, rubric: str) -> str:
    from judgebench.prompt import prompt_in_words

    return prompt_in_words(path, rubric)


_FIRST_KIND = FileKind("judge", ("backend",))  # its `prompt` is a key of a task too
_KINDS = (
    FileKind("layout", ("tables",)),
    FileKind("bench", ("rubric", "data")),
    FileKind("jury", ("jury",)),
    FileKind("rubric", ("instructions",)),
    FileKind("calibration", ("calibrate",)),
    FileKind("prompt", suffix=".jinja"),
)
_CHECKS = {
    "judge": _check_judge, "jury": _check_judge, "calibration": _check_judge,
    "rubric": _check_rubric, "prompt": _check_prompt,
}  # fmt: skip


def listing(what: str | None = None) -> Mapping[str, Lines]:
    """Heading -> (name, what it is), for one kind or for all."""
    core = (
        _rubrics, _prompts, _examples, _backends, _baselines, _weights, _roles, _settings,
        _columns, _exports, _checklists,
    )  # fmt: skip
    makers: dict[str, Callable[[], Lines]] = {make.__name__[1:]: make for make in core}
    for feature in FEATURES.values():
        makers |= {name: partial(_list_of_feature, feature, name) for name in feature.lists}
    if what not in (None, *makers):
        raise SetupError(
            Problem("is not a kind of what ships", found=what or "", allowed=", ".join(makers))
        )
    return {name: make() for name, make in makers.items() if what in (None, name)}


def _list_of_feature(feature: Feature, name: str) -> Lines:
    lines: Lines = feature.parts.lists[name]()
    return lines


def _rubrics() -> Lines:
    return [
        (rubric.name, ", ".join(metric.id for metric in rubric.metrics))
        for rubric in map(load_rubric, shipped_rubrics())
    ]


def _prompts() -> Lines:
    from judgebench.prompt import load_prompt

    return [(p.name, p.description) for p in map(load_prompt, shipped_names("prompts", ".jinja"))]


def _examples() -> Lines:
    return [
        (file.parent.name, str(file.parent))
        for file in sorted(shipped_folder("examples").glob("*/bench.yaml"))
    ]


def _backends() -> Lines:
    from judgebench.models import KINDS

    return [(kind.spelling, kind.about) for kind in KINDS]


def _baselines() -> Lines:
    from judgebench.judges.control import ABOUT, ABOUT_BY

    return [*((str(name), about) for name, about in ABOUT.items()), ("by-COLUMN", ABOUT_BY)]


def _weights() -> Lines:
    from judgebench.models.checkpoints import WEIGHTS

    return [(name, f"{w.licence}; {w.note}") for name, w in WEIGHTS.items()]


def _roles() -> Lines:
    return [*ROLES.items()]


def _settings() -> Lines:
    return list(LISTED_SETTINGS.items())


def _columns() -> Lines:
    return [(role, ", ".join(names)) for role, names in role_words().items()]


def _checklists() -> Lines:
    from judgebench.checklist import FOLDER, load_checklist

    return [(name, load_checklist(name).title) for name in shipped_names(FOLDER, ".yaml")]


def _exports() -> Lines:
    from judgebench.data.exports import exports

    return [(tool, export.has) for tool, export in exports().items()]


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
    settings = settings_of(columns)
    tables = given_tables(paths, settings)
    truth = {"annotators": [*settings.person]} if settings.person else {}
    return save(infer_layout(tables, settings, labelled=False), folder, truth)


def save(layout: Layout, folder: Path, truth: Mapping[str, object] = {}) -> Started:
    """Write what the tables are as the files of a benchmark, with these keys of its `truth`. Raises
    SetupError."""
    from judgebench.runs.load import load_bench

    lacking = not any(sheet.has_labels for sheet in layout.sheets)
    if lacking and not any(sheet.of("text", "messages") for sheet in layout.sheets):
        columns = some(c for sheet in layout.sheets for c in sheet.columns)
        message = (
            "holds neither texts to judge nor labels: say where they stand, as in --column "
            "'COLUMN=text' or --column 'COLUMN=label'"
        )
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
    steps = _next_steps(layout, folder, lacking, has_texts=any(answer.text for answer in answers))
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
    return _filled(
        _BENCH_YAML, name=layout.rubric.name, source=source, rule=rule, keys=keys, layout=LAYOUT,
        judges=[*map(as_name, layout.judges)],
    )  # fmt: skip


_BENCH_YAML = """\
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
Collect labels: write `{name: labels, items: {{ layout }}, rubric: {{ rubric }}, annotators: \
[ann, ben]}` into annotate.yaml and call judgebench annotate init annotate.yaml --to study \
(docs/annotate.md); or have annotators fill copies of {{ labels }} and add these to `data` in \
{{ bench }}.
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
