"""Violations that a real judge did not detect, and the cards that show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from judgebench.records import Verdict
from judgebench.results.part import Card
from judgebench.results.tables import Cell, Table
from judgebench.rubric import Metric, Rubric
from judgebench.stress.pairs import Pairs
from judgebench.stress.probes.altered import AlteredAnswer, Change, apply_changes, span_diff
from judgebench.stress.result import Miss

MOST_MISSES = 500
Mark = Literal["", "del", "ins"]
Stretch = tuple[Mark, str]


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
        for judge in pairs.real_judges
        if any(0 <= pairs.judged[judge.name][pairs.altered[place], c] < label for c, label in least)
    )


def _miss(pairs: Pairs, place: int, missed_by: tuple[str, ...]) -> Miss:
    item = pairs.items[place]
    return Miss(item, missed_by, _said(pairs, item.item_id), _said(pairs, item.parent.item_id))


def _said(pairs: Pairs, item_id: str) -> Mapping[str, Verdict]:
    return {
        judge.name: judge.verdicts[item_id]
        for judge in pairs.real_judges
        if item_id in judge.verdicts
    }


# --- as cards ------------------------------------------------------------------------------------


def miss_card(miss: Miss, rubric: Rubric) -> Card:
    """Everything that the page tells of one miss; what differs between the answers is marked."""
    item = miss.item
    parent, altered = marked_texts(item)
    facts = {
        "False claim": item.false_claim,
        "True claim": item.true_claim,
        "Why it sounds right": item.why_plausible,
        "Source": item.source,
    }
    question = (("Question", item.parent.question),) if item.parent.question else ()
    area = {"Area": item.area} if item.area else {}
    return Card(
        f"Missed by {', '.join(miss.missed_by)}",
        about=(item.item_id, f"{item.recipe}, version {item.recipe_version}", item.made_by),
        texts=(
            *question,
            ("Sound parent", parent),
            ("Altered answer", altered),
            *((heading, text) for heading, text in facts.items() if text),
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


def marked_texts(item: AlteredAnswer) -> tuple[list[Stretch], list[Stretch]]:
    """The parent and the altered answer in stretches, changed ones marked; joined they are the
    texts.

    Where the recorded changes do not lead to the altered text, the two are compared anew.
    """
    old, changes = item.parent.text, item.changes
    if apply_changes(old, changes) != item.text:
        changes = span_diff(old, item.text)
    return _joined(_stretches(old, changes, "del")), _joined(_stretches(old, changes, "ins"))


def _joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Changes with nothing but space between them as one: they are read as one change."""
    found: list[Stretch] = []
    for mark, text in stretches:
        if mark and len(found) > 1 and found[-2][0] and not found[-1][1].strip():
            space = found.pop()[1]
            text = found.pop()[1] + space + text
        found.append((mark, text))
    return found


def _stretches(old: str, changes: tuple[Change, ...], mark: Mark) -> Iterator[Stretch]:
    end = 0
    for change in changes:
        if change.start > end:
            yield "", old[end : change.start]
        if text := change.new if mark == "ins" else old[change.start : change.end]:
            yield mark, text
        end = change.end
    if end < len(old):
        yield "", old[end:]
