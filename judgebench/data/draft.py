"""A table while its columns are being settled, and the ways in which texts are compared."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from judgebench.data.formats import Cell, Table
from judgebench.data.layout import Source
from judgebench.data.settings import NOTHING_SAID, TableSettings
from judgebench.data.vocabulary import Column, plain_name, role_of, words
from judgebench.records import group_by_key
from judgebench.rubric import normalise

MAX_LABELS, LONGEST_LABEL = 12, 60  # of a column: different values; characters of one
BY_NAME = "its name"
VALUE = "value"  # a name that labels have, whatever they are about: label, score, winner
_WHOLE = re.compile(r"(-?\d+)\.0+")


@cache
def plain_label(text: str) -> str:
    """A label as its spellings are compared.

    >>> plain_label("Unsafe."), plain_label("3.0"), plain_label(" YES")
    ('unsafe', '3', 'yes')
    """
    plain = normalise(text) or text.strip().casefold()
    whole = _WHOLE.fullmatch(plain)
    return whole[1] if whole else plain


@cache
def yes_or_no(text: str) -> str:
    """`yes` or `no` for a text that means either; empty for any other."""
    plain = plain_label(text)
    return next((kind for kind in ("yes", "no") if plain in words(kind)), "")


def are_yes_and_no(labels: Iterable[str]) -> bool:
    """True of two labels, or one, that mean yes and no."""
    meanings = [yes_or_no(label) for label in labels]
    return bool(meanings) and "" not in meanings and len({*meanings}) == len(meanings)


def by_meaning(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that mean yes and no by what they mean, of labels by their plain form."""
    return {meaning: text for plain, text in labels.items() if (meaning := yes_or_no(plain))}


def is_blank_word(text: str) -> bool:
    """True of a word that says that there is no label: `n/a`, `k. A.`"""
    return "".join(text.casefold().split()) in words("blank")


def is_failure_word(text: str) -> bool:
    """True of what programs write in the place of a value."""
    return text.casefold() in words("failed")


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _without_signs(text: str) -> str:
    return re.sub(r"[\W_]", "", text)


def _without_zeros(text: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", text)


# How ids of two tables are compared where they differ: the first that pairs those of one side all.
ID_FORMS: Mapping[str, Callable[[str], str]] = {
    "case, spaces and accents": _folded,
    "signs": lambda text: _without_signs(_folded(text)) or text,
    "a final .0": lambda text: re.sub(r"\.0$", "", text.strip()),
    "leading zeros": lambda text: _without_zeros(text.strip()),
    "case, signs and leading zeros": lambda text: (
        _without_signs(_without_zeros(_folded(text))) or text
    ),
    "what is no digit": lambda text: (re.sub(r"\D", "", text) or text).lstrip("0") or "0",
}


_TIES = ("tie", "both", "equal", "draw", "neither", "same")
_LAST_WORDS = {"first": ("a", "1", "first", "left"), "second": ("b", "2", "second", "right")}


def side_of(text: str, names: Sequence[str] = ()) -> str:
    """`first`, `second` or `tie` for a text that says which of two responses is better; `names`
    are the two columns, then the names of the two responses. Empty for any other text.

    >>> side_of("model_a"), side_of("tie (both bad)"), side_of("gpt-4", ("a", "b", "gpt-4", "x"))
    ('first', 'tie', 'first')
    """
    if text in names:
        return ("first", "second")[names.index(text) % 2]
    parts = plain_name(text).split("_")
    if parts[0] in _TIES:
        return "tie"
    return next((side for side, last in _LAST_WORDS.items() if parts[-1] in last), "")


_SIDES = ("first", "second")
FEW_BLANK = 20  # one row of so many may lack its id


@dataclass(eq=False)
class Draft:
    """A table, and what its columns are so far: "" where nobody knows, VALUE of a name that labels
    have. `said` are the settings about it."""

    source: Source
    table: Table
    said: TableSettings = NOTHING_SAID
    columns: dict[str, Column] = field(default_factory=dict)
    known: Mapping[str, Column] = field(default_factory=dict)  # by a known export
    spell: Mapping[str, str] = field(default_factory=dict)  # by a known export
    key: tuple[str, ...] = ()
    tables: Sequence[Draft] = ()  # whose rows these are, one after the other
    _labels: dict[tuple[str, bool], dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = _with_single_texts(self.table)
        for name in self.table.columns:
            column = self.said.columns.get(name) or self.known.get(name)
            self.columns[name] = column or Column(role_of(name), why=BY_NAME)
        self._settle_paths()

    def _settle_paths(self) -> None:
        """An id inside an entry of a list is not the item's."""
        paths = [c for c in self.of("item") if is_path(c)]
        if len(paths) < len(self.of("item")):
            self.ignore([c for c in paths if c not in self.known], "the id of an entry")

    def settle_said(self, settings: TableSettings) -> None:
        """Take what somebody says of the columns."""
        self.said = settings
        self._labels.clear()
        for name, column in settings.columns.items():
            known = self.columns.get(name)
            if known is None or (column.role == "item" and known.role in _SIDES):
                continue  # of the item is what is compared, anyway
            is_text = column.role == "group" and known.role == "question"
            self.columns[name] = replace(column, metric="question") if is_text else column

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.source.name

    def of(self, *roles: str) -> list[str]:
        """The columns of these roles, in the order of the roles."""
        return [c for role in roles for c, column in self.columns.items() if column.role == role]

    def first(self, *roles: str) -> str:
        """The first column of these roles; empty where there is none."""
        return next(iter(self.of(*roles)), "")

    def is_said(self, column: str) -> bool:
        """True where somebody says what the column is."""
        return column in self.said.columns

    def set(self, column: str, role: str, metric: str = "", who: str = "", why: str = "") -> None:
        """Settle what a column is."""
        self.columns[column] = Column(role, metric, who, why or self.columns[column].why)

    def ignore(self, columns: Iterable[str], why: str) -> None:
        """Settle that these columns are not read."""
        for column in columns:
            self.set(column, "ignored", why=why)

    def cells(self, column: str) -> Sequence[Cell]:
        """The cells (rows,) as they are; blank ones where there is no such column."""
        return self.table.columns[column] if column else [""] * len(self.table)

    def texts(self, column: str) -> list[str]:
        """The cells (rows,), with what was said that they mean; blank where they say nothing. Of a
        pair the side that a cell names."""
        spell = {**self.spell, **self.said.spell}
        texts = [
            spell.get(text)
            or spell.get(plain_label(text))
            or ("" if text in self.said.blank or is_blank_word(text) else text)
            for text in self.table.texts(column)
        ]
        pair = self.pair
        if not pair or column in pair or self.columns[column].role == "annotator":
            return texts  # `a` and `b` may be people
        names = self.table.rows(*pair)
        return [
            text and (side_of(text, (*pair, *row)) or text)
            for text, row in zip(texts, names, strict=True)
        ]

    @property
    def pair(self) -> tuple[str, ...]:
        """The columns that name the two responses of a row; none where it compares none."""
        both = (self.first("first"), self.first("second"))
        return both if all(both) else ()

    def filled(self, column: str) -> list[str]:
        """The plain labels in the cells that are not blank and no word for a failure."""
        return [plain_label(x) for x in self.pieces(column) if not is_failure_word(x)]

    def pieces(self, column: str) -> list[str]:
        """The texts in the cells, several of a cell apart, without what was said to be none."""
        apart = [part for text in self.texts(column) for part in self.apart(text)]
        return [text for text in apart if text and text not in self.said.failed]

    def apart(self, text: str) -> list[str]:
        """The labels in a cell's text."""
        sign = self.said.several
        return [part.strip() for part in entries_of(text) or text.split(sign)] if sign else [text]

    def labels(self, column: str) -> dict[str, str]:
        """The different labels of a column, each in its first spelling; none where its cells are no
        labels: too many, too long, or numbers with a fraction."""
        generic = self.columns[column].role in (VALUE, "label", "verdict")
        if (column, generic) not in self._labels:
            self._labels[column, generic] = self._labels_in(column, 0 if generic else 1)
        return self._labels[column, generic]

    def _labels_in(self, column: str, least: int) -> dict[str, str]:
        labels, n_filled = dict[str, str](), 0
        for text in self.pieces(column):
            if is_failure_word(text):
                continue
            n_filled += 1
            plain, whole = plain_label(text), _WHOLE.fullmatch(text)
            labels.setdefault(plain, whole[1] if whole else text)
            if len(labels) > MAX_LABELS or len(text) > LONGEST_LABEL or entries_of(text)[1:]:
                return {}
        is_score = any(re.fullmatch(r"-?\d*\.\d+", plain) for plain in labels)
        repeat = len(labels) < n_filled
        return labels if least < len(labels) and repeat and not is_score else {}

    def free(self) -> list[str]:
        """The columns that may hold labels: those without another role."""
        return [c for c in self.of("", VALUE) if self.labels(c)]

    def n_different(self, *columns: str) -> int:
        """The number of different combinations of cells."""
        return len({*self.table.rows(*columns)})

    def repeats(self, *columns: str) -> bool:
        """True where rows that differ are alike in these columns."""
        return self.n_different(*columns) < self._n_rows

    def tells_apart(self, key: Sequence[str], *aside: str) -> bool:
        """True where a key, with other columns, tells rows apart; a few rows may lack it, as one of
        totals does."""
        if not self.repeats(*key, *aside):
            return True
        columns = [*dict.fromkeys((*key, *aside, *self.table.columns))]
        rows = {row for row in self.table.rows(*columns) if any(row[: len(key)])}
        n, n_told = len(rows), len({row[: len(key) + len(aside)] for row in rows})
        return n == n_told and self._n_rows - n <= self._n_rows / FEW_BLANK

    @cached_property
    def _n_rows(self) -> int:
        """The number of rows that differ."""
        return self.n_different(*self.table.columns)

    def entries(self, cell: Cell) -> tuple[str, ...]:
        """The entries of a list; beside a column of annotators also those between commas."""
        if isinstance(cell, str) and self.of("annotators") and "," in cell and cell[:1] != "[":
            return tuple(part.strip() for part in cell.split(","))
        return entries_of(cell)

    def varies(self, column: str, within: Sequence[str]) -> bool:
        """True where the filled cells of a column differ within a group of rows."""
        rows = {row for row in self.table.rows(*within, column) if row[-1]}
        return len(rows) > len({row[:-1] for row in rows})

    def parts(self, columns: Sequence[str]) -> tuple[int, ...]:
        """The group of each row by the cells of these columns, numbered as they come."""
        numbers: dict[tuple[str, ...], int] = {}
        return tuple(numbers.setdefault(row, len(numbers)) for row in self.table.rows(*columns))

    def same(self, column: str) -> str:
        """The column of this table that is called like another's; empty where none is."""
        if column in self.columns:
            return column
        plain = plain_name(column)
        return next((name for name in self.columns if plain_name(name) == plain), "")

    def first_cell(self, column: str, plain: str) -> tuple[int, str]:
        """The number of the first row in which a label stands, and its text there."""
        cells = zip(self.table.lines, self.texts(column), strict=True)
        return next(
            (cell for cell in cells if cell[1] and plain_label(cell[1]) == plain), (0, plain)
        )

    def lines_of(self, places: Iterable[int]) -> dict[str, tuple[int, ...]]:
        """The numbers of rows at these indices, by the name of their table."""
        every = [(d.name, line) for d in self.tables or (self,) for line in d.table.lines]
        lines = group_by_key(every[place] for place in places)
        return {name: tuple(numbers) for name, numbers in lines.items()}


def is_path(column: str) -> bool:
    """True of `data.id`; not of `Nr.`, `Nr. 3` or `Dr. Meyer`."""
    path, _, end = column.rpartition(".")
    return bool(path and end[:1].strip())


def _with_single_texts(table: Table) -> Table:
    """The table in which a list of one text is that text."""
    columns = dict(table.columns)
    for name, cells in table.columns.items():
        lists = [entries_of(cell) for cell in cells]
        if any(lists) and all(len(entries) < 2 for entries in lists):
            columns[name] = [
                (entries[0] if entries else "") if isinstance(cell, tuple) or entries else cell
                for cell, entries in zip(cells, lists, strict=True)
            ]
    return replace(table, columns=columns)


def entries_of(cell: Cell) -> tuple[str, ...]:
    """The entries of a cell that is a list, or the JSON of one; none of any other."""
    if isinstance(cell, tuple):
        return cell
    if isinstance(cell, str) and cell.startswith("[") and cell.rstrip().endswith("]"):
        with suppress(ValueError, RecursionError):
            entries = json.loads(cell, parse_int=str, parse_float=str)
            if isinstance(entries, list) and all(isinstance(one, str) for one in entries):
                return tuple(entries)
    return ()
