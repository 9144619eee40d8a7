"""Guess what the columns of a file hold, by their names and by their cells.

Tables that nobody described are put together by `understand`; plain files whose columns are named
as judgebench names them are read by `recognise`.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache, partial
from itertools import chain, combinations, takewhile
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import numpy as np

from judgebench.data.cells import Cell, Nested, clean, is_date, number_in, split_list, with_point
from judgebench.data.findings import Findings, nearest
from judgebench.data.formats import BETWEEN, LIST_NAME
from judgebench.data.open_table import DataTable, frame_table, open_table
from judgebench.data.spec import (
    FileLabelSpec,
    FileSpec,
    IdSource,
)
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.records import CHANCES, WEIGHTS
from judgebench.rubric import Rubric, listed_in, normalise
from judgebench.studies.verdicts import is_like_a_model, may_be_a_model
from judgebench.words import plain_id

MOST_LABELS = 12  # a column with more different values is not taken for labels
_LIKE_A_METRIC = re.compile("type|categor|kind|attribut|quality|property|trait|harm|risk")
LONGEST_LABEL = 60  # characters
_LONGEST_NAME = 200  # characters of a column that is named by a metric and a person
_LONGEST_ID = 80
_MOST_METRICS = 200
_MOST_ITEMS = 0.75  # of the rows, where items have rows of several annotators
_NEARLY_ALL = 0.98  # of the rows are told apart by a key, which a few duplicates do not spoil
MOSTLY = 0.5  # of the cells of a column of verdicts are labels
_MOST_KEYS = 6  # columns of which some may be a key together
_SAME_IDS = 0.5  # of the cells of two columns, where their names differ
_MIX = np.uint64(0x9E3779B97F4A7C15)  # of the golden ratio: spreads combined hashes
_LONG_TEXT = 30  # characters on average, from which on a column holds texts
NAMES: Mapping[str, tuple[str, ...]] = {
    "item_id": (
        "item_id", "id", "item", "answer_id", "response_id", "example_id", "sample_id",
        "instance_id", "record_id", "unique_id", "uid", "uuid", "key", "nr",
    ),
    "text": (
        "text", "answer", "response", "reply", "output", "completion", "generation",
        "model_output", "model_answer", "model_response", "answer_text", "response_text",
        "generated_text", "prediction", "summary", "translation", "content", "message",
        "antwort", "ausgabe", "reponse", "respuesta",
    ),
    "question": (
        "question", "prompt", "query", "instruction", "input", "request", "question_text",
        "user_message", "patient_question", "frage", "pregunta", "user",
    ),
    "system": (
        "system", "model", "model_name", "model_id", "system_id", "system_name", "generator",
        "engine", "llm", "bot", "chatbot", "assistant", "modell", "modele", "modelo",
    ),
    "reference": (
        "reference", "reference_answer", "gold", "gold_answer", "ideal", "ideal_answer",
        "expected", "expected_answer", "ground_truth", "target", "referenz", "musterantwort",
        "referencia",
    ),
    "group": (
        "group", "group_id", "question_id", "query_id", "prompt_id", "conversation_id",
        "dialogue_id", "document_id", "doc_id", "case_id", "patient_id", "cluster", "qid", "case",
        "doc", "document", "dialogue", "conversation", "fall", "fall_id", "fallnummer",
        "cas", "caso",
    ),
    "annotator": (
        "annotator", "annotator_id", "rater", "rater_id", "coder", "labeler", "labeller",
        "reviewer", "worker", "worker_id", "expert", "evaluator", "clinician", "physician",
        "gutachter", "gutachterin", "bewerter", "bewerterin", "beurteiler", "kodierer", "codierer",
        "prufer", "pruferin", "annotateur", "evaluateur", "anotador", "evaluador",
        "user_id", LIST_NAME,
    ),
    "metric": (
        "metric", "metric_name", "criterion", "criteria", "dimension", "aspect", "measure", "facet",
        "kriterium", "merkmal", "metrik", "aspekt", "critere", "criterio", "metrique", "metrica",
    ),
    "label": (
        "label", "rating", "score", "grade", "verdict", "value", "annotation", "bewertung",
        "urteil", "etikett", "wert", "einstufung", "etiquette", "etiqueta", "valeur", "valor",
        "calificacion", "puntuacion", "nota", "note",
    ),
}  # fmt: skip
_IN_LISTS = {  # of annotations, where these are whose each is
    **NAMES,
    "annotator": (
        *NAMES["annotator"], "user", "username", "name", "by", "who", "email", "completed_by",
    ),
}  # fmt: skip
CROWD = "crowd"  # of whom lists hold the labels
JUDGES = ("judge", "judge_id", "judge_model", "judge_name", "grader", "llm_judge")
PAIRS = [(f"{what}_a", f"{what}_b") for what in ("model", "system", "response", "answer")]
_OF_ROWS = ("annotator", "metric", "label")
_OF_ITEMS = ("question", "text", "system", "reference", "group")
_NAMES_OF_ITEMS = {role: NAMES[role] for role in ("item_id", *_OF_ITEMS)}
_PERSON = "(?:annotator|rater|coder|labell?er|reviewer|expert|evaluator|gutachter|bewerter)"
_BY_PEOPLE = [
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\A(?P<metric>(?:.*?[^ _.\n-])??)[ _.-]*+(?P<who>{_PERSON}[ _.-]?[a-z0-9]{{1,64}})",
        rf"\A(?P<who>{_PERSON}[ _.-]?[a-z0-9]{{1,64}})[ _.-]+(?P<metric>.+)",
        r"(?P<metric>annotation|label|rating|score|grade)s?[ _.-]?(?P<who>[0-9]+)",
    )
]
_VERDICT = re.compile(
    r"(?<![ _.-])[ _.-]*+(?:label|verdict|rating|score|annotation|answer|judge?ment|say|"
    r"repl(?:y|ie)|response|output)s?$",
    re.I,
)
_YES_NO = {"y": "yes", "true": "yes", "1": "yes", "n": "no", "false": "no", "0": "no"}
_NUMBER = re.compile(r"(?<!\d)(\d+)[._):]\s*(?=[^\W\d])")  # before a label: 1_full_compliance
# What programs write where there is no value; garbage is what is told apart by that name.
_NO_LABELS = frozenset(("garbage", "n/a", "#n/a", "nan"))
_NUMBERED = re.compile("[ _.-]?[1-9A-Ba-b]$")
# What a sample was drawn by, of labels and answers.
_SECOND = "another response of the row, which is shown beside the first"
NOBODYS = "no annotator is named in its header"
NOT_THEIRS = "its cells are not the labels of the annotators"
_MOST_STRAYS = 0.02  # of the cells of a column of numbers
# Labels that somebody computed from those of the annotators.
_SUMMARY = re.compile(
    r"(?<![a-z])(?:majority|consensus|final|gold|adjudicated|agg(?:regated?)?|mode|median|mean|avg|"
    r"average|agreed|agreement|resolved|merged|truth)(?![a-z])"
)
# Programs that label, beside language models.
_PROGRAM = re.compile(
    r"(?<![a-z])(?:str_?match|regexp?|keywords?|classifier|rules?|heuristic)(?![a-z])"
)
_TITLE = re.compile("(?:dr|prof|mrs?|ms|nurse)[.]?", re.IGNORECASE)
_PERSON_NAME = re.compile(
    r"(?:(?:dr|prof|mr|mrs|ms|nurse)[.]? ?)?[^\W\d_]+(?:[ .'-][^\W\d_]+){0,2}[.]?(?: ?[0-9]{1,5})?"
    r"|[^\s@]+@[^\s@]+",
    re.IGNORECASE,
)
# What is judged of an answer; no surname, though it may head a column of labels.
_QUALITY = re.compile(
    r"harm|risk|tone|bias|style|grammar|overall|clarity|safe|correct|relevant|fluent|helpful|ok|good|"
    r"better|quality|q|question|item|task|part|level|stars?|opinion|split|toxic|refusal|refused|"
    r"complete|compliance|label|labels|rating|score|grade|verdict|value|winner|answer|response|"
    r".{4,}cy|.*(?:ness|ity|ance|ence|ency|tion|sion|ism|ful|able|ible|ive|ous)"  # Percy, Tracy
)
# What describes an item or a row and is no judgement of it.
_DESCRIBES = frozenset((
    "language", "lang", "locale", "topic", "split", "date", "time", "timestamp", "created_at",
    "source", "dataset", "domain", "country", "version", "fold", "set", "subset", "gender", "sex",
    "age", "url", "comment", "comments", "note", "notes", "email", "name", "batch", "round",
    "specialty", "department", "duration", "turn", "row", "index", "category", "kommentar",
    "bemerkung", "anmerkung", "datum", "sprache", "thema", "quelle", "commentaire", "comentario",
))  # fmt: skip

_ASKED = frozenset(("question", "prompt", "query", "instruction", "instructions", "request"))
_NOT_ASKED = frozenset((*_DESCRIBES, *NAMES["text"], "system", "judge"))  # beside such a word


ColumnNames = str | Sequence[str] | Mapping[str, Sequence[str]]  # an order also by metric


@dataclass(frozen=True)
class Hints:
    """The columns that somebody names, where they need not be guessed.

    `annotators` and `judge` are columns of labels and of verdicts; a `judge` that is no column is
    the name of the judge of a file. Columns to `keep` stay with each item as its metadata and are
    never taken for labels, annotators or judges. `order` has the labels of a metric from the least
    to the most severe: "Safe < Unsure < Unsafe", after "METRIC: " where there are several. The
    metrics of a `rubric` need no order.
    """

    annotators: tuple[str, ...] = ()
    judge: tuple[str, ...] = ()
    item: tuple[str, ...] = ()
    question: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    rubric: Rubric | None = None

    @property
    def roles(self) -> frozenset[str]:
        """The columns that are named as something."""
        return frozenset((*self.annotators, *self.judge, *self.item, *self.question))

    @classmethod
    def given(cls, columns: Mapping[str, ColumnNames]) -> Hints:
        """Those of a mapping, in which one column may stand alone, and the order of labels by
        metric. Raises SetupError."""
        known = [one.name for one in fields(cls) if one.name != "rubric"]
        raise_any([
            Problem(f"is unknown{nearest(key, known)}", "", None, "columns", key, ", ".join(known))
            for key in columns
            if key not in known
        ])  # fmt: skip
        by_metric = {
            key: [f"{m}: {x if isinstance(x, str) else _scale(x)}" for m, x in value.items()]
            for key, value in columns.items()
            if isinstance(value, Mapping)
        }
        whole = {**columns, **by_metric}
        order = whole.get("order", ())
        if not isinstance(order, str) and len(order) > 1 and "<" not in _scale(order, ""):
            whole["order"] = _scale(order)  # its labels, one by one
        named: dict[str, Any] = {
            k: (v,) if isinstance(v, str) else tuple(v) for k, v in whole.items()
        }
        return cls(**named)


def _scale(labels: Iterable[object], between: str = " < ") -> str:
    return between.join(map(str, labels))


NO_HINTS = Hints()


@dataclass(frozen=True)
class Guess:
    """The roles that the columns of a file seem to have.

    `roles` maps the nouns of `NAMES` to columns, those in `by_content` not by their names.
    `metrics` maps what the file calls a metric to its labels, in the order of their values or of
    the file; a file is long where `roles` has `metric`. Else `columns` maps annotators, "" where
    their names are in a column or nowhere, to the column of each metric. `unused` says of a column
    why it is not read, and `judges` maps who is named like a model to the column of its verdicts on
    each metric. Items are known by the cells of the columns `key` together;
    without any, each row is one. `strays` are the cells, by metric, that are no label; `of_judges`
    the labels that judges alone gave.
    """

    source: FileSpec
    roles: Mapping[str, str]
    by_content: frozenset[str]
    metrics: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, Mapping[str, str]]
    unused: Mapping[str, str]
    look: Look = field(repr=False, compare=False)
    key: tuple[str, ...] = ()
    blank_texts: bool = False
    judges: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    strays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pair: tuple[str, ...] = ()
    of_judges: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return Path(self.source.path)

    @property
    def by(self) -> tuple[str, ...]:
        """The columns by which items are known; none where each row is one."""
        return self.key or tuple(filter(None, [self.roles.get("item_id")]))

    @property
    def has_texts(self) -> bool:
        """True where there is something to judge."""
        return "text" in self.roles

    @property
    def responses(self) -> list[str]:
        """The columns of the several responses of a row; none where it has one."""
        text = self.roles.get("text", "")
        others = [column for column, why in self.unused.items() if why == _SECOND]
        return sorted([text, *others], key=plain_name) if others else []


@dataclass
class _Column:
    """The look of the cells of a column. `values` holds the first spellings of different
    values, no more than make it clear that they are too many for labels."""

    values: dict[str, str] = field(default_factory=dict)
    often: Counter[str] = field(default_factory=Counter)
    codes: array[int] = field(default_factory=lambda: array("q"))  # of all cells; 0 where blank
    filled: int = 0
    characters: int = 0
    longest: int = 0
    spaced: bool = False
    lists: int = 0
    questions: int = 0
    joined: Counter[str] = field(default_factory=Counter)  # the parts of cells such as `a; b`
    doubled: bool = False  # one of these cells holds a part more than once
    several: bool = False
    listed: Counter[str] = field(default_factory=Counter)  # the entries of lists
    of_crowd: bool = False  # lists of the labels of several annotators

    def settle(self) -> None:
        """Read cells such as `safe; evasive` as labels that stand alone in other cells, and lists
        in which a few labels repeat as those of several annotators."""
        if self.holds_lists and self.doubled and 1 < len(self.listed) <= MOST_LABELS:
            self.of_crowd, self.lists, self.often = True, 0, self.listed
            self.values = {normalise(text): text for text in self.listed}
            self.longest = max(map(len, self.listed))
            return
        alone = {plain: t for plain, t in self.values.items() if not listed_in(t)[1:]}
        parts = {*map(normalise, self.joined)}
        if len(parts) > 1 and parts <= alone.keys() and not self.doubled:
            often = {t: n for t, n in self.often.items() if not listed_in(t)[1:]}
            self.several, self.values, self.often = True, alone, Counter(often) + self.joined
            self.longest = max(map(len, alone.values()))

    def add(self, text: str) -> None:
        """Take in the cell of the next row."""
        self.codes.append(hash(text))
        if not text:
            return
        self.filled += 1
        self.characters += len(text)
        self.longest = max(self.longest, len(text))
        self.spaced = self.spaced or " " in text
        self.lists += text[0] in "[{"
        self.questions += text.endswith("?")
        if text[0] == "[" and len(self.listed) <= MOST_LABELS:
            with suppress(ValueError):
                parts = [clean(part)[0] for part in split_list(text)]
                self.listed.update(filter(None, parts))
                self.doubled = self.doubled or len({*parts}) < len(parts)
        if (";" in text or "|" in text) and len(self.joined) <= MOST_LABELS:
            parts = listed_in(text)
            self.joined.update(parts)
            self.doubled = self.doubled or len({*parts}) < len(parts)
        if len(self.values) <= MOST_LABELS:
            if text not in self.often:
                self.values.setdefault(normalise(text), text)
            self.often[text] += 1

    @cached_property
    def different(self) -> int:
        """The number of different values, blank cells aside."""
        return len(np.unique(np.array(self.codes))) - (self.filled < len(self.codes))

    @property
    def repeats(self) -> bool:
        """True where a value occurs twice."""
        return self.different < self.filled

    @property
    def mean(self) -> float:
        return self.characters / self.filled if self.filled else 0.0

    @property
    def holds_lists(self) -> bool:
        """True where every cell is a list or an object."""
        return 0 < self.filled == self.lists

    @property
    def has_few(self) -> bool:
        """True where all values are known, and how often each occurs."""
        return len(self.values) <= MOST_LABELS

    @property
    def holds_scores(self) -> bool:
        """True of many numbers that are no ids: some have a fraction, or occur again."""
        numbers = all(number_in(text) == number_in(text) for text in self.often)
        some_score = self.repeats or any("." in text for text in self.often)
        return not self.has_few and numbers and some_score

    def has_decimals(self, labels: Collection[str]) -> bool:
        """True of numbers of which more than a few have a fraction and are none of the labels."""
        numbers = {t: n for t, n in self.often.items() if number_in(t) == number_in(t)}
        odd = (n for t, n in numbers.items() if number_in(t) % 1 and t not in labels)
        total = sum(self.often.values())
        return sum(odd) > _MOST_STRAYS * total and 2 * sum(numbers.values()) >= total

    @property
    def why_no_labels(self) -> str:
        """The reason why the values are not labels; empty where they are."""
        if self.holds_lists:
            inside = "objects: name what is in them by a path, such as labels.dr-a"
            return f"its cells hold {inside if '{}' in self.values else 'lists: see `list: true`'}"
        if len(self.values) - len({*map(normalise, self.strays)}) < 2:
            return "it has one value only" if self.filled else "it is blank"
        if self.longest > LONGEST_LABEL:
            return "its cells are texts"
        if not self.has_few or not (self.repeats or self.of_crowd):
            return "it has too many different values"
        if all(map(is_date, self.values.values())):
            return "its cells are dates"
        return "" if "" not in self.values else "a value of it has no letters or digits"

    @property
    def strays(self) -> tuple[str, ...]:
        """The cells that are no label: what programs write where nothing is known, and the few
        words in a column of numbers."""
        words = [text for text in self.often if math.isnan(number_in(with_point(text)))]
        counts = len(self.values) - len({*map(normalise, words)}) > 1
        few = [t for t in words if counts and self.often[t] <= _MOST_STRAYS * self.filled]
        return tuple(t for t in self.often if normalise(t) in _NO_LABELS or t in few)

    def labels(self) -> tuple[str, ...]:
        but = {*map(normalise, self.strays)}
        texts = [with_point(text) for plain, text in self.values.items() if plain not in but]
        if all(_WHOLE.fullmatch(text) for text in texts):  # `1.0` is the code 1 beside blank cells
            texts = [text.partition(".")[0] for text in texts]
        return ordered(dict.fromkeys(texts))


_WHOLE = re.compile(r"-?\d+(\.0+)?")
_MARK = re.compile(r"-?\d+([.,]\d+)?")  # in a column `Note`, which in German is a label


def ordered(values: Collection[str]) -> tuple[str, ...]:
    """Numbers by size; other texts in their order."""
    try:
        return tuple(sorted(values, key=float))
    except ValueError:
        return tuple(values)


@dataclass(frozen=True)
class Look:
    """The columns of a table, and the roles that their names and cells give them. Those `kept` with
    each item are among the columns where they have a role as well."""

    source: FileSpec
    columns: Mapping[str, _Column]
    roles: dict[str, str]
    by_content: frozenset[str]
    table: Any = None  # a DataFrame in place of the file
    kept: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()  # of programs, that give labels

    @property
    def usable(self) -> dict[str, _Column]:
        """The columns that hold something, and no lists."""
        return {n: c for n, c in self.columns.items() if c.filled and not c.holds_lists}

    @property
    def like_labels(self) -> list[str]:
        """The columns without a role whose cells look like labels."""
        rest = (name for name in self.usable if name not in self.roles.values())
        return [name for name in rest if not self.columns[name].why_no_labels]

    def tells_apart(self, columns: Sequence[str]) -> bool:
        """True where no two rows have the same cells in these columns."""
        return self.count(columns) == len(next(iter(self.columns.values())).codes)

    def count(self, columns: Sequence[str]) -> int:
        """The number of different combinations of the cells of these columns."""
        return _combinations(self.columns, *columns)

    def first(self, column: str) -> str:
        """The first cell of a column that is not blank; empty where there is none."""
        return next(iter(self.columns[column].often), "") if column in self.columns else ""

    def different(self, column: str) -> list[str]:
        """The different cells of a column, in their order."""
        return list(dict.fromkeys(row[column] for row in self.rows() if column in row))

    def same(self, other: Look, theirs: str, least: float = 0.0) -> str:
        """The column that holds the cells of another table's column: of the same name, else the one
        that shares the most, and more than the `least`; empty where none does."""
        for column in self.usable:
            if plain_name(column) == plain_name(theirs) and self.shared(column, other, theirs) > 0:
                return column
        fits = {c: self.shared(c, other, theirs) for c in self.usable if least < 1}
        best = max(fits, key=lambda c: fits[c], default="")
        return best if fits.get(best, 0) > least else ""

    def shared(self, column: str, other: Look, theirs: str) -> float:
        """The share of the different values of a column that another table's column holds too."""
        own = np.unique(np.array(self.columns[column].codes))
        return float(np.isin(own, np.array(other.columns[theirs].codes)).mean()) if len(own) else 0

    def holds(self, labels: Iterable[str]) -> bool:
        """True where a column of few values holds one of these labels."""
        few = (about.often for about in self.usable.values() if about.has_few)
        return any(_normal(labels) & _normal(often) for often in few)

    def places(self, columns: Collection[str], texts: Collection[str]) -> dict[str, str]:
        """Where each of the texts stands first in these columns: `Huber, row 7`."""
        table, found = _table(self.source, Findings(), self.table), dict[str, str]()
        for row in table.rows:
            for name, cell in zip(table.columns, row.cells, strict=False) if row.sound else ():
                if name in columns and (text := _text(cell)) in texts:
                    found.setdefault(text, f"{name}, row {row.line}")
        return found

    def repeated(self, columns: Sequence[str]) -> str:
        """The first two rows with the same cells in these columns: `'q5' in rows 6 and 602`."""
        seen = dict[tuple[str, ...], int]()
        for row in (table := _table(self.source, Findings(), self.table)).rows:
            cells = dict(zip(table.columns, map(_text, row.cells), strict=False))
            key = tuple(cells.get(column, "") for column in columns)
            if (first := seen.setdefault(key, row.line)) != row.line:
                return f"{' · '.join(key)!r} in rows {first} and {row.line}"
        return ""

    def rows(self) -> Iterator[dict[str, str]]:
        """The cells of each row that are not blank, by column."""
        return _rows(_table(self.source, Findings(), self.table))


def guess(
    path: Path, table: Any = None, hints: Hints = NO_HINTS, others: Sequence[Look] = (),
    sheet: str = "",
) -> Guess:  # fmt: skip
    """Guess what the columns of a file, or of a DataFrame in its place, hold: read as it is or,
    where that is an error, with the setting that makes most of it. `others` are tables of verdicts:
    people share columns with them only if these are metrics, or say which item a row is about.

    Raises SetupError with every problem of the file, and where nothing says which item a row is
    about."""
    given = _source(path, sheet)
    return with_settings(
        given,
        lambda source: _guess(source, table, hints, others),
        lambda one: (2 * bool(one.metrics) + one.has_texts, len(one.roles)),
    )


def _source(path: Path, sheet: str) -> FileSpec:
    return FileSpec.model_construct(path=str(path), sheet=sheet or None)


def with_scores(look: Look, human: str = "", group: str = "", scores: Sequence[str] = ()) -> str:
    """`; as scores (a, b): …`, the commands for columns of numbers that are no labels; empty where
    there are none."""
    scores = scores or [c for c, about in look.columns.items() if about.holds_scores]
    first, *others = scores or [""]
    file = quote(look.source.path) if human in look.columns and look.table is None else "TABLE"
    human, judge = (human, first) if human else (first, (others or ["COLUMN"])[-1])
    group = group or look.roles.get("group", look.roles.get("item_id", "COLUMN"))
    return first and (
        f"; as scores ({some(scores, 4)}){', all in one TABLE' * (file == 'TABLE')}: "
        f"`judgebench score correlate {file} --against {quote(human)} --group {quote(group)}` or "
        f"`judgebench estimate {file} --score {quote(f'{human}={judge}')}`"
    )


def look_at(
    path: Path, table: Any = None, hints: Hints = NO_HINTS, sheet: str = "", *,
    of_judges: bool = False,
) -> Look:  # fmt: skip
    """The look of a table, read with the setting that makes most of it; one `of_judges` has no
    weights of a sample. Raises SetupError."""
    return with_settings(
        _source(path, sheet),
        lambda source: _look(source, table, hints, of_judges),
        lambda found: (len(found.like_labels), len(found.roles)),
    )


Seen = TypeVar("Seen")


def sheets_of(path: Path) -> list[str]:
    """The sheets of a workbook that hold labels or are named like a judge; none where it has one
    sheet or is no workbook."""
    findings = Findings()
    if path.suffix.lower() != ".xlsx" or open_table(path, findings):
        return []
    names = [one["sheet"] for one in _settings(findings.errors) if "sheet" in one]
    found = []
    for name in names:
        with suppress(SetupError):
            look = look_at(path, sheet=name)
            labels = any(plain_name(c) not in _DESCRIBES for c in look.like_labels)
            found += [name] if labels or is_like_a_program(name) else []
    return found


def with_settings(
    given: FileSpec, read: Callable[[FileSpec], Seen], worth: Callable[[Seen], Any]
) -> Seen:
    """Read a file as it is or, where that is an error, with the best of the settings that the error
    asks for. Raises SetupError where none will do."""
    try:
        return read(given)
    except SetupError as error:
        found = []
        for setting in _settings(error.problems):
            with suppress(SetupError):
                found.append(read(given.model_copy(update=setting)))
        if not found:
            raise
    return max(found, key=worth)


def _settings(problems: Sequence[Problem]) -> Iterator[dict[str, Any]]:
    """The settings of a file that the problems ask for."""
    if any("`quoting: none`" in problem.message for problem in problems):
        yield from ({"quoting": "none"}, {"quoting": "standard"})
    if any(problem.kind == "bad_byte" for problem in problems):
        yield {"encoding": "cp1252"}
    for problem in problems:
        if problem.field == "sheet":
            yield from ({"sheet": name} for name in problem.allowed.split(BETWEEN))


def _look(
    source: FileSpec, frame: Any = None, hints: Hints = NO_HINTS, of_judges: bool = False
) -> Look:
    findings = Findings()
    if frame is None and (path := Path(source.path)).is_file():
        stamp = (path.stat().st_mtime_ns, path.stat().st_size)
        nested, columns = _seen(path, source.sheet, source.quoting, source.encoding, stamp)
    else:
        table = _table(source, findings, frame)
        nested, columns = table.nested, _columns(table)
    if nested and any("{}" in about.values for about in columns.values()):
        for rows in (*_rows_inside(nested), ""):
            paths = [p.replace(f"{rows}[0].", f"{rows}.") if rows else p for p in nested]
            inside = FileLabelSpec.model_construct(
                item_id=IdSource(row=True), metrics={path: path for path in paths}
            )
            source = source.model_copy(update={"labels": (inside,), "rows": rows or None})
            columns = _columns(_table(source, findings))
            if rows and _holds_labels(columns, rows):
                break
    raise_any(findings.errors)
    usual = () if of_judges else (*WEIGHTS, *CHANCES)
    kept = tuple(c for c in columns if c in hints.keep or plain_name(c) in usual)
    filled = Look(source, columns, {}, frozenset()).usable
    roles = roles_by_name((c for c in kept if c in filled), _NAMES_OF_ITEMS)
    roles |= roles_by_name(c for c in filled if c not in kept)
    if source.rows:
        short = {c.removeprefix(f"{source.rows}."): c for c in filled}
        found_in = roles_by_name(short, {role: _IN_LISTS[role] for role in _OF_ROWS})
        roles |= {role: short[name] for role, name in found_in.items()}
    aside = {*kept} - {*roles.values(), *hints.roles}
    columns = {c: about for c, about in columns.items() if c not in aside}
    found = Look(source, columns, roles, frozenset(), frame, kept)
    usable = found.usable
    judge = names_of_judges(found)
    if judge and "annotator" not in roles and judge not in roles.values():
        roles["annotator"] = judge
    roles |= _unnamed_metric(found)
    if len(hints.item) == 1 and hints.item[0] in columns:
        roles |= {"item_id": hints.item[0]}
    if who := _names_people(found, hints):
        roles = {role: c for role, c in roles.items() if c != who} | {"annotator": who}
    elif usable.keys() & {*hints.annotators}:
        roles.pop("annotator", None)
    _full_question(usable, roles)
    if "question" not in roles and (asked := _asked(usable, roles)):
        roles["question"] = asked
    named = frozenset(roles)
    labels = [usable[c].labels() for c in found.like_labels]
    replies = [
        c
        for c, about in usable.items()
        if is_like_a_program(c) and gives_labels(about.often, labels)
    ]
    roles = {role: c for role, c in roles.items() if c not in replies}
    _texts_by_content({c: about for c, about in usable.items() if c not in replies}, roles)
    group = usable.get(roles.get("group", ""))
    if "item_id" not in roles and group and group.different == len(group.codes):
        roles["item_id"] = roles.pop("group")  # a case of one answer each
    if "item_id" not in roles and (which := _ids(usable, roles)):
        roles["item_id"] = which
    if "system" not in roles and (which := _system(usable, roles)):
        roles["system"] = which
    return replace(found, roles=roles, by_content=frozenset(roles) - named, replies=(*replies,))


def _unnamed_metric(look: Look) -> dict[str, str]:
    """The column that says what each label is about, though by no name of a metric, and that of the
    labels: all that is said of an item is said under each of its few values."""
    label = next((c for c in look.like_labels if plain_name(c) in NAMES["label"]), "")
    if not label or {"metric", "text", "system"} & look.roles.keys():
        return {}
    for name in (c for c in look.like_labels if _LIKE_A_METRIC.search(plain_name(c))):
        n, others = look.columns[name].different, [*look.usable.keys() - {name, label}]
        if n > 1 and others and look.count(others) * n == len(look.columns[name].codes):
            return {"metric": name, "label": label}
    return {}


def names_of_judges(look: Look) -> str:
    """The column called after judges, where it holds their names: another column says something of
    the items, and not with the same labels. Empty where it holds verdicts itself."""
    named = next((name for name in look.usable if plain_name(name) in JUDGES), "")
    said = {*map(plain_label, look.columns[named].often)} if named else set()
    same = any(
        said & {*map(plain_label, look.columns[c].often)} for c in look.like_labels if c != named
    )
    others = look.usable.keys() - {named, *look.roles.values()}
    there = others or look.roles.keys() & {"label", "text"} or len(said) < 2
    return named if there and not same else ""


def _names_people(look: Look, hints: Hints) -> str:
    """The one column of annotators that somebody names, where it holds their names, by which the
    rows of an item differ; empty where it holds labels."""
    who, *others = hints.annotators or ("",)
    if others or who not in look.usable:
        return ""
    own = {role: c for role, c in look.roles.items() if c != who}
    item = hints.item or tuple(own[role] for role in _NAMES_OF_ITEMS if role in own)
    key = [c for c in (*item, own.get("metric", "")) if c in look.usable]
    rows = len(look.columns[who].codes)
    usual = plain_name(who) in NAMES["annotator"]
    if usual and any(plain_name(c) in NAMES["label"] for c in look.like_labels if c != who):
        return who
    apart = look.count(key) <= _MOST_ITEMS * rows and look.count([*key, who]) >= _NEARLY_ALL * rows
    return who if item and apart else ""


@lru_cache(maxsize=8)  # tables are sorted before they are understood
def _seen(
    path: Path, sheet: str | None, quoting: str | None, encoding: str | None, stamp: tuple[int, int]
) -> tuple[Sequence[str], dict[str, _Column]]:
    """The paths into cells of a file, and its columns. Raises SetupError."""
    source = FileSpec.model_construct(
        path=str(path), sheet=sheet, quoting=quoting, encoding=encoding
    )
    findings = Findings()
    table = _table(source, findings)
    columns = _columns(table)
    raise_any(findings.errors)
    return table.nested, columns


def _rows_inside(nested: Sequence[str]) -> list[str]:
    """The paths of lists whose entries name somebody, as an annotation of several does, and are no
    messages."""
    keys: dict[str, list[str]] = {}
    for path in (p for p in nested if p.count("[0].") == 1):
        keys.setdefault(path.partition("[0].")[0], []).append(path.partition("[0].")[2])
    talk = {"role", "content"}
    return [
        rows
        for rows, own in keys.items()
        if roles_by_name(own, {"": _IN_LISTS["annotator"]}) and not talk & {*own}
    ]


def _holds_labels(columns: Mapping[str, _Column], rows: str) -> bool:
    """True where the entries of a list hold labels or scores, beside who gave them."""
    inside = (
        (c.removeprefix(f"{rows}."), about)
        for c, about in columns.items()
        if c.startswith(f"{rows}.")
    )
    return any(
        not about.why_no_labels or about.holds_scores
        for name, about in inside
        if plain_name(name) not in (*_IN_LISTS["annotator"], *_DESCRIBES)
    )


def _columns(table: DataTable) -> dict[str, _Column]:
    columns = {name: _Column() for name in table.columns if name}
    for cells in _rows(table):
        for name, about in columns.items():
            about.add(cells.get(name, ""))
    for about in columns.values():
        about.settle()
    return columns


def _guess(
    source: FileSpec, frame: Any = None, hints: Hints = NO_HINTS, others: Sequence[Look] = ()
) -> Guess:
    look = _look(source, frame, hints)
    source = look.source
    columns, usable, roles = look.columns, look.usable, look.roles
    pair = pair_of_columns(usable)
    if pair and roles.get("system") in pair:
        del roles["system"]
    named = frozenset(roles) - look.by_content
    if hints.annotators == (roles.get("annotator"),):
        hints = replace(hints, annotators=())
    if hints.annotators:  # whose labels are in columns, and not in rows
        for role in ("metric", "label"):
            roles.pop(role, None)
    headed = hints.annotators or _of_people(look)
    key, who = _key(look, pair, hints.item, others, headed)
    if who and headed:
        key = (*key, who)
    elif who:
        roles["annotator"] = who
    by_content = frozenset(roles) - named
    if pair:
        key = tuple(c for c in key if c not in pair)
    if "item_id" in roles and key != (roles["item_id"],):
        roles.setdefault("group", roles["item_id"])  # what is the same for several items
        del roles["item_id"]
    if len(key) > 1 and (hints.item == key or not {*key} & {*roles.values()}):
        roles.setdefault("group", key[0])  # such as a case that several systems answer
    if hints.question and (asked := hints.question[0]) in columns:
        about = columns[asked]
        if about.spaced and about.why_no_labels and asked not in roles.values():
            roles["question"] = asked
        roles["group"] = asked
    metrics, unused = _metrics(look, pair)
    if "text" not in roles and not metrics:
        why = [f"{name} ({unused[name]})" if name in unused else name for name in columns]
        message = f"holds neither texts to judge nor labels that people gave{with_scores(look)}"
        raise SetupError(Problem(message, source.path, None, "annotators", some(why)))
    raise_any([
        Problem(unused.get(name, "is no column of labels"), source.path, None, "annotators", name)
        for name in hints.annotators
        if name not in metrics
    ])  # fmt: skip
    blank = "text" in roles and 0 in columns[roles["text"]].codes
    people, judges = {"": {name: name for name in metrics}}, dict[str, dict[str, str]]()
    if not {"annotator", "metric"} & roles.keys():
        short = [name for name in columns if len(name) <= _LONGEST_NAME]
        of_models = {
            name
            for name in short
            if name in hints.judge or is_like_a_program(name) or plain_name(name) == "judge"
        }
        long = [c for c, about in usable.items() if about.mean >= _LONG_TEXT]
        about_one = {c for c in columns if any(text in c and text != c for text in long)}
        judged = {plain_name(c) for c in chain(about_one, *(other.columns for other in others))}
        of_models -= {*roles.values(), *pair, *hints.annotators, *about_one}
        made = {name: labels for name, labels in metrics.items() if name not in of_models}
        made, people = _people(made, hints.annotators, judged)
        _check_few(made, source)
        if judges := _judges({name: columns[name] for name in of_models}, made, people):
            metrics = made
            read = {column for own in judges.values() for column in own.values()}
            unused = {name: why for name, why in unused.items() if name not in read}
            unused |= {c: NOT_THEIRS for c in usable if c in of_models - read and c not in unused}
        else:
            metrics, people = _people(metrics, hints.annotators, judged)
        alone = people.get("", {})
        if crowd := {m: c for m, c in alone.items() if columns[c].of_crowd}:
            rest = {m: c for m, c in alone.items() if m not in crowd}
            people = {CROWD: crowd, **people, "": rest}
        metrics, summed = _without_summaries(metrics, people)
        unused |= summed
    _check_few(metrics, source)
    strays = {}
    for metric, labels in metrics.items():
        own = [roles["label"]] if "metric" in roles else (c.get(metric) for c in people.values())
        texts = chain.from_iterable(columns[c].strays for c in own if c)
        if some_strays := tuple(
            dict.fromkeys(t for t in texts if normalise(t) not in _normal(labels))
        ):
            strays[metric] = some_strays
    return Guess(
        source, roles, by_content, metrics, people, unused, look, key, blank, judges, strays, pair
    )


def pair_of_columns(columns: Mapping[str, _Column]) -> tuple[str, ...]:
    """The two columns that name the responses which each row compares; none where there are not."""
    plain = {plain_name(name): name for name in columns}
    for first, second in PAIRS:
        if {first, second} <= plain.keys():
            pair = plain[first], plain[second]
            return pair if max(columns[c].longest for c in pair) <= LONGEST_LABEL else ()
    return ()


def is_like_a_program(column: str) -> bool:
    """True where a column of labels is named like a language model or another program."""
    return is_like_a_model(column) or bool(_PROGRAM.search(plain_name(column)))


def _check_few(metrics: Mapping[str, Sequence[str]], source: FileSpec) -> None:
    """Raise SetupError where there are more metrics than anybody labels by."""
    if len(metrics) > _MOST_METRICS:
        message = "holds more columns or names of metrics than a rubric has: describe it by hand"
        allowed = f"at most {_MOST_METRICS} metrics; the labels of one, by many people, are in "
        allowed += "columns such as rating_1, rating_2, or in rows: item_id, annotator, label"
        raise SetupError(Problem(message, source.path, None, "", some(metrics), allowed))


def _judges(
    columns: Mapping[str, _Column],
    metrics: Mapping[str, tuple[str, ...]],
    people: Mapping[str, Mapping[str, str]],
) -> dict[str, dict[str, str]]:
    """By the judge's name the column of its verdicts on each metric: of columns of which the cells
    hold two labels of one, which is the metric that they are named by, else that of most
    annotators."""
    found = {}
    spelt = {metric: _normal(labels) for metric, labels in metrics.items()}
    made_by = Counter(metric for own in people.values() for metric in own)
    for name, about in sorted(columns.items()):
        fits = [
            metric
            for metric, labels in spelt.items()
            if len((said := _meant(about, labels)) & labels) > 1 or said <= labels
        ]
        if fits:
            found[name] = metric_in(name, fits) or max(fits, key=made_by.__getitem__)
    return dict(by_judge(found.items()))


def metric_in(column: str, metrics: Iterable[str]) -> str:
    """The metric that a column's head names, the longest of several; empty where it names none."""
    head, words = f"_{plain_name(column)}_", {metric: plain_name(metric) for metric in metrics}
    named = [m for m, own in words.items() if (own if len(own) > 3 else f"_{own}_") in head]
    return max(named, key=lambda metric: len(words[metric]), default="")


def by_judge(columns: Iterable[tuple[str, str]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Judges, and the column of each metric, of columns of verdicts on one metric each. The metric
    is no part of a judge's name, unless two columns would then be the same."""
    found: dict[str, list[tuple[str, str]]] = {}
    for column, metric in columns:
        found.setdefault(judge_of(column, metric), []).append((metric, column))
    for judge, own in found.items():
        named = all(judge_of(column) != judge for _, column in own)
        if not own[1:] or (named and len(dict(own)) == len(own)):
            yield judge, dict(own)
        else:
            yield from ((judge_of(column), {metric: column}) for metric, column in own)


def judge_of(column: str, metric: str = "") -> str:
    """The judge whose verdicts on a metric a column holds, by its head."""
    word = r"[\W_]+".join(re.findall(r"[^\W_]+", metric))
    form = rf"(?<![^\W_]){word}[\W_]+|[\W_]+{word}[\W_]*$"
    bare = re.sub(form, "", column.strip(), flags=re.I) if word else ""
    named = bare if is_like_a_program(bare) or may_be_a_model(bare) else column.strip()
    return as_name(_VERDICT.sub("", named))[:64] or "judge"


def read_as(texts: Iterable[str], labels: Collection[str]) -> dict[str, str]:
    """The label that each text unmistakably means, of those that are none: without the number
    before a label, with other signs between its words, or as another yes or no.

    >>> read_as(["1", "N", "maybe"], ["Yes", "no"])
    {'1': 'Yes', 'N': 'no'}
    >>> read_as(["Full compliance"], ["1_full_compliance", "2_full_refusal"])
    {'Full compliance': '1_full_compliance'}
    """
    digits = len(labels) == 2 and {_meaning(label, True) for label in labels} == {"yes", "no"}
    meant: dict[str, list[str]] = {}
    for label in labels:
        meant.setdefault(_meaning(label, digits), []).append(label)
    known, found = _normal(labels), {}
    for text in texts:
        fits = meant.get(_meaning(text, digits), []) if plain_label(text) not in known else []
        if len(fits) == 1 and len({_number(text), _number(fits[0])} - {""}) < 2:
            found[text] = fits[0]
    return found


def _meaning(text: str, digits: bool) -> str:
    bare = re.sub(r"[\s_]+|(?<=\w)-(?=\w)", " ", _NUMBER.sub("", plain_label(text))).strip()
    return bare if bare.isdigit() and not digits else _YES_NO.get(bare, bare)


def _number(text: str) -> str:
    found = _NUMBER.match(text.strip())
    return found[1] if found else ""


def as_name(text: str) -> str:
    """The text with what no judge's name may hold replaced; empty where nothing is left."""
    return re.sub("[^A-Za-z0-9._-]+", "-", text).strip("-._")


def _meant(about: _Column, labels: Collection[str]) -> set[str]:
    """The different values of a column, as the labels that they mean."""
    other = read_as(about.often, labels)
    return _normal(other.get(text, text) for text in about.often)


def _normal(labels: Iterable[str]) -> set[str]:
    return set(map(plain_label, labels))


def plain_label(text: str) -> str:
    """A label as its spellings are compared: `2.0` is the code 2 beside blank cells, `2,5` is 2.5
    in half of Europe."""
    return normalise(re.sub(r"\A(-?\d+)\.0+\Z", r"\1", with_point(text)))


def _table(source: FileSpec, findings: Findings, frame: Any = None) -> DataTable:
    if frame is None:
        table = open_table(Path(source.path), findings, source)
    else:
        table = frame_table(frame, source.path, findings)
    if table is None:
        raise SetupError(findings.errors)
    return table


def _rows(table: DataTable) -> Iterator[dict[str, str]]:
    """The cells of each row that are not blank, by column."""
    for row in table.rows:
        if row.sound:
            texts = (
                (name, _text(cell)) for name, cell in zip(table.columns, row.cells, strict=False)
            )
            yield {name: text for name, text in texts if name and text}


def _text(cell: Cell) -> str:
    if isinstance(cell, Nested):
        return "{}"
    if isinstance(cell, tuple):
        return str(list(cell))
    return clean(cell)[0] if cell else ""


def plain_name(name: str) -> str:
    """The words of a column's name in lower case, joined by `_`."""
    words = re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name)  # AnswerID: answer_id
    return plain_id(words)


def roles_by_name(
    columns: Iterable[str], names: Mapping[str, Sequence[str]] = NAMES
) -> dict[str, str]:
    """The nouns that columns are named by; `metric`, where it is among them, and `label` only
    together."""
    plain = {name: plain_name(name) for name in columns}
    roles: dict[str, str] = {}
    for role, spellings in names.items():
        for wanted in spellings:
            free = [c for c in plain if plain[c] == wanted and c not in roles.values()]
            if free and role not in roles:
                roles[role] = free[0]
    if "metric" in names and not {"metric", "label"} <= roles.keys():
        roles.pop("metric", None)
        roles.pop("label", None)
    return roles


def _full_question(columns: Mapping[str, _Column], roles: dict[str, str]) -> None:
    """Take a column of texts in nearly all rows for the questions, where the one that is named so
    stands behind it and is often blank, as the input to a task; mostly blank, it is no question."""
    named = roles.get("question", "")
    rows = len(columns[named].codes) if named else 0
    if named and columns[named].filled < _NEARLY_ALL * rows:
        before = [c for c in takewhile(named.__ne__, columns) if c not in roles.values()]
        long = (c for c in before if columns[c].mean >= _LONG_TEXT and columns[c].spaced)
        full = (c for c in long if columns[c].filled >= _NEARLY_ALL * rows)
        found = next(full, named if 2 * columns[named].filled >= rows else "")
        roles |= {"question": found}
        if not found:
            del roles["question"]


def _asked(columns: Mapping[str, _Column], roles: Mapping[str, str]) -> str:
    """The column of texts whose name has the word for a question, best as its last: Patient
    question; empty where none has."""
    words = {
        c: plain_name(c).split("_")
        for c, about in columns.items()
        if c not in roles.values() and about.spaced and about.why_no_labels
        if about.filled >= _NEARLY_ALL * len(about.codes)
    }
    fits = [c for c, own in words.items() if _ASKED & {*own} and not _NOT_ASKED & {*own}]
    return max(fits, key=lambda c: words[c][-1] in _ASKED, default="")


def _texts_by_content(columns: Mapping[str, _Column], roles: dict[str, str]) -> None:
    """The longest texts are the answers; of two, those that end in question marks, or else come
    first, are the questions."""
    if "text" in roles:
        return
    taken = set(roles.values())
    long = [
        c
        for c, about in columns.items()
        if about.mean >= _LONG_TEXT and about.spaced and c not in taken
    ]
    longest = sorted(long, key=lambda c: -columns[c].mean)[: 1 if "question" in roles else 2]
    if len(longest) == 2:
        places = list(columns)

        def asks(c: str) -> tuple[float, int]:
            return -columns[c].questions / columns[c].filled, places.index(c)

        roles["question"], roles["text"] = sorted(longest, key=asks)
    elif longest:
        roles["text"] = longest[0]


def _combinations(columns: Mapping[str, _Column], *names: str) -> int:
    """The number of different combinations of the cells of some columns, blank ones included."""
    mixed = np.zeros(len(next(iter(columns.values())).codes), dtype=np.uint64)
    for name in names:
        mixed = (mixed ^ np.array(columns[name].codes).view(np.uint64)) * _MIX
    return len(np.unique(mixed))


def _ids(columns: Mapping[str, _Column], roles: Mapping[str, str]) -> str:
    """The first column of short values without spaces that is another in each row, or else for
    each answer."""
    free = [c for c in _free(columns, roles) if not columns[c].spaced]
    free = [c for c in free if columns[c].longest <= _LONGEST_ID]
    of_rows = [c for c in free if columns[c].different == len(columns[c].codes)]
    if of_rows or "text" not in roles:
        return next(iter(of_rows), "")
    about = [roles[r] for r in ("question", "text") if r in roles]
    answers = _combinations(columns, *about)
    return next(
        (
            c
            for c in free
            if _combinations(columns, c) == _combinations(columns, c, about[-1]) == answers
        ),
        "",
    )


def replying(rows: Sequence[Mapping[str, str]], column: str, rubric: Rubric) -> str:
    """The number of replies that give a label, in words; empty where less than half do."""
    alone = len(rubric.metrics) == 1
    cells = [row[column] for row in rows if column in row]
    n = sum(any(metric.said_in(text, alone) for metric in rubric.metrics) for text in cells)
    rest = ", the others count as unparsed" * (n < len(cells))
    many = n and n >= MOSTLY * len(cells)
    return f"{n:,} of {len(cells):,} replies give a label{rest}" if many else ""


def gives_labels(texts: Iterable[str], labels: Iterable[Sequence[str]]) -> bool:
    """True where texts, beside plain labels, mostly are replies that give one of them."""
    for rubric in (Rubric.from_labels({"label": own}) for own in dict.fromkeys(labels)):
        known = _normal(rubric.metrics[0].label_texts)
        odd = [text for text in texts if plain_label(text) not in known]
        said = sum(rubric.metrics[0].said_in(text) is not None for text in odd)
        if odd and said >= MOSTLY * len(odd):
            return True
    return False


def _key(
    look: Look, pair: tuple[str, ...], wanted: tuple[str, ...], others: Sequence[Look],
    headed: Sequence[str],
) -> tuple[tuple[str, ...], str]:  # fmt: skip
    """The columns by which an item is known, none where each row is one, and the column of the
    annotators where no name says it.

    An item has one text. It has one row, but for annotators and metrics; without other tables each
    row is one where people have `headed` columns. Columns that the `others` have too come first,
    and tell the rows of these apart. Raises SetupError where none will do.
    """
    columns, roles = look.usable, look.roles
    alike = {c: there for c, there in _alike(look, others).items() if c != roles.get("metric")}
    if wanted and all(name in columns for name in wanted):
        who = "" if "annotator" in roles else _annotator(columns, roles, wanted)
        rows = len(columns[wanted[0]].codes)
        return wanted, who if _combinations(columns, *wanted) <= _MOST_ITEMS * rows else ""
    about = [roles[r] for r in _OF_ITEMS if r in roles] if "text" in roles else []
    by = [roles[r] for r in ("annotator", "metric") if r in roles]
    rows = len(next(iter(columns.values())).codes) if columns else 0
    count = partial(_combinations, columns)
    named = _candidates(columns, roles, pair)
    of_all = _shared_key(columns, alike, pair, others)
    keys = [key for key in (*named, of_all) if key and count(*key, *about) == count(*key)]
    keys.sort(key=lambda key: not alike.keys() >= {*key})
    for key in keys:
        least = rows if key != of_all else _NEARLY_ALL * rows
        if count(*key) >= least or (by and count(*key, *by) >= least):
            return key, ""
    programs = filter(is_like_a_program, columns)
    apart = {**roles, **{c: c for c in (*alike, *headed, *programs)}}  # of items, and of nobody
    several = [key for key in keys if count(*key, *by) <= _MOST_ITEMS * rows]
    for key in () if "annotator" in roles else several:
        if who := _annotator(columns, apart, (*key, *by)):
            return key, who
    if by and not pair and keys and ("annotator" in roles or keys[0] not in several):
        return keys[0], ""  # with rows that repeat others, or contradict them
    near = bool(headed) or any(count(*key) >= _NEARLY_ALL * rows for key in keys)
    alone = near and not (by or others)
    if () in named or alone:
        return (), ""
    if "item_id" in roles:
        message = "several rows are about the same item, and no column says who labelled it"
        key = (roles["item_id"], *by)
        few = [c for c in _free(columns, apart) if 2 * columns[c].different <= columns[c].filled]
        n = {c: count(*key, c) for c in few if count(*key, c) > count(*key)}
        best = max(n, key=n.__getitem__, default="COLUMN")
        allowed = (
            f"a column {', '.join(NAMES['annotator'][:3])}, … or the one that holds their names"
        )
        allowed += f", such as --annotators {best!r} (in Python columns={{'annotators': {best!r}}})"
        raise SetupError(
            Problem(message, look.source.path, 1, "annotators", some(columns), allowed)
        )
    message = "no column says which item a row is about"
    allowed = _likeliest(columns, [*alike, *_free(columns, roles)])
    raise SetupError(Problem(message, look.source.path, 1, "item", some(columns), allowed))


def _likeliest(columns: Mapping[str, _Column], names: Sequence[str]) -> str:
    """The option that names the column which most likely says what a row is about."""
    ids = [c for c in names if columns[c].why_no_labels and not columns[c].holds_scores]
    best = max(ids, key=lambda c: columns[c].different, default="")
    such = f", such as --item {best!r} (in Python columns={{'item': {best!r}}})" if best else ""
    return f"a column of ids{such}"


def _alike(look: Look, others: Sequence[Look]) -> dict[str, list[str]]:
    """The columns that every other table has too, each with its columns there: of the same name and
    some of the same cells, or of the same ids."""
    found = {}
    for name, about in look.usable.items() if others else ():
        least = _SAME_IDS if about.different > MOST_LABELS else 1.0
        there = [other.same(look, name, least) for other in others]
        if all(there):
            found[name] = there
    return found


def _shared_key(
    columns: Mapping[str, _Column], alike: Mapping[str, Sequence[str]], pair: Sequence[str],
    others: Sequence[Look],
) -> tuple[str, ...]:  # fmt: skip
    """The fewest columns that tell the rows of every other table apart, but for its judges and
    metrics; empty where none do, or a `pair` is not in all tables."""

    def likely(c: str) -> tuple[bool, bool, int]:
        about = columns[c]
        return not about.why_no_labels, about.longest > _LONGEST_ID, -about.different

    free = sorted((c for c in alike if c not in pair), key=likely)
    by = [
        {other.roles.get(r, "") for r in ("annotator", "metric", "system")}
        - {"", *(there[i] for there in alike.values())}
        for i, other in enumerate(others)
    ]
    for size in range(1, len(free) + 1) if alike.keys() >= {*pair} else ():
        for some_columns in combinations(free[:_MOST_KEYS], size):
            key = (*some_columns, *pair)
            if all(
                other.tells_apart([*(alike[c][i] for c in key), *by[i]])
                for i, other in enumerate(others)
            ):
                return key
    return ()


def _candidates(
    columns: Mapping[str, _Column], roles: Mapping[str, str], pair: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """The columns by which items may be known, the likeliest first."""
    if pair:  # of a question or an item; there may be several turns
        first = next((roles[r] for r in ("group", "item_id", "question") if r in roles), None)
        free = [c for c in _free(columns, roles) if c not in pair and columns[c].repeats]
        return [(first, *pair), *((first, *pair, c) for c in free)] if first else []
    ids = tuple(roles[r] for r in ("item_id", "system") if r in roles)
    found = [ids[:1], ids] if "item_id" in roles else []
    if "item_id" not in roles and "text" not in roles and "group" in roles:
        both = tuple(roles[r] for r in ("group", "system") if r in roles)
        count, own = partial(_combinations, columns), _combinations(columns, *both)
        like = [c for c in columns if plain_name(c) in NAMES["group"] and c not in both]
        same = [c for c in like if both[1:] and own == count(c) == count(c, *both)]
        found += [(same[0],) if same else both]
    if "text" in roles:
        found += [tuple(roles[r] for r in ("question", "text", "system") if r in roles), ()]
    elif "item_id" not in roles and "question" in roles:
        found += [tuple(roles[r] for r in ("question", "system") if r in roles)]
    return found


def _annotator(columns: Mapping[str, _Column], roles: Mapping[str, str], key: Sequence[str]) -> str:
    """The column of fewest values that differ within every item; empty where there is none."""
    found = [
        c
        for c in _free(columns, roles)
        if 2 * columns[c].different <= columns[c].filled  # people label more than one item
        and _combinations(columns, c, *key) == columns[c].filled == len(columns[c].codes)
    ]
    return min(found, key=lambda c: columns[c].different, default="")


def _system(columns: Mapping[str, _Column], roles: Mapping[str, str]) -> str:
    """The column of systems where questions have several answers: the first that tells these
    apart, with the same values for several questions."""
    asked, text = roles.get("question", roles.get("group")), roles.get("text")
    if asked is None or text is None:
        return ""
    count = partial(_combinations, columns)
    answers = count(asked, text)
    if answers == count(asked):
        return ""
    return next(
        (
            c
            for c in _free(columns, roles)
            if columns[c].filled == len(columns[c].codes)
            and answers == count(asked, text, c) == count(asked, c) > columns[c].different
        ),
        "",
    )


def _free(columns: Mapping[str, _Column], roles: Mapping[str, str]) -> list[str]:
    """Columns of short values that are nothing else yet, without those named as labels are."""
    return [
        name
        for name, about in columns.items()
        if name not in roles.values()
        and about.longest <= LONGEST_LABEL
        and plain_name(name) not in NAMES["label"]
    ]


def _metrics(
    look: Look, pair: tuple[str, ...]
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The labels of each metric, and why the other columns are not read."""
    source, columns, roles = look.source, look.columns, look.roles
    rest = {c: about for c, about in columns.items() if c not in (*roles.values(), *pair)}
    if "metric" in roles:
        spelt: dict[str, str] = {}
        found: dict[str, dict[str, str]] = {}
        for cells in look.rows():
            metric, label = cells.get(roles["metric"]), cells.get(roles["label"])
            if normalise(label or "") in _NO_LABELS:
                continue
            if metric and label and not normalise(label):
                raise SetupError(
                    Problem(
                        "a label needs a letter or a digit",
                        source.path,
                        field=roles["label"],
                        found=label,
                    )
                )
            if metric and label:
                first = spelt.setdefault(normalise(metric), metric)
                found.setdefault(first, {}).setdefault(plain_label(label), with_point(label))
        metrics = {metric: ordered(labels.values()) for metric, labels in found.items()}
        return metrics, dict.fromkeys(rest, "the labels are in another column")
    why = {c: about.why_no_labels for c, about in rest.items()}
    named = [c for c in rest if plain_name(c) in _DESCRIBES]
    marks = [
        c for c in named if plain_name(c) == "note" and all(map(_MARK.fullmatch, rest[c].often))
    ]
    why |= {c: "its name says that it is no label" for c in named if c not in marks}
    stem = _NUMBERED.sub("", text := roles.get("text", ""))
    why |= {c: _SECOND for c in rest if stem != text and _NUMBERED.sub("", c) == stem}
    metrics = {c: about.labels() for c, about in rest.items() if not why[c]}
    return metrics, {c: reason for c, reason in why.items() if reason}


def _people(
    labels: Mapping[str, tuple[str, ...]],
    named: Sequence[str] = (),
    judged: Collection[str] = (),
) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, str]]]:
    """Metrics, and the column of each by annotator, where columns are named by both: `tone_rater1`
    and `tone_rater2`, `rater1_tone`, `rating_1`, or by surnames alone. Their labels are those of
    all columns. The columns `named` are annotators of one metric."""
    found: dict[str, dict[str, str]] = {}
    for name in () if named else (name for name in labels if len(name) <= _LONGEST_NAME):
        match = next(filter(None, (form.fullmatch(name) for form in _BY_PEOPLE)), None)
        if match and match["who"]:
            who = f"annotator-{match['who']}" if match["who"].isdigit() else match["who"]
            found.setdefault(match["metric"] or "Label", {})[who] = name
    several = {metric: people for metric, people in found.items() if len(people) > 1}
    left = [n for n in labels if all(n not in people.values() for people in several.values())]
    for group in [] if named else _same_labels(labels, left):
        if not judged or not {*map(plain_name, group)} & {*judged}:
            metric, who = _by_names(group)
            several.setdefault(metric, {}).update(zip(who, group, strict=True))
    if named:
        metric, who = _by_names(named)
        names = (one or column for one, column in zip(who, named, strict=True))
        several[metric] = dict(zip(names, named, strict=True))
        labels = {name: labels[name] for name in named}
    spelt: dict[str, dict[str, str]] = {}
    columns: dict[str, dict[str, str]] = {}
    places = {name: (metric, who) for metric, p in several.items() for who, name in p.items()}
    for name, texts in labels.items():
        metric, one = places.get(name, (name, ""))
        spelt.setdefault(metric, {}).update((normalise(text), text) for text in texts)
        columns.setdefault(one, {})[metric] = name
    return {metric: ordered(known.values()) for metric, known in spelt.items()}, columns


def _same_labels(labels: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> list[list[str]]:
    """Groups of columns that hold the same labels and are headed with what may be people."""
    groups: list[tuple[set[str], list[str]]] = []
    for name in names if len(names) <= _MOST_METRICS else ():
        own = _normal(labels[name])
        like = (g for g in groups if len(own & g[0]) >= max(2, len(own) - 1))
        known, group = next(like, (set[str](), list[str]()))
        if not group:
            groups.append((known, group))
        known |= own
        group.append(name)
    apart: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for place, (_, group) in enumerate(groups):  # of one metric each, where names say several
        for name in (n for n in group if not _SUMMARY.search(plain_name(n))):
            of = tuple(w for w in _words(name) if _is_quality(w) and not _is_role(w))
            apart.setdefault((place, of), []).append(name)
    return [group for group in apart.values() if len(group) > 1 and all(_by_names(group)[1])]


def _words(name: str) -> list[str]:
    return re.split(r"[ _:/()-]+|(?<=\w\w)[.](?=\w\w)", name.strip(" )"))


def _by_names(columns: Sequence[str]) -> tuple[str, list[str]]:
    """The metric that columns of annotators share in their names, and whose each is: empty where
    what is left of a column's name is nobody's."""
    words = [*map(_words, columns)]
    shared = [w for w in words[0] if all(w in other for other in words)]
    same = [w for w in shared if not _TITLE.fullmatch(w)]
    rest = [" ".join(w for w in own if w not in same) for own in words]
    both = [(w, w.replace(" ", "-")) for w in rest]  # a surname keeps its hyphen
    rest = [double if double in c else w for c, (w, double) in zip(columns, both, strict=True)]
    if same and all(map(str.isdecimal, rest)) and not any(map(_is_quality, same)):
        return "Label", list(columns)  # people with one name and numbers
    title = next((w for w in same if not _is_role(w)), "Label")
    for last in (w for w in reversed(same) if w != title and not _is_role(w)):  # Tone-of-voice
        whole = columns[0][columns[0].find(title) : columns[0].find(last) + len(last)]
        if {*_words(whole)} <= {*same}:
            title = whole
            break
    who = [w if _PERSON_NAME.fullmatch(w) and not _is_quality(w) else "" for w in rest]
    return title, who


def _is_role(word: str) -> bool:
    return plain_name(word) in (*NAMES["label"], *NAMES["annotator"], "labels", "by", "of")


def _is_quality(text: str) -> bool:
    """True where a word of the text is what answers are judged by, or what describes them."""
    words = plain_name(text).split("_")
    return any(_QUALITY.fullmatch(w.rstrip("0123456789")) or w in _DESCRIBES for w in words)


def _of_people(look: Look) -> list[str]:
    """The columns that are headed by people and by what they judged: Tone Ann, Tone Ben."""
    labels = {c: look.columns[c].labels() for c in look.like_labels if not is_like_a_program(c)}
    groups = _same_labels(labels, [*labels])
    return [column for group in groups if _by_names(group)[0] != "Label" for column in group]


def _without_summaries(
    metrics: Mapping[str, tuple[str, ...]], people: dict[str, dict[str, str]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The metrics without columns that sum up the labels of annotators beside them, such as
    `majority_label`, which leave `people`; and why these are not read."""
    summed: dict[str, str] = {}
    of_people = {
        text for who, own in people.items() if who for m in own for text in _normal(metrics[m])
    }
    for metric in list(people.get("", ())) if len(people) > 1 else ():
        sums = _SUMMARY.search(plain_name(metric)) and of_people & _normal(metrics[metric])
        summed[metric] = "it seems to sum up the labels of the annotators"
        if not sums:
            summed[metric] = NOBODYS
        del people[""][metric]
    if not people.get("", True):
        del people[""]
    return {m: labels for m, labels in metrics.items() if m not in summed}, summed


def stem(path: Path) -> str:
    """A file's name without its endings, the annotator where no column names one."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem
