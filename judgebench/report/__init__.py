"""Write an Alignment down: CSV, Markdown, LaTeX, one self-contained page, and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from judgebench.align import Alignment
from judgebench.report.csv_file import to_csv
from judgebench.report.html import to_html
from judgebench.report.latex import to_latex
from judgebench.report.markdown import to_markdown
from judgebench.report.plots import draw_all
from judgebench.report.tables import accuracy_table
from judgebench.report.terminal import print_tables
from judgebench.store import write_atomically

__all__ = ["accuracy_table", "print_tables", "write_report"]


def write_report(alignment: Alignment, folder: Path) -> Mapping[str, Path]:
    """Write every file of the report into `folder` and return their paths.

    The keys are `csv`, `markdown`, `latex`, `html` and, for the figures, their paths inside
    `folder`, such as `plots/label_distribution.png`. A file is the old one or the new one, never
    half of either.
    """
    written: dict[str, Path] = {}
    for key, name, content in _files(alignment):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        written[key] = path
    return written


def _files(alignment: Alignment) -> Iterator[tuple[str, str, bytes]]:
    """Key, path inside the folder and content of each file."""
    yield "csv", "alignment.csv", to_csv(alignment).encode()
    yield "markdown", "tables.md", to_markdown(alignment).encode()
    yield "latex", "tables.tex", to_latex(alignment).encode()
    yield "html", "report.html", to_html(alignment).encode()
    for name, content in draw_all(alignment):
        yield f"plots/{name}", f"plots/{name}", content
