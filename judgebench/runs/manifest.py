"""The manifest of a run: versions, seeds, content hashes, judges and settings."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import judgebench
from judgebench.data.findings import REPEATED
from judgebench.judges.control import ControlJudge
from judgebench.judges.judge import Judge
from judgebench.records import Answer
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.studies.answers import keys_of

_quoted = json.JSONEncoder(ensure_ascii=False).encode
MOST_NOTES = 20  # warnings about the data that a report repeats


def manifest_of(bench: Bench, folder: RunFolder, *, kept: bool = False) -> dict[str, Any]:
    """What run.json holds from the start; juries and calibrations are added once their judges are
    done. `kept`: the answers are those that the folder's manifest tells of."""
    entries = {judge.name: _entry("judge", judge) for judge in (*bench.judges, *bench.others)}
    entries |= {judge.name: _entry("judge", judge) for judge in bench.recorded}
    entries |= {control.name: _entry("control", control) for control in bench.controls}
    for judge in bench.learnt:
        entries[judge.name] = _entry(judge.kind, judge, **judge.more)
    for variant in bench.variants:
        more = {"of": variant.of, "recipe": variant.recipe, "asked": variant.kind}
        entries[variant.judge.name] = _entry(
            "variant", variant.judge, **more, repeat=variant.repeat
        )
    for free in bench.content_free:
        entries[free.judge.name] = _entry("content-free", free.judge, of=free.of)
    before = folder.manifest()
    learnt_notes = [note for judge in bench.learnt for note in judge.notes]
    return {
        "name": bench.config.name,
        "judgebench": judgebench.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "started": before.get("started", now()),
        "seed": bench.config.seed,
        "rubric": {"name": bench.rubric.name, "hash": bench.rubric.content_hash},
        "answers": (kept and before.get("answers")) or _answers(bench.dataset.answers),
        "labels": bench.dataset.n_labels,
        "sources": dict(bench.dataset.sources),
        "settings": bench.config.model_dump(mode="json"),
        "judges": entries,
        "notes": [*bench.config.notes, *_data_notes(bench), *learnt_notes],
        **({"changed": before["changed"]} if before.get("changed") else {}),
        **({bench.extension.wing: bench.extension.about} if bench.extension else {}),
        "hosts": before.get("hosts", []),  # that were contacted, in any run of this folder
        "state": "running",
    }


def _entry(kind: str, judge: Judge | ControlJudge, **more: object) -> dict[str, Any]:
    return {"kind": kind, **more, "signature": judge.signature, "about": judge.describe()}


def _data_notes(bench: Bench) -> Iterator[str]:
    # A study counts its repeated answers itself: it may hold fewer.
    warnings = [warning for warning in bench.dataset.warnings if warning.kind != REPEATED]
    for warning in warnings[:MOST_NOTES]:
        yield f"In the data: {replace(warning, file=Path(warning.file).name)}."
    if len(warnings) > MOST_NOTES:
        yield f"In the data: {len(warnings) - MOST_NOTES} more warnings; see `judgebench check`."


def _answers(answers: Sequence[Answer]) -> dict[str, Any]:
    """How many there are, and `content_hash` of the list of every answer's id and hash, without
    making that list."""
    digest = hashlib.sha256(b"[")
    between = ""
    for key in keys_of(answers):
        item_id, hashed = key
        pair = f'{between}[{_quoted(item_id)},"{hashed}"]'
        digest.update(pair.encode("utf-8", "surrogatepass"))
        between = ","
    digest.update(b"]")
    return {"n": len(answers), "hash": digest.hexdigest()[:16]}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
