"""κ of each judge with the human, averaged over the models that answered: Figure 1 of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import judgebench as jb


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """100 times the mean over models of Cohen's κ, without answers that have no verdict."""
    (metric,) = study.rubric.metrics
    human = study.humans[metric.id].truth
    models = np.array([answer.system for answer in study.answers])
    table = pd.read_csv(Path(__file__).with_name("published.csv"), dtype=str)
    said = {judge.name: study.judged(judge, metric) for judge in study.real_judges}
    for row in table.itertuples():
        judge, kappas = row.what.partition(":")[0], []
        for model in np.unique(models):
            of = (models == model) & (said[judge] >= 0)
            both = pd.crosstab(said[judge][of], human[of], normalize=True)
            both = both.reindex(index=[0, 1], columns=[0, 1], fill_value=0).to_numpy()
            chance = both.sum(axis=0) @ both.sum(axis=1)
            kappas.append((np.trace(both) - chance) / (1 - chance))
        yield row.source, row.what, row.printed, 100 * float(np.mean(kappas))
