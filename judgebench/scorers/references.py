"""The references of an answer: none, one or several, and one score where there are several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer
from judgebench.scorers.scorer import Better


def references_of(answer: Answer, columns: Sequence[str] = ()) -> tuple[str, ...]:
    """The references of an answer: its reference, or each text of a JSON list in its place, then
    the cells of these columns. Blank ones are left out.

    >>> references_of(Answer("1", "Yes.", reference='["Yes, it is.", "It is."]'))
    ('Yes, it is.', 'It is.')
    """
    found = [answer.reference or ""]
    if found[0].lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            listed = json.loads(found[0])
            found = listed if all(isinstance(text, str) for text in listed) else found
    found = [*found, *(answer.metadata.get(column, "") for column in columns)]
    return tuple(text for text in found if text.strip())


def over_references(scores: Sequence[float], rule: str, better: Better) -> float:
    """One score of those against each reference: their mean, or with `max` the best of them."""
    if rule == "mean":
        return sum(scores) / len(scores)
    return min(scores) if better == "lower" else max(scores)


def require_columns(answers: Sequence[Answer], columns: Sequence[str], field: str) -> None:
    """Raises SetupError with each of the columns that no answer has."""
    if not columns:
        return
    known = sorted({column for answer in answers for column in answer.metadata})
    message = "is no column that the data keeps; list it under `metadata` of a data.yaml"
    allowed = ", ".join(known)
    lacking = [column for column in columns if column not in known]
    if lacking:
        raise SetupError([Problem(message, "", None, field, name, allowed) for name in lacking])
