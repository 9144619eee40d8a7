"""The content of a run folder on judges that learnt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgebench.learning.learnt import LEARNT
from judgebench.runs.folder import RunFolder
from judgebench.runs.open import verdicts_of
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.tuning.judges import FOLDER

Facts = Mapping[str, Mapping[str, Any]]  # by cell


@dataclass(frozen=True)
class Learnt:
    """One judge that learns. `needs` are the judges that it learnt from, `folds` says how its folds
    were made, `facts` what was learnt in each. `otherwise` holds the same judge taught in another
    way, by what the way is called (`in-sample`, `n50`, `without-SYSTEM`, …), with its own facts.
    """

    name: str
    needs: Sequence[str]
    folds: Mapping[str, Any]
    facts: Facts
    otherwise: dict[str, tuple[JudgeVerdicts, Facts]] = field(default_factory=dict)


def read_tuning(folder: RunFolder, study: Study) -> Sequence[Learnt] | None:
    """The judges of a study that learnt; None where there is none."""
    entries = folder.manifest()["judges"]
    kept = {judge.name for judge in study.judges}
    found = {
        name: Learnt(name, e.get("from", ()), e.get("folds", {}), _facts(folder, name, e))
        for name, e in entries.items()
        if name in kept and e["about"].get("judge") == "learnt" and "learn" in e["about"]
    }
    for name, entry in entries.items():
        if entry["kind"] == "tuning" and (one := found.get(entry["of"])):
            judged = verdicts_of(folder, name, entry, study.answers)
            one.otherwise[entry["as"]] = judged, _facts(folder, name, entry)
    return tuple(found.values()) or None


def _facts(folder: RunFolder, name: str, entry: Mapping[str, Any]) -> Facts:
    home = folder.path / FOLDER / name / entry["signature"]
    paths = sorted(home.glob(f"*/{LEARNT}"))
    return {path.parent.name: json.loads(path.read_text()) for path in paths}
