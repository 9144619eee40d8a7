"""What stands where in a report, in every format: lead blocks, caveats, all other blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from judgebench.results.part import Block, Figure, Part


def report_title(parts: Sequence[Part], name: str) -> str:
    """`demo: judges against human labels`; the first part says what the report is about."""
    return ": ".join(text for text in (name, parts[0].title if parts else "") if text)


def blocks_of(parts: Sequence[Part], *, lead: bool) -> list[Block]:
    """The blocks that stand before the caveats, or those after them, without what is empty."""
    return [
        filled
        for part in parts
        for block in part.blocks
        if block.lead == lead and (filled := _filled(block))
    ]


def _filled(block: Block) -> Block | None:
    """The block without tables that have no rows; None where nothing is left to show."""
    tables = tuple(table for table in block.tables if table.rows)
    if not (tables or block.text or block.figures or block.cards):
        return None
    return replace(block, tables=tables)


def caveats(parts: Sequence[Part]) -> list[str]:
    """The caveats of all parts, each once."""
    return list(dict.fromkeys(note for part in parts for note in part.notes))


def figures_of(parts: Sequence[Part]) -> Iterator[Figure]:
    """Every figure, in the order in which they stand."""
    for lead in (True, False):
        for block in blocks_of(parts, lead=lead):
            yield from block.figures
