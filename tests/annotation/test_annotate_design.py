"""The assignment: whatever the items and annotators, everybody's share is even."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.annotation.assignment import Strata, extend, fill, order, overlap_lines

Given = dict[str, tuple[str, ...]]


def people(v: int) -> list[str]:
    return [f"p{at}" for at in range(v)]


def crossed(questions: int, systems: int) -> Strata:
    """An answer of every system to every question."""
    return {f"q{q}-s{s}": (f"s{s}", f"q{q}") for q in range(questions) for s in range(systems)}


def alone(n: int) -> Strata:
    return {f"i{at}": ("s", f"q{at}") for at in range(n)}


def spread(numbers: list[int]) -> int:
    return max(numbers, default=0) - min(numbers, default=0)


def overlaps(found: Given, annotators: list[str]) -> list[list[int]]:
    """The number of items that two annotators share; on the diagonal, of those that one has."""
    own = [{item for item, names in found.items() if name in names} for name in annotators]
    return [[len(items & others) for others in own] for items in own]


def loads(found: Given, v: int) -> list[int]:
    return [row[at] for at, row in enumerate(overlaps(found, people(v)))]


def shares(found: Given, v: int) -> list[int]:
    table = overlaps(found, people(v))
    return [table[a][b] for a, b in combinations(range(v), 2)]


def stratum(found: Given, strata: Strata, key: int) -> list[Given]:
    """The items of each system (key 0) or question (key 1)."""
    names = {of[key] for of in strata.values()}
    return [{x: who for x, who in found.items() if strata[x][key] == name} for name in names]


@st.composite
def studies(draw: st.DrawFn) -> tuple[Strata, int, int, int]:
    v = draw(st.integers(1, 8))
    r = draw(st.integers(1, v))
    keys = st.tuples(st.integers(0, 3).map("s{}".format), st.integers(0, 12).map("q{}".format))
    strata = draw(st.lists(keys, max_size=60))
    return {f"i{at}": of for at, of in enumerate(strata)}, v, r, draw(st.integers(0, 9))


@given(studies())
@settings(max_examples=30, deadline=None)
def test_every_item_has_r_annotators_and_everything_is_even(
    study: tuple[Strata, int, int, int],
) -> None:
    strata, v, r, seed = study
    found = fill(strata, {}, people(v), r, seed)
    assert found.keys() == strata.keys()
    assert all(len(set(who)) == len(who) == r and {*who} <= {*people(v)} for who in found.values())
    assert spread(loads(found, v)) <= 1
    mean = len(strata) * r * (r - 1) / max(1, v * (v - 1))
    assert all(abs(n - mean) <= 3 for n in shares(found, v))
    assert all(spread(loads(part, v)) <= 2 for part in stratum(found, strata, 1))
    assert all(spread(loads(part, v)) <= 4 for part in stratum(found, strata, 0))


@pytest.mark.parametrize(("v", "r"), [(3, 2), (4, 2), (5, 2), (6, 2), (8, 2), (3, 1), (4, 4)])
def test_pairs_share_within_one_item_of_each_other_whatever_n(v: int, r: int) -> None:
    for n in range(1, 32, 2):
        found = fill(alone(n), {}, people(v), r, n)
        assert spread(loads(found, v)) <= 1, n
        assert spread(shares(found, v)) <= 1, n


@pytest.mark.parametrize(("v", "r", "n", "share"), [(3, 2, 300, 100), (4, 3, 300, 150)])
def test_the_papers_designs(v: int, r: int, n: int, share: int) -> None:
    """Two of three share N/3, three of four N/2, whatever the systems and questions."""
    for strata in (crossed(n // 3, 3), alone(n)):
        found = fill(strata, {}, people(v), r, 0)
        assert set(shares(found, v)) == {share}
        assert set(loads(found, v)) == {n * r // v}


def test_systems_and_questions_are_even() -> None:
    strata = crossed(40, 3)
    found = fill(strata, {}, people(3), 2, 0)
    for part in (*stratum(found, strata, 0), *stratum(found, strata, 1)):
        assert spread(loads(part, 3)) <= 1
        assert spread(shares(part, 3)) <= 1


@pytest.mark.parametrize(("v", "r", "n", "share"), [(7, 3, 7, 1), (6, 3, 10, 2), (9, 3, 12, 1)])
def test_balanced_designs_are_found(v: int, r: int, n: int, share: int) -> None:
    assert set(shares(fill(alone(n), {}, people(v), r, 0), v)) == {share}


def test_same_input_gives_the_same_assignment_whatever_its_order() -> None:
    strata = crossed(12, 3)
    other = dict(random.Random(0).sample(list(strata.items()), len(strata)))
    one, two = (extend({}, x, (), people(4), 2, 5) for x in (strata, other))
    assert one == two
    assert one["p0"][0] == "q10-s1"
    assert extend({}, strata, (), people(4), 2, 6) != one


def test_what_is_common_goes_to_all_and_the_rest_behind_what_they_have() -> None:
    strata = crossed(30, 3)
    first = {name: ["a", "b"] for name in people(4)}
    orders = extend(first, strata, {"a", "b", "q0-s0"}, people(4), 2, 1)
    assert all([*items[:2]] == ["a", "b"] for items in orders.values())
    holders = {x: [name for name in orders if x in orders[name]] for x in strata}
    assert holders.pop("q0-s0") == people(4)
    assert {len(names) for names in holders.values()} == {2}
    both = {*orders["p0"]} & {*orders["p1"]} - {"a", "b"}
    assert [x for x in orders["p0"] if x in both] != [x for x in orders["p1"] if x in both]


def test_filling_leaves_old_items_and_goes_on_balancing() -> None:
    strata = crossed(20, 3)
    first = {x: of for x, of in strata.items() if of[1] < "q15"}
    old = fill(first, {}, people(4), 2, 0)
    together = fill(strata, old, people(4), 2, 0)
    assert together.keys() == strata.keys()
    assert {item: together[item] for item in old} == old
    assert spread(loads(together, 4)) <= 1
    assert spread(shares(together, 4)) <= 1
    assert fill(strata, together, people(4), 2, 0) == together


def test_filling_evens_out_what_is_uneven() -> None:
    old = {f"old{at}": ("p0", "p1") for at in range(20)}
    together = old | fill(alone(100), old, people(4), 2, 0)
    assert spread(loads(together, 4)) <= 1
    assert spread(shares(together, 4)) <= 1


@given(studies(), st.data())
@settings(max_examples=30, deadline=None)
def test_items_of_somebody_who_leaves_go_to_those_who_have_them_not(
    study: tuple[Strata, int, int, int], data: st.DataObject
) -> None:
    strata, v, r, seed = study
    before = fill(strata, {}, people(v), r, seed)
    freed = data.draw(st.sets(st.sampled_from(sorted(before)))) if before else set()
    kept = {x: [n for n in who if x not in freed or n != "p0"] for x, who in before.items()}
    after = fill({x: strata[x] for x in freed}, kept, people(v)[1:], r, seed)
    for item in freed:
        assert {*kept[item]} <= {*after[item]}
        assert len({*after[item]}) == len(after[item]) == min(r, v - 1 + ("p0" in kept[item]))


def test_who_takes_over_is_who_has_the_fewest() -> None:
    strata = crossed(40, 3)
    before = fill(strata, {}, people(5), 2, 0)
    kept = {x: [n for n in who if n != "p4"] for x, who in before.items()}
    after = fill(strata, kept, people(4), 2, 0)
    assert spread(loads(after, 4)) <= 1
    assert spread(shares(after, 4)) <= 2


def test_items_of_a_question_are_spread_over_an_order() -> None:
    strata = crossed(20, 3)
    places = {x: n for n, x in enumerate(order([*strata], strata, "ann", 0))}
    assert sorted(places) == sorted(strata)
    for q in range(20):
        own = sorted(places[f"q{q}-s{s}"] for s in range(3))
        assert [3 * place // 60 for place in own] == [0, 1, 2]
    assert order([*strata], strata, "ann", 0) != order([*strata], strata, "ben", 0)


def test_the_table_of_overlaps() -> None:
    lines = overlap_lines({"ann": {"a", "b", "c"}, "ben": {"a", "b"}, "chioma": {"c"}})
    assert [line.split() for line in lines] == [
        ["ann", "ben", "chioma"], ["ann", "3", "2", "1"], ["ben", "2", "2", "0"],
        ["chioma", "1", "0", "1"],
    ]  # fmt: skip
