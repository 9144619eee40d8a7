"""What a run folder holds of scorers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgebench.records import Status
from judgebench.scorers.config import SIMPLE
from judgebench.scorers.scorer import Better
from judgebench.store.folder import RunFolder
from judgebench.store.open import verdicts_of
from judgebench.study.study import JudgeVerdicts, Study


@dataclass(frozen=True)
class ScorerRun:
    """What one scorer said of the study's answers; `judged.verdicts` hold the scores."""

    name: str
    better: Better
    judged: JudgeVerdicts

    @property
    def about(self) -> Mapping[str, Any]:
        """Its signature in full."""
        return self.judged.about or {}

    @property
    def is_control(self) -> bool:
        """Whether it has no meaning of its own, so that all others must do better."""
        return self.about.get("scorer") in SIMPLE

    @property
    def remarks(self) -> Mapping[tuple[str, bool], int]:
        """(why, whether there is a score all the same) -> of how many answers it is said."""
        verdicts = self.judged.verdicts.values()
        told = Counter((v.reason or v.status.value, v.score is not None) for v in verdicts)
        return {one: n for one, n in told.items() if one != (Status.OK.value, True)}


def read_scorers(folder: RunFolder, study: Study) -> Sequence[ScorerRun] | None:
    """The scorers of a run; None where there is none."""
    found = [
        ScorerRun(name, entry.get("better", ""), verdicts_of(folder, name, entry, study.answers))
        for name, entry in folder.manifest()["judges"].items()
        if entry["kind"] == "scorer"
    ]
    return tuple(found) or None
