"""Texts that are identical or nearly so."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from judgebench.retrieval.words import words_of
from judgebench.rubric import normalise
from judgebench.stats.arrays import IntArray
from judgebench.study.answers import IndexedAnswers

ALIKE = 0.8  # of the runs of three words of two texts, the share that both have (Jaccard)
_FIFTHS = 4  # the same, in whole numbers: 5 b >= 4 (m + n - b), so 9 b >= 4 (m + n)
_RUN = 3
_SHORT = 10  # of fewer words, only equal texts are alike
_KEPT = 128  # runs in a sketch
# Two standard errors of a share of .8 of so many runs: what a sketch may be wrong by.
_ERROR = 2 * (ALIKE * (1 - ALIKE) / _KEPT) ** 0.5

_Runs = NDArray[np.uint64]


def alike_texts(answers: IndexedAnswers) -> IntArray:
    """(answers,): a number that answers share whose texts are alike. One without a text, or of
    which none is known, has a number of its own: there is nothing that could be remembered."""
    texts = [answer.text for answer in answers]
    rows, empty = np.arange(len(texts)), np.array([not text for text in texts], dtype=np.bool_)
    return np.where(empty, len(texts) + rows, alike(texts))


def alike(texts: Sequence[str]) -> IntArray:
    """(texts,): numbers from 0, one for all texts that are alike, or alike to one that is.

    Two texts are alike where they have the same words, or, of at least ten words each, where at
    least 0.8 of the runs of three words that occur in either occur in both. Case and punctuation
    do not count. Nothing is estimated: only pairs that share one of their rarest runs are compared,
    which misses none (Chaudhuri, Ganti and Kaushik 2006, "A Primitive Operator for Similarity
    Joins in Data Cleaning": prefix filtering).

    >>> alike(["Call a doctor.", "call a doctor", "Call a nurse."]).tolist()
    [0, 0, 1]
    """
    words = [words_of(text) for text in texts]
    keys = [_key(text, found) for text, found in zip(texts, words, strict=True)]
    first = {key: place for place, key in reversed(list(enumerate(keys)))}
    long = [place for place in first.values() if len(words[place]) >= _SHORT]
    hashes: dict[str, int] = {}
    group = np.arange(len(keys))
    group[long] = np.array(long, np.int64)[_joined([_runs(words[p], hashes) for p in long])]
    found = group[[first[key] for key in keys]] if keys else group
    _, began, which = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(began))[which]


def sketch(text: str) -> str:
    """What is kept of a text to know it, or one that is nearly the same, again: about 700
    characters, of which the text cannot be read. (Whoever guesses a text can still check it.)"""
    words = words_of(text)
    if len(words) < _SHORT:
        return f"={_digest(_key(text, words)).hex()}"
    smallest = (_runs(words, {}) >> np.uint64(32)).astype("<u4")[:_KEPT]
    return base64.b64encode(smallest.tobytes()).decode()


class Known:
    """Whether a text nearly equals one of those whose sketches are given.

    Of texts with fewer than 128 different runs this is exact. Of longer ones the 128 smallest
    hashes of both estimate the share (Broder 1997, "On the resemblance and containment of
    documents"), and a text counts as known from two standard errors below 0.8 (0.73).

    >>> Known([sketch("Call a doctor.")]).holds("call a doctor")
    True
    """

    def __init__(self, sketches: Iterable[str]) -> None:
        self._sketches = list(dict.fromkeys(sketches))
        self._equal = set(self._sketches)
        self._runs = [_read(one) for one in self._sketches]
        self._held: dict[int, list[int]] = defaultdict(list)
        for place, runs in enumerate(self._runs):
            for run in runs.tolist():
                self._held[run].append(place)

    def holds(self, text: str) -> bool:
        own = sketch(text)
        if own in self._equal:
            return True
        runs = _read(own)
        both = Counter(place for run in runs.tolist() for place in self._held.get(run, ()))
        least = (ALIKE - _ERROR) * len(runs)  # of any that is alike, so many are among them
        return any(n >= least and _resembles(runs, self._runs[place]) for place, n in both.items())


def _resembles(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> bool:
    smallest = np.union1d(one, other)
    whole = len(one) < _KEPT and len(other) < _KEPT
    smallest = smallest if whole else smallest[:_KEPT]
    both = np.isin(smallest, one) & np.isin(smallest, other)
    return bool(both.mean() >= (ALIKE if whole else ALIKE - _ERROR))


def _key(text: str, words: Sequence[str]) -> str:
    """What short texts must have in common to be alike."""
    return " ".join(words) or normalise(text)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _read(kept: str) -> NDArray[np.uint32]:
    if kept.startswith("="):
        return np.zeros(0, np.uint32)
    return np.frombuffer(base64.b64decode(kept), "<u4").astype(np.uint32)


def _runs(words: Sequence[str], hashes: dict[str, int]) -> _Runs:
    """The different runs of words of a text as 64-bit numbers, in order; `hashes` are those of
    words so far."""
    for word in words:
        if word not in hashes:
            hashes[word] = int.from_bytes(_digest(word), "little")
    each = np.array([hashes[word] for word in words], np.uint64)
    mixed = np.zeros(len(each) - _RUN + 1, np.uint64)
    for place in range(_RUN):
        mixed = _mixed(mixed + each[place : place + len(mixed)])
    return np.unique(mixed)


def _mixed(x: _Runs) -> _Runs:
    """The finisher of SplitMix64: every bit of the outcome depends on every bit of `x`."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _joined(sets: Sequence[_Runs]) -> IntArray:
    """(sets,): for each the place of one that stands for all that it is connected to."""
    group = np.arange(len(sets))
    if not sets:
        return group
    order = np.argsort([len(one) for one in sets], kind="stable")  # no set before a smaller one
    size = np.array([len(sets[place]) for place in order])
    begins = np.concatenate([[0], np.cumsum(size)])
    _, run, often = np.unique(
        np.concatenate([sets[place] for place in order]), return_inverse=True, return_counts=True
    )
    rank = np.empty(len(often), np.int64)
    rank[np.argsort(often, kind="stable")] = np.arange(len(often))  # the rarest run has 0
    of = [np.sort(rank[run[begins[n] : begins[n + 1]]]) for n in range(len(order))]
    # Two that are alike share 4/5 of the larger, and so one of the rarest fifth of each.
    least = -(-_FIFTHS * size // 5)
    rare = [own[: len(own) - need + 1] for own, need in zip(of, least.tolist(), strict=True)]
    last = np.array([own[-1] for own in rare])
    places = np.repeat(np.arange(len(order)), [len(own) for own in rare])
    by_run = np.argsort(np.concatenate(rare), kind="stable")
    start = np.searchsorted(np.concatenate(rare)[by_run], np.arange(len(often) + 1))
    places = places[by_run]
    mark = np.zeros(len(often), bool)
    for row, own in enumerate(of):
        having = [places[start[one] : start[one + 1]] for one in rare[row].tolist()]
        having = [found[: np.searchsorted(found, row)] for found in having if len(found) > 1]
        if not having:
            continue
        both = np.bincount(np.concatenate(having), minlength=1)
        near = np.flatnonzero(both)
        # What two share lies in both rare parts, or behind the one that ends first.
        most = both[near] + np.where(last[near] < last[row], least[near], least[row]) - 1
        may = (size[near] >= least[row]) & (9 * most >= _FIFTHS * (size[row] + size[near]))
        near = near[may & (group[near] != group[row])]
        mark[own] = True
        while len(near):
            place, near = near[0], near[1:]
            if 9 * int(mark[of[place]].sum()) >= _FIFTHS * (size[row] + size[place]):
                group[group == group[place]] = group[row]
                near = near[group[near] != group[row]]
        mark[own] = False
    joined = np.empty(len(sets), np.int64)
    joined[order] = order[group]
    return joined
