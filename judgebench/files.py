"""Files that are whole at any moment: written atomically, or line by line.

A line that a killed process left torn is dropped when the file is next opened, and reported.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from pydantic_core import from_json
from pydantic_core import to_json as pydantic_json

from judgebench.errors import DiskFailed, Problem, SetupError, raise_any, shorten

# Of a table, by column; raises SetupError.
ReadRows = Callable[[Path], Sequence[Mapping[str, str]]]

_MOST_TIMES, _FREE = 100, 1 << 24  # that a file may unpack to: times its size, and bytes anyway


def write_atomically(path: Path, content: bytes) -> None:
    """The file is the old one or the new one, never half of either."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Translates the system's errors about `path` into DiskFailed."""
    try:
        yield
    except OSError as error:
        raise DiskFailed(
            f"{path} cannot be written: {error.strerror or error}; "
            "all that was written before stays readable"
        ) from error


@contextmanager
def all_or_nothing(folder: Path, paths: Collection[Path]) -> Iterator[None]:
    """Make the folder that files are written into; where anything fails, the files and what was
    made of the folder are gone again. Raises SetupError where a file is there already."""
    there = (str(path) for path in paths if path.exists())
    raise_any([Problem("exists and is not overwritten", path) for path in there])
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        with suppress(OSError):  # another's file is in it
            for one in made:
                one.rmdir()
        raise


def to_line(value: Mapping[str, Any]) -> str:
    """One line of JSONL."""
    try:
        return to_bytes(value).decode() + "\n"
    except ValueError:  # lone surrogates, which UTF-8 cannot hold
        return to_json(value, separators=(",", ":")) + "\n"


def to_bytes(value: Mapping[str, Any]) -> bytes:
    """Compact JSON, several times as fast as the standard library makes it.

    Raises ValueError for lone surrogates, and for what JSON cannot hold.
    """
    return pydantic_json(value, inf_nan_mode="constants")


def to_json(value: Mapping[str, Any], **style: Any) -> str:
    """JSON as people read it. Lone surrogates, which UTF-8 cannot hold, are escaped."""
    text = json.dumps(value, ensure_ascii=False, **style)
    return text if is_utf8(text) else json.dumps(value, **style)


def is_utf8(text: str) -> bool:
    """True where UTF-8 can hold the text: it has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Translates the system's errors about a file of judgebench's own into SetupError."""
    try:
        yield
    except OSError as error:
        raise SetupError(Problem(f"cannot be read: {error.strerror or error}", str(path))) from None


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every whole line; a torn last line is skipped.

    Raises SetupError where there is no such file, and for a line in the middle without a JSON
    object: that is damage, not a torn write.
    """
    if not path.is_file():
        raise SetupError(Problem("no such file", file=str(path)))
    for number, _, line in whole_lines(path):
        yield number, read_object(line, path, number)


def whole_lines(path: Path, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and bytes of every line from the byte `start` on, numbered from there; a torn
    last one is skipped."""
    with read_errors(path), path.open("rb") as file:
        offset = file.seek(start)
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield number, offset, line
            offset += len(line)


def read_object(text: bytes, path: Path, number: int | None = None) -> dict[str, Any]:
    """The JSON object that `text` holds. Raises SetupError where it holds none."""
    try:
        value = from_json(text, cache_strings="keys")  # three times as fast as the standard library
    except ValueError:
        # What it refuses: lone surrogates, depth, other encodings, broken JSON.
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SetupError(Problem(f"is not JSON: {error}", str(path), number)) from None
    if not isinstance(value, dict):
        raise SetupError(Problem("is not a JSON object", str(path), number, found=shorten(value)))
    return value


def open_bytes(path: Path) -> BufferedReader:
    """The file, open for reading. Raises OSError, also for an impossible file name, and for what
    may have no end: devices and pipes."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return path.open("rb")
    except ValueError as error:  # the name holds a NUL
        raise OSError(str(error)) from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError("is a folder, not a file")
    raise OSError("is no regular file, such as a pipe: write its content into a file")


def check_unpacked(unpacked: int, packed: int) -> None:
    """Raise OSError where a packed file holds far more than files do: a few bytes can unpack
    without end."""
    if unpacked > max(_MOST_TIMES * packed, _FREE):
        raise OSError(
            f"unpacks to more than {_MOST_TIMES} times its size; if it holds so much, give it as "
            "plain CSV"
        )


def drop_torn_line(path: Path) -> int:
    """Cut off what follows the last newline, if anything; returns how many bytes that was."""
    if not path.is_file() or not (size := path.stat().st_size):
        return 0
    with path.open("rb+") as file:
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
        file.truncate(end)
    return size - end
