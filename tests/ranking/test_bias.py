import numpy as np
import pytest
import scipy.stats
from rank_scores import FEW, scored

from judgebench.ranking.rankers import (
    FEW_RANKED,
    LEVEL_LENGTHS,
    NO_LENGTHS,
    NO_OTHER,
    NOT_COMMON,
    length_bias,
    self_preference,
)

NAMES = ("gold", "gpt", "llama")


def bias(values, words, names=NAMES, **more):
    rows = length_bias(scored(values, NAMES, **more), np.asarray(words, float), names, FEW)
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


@pytest.mark.parametrize(("sign", "rho", "first"), [(1, 1, 1), (-1, -1, 0)])
def test_a_ranker_by_length_alone_is_found_out(sign: int, rho: float, first: float) -> None:
    words = np.random.default_rng(1).permuted(np.tile([10.0, 80, 200], (30, 1)), axis=1)
    found = bias(sign * words, words)
    assert found["rho"].value == pytest.approx(rho)
    assert found["longest_first"].value == pytest.approx(first)
    assert found["longest_first"].low is not None  # exact, since every resample agrees


def test_a_ranker_blind_to_length_has_no_bias_within_its_interval() -> None:
    rng = np.random.default_rng(2)
    found = bias(rng.random((400, 3)), rng.integers(1, 300, (400, 3)))
    assert found["rho"].low < 0 < found["rho"].high
    assert found["longest_first"].low < 1 / 3 < found["longest_first"].high


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
    with pytest.raises(ValueError, match="words are"):
        bias(values, np.ones((2, 2)))


def test_self_preference_is_the_gap_in_places() -> None:
    others = [scored([[3.0, 1, 2]] * 4, NAMES, ranker=f"o{i}") for i in range(2)]
    others.append(scored([[3.0, 2, 1]] * 4, NAMES, ranker="o2"))
    akin = scored([[3.0, 9, 2]] * 3 + [[3, 0, 2]], NAMES, ranker="a")
    found, _ = self_preference(akin, others, "gpt", NAMES, FEW)
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
        self_preference(scored(v, NAMES, clusters=clusters), others, "gpt", NAMES, FEW)[0]
        for v in (fair, vain)
    ]
    assert found[0].low < 0 < found[0].high
    assert found[1].low > 0.2
    assert "150 clusters" in found[1].method


def test_self_preference_takes_common_instances_and_systems_only() -> None:
    akin = scored([[1.0, 2, 3], [1, 2, 3], [1, np.nan, 3]], NAMES)
    other = scored([[5.0, 4], [5, 4], [5, 4]], ("gpt", "gold"), items=("i2", "i1", "i9"))
    found, _ = self_preference(akin, [other], "gpt", NAMES, FEW)
    assert (found.value, found.n, found.n_missing) == (0, 1, 1)


def test_undefined_self_preference_says_why() -> None:
    x = np.arange(6.0).reshape(2, 3)
    a, far = scored(x, NAMES), scored(x, NAMES, items=("p", "q"))
    assert self_preference(a, [], "gpt", NAMES, FEW)[0].reason == NO_OTHER
    for others, generator, systems in (
        ([far], "gpt", NAMES), ([a], "nobody", NAMES), ([a], "gpt", ("gpt",)),
    ):  # fmt: skip
        found, _ = self_preference(a, others, generator, systems, FEW)
        assert (found.value, found.n, found.reason) == (None, 0, NOT_COMMON)
