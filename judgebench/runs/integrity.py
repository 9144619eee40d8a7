"""Whether the files of a run folder are those that its run wrote.

run.json notes under `files` how many lines each has and the SHA-256 of its bytes, and under `seal`
the SHA-256 of itself. Files that a run under way writes to are not among them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from judgebench.errors import Problem
from judgebench.files import to_json

Noted = Mapping[str, Mapping[str, Any]]  # lines and SHA-256, by the file's path in the folder

_BLOCK = 1 << 20
_SEAL = re.compile(rb'\n  "seal": "([0-9a-f]*)"')
_LINES = {"answers.jsonl": "answers", "labels.jsonl": "labels"}


def noted(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What run.json says of those of these files that are there. Raises OSError."""
    return {name: _digest(folder / name) for name in names if (folder / name).is_file()}


def sealed(manifest: Mapping[str, Any]) -> bytes:
    """The text of run.json, which no change of a byte leaves sealed."""
    text = to_json({**manifest, "seal": ""}, indent=2, sort_keys=True) + "\n"
    found = text.encode("utf-8")
    return _SEAL.sub(b'\n  "seal": "%s"' % _sum_of(found), found, count=1)


def is_sealed(content: bytes) -> bool | None:
    """Whether the text of a run.json is as it was written; None where it has no seal."""
    found = _SEAL.search(content)
    if found is None:
        return None
    return _sum_of(_SEAL.sub(b'\n  "seal": ""', content, count=1)) == found[1]


def damage(folder: Path, known: Noted, others: Iterable[str] = ()) -> Iterator[Problem]:
    """What is wrong with each of the files that are known, and each of the `others` that is there
    and is not among them."""
    for name in sorted(known):
        if message := _wrong(folder / name, known[name], lines_of(name)):
            yield Problem(message, str(folder / name))
    for name in sorted(set(others) - known.keys()):
        if (folder / name).exists():
            yield Problem("was put here after the run", str(folder / name))


def lines_of(name: str) -> str:
    """What the lines of a file hold: `labels`."""
    return _LINES.get(name, "verdicts" if name.startswith("verdicts-") else "lines")


def _wrong(path: Path, known: Mapping[str, Any], lines: str) -> str:
    """Why a file is not the one that is known; empty where it is."""
    wrote = f"the run wrote {known['lines']:,} {lines}"
    try:
        if not path.exists():
            return f"is missing; {wrote}"
        if not path.is_file():
            return f"is no file; {wrote}"
        found = _digest(path)
    except OSError as error:
        return f"cannot be read ({error.strerror}); {wrote}"
    if found == known:
        return ""
    if found["lines"] < known["lines"]:
        return f"holds {found['lines']:,} of {known['lines']:,} {lines}"
    return f"was changed after the run; {wrote}, it holds {found['lines']:,}"


def _digest(path: Path) -> dict[str, Any]:
    digest, lines = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            lines += block.count(b"\n")
    return {"lines": lines, "sha256": digest.hexdigest()}


def _sum_of(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
