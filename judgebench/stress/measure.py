"""Verdicts, variants and altered answers in, one StressResult out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Rubric
from judgebench.stats.resample import DEFAULT_RESAMPLING, Resampling
from judgebench.stress.consistency import self_consistency
from judgebench.stress.detection import detections
from judgebench.stress.halo import halo
from judgebench.stress.invariance import invariances
from judgebench.stress.misses import misses
from judgebench.stress.notes import miss_note, stress_notes
from judgebench.stress.pairs import VariantVerdicts, pairs_of
from judgebench.stress.planted import planted_verdicts
from judgebench.stress.probes.altered import AlteredAnswer
from judgebench.stress.probes.recipe import check_demand
from judgebench.stress.result import RecipeSummary, StressResult
from judgebench.study.study import JudgeVerdicts
from judgebench.study.truth import TruthConfig


def measure(
    name: str,
    rubric: Rubric,
    altered: Sequence[AlteredAnswer],
    judges: Sequence[JudgeVerdicts],
    variants: Sequence[VariantVerdicts],
    recipes: Sequence[RecipeSummary],
    labels: Sequence[HumanLabel],
    answers: Sequence[Answer],
    truth: TruthConfig = TruthConfig(),
    resampling: Resampling = DEFAULT_RESAMPLING,
    notes: Sequence[str] = (),
    half_width: float = 0.10,
) -> StressResult:
    """Put every judge beside itself: on each altered answer and its parent, and asked otherwise.

    `judges` hold the verdicts on parents and altered answers, `variants` those of the same judges
    on unaltered `answers`. An altered answer that failed a check is left out. Intervals resample
    whole groups of answers (`Answer.group`), except where `Detection` and `PlantedVerdict` have
    exact ones. `half_width` is the precision that `Detection.more_needed` plans for.

    Raises SetupError where a demand does not fit the rubric, a variant is of a judge that is not
    there, or `truth.annotators` names nobody.
    """
    items = _checked(rubric, altered, judges, variants)
    pairs = pairs_of(rubric, items, judges, variants, labels, answers, truth, resampling)
    kinds = {judge.name: judge.kind for judge in judges}
    found = tuple(detections(pairs, half_width))
    planted = tuple(planted_verdicts(pairs))
    listed, missed = misses(pairs)
    return StressResult(
        name=name,
        rubric=rubric,
        judges=kinds,
        recipes=tuple(recipes),
        detections=found,
        invariances=tuple(invariances(pairs)),
        planted=planted,
        consistency=tuple(self_consistency(pairs)),
        halo=tuple(halo(pairs)),
        misses=tuple(listed),
        n_misses=missed,
        notes=(
            *stress_notes(rubric, kinds, found, planted),
            *notes,
            *miss_note(len(listed), missed),
        ),
    )


def _checked(
    rubric: Rubric,
    altered: Sequence[AlteredAnswer],
    judges: Sequence[JudgeVerdicts],
    variants: Sequence[VariantVerdicts],
) -> list[AlteredAnswer]:
    """The altered answers with demands as the rubric spells them.

    Raises SetupError with everything that does not fit together, each thing once.
    """
    items: list[AlteredAnswer] = []
    problems: dict[Problem, None] = {}
    metrics = {m.id for m in rubric.metrics}
    for item in altered:
        try:
            demanded = check_demand(item.must_worsen, rubric, file=item.recipe)
            items.append(replace(item, must_worsen=demanded))
        except SetupError as error:
            problems.update(dict.fromkeys(error.problems))
        for metric in sorted(item.demand.keys() - metrics):
            message = f"is no metric of the rubric {rubric.name}"
            problems[Problem(message, item.recipe, field=f"demand.{metric}")] = None
    for name in sorted({v.judge for v in variants} - {judge.name for judge in judges}):
        problems[Problem("has variants and no verdicts", field="variants", found=name)] = None
    if problems:
        raise SetupError(list(problems))
    return items
