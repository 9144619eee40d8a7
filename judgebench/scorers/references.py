"""The references of an answer: none, one or several, and one score where there are several."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from judgebench.data.cells import split_list
from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, content_hash
from judgebench.rubric import normalise
from judgebench.scorers.scorer import Better
from judgebench.words import counted

IS_REFERENCE = "is_reference"
"""The column of a table of scores that says which answers are their own reference."""
_LIST = re.compile(r"\s*[\[(]\s*[\"']")  # of texts, as in JSON or Python


def references_of(answer: Answer, columns: Sequence[str] = ()) -> tuple[str, ...]:
    """The references of an answer: its reference, or each text of a list in its place, then
    the cells of these columns. Blank ones are left out.

    >>> references_of(Answer("1", "Yes.", reference='["Yes, it is.", "It is."]'))
    ('Yes, it is.', 'It is.')
    """
    found: Sequence[str] = [answer.reference or ""]
    if _LIST.match(found[0]):
        with suppress(ValueError):
            found = split_list(found[0])
    found = [*found, *(answer.metadata.get(column, "") for column in columns)]
    return tuple(text for text in found if text.strip())


def is_reference(text: str, references: Sequence[str]) -> bool:
    """Whether the text is one of them, but for case and punctuation."""
    said = normalise(text)
    return bool(said) and said in map(normalise, references)


def reference_systems(texts: Iterable[tuple[str, str, Sequence[str]]]) -> Iterator[str]:
    """What is to be said of each system whose answers are references, most of them at least.
    `texts` are (system, text, references)."""
    counts: dict[str, list[bool]] = defaultdict(list)
    for system, text, references in texts:
        counts[system].append(is_reference(text, references))
    for system, same in counts.items():
        if system and 2 * sum(same) > len(same):
            yield (
                f"System {system} is the reference text in {sum(same):,} of "
                f"{counted(len(same), 'answer')}: scorers that read the reference score it against "
                "itself, and correlations with it mislead. Leave it out."
            )


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


def about_columns(answers: Sequence[Answer], columns: Sequence[str]) -> Mapping[str, Any]:
    """What of a scorer's `about` is due to these columns of references: their names and, for no
    answer's hash changes with its metadata, their cells. Raises SetupError as `require_columns`."""
    require_columns(answers, columns, "reference_columns")
    cells = [[answer.metadata.get(column, "") for column in columns] for answer in answers]
    return {"reference_columns": [*columns], "values": content_hash(cells)} if columns else {}
