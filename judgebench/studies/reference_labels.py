"""Truth: the human consensus on each item and metric."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from judgebench.errors import Problem, SetupError, nearest, raise_any
from judgebench.records import (
    ADJUDICATED,
    CHANCES,
    WEIGHTS,
    Blindness,
    HumanLabel,
    columns_named,
    is_slot,
)
from judgebench.rubric import Metric, one_or_more
from judgebench.stats.agreement import accepted_shares, members
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.consensus import (
    DawidSkene,
    Ties,
    dawid_skene,
    majority_label,
    median_label,
    most_probable_label,
    why_no_model,
)
from judgebench.stats.partly_labelled import Sample

# YAML reads `yes` as true.
_YES_OR_NO = BeforeValidator(
    lambda value: ("yes" if value else "no") if isinstance(value, bool) else value
)
_ANY = BeforeValidator(lambda value: 0 if value == "any" else value)
_Texts = Annotated[tuple[str, ...], BeforeValidator(one_or_more)]
Labels = NDArray[np.int64]

_BLANK = -2  # of a cell that was there and empty


class TruthConfig(BaseModel):
    """Settings of the truth that is made from human labels.

    `median` is for ordinal metrics (nominal ones are settled by majority); `each` compares with
    every annotator separately; `dawid_skene` takes the most probable label under a model of every
    annotator's errors. `ties` settles the median of an even number of labels, a tied majority and
    equal probabilities: the less severe label, the more severe one, or none. Where it is not given,
    it is the more severe one; nominal labels have no order, so that a tie of them leaves the item
    without a truth. `annotators` are the names, or patterns such as `crowd#*`, of those who make
    the truth; everybody where it is empty.

    Labels of `adjudicated` are no annotator's. With `adjudicated`, such a label is the truth of an
    item, whatever its annotators said. An annotator is compared with the other annotators' labels
    all the same, and so is a judge beside them.

    Where a metric takes `several` labels, an item's response set is the labels that at least the
    share `accepted_by` of its annotators accept; 0 or `any`: that one accepts.

    `blind` says whether annotators labelled without sight of any model's label (`unknown`: as a
    column `made_blind` of their labels says, if there is one), and
    `independent_items` that each item is a question of its own where no column names questions.
    `drawn` says how the labelled answers were drawn from all, such as `random`, `weight=COLUMN` or
    `strata=COLUMN`; where nothing is said, they are compared with the others.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: Literal["median", "majority", "each", "dawid_skene"] = "median"
    ties: Ties | None = None
    annotators: _Texts = ()
    adjudicated: bool = False
    accepted_by: Annotated[float, _ANY, Field(ge=0, le=1)] = 0.5
    blind: Annotated[Blindness, _YES_OR_NO] = "unknown"
    independent_items: bool = False
    drawn: _Texts = ()

    @model_validator(mode="after")
    def _one_truth(self) -> TruthConfig:
        if self.adjudicated and self.rule == "each":
            raise ValueError(
                "'adjudicated' needs a rule that makes one reference label, which 'each' does not"
            )
        return self

    def with_blindness(self, blind: Blindness) -> TruthConfig:
        """The same; `blind`, what the data say, counts where it says nothing itself."""
        return self.model_copy(update={"blind": blind}) if self.blind == "unknown" else self

    def ties_of(self, metric: Metric) -> Ties:
        """The rule for ties on `metric`."""
        return self.ties or ("upper" if metric.kind == "ordinal" else "none")

    def in_words(self, metric: Metric, who: str = "", tied: str = "") -> str:
        """The rule that holds for `metric`, of these annotators, with what is said of ties: `the
        median of Ann and Ben; ties (9 of 70) go to the more severe label`."""
        first = "the adjudicated label, and without one " if self.adjudicated else ""
        of = f" of {who}" if who else ""
        if metric.several:
            enough = f"at least {100 * self.accepted_by:g} %" if self.accepted_by else "any"
            return f"{first}every label that {enough}{of or ' of the annotators'} accept"
        if self.rule == "each":
            return f"{first}every label{of}, one by one"
        ordinal, ties = metric.kind == "ordinal", self.ties_of(metric)
        lower, upper = ("less severe", "more severe") if ordinal else ("first", "last listed")
        if metric.severe == "none":
            lower, upper = "lower", "higher"
        ends = {
            "lower": f"ties{tied} go to the {lower} label",
            "upper": f"ties{tied} go to the {upper} label",
            "none": f"ties{tied} leave an item without a reference label",
        }[ties]
        if self.rule == "dawid_skene":
            return f"{first}the most probable label{of} (Dawid-Skene); {ends}"
        measure = "median" if self.rule == "median" and ordinal else "majority"
        return f"{first}the {measure}{of}; {ends}"

    def choose(self, annotators: Iterable[str]) -> tuple[str, ...]:
        """Those of `annotators` who make the truth, sorted.

        Raises SetupError for a pattern that fits no annotator, for adjudicated labels that are to
        be an annotator's, and for slots of a list under the rule `dawid_skene`.
        """
        names = set(annotators)
        if ADJUDICATED in self.annotators or names == {ADJUDICATED}:
            message = (
                "is no annotator: an adjudicated label settles what annotators said of an item; "
                "`adjudicated: true` makes it the item's reference label"
            )
            raise SetupError(Problem(message, "", None, "truth.annotators", ADJUDICATED))
        everybody = sorted(names - {ADJUDICATED})
        fitting = {p: [a for a in everybody if fits(a, p)] for p in self.annotators}
        problems = [
            Problem("fits no annotator", "", None, "truth.annotators", p, ", ".join(everybody[:20]))
            for p, those in fitting.items()
            if not those
        ]
        if problems:
            raise SetupError(problems)
        chosen = tuple(sorted({a for those in fitting.values() for a in those}) or everybody)
        self._check_people(chosen, everybody)
        return chosen

    def _check_people(self, chosen: Sequence[str], everybody: Sequence[str]) -> None:
        """A model of annotators' errors needs to know whose each label is."""
        slots = [a for a in chosen if is_slot(a)]
        if self.rule != "dawid_skene" or not slots:
            return
        message = (
            f"needs to know whose each label is: {slots[0]} is a place in a list, not a person"
        )
        people = ", ".join([a for a in everybody if not is_slot(a)][:20])
        allowed = "median, majority or each" + (f"; annotators: {people}" if people else "")
        raise SetupError(Problem(message, "", None, "truth.rule", self.rule, allowed))


def fits(annotator: str, pattern: str) -> bool:
    """True where a pattern such as `crowd#*`, or a name, stands for that annotator."""
    return annotator == pattern or fnmatchcase(annotator, pattern)


@dataclass(frozen=True)
class Ratings:
    """The human labels of one metric as a matrix of the items that have any.

    `rows` (rated,), ascending, says which items these are: those with a label or a blank cell.
    `values` has shape (rated, annotators): label indices, -1 where there is none. `blank` marks
    the blank cells. Abstentions are -1 and counted. `adjudicated` (rated,) are the label indices
    that somebody settled on afterwards; these are no annotator's and make no item a rated one.
    Where the metric takes `several` labels, `values` and `adjudicated` are those named first, and
    `sets` (rated, annotators) and `settled` (rated,) all of them, as `Metric.set_of`; `sets` is
    None of other metrics.
    """

    annotators: tuple[str, ...]
    rows: Labels
    values: IntArray
    blank: NDArray[np.bool_]
    abstained: int
    adjudicated: IntArray
    settled: IntArray
    sets: IntArray | None = None

    def of(self, annotators: Sequence[str]) -> Ratings:
        """Only the columns of those annotators."""
        columns = [self.annotators.index(a) for a in annotators]
        values, blank = self.values[:, columns], self.blank[:, columns]
        sets = None if self.sets is None else self.sets[:, columns]
        return replace(self, annotators=tuple(annotators), values=values, blank=blank, sets=sets)

    def at(self, places: NDArray[Any]) -> Ratings:
        """Only those of the items: their places or a mask (rated,)."""
        return replace(
            self, rows=self.rows[places], values=self.values[places], blank=self.blank[places],
            adjudicated=self.adjudicated[places], settled=self.settled[places],
            sets=None if self.sets is None else self.sets[places],
        )  # fmt: skip

    def truth(self, metric: Metric, config: TruthConfig) -> Labels:
        """The truth (rated,), -1 where there is none: the adjudicated label where that counts, else
        what these annotators' labels make."""
        made = settle(self.values, metric, config)
        settled = config.adjudicated & (self.adjudicated >= 0)
        return np.where(settled, self.adjudicated, made)

    def tied(self, metric: Metric, config: TruthConfig) -> NDArray[np.bool_]:
        """True where labels are tied by a median or majority (rated,)."""
        without = self.truth(metric, config.model_copy(update={"ties": "none"}))
        return np.asarray((without < 0) & (self.values >= 0).any(axis=1))

    def shares(self, k: int, config: TruthConfig) -> FloatArray:
        """The share of these annotators who accept each of k labels (rated, k); where adjudicated
        labels count, these are accepted and no others."""
        assert self.sets is not None
        made = accepted_shares(self.sets, k)
        settled = config.adjudicated & (self.settled >= 0)
        return np.where(settled[:, None], members(self.settled, k), made)

    def given(self, row: int) -> list[tuple[str, int]]:
        """The label index that each annotator gave the item of that row."""
        place = int(np.searchsorted(self.rows, row))
        if place == len(self.rows) or self.rows[place] != row:
            return []
        labels = zip(self.annotators, self.values[place].tolist(), strict=True)
        return [(annotator, label) for annotator, label in labels if label >= 0]

    def named(self, k: int) -> NDArray[np.bool_]:
        """True where an annotator gave one of the k labels, alone or among several: (rated,
        annotators, k)."""
        if self.sets is not None:
            return members(self.sets, k)
        return np.asarray(self.values[..., None] == np.arange(k))


def ratings_by_metric(
    metrics: Sequence[Metric], row_of: Callable[[str], int], labels: Iterable[HumanLabel]
) -> Mapping[str, Ratings]:
    """One matrix per metric with all its annotators (sorted); the labels are read once.

    `row_of` gives an item's row, -1 where it has none; labels of other items and metrics are left
    out. Raises SetupError for a label that the metric lacks.
    """
    cells = {m.id: _Cells(m) for m in metrics}
    for label in labels:
        of_metric, row = cells.get(label.metric), row_of(label.item_id)
        if of_metric is not None and row >= 0:
            of_metric.add(row, label.annotator, label.label)
    return {m.id: cells[m.id].ratings() for m in metrics}


class _Cells:
    """The cells of one metric in the order of reading: 14 bytes each, so that millions fit."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._codes: dict[str | None, int] = {None: _BLANK}
        self._columns: dict[str, int] = {}
        self._cells = array("q"), array("i"), array("h")  # row, column, code
        self._sets = array("q")  # of a metric that takes several
        self._adjudicated: dict[int, str | None] = {}

    def add(self, row: int, annotator: str, label: str | None) -> None:
        if label not in self._codes:
            self._codes[label] = self._metric.index(label or "")
        if annotator == ADJUDICATED:
            self._adjudicated[row] = label
            return
        rows, columns, codes = self._cells
        rows.append(row)
        columns.append(self._columns.setdefault(annotator, len(self._columns)))
        codes.append(self._codes[label])
        if self._metric.several:
            self._sets.append(self._set_of(label))

    def ratings(self) -> Ratings:
        annotators = tuple(sorted(self._columns))
        place = np.array([annotators.index(a) for a in self._columns], dtype=np.int64)
        cell_rows, columns, codes = (np.array(x) for x in self._cells)
        rows, row = np.unique(cell_rows, return_inverse=True)
        # Of two labels in one cell the later counts.
        code_type = np.int8 if len(self._metric.labels) < np.iinfo(np.int8).max else np.int16
        values = np.full((len(rows), len(annotators)), -1, dtype=code_type)
        blank = np.zeros(values.shape, dtype=np.bool_)
        given = codes != _BLANK
        values[row[given], place[columns[given]]] = codes[given]
        blank[row[~given], place[columns[~given]]] = True
        sets = np.full(values.shape, -1, dtype=np.int64) if self._metric.several else None
        if sets is not None:
            sets[row[given], place[columns[given]]] = np.array(self._sets)[given]
        adjudicated, settled = np.full_like(rows, -1), np.full_like(rows, -1)
        known = np.isin(rows, list(self._adjudicated))
        said = [self._adjudicated[row] for row in rows[known].tolist()]
        adjudicated[known] = [self._codes[label] for label in said]
        settled[known] = [self._set_of(label) for label in said]
        abstained = int((codes == -1).sum())
        return Ratings(annotators, rows, values, blank, abstained, adjudicated, settled, sets)

    def _set_of(self, label: str | None) -> int:
        return self._metric.set_of(label) if label and self._metric.several else -1


def settle(values: IntArray, metric: Metric, config: TruthConfig) -> Labels:
    """One label index per item, -1 where there is no truth: (items, annotators) -> (items,).

    Under the rule `each`, where no single truth exists, this is the median (or majority); under
    `dawid_skene` it is the majority where the labels carry no model (`why_no_model`).
    """
    k, ties = len(metric.labels), config.ties_of(metric)
    if config.rule == "dawid_skene" and not why_no_model(values):
        return most_probable_label(truth_model(values, k).posterior, ties)
    if config.rule in ("majority", "dawid_skene") or metric.kind == "nominal":
        return majority_label(values, k, ties)
    if ties != "none":
        return median_label(values, ties)
    lower, upper = median_label(values, "lower"), median_label(values, "upper")
    return np.where(lower == upper, lower, -1)


def truth_model(values: IntArray, k: int) -> DawidSkene:
    """The Dawid-Skene model behind the rule `dawid_skene`.

    It starts as if each annotator had given two labels for every true one, the right one and one
    at random: otherwise an annotator with three labels may overrule all others, and on few items
    one label may absorb another that all annotators agree on.
    """
    return dawid_skene(values, k, smoothing=np.eye(k) + 1 / k)


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


def drawn_of(given: str | Sequence[str]) -> Drawn:
    """The way in which labels were drawn, of one or more texts such as `random` or `strata=type`.
    Raises SetupError."""
    columns: dict[str, str] = {}
    problems = []
    texts = one_or_more(given)
    for text in filter(None, texts):
        kind, _, column = text.partition("=")
        if kind in _KINDS and column:
            columns[kind] = column
        elif text != "random":
            allowed = f"random, {', '.join(f'{kind}=COLUMN' for kind in _KINDS)}"
            message = f"is unknown{nearest(kind, (*_KINDS, 'random'))}"
            problems.append(Problem(message, "", None, "drawn", text, allowed))
    if problems:
        raise SetupError(problems)
    return Drawn(**columns, random="random" in texts)


def kept_columns(given: str | Sequence[str], by: str = "") -> dict[str, str]:
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
