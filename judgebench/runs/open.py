"""A run folder as a study: no model, no original files."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import validate
from judgebench.judges.recorded import (
    AsJudges,
    annotators_as_judges,
    lacking_labels,
    truth_of_others,
)
from judgebench.models.checkpoints import WEIGHTS
from judgebench.runs.features import analyses, with_features
from judgebench.runs.folder import RunFolder
from judgebench.stats.intervals import LEVEL
from judgebench.studies.answers import IndexedAnswers, indexed
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JUDGE_KINDS, JudgeVerdicts, Study, backend_fact, study_of

if TYPE_CHECKING:
    from judgebench.results.shown import Shown


Truth = TruthConfig | Mapping[str, Any] | str
"""How human labels become a truth: a rule's name, some keys of a TruthConfig, or a whole one."""
_UNFINISHED = "This run is unfinished: the same command, given again, goes on with it."


def open_folder(
    folder: RunFolder,
    truth: TruthConfig = TruthConfig(),
    level: float = LEVEL,
    as_judges: AsJudges = (),
) -> Study:
    """The study that a run folder holds. The annotators `as_judges` stand among the judges and have
    no part in the truth.

    What it lacks, because the run is unfinished, and what of it was repaired, are its `gaps`.
    Raises SetupError where the folder holds no run or is damaged, or has no such annotators.
    """
    manifest = folder.manifest()
    if not {"name", "judges"} <= manifest.keys():
        raise SetupError(
            Problem("is not a run folder: it lacks a whole run.json", str(folder.path))
        )
    beside = folder.ids_beside()
    answers = indexed([a for a in folder.answers() if a.item_id not in beside])
    rubric, labels = folder.rubric(), folder.labels()
    judges = [
        verdicts_of(folder, name, about, answers)
        for name, about in manifest["judges"].items()
        if about["kind"] in JUDGE_KINDS
    ]
    people: list[JudgeVerdicts] = []
    lacking: list[str] = []
    if as_judges:
        _check_names(as_judges, judges)
        people = annotators_as_judges(as_judges, rubric, answers, labels)
        names = [judge.name for judge in people]
        _check_names(names, judges)
        truth = truth_of_others(truth, names, labels)
        lacking = [f"{message}." for message in lacking_labels(people)]
    study = study_of(rubric, answers, labels, truth, level)
    notes = (*lacking, *_weak_models(judges), *manifest.get("notes", ()), *study.notes)
    return replace(
        study, name=str(manifest["name"]), judges=(*people, *judges), notes=notes,
        run=_run_in_words(manifest),
        unfinished=() if manifest.get("state", "finished") == "finished" else (_UNFINISHED,),
        changed=tuple(manifest.get("changed", {}).values()),
        sources=manifest.get("sources", {}),
    )  # fmt: skip


def _check_names(as_judges: Collection[str], judges: Sequence[JudgeVerdicts]) -> None:
    message = "is the name of a judge too"
    names = sorted({judge.name for judge in judges}.intersection(as_judges))
    raise_any([Problem(message, field="as_judges", found=name) for name in names])


def _run_in_words(manifest: Mapping[str, Any]) -> str:
    """`2026-11-22, judgebench 0.1.0`: the day on which the run ended, or else began."""
    day = str(manifest.get("ended") or manifest.get("started", ""))[:10]
    version = f"judgebench {manifest['judgebench']}" if "judgebench" in manifest else ""
    return ", ".join(filter(None, (day, version)))


def _weak_models(judges: Sequence[JudgeVerdicts]) -> Iterator[str]:
    """A caveat for each judge that runs a model shipped for trying things out, which is known by
    the sum of its weights, however it was run."""
    for judge in judges:
        if not (sha256 := backend_fact(judge.about, "sha256")):
            continue
        for weights in (weights for weights in WEIGHTS.values() if weights.sha256 == sha256):
            yield (
                f"{judge.name} runs {weights.name}, a very small model ({weights.note}). Its "
                "verdicts carry no clinical weight and are no measure of other models."
            )


def verdicts_of(
    folder: RunFolder, name: str, about: Mapping[str, Any], answers: IndexedAnswers
) -> JudgeVerdicts:
    """The latest verdicts of the judge of a manifest's entry, on the answers as they stand.

    What was said of an older text is left out.
    """
    found = folder.latest_verdicts(name, about["signature"], answers)
    return JudgeVerdicts(
        name, about["kind"], about["signature"], found, found.usage, found.cost, about["about"],
        found.models,
    )  # fmt: skip


def open_run(
    folder: str | Path,
    *,
    truth: Truth | None = None,
    as_judges: AsJudges = (),
) -> Study:
    """The study that a run folder holds. `truth` replaces some of the run's own settings.

    The annotators `as_judges`, names or patterns such as `expert*`, stand among the judges and have
    no part in the truth. A blank cell of theirs counts as failed, and so does a missing row of an
    item that others labelled; with `{"expert*": "rows"}` a missing row does not. Raises SetupError
    where the folder holds no run, and for places in a list (`crowd#3`), which are no people. Raises
    DamagedRun, with every file, where files are not those that the run wrote. What an unfinished
    run lacks, and what was repaired, is said in a warning and under every table.

    >>> import judgebench as jb
    >>> jb.open_run("runs/small", truth="majority").config.rule
    'majority'
    >>> jb.open_run("runs/small", as_judges=["annotator-1"]).judges[0].name
    'annotator-1'
    """
    from judgebench.runs.load import settings_of

    found = RunFolder.existing(Path(folder))
    try:
        settings = settings_of(found.manifest())
        config = settings.truth if truth is None else truth_config(truth, settings.truth)
        opened = with_features(open_folder(found, config, settings.report.level, as_judges), found)
    except SetupError as error:
        raise SetupError([found.repairable(p) for p in error.problems]) from None
    known = found.manifest()["judges"]
    people = [judge for judge in opened.judges if judge.name not in known]
    if said := (*opened.gaps, *(lacking_labels(people) if people else ())):
        warnings.warn("\n".join(said), stacklevel=2)
    return opened


def truth_config(given: Truth, usual: TruthConfig) -> TruthConfig:
    """Return the settings that are given, or the usual ones with some keys replaced."""
    if isinstance(given, TruthConfig):
        return given
    changes = {"rule": given} if isinstance(given, str) else dict(given)
    return validate({**usual.model_dump(), **changes}, TruthConfig, file="truth")


def is_run(given: object) -> TypeGuard[str | Path]:
    """True for a run folder, as against a table, or the text of one."""
    if not isinstance(given, str | Path) or "\n" in str(given):
        return False
    return (Path(given) / "run.json").is_file()


def opened_study(given: Study | str | Path) -> Study:
    """The study that is given, or that in a run folder. Raises SetupError for anything else."""
    if isinstance(given, Study):
        return given
    named = isinstance(given, str | Path)
    if named and not Path(given).is_file():
        return open_run(given)
    message = "give a study or a run folder; jb.study makes a study of tables"
    found = str(given) if named else type(given).__name__
    raise SetupError(Problem(message, field="study", found=found))


def findings(given: Study | str | Path, feature: str, what: str) -> Shown:
    """Return what one feature finds in a study or a run folder.

    Raises SetupError where there is no `what`.
    """
    study = opened_study(given)
    if (found := analyses(study, feature).get(feature)) is None:
        raise SetupError(Problem(f"{study.name} holds no {what}"))
    return found
