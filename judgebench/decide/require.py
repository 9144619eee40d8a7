"""What a pipeline may demand of the decisions: `REPLACE:metric` or `ASSIST:metric:judge`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judgebench.decide.result import Decisions, Outcome
from judgebench.errors import Problem, SetupError

# What satisfies a demand: whoever may replace may also assist.
_SATISFIED_BY = {
    Outcome.REPLACE: (Outcome.REPLACE,),
    Outcome.ASSIST: (Outcome.REPLACE, Outcome.ASSIST),
}


@dataclass(frozen=True)
class Demand:
    """An outcome for a metric, of any judge where `judge` is empty."""

    outcome: Outcome
    metric: str
    judge: str = ""

    def __str__(self) -> str:
        return ":".join(part for part in (self.outcome, self.metric, self.judge) if part)


def demands(texts: Sequence[str], decisions: Decisions) -> list[Demand]:
    """Raises SetupError with every text that is no demand or names what was not decided."""
    found, problems = [], []
    for text in texts:
        outcome, _, rest = text.partition(":")
        metric, _, judge = rest.partition(":")
        known = decisions.rubric.find(metric) if metric else None
        problem = _problem(text, outcome, known is not None, judge, decisions)
        if problem is not None:
            problems.append(problem)
        elif known is not None:
            found.append(Demand(Outcome(outcome), known.id, judge))
    if problems:
        raise SetupError(problems)
    return found


def _problem(
    text: str, outcome: str, known: bool, judge: str, decisions: Decisions
) -> Problem | None:
    metrics = ", ".join(metric.id for metric in decisions.rubric.metrics)
    if outcome not in _SATISFIED_BY:
        message, allowed = "names no outcome", f"{' or '.join(_SATISFIED_BY)}, then :METRIC"
    elif not known:
        message, allowed = "names no metric of the run", metrics
    elif judge and judge not in decisions.judges:
        message, allowed = "names no judge of the run", ", ".join(decisions.judges)
    else:
        return None
    return Problem(message, field="--require", found=text, allowed=allowed)


def unreached(asked: Sequence[Demand], decisions: Decisions) -> list[Demand]:
    """The demands that no decision satisfies."""
    return [
        demand
        for demand in asked
        if not any(
            d.metric == demand.metric
            and demand.judge in ("", d.judge)
            and d.outcome in _SATISFIED_BY[demand.outcome]
            for d in decisions.decisions
        )
    ]
