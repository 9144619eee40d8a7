"""A table as a paper prints it, on its own: as text, in a notebook, LaTeX, Markdown, a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judgebench.records import Results
from judgebench.results.blocks import ReportSection
from judgebench.results.documents import table_lines
from judgebench.results.latex import to_latex
from judgebench.results.shown import Shown
from judgebench.results.tables import Table

if TYPE_CHECKING:
    import pandas as pd


class PaperTable(Shown):
    """A table that shows itself. `lines` are its numbers without rounding, one mapping for each of
    its lines, which the columns `index` name."""

    def __init__(
        self,
        table: Table,
        lines: Sequence[Mapping[str, Any]],
        index: Sequence[str],
        results: Results,
    ) -> None:
        self.table, self._lines, self._index, self._results = table, lines, index, results

    @cached_property
    def part(self) -> ReportSection:
        """The table as a part of a report."""
        return ReportSection(self.table.key, self.table.title, self._results, paper=(self.table,))

    def to_frame(self, failures: Any = None) -> pd.DataFrame:
        """A line for each line of the table: the values, and where there are intervals their limits
        (`accuracy_low`, `accuracy_high`); an undefined number is NaN."""
        import pandas as pd

        return pd.DataFrame(self._lines).set_index([*self._index])

    def latex(self) -> str:
        """The table as `main.tex` of a report holds it; needs booktabs alone."""
        return to_latex([self.part])["main.tex"]

    def markdown(self) -> str:
        """The table, and under it what its numbers rest on."""
        return "\n".join(table_lines(self.table))
