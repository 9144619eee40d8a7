"""The rate of a label among verdicts, corrected for the judge's sensitivity and specificity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray
from judgebench.stats.partly_labelled import (
    JUDGED,
    JUDGED_THIS,
    LABELLED,
    OTHER,
    THIS,
    LabelCounts,
    rate_interval,
    share_influence,
)
from judgebench.stats.prediction_powered import ASSUMES, NO_LABEL

NONE_HAS_IT = "no human label is this one, so the judge's sensitivity is unknown"
ALL_HAVE_IT = "every human label is this one, so the judge's specificity is unknown"


def corrected_rate(apparent: float, sensitivity: float, specificity: float) -> float | None:
    """theta = (p + Sp - 1) / (Se + Sp - 1), which may lie outside 0..1; None if Se + Sp <= 1.

    Rogan and Gladen (1978), "Estimating prevalence from the results of a screening test".
    """
    youden = sensitivity + specificity - 1
    return (apparent + specificity - 1) / youden if youden > 0 else None


def rogan_gladen(counts: LabelCounts, level: float = 0.95) -> Estimate:
    """The corrected rate of a label over all judged items, clipped to [0, 1], with its interval.

    Se and Sp are those of the judge on the items with a human label, p is over all. The variance
    is by the delta method, with whole clusters as units so that what p, Se and Sp share is kept:

        d theta = (dp + (1 - theta) dSp - theta dSe) / (Se + Sp - 1),
        V = Var(theta) + (theta^2 / n_1^2 + (1 - theta)^2 / n_0^2) / (2 (Se + Sp - 1)^2),

    n_1 and n_0 the human labels that are this one and that are not. The second term stands for one
    disagreement more than was seen, half of it of each kind; Lang and Reiczigel (2014),
    "Confidence limits for prevalence of disease adjusted for estimated sensitivity and
    specificity", add one success and one failure to each for the same end. The interval is that of
    `rate_interval`. In simulated draws with 30 human labels or more it covers the rate in 95 % or
    more, mostly 97-99 %: it errs on the wide side, and PPI++ is narrower.
    Undefined, with a reason, without a human label of each kind and where Se + Sp <= 1.
    """
    C = counts.total
    n_0, n_1 = C[OTHER].sum(), C[THIS].sum()
    used = round(C.sum())
    if n_0 == 0 or n_1 == 0:
        reason = NO_LABEL if n_0 == n_1 else NONE_HAS_IT if n_1 == 0 else ALL_HAVE_IT
        return Estimate(None, n=used, reason=reason, level=level)
    p, dp = share_influence(counts, JUDGED_THIS, JUDGED)
    Se, dSe = share_influence(counts, JUDGED_THIS, _row(THIS))
    Sp, dSp = share_influence(counts, ~JUDGED_THIS, _row(OTHER))
    raw = corrected_rate(p, Se, Sp)
    if raw is None:
        reason = f"sensitivity {Se:.2f} and specificity {Sp:.2f} add up to no more than 1"
        return Estimate(None, n=used, reason=reason, level=level)
    theta, youden = min(1.0, max(0.0, raw)), Se + Sp - 1
    influence: FloatArray = (dp + (1 - theta) * dSp - theta * dSe) / youden
    unseen = ((theta / n_1) ** 2 + ((1 - theta) / n_0) ** 2) / (2 * youden**2)
    human = float(n_1 / (n_0 + n_1))
    V = counts.variance(influence) + unseen
    found = rate_interval(theta, V, human, counts.clusters(LABELLED), level)
    clipped = "" if theta == raw else f"the corrected rate is {raw:.3f}, clipped to {theta:.0f}"
    method = f"Rogan-Gladen, clipped to [0, 1], {ASSUMES}; {found.method}".removesuffix("; ")
    return replace(found, n=used, method=method, reason=found.reason or clipped)


def _row(truth: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.broadcast_to(np.arange(3)[:, None] == truth, (3, 2))
