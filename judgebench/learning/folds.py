"""Folds: whoever judges an answer has learnt from no other to its question, and from none that says
(nearly) the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.learning.alike import alike_texts
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers


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
