"""Folds: whoever judges an answer has learnt from no other to its question, and from none that says
(nearly) the same.

Texts that are identical or nearly so.
"""

from __future__ import annotations

import base64
import hashlib
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

# Of the runs of three words of two texts, the share that both have (Jaccard), as 4 / 5.
_SHARE, _OF = 4, 5
_PASSAGE = 30  # runs of a text that may be alike to a longer one because that holds it
_SHORT = 10  # of fewer words, only equal texts are alike
_ROWS = 256  # texts that are compared at a time with all

_Runs = NDArray[np.uint64]


def alike_texts(answers: IndexedAnswers) -> IntArray:
    """(answers,): a number that answers share whose texts are alike. One without a text, or of
    which none is known, has a number of its own: there is nothing that could be remembered."""
    return alike([a.text or f"without a text: {row}" for row, a in enumerate(answers)])


def alike(texts: Sequence[str]) -> IntArray:
    """(texts,): numbers from 0, one for all texts that are alike, or alike to one that is.

    Two texts are alike where they have the same words, or, of at least ten words each, where at
    least 0.8 of the runs of three words that occur in either occur in both; or where the shorter
    one has at least 30 different runs, 0.8 of which occur in the longer (a passage; a stock reply
    is shorter). Case and punctuation do not count. Nothing is estimated.

    >>> alike(["Call a doctor.", "call a doctor", "Call a nurse."]).tolist()
    [0, 0, 1]
    """
    return _alike(tuple(texts)).copy()


@lru_cache(maxsize=1)  # a run asks for its folds where it is checked, made and examined
def _alike(texts: tuple[str, ...]) -> IntArray:
    keys = [_runs(text).tobytes() for text in texts]
    row_by_key = {key: row for row, key in enumerate(dict.fromkeys(keys))}
    group = _joined([np.frombuffer(key, np.uint64) for key in row_by_key])
    return group[[row_by_key[key] for key in keys]]


def sketch(text: str) -> str:
    """Return numbers of the runs of a text by which it, or one that is nearly the same, is known
    again. Nobody reads a text from it, but whoever guesses words can check them."""
    return base64.b64encode(_runs(text).tobytes()).decode()


def known_texts(texts: Iterable[str], sketches: Sequence[str]) -> set[str]:
    """Return the texts that are alike, as in `alike`, to one of those of which sketches are given.

    >>> known_texts(["call a doctor", "Call a nurse."], [sketch("Call a doctor.")])
    {'call a doctor'}
    """
    distinct, n = [*dict.fromkeys(texts)], len(sketches)
    sets = [np.frombuffer(base64.b64decode(text_sketch), np.uint64) for text_sketch in sketches]
    group = _joined([*sets, *map(_runs, distinct)])
    is_known = np.isin(group[n:], group[:n])
    return {distinct[row] for row in np.flatnonzero(is_known).tolist()}


def _joined(sets: Sequence[_Runs]) -> IntArray:
    """(sets,): a number that all share which are connected, from 0 in the order in which they
    occur."""
    from scipy.sparse import csr_array

    group: IntArray = np.arange(len(sets))
    if not sets:
        return group
    sizes = np.array([len(runs) for runs in sets])
    _, run = np.unique(np.concatenate(sets), return_inverse=True)
    holds = csr_array((np.ones(len(run), np.int32), run, np.append(0, np.cumsum(sizes))))
    held_by = holds.T.tocsr()
    for begin in range(0, len(sets), _ROWS):
        shared = (holds[begin : begin + _ROWS] @ held_by).tocoo()
        one, other, both = shared.row + begin, shared.col, shared.data
        smaller, total = np.minimum(sizes[one], sizes[other]), sizes[one] + sizes[other]
        is_passage = (smaller >= _PASSAGE) & (_OF * both >= _SHARE * smaller)
        is_alike = is_passage | (_OF * both >= _SHARE * (total - both))
        group = _connected(len(sets), group[one[is_alike]], group[other[is_alike]])[group]
    return group


def _runs(text: str) -> _Runs:
    """The different runs of three words of a text as numbers, in order; of a short text one number
    for all its words."""
    words = words_of(text)
    if len(words) < _SHORT:
        runs = [" ".join(words) or normalise(text)]
    else:
        runs = [" ".join(run) for run in zip(words, words[1:], words[2:], strict=False)]
    encoded = [run.encode("utf-8", "surrogatepass") for run in runs]
    digests = [hashlib.blake2b(run, digest_size=8).digest() for run in encoded]
    return np.unique(np.frombuffer(b"".join(digests), "<u8"))


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

    def over(self, answers: IndexedAnswers) -> Folds:
        """The same with the answers that stand behind these: each in the fold of its question, else
        of a text like its own, else in the first. They change no training set."""
        n, every = len(self.of), len(answers)
        if n == every:
            return self
        fold = np.append(self.of, np.zeros(every - n, np.int64))
        added: IntArray = self.question.max() + self.text.max() + 1 + np.arange(every)
        question, text = (np.append(codes, added[n:]) for codes in (self.question, self.text))
        questions, texts = answers.clusters.codes, alike_texts(answers)
        by_text = dict(zip(texts[:n].tolist(), range(n), strict=True))
        by_question = dict(zip(questions[:n].tolist(), range(n), strict=True))
        for row in range(n, every):
            same = by_question.get(int(questions[row]))
            if same is not None:
                question[row] = self.question[same]
            like = by_text.get(int(texts[row])) if same is None else same
            fold[row] = 0 if like is None else self.of[like]
        return Folds(fold, self.n, question, text, self.joined)


def folds_of(answers: IndexedAnswers, n: int, seed: int = 0) -> Folds:
    """Components drawn by seed into `n` folds, each into the one with the fewest answers so far,
    the largest first. Raises SetupError where there are fewer components than folds."""
    question, text = answers.clusters.codes, alike_texts(answers)
    unit = components(question, text)
    joined = np.bincount(unit).max(initial=0) <= 2 * len(answers) / n
    if not joined:
        unit = components(question)
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
    n = len(codes[0])
    numbered = [np.unique(code, return_inverse=True)[1] for code in codes]
    ends = [code + n * place for place, code in enumerate(numbered, start=1)]
    rows = np.tile(np.arange(n), len(codes))
    return _connected(n * (len(codes) + 1), rows, np.concatenate(ends))[:n]


def _connected(n: int, one: IntArray, other: IntArray) -> IntArray:
    """(n,): a number that all share which edges from `one` to the `other` connect, from 0 in the
    order in which they occur."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(one)), (one, other)), shape=(n, n))
    return np.asarray(connected_components(edges, directed=False)[1])
