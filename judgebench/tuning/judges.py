"""The judges that learn, of a checked benchmark: in folds, and as its examination asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.learning.learnt import (
    Cell,
    Learner,
    LearntJudge,
    Material,
    bench_material,
    describe_folds,
)
from judgebench.prompt import load_prompt
from judgebench.results.shown import Shown
from judgebench.runs.bench import Bench, Extension, LearntEntry, Loaded
from judgebench.runs.benchmark import run
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import Gathered, load_bench, no_texts
from judgebench.runs.open import findings, is_run
from judgebench.studies.study import Study
from judgebench.tuning.config import (
    SHUFFLED,
    BagOfWordsConfig,
    BySystemConfig,
    ExamplesConfig,
    HeadConfig,
    InstructionsConfig,
    Learn,
    LoraConfig,
    RecalibrateConfig,
    Stage,
    TuningConfig,
)
from judgebench.tuning.examples import BySystem, open_examples, read_silver, with_silver
from judgebench.tuning.instructions import open_instructions
from judgebench.tuning.rounds import Rounds, panel_of
from judgebench.tuning.training import has_sklearn, open_head, open_recalibrate, rubric_of
from judgebench.tuning.tuned import TunedEntry, TunedJudge

FOLDER = "tuning"  # in a run folder: what was learnt
CONTROLS = (BySystemConfig, BagOfWordsConfig)
NO_SKLEARN = "The baseline bag-of-words is left out: it needs scikit-learn (the extra `tuning`)."


def open_judges(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge | TunedJudge]:
    """A judge for each entry that learns, in folds, the controls that are fitted in the same folds,
    and the judges that were tuned elsewhere. Raises SetupError where nothing can be learnt."""
    tuned = [
        TunedJudge(entry, bench, partial(learner_of, folder=folder))
        for entry in bench.learning
        if isinstance(entry, TunedEntry)
    ]
    if not (entries := _with_controls(bench)):
        return tuned
    material = _material(bench)
    told = describe_folds(material)
    judges = [
        LearntJudge(
            entry.name, learner_of(entry, bench, folder), own, own.cells,
            folder.path / FOLDER, kind="control" if isinstance(entry, CONTROLS) else "judge",
            more={"from": entry.before if isinstance(entry, Learn) else (), "folds": told},
        )
        for entry in entries
        for own in [_for(entry, material, bench)]
    ]  # fmt: skip
    if bench.config.controls is True and not (has_sklearn() or bench.dataset.textless):
        judges[0].notes = (NO_SKLEARN,)
    return [*tuned, *judges]


def open_examination(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge]:
    """The extension of `judgebench tune`: every judge that learns once more, on what it is scored
    on, from fewer labels, and without the answers of a system."""
    if not (entries := _with_controls(bench)):
        message = "has no judge that learns: give one the key `learn`"
        raise SetupError(Problem(message, str(bench.file), field="judges"))
    material = _material(bench)
    return [
        LearntJudge(
            f"{entry.name}~{name}", learner, own, cells,
            folder.path / FOLDER, kind="tuning", more={"of": entry.name, "as": name},
        )
        for entry in entries
        for own in [_for(entry, material, bench)]
        for name, learner, cells in [
            *(
                (name, learner_of(entry, bench, folder), cells)
                for name, cells in _examined(own, _settings(bench), bench.config.seed)
                if name == "in-sample" or not (isinstance(entry, Learn) and entry.rounds)
            ),
            *((n, made, own.cells) for n, made in _baselines(entry, bench, folder)),
        ]
    ]  # fmt: skip


@dataclass(frozen=True)
class TuningExtension:
    """An `Extend` by which what is learnt is also examined."""

    feature: str = "tuning"

    def __call__(self, loaded: Loaded) -> Extension:
        answers = tuple(loaded.dataset.answers)
        return Extension(feature=self.feature, answers=answers, learnt=open_examination)


def _examined(
    material: Material, settings: TuningConfig, seed: int
) -> Iterator[tuple[str, Sequence[Cell]]]:
    every = np.arange(len(material.answers))
    yield "in-sample", [Cell("all", material.labelled, every)]
    folds = material.cells
    # Drawn once, so that fewer labels are some of the more.
    drawn = [np.random.default_rng([seed, k]).permutation(c.train) for k, c in enumerate(folds)]
    for n in settings.curve:
        some = zip(folds, drawn, strict=True)
        yield f"n{n}", [Cell(c.name, np.sort(rows[:n]), c.judged) for c, rows in some]
    systems = np.array([answer.system for answer in material.answers])
    for system in settings.holdout_systems:
        own = systems == system
        yield (
            f"without-{system}",
            [Cell(c.name, c.train[~own[c.train]], c.judged[own[c.judged]]) for c in folds],
        )


def _baselines(
    entry: LearntEntry, bench: Bench, folder: RunFolder
) -> Iterator[tuple[str, Learner]]:
    """The same training without what is to make it better: order, or revisions."""
    stages = getattr(entry, "stages", ())
    if isinstance(entry, Learn) and len(stages) > 1:
        mixed = entry.model_copy(update={"stages": (*stages, Stage(data=SHUFFLED))})
        yield SHUFFLED, learner_of(mixed, bench, folder)
    learner = learner_of(entry, bench, folder)
    if isinstance(learner, Rounds):
        yield "more-steps", learner.without_revisions()


def _for(entry: LearntEntry, material: Material, bench: Bench) -> Material:
    """With those metrics that it judges, and those machine-made labels only that the entry learns
    from. What reads no text learns from all other questions: no text tells it of another."""
    names, folds = entry.silver if isinstance(entry, Learn) else (), material.folds
    if isinstance(entry, BySystemConfig):
        folds = replace(folds, text=np.arange(len(folds.text)))
    rubric = rubric_of(entry, bench) if isinstance(entry, RecalibrateConfig) else material.rubric
    silver = {name: material.silver[name] for name in names}
    return replace(material, rubric=rubric, folds=folds, silver=silver)


def check_judges(bench: Bench) -> None:
    """Raises SetupError with all that keeps judges from learning in folds, or what they learn from
    being examined as `tuning` says."""
    if not _with_controls(bench):
        return
    settings, problems = _settings(bench), list[Problem]()
    for entry in bench.learning if bench.dataset.textless else ():
        if isinstance(entry, HeadConfig | BagOfWordsConfig | LoraConfig):
            missing = no_texts("it reads answers", bench.dataset)
            problems.append(replace(missing, field=f"judges.{entry.name}"))
    systems = {answer.system for answer in bench.answers}
    for system in settings.holdout_systems:
        if system not in systems:
            allowed, field = ", ".join(sorted(systems - {""})), "tuning.holdout_systems"
            problems.append(Problem("is no system of an answer", "", None, field, system, allowed))
    try:
        material = _material(bench)
        problems += material.problems()
        least = min(len(cell.train) for cell in material.cells)
        for n in (n for n in settings.curve if n > least):
            message = f"is more than the {least:,} answers with a label that a fold learns from"
            problems.append(Problem(message, field="tuning.curve", found=str(n)))
    except SetupError as error:
        problems += error.problems
    raise_any([replace(p, file=p.file or str(bench.file)) for p in problems])


def _with_controls(bench: Bench) -> list[LearntEntry]:
    """The entries, and the controls that are fitted the same way, unless there are to be none."""
    entries: list[LearntEntry] = [e for e in bench.learning if isinstance(e, Learn)]
    if bench.config.controls is not True or all(isinstance(e, CONTROLS) for e in entries):
        return entries
    usual: list[Learn] = []
    if has_sklearn() and not bench.dataset.textless:
        usual.append(BagOfWordsConfig(name="bag-of-words", learn="bag-of-words"))
    there = {type(entry) for entry in entries}
    return entries + [e for e in usual if e.name not in bench.names and type(e) not in there]


def _settings(bench: Bench) -> TuningConfig:
    return bench.config.section("tuning", TuningConfig) or TuningConfig()


def _material(bench: Bench) -> Material:
    rubric = bench.rubric.of_kind("answer")
    if rubric is None:
        raise SetupError(Problem("has no metric of answers to learn", field="rubric"))
    gather = Gathered(str(bench.file))
    silver = {
        name: gather(f"judges.{entry.name}.stages", read_silver, bench.file.parent / name, rubric)
        for entry in bench.learning
        if isinstance(entry, Learn)
        for name in entry.silver
    }
    how = (bench, rubric, _settings(bench).folds, bench.config.seed)
    material = gather("tuning", bench_material, *how)
    gather.raise_any()
    assert material is not None
    return with_silver(material, {name: found for name, found in silver.items() if found})


def learner_of(entry: LearntEntry, bench: Bench, folder: RunFolder) -> Learner:
    """Each way to learn, by its entry, in rounds where it says so."""
    learner = _plain_learner(entry, bench, folder)
    if not (isinstance(entry, Learn) and entry.rounds):
        return learner
    home = folder.path / FOLDER / entry.name
    panel = panel_of(entry.name, entry.rounds, bench, home)
    return Rounds(learner, entry.rounds, panel, home, seed=entry.seed)


def _plain_learner(entry: LearntEntry, bench: Bench, folder: RunFolder) -> Learner:
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    match entry:
        case BySystemConfig():
            return BySystem(rubric)
        case ExamplesConfig():
            return open_examples(entry, bench, folder.path)
        case InstructionsConfig():
            return open_instructions(entry, bench, folder.path)
        case BagOfWordsConfig() | HeadConfig():
            return open_head(entry, bench, folder.path)
        case RecalibrateConfig():
            return open_recalibrate(entry, bench, folder)
        case LoraConfig():
            from judgebench.tuning.train import Lora

            beside = bench.file.parent / entry.model
            found = entry.model_copy(update={"model": str(beside)}) if beside.exists() else entry
            return Lora(found, rubric, load_prompt(entry.prompt, bench.file.parent))
    raise TypeError(type(entry))


def tune(
    bench: Study | str | Path,
    folder: str | Path | None = None,
    *,
    budget: float | None = None,
    show_progress: bool = False,
) -> Shown:
    """Measure judges that learn on answers that they never saw: the gain over what was there
    before, what one would have claimed without folds, held-out systems, learning curves.

    Runs the bench.yaml as `judgebench tune` does, into the run folder (default: runs/NAME); of a
    study of such a run, shows it again. `budget` and `show_progress` are as in `run`.

    Raises SetupError where no judge learns.

    >>> import judgebench as jb
    >>> frame = jb.tune("bench.yaml", "runs/tuned").to_frame()
    >>> sorted(frame.analysis.unique())
    ['gain', 'otherwise', 'score', 'test']
    """
    if not (isinstance(bench, Study) or is_run(bench)):
        loaded = load_bench(Path(bench), extend=TuningExtension())
        bench = run(loaded, folder, budget=budget, show_progress=show_progress)
    return findings(bench, "tuning", "judge that learns")
