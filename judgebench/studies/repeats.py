"""Answers that repeat the question and text of another under a different id.

People and judges say of a repeat what they say of the first: it adds next to nothing, and to count
it as independent makes intervals too narrow. So the groups of both are one cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress

import numpy as np

from judgebench.records import Answer
from judgebench.rubric import normalise
from judgebench.stats.arrays import IntArray

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
        needed = np.zeros(self.rows.max(initial=-1) + 1, dtype=np.bool_)
        needed[self.rows] = needed[self.firsts] = True
        named = dict(zip(np.flatnonzero(needed).tolist(), compress(groups, needed), strict=True))
        least: dict[str, str] = {}

        def root(group: str) -> str:
            while (above := least.get(group, group)) != group:
                least[group] = least.get(above, above)
                group = above
            return group

        for row, first in zip(self.rows.tolist(), self.firsts.tolist(), strict=True):
            one, other = sorted((root(named[row]), root(named[first])))
            if one != other:
                least[other] = one
        return {group: root(group) for group in least}


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
