"""A judge's one label against soft labels."""

from __future__ import annotations

import numpy as np

from judgebench.stats.arrays import FloatArray, IntArray, check_codes, ratio
from judgebench.stats.resample import Statistic

NO_ITEM = "no item has both a human label and a label of the judge"


def soft_agreement_by_cluster(
    share: FloatArray, judged: IntArray, clusters: IntArray, n_clusters: int
) -> FloatArray:
    """Sums for SOFT_AGREEMENT (n_clusters, 2): sum of s_i, and number of items.

    s_i is the share of the judged label among the labels of item i. `share` (items, k) are soft
    labels, `judged` and `clusters` (items,). An item without a judged label (-1), or whose shares
    are all 0, is dropped. Raises ValueError for a code out of range.
    """
    check_codes(judged, share.shape[1], "judged labels")
    check_codes(clusters, n_clusters, "clusters", least=0)
    both = (judged >= 0) & share.any(axis=1)
    s = share[both, judged[both]]
    sums = [np.bincount(clusters[both], w, minlength=n_clusters) for w in (s, np.ones(len(s)))]
    return np.stack(sums, axis=-1)


def _mean_share(sums: FloatArray) -> FloatArray:
    return ratio(sums[..., 0], sums[..., 1])


def _no_item(sums: FloatArray) -> str:
    return "" if sums[1] else NO_ITEM


# sum_i s_i / n: the chance that the judge agrees with an annotator drawn at random for each item.
# A share of 0 or 1 over all items bounds the mean as it bounds a proportion, hence the mark.
SOFT_AGREEMENT = Statistic("soft_agreement", _mean_share, _no_item, is_proportion=True)
