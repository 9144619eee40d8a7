"""Looks: published bounds, an independent integral, and simulated studies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from judgebench.stats.intervals import look_levels

UNEQUAL = (0.21, 0.5, 0.52, 0.9)


def bounds(shares: tuple[float, ...], level: float = 0.95) -> np.ndarray:
    """The standardized bounds that belong to the levels."""
    return norm.isf((1 - np.array(look_levels(shares, level))) / 2)


# R packages ldbounds and gsDesign (sfLDOF), one-sided 0.025.
@pytest.mark.parametrize(
    "published",
    [
        (2.9626, 1.9686),
        (3.7103, 2.5114, 1.9930),
        (4.3326, 2.9631, 2.3590, 2.0141),
        (4.8769, 3.3570, 2.6803, 2.2898, 2.0310),
    ],
)
def test_bounds_of_equal_looks_are_the_published_ones(published: tuple[float, ...]) -> None:
    looks = len(published)
    shares = tuple((i + 1) / looks for i in range(looks))
    assert bounds(shares) == pytest.approx(published, abs=6e-5)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_error_spent_is_that_of_the_multivariate_normal(level: float) -> None:
    t, b = np.array(UNEQUAL), bounds(UNEQUAL, level)
    correlations = np.sqrt(np.minimum.outer(t, t) / np.maximum.outer(t, t))
    spent = 2 * norm.sf(norm.isf((1 - level) / 4) / np.sqrt(t))
    for k in (1, 2, 3):
        nowhere = multivariate_normal.cdf(
            b[:k], cov=correlations[:k, :k], abseps=1e-8, releps=1e-8, maxpts=10**6
        )
        assert 1 - nowhere == pytest.approx(spent[k - 1], abs=1e-6)


def test_a_study_without_an_effect_errs_as_often_as_one_look() -> None:
    rng, shares = np.random.default_rng(0), np.array([0.2, 0.3, 0.7, 0.75, 1.0])
    steps = rng.normal(0, np.sqrt(np.diff(shares, prepend=0)), (400_000, len(shares)))
    z = steps.cumsum(axis=1) / np.sqrt(shares)
    any_look = float((z >= bounds(tuple(shares))).any(axis=1).mean())
    assert any_look == pytest.approx(0.025, abs=0.001)  # four standard errors
    assert (z >= norm.isf(0.025)).any(axis=1).mean() > 0.05  # what looks cost without bounds


def test_one_look_at_everything_has_the_level_itself() -> None:
    for level in (0.8, 0.95, 0.99):
        assert look_levels([1], level) == pytest.approx([level])


def test_earlier_and_more_looks_are_stricter() -> None:
    first = [look_levels([share])[0] for share in (0.1, 0.3, 0.6, 1)]
    assert first == sorted(first, reverse=True)
    assert look_levels([0.5, 1])[1] < look_levels([0.25, 0.5, 1])[2]
    assert look_levels([0.5, 1], 0.99)[0] > look_levels([0.5, 1], 0.9)[0]
    # what comes later changes nothing
    assert look_levels([0.3, 0.5]) == look_levels([0.3, 0.5, 0.9])[:2]
    # hardly anything may be spent on hardly anything, yet a level stays below 1
    assert 0.999999 < look_levels([0.01, 1])[0] < 1
    assert look_levels([0.01, 1])[1] == pytest.approx(0.95)


@pytest.mark.parametrize("shares", [[0, 1], [0.5, 0.5], [0.6, 0.5], [0.5, 1.2], [float("nan")]])
def test_shares_that_do_not_rise_are_refused(shares: list[float]) -> None:
    with pytest.raises(ValueError, match="shares must rise"):
        look_levels(shares)
