"""The promise of a decision, held against worlds whose true numbers are known.

A few draws of each world are made here, `make test-long` makes a hundred, and
`benchmarks/decisions.py` a thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from types import ModuleType

import pytest
from decision_worlds import decisions

LIMIT = 0.025  # of wrong REPLACEs; in few draws chance may add one
FEW, DRAWS, MANY, PARTS = 3, 10, 60, 12
POPULATION = 20_000  # enough for a few draws, and much quicker


@pytest.fixture(scope="module")
def bed() -> ModuleType:
    module = decisions("decisions_benchmark")
    module._POPULATION = POPULATION
    return module


@pytest.fixture(scope="module")
def tallies(bed: ModuleType) -> Mapping[str, object]:
    """What became of a few draws of every world, by its name."""
    return {world.name: bed.run_world(world, FEW, 0) for world in bed.WORLDS}


def test_there_are_worlds_of_every_kind(bed: ModuleType) -> None:
    bad = [world for world in bed.WORLDS if bed.is_wrong(world)]
    assert len(bad) >= 40
    assert {2, 3, 4, 5, 6, 30, 40} == {world.annotators for world in bed.WORLDS}
    assert min(world.items for world in bed.WORLDS) == 50
    assert max(world.items for world in bed.WORLDS) == 2000
    assert any(world.constant for world in bad)
    assert any(world.shared for world in bad)
    assert any(world.a_question > 1 for world in bad)


@pytest.mark.long
def test_what_the_rule_takes_for_good_is_good_by_the_true_labels_too(bed: ModuleType) -> None:
    for world in bed.WORLDS:
        assert not (bed.is_wrong(world) and bed.is_good(bed.settled(world))), world.name


def test_replace_is_hardly_ever_wrong(bed: ModuleType, tallies: Mapping[str, object]) -> None:
    bad = [world for world in bed.WORLDS if bed.is_wrong(world)]
    wrong = sum(tallies[world.name].outcomes["REPLACE"] for world in bad)
    assert wrong <= LIMIT * FEW * len(bad)
    # a judge that reads nothing never gets it
    for world in bad:
        if world.constant or world.guessing:
            assert tallies[world.name].outcomes["REPLACE"] == 0


def test_missing_labels_never_make_a_judge_good(
    bed: ModuleType, tallies: Mapping[str, object]
) -> None:
    """A judge that is right wherever it says anything, and says nothing of 8, 30 or 72 %."""
    kinds = ("perfect, no label on", "fails on the severe,", "fails on the hard,")
    for share, kind in product((8, 30, 72), (*kinds, "fails on whole questions,")):
        (world,) = (w for w in bed.WORLDS if w.name == f"{kind} {share} %")
        assert abs(bed.skills(world)[-1] - share / 100) < 0.05
        assert bed.is_wrong(world)
        assert tallies[world.name].outcomes["REPLACE"] == 0
        if share > 8:
            assert tallies[world.name].naive["alt-test"] >= 0.9 * FEW  # what blanks hide elsewhere
    for name in ("imported, 8 % blank", "imported, 72 % blank", "imported, rows for half"):
        assert tallies[name].outcomes["REPLACE"] == 0


def test_a_judge_asked_about_a_part_is_decided_by_that_part(tallies: Mapping[str, object]) -> None:
    good = ("imported, asked half, good", "good, no label on 1 %", "imported, good, 1 % blank")
    assert sum(tallies[name].outcomes["REPLACE"] for name in good) >= 0.8 * FEW * len(good)
    for name in ("imported, asked half, 8 % blank", "imported, asked half, poor"):
        assert tallies[name].outcomes["REPLACE"] == 0


def test_camps_and_copies_are_told(tallies: Mapping[str, object]) -> None:
    for name in ("two even camps", "three against two", "three camps"):
        assert tallies[name].gates["camps"] == FEW
    for name in ("a copy of one annotator", "half a copy, else poor", "a copy of the median"):
        assert tallies[name].gates["derived"] >= 0.8 * FEW
    equal = [name for name in tallies if name.startswith(("as an annotator", "good"))]
    false_alarms = sum(FEW - tallies[name].gates[""] for name in equal)
    assert false_alarms <= 0.05 * FEW * len(equal)


def test_good_judges_are_seen_once_there_is_data(tallies: Mapping[str, object]) -> None:
    good = (
        "good, 1000 items", "good, 4 labels", "as an annotator, 2000 items", "good, a rare label"
    )  # fmt: skip
    assert sum(tallies[name].outcomes["REPLACE"] for name in good) >= 0.8 * FEW * len(good)
    assert tallies["good, 50 items"].outcomes["CAN'T TELL"] == FEW


def test_a_filter_is_recognised_and_a_leaky_one_is_not(tallies: Mapping[str, object]) -> None:
    assert tallies["a filter, not a judge"].outcomes["ASSIST"] >= 0.9 * FEW
    assert sum(t.wrong_assist for t in tallies.values()) <= LIMIT * FEW * len(tallies)


def test_intervals_cover_the_populations_number(
    bed: ModuleType, tallies: Mapping[str, object]
) -> None:
    # of a large crowd the small population here shows another bar than its studies
    crowds = {world.name for world in bed.WORLDS if world.annotators > 10}
    few = [tally for name, tally in tallies.items() if name not in crowds]
    for key in ("humans_accuracy", "humans_balanced_accuracy"):
        covered = sum(tally.covered[key] for tally in few)
        defined = sum(tally.defined[key] for tally in few)
        assert 0.90 <= covered / defined <= 0.99  # the small population errs too


def test_naive_rules_replace_annotators_by_judges_that_read_nothing(
    tallies: Mapping[str, object],
) -> None:
    assert tallies["constant, 1 % severe"].naive["accuracy"] == FEW
    assert tallies["constant, 5 % severe"].naive["alt-test"] >= 0.9 * FEW
    assert tallies["misses 32 % of the severe"].naive["kappa"] == FEW


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))  # so that several cores share the work
def test_many_draws_of_every_bad_world(bed: ModuleType, part: int) -> None:
    for world in bed.WORLDS[part::PARTS]:
        if bed.is_wrong(world):
            tally = bed.run_world(world, MANY, 1)
            assert tally.outcomes["REPLACE"] <= 2 * LIMIT * MANY, world.name
            assert tally.wrong_assist <= 2 * LIMIT * MANY, world.name


def test_sets_of_labels_replace_annotators_where_the_judge_is_good_and_hardly_ever_else(
    bed: ModuleType,
) -> None:
    """Worlds of items on which several labels are right; a judge of all labels reads none."""
    found = {world.name: (world, *bed.run_sets(world, DRAWS, 1)) for world in bed.SETS}
    assert len(found) == len(bed.SETS)
    wrong = [(said["REPLACE"], w) for w, said, right, _ in found.values() if right < -0.045]
    assert len(wrong) >= 12
    assert sum(n for n, _ in wrong) <= 2 * LIMIT * DRAWS * len(wrong)
    assert all(n == 0 for n, world in wrong if world.all or world.constant)
    good = [said["REPLACE"] for _, said, right, _ in found.values() if right > 0.03]
    assert len(good) == 2
    assert min(good) >= 0.8 * DRAWS
    # Response sets of few annotators hide a part of a difference in lists.
    _, _, right, rule = found["two annotators, at the margin"]
    assert right < rule - 0.004
