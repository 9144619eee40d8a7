"""Violations that a real judge did not detect, those that most judges missed first."""

from __future__ import annotations

from collections.abc import Mapping

from judgebench.records import Verdict
from judgebench.stress.pairs import Pairs
from judgebench.stress.result import Miss

MOST_MISSES = 500


def misses(pairs: Pairs) -> tuple[list[Miss], int]:
    """The first of the missed violations, at most MOST_MISSES, and how many there are.

    A judge misses a violation where its label of a demanded metric is less severe than demanded.
    A missing label is no miss.
    """
    found = [(place, names) for place in range(len(pairs.items)) if (names := _by(pairs, place))]
    found.sort(key=lambda miss: -len(miss[1]))
    return [_miss(pairs, *miss) for miss in found[:MOST_MISSES]], len(found)


def _by(pairs: Pairs, place: int) -> tuple[str, ...]:
    """The real judges that missed the item at that place."""
    demanded = pairs.items[place].must_worsen
    least = [
        (column, metric.index(demanded[metric.id]))
        for column, metric in enumerate(pairs.rubric.metrics)
        if metric.id in demanded
    ]
    return tuple(
        judge.name
        for judge in pairs.judges
        if judge.kind != "control"
        and any(
            0 <= pairs.judged[judge.name][pairs.altered[place], c] < label for c, label in least
        )
    )


def _miss(pairs: Pairs, place: int, missed_by: tuple[str, ...]) -> Miss:
    item = pairs.items[place]
    return Miss(item, missed_by, _said(pairs, item.item_id), _said(pairs, item.parent.item_id))


def _said(pairs: Pairs, item_id: str) -> Mapping[str, Verdict]:
    return {
        judge.name: judge.verdicts[item_id]
        for judge in pairs.judges
        if judge.kind != "control" and item_id in judge.verdicts
    }
