"""Which answers a judge judges, and which of them it is shown side by side."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from judgebench.judges.judge import Judge, Task
from judgebench.judges.llm import LLMJudge
from judgebench.records import Answer, Verdict, content_hash
from judgebench.studies.answers import IndexedAnswers

Rows = NDArray[np.int64]


class Bundles:
    """The `rows` that a judge judges, those of a bundle beside each other: what is shown in one
    request. Most judges are shown one answer at a time, and judge all. `numbers` (answers,) are
    those of the bundles.

    Bundles are made of the answers `among`, all of the data, where `answers` are others: some of
    the same, asked in another way, or altered ones. An altered answer (`parents`: the id of what it
    was made of) stands in its parent's place, and that bundle is asked about it alone.
    """

    def __init__(
        self, judge: Judge, answers: IndexedAnswers,
        among: IndexedAnswers | None = None, parents: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.answers = answers
        self._among, self.parents = among or answers, parents or {}
        self._bundles: list[list[int]] = []  # rows of `_among`, in the order shown
        self._of: dict[int, int] = {}  # row of `_among` -> its bundle
        # The bundle last asked for: answers may be read from a file.
        self._held = -1, tuple[Answer, ...]()
        self.rows = self.numbers = np.arange(len(answers), dtype=np.int64)
        if cells := getattr(judge, "cells", None):
            self.numbers = cells(answers, self.parents)
            order = np.argsort(self.numbers, kind="stable")
            self.rows = order[self.numbers[order] >= 0]
        if not isinstance(judge, LLMJudge):
            return
        if judge.of_some:
            self.rows = self.rows[[answer.kind == judge.kind for answer in answers]]
        if judge.bundled:
            self._bundles = [*self._made(judge)]
            self._of = {row: n for n, rows in enumerate(self._bundles) for row in rows}
            numbers = map(self._number, range(len(answers)))
            self.numbers = np.fromiter(numbers, np.int64, len(answers))
            self.rows = self.rows[np.argsort(self.numbers[self.rows], kind="stable")]

    def _made(self, judge: LLMJudge) -> Iterator[list[int]]:
        """Lists of at most `list` answers, as equal in size as can be, drawn and put in order by
        seed; or all criteria of an answer, as they come."""
        groups: dict[Hashable, list[int]] = {}
        for row, answer in enumerate(self._among):
            if answer.kind == judge.kind and answer.item_id not in self.parents:
                groups.setdefault(judge.together(answer), []).append(row)
        most, seed = judge.config.list, judge.config.seed or 0
        if most is None:
            yield from groups.values()
            return

        def drawn(rows: Sequence[int], what: str) -> list[int]:
            ids = {row: self._among[row].item_id for row in rows}
            return sorted(rows, key=lambda row: content_hash([seed, what, ids[row]]))

        for rows in groups.values():
            for some in np.array_split(drawn(rows, "list"), -(-len(rows) // most)):
                yield drawn(some.tolist(), "place")

    def _origin(self, answer: Answer) -> int:
        return self._among.row(self.parents.get(answer.item_id, answer.item_id))

    def _number(self, row: int) -> int:
        answer, alone = self.answers[row], len(self._bundles) + row
        if answer.item_id in self.parents:
            return alone
        return self._of.get(self._origin(answer), alone)

    def task(self, row: int, previous: Verdict | None = None) -> Task:
        """The answer of that row, to be judged, or judged again after an unreadable reply."""
        answer, bundle = self.answers[row], tuple[Answer, ...]()
        if self._bundles and (origin := self._origin(answer)) in self._of:
            number = self._of[origin]
            rows = self._bundles[number]
            if self._held[0] != number:
                self._held = number, tuple(self._among[other] for other in rows)
            place = rows.index(origin)
            bundle = (*self._held[1][:place], answer, *self._held[1][place + 1 :])
        return Task(answer, previous, self.answers.content_hash(row), bundle)

    def shard(self, number: int, of: int) -> Rows:
        """The rows of every `of`-th bundle from the `number`-th (from 1) on."""
        mine: Rows = self.rows[self.numbers[self.rows] % of == number - 1]
        return mine

    def firsts(self, rows: Rows) -> Rows:
        """One of the rows of each bundle that `rows` are of, in the order of the bundles."""
        found: Rows = rows[np.unique(self.numbers[rows], return_index=True)[1]]
        return found

    def cut(self, rows: Rows, n: int) -> list[Rows]:
        """Rows as they stand here in at most `n` pieces that cut no bundle."""
        begins = np.flatnonzero(np.diff(self.numbers[rows], prepend=-1))
        pieces = [piece for piece in np.array_split(begins, n) if len(piece)]
        return np.split(rows, [piece[0] for piece in pieces[1:]])
