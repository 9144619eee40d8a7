"""Counts of FaithBench.csv, which says how bad the worst mark in a summary is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import judgebench as jb

WORST = {
    "unwanted": ["Unwanted"],
    "questionable": ["Unwanted", "Questionable"],
    "any": ["Unwanted", "Questionable", "Benign"],
}


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """How many summaries somebody found that bad, of those that are in the files of marks too."""
    known = set()
    for file in data.glob("data_for_release/batch_*.json"):
        samples = json.loads(file.read_text("utf-8"))["samples"]
        known |= {(sample["source"], sample["summary"]) for sample in samples}
    table = pd.read_csv(data / "FaithBench.csv", keep_default_na=False)
    worst = table["worst-label"][
        [pair in known for pair in zip(table.source, table.summary, strict=True)]
    ]
    for metric, labels in WORST.items():
        what = f"summaries whose worst mark is {' or '.join(labels)}"
        found = (study.humans[metric].ratings.values == 1).any(axis=1).sum()
        yield "FaithBench.csv", what, str(worst.isin(labels).sum()), float(found)
