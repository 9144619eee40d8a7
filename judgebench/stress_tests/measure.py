"""A study and its stress test in, one StressResult out, with what a reader must not overlook.

Violations that a real judge did not detect, and the cards that show them.

Are violations detected, and told apart from the sound answers that they were made of?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from judgebench.alignment import FailurePolicy
from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate, Verdict
from judgebench.results.answer_texts import asked_of, reasons_of
from judgebench.results.part import Card
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Table
from judgebench.rubric import Metric, Rubric
from judgebench.runs.open import findings
from judgebench.stats.arrays import Clusters
from judgebench.stats.intervals import items_for_half_width
from judgebench.stats.paired import NET_CHANGE, TURNED_YES
from judgebench.stress_tests.probes.altered import AlteredAnswer, check_demand, marked
from judgebench.stress_tests.result import EVERY, Miss, Pairs, StressResult, StressRun, pairs_of
from judgebench.stress_tests.steadiness import halo, invariances, planted_verdicts, self_consistency
from judgebench.studies.study import Study
from judgebench.studies.truth import Labels

NO_LABEL = "the judge gave no label on any of these items"
# The share that needs most items: what is planned with where nothing is known.
_UNKNOWN_SHARE = 0.5


def detections(pairs: Pairs, half_width: float) -> Iterator[Row]:
    """Every judge, controls too, on every recipe, area and demanded metric, and on all together.

    `told_apart`, `advantage` and `worsened` rest on pairs, so that a parent counts as often as
    violations were made of it: a judge that never moves has 0 of all three. `false_alarms`
    counts each parent once.
    """
    violations = [(i, x) for i, x in enumerate(pairs.items) if x.must_worsen]
    recipes = dict.fromkeys(x.recipe for _, x in violations)
    areas = dict.fromkeys(x.area for _, x in violations if x.area)
    for recipe, area in product((EVERY, *recipes), (EVERY, *areas)):
        chosen = [
            (i, x) for i, x in violations if recipe in (EVERY, x.recipe) and area in (EVERY, x.area)
        ]
        for column, metric in enumerate(pairs.study.rubric.metrics):
            demanded = [
                (i, metric.index(x.must_worsen[metric.id]))
                for i, x in chosen
                if metric.id in x.must_worsen
            ]
            if demanded:
                items, least = np.array(demanded, dtype=np.int64).T
                reached = np.unique(least)
                label = metric.label_texts[reached[0]] if len(reached) == 1 else ""
                keys = {"recipe": recipe, "area": area, "label": label}
                for judge, failures, numbers in _detected(pairs, column, items, least, half_width):
                    more = {**keys, "failures": failures}
                    for name, estimate in numbers.items():
                        yield Row("violations", name, estimate, judge, metric.id, more)


def _detected(
    pairs: Pairs, column: int, every: Labels, demanded: Labels, half_width: float
) -> Iterator[tuple[str, FailurePolicy, Mapping[str, Estimate]]]:
    """Judge, how failures are counted, and numbers on one metric: `every` are places in
    `Pairs.items`, `demanded` the index of the demanded label of each, both (pairs,). Of each judge
    those count that it was asked about."""
    policies: tuple[FailurePolicy, ...] = ("left_out", "worst", "best")
    for judge in pairs.judges:
        asked = pairs.both_asked(judge, every)
        items, least = every[asked], demanded[asked]
        parents, clusters = pairs.parents[items], pairs.texts.clusters[pairs.parents[items]]
        # Where a parent and its label stand first.
        once = np.unique(np.stack([parents, least]), axis=1, return_index=True)[1]
        labels = pairs.judged[judge.name][:, column]
        parent, violation = labels[parents], labels[pairs.altered[items]]
        both = (parent >= 0) & (violation >= 0)
        # False alarm, detected and worsened: 1 for yes, 0 for no, -1 where a label is missing.
        outcome = np.stack(
            [
                np.where(parent < 0, -1, parent >= least),
                np.where(violation < 0, -1, violation >= least),
                np.where(both, violation > parent, -1),
            ]
        )
        missing = outcome < 0
        for failures in policies if missing[:2].any() else policies[:1]:
            good = int(failures == "best")  # a missing label taken as best, or worst
            taken = np.array([[1 - good], [good], [good]])
            filled = outcome if failures == "left_out" else np.where(missing, taken, outcome)
            yield judge.name, failures, _numbers(pairs, filled, clusters, once, half_width)


def _numbers(
    pairs: Pairs, outcome: Labels, clusters: Clusters, once: Labels, half_width: float
) -> Mapping[str, Estimate]:
    alarm, seen, worse = outcome
    detected = pairs.share(seen, NO_LABEL)
    share = _UNKNOWN_SHARE if detected.value is None else detected.value
    needed = items_for_half_width(share, half_width, pairs.study.level)
    both = (alarm, seen, clusters)
    # Whether a pair worsened is known only of the pair: before it, nothing had worsened.
    worsened = (np.where(worse < 0, -1, 0), worse, clusters)
    return {
        "detected": detected,
        "told_apart": pairs.compared(*both, TURNED_YES),
        "false_alarms": pairs.share(alarm[once], NO_LABEL),
        "worsened": pairs.compared(*worsened, TURNED_YES),
        "advantage": pairs.compared(*both, NET_CHANGE),
        "more_needed": Estimate(max(0, needed - detected.n)),
    }


MOST_MISSES = 500


def misses(pairs: Pairs) -> tuple[list[Miss], int]:
    """The first of the missed violations, at most MOST_MISSES, and how many there are.

    A judge misses a violation where its label of a demanded metric is less severe than demanded.
    A missing label is no miss.
    """
    found = [(place, names) for place in range(len(pairs.items)) if (names := _by(pairs, place))]
    found.sort(key=lambda miss: -len(miss[1]))
    listed = [
        Miss(item, names, _said(pairs, item.item_id), _said(pairs, item.parent.item_id))
        for item, names in ((pairs.items[place], names) for place, names in found[:MOST_MISSES])
    ]
    return listed, len(found)


def _by(pairs: Pairs, place: int) -> tuple[str, ...]:
    """The real judges that missed the item at that place."""
    demanded = pairs.items[place].must_worsen
    least = [
        (column, metric.index(demanded[metric.id]))
        for column, metric in enumerate(pairs.study.rubric.metrics)
        if metric.id in demanded
    ]
    return tuple(
        judge.name
        for judge in pairs.real_judges
        if any(0 <= pairs.judged[judge.name][pairs.altered[place], c] < label for c, label in least)
    )


def _said(pairs: Pairs, item_id: str) -> Mapping[str, Verdict]:
    return {j.name: j.verdicts[item_id] for j in pairs.real_judges if item_id in j.verdicts}


# --- as cards ------------------------------------------------------------------------------------


def miss_card(miss: Miss, rubric: Rubric) -> Card:
    """Everything that the page tells of one miss; what differs between the answers is marked."""
    item = miss.item
    parent, text = marked(item)
    facts = {
        "False claim": item.false_claim, "True claim": item.true_claim,
        "Why it sounds right": item.why_plausible, "Source": item.source,
    }  # fmt: skip
    area = {"Area": item.area} if item.area else {}
    return Card(
        f"Missed by {', '.join(miss.missed_by)}",
        about=(item.item_id, f"{item.recipe}, version {item.recipe_version}", item.made_by),
        texts=(
            *asked_of(item.parent),
            ("Sound parent", [("del" if differs else "", old) for old, differs in parent if old]),
            ("Altered answer", [("ins" if differs else "", new) for new, differs in text if new]),
            *((heading, fact) for heading, fact in facts.items() if fact),
        ),
        folded=tuple(
            reason
            for judge in miss.missed_by
            for reason in reasons_of(judge, miss.verdicts[judge], item.answer, rubric)
        ),
        grid=_grid(miss, rubric),
        facets=tuple({"Judge": judge, "Recipe": item.recipe, **area} for judge in miss.missed_by),
    )


def _grid(miss: Miss, rubric: Rubric) -> Table:
    """Each judge's labels of the sound parent and of the violation, on every demanded metric."""
    demanded = [
        (metric, miss.item.must_worsen[metric.id])
        for metric in rubric.metrics
        if metric.id in miss.item.must_worsen
    ]
    columns = [
        heading
        for metric, label in demanded
        for heading in (f"{metric.title}: sound parent", f"at least {label}")
    ]
    rows = (
        (Cell(judge), *(cell for demand in demanded for cell in _pair(miss, judge, *demand)))
        for judge in miss.verdicts
    )
    return Table(f"miss-{miss.item.item_id}", "Verdicts", ("Judge", *columns), tuple(rows))


def _pair(miss: Miss, judge: str, metric: Metric, least: str) -> tuple[Cell, Cell]:
    parent = _label(miss.of_parent, judge, metric)
    label, order = _label(miss.verdicts, judge, metric), metric.label_texts
    if label not in order:
        return Cell(parent), Cell(label, remark="no label", look="none")
    if order.index(label) >= order.index(least):
        return Cell(parent), Cell(label, remark="detected", look="good")
    return Cell(parent), Cell(label, remark="missed", look="bad")


def _label(verdicts: Mapping[str, Verdict], judge: str, metric: Metric) -> str:
    """The label; where there is none, how the verdict ended."""
    verdict = verdicts.get(judge)
    if verdict is None:
        return "not judged"
    return verdict.labels.get(metric.id, f"no label ({verdict.status.value})")


def measure_stress(study: Study) -> StressResult | None:
    """The result of a study's stress test; None where there was none."""
    run: StressRun | None = study.beside.get("stress")
    return None if run is None else measure(study, run)


def measure(study: Study, run: StressRun) -> StressResult:
    """Put every judge beside itself: on each altered answer and its parent, and asked otherwise.

    An altered answer that failed a check is left out. Intervals are over whole groups of answers
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
                f"{judge} tells no more violations from their parents than a baseline, "
                f"which never reads an answer, on {', '.join(beaten)}."
            )
        tricks = [
            f"{row['recipe']} {_count(row.estimate)}"
            for row in stress.rows.select("planted", "success", judge=judge, metric=EVERY)
            if row["recipe"] != EVERY and row.estimate.value
        ]
        if tricks:
            yield f"{judge} falls for planted verdicts: {', '.join(tricks)}."


def _no_use(stress: StressResult, judge: str, metric: Metric) -> Iterator[str]:
    """A sentence on a high detection rate with an advantage that may as well be nothing."""
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


def _count(share: Estimate) -> str:
    return f"{round((share.value or 0) * share.n)} of {share.n}"


def stress(study: Study | str | Path) -> Shown:
    """The findings of a run's stress test: attacks that were noticed, verdicts that held.

    Raises SetupError where the run had none. `jb.load_bench(…, stress=True)` makes one.

    >>> import judgebench as jb
    >>> found = jb.stress(jb.open_run("runs/stressed"))
    """
    return findings(study, "stress", "stress test")
