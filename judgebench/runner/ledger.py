"""How far a judge is with every answer, in a few bytes an answer."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Answer, Status, Verdict
from judgebench.rubric import Rubric
from judgebench.store.answer_file import keys_of
from judgebench.store.verdict_file import read_heads

Rows = NDArray[np.int64]

_NONE = -1
_BLOCK = 10_000  # lines looked up at once
_CODE = {status: code for code, status in enumerate(Status)}
_FAILED = _CODE[Status.FAILED]


class AnswerIndex:
    """Finds the row of an answer by its id and content hash: 20 bytes an answer.

    It keeps 64 bits of a hash of both. Should two answers share them, another hash is taken, so
    that no answer is ever found in another's place.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._n = len(answers)
        for salt in count():
            self._salt = salt.to_bytes(8, "little")
            keyed, contents = array("Q"), array("Q")
            for item_id, content_hash in keys_of(answers):
                keyed.append(self._hash(item_id, content_hash))
                contents.append(int(content_hash, 16))
            self._contents = contents
            hashes = np.array(keyed, np.uint64)
            order = np.argsort(hashes, kind="stable")
            self._sorted = hashes[order]
            self._view = self._sorted.data
            self._rows = order.astype(np.int32)
            if not (self._sorted[1:] == self._sorted[:-1]).any():
                break

    def __len__(self) -> int:
        return self._n

    def content_hash(self, row: int) -> str:
        """The content hash of the answer in that row."""
        return f"{self._contents[row]:016x}"

    def row(self, verdict: Verdict) -> int | None:
        """The row of the answer that a verdict is of; None where none stands like that."""
        hashed = self._hash(verdict.item_id, verdict.content_hash)
        place = bisect_left(self._view, hashed)  # far quicker for one than numpy's search
        found = place < self._n and self._view[place] == hashed
        return int(self._rows[place]) if found else None

    def rows(self, keys: Sequence[tuple[str, str]]) -> Rows:
        """The row of each item id and content hash, -1 where no answer stands like that."""
        if not self._n:
            return np.full(len(keys), _NONE, np.int64)
        hashed = np.array([self._hash(*key) for key in keys], np.uint64)
        places = np.minimum(self._sorted.searchsorted(hashed), self._n - 1)
        found = self._sorted[places] == hashed
        return np.where(found, self._rows[places], _NONE).astype(np.int64)

    def _hash(self, item_id: str, content_hash: str) -> int:
        key = f"{item_id}\0{content_hash}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(key, digest_size=8, salt=self._salt).digest(), "little")


class Ledger:
    """One judge's latest verdict on each answer: its status and which attempt it was.

    Unreadable verdicts that may be asked for again are kept whole, for their reasons are told to
    the judge; all others are forgotten.
    """

    def __init__(self, index: AnswerIndex, signature: str, reasks: int = 0) -> None:
        self._index = index
        self._signature = signature
        self._reasks = reasks
        self._status = np.full(len(index), _NONE, np.int8)
        self._unread: dict[int, Verdict] = {}

    def note_all(self, verdicts: Iterable[Verdict]) -> int:
        """Note what was written before; how many are of other settings or other answers."""
        return sum(not self.note(verdict) for verdict in verdicts)

    def note_files(self, paths: Sequence[Path]) -> int:
        """As `note_all`, of whole files, of which no more is read than is needed."""
        other = 0
        heads = read_heads(paths)
        while block := list(islice(heads, _BLOCK)):
            ours = [head for head in block if head.signature == self._signature]
            rows = self._index.rows([(head.item_id, head.content_hash) for head in ours]).tolist()
            other += len(block) - len(ours) + rows.count(_NONE)
            for row, head in zip(rows, ours, strict=True):
                if row != _NONE:
                    unread = head.verdict() if head.status is Status.UNPARSED else None
                    self._note(row, head.status, unread)
        return other

    def note(self, verdict: Verdict) -> bool:
        """Whether the verdict is this judge's, as it stands, on an answer as it stands."""
        row = self._index.row(verdict) if verdict.signature == self._signature else None
        if row is None:
            return False
        self._note(row, verdict.status, verdict if verdict.status is Status.UNPARSED else None)
        return True

    def _note(self, row: int, status: Status, unread: Verdict | None) -> None:
        self._status[row] = _CODE[status]
        if unread is not None and unread.attempt < self._reasks:
            self._unread[row] = unread
        else:
            self._unread.pop(row, None)

    def never_ended(self, rows: Rows) -> Rows:
        """Those of `rows` that were never asked, or to which no reply ever came."""
        status = self._status[rows]
        unended: Rows = rows[(status == _NONE) | (status == _FAILED)]
        return unended

    def untouched(self, rows: Rows) -> int:
        """How many of `rows` no verdict says anything of, not even that no reply came."""
        return int((self._status[rows] == _NONE).sum())

    def to_reask(self, rows: Rows) -> list[tuple[int, Verdict]]:
        """Those of `rows` whose last reply could not be read, with it, while reasks are left."""
        if not self._unread:
            return []
        return [(row, self._unread[row]) for row in rows.tolist() if row in self._unread]

    def to_ask(self, rows: Rows, *, again: bool) -> Rows:
        """Those of `rows` to ask for: for the first time, or again after an unreadable reply."""
        if not again:
            return self.never_ended(rows)
        return np.array([row for row, _ in self.to_reask(rows)], np.int64)

    def done(self, rows: Rows) -> int:
        """How many of `rows` have an ending."""
        return len(rows) - len(self.never_ended(rows)) - len(self.to_reask(rows))


def with_rows(
    verdicts: Iterable[Verdict], index: AnswerIndex, signature: str
) -> Iterator[tuple[int, Verdict]]:
    """The verdicts of that signature on the answers as they stand, each with its answer's row."""
    for verdict in verdicts:
        row = index.row(verdict) if verdict.signature == signature else None
        if row is not None:
            yield row, verdict


def label_rows(
    verdicts: Iterable[tuple[int, Verdict]], n: int, rubric: Rubric
) -> dict[str, NDArray[np.int64]]:
    """A judge's label of each of n answers, by metric: its place in the metric, -1 where none is.
    The last verdict of a row counts."""
    found: dict[str, NDArray[Any]] = {m.id: np.full(n, _NONE, np.int16) for m in rubric.metrics}
    for row, verdict in verdicts:
        for metric in rubric.metrics:
            label = verdict.labels.get(metric.id)
            found[metric.id][row] = _NONE if label is None else metric.index(label)
    return {metric: rows.astype(np.int64) for metric, rows in found.items()}


def rows_of_shard(n: int, number: int = 1, of: int = 1) -> Rows:
    """Every `of`-th of n rows, from the `number`-th (from 1) on."""
    return np.arange(number - 1, n, of, dtype=np.int64)


def each(rows: Rows) -> Iterator[int]:
    """The rows as whole numbers, without a list of a million."""
    return map(int, rows)
