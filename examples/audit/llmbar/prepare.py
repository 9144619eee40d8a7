"""Tables of LLMBar: a file for each subset and model, with a verdict for either order."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

ORDERS = {"": "swap = False", "_swapped": "swap = True"}


def prepare(data: Path, to: Path) -> None:
    """Write labels.csv, of the authors, and verdicts.csv, of six models, into `to`."""
    labels, verdicts = [], []
    for file in sorted(data.glob("**/dataset.json")):
        subset = file.parent.name
        for i, row in enumerate(json.loads(file.read_text("utf-8"))):
            labels.append((f"{subset}-{i}", subset, row["input"], row["label"]))
        for result in sorted(file.parent.glob("evaluators/*/Vanilla/result.json")):
            for i, row in enumerate(json.loads(result.read_text("utf-8"))):
                for suffix, order in ORDERS.items():
                    said = row["results"][0][order]["winner"] or "none"
                    verdicts.append((f"{subset}-{i}", result.parts[-3] + suffix, said))
    columns = ["item_id", "subset", "question", "label"]
    pd.DataFrame(labels, columns=columns).to_csv(to / "labels.csv", index=False)
    columns = ["item_id", "judge", "label"]
    pd.DataFrame(verdicts, columns=columns).to_csv(to / "verdicts.csv", index=False)
