"""Where a report goes: one on fewer answers never replaces one on more."""

from __future__ import annotations

import json
from pathlib import Path

from judgebench.files import write_atomically

_SIZE = "report.json"  # beside the report: on how many answers it is


def place_for(folder: Path, answers: int) -> tuple[Path, str]:
    """`folder`, made and marked as the place of a report on so many answers. Where it holds the
    report of more, a folder beside it, and a sentence that says so."""
    there = _answers_of(folder)
    place, told = folder, ""
    if there > answers:
        place = folder.with_name(f"{folder.absolute().name}-{answers}-answers")
        told = (
            f"{folder} holds the report of {there:,} answers and was left as it is: this one, of "
            f"{answers:,}, is in {place}"
        )
    place.mkdir(parents=True, exist_ok=True)
    write_atomically(place / _SIZE, json.dumps({"answers": answers}).encode())
    return place, told


def _answers_of(folder: Path) -> int:
    """On how many answers the report in that folder is; 0 where there is none that says."""
    try:
        found = json.loads((folder / _SIZE).read_bytes())["answers"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return found if isinstance(found, int) else 0
