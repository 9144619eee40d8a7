"""Answers as lines of JSON: of each its fields, as a run folder holds them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from judgebench.data.cells import shared
from judgebench.errors import Problem, SetupError
from judgebench.files import read_lines, to_line
from judgebench.records import Answer, Part


def read_answers(path: Path) -> tuple[Answer, ...]:
    """The answers in that file; a torn last line is passed over. Raises SetupError where there is
    no such file, or a line holds no answer."""
    return tuple(_answer(value, path, number) for number, value in read_lines(path))


def _answer(value: dict[str, Any], path: Path, number: int) -> Answer:
    try:
        parts = tuple(Part(**part) for part in value.pop("parts", ()))
        for key, text in value.items():
            value[key] = shared(text) if isinstance(text, str) else text
        return Answer(**value, parts=parts)
    except TypeError as error:
        raise SetupError(Problem(f"is damaged: {error}", str(path), number)) from None


def answer_line(answer: Answer) -> str:
    """The answer's line; its `parts` only where there are any."""
    return to_line({key: value for key, value in asdict(answer).items() if key != "parts" or value})
