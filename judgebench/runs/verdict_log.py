"""Files of verdicts: append-only JSONL, one line per verdict, one file and one writer per judge.

A line ends with `crc`, the CRC-32 of the bytes before that key, which no change of a few bits
leaves right.

`FiledVerdicts` keeps arrays of what a judge said of each answer, and reads a verdict again from its
line when somebody asks for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from itertools import compress
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import DiskFailed, Problem, SetupError
from judgebench.files import disk_errors, drop_torn_line, read_object, to_line, whole_lines
from judgebench.records import Lookup, Showing, Status, Usage, Verdict, add_known
from judgebench.rubric import Metric
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.verdicts import CodedVerdicts

Rows = NDArray[np.int64]

# What a power cut may take: at most so many verdicts, which came within so many seconds.
MOST_AT_RISK = 256
LONGEST_AT_RISK_S = 0.5


def verdict_path(folder: Path, judge: str) -> Path:
    """The file of a judge's verdicts."""
    return folder / f"verdicts-{judge}.jsonl"


def read_verdicts(path: Path) -> Iterator[Verdict]:
    """The verdict on every whole line, in the order written; none where there is no file. Raises
    SetupError for a damaged line."""
    if path.is_file():
        yield from (read_verdict(line, path, number) for number, _, line in whole_lines(path))


def read_verdict(line: bytes, path: Path, number: int | None = None) -> Verdict:
    """The verdict on a line. Raises SetupError where it holds none, or is not as it was written."""
    value = read_object(line, path, number)
    if not _is_sound(line):
        raise SetupError(Problem("was changed after it was written", str(path), number))
    value.pop("crc")
    try:
        status = Status(value.pop("status"))
        usage = Usage(**value.pop("usage", {}))
        for key, record in _RECORDS.items():
            if key in value:
                value[key] = tuple(record(**one) for one in value[key])
        return Verdict(**value, status=status, usage=usage)
    except (KeyError, TypeError, ValueError) as error:
        raise SetupError(Problem(f"is no verdict: {error}", str(path), number)) from None


def _is_sound(line: bytes) -> bool:
    """True where a line ends with its digest."""
    rest = line.rstrip(b"\r\n")
    return rest[-18:] == b',"crc":"%08x"}' % crc32(rest[:-18])


def set_damaged_aside(path: Path) -> str:
    """Move the lines of a file of verdicts that are not as they were written into `FILE.damaged`
    beside it; a sentence that says so, empty where there are none.

    Only for who holds the folder alone. Raises DiskFailed.
    """
    lines = (
        [line for _, _, line in whole_lines(path) if not _is_sound(line)] if path.is_file() else []
    )
    if not lines:
        return ""
    rest = path.with_name(f".{path.name}.rest")
    with disk_errors(path), rest.open("wb") as sound:
        with path.with_name(f"{path.name}.damaged").open("ab") as damaged:
            damaged.writelines(lines)
        sound.writelines(line for _, _, line in whole_lines(path) if _is_sound(line))
        sound.flush()
        os.fsync(sound.fileno())
    with disk_errors(path):
        os.replace(rest, path)
    n = f"{len(lines):,} damaged {'line is' if len(lines) == 1 else 'lines are'}"
    return f"{path.name}: {n} now in {path.name}.damaged; what it judged is asked again"


class VerdictWriter:
    """Appends verdicts to one file; any thread may write.

    A line is with the operating system when `write` returns, so that killing the process loses
    none. It is on the disk once MOST_AT_RISK verdicts or LONGEST_AT_RISK_S have passed and another
    is written: writing every single one through would cost more than judging it. `torn_bytes`
    counts what a killed process left of a last line, which is dropped. Raises DiskFailed where the
    disk is full or read-only; the file then ends with its last whole line. So it does, at the next
    write to the disk, where the file was moved or deleted meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with disk_errors(path):
            self.torn_bytes = drop_torn_line(path)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._size = os.fstat(self._file).st_size
        self._lock = threading.Lock()
        self._at_risk, self._synced = 0, 0.0
        self._is_closed = False

    def write(self, verdict: Verdict) -> int:
        """Append one line; where it begins. Raises DiskFailed; ValueError once the writer is
        closed."""
        line = verdict_line(verdict)
        with self._lock, disk_errors(self.path):
            if self._is_closed:
                raise ValueError(f"{self.path} is closed")
            offset = self._size
            self._append(line)
            self._at_risk += 1
            is_late = time.monotonic() - self._synced > LONGEST_AT_RISK_S
            if is_late or self._at_risk >= MOST_AT_RISK:
                self._sync()
        return offset

    def _append(self, line: bytes) -> None:
        try:
            written = os.write(self._file, line)
            if written < len(line):  # a disk that is nearly full takes a part; then it says why
                os.write(self._file, line[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(line)

    def _sync(self) -> None:
        """Write through. Raises DiskFailed where the file is no longer what its path names."""
        os.fsync(self._file)
        self._at_risk, self._synced = 0, time.monotonic()
        opened = os.fstat(self._file)
        with suppress(OSError):
            if os.path.samestat(opened, self.path.stat()):
                return
        raise DiskFailed(f"{self.path} was moved, replaced or deleted during the run")

    def close(self) -> None:
        """Write through and close; further writes raise ValueError. May be called twice."""
        with self._lock, disk_errors(self.path):
            if not self._is_closed:
                self._is_closed = True
                try:
                    self._sync()
                finally:
                    os.close(self._file)

    def __enter__(self) -> VerdictWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def verdict_line(verdict: Verdict) -> bytes:
    """The verdict as a line of its file, without the fields that hold their default: a cost of 0 is
    not an unknown one."""
    value = {name: x for name, default in _DEFAULTS if (x := getattr(verdict, name)) != default}
    if "usage" in value:
        value["usage"] = {k: n for k in _COUNTS if (n := getattr(verdict.usage, k)) is not None}
    for key in value.keys() & _RECORDS:
        value[key] = [asdict(record) for record in value[key]]
    return signed(to_line(value).encode("utf-8"))


def signed(line: bytes) -> bytes:
    """A line that holds an object, with the digest of its bytes as the last key."""
    return b'%b,"crc":"%08x"}\n' % (line[:-2], crc32(line[:-2]))


_RECORDS: Mapping[str, Callable[..., Any]] = {"shown": Showing, "transcript": Lookup}
_DEFAULTS = tuple((f.name, f.default) for f in fields(Verdict))
_COUNTS = tuple(f.name for f in fields(Usage))


class FiledVerdicts(CodedVerdicts, Mapping[str, Verdict]):
    """The last verdict on each answer as it stands, by item_id, in the order of the answers.

    What was said of an older text, or under another signature, is left out and counted in
    `n_unused`. `usage`, `cost` and `models` are those of every line with the signature, not only of
    the last ones. The file may grow meanwhile, and nothing else. Labels and probabilities are those
    of the `metrics`. Raises SetupError for a line that holds no verdict.
    """

    def __init__(
        self, path: Path, signature: str, answers: IndexedAnswers, metrics: Sequence[Metric] = ()
    ) -> None:
        super().__init__(answers, metrics)
        self._path, self._signature = path, signature
        self._offsets = np.full(len(answers), -1)  # of the lines
        self.usage = Usage()
        self.cost: float | None = None
        self.models = Counter[str]()
        self.n_unused = 0
        for number, offset, line in whole_lines(path) if path.is_file() else ():
            verdict = read_verdict(line, path, number)
            try:
                self.note(verdict, offset)
            except (AttributeError, TypeError, ValueError):
                message = "is no verdict: labels are no texts, or probabilities or score no numbers"
                raise SetupError(Problem(message, str(path), number)) from None

    def note(self, verdict: Verdict, offset: int) -> None:
        """Note a verdict whose line begins there."""
        if verdict.signature != self._signature:
            self.n_unused += 1
            return
        self.usage += verdict.usage
        self.cost = add_known(self.cost, verdict.cost)
        if verdict.model:
            self.models[verdict.model] += 1
        row = self._answers.row_of(verdict.item_id, verdict.content_hash)
        if row < 0:
            self.n_unused += 1
            return
        self._offsets[row] = offset
        self.put(row, verdict)

    def never_ended(self, rows: Rows) -> Rows:
        """Those of `rows` that were never asked, or to which no reply ever came."""
        return np.asarray(rows[self._is(Status.FAILED)[rows] | ~self._known[rows]])

    def to_ask_again(self, rows: Rows, parse_retries: int) -> list[tuple[int, Verdict]]:
        """Those of `rows` whose last reply could not be read, with it, while retries are left."""
        unread = rows[self._is(Status.UNPARSED)[rows]]
        verdicts = ((row, self._read(row)) for row in unread.tolist())
        return [(row, last) for row, last in verdicts if last.attempt < parse_retries]

    def __getitem__(self, item_id: str) -> Verdict:
        row = self._answers.row(item_id)
        if row < 0 or not self._known[row]:
            raise KeyError(item_id)
        return self._read(row)

    def _read(self, row: int) -> Verdict:
        with self._path.open("rb") as file:
            file.seek(self._offsets[row])
            return read_verdict(file.readline(), self._path)

    def __iter__(self) -> Iterator[str]:
        return compress(self._answers.item_ids(), self._known)

    def __len__(self) -> int:
        return int(self._known.sum())
