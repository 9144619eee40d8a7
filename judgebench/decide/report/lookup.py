"""Judges and metrics in their order, and a decision found by both."""

from __future__ import annotations

from collections.abc import Mapping

from judgebench.decide.result import EVERY, Decision, Decisions, TriageCurve


def decision_index(decisions: Decisions) -> Mapping[tuple[str, str], Decision]:
    """The decisions by judge and metric."""
    return {(d.judge, d.metric): d for d in decisions.decisions}


def decided_judges(decisions: Decisions) -> list[str]:
    """The names of the judges that were decided on, in the order of the run."""
    named = dict.fromkeys(d.judge for d in decisions.decisions)
    return [*(j for j in decisions.judges if j in named), *_rest(named, decisions.judges)]


def decided_metrics(decisions: Decisions) -> list[str]:
    """The ids of the metrics that were decided on, in the rubric's order."""
    named = dict.fromkeys(d.metric for d in decisions.decisions)
    known = {m.id: m.title for m in decisions.rubric.metrics}
    return [*(m for m in known if m in named), *_rest(named, known)]


def curves_in_order(decisions: Decisions) -> list[TriageCurve]:
    """The triage curves, judge after judge and signal after signal, EVERY first in each."""
    groups = list(dict.fromkeys((c.judge, c.signal) for c in decisions.curves))
    return sorted(
        decisions.curves, key=lambda c: (groups.index((c.judge, c.signal)), c.metric != EVERY)
    )


def metric_title(decisions: Decisions, metric: str) -> str:
    """The title of a metric; EVERY stands for a severe label on any."""
    if metric == EVERY:
        return "Severe on any metric"
    return next((m.title for m in decisions.rubric.metrics if m.id == metric), metric)


def _rest(named: Mapping[str, None], known: Mapping[str, str]) -> list[str]:
    return [name for name in named if name not in known]
