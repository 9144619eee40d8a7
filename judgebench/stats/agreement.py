"""Agreement of any number of annotators: plain shares, Krippendorff, Gwet, Fleiss, intraclass.

`ratings` is (units, annotators), ints with -1 where an annotator gave no label; `clusters`
are those of the units. Only the intraclass correlations need column j to be the same person in
every unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Estimate
from judgebench.stats.arrays import (
    Clusters,
    FloatArray,
    IntArray,
    first_reason,
    label_distances,
    ratio,
    value_counts,
)
from judgebench.stats.classification import NO_ITEM, ONE_SEVERITY, all_items, diagonal_share
from judgebench.stats.intervals import (
    LEVEL,
    OF_CORRELATION,
    SHARE,
    Statistic,
    clustered_mean,
    explained,
    where_empty,
)

NO_PAIR = "no item was labelled by two annotators: agreement cannot be computed"

Level = Literal["nominal", "ordinal"]


def coincidences_by_cluster(ratings: IntArray, clusters: Clusters, k: int) -> FloatArray:
    """Krippendorff's coincidences o (clusters, k, k).

    A unit with m >= 2 labels adds each ordered pair of them with weight 1 / (m - 1), so that it
    counts m in all; a unit with fewer adds nothing. Krippendorff (2011), "Computing
    Krippendorff's Alpha-Reliability", step 2.

    >>> one = Clusters(np.zeros(2, int), 1)
    >>> coincidences_by_cluster(np.array([[0, 0, 1], [1, 1, -1]]), one, k=2).tolist()
    [[[1.0, 1.0], [1.0, 2.0]]]
    """
    n_uc = value_counts(ratings, k)
    m = n_uc.sum(axis=1)
    return pairs_by_cluster(n_uc, 1 / np.maximum(m - 1, 1), clusters)


def vote_pairs_by_cluster(ratings: IntArray, clusters: Clusters, k: int) -> FloatArray:
    """Pairs of votes on the same unit (clusters, k, k).

    Each unordered pair counts 1: half in cell [a, b] and half in [b, a]. A unit with many votes
    so weighs more than in Krippendorff's coincidences. The sum is the number of pairs.
    """
    n_uc = value_counts(ratings, k)
    return pairs_by_cluster(n_uc, np.full(len(n_uc), 0.5), clusters)


def pairs_by_cluster(n_uc: NDArray[np.int64], weight: FloatArray, clusters: Clusters) -> FloatArray:
    """Sum of weight[u] times the ordered pairs of labels of unit u, over the units of a cluster."""
    k = n_uc.shape[1]
    pairs = np.zeros((clusters.n, k, k))
    for a in range(k):
        for b in range(a, k):
            of_unit = weight * n_uc[:, a] * (n_uc[:, b] - (a == b))
            pairs[:, a, b] = pairs[:, b, a] = clusters.sums(of_unit)[:, 0]
    return pairs


def krippendorff_alpha(level: Level) -> Statistic:
    """Krippendorff's alpha = 1 - D_o / D_e of coincidences (..., k, k).

    Krippendorff (2011): D_o = sum o_ck d2_ck / n and D_e = sum n_c n_k d2_ck / (n (n - 1)), with
    d2 the squared difference of the level of measurement.

    >>> o = np.array([[3.0, 1], [1, 3]])
    >>> round(float(krippendorff_alpha("nominal").formula(o)), 3)
    0.562
    """

    def alpha(o: FloatArray) -> FloatArray:
        n_c = o.sum(axis=-1)
        n = n_c.sum(axis=-1)
        d2 = _squared_difference(n_c, level)
        observed = (o * d2).sum(axis=(-2, -1))
        expected = (n_c[..., :, None] * n_c[..., None, :] * d2).sum(axis=(-2, -1))
        return 1 - ratio((n - 1) * observed, expected)

    return explained(alpha, lambda o: ONE_LABEL if o.any() else NO_PAIR, OF_CORRELATION)


def krippendorff_alpha_of_two(level: Level) -> Statistic:
    """Krippendorff's alpha of two raters, from how often (..., k, k) one gave each label where the
    other gave each.

    >>> C = np.array([[20.0, 5], [10, 15]])
    >>> round(float(krippendorff_alpha_of_two("nominal").formula(C)), 3)
    0.4
    """
    alpha = krippendorff_alpha(level)
    return Statistic(
        lambda C: alpha.formula(C + np.swapaxes(C, -1, -2)),
        lambda C: alpha.undefined(C + np.swapaxes(C, -1, -2)),
        OF_CORRELATION,
    )


def _squared_difference(n_c: FloatArray, level: Level) -> FloatArray:
    """d2 of shape (k, k), or (..., k, k) for `ordinal`, whose ranks depend on the margins n_c."""
    if level == "nominal":
        return 1 - np.eye(n_c.shape[-1])
    # sum(n_c..n_k) - (n_c + n_k) / 2 is the difference of the labels' mean ranks.
    v = np.cumsum(n_c, axis=-1) - n_c / 2
    return np.square(np.subtract(v[..., :, None], v[..., None, :]))


_no_pair = where_empty(NO_PAIR)
OBSERVED_AGREEMENT = Statistic(diagonal_share, _no_pair, SHARE, all_items)


def at_least_two_agree(ratings: IntArray, clusters: Clusters, level: float = LEVEL) -> Estimate:
    """The share of units, among those with two labels or more, to which two annotators gave the
    same label.

    Labels are only compared within a unit, so units of several metrics may be stacked. `n` counts
    the units used, `n_missing` those with fewer than two labels.
    """
    ordered = np.sort(ratings, axis=1)
    agree = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return _share_of_units(agree, ratings, clusters, level)


def all_agree(ratings: IntArray, clusters: Clusters, level: float = LEVEL) -> Estimate:
    """The share of units, among those with two labels or more, whose labels are all the same.

    Units may be stacked and are counted as in `at_least_two_agree`.
    """
    top = ratings.max(axis=1, initial=-1)
    agree = ((ratings == top[:, None]) | (ratings < 0)).all(axis=1)
    return _share_of_units(agree, ratings, clusters, level)


def _share_of_units(
    agree: NDArray[np.bool_],
    ratings: IntArray,
    clusters: Clusters,
    level: float,
) -> Estimate:
    usable = (ratings >= 0).sum(axis=1) >= 2
    shares = np.where(usable, agree, np.nan)
    return clustered_mean(shares, clusters.codes, NO_PAIR, level, kind="share")


ONE_LABEL = "only one label was ever used, so chance-corrected agreement is undefined"


def agreement_counts_by_cluster(ratings: IntArray, clusters: Clusters, k: int) -> FloatArray:
    """Return the counts of which AC and Fleiss' kappa are functions: (clusters, k + 1, k).

    `ratings` is (units, annotators), -1 where there is no label; `clusters` is (units,). Rows 0 to
    k - 1 hold the ordered pairs of labels of a unit with r >= 2 labels, each with weight
    1 / (r (r - 1)), so that every such unit counts 1. Row k holds the labels of the units that
    have one label only: they show how often a label is used. Raises ValueError where lengths
    differ or a code is out of range.
    """
    r_ik = value_counts(ratings, k)
    r = r_ik.sum(axis=1)
    pairs = pairs_by_cluster(r_ik, 1 / np.maximum(r * (r - 1), 1), clusters)
    one = r == 1
    alone = clusters[one].table(r_ik[one].argmax(axis=1), k)
    return np.concatenate([pairs, alone[:, None]], axis=1)


def gwet_ac(severities: Sequence[float] | None = None) -> Statistic:
    """Gwet's AC1, or AC2 by severity, (p_a - p_e) / (1 - p_e).

    Gwet (2008), the AC1 of several raters; ragged and weighted: Gwet (2014), "Handbook of
    Inter-Rater Reliability", 4th edition. With q labels, pi_k the mean share of label k among a
    unit's labels and T_w the sum of the agreement weights w,
    p_e = T_w sum(pi_k (1 - pi_k)) / (q (q - 1)). q counts all labels that could be given.
    w = 1 - v, with v as in `fleiss_kappa`.

    Where one label only was used, the formula gives 1, which is no evidence of anything: it is
    called undefined.

    >>> round(float(gwet_ac().formula(np.array([[20.0, 5], [10, 15]]))), 3)
    0.406
    """

    def by_chance(pi: FloatArray, v: FloatArray) -> FloatArray:
        q, T_w = len(v), (1 - v).sum()
        return np.asarray(1 - ratio(T_w, q * (q - 1)) * (pi * (1 - pi)).sum(axis=-1))

    return _chance_corrected(severities, by_chance)


def fleiss_kappa(severities: Sequence[float] | None = None) -> Statistic:
    """Fleiss' kappa, (p_a - p_e) / (1 - p_e) with p_e = sum(w_kl pi_k pi_l).

    Fleiss (1971); with ragged numbers of labels a unit and with weights: Gwet (2014), who takes
    p_a over the units with two labels or more, and pi_k, the mean share of label k among a unit's
    labels, over all units with any. Here 1 - (1 - p_a) / (1 - p_e) with disagreement weights
    v = 1 - w of at most 1: 0 or 1, or (s_k - s_l)^2 over its maximum, s the severities. Of two
    annotators without missing labels this is Scott's pi.

    >>> round(float(fleiss_kappa().formula(np.array([[20.0, 5], [10, 15]]))), 3)
    0.394
    """

    return _chance_corrected(severities, lambda pi, v: ((pi @ v) * pi).sum(axis=-1))


def _chance_corrected(
    severities: Sequence[float] | None,
    by_chance: Callable[[FloatArray, FloatArray], FloatArray],
) -> Statistic:
    """1 - (1 - p_a) / (1 - p_e) of counts (..., k + 1, k); `by_chance` is 1 - p_e of pi and v."""

    def formula(counts: FloatArray) -> FloatArray:
        k = counts.shape[-1]
        pairs, alone = counts[..., :k, :], counts[..., k:, :]
        n_k = (pairs.sum(axis=-1) + pairs.sum(axis=-2)) / 2 + alone.sum(axis=-2)
        pi, v = ratio(n_k, n_k.sum(axis=-1, keepdims=True)), _disagreement(severities, k)
        disagree = ratio((v * pairs).sum(axis=(-2, -1)), pairs.sum(axis=(-2, -1)))
        return 1 - ratio(disagree, by_chance(pi, v))

    return Statistic(formula, lambda counts: _undefined(counts, formula), OF_CORRELATION)


def _disagreement(severities: Sequence[float] | None, k: int) -> FloatArray:
    """v of shape (k, k), from 0 to 1; NaN where all severities are the same."""
    if severities is None:
        return 1 - np.eye(k)
    distance = label_distances(severities, k)
    return ratio(distance, distance.max())


def _undefined(counts: FloatArray, formula: Callable[[FloatArray], FloatArray]) -> str:
    k = counts.shape[-1]
    pairs = counts[:k]
    used = np.count_nonzero(pairs.sum(axis=0) + pairs.sum(axis=1))
    return first_reason({
        NO_PAIR if len(counts) > k else NO_ITEM: not pairs.any(),
        ONE_LABEL: used == 1,
        ONE_SEVERITY: np.isnan(formula(counts)),
    })  # fmt: skip


_ROUNDING = 1e-9
_N, _ROWS, _ALL, _ANNOTATORS = range(4)  # where the sums are; the last begins those of k


def score_sums_by_cluster(x: FloatArray, clusters: Clusters) -> FloatArray:
    """The sums (clusters, 3 + annotators) of the units with a score of every annotator.

    `x` is (units, annotators), severities or other scores, NaN where there is none; column j is
    always the same person. With whole numbers the sums are exact. Raises ValueError where lengths
    differ.
    """
    whole = ~np.isnan(x).any(axis=1)
    x = x[whole]
    terms = (np.ones(len(x)), x.sum(axis=1) ** 2, (x**2).sum(axis=1), *x.T)
    return clusters[whole].sums(*terms)


def _icc_2_1(sums: FloatArray) -> FloatArray:
    """Of Shrout and Fleiss (1979), Table 1, BMS between targets (units), JMS between judges
    (annotators) and EMS residual.

    Sums of squares times n k, which is exact for whole numbers, over that many degrees of freedom.
    """
    n, S2, x2, T = sums[..., _N], sums[..., _ROWS], sums[..., _ALL], sums[..., _ANNOTATORS:]
    k = T.shape[-1]
    G2, T2 = T.sum(axis=-1) ** 2, (T**2).sum(axis=-1)
    BMS = ratio(n * S2 - G2, n * k * (n - 1))
    JMS = ratio(k * T2 - G2, n * k * (k - 1))
    EMS = ratio(n * k * x2 - n * S2 - k * T2 + G2, n * k * (n - 1) * (k - 1))
    part, whole = BMS - EMS, BMS + (k - 1) * EMS + k * ratio(JMS - EMS, n)
    # NaN where the estimated variance of all is not positive beyond rounding.
    return ratio(part, np.where(whole > _ROUNDING * np.abs(part), whole, 0))


def _why_no_icc(sums: FloatArray) -> str:
    if sums[_N] < 2:
        return f"{'only one' if sums[_N] else 'no'} item was labelled by every annotator"
    if len(sums[_ANNOTATORS:]) < 2:
        return "there is one annotator only"
    same = "all labels have the same severity, or their variance is estimated as 0 or less"
    return f"{same}: the intraclass correlation is undefined"


# Shrout and Fleiss (1979), ICC(2, 1), or ICC(A, 1) of McGraw and Wong (1996): absolute agreement of
# single annotators drawn from many.
ICC_2_1 = explained(_icc_2_1, _why_no_icc, (-np.inf, 1.0))


Bools = NDArray[np.bool_]


def as_sets(labels: IntArray) -> IntArray:
    """Each label index as the set of that label alone, -1 where there is none.

    >>> as_sets(np.array([0, 2, -1])).tolist()
    [1, 4, -1]
    """
    return np.where(labels < 0, -1, 1 << np.maximum(labels, 0).astype(np.int64))


def members(sets: IntArray, k: int) -> Bools:
    """True where a label is in a set: (...) -> (..., k).

    >>> members(np.array([5, -1]), 3).tolist()
    [[True, False, True], [False, False, False]]
    """
    in_set = (sets[..., None] >> np.arange(k)) & 1 == 1
    return np.asarray(in_set & (sets >= 0)[..., None])


def accepted_shares(sets: IntArray, k: int) -> FloatArray:
    """The share of an item's annotators who accept each label, the multi-label vector of the item:
    (items, annotators) -> (items, k). NaN where nobody answered.

    >>> accepted_shares(np.array([[1, 3], [2, -1]]), 2).tolist()
    [[1.0, 0.5], [0.0, 1.0]]
    """
    return ratio(members(sets, k).sum(axis=1), (sets >= 0).sum(axis=1)[:, None])


def shares_of_others(sets: IntArray, k: int) -> FloatArray:
    """The same of all annotators but each one: (items, annotators) -> (items, annotators, k)."""
    accepted, given = members(sets, k), sets >= 0
    others = (given.sum(axis=1, keepdims=True) - given)[..., None]
    return ratio(accepted.sum(axis=1, keepdims=True) - accepted, others)


def response_sets(shares: FloatArray, accepted_by: float = 0.5) -> IntArray:
    """The labels that at least a share `accepted_by` of the annotators accept, and one at least:
    (..., k) -> (...). 0 is any annotator; -1 where no label is in the set.

    >>> response_sets(np.array([[1.0, 0.5], [0.4, 0.3], [np.nan, np.nan]])).tolist()
    [3, -1, -1]
    """
    among = (shares > 0) & (shares >= accepted_by)
    found = (among * (1 << np.arange(shares.shape[-1], dtype=np.int64))).sum(axis=-1)
    return np.where(found > 0, found, -1)


def hits(sets: IntArray, responses: IntArray, k: int) -> FloatArray:
    """The share of the labels in a set that are in the response set: 0 or 1 where it is one label.

    It is the chance that one of its labels, drawn at random, is accepted, so that nothing is won
    by naming them all. NaN where there is no set or no response set.

    >>> hits(np.array([1, 3, 3]), np.array([1, 1, 3]), 2).tolist()
    [1.0, 0.5, 1.0]
    """
    said, accepted = members(sets, k), members(responses, k)
    found = ratio((said & accepted).sum(axis=-1), said.sum(axis=-1))
    return np.where(responses < 0, np.nan, found)


def least_severe(sets: IntArray) -> IntArray:
    """The first label of each set, -1 where there is none.

    >>> least_severe(np.array([6, 1, -1])).tolist()
    [1, 0, -1]
    """
    bits = np.log2(np.maximum(sets & -sets, 1)).astype(np.int64)
    return np.where(sets < 0, -1, bits)


NO_SET = "no item has both a label and a response set"
SET_STATISTICS: Mapping[str, str] = {
    "hit": "share of the labels named that are in the response set",
    "coverage": "share of the response set that is named",
    "exact": "share of items on which exactly the response set is named",
    "mse": "squared distance of the labels named (0 or 1) from the share of annotators who accept "
    "each, added up over the labels; 0 is best",
}


def set_scores(sets: IntArray, shares: FloatArray, accepted_by: float = 0.5) -> FloatArray:
    """Each of `SET_STATISTICS` of every item: (n,), (n, k) -> (n, 4). NaN where it is undefined:
    without a set, without annotators and, but for `mse`, without a response set.

    >>> set_scores(np.array([1]), np.array([[1.0, 0.5]])).tolist()
    [[1.0, 0.5, 0.0, 0.25]]
    """
    k = shares.shape[1]
    responses = response_sets(shares, accepted_by)
    both = (sets >= 0) & (responses >= 0)
    distance = ((members(sets, k) - shares) ** 2).sum(axis=1)
    columns = (
        hits(sets, responses, k), hits(responses, sets, k),
        np.where(both, sets == responses, np.nan), np.where(sets >= 0, distance, np.nan),
    )  # fmt: skip
    return np.stack(columns, axis=1)


def fill_missing(scores: FloatArray, shares: FloatArray, missing: Bools, worst: bool) -> FloatArray:
    """The scores with those that are `missing` (n,) as bad, or as good, as a set can make them."""
    far = np.where(worst, np.maximum(shares, 1 - shares), np.minimum(shares, 1 - shares))
    filled = np.full_like(scores, 0.0 if worst else 1.0)
    filled[:, -1] = (far**2).sum(axis=1)
    return np.where(missing[:, None], filled, scores)
