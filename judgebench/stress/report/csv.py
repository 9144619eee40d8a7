"""stress.csv: every number of a stress result in one long table, one row a number.

It is read as alignment.csv is: undefined is an empty `value` with a `reason`, and a text that a
spreadsheet would run gets a leading apostrophe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from judgebench.report.csv_file import ESTIMATE_COLUMNS, csv_text, estimate_columns
from judgebench.stress.report.violations import DETECTION_STATISTICS
from judgebench.stress.result import Invariance, StressResult

COLUMNS = (
    "table",  # violations, invariance, planted, consistency, halo, recipe, misses
    "judge",
    "recipe",  # the recipe, probe or trick; "all" = all together
    "area",
    "metric",  # "all" = all together
    "label",  # the least severe label that a violation must reach
    "statistic",
    "failures",  # left_out, worst, best
    "who",  # whose labels in `halo`; the check in `recipe`
    *ESTIMATE_COLUMNS,
)
_FLIPS = ("flipped", "robustness", "more_severe", "less_severe", "shift")


def to_stress_csv(stress: StressResult) -> str:
    """The text of stress.csv, lines ended by a line feed."""
    return csv_text(COLUMNS, _rows(stress))


def _rows(stress: StressResult) -> Iterator[dict[str, Any]]:
    yield from _violations(stress)
    for x in stress.invariances:
        yield from _probe(x)
    for p in stress.planted:
        yield {
            "table": "planted", "judge": p.judge, "recipe": p.trick, "metric": p.metric,
            "statistic": "success", **estimate_columns(p.success),
        }  # fmt: skip
    for c in stress.consistency:
        about = {"table": "consistency", "judge": c.judge, "metric": c.metric}
        yield {**about, "statistic": "asked", "value": c.asked}
        for statistic in ("agreement", "majority_gain"):
            yield {**about, "statistic": statistic, **estimate_columns(getattr(c, statistic))}
    for h in stress.halo:
        for statistic in ("correlation", "beyond_humans"):
            yield {
                "table": "halo", "judge": h.judge, "who": h.who, "statistic": statistic,
                **estimate_columns(getattr(h, statistic)),
            }  # fmt: skip
    yield from _counts(stress)


def _violations(stress: StressResult) -> Iterator[dict[str, Any]]:
    for d in stress.detections:
        about = {
            "table": "violations", "judge": d.judge, "recipe": d.recipe, "area": d.area,
            "metric": d.metric, "label": d.label, "failures": d.failures,
        }  # fmt: skip
        for statistic in DETECTION_STATISTICS:
            yield {**about, "statistic": statistic, **estimate_columns(getattr(d, statistic))}
        yield {**about, "statistic": "more_needed", "value": d.more_needed}


def _probe(x: Invariance) -> Iterator[dict[str, Any]]:
    about = {"table": "invariance", "judge": x.judge, "recipe": x.probe, "metric": x.metric}
    for statistic in _FLIPS:
        yield {**about, "statistic": statistic, **estimate_columns(getattr(x, statistic))}
    for statistic, value in (("p", x.p), ("p_holm", x.p_holm)):
        reason = "" if value is not None else x.shift.reason or "no shift to test"
        yield {**about, "statistic": statistic, "value": value, "reason": reason}


def _counts(stress: StressResult) -> Iterator[dict[str, Any]]:
    for r in stress.recipes:
        about = {"table": "recipe", "recipe": r.name}
        for statistic, count in (
            ("made", r.made),
            ("nothing_to_change", r.nothing_to_change),
            ("rejected", r.n_rejected),
            ("undecided", r.undecided),
        ):
            yield {**about, "statistic": statistic, "value": count}
        for check, count in r.rejected.items():
            yield {**about, "statistic": "rejected_by_check", "who": check, "value": count}
    yield {"table": "misses", "statistic": "count", "value": stress.n_misses}
