"""The way in which the labelled answers were drawn from all of them, as somebody declares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import Problem, SetupError, nearest, raise_any
from judgebench.records import CHANCES, WEIGHTS, columns_named
from judgebench.stats.arrays import Clusters, FloatArray, ratio
from judgebench.stats.partly_labelled import Sample

Mask = NDArray[np.bool_]
Cells = Mapping[str, NDArray[np.object_]]  # by column, of each answer (items,)
_KINDS = ("weight", "probability", "strata")


@dataclass(frozen=True)
class Drawn:
    """The way in which labelled answers were drawn: with a chance of their own, which the column
    `probability` or one over which the column `weight` holds; within the `strata` of a column; else
    all with the same chance, which is tested unless `random` says so."""

    weight: str = ""
    probability: str = ""
    strata: str = ""
    random: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns that it names."""
        return [c for c in (self.weight, self.probability, self.strata) if c]

    @property
    def is_said(self) -> bool:
        """True where somebody says it."""
        return self.random or bool(self.columns)

    def or_usual(self, cells: Cells) -> Drawn:
        """By a column of weights or probabilities of a usual name, where nothing is said and the
        answers have one."""
        if self.is_said:
            return self
        weight, chance = (
            next(iter(columns_named(cells, names)), "") for names in (WEIGHTS, CHANCES)
        )
        return Drawn(weight, "" if weight else chance)

    def sample(self, y: FloatArray, clusters: Clusters, cells: Cells) -> Sample:
        """The answers with what people say of each, `y` (items,), NaN where nobody did. Raises
        SetupError for a column that they lack, and with every cell that is no weight."""
        strata = None
        if self.strata:
            texts = texts_of(cells, self.strata).astype(str)
            strata = np.unique(texts, return_inverse=True)[1]
        return Sample(y, clusters, self._weights(cells, ~np.isnan(y)), strata)

    def _weights(self, cells: Cells, labelled: Mask) -> FloatArray | None:
        column, most = self.weight or self.probability, 1.0 if self.probability else np.inf
        if not column:
            return None
        texts = texts_of(cells, column)
        found = np.array([_number(text) for text in texts.tolist()])
        wrong = np.flatnonzero(labelled & ~((found > 0) & (found <= most) & np.isfinite(found)))
        message = "must be a positive number" + ", at most 1" * (most == 1)
        raise_any([
            Problem(f"{message}, of labelled answer {row + 1:,}", "", None, column, texts[row])
            for row in wrong.tolist()
        ])  # fmt: skip
        return ratio(1.0, found) if self.probability else found

    def in_words(self) -> str:
        """A sentence, where it says more than that labels were drawn at random."""
        if column := self.weight or self.probability:
            return f"Labelled answers are weighted by the column {column}."
        within = f"Labelled answers were drawn at random within each {self.strata}."
        return within if self.strata else ""


NOT_SAID = Drawn()


def drawn_of(given: Sequence[str]) -> Drawn:
    """The way in which labels were drawn, of texts such as `random` or `strata=type`. Raises
    SetupError."""
    columns: dict[str, str] = {}
    problems = []
    for text in filter(None, given):
        kind, _, column = text.partition("=")
        if kind in _KINDS and column:
            columns[kind] = column
        elif text != "random":
            allowed = f"random, {', '.join(f'{kind}=COLUMN' for kind in _KINDS)}"
            message = f"is unknown{nearest(kind, (*_KINDS, 'random'))}"
            problems.append(Problem(message, "", None, "drawn", text, allowed))
    if problems:
        raise SetupError(problems)
    return Drawn(**columns, random="random" in given)


def kept_columns(given: Sequence[str], by: str = "") -> dict[str, str]:
    """The roles of the columns that the draw, and `by`, name: they are kept with each answer, as
    system and question always are. Raises SetupError."""
    named = (by, *drawn_of(given).columns)
    return {column: "kept" for column in named if column not in ("", "system", "question")}


def texts_of(cells: Cells, column: str) -> NDArray[np.object_]:
    """The cells of a column (items,). Raises SetupError where the answers have none."""
    if column not in cells or not any(cells[column]):
        known = [c for c, texts in cells.items() if any(texts)]
        message = f"is no column of the answers{nearest(column, known)}"
        if column == "system":  # a table of labels without it may be beside one with it
            message += "; if a table of verdicts has it, add --column system=kept"
        raise SetupError(Problem(message, field="column", found=column, allowed=", ".join(known)))
    return cells[column]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
