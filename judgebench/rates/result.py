"""Rates of labels: what was asked for, and every number that was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from judgebench.errors import SetupError
from judgebench.results.rows import Results
from judgebench.results.shown import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALL = "all"
MEAN = "mean severity"
MEAN_LABEL = "mean label"  # as a number, where no label is severe
WAYS = {
    "human": "Human labels alone",
    "ppi": "With the verdicts (PPI++)",
    "rogan_gladen": "Rogan-Gladen",
    "verdicts": "Verdicts alone",
}


@dataclass(frozen=True, repr=False)
class Rates(Shown):
    """The rate of each label, by system, in four ways.

    Rows of `found` are of the analysis `rate` (statistics as in WAYS), `difference` of two groups
    (`human`, `ppi`) and `labels` (`given`, `saved`, `needed`), with the keys `of` (the label, or
    `X or worse`, or `mean severity`; of `severe: none` `X or higher`, or `mean label`) and `group`.
    `titles` are those of metrics by their ids,
    `main` the keys `of` of each metric that a screen shows.
    """

    found: Results
    titles: Mapping[str, str]
    main: Mapping[str, Sequence[str]]
    name: str
    headline: str
    n_answers: int
    by: str = ""
    width: float | None = None
    compared: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    urgent: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    asked: bool = True  # and not part of the report of another question

    presented_by = "judgebench.rates.part:rates_part"

    def plot(self, *, ax: Axes | None = None, width: float | None = None) -> Axes:
        """The rates of every label that a screen shows, systems down, an interval for each way, as
        axes of matplotlib: `ax`, or those of a new figure of a `width` in inches. Raises SetupError
        where nothing was estimated."""
        from judgebench.results.figure import draw_intervals, plotted
        from judgebench.results.part import Intervals, figures_of

        found = [one for one in figures_of([self.part]) if isinstance(one, Intervals)]
        if not found:
            raise SetupError("there is nothing to plot: no metric has human labels")
        first = f"{next(iter(self.titles.values()))}: " * (len(self.titles) == 1)
        lines = [
            (f"{one.title.removeprefix(first)}, {who.rpartition(': ')[0]}", lanes)
            for one in found
            for who, lanes in one.lines
        ]
        whole = replace(found[0], title=self.headline, lines=tuple(lines))
        draw = partial(draw_intervals, whole if found[1:] else found[0])
        axes: Axes = plotted(draw, ax, width)
        return axes
