"""Files of verdicts: append-only JSONL, one line per verdict, one writer per file.

`verdicts-NAME.jsonl` is a judge's own file. While a cluster shares its work, each worker writes a
part beside it, `verdicts-NAME+PART.jsonl`; `merge_parts` brings them home.

A line ends with `crc`, the CRC-32 of the bytes before that key, which no change of a few bits
leaves right.

A million verdicts as objects would take gigabytes. `FiledVerdicts` keeps a few arrays of what a
judge said of each answer, and reads a verdict again from its line when somebody asks for it.
"""

from __future__ import annotations

import os
import re
import struct
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, fields
from functools import lru_cache
from itertools import compress
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import DiskFailed, Problem, SetupError
from judgebench.files import disk_errors, drop_torn_line, read_object, to_line, whole_lines
from judgebench.records import TRAINED_ON, Lookup, Showing, Status, Usage, Verdict, add_known
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.truth import Labels
from judgebench.studies.verdicts import no_probabilities, shares, weighed

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


def merge_all_parts(folder: Path) -> None:
    """Merge the parts of every judge whose work was shared by workers that have ended."""
    names = (path.stem.removeprefix("verdicts-") for path in folder.glob("verdicts-*+*.jsonl"))
    for name in {name.rpartition("+")[0] for name in names}:
        merge_parts(folder, name)


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


def log_lines(
    paths: Sequence[Path], read: dict[Path, int] | None = None
) -> Iterator[tuple[Path, int | None, int, bytes]]:
    """File, number, offset and bytes of every whole line of these files, in the order written.

    `read` holds how many bytes of each file were read before, and follows: whoever asks again gets
    the lines that were finished since, without their numbers.
    """
    for path in paths:
        begin = read.get(path, 0) if read else 0
        for number, offset, line in whole_lines(path, begin):
            if read is not None:
                read[path] = offset + len(line)
            yield path, None if begin else number, offset, line


def read_verdicts(paths: Sequence[Path], read: dict[Path, int] | None = None) -> Iterator[Verdict]:
    """The verdict on each of the `log_lines`. Raises SetupError for a damaged line."""
    for path, number, _, line in log_lines(paths, read):
        yield read_verdict(line, path, number)


class Head(NamedTuple):
    """The answer that a line judges and its status; the rest of the line is not read."""

    item_id: str
    content_hash: str
    signature: str
    status: Status
    line: bytes
    path: Path
    number: int | None
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
    for path, number, _, line in log_lines(paths):
        if found := _HEAD.match(line) if _is_sound(line) else None:
            item_id, hashed, signature, status, model = map(bytes.decode, found.groups(b""))
            yield Head(item_id, hashed, signature, Status(status), line, path, number, model)
            continue
        try:
            v = read_verdict(line, path, number)
            yield Head(
                v.item_id, v.content_hash, v.signature, v.status, line, path, number, v.model
            )
        except SetupError as error:
            yield error


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


def signed(line: bytes) -> bytes:
    """A line that holds an object, with the digest of its bytes as the last key."""
    return b'%b,"crc":"%08x"}\n' % (line[:-2], crc32(line[:-2]))


def _is_sound(line: bytes) -> bool:
    """True where a line ends with its digest."""
    rest = line.rstrip(b"\r\n")
    return rest[-18:] == b',"crc":"%08x"}' % crc32(rest[:-18])


def damaged_lines(path: Path) -> set[int]:
    """The numbers of the lines of a file of verdicts that are not as they were written."""
    return {number for number, _, line in whole_lines(path) if not _is_sound(line)}


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


class VerdictWriter:
    """Appends verdicts to one file; any thread may write.

    A line is with the operating system when `write` returns, so that killing the process loses
    none. It is on the disk at most MOST_AT_RISK verdicts or LONGEST_AT_RISK_S later: writing every
    single one through would cost more than judging it. `torn_bytes` counts what a killed process
    left of a last line, which is dropped. Raises DiskFailed where the disk is full or read-only;
    the file then ends with its last whole line. So it does where the file is moved or deleted
    meanwhile.
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
        message = f"{self.path} was moved, replaced or deleted during the run"
        self._failed = DiskFailed(message)
        raise self._failed

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
            value[key] = [asdict(record) for record in value[key]]
    if "latency" in value:
        value["latency"] = round(verdict.latency, 6)
    return value


_RECORDS: Mapping[str, Callable[..., Any]] = {"shown": Showing, "transcript": Lookup}
_FIRST = ("item_id", "content_hash", "judge", "signature", "status", "model")  # as in _HEAD
_DEFAULTS = tuple(
    (f.name, f.default) for f in sorted(fields(Verdict), key=lambda f: f.name not in _FIRST)
)
_COUNTS = tuple(f.name for f in fields(Usage))


_STATUSES = tuple(Status)
_TRAINED_ON = len(_STATUSES)  # the code of what a judge skipped because it learnt from it
# A judge uses few of the possible combinations of labels, and those again and again.
_MOST_COMBINATIONS = 4096
_NOWHERE = -1  # the offset of a verdict that is not there


class FiledVerdicts(Mapping[str, Verdict]):
    """The last verdict on each answer as it stands, by item_id, in the order of the answers.

    What was said of an older text, or under another signature, is left out. `usage`, `cost` and
    `models` are those of every line with the signature, not only of the last ones. The files may
    grow meanwhile, and nothing else. Raises SetupError for a line that holds no verdict.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        signature: str,
        answers: IndexedAnswers,
        metrics: Sequence[Metric],
    ) -> None:
        self._paths, self._answers = paths, answers
        self._metrics = [metric.id for metric in metrics]
        # The texts of each metric's labels, numbered as they are met; whether the rubric knows
        # them is asked when they are counted, as an older line may be wrong without harm.
        self._numbers: list[dict[str, int]] = [{} for _ in metrics]
        size = len(answers)
        self._offsets: array[int] | NDArray[Any] = array("q", [_NOWHERE]) * size
        self._file_of: array[int] | NDArray[Any] = array("i", [0]) * size
        self._status_of: array[int] | NDArray[Any] = array("b", [0]) * size
        self._row = struct.Struct(f"={len(metrics)}i")
        self._packed = lru_cache(_MOST_COMBINATIONS)(self._pack)
        # (answers, metrics) of int32
        self._labels: bytearray | NDArray[Any] = bytearray(self._row.size * size)
        self._probabilities = _FiledProbabilities(metrics, size)
        self._scores: FloatArray | None = None  # (answers,), once a verdict has one
        self.usage = Usage()
        self.cost: float | None = None
        self.models = Counter[str]()
        file_of = {path: file for file, path in enumerate(paths)}
        for path, number, offset, line in log_lines(paths):
            assert number is not None
            verdict = read_verdict(line, path, number)
            if verdict.signature == signature:
                self._note(verdict, file_of[path], offset, number)

    def only(self, answers: IndexedAnswers) -> FiledVerdicts:
        """The same for some of the answers, without reading the files again."""
        if answers is self._answers:
            return self
        found, rows = copy(self), self._rows_of(answers)
        found._answers = answers
        found._offsets = np.append(np.frombuffer(self._offsets, np.int64), _NOWHERE)[rows]
        found._file_of = np.frombuffer(self._file_of, np.int32)[rows]
        found._status_of = np.frombuffer(self._status_of, np.int8)[rows]
        found._labels = np.frombuffer(self._labels, np.int32).reshape(-1, len(self._metrics))[rows]
        found._probabilities = self._probabilities.only(rows)
        found._scores = None if self._scores is None else np.append(self._scores, np.nan)[rows]
        return found

    def _note(self, verdict: Verdict, file: int, offset: int, number: int) -> None:
        self.usage += verdict.usage
        self.cost = add_known(self.cost, verdict.cost)
        if verdict.model:
            self.models[str(verdict.model)] += 1
        row = self._answers.row_of(verdict.item_id, verdict.content_hash)
        if row < 0:
            return
        try:
            self._note_labels(row, verdict.labels)
        except (AttributeError, TypeError):
            message = "is no verdict: its labels are no texts by metric"
            raise SetupError(Problem(message, str(self._paths[file]), number)) from None
        try:
            self._probabilities.note(row, verdict.probabilities or {})
        except (AttributeError, TypeError, OverflowError, struct.error):
            message = "is no verdict: its probabilities are no numbers by metric and label"
            raise SetupError(Problem(message, str(self._paths[file]), number)) from None
        self._note_score(row, verdict.score, file, number)
        self._offsets[row], self._file_of[row] = offset, file
        own = verdict.reason == TRAINED_ON
        self._status_of[row] = _TRAINED_ON if own else _STATUSES.index(verdict.status)

    def _note_score(self, row: int, score: Any, file: int, number: int) -> None:
        if score is None and self._scores is None:
            return
        if not isinstance(score, float | int | None):
            message = "is no verdict: its score is no number"
            raise SetupError(Problem(message, str(self._paths[file]), number))
        if self._scores is None:
            self._scores = np.full(len(self._answers), np.nan)
        self._scores[row] = np.nan if score is None else score

    def _note_labels(self, row: int, labels: Mapping[str, str]) -> None:
        place = row * self._row.size
        said = tuple(map(labels.get, self._metrics))
        self._labels[place : place + self._row.size] = self._packed(said)

    def _pack(self, said: tuple[str | None, ...]) -> bytes:
        numbered = zip(said, self._numbers, strict=True)
        return self._row.pack(
            *(-1 if x is None else numbers.setdefault(x, len(numbers)) for x, numbers in numbered)
        )

    def label_indices(self, metric: Metric, answers: IndexedAnswers) -> Labels:
        """The label index of each of these answers, -1 where there is none or the judge abstained.

        Raises SetupError where a label is none of the metric's.
        """
        return self._coded(metric, answers, metric.index)

    def label_sets(self, metric: Metric, answers: IndexedAnswers) -> Labels:
        """Like `studies.verdicts.label_sets`."""
        return self._coded(metric, answers, metric.set_of)

    def _coded(
        self, metric: Metric, answers: IndexedAnswers, code_of: Callable[[str], int]
    ) -> Labels:
        numbers = self._numbers[self._metrics.index(metric.id)]
        labels = np.frombuffer(self._labels, dtype=np.int32).reshape(-1, len(self._metrics))
        of_metric = np.where(self._there, labels[:, self._metrics.index(metric.id)], -1)
        used = np.bincount(of_metric + 1, minlength=len(numbers) + 1)[1:] > 0
        index = np.full(len(numbers) + 1, -1, dtype=np.int64)  # the last: -1 is no label
        for text, number in numbers.items():
            if used[number]:
                index[number] = code_of(text)
        return self._for(answers, index[of_metric], -1)

    def label_probabilities(self, metric: Metric, answers: IndexedAnswers) -> FloatArray:
        """Like `studies.verdicts.label_probabilities`."""
        found = self._probabilities.of(metric.id)
        if found is None:
            return no_probabilities(metric, answers)
        if answers is not self._answers:
            rows = self._rows_of(answers)
            found = np.where(rows[:, None] < 0, np.nan, found[rows])
        return shares(found, metric)

    def scores(self, answers: IndexedAnswers) -> FloatArray:
        """Like `studies.verdicts.scores`."""
        if self._scores is None:
            return np.full(len(answers), np.nan)
        return self._for(answers, self._scores, np.nan)

    def _rows_of(self, answers: IndexedAnswers) -> Labels:
        """The row here of each of these answers, -1 where it has none."""
        found = map(self._answers.row, answers.item_ids())
        return np.fromiter(found, dtype=np.int64, count=len(answers))

    def was_asked(self, answers: IndexedAnswers) -> NDArray[np.bool_]:
        """Like `studies.verdicts.was_asked`."""
        return self._for(answers, self._there, False)

    def trained_on(self, answers: IndexedAnswers) -> NDArray[np.bool_]:
        """Like `studies.verdicts.trained_on`."""
        own = self._there & (np.frombuffer(self._status_of, dtype=np.int8) == _TRAINED_ON)
        return self._for(answers, own, False)

    def _for(self, answers: IndexedAnswers, values: NDArray[Any], missing: float) -> NDArray[Any]:
        """The values (answers here,) of these answers, `missing` for those that are not here."""
        if answers is self._answers:
            return values
        return np.append(values, np.array(missing, values.dtype))[self._rows_of(answers)]

    @property
    def _there(self) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = np.frombuffer(self._offsets, dtype=np.int64) != _NOWHERE
        return there

    def status_counts(self) -> Mapping[Status, int]:
        """The number of verdicts of each status that occurs."""
        found = np.frombuffer(self._status_of, dtype=np.int8)[self._there]
        found = np.where(found == _TRAINED_ON, _STATUSES.index(Status.SKIPPED), found)
        counts = np.bincount(found, minlength=len(_STATUSES))
        return {s: int(n) for s, n in zip(_STATUSES, counts, strict=True) if n}

    def __getitem__(self, item_id: str) -> Verdict:
        row = self._answers.row(item_id)
        if row < 0 or self._offsets[row] == _NOWHERE:
            raise KeyError(item_id)
        path = self._paths[self._file_of[row]]
        with path.open("rb") as file:
            file.seek(self._offsets[row])
            return read_verdict(file.readline(), path)

    def __contains__(self, item_id: object) -> bool:
        row = self._answers.row(item_id) if isinstance(item_id, str) else -1
        return bool(row >= 0 and self._offsets[row] != _NOWHERE)

    def __iter__(self) -> Iterator[str]:
        return compress(self._answers.item_ids(), self._there.tolist())

    def __len__(self) -> int:
        return int(self._there.sum())


class _FiledProbabilities:
    """The probabilities of every metric's options side by side, (answers, columns) of float32, NaN
    where there are none; nothing is kept until a verdict has some."""

    def __init__(self, metrics: Sequence[Metric], size: int) -> None:
        self._size, self._kept, columns = size, bytearray(), 0
        self._columns: dict[str, slice] = {}
        self._read = []
        for metric in metrics:
            options = weighed(metric)
            self._read.append((metric.id, itemgetter(*options), (np.nan,) * len(options)))
            self._columns[metric.id] = slice(columns, columns + len(options))
            columns += len(options)
        self._row = struct.Struct(f"={columns}f")

    def note(self, row: int, given: Mapping[str, Mapping[str, float]]) -> None:
        """Keep the probabilities of a row; a metric is missing unless every option has a weight."""
        if not self._kept:
            if not given:
                return
            self._kept = bytearray(np.full(self._size * self._row.size // 4, np.nan, np.float32))
        said: list[float] = []
        for metric, read, missing in self._read:
            try:
                said += read(given[metric])
            except KeyError:
                said += missing
        self._row.pack_into(self._kept, row * self._row.size, *said)

    def only(self, rows: Labels) -> _FiledProbabilities:
        """Those of some rows; none for -1."""
        found = copy(self)
        if self._kept:
            found._size = len(rows)
            kept = np.frombuffer(self._kept, dtype=np.float32).reshape(self._size, -1)[rows]
            kept[rows < 0] = np.nan
            found._kept = bytearray(kept)
        return found

    def of(self, metric: str) -> NDArray[np.float32] | None:
        """The columns of a metric; None where no verdict had any probability."""
        if not self._kept:
            return None
        kept = np.frombuffer(self._kept, dtype=np.float32).reshape(self._size, -1)
        return kept[:, self._columns[metric]]
