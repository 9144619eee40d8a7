"""Which scorers say the same: rows of numbers, and how they are shown.

Rows `redundancy` hold the correlation of a scorer with another one, `who`, each pair both ways;
rows `family` how surely the `members` are found to be one; rows `function` name a scorer that is a
function of `who` by its `formula`. Rows `alike` hold, of two members of a family, how far apart
their coefficients with the humans of a metric are at a level (`scope`): that of the scorer minus
that of `who`, each in the direction of the first member.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from judgebench.records import Estimate
from judgebench.results.part import Block, Drawing
from judgebench.results.rows import Results, Row
from judgebench.results.tables import DASH, Cell, Table
from judgebench.scorers.result import TESTED, TITLES
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.association import Level, Rated, difference
from judgebench.stats.coefficients import Coefficient
from judgebench.stats.few_systems import critical_r
from judgebench.stats.redundancy import FAMILY, LEAST, redundancy
from judgebench.stats.resample import NO_WIDTH, Resampling
from judgebench.words import counted, listed, wrapped

ALIKE = 0.1
"""Of scorers whose coefficients beside humans are this near each other, one is enough."""
_STABLE = 0.6
_LEVELS = {"pooled": "over all items", "within": "within groups", "system": "over systems"}
_OF_SYSTEMS: Sequence[tuple[Level, Coefficient]] = [("pooled", "pearson")]  # a row is a system
_BETWEEN = " | "  # the members of a family
_NUMBERED = 20  # in a larger matrix no number can be read
_TOO_FEW = f"fewer than {LEAST} items have both"
_ONLY_FUNCTIONS = "its scorers are functions of one another"


def redundancy_rows(
    names: Sequence[str],
    scores: FloatArray,
    clusters: Clusters,
    resampling: Resampling,
    beside: Mapping[str, Mapping[str, Rated]] = {},
    *,
    ranked: bool = True,
) -> Iterator[Row]:
    """Of scores (items, names), NaN where there is none: `stats.redundancy` as rows. `beside` holds
    them, by metric, beside the humans."""
    found, there = redundancy(scores, clusters, ranked, resampling), ~np.isnan(scores)
    places: Iterable[tuple[Level, Coefficient]] = TESTED.items() if ranked else _OF_SYSTEMS
    shared = there.T.astype(np.int64) @ there
    for i in found.order:
        for j in (j for j in found.order if j != i):
            n, r = int(shared[i, j]), float(found.matrix[i, j])
            undefined = _TOO_FEW if n < LEAST else "one of the two does not vary"
            reason = undefined if np.isnan(r) else "no interval is computed"
            estimate = Estimate(None if np.isnan(r) else r, n=n, reason=reason)
            coefficient, about = "spearman" if ranked else "pearson", {"who": names[j]}
            yield Row("redundancy", coefficient, estimate, names[i], "", about)
    for members, stability in zip(found.families, found.stability, strict=True):
        if len(members) > 1:
            reason = "no interval is computed" if stability else _ONLY_FUNCTIONS
            about = {"members": _BETWEEN.join(names[i] for i in members)}
            n = int(shared[np.ix_(members, members)].min())
            yield Row("family", "stability", Estimate(stability, n=n, reason=reason), keys=about)
            own = [i for i in members if all(i != twin.second for twin in found.twins)]
            for metric, sides in beside.items():
                sign = {names[i]: -1 if found.matrix[own[0], i] < 0 else 1 for i in own}
                turned = {c: replace(sides[c], scores=sign[c] * sides[c].scores)
                          for c in sign if c in sides}  # fmt: skip
                for (a, b), place in product(combinations(turned, 2), places):
                    apart = difference(turned[a], turned[b], *place, resampling, tested=False)
                    keys = {"who": a, "scope": place[0], **about}
                    yield Row("alike", place[1], apart.estimate, b, metric, keys)
    for twin in found.twins:
        about = {"who": names[twin.first], "formula": twin.formula}
        one = Estimate(1.0, n=int(shared[twin.first, twin.second]))
        yield Row("function", "formula", one, names[twin.second], "", about)


def _reach(estimate: Estimate) -> float:
    """How far from 0 it may be."""
    if estimate.low is not None and estimate.high is not None:
        return max(-estimate.low, estimate.high)
    return 0.0 if abs(estimate.value or 0.0) < NO_WIDTH else math.inf


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
    title = f"{TITLES[statistic]} of each two scorers"
    table = Table("redundancy", title, ("Scorer", *names), matrix)
    families = tuple(
        (Cell(_listed(row)), Cell(estimate=row.estimate)) for row in rows.select("family")
    )
    notes = (
        f"Scorers of a family have an |r| of {FAMILY} or more, on average. Stability: how much of "
        f"it is found again in resamples, on average; below {_STABLE} do not rely on it.",
    )
    shown = Table("families", "Families of scorers", ("Scorers", "Stability"), families, notes)
    drawing = Drawing("redundancy", title, partial(draw_redundancy, rows, title))
    return Block("Which scorers say the same?", tuple(_said(rows)), (shown, table), (drawing,))


def _listed(family: Row) -> str:
    return listed(family["members"].split(_BETWEEN))


def _said(rows: Results) -> Iterator[str]:
    for row in rows.select("function"):
        yield (
            f"{row.judge} is a function of {row['who']} ({row['formula']}, y being {row.judge}): "
            "the two say the same, and that they agree counts for nothing."
        )
    alike = [row for row in rows.select("family") if row.estimate.value is not None]
    stable = [
        row for row in alike
        if (row.estimate.value or 0.0) >= _STABLE and (critical_r(row.estimate.n) or 1.0) < FAMILY
    ]  # fmt: skip
    for row in stable:
        how = f"found again in resamples (stability {row.estimate.value:.2f})"
        yield f"{_listed(row)} say nearly the same, {how}{_enough(rows, row['members'])}."
    if unsure := len(alike) - len(stable):
        some = counted(unsure, "family looks", "families look")
        yield (
            f"{some} alike here, but not surely so: stability below {_STABLE}, or on so few items "
            "that chance alone does it."
        )
    if not alike:
        yield "Beside functions of one another, no two scorers say the same."


def _enough(rows: Results, members: str) -> str:
    """Whether one of a family is enough, by how the members go with the humans."""
    apart = [r for r in rows.select("alike", members=members) if r.estimate.value is not None]
    if not apart:
        return "; whether one of them is enough is seen beside the humans' scores"
    row = max(apart, key=lambda row: _reach(row.estimate))
    said = f"{row.judge} and {row['who']} beside {row.metric}, {_LEVELS[row['scope']]}: "
    said += f"{TITLES[row.statistic]} differs by {row.estimate}"
    if _reach(row.estimate) <= ALIKE:
        return f", and go with the humans alike (at most {said}); one of them is enough"
    return f", but one does not stand for the others: less than {ALIKE} is not shown ({said})"


def draw_redundancy(rows: Results, title: str) -> Any:
    """The matrix, like beside like, with a frame around each family."""
    from matplotlib.patches import Rectangle

    from judgebench.results.figure import grid_ticks, ink_on, new_figure

    found = {(row.judge, row["who"]): row.estimate.value for row in rows.select("redundancy")}
    names = rows.values("judge", "redundancy")
    n = len(names)
    given = [[1.0 if a == b else found[a, b] for b in names] for a in names]
    values = np.array(given, dtype=np.float64)  # None is NaN
    figure = new_figure(3.2 + 0.4 * n, 2.4 + 0.34 * n)
    axes = figure.subplots()
    image = axes.imshow(values, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    axes.set_facecolor("#eeeeee")
    grounds = image.to_rgba(np.ma.masked_invalid(values))
    for i, j in np.ndindex(values.shape) if n <= _NUMBERED else ():
        text = DASH if np.isnan(values[i, j]) else f"{values[i, j]:.2f}"
        axes.text(j, i, text, ha="center", va="center", fontsize=8.4, color=ink_on(grounds[i, j]))
    for row in rows.select("family"):
        members = [names.index(name) for name in names if name in row["members"].split(_BETWEEN)]
        corner, size = (min(members) - 0.5, min(members) - 0.5), max(members) - min(members) + 1
        axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor="black", linewidth=1.8))
    grid_ticks(axes, names, names, ("", ""))
    axes.set_xticks(range(n), names, rotation=90)
    figure.colorbar(image, ax=axes, fraction=0.03, shrink=0.8, pad=0.02, label="Correlation")
    axes.set_title(
        wrapped(f"{title}; families are framed", max(30, 6 * n)), loc="left", fontsize=10
    )
    return figure
