"""The Alternative Annotator Test: may a judge take the place of an annotator?

Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge: How to
Statistically Justify Replacing Human Annotators with LLMs", arXiv:2501.10970. Each annotator h is
left out in turn, and it is asked who is closer to the unit's other annotators, h or the judge f.
By itself the test is easily passed where one label is rare: see docs/decide_alternative_test.md.

`ratings` is (units, annotators) and `judge` (units,), ints 0..k-1 with -1 where there is no label.
A unit informs about an annotator if they, the judge and another annotator labelled it. With
`severities` (k,) closeness is minus the root mean square distance of severities to the others;
without, as in the paper for categories, the share of the others who gave the same label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from judgebench.records import Estimate
from judgebench.stats.arrays import (
    Clusters,
    IntArray,
    label_distances,
    ratio,
    value_counts,
)
from judgebench.stats.jackknife import (
    LEVEL,
    SHARE,
    Statistic,
    clustered_estimate,
    where_empty,
)
from judgebench.stats.paired import benjamini_yekutieli

_ROUNDING = 1e-9


@dataclass(frozen=True)
class DuelTerms:
    """`epsilon` is how much worse than an annotator the judge may be, `q` the false discovery rate.

    Annotators with fewer than `least_items` units are not tested. `severities` (k,) decide what is
    close.
    """

    epsilon: float = 0.1
    q: float = 0.05
    least_items: int = 30
    severities: Sequence[float] | None = None


@dataclass(frozen=True)
class AlternativeAnnotatorTest:
    """The annotators against whom the judge wins. All tuples are (annotators,), None for those not
    tested.

    `p_values` are as computed, `wins` what is left of them after Benjamini-Yekutieli.
    `winning_rate` and `passes` are None where no annotator could be tested; `reason` says why, or
    what else must be known of the test.
    """

    p_values: tuple[float | None, ...]
    wins: tuple[bool | None, ...]
    winning_rate: float | None
    passes: bool | None
    reason: str

    @property
    def tested(self) -> int:
        """The number of annotators that were tested."""
        return sum(p is not None for p in self.p_values)


@dataclass(frozen=True)
class _Duel:
    """The judge against one annotator on the units that inform about them, `rows` (n,).

    `judge_wins` and `annotator_wins` (n,) are the paper's W^f and W^h: at least as close to the
    others as the rival; both are 1 on a tie.
    """

    rows: NDArray[np.int64]
    judge_wins: NDArray[np.int64]
    annotator_wins: NDArray[np.int64]
    n_missing: int  # units without a label of the judge


def alternative_annotator_test(
    ratings: IntArray, judge: IntArray, k: int, terms: DuelTerms = DuelTerms()
) -> AlternativeAnnotatorTest:
    """Winning rate omega = share of annotators for whom H0: rho^f <= rho^h - epsilon is rejected.

    rho is the chance to be at least as close to the others as the rival, d_i = W^h_i - W^f_i, and
    p that of the one-sided paired t test of Calderon et al. (2025), section 3.2,

        t = (mean(d) - epsilon) / (s / sqrt(n)),

    units taken as independent; the p values are corrected by Benjamini and Yekutieli (2001). Where
    all d_i are equal there is no t, and p is the chance of so many units without a loss,
    (1 - epsilon)^n if d = 0 or -1, else 1; `reason` says so. The judge passes with omega >= 1/2.

    >>> ratings = np.tile([[0, 0, 0], [1, 1, 0]], (20, 1))
    >>> alternative_annotator_test(ratings, ratings[:, 0], k=2).winning_rate
    1.0
    """
    p_values: list[float | None] = []
    without_t = 0
    for duel in _duels(ratings, judge, k, terms):
        d = duel.annotator_wins - duel.judge_wins
        if len(d) < max(2, terms.least_items):
            p_values.append(None)
        else:
            p_values.append(_p(d, terms.epsilon))
            without_t += bool((d == d[0]).all())
    corrected = benjamini_yekutieli(p_values)
    wins = tuple(None if p is None else p <= terms.q for p in corrected)
    tested = [win for win in wins if win is not None]
    if not tested:
        reason = _why_nobody(ratings, terms)
        return AlternativeAnnotatorTest(tuple(p_values), wins, None, None, reason)
    rate, reason = sum(tested) / len(tested), ""
    if without_t:
        reason = (
            f"for {without_t} of {len(tested)} annotators all differences are equal, so that there "
            "is no t: p is the chance of so many items without a loss"
        )
    return AlternativeAnnotatorTest(tuple(p_values), wins, rate, rate >= 0.5, reason)


def average_advantage(
    ratings: IntArray,
    judge: IntArray,
    clusters: Clusters,
    k: int,
    terms: DuelTerms = DuelTerms(),
    level: float = LEVEL,
) -> Estimate:
    """rho: the mean over annotators of the share of units on which W^f = 1, ties included.

    Calderon et al. (2025), section 3; intervals are over clusters. `n` counts pairs of a unit and a
    tested annotator, `n_missing` those that lack a label of the judge.
    """
    counts, n_missing = [], 0
    for duel in _duels(ratings, judge, k, terms):
        if (n := len(duel.rows)) >= max(2, terms.least_items):
            counts.append(clusters[duel.rows].sums(duel.judge_wins, np.ones(n)))
            n_missing += duel.n_missing
    if not counts:
        reason = _why_nobody(ratings, terms)
        return Estimate(None, reason=reason, level=level)
    stacked = np.stack(counts, axis=1)
    n = round(float(stacked[..., 1].sum()))
    return clustered_estimate(stacked, _ADVANTAGE, level, n=n, n_missing=n_missing)


# Of counts (..., annotators, 2): units won and all units. The mean is not of those defined only:
# without an annotator it would be an average of other people.
_ADVANTAGE = Statistic(
    lambda C: np.asarray(ratio(C[..., 0], C[..., 1]).mean(axis=-1)),
    where_empty("there is no unit to compare"),
    SHARE,
)


def _p(d: NDArray[np.int64], epsilon: float) -> float:
    n, mean = len(d), d.mean()
    if (d == d[0]).all():
        return (1 - epsilon) ** n if mean <= 0 else 1.0
    t = (mean - epsilon) / (d.std(ddof=1) / np.sqrt(n))
    return float(stdtr(n - 1, t))


def _duels(ratings: IntArray, judge: IntArray, k: int, terms: DuelTerms) -> Iterator[_Duel]:
    """One duel per annotator."""
    votes = value_counts(ratings, k)
    s = terms.severities
    apart = 1 - np.eye(k) if s is None else label_distances(s, k)
    for own in ratings.T:
        shared = np.flatnonzero((own >= 0) & (votes.sum(axis=1) >= 2))
        others = votes[shared]
        others[np.arange(len(shared)), own[shared]] -= 1
        usable = judge[shared] >= 0
        rows, place = shared[usable], np.arange(int(usable.sum()))
        # Sums over the others order as their share of equal labels does, and as their root mean
        # square distance of severities does.
        distance = others[usable] @ apart
        of_judge, of_annotator = distance[place, judge[rows]], distance[place, own[rows]]
        slack = _ROUNDING * (of_judge + of_annotator)
        wins = (of_judge <= of_annotator + slack).astype(np.int64)
        losses = (of_annotator <= of_judge + slack).astype(np.int64)
        yield _Duel(rows, wins, losses, int((~usable).sum()))


def _why_nobody(ratings: IntArray, terms: DuelTerms) -> str:
    if ratings.shape[1] < 2:
        return "the test needs two annotators"
    return (
        f"no annotator has {terms.least_items} items that another annotator and the judge labelled "
        "too"
    )
