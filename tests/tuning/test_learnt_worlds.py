"""Judges that learn, in worlds whose labels are known: `benchmarks/decisions.py --learnt`."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from decision_worlds import decisions

LIMIT, MANY, PARTS = 0.025, 20, 4


@pytest.fixture(scope="module")
def bed() -> ModuleType:
    return decisions("learnt_worlds")


def test_copies_under_other_questions_are_learnt_by_folds_of_questions_alone(
    bed: ModuleType,
) -> None:
    for name in ("5 near-copies of 40 texts", "… that tie 40 questions together"):
        (world,) = (w for w in bed.TAUGHT if w.name == name)
        tally = bed.teach(world, 2, 0)
        assert np.mean(tally.right) < 0.75
        assert np.mean(tally.right_leaking) > 0.85
        assert tally.outcomes["REPLACE"] == 0


def test_a_keyword_is_learnt_from_200_labels(bed: ModuleType) -> None:
    (world,) = (w for w in bed.TAUGHT if w.rule == "keyword")
    assert np.mean(bed.teach(world, 3, 0).right) >= 0.9


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))  # so that several cores share the work
def test_many_draws_of_every_world_in_which_nothing_is_worth_learning(
    bed: ModuleType, part: int
) -> None:
    for world in bed.TAUGHT[part::PARTS]:
        tally = bed.teach(world, MANY, 1)
        if world.rule == "keyword":
            assert np.mean(tally.right) >= 0.9
        else:
            assert tally.outcomes["REPLACE"] <= 2 * LIMIT * MANY, world.name
