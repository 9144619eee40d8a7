"""What the scorers wing found: rows of numbers, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from judgebench.records import Estimate
from judgebench.results.part import Part, incomplete
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.scorers.candidates import Severities
from judgebench.scorers.reading import ScorerRun
from judgebench.stats.association import Association, Level
from judgebench.stats.coefficients import Coefficient

TITLES: Mapping[str, str] = {
    "pearson": "Pearson's r", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b",
    "pairwise": "Pairwise accuracy",
}  # fmt: skip
TESTED: Mapping[Level, Coefficient] = {
    "pooled": "spearman", "within": "spearman", "system": "pearson",
}  # fmt: skip
TESTS: Mapping[Level, tuple[str, ...]] = {
    "pooled": ("p",), "within": ("p",), "system": ("p", "Williams' p"),
}  # fmt: skip
BESIDE = ("best control", "best scorer")
MEDIAN = "the median annotator"
SIGNIFICANT = 0.05
_SHUFFLED = "the mean over shuffled scores, or by count"


@dataclass(frozen=True, repr=False)
class BesideHumans(Shown):
    """What scorers are worth. `measure` describes the rows; `titles` are those of the metrics that
    have human severities, `humans`."""

    titles: Mapping[str, str]
    runs: tuple[ScorerRun, ...]
    rows: Results
    humans: Mapping[str, Severities]
    gaps: tuple[str, ...] = ()
    references: tuple[str, ...] = ()  # what is said of systems that are the reference text

    @cached_property
    def part(self) -> Part:
        from judgebench.scorers.part import scorers_part

        return incomplete(scorers_part(self), self.gaps)

    def held(self, metric: str, kind: str, level: Level = "pooled") -> list[Row]:
        """The coefficient of that level, of all of a kind, the strongest first."""
        about = {"metric": metric, "scope": level, "kind": kind}
        rows = self.rows.select("association", TESTED[level], **about)
        return sorted(rows, key=strength, reverse=True)

    def beats_controls(self, judge: str, metric: str, level: Level = "pooled") -> bool:
        """Whether it is shown to go with the humans more than the best control does."""
        about = {"judge": judge, "metric": metric, "scope": level, "beside": BESIDE[0]}
        low = self.rows.find(TESTED[level], "difference", **about).low
        p = self.rows.find("p_holm", test=TESTS[level][0], **about).value
        return low is not None and low > 0 and p is not None and p <= SIGNIFICANT


def with_chance(row: Row, found: Association) -> Iterator[Row]:
    """The row of a coefficient and, of pairwise accuracy, one of what is reached by chance."""
    yield row
    if found.chance is not None:
        chance = Estimate(found.chance, n=found.estimate.n, reason=_SHUFFLED)
        yield replace(row, analysis="chance", estimate=chance)


def strength(row: Row) -> float:
    """How strongly it goes with the humans; in either direction where none was declared."""
    value = row.estimate.value
    if value is None:
        return -1.0
    return abs(value) if not row["better"] else value
