"""A small rubric whose labels include texts that readers like to take for missing values."""

from collections.abc import Callable
from pathlib import Path

import pytest

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
