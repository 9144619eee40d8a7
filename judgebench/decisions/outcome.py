"""From conditions to an outcome, and what a pipeline may require of it: `REPLACE:metric:judge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judgebench.decisions.result import Condition, Decisions, Outcome, State
from judgebench.errors import Problem, SetupError

# What satisfies a demand: a judge that may replace may also assist.
_SATISFIED_BY = {
    Outcome.REPLACE: (Outcome.REPLACE,),
    Outcome.ASSIST: (Outcome.REPLACE, Outcome.ASSIST),
    Outcome.DO_NOT_USE: (Outcome.DO_NOT_USE,),
}
_OLDER = dict.fromkeys(("DON'T", "DONT", "DO_NOT_USE"), Outcome.DO_NOT_USE)
_NAMED: Mapping[str, Outcome] = {**{outcome.value: outcome for outcome in _SATISFIED_BY}, **_OLDER}


def outcome_of(replace: Sequence[Condition], assist: Sequence[Condition]) -> Outcome:
    """REPLACE where all its conditions are met, else ASSIST where all of that are; DO NOT USE where
    the data show that one of REPLACE fails, and CAN'T TELL where they show nothing.

    Nothing is met and nothing fails where there is no condition.
    """
    if replace and all(c.state is State.MET for c in replace):
        return Outcome.REPLACE
    if assist and all(c.state is State.MET for c in assist):
        return Outcome.ASSIST
    if any(c.state is State.NOT_MET for c in replace):
        return Outcome.DO_NOT_USE
    return Outcome.CANT_TELL


@dataclass(frozen=True)
class Demand:
    """An outcome for a metric, of any judge where `judge` is empty."""

    outcome: Outcome
    metric: str
    judge: str = ""

    def __str__(self) -> str:
        return ":".join(part for part in (self.outcome, self.metric, self.judge) if part)


def demands(texts: Sequence[str], decisions: Decisions) -> list[Demand]:
    """Raises SetupError with every text that is not a demand or names what was not decided."""
    found, problems = [], []
    for text in texts:
        name, title, judge = (*text.split(":", 2), "", "")[:3]  # a judge's name may hold colons
        outcome, metric = _NAMED.get(name), decisions.rubric.find(title) if title else None
        if outcome is None:
            message, allowed = "not an outcome", f"{', '.join(_SATISFIED_BY)}, followed by :METRIC"
        elif metric is None:
            message = "not a metric of the run"
            allowed = ", ".join(metric.id for metric in decisions.rubric.metrics)
        elif not judge and len(decisions.judges) > 1:
            message = "names no judge, and the best of several may be good by luck"
            allowed = ", ".join(f"{text}:{one}" for one in decisions.judges)
        elif judge and judge not in decisions.judges:
            message, allowed = "not a judge of the run", ", ".join(decisions.judges)
        else:
            found.append(Demand(outcome, metric.id, judge))
            continue
        problems.append(Problem(message, field="--require", found=text, allowed=allowed))
    if problems:
        raise SetupError(problems)
    return found


def unreached(required: Sequence[Demand], decisions: Decisions) -> list[Demand]:
    """The demands that no decision satisfies. REPLACE is satisfied only by labels that are known
    to be made without sight of any model's label."""

    def reached(demand: Demand) -> bool:
        return any(
            d.metric == demand.metric
            and demand.judge in ("", d.judge)
            and d.outcome in _SATISFIED_BY[demand.outcome]
            and (decisions.blind or demand.outcome is not Outcome.REPLACE)
            for d in decisions.decisions
        )

    return [demand for demand in required if not reached(demand)]
