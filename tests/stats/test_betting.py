"""Tests by betting, and confidence sequences."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom

from judgebench.stats.betting import BETS, BLOCK, Evidence, Sums, divergence, needed


def one_by_one(x: tuple[int, ...], bound: float) -> Evidence:
    found = Evidence()
    for value in x:
        found = found.after(np.array([value - bound]), bound)
    return found


@pytest.mark.parametrize("bound", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 4, 8])
def test_nobody_gains_on_average_where_the_hypothesis_holds(bound: float, n: int) -> None:
    total = 0.0
    for x in itertools.product((0, 1), repeat=n):
        chance = bound ** sum(x) * (1 - bound) ** (n - sum(x))
        total += chance * math.exp(one_by_one(x, bound).log_capital)
    assert total == pytest.approx(1.0, abs=1e-9)  # at the very bound; below it is less


@pytest.mark.parametrize("bound", [0.1, 0.5])
def test_the_chance_to_ever_reject_is_at_most_alpha(bound: float) -> None:
    """Exactly, over all sequences of 8 looks at batches that are large enough for a new start."""
    n, alpha = BLOCK, 0.05
    k = np.arange(n + 1)
    chances = binom.pmf(k, n, bound)
    kept = k[chances > 1e-4]  # the others are counted as rejections
    batches = [(chances[c], np.repeat([1.0, 0.0], [c, n - c]) - bound) for c in kept]
    rejected = 1 - (chances[kept].sum()) ** 3
    reached = [(1.0, Evidence())]
    for left in (2, 1, 0):  # evidence that was found stays found
        later = [(p * q, before.after(x, bound)) for p, before in reached for q, x in batches]
        found_now = sum(p for p, found in later if found.found(alpha))
        rejected += found_now * chances[kept].sum() ** left
        reached = [(p, found) for p, found in later if not found.found(alpha)]
    assert rejected <= alpha


def test_the_chance_to_ever_reject_in_a_sample_without_replacement() -> None:
    """All orders of a finite set whose mean is the bound: one look at each prefix of 6."""
    values = (1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    bound, means = sum(values) / len(values), []
    for drawn in itertools.combinations(range(len(values)), 6):
        x = np.array([values[i] for i in drawn], dtype=float)
        means.append(math.exp(Evidence().after(x - bound, bound).log_capital))
    assert np.mean(means) <= 1 + 1e-12


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=80),
    st.floats(0.01, 0.99),
    st.randoms(use_true_random=False),
)
def test_the_order_within_a_batch_does_not_matter(x, bound, random) -> None:  # type: ignore[no-untyped-def]
    mixed = [*x]
    random.shuffle(mixed)
    first, other = (Evidence().after(np.array(v) - bound, bound) for v in (x, mixed))
    assert first.n == other.n == len(x)
    assert first.log_capital == pytest.approx(other.log_capital, abs=1e-9)


@given(st.lists(st.lists(st.booleans(), max_size=70), min_size=1, max_size=8), st.floats(0.05, 0.9))
def test_the_capital_is_a_mixture_over_starts_and_bets(batches, bound) -> None:  # type: ignore[no-untyped-def]
    """The same by its definition: every start has its share, and what is kept back stays."""
    found, since, begun, most = Evidence(), 0, list[list[float]](), 0.0
    for batch in batches:
        found = found.after(np.array(batch, dtype=float) - bound, bound)
        if batch and (not begun or since >= BLOCK):
            begun.append([1.0] * len(BETS))
            since = 0
        since += len(batch)
        for capitals in begun:
            for b, bet in enumerate(BETS):
                capitals[b] *= math.prod(1 + bet * (x - bound) / bound for x in batch)
        shares = [1 / k**1.5 / 2.612375348685488 for k in range(1, len(begun) + 1)]
        total = 1 - sum(shares)
        total += sum(share * np.mean(c) for share, c in zip(shares, begun, strict=True))
        most = max(most, math.log(total))
    assert found.log_capital == pytest.approx(math.log(total), abs=1e-7)
    assert found.most == pytest.approx(most, abs=1e-7)


def test_evidence_that_was_found_does_not_go_away() -> None:
    found = Evidence().after(np.full(40, 0.9), 0.1)
    later = found.after(np.full(5000, -0.1), 0.1)
    assert later.log_capital < 0 < later.most == found.most
    assert later.found(0.001)


def test_a_change_after_a_quiet_year_is_found() -> None:
    rng, quiet = np.random.default_rng(1), Evidence()
    for _ in range(365):
        quiet = quiet.after((rng.random(10) < 0.01) - 0.02, 0.02)
    n, found = 0, quiet
    while not found.found(0.01) and n < 2000:
        found, n = found.after((rng.random(10) < 0.12) - 0.02, 0.02), n + 10
    assert not quiet.found(0.01)
    assert n <= 300


def test_a_bound_of_nought_is_crossed_by_the_first_and_never_without_one() -> None:
    quiet = Evidence().after(np.zeros(1000), 1e-6)
    assert quiet.log_capital <= 1e-12
    assert quiet.after(np.array([1.0]), 1e-6).found(0.01)


def test_nothing_new_changes_nothing() -> None:
    found = Evidence().after(np.array([0.5]), 0.5)
    assert found.after(np.array([]), 0.5) == found


# ---- confidence sequences ----------------------------------------------------------------------


def mixture(m: float, n: int, won: float) -> float:
    """What Beta(1/2, 1/2) over coins wins against m, by numerical integration over the coins."""

    def integrand(angle: float) -> float:  # q = sin(angle)**2 takes the weight of the prior away
        q = math.sin(angle) ** 2
        return (q / m) ** won * ((1 - q) / (1 - m)) ** (n - won)

    return quad(integrand, 0, math.pi / 2, epsabs=0, epsrel=1e-11, limit=400)[0] * 2 / math.pi


@pytest.mark.parametrize(("n", "won"), [(10, 3), (25, 20), (60, 30), (40, 0), (40, 40)])
def test_the_interval_is_that_of_the_integrated_mixture(n: int, won: int) -> None:
    alpha = 0.05
    low, high = Sums(n, float(n), float(won)).interval(alpha)

    def against(m: float) -> float:
        return math.log(mixture(m, n, won)) - math.log(1 / alpha)

    mean = won / n
    if won:
        assert low == pytest.approx(brentq(against, 1e-6, mean - 1e-6), abs=1e-6)
    else:
        assert low == 0
    if won < n:
        assert high == pytest.approx(brentq(against, mean + 1e-6, 1 - 1e-6), abs=1e-6)
    else:
        assert high == 1


def test_the_mixture_is_exact_for_small_counts() -> None:
    """The integral of q^k (1-q)^(n-k) over the arcsine law, as a fraction: the beta function."""
    n, k, m = 4, 3, Fraction(1, 4)
    rising = [Fraction(1, 2) + i for i in range(n)]
    moment = math.prod(rising[:k]) * math.prod(rising[: n - k]) / Fraction(math.factorial(n))
    exact = float(moment / (m**k * (1 - m) ** (n - k)))
    assert mixture(0.25, n, k) == pytest.approx(exact, rel=1e-9)
    low, _ = Sums(n, float(n), float(k)).interval(1 / exact)
    assert low == pytest.approx(0.25, abs=1e-7)  # 1/4 is where just that much is won


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_all_looks_together_cover(p: float) -> None:
    """At ever more looks of 100 streams: at most 5 % leave the mean out; by chance up to 11 %."""
    rng, missed = np.random.default_rng(3), 0
    for _ in range(100):
        x = (rng.random(400) < p).cumsum()
        looks = [1, 3, 8, 21, 55, 144, 400]
        intervals = [Sums(n, float(n), float(x[n - 1])).interval(0.05) for n in looks]
        missed += any(not low <= p <= high for low, high in intervals)
    assert missed <= 11


def test_weights_make_up_for_unequal_chances() -> None:
    """Of two kinds of answers, one is labelled ten times as often as the other: the interval holds
    the mean of all answers, and without weights it does not."""
    rng = np.random.default_rng(5)
    rare = rng.random(4000) < 0.5
    x = np.where(rare, rng.random(4000) < 0.9, rng.random(4000) < 0.5).astype(float)
    chance = np.where(rare, 0.1, 1.0)
    drawn = rng.random(4000) < chance
    weighted = Sums().after(x[drawn], 0.1 / chance[drawn])
    low, high = weighted.interval(0.05)
    assert low <= x.mean() <= high
    plain = Sums().after(x[drawn], np.ones(drawn.sum()))
    assert not plain.interval(0.05)[0] <= x.mean() <= plain.interval(0.05)[1]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1)), min_size=1, max_size=40))
def test_an_interval_holds_its_mean_and_sums_add_up(pairs) -> None:  # type: ignore[no-untyped-def]
    x, w = (np.array(values) for values in zip(*pairs, strict=True))
    whole = Sums().after(x, w)
    parts = Sums().after(x[:7], w[:7]).after(x[7:], w[7:])
    assert whole.n == parts.n == len(x)
    assert whole.weighted == pytest.approx(parts.weighted)
    low, high = whole.interval(0.05)
    assert 0 <= low <= whole.mean + 1e-9
    assert whole.mean - 1e-9 <= high <= 1


def test_nothing_seen_says_nothing() -> None:
    assert Sums().interval(0.05) == (0.0, 1.0)
    assert Sums().mean is None


# ---- plans -------------------------------------------------------------------------------------


def test_a_plan_is_about_how_many_it_takes() -> None:
    planned, rng, took = needed(0.10, 0.02, 0.01), np.random.default_rng(7), []
    assert planned is not None
    for _ in range(100):
        found, n = Evidence(), 0
        while not found.found(0.01):
            found, n = found.after((rng.random(5) < 0.10) - 0.02, 0.02), n + 5
        took.append(n)
    assert 0.5 * planned <= np.median(took) <= 1.5 * planned


def test_what_cannot_be_shown_has_no_plan() -> None:
    assert needed(0.3, 0.3, 0.01) is None
    assert needed(0.3, 0.0, 0.01) is None
    assert needed(0.3, 1.0, 0.01) is None
    assert divergence(0.0, 0.5) == pytest.approx(math.log(2))
