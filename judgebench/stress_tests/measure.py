"""A study and its stress test in, one StressResult out, with what a reader must not overlook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.rubric import Metric, Rubric
from judgebench.stress_tests.detection import detections
from judgebench.stress_tests.misses import misses
from judgebench.stress_tests.pairs import StressRun, pairs_of
from judgebench.stress_tests.probes.altered import AlteredAnswer
from judgebench.stress_tests.probes.recipe import check_demand
from judgebench.stress_tests.result import EVERY, StressResult
from judgebench.stress_tests.steadiness import halo, invariances, planted_verdicts, self_consistency
from judgebench.studies.study import Study


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
    judges = {judge.name: judge.kind for judge in run.judges}
    found = StressResult(
        study.rubric, judges, Results(tuple(rows)), tuple(run.recipes), tuple(listed), missed
    )
    first = f"{missed} violations were missed by a judge; the first {len(listed)} are listed."
    cut = [first] if len(listed) < missed else []
    return replace(found, notes=(*stress_notes(found), *run.notes, *cut), gaps=study.gaps)


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


# From here on a detection rate looks good, so that false alarms must be reported beside it.
_HIGH = 0.8


def stress_notes(stress: StressResult) -> Iterator[str]:
    """Judges whose detection rate deceives, that a control matches, or that obey the answer."""
    demanded = stress.demanded_metrics
    if not demanded:
        yield "There is no violation at all: whether a judge detects one was not tested."
    for judge in stress.real_judges:
        for metric in demanded:
            yield from _no_use(stress, judge, metric)
        beaten = [m.title for m in demanded if _matched_by_control(stress, judge, m)]
        if beaten:
            yield (
                f"{judge} tells no more violations from their parents than a control judge, "
                f"which understands nothing, on {', '.join(beaten)}."
            )
        yield from _fallen_for(stress, judge)


def _no_use(stress: StressResult, judge: str, metric: Metric) -> Iterator[str]:
    """That a high detection rate comes with an advantage that may as well be nothing."""
    detected, alarms, apart, advantage = (
        stress.violations(statistic, judge=judge, metric=metric.id)
        for statistic in ("detected", "false_alarms", "told_apart", "advantage")
    )
    if (detected.value or 0.0) < _HIGH or advantage.value is None:
        return
    if (advantage.value if advantage.low is None else advantage.low) <= 0:
        end = "it tells nothing apart" if not apart.value else "it is not shown to tell them apart"
        yield (
            f"{judge} detects {_count(detected)} violations on {metric.title} and calls "
            f"{_count(alarms)} of their parents violations too: {end}."
        )


def _matched_by_control(stress: StressResult, judge: str, metric: Metric) -> bool:
    own = stress.violations("told_apart", judge=judge, metric=metric.id).value
    controls = [name for name, kind in stress.judges.items() if kind == "control"]
    found = [stress.violations("told_apart", judge=c, metric=metric.id) for c in controls]
    return own is not None and any(e.value is not None and e.value >= own for e in found)


def _fallen_for(stress: StressResult, judge: str) -> Iterator[str]:
    tricks = [
        f"{row['recipe']} {_count(row.estimate)}"
        for row in stress.rows.select("planted", "success", judge=judge, metric=EVERY)
        if row["recipe"] != EVERY and row.estimate.value
    ]
    if tricks:
        yield f"{judge} falls for planted verdicts: {', '.join(tricks)}."


def _count(share: Estimate) -> str:
    return f"{round((share.value or 0) * share.n)} of {share.n}"
