"""Where a report goes: one on fewer answers never replaces one on more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from judgebench.files import disk_errors, write_atomically
from judgebench.results.part import Part
from judgebench.results.write import write_report

_SIZE = "report.json"  # beside the report: on how many answers it is


def write_in_place(
    parts: Sequence[Part], folder: Path, *, name: str, answers: int
) -> tuple[Mapping[str, Path], str]:
    """Write the report on so many answers (`write_report`) into `folder`. Where that holds the
    report of more, it goes into a folder beside it, and a sentence says so.

    Raises DiskFailed.
    """
    with disk_errors(folder):
        place, told = _place(folder, answers)
        return write_report(parts, place, name=name), told


def _place(folder: Path, answers: int) -> tuple[Path, str]:
    """Where the report goes, made and marked with the number, and what is to be said of it."""
    there = _answers_of(folder)
    place, told = folder, ""
    if there > answers:
        named = folder if folder.name not in ("", "..") else folder.resolve()
        place = named.with_name(f"{named.name}-{answers}-answers")
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
