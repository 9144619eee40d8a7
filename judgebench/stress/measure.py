"""Verdicts, variants and altered answers in, one StressResult out."""

from __future__ import annotations

from dataclasses import replace

from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.rubric import Rubric
from judgebench.stress.consistency import self_consistency
from judgebench.stress.detection import detections
from judgebench.stress.halo import halo
from judgebench.stress.invariance import invariances
from judgebench.stress.misses import misses
from judgebench.stress.notes import miss_note, stress_notes
from judgebench.stress.pairs import StressRun, pairs_of
from judgebench.stress.planted import planted_verdicts
from judgebench.stress.probes.altered import AlteredAnswer
from judgebench.stress.probes.recipe import check_demand
from judgebench.stress.result import StressResult
from judgebench.study.study import Study


def measure_stress(study: Study) -> StressResult | None:
    """What a study's stress test shows; None where there was none."""
    run: StressRun | None = study.beside.get("stress")
    return None if run is None else measure(study, run)


def measure(study: Study, run: StressRun) -> StressResult:
    """Put every judge beside itself: on each altered answer and its parent, and asked otherwise.

    An altered answer that failed a check is left out. Intervals resample whole groups of answers
    (`Answer.group`), except those of shares of violations and planted verdicts, which are exact.

    Raises SetupError where a demand does not fit the rubric, or a variant is of a judge that is
    not there.
    """
    run = replace(run, altered=_checked(study.rubric, run))
    pairs = pairs_of(study, run)
    listed, missed = misses(pairs)
    rows = [
        *detections(pairs, run.half_width),
        *invariances(pairs),
        *planted_verdicts(pairs),
        *self_consistency(pairs),
        *halo(pairs),
        *(row for recipe in run.recipes for row in recipe.rows()),
        Row("misses", "count", Estimate(missed)),
    ]
    found = StressResult(
        rubric=study.rubric,
        judges={judge.name: judge.kind for judge in run.judges},
        rows=Results(tuple(rows)),
        recipes=tuple(run.recipes),
        misses=tuple(listed),
        n_misses=missed,
    )
    cut = miss_note(len(listed), missed)
    return replace(found, notes=(*stress_notes(found), *run.notes, *cut))


def _checked(rubric: Rubric, run: StressRun) -> list[AlteredAnswer]:
    """The altered answers with demands as the rubric spells them.

    Raises SetupError with everything that does not fit together, each thing once.
    """
    items: list[AlteredAnswer] = []
    problems: dict[Problem, None] = {}
    metrics = {m.id for m in rubric.metrics}
    for item in run.altered:
        try:
            demanded = check_demand(item.must_worsen, rubric, file=item.recipe)
            items.append(replace(item, must_worsen=demanded))
        except SetupError as error:
            problems.update(dict.fromkeys(error.problems))
        for metric in sorted(item.demand.keys() - metrics):
            message = f"is no metric of the rubric {rubric.name}"
            problems[Problem(message, item.recipe, field=f"demand.{metric}")] = None
    for name in sorted({v.judge for v in run.variants} - {judge.name for judge in run.judges}):
        problems[Problem("has variants and no verdicts", field="variants", found=name)] = None
    if problems:
        raise SetupError(list(problems))
    return items
