"""The part of a run folder that a ranking adds: `proxy/`, enough to rank again offline.

proxy/ranking.json            tasks, ranked instances, evaluators, settings (rewritten whole)
proxy/split-TASK.json         which rows of the source are trained on, tuned on, tested on
proxy/arguments-SYSTEM.jsonl  what each model wrote, and each control case
proxy/evaluators/NAME/        a trained evaluator: weights, tokenizer, manifest
proxy/passages/               embeddings of the corpus
verdicts-NAME.jsonl           what each evaluator decided with each argument, and how surely
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.files import read_object, to_json, write_atomically
from judgebench.store.verdict_file import disk_errors

RANKING = "proxy/ranking.json"


def holds_ranking(run: Path) -> bool:
    """Whether a run folder is one of a ranking."""
    return (run / RANKING).is_file()


def write_ranking(run: Path, content: Mapping[str, Any]) -> None:
    """Replace ranking.json. Raises DiskFailed."""
    _write(run / RANKING, content)


def read_ranking(run: Path) -> dict[str, Any]:
    """What ranking.json holds. Raises SetupError where it is missing or damaged."""
    path = run / RANKING
    if not path.is_file():
        raise SetupError(Problem("is no ranking run: it holds no " + RANKING, file=str(run)))
    return read_object(path.read_bytes(), path)


def write_split(run: Path, task: str, rows: Mapping[str, Any]) -> None:
    """The row indices of each split. Raises DiskFailed."""
    _write(run / "proxy" / f"split-{task}.json", rows)


def evaluator_folder(run: Path, name: str) -> Path:
    """Where a trained evaluator lies."""
    return run / "proxy" / "evaluators" / name


def trained_manifest(folder: Path) -> dict[str, Any]:
    """What the manifest of a trained evaluator says. Raises SetupError where there is none."""
    path = folder / "manifest.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SetupError(Problem(f"cannot be read: {error}", file=str(path))) from None
    return dict(found)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (to_json(content, indent=1) + "\n").encode("utf-8"))
