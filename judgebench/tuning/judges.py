"""The judges that learn, of a checked benchmark: in folds, and as its examination asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from judgebench.runs.load import load_bench, no_texts
from judgebench.runs.open import findings, is_run
from judgebench.studies.study import Study
from judgebench.tuning.config import (
    SHUFFLED,
    BagOfWordsConfig,
    ExamplesConfig,
    HeadConfig,
    InstructionsConfig,
    Learn,
    LoraConfig,
    RecalibrateConfig,
    TuningConfig,
)
from judgebench.tuning.examples import open_examples, read_silver, with_silver
from judgebench.tuning.instructions import open_instructions
from judgebench.tuning.rounds import Rounds, panel_of
from judgebench.tuning.training import has_sklearn, open_head, open_recalibrate, rubric_of
from judgebench.tuning.tuned import TunedEntry, TunedJudge

FOLDER = "tuning"  # in a run folder: what was learnt
NO_SKLEARN = "The baseline bag-of-words is left out: it needs scikit-learn (the extra `tuning`)."


def open_judges(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge | TunedJudge]:
    """A judge for each entry that learns, in folds, the controls that are fitted in the same folds,
    and the judges that were tuned elsewhere. Raises SetupError where nothing can be learnt."""
    judges: list[LearntJudge | TunedJudge] = [
        TunedJudge(entry, bench, partial(learner_of, folder=folder))
        for entry in bench.learning
        if isinstance(entry, TunedEntry)
    ]
    if not (entries := _with_controls(bench)):
        return judges
    material, home = _material(entries, bench), folder.path / FOLDER
    folds = describe_folds(material)
    for entry in entries:
        own, more = _for(entry, material, bench), {"from": entry.needs, "folds": folds}
        kind = "control" if isinstance(entry, BagOfWordsConfig) else "judge"
        learner = learner_of(entry, bench, folder)
        judge = LearntJudge(entry.name, learner, own, own.cells, home, kind=kind, more=more)
        judges.append(judge)
    if bench.config.controls is True and not (has_sklearn() or bench.dataset.textless):
        judge.notes = (NO_SKLEARN,)
    return judges


def open_examination(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge]:
    """The extension of `judgebench tune`: every judge that learns once more, on what it is scored
    on, from fewer labels, without the answers of a system, and without what is to make it better.
    """
    if not (entries := _with_controls(bench)):
        message = "has no judge that learns: give one the key `learn`"
        raise SetupError(Problem(message, str(bench.file), field="judges"))
    material, home = _material(entries, bench), folder.path / FOLDER
    judges = []
    for entry in entries:
        own = _for(entry, material, bench)
        for name, taught, cells in _ways(entry, own, bench):
            more, named = {"of": entry.name, "as": name}, f"{entry.name}~{name}"
            learner = learner_of(taught, bench, folder)
            judges.append(LearntJudge(named, learner, own, cells, home, kind="tuning", more=more))
    return judges


@dataclass(frozen=True)
class TuningExtension:
    """An `Extend` by which what is learnt is also examined, after a `check` of the benchmark, which
    raises SetupError before any judge is asked."""

    feature: str = "tuning"
    check: Callable[[Bench], object] = bool

    def __call__(self, loaded: Loaded) -> Extension:
        answers = tuple(loaded.dataset.answers)
        return Extension(feature=self.feature, answers=answers, learnt=self._open)

    def _open(self, bench: Bench, folder: RunFolder) -> Sequence[LearntJudge]:
        self.check(bench)
        return open_examination(bench, folder)


def _ways(
    entry: Learn, material: Material, bench: Bench
) -> Iterator[tuple[str, Learn, Sequence[Cell]]]:
    """The other ways to teach a judge: the entry that is taught, and in which cells."""
    yield "in-sample", entry, [Cell("all", material.labelled, np.arange(len(material.answers)))]
    if not entry.rounds:  # people would have to decide on the rounds of each way anew
        for name, cells in _examined(material, bench):
            yield name, entry, cells
    if len(stages := getattr(entry, "stages", ())) > 1:
        yield SHUFFLED, entry.model_copy(update={"stages": (*stages, SHUFFLED)}), material.cells
    if entry.rounds:
        yield "unrevised", entry.model_copy(update={"rounds": None}), material.cells


def _examined(material: Material, bench: Bench) -> Iterator[tuple[str, Sequence[Cell]]]:
    """The folds of a judge with fewer labels, and without a system's answers."""
    settings, folds, seed = _settings(bench), material.cells, bench.config.seed
    # Drawn once, so that fewer labels are some of the more.
    drawn = [np.random.default_rng([seed, n]).permutation(c.train) for n, c in enumerate(folds)]
    for n in settings.curve:
        some = zip(folds, drawn, strict=True)
        yield f"n{n}", [replace(cell, train=np.sort(rows[:n])) for cell, rows in some]
    systems = np.array([answer.system for answer in material.answers])
    for system in settings.holdout_systems:
        is_own = systems == system
        cells = [Cell(c.name, c.train[~is_own[c.train]], c.judged[is_own[c.judged]]) for c in folds]
        yield f"without-{system}", cells


def _for(entry: Learn, material: Material, bench: Bench) -> Material:
    """With those metrics that it judges, and those machine-made labels only that the entry learns
    from."""
    rubric = material.rubric
    if isinstance(entry, RecalibrateConfig):
        rubric = rubric_of(entry, bench)
    silver = {name: material.silver[name] for name in entry.silver}
    return replace(material, rubric=rubric, silver=silver)


def check_judges(bench: Bench) -> None:
    """Raises SetupError with all that keeps judges from learning in folds, or what they learn from
    being examined as `tuning` says."""
    if not (entries := _with_controls(bench)):
        return
    settings, problems = _settings(bench), list[Problem]()
    for entry in bench.learning if bench.dataset.textless else ():
        if isinstance(entry, HeadConfig | BagOfWordsConfig | LoraConfig):
            missing = no_texts("it reads answers", bench.dataset)
            problems.append(replace(missing, field=f"judges.{entry.name}"))
    systems = {answer.system for answer in bench.answers} - {""}
    for system in sorted({*settings.holdout_systems} - systems):
        field, allowed = "tuning.holdout_systems", ", ".join(sorted(systems))
        problems.append(Problem("is no system of an answer", "", None, field, system, allowed))
    try:
        material = _material(entries, bench)
        problems += material.problems()
        least = min(len(cell.train) for cell in material.cells)
        if (most := max(settings.curve, default=0)) > least:
            message = f"is more than the {least:,} answers with a label that a fold learns from"
            problems.append(Problem(message, field="tuning.curve", found=str(most)))
    except SetupError as error:
        fields = {"folds": "tuning.folds"}
        problems += [replace(p, field=fields.get(p.field, p.field)) for p in error.problems]
    raise_any([replace(p, file=p.file or str(bench.file)) for p in problems])


def _with_controls(bench: Bench) -> Sequence[Learn]:
    """The entries, and the control that is fitted the same way, unless there is to be none."""
    entries = [entry for entry in bench.learning if isinstance(entry, Learn)]
    is_due = has_sklearn() and bench.config.controls is True and not bench.dataset.textless
    has_one = any(isinstance(entry, BagOfWordsConfig) for entry in entries)
    if is_due and entries and not has_one and "bag-of-words" not in bench.names:
        entries.append(BagOfWordsConfig(name="bag-of-words", learn="bag-of-words"))
    return entries


def _settings(bench: Bench) -> TuningConfig:
    return bench.config.section("tuning", TuningConfig) or TuningConfig()


def _material(entries: Sequence[Learn], bench: Bench) -> Material:
    rubric = bench.rubric.of_kind("answer")
    if rubric is None:
        raise SetupError(Problem("has no metric of answers to learn", field="rubric"))
    files = dict.fromkeys(name for entry in entries for name in entry.silver)
    silver = {name: read_silver(bench.file.parent / name, rubric) for name in files}
    material = bench_material(bench, rubric, _settings(bench).folds, bench.config.seed)
    return with_silver(material, silver)


def learner_of(entry: LearntEntry, bench: Bench, folder: RunFolder) -> Learner:
    """Each way to learn, by its entry, in rounds where it says so."""
    learner = _plain_learner(entry, bench, folder)
    if not (isinstance(entry, Learn) and entry.rounds):
        return learner
    home = folder.path / FOLDER / entry.name
    return Rounds(learner, entry.rounds, panel_of(entry.name, entry.rounds, bench, home), home)


def _plain_learner(entry: LearntEntry, bench: Bench, folder: RunFolder) -> Learner:
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    match entry:
        case ExamplesConfig():
            return open_examples(entry, bench, folder.path)
        case InstructionsConfig():
            return open_instructions(entry, bench, folder.path)
        case BagOfWordsConfig() | HeadConfig():
            return open_head(entry, rubric, bench.file.parent, folder.path)
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
    ['gain', 'otherwise', 'test']
    """
    if not (isinstance(bench, Study) or is_run(bench)):
        loaded = load_bench(Path(bench), extend=TuningExtension())
        bench = run(loaded, folder, budget=budget, show_progress=show_progress)
    return findings(bench, "tuning", "judge that learns")
