"""The forms in which findings show themselves: as a data frame, as text, as a table in a
notebook."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from judgebench.errors import SetupError
from judgebench.records import Results
from judgebench.results.blocks import IntervalKind, ReportSection, caveats, incomplete

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Shown:
    """The base of all that an analysis returns: findings that have a `part`.

    A presentation imports the findings that it shows, never the other way round: `presented_by`
    names its module and function (`"judgebench.preferences.report:preferences_part"`), which takes
    the findings and returns their part. `gaps` says what the run folder lacks.
    """

    presented_by: ClassVar[str] = ""
    gaps: tuple[str, ...] = ()

    @cached_property
    def part(self) -> ReportSection:
        """The presentation of these findings."""
        module, _, name = self.presented_by.partition(":")
        return incomplete(getattr(import_module(module), name)(self), self.gaps)

    @property
    def parts(self) -> list[ReportSection]:
        """The parts of a report on these findings alone."""
        return [self.part]

    @property
    def results(self) -> Results:
        """Every number of these findings as rows."""
        return self.part.results

    def to_frame(self, failures: Literal["left_out", "all"] = "left_out") -> pd.DataFrame:
        """One row for each number; `failures="all"` adds the rows where a judge's failures count as
        wrong, and as right. `results.to_frame("bar")` has one analysis, and no columns but its
        own."""
        return self.results.to_frame(failures=failures)

    def records(self) -> dict[str, list[Any]]:
        """The JSON of these findings, by key: a mapping for each number, null where it is
        undefined."""
        return {self.part.key: [row.plain() for row in self.results]}

    def plot(self, *, ax: Axes | None = None, width: float | None = None) -> Axes:
        """The accuracy of each judge with its interval, beside annotators and the best baseline, as
        axes of matplotlib: `ax`, or those of a new figure of a `width` in inches. Raises SetupError
        where nothing of this kind was measured.

        >>> import judgebench as jb
        >>> axes = jb.decide(jb.open_run("runs/small")).plot(width=3.4)
        >>> axes.get_xlabel()
        'Share of answers with the reference label'
        """
        from judgebench.results.figures import draw_standings, plotted

        if not (lines := self.part.standings):
            raise SetupError("there is nothing to plot: no judge was compared with annotators")
        axes: Axes = plotted(partial(draw_standings, lines), ax, width)
        return axes

    def __str__(self) -> str:
        from judgebench.results.terminal import as_text

        return as_text(self.part)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from judgebench.results.documents import fragment

        return fragment(self.part)


class JudgesShown(Shown):
    """The base of findings about judges: `judges` maps each name to its kind, such as `jury`."""

    judges: Mapping[str, str]

    @property
    def judges_in_order(self) -> list[str]:
        """The names of all judges, controls last."""
        return sorted(self.judges, key=self.is_control)

    def is_control(self, judge: str) -> bool:
        """True for a baseline."""
        return self.judges.get(judge) == "control"

    def lane(self, judge: str) -> IntervalKind:
        """The kind as which the judge is drawn."""
        return "control" if self.is_control(judge) else "judge"

    def shown_name(self, judge: str) -> str:
        """The name, with `(baseline)` after it where it is one."""
        return f"{judge} (baseline)" if self.is_control(judge) else judge


def to_json(found: Mapping[str, Shown], name: str, **beside: Any) -> str:
    """All findings as JSON: the name of the study, the records of each analysis, the notes, and
    whatever else is to stand beside. An undefined number is null with a `reason`. All but ASCII is
    escaped, so that every terminal and encoding takes it."""
    records = {key: held for shown in found.values() for key, held in shown.records().items()}
    notes = caveats([shown.part for shown in found.values()])
    whole = {"name": name, **records, "notes": notes, **beside}
    return json.dumps(_finite(whole), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    """The value with infinite numbers, which JSON has no way to write, as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value
