"""Two latent classes: recall beside annotators without a truth."""

import json
import statistics
from collections import Counter
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.stats import bernoulli

from judgebench.stats import consensus as model
from judgebench.stats.consensus import (
    AS_PROBABLE,
    dawid_skene,
    label_shares,
    majority_label,
    median_label,
    most_probable_label,
    recall_gap,
    why_no_model,
)

K = 4
ragged = st.tuples(st.integers(0, 12), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, K - 1))
)


def given_labels(ratings) -> list[list[int]]:
    return [[int(label) for label in unit if label >= 0] for unit in ratings]


@given(ragged)
def test_median_equals_the_standard_library(ratings) -> None:
    units = given_labels(ratings)
    lower = [statistics.median_low(unit) if unit else -1 for unit in units]
    upper = [statistics.median_high(unit) if unit else -1 for unit in units]
    assert median_label(ratings, "lower").tolist() == lower
    assert median_label(ratings, "upper").tolist() == upper


@given(ragged)
def test_majority_by_brute_force(ratings) -> None:
    def most_frequent(unit: list[int]) -> list[int]:
        counts = Counter(unit)
        return sorted(label for label in counts if counts[label] == max(counts.values()))

    winners = [most_frequent(unit) for unit in given_labels(ratings)]
    majority = partial(majority_label, ratings, K)
    assert majority("lower").tolist() == [w[0] if w else -1 for w in winners]
    assert majority("upper").tolist() == [w[-1] if w else -1 for w in winners]
    assert majority("none").tolist() == [w[0] if len(w) == 1 else -1 for w in winners]


@given(ragged)
def test_shares_of_labels_by_brute_force(ratings) -> None:
    for unit, share in zip(given_labels(ratings), label_shares(ratings, K), strict=True):
        assert share.any() == bool(unit)
        assert share.tolist() == [unit.count(label) / max(len(unit), 1) for label in range(K)]


@given(ragged)
def test_the_most_probable_label_of_shares_is_the_majority(ratings) -> None:
    share = label_shares(ratings, K)
    for ties in ("lower", "upper", "none"):
        expected = majority_label(ratings, K, ties).tolist()
        assert most_probable_label(share, ties).tolist() == expected


def test_probabilities_that_differ_by_rounding_are_tied() -> None:
    near, far = AS_PROBABLE / 2, AS_PROBABLE * 2
    share = np.array([[0.5 + near, 0.5 - near], [0.5 + far, 0.5 - far], [0.0, 0.0]])
    assert most_probable_label(share, "lower").tolist() == [0, 0, -1]
    assert most_probable_label(share, "upper").tolist() == [1, 0, -1]
    assert most_probable_label(share, "none").tolist() == [-1, 0, -1]


W = np.array([0.5, 0.5, 0.0])


def drawn(seed: int, n: int, missed: tuple[float, ...], alarms: float = 0.05) -> np.ndarray:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 2, n)
    wrong = [np.where(true == 1, m, alarms) for m in missed]
    return np.stack([true ^ (rng.random(n) < w) for w in wrong], axis=1)


def loss(x: np.ndarray, found: np.ndarray) -> float:
    """Item by item, from the definition; `x` are the share, four sensitivities, four alarms."""
    severe, other = (bernoulli.logpmf(found, p).sum(axis=1) for p in (x[1:5], x[5:]))
    return -np.logaddexp(severe + np.log(x[0]), other + np.log(1 - x[0])).sum()


def test_the_root_is_that_of_an_independent_optimisation() -> None:
    found = drawn(1, 300, (0.1, 0.05, 0.3, 0.12))
    start, box = [0.5, *[0.85] * 4, *[0.1] * 4], [(0.001, 0.999)] * 9
    how = {"method": "SLSQP", "bounds": box, "options": {"maxiter": 300, "ftol": 1e-10}}
    free = minimize(loss, start, (found,), **how)
    held = minimize(
        loss, start, (found,), **how,
        constraints={"type": "eq", "fun": lambda x: x[4] - W @ x[1:4] + 0.05},
    )  # fmt: skip
    gap, root = recall_gap(found, W, 0.05)
    assert gap == pytest.approx(free.x[4] - W @ free.x[1:4], abs=1e-3)
    signed = np.sign(gap + 0.05) * np.sqrt(2 * (held.fun - free.fun))
    assert root == pytest.approx(signed, abs=5e-3)


K_MODEL = 3
HERE = Path(__file__).parent / "data"
# Figures of somebody else's package, with its version and input.
FROZEN = json.loads((HERE / "crowd_kit_dawid_skene.json").read_text("utf-8"))
PUBLISHED = json.loads((HERE / "dawid_skene_1979.json").read_text("utf-8"))

ragged_model = st.tuples(st.integers(1, 10), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, K_MODEL - 1))
)


def fitted(case):
    return dawid_skene(np.array(case["ratings"]), case["k"], np.array(case["annotator_of"]))


def drawn_model(seed: int, units: int, skills, prior=(0.6, 0.3, 0.1), blank: float = 0.0):
    """True labels, and ratings of annotators who err as often as `skills` say, into any label."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(prior), units, p=prior)
    shape = (units, len(skills))
    wrong = (truth[:, None] + rng.integers(1, len(prior), shape)) % len(prior)
    ratings = np.where(rng.random(shape) < skills, truth[:, None], wrong)
    return truth, np.where(rng.random(shape) < blank, -1, ratings)


# --- oracles -------------------------------------------------------------------------------------


def test_the_published_estimates_from_the_anaesthetists() -> None:
    found = fitted({**PUBLISHED, "k": 4})
    assert found.converged
    assert found.prior == pytest.approx(PUBLISHED["prior"], abs=0.006)
    assert found.confusion == pytest.approx(np.array(PUBLISHED["confusion"]), abs=0.011)
    unsure = {int(patient) - 1: p for patient, p in PUBLISHED["unsure"].items()}
    for patient, p in unsure.items():
        assert found.posterior[patient] == pytest.approx(p, abs=0.006)
    sure = np.delete(found.posterior, list(unsure), axis=0).max(axis=1)
    assert sure.min() > 0.995  # of all others one label is printed with probability 1.00


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda case: case["name"])
def test_equals_crowd_kit_at_convergence(case) -> None:
    found = fitted(case)
    assert found.converged
    # Both stop on a slope; crowd-kit was made to go on for 400 steps.
    assert found.posterior == pytest.approx(np.array(case["posterior"]), abs=2e-4)
    assert found.prior == pytest.approx(case["prior"], abs=1e-4)
    assert found.confusion == pytest.approx(np.array(case["confusion"]), abs=1e-4)


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda case: case["name"])
def test_equals_crowd_kit_after_one_step_from_majority_shares(case, monkeypatch) -> None:
    monkeypatch.setattr(model, "MOST_ITERATIONS", 1)
    found = fitted(case)
    assert not found.converged
    assert found.posterior == pytest.approx(np.array(case["posterior_after_1"]), abs=2e-8)


def test_the_likelihood_by_brute_force() -> None:
    _, ratings = drawn_model(3, 30, [0.9, 0.7, 0.8], blank=0.2)
    found = dawid_skene(ratings, K_MODEL)
    expected = 0.0
    for unit in ratings:
        of_label = [
            found.prior[j]
            * np.prod([found.confusion[a, j, x] for a, x in enumerate(unit) if x >= 0])
            for j in range(K_MODEL)
        ]
        expected += np.log(sum(of_label)) if (unit >= 0).any() else 0.0
    assert found.log_likelihood[-1] == pytest.approx(expected, abs=1e-6)


# --- laws ----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(ragged_model, st.sampled_from([0.0, 0.5, np.eye(K_MODEL) + 1 / K_MODEL]))
def test_the_likelihood_never_falls(ratings, smoothing) -> None:
    with patch.object(model, "MOST_ITERATIONS", 100):
        steps = dawid_skene(ratings, K_MODEL, smoothing=smoothing).log_likelihood
    assert (np.diff(steps) >= -1e-9).all()


@settings(deadline=None, max_examples=40)
@given(ragged_model, st.sampled_from([0.0, 1.0]))
def test_all_parts_are_distributions(ratings, smoothing) -> None:
    with patch.object(model, "MOST_ITERATIONS", 100):
        found = dawid_skene(ratings, K_MODEL, smoothing=smoothing)
    rated = (ratings >= 0).any(axis=1)
    assert found.posterior.shape == (len(ratings), K_MODEL)
    assert found.posterior.sum(axis=1) == pytest.approx(rated.astype(float))
    assert found.prior.sum() == pytest.approx(float(rated.any()))
    assert found.confusion.shape == (ratings.shape[1], K_MODEL, K_MODEL)
    assert found.confusion.sum(axis=2) == pytest.approx(1.0)
    assert all((x >= 0).all() for x in (found.posterior, found.prior, found.confusion))


@settings(deadline=None, max_examples=40)
@given(ragged_model, st.randoms(use_true_random=False))
def test_the_order_of_units_changes_nothing(ratings, random) -> None:
    order = list(range(len(ratings)))
    random.shuffle(order)
    found, shuffled = (dawid_skene(x, K_MODEL, smoothing=0.5) for x in (ratings, ratings[order]))
    assert shuffled.posterior == pytest.approx(found.posterior[order], abs=1e-6)


def test_units_of_the_same_ratings_are_counted_as_often_as_they_occur() -> None:
    _, ratings = drawn_model(5, 40, [0.9, 0.6, 0.8, 0.7])
    once, thrice = (
        dawid_skene(ratings, K_MODEL),
        dawid_skene(np.repeat(ratings, 3, axis=0), K_MODEL),
    )
    assert thrice.posterior[::3] == pytest.approx(once.posterior, abs=1e-6)
    assert thrice.log_likelihood[-1] == pytest.approx(3 * once.log_likelihood[-1])


def test_repeats_of_one_annotator_share_a_confusion_matrix_in_any_order() -> None:
    _, ratings = drawn_model(6, 50, [0.8, 0.8, 0.8, 0.9])
    crowd = np.array([0, 0, 0, 1])
    found = dawid_skene(ratings, K_MODEL, crowd)
    turned = dawid_skene(ratings[:, [2, 0, 1, 3]], K_MODEL, crowd)
    assert found.confusion.shape == (2, K_MODEL, K_MODEL)
    assert turned.posterior == pytest.approx(found.posterior)


def test_many_annotators_are_more_than_fit_one_number() -> None:
    # 50 columns of 4 states are 4^50 rows; 64 bits hold 2^64.
    truth, ratings = drawn_model(7, 60, [0.9] * 50, blank=0.5)
    ratings[-1] = ratings[0]
    found = dawid_skene(ratings, K_MODEL)
    assert (found.posterior.argmax(axis=1)[:-1] == truth[:-1]).all()
    assert found.posterior[-1].tolist() == found.posterior[0].tolist()


# --- what it is for ------------------------------------------------------------------------------


def test_with_smoothing_an_annotator_of_one_label_is_not_sure() -> None:
    _, ratings = drawn_model(9, 100, [0.8, 0.8, 0.8])
    newcomer = np.full((100, 1), -1)
    newcomer[0] = (ratings[0, 0] + 1) % K_MODEL
    ratings = np.hstack([ratings, newcomer])
    sure, unsure = (dawid_skene(ratings, K_MODEL, smoothing=s).confusion[3] for s in (0.0, 1.0))
    assert sure.max() > 0.99
    assert unsure.max() <= 2 / (1 + K_MODEL)  # one label and as many imagined ones as labels


# --- where there is little or nothing -----------------------------------------------------------


def test_one_annotator_is_believed() -> None:
    found = dawid_skene(np.array([[0], [2], [-1], [2]]), K_MODEL)
    assert found.posterior.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 1]]
    assert found.converged


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (4, 2)])
def test_no_label_at_all(shape) -> None:
    found = dawid_skene(np.full(shape, -1), K_MODEL)
    assert found.posterior.tolist() == [[0.0] * K_MODEL] * shape[0]
    assert found.log_likelihood.size == 0
    assert found.converged


def test_a_label_that_nobody_gave_stays_impossible() -> None:
    _, ratings = drawn_model(10, 60, [0.8, 0.7, 0.9], prior=(0.5, 0.5))
    for smoothing in (0.0, 1.0):
        assert dawid_skene(ratings, K_MODEL, smoothing=smoothing).posterior[:, 2].max() == 0


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([[-1, -1]], "there is no label"),
        ([[1, 1, 1], [1, 1, -1]], "only one label was ever given"),
        ([[0, -1], [1, -1]], "there is one annotator only"),
        ([[0, 1, -1], [-1, 1, 1]], "no item has three labels"),
        ([[0, 1, 1], [-1, 1, 1]], ""),
    ],
)
def test_why_there_is_no_model(ratings, reason) -> None:
    found = why_no_model(np.array(ratings))
    assert found.startswith(reason)
    assert bool(found) == bool(reason)
