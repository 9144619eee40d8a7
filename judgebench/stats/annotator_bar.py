"""Tests whether labels were made by themselves, or derived from an annotator's or from the truth.

`labels` is (items,) and `ratings` (items, annotators), ints 0..k-1 with -1 where there is none.

Whether annotators fall into camps: groups that agree within and differ across.

`ratings` is (items, annotators), ints 0..k-1 with -1 where there is no label.

Annotators beside their peers: whose agreement a judge is held against.

`ratings` is (items, annotators), ints 0..k-1 with -1 where there is no label. Nothing here looks at
a judge or at a truth: annotators are compared with the others' agreement among themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio, value_counts
from judgebench.stats.consensus import dawid_skene
from judgebench.stats.intervals import SampledIntervals, clustered_share, mean_difference
from judgebench.stats.paired_tests import permutation_test

BarKind = Literal["typical", "average", "best"]
Bools = NDArray[np.bool_]

CLEARLY_WORSE = 0.05  # a smaller gap is no reason to leave anybody out, however certain
FALSELY = 0.01  # share of those left out who are as good as the others; it names people
_STANDARD_ERRORS = 3.92  # in the width of an interval of 95 %


@dataclass(frozen=True)
class Bar:
    """Whose agreement a judge is held against.

    `kept` (annotators,) are those in the bar. `gap` (annotators,) is how much more often each
    agrees with those in the bar than these agree with each other; NaN where nothing shows it.
    `weights` (bars, annotators) says how much the labels of each count; with several rows nothing
    shows which of them is the bar, and a judge has to reach every one. The typical annotator may
    be better than the weighted ones by `spread`: skill that differs more than the labels can tell
    apart.
    """

    kept: Bools
    gap: SampledIntervals
    weights: FloatArray
    spread: float = 0.0


def fit_bar(ratings: IntArray, clusters: Clusters, k: int, kind: BarKind = "typical") -> Bar:
    """The bar that the typical competent annotator sets, or the average one, or the best.

    typical: annotators who are clearly worse than the others are left out, at most half of them.
    Of the rest the better half counts more, in so far as labels can tell them apart. With the mean
    squares of gaps G and of their standard errors V, the true gaps differ by about
    S^2 = G - (1 + sqrt(2 / (a - 1))) V, and a share s = S^2 / G of the weight goes to the better
    half of the a annotators: partial pooling as of James and Stein (1961), a little cautious. A
    median lies at most one standard deviation from the mean (Hotelling and Solomons 1932), so that
    `spread` is S sqrt(1 - s), what pooling leaves open. best: as typical, with one annotator for
    the better half. average: everybody counts the same. Two annotators cannot be told apart: each
    is a bar by themselves.

    >>> ratings = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]] * 20)
    >>> fit_bar(ratings, Clusters(np.arange(80), 80), k=2).kept.tolist()
    [True, True, False]
    """
    rated: Bools = np.asarray((ratings >= 0).any(axis=0))
    if kind == "average":
        return Bar(rated, gaps(ratings, rated, clusters, k), rated[None].astype(np.float64))
    kept, room = rated.copy(), int(rated.sum()) // 2
    while room and kept.sum() > 2:
        found = gaps(ratings, kept, clusters, k)
        worse = np.flatnonzero(_clearly_worse(found, kept))
        out = worse[np.argsort(found.value[worse], kind="stable")]
        out = out[: min(room, int(kept.sum()) - 2)]
        if not len(out):
            break
        kept[out] = False
        room -= len(out)
    found = gaps(ratings, kept, clusters, k)
    labels = (ratings >= 0).sum(axis=0)
    return Bar(kept, found, *_weights(labels, kept, found, kind))


def gaps(ratings: IntArray, kept: Bools, clusters: Clusters, k: int) -> SampledIntervals:
    """The agreement of each annotator with the others of `kept` minus that of these with each
    other on the same items (annotators,), with an interval of 95 %; where no item has two others,
    minus theirs on all items without the annotator. NaN where there are none."""
    votes = value_counts(ratings[:, kept], k)
    found = [gap(ratings[:, a], bool(kept[a]), votes, clusters) for a in range(ratings.shape[1])]
    value, low, high = np.array(found, dtype=np.float64).reshape(-1, 3).T
    return SampledIntervals(value, low, high)


def gap(
    own: IntArray, among: bool, votes: IntArray, clusters: Clusters
) -> tuple[float, float, float]:
    """The agreement of labels `own` (items,) with those counted in `votes` (items, k) minus that of
    these with each other, and its interval; `among` where they are counted there too."""
    m, same = votes.sum(axis=1), (votes * (votes - 1)).sum(axis=1)
    rows = np.flatnonzero(own >= 0)
    others, agreeing = m[rows] - among, votes[rows, own[rows]] - among
    pairs, peers = others * (others - 1), same[rows] - 2 * agreeing * among
    used = pairs > 0
    if used.any():
        d = ratio(agreeing, others)[used] - ratio(peers, pairs)[used]
    else:
        used, rest = others > 0, np.ones(len(own), dtype=np.bool_)
        rest[rows] = not among
        elsewhere = ratio(same[rest].sum(), (m * (m - 1))[rest].sum())
        d = ratio(agreeing, others)[used] - elsewhere
    if not used.any() or np.isnan(d).any():
        return np.nan, np.nan, np.nan
    of = clusters[rows[used]].occurring()
    x, n = np.split(of.sums(d, np.ones(len(d))), 2, axis=1)
    found = mean_difference(x, n, np.ones((1, of.n)), 0.95, balanced=False)
    return float(found.value[0]), float(found.low[0]), float(found.high[0])


def _clearly_worse(found: SampledIntervals, kept: Bools) -> Bools:
    """Whose gap is negative and of a size that matters, with a false discovery rate of FALSELY
    (Benjamini and Hochberg 1995)."""
    z = ratio(found.value, (found.high - found.low) / _STANDARD_ERRORS)
    p = np.where(kept & ~np.isnan(z), scipy.special.ndtr(z), 1.0)
    order = np.argsort(p, kind="stable")
    below = p[order] <= FALSELY * np.arange(1, len(p) + 1) / kept.sum()
    worse = np.zeros(len(p), dtype=np.bool_)
    worse[order[: np.flatnonzero(below).max(initial=-1) + 1]] = True
    return worse & kept & (np.nan_to_num(found.value) < -CLEARLY_WORSE)


def _weights(
    labels: IntArray, kept: Bools, found: SampledIntervals, kind: BarKind
) -> tuple[FloatArray, float]:
    """The weights (bars, annotators), and the spread; `labels` (annotators,) counts theirs."""
    everybody, value = kept.astype(np.float64), found.value[kept]
    if kept.sum() == 2:
        return np.eye(len(kept))[kept], 0.0
    if kept.sum() < 2 or np.isnan(value).any():
        return everybody[None], 0.0
    better = np.zeros(len(kept), dtype=np.bool_)
    most = 1 if kind == "best" else len(value) // 2 + 1
    better[np.flatnonzero(kept)[np.argsort(-value, kind="stable")[:most]]] = True
    se = (found.high - found.low)[kept] / _STANDARD_ERRORS
    noise = (1 + np.sqrt(2 / (len(value) - 1))) * float((se**2).mean())
    between = max(0.0, float((value**2).mean()) - noise)
    share = between / (between + noise)
    scale = labels[kept].sum() / labels[better].sum()
    weights = (1 - share) * everybody + share * scale * better
    return weights[None], float(np.sqrt(between * (1 - share)))


def attenuation_factor(agreement: FloatArray, k: FloatArray | int) -> FloatArray:
    """The share of a difference in accuracy that is left with another annotator as the truth.

    If errors are independent and fall on all k labels alike, annotators of accuracy p agree with
    each other on A = p^2 + (1 - p)^2 / (k - 1) of the items, and a judge's distance from them
    shrinks by (k p - 1) / (k - 1) = sqrt((k A - 1) / (k - 1)). 0 where they agree by chance only.

    >>> round(float(attenuation_factor(np.float64(0.82), 2)), 3)  # annotators who are right in 90 %
    0.8
    """
    return np.sqrt(np.clip(ratio(k * agreement - 1, np.subtract(k, 1)), 0, 1))


Camps = tuple[tuple[int, ...], ...]

MOST = 3
LEAST_DIFFERENCE = 0.05  # between agreement within and across; less makes no two bars


def camps(ratings: IntArray, clusters: Clusters, k: int, level: float = 0.95) -> Camps:
    """The columns of two or three groups of two annotators or more; empty where none are shown.

    Where annotators merely differ in skill, the less skilled agree with each other no more often
    than with the skilled. So camps are declared only where *every* group agrees within more often
    than across (an intersection-union test). Groups are formed on one half of the clusters, by
    average linkage of the shares of unequal labels, and tested on the other half, one-sided, and
    corrected for the halves and partitions tried (Bonferroni).

    >>> strict, lenient = [0, 1, 1, 1] * 30, [0, 0, 1, 0] * 30
    >>> ratings = np.array([strict, lenient, strict, lenient]).T
    >>> camps(ratings, Clusters(np.arange(120), 120), k=2)
    ((0, 2), (1, 3))
    """
    who = np.flatnonzero((ratings >= 0).any(axis=0))
    if len(who) < 4:
        return ()
    first = np.random.default_rng(0).permutation(clusters.n)[clusters.codes] % 2 == 0
    tried = [
        (_copies_p(ratings[~half], clusters[~half].occurring(), groups, k), groups)
        for half in (first, ~first)
        for groups in _groupings(ratings[half][:, who], who, k)
    ]
    shown = [groups for p, groups in tried if p * len(tried) <= 1 - level]
    if not shown:
        return ()
    # As many camps as were shown; who is in which is best seen in all items.
    count = max(map(len, shown))
    whole = [groups for groups in _groupings(ratings[:, who], who, k) if len(groups) == count]
    return (whole or shown)[0]


def _groupings(ratings: IntArray, who: NDArray[np.int64], k: int) -> Iterator[Camps]:
    """Partitions into groups, whose members are those of `who`; who is alone is in no group."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    share, _ = pair_agreement(ratings, k)
    if np.isnan(share).all():
        return
    share = np.where(np.isnan(share), np.nanmean(share), share)
    np.fill_diagonal(share, 1)
    tree = linkage(squareform(1 - share, checks=False), "average")
    seen: set[Camps] = set()
    for clusters in range(2, min(len(who), MOST + 2) + 1):
        of = fcluster(tree, clusters, "maxclust")
        members = (tuple(who[of == group].tolist()) for group in np.unique(of))
        groups = tuple(sorted(group for group in members if len(group) >= 2))
        if 2 <= len(groups) <= MOST and groups not in seen:
            seen.add(groups)
            yield groups


def pair_agreement(ratings: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    """The share of items that each two annotators labelled alike, of those that both labelled, and
    how many these are; both (annotators, annotators)."""
    given = (ratings >= 0).astype(np.float64)
    agreeing = np.zeros((ratings.shape[1],) * 2)
    for label in range(k):
        this = (ratings == label).astype(np.float64)
        agreeing += this.T @ this
    both = given.T @ given
    return ratio(agreeing, both), both


def _copies_p(ratings: IntArray, clusters: Clusters, groups: Camps, k: int) -> float:
    """The largest p of the groups, each for agreeing within no more than across."""
    votes = [value_counts(ratings[:, group], k) for group in groups]
    everybody = np.sum(votes, axis=0)
    worst = 0.0
    for own in votes:
        m, others = own.sum(axis=1), everybody - own
        x, n, y, o = clusters.sums(
            (own * (own - 1)).sum(axis=1), m * (m - 1),
            (own * others).sum(axis=1), m * others.sum(axis=1),
        ).T  # fmt: skip
        within, across = ratio(x.sum(), n.sum()), ratio(y.sum(), o.sum())
        if not within - across >= LEAST_DIFFERENCE:  # also where either is undefined
            return 1.0
        z = (x - within * n) / n.sum() - (y - across * o) / o.sum()
        # A few items without a disagreement claim no certainty.
        V = (z**2).sum() + 1 / (n > 0).sum() ** 2 + 1 / (o > 0).sum() ** 2
        worst = max(worst, float(scipy.special.ndtr((across - within) / np.sqrt(V))))
    return worst


FEWEST_SHARED = 30  # items in common; fewer never show a copy
_MANY = 300  # with whom nobody else can be compared: people who are right 99 times in 100 differ
ALMOST_ALL, SURELY = 0.98, 0.90  # a copy is equal in so many items, and in more than so many
LEAST_SHARED, EACH_WAY = 0.15, 0.20  # of the deviations: beyond anybody else, above and below
ENOUGH = 200  # items of three labels, to know what annotators deviate from


def is_copy_of(
    labels: IntArray, ratings: IntArray, clusters: Clusters, level: float = 0.95
) -> Bools:
    """True where `labels` are an annotator's own on almost all items where another annotator gave
    another label than that annotator: (annotators,).

    >>> ratings = np.array([[0, 1], [1, 0], [1, 1]] * 30)
    >>> is_copy_of(ratings[:, 0], ratings, Clusters(np.arange(90), 90)).tolist()
    [True, False]
    """
    found = np.zeros(ratings.shape[1], dtype=np.bool_)
    for a, own in enumerate(ratings.T):
        others = np.delete(ratings, a, axis=1)
        telling = ((others >= 0) & (others != own[:, None])).any(axis=1)
        found[a] = _almost_all(_equal(labels, own, telling, clusters, level))
    return found


class Copy(NamedTuple):
    """Two annotators, by column, of whom one may have the labels of the other: the same on all of
    `n_equal` items; 0 where it shows on the items on which another annotator differs."""

    first: int
    second: int
    n_equal: int


def find_copy(
    ratings: IntArray, clusters: Clusters, independent: Collection[int] = ()
) -> Copy | None:
    """The first two annotators who seem to be copies, but for those of whom both are in
    `independent`; None without any.

    >>> ratings = np.array([[0, 0, 1], [1, 1, 0], [1, 1, 1]] * 30)
    >>> find_copy(ratings, Clusters(np.arange(90), 90))
    Copy(first=0, second=1, n_equal=0)
    """
    # A copy is equal on almost all items: where it could not tell, everybody was.
    share, both = pair_agreement(ratings, int(ratings.max(initial=0)) + 1)
    alike = np.argwhere(np.triu((share >= ALMOST_ALL) & (both >= FEWEST_SHARED), 1)).tolist()
    for a, b in alike:
        if a in independent and b in independent:
            continue
        if len(share) == 2 and share[a, b] == 1 and both[a, b] >= _MANY:
            return Copy(a, b, int(both[a, b]))
        if is_copy_of(ratings[:, a], np.delete(ratings, a, axis=1), clusters)[b - 1]:
            return Copy(a, b, 0)
    return None


def same_as_truth(
    labels: IntArray, truth: IntArray, ratings: IntArray, clusters: Clusters, k: int
) -> bool:
    """True where `labels` are the truth on almost all items on which annotators differ, and more
    often than a judge that is always right could be.

    There the truth is right about as often as one annotator is anywhere, exactly so for three
    annotators and two labels; how often that is follows from how often annotators agree, as in
    `attenuation_factor`.
    """
    votes = value_counts(ratings, k)
    m = votes.sum(axis=1)
    agreement = ratio((votes * (votes - 1)).sum(), (m * (m - 1)).sum())
    right = (1 + (k - 1) * float(attenuation_factor(agreement, k))) / k
    telling = ((ratings >= 0) & (ratings != truth[:, None])).any(axis=1)
    share = _equal(labels, truth, telling, clusters, 0.95)
    return _almost_all(share) and bool(share.low[0] > right)


def _equal(
    labels: IntArray, own: IntArray, telling: Bools, clusters: Clusters, level: float
) -> SampledIntervals:
    telling = telling & (own >= 0) & (labels >= 0)
    n, x = clusters.sums(telling, telling & (labels == own)).T
    return clustered_share(x, n, np.ones((1, clusters.n)), level)


def _almost_all(share: SampledIntervals) -> bool:
    return bool(share.value[0] >= ALMOST_ALL and share.low[0] >= SURELY)


def partly_derived_from(
    labels: IntArray, ratings: IntArray, clusters: Clusters, k: int, level: float = 0.95
) -> Bools:
    """The annotator whose own deviations `labels` repeat, if any, marked: (annotators,).

    The model of Dawid and Skene (1979) gives the probabilities of the true label from the
    annotators' labels. Labels that were made by themselves are predicted by these alone, however
    lenient or poor they are; a share c that was taken from annotator a adds c times a's deviation
    from what the probabilities let expect of a. The shares of all annotators are estimated at once
    by least squares, with whole clusters as units. That of a must exceed everybody else's by more
    than LEAST_SHARED, since on hard items all look alike, and show above and below the expected
    label, which a lean that both have hardly does. Labels that agree with the others as often as
    these do with each other are not suspected, and none are in few items.
    """
    found = np.zeros(ratings.shape[1], dtype=np.bool_)
    usable = (labels >= 0) & ((ratings >= 0).sum(axis=1) >= 3)
    if usable.sum() < ENOUGH:
        return found
    ratings, labels, of = ratings[usable], labels[usable], clusters[usable].occurring()
    rest = [value_counts(np.delete(ratings, a, axis=1), k) for a in range(len(found))]
    further = [gap(labels, among=False, votes=votes, clusters=of)[0] < 0 for votes in rest]
    if not any(further):
        return found
    truth = dawid_skene(ratings, k, smoothing=0.5).posterior
    own = np.stack([_deviation(one, truth) for one in ratings.T], axis=2)
    said, above = _deviation(labels, truth), np.einsum("nka,k->na", own, np.arange(k)) > 0
    share, V = _shares(own, said, truth, of)
    apart = np.concatenate([own * above[:, None], own * ~above[:, None]], axis=2)
    each_way = _shares(apart, said, truth, of)[0].reshape(2, -1).min(axis=0)
    a = int(share.argmax())
    noise = np.sqrt(np.maximum(V[a, a] + np.diag(V) - 2 * V[a], 0))
    beyond = share[a] - share + scipy.special.ndtri((1 - level) / 2 / len(share)) * noise
    clear = np.delete(beyond, a).min() > LEAST_SHARED and each_way[a] > EACH_WAY
    found[a] = clear and further[a]
    return found


def _deviation(labels: IntArray, truth: FloatArray) -> FloatArray:
    """The labels given beyond what the probabilities of the true one, `truth` (items, k), let
    expect: (items, k); 0 where none was given."""
    given = labels >= 0
    return _without(truth * given[:, None], np.eye(truth.shape[1])[labels] * given[:, None])


def _without(truth: FloatArray, x: FloatArray) -> FloatArray:
    """The residuals of x (items, ...) after a linear regression on `truth`."""
    flat = x.reshape(len(x), -1)
    return np.asarray(flat - truth @ np.linalg.lstsq(truth, flat)[0]).reshape(x.shape)


def _shares(
    own: FloatArray, said: FloatArray, truth: FloatArray, of: Clusters
) -> tuple[FloatArray, FloatArray]:
    """The shares of several deviations `own` (items, k, several) in `said` (items, k), and the
    covariances of these estimates."""
    own = _without(truth, own)
    inverse = np.linalg.pinv(np.einsum("nka,nkb->ab", own, own), hermitian=True)
    share = inverse @ np.einsum("nka,nk->a", own, said)
    z = of.sums(*np.einsum("nka,nk->an", own, said - own @ share)) @ inverse
    return share, z.T @ z


FAR = 0.25  # of all labels; someone who answers every second item at random may come close to it
FALSE_ALARM = 0.01  # chance that anybody is named although all use the labels alike
NEARLY_ALL = 0.9  # of a judge's labels


@dataclass(frozen=True)
class Use:
    """One annotator's labels beside those that the others gave the same `n` items.

    `own` and `others` (k,) are shares of the labels; `distance` is the total variation distance
    between them, the share of labels that would have to change. `agreement` is how often another
    gave the same label. Where `exchanged` names two labels, the annotator clearly gave each of them
    where the others gave the other one, and `agreement_exchanged` is the agreement if these two
    were exchanged. `clear` says whether any share differs by more than chance. All shares are NaN
    where no item was labelled by another.
    """

    n: int
    own: FloatArray
    others: FloatArray
    agreement: float
    clear: bool = False
    exchanged: tuple[int, int] | None = None
    agreement_exchanged: float = np.nan

    @property
    def distance(self) -> float:
        return float(np.abs(self.own - self.others).sum() / 2)

    @property
    def farthest_label(self) -> int:
        """The label whose shares differ most."""
        return int(np.abs(self.own - self.others).argmax())

    @property
    def is_odd(self) -> bool:
        """True where the labels are used as by nobody else, by more than chance and unequal
        skill."""
        return self.exchanged is not None or (self.clear and self.distance >= FAR)

    @property
    def oddness(self) -> float:
        """The distance from the others, by the shares of labels or by two that are exchanged."""
        gain = self.agreement_exchanged - self.agreement if self.exchanged else 0.0
        return max(self.distance, gain)


@dataclass(frozen=True)
class UnusualLabelUse:
    """The annotators who use the labels as nobody else does, by column. With `settled` False
    nothing shows who of them is the odd one: two annotators alone, or as many on either side."""

    uses: Mapping[int, Use]
    settled: bool = True


def uses(ratings: IntArray, clusters: Clusters, k: int) -> list[Use]:
    """Each annotator beside all others.

    >>> ratings = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 1]] * 20)
    >>> found = uses(ratings, Clusters(np.arange(80), 80), k=2)
    >>> found[2].own.tolist(), found[2].others.tolist(), found[2].exchanged
    ([0.25, 0.75], [0.75, 0.25], (0, 1))
    """
    annotators = max(1, int((ratings >= 0).any(axis=0).sum()))
    votes, by_annotator = value_counts(ratings, k), []
    for labels in ratings.T:
        # The items that another annotator labelled too.
        rows = np.flatnonzero((labels >= 0) & (votes.sum(axis=1) > 1))
        others = votes[rows] - _one_hot(labels[rows], k)
        by_annotator.append(_use(labels[rows], others, clusters[rows].occurring(), annotators))
    return by_annotator


def odd_ones(ratings: IntArray, clusters: Clusters, k: int) -> UnusualLabelUse:
    """The annotators whose labels are distributed unlike the others' on the same items, or who gave
    two labels the wrong way round.

    Two tests for each annotator, both corrected for their number (Bonferroni). The shares of the
    labels: `stats.intervals.mean_difference` of own label and the others' share, of FAR or more in
    all. Two labels exchanged: where most of the others gave the one, the annotator more often gave
    the other, and the other way round too; each a sign test (Dixon and Mood 1946, "The Statistical
    Sign Test"), both of which must be passed (intersection-union, Berger 1982). Noise alone never
    exchanges labels. The farthest is taken out first, so that they make nobody else look odd. Only
    a minority can be odd: where it is not, nothing shows who of those found is.

    >>> ratings = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 1]] * 20)
    >>> list(odd_ones(ratings, Clusters(np.arange(80), 80), k=2).uses)
    [2]
    """
    left = np.flatnonzero((ratings >= 0).any(axis=0))
    room, found, first = (len(left) - 1) // 2, dict[int, Use](), dict[int, Use]()
    while True:
        now = zip(left.tolist(), uses(ratings[:, left], clusters, k), strict=True)
        odd = {column: use for column, use in now if use.is_odd}
        if not odd:
            return UnusualLabelUse(dict(sorted(found.items())))
        first = first or odd
        if len(found) == room:
            return UnusualLabelUse(first, settled=False)
        farthest = max(odd, key=lambda column: odd[column].oddness)
        found[farthest] = odd[farthest]
        left = left[left != farthest]


def _use(own: IntArray, votes: IntArray, clusters: Clusters, annotators: int) -> Use:
    """`own` labels (items,) beside the `votes` of the others (items, k)."""
    n, k = votes.shape
    if not n:
        nothing = np.full(k, np.nan)
        return Use(0, nothing, nothing, np.nan)
    share, given = ratio(votes, votes.sum(axis=1, keepdims=True)), _one_hot(own, k)
    clear, items = _is_clear(given, share, clusters, annotators), np.arange(n)
    agreement = float(share[items, own].mean())
    use = Use(n, given.mean(axis=0), share.mean(axis=0), agreement, clear)
    pair = _exchanged(own, votes, clusters, FALSE_ALARM / 2 / annotators)
    if pair is None:
        return use
    swapped = np.arange(k)
    swapped[list(pair)] = pair[::-1]
    after = float(share[items, swapped[own]].mean())
    return replace(use, exchanged=pair, agreement_exchanged=after)


def _is_clear(
    own: FloatArray | IntArray, others: FloatArray | IntArray, clusters: Clusters, annotators: int
) -> bool:
    """True where a label's share differs by more than chance between `own` and `others`, counts of
    each item's labels (items, k) that have the same sum."""
    level, clear = 1 - FALSE_ALARM / 2 / (annotators * own.shape[1]), False
    each = np.maximum(own.sum(axis=1), others.sum(axis=1))
    for label in range(own.shape[1]):
        x, m = np.split(clusters.sums(own[:, label] - others[:, label], each), 2, axis=1)
        d = mean_difference(x, m, np.ones((1, clusters.n)), level, balanced=False)
        clear |= bool(d.low[0] > 0 or d.high[0] < 0)
    return clear


def _exchanged(
    own: IntArray, others: IntArray, clusters: Clusters, falsely: float
) -> tuple[int, int] | None:
    """The two labels that were most clearly given the wrong way round; None where none were."""
    most = others.max(axis=1)
    top = np.where((others == most[:, None]).sum(axis=1) == 1, others.argmax(axis=1), -1)
    pairs = list(combinations(range(others.shape[1]), 2))
    p = {
        (a, b): max(
            _label_use_p(own, top == a, (a, b), clusters),
            _label_use_p(own, top == b, (b, a), clusters),
        )
        for a, b in pairs
    }
    best = min(p, key=lambda pair: p[pair], default=None)
    return best if best is not None and p[best] * len(pairs) <= falsely else None


def _label_use_p(
    own: IntArray, here: NDArray[np.bool_], labels: tuple[int, int], clusters: Clusters
) -> float:
    """The chance that so many clusters have more of the second label than of the first among the
    items `here`, if both were as likely."""
    first, second = labels
    balance = clusters.sums(here * ((own == second) * 1.0 - (own == first)))[:, 0]
    p = permutation_test(np.sign(balance), "greater")
    return 1.0 if p is None else p


def _one_hot(labels: IntArray, k: int) -> NDArray[np.int64]:
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.int64)


def collapsed_label(judged: IntArray, truth: IntArray) -> int:
    """The label that is nearly all that a judge gives, -1 where there is none or that is no fault.

    Both are (items,), without -1. The judge gives it on `NEARLY_ALL` of the items or more, and
    humans do not; clearly more often than it is the truth (McNemar's exact test); and not clearly
    more often where it is the truth (Fisher's exact test). So a judge is not named where the truth
    is as skewed, or where its few other labels stand where they should. One label alone needs no
    test.

    >>> truth = np.array([0, 1] * 50)
    >>> collapsed_label(np.zeros(100, dtype=np.int64), truth), collapsed_label(truth, truth)
    (0, -1)
    """
    from scipy.stats import fisher_exact  # which takes a second to import

    label = int(np.bincount(judged, minlength=1).argmax())
    own, true = judged == label, truth == label
    if not len(own) or own.mean() < NEARLY_ALL or true.mean() >= NEARLY_ALL:
        return -1
    table = [[int((o & t).sum()) for o in (own, ~own)] for t in (true, ~true)]
    (_, fewer), (more, _) = table
    clear = own.all() or (permutation_test(np.repeat([1, -1], [more, fewer])) or 0.0) < FALSE_ALARM
    apart = fisher_exact(table, "greater").pvalue <= FALSE_ALARM
    return label if clear and not apart else -1
