"""What a report holds: an alignment, a stress test, decisions, or several of them."""

from __future__ import annotations

from judgebench.align import Alignment
from judgebench.decide.result import Decisions
from judgebench.report.cells import Table
from judgebench.report.decide.tables import evidence_tables, opening_tables
from judgebench.report.stress.tables import all_stress_tables
from judgebench.report.tables import all_tables, judges_table
from judgebench.stress.result import StressResult

NO_LABELS = "There are no human labels to align the judges with."


def shows_alignment(alignment: Alignment, stress: StressResult | None) -> bool:
    """Whether there is an alignment to show; a stress test needs no human labels."""
    return stress is None or alignment.n_labels > 0


def about_what(
    alignment: Alignment, stress: StressResult | None, decisions: Decisions | None = None
) -> str:
    """What stands after the name in a title."""
    if decisions is not None:
        return "may these judges stand in for the annotators?"
    if shows_alignment(alignment, stress):
        return "judges against human labels"
    return "judges under stress"


def shown_tables(
    alignment: Alignment, stress: StressResult | None, decisions: Decisions | None = None
) -> list[Table]:
    """The tables of the Markdown and LaTeX reports: decisions, stress test, alignment."""
    tables = opening_tables(decisions)
    tables += [] if decisions is None else evidence_tables(decisions)
    tables += [] if stress is None else all_stress_tables(stress)
    if shows_alignment(alignment, stress):
        return [*tables, *all_tables(alignment)]
    judges = judges_table(alignment)
    return [*tables, judges] if judges.rows else tables


def all_notes(
    alignment: Alignment, stress: StressResult | None, decisions: Decisions | None
) -> list[str]:
    """The caveats of all parts, each once."""
    notes = [*alignment.notes, *(stress.notes if stress else ())]
    return list(dict.fromkeys([*notes, *(decisions.notes if decisions else ())]))
