"""What was decided about both judges on the same answers, and why it is no longer the same.

The decisions are read as rows of the results table, so that whatever decides may be taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgebench.alignment.alignment import ALIGNED
from judgebench.comparison.matching import SIDES, Pair
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.results.tables import format_number
from judgebench.runs.wing import analyses
from judgebench.studies.study import Study
from judgebench.words import counted

_MOST_SAID = 2  # conditions in a sentence
_WORTH: Mapping[str, int] = {"REPLACE": 3, "ASSIST": 2, "CAN'T TELL": 1}


@dataclass(frozen=True)
class Changed:
    """The outcome of A and B for one judge and metric, the reasons, and their conditions (rows) by
    outcome required for and key."""

    judge: str
    who: str
    metric: str
    outcomes: tuple[str, str]
    reasons: tuple[str, str]
    conditions: tuple[Mapping[tuple[str, str], Row], Mapping[tuple[str, str], Row]]

    @property
    def differs(self) -> bool:
        return self.outcomes[0] != self.outcomes[1]

    @property
    def fell(self) -> bool:
        """Whether B may do less than A, or is now known not to do what was unclear of A."""
        before, after = (_WORTH.get(outcome, 0) for outcome in self.outcomes)
        return after < before

    def moved(self) -> Iterator[tuple[Row, Row]]:
        """The conditions that stand otherwise in B, of those that both have."""
        a, b = self.conditions
        yield from (
            (a[key], b[key]) for key in a if key in b and a[key]["state"] != b[key]["state"]
        )

    def why(self) -> str:
        """`agreement …: met (0.010) → unclear (-0.020), and 2 more conditions.`; empty where no
        condition of both stands otherwise."""
        said = [f"{b['title']}: {_state(a)} → {_state(b)}" for a, b in self.moved()]
        more = len(said) - _MOST_SAID
        said = [*said[:_MOST_SAID], *([counted(more, "more condition")] if more > 0 else [])]
        return f"{'; '.join(said)}." if said else ""


def _state(row: Row) -> str:
    return f"{row['state']} ({format_number(row.estimate.value)})"


def decisions(sides: tuple[Study, Study], base: Study, pairs: Sequence[Pair]) -> list[Changed]:
    """What is decided about each pair of judges on the answers of `base`, whose human labels and
    control judges serve for both; nothing where nothing decides.

    Each side keeps its own stress test.
    """
    found = [
        _decided(study, base, {pair[i].name for pair in pairs}) for i, study in enumerate(sides)
    ]
    changed = []
    for a, b in pairs:
        for metric in base.rubric.metrics:
            made = [
                results.select("decision", judge=judge.name, metric=metric.id)
                for results, judge in zip(found, (a, b), strict=True)
            ]
            if not all(made):
                continue
            conditions = [
                {
                    (row["outcome"], row.statistic): row
                    for row in results.select(
                        "condition", judge=judge.name, metric=metric.id, who=""
                    )
                }
                for results, judge in zip(found, (a, b), strict=True)
            ]
            first, second = (rows[0] for rows in made)
            changed.append(
                Changed(
                    b.name, a.name, metric.id, (first["outcome"], second["outcome"]),
                    (first.estimate.reason, second.estimate.reason),
                    (conditions[0], conditions[1]),
                )
            )  # fmt: skip
    return changed


def _decided(study: Study, base: Study, names: set[str]) -> Results:
    """The rows of the decisions on the judges of `study`, on the answers of `base`."""
    controls = [j for j in base.judges if j.kind == "control" and j.name not in names]
    judges = [j for j in study.judges if j.kind != "control" or j.name in names]
    asked_of: tuple[Any, ...] = (*judges, *controls)
    beside = {key: value for key, value in study.beside.items() if key != ALIGNED}
    if len(base.rubric.metrics) < len(study.rubric.metrics):
        beside.pop("stress", None)  # its demands are on metrics that are not compared
    side = replace(base, judges=asked_of, beside=beside)
    found = analyses(side, "decide", "stress").get("decide")
    return found.results if found else Results()


def decision_rows(changed: Sequence[Changed]) -> Iterator[Row]:
    """The outcomes of both sides with their reasons, and every condition of both."""
    for one in changed:
        about = (one.judge, one.metric)
        for place, side in enumerate(SIDES):
            keys = {
                "who": one.who, "run": side, "outcome": one.outcomes[place],
                "changed": "yes" if one.differs else "no",
            }  # fmt: skip
            reason = Estimate(None, reason=one.reasons[place])
            yield Row("decision", "", reason, *about, keys)
        for place, side in enumerate(SIDES):
            for row in one.conditions[place].values():
                more = {**row.keys, "who": one.who, "run": side}
                yield Row("condition", row.statistic, row.estimate, *about, more)
