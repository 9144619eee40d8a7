from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partly_case import sample_of
from scipy.stats import t as student

from judgebench.stats.arrays import Clusters
from judgebench.stats.partly_labelled import (
    ALL_HAVE_IT,
    NO_LABEL,
    NONE_HAS_IT,
    Sample,
    corrected_rate,
    rogan_gladen,
)


def corrected(table, cluster: int = 1):
    sample, f = sample_of(table, cluster)
    return rogan_gladen(sample, f)


@pytest.mark.parametrize(
    ("positive", "tested", "sensitivity", "specificity", "per_100"),
    [(23, 150, 0.96, 0.89, 5.1), (6, 151, 0.964, 0.927, -3.7)],
)
def test_the_corrected_rate_is_that_of_the_published_examples(
    positive: int, tested: int, sensitivity: float, specificity: float, per_100: float
) -> None:
    """Brucellosis in a herd and Helicobacter in children, from the manual of epiR's epi.prev, which
    prints 5.1 and, for a rate below 0, 0."""
    found = corrected_rate(positive / tested, sensitivity, specificity)
    assert 100 * found == pytest.approx(per_100, abs=0.05)


@given(st.floats(0, 1), st.floats(0.51, 1), st.floats(0.5, 1))
def test_the_correction_undoes_what_a_judge_with_these_errors_does(rate, Se, Sp) -> None:
    assert corrected_rate(rate * Se + (1 - rate) * (1 - Sp), Se, Sp) == pytest.approx(rate)


@given(st.lists(st.integers(1, 40), min_size=4, max_size=4))
def test_where_every_item_has_a_human_label_the_corrected_rate_is_theirs(table) -> None:
    tn, fp, fn, tp = table
    found = corrected([[tn, fp], [fn, tp], [0, 0]])
    if found.value is None:
        assert tp / (tp + fn) + tn / (tn + fp) <= 1
    else:
        assert found.value == pytest.approx((tp + fn) / sum(table))
        assert found.low < found.value < found.high


def test_with_many_verdicts_the_variance_is_that_of_rogan_and_gladen() -> None:
    """Eq. (4) of Lang and Reiczigel (2014), of three independent samples, and the one added
    disagreement; the interval is Wilson's for as many items as that variance stands for."""
    n_0, n_1, N = 120, 60, 1_000_000
    table = [[108, 12], [9, 51], [600_000, 400_000]]
    found = corrected(table)
    p, Se, Sp = 0.4, 51 / 60, 108 / 120
    theta, J = (p + Sp - 1) / (Se + Sp - 1), Se + Sp - 1
    V = p * (1 - p) / N + theta**2 * Se * (1 - Se) / n_1 + (1 - theta) ** 2 * Sp * (1 - Sp) / n_0
    V = (V + (theta / n_1) ** 2 / 2 + ((1 - theta) / n_0) ** 2 / 2) / J**2
    assert found.value == pytest.approx(theta, abs=1e-4)
    t, n_star = student.ppf(0.975, n_0 + n_1 - 1), n_1 * n_0 / (n_1 + n_0) ** 2 / V
    for limit in (found.low, found.high):
        assert (theta - limit) ** 2 == pytest.approx(t**2 * limit * (1 - limit) / n_star, rel=0.01)


def test_items_of_one_question_count_as_less() -> None:
    random = np.random.default_rng(2)
    truth = np.repeat(random.integers(0, 2, 60), 5).astype(float)
    judged = np.where(random.random(300) < 0.9, truth, 1 - truth)
    y = np.where(np.arange(300) < 100, truth, np.nan)
    single = rogan_gladen(Sample(y, Clusters(np.arange(300), 300)), judged)
    whole = rogan_gladen(Sample(y, Clusters(np.arange(300) // 5, 60)), judged)
    assert whole.value == single.value
    assert whole.high - whole.low > 1.3 * (single.high - single.low)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[0, 0], [0, 0], [5, 5]], NO_LABEL),
        ([[9, 1], [0, 0], [5, 5]], NONE_HAS_IT),
        ([[0, 0], [1, 9], [5, 5]], ALL_HAVE_IT),
        ([[10, 10], [10, 10], [5, 5]], "sensitivity 0.50 and specificity 0.50 add up to no more"),
        ([[20, 0], [10, 0], [30, 0]], "sensitivity 0.00 and specificity 1.00 add up to no more"),
    ],
)
def test_where_the_errors_are_unknown_or_too_many_there_is_no_rate(table, reason: str) -> None:
    found = corrected(table)
    assert found.value is None
    assert found.reason.startswith(reason)
    assert found.n == np.sum(table)


def test_a_rate_below_0_is_clipped_and_told() -> None:
    found = corrected([[80, 20], [1, 9], [970, 30]])
    assert (found.value, found.low) == (0, 0)
    assert 0 < found.high < 0.5
    assert found.reason == "the corrected rate is -0.210, clipped to 0"


def test_in_repeated_draws_the_interval_covers_the_rate() -> None:
    random = np.random.default_rng(4)
    rate, cells = 0.2, [0.72, 0.08, 0.04, 0.16]
    hits = []
    for _ in range(500):
        labelled = random.multinomial(80, cells).reshape(2, 2)
        found = corrected([*labelled, random.multinomial(1000, [0.76, 0.24])])
        hits.append(found.low <= rate <= found.high)
    assert 0.93 <= np.mean(hits) <= 0.995
