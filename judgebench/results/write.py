"""Write a report down: CSV, Markdown, LaTeX, one self-contained page, figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgebench.data.columns import is_run, to_csv
from judgebench.files import write_atomically
from judgebench.results.figure import drawn
from judgebench.results.html import to_html
from judgebench.results.latex import to_latex
from judgebench.results.markdown import to_markdown
from judgebench.results.part import Part, figures_of
from judgebench.words import printable


def write_report(parts: Sequence[Part], folder: Path, *, name: str = "") -> Mapping[str, Path]:
    """Write every file of the report into `folder` and return their paths.

    The keys are `markdown`, `html`, for each part the name of its CSV file, and for LaTeX and each
    figure the path inside `folder`, such as `latex/appendix.tex`, `plots/label_distribution.png`. A
    file is the old one or the new one, never half of either.
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
        for file, make in part.files.items():
            rows = ([str(safe(cell)) for cell in row] for row in make())
            yield file, file, to_csv(next(rows), rows)
    yield "markdown", "tables.md", to_markdown(parts, name).encode()
    for file, text in to_latex(parts).items():
        yield f"latex/{file}", f"latex/{file}", text.encode()
    figures = drawn(figures_of(parts))
    images = [saved["svg"] for saved in figures.values()]
    yield "html", "report.html", to_html(parts, name, images).encode()
    for stem, saved in figures.items():
        for kind, content in saved.items():
            if kind != "svg":
                yield f"plots/{stem}.{kind}", f"plots/{stem}.{kind}", content


def part_csv(part: Part) -> str:
    """The rows of a part as the text of its CSV file, lines ended by a line feed.

    A text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a line break)
    gets a leading apostrophe. What a row lacks is an empty cell, and so is an undefined
    `value`. A label may read `None` or `NA`, which pandas reads as missing unless it is given
    `keep_default_na=False, na_values=[""]`.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, part.results.columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in part.results:
        writer.writerow({key: safe(value) for key, value in row.plain().items()})
    return out.getvalue()


def safe(value: Any) -> Any:
    """A text that no spreadsheet runs; other values as they are, None as an empty cell."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if is_run(text) else text
