from __future__ import annotations

import numpy as np
import pytest

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters
from judgebench.stats.resample import MOST_GROUPS, grouping_told, random_groups


def test_few_clusters_stay_as_they_are() -> None:
    clusters = Clusters(np.array([0, 2, 1, 2]), 3)
    assert random_groups(clusters) is clusters
    assert grouping_told(Estimate(1.0, 0.0, 2.0, "m"), 3).method == "m"


def test_many_clusters_stay_whole_in_groups_of_nearly_equal_numbers() -> None:
    clusters = Clusters(np.repeat(np.arange(4999), 2), 4999)
    groups = random_groups(clusters, seed=3)
    codes, n = groups.codes, groups.n
    assert n == MOST_GROUPS
    assert (codes[::2] == codes[1::2]).all()
    assert set(np.bincount(codes[::2], minlength=n).tolist()) == {2, 3}
    assert (codes == random_groups(clusters, seed=3).codes).all()
    assert (codes != random_groups(clusters, seed=4).codes).any()
    assert "4,999 clusters" in grouping_told(Estimate(1.0, 0.0, 2.0, "m"), 4999).method
    assert grouping_told(Estimate(1.0, reason="none"), 4999).method == ""


def test_a_code_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="clusters"):
        random_groups(Clusters(np.array([3]), 3))
