"""Folds: whoever judges an answer has learnt from no other to its question, and from none that says
(nearly) the same.

Texts that are identical or nearly so.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import Problem, SetupError
from judgebench.judges.retrieval import words_of
from judgebench.rubric import normalise
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers

ALIKE = 0.8  # of the runs of three words of two texts, the share that both have (Jaccard)
_FIFTHS = 4  # the same, in whole numbers: 5 b >= 4 (m + n - b), so 9 b >= 4 (m + n)
_PASSAGE = 30  # runs of a text that may be alike to a longer one because that holds it
_RUN = 3
_SHORT = 10  # of fewer words, only equal texts are alike
_KEPT = 128  # runs in a sketch
_LEAST = 8  # runs of two sketches from which anything is concluded: those of ten words

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
    least 0.8 of the runs of three words that occur in either occur in both; or where the shorter
    one has at least 30 different runs, 0.8 of which occur in the longer (a passage; a stock reply
    is shorter). Case and punctuation do not count. Nothing is estimated: a text is compared with
    those alone that hold one of its rarest runs, which misses none (Chaudhuri, Ganti and Kaushik
    2006, "A Primitive Operator for Similarity Joins in Data Cleaning": prefix filtering).

    >>> alike(["Call a doctor.", "call a doctor", "Call a nurse."]).tolist()
    [0, 0, 1]
    """
    return _alike(tuple(texts)).copy()


@lru_cache(maxsize=1)  # a run asks for its folds where it is checked, made and examined
def _alike(texts: tuple[str, ...]) -> IntArray:
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
    """The sketch of a text by which it, or one that is nearly the same, again: about 700
    characters, of which the text cannot be read. (Whoever guesses a text can still check it.)"""
    words = words_of(text)
    if len(words) < _SHORT:
        return f"={_digest(_key(text, words)).hex()}"
    smallest = (_runs(words, {}) >> np.uint64(32)).astype("<u4")[:_KEPT]
    return base64.b64encode(smallest.tobytes()).decode()


class Known:
    """True where a text nearly equals one of those whose sketches are given.

    Of texts with fewer than 128 different runs this is exact. Of longer ones the runs with the
    smallest hashes are a sample of both (Broder 1997, "On the resemblance and containment of
    documents"), and a text counts as known from two standard errors below 0.8.

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
        few = _LEAST // 2  # of any that is alike, more are among them
        return any(n > few and _resembles(runs, self._runs[place]) for place, n in both.items())


def _resembles(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> bool:
    longest = [int(x[-1]) if len(x) == _KEPT else 2**32 for x in (one, other)]
    m, n = (int(np.searchsorted(x, min(longest), "right")) for x in (one, other))
    if min(m, n) < _LEAST:
        return False
    both = len(np.intersect1d(one[:m], other[:n], assume_unique=True))
    kinds = [both / (m + n - both), both / min(m, n)]  # Jaccard's, and of the shorter
    passage = min(len(one), len(other)) >= _PASSAGE
    share, of = (kinds[1], min(m, n)) if passage else (kinds[0], m + n - both)
    error = 2 * (ALIKE * (1 - ALIKE) / of) ** 0.5 if min(longest) < 2**32 else 0.0
    return share >= ALIKE - error


def _key(text: str, words: Sequence[str]) -> str:
    """The key that short texts share where they are alike."""
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
    # Two that are alike share 4/5 of the smaller at least, and so one of its rarest fifth.
    least = -(-_FIFTHS * size // 5)
    places = np.repeat(np.arange(len(order)), size)[np.argsort(rank[run], kind="stable")]
    start = np.concatenate([[0], np.cumsum(np.sort(often))])
    mark, held = np.zeros(len(often), bool), np.zeros(len(order), bool)
    for row in reversed(range(len(of))):  # beside those that are no smaller, which are joined
        own = of[row]
        for one in own[: len(own) - least[row] + 1].tolist():
            held[places[start[one] : start[one + 1]]] = True
        near = np.flatnonzero(held[row + 1 :]) + row + 1
        held[:] = False
        need = -(-_FIFTHS * (size[row] + size[near]) // 9)
        if size[row] >= _PASSAGE:
            need = np.full(len(near), least[row])
        near, need = near[need <= size[row]], need[need <= size[row]]
        mark[own] = True
        while len(near):
            if int(mark[of[near[0]]].sum()) >= need[0]:
                group[group == group[row]] = group[near[0]]
            other = group[near] != group[row]
            other[0] = False
            near, need = near[other], need[other]
        mark[own] = False
    joined = np.empty(len(sets), np.int64)
    joined[order] = order[group]
    return joined


@dataclass(frozen=True)
class Folds:
    """The fold of each answer, from 0, with its `question` and its `text`: numbers (answers,) that
    answers share which have one question, or nearly the same text.

    Folds are connected components of both where these are small. Where one text ties a large part
    of the questions together (a stock reply), whole questions are in a fold, and from what is
    learnt for it every answer is left out that says what one of the fold says: `joined` is False.
    """

    of: IntArray
    n: int
    question: IntArray
    text: IntArray
    joined: bool

    def training(self, judged: IntArray, among: IntArray | None = None) -> IntArray:
        """The rows that may be learnt from by whoever judges the rows `judged`: of other questions,
        and of other texts. `among`: only of these rows."""
        rows = np.arange(len(self.of)) if among is None else among
        known = np.isin(self.question[rows], self.question[judged])
        known |= np.isin(self.text[rows], self.text[judged])
        return rows[~known]


def folds_of(answers: IndexedAnswers, n: int, seed: int = 0) -> Folds:
    """Components drawn by seed into `n` folds, each into the one with the fewest answers so far,
    the largest first. Raises SetupError where there are fewer components than folds."""
    question, text = answers.clusters.codes, alike_texts(answers)
    whole = components(question, text)
    sizes = np.bincount(whole)
    joined = sizes.max(initial=0) <= 2 * len(answers) / n
    unit = whole if joined else components(question)
    sizes = np.bincount(unit)
    if len(sizes) < n:
        message = f"is more than the {len(sizes)} groups of questions that share no answer"
        raise SetupError(Problem(message, field="folds", found=str(n)))
    order = np.random.default_rng(seed).permutation(len(sizes))
    filled, fold = np.zeros(n, np.int64), np.zeros(len(sizes), np.int64)
    for one in order[np.argsort(-sizes[order], kind="stable")]:
        fold[one] = filled.argmin()
        filled[fold[one]] += sizes[one]
    return Folds(fold[unit], n, question, text, bool(joined))


def components(*codes: IntArray) -> IntArray:
    """The connected components of rows that share a number in one of the `codes` (rows,), numbered
    from 0 in the order in which they occur.

    >>> components(np.array([0, 0, 1, 2]), np.array([5, 6, 6, 7])).tolist()
    [0, 0, 0, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, columns, begin = len(codes[0]), [], len(codes[0])
    for one in codes:
        _, code = np.unique(one, return_inverse=True)
        columns.append(code + begin)
        begin += int(code.max(initial=-1)) + 1
    rows = np.tile(np.arange(n), len(codes))
    edges = (np.ones(len(rows)), (rows, np.concatenate(columns)))
    found = connected_components(coo_array(edges, shape=(begin, begin)), directed=False)[1][:n]
    _, first, which = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which]
