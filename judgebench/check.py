"""`judgebench check` and `judgebench list`: look at files without calling any model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judgebench.data import check_files
from judgebench.errors import Problem, SetupError
from judgebench.features import FileKind, Lines, sections, wings
from judgebench.rubric import Rubric, load_rubric, shipped_rubrics
from judgebench.shipped import shipped_folder, shipped_names
from judgebench.yaml_file import load_with_lines, load_yaml


@dataclass(repr=False)
class Outcome:
    """What was found, in words; `warnings` and `errors` one a problem."""

    facts: list[str] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)

    def __repr__(self) -> str:
        warnings = [f"warning: {problem}" for problem in self.warnings]
        errors = [f"error: {problem}" for problem in self.errors] or ["No errors."]
        return "\n".join([*self.facts, *warnings, *errors])


def check_all(files: Sequence[Path], rubric: str, data_folder: Path | None = None) -> Outcome:
    """Read every file as what it is; data files together, against `rubric`. Raises nothing for
    what a file holds."""
    outcome, data = Outcome(), []
    for path in files:
        try:
            kind = _kind(path)
            if kind is _BENCH:
                _check_bench(outcome, path)
            elif kind:
                outcome.facts.append(f"{path}: {kind.check(path, rubric)}")
            else:
                data.append(path)
        except SetupError as error:
            outcome.errors += error.problems
    if data:
        try:
            _check_data(outcome, data, load_rubric(rubric), data_folder)
        except SetupError as error:
            outcome.errors += error.problems
    return outcome


def _kind(path: Path) -> FileKind | None:
    """What a file is: YAML files by the keys that only their kind has; None for data."""
    kinds = [_JUDGE, *(kind for wing in wings() for kind in wing.kinds), *_KINDS]
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
    outcome: Outcome, files: Sequence[Path], rubric: Rubric, folder: Path | None
) -> None:
    report = check_files(files, rubric, folder=folder)
    outcome.warnings += report.warnings
    outcome.errors += report.errors
    outcome.facts.append(
        f"{report.answers} answers, {report.labels} human labels, {report.blank} blank cells, "
        f"{report.items_with_two_labels} items with two labels or more for a metric"
    )
    for annotator, count in report.annotators.items():
        outcome.facts.append(f"  {annotator}: {count} labels")
    for metric, counts in report.metrics.items():
        if sum(counts.values()):
            told = ", ".join(f"{label}: {n}" for label, n in counts.items())
            outcome.facts.append(f"  {metric}: {told}")


def _check_bench(outcome: Outcome, path: Path) -> None:
    from judgebench.runner.bench import load_bench

    value = load_yaml(path)
    for section in sections():
        if section.fits(value):
            outcome.facts.append(f"{path}: {section.check(path)}")
            return
    bench = load_bench(path)
    bench.close()
    outcome.facts.append(f"{path}: {bench.in_words}")
    outcome.warnings += bench.dataset.warnings


def _check_rubric(path: Path, rubric: str) -> str:
    found = load_rubric(path)
    return f"the rubric {found.name}, version {found.version}, {len(found.metrics)} metrics"


def _check_prompt(path: Path, rubric: str) -> str:
    from judgebench.prompt import load_prompt

    return f"a prompt with replies of the kind {load_prompt(str(path)).reply}"


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
_DATA = FileKind("data", _check_nothing, keys=("files",))
_BENCH = FileKind("bench", _check_nothing, keys=("rubric", "data"))
_KINDS = (
    _DATA,
    FileKind("jury", _check_judge, keys=("jury",)),
    FileKind("rubric", _check_rubric, keys=("instructions",)),
    FileKind("calibration", _check_judge, keys=("calibrate",)),
    _BENCH,
    FileKind("prompt", _check_prompt, fits=lambda path: path.suffix == ".jinja"),
)


def listing(what: str | None = None) -> Mapping[str, Lines]:
    """Heading -> (name, what it is), for one kind or for all."""
    core = (_rubrics, _prompts, _examples, _backends, _controls, _weights)
    makers: dict[str, Callable[[], Lines]] = {make.__name__[1:]: make for make in core}
    for wing in wings():
        makers |= wing.lists
    if what not in (None, *makers):
        message = "is no kind of what ships"
        raise SetupError(Problem(message, found=what or "", allowed=", ".join(makers)))
    return {name: make() for name, make in makers.items() if what in (None, name)}


def _rubrics() -> Lines:
    found = map(load_rubric, shipped_rubrics())
    return [(r.name, ", ".join(m.id for m in r.metrics)) for r in found]


def _prompts() -> Lines:
    from judgebench.prompt import load_prompt

    found = map(load_prompt, shipped_names("prompts", ".jinja"))
    return [(p.name, p.description) for p in found]


def _examples() -> Lines:
    folders = sorted(p for p in shipped_folder("examples").iterdir() if p.is_dir())
    return [(p.name, str(p)) for p in folders]


def _backends() -> Lines:
    from judgebench.backends import KINDS

    return [(kind.spelling, kind.about) for kind in KINDS]


def _controls() -> Lines:
    from judgebench.judges.control import ABOUT

    return [(str(name), about) for name, about in ABOUT.items()]


def _weights() -> Lines:
    from judgebench.backends.weights import WEIGHTS

    return [(name, f"{w.licence}; {w.note}") for name, w in WEIGHTS.items()]
