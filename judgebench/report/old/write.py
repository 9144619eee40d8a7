"""Write a report down: CSV, Markdown, LaTeX, one self-contained page, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from judgebench.align import Alignment
from judgebench.decide.result import Decisions
from judgebench.files import write_atomically
from judgebench.ranking.rankings import Rankings
from judgebench.report.contents import figures_of
from judgebench.report.csv_file import part_csv, to_csv
from judgebench.report.figures import drawn
from judgebench.report.old.contents import ranked_part, shows_alignment
from judgebench.report.old.html import to_html
from judgebench.report.old.latex import to_latex
from judgebench.report.old.markdown import to_markdown
from judgebench.report.old.terminal import print_tables
from judgebench.report.plots import draw_all
from judgebench.report.tables import accuracy_table
from judgebench.report.write import write_report as write_parts
from judgebench.stress.result import StressResult

__all__ = [
    "accuracy_table", "print_tables", "write_report",
]  # fmt: skip


def write_report(
    alignment: Alignment,
    folder: Path,
    stress: StressResult | None = None,
    decisions: Decisions | None = None,
    rankings: Rankings | None = None,
) -> Mapping[str, Path]:
    """Write every file of the report into `folder` and return their paths.

    The keys are `csv`, `markdown`, `latex`, `html`, with a stress result `stress_csv`, with
    decisions `decisions_csv`, with rankings `rankings_csv` and, for the figures, their paths
    inside `folder`, such as `plots/label_distribution.png`. A file is the old one or the new one,
    never half of either.
    """
    if rankings is not None:
        return write_parts([ranked_part(alignment, rankings)], folder, name=rankings.name)
    written: dict[str, Path] = {}
    for key, name, content in _files(alignment, stress, decisions, rankings):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        written[key] = path
    return written


def _files(
    alignment: Alignment,
    stress: StressResult | None,
    decisions: Decisions | None,
    rankings: Rankings | None,
) -> Iterator[tuple[str, str, bytes]]:
    """Key, path inside the folder and content of each file."""
    yield "csv", "alignment.csv", to_csv(alignment).encode()
    if stress is not None:
        yield "stress_csv", "stress.csv", part_csv(stress.part).encode()
    if decisions is not None:
        yield "decisions_csv", "decisions.csv", part_csv(decisions.part).encode()
    parts = alignment, stress, decisions, rankings
    yield "markdown", "tables.md", to_markdown(*parts).encode()
    yield "latex", "tables.tex", to_latex(*parts).encode()
    yield "html", "report.html", to_html(*parts).encode()
    figures = draw_all(alignment) if shows_alignment(alignment, stress, rankings) else ()
    for stem, saved in drawn(figures_of([x.part for x in (decisions, stress) if x])).items():
        for kind in ("png", "pdf"):
            yield f"plots/{stem}.{kind}", f"plots/{stem}.{kind}", saved[kind]
    for name, content in figures:
        yield f"plots/{name}", f"plots/{name}", content
