"""Rates and means of all items, from human labels on a part of them and verdicts on all.

In formulas Y is what people say of an item (1 or 0 for a label, the share of annotators who gave
it, a severity, a score) and F what is predicted of it from verdicts alone. Humans labelled n of the
N items, with weights w that sum to 1. Every estimator is a smooth function of sums over items, so
its variance is that of a sum over clusters of each item's influence on it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.intervals import CLUSTERED_EXACT, EXACT, clopper_pearson, exact_limits

ONE_CLUSTER = "the labels are of one cluster only, and a variance needs several"
NO_LABEL = "no judged answer has a human label"
ALL_LABELLED = "every judged answer has a human label, so the verdicts have nothing to add"
ALL_ALIKE = "all human labels are alike, so nothing can be learned of the judge's errors"
EMPTY_STRATUM = "a stratum has no human label"


@dataclass(frozen=True)
class Sample:
    """The items of one population, of which humans labelled some.

    `y` (N,) is NaN where nobody did. `weights` (N,) are one over the chance that an item was drawn
    to be labelled; without them every item has the same chance, in each of the `strata` (N,) if
    there are any.
    """

    y: FloatArray
    clusters: Clusters
    weights: FloatArray | None = None
    strata: IntArray | None = None

    @cached_property
    def labelled(self) -> NDArray[np.bool_]:
        """True where humans labelled the item (N,)."""
        return ~np.isnan(self.y)

    @property
    def n(self) -> int:
        """The number of items that humans labelled."""
        return int(self.labelled.sum())

    @property
    def is_simple(self) -> bool:
        """True where every item has the same chance of a human label."""
        return self.weights is None and self.strata is None

    @cached_property
    def w(self) -> FloatArray:
        """The weight of each human label (N,): within a stratum in proportion to `weights`, and
        all strata as large as they are among all items. NaN where a stratum has none."""
        base = self.labelled * (1.0 if self.weights is None else self.weights)
        base = np.where(self.labelled, base, 0.0)
        share = np.bincount(self._strata) / max(1, len(self.y))
        return base * ratio(share, np.bincount(self._strata, base))[self._strata]

    @cached_property
    def units(self) -> int:
        """The number of clusters with a human label."""
        return len(np.unique(self.clusters.codes[self.labelled]))

    @property
    def why_none(self) -> str:
        """The reason why nothing can be estimated; empty where it can."""
        return NO_LABEL if not self.n else EMPTY_STRATUM if np.isnan(self.w).any() else ""

    def at(self, rows: NDArray[np.bool_]) -> Sample:
        """The sample of these items (N,) alone."""
        weights = None if self.weights is None else self.weights[rows]
        strata = None if self.strata is None else self.strata[rows]
        return Sample(self.y[rows], self.clusters[rows], weights, strata)

    def means(self, x: FloatArray) -> FloatArray:
        """The weighted mean of `x` (N,) over the human labels of each item's stratum (N,)."""
        total = np.bincount(self._strata, self.w * np.where(self.labelled, x, 0))
        return ratio(total, np.bincount(self._strata, self.w))[self._strata]

    def variance(self, influence: FloatArray) -> float:
        """V = sum over clusters g of (sum over items i of g of influence_i)^2, but no less than
        that of independent items, since a few clusters may be alike by chance; times G / (G - 1)
        for the G clusters with a label."""
        V = max(self.cluster_variance(influence), float((influence**2).sum()))
        return V * self.units / max(1, self.units - 1)

    def cluster_variance(self, influence: FloatArray) -> float:
        """The variance of a sum over clusters alone; with one item a cluster that of independent
        items."""
        return float((np.bincount(self.clusters.codes, influence) ** 2).sum())

    @cached_property
    def _strata(self) -> IntArray:
        none = np.zeros(len(self.y), dtype=np.int64)
        return none if self.strata is None else np.unique(self.strata, return_inverse=True)[1]


@dataclass(frozen=True)
class Asked:
    """The intervals that are asked for: of rates, within 0..1, or of means of anything; at a
    `level`; and, where `anytime`, such that they hold at every look while labels arrive."""

    level: float = 0.95
    is_rate: bool = True
    anytime: bool = False

    def critical(self, units: int) -> float:
        """The number of standard errors from a value to its limits, with this many clusters.

        Student's t. Of a confidence sequence the boundary of Waudby-Smith, Arbour, Sinha, Kennedy
        and Ramdas (2024), "Time-uniform central limit theory and asymptotic confidence sequences",
        Theorem 2.2, which holds at all numbers of clusters at once,

            sqrt((n rho^2 + 1) / (n rho^2) log((n rho^2 + 1) / alpha^2)),

        times t / z for few of them, with rho so that it is tightest at 200.
        """
        t = float(stdtrit(units - 1, (1 + self.level) / 2))
        if not self.anytime:
            return t
        alpha = 1 - self.level
        spent = -2 * math.log(alpha)
        k = units * (spent + math.log(spent + 1)) / _TIGHTEST
        boundary = math.sqrt((k + 1) / k * math.log((k + 1) / alpha**2))
        return float(t / ndtri(1 - alpha / 2) * boundary)

    def none_seen(self, units: int) -> float:
        """The upper limit of a rate of which no case was seen in this many clusters: exact, or for
        all looks by a uniform mixture, 1 - (alpha / (n + 1))^(1 / n)."""
        if self.anytime:
            return float(1 - ((1 - self.level) / (units + 1)) ** (1 / units))
        high = clopper_pearson(0, units, self.level).high
        assert high is not None
        return high


_TIGHTEST = 200  # clusters


class Linear(NamedTuple):
    """A value with the influence on it of each item's label and of its verdicts, (N,) each."""

    value: float
    of_labels: FloatArray
    of_verdicts: FloatArray
    tuning: float = 0.0

    @property
    def influence(self) -> FloatArray:
        return self.of_labels + self.of_verdicts


class Prediction(NamedTuple):
    """F of each item (N,), and for an item with a human label what is predicted without it."""

    every: FloatArray
    own: FloatArray


def adjusted(sample: Sample, F: Prediction, tuning: float) -> Linear:
    """theta = lambda mean_N(F) + sum_n w (Y - lambda F), in each stratum by itself.

    With weights it is the difference estimator of a survey (Särndal, Swensson and Wretman 1992,
    chapter 6), for a random sample that of prediction-powered inference: with their lambda times
    N over the number of unlabelled items it is the same. In a random sample labelled and other
    items have the same mean, so that each part is centred on its own, as there.
    """
    residual = np.where(sample.labelled, sample.y - tuning * F.own, 0.0)
    means = sample.means(residual)
    model = tuning * F.every + means
    value = float(model.mean())
    centre = np.full(len(model), value)
    if sample.is_simple:
        parts = sample.labelled.astype(np.int64)
        centre = ratio(np.bincount(parts, model), np.bincount(parts))[parts]
    return Linear(
        value,
        sample.w * sample.labelled * (residual - means),
        (model - centre) / len(model),
        tuning,
    )


def tuning_of(samples: Sequence[tuple[Sample, Prediction]]) -> float:
    """The lambda with which `adjusted` is most precise, of one mean; of several on the same items
    the one that makes the sum of their variances least, so that rates of all labels add up to 1.

    Angelopoulos, Duchi and Zrnic (2023), "PPI++: Efficient Prediction-Powered Inference",
    arXiv:2311.01453, section 6. Of a random sample lambda = Cov_n(Y, F) / Var_N(F), their plug-in
    optimum clipped to [0, 1] in their scale; with weights or strata both sums weigh an item by the
    square of its weight. It is the optimum of independent items, so with clusters it is right but
    not the best. Without an unlabelled item, or with a constant F, lambda is 0.
    """
    sample = samples[0][0]
    N, others = len(sample.y), len(sample.y) - sample.n
    together, apart = np.sum([_covariances(*one) for one in samples], axis=0)
    return min(max(together / apart, 0.0), N / others) if others and apart > 0 else 0.0


def _covariances(sample: Sample, F: Prediction) -> tuple[float, float]:
    """The numerator and the denominator of lambda."""
    own = np.where(sample.labelled, F.own, 0.0)
    y = np.where(sample.labelled, sample.y, 0.0)
    w2 = sample.w**2
    together = float((w2 * (y - sample.means(y)) * (own - sample.means(own))).sum())
    codes = sample._strata
    size = np.bincount(codes)
    spread = F.every - ratio(np.bincount(codes, F.every), size)[codes]
    variances = ratio(np.bincount(codes, spread**2), np.maximum(size - 1, 1))
    return together, float((np.bincount(codes, w2) * variances).sum())


def cross_fitted(y: FloatArray, X: FloatArray, clusters: Clusters, folds: int = 5) -> Prediction:
    """The best linear prediction of Y from several columns X (N, p), learnt without the label that
    it is held against: of a labelled item from the other folds, of the others the mean of all.

    Zrnic and Candès (2024), "Cross-prediction-powered inference", PNAS 121(15). Folds are of whole
    clusters; ridge regression with penalty 1 keeps columns that are nearly the same apart.
    """
    labelled = ~np.isnan(y)
    units = np.unique(clusters.codes[labelled])
    fold_of = np.zeros(clusters.n, dtype=np.int64)
    fold_of[units] = np.random.default_rng(0).permutation(len(units)) % folds
    fold = np.where(labelled, fold_of[clusters.codes], -1)
    predictions = np.zeros((folds, len(y)))
    for k in range(folds):
        learn = labelled & (fold != k)
        centre, mean = X[learn].mean(axis=0), y[learn].mean() if learn.any() else 0.0
        Z = X[learn] - centre
        slopes = np.linalg.solve(Z.T @ Z + np.eye(X.shape[1]), Z.T @ (y[learn] - mean))
        predictions[k] = mean + (X - centre) @ slopes
    every = predictions.mean(axis=0)
    own = np.where(labelled, predictions[np.maximum(fold, 0), np.arange(len(y))], every)
    return Prediction(every, own)


# --- intervals ------------------------------------------------------------------------------------


def interval(value: float, V: float, p: float, units: int, asked: Asked) -> Estimate:
    """`value` with its limits, from its variance V > 0 and the number of labelled clusters.

    Of a mean they are value +- t sqrt(V). Of a rate, within 0..1, they are Wilson's for
    n* = p (1 - p) / V independent items, p the share among the labelled ones:

        (value + t^2 / 2n* +- t sqrt(value (1 - value) / n* + t^2 / 4n*^2)) / (1 + t^2 / n*).

    Wilson (1927) with Kish's effective sample size, as in Dean and Pagano (2015), "Evaluating
    confidence interval methods for binomial proportions in clustered surveys". No interval with one
    cluster.
    """
    if units < 2:
        return Estimate(value, reason=ONE_CLUSTER, level=asked.level)
    t, kind = asked.critical(units), "confidence sequence" if asked.anytime else "interval"
    if not asked.is_rate:
        half = t * math.sqrt(V)
        method = f"Student's t {kind} over clusters"
        return Estimate(value, value - half, value + half, method, level=asked.level)
    value = min(1.0, max(0.0, value))
    n_star = p * (1 - p) / V
    centre = value + t**2 / (2 * n_star)
    half = t * math.sqrt(value * (1 - value) / n_star + t**2 / (4 * n_star**2))
    low, high = ((centre + sign * half) / (1 + t**2 / n_star) for sign in (-1, 1))
    method = f"Wilson {kind} with the effective sample size"
    return Estimate(value, max(0.0, low), min(1.0, high), method, level=asked.level)


def of_labels(sample: Sample, asked: Asked = Asked()) -> Estimate:
    """The mean of the human labels alone, with its interval. Of a rate it is exact for the
    effective number of independent labels; of one of which all or none of the labels are, which
    shows no variance, over the clusters, or as many as the weights leave. Undefined, with a reason,
    without a label."""
    if reason := sample.why_none:
        return Estimate(None, n=sample.n, reason=reason, level=asked.level)
    nothing = np.zeros(len(sample.y))
    found = adjusted(sample, Prediction(nothing, nothing), 0.0)
    V, n = sample.variance(found.influence), sample.n
    given = np.unique(sample.y[sample.labelled])
    if asked.is_rate and len(given) == 1 and given[0] in (0.0, 1.0):
        of_cluster = np.bincount(sample.clusters.codes, sample.w)
        units = math.floor(of_cluster.sum() ** 2 / (of_cluster**2).sum() + 1e-9)
        far = asked.none_seen(units)
        value = float(given[0])  # and not what rounding makes of it
        low, high = (1 - far, 1.0) if value else (0.0, far)
        method = f"{EXACT} over {units} clusters, since all labels are alike"
        return Estimate(value, low, high, method, n, level=asked.level)
    if V == 0:
        return Estimate(found.value, n=n, reason=ALL_ALIKE, level=asked.level)
    if asked.is_rate and not asked.anytime and sample.units > 1:
        p = found.value  # the number of labels by Korn and Graubard (1998), section 2
        few = asked.critical(n) / asked.critical(sample.units)
        n_star = min(float(n), p * (1 - p) / V * n / (n - 1) * few**2)
        low, high = exact_limits(p * n_star, n_star, asked.level)
        return Estimate(p, low, high, CLUSTERED_EXACT, n, level=asked.level)
    return replace(interval(found.value, V, found.value, sample.units, asked), n=n)


class Powered(NamedTuple):
    """The mean by PPI++ beside that from the human labels alone.

    `effective` is how many human labels alone would give as narrow an interval, n V_human / V_ppi,
    None where undefined; it is below n where the verdicts do harm. `linear` is what an interval of
    a difference is made of, and `V` the variance.
    """

    estimate: Estimate
    human: Estimate
    effective: float | None = None
    linear: Linear | None = None
    V: float = 0.0


def prediction_powered(
    sample: Sample, F: Prediction, asked: Asked = Asked(), tuning: float | None = None
) -> Powered:
    """The mean by PPI++, a rate clipped to [0, 1], with an interval that holds for few labels.

    The point is `adjusted` by the lambda `tuning`, without one by the best of it. The interval is
    that of `interval` with

        V = Var(theta) + lambda^2 / n^2 of a rate (lambda in the scale of the paper),

    as if one disagreement more had been seen: a judge that errs on none of n labelled items would
    else claim the precision of n + N human labels. How often it covers is measured by
    `benchmarks/rates.py`. The human value, and `reason` says why, where every item has a label or
    all of them are alike.
    """
    human = of_labels(sample, asked)
    N, n = len(sample.y), sample.n
    if human.value is None:
        return Powered(replace(human, n=N), human)
    if n == N or human.reason == ALL_ALIKE or (asked.is_rate and human.value in (0.0, 1.0)):
        reason = "; ".join(filter(None, (human.reason, ALL_LABELLED if n == N else ALL_ALIKE)))
        return Powered(replace(human, n=N, reason=reason), human, float(n))
    nothing = np.zeros(N)
    alone = adjusted(sample, Prediction(nothing, nothing), 0.0)
    tuned = adjusted(sample, F, tuning_of([(sample, F)]) if tuning is None else tuning)
    one_more = (tuned.tuning * (N - n) / N / n) ** 2 if asked.is_rate else 0.0
    V = sample.variance(tuned.influence) + one_more
    if V == 0:
        return Powered(replace(human, n=N, reason=ALL_ALIKE), human, float(n))
    found = human  # of which verdicts that say nothing leave all as it is
    if tuned.tuning:
        found = interval(tuned.value, V, human.value, sample.units, asked)
    method = f"PPI++, {_drawn(sample)}; {found.method}".removesuffix("; ")
    effective = n * sample.variance(alone.influence) / V
    return Powered(replace(found, n=N, method=method), human, effective, tuned, V)


def _drawn(sample: Sample) -> str:
    """The way in which the labelled items were drawn."""
    if sample.weights is not None:
        return "human labels with sampling weights"
    within = " within strata" if sample.strata is not None else ""
    return f"human labels taken as a random sample{within}"


# --- Rogan and Gladen -----------------------------------------------------------------------------

NONE_HAS_IT = "no human label is this one, so the judge's sensitivity is unknown"
ALL_HAVE_IT = "every human label is this one, so the judge's specificity is unknown"


def corrected_rate(apparent: float, sensitivity: float, specificity: float) -> float | None:
    """theta = (p + Sp - 1) / (Se + Sp - 1), which may lie outside 0..1; None if Se + Sp <= 1.

    Rogan and Gladen (1978), "Estimating prevalence from the results of a screening test".

    >>> round(corrected_rate(0.3, sensitivity=0.8, specificity=0.9), 3)
    0.286
    """
    youden = sensitivity + specificity - 1
    return (apparent + specificity - 1) / youden if youden > 1e-9 else None


def rogan_gladen(sample: Sample, F: FloatArray, asked: Asked = Asked()) -> Estimate:
    """The corrected rate of a label over all items, clipped to [0, 1], with its interval. F (N,) is
    1 where the judge gave the label, else 0.

    Se and Sp are those of the judge on the items with a human label, p is over all. The variance
    is by the delta method, with whole clusters as units so that what p, Se and Sp share is kept:

        d theta = (dp + (1 - theta) dSp - theta dSe) / (Se + Sp - 1),
        V = Var(theta) + (theta^2 / n_1^2 + (1 - theta)^2 / n_0^2) / (2 (Se + Sp - 1)^2),

    n_1 and n_0 the human labels that are this one and that are not. The second term is that of one
    disagreement more than was seen, half of it of each kind; Lang and Reiczigel (2014),
    "Confidence limits for prevalence of disease adjusted for estimated sensitivity and
    specificity", add one success and one failure to each for the same end. It errs on the wide
    side, and PPI++ is narrower.
    Undefined, with a reason, without a human label of each kind and where Se + Sp <= 1.
    """
    N, y = len(sample.y), np.where(sample.labelled, sample.y, 0.0)
    n_1 = float(y.sum())
    n_0 = sample.n - n_1
    lacking = NO_LABEL if not sample.n else NONE_HAS_IT if n_1 == 0 else ALL_HAVE_IT
    if reason := sample.why_none or (lacking if 0 in (n_0, n_1) else ""):
        return Estimate(None, n=N, reason=reason, level=asked.level)
    yes, no = sample.w * y, sample.w * (sample.labelled - y)
    p, Se, Sp = F.mean(), (yes * F).sum() / yes.sum(), (no * (1 - F)).sum() / no.sum()
    raw = corrected_rate(float(p), float(Se), float(Sp))
    if raw is None:
        reason = f"sensitivity {Se:.2f} and specificity {Sp:.2f} add up to no more than 1"
        return Estimate(None, n=N, reason=reason, level=asked.level)
    theta, youden = min(1.0, max(0.0, raw)), Se + Sp - 1
    dSe, dSp = yes * (F - Se) / yes.sum(), no * (1 - F - Sp) / no.sum()
    influence = ((F - p) / N + (1 - theta) * dSp - theta * dSe) / youden
    unseen = ((theta / n_1) ** 2 + ((1 - theta) / n_0) ** 2) / (2 * youden**2)
    human, V = float(yes.sum()), sample.variance(influence) + float(unseen)
    found = interval(theta, V, human, sample.units, asked)
    clipped = "" if theta == raw else f"the corrected rate is {raw:.3f}, clipped to {theta:.0f}"
    method = f"Rogan-Gladen, clipped to [0, 1], {_drawn(sample)}; {found.method}"
    return replace(found, n=N, method=method.removesuffix("; "), reason=found.reason or clipped)


# --- differences, plans, checks -------------------------------------------------------------------


def difference(a: Estimate, b: Estimate, shared: float) -> Estimate:
    """a - b, with limits from those of both and the correlation `shared` of their errors.

    Zou and Donner (2008), "Construction of confidence limits about effect measures: a general
    approach": no variance is needed, so that a rate of 0 with an exact limit has a difference too.

    >>> one, other = Estimate(0.5, 0.4, 0.6), Estimate(0.2, 0.1, 0.3)
    >>> f"{difference(one, other, 0.0):.2f}"
    '0.30 [0.16, 0.44]'
    """
    if a.value is None or b.value is None:
        return Estimate(None, reason=a.reason or b.reason, level=a.level)
    value, n = a.value - b.value, a.n + b.n
    if a.low is None or b.low is None or a.high is None or b.high is None:
        return Estimate(value, n=n, reason=a.reason or b.reason, level=a.level)

    def half(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one**2 + other**2 - 2 * shared * one * other))

    low = value - half(a.value - a.low, b.high - b.value)
    high = value + half(a.high - a.value, b.value - b.low)
    method = "limits of both rates combined (MOVER)"
    return Estimate(value, low, high, method, n, level=a.level)


def correlation(clusters: Clusters, one: FloatArray, other: FloatArray) -> float:
    """The correlation of the errors of two estimates, from the influences (N,) on them."""
    sums = clusters.sums(one, other)
    return float(ratio(sums[:, 0] @ sums[:, 1], np.sqrt((sums**2).sum(axis=0).prod())))


def labels_for_width(sample: Sample, powered: Powered, width: float, asked: Asked) -> Estimate:
    """The number of human labels beyond those there are until the interval of PPI++ is at most this
    wide, if further ones are drawn and clustered as these and are as they are.

    What the labels add to the variance falls with their number, what the verdicts on all items add
    stays. Undefined, with a reason, where labels of all items would not be enough.
    """
    n, N, human = sample.n, len(sample.y), powered.human
    if human.value is None or powered.estimate.low is None:
        reason = powered.estimate.reason or human.reason
        return Estimate(None, n=n, reason=reason, level=asked.level)
    V_all, V_verdicts = powered.V, 0.0
    if powered.linear is None:  # all labels alike: as if of half a label that is not
        V_all = (human.value or 1 / (2 * n)) * (1 - human.value or 1 / (2 * n)) / sample.units
    else:
        V_verdicts = min(V_all, sample.cluster_variance(powered.linear.of_verdicts))
    value = powered.estimate.value or 0.0
    p = min(max(human.value, 1 / (2 * n)), 1 - 1 / (2 * n)) if asked.is_rate else human.value

    def is_enough(labels: int) -> bool:
        V = (V_all - V_verdicts) * n / labels + V_verdicts
        found = interval(value, V, p, max(2, round(sample.units * labels / n)), asked)
        return (found.high or 0.0) - (found.low or 0.0) <= width

    if not is_enough(N):
        reason = f"even labels of all {N:,} answers would not be enough: more answers are needed"
        return Estimate(None, n=n, reason=reason, level=asked.level)
    return Estimate(float(bisect_left(range(n, N), True, key=is_enough)), n=n, level=asked.level)


class CovariateImbalance(NamedTuple):
    """Something in which items with a human label differ from all items."""

    name: str
    labelled: float
    every: float
    p: float


def unlike(
    sample: Sample, columns: Mapping[str, FloatArray], level: float = 0.01
) -> list[CovariateImbalance]:
    """Tests whether the labelled items, with their weights, look as all items do: the mean of each
    column (N,) among both, by a t test over clusters, Holm's correction for several columns.

    An alarm is false in `level` of the studies whose labels were drawn as they say. Nothing where
    all items are labelled.
    """
    if sample.why_none or sample.n == len(sample.y) or sample.units < 2:
        return []
    found = sorted(_compared(sample, columns), key=lambda one: one.p)
    # The first that is no alarm ends them.
    no_alarms = (i for i, one in enumerate(found) if one.p > level / (len(found) - i))
    return found[: next(no_alarms, len(found))]


def _compared(sample: Sample, columns: Mapping[str, FloatArray]) -> Iterator[CovariateImbalance]:
    N = len(sample.y)
    for name, x in columns.items():
        if not np.ptp(x):
            continue
        of_labelled, every = float((sample.w * x).sum()), float(x.mean())
        influence = sample.w * (x - sample.means(x)) - (x - every) / N
        # labelled items may all be alike by chance: at least the variance that all items show
        V = max(sample.cluster_variance(influence), float(x.var() * (sample.w**2).sum()))
        se = math.sqrt(V)
        t = abs(of_labelled - every) / se
        yield CovariateImbalance(name, of_labelled, every, 2 * float(stdtr(sample.units - 1, -t)))
