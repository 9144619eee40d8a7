"""The decisions of the page: chips that open it, and under each what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgebench.decide.report.bars import Axis, Bar, axes_by_key, make_bar
from judgebench.decide.report.lookup import (
    decided_judges,
    decided_metrics,
    decision_index,
    metric_title,
)
from judgebench.decide.report.tables import (
    correlations_table,
    jury_table,
    triage_table,
    with_rows,
)
from judgebench.decide.report.triage import triage_groups
from judgebench.decide.report.words import NO_DECISIONS, OUTCOMES, missing_data, rule_sentences
from judgebench.decide.result import Condition, Decision, Decisions, Outcome, State
from judgebench.report.comparisons import alternative_test_table

# A sign and the end of a CSS class, so that no outcome and no state is told by colour alone.
OUTCOME_LOOKS = {
    Outcome.REPLACE: ("✓", "replace"),
    Outcome.ASSIST: ("◐", "assist"),
    Outcome.DONT: ("✕", "dont"),
    Outcome.CANT_TELL: ("?", "cant"),
}
STATE_LOOKS = {State.MET: ("✓", "met"), State.NOT_MET: ("✕", "unmet"), State.UNCLEAR: ("?", "open")}


@dataclass(frozen=True)
class Chip:
    """An outcome as the page shows it; `anchor` is where its evidence stands."""

    words: str
    sign: str
    look: str
    reason: str
    anchor: str


@dataclass(frozen=True)
class Demand:
    """The conditions of one outcome, each as a state's sign and look and a bar."""

    title: str
    conditions: list[tuple[str, str, Condition, Bar]]


@dataclass(frozen=True)
class Card:
    """One judge on one metric: its chip, its conditions, and what more data it needs."""

    judge: str
    chip: Chip
    demands: list[Demand]
    more: str


def decide_section(decisions: Decisions) -> dict[str, Any]:
    """What the templates of the decisions need."""
    judges, metrics = decided_judges(decisions), decided_metrics(decisions)
    cards = _cards(decisions, judges, metrics)
    return {
        "notes": decisions.notes,
        "nothing": "" if metrics else NO_DECISIONS,
        "judges": judges,
        "matrix": [
            (
                metric_title(decisions, m),
                [c.chip if (c := cards.get((j, m))) else None for j in judges],
            )
            for m in metrics
        ],
        "legend": [(o.value, *OUTCOME_LOOKS[o], words) for o, words in OUTCOMES.items()],
        "metrics": [
            (metric_title(decisions, m), [cards[j, m] for j in judges if (j, m) in cards])
            for m in metrics
        ],
        "rule": rule_sentences(decisions),
        "triage": triage_groups(decisions),
        "triage_tables": with_rows([triage_table(decisions)]),
        "jury_tables": with_rows([jury_table(decisions), correlations_table(decisions)]),
        "test_tables": with_rows([alternative_test_table(decisions)]),
    }


def _cards(
    decisions: Decisions, judges: list[str], metrics: list[str]
) -> dict[tuple[str, str], Card]:
    found = decision_index(decisions)
    axes = axes_by_key(decisions)
    order = [(j, m) for m in metrics for j in judges if (j, m) in found]
    return {pair: _card(found[pair], axes, f"decision-{n}") for n, pair in enumerate(order, 1)}


def _card(decision: Decision, axes: Mapping[str, Axis], anchor: str) -> Card:
    sign, look = OUTCOME_LOOKS[decision.outcome]
    return Card(
        decision.judge,
        Chip(decision.outcome.value, sign, look, decision.reason, anchor),
        list(_demands(decision, axes)),
        missing_data(decision),
    )


def _demands(decision: Decision, axes: Mapping[str, Axis]) -> Iterator[Demand]:
    for title, conditions in (
        ("To REPLACE, all of these must be met", decision.replace),
        ("To ASSIST, all of these must be met", decision.assist),
    ):
        if conditions:
            shown = [(*STATE_LOOKS[c.state], c, make_bar(c, axes[c.key])) for c in conditions]
            yield Demand(title, shown)
