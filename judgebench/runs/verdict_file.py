"""Files of verdicts: append-only JSONL, one line per verdict, one writer per file.

`verdicts-NAME.jsonl` is a judge's own file. While several processes share its work, each writes a
part beside it, `verdicts-NAME+PART.jsonl`; `merge_parts` brings them home.

A line ends with `crc`, the CRC-32 of the bytes before that key, which no change of a few bits
leaves right. Lines of older versions have none.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from judgebench.errors import DiskFailed, Problem, SetupError
from judgebench.files import disk_errors, drop_torn_line, read_object, to_line, whole_lines
from judgebench.records import Lookup, Showing, Status, Usage, Verdict

# What a power cut may take: at most so many verdicts, and none older than so many seconds.
MOST_AT_RISK = 256
LONGEST_AT_RISK_S = 1.0
_GLANCE_S = 0.1  # how often a writer looks whether its file is still where it was


def verdict_path(folder: Path, judge: str, part: str = "") -> Path:
    """A judge's own file, or the file of one part of its work. No judge's name holds a plus."""
    return folder / (f"verdicts-{judge}+{part}.jsonl" if part else f"verdicts-{judge}.jsonl")


def verdict_files(folder: Path, judge: str) -> list[Path]:
    """Every file that holds verdicts of this judge: its own first, then its parts by name."""
    own = verdict_path(folder, judge)
    return [*([own] if own.is_file() else ()), *_parts(own)]


def _parts(own: Path) -> list[Path]:
    begins = f"{own.stem}+"
    return sorted(p for p in own.parent.glob("verdicts-*.jsonl") if p.name.startswith(begins))


def judges_with_parts(folder: Path) -> set[str]:
    """The names of the judges whose work was shared and has not been merged."""
    names = (path.stem.removeprefix("verdicts-") for path in folder.glob("verdicts-*+*.jsonl"))
    return {name.rpartition("+")[0] for name in names}


def merge_parts(folder: Path, judge: str) -> None:
    """Append every part to the judge's own file, in the order of their names, and remove them.

    Only for who holds the folder alone. Killed at any moment, it loses nothing.
    """
    own = verdict_path(folder, judge)
    parts = _parts(own)
    if not parts:
        return
    merged = own.with_name(f".{own.name}.merged")
    with disk_errors(own), merged.open("wb") as whole:
        for path in ([own] if own.is_file() else []) + parts:
            drop_torn_line(path)
            with path.open("rb") as part:
                while block := part.read(1 << 20):
                    whole.write(block)
        whole.flush()
        os.fsync(whole.fileno())
    with disk_errors(own):
        os.replace(merged, own)
        for path in parts:
            path.unlink()


def read_verdicts(paths: Sequence[Path]) -> Iterator[Verdict]:
    """Every verdict of these files, in the order written. Raises SetupError for a damaged line."""
    for path in paths:
        for number, _, line in whole_lines(path):
            yield read_verdict(line, path, number)


class Head(NamedTuple):
    """Which answer a line judges and how that ended; the rest of the line is not looked at."""

    item_id: str
    content_hash: str
    signature: str
    status: Status
    line: bytes
    path: Path
    number: int
    model: str

    def verdict(self) -> Verdict:
        """The whole line. Raises SetupError where it is damaged."""
        return read_verdict(self.line, self.path, self.number)


# How `VerdictWriter` begins a line; one that holds escapes is read whole.
_HEAD = re.compile(
    rb'\{"item_id":"([^"\\]*)","content_hash":"([^"\\]*)","judge":"[^"\\]*",'
    rb'"signature":"([^"\\]*)","status":"(ok|unparsed|refused|failed|skipped)",'
    rb'(?:"model":"([^"\\]*)")?'
)


def read_heads(paths: Sequence[Path]) -> Iterator[Head | SetupError]:
    """The head of every line of these files, in the order written, or what is wrong with the line:
    a million in seconds."""
    for path in paths:
        for number, _, line in whole_lines(path):
            found = _HEAD.match(line) if _is_sound(line) else None
            if found:
                item_id, hashed, signature, status, model = map(bytes.decode, found.groups(b""))
                yield Head(item_id, hashed, signature, Status(status), line, path, number, model)
                continue
            try:
                v = read_verdict(line, path, number)
            except SetupError as error:
                yield error
                continue
            yield Head(
                v.item_id, v.content_hash, v.signature, v.status, line, path, number, v.model
            )


def read_verdict(line: bytes, path: Path, number: int | None = None) -> Verdict:
    """The verdict on a line. Raises SetupError where it holds none, or is not as it was written."""
    value = read_object(line, path, number)
    if "crc" in value and not _is_sound(line):
        raise SetupError(Problem("was changed after it was written", str(path), number))
    value.pop("crc", None)
    return verdict_of(value, path, number)


def signed(line: bytes) -> bytes:
    """A line that holds an object, with the digest of its bytes as the last key."""
    return b'%b,"crc":"%08x"}\n' % (line[:-2], crc32(line[:-2]))


def _is_sound(line: bytes) -> bool:
    """Whether a line ends with its digest."""
    rest = line.rstrip(b"\r\n")
    return rest[-18:] == b',"crc":"%08x"}' % crc32(rest[:-18])


def verdict_of(value: dict[str, Any], path: Path, number: int | None = None) -> Verdict:
    """The verdict that a line's object holds. Raises SetupError where it holds none."""
    try:
        status = Status(value.pop("status"))
        usage = Usage(**value.pop("usage", {}))
        for key, record in _RECORDS.items():
            if key in value:
                value[key] = tuple(record(**one) for one in value[key])
        found = Verdict(**value, status=status, usage=usage)
        # What a verdict is found by; the rest is looked at where it is used.
        if type(found.item_id) is type(found.content_hash) is type(found.signature) is str:
            return found
        raise TypeError("its item_id, content_hash and signature are no texts")
    except (KeyError, TypeError, ValueError) as error:
        raise SetupError(Problem(f"is no verdict: {error}", str(path), number)) from None


class Checked(NamedTuple):
    """The numbers of the lines of a file that are damaged, and how many of the others have no
    digest, so that damage to what they say does not show."""

    damaged: set[int]
    unsigned: int


def check_lines(path: Path) -> Checked:
    """Look at every whole line of a file of verdicts: a million in seconds."""
    damaged, unsigned = set[int](), 0
    for number, _, line in whole_lines(path):
        if not _is_sound(line):
            try:
                read_verdict(line, path, number)
                unsigned += 1
            except SetupError:
                damaged.add(number)
    return Checked(damaged, unsigned)


def set_aside(path: Path, lines: Collection[int]) -> None:
    """Take these lines (from 1) out of a file of verdicts, into `FILE.damaged` beside it.

    Only for who holds the folder alone. Raises DiskFailed.
    """
    rest = path.with_name(f".{path.name}.rest")
    with disk_errors(path), rest.open("wb") as kept:
        with path.with_name(f"{path.name}.damaged").open("ab") as damaged:
            for number, _, line in whole_lines(path):
                (damaged if number in lines else kept).write(line)
        kept.flush()
        os.fsync(kept.fileno())
    with disk_errors(path):
        os.replace(rest, path)


class VerdictTail:
    """Follows the files of a judge while others write to them."""

    def __init__(self, folder: Path, judge: str) -> None:
        self._folder, self._judge = folder, judge
        self._read: dict[Path, int] = {}  # bytes, by file

    def new(self) -> Iterator[Verdict]:
        """Every verdict whose line was finished since it was last asked."""
        for path in verdict_files(self._folder, self._judge):
            for _, offset, line in whole_lines(path, self._read.get(path, 0)):
                self._read[path] = offset + len(line)
                yield read_verdict(line, path)


class VerdictWriter:
    """Appends verdicts to one file; any thread may write.

    A line is with the operating system when `write` returns, so that killing the process loses
    none. It is on the disk at most MOST_AT_RISK verdicts or LONGEST_AT_RISK_S later: writing every
    single one through would cost more than judging it. `torn_bytes` counts what a killed process
    left of a last line, which is dropped. Raises DiskFailed where the disk is full or read-only;
    the file then ends with its last whole line. So it does where the file is moved or deleted
    meanwhile; of one that was deleted, what was written is saved beside the run folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with disk_errors(path):
            self.torn_bytes = drop_torn_line(path)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._size = os.fstat(self._file).st_size
        self._lock = threading.Lock()
        self._at_risk = 0
        self._looked = 0.0
        self._closed = threading.Event()
        self._failed: Exception | None = None
        self._clock: threading.Thread | None = None

    def write(self, verdict: Verdict) -> None:
        """Append one line. Raises DiskFailed; ValueError once the writer is closed."""
        self.write_lines(verdict_line(verdict), 1)

    def write_lines(self, lines: bytes, n: int) -> None:
        """Append n lines, as `verdict_line` makes them. Raises as `write` does."""
        with self._lock, disk_errors(self.path):
            if self._closed.is_set():
                raise ValueError(f"{self.path} is closed")
            if self._failed:
                raise self._failed
            self._append(lines)
            if (now := time.monotonic()) - self._looked > _GLANCE_S:
                self._looked = now
                self._check_place()
            self._at_risk += n
            if self._at_risk >= MOST_AT_RISK:
                self._sync()
        if self._clock is None:
            self._clock = threading.Thread(target=self._keep_in_time, daemon=True)
            self._clock.start()

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

    def _check_place(self) -> None:
        """Raises DiskFailed where the file is no longer what its path names."""
        opened = os.fstat(self._file)
        with suppress(OSError):
            if os.path.samestat(opened, self.path.stat()):
                return
        if opened.st_nlink:
            message = f"{self.path} was moved or replaced during the run"
            with suppress(OSError):  # where the system tells it
                message += f"; what was written is in {os.readlink(f'/proc/self/fd/{self._file}')}"
        else:
            saved = self._saved()
            message = (
                f"{self.path} was deleted during the run; what was written is in {saved}: to keep "
                f"it, move it to {self.path} and rerun"
            )
        self._failed = DiskFailed(message)
        raise self._failed

    def _saved(self) -> Path:
        """The file anew, beside the nearest folder that is gone. Raises OSError."""
        gone = next(p for p in (self.path, *self.path.parents) if p.parent.is_dir())
        to = gone.with_name("-".join([*gone.parts[-1:], *self.path.relative_to(gone).parts]))
        with to.open("ab") as file:
            for begin in range(0, self._size, 1 << 20):
                file.write(os.pread(self._file, 1 << 20, begin))
        return to

    def _sync(self) -> None:
        os.fsync(self._file)
        self._at_risk = 0

    def _keep_in_time(self) -> None:
        while not self._closed.wait(LONGEST_AT_RISK_S / 2):
            with self._lock:
                if self._at_risk and not self._closed.is_set():
                    try:
                        self._sync()
                    except OSError as error:  # told by the next write
                        self._failed = error

    def close(self) -> None:
        """Write through and close; further writes raise ValueError. May be called twice."""
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            with disk_errors(self.path):
                try:
                    os.fsync(self._file)
                    if self._failed is None:
                        self._check_place()
                finally:
                    os.close(self._file)

    def __enter__(self) -> VerdictWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def verdict_line(verdict: Verdict) -> bytes:
    """The verdict as a line of its file."""
    return signed(to_line(plain_verdict(verdict)).encode("utf-8"))


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict without the fields that hold their default; a cost of 0 is not an unknown one."""
    value: dict[str, Any] = {}
    for name, default in _DEFAULTS:
        found = getattr(verdict, name)
        if found != default:
            value[name] = found
    if "usage" in value:
        counts = ((name, getattr(verdict.usage, name)) for name in _COUNTS)
        value["usage"] = {name: count for name, count in counts if count is not None}
    for key in _RECORDS:
        if key in value:
            told = [asdict(one).items() for one in value[key]]
            value[key] = [{k: v for k, v in one if (k, v) != ("lengths", ())} for one in told]
    if "latency" in value:
        value["latency"] = round(verdict.latency, 6)
    return value


_RECORDS: Mapping[str, Callable[..., Any]] = {"shown": Showing, "transcript": Lookup}
_FIRST = ("item_id", "content_hash", "judge", "signature", "status", "model")  # as in _HEAD
_DEFAULTS = tuple(
    (f.name, f.default) for f in sorted(fields(Verdict), key=lambda f: f.name not in _FIRST)
)
_COUNTS = tuple(f.name for f in fields(Usage))
