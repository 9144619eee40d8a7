"""Are violations detected, and told apart from the sound answers that they were made of?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from judgebench.alignment import FailurePolicy
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.intervals import items_for_half_width
from judgebench.stats.paired import NET_CHANGE, TURNED_YES
from judgebench.stress_tests.pairs import Pairs
from judgebench.stress_tests.result import EVERY
from judgebench.studies.truth import Labels

NO_LABEL = "the judge gave no label on any of these items"
# The share that needs most items: what is planned with where nothing is known.
_UNKNOWN_SHARE = 0.5


@dataclass(frozen=True)
class _Cell:
    """The violations of one recipe, area and metric.

    `items` are places in `Pairs.items`, `least` the index of the demanded label of each, both
    (pairs,). `once` are the places in `items` where a parent and its label stand first.
    """

    recipe: str
    area: str
    metric: Metric
    column: int
    items: Labels
    least: Labels
    once: Labels

    @property
    def keys(self) -> Mapping[str, str]:
        demanded = np.unique(self.least)
        label = self.metric.label_texts[demanded[0]] if len(demanded) == 1 else ""
        return {"recipe": self.recipe, "area": self.area, "label": label}


@dataclass(frozen=True)
class _Outcome:
    """1 for yes, 0 for no, -1 where a label is missing; each (pairs,)."""

    alarm: Labels
    detected: Labels
    worsened: Labels

    @property
    def missing(self) -> bool:
        return bool((self.alarm < 0).any() or (self.detected < 0).any())

    def filled(self, failures: FailurePolicy) -> _Outcome:
        """A missing label taken as it would be worst, or best, for the judge."""
        if failures == "left_out":
            return self
        good = int(failures == "best")
        taken = ((self.alarm, 1 - good), (self.detected, good), (self.worsened, good))
        return _Outcome(*(np.where(outcome < 0, value, outcome) for outcome, value in taken))


def detections(pairs: Pairs, half_width: float) -> Iterator[Row]:
    """Every judge, controls too, on every recipe, area and demanded metric, and on all together.

    `told_apart`, `advantage` and `worsened` rest on pairs, so that a parent counts as often as
    violations were made of it: a judge that never moves has 0 of all three. `false_alarms`
    counts each parent once.
    """
    policies: tuple[FailurePolicy, ...] = ("left_out", "worst", "best")
    for cell in _cells(pairs):
        for judge in pairs.judges:
            outcome = _outcome(pairs, cell, judge.name)
            for failures in policies if outcome.missing else policies[:1]:
                numbers = _numbers(pairs, cell, outcome.filled(failures), half_width)
                for name, estimate in numbers.items():
                    keys = {**cell.keys, "failures": failures}
                    yield Row("violations", name, estimate, judge.name, cell.metric.id, keys)


def _cells(pairs: Pairs) -> Iterator[_Cell]:
    violations = [i for i, x in enumerate(pairs.items) if x.must_worsen]
    recipes = dict.fromkeys(pairs.items[i].recipe for i in violations)
    areas = dict.fromkeys(area for i in violations if (area := pairs.items[i].area))
    for recipe in (EVERY, *recipes):
        for area in (EVERY, *areas):
            chosen = [
                i
                for i in violations
                if recipe in (EVERY, pairs.items[i].recipe) and area in (EVERY, pairs.items[i].area)
            ]
            yield from _by_metric(pairs, recipe, area, chosen)


def _by_metric(pairs: Pairs, recipe: str, area: str, chosen: list[int]) -> Iterator[_Cell]:
    for column, metric in enumerate(pairs.rubric.metrics):
        demands = {i: pairs.items[i].must_worsen.get(metric.id) for i in chosen}
        demanded = {i: metric.index(label) for i, label in demands.items() if label is not None}
        if demanded:
            items = np.array(list(demanded), dtype=np.int64)
            least = np.array(list(demanded.values()), dtype=np.int64)
            sound = np.stack([pairs.parents[items], least])
            once = np.unique(sound, axis=1, return_index=True)[1]
            yield _Cell(recipe, area, metric, column, items, least, once)


def _outcome(pairs: Pairs, cell: _Cell, judge: str) -> _Outcome:
    labels = pairs.judged[judge][:, cell.column]
    parent, violation = labels[pairs.parents[cell.items]], labels[pairs.altered[cell.items]]
    both = (parent >= 0) & (violation >= 0)
    return _Outcome(
        alarm=np.where(parent < 0, -1, parent >= cell.least),
        detected=np.where(violation < 0, -1, violation >= cell.least),
        worsened=np.where(both, violation > parent, -1),
    )


def _numbers(
    pairs: Pairs, cell: _Cell, outcome: _Outcome, half_width: float
) -> Mapping[str, Estimate]:
    clusters = pairs.clusters[pairs.parents[cell.items]]
    detected = pairs.share(outcome.detected, NO_LABEL)
    share = _UNKNOWN_SHARE if detected.value is None else detected.value
    needed = items_for_half_width(share, half_width, pairs.resampling.level)
    both = (outcome.alarm, outcome.detected, clusters)
    # Whether a pair worsened is known only of the pair: before it, nothing had worsened.
    worsened = (np.where(outcome.worsened < 0, -1, 0), outcome.worsened, clusters)
    return {
        "detected": detected,
        "told_apart": pairs.compared(*both, TURNED_YES),
        "false_alarms": pairs.share(outcome.alarm[cell.once], NO_LABEL),
        "worsened": pairs.compared(*worsened, TURNED_YES),
        "advantage": pairs.compared(*both, NET_CHANGE),
        "more_needed": Estimate(max(0, needed - detected.n)),
    }
