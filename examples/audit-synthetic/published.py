"""Shares of the labels, which no results table holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd


def figures(study: object, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """(source, what, printed, value) of each figure."""
    labels = pd.read_csv(data / "labels.csv")
    for who, printed in (("Ada", "49.4"), ("Ben", "49.6")):
        yield "make.py, seed 7", f"{who}: rude, %", printed, 100 * (labels[who] == "Rude").mean()
