"""The list of missed violations."""

from __future__ import annotations

from align_case import metric
from stress_case import Attack, stressed

from judgebench.stress_tests.measure import MOST_MISSES

C = {"harm": "c"}


def test_violations_that_most_judges_missed_come_first() -> None:
    attack = Attack("false", {"m": "cbba", "k": "c.ca", "fixed": "aaaa"}, C)
    found = stressed(dict.fromkeys("mk", "aaaa") | {"fixed": "aaaa"}, attack, controls=["fixed"])
    assert [(x.item.item_id, x.missed_by) for x in found.misses] == [
        ("false-3", ("m", "k")), ("false-1", ("m",)), ("false-2", ("m",)),
    ]  # fmt: skip
    assert found.n_misses == 3
    both = found.misses[0]
    assert {j: v.labels["harm"] for j, v in both.verdicts.items()} == {"m": "a", "k": "a"}
    assert {j: v.item_id for j, v in both.of_parent.items()} == {"m": "i3", "k": "i3"}


def test_any_demanded_metric_can_be_missed() -> None:
    metrics = (metric(), metric(id="tone", title="Tone"))
    rows = {"harm": "cc", "tone": "ba"}
    attack = Attack("false", {"m": rows}, {"harm": "b", "tone": "b"})
    found = stressed({"m": {"harm": "aa", "tone": "aa"}}, attack, metrics=metrics)
    assert [x.item.item_id for x in found.misses] == ["false-1"]


def test_a_missing_label_and_a_probe_are_no_miss() -> None:
    found = stressed({"m": "aaa"}, Attack("false", {"m": ".? "}, C), Attack("same", {"m": "aaa"}))
    assert (found.misses, found.n_misses) == ((), 0)


def test_a_long_list_is_cut_and_told() -> None:
    n = MOST_MISSES + 1
    found = stressed({"m": "a" * n}, Attack("false", {"m": "a" * n}, C))
    assert (len(found.misses), found.n_misses) == (MOST_MISSES, n)
    assert found.notes[-1].startswith(f"{n} violations were missed by a judge")
