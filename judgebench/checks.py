"""`judgebench check` and `judgebench list`: look at files without calling any model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from judgebench.alignment.caveats import (
    MOST_NAMED,
    bar_lines,
    compared_with,
    odd_uses,
    overlap_lines,
)
from judgebench.data.layout import Layout, is_layout, layout_lines, load_layout
from judgebench.data.load import load_data
from judgebench.data.reading import GivenTables, infer_layout, sources_of
from judgebench.data.roles import ROLES
from judgebench.data.settings import NOTHING_SAID, TableSettings
from judgebench.data.vocabulary import role_words
from judgebench.errors import Problem, SetupError
from judgebench.features import Named, wings
from judgebench.judges.llm import LLMJudge
from judgebench.records import SEVERAL, Dataset
from judgebench.rubric import Rubric, load_rubric, shipped_rubrics
from judgebench.runs.wing import FileKind, Lines, sections
from judgebench.shipped import shipped_folder, shipped_names
from judgebench.stats.arrays import value_counts
from judgebench.studies.study import Humans, backend_fact, study_of
from judgebench.studies.truth import TruthConfig
from judgebench.studies.verdicts import suspicions
from judgebench.words import counted
from judgebench.yaml_file import load_with_lines, load_yaml

USUAL_RUBRIC = "medical-safety"  # of sets of altered answers


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


def check_all(
    files: Sequence[Path],
    rubric: str | None = None,
    data_folder: Path | None = None,
    settings: TableSettings = NOTHING_SAID,
) -> Outcome:
    """Read every file as what it is; data files together, against `rubric` or else a rubric among
    the files; without any, by the layout that they have, with these `settings`. Raises nothing for
    what one holds."""
    outcome, data = Outcome(), list[Path]()
    for path in files:
        try:
            kind = _kind(path)
            if kind is _BENCH:
                _check_bench(outcome, path, data_folder)
            elif kind:
                outcome.facts.append(f"{path}: {kind.check(path, rubric or USUAL_RUBRIC)}")
                rubric = rubric or (str(path) if kind.check is _check_rubric else None)
            else:
                data.append(path)
        except SetupError as error:
            outcome.errors += [replace(p, file=p.file or str(path)) for p in error.problems]
    if data:
        try:
            _check_data(outcome, data, rubric, data_folder, settings)
        except SetupError as error:
            outcome.errors += error.problems
    return outcome


def _kind(path: Path) -> FileKind | None:
    """Tell the kind of a file: YAML files by the keys that only their kind has; None for data."""
    kinds: list[FileKind] = [
        _JUDGE,
        *(kind for wing in wings() for kind in wing.kinds),
        _DATA,
        _BENCH,
        *_KINDS,
    ]
    for kind in kinds:
        if kind.fits and kind.fits(path):
            return kind
    if path.suffix not in (".yaml", ".yml"):
        return None
    value = load_yaml(path)
    given = set(value) if isinstance(value, dict) else set()
    for kind in kinds:
        if given & set(kind.keys):
            return None if kind is _DATA else kind
    known = ", ".join(f"{kind.name} ({', '.join(kind.keys)})" for kind in kinds if kind.keys)
    found = ", ".join(map(str, given)) or "no keys"
    raise SetupError(Problem(f"is none of: {known}", str(path), found=found))


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
    """Report who makes the truth by which rule, who is left out of the bar, and how annotators use
    the labels; `file` is that of the rule."""
    used = {label.metric for label in dataset.labels if label.label is not None}
    if not used:
        return
    measured = rubric.only([metric.id for metric in rubric.metrics if metric.id in used])
    study = study_of(measured, dataset.answers, dataset.labels, truth)
    before = "" if file else "unless a bench.yaml says otherwise: "
    outcome.facts += [f"{before}{compared_with(study)}", *bar_lines(study), *overlap_lines(study)]
    for humans in study.humans.values():
        outcome.facts += _label_use(humans)
        outcome.warnings += [Problem(said.rstrip("."), file) for said in odd_uses(humans)]


def _label_use(humans: Humans) -> Iterator[str]:
    """`  tone, ann: Kind 120 (80 %), Rude 30 (20 %)` for each of a few people."""
    people = humans.people
    for who, labels in zip(people.annotators[:MOST_NAMED], people.values.T, strict=False):
        counts = value_counts(labels[None], len(humans.metric.labels))[0].tolist()
        if total := sum(counts):
            shares = (
                f"{label} {count:,} ({100 * count / total:.0f} %)"
                for label, count in zip(humans.metric.label_texts, counts, strict=True)
            )
            yield f"  {humans.metric.id}, {who}: {', '.join(shares)}"


def _check_bench(outcome: Outcome, path: Path, data_folder: Path | None) -> None:
    from judgebench.runs.load import load_bench

    value = load_yaml(path)
    for section in sections():
        if section.check and section.key in value:
            outcome.facts.append(f"{path}: {section.check(path)}")
            return
    bench = load_bench(path, data_folder=data_folder)
    bench.close()
    outcome.facts.append(f"{path}: {bench.in_words}")
    _check_truth(outcome, bench.rubric, bench.dataset, bench.config.truth, str(path))
    outcome.warnings += bench.warnings
    for judge in bench.judges:
        outcome.warnings += _unset_keys(str(path), judge)
        outcome.facts += _knowledge(judge)


def _knowledge(judge: LLMJudge) -> Iterator[str]:
    """Describe the documents in which the judge looks things up."""
    if isinstance(known := backend_fact(judge.describe(), "knowledge"), Mapping):
        held = counted(known["corpus"]["documents"], "document")
        yield f"judges.{judge.name}: looks things up in {held}"


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


def _check_nothing(path: Path, rubric: str) -> str:
    raise AssertionError("data files are checked together, benchmarks with their data")


_JUDGE = FileKind("judge", _check_judge, keys=("backend",))
_DATA = FileKind("layout", _check_nothing, keys=("tables",))
_BENCH = FileKind("bench", _check_nothing, keys=("rubric", "data"))
_KINDS = (
    FileKind("jury", _check_judge, keys=("jury",)),
    FileKind("rubric", _check_rubric, keys=("instructions",)),
    FileKind("calibration", _check_judge, keys=("calibrate",)),
    FileKind(
        "prompt",
        Named("judgebench.prompt:prompt_in_words"),
        fits=lambda path: path.suffix == ".jinja",
    ),
)


def listing(what: str | None = None) -> Mapping[str, Lines]:
    """Heading -> (name, what it is), for one kind or for all."""
    core = (
        _rubrics, _prompts, _examples, _backends, _baselines, _weights, _roles, _columns, _exports,
        _checklists,
    )  # fmt: skip
    makers: dict[str, Callable[[], Lines]] = {make.__name__[1:]: make for make in core}
    for wing in wings():
        makers |= wing.lists
    if what not in (None, *makers):
        raise SetupError(
            Problem("is not a kind of what ships", found=what or "", allowed=", ".join(makers))
        )
    return {name: make() for name, make in makers.items() if what in (None, name)}


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


def _columns() -> Lines:
    return [(role, ", ".join(names)) for role, names in role_words().items()]


def _checklists() -> Lines:
    from judgebench.checklist import FOLDER, load_checklist

    return [(name, load_checklist(name).title) for name in shipped_names(FOLDER, ".yaml")]


def _exports() -> Lines:
    from judgebench.data.exports import exports

    return [(tool, export.has) for tool, export in exports().items()]
