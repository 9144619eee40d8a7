"""Write a report down: one self-contained page, CSV, Markdown, LaTeX, and figures as files.

A report on fewer answers never overwrites one on more answers.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgebench.data.delimited import is_run, to_csv
from judgebench.files import disk_errors, write_atomically
from judgebench.results.figure import drawn
from judgebench.results.html import to_html
from judgebench.results.latex import to_latex
from judgebench.results.markdown import to_markdown
from judgebench.results.part import Part, figures_of
from judgebench.results.provenance import Provenance, provenance_of
from judgebench.results.rows import Results
from judgebench.words import counted, printable

_SIZE = "report.json"  # beside the report: on how many answers it is


class Written(dict[str, Path]):
    """The path of each file of a report by its key; shown, the page and how many files there are
    beside it."""

    def __repr__(self) -> str:
        page = self["html"]
        return f"{page} and {counted(len(self) - 1, 'other file')} in {page.parent}"


def write_in_place(
    parts: Sequence[Part], folder: Path, *, name: str, answers: int, figures: bool = False,
    sources: Mapping[str, str] = {},
) -> tuple[Mapping[str, Path], str]:  # fmt: skip
    """Write the report on so many answers, read from these `sources`, into `folder`
    (`write_report`). Where that holds the report of more, it goes into a folder beside it, and a
    sentence says so.

    Raises DiskFailed.
    """
    with disk_errors(folder):
        place, notice, there = folder, "", _answers_of(folder)
        if there > answers:
            named = folder if folder.name not in ("", "..") else folder.resolve()
            place = named.with_name(f"{named.name}-{answers}-answers")
            notice = (
                f"{folder} holds the report of {there:,} answers and was left as it is: this one, "
                f"of {answers:,}, is in {place}"
            )
        place.mkdir(parents=True, exist_ok=True)
        write_atomically(place / _SIZE, json.dumps({"answers": answers}).encode())
        made = provenance_of(sources)
        return write_report(parts, place, name=name, figures=figures, made=made), notice


def _answers_of(folder: Path) -> int:
    """The number of answers that the report in that folder is on; 0 where none says so."""
    try:
        return int(json.loads((folder / _SIZE).read_bytes())["answers"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def write_report(
    parts: Sequence[Part], folder: Path, *, name: str = "", figures: bool = False,
    made: Provenance | None = None,
) -> Written:  # fmt: skip
    """Write every file of the report into `folder` and return their paths.

    The keys are `html`, `markdown`, and of all others the path inside `folder`, such as
    `results.csv`, `latex/appendix.tex` or, with `figures`, `plots/label_distribution.png`. A file
    is the old one or the new one, never half of either.
    """
    written = Written()
    for key, inside, content in _files(parts, name, figures, made):
        path = folder / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        written[key] = path
    return written


def _files(
    parts: Sequence[Part], name: str, figures: bool, made: Provenance | None
) -> Iterator[tuple[str, str, bytes]]:
    """Key, path inside the folder and content of each file."""
    yield "results.csv", "results.csv", results_csv(parts).encode()
    for part in parts:
        if part.own_file:
            yield f"{part.key}.csv", f"{part.key}.csv", part_csv(part).encode()
        for file, make in part.files.items():
            rows = ([str(safe(cell)) for cell in row] for row in make())
            yield file, file, to_csv(next(rows), rows)
    yield "markdown", "tables.md", to_markdown(parts, name).encode()
    for file, text in to_latex(parts).items():
        yield f"latex/{file}", f"latex/{file}", text.encode()
    yield "html", "report.html", to_html(parts, name, made).encode()
    for stem, saved in drawn(figures_of(parts)).items() if figures else ():
        for kind, content in saved.items():
            yield f"plots/{stem}.{kind}", f"plots/{stem}.{kind}", content


def results_csv(parts: Sequence[Part]) -> str:
    """The rows of all parts as one long table; `part` says whose a row is. See `part_csv`."""
    results = Results(tuple(row for part in parts for row in part.results))
    rows = ({"part": part.key, **row.plain()} for part in parts for row in part.results)
    return _csv_text(dict.fromkeys(("part", *results.columns)), rows)


def part_csv(part: Part) -> str:
    """The rows of a part as the text of a CSV file, lines ended by a line feed.

    A text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a line break)
    gets a leading apostrophe. What a row lacks is an empty cell, and so is an undefined
    `value`. A label may read `None` or `NA`, which pandas reads as missing unless it is given
    `keep_default_na=False, na_values=[""]`.
    """
    return _csv_text(part.results.columns, (row.plain() for row in part.results))


def _csv_text(columns: Collection[str], rows: Iterable[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: safe(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def safe(value: Any) -> Any:
    """A text that no spreadsheet runs; other values as they are, None as an empty cell."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if is_run(text) else text
