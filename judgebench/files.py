"""Files that are whole at any moment: written atomically, or line by line.

A line that a killed process left torn is dropped when the file is next opened, and told.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError


def write_atomically(path: Path, content: bytes) -> None:
    """The file is the old one or the new one, never half of either."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def to_line(value: Mapping[str, Any]) -> str:
    """One line of JSONL."""
    return to_json(value, separators=(",", ":")) + "\n"


def to_json(value: Mapping[str, Any], **style: Any) -> str:
    """JSON as people read it. Lone surrogates, which UTF-8 cannot hold, are escaped."""
    text = json.dumps(value, ensure_ascii=False, **style)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, **style)
    return text


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every whole line; a torn last line is passed over.

    Raises SetupError where there is no such file, and for a line in the middle that holds no JSON
    object: that is damage, not a torn write.
    """
    if not path.is_file():
        raise SetupError(Problem("no such file", file=str(path)))
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield number, read_object(line, path, number)


def read_object(text: bytes, path: Path, number: int | None = None) -> dict[str, Any]:
    """The JSON object that `text` holds. Raises SetupError where it holds none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(Problem(f"is not JSON: {error}", str(path), number)) from None
    if not isinstance(value, dict):
        raise SetupError(Problem("is no JSON object", str(path), number, found=repr(value)[:80]))
    return value


def drop_torn_line(path: Path) -> int:
    """Cut what stands after the last newline, if anything; returns how many bytes that was."""
    if not path.is_file():
        return 0
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        file.truncate(end)
    return size - end
