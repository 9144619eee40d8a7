"""A table as a paper prints it, on its own: as text, in a notebook, LaTeX, Markdown, a frame."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judgebench.records import Estimate
from judgebench.results.latex import to_latex
from judgebench.results.markdown import table_lines
from judgebench.results.part import Part
from judgebench.results.rows import Results
from judgebench.results.shown import Shown
from judgebench.results.tables import Table

if TYPE_CHECKING:
    import pandas as pd


class PaperTable(Shown):
    """A table that shows itself. `lines` are its numbers, and texts, by statistic for each of its
    lines, which are named by the texts of its stubs."""

    def __init__(
        self,
        table: Table,
        lines: Mapping[tuple[str, ...], Mapping[str, Estimate | str]],
        results: Results,
    ) -> None:
        self.table, self.lines, self._results = table, lines, results

    @cached_property
    def part(self) -> Part:
        """The table as a part of a report."""
        return Part(self.table.key, self.table.title, self._results, paper=(self.table,))

    def to_frame(self, failures: Any = None) -> pd.DataFrame:
        """A line for each line of the table: the values, and where there are intervals their limits
        (`accuracy_low`, `accuracy_high`); an undefined number is NaN."""
        import pandas as pd

        stubs = [heading.lower() for heading in self.table.columns[: self.table.stubs]]
        lines = []
        for names, estimates in self.lines.items():
            line: dict[str, Any] = dict(zip(stubs, names, strict=True))
            for key, estimate in estimates.items():
                if isinstance(estimate, str):
                    line[key] = estimate
                    continue
                line[key] = estimate.value
                if estimate.low is not None:
                    line |= {f"{key}_low": estimate.low, f"{key}_high": estimate.high}
            lines.append(line)
        return pd.DataFrame(lines).set_index(stubs)

    def latex(self) -> str:
        """The table as `main.tex` of a report holds it; needs booktabs alone."""
        return to_latex([self.part])["main.tex"]

    def markdown(self) -> str:
        """The table, and under it what its numbers rest on."""
        return "\n".join(table_lines(self.table))
