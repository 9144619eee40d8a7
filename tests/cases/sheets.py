"""Tables of labels and of verdicts as people have them."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgebench.data.guess import Hints
from judgebench.data.understand import Understood, understand_files

N = 60
LABELS = ("Safe", "Unsure", "Unsafe")
Rows = Sequence[Sequence[object]]


def label_of(i: int, slip: int = 0, labels: Sequence[str] = LABELS) -> str:
    """The label of item i; with a slip every so manyth item is labelled otherwise."""
    return labels[(i + bool(slip and i % slip == 0)) % len(labels)]


def table(path: Path, rows: Rows, delimiter: str = ",") -> Path:
    with path.open("w", newline="") as out:
        csv.writer(out, delimiter=delimiter).writerows(rows)
    return path


def jsonl(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def workbook(path: Path, **sheets: Rows) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def read(paths: Sequence[Path], **columns: Any) -> Understood:
    """What is understood of files, of which some columns are named."""
    return understand_files(paths, Hints.given(columns))


def read_two(folder: Path, people: Rows, judge: Rows, **columns: Any) -> Understood:
    """What is understood of a table of labels and one of verdicts."""
    return read(
        [table(folder / "labels.csv", people), table(folder / "gpt-4.csv", judge)], **columns
    )
