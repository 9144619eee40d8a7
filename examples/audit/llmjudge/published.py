"""κ of LLMJudge where the four grades are cut into two, as in Table 4 of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import judgebench as jb


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """Cohen's κ between a judge and the assessor on grades below and from `cut` on."""
    (metric,) = study.rubric.metrics
    grades = {judge.name: 3 - study.judged(judge, metric) for judge in study.real_judges}
    human = 3 - study.humans[metric.id].truth
    table = pd.read_csv(Path(__file__).with_name("published.csv"), dtype=str)
    for row in table.dropna(subset="cut").itertuples():
        said = grades[row.judge]
        read, cut = said <= 3, int(row.cut)  # what could not be read is -1, and 4 here
        both = pd.crosstab(said[read] >= cut, human[read] >= cut, normalize=True)
        both = both.reindex(index=[False, True], columns=[False, True], fill_value=0).to_numpy()
        chance = both.sum(axis=0) @ both.sum(axis=1)
        yield row.source, row.what, row.printed, float((np.trace(both) - chance) / (1 - chance))
