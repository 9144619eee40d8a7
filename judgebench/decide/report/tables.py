"""The decisions and what they rest on as tables, for every format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judgebench.decide.report.lookup import (
    curves_in_order,
    decided_judges,
    decided_metrics,
    decision_index,
    metric_title,
)
from judgebench.decide.report.words import (
    STATES,
    bound_text,
    estimate_cell,
    outcomes_sentence,
    percent,
    threshold_text,
)
from judgebench.decide.result import Condition, Decision, Decisions, JuryValue, TriageCurve
from judgebench.records import Estimate
from judgebench.report.comparisons import alternative_test_table
from judgebench.results.tables import DASH, NO_REASON, Cell, Table

Row = tuple[Cell, ...]


def opening_tables(decisions: Decisions | None) -> list[Table]:
    """The table that a report opens with; none where nothing was decided."""
    return [] if decisions is None else with_rows([decision_table(decisions)])


def evidence_tables(decisions: Decisions) -> list[Table]:
    """What the decisions rest on, in order; empty tables are left out."""
    return with_rows(
        [
            *conditions_tables(decisions),
            more_data_table(decisions),
            triage_table(decisions),
            jury_table(decisions),
            correlations_table(decisions),
            alternative_test_table(decisions),
        ]
    )


def with_rows(tables: Iterable[Table]) -> list[Table]:
    """The tables that are not empty."""
    return [table for table in tables if table.rows]


def decision_table(decisions: Decisions) -> Table:
    """Metrics down, judges across: the outcome, and its reason in a mark."""
    judges, found = decided_judges(decisions), decision_index(decisions)
    rows = tuple(
        (
            Cell(metric_title(decisions, metric)),
            *(_outcome_cell(found.get((judge, metric))) for judge in judges),
        )
        for metric in decided_metrics(decisions)
    )
    return Table(
        "decide_decisions",
        "Decisions: may the judge stand in for the human annotators?",
        ("Metric", *judges),
        rows,
        (outcomes_sentence(),),
    )


def _outcome_cell(decision: Decision | None) -> Cell:
    if decision is None:
        return Cell(DASH, remark="not decided: the judge has no verdict on this metric")
    return Cell(decision.outcome.value, remark=decision.reason or NO_REASON)


def conditions_tables(decisions: Decisions) -> list[Table]:
    """One table a judge: every condition of every metric with its bound, estimate and state."""
    return with_rows(
        Table(
            f"decide_conditions-{number}",
            f"What the decisions rest on: {judge}",
            ("Metric", "Condition", "Bound", "Estimate", "State"),
            tuple(_condition_rows(decisions, judge)),
            (STATES,),
            stubs=2,
        )
        for number, judge in enumerate(decided_judges(decisions), start=1)
    )


def _condition_rows(decisions: Decisions, judge: str) -> Iterator[Row]:
    found = decision_index(decisions)
    for metric in decided_metrics(decisions):
        decision = found.get((judge, metric))
        if decision is None:
            continue
        title = metric_title(decisions, metric)
        for outcome, conditions in (("REPLACE", decision.replace), ("ASSIST", decision.assist)):
            for condition in conditions:
                yield Cell(title), Cell(f"{outcome}: {condition.title}"), *_stand(condition)


def _stand(condition: Condition) -> Row:
    """The bound, the estimate and the state, with what is missing."""
    return (
        Cell(bound_text(condition)),
        estimate_cell(condition),
        Cell(condition.state.value, remark=condition.missing),
    )


def more_data_table(decisions: Decisions) -> Table:
    """How much more data each unclear decision needs; the reason in a mark where nobody can say."""
    rows = []
    for decision in _by_judge(decisions):
        more = decision.more
        if more is None:
            continue
        counts = (more.items, more.labels, more.severe)
        rows.append(
            (
                Cell(decision.judge),
                Cell(metric_title(decisions, decision.metric)),
                *(_count_cell(count, more.reason) for count in counts),
                Cell(percent(more.clear)),
                Cell(more.towards.value if more.towards else DASH),
            )
        )
    return Table(
        "decide_more_data",
        "How much more data would make the unclear decisions clear",
        ("Judge", "Metric", "More answers", "Human labels for them", "Severe among them",
         "Studies that end clear", "Most of them with"),
        tuple(rows),
        (
            "Simulated from the estimates there are; the answers are labelled as those there are. "
            "The last two columns are of simulated studies of that size.",
        ),
        stubs=2,
    )  # fmt: skip


def _by_judge(decisions: Decisions) -> Iterator[Decision]:
    """The decisions, judge after judge, each by the rubric's metrics."""
    found = decision_index(decisions)
    for judge in decided_judges(decisions):
        for metric in decided_metrics(decisions):
            if (judge, metric) in found:
                yield found[judge, metric]


def _count_cell(count: int | None, reason: str) -> Cell:
    if count is None:
        return Cell(DASH, remark=reason or NO_REASON)
    return Cell(f"{count:,}")


def triage_table(decisions: Decisions) -> Table:
    """The recommended threshold of every triage curve, judged on questions it was not chosen on."""
    return Table(
        "decide_triage",
        "Triage: which answers to send to humans, and what is then missed",
        ("Judge", "Metric and signal", "Answers", "Severe", "Threshold", "Sent to humans",
         "Severe answers missed"),
        tuple(_triage_row(decisions, curve) for curve in curves_in_order(decisions)),
        (
            "Answers whose signal is at least the threshold go to humans, and so do those without "
            "a verdict. The threshold is the more cautious of two, each chosen on one half of the "
            "questions; missed is held out: of each half under the other half's threshold.",
        ),
        stubs=2,
    )  # fmt: skip


def _triage_row(decisions: Decisions, curve: TriageCurve) -> Row:
    choice, reason = curve.choice, curve.reason or NO_REASON
    nothing = Estimate(None, reason=reason, n=curve.n)
    return (
        Cell(curve.judge),
        Cell(f"{metric_title(decisions, curve.metric)}, by {curve.signal}"),
        Cell(f"{curve.n:,}"),
        Cell(f"{curve.severe:,}"),
        Cell(threshold_text(choice.threshold)) if choice else Cell(DASH, remark=reason),
        Cell(estimate=choice.sent if choice else nothing),
        Cell(estimate=choice.missed if choice else nothing),
    )


def jury_table(decisions: Decisions) -> Table:
    """What a jury of this run's judges is worth on each metric."""
    return Table(
        "decide_jury",
        "What a jury of these judges is worth",
        ("Metric", "Mean error correlation", "Effective number of judges", "Best jury",
         "Its accuracy, held out", "Best single judge, held out", "Gain"),
        tuple(_jury_row(decisions, jury) for jury in decisions.juries),
        (
            "Error correlation: how far two judges err on the same items, mean over the pairs. "
            "Effective number: of independent judges that would be worth as much. The best jury "
            "is chosen on all items; accuracies are of juries and judges chosen on other items "
            "than they are scored on, and the gain is their difference on the same items.",
        ),
    )  # fmt: skip


def _jury_row(decisions: Decisions, jury: JuryValue) -> Row:
    return (
        Cell(metric_title(decisions, jury.metric)),
        Cell(estimate=jury.correlation, signed=True),
        Cell(estimate=jury.effective, remark=f"of {len(jury.judges)}: {', '.join(jury.judges)}"),
        Cell(", ".join(jury.best) or DASH, remark="" if jury.best else "undefined: none was found"),
        Cell(estimate=jury.accuracy),
        Cell(estimate=jury.single),
        Cell(estimate=jury.gain, signed=True),
    )


def correlations_table(decisions: Decisions) -> Table:
    """How far each pair of judges errs on the same items."""
    pairs = [pair for jury in decisions.juries for pair in jury.correlations]
    return Table(
        "decide_error_correlations",
        "Do two judges err on the same items? Correlation of their errors",
        ("Metric", "Judges", "Error correlation"),
        tuple(
            (
                Cell(metric_title(decisions, pair.metric)),
                Cell(f"{pair.first} and {pair.second}"),
                Cell(estimate=pair.estimate, signed=True),
            )
            for pair in pairs
        ),
        ("Pearson's correlation of right and wrong (phi): 1 where they err together.",),
        stubs=2,
    )
