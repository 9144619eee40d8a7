"""Write a report down: CSV, Markdown, LaTeX, one self-contained page, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from judgebench.files import write_atomically
from judgebench.report.contents import figures_of
from judgebench.report.csv_file import part_csv
from judgebench.report.draw import drawn
from judgebench.report.html import to_html
from judgebench.report.latex import to_latex
from judgebench.report.markdown import to_markdown
from judgebench.results.part import Part


def write_report(parts: Sequence[Part], folder: Path, *, name: str = "") -> Mapping[str, Path]:
    """Write every file of the report into `folder` and return their paths.

    The keys are `markdown`, `latex`, `html`, for each part the name of its CSV file and for each
    figure its path inside `folder`, such as `plots/label_distribution.png`. A file is the old one
    or the new one, never half of either.
    """
    written: dict[str, Path] = {}
    for key, inside, content in _files(parts, name):
        path = folder / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        written[key] = path
    return written


def _files(parts: Sequence[Part], name: str) -> Iterator[tuple[str, str, bytes]]:
    """Key, path inside the folder and content of each file."""
    for part in parts:
        yield f"{part.key}.csv", f"{part.key}.csv", part_csv(part).encode()
    yield "markdown", "tables.md", to_markdown(parts, name).encode()
    yield "latex", "tables.tex", to_latex(parts).encode()
    figures = drawn(figures_of(parts))
    images = [saved["svg"] for saved in figures.values()]
    yield "html", "report.html", to_html(parts, name, images).encode()
    for stem, saved in figures.items():
        for kind, content in saved.items():
            if kind != "svg":
                yield f"plots/{stem}.{kind}", f"plots/{stem}.{kind}", content
