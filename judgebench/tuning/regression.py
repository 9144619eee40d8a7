"""Label probabilities by logistic regression on features; scikit-learn is the engine.

Of a nominal metric it is multinomial. Of an ordinal one it has proportional odds,
P(label > j | x) = sigmoid(w'x + b_j), and the all-threshold loss: the sum over j of the log losses
of `label > j` (Rennie and Srebro, 2005, "Loss functions for preference levels"; Pedregosa, Bach and
Gramfort, 2017, JMLR 18:55). That is one binary regression on every row, once for each threshold. As
w is common to all and the b_j are free, these fall with j by themselves: no probability is
negative. Of two labels both are what scikit-learn fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from judgebench.learning.learnt import TrainingSet
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.calibration_error import cross_entropy, one_hot

_NESTED = 3
_FREE = 10.0  # columns of thresholds are so large that their weights cost next to nothing


@dataclass(frozen=True)
class Recipe:
    """The settings of the fit; `strengths` are scikit-learn's C, less being more regularised.

    `balanced`: rare labels count as much as common ones; the probabilities are then those of a
    world where all are as common.
    """

    ordinal: bool
    strengths: tuple[float, ...] = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
    balanced: bool = False


class Regression(NamedTuple):
    """The fit for a metric of `k` labels. `labels` (classes,) are the places of those that
    occurred; the others get the probability 0. `weights` is (1, width) and `bias` (classes - 1,)
    for thresholds, else both have a row for each class."""

    k: int
    labels: IntArray
    weights: FloatArray
    bias: FloatArray

    def probabilities(self, X: Any) -> FloatArray:
        """(rows, width), perhaps sparse, -> (rows, k); NaN where a feature is."""
        from scipy.special import expit, softmax

        scores, found = X @ self.weights.T + self.bias, np.zeros((X.shape[0], self.k))
        if len(self.bias) == len(self.labels):
            found[:, self.labels] = softmax(scores, axis=1)
        else:
            above = np.pad(expit(scores), ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0)))
            found[:, self.labels] = np.maximum(-np.diff(above, axis=1), 0)
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def fitted(X: Any, y: IntArray, k: int, recipe: Recipe) -> Iterator[Regression]:
    """One for each strength: `X` (rows, width), dense or sparse, `y` (rows,) places among `k`
    labels. Of one label only, the constant."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    labels, width = np.unique(y), X.shape[1]
    code: IntArray = np.searchsorted(labels, y)
    if len(labels) == 1:
        constant = Regression(k, labels, np.zeros((1, width)), np.zeros(1))
        yield from (constant for _ in recipe.strengths)
        return
    X, weights_of = _condensed(X)
    narrow = X.shape[1]
    if recipe.ordinal:
        X, code = _by_threshold(X, code)
    weighted = "balanced" if recipe.balanced else None
    model = LogisticRegression(max_iter=5_000, warm_start=True, class_weight=weighted)
    for C in recipe.strengths:
        # On so few rows threads of BLAS only wait for each other, a hundred times as long as they
        # work where other processes work too.
        with threadpool_limits(1):
            model.set_params(C=C).fit(X, code)
        weights, more = np.split(model.coef_.copy(), [narrow], axis=1)
        apart = np.append(0, _FREE * more[0]) if recipe.ordinal else 0
        yield Regression(k, labels, weights_of(weights), model.intercept_ + apart)


def _condensed(X: Any) -> tuple[Any, Callable[[FloatArray], FloatArray]]:
    """Sparse features in fewer columns, and the way from the weights of these to those of all.

    A penalty of squares makes the weights of features that occur in one row alone proportional to
    their values there, so that one column, of their norm, stands for all of a row: the regression
    is the same. Most pairs of words occur once.
    """
    import scipy.sparse

    if not scipy.sparse.issparse(X):
        return X, lambda weights: weights
    width, rows_with = X.shape[1], np.bincount(X.indices, minlength=X.shape[1])
    often, once = np.flatnonzero(rows_with > 1), np.flatnonzero(rows_with == 1)
    rare = X[:, once]
    norm = np.sqrt(np.asarray(rare.multiply(rare).sum(axis=1)).ravel())
    share = rare.multiply(1 / np.where(norm, norm, 1)[:, None]).tocsr()

    def whole(weights: FloatArray) -> FloatArray:
        found = np.zeros((len(weights), width))
        found[:, often], found[:, once] = weights[:, : len(often)], weights[:, len(often) :] @ share
        return found

    return scipy.sparse.hstack([X[:, often], scipy.sparse.diags_array(norm)], "csr"), whole


def _by_threshold(X: Any, code: IntArray) -> tuple[Any, IntArray]:
    """Every row for each threshold, with a column for each but the first; whether it is above."""
    import scipy.sparse

    n, steps = len(code), int(code.max())
    rows, step = np.tile(np.arange(n), steps), np.repeat(np.arange(steps), n)
    stacked = scipy.sparse.hstack if scipy.sparse.issparse(X) else np.hstack
    return stacked([X[rows], _FREE * np.eye(steps)[step, 1:]]), (code[rows] > step).astype(np.int64)


def chosen(train: TrainingSet, X: Any, metric: Metric, recipes: Sequence[Recipe]) -> Recipe:
    """The recipe, with the one strength, of the least log loss in nested folds; of equal ones the
    first. `X` (answers, width) are the features of the answers, all of which have a label."""
    y, k = train.labels[metric.id], len(metric.labels)
    ways = [replace(recipe, strengths=(C,)) for recipe in recipes for C in recipe.strengths]
    row = {answer.item_id: number for number, answer in enumerate(train.answers)}
    loss = np.zeros(len(ways))
    for learnt, judged in train.folds(_NESTED) if len(ways) > 1 else ():
        rows, own = ([row[a.item_id] for a in part.answers] for part in (learnt, judged))
        q = one_hot(y[own], k)
        tried = (found for r in recipes for found in fitted(X[rows], y[rows], k, r)) if rows else ()
        loss += [cross_entropy(found.probabilities(X[own]), q).sum() for found in tried] or 0.0
    return ways[int(loss.argmin())]
