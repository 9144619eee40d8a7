"""A table of LLMBar, whose files hold a verdict for either order, by subset and model."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

ORDERS = {"": "swap = False", "_swapped": "swap = True"}


def prepare(data: Path, to: Path) -> None:
    """Write labels.csv into `to`: the authors' label, and two columns for each of six models."""
    tables = []
    for file in sorted(data.glob("**/dataset.json")):
        table = pd.DataFrame(json.loads(file.read_text("utf-8")))
        table = table[["input", "label"]].assign(subset=file.parent.name)
        for result in sorted(file.parent.glob("evaluators/*/Vanilla/result.json")):
            rows = json.loads(result.read_text("utf-8"))
            for suffix, order in ORDERS.items():
                said = [row["results"][0][order]["winner"] or "none" for row in rows]
                table[result.parts[-3] + suffix] = said
        tables.append(table)
    pd.concat(tables).to_csv(to / "labels.csv", index_label="row")
