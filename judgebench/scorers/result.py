"""What the scorers wing found: rows of numbers, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from judgebench.results.part import Part, incomplete
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.scorers.candidates import Severities
from judgebench.scorers.reading import ScorerRun
from judgebench.stats.association import Level
from judgebench.stats.coefficients import Coefficient

MAIN: tuple[Level, Coefficient] = ("pooled", "spearman")  # what the sentences are about
TESTED: Mapping[Level, Coefficient] = {
    "pooled": "spearman", "within": "spearman", "system": "pearson",
}  # fmt: skip
TESTS: Mapping[str, tuple[str, ...]] = {
    "pooled": ("permutation",), "within": ("permutation",), "system": ("permutation", "Williams"),
}  # fmt: skip
BESIDE = ("best control", "best scorer")
MEDIAN = "the median annotator"
SIGNIFICANT = 0.05


@dataclass(frozen=True, repr=False)
class BesideHumans(Shown):
    """What scorers are worth. `measure` describes the rows; `titles` are those of the metrics that
    have human severities, `humans`."""

    titles: Mapping[str, str]
    runs: tuple[ScorerRun, ...]
    rows: Results
    humans: Mapping[str, Severities]
    gaps: tuple[str, ...] = ()

    @property
    def results(self) -> Results:
        return self.rows

    @cached_property
    def part(self) -> Part:
        from judgebench.scorers.part import scorers_part

        return incomplete(scorers_part(self), self.gaps)

    def main(self, metric: str, kind: str) -> list[Row]:
        """Spearman's rho of all of a kind over all answers, the strongest first."""
        level, coefficient = MAIN
        rows = self.rows.select("association", coefficient, metric=metric, level=level, kind=kind)
        return sorted(rows, key=strength, reverse=True)

    def beats_controls(self, judge: str, metric: str) -> bool:
        """Whether it is shown to go with the humans more than the best control does."""
        level, coefficient = MAIN
        about = {"judge": judge, "metric": metric, "level": level, "beside": "best control"}
        low = self.rows.find(coefficient, "difference", **about).low
        p = self.rows.find("p_holm", of=coefficient, **about).value
        return low is not None and low > 0 and p is not None and p <= SIGNIFICANT


def strength(row: Row) -> float:
    """How strongly it goes with the humans; in either direction where none was declared."""
    value = row.estimate.value
    if value is None:
        return -1.0
    return abs(value) if row["turned"] == "undeclared" else value
