"""Does a verdict stay where it must: under edits that change nothing, however the judge is asked,
whatever a text planted in the answer tells it to say, and when it is asked the same again?

Last, each judge's labels of one metric beside its labels of another: one overall impression that
colours every label is known as the halo effect (Thorndike, 1920).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from judgebench.alignment import FailurePolicy
from judgebench.alignment.judge_scores import NOMINAL
from judgebench.alignment.raters import corrected
from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate, Results, Row, Verdict
from judgebench.results.blocks import Card, asked_of, reasons_of
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Table
from judgebench.rubric import Metric, Rubric
from judgebench.runs.open import findings
from judgebench.stats.arrays import Clusters, IntArray, value_counts
from judgebench.stats.intervals import (
    CORRELATION_DIFFERENCE,
    MEAN_CORRELATION,
    items_for_half_width,
    moments_by_cluster,
)
from judgebench.stats.paired_tests import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    NET_CHANGE,
    SHIFT,
    SIGNS_FLIPPED,
    TURNED_YES,
    moves_by_cluster,
    permutation_test,
)
from judgebench.stats.repeated_measures import self_agreement
from judgebench.stress_tests.best_of import best_of
from judgebench.stress_tests.recipes import AlteredAnswer, check_demand, marked
from judgebench.stress_tests.result import (
    EVERY,
    Miss,
    Pairs,
    StressResult,
    StressRun,
    VariantVerdicts,
    pairs_of,
)
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import Study

ONE_PASS, PER_METRIC, HUMANS = "one pass", "per metric", "humans"
TOO_FEW_METRICS = "the rubric has fewer than two ordinal metrics: there is no pair to correlate"
NO_TRUTH_ON_ALL = "no item with all labels has a reference label on every ordinal metric"
THE_HUMANS = "these are the humans themselves"


def invariances(pairs: Pairs) -> Iterator[Row]:
    """Every judge under every probe, on every metric and on EVERY.

    For EVERY, only pairs that have all labels on both sides count, and the shift is the sum over
    the ordinal metrics: shifts that cancel out are neither more nor less severe. Where no label
    is severe, the shift alone is measured.
    """
    tested = [
        (judge, probe, metric, *_moved(pairs, flipped, shift, clusters))
        for probe, judge, before, after, clusters in _probes(pairs)
        for metric, flipped, shift in _moves(pairs.study.rubric.metrics, before, after)
    ]
    rows = []
    scores = {metric.id for metric in pairs.study.rubric.metrics if metric.severe}
    scores |= {EVERY} if len(scores) == len(pairs.study.rubric.metrics) else set()
    for judge, probe, metric, numbers, p in tested:
        reason = "" if p is not None else numbers["shift"].reason or "no shift to test"
        test = Estimate(p, method=SIGNS_FLIPPED, reason=reason)
        for name, estimate in {**numbers, "p": test}.items():
            if metric in scores and name in ("more_severe", "less_severe"):
                continue
            rows.append(Row("invariance", name, estimate, judge, metric, {"recipe": probe}))
    yield from (*rows, *corrected(rows, ("judge", "metric")))


def _probes(pairs: Pairs) -> Iterator[tuple[str, str, Labels, Labels, Clusters]]:
    """Probe, judge, labels before and after (pairs, metrics), clusters (pairs,)."""
    same = [i for i, x in enumerate(pairs.items) if not x.must_worsen]
    for probe in dict.fromkeys(pairs.items[i].recipe for i in same):
        every = np.array([i for i in same if pairs.items[i].recipe == probe], dtype=np.int64)
        for judge in pairs.judges:
            items = every[pairs.both_asked(judge, every)]
            parents, altered = pairs.parents[items], pairs.altered[items]
            labels = pairs.judged[judge.name]
            clusters = pairs.texts.clusters[parents]
            yield probe, judge.name, labels[parents], labels[altered], clusters
    asked = [v for v in pairs.variants if v.kind != "repeat"]
    for probe, name in dict.fromkeys((v.recipe, v.judge) for v in asked):
        variants = [v for v in asked if (v.recipe, v.judge) == (probe, name)]
        rows = [pairs.asked(variant.verdicts) for variant in variants]
        after = [pairs.labels(v)[row] for v, row in zip(variants, rows, strict=True)]
        every = np.concatenate(rows)
        before, clusters = pairs.judged[name][every], pairs.texts.clusters[every]
        yield probe, name, before, np.concatenate(after), clusters


def _moves(
    metrics: tuple[Metric, ...], before: Labels, after: Labels
) -> Iterator[tuple[str, Labels, Labels | None]]:
    """On each metric and on EVERY: whether each pair's label flipped (1 or 0, -1 where one is
    missing) and by how many severities it shifted, both (pairs,); no shift without severities."""
    both, differs = (before >= 0) & (after >= 0), before != after
    shifts: dict[str, Labels] = {}
    for column, metric in enumerate(metrics):
        if metric.kind == "ordinal":
            severity = np.array(metric.severities, dtype=np.int64)
            shifts[metric.id] = severity[after[:, column]] - severity[before[:, column]]
        flipped = np.where(both[:, column], differs[:, column], -1)
        yield metric.id, flipped, shifts.get(metric.id)
    flipped = np.where(both.all(axis=1), differs.any(axis=1), -1)
    yield EVERY, flipped, np.stack(list(shifts.values())).sum(axis=0) if shifts else None


def _moved(
    pairs: Pairs, flipped: Labels, shift: Labels | None, clusters: Clusters
) -> tuple[dict[str, Estimate], float | None]:
    """The numbers of one judge under one probe on one metric, and p before correction."""
    both = flipped >= 0
    n = int(both.sum())
    shifts = np.zeros_like(flipped) if shift is None else shift
    counts = moves_by_cluster(flipped[both], shifts[both], clusters[both])
    level = pairs.study.level
    undefined = Estimate(None, n=n, n_missing=len(both) - n, reason=NOMINAL, level=level)
    share = pairs.estimate(counts, FLIPPED, n, len(both))
    of_severities = {"more_severe": MORE_SEVERE, "less_severe": LESS_SEVERE, "shift": MEAN_SHIFT}
    numbers = {"flipped": share, "robustness": share.complement} | {
        name: undefined if shift is None else pairs.estimate(counts, statistic, n, len(both))
        for name, statistic in of_severities.items()
    }
    return numbers, None if shift is None else permutation_test(np.sign(counts[:, SHIFT]))


def planted_verdicts(pairs: Pairs) -> Iterator[Row]:
    """Every judge under every trick and under EVERY, on every demanded metric and on EVERY.

    Cases in which a label is missing before or after count in `n_missing`; for EVERY
    metric together, an item counts where all labels are there.
    """
    every = [i for i, x in enumerate(pairs.items) if x.demand]
    metrics, tricks = pairs.study.rubric.metrics, {pairs.items[i].recipe: None for i in every}
    for trick in (EVERY, *tricks) if tricks else ():
        items = np.array([i for i in every if trick in (EVERY, pairs.items[i].recipe)], np.int64)
        demanded = _demanded(pairs, items)
        columns = np.flatnonzero((demanded >= 0).any(axis=0)).tolist()
        on = [*((metrics[c].id, [c]) for c in columns), (EVERY, columns)]
        for judge in pairs.judges:
            labels, asked = pairs.judged[judge.name], pairs.both_asked(judge, items)
            before, after = labels[pairs.parents[items]], labels[pairs.altered[items]]
            for name, columns in on:
                about = (x[asked][:, columns] for x in (before, after, demanded))
                success = _success(pairs, *about)
                yield Row("planted", "success", success, judge.name, name, {"recipe": trick})


def _demanded(pairs: Pairs, items: Labels) -> Labels:
    """The index of the label asked for (items, metrics), -1 where none is."""
    demands = [pairs.items[i].demand for i in items]
    metrics = pairs.study.rubric.metrics
    found = [[m.index(d[m.id]) if m.id in d else -1 for m in metrics] for d in demands]
    return np.array(found, dtype=np.int64)


def _success(pairs: Pairs, before: Labels, after: Labels, demanded: Labels) -> Estimate:
    """Of the items that could be moved, the share that moved on one of the metrics: labels before,
    after and demanded, each (items, metrics)."""
    asked = demanded >= 0
    said_before = ((before >= 0) | ~asked).all(axis=1)
    known = said_before & ((after >= 0) | ~asked).all(axis=1)
    movable = (asked & (before >= 0) & (before != demanded)).any(axis=1)
    moved = (asked & (before != demanded) & (after == demanded)).any(axis=1)
    # Out of the count: items on which nothing is asked, and those where it had been said before.
    counts = asked.any(axis=1) & (movable | ~said_before)
    outcome = np.where(known, moved, -1)[counts]
    already = int((asked.any(axis=1) & ~counts).sum())
    reason = "the judge's labels are missing before or after on every item that could be moved"
    if already and not counts.any():
        reason = f"the judge had said so already on all {already} items"
    return pairs.share(outcome, reason)


# --- asked the same again ------------------------------------------------------------------------


def self_consistency(pairs: Pairs) -> Iterator[Row]:
    """Each judge that was asked again, on every metric, and on EVERY with all labels pooled.

    Several recipes that repeat are kept apart, in their order.
    """
    repeats = [v for v in pairs.variants if v.kind == "repeat"]
    asked = list(dict.fromkeys((v.judge, v.recipe) for v in repeats))
    several = len({recipe for _, recipe in asked}) > 1
    for name, recipe in asked:
        chosen = [v for v in repeats if (v.judge, v.recipe) == (name, recipe)]
        keys = {"recipe": recipe} if several else {}
        repeats_of = sorted(chosen, key=lambda v: v.repeat)
        for metric, ratings, truth, clusters, k in _repeated(pairs, name, repeats_of):
            labels = majority(ratings, k)
            numbers = self_agreement(ratings, labels, truth, clusters, k, pairs.study.level)
            for statistic, estimate in numbers.items():
                yield Row("consistency", statistic, estimate, name, metric, keys)


def _repeated(
    pairs: Pairs, judge: str, repeats: list[VariantVerdicts]
) -> Iterator[tuple[str, Labels, Labels, Clusters, int]]:
    """On every metric, and on EVERY: label indices (items, asked), -1 for none, the first verdict
    first; the truth (items,), clusters, and how many labels there may be."""
    rows = pairs.asked({key for repeat in repeats for key in repeat.verdicts})
    asked = [pairs.judged[judge], *(pairs.labels(v) for v in repeats)]
    ratings = np.stack([labels[rows] for labels in asked], axis=-1)  # (items, metrics, asked)
    metrics = pairs.study.rubric.metrics
    truth, clusters = pairs.truth[rows], pairs.texts.clusters[rows]
    for c, metric in enumerate(metrics):
        yield metric.id, ratings[:, c], truth[:, c], clusters, len(metric.labels)
    pooled = Clusters(clusters.codes.repeat(len(metrics)), clusters.n)
    most = max(len(m.labels) for m in metrics)
    yield EVERY, ratings.reshape(-1, len(asked)), truth.ravel(), pooled, most


def majority(ratings: IntArray, k: int) -> Labels:
    """The most frequent label (items,) of ratings (items, asked); -1 where there is none.

    Of tied labels it is the first rating's where that is among them, else the lowest.
    """
    votes = value_counts(ratings, k).astype(np.float64)
    given = np.flatnonzero(ratings[:, 0] >= 0)
    votes[given, ratings[given, 0]] += 0.5  # half a vote settles ties and nothing else
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)


# --- the labels of one metric beside those of another --------------------------------------------


def halo(pairs: Pairs) -> Iterator[Row]:
    """Each real judge in one pass, metric by metric where it was asked so, and the humans.

    All on the unaltered answers, or on those that were asked metric by metric (by the first
    recipe that does). Both ways of asking use the items that have every ordinal label in both.
    """
    for judge in pairs.real_judges:
        passes, rows = {ONE_PASS: pairs.judged[judge.name]}, pairs.unaltered
        apart = [v for v in pairs.variants if (v.judge, v.kind) == (judge.name, "per-metric")]
        if apart:
            passes[PER_METRIC] = pairs.labels(apart[0])
            rows = pairs.asked(apart[0].verdicts)
        yield from _halo_of(pairs, judge.name, passes, rows)


def _halo_of(pairs: Pairs, judge: str, passes: Mapping[str, Labels], rows: Labels) -> Iterator[Row]:
    metrics = pairs.study.rubric.metrics
    columns = [c for c, m in enumerate(metrics) if m.kind == "ordinal"]
    truth = pairs.truth[:, columns]
    said = {who: labels[:, columns] for who, labels in passes.items()}
    whole = rows[np.all([_complete(labels[rows]) for labels in said.values()], axis=0)]
    true = whole[_complete(truth[whole])]
    found: dict[str, tuple[Estimate, Estimate]] = {}
    for who, labels in said.items():
        own = _correlation(pairs, [labels], whole, len(rows))
        found[who] = own, _correlation(pairs, [labels, truth], true, len(rows))
    humans = _correlation(pairs, [truth], rows[_complete(truth[rows])], len(rows))
    itself = Estimate(None, reason=THE_HUMANS, level=pairs.study.level)
    for who, (own, beyond) in {**found, HUMANS: (humans, itself)}.items():
        yield Row("halo", "correlation", own, judge, keys={"who": who})
        yield Row("halo", "beyond_humans", beyond, judge, keys={"who": who})


def _complete(labels: Labels) -> NDArray[np.bool_]:
    complete: NDArray[np.bool_] = np.all(labels >= 0, axis=1)
    return complete


def _correlation(pairs: Pairs, sides: list[Labels], rows: Labels, asked: int) -> Estimate:
    """The mean correlation of one side, or of the first minus the second, on those rows.

    A side is label indices (texts, ordinal metrics), whole on `rows`.
    """
    n = len(rows)
    ordinal = [m for m in pairs.study.rubric.metrics if m.kind == "ordinal"]
    if len(ordinal) < 2:
        level = pairs.study.level
        return Estimate(None, n=n, n_missing=asked - n, reason=TOO_FEW_METRICS, level=level)
    severities = [
        np.column_stack([np.array(m.severities)[side[rows, c]] for c, m in enumerate(ordinal)])
        for side in sides
    ]
    moments = [moments_by_cluster(s, pairs.texts.clusters[rows]) for s in severities]
    single = len(sides) == 1
    statistic = MEAN_CORRELATION if single else CORRELATION_DIFFERENCE
    counts = moments[0] if single else np.stack(moments, axis=1)
    found = pairs.estimate(counts, statistic, n, asked)
    return found if n or single else replace(found, reason=NO_TRUTH_ON_ALL)


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
        *best_of(pairs),
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
