"""κ of LLMJudge where the four grades are cut into two, as in Table 4 of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import judgebench as jb

CUTS = {"0 against 1 to 3": 1, "0 and 1 against 2 and 3": 2, "0 to 2 against 3": 3}


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """Cohen's κ between a judge and the assessor on grades below a cut and from it on."""
    (metric,) = study.rubric.metrics
    grades = {judge.name: 3 - study.judged(judge, metric) for judge in study.real_judges}
    human = 3 - study.humans[metric.id].truth
    table = pd.read_csv(Path(__file__).with_name("published.csv"), dtype=str)
    for row in table[table.source == "paper, Table 4"].itertuples():
        judge, cut = row.what.split(": κ, ")
        said = grades[judge]
        read = said <= 3  # what could not be read is -1, and 4 here
        both = pd.crosstab(said[read] >= CUTS[cut], human[read] >= CUTS[cut], normalize=True)
        both = both.reindex(index=[False, True], columns=[False, True], fill_value=0).to_numpy()
        chance = both.sum(axis=0) @ both.sum(axis=1)
        yield row.source, row.what, row.printed, float((np.trace(both) - chance) / (1 - chance))
