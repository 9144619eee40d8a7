"""What may still be spent."""

from __future__ import annotations

import threading

from judgebench.errors import BudgetSpent, Problem, SetupError
from judgebench.records import Verdict


class Purse:
    """US dollars for all judges of a run together. `budget` None means any sum.

    `spent` is what the run folder has cost so far, `dearest` the most that one verdict has cost or
    is expected to. Threads of several judges share it.
    """

    def __init__(self, budget: float | None, spent: float = 0.0, dearest: float = 0.0) -> None:
        self._budget = budget
        self._spent = spent
        self._dearest = dearest
        self._in_flight = 0
        self._lock = threading.Lock()

    def may_ask(self) -> bool:
        """Whether one more verdict fits, should it and all in flight be as dear as the dearest;
        if so, it counts as in flight until it is paid."""
        with self._lock:
            if self._budget is not None:
                most = self._spent + (self._in_flight + 1) * self._dearest
                if most > self._budget:
                    return False
            self._in_flight += 1
            return True

    def pay(self, verdict: Verdict) -> None:
        """Raises SetupError where there is a budget and nobody knows what the call cost."""
        with self._lock:
            self._in_flight -= 1
            self._spent += verdict.cost or 0.0
            self._dearest = max(self._dearest, verdict.cost or 0.0)
        if self._budget is not None and verdict.cost is None and verdict.usage.calls:
            raise SetupError(
                Problem(
                    "--budget needs to know what a call costs: state price in the judge's settings",
                    field=f"judges.{verdict.judge}.settings.price",
                )
            )

    def spent_up(self) -> BudgetSpent:
        """The error that says so."""
        return BudgetSpent(
            f"the budget of ${self._budget:g} is used up: ${self._spent:.4f} spent in this run "
            "folder; run again with a larger --budget to go on"
        )
