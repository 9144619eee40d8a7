"""How findings show themselves: as a data frame, as text, as a table in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judgebench.results.part import Part
from judgebench.results.rows import Results

if TYPE_CHECKING:
    import pandas as pd


class Shown:
    """What every analysis returns: findings that have a `part`."""

    @property
    def part(self) -> Part:
        """What is shown of these findings."""
        raise NotImplementedError

    @property
    def results(self) -> Results:
        """Every number of these findings as rows."""
        return self.part.results

    def to_frame(self) -> pd.DataFrame:
        """One row for each number."""
        return self.results.to_frame()

    def __str__(self) -> str:
        from judgebench.report.terminal import as_text

        return as_text(self.part)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from judgebench.report.html import fragment

        return fragment(self.part)
