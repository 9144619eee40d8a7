"""Many answers in order, which need not stand in memory: lines of JSON, read as they are asked
for.

A line is an object of an answer's fields that begins with its `item_id` and `group`, so that a
million ids are gone through without reading the texts. Lines in another order are read as well.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from json import JSONEncoder, loads
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import IO, Any, NamedTuple, overload

from pydantic_core import from_json

from judgebench.errors import Problem, SetupError
from judgebench.files import is_utf8, read_errors, read_object, to_json
from judgebench.records import Answer, Part
from judgebench.studies.answers import likeness

_BLOCK = 1 << 18  # bytes that are read at once
_HEAD = re.compile(rb'{"item_id":"([^"\\]*)","group":"([^"\\]*)",')  # without escapes
_plain = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def write_answers(file: IO[bytes], answers: Iterable[Answer]) -> None:
    """Append the answers to an open file, one a line, as `AnswerFile.open` reads them."""
    if isinstance(answers, AnswerFile):
        answers.copy_to(file)
    else:
        file.writelines(answer_line(answer)[0] for answer in answers)


class Facts(NamedTuple):
    """The facts kept of every answer: its content hash as a number, the length of its text, and
    the likeness of question and text."""

    hashes: array[int]
    lengths: array[int]
    likenesses: array[int]

    @classmethod
    def of_none(cls) -> Facts:
        return cls(array("Q"), array("q"), array("Q"))

    def add(self, answer: Answer, content_hash: int) -> None:
        """Add those of one more answer."""
        self.hashes.append(content_hash)
        self.lengths.append(len(answer.text))
        self.likenesses.append(likeness(answer))


class AnswerFile(Sequence[Answer]):
    """The answers in a file of lines, which must not change. Memory: 32 bytes an answer.

    Any thread may read, several at once. Whoever reads a line that holds no answer gets a
    SetupError that names it.
    """

    def __init__(
        self,
        file: IO[bytes],
        starts: array[int],
        facts: Facts | None = None,
        first_row: int = 0,
    ) -> None:
        """`starts` (answers + 1,) says where each line begins, and where the last one ends.

        `facts` are known from before, or are read from the answers once they are needed.
        """
        self._file = file  # closed with the last one who reads from it
        self._starts = starts
        self._facts = facts
        self._first_row = first_row

    @classmethod
    def open(cls, path: Path, index: bytes | None = None) -> AnswerFile:
        """The answers in that file; a torn last line is passed over.

        `index` is what `index_bytes()` gave for the same lines. Raises SetupError where there is
        no such file.
        """
        if not path.is_file():
            raise SetupError(Problem("no such file", file=str(path)))
        with read_errors(path):
            file = path.open("rb")
        if index is not None:
            n = (len(index) // 8 - 1) // 4
            edges = pairwise((0, *(8 * (k * n + 1) for k in range(1, 5))))
            starts, *facts = map(_numbers, "qQqQ", (index[first:end] for first, end in edges))
            return cls(file, starts, Facts(*facts))
        starts = array("q", accumulate(map(len, file), initial=0))
        if len(starts) > 1 and os.pread(file.fileno(), 1, starts[-1] - 1) != b"\n":
            starts.pop()
        return cls(file, starts)

    def index_bytes(self) -> bytes:
        """Line beginnings in a copy and the facts: 32 bytes an answer."""
        first = self._starts[0]
        starts = array("q", (start - first for start in self._starts))
        return b"".join(
            _numbers(n.typecode, n.tobytes()).tobytes() for n in (starts, *self._known())
        )

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, row: int) -> Answer: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Answer]: ...
    def __getitem__(self, row: int | slice) -> Answer | Sequence[Answer]:
        if isinstance(row, slice):
            rows = range(len(self))[row]
            if rows.step != 1:
                return tuple(self[row] for row in rows)
            start, stop = rows.start, max(rows.start, rows.stop)
            known = self._facts and Facts(*(fact[start:stop] for fact in self._facts))
            starts = self._starts[start : stop + 1]
            return AnswerFile(self._file, starts, known, self._first_row + start)
        place = range(len(self))[row]
        return self._answer(self._line(place), place)

    def __iter__(self) -> Iterator[Answer]:
        return (self._answer(line, row) for row, line in enumerate(self._lines()))

    def ids_and_groups(self) -> Iterator[tuple[str, str]]:
        """Every item id with its group, in order, without reading the texts."""
        return (self._head(line, row) for row, line in enumerate(self._lines()))

    def head(self, row: int) -> tuple[str, str, str]:
        """One answer's item id, group and content hash."""
        return (*self._head(self._line(row), row), f"{self._known().hashes[row]:016x}")

    def keys(self) -> Iterator[tuple[str, str]]:
        """Every item id with its content hash, in order."""
        hashes = (f"{number:016x}" for number in self._known().hashes)
        return ((item_id, next(hashes)) for item_id, _ in self.ids_and_groups())

    def text_lengths(self) -> Iterator[int]:
        """The number of characters of each text, in order."""
        return iter(self._known().lengths)

    def likenesses(self) -> Iterator[int]:
        """The likeness of each question and text, in order."""
        return iter(self._known().likenesses)

    def is_all_of(self, path: Path) -> bool:
        """True where these are the lines of that very file, every one."""
        with suppress(OSError):
            own = os.fstat(self._file.fileno())
            whole = self._starts[0] == 0 and self._starts[-1] == own.st_size
            return whole and os.path.samestat(own, path.stat())
        return False

    def copy_to(self, file: IO[bytes]) -> None:
        """Append the lines to `file` as they are."""
        for begin in range(self._starts[0], self._starts[-1], _BLOCK):
            file.write(os.pread(self._file.fileno(), min(_BLOCK, self._starts[-1] - begin), begin))

    def _known(self) -> Facts:
        if self._facts is None:
            facts = Facts.of_none()
            for answer in self:
                facts.add(answer, int(answer.content_hash, 16))
            self._facts = facts
        return self._facts

    def _line(self, row: int) -> bytes:
        start = self._starts[row]
        return os.pread(self._file.fileno(), self._starts[row + 1] - start, start)

    def _lines(self) -> Iterator[bytes]:
        """Every line, a block at a time, from wherever other threads are."""
        starts, row = self._starts, 0
        while row < len(self):
            begin = starts[row]
            last = max(row + 1, bisect_right(starts, begin + _BLOCK) - 1)
            block = os.pread(self._file.fileno(), starts[last] - begin, begin)
            for i in range(row, last):
                yield block[starts[i] - begin : starts[i + 1] - begin]
            row = last

    def _head(self, line: bytes, row: int) -> tuple[str, str]:
        if found := _HEAD.match(line):
            try:
                return found[1].decode(), found[2].decode()
            except UnicodeDecodeError:
                pass
        answer = self._answer(line, row)
        return answer.item_id, answer.group

    def _answer(self, line: bytes, row: int) -> Answer:
        try:
            return _from_line(from_json(line, cache_strings="keys"))
        except (ValueError, TypeError):
            path, number = Path(str(self._file.name)), self._first_row + row + 1
            value = read_object(line, path, number)  # reads more, or says what is wrong
        try:
            return _from_line(value)
        except TypeError as error:
            raise SetupError(Problem(f"is damaged: {error}", str(path), number)) from None


def answer_line(answer: Answer) -> tuple[bytes, int]:
    """The answer's line, and its content hash as a number."""
    question, text = _quoted(answer.question), _quoted(answer.text)
    reference = "null" if answer.reference is None else _quoted(answer.reference)
    read = ",".join(f"[{_quoted(p.role)},{_quoted(p.text)}]" for p in answer.parts)
    beside = f",[{read}]" if read else ""
    judged = f"[{question},{text},{reference}{beside}]"  # what `Answer.content_hash` hashes
    digest = hashlib.sha256(judged.encode("utf-8", "surrogatepass")).digest()
    parts = f',"parts":{_plain(list(map(_part, answer.parts)))}' if answer.parts else ""
    line = (
        f'{{"item_id":{_quoted(answer.item_id)},"group":{_quoted(answer.group)},"system":'
        f'{_quoted(answer.system)},"question":{question},"text":{text},"reference":{reference},'
        f'"metadata":{_plain(dict(answer.metadata)) if answer.metadata else "{}"}'
        f"{parts}}}\n"
    )
    if not is_utf8(line):
        line = to_json(loads(line), separators=(",", ":")) + "\n"
    return line.encode(), int.from_bytes(digest[:8], "big")


def _part(part: Part) -> dict[str, str]:
    # As `asdict`, in a fifth of the time.
    return {"role": part.role, "text": part.text, "name": part.name, "item_id": part.item_id}


def _from_line(value: dict[str, Any]) -> Answer:
    """Raises TypeError where it is none."""
    if "parts" not in value:
        return Answer(**value)
    return Answer(**{**value, "parts": tuple(Part(**part) for part in value["parts"])})


def _numbers(code: str, lowest_first: bytes) -> array[int]:
    """Numbers of eight bytes, from or into the order that a file has on every machine."""
    numbers = array(code, lowest_first)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
