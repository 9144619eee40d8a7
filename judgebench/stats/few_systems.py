"""What few systems can show: correlations of a handful of cases, by the normal theory."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray, ratio
from judgebench.stats.coefficients import CONSTANT, ROUNDING, Coefficient, of_rows, standardized

FEW_SYSTEMS = "fewer than 3 systems have scores and human severities"


def critical_r(n: int) -> float | None:
    """The |r| that n pairs must exceed to differ from 0 at 0.05; None with fewer than 3.

    t / sqrt(n - 2 + t^2), t the two-sided quantile of Student's t with n - 2 degrees of freedom.

    >>> round(critical_r(9), 3)
    0.666
    """
    t = float(stdtrit(n - 2, 0.975)) if n > 2 else math.nan
    return t / math.sqrt(n - 2 + t * t) if n > 2 else None


def shows_nothing(systems: int) -> str:
    """What so few systems cannot show, in a sentence."""
    least = critical_r(systems)
    bound = "no r" if least is None else f"|r| below {least:.2f}".replace("0.", ".")
    return f"With {systems} systems, {bound} shows {'anything' if least is None else 'nothing'}."


def between_columns(
    x: FloatArray, y: FloatArray, coefficient: Coefficient
) -> tuple[Estimate, float | None]:
    """A correlation of two columns of a table with a row for each system (systems,), NaN where a
    cell is blank, and its two-sided p value.

    The systems are what is sampled. Intervals by Fisher's z = atanh r, with the standard error
    1 / sqrt(n - 3) for Pearson's r (Fisher 1921), sqrt((1 + r^2 / 2) / (n - 3)) for Spearman's rho
    (Bonett and Wright 2000) and sqrt(0.437 / (n - 4)) for tau_b (Fieller, Hartley and Pearson
    1957). p from Student's t with n - 2 degrees of freedom; that of tau_b is exact without ties.

    >>> found, p = between_columns(np.arange(5.0), np.array([1.0, 0, 2, 4, 3]), "pearson")
    >>> round(found.value, 2), round(p, 3)
    (0.8, 0.104)
    """
    from scipy import stats

    both = ~(np.isnan(x) | np.isnan(y))
    n, missing = int(both.sum()), int((~both).sum())
    u, v = standardized(x[both]), standardized(y[both])
    r = float(of_rows(u, v, coefficient)) if n > 2 else math.nan
    if math.isnan(r):
        reason = FEW_SYSTEMS if n < 3 else CONSTANT
        return Estimate(None, n=n, n_missing=missing, reason=reason), None
    least, spread = {"pearson": (3, 1.0), "spearman": (3, 1 + r * r / 2)}.get(
        coefficient, (4, 0.437)
    )
    if n <= least or abs(r) > 1 - ROUNDING:
        few = "all systems lie on one line" if n > least else "too few systems for an interval"
        estimate = Estimate(r, n=n, n_missing=missing, reason=few)
    else:
        half = float(ndtri(0.975)) * math.sqrt(spread / (n - least))
        low, high = np.tanh([math.atanh(r) - half, math.atanh(r) + half]).tolist()
        estimate = Estimate(r, low, high, "Fisher's z over systems", n, missing)
    test = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    return estimate, float(test[coefficient](u, v).pvalue)


def williams(r12: float, r13: float, r23: float, n: int) -> float | None:
    """Two-sided p that the correlations r12 and r13 of one variable with two others differ, r23
    being that of these two, over n cases; None with fewer than 4, or where the two are one.

        t = (r12 - r13) sqrt((n - 1) (1 + r23) /
                             (2 K (n - 1) / (n - 3) + (r12 + r13)^2 (1 - r23)^3 / 4))

    with K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23 and n - 3 degrees of freedom. Williams
    (1959); Steiger (1980), "Tests for Comparing Elements of a Correlation Matrix", equation 7.

    >>> round(williams(0.396, 0.179, 0.088, 103), 3)
    0.085
    """
    K = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if n < 4 or r23 >= 1 - ROUNDING:
        return None
    below = 2 * max(K, 0) * (n - 1) / (n - 3) + (r12 + r13) ** 2 * (1 - r23) ** 3 / 4
    t = (r12 - r13) * math.sqrt(float(ratio((n - 1) * (1 + r23), below)))
    return None if math.isnan(t) else float(2 * stdtr(n - 3, -abs(t)))
