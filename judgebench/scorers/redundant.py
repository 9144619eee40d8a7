"""Which scorers say the same: rows of numbers, and how they are shown.

Rows `redundancy` hold the correlation of a scorer with another one, `who`, each pair both ways;
rows `family` how surely the `members` are found to be one; rows `function` name a scorer that is a
function of `who` by its `formula`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgebench.records import Estimate
from judgebench.report.words import listed
from judgebench.results.part import Block, HeatMap
from judgebench.results.rows import Results, Row
from judgebench.results.tables import DASH, Cell, Table
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.redundancy import FAMILY, redundancy
from judgebench.stats.resample import Resampling

COEFFICIENTS = {True: "spearman", False: "pearson"}
_TITLES = {"spearman": "Spearman's rho", "pearson": "Pearson's r"}
_STABLE = 0.6
_ONLY_FUNCTIONS = "its scorers are functions of one another"


def redundancy_rows(
    names: Sequence[str],
    scores: FloatArray,
    clusters: Clusters,
    resampling: Resampling,
    *,
    ranked: bool = True,
) -> Iterator[Row]:
    """Of scores (items, names), NaN where there is none: `stats.redundancy` as rows."""
    found, there = redundancy(scores, clusters, ranked, resampling), ~np.isnan(scores)
    for i in found.order:
        for j in (j for j in found.order if j != i):
            n, r = int((there[:, i] & there[:, j]).sum()), float(found.matrix[i, j])
            reason = "one of the two does not vary" if np.isnan(r) else "no interval is computed"
            estimate = Estimate(None if np.isnan(r) else r, n=n, reason=reason)
            about = {"who": names[j]}
            yield Row("redundancy", COEFFICIENTS[ranked], estimate, names[i], "", about)
    for members, stability in zip(found.families, found.stability, strict=True):
        if len(members) > 1:
            reason = "" if stability else _ONLY_FUNCTIONS
            about = {"members": listed([names[i] for i in members])}
            yield Row("family", "stability", Estimate(stability, reason=reason), keys=about)
    for twin in found.twins:
        about = {"who": names[twin.first], "formula": twin.formula}
        one = Estimate(1.0, n=int((there[:, twin.first] & there[:, twin.second]).sum()))
        yield Row("function", "formula", one, names[twin.second], "", about)


def redundancy_block(rows: Results) -> Block:
    """Sentences, the matrix with its figure, and the families."""
    names = rows.values("judge", "redundancy")
    if len(names) < 2:
        return Block()
    (statistic,) = rows.values("statistic", "redundancy")
    matrix = tuple(
        (Cell(name), *(
            Cell(estimate=rows.find(statistic, "redundancy", judge=name, who=other))
            if name != other else Cell(DASH) for other in names
        ))
        for name in names
    )  # fmt: skip
    title = f"{_TITLES[statistic]} of each two scorers"
    table = Table("redundancy", title, ("Scorer", *names), matrix)
    families = tuple(
        (Cell(row["members"]), Cell(estimate=row.estimate)) for row in rows.select("family")
    )
    notes = (
        f"Scorers of a family have an |r| of {FAMILY} or more, on average. Stability: how much of "
        f"it is found again in resamples, on average; below {_STABLE} do not rely on it.",
    )
    shown = Table("families", "Families of scorers", ("Scorers", "Stability"), families, notes)
    heat = HeatMap("redundancy", title, table, ("", *["judge"] * len(names)), "signed")
    return Block("Which scorers say the same?", tuple(_said(rows)), (shown, table), (heat,))


def _said(rows: Results) -> Iterator[str]:
    for row in rows.select("function"):
        yield (
            f"{row.judge} is a function of {row['who']} ({row['formula']}, y being {row.judge}): "
            "the two say the same, and that they agree counts for nothing."
        )
    alike = [row for row in rows.select("family") if row.estimate.value is not None]
    for row in alike:
        stable = (row.estimate.value or 0.0) >= _STABLE
        share = f"{row.estimate.value:.2f}"
        how = f"found again in resamples (stability {share})"
        if not stable:
            how = f"but not surely so (stability {share}, below {_STABLE})"
        yield f"{row['members']} say nearly the same, {how}; one of them is enough."
    if not alike:
        yield "Beside functions of one another, no two scorers say the same."
