"""A run folder as a study: no model, no original files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.judges.recorded import (
    AsJudges,
    annotators_as_judges,
    lacking_labels,
    truth_of_others,
)
from judgebench.models.checkpoint import WEIGHTS
from judgebench.runs.folder import RunFolder
from judgebench.stats.jackknife import LEVEL
from judgebench.studies.answers import IndexedAnswers, indexed
from judgebench.studies.study import JUDGE_KINDS, JudgeVerdicts, Study, backend_fact, study_of
from judgebench.studies.truth import TruthConfig

_UNFINISHED = "This run is unfinished: the same command, given again, goes on with it."


def open_run(
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
    _check_names(as_judges, judges)
    humans = annotators_as_judges(as_judges, rubric, answers, labels)
    people = [judge.name for judge in humans]
    _check_names(people, judges)
    others = truth_of_others(truth, people, labels)
    study = study_of(rubric, answers, labels, others, level)
    lacking = (f"{said}." for said in lacking_labels(humans))
    notes = (*lacking, *_weak_models(judges), *manifest.get("notes", ()), *study.notes)
    return replace(
        study, name=str(manifest["name"]), judges=(*humans, *judges), notes=notes,
        run=_run_in_words(manifest),
        unfinished=() if manifest.get("state", "finished") == "finished" else (_UNFINISHED,),
        changed=tuple(manifest.get("changed", {}).values()),
        sources=manifest.get("sources", {}),
    )  # fmt: skip


def _check_names(as_judges: Collection[str], judges: Sequence[JudgeVerdicts]) -> None:
    names = sorted({judge.name for judge in judges}.intersection(as_judges))
    message = "is the name of a judge too"
    raise_any([Problem(message, field="as_judges", found=name) for name in names])


def _run_in_words(manifest: Mapping[str, Any]) -> str:
    """`2026-11-22, judgebench 0.1.0`: the day on which the run ended, or else began."""
    day = str(manifest.get("ended") or manifest.get("started", ""))[:10]
    version = f"judgebench {manifest['judgebench']}" if "judgebench" in manifest else ""
    return ", ".join(filter(None, (day, version)))


def _weak_models(judges: Sequence[JudgeVerdicts]) -> Iterator[str]:
    """A caveat for each judge that runs a model shipped for trying things out, which is known by
    the sum of its weights, however it was run."""
    shipped = {weights.sha256: weights for weights in WEIGHTS.values()}
    for judge in judges:
        if weights := shipped.get(backend_fact(judge.about, "sha256")):
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
