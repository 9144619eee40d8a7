"""What may still be spent."""

from __future__ import annotations

import threading

from judgebench.errors import BudgetSpent, Problem, SetupError


class Budget:
    """US dollars for all who share it, whatever thread they are in; `limit` None means any sum.

    `spent` is what the run folder has cost so far, `highest` the most that one call has cost or
    is expected to. `ran_out` when a call could not be paid for.
    """

    def __init__(self, limit: float | None, spent: float = 0.0, highest: float = 0.0) -> None:
        self._limit = limit
        self.spent = spent
        self.ran_out = False
        self._highest = highest
        self._in_flight = 0
        self._lock = threading.Lock()

    def expect(self, cost: float) -> None:
        """One of the calls to come is expected to cost so much."""
        with self._lock:
            self._highest = max(self._highest, cost)

    def may_ask(self) -> bool:
        """Whether one more call fits, should it and all in flight cost as much as the most
        expensive one so far; if so, it counts as in flight until it is paid."""
        with self._lock:
            most = self.spent + (self._in_flight + 1) * self._highest
            self.ran_out = self._limit is not None and most > self._limit
            self._in_flight += not self.ran_out
            return not self.ran_out

    def pay(self, cost: float | None, price_field: str = "") -> SetupError | None:
        """Count what a call cost, None if unknown. `price_field` names the setting that would
        tell; without it nothing was paid for. Returns the error to raise, once the calls in
        flight have ended, where a limit cannot be kept."""
        with self._lock:
            self._in_flight -= 1
            self.spent += cost or 0.0
            self._highest = max(self._highest, cost or 0.0)
        if self._limit is not None and cost is None and price_field:
            message = (
                "a budget needs to know what a call costs, and a reply came without it: state its "
                "price, and use an endpoint that counts its tokens"
            )
            return SetupError(Problem(message, field=price_field))
        return None

    def spent_up(self) -> BudgetSpent:
        """The error that says so."""
        return BudgetSpent(
            f"the budget of ${self._limit:g} is used up: ${self.spent:.4f} spent in this run "
            "folder; run again with a larger budget to go on"
        )
