"""How two dimensions of DialSummEval go together over the 14 systems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import judgebench as jb


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """Pearson's r of systems' mean ratings, where two annotators count more than a third one."""
    systems = np.array([answer.system for answer in study.answers])
    means = {}
    for metric in study.rubric.metrics:
        rated = np.sort(5 - study.humans[metric.id].ratings.values, axis=1)
        # filter_noise_scores in analysis.py: the rating of two, or the mean of three different ones
        of_two = np.where((rated[:, :2] == rated[:, 1:2]).all(axis=1), rated[:, 1], rated[:, 2])
        split = (np.diff(rated, axis=1) > 0).all(axis=1)
        rating = pd.Series(np.where(split, rated.mean(axis=1), of_two))
        means[metric.id] = rating.groupby(systems).mean()
    table = pd.read_csv(Path(__file__).with_name("published.csv"), dtype=str)
    for row in table.itertuples():
        first, second = row.what.removeprefix("systems: ").split(" and ")
        yield row.source, row.what, row.printed, means[first].corr(means[second])
