"""Read bench.yaml and all files that it names, checked as a whole before any model is asked."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import yaml
from pydantic import create_model

from judgebench.data.load import load_data, read_verdicts
from judgebench.data.named import PROBABILITY
from judgebench.data.tables import SUFFIXES
from judgebench.errors import Problem, SetupError, nearest, raise_any
from judgebench.judges.config import (
    CORE_ENTRIES,
    JUDGE_NAME,
    CalibrationConfig,
    JudgeConfig,
    JudgeEntry,
    JuryConfig,
    RecordedConfig,
    check_judge,
    judge_entry,
    judged_kind,
)
from judgebench.judges.control import ABOUT, UNTAUGHT, ControlJudge, control_judges, usual_controls
from judgebench.judges.derived import content_free
from judgebench.judges.knowledge import LookingUp, open_library
from judgebench.judges.llm import LLMJudge
from judgebench.judges.recorded import RecordedJudge, recorded_judges
from judgebench.models import check_hosts, hosts_of, open_backend
from judgebench.models.checkpoint import weights_hosts
from judgebench.prompt import Prompt, load_prompt
from judgebench.records import Answer, Dataset
from judgebench.retrieval.vectors import WORDS, Library
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.bench import (
    Bench,
    BenchConfig,
    Extend,
    Extension,
    LearntEntry,
    Loaded,
    default_run_folder,
    is_judge,
)
from judgebench.runs.ray_engine import ray_hosts
from judgebench.runs.wing import learnings, sections
from judgebench.shipped import is_file, shipped_folder
from judgebench.studies.answers import ids_and_groups
from judgebench.yaml_file import load_with_lines, node_below, validate

P = ParamSpec("P")
T = TypeVar("T")


def bench_model(settings: object) -> type[BenchConfig]:
    """All keys of bench.yaml, those of the wings among them. The class of what a wing's key holds
    is looked up only where the settings have it."""
    given = settings if isinstance(settings, Mapping) else {}
    return _model(tuple(s.key for s in sections() if given.get(s.key) is not None))


@cache
def _model(given: Sequence[str]) -> type[BenchConfig]:
    of = {s.key: s.model.value if s.key in given else Any for s in sections()}
    keys: dict[str, Any] = {key: (model | None, None) for key, model in of.items()}
    return create_model("BenchConfig", __base__=BenchConfig, **keys)


def settings_of(manifest: Mapping[str, Any]) -> BenchConfig:
    """The settings of a run. Keys of wings that are not here are passed over.

    Raises SetupError where they are damaged.
    """
    settings = manifest.get("settings")
    model = bench_model(settings)
    if not isinstance(settings, Mapping):
        raise SetupError(Problem("holds no settings", "run.json"))
    known = {key: value for key, value in settings.items() if key in model.model_fields}
    return validate(known, model, file="run.json")


def load_bench(
    path: Path,
    *,
    limit: int | None = None,
    data_folder: Path | None = None,
    run_folder: Path | None = None,
    extend: Extend | None = None,
    arguments: Dataset | None = None,
) -> Bench:
    """The benchmark of that file, of that folder's bench.yaml, or of that shipped example.

    `limit` keeps the first answers only; `data_folder` is where data files are looked for instead
    of where bench.yaml says. `run_folder`, or the usual one, may keep a large data set as an
    earlier run read it: it is read anew if anything has changed. `extend` makes what a wing adds to
    the run. With `arguments` these are judged, as a ranking does.
    Raises SetupError with every problem of the file and of all the files that it names.
    """
    file = bench_file(path)
    gather = Gathered(str(file))
    config, node = read_config(file, gather, data_needed=extend is None and arguments is None)
    if arguments is not None:  # baselines learn from human labels, and here are none
        config = config.model_copy(update={"controls": ()})
    whole = gather("rubric", load_rubric, config.rubric, relative_to=file.parent)
    rubric = whole and gather(
        "metrics", whole.only, config.metrics or [m.id for m in whole.metrics]
    )
    specs = _judge_configs(config, file, node, gather)
    models = {s.name: s for s in specs if isinstance(s, JudgeConfig)}
    dataset, extension, prompts, recorded = None, None, {}, []
    kept_in = run_folder or default_run_folder(config)
    libraries = {
        name: gather(f"judges.{name}.knowledge", open_library, spec.knowledge, file.parent, kept_in)
        for name, spec in models.items()
        if spec.knowledge
    }
    if whole is not None and rubric is not None:
        dataset = arguments
        if dataset is None:
            about = (file, node, data_folder)
            dataset = gather("data", _load_data, config, whole, *about)
            if dataset:
                truth = config.truth.with_blindness(dataset.blind)
                config = config.model_copy(update={"truth": truth})
        if any(p.field.split(".")[0] == "pairs" for p in gather.found):  # and so there are none
            gather.found = [p for p in gather.found if p.kind != "no_answers"]
        every = dataset
        dataset = dataset and _limited(dataset, rubric, limit)
        if extend is not None:
            loaded = Loaded(config, file, whole, rubric, dataset)
            if dataset and dataset.textless and extend.reads_texts:
                gather.tell(extend.wing, no_texts("it reads answers", dataset))
            else:
                extension = gather(extend.wing, extend, loaded)
            if dataset is not None and extension is not None:
                dataset = gather(extend.wing, _extended, dataset, extension)
                config = config.model_copy(update=dict(extension.settings))
        prompts = {
            name: gather(f"judges.{name}", _prompt_of, spec, rubric, dataset, file)
            for name, spec in models.items()
        }
        beside = extension.beside if extension else ()
        for spec in (s for s in specs if isinstance(s, RecordedConfig)):
            if every is None:
                break
            where = (file.parent / spec.verdicts, config.data_home(file, data_folder))
            field = f"judges.{spec.name}" if spec.name else "judges"
            recorded += gather(field, _recorded, spec, (rubric, whole), where, every, beside) or []
    juries = tuple(s for s in specs if isinstance(s, JuryConfig))
    controls: tuple[ControlJudge, ...] = ()
    if rubric is not None and dataset is not None:
        made = gather("by", _controls, config, rubric, dataset, juries, extension)
        found = [judge.name for judge, _ in recorded]
        others = [s.name for s in specs if not isinstance(s, RecordedConfig)]
        if any(not spec.name for spec in specs):
            _check_names((*others, *found), gather)
        names = {*others, *found}  # somebody's judge of the name of a column's rule
        controls = tuple(c for c in made or () if c.name in ABOUT or c.name not in names)
    gather.raise_any()
    assert rubric is not None
    assert dataset is not None
    checked = {name: prompt for name, prompt in prompts.items() if prompt is not None}
    judges = [
        gather(f"judges.{name}", _open, spec, (rubric, checked[name]), file.parent, libraries)
        for name, spec in models.items()
    ]
    opened = tuple(judge for judge in judges if judge is not None)
    try:
        gather.raise_any()
    except SetupError:
        for judge in opened:
            judge.close()
        raise
    calibrations = tuple(s for s in specs if isinstance(s, CalibrationConfig))
    learning = tuple(s for s in specs if not isinstance(s, CORE_ENTRIES))
    # Several judges of one file each report all of its cells.
    warnings = dict.fromkeys(warning for _, noticed in recorded for warning in noticed)
    dataset = replace(dataset, warnings=(*dataset.warnings, *warnings))
    questions = bool(calibrations) and any(answer.question for answer in dataset.answers)
    bench = Bench(
        config=config,
        file=file,
        rubric=rubric,
        dataset=dataset,
        judges=opened,
        juries=juries,
        calibrations=calibrations,
        learning=learning,
        recorded=tuple(judge for judge, _ in recorded),
        content_free=tuple(content_free(calibrations, opened, questions=questions)),
        controls=controls,
        extension=extension,
        variants=tuple(extension.variants(opened)) if extension else (),
        limited=limit is not None,
    )
    try:
        for kind in learnings() if learning else ():
            kind.check(bench)
    except SetupError:
        bench.close()
        raise
    return bench


class Gathered:
    """Runs steps and keeps the errors of each, so that they are reported together."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.found: list[Problem] = []

    def __call__(
        self, field: str, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """The step's result; None where it fails."""
        try:
            return step(*args, **kwargs)
        except SetupError as error:
            for problem in error.problems:
                self.tell(field, problem)
            return None

    def tell(self, field: str, problem: Problem) -> None:
        """Keep a problem; one that names no file is of `field` of this file."""
        where = f"{field}.{problem.field}" if problem.field else field
        if not problem.file:
            problem = replace(problem, file=self._file, field=where)
        self.found.append(problem)

    def raise_any(self) -> None:
        """Raises SetupError with all that was found, where something was."""
        if self.found:
            raise SetupError(self.found)


def check_local(path: Path, *, on_ray: bool = False) -> None:
    """Raises SetupError with every judge of that benchmark that would contact another machine, and
    with the Ray cluster that it would be sent to.

    Opens no engine; what else is wrong with the file is for `load_bench` to say.
    """
    file = bench_file(path)
    gather = Gathered(str(file))
    config, node = read_config(file, gather, data_needed=False)
    specs = _judge_configs(config, file, node, gather)
    far = Gathered(str(file))
    if on_ray:
        far("engine", check_hosts, ray_hosts(), "ray")
    for spec in (s for s in specs if isinstance(s, JudgeConfig)):
        far(f"judges.{spec.name}", check_hosts, hosts_of(spec.backend, spec.settings))
    weights = {
        f"judges.{s.name}.knowledge.embedder": s.knowledge.embedder
        for s in specs
        if isinstance(s, JudgeConfig) and s.knowledge and s.knowledge.embedder != WORDS
    }
    for entry in (s for s in specs if not isinstance(s, CORE_ENTRIES)):
        where = f"{'judges' if is_judge(entry) else 'scorers'}.{entry.name}"
        far(where, check_hosts, getattr(entry, "hosts", ()))
        found = getattr(entry, "weights", {})
        weights |= {f"{where}.{key}": name for key, name in found.items()}
    for where, name in weights.items():
        field, _, key = where.rpartition(".")
        far(field, check_hosts, [] if (file.parent / name).exists() else weights_hosts(name), key)
    far.raise_any()


def read_config(
    file: Path, gather: Gathered, *, data_needed: bool
) -> tuple[BenchConfig, yaml.Node | None]:
    """The file's settings. Where some are unsound, the others are checked all the same."""
    value, node = load_with_lines(file)
    for section in sections() if data_needed and isinstance(value, dict) else ():
        if section.instead and value.get(section.key):
            raise SetupError(Problem(section.instead, str(file)))
    if data_needed and isinstance(value, dict) and not value.get("data"):
        gather.found.append(Problem("Field required", str(file), 1, "data"))
    try:
        return validate(value, bench_model(value), str(file), node), node
    except SetupError as error:
        gather.found += error.problems
    unsound = {p.field.split(".")[0] for p in gather.found}
    sound = {k: v for k, v in value.items() if k not in unsound} if isinstance(value, dict) else {}
    try:
        return validate({"name": "unsound", **sound}, bench_model(value), str(file), node), node
    except SetupError:
        raise SetupError(gather.found) from None


def bench_file(path: Path) -> Path:
    """The file at that path, in that folder, or of that shipped example. Raises SetupError."""
    if path.suffix.lower() in SUFFIXES:
        message = "is a table, and no bench.yaml: `judgebench init` writes one from tables"
        raise SetupError(Problem(message, str(path)))
    shipped = shipped_folder("examples") / path / "bench.yaml"
    for candidate in (path, path / "bench.yaml", shipped):
        if is_file(candidate):
            return candidate
    names = sorted(p.parent.name for p in shipped_folder("examples").glob("*/bench.yaml"))
    message = f"no such file and no shipped example of that name{nearest(str(path), names)}"
    message = f"{message}; shipped: {', '.join(names)}"
    raise SetupError(Problem(message, file=str(path)))


def _check_files(config: BenchConfig, file: Path, node: yaml.Node | None) -> None:
    """Raises SetupError with the line where files are named of which some are not there."""
    place = node_below(node, "data")
    line = place.start_mark.line + 1 if place else None
    absent = [path for path in config.data_paths(file) if not os.path.exists(path)]
    near = [nearest(path.name, _beside(path), 0.8) for path in absent]
    raise_any(
        [
            Problem(f"no such file {path.name!r}{meant}", str(file), line, "data")
            for path, meant in zip(absent, near, strict=True)
        ]
    )


def _beside(path: Path) -> list[str]:
    folder = path.parent
    return [other.name for other in folder.iterdir()] if folder.is_dir() else []


def _load_data(
    config: BenchConfig, rubric: Rubric, file: Path, node: yaml.Node | None,
    data_folder: Path | None,
) -> Dataset:  # fmt: skip
    _check_files(config, file, node)
    if not (paths := config.data_paths(file)):
        return Dataset((), ())
    folder, metrics = config.data_home(file, data_folder), config.metrics or None
    pairs = config.pairs.wanted(file, config.seed) if config.pairs else None
    return load_data(paths, rubric, metrics=metrics, folder=folder, pairs=pairs)


def _judge_configs(
    config: BenchConfig, file: Path, node: yaml.Node | None, gather: Gathered
) -> list[JudgeEntry | LearntEntry]:
    found = [
        gather(f"judges.{i}", _judge_config, entry, file, node_below(node, "judges", i))
        for i, entry in enumerate(config.judges)
    ]
    beside = [gather("", kind.beside, config, file, node) or () for kind in learnings()]
    specs = [spec for spec in found if spec is not None]
    specs += [entry for entries in beside for entry in entries]
    _check_names((spec.name for spec in specs if spec.name), gather)
    able = (JudgeConfig, RecordedConfig)
    asked = {spec.name for spec in specs if isinstance(spec, able) and spec.name}
    made = {s.name for s in specs if not isinstance(s, CORE_ENTRIES) and is_judge(s)}
    for spec in specs if None not in found else []:
        field, known = "from", asked
        needed: Sequence[str] = ()
        if isinstance(spec, JuryConfig):
            field, needed, known = "jury", spec.jury, asked | made | set(ABOUT)
        elif not isinstance(spec, CORE_ENTRIES):
            needed = spec.needs
        for member in (member for member in needed if member not in known):
            allowed = ", ".join(sorted(known))
            problem = Problem("is no judge of this benchmark", found=member, allowed=allowed)
            gather.tell(f"judges.{spec.name}.{field}", problem)
    if None not in found:
        _check_calibrations(specs, gather)
    return specs


def _check_names(names: Iterable[str], gather: Gathered) -> None:
    """Each names a file, and some file systems take GPT and gpt for the same one."""
    by_file: dict[str, list[str]] = {}
    for name in names:
        by_file.setdefault(name.casefold(), []).append(name)
    for file, alike in by_file.items():
        if len(alike) > 1 or file in ABOUT:
            message = "two judges have this name, or a baseline has it"
            found = ", ".join(dict.fromkeys(alike))
            gather.tell("judges", Problem(message, found=found))


def _check_calibrations(specs: Sequence[JudgeEntry | LearntEntry], gather: Gathered) -> None:
    """Each needs a judge of this benchmark that gives probabilities."""
    asked: dict[str, object] = {
        s.name: s.probabilities for s in specs if isinstance(s, JudgeConfig)
    }
    # Whether recorded verdicts hold probabilities is seen when they are read; more cannot be asked.
    models = (JudgeConfig, JuryConfig, CalibrationConfig)
    recorded = {s.name for s in specs if not isinstance(s, models)}
    weighed = ", ".join(name for name, how in asked.items() if how)
    allowed = weighed or "a judge with `probabilities: independent` or `chained`"
    for spec in (s for s in specs if isinstance(s, CalibrationConfig)):
        if spec.calibrate in recorded:
            fits, message = spec.method == "batch", "cannot be asked about content-free texts"
            problem = Problem(message, found=spec.calibrate, allowed="method: batch")
        else:
            fits, message = bool(asked.get(spec.calibrate)), "is no language model of this file"
            if spec.calibrate in asked:
                message = "is not asked for probabilities"
            problem = Problem(message, found=spec.calibrate, allowed=allowed)
        if not fits:
            gather.tell(f"judges.{spec.name}.calibrate", problem)


def _judge_config(
    entry: str | dict[str, object], file: Path, node: yaml.Node | None
) -> JudgeEntry | LearntEntry:
    source, value = file, entry
    if isinstance(entry, str):
        source = file.parent / entry
        value, node = load_with_lines(source)
    for kind in learnings():
        if isinstance(value, dict) and value.keys() & set(kind.keys):
            return kind.entry(value, source, node)
    return judge_entry(value, str(source), node)


def _prompt_of(spec: JudgeConfig, rubric: Rubric, dataset: Dataset | None, file: Path) -> Prompt:
    """The judge's prompt, after a check that it fits rubric, judge and answers."""
    prompt = load_prompt(spec.prompt, relative_to=file.parent)
    check_judge(spec, prompt, rubric)
    if dataset is not None and dataset.textless:
        raise SetupError(no_texts("the model reads answers", dataset))
    if dataset is not None and prompt.asks_for_reference:
        kind, several = judged_kind(spec, prompt), len(rubric.kinds) > 1
        lacking = [
            answer.item_id
            for answer in dataset.answers
            if not answer.reference and not (several and answer.kind != kind)
        ]
        if lacking:
            message = (
                f"the prompt {prompt.name} asks for a reference answer, which "
                f"{len(lacking)} of {len(dataset.answers)} answers lack"
            )
            found = ", ".join(lacking[:5]) + (", …" if len(lacking) > 5 else "")
            raise SetupError(Problem(message, field="prompt", found=found))
    return prompt


def no_texts(why: str, dataset: Dataset) -> Problem:
    """The problem that answers have no texts, for a judge that reads them."""
    message = f"{why}, whose texts are not given: name their column, `text`, or a file of them"
    return Problem(message, found=", ".join(dataset.textless))


def _recorded(
    spec: RecordedConfig, rubrics: tuple[Rubric, Rubric], where: tuple[Path, Path | None],
    dataset: Dataset, beside: Sequence[Answer],
) -> list[tuple[RecordedJudge, Sequence[Problem]]]:  # fmt: skip
    """The judge, or every judge that the file names, and the warnings about its verdicts: none
    about the metrics of the whole rubric that the benchmark leaves out. Raises SetupError."""
    rubric, whole = rubrics
    names = {name for metric in whole.metrics for name in (metric.id, metric.title)}
    shares = tuple(f"{PROBABILITY}{name}_" for name in names)
    path, folder = where
    rows, warnings = read_verdicts(path, rubric, dataset.answers, spec.name, folder)
    items = {item_id for item_id, _ in ids_and_groups(dataset.answers)}
    ids = [answer.item_id for answer in beside]
    judges = list(recorded_judges(rows, spec, str(path), rubric, items, ids))
    message, allowed = "is no name of a judge", "letters, digits and . _ -, at most 64"
    odd = [judge.name for judge in judges if not re.match(JUDGE_NAME, judge.name)]
    raise_any([Problem(message, str(path), None, "judge", name, allowed) for name in odd])
    if not judges:
        raise SetupError(Problem("names no judge", str(path), field="judge"))
    told = [
        p for p in warnings
        if p.kind != "unused_column" or not (p.field in names or p.field.startswith(shares))
    ]  # fmt: skip
    return [(j, (*told, *j.gaps(j.owing(dataset.answers, items)))) for j in judges]


def _open(
    spec: JudgeConfig, about: tuple[Rubric, Prompt], folder: Path,
    libraries: Mapping[str, Library | None],
) -> LLMJudge:  # fmt: skip
    backend = open_backend(spec.backend, spec.settings, folder)
    if spec.knowledge and (library := libraries[spec.name]):
        backend = LookingUp(backend, spec.knowledge, library)
    return LLMJudge(spec, *about, backend)


def open_judge(judge: LLMJudge, file: Path, kept_in: Path) -> LLMJudge:
    """A judge of the bench.yaml `file` once more, on an engine of its own: for work that goes on
    when the other's is released. Raises SetupError."""
    known = judge.config.knowledge
    library = open_library(known, file.parent, kept_in) if known else None
    return _open(
        judge.config, (judge.whole, judge.prompt), file.parent, {judge.config.name: library}
    )


def _limited(dataset: Dataset, rubric: Rubric, limit: int | None) -> Dataset:
    """The first rows, as many of each kind."""
    if limit is None:
        return dataset
    answers: Sequence[Answer] = dataset.answers[:limit]
    if len(rubric.kinds) > 1:
        seen = Counter[str]()
        answers = [
            a for a in dataset.answers if not seen.update([a.kind]) and seen[a.kind] <= limit
        ]
    labelled = {label.item_id for label in dataset.labels}
    kept = {item_id for item_id, _ in ids_and_groups(answers) if item_id in labelled}
    labels = [label for label in dataset.labels if label.item_id in kept]
    return replace(dataset, answers=answers, labels=labels)


def _controls(
    config: BenchConfig,
    rubric: Rubric,
    dataset: Dataset,
    juries: Sequence[JuryConfig],
    extension: Extension | None,
) -> tuple[ControlJudge, ...]:
    usual = usual_controls(rubric)
    chosen = usual if config.controls is True else (config.controls or ())
    if config.controls is True and dataset.textless:
        chosen = tuple(control for control in chosen if control != "longest-answer")
    if config.controls is True and extension:
        chosen = (*(usual if dataset.labels else UNTAUGHT), *extension.controls)
    jurors = {member for jury in juries for member in jury.jury}
    names = dict.fromkeys((*chosen, *(c for c in ABOUT if c in jurors)))
    about = (rubric, dataset.answers, dataset.labels, config.seed, config.known)
    return control_judges(names, *about)


def _extended(dataset: Dataset, extension: Extension) -> Dataset:
    """The data set with all answers that are judged: those of the study, then those beside it."""
    answers = {a.item_id: a for a in extension.answers}
    beside = {a.item_id: a for a in extension.beside}
    twice = ", ".join(sorted(answers.keys() & beside.keys())[:5])
    if twice:
        raise SetupError(Problem("an answer and an altered one have the same id", found=twice))
    return replace(dataset, answers=(*answers.values(), *beside.values()))
