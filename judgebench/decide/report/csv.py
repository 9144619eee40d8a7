"""decisions.csv: every decision and every number beneath it in one long table.

It is read as alignment.csv is: undefined is an empty `value` with a `reason`, and a text that a
spreadsheet would run gets a leading apostrophe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from judgebench.decide.result import AlternativeTest, Decision, Decisions, JuryValue, TriageCurve
from judgebench.report.csv_file import ESTIMATE_COLUMNS, csv_text, estimate_columns

COLUMNS = (
    "table",  # decision, condition, more_data, triage, triage_point, jury, error_correlation,
    # alternative_test
    "judge",  # empty in `jury`; the first of two in `error_correlation`
    "metric",  # "any" = severe on any metric
    "outcome",  # in `decision`; what a condition is asked for; where more data leads
    "statistic",  # the key of a condition
    "title",
    "state",  # met, not met, unclear
    "bound",
    "at_least",
    "missing",  # what keeps a condition from being clear
    "signal",
    "threshold",  # inf and -inf: only answers without a verdict are sent, all are
    "who",  # the other judge, the best jury, or the variant of the test
    *ESTIMATE_COLUMNS,
)
Rows = Iterator[dict[str, Any]]


def to_decisions_csv(decisions: Decisions) -> str:
    """The text of decisions.csv, lines ended by a line feed."""
    return csv_text(COLUMNS, _rows(decisions))


def _rows(decisions: Decisions) -> Rows:
    for d in decisions.decisions:
        yield {
            "table": "decision", "judge": d.judge, "metric": d.metric, "outcome": d.outcome.value,
            "reason": d.reason,
        }  # fmt: skip
    for d in decisions.decisions:
        yield from _conditions(d)
        yield from _more_data(d)
    for curve in decisions.curves:
        yield from _curve(curve)
    for jury in decisions.juries:
        yield from _jury(jury)
    for test in decisions.alternative_tests:
        yield from _alternative_test(test)


def _conditions(d: Decision) -> Rows:
    for outcome, conditions in (("REPLACE", d.replace), ("ASSIST", d.assist)):
        for c in conditions:
            yield {
                "table": "condition", "judge": d.judge, "metric": d.metric, "outcome": outcome,
                "statistic": c.key, "title": c.title, "state": c.state.value, "bound": c.bound,
                "at_least": str(c.at_least).lower(), "missing": c.missing,
                **estimate_columns(c.estimate),
            }  # fmt: skip


def _more_data(d: Decision) -> Rows:
    more = d.more
    if more is None:
        return
    about = {
        "table": "more_data", "judge": d.judge, "metric": d.metric, "reason": more.reason,
        "outcome": more.towards.value if more.towards else "",
    }  # fmt: skip
    for statistic in ("items", "labels", "severe", "clear"):
        yield {**about, "statistic": statistic, "value": getattr(more, statistic)}


def _curve(curve: TriageCurve) -> Rows:
    about = {"judge": curve.judge, "metric": curve.metric, "signal": curve.signal}
    counted = {**about, "table": "triage", "reason": curve.reason}
    yield {**counted, "statistic": "answers", "value": curve.n}
    yield {**counted, "statistic": "severe", "value": curve.severe}
    choice = curve.choice
    if choice is not None:
        for statistic in ("sent", "missed"):
            yield {
                **counted, "statistic": statistic, "threshold": choice.threshold,
                **estimate_columns(getattr(choice, statistic)),
            }  # fmt: skip
    for point in curve.points:
        for statistic in ("sent", "caught"):
            yield {
                **about, "table": "triage_point", "statistic": statistic,
                "threshold": point.threshold, **estimate_columns(getattr(point, statistic)),
            }  # fmt: skip


def _jury(jury: JuryValue) -> Rows:
    about = {"table": "jury", "metric": jury.metric, "who": ", ".join(jury.best)}
    for statistic in ("correlation", "effective", "accuracy", "single", "gain"):
        yield {**about, "statistic": statistic, **estimate_columns(getattr(jury, statistic))}
    for pair in jury.correlations:
        yield {
            "table": "error_correlation", "judge": pair.first, "metric": pair.metric,
            "statistic": "correlation", "who": pair.second, **estimate_columns(pair.estimate),
        }  # fmt: skip


def _alternative_test(test: AlternativeTest) -> Rows:
    about = {
        "table": "alternative_test", "judge": test.judge, "metric": test.metric,
        "who": test.variant, "reason": test.reason,
    }  # fmt: skip
    for statistic in ("epsilon", "annotators", "winning_rate"):
        yield {**about, "statistic": statistic, "value": getattr(test, statistic)}
    yield {**about, "statistic": "advantage", **estimate_columns(test.advantage)}
    for statistic in ("passes", "guarded"):
        said: bool | None = getattr(test, statistic)
        yield {**about, "statistic": statistic, "value": None if said is None else int(said)}
