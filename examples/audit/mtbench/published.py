"""Agreement of votes on MT-bench, as in Table 5 of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import judgebench as jb


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """The share of pairs of votes that agree: with ties (S1), and without votes for one (S2)."""
    (gpt4,) = (judge for judge in study.real_judges if judge.name == "gpt-4")
    found = {}
    for metric in study.rubric.metrics:
        ratings, tie = study.humans[metric.id].ratings, metric.index("tie")
        columns = [*ratings.values.T]
        said = study.judged(gpt4, metric)[ratings.rows]
        pairs = {
            "GPT-4 and human": [(said, column) for column in columns],
            "human and human": list(combinations(columns, 2)),
        }
        for who, of in pairs.items():
            a, b = (np.concatenate(side) for side in zip(*of, strict=True))
            for setup, left_out in (("S1", -1), ("S2", tie)):
                both = (a >= 0) & (b >= 0) & (a != left_out) & (b != left_out)
                name = f"{who}, turn {metric.id[-1]}, {setup}"
                found[f"{name}: votes"] = both.sum()
                found[f"{name}: agreement"] = 100 * (a == b)[both].mean()
    table = pd.read_csv(Path(__file__).with_name("published.csv"), dtype=str)
    for row in table.itertuples():
        yield row.source, row.what, row.printed, float(found[row.what])
