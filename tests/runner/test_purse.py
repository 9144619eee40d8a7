from __future__ import annotations

import pytest

from judgebench.errors import SetupError
from judgebench.records import Status, Usage, Verdict
from judgebench.runner.budget import Purse


def costing(cost: float | None) -> Verdict:
    return Verdict("i", "h", "m", "s", Status.OK, usage=Usage(1), cost=cost)


def test_no_more_are_in_flight_than_could_all_be_as_dear_as_the_dearest() -> None:
    purse = Purse(1.0, spent=0.2, dearest=0.3)
    assert [purse.may_ask() for _ in range(3)] == [True, True, False]
    purse.pay(costing(0.1))
    assert purse.may_ask()  # 0.3 spent, one in flight, one more: 0.9
    assert not purse.may_ask()


def test_without_a_budget_anything_goes_and_costs_may_be_unknown() -> None:
    purse = Purse(None)
    assert all(purse.may_ask() for _ in range(100))
    purse.pay(costing(None))


def test_a_budget_needs_to_know_what_a_call_costs() -> None:
    purse = Purse(1.0)
    assert purse.may_ask()
    with pytest.raises(SetupError, match="price"):
        purse.pay(costing(None))
