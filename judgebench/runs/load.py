"""Read bench.yaml and all files that it names, checked as a whole before any model is asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import create_model

from judgebench.data.load import load_data, read_verdicts
from judgebench.data.named import PROBABILITY
from judgebench.data.tables import SUFFIXES
from judgebench.errors import Problem, SetupError, nearest, raise_any, some
from judgebench.features import FEATURES, Feature
from judgebench.files import is_file, load_with_lines, node_below, shipped_folder, validate
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
from judgebench.judges.control import ABOUT, UNTAUGHT, ControlJudge, Fit, usual_controls
from judgebench.judges.llm import LLMJudge
from judgebench.judges.recorded import RecordedJudge, recorded_judges
from judgebench.judges.retrieval import WORDS, LookingUp, open_library
from judgebench.models import check_hosts, hosts_of, open_backend
from judgebench.models.checkpoints import weights_hosts
from judgebench.prompt import Prompt, load_prompt
from judgebench.records import Answer, Dataset
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
from judgebench.runs.features import learnings
from judgebench.runs.ray_engine import ray_hosts
from judgebench.studies.answers import indexed

T = TypeVar("T")


def bench_model(settings: object) -> type[BenchConfig]:
    """All keys of bench.yaml, those of the features among them. A feature whose key the settings
    lack is not loaded."""
    given = settings if isinstance(settings, Mapping) else {}
    return _model(tuple(key for key in _sections() if given.get(key) is not None))


@cache
def _model(given: Sequence[str]) -> type[BenchConfig]:
    keys: dict[str, Any] = {
        key: ((feature.parts.settings if key in given else Any) | None, None)
        for key, feature in _sections().items()
    }
    return create_model("BenchConfig", __base__=BenchConfig, **keys)


def _sections() -> dict[str, Feature]:
    """The features by their keys of bench.yaml."""
    return {feature.section: feature for feature in FEATURES.values() if feature.section}


def settings_of(manifest: Mapping[str, Any]) -> BenchConfig:
    """The settings of a run. Raises SetupError where they are damaged."""
    settings = manifest.get("settings")
    return validate(settings, bench_model(settings), file="run.json")


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
    of where bench.yaml says. `run_folder`, or the usual one, keeps what is computed of the texts in
    which judges look things up. `extend` makes what a feature adds to the run. With `arguments`
    these are judged, as a ranking does.
    Raises SetupError with every problem of the file and of all the files that it names.
    """
    file = bench_file(path)
    gather = Gathered(str(file))
    is_whole = extend is None and arguments is None
    config, node = read_config(file, data_needed=is_whole, faulty=gather.waiting)
    if arguments is not None:  # baselines learn from human labels, and here are none
        config = config.model_copy(update={"controls": ()})
    whole = gather("rubric", load_rubric, config.rubric, relative_to=file.parent)
    rubric = whole and gather(
        "metrics", whole.only, config.metrics or [m.id for m in whole.metrics]
    )
    specs = _judge_configs(config, file, node, gather)
    models = [spec for spec in specs if isinstance(spec, JudgeConfig)]
    prompts = [
        gather(f"judges.{spec.name}", _prompt_of, spec, rubric, file) if rubric else None
        for spec in models
    ]
    dataset = arguments
    if dataset is None and whole and rubric:
        dataset = gather("data", _load_data, config, whole, file, data_folder)
    gather.raise_any()
    assert whole is not None
    assert rubric is not None
    assert dataset is not None
    every = dataset.answers
    config = config.model_copy(update={"truth": config.truth.with_blindness(dataset.blind)})
    dataset, extension = _limited(dataset, limit), None
    data_answers = dataset.answers
    if extend is not None:
        loaded = Loaded(config, file, whole, rubric, dataset)
        if extension := gather(extend.feature, extend, loaded):
            dataset = replace(dataset, answers=(*extension.answers, *extension.beside))
            config = config.model_copy(update=dict(extension.settings))
    shown = [(s, prompt) for s, prompt in zip(models, prompts, strict=True) if prompt]
    for model, prompt in shown:
        gather(f"judges.{model.name}", _check_texts, model, prompt, rubric, dataset)
    beside = [answer.item_id for answer in extension.beside] if extension else []
    recorded, warnings = list[RecordedJudge](), list[Problem]()
    for spec in (s for s in specs if isinstance(s, RecordedConfig)):
        where = (file.parent / spec.verdicts, config.data_home(file, data_folder))
        about = (rubric, whole), where, every, beside
        field = f"judges.{spec.name}" if spec.name else "judges"
        spec = spec.model_copy(update={"ties": spec.ties or config.truth.ties})
        for judge, told in gather(field, _recorded, spec, *about) or ():
            recorded.append(judge)
            warnings += told
    if found := gather("", indexed, dataset.answers):
        dataset = replace(dataset, answers=found)
    juries = tuple(s for s in specs if isinstance(s, JuryConfig))
    names = [s.name for s in specs if not isinstance(s, RecordedConfig)]
    names += [judge.name for judge in recorded]
    if any(not spec.name for spec in specs):
        _check_names(names, gather)
    # What an extension adds is judged, and nothing is learnt from it.
    fitted = replace(dataset, answers=data_answers) if extension and data_answers else dataset
    controls = gather("by", _controls, config, rubric, fitted, juries, extension) or ()
    gather.raise_any()
    kept_in = run_folder or default_run_folder(config)
    opened = [
        gather(f"judges.{spec.name}", _open, spec, (rubric, prompt), file.parent, kept_in)
        for spec, prompt in shown
    ]
    judges = tuple(judge for judge in opened if judge is not None)
    calibrations = tuple(s for s in specs if isinstance(s, CalibrationConfig))
    bench = Bench(
        config=config,
        file=file,
        rubric=rubric,
        # Several judges of one file each report all of its cells.
        dataset=replace(dataset, warnings=(*dataset.warnings, *dict.fromkeys(warnings))),
        judges=judges,
        juries=juries,
        calibrations=calibrations,
        learning=tuple(s for s in specs if not isinstance(s, CORE_ENTRIES)),
        recorded=tuple(recorded),
        # Somebody's judge may have the name of a column's rule.
        controls=tuple(c for c in controls if c.name in ABOUT or c.name not in names),
        extension=extension,
        data_answers=data_answers if extension and dataset.labels else (),
        variants=tuple(extension.variants(judges)) if extension else (),
        limited=limit is not None,
    )
    try:
        gather.raise_any(is_last=True)
        for kind in learnings() if bench.learning else ():
            kind.check(bench)
        return _admitted(bench)
    except SetupError:
        bench.close()
        raise


def _admitted(bench: Bench) -> Bench:
    """The benchmark with what the run keeps under the keys of features that check it."""
    kept = {
        key: feature.parts.admit(bench)
        for key, feature in _sections().items()
        if getattr(bench.config, key, None) and feature.parts.admit
    }
    return replace(bench, config=bench.config.model_copy(update=kept)) if kept else bench


class Gathered:
    """Runs steps and keeps the errors of each, so that they are reported together."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.found: list[Problem] = []
        self.waiting: list[Problem] = []  # on which no later step rests

    def __call__(self, field: str, step: Callable[..., T], *args: Any, **kwargs: Any) -> T | None:
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

    def raise_any(self, *, is_last: bool = False) -> None:
        """Raises SetupError with all that was found, where something was; in the end also where
        something only waits."""
        if self.found or (is_last and self.waiting):
            raise SetupError([*self.waiting, *self.found])


def check_local(path: Path, *, on_ray: bool = False) -> None:
    """Raises SetupError with every judge of that benchmark that would contact another machine, and
    with the Ray cluster that it would be sent to.

    Opens no engine; what else is wrong with the file is for `load_bench` to say.
    """
    file = bench_file(path)
    config, node = read_config(file, data_needed=False)
    specs = _judge_configs(config, file, node, Gathered(str(file)))
    far = Gathered(str(file))
    if on_ray:
        far("engine", check_hosts, ray_hosts(), "ray")
    for spec in specs:
        where, weights = f"judges.{spec.name}", getattr(spec, "weights", {})
        if isinstance(spec, JudgeConfig):
            far(where, check_hosts, hosts_of(spec.backend, spec.settings))
            if spec.knowledge and spec.knowledge.embedder != WORDS:
                weights = {"knowledge.embedder": spec.knowledge.embedder}
        elif not isinstance(spec, CORE_ENTRIES):
            where = where if is_judge(spec) else f"scorers.{spec.name}"
            far(where, check_hosts, getattr(spec, "hosts", ()))
        for key, name in weights.items():
            if not (file.parent / name).exists():
                far(where, check_hosts, weights_hosts(name), key)
    far.raise_any()


def read_config(
    file: Path, *, data_needed: bool, faulty: list[Problem] | None = None
) -> tuple[BenchConfig, yaml.Node | None]:
    """The file's settings. Problems inside the section of a feature, on which nothing else rests,
    are added to `faulty`, and the section is left out. Raises SetupError."""
    value, node = load_with_lines(file)
    for key, feature in _sections().items() if data_needed and isinstance(value, dict) else ():
        if feature.other_command and value.get(key):
            raise SetupError(Problem(feature.other_command, str(file)))
    try:
        config = validate(value, bench_model(value), str(file), node)
    except SetupError as error:
        keys = {problem.field.partition(".")[0] for problem in error.problems}
        alone = {key for key, feature in _sections().items() if not feature.lists_judges}
        if faulty is None or not keys <= alone:
            raise
        faulty += error.problems
        rest = {key: content for key, content in value.items() if key not in keys}
        config = validate(rest, bench_model(rest), str(file), node)
    if data_needed and not config.data:
        raise SetupError(Problem("Field required", str(file), 1, "data"))
    return config, node


def bench_file(path: Path, init: str = "judgebench init") -> Path:
    """The file at that path, in that folder, or of that shipped example; `init` writes one from
    tables. Raises SetupError."""
    if path.suffix.lower() in SUFFIXES:
        message = f"is a table, and no bench.yaml: `{init}` writes one from tables"
        raise SetupError(Problem(message, str(path)))
    shipped = shipped_folder("examples") / path / "bench.yaml"
    for candidate in (path, path / "bench.yaml", shipped):
        if is_file(candidate):
            return candidate
    names = sorted(p.parent.name for p in shipped_folder("examples").glob("*/bench.yaml"))
    message = (
        f"no such file and no shipped example of that name{nearest(str(path), names)}; shipped: "
        f"{', '.join(names)}"
    )
    raise SetupError(Problem(message, file=str(path)))


def _load_data(
    config: BenchConfig, rubric: Rubric, file: Path, data_folder: Path | None
) -> Dataset:
    if not (paths := config.data_paths(file)):
        return Dataset((), ())
    folder, metrics = config.data_home(file, data_folder), config.metrics or None
    pairs = config.pairs.wanted(file, config.seed) if config.pairs else None
    return load_data(paths, rubric, metrics=metrics, folder=folder, pairs=pairs)


Entry = JudgeEntry | LearntEntry


def _judge_configs(
    config: BenchConfig, file: Path, node: yaml.Node | None, gather: Gathered
) -> list[Entry]:
    """Every judge that the file names, once they fit together."""
    found = [
        gather(f"judges.{i}", _judge_config, entry, file, node_below(node, "judges", i))
        for i, entry in enumerate(config.judges)
    ]
    for key, feature in _sections().items():
        if feature.lists_judges and getattr(config, key):
            found += gather("", feature.parts.learning.listed, config, file, node) or ()
    specs = [spec for spec in found if spec is not None]
    _check_names([spec.name for spec in specs if spec.name], gather)
    if None in found:  # which may be what others need
        return specs
    asked = {s.name: s for s in specs if isinstance(s, JudgeConfig | RecordedConfig) and s.name}
    learnt = {s.name for s in specs if not isinstance(s, CORE_ENTRIES) and is_judge(s)}
    with_labels = {*asked, *learnt, *ABOUT}
    weighed = {s.name for s in specs if isinstance(s, JudgeConfig) and s.probabilities}
    # Whether recorded verdicts hold probabilities is seen when they are read.
    unread = {s.name for s in specs if isinstance(s, RecordedConfig)} | learnt
    for spec in specs:
        where = f"judges.{spec.name}"
        if isinstance(spec, JuryConfig):
            _check_known(f"{where}.jury", spec.jury, with_labels, gather)
        elif isinstance(spec, CalibrationConfig):
            message = "is no judge with probabilities"
            _check_known(f"{where}.calibrate", [spec.calibrate], weighed | unread, gather, message)
        elif not isinstance(spec, CORE_ENTRIES):
            learning = [name for name in spec.needs if name in learnt]
            message = "is a judge that learns itself: no other one learns from it"
            _check_known(f"{where}.from", learning, asked.keys(), gather, message)
            rest = [name for name in spec.needs if name not in learnt]
            _check_known(f"{where}.from", rest, asked.keys(), gather)
    return specs


def _check_known(
    field: str, names: Iterable[str], known: Collection[str], gather: Gathered,
    message: str = "is no judge of this benchmark",
) -> None:  # fmt: skip
    allowed = ", ".join(sorted(known))
    for name in (name for name in names if name not in known):
        gather.tell(field, Problem(message, found=name, allowed=allowed))


def _check_names(names: Sequence[str], gather: Gathered) -> None:
    """Each names a file, and some file systems take GPT and gpt for the same one."""
    counts = Counter(name.casefold() for name in names)
    alike = [n for n in names if counts[n.casefold()] > 1 or n.casefold() in ABOUT]
    if alike:
        message = "two judges have this name, or a baseline has it"
        gather.tell("judges", Problem(message, found=", ".join(dict.fromkeys(alike))))


def _judge_config(entry: str | dict[str, object], file: Path, node: yaml.Node | None) -> Entry:
    source, value = file, entry
    if isinstance(entry, str):
        source = file.parent / entry
        value, node = load_with_lines(source)
    for feature in FEATURES.values():
        if isinstance(value, dict) and value.keys() & set(feature.judge_keys):
            entry_of: Callable[..., LearntEntry] = feature.parts.learning.entry
            return entry_of(value, source, node)
    if isinstance(value, dict):
        _check_feature_keys(value, source)
    return judge_entry(value, str(source), node)


def _check_feature_keys(value: Mapping[str, object], file: Path) -> None:
    """Raises SetupError where a key is nearly one that says of what kind the judge is."""
    keys = [key for feature in FEATURES.values() for key in feature.judge_keys]
    near = {str(key): nearest(str(key), keys, 0.8) for key in value}
    raise_any([
        Problem(f"is not a known key{hint}", str(file), field=k) for k, hint in near.items() if hint
    ])  # fmt: skip


def _prompt_of(spec: JudgeConfig, rubric: Rubric, file: Path) -> Prompt:
    """The judge's prompt, after a check that it fits rubric and judge."""
    prompt = load_prompt(spec.prompt, relative_to=file.parent)
    check_judge(spec, prompt, rubric)
    return prompt


def _check_texts(spec: JudgeConfig, prompt: Prompt, rubric: Rubric, dataset: Dataset) -> None:
    """Raises SetupError where answers lack what the prompt shows."""
    if dataset.textless:
        raise SetupError(no_texts("the model reads answers", dataset))
    kinds = rubric.kinds if len(rubric.kinds) == 1 else {judged_kind(spec, prompt)}
    shown = [a for a in dataset.answers if a.kind in kinds] if prompt.asks_for_reference else []
    if lacking := [answer.item_id for answer in shown if not answer.reference]:
        message = (
            f"the prompt {prompt.name} asks for a reference answer, which "
            f"{len(lacking)} of {len(dataset.answers)} answers lack"
        )
        raise SetupError(Problem(message, field="prompt", found=some(lacking)))


def no_texts(why: str, dataset: Dataset) -> Problem:
    """The problem that answers have no texts, for a judge that reads them."""
    message = f"{why}, whose texts are not given: name their column, `text`, or a file of them"
    return Problem(message, found=", ".join(dataset.textless))


def _recorded(
    spec: RecordedConfig, rubrics: tuple[Rubric, Rubric], where: tuple[Path, Path | None],
    answers: Sequence[Answer], beside: Sequence[str],
) -> list[tuple[RecordedJudge, Sequence[Problem]]]:  # fmt: skip
    """The judge, or every judge that the file names, and the warnings about its verdicts: none
    about the metrics of the whole rubric that the benchmark leaves out. Raises SetupError."""
    rubric, whole = rubrics
    names = {name for metric in whole.metrics for name in (metric.id, metric.title)}
    path, folder = where
    rows, warnings = read_verdicts(path, rubric, answers, spec.name, folder)
    if not rows:
        raise SetupError(Problem("names no judge", str(path), field="judge"))
    message, allowed = "is no name of a judge", "letters, digits and . _ -, at most 64"
    odd = [name for name in rows if not re.match(JUDGE_NAME, name)]
    raise_any([Problem(message, str(path), None, "judge", name, allowed) for name in odd])
    items = dict.fromkeys(answer.item_id for answer in answers)
    shares = tuple(f"{PROBABILITY}{name}_" for name in names)
    told = [
        p for p in warnings
        if p.kind != "unused_column" or not (p.field in names or p.field.startswith(shares))
    ]  # fmt: skip
    judges = recorded_judges(rows, spec, str(path), rubric, items, beside)
    return [(j, (*told, *j.unknown(items))) for j in judges]


def _open(spec: JudgeConfig, about: tuple[Rubric, Prompt], folder: Path, kept_in: Path) -> LLMJudge:
    backend = open_backend(spec.backend, spec.settings, folder)
    if spec.knowledge:
        backend = LookingUp(backend, spec.knowledge, open_library(spec.knowledge, folder, kept_in))
    return LLMJudge(spec, *about, backend)


def open_judge(judge: LLMJudge, file: Path, kept_in: Path) -> LLMJudge:
    """A judge of the bench.yaml `file` once more, on an engine of its own: for work that goes on
    when the other's is released. Raises SetupError."""
    return _open(judge.config, (judge.whole, judge.prompt), file.parent, kept_in)


def _limited(dataset: Dataset, limit: int | None) -> Dataset:
    """The first rows, as many of each kind."""
    if limit is None:
        return dataset
    seen = Counter[str]()
    answers = [a for a in dataset.answers if not seen.update([a.kind]) and seen[a.kind] <= limit]
    ids = {answer.item_id for answer in answers}
    labels = [label for label in dataset.labels if label.item_id in ids]
    return replace(dataset, answers=answers, labels=labels)


def _controls(
    config: BenchConfig,
    rubric: Rubric,
    dataset: Dataset,
    juries: Sequence[JuryConfig],
    extension: Extension | None,
) -> tuple[ControlJudge, ...]:
    if isinstance(config.controls, tuple):
        chosen = config.controls
    elif not config.controls:
        chosen = ()
    else:
        chosen = usual_controls(rubric) if dataset.labels or not extension else UNTAUGHT
        # Where no texts are known, none is longest.
        chosen = tuple(c for c in chosen if c != "longest-answer" or not dataset.textless)
        chosen += extension.controls if extension else ()
    jurors = {member for jury in juries for member in jury.jury}
    names = dict.fromkeys((*chosen, *(c for c in ABOUT if c in jurors)))
    fit = Fit(rubric, dataset.answers, dataset.labels, config.seed, config.known)
    if extension:
        fit = fit.over((*extension.answers, *extension.beside), extension.parents)
    return fit.judges(names)
