"""How far a judge is with every answer, in a few bytes an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Status, Verdict
from judgebench.store.verdict_file import Head, read_heads
from judgebench.study.answers import IndexedAnswers

Rows = NDArray[np.int64]

_NONE = -1
_CODE = {status: code for code, status in enumerate(Status)}
_FAILED = _CODE[Status.FAILED]


class Ledger:
    """One judge's latest verdict on each answer: its status and which attempt it was.

    Unreadable verdicts that may be asked for again are kept whole, for the judge is given
    their reasons; all others are forgotten.
    """

    def __init__(self, answers: IndexedAnswers, signature: str, parse_retries: int = 0) -> None:
        self._answers = answers
        self._signature = signature
        self._parse_retries = parse_retries
        self._status = np.full(len(answers), _NONE, np.int8)
        self._unread: dict[int, Verdict] = {}

    def note_all(self, verdicts: Iterable[Verdict]) -> int:
        """Note what was written before; how many are of other settings or other answers."""
        return sum(not self.note(verdict) for verdict in verdicts)

    def note_files(self, paths: Sequence[Path]) -> int:
        """As `note_all`, of whole files, of which no more is read than is needed."""
        other = 0
        for head in read_heads(paths):
            if (row := self._row(head)) < 0:
                other += 1
            else:
                unread = head.verdict() if head.status is Status.UNPARSED else None
                self._note(row, head.status, unread)
        return other

    def note(self, verdict: Verdict) -> bool:
        """Whether the verdict is this judge's, as it stands, on an answer as it stands."""
        if (row := self._row(verdict)) < 0:
            return False
        self._note(row, verdict.status, verdict if verdict.status is Status.UNPARSED else None)
        return True

    def _row(self, verdict: Verdict | Head) -> int:
        if verdict.signature != self._signature:
            return _NONE
        return self._answers.row_of(verdict.item_id, verdict.content_hash)

    def _note(self, row: int, status: Status, unread: Verdict | None) -> None:
        self._status[row] = _CODE[status]
        if unread is not None and unread.attempt < self._parse_retries:
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

    def to_ask_again(self, rows: Rows) -> list[tuple[int, Verdict]]:
        """Those of `rows` whose last reply could not be read, with it, while retries are left."""
        if not self._unread:
            return []
        return [(row, self._unread[row]) for row in rows.tolist() if row in self._unread]

    def to_ask(self, rows: Rows, *, again: bool) -> Rows:
        """Those of `rows` to ask for: for the first time, or again after an unreadable reply."""
        if not again:
            return self.never_ended(rows)
        return np.array([row for row, _ in self.to_ask_again(rows)], np.int64)

    def done(self, rows: Rows) -> int:
        """How many of `rows` have an ending."""
        return len(rows) - len(self.never_ended(rows)) - len(self.to_ask_again(rows))


def rows_of_shard(n: int, number: int = 1, of: int = 1) -> Rows:
    """Every `of`-th of n rows, from the `number`-th (from 1) on."""
    return np.arange(number - 1, n, of, dtype=np.int64)


def each(rows: Rows) -> Iterator[int]:
    """The rows as whole numbers, without a list of a million."""
    return map(int, rows)
