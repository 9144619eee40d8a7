"""Facts about answers that a baseline may know without reading them: who wrote an answer, which
question it is to, and every other column that stays with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

import numpy as np

from judgebench.errors import Problem, nearest, raise_any
from judgebench.records import CHANCES, WEIGHTS, Answer, columns_named
from judgebench.stats.arrays import IntArray

By = tuple[str, ...]  # one column, or several together
SYSTEM, QUESTION = "system", "question"
_LONGEST = 64  # characters of a judge's name


def name_of(by: By) -> str:
    """`by-system`, `by-system-and-Prompt_type`: a name that a judge may have. Letters that none
    may have are told apart by a hash.

    >>> name_of(("system", "Prompt type"))
    'by-system-and-Prompt_type'
    """
    whole = "-and-".join(by)
    name = "by-" + re.sub(r"[^A-Za-z0-9.-]+", "_", whole)
    if whole.isascii() and len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 7]}-{sha256(whole.encode()).hexdigest()[:6]}"


def known_columns(
    answers: Sequence[Answer], by: Sequence[By] | None, most: int
) -> dict[By, IntArray]:
    """(answers,) for each of `by`: a number from 0 for each value. None: every column alone that
    has 2 to `most` values, of which one that only repeats another is left out.

    Raises SetupError where answers have no such column.
    """
    asked = None if by is None else {column for columns in by for column in columns}
    cells = _cells(answers, asked, most)
    if by is None:
        return {(column,): codes for column, codes in _usual(cells, most)}
    missing = sorted({column for column in asked or () if not cells.get(column, _NONE).any()})
    allowed = ", ".join(sorted(cells))
    raise_any(
        [
            Problem(
                f"is no column of the answers{nearest(c, list(cells))}", found=c, allowed=allowed
            )
            for c in missing
        ]
    )
    return {columns: numbered([cells[c] for c in columns]) for columns in by}


_NONE = np.zeros(0, np.int64)


def _cells(answers: Sequence[Answer], asked: set[str] | None, most: int) -> dict[str, IntArray]:
    """(answers,) of each column: a number for each value, 0 for none. A column that nobody asked
    for is given up where it has more than `most` values."""
    values: dict[str, dict[str, int]] = {}
    found: dict[str, IntArray] = {}
    given_up: set[str] = set()
    for row, answer in enumerate(answers):
        for column, text in _facts(answer):
            if column in given_up:
                continue
            known = values.setdefault(column, {"": 0})
            code = known.setdefault(text, len(known))
            if len(known) - 1 > most and column not in (asked or ()):
                given_up.add(column)
                found.pop(column, None)
                continue
            if column not in found:
                found[column] = np.zeros(len(answers), np.int64)
            found[column][row] = code
    return found


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    pair = " vs ".join(part.name for part in answer.responses if part.name)
    yield SYSTEM, answer.system or pair
    yield QUESTION, answer.group
    yield from answer.metadata.items()


def _usual(cells: Mapping[str, IntArray], most: int) -> Iterator[tuple[str, IntArray]]:
    """Columns of 2 to `most` values, without those that say how likely an answer was drawn."""
    drawn = columns_named(cells, (*WEIGHTS, *CHANCES))
    seen: set[bytes] = set()
    for column in sorted(cells, key=lambda c: (c != SYSTEM, c)):
        codes = numbered([cells[column]])
        alike = codes.tobytes()
        if 1 < codes.max(initial=0) + 1 <= most and column not in drawn and alike not in seen:
            seen.add(alike)
            yield column, codes


def numbered(columns: Sequence[IntArray]) -> IntArray:
    """(answers,): a number from 0 for each combination of values, in the order of its first row."""
    _, first, which = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which.ravel()]
