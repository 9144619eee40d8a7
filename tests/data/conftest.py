"""A small rubric whose labels include texts that readers like to take for missing values."""

from collections.abc import Callable
from pathlib import Path

import pytest

from judgebench.data.findings import Findings
from judgebench.data.formats import Table
from judgebench.data.tables import open_table
from judgebench.errors import Problem
from judgebench.rubric import Rubric

Write = Callable[[str, str | bytes], Path]


@pytest.fixture(scope="session")
def rubric() -> Rubric:
    return Rubric.model_validate(
        {
            "name": "tiny",
            "version": "1",
            "instructions": "Rate it.",
            "metrics": [
                {
                    "id": "tone",
                    "title": "Tone of voice",
                    "question": "How does it sound?",
                    "kind": "ordinal",
                    "labels": [
                        {"text": "Kind", "aliases": ["Friendly"]},
                        {"text": "Neutral"},
                        {"text": "Rude – openly"},
                    ],
                    "abstain": "Cannot say",
                },
                {
                    "id": "source",
                    "title": "Source given",
                    "question": "Does it name one?",
                    "kind": "nominal",
                    "labels": [{"text": t} for t in ("No", "NA", "None", "null")],
                },
            ],
        }
    )


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        return path

    return write_file


def read(path: Path, sheet: str = "", header: tuple[int, ...] = ()) -> tuple[Table, Findings]:
    """The table in a file without errors, and what is reported of it."""
    findings = Findings()
    table = open_table(path, findings, sheet=sheet, header=header)
    assert not findings.errors, findings.errors
    assert table is not None
    return table, findings


def columns(path: Path, sheet: str = "", header: tuple[int, ...] = ()) -> dict[str, list[object]]:
    """The cells of a file by column."""
    table, _ = read(path, sheet, header)
    return {name: list(cells) for name, cells in table.columns.items()}


def errors(path: Path, sheet: str = "", header: tuple[int, ...] = ()) -> list[Problem]:
    """What keeps a file from being read."""
    findings = Findings()
    open_table(path, findings, sheet=sheet, header=header)
    assert findings.errors
    return list(findings.errors)
