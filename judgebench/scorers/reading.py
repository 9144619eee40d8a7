"""What a run folder holds of scorers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


def read_scorers(folder: RunFolder, study: Study) -> Sequence[ScorerRun] | None:
    """The scorers of a run; None where there is none."""
    found = [
        ScorerRun(name, entry.get("better", ""), verdicts_of(folder, name, entry, study.answers))
        for name, entry in folder.manifest()["judges"].items()
        if entry["kind"] == "scorer"
    ]
    return tuple(found) or None
