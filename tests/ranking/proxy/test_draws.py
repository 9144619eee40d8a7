"""Which model's argument an LLM-trained evaluator is trained on."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from judgebench.ranking.proxy.draws import drawn_systems
from judgebench.ranking.proxy.task import TaskInstance

SYSTEMS = ("a", "b", "c")


def instances(n: int) -> list[TaskInstance]:
    return [TaskInstance(f"i{k}", f"text {k}", "yes", "gold", "train") for k in range(n)]


def complete(n: int, systems: tuple[str, ...] = SYSTEMS) -> dict[str, dict[str, str]]:
    return {s: {f"i{k}": f"{s} on {k}" for k in range(n)} for s in systems}


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 9), st.integers(0, 2))
def test_where_all_wrote_each_is_drawn_as_often_as_any_other(
    n: int, n_systems: int, seed: int, draw: int
) -> None:
    systems = tuple("abcde"[:n_systems])
    drawn = drawn_systems(instances(n), complete(n, systems), seed=seed, draw=draw)
    counts = Counter(drawn.values())
    assert len(drawn) == n
    assert max(counts.values()) - min(counts[s] for s in systems) <= 1


@given(st.lists(st.sets(st.sampled_from(SYSTEMS)), max_size=30), st.integers(0, 5))
def test_only_who_wrote_is_drawn_and_who_has_none_is_left_out(
    wrote: list[set[str]], seed: int
) -> None:
    arguments = {s: {f"i{k}": "text" for k, who in enumerate(wrote) if s in who} for s in SYSTEMS}
    drawn = drawn_systems(instances(len(wrote)), arguments, seed=seed)
    assert set(drawn) == {f"i{k}" for k, who in enumerate(wrote) if who}
    assert all(s in wrote[int(item[1:])] for item, s in drawn.items())
    full = Counter(drawn[f"i{k}"] for k, who in enumerate(wrote) if len(who) == len(SYSTEMS))
    assert max(full.values(), default=0) - min((full[s] for s in SYSTEMS), default=0) <= 1


def test_blank_arguments_are_none() -> None:
    assert drawn_systems(instances(1), {"a": {"i0": "  "}}, seed=0) == {}


def test_the_rest_goes_to_who_was_drawn_least() -> None:
    arguments = complete(30, ("a", "b"))
    del arguments["a"]["i0"], arguments["a"]["i1"]
    counts = Counter(drawn_systems(instances(30), arguments, seed=3).values())
    assert counts == {"a": 14, "b": 16}


def test_draws_and_seeds_differ_and_the_same_ones_agree_in_any_order() -> None:
    there, texts = instances(24), complete(24)
    first = drawn_systems(there, texts, seed=0)
    assert drawn_systems(there[::-1], dict(reversed(texts.items())), seed=0) == first
    assert drawn_systems(there, texts, seed=0, draw=1) != first
    assert drawn_systems(there, texts, seed=1) != first
