"""Tables of labels and of verdicts as people have them."""

import csv
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import judgebench as jb
from judgebench.data.layout import Layout
from judgebench.data.settings import Question, Unsettled

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


def read(paths: Sequence[Path], **columns: Any) -> Layout:
    """The layout of files, the first of them people's, of which something is said."""
    labels, *verdicts = paths
    return jb.layout(labels, verdicts or None, columns=columns)


def read_two(folder: Path, people: Rows, judge: Rows, **columns: Any) -> Layout:
    """The layout of a table of labels and one of verdicts."""
    return read(two(folder, people, judge), **columns)


def two(folder: Path, people: Rows, judge: Rows) -> list[Path]:
    """The files of a table of labels and one of verdicts."""
    folder.mkdir(exist_ok=True)
    return [table(folder / "labels.csv", people), table(folder / "gpt-4.csv", judge)]


def asked(paths: Sequence[Path], **columns: Any) -> Question:
    """The first question about files."""
    with pytest.raises(Unsettled) as unsettled:
        read(paths, **columns)
    return unsettled.value.questions[0]


def printed(screen: str, means: str) -> list[str]:
    """The options on a screen that choose the reading that means this."""
    (line,) = (line for line in screen.splitlines() if means in line)
    return shlex.split(line.rpartition("    ")[0])
