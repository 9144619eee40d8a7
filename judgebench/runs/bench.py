"""bench.yaml: what is benchmarked, checked whole before anything is asked of anybody."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import yaml
from pydantic import BaseModel, Field, create_model

from judgebench.data.gather import VerdictSource
from judgebench.data.load import load_data, read_verdicts
from judgebench.data.pairs import PairsConfig
from judgebench.data.spec import find_metric
from judgebench.errors import Problem, SetupError
from judgebench.judges.config import (
    CORE_ENTRIES,
    CalibrationConfig,
    JudgeConfig,
    JudgeEntry,
    JuryConfig,
    Name,
    RecordedConfig,
    check_judge,
    judge_entry,
    judged_kind,
)
from judgebench.judges.control import (
    ABOUT,
    UNTAUGHT,
    Control,
    ControlJudge,
    control_judges,
    usual_controls,
)
from judgebench.judges.derived import ContentFree, content_free
from judgebench.judges.judge import Judge
from judgebench.judges.knowledge import LookingUp, open_library
from judgebench.judges.llm import LLMJudge
from judgebench.judges.recorded import RecordedJudge, recorded_judges
from judgebench.models import open_backend
from judgebench.models.hosts import check_hosts, hosts_of, ray_hosts, weights_hosts
from judgebench.prompt import Prompt, load_prompt
from judgebench.records import SEVERAL, Answer, Dataset, Kind
from judgebench.retrieval.vectors import WORDS, Library
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.extension import (
    Extend,
    Extension,
    LearntEntry,
    LearntJudge,
    Loaded,
    Variant,
    is_judge,
)
from judgebench.runs.wing import learnings, sections
from judgebench.shipped import is_file, shipped_folder, shipped_names
from judgebench.studies.answers import ids_and_groups
from judgebench.studies.truth import TruthConfig
from judgebench.studies.verdicts import suspicions
from judgebench.words import counted, listed
from judgebench.yaml_file import Strict, load_with_lines, node_below, validate

P = ParamSpec("P")
T = TypeVar("T")
SectionModel = TypeVar("SectionModel", bound=BaseModel)


class ReportConfig(Strict):
    """`resamples` of the cluster bootstrap and the `level` of every interval."""

    resamples: int = Field(default=2000, ge=100)
    level: float = Field(default=0.95, gt=0.5, lt=1)


class BenchConfig(Strict):
    """The keys of bench.yaml but for those of wings. Paths are seen from the folder of the file
    that names them.

    `data` may be left out where a wing brings answers of its own. `pairs` of answers are rows
    beside these, for metrics of pairs. `notes` are sentences that every
    report repeats, such as where the data comes from.
    """

    name: Name
    rubric: str
    data: str | tuple[str, ...] = ()
    data_folder: str | None = None
    metrics: tuple[str, ...] = ()
    pairs: PairsConfig | None = None
    judges: tuple[str | dict[str, object], ...] = ()
    controls: bool | tuple[Control, ...] = True
    truth: TruthConfig = TruthConfig()
    report: ReportConfig = ReportConfig()
    notes: tuple[str, ...] = ()
    seed: int = 0

    def data_paths(self, file: Path) -> list[Path]:
        """The data files of the bench.yaml `file`."""
        names = (self.data,) if isinstance(self.data, str) else self.data
        return [file.parent / name for name in names]

    def data_home(self, file: Path, given: Path | None) -> Path | None:
        """Where the paths in a data.yaml start: where is `given`, else where `file` says; None for
        its own folder."""
        return given or (file.parent / self.data_folder if self.data_folder else None)

    def section(self, key: str, model: type[SectionModel]) -> SectionModel | None:
        """What stands under a wing's key; None where nothing does."""
        found = getattr(self, key, None)
        return found if isinstance(found, model) else None


@cache
def bench_model() -> type[BenchConfig]:
    """All keys of bench.yaml, those of the wings among them."""
    keys: dict[str, Any] = {s.key: (s.model() | None, None) for s in sections()}
    return create_model("BenchConfig", __base__=BenchConfig, **keys)


def settings_of(manifest: Mapping[str, Any]) -> BenchConfig:
    """The settings of a run. Keys of wings that are not here are passed over.

    Raises SetupError where they are damaged.
    """
    model, settings = bench_model(), manifest.get("settings")
    if not isinstance(settings, Mapping):
        raise SetupError(Problem("holds no settings", "run.json"))
    known = {key: value for key, value in settings.items() if key in model.model_fields}
    return validate(known, model, file="run.json")


@dataclass(frozen=True)
class Bench:
    """A checked benchmark. Engines are open, but no model has been asked anything."""

    config: BenchConfig
    file: Path
    rubric: Rubric
    dataset: Dataset
    judges: tuple[LLMJudge, ...]
    juries: tuple[JuryConfig, ...] = ()
    calibrations: tuple[CalibrationConfig, ...] = ()
    content_free: tuple[ContentFree, ...] = ()  # what the calibrations ask beside the answers
    controls: tuple[ControlJudge, ...] = ()
    recorded: tuple[RecordedJudge, ...] = ()  # verdicts that somebody has
    others: tuple[Judge, ...] = ()  # judges that were handed over as Python objects
    learning: tuple[LearntEntry, ...] = ()  # what wings make judges of
    learnt: tuple[LearntJudge, ...] = ()  # these judges, once a run folder is known
    extension: Extension | None = None  # `dataset` then holds the answers beside the study too
    variants: tuple[Variant, ...] = ()

    @property
    def names(self) -> set[str]:
        """What judges of any kind are called."""
        kinds = (
            self.judges, self.recorded, self.juries, self.calibrations, self.controls, self.others,
            self.learning,
        )  # fmt: skip
        return {judge.name for kind in kinds for judge in kind}

    @property
    def n_judges(self) -> int:
        """How many give labels and are no control, jury or calibration."""
        made = [entry for entry in self.learning if is_judge(entry)]
        return len(self.judges) + len(self.recorded) + len(made)

    @property
    def parents(self) -> Mapping[str, str]:
        """The id of what each altered answer was made of, by its own."""
        lines = self.extension.lines if self.extension else ()
        return {line["item_id"]: line["parent_id"] for line in lines if "parent_id" in line}

    @property
    def answers(self) -> Sequence[Answer]:
        """The study's answers, without those that are judged beside it."""
        return self.extension.answers if self.extension else self.dataset.answers

    @property
    def warnings(self) -> Sequence[Problem]:
        """What was met while reading, and who makes the truth and may be no person."""
        makers = self.config.truth.choose({label.annotator for label in self.dataset.labels})
        return (*self.dataset.warnings, *suspicions(makers, self.names, str(self.file)))

    @property
    def in_words(self) -> str:
        """What it holds, for whoever checks the file."""
        beside = f" and {len(self.extension.beside)} altered ones" if self.extension else ""
        found = Counter(a.kind for a in self.answers) if self.rubric.kinds != {"answer"} else None
        rows: Mapping[Kind, int] = found or {"answer": len(self.answers)}
        counts = listed([counted(n, kind, SEVERAL[kind]) for kind, n in rows.items()])
        parts = [
            f"{counts}{beside} with {counted(self.dataset.n_labels, 'human label')}",
            counted(self.n_judges, "judge"),
            counted(len(self.controls), "control judge"),
        ]
        return f"a benchmark of {listed(parts)}"

    def close(self) -> None:
        for judge in (*self.judges, *self.others, *self.learnt):
            judge.close()


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
    if arguments is not None:  # control judges learn from human labels, and here are none
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
            dataset = gather("data", _load_data, config, file, whole, data_folder, run_folder)
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
            where = VerdictPlace(config, file, data_folder)
            found = gather(f"judges.{spec.name}", _recorded, spec, rubric, where, every, beside)
            recorded += [found] if found else []
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
    juries = tuple(s for s in specs if isinstance(s, JuryConfig))
    calibrations = tuple(s for s in specs if isinstance(s, CalibrationConfig))
    learning = tuple(s for s in specs if not isinstance(s, CORE_ENTRIES))
    # Several judges of one file each report all of its cells.
    told = dict.fromkeys(one for _, noticed in recorded for one in noticed)
    warnings = (*dataset.warnings, *told)
    dataset = replace(dataset, warnings=warnings)
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
        controls=_controls(config, rubric, dataset, juries, extension),
        extension=extension,
        variants=tuple(extension.variants(opened)) if extension else (),
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
        return validate(value, bench_model(), str(file), node), node
    except SetupError as error:
        gather.found += error.problems
    unsound = {p.field.split(".")[0] for p in gather.found}
    sound = {k: v for k, v in value.items() if k not in unsound} if isinstance(value, dict) else {}
    try:
        return validate({"name": "unsound", **sound}, bench_model(), str(file), node), node
    except SetupError:
        raise SetupError(gather.found) from None


def bench_file(path: Path) -> Path:
    """The file at that path, in that folder, or of that shipped example. Raises SetupError."""
    shipped = shipped_folder("examples") / path / "bench.yaml"
    for candidate in (path, path / "bench.yaml", shipped):
        if is_file(candidate):
            return candidate
    names = ", ".join(shipped_names("examples", ""))
    message = f"no such file and no shipped example of that name; shipped: {names}"
    raise SetupError(Problem(message, file=str(path)))


def _load_data(
    config: BenchConfig,
    file: Path,
    rubric: Rubric,
    data_folder: Path | None,
    run_folder: Path | None,
) -> Dataset:
    if not (paths := config.data_paths(file)):
        return Dataset((), ())
    folder = config.data_home(file, data_folder)
    kept_in = run_folder or default_run_folder(config)
    metrics = config.metrics or None
    pairs = config.pairs.wanted(file, config.seed) if config.pairs else None
    return load_data(paths, rubric, metrics=metrics, folder=folder, kept_in=kept_in, pairs=pairs)


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
    names = Counter(spec.name for spec in specs)
    names.update(c for c in ABOUT if c in names)
    for name, count in names.items():
        if count > 1:
            message = "two judges have this name, or a control has it"
            gather.tell("judges", Problem(message, found=name))
    able = (JudgeConfig, RecordedConfig)
    asked = {spec.name for spec in specs if isinstance(spec, able)}
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


def _check_calibrations(specs: Sequence[JudgeEntry | LearntEntry], gather: Gathered) -> None:
    """Each needs a judge of this benchmark that gives probabilities."""
    asked: dict[str, object] = {
        s.name: s.probabilities for s in specs if isinstance(s, JudgeConfig)
    }
    # Whether recorded verdicts hold probabilities is seen when they are read; more cannot be asked.
    models = (JudgeConfig, JuryConfig, CalibrationConfig)
    recorded = {s.name for s in specs if not isinstance(s, models)}
    for spec in specs:
        if not isinstance(spec, CalibrationConfig) or asked.get(spec.calibrate):
            continue
        if spec.calibrate in recorded and spec.method == "batch":
            continue
        if spec.calibrate in recorded:
            message = "cannot be asked about content-free texts"
            problem = Problem(message, found=spec.calibrate, allowed="method: batch")
            gather.tell(f"judges.{spec.name}.calibrate", problem)
            continue
        known = spec.calibrate in asked
        message = "is not asked for probabilities" if known else "is no language model of this file"
        weighed = ", ".join(name for name, how in asked.items() if how)
        allowed = weighed or "a judge with `probabilities: independent` or `chained`"
        problem = Problem(message, found=spec.calibrate, allowed=allowed)
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
        lacking, some = 0, list[str]()
        kind, several = judged_kind(spec, prompt), len(rubric.kinds) > 1
        for answer in dataset.answers:
            if not answer.reference and not (several and answer.kind != kind):
                lacking += 1
                some += [answer.item_id] if lacking <= 5 else []
        if lacking:
            raise SetupError(
                Problem(
                    f"the prompt {prompt.name} asks for a reference answer, which "
                    f"{lacking} of {len(dataset.answers)} answers lack",
                    field="prompt",
                    found=", ".join(some) + (", …" if lacking > 5 else ""),
                )
            )
    return prompt


def no_texts(why: str, dataset: Dataset) -> Problem:
    """That whoever reads answers cannot do without their texts."""
    message = f"{why}, whose texts are not given: name their column, `text`, or a file of them"
    return Problem(message, found=", ".join(dataset.textless))


@dataclass(frozen=True)
class VerdictPlace:
    """Where the paths of a judge's recorded verdicts start: those of a bench.yaml."""

    config: BenchConfig
    file: Path
    data_folder: Path | None

    def source(self, spec: RecordedConfig, rubric: Rubric) -> VerdictSource:
        """Raises SetupError where a column fits no metric."""
        columns = spec.column or {}
        if isinstance(columns, str):
            if len(rubric.metrics) > 1:
                message = f"names one column for {len(rubric.metrics)} metrics"
                allowed = f"{{{rubric.metrics[0].id}: {columns}, …}}"
                raise SetupError(Problem(message, "", None, "column", columns, allowed))
            columns = {rubric.metrics[0].id: columns}
        name = spec.verdicts or spec.source
        paths = [self.file.parent / name] if name else self.config.data_paths(self.file)
        metrics = {}
        for name, column in columns.items():
            metric = find_metric(name, rubric)
            if isinstance(metric, str):
                allowed = ", ".join(m.id for m in rubric.metrics)
                raise SetupError(Problem(metric, "", None, "column", name, allowed))
            metrics[metric.id] = column
        folder = self.config.data_home(self.file, self.data_folder)
        return VerdictSource(paths, spec.name, metrics, spec.reply is not None, folder)


def _recorded(
    spec: RecordedConfig, rubric: Rubric, place: VerdictPlace, dataset: Dataset | None,
    beside: Sequence[Answer],
) -> tuple[RecordedJudge, Sequence[Problem]] | None:  # fmt: skip
    """The judge, and what was noticed in reading its verdicts; None without answers."""
    if dataset is None:
        return None
    given = read_verdicts(place.source(spec, rubric), rubric, dataset.answers)
    items = {item_id for item_id, _ in ids_and_groups(dataset.answers)}
    others = [answer.item_id for answer in beside]
    (judge,) = recorded_judges(spec, given, rubric, items, others)
    return judge, (*given.warnings, *judge.gaps(judge.owing(dataset.answers, items)))


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
    return replace(dataset, answers=answers, labels=labels, origin=None)


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
    sworn = {member for jury in juries for member in jury.jury}
    names = dict.fromkeys((*chosen, *(c for c in ABOUT if c in sworn)))
    return control_judges(names, rubric, dataset.answers, dataset.labels, config.seed)


def _extended(dataset: Dataset, extension: Extension) -> Dataset:
    """The data set with all answers that are judged: those of the study, then those beside it."""
    answers = {a.item_id: a for a in extension.answers}
    beside = {a.item_id: a for a in extension.beside}
    twice = ", ".join(sorted(answers.keys() & beside.keys())[:5])
    if twice:
        raise SetupError(Problem("an answer and an altered one have the same id", found=twice))
    return replace(dataset, answers=(*answers.values(), *beside.values()), origin=None)


def default_run_folder(config: BenchConfig) -> Path:
    """`runs/NAME` below the folder that the command was called in."""
    return Path(os.curdir) / "runs" / config.name
