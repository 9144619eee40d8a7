from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from rank_scores import scored

from judgebench.ranking.rankers import (
    FEW_RANKED,
    LEVEL_LENGTHS,
    NO_LENGTHS,
    NOT_COMMON,
    ONCE,
    agree,
    length_bias,
    self_preference,
)

NAMES = ("gold", "gpt", "llama")


def bias(values, words, names=NAMES, **more):
    rows = length_bias(scored(values, NAMES, **more), np.asarray(words, float), names)
    return {row.statistic: row.estimate for row in rows}


def test_length_bias_equals_the_mean_of_scipys_spearman() -> None:
    rng = np.random.default_rng(0)
    values, words = rng.random((50, 3)), rng.integers(1, 300, (50, 3))
    found = bias(values, words)
    rho = [scipy.stats.spearmanr(v, w).statistic for v, w in zip(values, words, strict=True)]
    assert found["rho"].value == pytest.approx(np.mean(rho))
    first = np.mean(values.argmax(axis=1) == words.argmax(axis=1))
    assert found["longest_first"].value == pytest.approx(first)
    assert found["rho"].low < found["rho"].value < found["rho"].high


def test_control_cases_and_instances_without_length_or_score_do_not_count() -> None:
    values = [[1.0, 2, 9], [1, 2, 9], [np.nan, 2, 9], [1, 1, 9]]
    words = [[10.0, 20, 1], [10, np.nan, 1], [10, 20, 1], [10, 20, 1]]
    found = bias(values, words, ("gpt", "gold"), n_missing=3)
    assert (found["rho"].value, found["rho"].n, found["rho"].n_missing) == (1, 1, 6)
    # Where all rank level there is no order, but the longest is still the best by chance.
    assert found["longest_first"].value == pytest.approx((1 + 1 / 2) / 2)


def test_undefined_length_bias_says_why() -> None:
    values = np.ones((2, 3))
    assert bias(values, np.arange(6).reshape(2, 3))["rho"].reason == LEVEL_LENGTHS
    assert bias(values, np.full((2, 3), np.nan))["rho"].reason == NO_LENGTHS
    alone = bias(values, values, ("gold", "nobody"))
    assert alone["rho"].reason == alone["longest_first"].reason == FEW_RANKED


def test_self_preference_is_the_gap_in_places() -> None:
    others = [scored([[3.0, 1, 2]] * 4, NAMES, ranker=f"o{i}") for i in range(2)]
    others.append(scored([[3.0, 2, 1]] * 4, NAMES, ranker="o2"))
    akin = scored([[3.0, 9, 2]] * 3 + [[3, 0, 2]], NAMES, ranker="a")
    found, _ = self_preference(akin, others, "gpt", NAMES)
    assert found.value == pytest.approx(8 / 3 - (1 + 1 + 1 + 3) / 4)
    assert found.n == 4


def test_self_preference_is_found_where_it_is_planted_and_only_there() -> None:
    rng = np.random.default_rng(3)
    quality = rng.normal(size=(300, 3))
    others = [scored(quality + rng.normal(size=quality.shape), NAMES) for _ in range(3)]
    fair = quality + rng.normal(size=quality.shape)
    vain = fair + np.array([0, 1, 0])
    clusters = np.repeat(np.arange(150), 2)
    found = [
        self_preference(scored(v, NAMES, clusters=clusters), others, "gpt", NAMES)[0]
        for v in (fair, vain)
    ]
    assert found[0].low < 0 < found[0].high
    assert found[1].low > 0.2
    assert "150 clusters" in found[1].method


def test_self_preference_takes_common_instances_and_systems_only() -> None:
    akin = scored([[1.0, 2, 3], [1, 2, 3], [1, np.nan, 3]], NAMES)
    other = scored([[5.0, 4], [5, 4], [5, 4]], ("gpt", "gold"), items=("i2", "i1", "i9"))
    found, _ = self_preference(akin, [other], "gpt", NAMES)
    assert (found.value, found.n, found.n_missing) == (0, 1, 1)


def test_undefined_self_preference_says_why() -> None:
    x = np.arange(6.0).reshape(2, 3)
    a, far = scored(x, NAMES), scored(x, NAMES, items=("p", "q"))
    for others, generator, systems in (
        ([far], "gpt", NAMES), ([a], "nobody", NAMES), ([a], "gpt", ("gpt",)),
    ):  # fmt: skip
        found, _ = self_preference(a, others, generator, systems)
        assert (found.value, found.n, found.reason) == (None, 0, NOT_COMMON)


def leaning(rng: np.random.Generator, spread: float, draws: int = 3, n: int = 60):
    """An evaluator each training of which leans to long or to short arguments by chance; words."""
    words = rng.normal(size=(n, 3))
    drawn = rng.normal(size=(1, n, 3)) + rng.normal(0, spread, (draws, 1, 1)) * words
    drawn = drawn + rng.normal(0, 0.5, (draws, n, 3))
    return scored(drawn.mean(axis=0), NAMES, drawn[0] > 0, drawn=drawn), words


def test_what_trainings_happen_to_favour_is_claimed_of_one_in_twenty() -> None:
    rng, found = np.random.default_rng(4), []
    for _ in range(10):
        scores, words = leaning(rng, 0.4)
        rho, p, _ = (row.estimate for row in length_bias(scores, words, NAMES))
        alone = length_bias(replace(scores, drawn=None), words, NAMES)[1].estimate
        found.append((p.value < 0.05, not rho.low <= 0 <= rho.high, alone.value < 0.05))
    claimed, outside, by_items_alone = np.mean(found, axis=0)
    assert max(claimed, outside) <= 0.2  # 0.05 expected; more than 2 of 10 once in ninety
    assert by_items_alone > 0.3  # what items alone would claim


def test_the_interval_holds_items_and_the_jackknife_over_trainings() -> None:
    scores, words = leaning(np.random.default_rng(5), 0.4)
    rho, _, longest = (row.estimate for row in length_bias(scores, words, NAMES))
    items = bias(scores.values, words)
    without = [np.delete(scores.drawn, d, axis=0).mean(axis=0) for d in range(3)]
    shares = -2 * np.array([bias(values, words)["rho"].value for values in without])
    half = scipy.stats.t.ppf(0.975, 2) * scipy.stats.sem(shares)
    assert rho.value == items["rho"].value
    assert rho.low == pytest.approx(rho.value - np.hypot(rho.value - items["rho"].low, half))
    assert "over 3 trainings" in rho.method
    assert "over 3 trainings" in longest.method
    assert 0 <= longest.low <= longest.value


def test_self_preference_and_agreement_hold_the_trainings_of_every_evaluator() -> None:
    rng = np.random.default_rng(6)
    (one, _), (other, _) = leaning(rng, 0.4), leaning(rng, 0.4, draws=4)
    judge = scored(rng.random((60, 3)), NAMES, ranker="judge")
    for akin, others in ((one, [judge]), (judge, [other, one])):
        places, p = self_preference(akin, others, "gpt", NAMES)
        assert "over 3 trainings" in places.method
        assert p.value is not None
    for row in agree(one, other, NAMES):
        if row.statistic not in ("p", "tau_b_of_averages"):
            assert "over 3 trainings" in row.estimate.method
    assert "trainings" not in agree(judge, judge, NAMES)[0].estimate.method


def test_nothing_is_claimed_of_one_training() -> None:
    scores, words = leaning(np.random.default_rng(7), 0.4, draws=1)
    judge = scored(words, NAMES, ranker="judge")
    for p in (
        length_bias(scores, words, NAMES)[1].estimate,
        agree(scores, judge, NAMES)[1].estimate,
        self_preference(scores, [judge], "gpt", NAMES)[1],
    ):
        assert (p.value, p.reason) == (None, ONCE)
