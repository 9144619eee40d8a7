"""Judges, humans and answers in, one Alignment out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgebench.align.annotators import agreement, ceiling, distribution
from judgebench.align.answers import indexed
from judgebench.align.disagreements import disagreements
from judgebench.align.judges import confusion, scores
from judgebench.align.notes import data_notes, disagreement_note, judge_notes
from judgebench.align.result import JUDGE_KINDS, Alignment, JudgeSummary, JudgeVerdicts
from judgebench.align.scope import scope_of
from judgebench.align.verdicts import FiledVerdicts, status_counts
from judgebench.errors import Problem, SetupError
from judgebench.probes.altered import unaltered
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Rubric
from judgebench.stats.resample import DEFAULT_RESAMPLING, Resampling
from judgebench.store import RunFolder
from judgebench.truth import TruthConfig


def align(
    name: str,
    rubric: Rubric,
    answers: Sequence[Answer],
    labels: Sequence[HumanLabel],
    judges: Sequence[JudgeVerdicts],
    truth: TruthConfig = TruthConfig(),
    resampling: Resampling = DEFAULT_RESAMPLING,
    notes: Sequence[str] = (),
) -> Alignment:
    """Compare every judge with the humans, and the humans with each other, metric by metric.

    Intervals resample whole groups of answers (`Answer.group`). Raises SetupError where
    `truth.annotators` names nobody.
    """
    scope = scope_of(rubric, answers, labels, truth, resampling)
    pairs = [(judge, metric) for judge in judges for metric in rubric.metrics]
    found = [score for pair in pairs for score in scores(scope, *pair)]
    matrices = [confusion(scope, *pair) for pair in pairs]
    listed, differing = disagreements(scope, rubric, judges)
    return Alignment(
        name=name,
        rubric=rubric,
        truth_rule={m.id: truth.in_words(m) for m in rubric.metrics},
        annotators=tuple(sorted({a for h in scope.humans.values() for a in h.makers})),
        judges=tuple(_summary(judge) for judge in judges),
        scores=tuple(found),
        agreement=tuple(agreement(scope, rubric)),
        ceiling=tuple(c for m in rubric.metrics for c in ceiling(scope, m)),
        distribution=tuple(s for m in rubric.metrics for s in distribution(scope, m)),
        confusions=tuple(matrices),
        disagreements=tuple(listed),
        n_answers=len(answers),
        n_labels=scope.n_labels,
        notes=(
            *judge_notes(rubric, judges, found, matrices),
            *notes,
            *(data_notes(rubric, scope.humans, len(answers)) if labels else ()),
            *disagreement_note(len(listed), differing),
        ),
    )


def align_run(
    folder: RunFolder,
    truth: TruthConfig = TruthConfig(),
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Alignment:
    """Score a run again from its folder alone: no model, no original files. Altered answers, and
    what judges said when they were asked otherwise, are left to `judgebench.stress`.

    Raises SetupError where the folder holds no run or is damaged.
    """
    manifest = folder.manifest()
    if not {"name", "judges"} <= manifest.keys():
        raise SetupError(Problem("is no run folder: it lacks a whole run.json", str(folder.path)))
    altered = folder.attacks()
    every = folder.answers()
    answers = indexed(unaltered(every, altered) if altered else every)
    return align(
        name=str(manifest["name"]),
        rubric=folder.rubric(),
        answers=answers,
        labels=folder.labels(),
        judges=[
            verdicts_of(folder, name, about, answers)
            for name, about in manifest["judges"].items()
            if about["kind"] in JUDGE_KINDS
        ],
        truth=truth,
        resampling=resampling,
        notes=tuple(manifest.get("notes", ())),
    )


def verdicts_of(
    folder: RunFolder, name: str, about: Mapping[str, Any], answers: Sequence[Answer]
) -> JudgeVerdicts:
    """What the judge of a manifest's entry said: the last verdict on each answer as it stands.

    What was said of an older text is left out.
    """
    metrics = folder.rubric().metrics
    found = FiledVerdicts(folder.verdict_files(name), about["signature"], indexed(answers), metrics)
    return JudgeVerdicts(
        name, about["kind"], about["signature"], found, found.usage, found.cost, about["about"]
    )


def _summary(judge: JudgeVerdicts) -> JudgeSummary:
    statuses = {str(status): n for status, n in status_counts(judge.verdicts).items()}
    return JudgeSummary(
        judge.name, judge.kind, judge.signature, len(judge.verdicts), statuses,
        judge.usage, judge.cost, judge.about or {},
    )  # fmt: skip
