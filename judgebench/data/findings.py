"""The problems found while reading: every error, and warnings counted rather than repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache

from judgebench.errors import Problem, shorten, some

# A fault that could silently change a number is an error: nothing is loaded.
ERRORS = frozenset((
    "bad_byte", "bad_conversation", "bad_criterion", "bad_list", "bad_pair", "bad_probability",
    "bad_spec", "bad_status", "blank_annotator", "blank_id", "blank_metric", "conflicting_item",
    "conflicting_label", "conflicting_verdict",
    "control_character", "duplicate_column", "duplicate_key", "empty_text", "id_collision",
    "malformed", "missing_column", "nested_value", "no_answers", "no_rows", "ragged_row",
    "silver_label", "spreadsheet_label", "unknown_column", "unknown_format", "unknown_item",
    "unknown_judge", "unknown_label", "unknown_metric", "unreadable_file", "unrecognised_file",
))  # fmt: skip

REPEATED = "repeated_answer"
DERIVED = "derived_preference"

# What can safely be corrected or left out is a warning, counted and reported.
WARNINGS = frozenset((
    "blank_label", "blank_question", "blank_row", "blank_verdict", "byte_order_mark",
    DERIVED, "duplicate_item", "duplicate_label", "empty_answer", "float_label", "ignored_label",
    "row_above_header",
    "invisible_characters", "label_without_item", "later_repeat", "mapped_blank", REPEATED,
    "skipped_item", "slot_name", "spreadsheet_text", "stray_quote", "stripped_space",
    "unchecked_items", "unnamed_column", "unread_verdict", "unused_column",
))  # fmt: skip

# After one of these, rows are missing, so that it is unknown which ids exist.
_LOSES_ROWS = frozenset((
    "bad_spec", "duplicate_column", "malformed", "missing_column", "unknown_column",
    "unknown_format", "unreadable_file", "unrecognised_file",
))  # fmt: skip

_LISTED = 100  # errors of one kind in one file that are listed; the rest is counted
_MORE = "more such errors"
NEAR_AMONG = 5_000  # names among which the nearest is looked up
_LONGEST_NAME = 200  # characters
_FOUND = 3  # things found that one line on many rows names
_LONGEST_FOUND = 30  # characters of one of them
_RANGES = 4  # stretches of rows that a warning names


@dataclass
class _Count:
    """The number of times that a warning occurred, and the rows."""

    times: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)
    more: bool = False
    found: dict[str, None] = field(default_factory=dict)

    def add(self, line: int | None, found: str = "") -> None:
        self.times += 1
        if found and len(self.found) < _FOUND:
            self.found[found] = None
        if line is None or self.more:
            return
        if self.ranges and self.ranges[-1][0] <= line <= self.ranges[-1][1] + 1:
            self.ranges[-1] = (self.ranges[-1][0], max(line, self.ranges[-1][1]))
        elif len(self.ranges) < _RANGES:
            self.ranges.append((line, line))
        else:
            self.more = True

    @property
    def rows(self) -> str:
        """The rows in words: `rows 2-3, 9`."""
        rows = [str(a) if a == b else f"{a}-{b}" for a, b in self.ranges]
        rows += ["…"] if self.more else []
        word = "row" if len(rows) == 1 and self.ranges[0][0] == self.ranges[0][1] else "rows"
        return f"{word} {', '.join(rows)}"

    def __str__(self) -> str:
        return f"{self.times:,} time{'s' * (self.times > 1)}, {self.rows}"


class Findings:
    """Collects problems; whether one is an error follows from its kind alone."""

    def __init__(self) -> None:
        self._errors: list[Problem] = []
        self._error_counts: dict[tuple[str, str], int] = {}
        self._last_line: dict[tuple[str, str], int | None] = {}
        self._warnings: dict[tuple[str, str, str, str, str], _Count] = {}

    def add(
        self, kind: str, message: str, at: tuple[str, int | None], field: str = "",
        found: str | None = None, allowed: str = "",
    ) -> None:  # fmt: skip
        """Note one problem at a file and row. `found` is shown quoted and shortened; a warning
        shows the first few."""
        (file, line), shown = at, "" if found is None else shorten(found)
        if kind in WARNINGS:
            key_of_all = (kind, file, field, message, allowed)
            self._warnings.setdefault(key_of_all, _Count()).add(
                line, _brief(shown) if found else ""
            )
            return
        assert kind in ERRORS, kind
        key = (kind, file)
        self._error_counts[key] = count = self._error_counts.get(key, 0) + 1
        self._last_line[key] = line
        if count <= _LISTED:
            self._errors.append(Problem(message, file, line, field, shown, allowed, kind))

    def extend(self, kind: str, problems: Iterable[Problem]) -> None:
        """Note errors that are already worded."""
        for problem in problems:
            self._error_counts[kind, problem.file] = 1
            self._errors.append(replace(problem, kind=kind))

    def has(self, file: str, *kinds: str) -> bool:
        """True where the file has an error of one of these kinds."""
        return any((kind, file) in self._error_counts for kind in kinds)

    def times(self, kind: str) -> int:
        """The number of warnings of this kind in all files."""
        return sum(count.times for (k, *_), count in self._warnings.items() if k == kind)

    @property
    def lost_rows(self) -> bool:
        """True where some rows could not be read at all."""
        return any(kind in _LOSES_ROWS for kind, _ in self._error_counts)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Every error; beyond a hundred of one kind in one file, one that counts the rest."""
        rest = []
        for (kind, file), count in self._error_counts.items():
            if count > _LISTED:
                last = self._last_line[kind, file]
                where = f", the last in row {last}" if last is not None else ""
                said = f"and {count - _LISTED:,} {_MORE}, {count:,} in all{where}"
                rest.append(Problem(said, file, kind=kind))
        return (*self._errors, *rest)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """One for each kind, file and column, with its count and rows; `line` is the first. Beyond
        a hundred of one kind in one file, one that counts the rest."""
        found, listed = [], Counter[tuple[str, str]]()
        for (kind, file, column, message, allowed), count in self._warnings.items():
            listed[kind, file] += 1
            if listed[kind, file] <= _LISTED:
                line = count.ranges[0][0] if count.ranges else None
                counted = f"{message} ({count})" if count.ranges else message
                values = ", ".join(count.found)
                found.append(Problem(counted, file, line, column, values, allowed, kind))
        for (kind, file), times in listed.items():
            if times > _LISTED:
                message = f"and {times - _LISTED:,} more such warnings, {times:,} in all"
                found.append(Problem(message, file, kind=kind))
        return tuple(found)


def counted_once(problems: Iterable[Problem]) -> list[Problem]:
    """Problems that differ in row and in what was found alone, as one: at the first row, with how
    often, in which rows, and the first things found.

    >>> few = [Problem("is no split", "t.csv", line, "part", f"'{line}'") for line in (2, 3, 9)]
    >>> print(*counted_once(few))
    t.csv:2: part: is no split (3 times, rows 2-3, 9); found '2', '3', '9'
    """
    alike: dict[Problem, list[Problem]] = {}
    counts: dict[Problem, _Count] = {}
    for problem in dict.fromkeys(problems):
        key = replace(problem, line=None, found="")
        alike.setdefault(key, []).append(problem)
        counts.setdefault(key, _Count()).add(problem.line)
    told = {(key.kind, key.file) for key in alike if _MORE in key.message}
    where = {k: n.rows if (k.kind, k.file) in told else str(n) for k, n in counts.items()}
    return [
        first if not others or first.line is None else replace(
            first, message=f"{first.message} ({where[key]})",
            found=some(dict.fromkeys(_brief(p.found) for p in (first, *others) if p.found), _FOUND),
        )
        for key, (first, *others) in alike.items()
    ]  # fmt: skip


def _brief(found: str) -> str:
    half = _LONGEST_FOUND // 2
    return found if len(found) <= _LONGEST_FOUND else f"{found[:half]}…{found[1 - half :]}"


def nearest(name: str, options: Sequence[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'X'?` for the option spelt most like `name`, else nothing: also where either
    is too long to be a slip of the pen, or the options are too many to be compared."""
    if len(name) > _LONGEST_NAME or len(options) > NEAR_AMONG:
        return ""
    name, letters = name.casefold(), _letters(name)
    folded = {}
    for option in options:
        # No letter that only one of them has can match: it is quicker to count these first.
        lone = len(letters ^ _letters(option))
        if lone <= (1 - cutoff) * (len(name) + len(option)) and len(option) <= _LONGEST_NAME:
            folded[option.casefold()] = option
    near = get_close_matches(name, folded, n=1, cutoff=cutoff)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""


@lru_cache(maxsize=1024)
def _letters(name: str) -> frozenset[str]:
    return frozenset(name.casefold())
