"""Violations that a real judge did not detect, and the cards that show them."""

from __future__ import annotations

from collections.abc import Mapping

from judgebench.records import Verdict
from judgebench.results.answer_texts import asked_of, reasons_of
from judgebench.results.part import Card
from judgebench.results.tables import Cell, Table
from judgebench.rubric import Metric, Rubric
from judgebench.stress_tests.pairs import Pairs
from judgebench.stress_tests.probes.altered import marked
from judgebench.stress_tests.result import Miss

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
        for column, metric in enumerate(pairs.rubric.metrics)
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
