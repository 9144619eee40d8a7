"""Answers as they are read: in memory while there are few, then in a file."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Sequence
from typing import IO

from judgebench.errors import DiskFailed
from judgebench.records import Answer
from judgebench.store.answer_file import AnswerFile, answer_line

MOST_IN_MEMORY = 4 << 20  # bytes of lines


class AnswerSpool:
    """Takes answers one by one: into memory while there are few, then into a temporary file.

    The file has no name, so that nothing of it remains however the process ends. It is
    where the system keeps such files; the variable TMPDIR names another folder. Raises DiskFailed
    where it cannot be written.
    """

    def __init__(self, most_in_memory: int | None = None) -> None:
        self._most_in_memory = MOST_IN_MEMORY if most_in_memory is None else most_in_memory
        self._few: list[Answer] = []
        self._file: IO[bytes] | None = None
        self._starts = array("q", [0])
        self._hashes, self._lengths = array("Q"), array("q")
        self._flushed = 0

    def __len__(self) -> int:
        return len(self._hashes)

    def __getitem__(self, row: int) -> Answer:
        return self._few[row] if self._file is None else self._filed(row)[row]

    def item_id(self, row: int) -> str:
        """The item id of that row."""
        return self._few[row].item_id if self._file is None else self._filed(row).head(row)[0]

    def add(self, answer: Answer) -> None:
        """Keep one more."""
        line, hashed = answer_line(answer)
        self._starts.append(self._starts[-1] + len(line))
        self._hashes.append(hashed)
        self._lengths.append(len(answer.text))
        if self._file is not None:
            self._write(self._file, line)
        else:
            self._few.append(answer)
            if self._starts[-1] > self._most_in_memory:
                self._spill()

    def done(self) -> Sequence[Answer]:
        """The answers: a tuple of a few, an AnswerFile of many. None may be added afterwards."""
        return tuple(self._few) if self._file is None else self._filed(len(self) - 1)

    def _spill(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(prefix="judgebench-")  # noqa: SIM115
        except OSError as error:
            raise _disk_failed(error) from error
        for answer in self._few:
            self._write(self._file, answer_line(answer)[0])
        self._few.clear()

    def _filed(self, row: int) -> AnswerFile:
        """The file, once it holds everything up to this row."""
        assert self._file is not None
        if row >= self._flushed:
            try:
                self._file.flush()
            except OSError as error:
                raise _disk_failed(error) from error
            self._flushed = len(self)
        return AnswerFile(self._file, self._starts, (self._hashes, self._lengths))

    def _write(self, file: IO[bytes], line: bytes) -> None:
        try:
            file.write(line)
        except OSError as error:
            raise _disk_failed(error) from error


def _disk_failed(error: OSError) -> DiskFailed:
    return DiskFailed(
        f"the temporary file of the answers, in {tempfile.gettempdir()}, cannot be written: "
        f"{error.strerror or error}; set TMPDIR to a folder with room"
    )
