"""Scores of responses side by side: against reference libraries and by hand."""

from __future__ import annotations

from collections.abc import Mapping

import krippendorff
import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters
from judgebench.stats.repeated import AMONG_HUMANS, BESIDE_HUMANS, score_agreement

RNG = np.random.default_rng(3)
HUMANS = np.round(RNG.uniform(0, 4, (40, 3)) * 3) / 3
CLUSTERS = Clusters(np.repeat(np.arange(20), 2), 20)
# Shrout and Fleiss (1979), Table 2: four judges on six targets; ICC(2, 1) .29 and ICC(2, 4) .62
SHROUT = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
) / 1.0  # fmt: skip


def beside(judged: np.ndarray, humans: np.ndarray) -> Mapping[str, Estimate]:
    return score_agreement(np.stack([judged, humans], axis=1), BESIDE_HUMANS, CLUSTERS)


def test_alpha_is_that_of_the_reference_also_with_missing_scores() -> None:
    x = np.where(RNG.random(HUMANS.shape) < 0.2, np.nan, HUMANS)
    found = score_agreement(x, AMONG_HUMANS, CLUSTERS)["alpha"]
    wanted = krippendorff.alpha(x.T, level_of_measurement="interval")
    assert found.value == pytest.approx(wanted)
    assert found.low < wanted < found.high
    assert found.n + found.n_missing == 40


def test_icc_of_a_published_example() -> None:
    found = score_agreement(SHROUT, AMONG_HUMANS, Clusters(np.arange(6), 6))
    assert found["icc"].value == pytest.approx(0.29, abs=0.005)
    assert found["icc_mean"].value == pytest.approx(0.62, abs=0.005)


def test_a_judge_beside_the_mean_of_the_humans() -> None:
    mean = HUMANS.mean(axis=1).round(9)  # else the same mean may be two numbers
    judged = np.clip(np.rint(mean + RNG.normal(0, 1, 40)), 0, 4)
    judged[:3] = np.nan
    found = beside(judged, mean)
    both = judged[3:], mean[3:]
    assert found["pearson"].value == pytest.approx(pearsonr(*both).statistic)
    assert found["spearman"].value == pytest.approx(spearmanr(*both).statistic)
    assert found["alpha"].value == pytest.approx(
        krippendorff.alpha(np.stack(both), level_of_measurement="interval")
    )
    assert {(e.n, e.n_missing) for e in found.values()} == {(37, 3)}
    for estimate in found.values():
        assert estimate.low < estimate.value < estimate.high


def test_icc_with_a_judge_from_its_analysis_of_variance() -> None:
    x = np.stack([HUMANS.mean(axis=1), HUMANS[:, 0]], axis=1)
    n, k = x.shape
    rows, columns, grand = x.mean(axis=1), x.mean(axis=0), x.mean()
    between = k * ((rows - grand) ** 2).sum() / (n - 1)
    raters = n * ((columns - grand) ** 2).sum() / (k - 1)
    rest = ((x - rows[:, None] - columns + grand) ** 2).sum() / ((n - 1) * (k - 1))
    wanted = (between - rest) / (between + (k - 1) * rest + k * (raters - rest) / n)
    assert beside(x[:, 1], x[:, 0])["icc"].value == pytest.approx(wanted)


def test_what_is_undefined_has_a_reason() -> None:
    mean = HUMANS.mean(axis=1)
    found = beside(np.full(40, 1 / 3), mean)
    assert found["pearson"].value is None
    assert found["pearson"].reason == (
        "one side has the same score throughout, so no correlation is defined"
    )
    none = beside(np.full(40, np.nan), mean)
    assert none["pearson"].reason == none["alpha"].reason == "no response has two scores"
    assert none["pearson"].n_missing == 40
    same = score_agreement(np.full((4, 2), 1 / 3), AMONG_HUMANS, Clusters(np.arange(4), 4))["alpha"]
    assert same.reason == "all scores are the same, so agreement beyond chance is undefined"
