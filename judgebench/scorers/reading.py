"""What a run folder holds of scorers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgebench.files import read_lines
from judgebench.records import Status
from judgebench.runs.folder import BESIDE, RunFolder
from judgebench.runs.open import verdicts_of
from judgebench.scorers.config import SIMPLE
from judgebench.scorers.scorer import Better
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.study import JudgeVerdicts, Study


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


@dataclass(frozen=True)
class Reworded:
    """Answers beside versions that must not change a verdict, as a stress test made them.

    `study` has all texts as its answers, `runs` hold the scorers' numbers on them; `versions` are,
    by recipe and answer, the ids of the answer and its versions.
    """

    study: Study
    runs: Sequence[ScorerRun]
    versions: Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class ScorersRead:
    """The scorers of a run on the answers of its study, and on `reworded` ones if there are any."""

    runs: Sequence[ScorerRun]
    reworded: Reworded | None = None


def read_scorers(folder: RunFolder, study: Study) -> ScorersRead | None:
    """None where there is no scorer."""
    runs = _runs(folder, study.answers)
    return ScorersRead(runs, _reworded(folder, study)) if runs else None


def _runs(folder: RunFolder, answers: IndexedAnswers) -> tuple[ScorerRun, ...]:
    return tuple(
        ScorerRun(name, entry.get("better", ""), verdicts_of(folder, name, entry, answers))
        for name, entry in folder.manifest()["judges"].items()
        if entry["kind"] == "scorer"
    )


def _reworded(folder: RunFolder, study: Study) -> Reworded | None:
    versions: dict[str, dict[str, list[str]]] = {}
    for _, line in read_lines(folder.path / BESIDE) if folder.has_beside else ():
        if line.get("must_not_change") and not line.get("demand"):
            parent, recipe = str(line["parent_id"]), versions.setdefault(str(line["recipe"]), {})
            recipe.setdefault(parent, [parent]).append(str(line["item_id"]))
    if not versions:
        return None
    texts, entries = folder.indexed_answers(), folder.manifest()["judges"]
    judges = [verdicts_of(folder, j.name, entries[j.name], texts)
              for j in study.judges if j.name in entries]  # fmt: skip
    whole = replace(study, answers=texts, judges=tuple(judges))
    return Reworded(whole, _runs(folder, texts), versions)
