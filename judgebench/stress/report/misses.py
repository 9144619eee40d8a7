"""A violation that a judge missed, as plain values that the page and its script both show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judgebench.records import Verdict
from judgebench.rubric import Metric, Rubric
from judgebench.stress.probes.altered import AlteredAnswer, Change, apply_changes, span_diff
from judgebench.stress.result import Miss

Part = tuple[bool, str]
"""Whether a stretch of text differs from the other answer, and the stretch."""


def miss_view(miss: Miss, rubric: Rubric) -> dict[str, Any]:
    """Everything that the page tells of one miss, as JSON holds it."""
    item = miss.item
    demanded = [
        (metric, item.must_worsen[metric.id])
        for metric in rubric.metrics
        if metric.id in item.must_worsen
    ]
    parent, altered = marked_texts(item)
    return {
        "id": item.item_id,
        "recipe": f"{item.recipe}, version {item.recipe_version}",
        "area": item.area,
        "claim": item.false_claim,
        "maker": item.made_by,
        "missed_by": ", ".join(miss.missed_by),
        "question": item.parent.question,
        "parent": parent,
        "altered": altered,
        "facts": _facts(item),
        "columns": [f"{metric.title}: at least {label}" for metric, label in demanded],
        "judges": [
            {"name": judge, "cells": [_pair(miss, judge, *demand) for demand in demanded]}
            for judge in miss.verdicts
        ],
    }


def _facts(item: AlteredAnswer) -> list[tuple[str, str]]:
    """What makes the answer wrong, with its source."""
    facts = {
        "False claim": item.false_claim,
        "True claim": item.true_claim,
        "Why it sounds right": item.why_plausible,
        "Source": item.source,
    }
    return [(heading, text) for heading, text in facts.items() if text]


def _pair(miss: Miss, judge: str, metric: Metric, least: str) -> dict[str, Any]:
    """One judge's labels of the sound parent and of the violation, and whether it was detected.

    `outcome` is `detected`, `missed`, or `missing` where the judge gave the violation no label.
    """
    label = _label(miss.verdicts, judge, metric)
    return {
        "parent": _label(miss.of_parent, judge, metric),
        "altered": label,
        "outcome": _outcome(metric, label, least),
    }


def _label(verdicts: Mapping[str, Verdict], judge: str, metric: Metric) -> str:
    """The label; where there is none, how the verdict ended."""
    verdict = verdicts.get(judge)
    if verdict is None:
        return "not judged"
    return verdict.labels.get(metric.id, f"no label ({verdict.status.value})")


def _outcome(metric: Metric, label: str, least: str) -> str:
    order = metric.label_texts
    if label not in order:
        return "missing"
    return "detected" if order.index(label) >= order.index(least) else "missed"


def marked_texts(item: AlteredAnswer) -> tuple[list[Part], list[Part]]:
    """The parent and the altered answer in parts, changed ones marked; joined they are the texts.

    Where the recorded changes do not lead to the altered text, the two are compared anew.
    """
    old, changes = item.parent.text, item.changes
    if apply_changes(old, changes) != item.text:
        changes = span_diff(old, item.text)
    return _joined(_parts(old, changes, new=False)), _joined(_parts(old, changes, new=True))


def _joined(parts: Iterable[Part]) -> list[Part]:
    """Changed parts with nothing but space between them as one: they are read as one change."""
    found: list[Part] = []
    for changed, text in parts:
        if changed and len(found) > 1 and found[-2][0] and not found[-1][1].strip():
            space = found.pop()[1]
            text = found.pop()[1] + space + text
        found.append((changed, text))
    return found


def _parts(old: str, changes: tuple[Change, ...], *, new: bool) -> Iterator[Part]:
    end = 0
    for change in changes:
        if change.start > end:
            yield False, old[end : change.start]
        if text := change.new if new else old[change.start : change.end]:
            yield True, text
        end = change.end
    if end < len(old):
        yield False, old[end:]
