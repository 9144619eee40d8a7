"""Judges that follow from a score, in worlds whose labels are known: `benchmarks/decisions.py
--scores`."""

from types import ModuleType

import numpy as np
import pytest
from benchmark_scripts import benchmark

from judgebench.stats.calibration import best_cuts

POOR = "just too poor, 14 labels"


@pytest.fixture(scope="module")
def bed() -> ModuleType:
    return benchmark("decisions", "graded_worlds")


def world_of(bed: ModuleType, name: str) -> object:
    (world,) = (world for world in bed.GRADED if world.name == name)
    return world


def test_no_cuts_make_the_poor_scores_good_enough(bed: ModuleType) -> None:
    """Even fitted to true labels without end, they fall short of an annotator by the margin."""
    rng, n = np.random.default_rng(0), 40_000
    for world in (w for w in bed.GRADED if w.of == "label"):
        k = len(world.shares)
        true = rng.choice(k, size=n, p=world.shares)
        score = np.array(world.places)[true] + rng.normal(0, world.spread, n)
        said = np.searchsorted(best_cuts(score, true, k), score)
        short = 1 - world.noise - float((said == true).mean())
        assert (short <= 0) if world.good else (short > bed.MARGIN), world.name


def test_what_is_learnt_from_what_it_judges_looks_better_than_it_is(bed: ModuleType) -> None:
    tally = bed.follow(world_of(bed, POOR), 2, 0)
    assert np.mean(tally.right_leaking) > np.mean(tally.right) + 0.04
    assert tally.outcomes["REPLACE"] == 0


def test_length_alone_replaces_nobody_because_a_control_is_as_good(bed: ModuleType) -> None:
    tally = bed.follow(world_of(bed, "the length of the answer"), 4, 0)
    assert tally.outcomes["REPLACE"] == 0
    assert tally.alone["REPLACE"] > 0
