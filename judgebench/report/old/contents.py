"""What a report holds: an alignment, a stress test, decisions, rankings, or several of them."""

from __future__ import annotations

from dataclasses import replace

from judgebench.align import Alignment
from judgebench.decide.result import Decisions
from judgebench.ranking.rankings import Rankings
from judgebench.report.tables import all_tables, judges_table
from judgebench.report.words import describe
from judgebench.results.part import Part
from judgebench.results.tables import Table
from judgebench.stress.result import StressResult

NO_LABELS = "There are no human labels to align the judges with."


def ranked_part(alignment: Alignment, rankings: Rankings) -> Part:
    """The rankings with the caveats on the judges."""
    part = rankings.part
    return replace(part, notes=(*alignment.notes, *part.notes))


def shows_alignment(
    alignment: Alignment, stress: StressResult | None, rankings: Rankings | None = None
) -> bool:
    """Whether there is an alignment to show; stress tests and rankings need no human labels."""
    return (stress is None and rankings is None) or alignment.n_labels > 0


def compared_sentences(alignment: Alignment, rankings: Rankings | None) -> list[str]:
    """What was compared; nothing where only proxy evaluators ranked."""
    return describe(alignment) if alignment.judges or rankings is None else []


def about_what(
    alignment: Alignment,
    stress: StressResult | None,
    decisions: Decisions | None = None,
    rankings: Rankings | None = None,
) -> str:
    """What stands after the name in a title."""
    if decisions is not None:
        return "may these judges stand in for the annotators?"
    if shows_alignment(alignment, stress, rankings):
        return "judges against human labels"
    if rankings is not None:
        return "whose arguments help to decide?"
    return "judges under stress"


def opening_tables(decisions: Decisions | None) -> list[Table]:
    """The tables of the blocks that a report opens with."""
    blocks = [] if decisions is None else decisions.part.blocks
    return [table for block in blocks if block.lead for table in block.tables]


def evidence_tables(decisions: Decisions) -> list[Table]:
    """What the decisions rest on."""
    blocks = [block for block in decisions.part.blocks if not block.lead]
    return [table for block in blocks for table in block.tables if table.rows]


def stress_tables(stress: StressResult) -> list[Table]:
    """Every table of the stress test that has rows."""
    return [table for block in stress.part.blocks for table in block.tables if table.rows]


def shown_tables(
    alignment: Alignment,
    stress: StressResult | None,
    decisions: Decisions | None = None,
    rankings: Rankings | None = None,
) -> list[Table]:
    """The tables of the Markdown and LaTeX reports: decisions, rankings, stress test, alignment."""
    tables = opening_tables(decisions)
    tables += [] if decisions is None else evidence_tables(decisions)
    tables += [] if stress is None else stress_tables(stress)
    if shows_alignment(alignment, stress, rankings):
        return [*tables, *all_tables(alignment)]
    judges = judges_table(alignment)
    return [*tables, judges] if judges.rows else tables


def all_notes(
    alignment: Alignment,
    stress: StressResult | None,
    decisions: Decisions | None,
    rankings: Rankings | None = None,
) -> list[str]:
    """The caveats of all parts, each once."""
    notes = [*alignment.notes, *(stress.notes if stress else ())]
    notes += [*(decisions.notes if decisions else ()), *(rankings.notes if rankings else ())]
    return list(dict.fromkeys(notes))
