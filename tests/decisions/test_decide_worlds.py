"""Ten studies of a few worlds of `benchmarks/decisions.py`, which draws a thousand of every one."""

from types import ModuleType

import pytest
from benchmark_scripts import benchmark

DRAWS = 10


@pytest.fixture(scope="module")
def bed() -> ModuleType:
    module = benchmark("decisions", "decisions_benchmark")
    module._POPULATION = 20_000  # enough for a few draws, and much quicker
    return module


@pytest.mark.parametrize(
    ("name", "outcomes", "is_wrong"),
    [
        ("good, 1000 items", {"REPLACE"}, False),
        ("constant, 5 % severe", {"DO NOT USE"}, True),
        ("perfect, no label on 30 %", {"DO NOT USE", "ASSIST"}, True),
    ],
)
def test_a_world_ends_as_its_judge_deserves(
    bed: ModuleType, name: str, outcomes: set[str], is_wrong: bool
) -> None:
    (world,) = (w for w in bed.WORLDS if w.name == name)

    tally = bed.run_world(world, DRAWS, 0)

    assert bed.is_wrong(world) is is_wrong
    assert {*tally.outcomes} <= outcomes
    assert tally.wrong_assist == 0
    if is_wrong:  # what the Alternative Annotator Test alone lets pass
        assert tally.naive["alt-test"] >= 0.9 * DRAWS


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("lists, good, 200 items", {"REPLACE", "CAN'T TELL"}),
        ("names every label", {"DO NOT USE"}),
        ("always the same label", {"DO NOT USE"}),
    ],
)
def test_a_world_of_sets_ends_as_its_judge_deserves(
    bed: ModuleType, name: str, outcomes: set[str]
) -> None:
    (world,) = (w for w in bed.SETS if w.name == name)
    tally, *_ = bed.run_sets(world, DRAWS, 1)
    assert {*tally} <= outcomes
    assert ("REPLACE" in outcomes) == (tally["REPLACE"] >= 0.8 * DRAWS)


def test_a_bad_judge_is_not_let_in_early_and_a_good_one_is(bed: ModuleType) -> None:
    worlds = {world.name: world for world in bed.WORLDS}
    bounded, naive = bed.look_world(worlds["good, 4 labels"], DRAWS, 0).swapaxes(0, 1)
    assert bounded[:, 1].sum() >= 0.8 * DRAWS
    assert not (bounded & ~naive).any()
    assert bounded[:, 0].sum() < naive[:, 0].sum()
    assert not bed.look_world(worlds["constant, 5 % severe"], DRAWS, 0).any()
