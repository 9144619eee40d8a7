"""Studies that are looked at three times, in worlds whose true numbers are known:
`benchmarks/decisions.py --looks`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from decision_worlds import decisions

from judgebench.stats.intervals import look_levels

LIMIT, FEW, MANY = 0.025, 15, 200
# Where a study that may end early comes nearest to a false REPLACE.
CRITICAL = (
    "at the margin, 50 %", "at the margin, 2 annotators", "at the margin, 4 labels",
    "half of a crowd of 40", "misses 6 points more severe", "misses 8 points more severe",
    "… labels never severe", "a copy of the median", "perfect, no label on 5.1 %",
)  # fmt: skip


@pytest.fixture(scope="module")
def bed() -> ModuleType:
    module = decisions("look_worlds")
    module._POPULATION = 20_000
    return module


def looked(bed: ModuleType, name: str, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether REPLACE was said at each look, (draws, looks), with bounds and without."""
    (world,) = (w for w in bed.WORLDS if w.name == name)
    said = bed.look_world(world, draws, seed)
    assert said.shape == (draws, 2, bed.LOOKS)
    return said[:, 0], said[:, 1]


def test_a_good_judge_is_seen_early_and_no_less_often(bed: ModuleType) -> None:
    bounded, naive = looked(bed, "good, 4 labels", FEW, 0)
    early = bounded[:, :-1].any(axis=1)
    assert early.sum() >= 0.8 * FEW
    assert bounded.any(axis=1).sum() >= naive[:, -1].sum() - 1
    # nothing is said at a look's level that the rule's level does not say
    assert not (bounded & ~naive).any()
    assert bounded[:, 0].sum() < naive[:, 0].sum()


def test_a_bad_judge_is_not_let_in_early(bed: ModuleType) -> None:
    for name in ("constant, 5 % severe", "misses 8 points more severe", "a copy of one annotator"):
        assert not looked(bed, name, FEW, 0)[0].any(), name


def test_looks_are_at_thirds_and_at_whole_questions(
    bed: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world,) = (w for w in bed.WORLDS if w.name == "20 large questions")
    seen = []

    def spy(found: Any, levels: tuple[float, float], rng: np.random.Generator) -> list[bool]:
        seen.append((np.bincount(found.clusters).tolist(), len(found.own), levels))
        return [False, False]

    monkeypatch.setattr(bed, "_replaces", spy)
    bed.look_world(world, 1, 0)
    assert [questions for questions, _, _ in seen] == [[20] * 7, [20] * 14, [20] * 20]
    assert [items for _, items, _ in seen] == [140, 280, 400]
    shares = look_levels([0.35, 0.7, 1])
    assert [levels for *_, levels in seen] == [(level, 0.95) for level in shares]


def test_the_table_counts_what_was_said_up_to_each_look(bed: ModuleType) -> None:
    said = np.zeros((4, 2, 3), dtype=bool)
    said[0, 0] = (False, True, False)  # the study has ended by then
    said[:2, 1] = (True, False, True)
    (world,) = (w for w in bed.WORLDS if w.name == "constant, 5 % severe")
    *_, row, last = bed.looks_table([(world, said)])
    assert row == (
        "| constant, 5 % severe | 200 | wrong | wrong "
        "| 50.0 % | 0.0 % | 25.0 % | 25.0 % | 91.7 % | 50.0 % |"
    )
    assert "at most 25.0% (constant, 5 % severe)" in last


@pytest.mark.long
@pytest.mark.parametrize("name", CRITICAL)
def test_many_draws_of_the_critical_worlds(bed: ModuleType, name: str) -> None:
    bounded, _ = looked(bed, name, MANY, 1)
    assert bounded.any(axis=1).sum() <= 2 * LIMIT * MANY
