"""Scorers that need no library: columns of the data, and those without meaning of their own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, content_hash
from judgebench.scorers.config import ColumnConfig, SimpleConfig
from judgebench.scorers.references import require_columns
from judgebench.scorers.scorer import EMPTY_ANSWER, Better, Scored

_WORD = re.compile(r"\w+")


class Simple:
    """Length, chance, or overlap with the question. A `Scorer`."""

    better: Better = ""
    at_once = 4096

    def __init__(self, config: SimpleConfig) -> None:
        self._of: Callable[[Answer], float] = {
            "length": lambda answer: float(len(answer.text.split())),  # as white space parts them
            "random-number": self._drawn, "question-overlap": _overlap,
        }[config.scorer]  # fmt: skip
        self._seed = config.seed
        seeded = {"seed": config.seed} if config.scorer == "random-number" else {}
        self.about: Mapping[str, Any] = {"scorer": config.scorer, **seeded}

    def key(self, answer: Answer) -> Any:
        return [answer.question, answer.text]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [
            Scored(self._of(a)) if a.text.strip() else Scored.none(EMPTY_ANSWER) for a in answers
        ]

    def _drawn(self, answer: Answer) -> float:
        return int(content_hash([self._seed, answer.question, answer.text]), 16) / 2**64

    def close(self) -> None:
        """Nothing to give back."""


def _overlap(answer: Answer) -> float:
    """The share of the question's different words that the answer holds."""
    asked, said = (set(_WORD.findall(t.lower())) for t in (answer.question, answer.text))
    return len(asked & said) / len(asked) if asked else 0.0


class Column:
    """Numbers of a column. A `Scorer`."""

    at_once = 4096

    def __init__(self, config: ColumnConfig, answers: Sequence[Answer]) -> None:
        """Raises SetupError where no answer has the column, and for cells that hold no number."""
        self._column, self.better = config.source, config.better
        require_columns(answers, [self._column], "from")
        cells = [answer.metadata.get(self._column, "") for answer in answers]
        # Of these answers alone: what stands beside a text says nothing of one made from it.
        self._cells = {a.item_id: cell for a, cell in zip(answers, cells, strict=True)}
        wrong = [
            Problem("is no number", field=f"{self._column}, item {a.item_id}", found=cell)
            for a, cell in zip(answers, cells, strict=True)
            if cell.strip() and _number(cell) is None
        ]
        if wrong:
            raise SetupError(wrong)
        self.about: Mapping[str, Any] = {
            "scorer": "column", "from": self._column, "values": content_hash(cells),
        }  # fmt: skip

    def key(self, answer: Answer) -> Any:
        return [self._column, self._cells.get(answer.item_id)]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [self._of(self._cells.get(answer.item_id)) for answer in answers]

    def _of(self, cell: str | None) -> Scored:
        if cell is None:
            return Scored.none(f"the column {self._column} is not about this text")
        value = _number(cell)
        return (
            Scored.none(f"the column {self._column} is blank") if value is None else Scored(value)
        )

    def close(self) -> None:
        """Nothing to give back."""


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
