"""Accuracies of LLMBar by subset, as the authors' statistics.json print them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import judgebench as jb

ORDERS = {"": "correct_False", "swapped": "correct_True"}


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """How often each judge is right in each subset, in per cent; no verdict counts as wrong."""
    (metric,) = study.rubric.metrics
    subsets = {file.parent.name: file.parent for file in data.glob("**/dataset.json")}
    truth = study.humans[metric.id].truth
    for judge in study.real_judges:
        model, _, order = judge.name.partition("_")
        right = study.judged(judge, metric) == truth
        for subset, folder in sorted(subsets.items()):
            file = folder / "evaluators" / model / "Vanilla" / "statistics.json"
            text = json.loads(file.read_text("utf-8"))[ORDERS[order]]
            printed = text.rpartition("= ")[2].rstrip("%")
            of = [answer.metadata["subset"] == subset for answer in study.answers]
            yield "statistics.json", f"{judge.name}, {subset}", printed, 100 * right[of].mean()
