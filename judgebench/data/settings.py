"""What somebody says of tables, by flags, in Python or as the answer to a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from shlex import quote
from typing import Any, Literal, get_args

from judgebench.data.vocabulary import ROLES, Column
from judgebench.errors import Problem, SetupError, nearest, raise_any, some
from judgebench.records import group_by_key

Repeats = Literal["", "first", "last"]
_SHORT = {"annotators": "label", "item": "item", "question": "group"}
_TEXTS = ("order", "severe", "blank", "failed", "fill_down", "judge", "person", "as_judge",
          "labels", "verdicts")  # fmt: skip
_ROWS = ("header", "skip")
SINGLE = ("several", "repeats", "only_common")  # settings with one value
LISTED_SETTINGS = {
    "header": "[FILE:]ROW, the row of the columns' names; of two rows: 1,2",
    "skip": "[FILE:]ROW,ROW, rows that are no items, such as totals",
    "fill_down": "COLUMN, where blank cells mean the cell above, as merged ones do",
    "several": "SIGN, which stands between several labels in a cell",
    "repeats": "first or last: which of several labels of one person on an item counts",
    "only_common": "yes: leave out items that some table lacks",
}
"""What `--set KEY=VALUE` of a command takes."""


@dataclass(frozen=True)
class TableSettings:
    """What is said of tables. `columns` maps the name of a column to what it is, `header` and
    `skip` the name of a file ("" for every one) to numbers of rows. `judge` holds the names of the
    judges that count; of the only one, its new name."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    severe: tuple[str, ...] = ()  # `none`, or `METRIC: none`: no ordered label is severe
    spell: Mapping[str, str] = field(default_factory=dict)  # a text: the label that it means
    blank: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    several: str = ""  # what stands between several labels in a cell
    header: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    skip: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fill_down: tuple[str, ...] = ()
    repeats: Repeats = ""
    only_common: bool = False
    judge: tuple[str, ...] = ()
    person: tuple[str, ...] = ()  # who are people, whatever they are called
    as_judge: tuple[str, ...] = ()  # annotators in a judge's place
    labels: tuple[str, ...] = ()  # files of people's labels
    verdicts: tuple[str, ...] = ()  # files of judges' verdicts

    def of(self, role: str) -> list[str]:
        """The columns of a role."""
        return [name for name, column in self.columns.items() if column.role == role]

    def with_more(self, more: TableSettings) -> TableSettings:
        """These settings and others, which win."""
        both: dict[str, Any] = {}
        for one in fields(self):
            before, after = getattr(self, one.name), getattr(more, one.name)
            if one.name == "columns":
                both[one.name] = _with_roles(before, after)
            elif isinstance(before, Mapping):
                both[one.name] = {**before, **after}
            elif isinstance(before, tuple):
                both[one.name] = tuple(dict.fromkeys((*before, *after)))
            else:
                both[one.name] = after or before
        return replace(self, **both)

    def rows(self, key: str, table: str) -> tuple[int, ...]:
        """The rows of a table that `header` or `skip` names: of its file, or of a sheet."""
        by_name: Mapping[str, tuple[int, ...]] = getattr(self, key)
        file = table.partition(", sheet ")[0]
        return by_name.get(table, by_name.get(file, by_name.get("", ())))

    def flags(self) -> str:
        """The options that say the same on the command line."""
        words = [_column_flag(name, column) for name, column in self.columns.items()]
        words += [f"--spell {quote(f'{text}={label}')}" for text, label in self.spell.items()]
        words += [_flag(key, text) for key in _TEXTS for text in getattr(self, key)]
        for key in _ROWS:
            for file, rows in getattr(self, key).items():
                of_file = f"{file}:" if file else ""
                words.append(_flag(key, of_file + ",".join(map(str, rows))))
        words += [_flag(key, value) for key in SINGLE if (value := getattr(self, key))]
        return " ".join(words)

    def as_columns(self) -> dict[str, Any]:
        """The mapping `columns` that says the same in Python."""
        words: dict[str, Any] = {name: str(column) for name, column in self.columns.items()}
        for name in SETTINGS:
            if value := getattr(self, name):
                words[name] = dict(value) if isinstance(value, Mapping) else value
        return words


def _flag(key: str, value: object) -> str:
    """The option that gives a setting one value."""
    if key in LISTED_SETTINGS:
        text = "yes" if value is True else value
        return f"--set {quote(f'{key}={text}')}"
    flag = "annotator" if key == "person" else key.replace("_", "-")
    return f"--{flag} {quote(str(value))}"


def _column_flag(name: str, column: Column) -> str:
    """The option that says what a column is."""
    if column.role == "group" and "," not in name:
        return f"--question {quote(name)}"
    return f"--column {quote(f'{name}={column}')}"


def _with_roles(before: Mapping[str, Column], after: Mapping[str, Column]) -> dict[str, Column]:
    """What columns are by both; one of the item may be that of the question, too."""
    columns = {**before, **after}
    for name in before.keys() & after.keys():
        if {before[name].role, after[name].role} == {"item", "group"}:
            columns[name] = Column("item", "group")
    return columns


NOTHING_SAID = TableSettings()
SETTINGS = tuple(one.name for one in fields(TableSettings) if one.name != "columns")


def settings_of(columns: Mapping[str, Any]) -> TableSettings:
    """The settings in a mapping as Python takes it: what columns are, by their names, and settings
    by theirs. Raises SetupError with every problem.

    >>> settings_of({"kim": "label harm by Kim", "order": "no < yes"}).flags()
    "--column 'kim=label harm by Kim' --order 'no < yes'"
    """
    settings, problems = NOTHING_SAID, list[Problem]()
    for key, value in columns.items():
        try:
            settings = settings.with_more(_setting(key, value))
        except ValueError as error:
            problems.append(Problem(str(error), "", None, f"columns.{key}", str(value)))
    raise_any(problems)
    return settings


def _setting(key: str, value: Any) -> TableSettings:
    """The settings in one entry. Raises ValueError."""
    if key == "repeats" and value in get_args(Repeats):  # `first` is a role, too
        return TableSettings(repeats=value)
    is_role = isinstance(value, str) and value.split(" ")[0] in ROLES
    if is_role and (key not in _SHORT or (key in ROLES and value != key)):
        return TableSettings(columns={key: Column.parse(value)})
    if key in _SHORT:
        return TableSettings(columns={c: Column(_SHORT[key]) for c in _texts(value)})
    if key not in _READERS:
        near = nearest(key, [*SETTINGS, *_SHORT])
        raise ValueError(f"is neither a role of a column ({', '.join(ROLES)}) nor a setting{near}")
    return TableSettings(**{key: _READERS[key](value)})


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value))


def _orders(value: Any) -> tuple[str, ...]:
    """Orders as texts: of one metric its labels may stand one by one, of several by metric."""
    if isinstance(value, Mapping):
        return tuple(f"{metric}: {' < '.join(_texts(x))}" for metric, x in value.items())
    texts = _texts(value)
    return (" < ".join(texts),) if len(texts) > 1 and "<" not in "".join(texts) else texts


def _rows(value: Any) -> dict[str, tuple[int, ...]]:
    """Rows by file: `labels.csv:2`, `1,2`, a number, several of these, or a mapping by file."""
    if isinstance(value, Mapping):
        return {str(file): _rows(rows)[""] for file, rows in value.items()}
    if isinstance(value, int):
        return {"": (value,)}
    if isinstance(value, str):
        file, _, rows = value.rpartition(":")
        if not all(part.strip().isdecimal() for part in rows.split(",")):
            raise ValueError("is no number of a row, as a spreadsheet shows it: 2 or FILE:2")
        return {file: tuple(map(int, rows.split(",")))}
    by_file: dict[str, tuple[int, ...]] = {}
    for several in map(_rows, value):
        by_file |= {file: (*by_file.get(file, ()), *rows) for file, rows in several.items()}
    return by_file


def _spelt(value: Any) -> dict[str, str]:
    """Labels by what means them: a mapping, or texts such as `Y=yes`."""
    pairs = value.items() if isinstance(value, Mapping) else (t.rpartition("=")[::2] for t in value)
    return {str(text): str(label) for text, label in pairs}


def _is_yes(value: Any) -> bool:
    return value not in (False, "no", "false")


_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_TEXTS, _texts), **dict.fromkeys(_ROWS, _rows),
    "order": _orders, "severe": _orders, "spell": _spelt, "several": str, "only_common": _is_yes,
}  # fmt: skip


_MEANS = {
    "blank": "{} is no label: the cell counts as blank",
    "failed": "{} says that the judge failed",
    "several": "{} stands between several labels",
    "skip": "these rows do not count",
    "fill_down": "blank cells are as the cell above (merged cells)",
    "repeats": "the {} one counts",
    "only_common": "only what both tables have counts",
    "judge": "{} judged: these rows are verdicts",
    "as_judge": "{} labelled, and is put in a judge's place",
    "person": "labels of {} are people's",
    "labels": "labels of people stand in {}",
    "verdicts": "verdicts of judges stand in {}",
}


def _in_words(settings: TableSettings) -> Iterator[str]:
    """The words for settings: of columns, of texts, and of the rest."""
    names_by_column = group_by_key((column, name) for name, column in settings.columns.items())
    for column, names in names_by_column.items():
        yield f"{some(names)}: {column.in_words}"
    for text, label in settings.spell.items():
        yield f"{text} is a label" if text == label else f"{text} is {label}"
    for key, words in _MEANS.items():
        if value := getattr(settings, key):
            yield words.format(some(value) if isinstance(value, tuple) else value)


@dataclass(frozen=True)
class Reading:
    """One of the readings that are possible, and the settings that choose it."""

    settings: TableSettings
    says: str = ""  # where the settings' own words do not

    @property
    def means(self) -> str:
        """The meaning of the reading, in words."""
        return self.says or "; ".join(_in_words(self.settings))

    @property
    def columns(self) -> dict[str, Any]:
        """What to add to `columns` in Python."""
        return self.settings.as_columns()


@dataclass(frozen=True)
class Question:
    """What nobody said and nothing shows, of a table: with the readings that are possible."""

    table: str
    asks: str
    readings: tuple[Reading, ...]

    def __str__(self) -> str:
        return self.in_words(lambda reading: reading.settings.flags())

    def in_words(self, option: Callable[[Reading], str]) -> str:
        """The question with the readings, each with the option that chooses it."""
        lines = [f"    {option(reading)}    {reading.means}" for reading in self.readings]
        return "\n".join([f"{self.table}: {self.asks}", *lines])


class Ask(Exception):
    """A question that has to be answered before tables can be read."""

    def __init__(self, table: str, asks: str, *readings: Reading | TableSettings) -> None:
        whole = (r if isinstance(r, Reading) else Reading(r) for r in readings)
        self.question = Question(table, asks, tuple(whole))
        super().__init__(asks)


class Unsettled(SetupError):
    """Tables that can be read in several ways. `questions` are all that is open: those after the
    first as they follow where the first reading of each holds."""

    def __init__(self, questions: Sequence[Question], in_python: bool = False) -> None:
        self.questions = tuple(questions)
        texts = map(_in_python if in_python else str, questions)
        super().__init__([Problem(text, kind="question") for text in texts])


def _in_python(question: Question) -> str:
    """The question with what `columns` takes, in place of the options of a command."""
    return question.in_words(lambda reading: f"columns={reading.columns}")


def columns_as(roles: Mapping[str, str]) -> TableSettings:
    """The settings that give columns these roles, in words."""
    return TableSettings(columns={name: Column.parse(role) for name, role in roles.items()})


def each_as(role: str, names: Iterable[str]) -> TableSettings:
    """The settings that give each of these columns one role."""
    return columns_as(dict.fromkeys(names, role))


def check_names(settings: TableSettings, known: Sequence[str]) -> TableSettings:
    """The settings with columns spelt as tables spell them. Raises SetupError with every column
    that no table has."""
    by_name = {name.casefold(): name for name in known} | {name: name for name in known}
    columns, problems = dict[str, Column](), list[Problem]()
    for name, column in settings.columns.items():
        spelt = by_name.get(name) or by_name.get(name.casefold())
        if spelt is None:
            message = f"no table has this column{nearest(name, known)}"
            option = {"group": "--question", "item": "--item"}.get(column.role, "--column")
            problems.append(Problem(message, "", None, option, name, some(known)))
        else:
            columns[spelt] = column
    raise_any(problems)
    return replace(settings, columns=columns)
