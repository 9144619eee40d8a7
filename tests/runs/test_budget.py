from judgebench.runs.judging import Budget


def test_no_more_are_in_flight_than_could_all_be_as_expensive_as_the_most_expensive() -> None:
    budget = Budget(1.0, spent=0.2, highest=0.3)
    assert [budget.may_ask() for _ in range(3)] == [True, True, False]
    budget.pay(0.1)
    assert budget.may_ask()  # 0.3 spent, one in flight, one more: 0.9
    assert not budget.may_ask()


def test_without_a_budget_anything_goes_and_costs_may_be_unknown() -> None:
    budget = Budget(None)
    assert all(budget.may_ask() for _ in range(100))
    budget.pay(None, "judges.m.settings.price")
