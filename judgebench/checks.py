"""`judgebench check` and `judgebench list`: look at files without calling any model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from judgebench.alignment.caveats import (
    bar_lines,
    compared_with,
    odd_uses,
    overlap_lines,
)
from judgebench.data.layout import Layout, is_layout, layout_lines, load_layout
from judgebench.data.load import load_data
from judgebench.data.reading import GivenTables, infer_layout, sources_of
from judgebench.data.roles import ROLES
from judgebench.data.settings import LISTED_SETTINGS, TableSettings, settings_of
from judgebench.data.vocabulary import role_words
from judgebench.errors import Problem, SetupError
from judgebench.features import FEATURES, Feature, FileKind
from judgebench.files import open_bytes
from judgebench.judges.llm import LLMJudge
from judgebench.records import SEVERAL, Dataset
from judgebench.rubric import Rubric, load_rubric, shipped_rubrics
from judgebench.runs.features import Lines
from judgebench.shipped import shipped_folder, shipped_names
from judgebench.studies.study import study_of
from judgebench.studies.truth import TruthConfig
from judgebench.studies.verdicts import suspicions
from judgebench.words import counted
from judgebench.yaml_file import load_with_lines, load_yaml

USUAL_RUBRIC = "medical-safety"  # of sets of altered answers
_MAX_LINE = 1 << 27  # bytes


@dataclass(repr=False)
class Outcome:
    """The facts found, in words; `warnings` and `errors` one a problem."""

    facts: list[str] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)

    def __repr__(self) -> str:
        warnings = [f"warning: {problem}" for problem in self.warnings]
        errors = [f"error: {problem}" for problem in self.errors] or ["No errors."]
        return "\n".join([*self.facts, *warnings, *errors])


def check(
    files: Sequence[str | Path],
    rubric: str | Path | None = None,
    *,
    data_folder: str | Path | None = None,
    columns: Mapping[str, Any] = {},
) -> Outcome:
    """Every problem in files of any kind, with file and row. Calls no model.

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
    """
    known = str(rubric) if rubric else None
    folder = Path(data_folder) if data_folder else None
    outcome, data = Outcome(), list[Path]()
    for path in map(Path, files):
        try:
            kind = _kind(path)
            if kind == "bench":
                _check_bench(outcome, path, folder)
            elif kind in ("", "layout"):
                data.append(path)
            else:
                says = _CHECKS.get(kind) or _check_of_feature(kind)
                outcome.facts.append(f"{path}: {says(path, known or USUAL_RUBRIC)}")
                known = known or (str(path) if kind == "rubric" else None)
        except SetupError as error:
            outcome.errors += [replace(p, file=p.file or str(path)) for p in error.problems]
    if data:
        try:
            _check_data(outcome, data, known, folder, settings_of(columns))
        except SetupError as error:
            outcome.errors += error.problems
    return outcome


def _kind(path: Path) -> str:
    """Tell the kind of a file by the keys that only its kind has; empty for data."""
    kinds = [_FIRST_KIND, *(kind for f in FEATURES.values() for kind in f.files), *_KINDS]
    if path.suffix not in (".yaml", ".yml"):
        others = (kind for kind in kinds if kind.suffix == path.suffix)
        return next((kind.name for kind in others if _first_keys(path) >= set(kind.keys)), "")
    value, kinds = load_yaml(path), [kind for kind in kinds if kind.suffix == ".yaml"]
    given = set(value) if isinstance(value, dict) else set()
    for kind in kinds:
        if given & set(kind.keys):
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
    outcome: Outcome, files: Sequence[Path], name: str | None, folder: Path | None,
    settings: TableSettings,
) -> None:  # fmt: skip
    """Check tables against the rubric of that name or of a layout among them, or else by the layout
    that is inferred. Raises SetupError."""
    tables: Sequence[Path | Layout] = files
    layouts = [path for path in files if is_layout(path)]
    if name is not None:
        rubric = load_rubric(name)
    elif layouts:
        rubric = load_layout(layouts[0]).rubric
    else:
        unsorted = [source for path in files for source in sources_of(path, path.name)]
        layout = infer_layout(GivenTables(unsorted=unsorted), settings, labelled=False)
        outcome.facts += layout_lines(layout)
        labelled = any(sheet.has_labels for sheet in layout.sheets)
        rubric = layout.rubric if labelled else load_rubric(USUAL_RUBRIC)
        tables = [layout]
    data = load_data(tables, rubric, folder=folder)
    counts = Counter(answer.kind for answer in data.answers)
    rows = [counted(n, kind, SEVERAL[kind]) for kind, n in counts.items()]
    outcome.facts.append(f"{', '.join(rows)}, {counted(data.n_labels, 'human label')}")
    _check_truth(outcome, rubric, data, TruthConfig())
    outcome.warnings += data.warnings
    outcome.warnings += suspicions(sorted({label.annotator for label in data.labels}))


def _check_truth(
    outcome: Outcome, rubric: Rubric, dataset: Dataset, truth: TruthConfig, file: str = ""
) -> None:
    """Report who makes the truth by which rule, who is left out of the bar, and who uses labels
    oddly; `file` is that of the rule."""
    used = {label.metric for label in dataset.labels if label.label is not None}
    if not used:
        return
    measured = rubric.only([metric.id for metric in rubric.metrics if metric.id in used])
    study = study_of(measured, dataset.answers, dataset.labels, truth)
    before = "" if file else "unless a bench.yaml says otherwise: "
    outcome.facts += [f"{before}{compared_with(study)}", *bar_lines(study), *overlap_lines(study)]
    for humans in study.humans.values():
        outcome.warnings += [Problem(said.rstrip("."), file) for said in odd_uses(humans)]


def _check_bench(outcome: Outcome, path: Path, data_folder: Path | None) -> None:
    from judgebench.runs.load import load_bench

    value = load_yaml(path)
    for feature in FEATURES.values():
        if feature.section in value and feature.parts.check:
            outcome.facts.append(f"{path}: {feature.parts.check(path)}")
            return
    bench = load_bench(path, data_folder=data_folder)
    bench.close()
    outcome.facts.append(f"{path}: {bench.in_words}")
    _check_truth(outcome, bench.rubric, bench.dataset, bench.config.truth, str(path))
    outcome.warnings += bench.warnings
    for judge in bench.judges:
        outcome.warnings += _unset_keys(str(path), judge)


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
    found = map(load_rubric, shipped_rubrics())
    return [(r.name, ", ".join(m.id for m in r.metrics)) for r in found]


def _prompts() -> Lines:
    from judgebench.prompt import load_prompt

    return [(p.name, p.description) for p in map(load_prompt, shipped_names("prompts", ".jinja"))]


def _examples() -> Lines:
    files = sorted(shipped_folder("examples").glob("*/bench.yaml"))
    return [(file.parent.name, str(file.parent)) for file in files]


def _backends() -> Lines:
    from judgebench.models import KINDS

    return [(kind.spelling, kind.about) for kind in KINDS]


def _baselines() -> Lines:
    from judgebench.judges.control import ABOUT, ABOUT_BY

    return [*((str(name), about) for name, about in ABOUT.items()), ("by-COLUMN", ABOUT_BY)]


def _weights() -> Lines:
    from judgebench.models.checkpoint import WEIGHTS

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
