"""The consensus of several annotators: one label a unit, a share for each label, or a model.

`ratings` is (units, annotators), ints 0..k-1 with -1 where an annotator gave no label.

The model of Dawid and Skene (1979): each unit has one true label j, drawn with probability p_j.
Annotator k then gives label l with probability pi_jl^(k), whatever the others say of the unit. EM
finds the p and pi that make the ratings most likely, and with them the probability T_ij that unit
i's true label is j.

Sensitivities of raters where no truth is known: two latent classes.

`found` is (items, raters): 1 severe, 0 not, -1 no label; the judge is the last rater. Every item is
severe or not, and given that, raters err independently, each with a sensitivity and a false-alarm
rate of their own (Dawid and Skene 1979). Items must not share clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import (
    MISSING,
    FloatArray,
    IntArray,
    distinct_rows,
    first_reason,
    value_counts,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CRITICAL_ROOT = 2.05  # of `recall_gap` at 95 %: what holds the error at the bound, not 1.96
_NEAREST = 1e-4  # to 0 or 1 that a sensitivity may come under the constraint
_STEEPEST = 9.0  # logit of a rate


def recall_gap(found: IntArray, weights: FloatArray, margin: float) -> tuple[float, float]:
    """The judge's sensitivity minus the others' mean by `weights` (raters - 1,), and how surely it
    is above -margin: the signed root of twice the log-likelihood that the constraint costs.

    The root is about normal where the gap is just -margin.

    >>> rng = np.random.default_rng(0)
    >>> true = rng.integers(0, 2, 2000)
    >>> found = np.stack([true ^ (rng.random(2000) < 0.1) for _ in range(4)], axis=1)
    >>> gap, root = recall_gap(found, np.ones(3) / 3, margin=0.05)
    >>> abs(gap) < 0.02, root > 2.05
    (True, True)
    """
    patterns, n = np.unique(found, axis=0, return_counts=True)
    free, best = _fitted(patterns, n, weights, None)
    _, held = _fitted(patterns, n, weights, -margin)
    gap = float(free[-1] - weights @ free[:-1])
    return gap, float(np.sign(gap + margin) * np.sqrt(max(0.0, 2 * (best - held))))


def _fitted(
    patterns: IntArray, n: IntArray, weights: FloatArray, gap: float | None
) -> tuple[FloatArray, float]:
    """The sensitivities (raters,) of the largest likelihood, and its logarithm; at this `gap`."""
    from scipy.optimize import minimize
    from scipy.special import expit, logit

    raters, people = patterns.shape[1], patterns[:, :-1]
    most = 2 * (people == 1).sum(axis=1) >= (people >= 0).sum(axis=1)
    start = [logit(np.clip(n @ most / n.sum(), 0.02, 0.98))]
    for which in (~most, most):
        yes, given = (n[which] @ (patterns[which] >= at) for at in (1, 0))
        start.extend(logit((yes + 0.5) / (given + 1)))
    size = len(start) - (gap is not None)

    def cost(x: FloatArray) -> tuple[float, FloatArray]:
        return _cost(expit(x), (patterns, n, weights), gap)

    box = [(-_STEEPEST, _STEEPEST)] * size
    end = minimize(cost, start[:size], jac=True, method="L-BFGS-B", bounds=box)
    own = expit(end.x[1 + raters :])
    judge = [] if gap is None else [_held(own, weights, gap)]
    return np.append(own, judge), -float(end.fun)


def _held(own: FloatArray, weights: FloatArray, gap: float) -> float:
    return float(np.clip(weights @ own + gap, _NEAREST, 1 - _NEAREST))


def _cost(
    p: FloatArray, seen: tuple[IntArray, IntArray, FloatArray], gap: float | None
) -> tuple[float, FloatArray]:
    """Minus the log-likelihood, and its gradient by the logits, at the share of severe items, the
    false-alarm rates and the sensitivities `p`; the judge's follows from the others' at a `gap`."""
    patterns, n, weights = seen
    raters, share = patterns.shape[1], p[0]
    alarms, own = p[1 : 1 + raters], p[1 + raters :]
    finds = own if gap is None else np.append(own, _held(own, weights, gap))
    given, yes = patterns >= 0, patterns == 1

    def log_of(rates: FloatArray) -> FloatArray:
        each = np.where(yes, np.log(rates), np.log1p(-rates))
        return np.asarray(np.where(given, each, 0.0).sum(axis=1))

    severe, other = log_of(finds) + np.log(share), log_of(alarms) + np.log1p(-share)
    each = np.logaddexp(severe, other)
    chance = np.exp(severe - each)
    by_alarm = (n * (1 - chance)) @ (given * (yes - alarms))
    by_find = (n * chance) @ (given * (yes - finds))
    if gap is not None:
        judge = finds[-1]
        inside = _NEAREST < judge < 1 - _NEAREST
        passed_on = inside * by_find[-1] / (judge * (1 - judge))
        by_find = by_find[:-1] + passed_on * weights * own * (1 - own)
    slope = np.concatenate([[n @ (chance - share)], by_alarm, by_find])
    return -float(n @ each), -slope


Ties = Literal["lower", "upper", "none"]
AS_PROBABLE = 1e-6  # probabilities that an iteration found are the same where no further apart


def median_label(ratings: IntArray, even: Literal["lower", "upper"]) -> NDArray[np.int64]:
    """The median label of each unit (units,); -1 where it has no rating.

    With an even number of labels `even` takes the lower or the upper (more severe) of the middle
    two; labels are never averaged. For ordinal labels only.

    >>> median_label(np.array([[0, 1, 2, 2], [1, -1, -1, 2]]), "upper").tolist()
    [2, 2]
    """
    counts = value_counts(ratings, int(ratings.max(initial=0)) + 1)
    m = counts.sum(axis=1)
    rank = (m - 1) // 2 if even == "lower" else m // 2
    below = (counts.cumsum(axis=1) <= rank[:, None]).sum(axis=1)
    return np.where(m > 0, below, MISSING)


def majority_label(ratings: IntArray, k: int, ties: Ties) -> NDArray[np.int64]:
    """The most frequent label of each unit (units,); -1 where it has no rating.

    Of equally frequent labels `ties` takes the lowest, the highest, or none (-1).

    >>> majority_label(np.array([[0, 1, 1], [0, 1, -1]]), k=2, ties="none").tolist()
    [1, -1]
    """
    return _largest(value_counts(ratings, k), ties, nearly=0)


def most_probable_label(share: FloatArray, ties: Ties) -> NDArray[np.int64]:
    """The label with the largest share (units, k) of each unit; -1 where all shares are 0.

    Of labels within AS_PROBABLE of the largest share `ties` takes the lowest, the highest, or
    none (-1).
    """
    return _largest(share, ties, nearly=AS_PROBABLE)


def label_shares(ratings: IntArray, k: int) -> FloatArray:
    """The share of a unit's annotators that gave each label, n_il / sum_l n_il: (units, k).

    Rows add up to 1, or are all 0 where the unit has no rating.
    """
    n = value_counts(ratings, k)
    return np.asarray(n / np.maximum(n.sum(axis=1, keepdims=True), 1))


def _largest(weight: FloatArray | IntArray, ties: Ties, nearly: float) -> NDArray[np.int64]:
    k = weight.shape[1]
    most = weight.max(axis=1, keepdims=True)
    best = weight >= most - nearly
    label = best.argmax(axis=1)
    if ties == "upper":
        label = k - 1 - best[:, ::-1].argmax(axis=1)
    unknown = most[:, 0] == 0
    if ties == "none":
        unknown |= best.sum(axis=1) > 1
    return np.where(unknown, MISSING, label).astype(np.int64)


MOST_ITERATIONS = 5000
# EM stops where an iteration adds no more than this to the mean log-likelihood of a unit.
TOLERANCE = 1e-10


@dataclass(frozen=True)
class DawidSkene:
    """The fitted model.

    `posterior` (units, k) is T, a row of zeros where the unit has no rating; `prior` (k,) is p;
    `confusion` (annotators, k, k) is pi, rows the true label, columns the label given. A row
    that no rating informs is uniform. `log_likelihood` (iterations,) never falls; with smoothing
    it is the log-likelihood plus sum_jl smoothing_jl log pi_jl^(k) over all annotators. Where not
    `converged`, the last step still added to it.
    """

    posterior: FloatArray
    prior: FloatArray
    confusion: FloatArray
    log_likelihood: FloatArray
    converged: bool


def why_no_model(ratings: IntArray) -> str:
    """The reason why these ratings (units, annotators) do not identify the model; '' where they do.

    With two ratings a unit at most there are more unknowns than facts: 2 k (k - 1) + k - 1
    against k^2 - 1. Goodman (1974), "Exploratory latent structure analysis using both
    identifiable and unidentifiable models", Biometrika 61, is the general case.
    """
    rated = ratings >= 0
    given, most = ratings[rated], rated.sum(axis=1).max(initial=0)
    few = "no item has three labels, so that errors and true labels cannot be distinguished"
    return first_reason({
        "there is no label": not given.size,
        "only one label was ever given": (given == given[:1]).all(),
        "there is one annotator only": rated.any(axis=0).sum() == 1,
        few: most < 3,
    })  # fmt: skip


def dawid_skene(
    ratings: IntArray,
    k: int,
    annotator_of: IntArray | None = None,
    smoothing: FloatArray | float = 0.0,
) -> DawidSkene:
    """Fit the model to `ratings` (units, columns), labels 0..k-1 with -1 where there is none.

    Dawid and Skene (1979), "Maximum Likelihood Estimation of Observer Error-Rates Using the EM
    Algorithm", Applied Statistics 28, section 2: from T the shares of the labels of each unit,
    (2.3), (2.4) and (2.5) in turn. `annotator_of` (columns,) numbers the columns' annotators from
    0: columns of the same number are repeats by one of them; without it each column is one.
    `smoothing`, a number or (k, k), is added to the counts of (2.3), so that an annotator with few
    ratings is never sure: the posterior mode under Dirichlet(1 + smoothing) priors of pi's rows.

    >>> found = dawid_skene(np.array([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]]), k=2)
    >>> found.posterior.argmax(axis=1).tolist()
    [0, 1, 0, 1]
    """
    columns = np.arange(ratings.shape[1]) if annotator_of is None else annotator_of
    annotators = int(columns.max(initial=-1)) + 1
    rated = (ratings >= 0).any(axis=1)
    # A million units are few kinds where annotators are few, and EM only needs the kinds.
    one_of_each, kind_of = distinct_rows(ratings[rated])
    kinds, how_many = ratings[rated][one_of_each], np.bincount(kind_of)
    n = _counts(kinds, columns, annotators, k)
    T = label_shares(kinds, k)
    trace: list[float] = []
    converged = not len(kinds)
    while True:
        p, pi = _m_step(n, how_many, T, annotators, smoothing)
        if converged or len(trace) == MOST_ITERATIONS:
            break
        T, log_likelihood = _e_step(n, how_many, p, pi)
        # The logarithm of the prior up to a constant, sum smoothing_jl log pi_jl; 0 log 0 is 0.
        added = np.broadcast_to(smoothing, pi.shape)
        penalty = float((added * _log(np.where(added > 0, pi, 1))).sum())
        trace.append(log_likelihood + penalty)
        converged = len(trace) > 1 and trace[-1] - trace[-2] <= TOLERANCE * how_many.sum()
    posterior = np.zeros((len(ratings), k))
    posterior[rated] = T[kind_of]
    return DawidSkene(posterior, p, pi, np.array(trace), converged)


def _m_step(
    n: csr_matrix, how_many: IntArray, T: FloatArray, annotators: int, smoothing: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """p (k,) and pi (annotators, k, k) of the paper's (2.4) and (2.3)."""
    k = T.shape[1]
    weighted = how_many[:, None] * T
    counts = (n.T @ weighted).reshape(annotators, k, k).transpose(0, 2, 1) + smoothing
    total = counts.sum(axis=2, keepdims=True)
    pi = np.full(counts.shape, 1 / k)
    np.divide(counts, total, out=pi, where=total > 0)
    p = weighted.sum(axis=0) / max(how_many.sum(), 1)
    return p, pi


def _e_step(
    n: csr_matrix, how_many: IntArray, p: FloatArray, pi: FloatArray
) -> tuple[FloatArray, float]:
    """T (kinds, k) of the paper's (2.5), and the log-likelihood, the logarithm of (2.7)."""
    k = len(p)
    log_joint = _log(p) + n @ _log(pi).transpose(0, 2, 1).reshape(-1, k)
    top = log_joint.max(axis=1, keepdims=True)
    joint = np.exp(log_joint - top)
    total = joint.sum(axis=1, keepdims=True)
    return joint / total, float(how_many @ (top + np.log(total))[:, 0])


def _log(x: FloatArray) -> FloatArray:
    """The natural logarithm, -inf and no warning at 0."""
    return np.log(x, out=np.full(x.shape, -np.inf), where=x > 0)


def _counts(kinds: IntArray, columns: IntArray, annotators: int, k: int) -> csr_matrix:
    """The paper's n_il^(k), how often which annotator gave which label: (kinds, annotators k)."""
    from scipy.sparse import csr_matrix

    unit, column = np.nonzero(kinds >= 0)
    cell = columns[column] * k + kinds[unit, column]
    shape = (len(kinds), annotators * k)
    return csr_matrix((np.ones(len(unit)), (unit, cell)), shape=shape)
