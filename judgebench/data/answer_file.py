"""Many answers in order, which need not stand in memory: lines of JSON, read as they are asked
for.

A line is an object of an answer's fields that begins with its `item_id` and `group`, so that a
million ids are gone through without reading the texts. Lines in another order are read as well.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple, overload

from judgebench.errors import Problem, SetupError
from judgebench.files import read_errors, read_object, to_line, whole_lines
from judgebench.records import Answer, Part
from judgebench.studies.answers import likeness

_HEAD = re.compile(rb'{"item_id":"([^"\\]*)","group":"([^"\\]*)",')  # without escapes


def write_answers(file: IO[bytes], answers: Iterable[Answer]) -> None:
    """Append the answers to an open file, one a line, as `AnswerFile.open` reads them."""
    file.writelines(answer_line(answer).encode() for answer in answers)


class Facts(NamedTuple):
    """The facts kept of every answer: its content hash as a number, the length of its text, and
    the likeness of question and text."""

    hashes: array[int]
    lengths: array[int]
    likenesses: array[int]


class AnswerFile(Sequence[Answer]):
    """The answers in a file of lines, which must not change. Memory: 32 bytes an answer.

    Any thread may read, several at once. Whoever reads a line that holds no answer gets a
    SetupError that names it.
    """

    def __init__(self, path: Path, file: IO[bytes], starts: array[int]) -> None:
        """`starts` (answers + 1,) says where each line begins, and where the last one ends."""
        self._path = path
        self._file = file  # closed with the last one who reads from it
        self._starts = starts

    @classmethod
    def open(cls, path: Path) -> AnswerFile:
        """The answers in that file; a torn last line is passed over. Raises SetupError where there
        is no such file."""
        if not path.is_file():
            raise SetupError(Problem("no such file", file=str(path)))
        with read_errors(path):
            file = path.open("rb")
        ends = (offset + len(line) for _, offset, line in whole_lines(path))
        return cls(path, file, array("q", (0, *ends)))

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, row: int) -> Answer: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Answer]: ...
    def __getitem__(self, row: int | slice) -> Answer | Sequence[Answer]:
        if isinstance(row, slice):
            return tuple(self[place] for place in range(len(self))[row])
        return self._answer(range(len(self))[row])

    def __iter__(self) -> Iterator[Answer]:
        return map(self._answer, range(len(self)))

    def ids_and_groups(self) -> Iterator[tuple[str, str]]:
        """Every item id with its group, in order, without reading the texts."""
        return map(self._head, range(len(self)))

    def head(self, row: int) -> tuple[str, str, str]:
        """One answer's item id, group and content hash."""
        return (*self._head(row), f"{self._facts.hashes[row]:016x}")

    def keys(self) -> Iterator[tuple[str, str]]:
        """Every item id with its content hash, in order."""
        rows = zip(self.ids_and_groups(), self._facts.hashes, strict=True)
        return ((item_id, f"{number:016x}") for (item_id, _), number in rows)

    def text_lengths(self) -> Iterator[int]:
        """The number of characters of each text, in order."""
        return iter(self._facts.lengths)

    def likenesses(self) -> Iterator[int]:
        """The likeness of each question and text, in order."""
        return iter(self._facts.likenesses)

    @cached_property
    def _facts(self) -> Facts:
        facts = Facts(array("Q"), array("q"), array("Q"))
        for answer in self:
            facts.hashes.append(int(answer.content_hash, 16))
            facts.lengths.append(len(answer.text))
            facts.likenesses.append(likeness(answer))
        return facts

    def _line(self, row: int) -> bytes:
        start = self._starts[row]
        return os.pread(self._file.fileno(), self._starts[row + 1] - start, start)

    def _head(self, row: int) -> tuple[str, str]:
        if found := _HEAD.match(self._line(row)):
            try:
                return found[1].decode(), found[2].decode()
            except UnicodeDecodeError:
                pass
        answer = self._answer(row)
        return answer.item_id, answer.group

    def _answer(self, row: int) -> Answer:
        value = read_object(self._line(row), self._path, row + 1)
        try:
            parts = tuple(Part(**part) for part in value.pop("parts", ()))
            return Answer(**value, parts=parts)
        except TypeError as error:
            raise SetupError(Problem(f"is damaged: {error}", str(self._path), row + 1)) from None


def answer_line(answer: Answer) -> str:
    """The answer's line: first what is read without the texts."""
    fields: dict[str, Any] = {
        "item_id": answer.item_id, "group": answer.group, "system": answer.system,
        "question": answer.question, "text": answer.text, "reference": answer.reference,
        "metadata": dict(answer.metadata),
    }  # fmt: skip
    return to_line({**fields, "parts": [*map(_part, answer.parts)]} if answer.parts else fields)


def _part(part: Part) -> dict[str, str]:
    # As `asdict`, in a fifth of the time.
    return {"role": part.role, "text": part.text, "name": part.name, "item_id": part.item_id}
