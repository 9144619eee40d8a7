import numpy as np
import pytest
from cluster_case import apart

from judgebench.ranking.rank import differ
from judgebench.stats.arrays import Clusters
from judgebench.stats.ranks import groups


def one_apart() -> np.ndarray:
    """Ranks of ten systems: the first is somewhat better, the last somewhat worse, the others
    alike."""
    rng = np.random.default_rng(12)
    quality = np.array([0.7, *[0.0] * 8, -0.7])
    return (-(rng.normal(size=(12, 10)) + quality)).argsort(axis=1).argsort(axis=1) + 1.0


def test_pairs_are_not_told_apart_where_friedmans_test_finds_nothing() -> None:
    ranks = one_apart()
    found = differ(ranks, apart(12), 0.95)
    assert found.p > 0.05
    # Nemenyi's test alone would have told the first from the last.
    assert len(set(groups(ranks.mean(axis=0), found.critical_difference))) > 1
    assert set(found.letters) == {"a"}


def test_the_level_is_that_of_test_and_groups() -> None:
    ranks = one_apart()
    found = differ(ranks, apart(12), 0.7)
    assert found.p <= 0.3
    assert found.letters == groups(ranks.mean(axis=0), found.critical_difference)
    assert len(set(found.letters)) > 1
    assert found.critical_difference < differ(ranks, apart(12), 0.95).critical_difference


def test_clusters_that_cancel_out_tie() -> None:
    ranks = np.array([[1.0, 2, 3], [3, 2, 1]] * 2)
    found = differ(ranks, Clusters(np.array([0, 0, 1, 1]), 2), 0.95)
    assert found.p is None
    assert found.reason == "all systems tie in all 2 clusters"


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_ranks_that_all_agree_differ_at_any_level(level: float) -> None:
    found = differ(np.tile([1.0, 2, 3, 4], (40, 1)), apart(40), level)
    assert found.letters == ["a", "b", "c", "d"]
    assert found.chi_square == pytest.approx(120)
    assert found.reason == ""
