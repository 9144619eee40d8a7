"""Scores beside human severities, against scipy, by hand, and against published numbers."""

import gzip
import json
import warnings
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from cluster_case import apart
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgebench.stats.arrays import Clusters
from judgebench.stats.association import (
    COEFFICIENTS,
    CONSTANT,
    FEW_SYSTEMS,
    LEVELS,
    NO_GROUP,
    NO_PAIR,
    Coefficient,
    Rated,
    association,
    associations,
    between_columns,
    critical_r,
    difference,
    shows_nothing,
)
from judgebench.stats.intervals import too_few

BY_SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
RNG = np.random.default_rng(3)
N, GROUPS, SYSTEMS = 60, 15, 4
X = RNG.integers(0, 9, N).astype(np.float64)
Y = np.clip(X // 3 + RNG.integers(-1, 2, N), 0, 3)
Y[:8] = 1  # two groups whose severities do not vary
GROUP = np.repeat(np.arange(GROUPS), SYSTEMS)
ROWS = [np.arange(N)[g == GROUP] for g in range(GROUPS)]
RATED = Rated(X, Y, Clusters(GROUP, GROUPS), np.tile(np.arange(SYSTEMS), GROUPS))


def accuracy(x: np.ndarray, y: np.ndarray, tie: float = 0.0) -> float:
    """The share of pairs that both hold level, or both order alike."""
    i, j = np.triu_indices(len(x), 1)
    dx, dy = x[i] - x[j], y[i] - y[j]
    return float(np.mean(np.sign(np.where(np.abs(dx) <= tie, 0, dx)) == np.sign(dy)))


def best_accuracy(x: np.ndarray, y: np.ndarray) -> float:
    return max(accuracy(x, y, tie) for tie in np.abs(x[:, None] - x).ravel())


@pytest.mark.parametrize("coefficient", get_args(Coefficient))
def test_pooled_and_without_each_group_are_what_scipy_gives(coefficient: Coefficient) -> None:
    found = association(RATED, "pooled", coefficient)
    if coefficient == "pairwise":
        assert found.estimate.value == pytest.approx(best_accuracy(X, Y), abs=1e-12)
        assert found.tie is not None
        return
    assert found.estimate.value == pytest.approx(BY_SCIPY[coefficient](X, Y)[0], abs=1e-12)
    for group, value in enumerate(found.left_out):
        rows = group != GROUP
        assert value == pytest.approx(BY_SCIPY[coefficient](X[rows], Y[rows])[0], abs=1e-9)


def test_accuracy_without_a_group_keeps_the_tie() -> None:
    found = association(RATED, "pooled", "pairwise")
    x, y = X[GROUP != 0], Y[GROUP != 0]
    assert found.left_out[0] == pytest.approx(accuracy(x, y, found.tie + 1e-9), abs=1e-9)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_within_groups_is_the_mean_of_those_that_vary(coefficient: Coefficient) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scipy, about what is constant
        each = [BY_SCIPY[coefficient](X[rows], Y[rows])[0] for rows in ROWS]
    found = association(RATED, "within", coefficient).estimate
    assert found.value == pytest.approx(np.nanmean(each), abs=1e-9)
    assert found.n == np.isfinite(each).sum()
    assert found.n_missing == GROUPS - found.n > 0


def test_within_groups_one_tie_serves_all_groups() -> None:
    ties = np.unique(np.abs(X[:, None] - X))
    best = max(np.mean([accuracy(X[rows], Y[rows], tie) for rows in ROWS]) for tie in ties)
    found = association(RATED, "within", "pairwise")
    assert found.estimate.value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_over_systems_means_are_compared(coefficient: Coefficient) -> None:
    x, y = (v.reshape(GROUPS, SYSTEMS).mean(axis=0) for v in (X, Y))
    found = association(RATED, "system", coefficient).estimate
    assert found.value == pytest.approx(BY_SCIPY[coefficient](x, y)[0], abs=1e-9)
    assert (found.n, found.n_missing) == (SYSTEMS, 0)


def test_over_systems_pairs_are_ordered_or_not() -> None:
    x, y = (v.reshape(GROUPS, SYSTEMS).mean(axis=0) for v in (X, Y))
    found = association(RATED, "system", "pairwise")
    assert found.estimate.value == pytest.approx(accuracy(x, y), abs=1e-9)
    level = np.mean([y[i] == y[j] for i in range(SYSTEMS) for j in range(i)])
    assert found.chance == pytest.approx((1 - level) / 2)  # no two mean scores are level


def test_what_lacks_a_score_is_counted_and_changes_nothing_else() -> None:
    gaps = np.concatenate([X, [np.nan, 5.0]])
    human = np.concatenate([Y, [1.0, np.nan]])
    codes = np.concatenate([GROUP, [GROUPS, GROUPS]])
    found = associations(Rated(gaps, human, Clusters(codes, GROUPS + 1)))
    for level in ("pooled", "within"):
        for coefficient in COEFFICIENTS:
            plain = association(RATED, level, coefficient).estimate
            one = found[level, coefficient].estimate
            assert (one.value, one.low, one.high) == (plain.value, plain.low, plain.high)
    assert found["pooled", "pearson"].estimate.n_missing == 2


@pytest.mark.parametrize(
    ("rated", "level", "reason"),
    [
        (Rated(np.array([np.nan]), np.ones(1), apart(1)), "pooled", NO_PAIR),
        (Rated(np.ones(4), np.arange(4.0), apart(4)), "pooled", CONSTANT),
        (Rated(np.arange(4.0), np.ones(4), apart(4)), "pooled", CONSTANT),
        (Rated(np.arange(4.0), np.arange(4.0), apart(4)), "within", NO_GROUP),
        (Rated(np.arange(4.0), np.arange(4.0), apart(4), np.arange(4) // 2), "system", FEW_SYSTEMS),
        (Rated(np.arange(4.0), np.arange(4.0), apart(4), np.full(4, -1)), "system", FEW_SYSTEMS),
        (Rated(np.arange(4.0), np.arange(4.0), apart(4)), "system", FEW_SYSTEMS),
    ],
)
def test_what_is_undefined_has_a_reason(rated: Rated, level, reason: str) -> None:
    found = association(rated, level, "spearman").estimate
    assert found.value is None
    assert found.reason == reason


def test_one_group_has_a_value_and_no_interval() -> None:
    one = Rated(X, Y, Clusters(np.zeros(N, int), 1))
    found = association(one, "pooled", "kendall").estimate
    assert found.value == pytest.approx(stats.kendalltau(X, Y)[0])
    assert (found.low, found.reason) == (None, too_few(1))


def test_chance_rises_with_the_humans_ties() -> None:
    """A scorer that calls nearly all level is right where humans hardly ever differ."""
    rare = (np.arange(100) < 5).astype(np.float64)
    noise = np.random.default_rng(1).normal(size=100)
    found = association(Rated(noise, rare, apart(100)), "pooled", "pairwise")
    level = 1 - 2 * 5 * 95 / (100 * 99)
    assert found.chance == pytest.approx(level, abs=0.01)


@given(
    st.integers(0, 1000),
    st.floats(0.1, 10),
    st.floats(-5, 5),
    st.sampled_from(["pooled", "within"]),
)
def test_another_unit_of_the_scores_changes_nothing(seed: int, a: float, b: float, level) -> None:
    rng = np.random.default_rng(seed)
    rated = Rated(
        rng.normal(size=12), rng.integers(0, 3, 12) * 1.0, Clusters(np.arange(12) // 4, 3)
    )
    moved = Rated(a * rated.scores + b, rated.human, rated.groups)
    for coefficient in COEFFICIENTS:
        one, other = (association(r, level, coefficient) for r in (rated, moved))
        assert one.estimate.value == pytest.approx(other.estimate.value, abs=1e-6)


# Two scorers ----------------------------------------------------------------------------------


def better(seed: int, gain: float) -> tuple[Rated, Rated]:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=120)
    groups, systems = Clusters(np.arange(120) // 4, 30), np.arange(120) % 4
    worse, good = (y * by + rng.normal(size=120) for by in (0.5, 0.5 + gain))
    return Rated(100 * worse, y, groups, systems), Rated(good, y, groups, systems)


@pytest.mark.parametrize("level", LEVELS[:2])
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_a_better_scorer_is_found_whatever_its_scale(level, coefficient: Coefficient) -> None:
    first, second = better(0, 2.0)
    found = difference(first, second, level, coefficient)
    a, b = (association(r, level, coefficient).estimate.value for r in (first, second))
    assert found.estimate.value == pytest.approx(b - a)
    assert found.estimate.low > 0
    tested = (level, coefficient) != ("pooled", "pairwise")
    assert (found.p is not None) == tested
    assert not tested or found.p < 0.05


def test_equal_scorers_differ_in_five_percent_of_samples() -> None:
    ps = [difference(*better(seed, 0.0), "pooled", "spearman").p for seed in range(100)]
    assert sum(p <= 0.05 for p in ps) <= 11


def test_a_scorer_does_not_differ_from_itself() -> None:
    first, _ = better(1, 0.0)
    for level in LEVELS:
        found = difference(first, first, level, "spearman")
        assert found.estimate.value == 0
        assert found.p is None


def test_differences_are_over_the_items_that_both_scored() -> None:
    first, second = better(2, 1.0)
    gaps = second.scores.copy()
    gaps[:20] = np.nan
    found = difference(
        first, Rated(gaps, second.human, second.groups, second.systems), "pooled", "pearson"
    )
    kept = np.arange(120) >= 20
    r = [stats.pearsonr(s[kept], first.human[kept])[0] for s in (first.scores, second.scores)]
    assert found.estimate.value == pytest.approx(r[1] - r[0])
    assert (found.estimate.n, found.estimate.n_missing) == (100, 20)


# A table of systems -----------------------------------------------------------------------------


def test_so_many_systems_show_nothing_below() -> None:
    assert critical_r(9) == pytest.approx(0.666, abs=5e-4)
    assert critical_r(2) is None
    assert shows_nothing(9) == "With 9 systems, |r| below .67 shows nothing."
    assert shows_nothing(2) == "With 2 systems, no r shows anything."


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_columns_of_systems_as_scipy_has_them(coefficient: Coefficient) -> None:
    x, y = X[:12].copy(), Y[:12] + X[:12] / 100
    x[3] = np.nan
    kept = np.arange(12) != 3
    found, p = between_columns(x, y, coefficient)
    whole = BY_SCIPY[coefficient](x[kept], y[kept])
    assert (found.value, p) == pytest.approx((whole[0], whole[1]), abs=1e-9)
    assert (found.n, found.n_missing) == (11, 1)
    if coefficient == "pearson":
        interval = whole.confidence_interval()
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_columns_that_say_nothing() -> None:
    assert between_columns(np.ones(5), np.arange(5.0), "pearson")[0].reason == CONSTANT
    assert between_columns(np.ones(2), np.arange(2.0), "pearson")[0].reason == FEW_SYSTEMS
    line = between_columns(np.arange(5.0), 2 * np.arange(5.0), "pearson")
    assert (line[0].value, line[0].low) == (1.0, None)
    assert line[1] == pytest.approx(0, abs=1e-12)
    assert line[0].reason == "all systems lie on one line"
    few = between_columns(np.arange(3.0), np.array([0, 2.0, 1]), "pearson")[0]
    assert (few.low, few.reason) == (None, "too few systems for an interval")


# Published ------------------------------------------------------------------------------------


def test_correlations_that_unieval_published(shared_data: Path) -> None:
    """Pooled over all rows of a task: 14 rows of three coefficients, six decimals each."""
    folder = shared_data / "unieval-human"
    with gzip.open(folder / "unieval.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]
    task, seen = "", 0
    for row in (folder / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) != 5 or "0." not in cells[2]:
            continue
        task = cells[0].split(" ")[0] or task
        of_task = [line for line in lines if line["task"] == task]
        x, y = (np.array([line[key][cells[1]] for line in of_task]) for key in ("unieval", "human"))
        rated = Rated(x, y, apart(len(x)))
        for coefficient, published in zip(COEFFICIENTS, cells[2:], strict=False):
            found = association(rated, "pooled", coefficient).estimate
            assert found.value == pytest.approx(float(published), abs=5.1e-7)
            seen += 1
    assert seen == 42


def test_of_very_many_items_the_pairs_of_some_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("judgebench.stats.association._PAIRED", 1000)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1500) * 1.0
    x = y + rng.normal(size=1500)
    rated = Rated(x, y, Clusters(np.arange(1500) // 3, 500))
    found = association(rated, "pooled", "kendall").estimate
    assert found.value == pytest.approx(stats.kendalltau(x, y)[0], abs=0.02)
    assert found.n == 1500
    assert found.method.endswith("of the pairs of 1,000 random items")


def test_two_scorers_of_very_many_items_change_places_on_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = better(0, 2.0)
    monkeypatch.setattr("judgebench.stats.association._PAIRED", 80)
    assert difference(first, second, "pooled", "kendall").p < 0.05
    ps = [difference(*better(seed, 0.0), "pooled", "kendall").p for seed in range(60)]
    assert sum(p <= 0.05 for p in ps) <= 8
