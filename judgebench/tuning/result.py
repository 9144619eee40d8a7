"""What the tuning wing found: rows of numbers, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from judgebench.records import Estimate
from judgebench.results.part import LaneKind, Part, incomplete
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.tuning.reading import Learnt


@dataclass(frozen=True, repr=False)
class Tuned(Shown):
    """What judges that learn are worth out of fold. `measure` describes the rows; `titles` are
    those of the metrics, `kinds` those of all judges of the study."""

    titles: Mapping[str, str]
    kinds: Mapping[str, str]
    taught: tuple[Learnt, ...]
    rows: Results
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    collapsed: Mapping[str, str] = field(default_factory=dict)  # a sentence, by judge

    @cached_property
    def part(self) -> Part:
        from judgebench.tuning.part import tuning_part

        return incomplete(tuning_part(self), self.gaps)

    def lane(self, judge: str) -> LaneKind:
        """How it is drawn."""
        return "control" if self.kinds.get(judge) == "control" else "judge"

    def shown_name(self, judge: str) -> str:
        """The name, with `(control)` after it where it is one."""
        return f"{judge} (control)" if self.lane(judge) == "control" else judge

    def curve(self, judge: str, metric: str, statistic: str) -> Mapping[int, Estimate]:
        """What it reaches by how many answers it learnt from, with all of them last; empty where no
        curve was asked for."""
        about = {"judge": judge, "metric": metric}
        fewer = self.rows.select("otherwise", statistic, side="otherwise", kind="labels", **about)
        points = {labels_of(row): row.estimate for row in fewer}
        cells = next(one.facts for one in self.taught if one.name == judge).values()
        if points and cells:
            whole = round(sum(facts["n"] for facts in cells) / len(cells))
            points[whole] = self.rows.find(statistic, "score", **about)
        return dict(sorted(points.items()))


def labels_of(row: Row) -> int:
    """Of a row of the kind `labels`: how many labelled answers were learnt from."""
    return int(row["as"].removeprefix("n"))
