"""Sensitivities of raters where no truth is known: two latent classes.

`found` is (items, raters): 1 severe, 0 not, -1 no label; the judge is the last rater. Every item is
severe or not, and given that, raters err independently, each with a sensitivity and a false-alarm
rate of their own (Dawid and Skene 1979). Items must not share clusters.
"""

from __future__ import annotations

import numpy as np

from judgebench.stats.arrays import FloatArray, IntArray

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
