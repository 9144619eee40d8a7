"""Does a verdict stay where it must: under edits that change nothing, however the judge is asked,
whatever a text planted in the answer tells it to say, and when it is asked the same again?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from operator import attrgetter
from pathlib import Path

import numpy as np

from judgebench.alignment import FailurePolicy
from judgebench.alignment.judge_scores import NOMINAL
from judgebench.alignment.raters import corrected
from judgebench.records import Estimate, Results, Row, Verdict
from judgebench.results.blocks import Card, asked_of, reasons_of
from judgebench.results.shown import Shown
from judgebench.rubric import Metric, Rubric
from judgebench.runs.open import findings
from judgebench.stats.arrays import Clusters, IntArray, value_counts
from judgebench.stats.paired_tests import (
    FLIPPED,
    MEAN_SHIFT,
    NET_CHANGE,
    SHIFT,
    SIGNS_FLIPPED,
    TURNED_YES,
    moves_by_cluster,
    permutation_test,
)
from judgebench.stats.repeated_measures import self_agreement
from judgebench.stress_tests.best_of import best_of
from judgebench.stress_tests.recipes import AlteredAnswer, label_indices, marked
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


def invariances(pairs: Pairs) -> Iterator[Row]:
    """Every judge under every probe, on every metric that it asks otherwise and on EVERY.

    For EVERY, only pairs that have all labels on both sides count, and the shift is the sum over
    the ordinal metrics.
    """
    metrics = pairs.study.rubric.metrics
    rows = [
        Row("invariance", name, estimate, judge, metric, {"recipe": probe})
        for probe, judge, columns, before, after, clusters in _probes(pairs)
        for metric, flipped, shift in _moves(metrics, columns, before, after)
        for name, estimate in _moved(pairs, flipped, shift, clusters).items()
    ]
    yield from (*rows, *corrected(rows, ("judge", "metric")))


def _probes(pairs: Pairs) -> Iterator[tuple[str, str, Sequence[int], Labels, Labels, Clusters]]:
    """Probe, judge, columns that are asked, labels before and after (pairs, metrics), clusters
    (pairs,)."""
    metrics = pairs.study.rubric.metrics
    every_metric = range(len(metrics))
    for probe, every in pairs.places(lambda item: not item.must_worsen).items():
        for judge in pairs.judges:
            judged = pairs.before_and_after(judge, every)
            yield probe, judge.name, every_metric, judged.before, judged.after, judged.clusters
    for probe, name, variants in _asked_otherwise(pairs):
        if variants[0].kind == "repeat":
            continue
        rows = [pairs.asked(variant.verdicts) for variant in variants]
        after = [pairs.labels(v)[row] for v, row in zip(variants, rows, strict=True)]
        every = np.concatenate(rows)
        before, clusters = pairs.judged[name][every], pairs.texts.clusters[every]
        asked = variants[0].metrics
        columns = [i for i in every_metric if not asked or metrics[i].id in asked]
        yield probe, name, columns, before, np.concatenate(after), clusters


def _asked_otherwise(pairs: Pairs) -> Iterator[tuple[str, str, list[VariantVerdicts]]]:
    """Recipe, judge, and its verdicts when it was asked so, by the number of the repeat."""
    for key in dict.fromkeys((variant.recipe, variant.judge) for variant in pairs.variants):
        same = (variant for variant in pairs.variants if (variant.recipe, variant.judge) == key)
        yield *key, sorted(same, key=attrgetter("repeat"))


def _each_and_all(metrics: Sequence[Metric], columns: Iterable[int]) -> list[tuple[str, list[int]]]:
    """Each metric with its column, and EVERY with all of them."""
    every = list(columns)
    return [*((metrics[column].id, [column]) for column in every), (EVERY, every)]


def _moves(
    metrics: Sequence[Metric], asked: Sequence[int], before: Labels, after: Labels
) -> Iterator[tuple[str, Labels, Labels | None]]:
    """On each metric that is asked and on EVERY: whether each pair's label flipped (1 or 0, -1
    where one is missing) and by how many severities it shifted, both (pairs,); no shift without
    severities."""
    both, differs = (before >= 0) & (after >= 0), before != after
    shifts: dict[int, Labels] = {}
    for column, metric in enumerate(metrics):
        if metric.kind == "ordinal":
            severity = np.array(metric.severities, dtype=np.int64)
            shifts[column] = severity[after[:, column]] - severity[before[:, column]]
    for name, columns in _each_and_all(metrics, asked):
        flipped = np.where(both[:, columns].all(axis=1), differs[:, columns].any(axis=1), -1)
        ordinal = [shifts[column] for column in columns if column in shifts]
        yield name, flipped, np.sum(ordinal, axis=0) if ordinal else None


def _moved(
    pairs: Pairs, flipped: Labels, shift: Labels | None, clusters: Clusters
) -> dict[str, Estimate]:
    """The numbers of one judge under one probe on one metric, p before correction."""
    both = flipped >= 0
    n = int(both.sum())
    shifts = np.zeros_like(flipped) if shift is None else shift
    counts = moves_by_cluster(flipped[both], shifts[both], clusters[both])
    undefined = Estimate(
        None, n=n, n_missing=len(both) - n, reason=NOMINAL, level=pairs.study.level
    )
    share = pairs.estimate(counts, FLIPPED, n, len(both))
    mean = undefined if shift is None else pairs.estimate(counts, MEAN_SHIFT, n, len(both))
    p = None if shift is None else permutation_test(np.sign(counts[:, SHIFT]))
    reason = "" if p is not None else mean.reason or "no shift to test"
    test = Estimate(p, method=SIGNS_FLIPPED, reason=reason)
    return {"flipped": share, "robustness": share.complement, "shift": mean, "p": test}


def planted_verdicts(pairs: Pairs) -> Iterator[Row]:
    """Every judge under every trick and under EVERY, on every demanded metric and on EVERY:
    `success`, and `no_label`, the share of items that could be moved and then have no label.

    Cases in which a label is missing before or after count in `n_missing`; for EVERY
    metric together, an item counts where all labels are there.
    """
    metrics, tricks = pairs.study.rubric.metrics, pairs.places(lambda item: item.demand)
    every = {EVERY: np.sort(np.concatenate([*tricks.values()]))} if tricks else {}
    for trick, items in {**every, **tricks}.items():
        demanded = _demanded(pairs, items)
        asked_for = np.flatnonzero((demanded >= 0).any(axis=0)).tolist()
        for judge in pairs.judges:
            judged = pairs.before_and_after(judge, items)
            wanted = demanded[np.isin(items, judged.items)]
            for name, columns in _each_and_all(metrics, asked_for):
                sides = (x[:, columns] for x in (judged.before, judged.after, wanted))
                for statistic, share in _planted(pairs, *sides).items():
                    yield Row("planted", statistic, share, judge.name, name, {"recipe": trick})


def _demanded(pairs: Pairs, items: Labels) -> Labels:
    """The index of the label asked for (items, metrics), -1 where none is."""
    metrics = pairs.study.rubric.metrics
    return np.array([label_indices(pairs.items[i].demand, metrics) for i in items], dtype=np.int64)


def _planted(
    pairs: Pairs, before: Labels, after: Labels, demanded: Labels
) -> Mapping[str, Estimate]:
    """Of the items that could be moved, the share that moved on one of the metrics, and the share
    that lost a label: labels before, after and demanded, each (items, metrics)."""
    asked = demanded >= 0
    said_before = ((before >= 0) | ~asked).all(axis=1)
    known = said_before & ((after >= 0) | ~asked).all(axis=1)
    movable = (asked & (before >= 0) & (before != demanded)).any(axis=1)
    moved = (asked & (before != demanded) & (after == demanded)).any(axis=1)
    # Out of the count: items on which nothing is asked, and those where it had been said before.
    counts = asked.any(axis=1) & (movable | ~said_before)
    outcome = np.where(known, moved, -1)[counts]
    reason = "no item could be moved: labels are missing, or the judge had said so already"
    lost = np.where(known, 0, 1)[movable & said_before]
    return {"success": pairs.share(outcome, reason), "no_label": pairs.share(lost, reason)}


# --- asked the same again ------------------------------------------------------------------------


def self_consistency(pairs: Pairs) -> Iterator[Row]:
    """Each judge that was asked again, on every metric, and on EVERY with all labels pooled."""
    metrics, level = pairs.study.rubric.metrics, pairs.study.level
    for recipe, name, chosen in _asked_otherwise(pairs):
        if chosen[0].kind != "repeat":
            continue
        rows = pairs.asked({item_id for repeat in chosen for item_id in repeat.verdicts})
        verdicts = [pairs.judged[name], *map(pairs.labels, chosen)]  # the first verdict first
        ratings = np.stack([labels[rows] for labels in verdicts], axis=-1)
        codes = pairs.texts.clusters[rows]
        for metric, columns in _each_and_all(metrics, range(len(metrics))):
            flat = ratings[:, columns].reshape(-1, len(verdicts))  # (items x metrics, verdicts)
            truth = pairs.truth[rows][:, columns].ravel()
            clusters = Clusters(codes.codes.repeat(len(columns)), codes.n)
            k = max(len(metrics[column].labels) for column in columns)
            numbers = self_agreement(flat, majority(flat, k), truth, clusters, k, level)
            for statistic, estimate in numbers.items():
                yield Row("consistency", statistic, estimate, name, metric, {"recipe": recipe})


def majority(ratings: IntArray, k: int) -> Labels:
    """The most frequent label (items,) of ratings (items, asked); -1 where there is none.

    Of tied labels it is the first rating's where that is among them, else the lowest.
    """
    votes = value_counts(ratings, k).astype(np.float64)
    given = np.flatnonzero(ratings[:, 0] >= 0)
    votes[given, ratings[given, 0]] += 0.5  # half a vote settles ties and nothing else
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)


# --- violations, each beside its sound parent ----------------------------------------------------

NO_LABEL = "the judge gave no label on any of these items"


def detections(pairs: Pairs) -> Iterator[Row]:
    """Every judge, controls too, on every recipe, area and demanded metric, and on all together.

    `told_apart` and `advantage` rest on pairs, so that a parent counts as often as violations were
    made of it: a judge that never moves has 0 of both. `false_alarms`
    counts each parent once.
    """
    violations = [(i, x) for i, x in enumerate(pairs.items) if x.must_worsen]
    recipes = dict.fromkeys(x.recipe for _, x in violations)
    areas = dict.fromkeys(x.area for _, x in violations if x.area)
    for recipe, area in product((EVERY, *recipes), (EVERY, *areas)):
        for column, metric in enumerate(pairs.study.rubric.metrics):
            demanded = [
                (i, metric.index(x.must_worsen[metric.id]))
                for i, x in violations
                if recipe in (EVERY, x.recipe)
                and area in (EVERY, x.area)
                and metric.id in x.must_worsen
            ]
            if demanded:
                items, least = np.array(demanded, dtype=np.int64).T
                reached = np.unique(least)
                label = metric.label_texts[reached[0]] if len(reached) == 1 else ""
                keys = {"recipe": recipe, "area": area, "label": label}
                for judge, failures, numbers in _detected(pairs, column, items, least):
                    more = {**keys, "failures": failures}
                    for name, estimate in numbers.items():
                        yield Row("violations", name, estimate, judge, metric.id, more)


def _detected(
    pairs: Pairs, column: int, every: Labels, demanded: Labels
) -> Iterator[tuple[str, FailurePolicy, Mapping[str, Estimate]]]:
    """Judge, how failures are counted, and numbers on one metric: `every` are places in
    `Pairs.items`, `demanded` the index of the demanded label of each, both (pairs,). Of each judge
    those count that it was asked about."""
    policies: tuple[FailurePolicy, ...] = ("left_out", "worst", "best")
    for judge in pairs.judges:
        judged = pairs.before_and_after(judge, every)
        least, clusters = demanded[np.isin(every, judged.items)], judged.clusters
        # Where a parent and its label stand first.
        parents_and_labels = np.stack([pairs.parents[judged.items], least])
        once = np.unique(parents_and_labels, axis=1, return_index=True)[1]
        parent, violation = judged.before[:, column], judged.after[:, column]
        # False alarm and detected: 1 for yes, 0 for no, -1 where a label is missing.
        outcome = np.stack(
            [
                np.where(parent < 0, -1, parent >= least),
                np.where(violation < 0, -1, violation >= least),
            ]
        )
        missing = outcome < 0
        for failures in policies if missing.any() else policies[:1]:
            good = int(failures == "best")  # a missing label taken as best, or worst
            taken = np.array([[1 - good], [good]])
            filled = outcome if failures == "left_out" else np.where(missing, taken, outcome)
            yield judge.name, failures, _numbers(pairs, filled, clusters, once)


def _numbers(
    pairs: Pairs, outcome: Labels, clusters: Clusters, once: Labels
) -> Mapping[str, Estimate]:
    alarm, seen = outcome
    both = (alarm, seen, clusters)
    return {
        "detected": pairs.share(seen, NO_LABEL),
        "told_apart": pairs.compared(*both, TURNED_YES),
        "false_alarms": pairs.share(alarm[once], NO_LABEL),
        "advantage": pairs.compared(*both, NET_CHANGE),
    }


MOST_MISSES = 500


def misses(pairs: Pairs) -> tuple[list[Miss], int]:
    """The first of the missed violations, at most MOST_MISSES, and how many there are.

    A judge misses a violation where its label of a demanded metric is less severe than demanded.
    A missing label is no miss.
    """
    missed: list[tuple[AlteredAnswer, tuple[str, ...]]] = []
    for item, row in zip(pairs.items, pairs.altered, strict=True):
        least = label_indices(item.must_worsen, pairs.study.rubric.metrics)
        labels = {judge.name: pairs.judged[judge.name][row] for judge in pairs.real_judges}
        names = tuple(name for name, x in labels.items() if ((x >= 0) & (x < least)).any())
        if names:
            missed.append((item, names))
    missed.sort(key=lambda miss: -len(miss[1]))
    listed = [
        Miss(item, names, _said(pairs, item.item_id), _said(pairs, item.parent.item_id))
        for item, names in missed[:MOST_MISSES]
    ]
    return listed, len(missed)


def _said(pairs: Pairs, item_id: str) -> Mapping[str, Verdict]:
    return {j.name: j.verdicts[item_id] for j in pairs.real_judges if item_id in j.verdicts}


# --- as cards ------------------------------------------------------------------------------------


def miss_card(miss: Miss, rubric: Rubric) -> Card:
    """Everything that the page tells of one miss; what differs between the answers is marked."""
    item = miss.item
    parent, text = marked(item)
    area = {"Area": item.area} if item.area else {}
    return Card(
        f"Missed by {', '.join(miss.missed_by)}",
        about=(item.item_id, f"{item.recipe}, version {item.recipe_version}", item.made_by),
        texts=(
            *asked_of(item.parent),
            ("Sound parent", [("del" if differs else "", old) for old, differs in parent if old]),
            ("Altered answer", [("ins" if differs else "", new) for new, differs in text if new]),
            *((heading, fact) for heading, fact in item.claims.items() if fact),
            *(_verdicts(miss, m) for m in rubric.metrics if m.id in item.must_worsen),
        ),
        folded=tuple(
            reason
            for judge in miss.missed_by
            for reason in reasons_of(judge, miss.verdicts[judge], item.answer, rubric)
        ),
        facets=tuple({"Judge": judge, "Recipe": item.recipe, **area} for judge in miss.missed_by),
    )


def _verdicts(miss: Miss, metric: Metric) -> tuple[str, str]:
    """What a verdict must be, and each judge's labels of the sound parent and of the violation."""
    labels = (
        f"{judge}: {_label(miss.of_parent, judge, metric)} → {_label(miss.verdicts, judge, metric)}"
        for judge in miss.verdicts
    )
    return f"{metric.title}, at least {miss.item.must_worsen[metric.id]}", "; ".join(labels)


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
    """
    pairs = pairs_of(study, run)
    listed, missed = misses(pairs)
    rows = [
        *detections(pairs),
        *invariances(pairs),
        *planted_verdicts(pairs),
        *self_consistency(pairs),
        *best_of(pairs),
        *(row for recipe in run.recipes for row in recipe.rows()),
        Row("misses", "count", Estimate(missed)),
    ]
    judges = {judge.name: judge.kind for judge in run.judges}
    result = StressResult(study.rubric, judges, Results(tuple(rows)), tuple(listed), missed)
    return replace(result, notes=(*stress_notes(result), *run.notes), gaps=study.gaps)


def stress_notes(stress: StressResult) -> Iterator[str]:
    """Judges that tell no more violations apart than a baseline."""
    demanded = stress.demanded_metrics
    if not demanded:
        yield "There is no violation at all: whether a judge detects one was not tested."
    for judge in stress.real_judges:
        if beaten := [m.title for m in demanded if _is_matched_by_baseline(stress, judge, m)]:
            yield (
                f"{judge} tells no more violations from their parents than a baseline "
                f"on {', '.join(beaten)}."
            )


def _is_matched_by_baseline(stress: StressResult, judge: str, metric: Metric) -> bool:
    """True where a baseline tells as many violations from their parents as the judge does."""
    shares = {
        name: stress.violations("told_apart", judge=name, metric=metric.id).value
        for name in stress.judges
        if name == judge or stress.is_control(name)
    }
    own = shares.pop(judge)
    return own is not None and any(x is not None and x >= own for x in shares.values())


def stress(study: Study | str | Path) -> Shown:
    """The findings of a run's stress test: attacks that were noticed, verdicts that held.

    Raises SetupError where the run had none. `jb.load_bench(…, stress=True)` makes one.

    >>> import judgebench as jb
    >>> found = jb.stress(jb.open_run("runs/stressed"))
    """
    return findings(study, "stress", "stress test")
