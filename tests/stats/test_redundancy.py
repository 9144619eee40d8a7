"""Which columns of scores say the same."""

import numpy as np
import pytest
from scipy import stats

from judgebench.stats.repeated_measures import redundancy

RNG = np.random.default_rng(2)
ONE = RNG.normal(size=80)
ALIKE = [ONE + 0.2 * RNG.normal(size=80) for _ in range(3)]
OTHER = RNG.normal(size=80)
SCORES = np.stack([ALIKE[0], OTHER, -ALIKE[1], ALIKE[2]], axis=1)


def test_the_matrix_is_what_scipy_gives_on_the_items_that_both_scored() -> None:
    scores = SCORES.copy()
    scores[:10, 0] = np.nan
    r, n = redundancy(scores, ranked=False)
    assert r[0, 2] == pytest.approx(stats.pearsonr(scores[10:, 0], scores[10:, 2])[0])
    assert r[1, 2] == pytest.approx(stats.pearsonr(scores[:, 1], scores[:, 2])[0])
    np.testing.assert_allclose(r, r.T)
    assert (n[0, 2], n[1, 2]) == (70, 80)
    ranked, _ = redundancy(SCORES)
    np.testing.assert_allclose(ranked, stats.spearmanr(SCORES)[0])


def test_a_constant_column_has_no_correlation() -> None:
    r, _ = redundancy(np.column_stack([SCORES, np.ones(80)]))
    assert np.isnan(r[4]).all()
