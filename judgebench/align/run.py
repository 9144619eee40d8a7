"""Judges, humans and answers in, one Alignment out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgebench.align.annotators import agreement, ceiling, distribution
from judgebench.align.comparisons import comparisons, rankings
from judgebench.align.disagreements import disagreements
from judgebench.align.judges import confusion, scores
from judgebench.align.model_notes import model_notes
from judgebench.align.notes import data_notes, disagreement_note, judge_notes
from judgebench.align.probabilities import probability_results
from judgebench.align.rates import label_rates, rate_notes
from judgebench.align.result import JUDGE_KINDS, Alignment, JudgeSummary, JudgeVerdicts
from judgebench.align.unanimity import by_unanimity
from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Rubric
from judgebench.stats.resample import DEFAULT_RESAMPLING, Resampling
from judgebench.store.folder import RunFolder
from judgebench.store.verdicts import FiledVerdicts
from judgebench.stress.probes.altered import unaltered
from judgebench.study.answers import indexed
from judgebench.study.as_judge import annotators_as_judges, truth_of_others
from judgebench.study.scope import Scope, scope_of
from judgebench.study.truth import TruthConfig
from judgebench.study.verdicts import status_counts


@dataclass(frozen=True)
class Inputs:
    """What an alignment is made of; `notes` are sentences that it repeats."""

    name: str
    rubric: Rubric
    scope: Scope
    judges: Sequence[JudgeVerdicts]
    notes: Sequence[str] = ()


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
    return align_inputs(Inputs(name, rubric, scope, judges, notes))


def align_inputs(inputs: Inputs) -> Alignment:
    """Like `align`, of what was read already."""
    rubric, scope, judges, truth = inputs.rubric, inputs.scope, inputs.judges, inputs.scope.config
    labelled = any(len(humans.ratings.rows) for humans in scope.humans.values())
    pairs = [(judge, metric) for judge in judges for metric in rubric.metrics]
    found = [score for pair in pairs for score in scores(scope, *pair)]
    matrices = [confusion(scope, *pair) for pair in pairs]
    probabilities = [p for pair in pairs if (p := probability_results(scope, *pair))]
    rates = [rate for pair in pairs for rate in label_rates(scope, *pair)]
    listed, differing = disagreements(scope, rubric, judges)
    return Alignment(
        name=inputs.name,
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
        n_answers=len(scope.answers),
        n_labels=scope.n_labels,
        notes=(
            *judge_notes(rubric, judges, found, matrices),
            *inputs.notes,
            *(data_notes(rubric, scope.humans, len(scope.answers)) if labelled else ()),
            *(model_notes(rubric, scope) if labelled else ()),
            *rate_notes(scope, rates),
            *disagreement_note(len(listed), differing),
        ),
        rates=tuple(rates),
        comparisons=tuple(c for m in rubric.metrics for c in comparisons(scope, judges, m)),
        rankings=tuple(rankings(rubric, judges, found, scope.resampling.level)),
        probability_scores=tuple(score for p in probabilities for score in p.scores),
        calibration_curves=tuple(p.curve for p in probabilities),
        temperatures=tuple(p.temperature for p in probabilities),
        by_unanimity=tuple(x for m in rubric.metrics for x in by_unanimity(scope, judges, m)),
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
    return align_inputs(read_inputs(folder, truth, resampling))


def read_inputs(
    folder: RunFolder,
    truth: TruthConfig = TruthConfig(),
    resampling: Resampling = DEFAULT_RESAMPLING,
    as_judges: Sequence[str] = (),
) -> Inputs:
    """What a run folder holds for an alignment. The annotators `as_judges` stand among the judges
    and have no part in the truth.

    Raises SetupError where the folder holds no run or is damaged, or has no such annotators.
    """
    manifest = folder.manifest()
    if not {"name", "judges"} <= manifest.keys():
        raise SetupError(Problem("is no run folder: it lacks a whole run.json", str(folder.path)))
    altered = folder.attacks()
    every = folder.answers()
    answers = indexed(unaltered(every, altered) if altered else every)
    rubric, labels = folder.rubric(), folder.labels()
    judges = [
        verdicts_of(folder, name, about, answers)
        for name, about in manifest["judges"].items()
        if about["kind"] in JUDGE_KINDS
    ]
    _check_apart(as_judges, [judge.name for judge in judges])
    humans = annotators_as_judges(as_judges, rubric, answers, labels)
    others = truth_of_others(truth, as_judges, labels)
    scope = scope_of(rubric, answers, labels, others, resampling)
    notes = tuple(manifest.get("notes", ()))
    return Inputs(str(manifest["name"]), rubric, scope, [*humans, *judges], notes)


def _check_apart(annotators: Sequence[str], judges: Sequence[str]) -> None:
    problems = [
        Problem("is the name of a judge too", field="--as-judge", found=name)
        for name in annotators
        if name in judges
    ]
    if problems:
        raise SetupError(problems)


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
