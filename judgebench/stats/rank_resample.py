"""How firm a ranking by scores is, from scores of all systems in the same resamples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judgebench.stats.arrays import FloatArray
from judgebench.stats.within_item_ranks import levels, places


@dataclass(frozen=True)
class Firmness:
    """`low` and `high` (k,) are the limits of each system's place; `above` (k, k) is the share of
    resamples in which system i scores above system j, level scores counting half."""

    low: FloatArray
    high: FloatArray
    above: FloatArray


def firmness(replicates: FloatArray, level: float = 0.95) -> Firmness:
    """How places vary over resampled scores (resamples, k), higher is better, none missing.

    The limits are the (1 - level) / 2 and (1 + level) / 2 quantiles of the place, taken where the
    distribution steps, so that they are places that occurred. Goldstein and Spiegelhalter (1996),
    "League Tables and Their Limitations"; by resamples as in Hall and Miller (2009), "Using the
    Bootstrap to Quantify the Authority of an Empirical Ranking".
    """
    tail = (1 - level) / 2
    low, high = np.quantile(places(replicates), [tail, 1 - tail], axis=0, method="inverted_cdf")
    score = levels(replicates)
    order = np.sign(score[:, :, None] - score[:, None, :])
    return Firmness(low, high, (order.mean(axis=0) + 1) / 2)
