"""Figures of PandaLM that are no row of judgebench's results: of two annotators, and a ratio."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import judgebench as jb


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """Cohen's κ of two annotators, the majority's labels, and the ratio of two macro F1."""
    humans, metric = study.humans["better"], study.rubric.metrics[0]
    found = {}
    for a, b in combinations(range(3), 2):
        table = pd.crosstab(*humans.ratings.values[:, [a, b]].T, normalize=True).to_numpy()
        chance = table.sum(axis=0) @ table.sum(axis=1)
        found[f"κ of annotators {a + 1} and {b + 1}"] = (np.trace(table) - chance) / (1 - chance)
    for k, label in enumerate(metric.label_texts):
        found[f"pairs with the majority for {label}"] = (humans.truth == k).sum()
    rows = jb.align(study).to_frame().query("analysis == 'score' and statistic == 'macro_f1'")
    f1 = rows[rows.failures == "left_out"].set_index("judge").value
    ratio = 100 * f1["pandalm-7b"] / f1["gpt-3.5-turbo"]
    found["F1 of pandalm-7b as a share of that of gpt-3.5-turbo"] = ratio
    table = pd.read_csv(Path(__file__).with_name("published.csv"), dtype=str)
    for row in table.itertuples():
        yield row.source, row.what, row.printed, float(found[row.what])
