"""Answers read once, however many there are."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from judgebench.records import Answer
from judgebench.stats.arrays import Clusters


class IndexedAnswers(Sequence[Answer]):
    """Answers with what an alignment needs of every one of them, taken in one pass.

    A whole answer is asked for again only where it is shown, so that a sequence that reads its
    answers from a file stays there. `row_of` gives an item's row and `content_hashes` (answers,)
    follow the rows, as numbers. `clusters` numbers the groups as they are met.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = answers
        self.row_of: dict[str, int] = {}
        self.content_hashes = array("Q")
        groups: dict[str, int] = {}
        clusters = array("q")
        for row, answer in enumerate(answers):
            self.row_of[answer.item_id] = row
            self.content_hashes.append(int(answer.content_hash, 16))
            clusters.append(groups.setdefault(answer.group, len(groups)))
        self.clusters = Clusters(np.array(clusters, dtype=np.int64), len(groups))

    def __len__(self) -> int:
        return len(self.content_hashes)

    @overload
    def __getitem__(self, row: int) -> Answer: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Answer]: ...
    def __getitem__(self, row: int | slice) -> Answer | Sequence[Answer]:
        return self._answers[row]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)


def indexed(answers: Sequence[Answer]) -> IndexedAnswers:
    """The answers with their index; as they are where they have one."""
    return answers if isinstance(answers, IndexedAnswers) else IndexedAnswers(answers)
