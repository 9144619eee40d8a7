"""What the preferences wing found: rows of numbers, and how they are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from judgebench.results.rows import Results
from judgebench.results.shown import Shown
from judgebench.studies.study import JudgeKind


@dataclass(frozen=True, repr=False)
class Preferences(Shown):
    """How judges and humans compare several responses to one question, and the criteria of items.

    The rows, by their `analysis`: `order`, `response` and `vote` (see `orders`), `win_rate`,
    `strength`, `ranking`, `longer` and `own_system` (see `systems`), `position` and `place` (see
    `position`), `item_score` and `criterion` (see `criteria`). `judges` says what each judge is,
    also those whose scores of single responses are compared (`NAME, by TITLE`); `titles` are those
    of the metrics and composites, of which the win rates by those in `drawn` have figures, or by
    the first alone.
    """

    presented_by = "judgebench.preferences.part:preferences_part"

    judges: Mapping[str, JudgeKind]
    titles: Mapping[str, str]
    drawn: Collection[str]
    rows: Results
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    def is_control(self, judge: str) -> bool:
        """Whether it is a control judge."""
        return self.judges.get(judge) == "control"

    def shown_name(self, judge: str) -> str:
        """The name, with `(control)` after it where it is one."""
        return f"{judge} (control)" if self.is_control(judge) else judge
