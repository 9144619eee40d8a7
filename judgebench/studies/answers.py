"""Answers by row and by item id, and those that repeat the question and text of another under a
different id.

People and judges say of a repeat what they say of the first: it adds next to nothing, and to count
it as independent makes intervals too narrow. So the groups of both are one cluster.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import compress
from typing import overload

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, AnswerKind
from judgebench.rubric import Metric, Rubric, normalise
from judgebench.stats.arrays import Clusters, IntArray

# Bytes that a text without a question must have to be known by them: less where nothing else is
# known of the item. Stock replies recur in many groups and would make them all one.
LEAST_TEXT, LEAST_IN_GROUP = 20, 200
_LOWER = bytes(range(256)).lower()
_SPACES = b" \t\n\r\v\f\x1c\x1d\x1e\x1f"
_OUTER = b"\"'`*.[]"  # what `normalise` strips


def likeness(answer: Answer) -> int:
    """A number of 64 bits that answers share where question and text are the same, but for white
    space and what `normalise` removes; 0 where they say too little to tell.

    That is so of an item without a text, of which only labels may be known, of a short text
    without a question, such as "yes", and of a criterion, whose text others share.
    """
    if answer.criterion:  # the same text, checked by another criterion
        return 0
    said, asked = _bare(answer.text), _bare(answer.question)
    if not asked:
        needed = LEAST_TEXT if answer.group == answer.item_id else LEAST_IN_GROUP
        if len(said) < needed:
            return 0
    elif not said:
        return 0
    return int.from_bytes(blake2b(b"%b\0%b" % (asked, said), digest_size=8).digest(), "big")


def _bare(text: str) -> bytes:
    """The text without white space, case and the like; of ASCII without the slow `normalise`."""
    plain = text if text.isascii() else normalise(text)
    return plain.encode("utf-8", "surrogatepass").translate(_LOWER, _SPACES).strip(_OUTER)


@dataclass(frozen=True)
class Repeats:
    """The rows of answers that repeat an earlier one, ascending, and the first of each."""

    rows: IntArray
    firsts: IntArray

    def note(self) -> str:
        """A sentence for a report; empty where nothing is repeated."""
        if not (n := len(self.rows)):
            return ""
        return (
            f"{n:,} answer{' repeats' if n == 1 else 's repeat'} the question and text of another "
            "under a different id; identical answers count as one group"
        )

    def joined_groups(self, groups: Iterable[str]) -> dict[str, str]:
        """Of the answers' `groups`, those that are one with another, each with the least name
        among them: the connected components of groups and repeats."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        rows = np.union1d(self.rows, self.firsts)
        needed = np.bincount(rows).astype(np.bool_)
        names, codes = np.unique([*compress(groups, needed)], return_inverse=True)
        pairs = codes[np.searchsorted(rows, (self.rows, self.firsts))]
        graph = coo_array((np.ones(len(self.rows)), pairs), shape=(len(names),) * 2)
        component = connected_components(graph, directed=False)[1]
        _, first = np.unique(component, return_index=True)  # the names are sorted
        by_name = zip(names.tolist(), names[first][component].tolist(), strict=True)
        return {group: least for group, least in by_name if group != least}


def repeats_of(likenesses: Iterable[int], n: int) -> Repeats:
    """The repeats among answers with these likenesses (n,)."""
    keys = np.fromiter(likenesses, dtype=np.uint64, count=n)
    ordered = np.sort(keys)
    again = ordered[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)]
    rows = np.flatnonzero(np.isin(keys, again))  # few or none: the rest takes memory
    _, first, which = np.unique(keys[rows], return_index=True, return_inverse=True)
    firsts = rows[first[which]]
    is_repeat = firsts != rows
    return Repeats(rows[is_repeat], firsts[is_repeat])


def ids_and_groups(answers: Sequence[Answer]) -> Iterator[tuple[str, str]]:
    """The item id and the group of every answer, in order."""
    return ((answer.item_id, answer.group) for answer in answers)


def head_of(answers: Sequence[Answer], row: int) -> tuple[str, str, str]:
    """The item id, the group and the content hash of one answer."""
    answer = answers[row]
    return answer.item_id, answer.group, answer.content_hash


def text_lengths(answers: Sequence[Answer]) -> Iterator[int]:
    """The length of each answer's text in characters, in order."""
    return (len(answer.text) for answer in answers)


def likenesses(answers: Sequence[Answer]) -> Iterator[int]:
    """The likeness of each question and text, in order."""
    return map(likeness, answers)


def of_kind(answers: Sequence[Answer], metric: Metric, rubric: Rubric) -> NDArray[np.bool_]:
    """True where the metric of the rubric is about each answer (answers,)."""
    if rubric.kinds == {metric.of}:  # as nearly always: the answers need not be gone through
        return np.ones(len(answers), dtype=np.bool_)
    return np.array([answer.kind == metric.of for answer in answers], dtype=np.bool_)


def joined_groups(answers: Sequence[Answer], repeats: Repeats | None = None) -> Mapping[str, str]:
    """The groups that are one cluster with another, each with the name that stands for all of
    them."""
    found = repeats or repeats_of(likenesses(answers), len(answers))
    if not len(found.rows):  # as nearly always: the answers need not be gone through
        return {}
    return found.joined_groups(group for _, group in ids_and_groups(answers))


class IndexedAnswers(Sequence[Answer]):
    """Answers with the row of each item id, and their groups and content hashes.

    Raises SetupError where two answers have one id.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.all = answers
        self._rows = {answer.item_id: row for row, answer in enumerate(answers)}
        self._hashes = array("Q", (int(answer.content_hash, 16) for answer in answers))
        self._of_kind: dict[AnswerKind, NDArray[np.bool_]] = {}
        if len(self._rows) < len(answers):
            ids = Counter(answer.item_id for answer in answers)
            found = next(item_id for item_id, n in ids.items() if n > 1)
            raise SetupError(Problem("duplicate item_id", field="item_id", found=found))

    def row(self, item_id: str) -> int:
        """The item's row, -1 where there is none."""
        return self._rows.get(item_id, -1)

    def row_of(self, item_id: str, content_hash: str) -> int:
        """The item's row, -1 where there is none or its text differs."""
        row = self.row(item_id)
        return row if row >= 0 and self.content_hash(row) == content_hash else -1

    def content_hash(self, row: int) -> str:
        """The content hash of the answer in that row."""
        return f"{self._hashes[row]:016x}"

    def keys(self) -> Iterator[tuple[str, str]]:
        """The item id and the content hash of every answer, in order, as they were read once."""
        return zip(self.item_ids(), map(self.content_hash, range(len(self))), strict=True)

    def item_ids(self) -> Iterator[str]:
        """Every item id, in order."""
        return iter(self._rows)

    def of_kind(self, metric: Metric, rubric: Rubric) -> NDArray[np.bool_]:
        """True where the metric of the rubric is about each answer (answers,)."""
        if metric.of not in self._of_kind:
            self._of_kind[metric.of] = of_kind(self.all, metric, rubric)
        return self._of_kind[metric.of]

    @cached_property
    def repeats(self) -> Repeats:
        """The answers that repeat the question and text of another."""
        return repeats_of(likenesses(self.all), len(self))

    @cached_property
    def clusters(self) -> Clusters:
        """The groups, numbered in the order in which they occur. Groups that have an answer in
        common, by question and text, are one."""
        joined = joined_groups(self.all, self.repeats)
        return Clusters.of(joined.get(group, group) for _, group in ids_and_groups(self.all))

    def __len__(self) -> int:
        return len(self._hashes)

    @overload
    def __getitem__(self, row: int) -> Answer: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Answer]: ...
    def __getitem__(self, row: int | slice) -> Answer | Sequence[Answer]:
        return self.all[row]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.all)


def keys_of(answers: Sequence[Answer]) -> Iterator[tuple[str, str]]:
    """The item id and the content hash of every answer, in order; of indexed ones as they were
    read once."""
    if isinstance(answers, IndexedAnswers):
        return answers.keys()
    return ((answer.item_id, answer.content_hash) for answer in answers)


def indexed(answers: Sequence[Answer]) -> IndexedAnswers:
    """The answers with their index; unchanged where they have one."""
    return answers if isinstance(answers, IndexedAnswers) else IndexedAnswers(answers)
