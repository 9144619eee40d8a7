"""One results table: every number is a row of keys and an Estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate

if TYPE_CHECKING:
    import pandas as pd

NOT_COMPUTED = Estimate(None, reason="not computed for this metric")
ESTIMATE_COLUMNS = ("value", "low", "high", "level", "n", "n_missing", "method", "reason")


@dataclass(frozen=True, slots=True)
class Row:
    """One number. `keys` holds whatever else identifies it, such as `failures` or `annotator`.

    Raises ValueError for keys that the estimate's columns would hide.
    """

    analysis: str
    statistic: str
    estimate: Estimate
    judge: str = ""
    metric: str = ""
    keys: Mapping[str, str | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if hidden := self.keys.keys() & set(ESTIMATE_COLUMNS):
            raise ValueError(f"the estimate has columns of these names: {', '.join(hidden)}")

    def __getitem__(self, key: str) -> str:
        """One of the keys; empty where the row has no such key."""
        if key in ("analysis", "statistic", "judge", "metric"):
            return str(getattr(self, key))
        return str(self.keys.get(key, ""))

    def plain(self) -> dict[str, Any]:
        """Keys and estimate side by side, as they stand in a CSV file or a data frame."""
        e = self.estimate
        level = None if e.low is None else e.level
        return {
            "analysis": self.analysis, "judge": self.judge, "metric": self.metric,
            "statistic": self.statistic, **self.keys,
            "value": e.value, "low": e.low, "high": e.high, "level": level,
            "n": e.n, "n_missing": e.n_missing, "method": e.method, "reason": e.reason,
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class Results:
    """Rows, in the order in which they are written, and how to find some of them.

    >>> from judgebench.records import Estimate
    >>> found = Results((Row("score", "accuracy", Estimate(0.5, n=4), "m", "tone"),))
    >>> found.find("accuracy", judge="m", metric="tone").value
    0.5
    """

    rows: tuple[Row, ...] = ()

    def __repr__(self) -> str:
        return f"{len(self.rows):,} rows of results; to_frame() gives them as a DataFrame"

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def select(self, analysis: str = "", statistic: str = "", **keys: str) -> list[Row]:
        """The rows with all these keys; an empty analysis or statistic means any."""
        if statistic:
            keys["statistic"] = statistic
        if analysis:
            keys["analysis"] = analysis
        names = tuple(keys)
        if names not in self._indices:
            index = self._indices[names] = {}
            for row in self.rows:
                index.setdefault(tuple(row[name] for name in names), []).append(row)
        return [*self._indices[names].get(tuple(keys.values()), ())]

    def find(self, statistic: str, analysis: str = "", **keys: str) -> Estimate:
        """The estimate of the first such row; undefined with a reason where there is none."""
        return next(
            (row.estimate for row in self.select(analysis, statistic, **keys)), NOT_COMPUTED
        )

    def values(self, key: str, analysis: str = "", statistic: str = "") -> list[str]:
        """The different values of a key among those rows, in their order."""
        return list(dict.fromkeys(row[key] for row in self.select(analysis, statistic)))

    def pivot(self, analysis: str, *keys: str) -> dict[tuple[str, ...], dict[str, Row]]:
        """The rows of an analysis that have the same values of these keys, by their statistic."""
        found: dict[tuple[str, ...], dict[str, Row]] = {}
        for row in self.select(analysis):
            found.setdefault(tuple(row[key] for key in keys), {})[row.statistic] = row
        return found

    @cached_property
    def _indices(self) -> dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]]:
        """By names of keys, the rows by the values of these keys; made when first asked for."""
        return {}

    @property
    def columns(self) -> list[str]:
        """The columns of these rows: the common keys, every other key, the estimate."""
        other = dict.fromkeys(key for row in self.rows for key in row.keys)
        return ["analysis", "judge", "metric", "statistic", *other, *ESTIMATE_COLUMNS]

    def to_frame(
        self, analysis: str = "", failures: Literal["left_out", "all"] = "left_out"
    ) -> pd.DataFrame:
        """One row for each number, of all analyses or of one, with no columns but its own; an
        undefined number is NaN and its `reason` says why. A judge's failures are left out;
        `failures="all"` adds the rows where they count as wrong (`worst`) and as right (`best`).
        Raises SetupError for another analysis.

        >>> found = Results((Row("score", "accuracy", Estimate(0.5, n=4), "m", "tone"),))
        >>> found.to_frame("score").statistic.to_list()
        ['accuracy']
        """
        import pandas as pd

        shown = ("", "left_out", *(["worst", "best"] if failures == "all" else []))
        selected = [row for row in self.select(analysis) if row["failures"] in shown]
        rows, known = Results(tuple(selected)), self.values("analysis")
        if analysis and not rows.rows:
            raise SetupError(Problem("is none", "", None, "analysis", analysis, ", ".join(known)))
        return pd.DataFrame([row.plain() for row in rows], columns=rows.columns)
