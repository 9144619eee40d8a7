"""The problems found while reading: every error, and warnings counted rather than repeated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from judgebench.errors import Problem, shorten

# A fault that could silently change a number is an error: nothing is loaded.
ERRORS = frozenset((
    "bad_conversation", "bad_criterion", "bad_list", "bad_pair", "bad_probability",
    "bad_spec", "bad_status", "blank_annotator", "blank_id", "blank_metric", "conflicting_item",
    "conflicting_label", "conflicting_verdict",
    "duplicate_column", "id_collision",
    "malformed", "missing_column", "no_answers", "no_rows", "ragged_row",
    "silver_label", "unknown_item",
    "unknown_label", "unknown_metric", "unreadable_file", "unrecognised_file",
))  # fmt: skip

REPEATED = "repeated_answer"
DERIVED = "derived_preference"

# What can safely be corrected or left out is a warning, counted and reported.
WARNINGS = frozenset((
    "blank_group", "blank_label", "blank_row", "blank_verdict", DERIVED, "duplicate_item",
    "duplicate_label", "empty_answer", "encoding", "ignored_label", "invisible_characters",
    "one_person", "replaced_character", REPEATED,
    "row_above_header", "slot_name", "spreadsheet_text", "stripped_space",
    "unnamed_column", "unread_verdict", "unused_column",
))  # fmt: skip

# After one of these, rows are missing, so that it is unknown which ids exist.
_LOSES_ROWS = frozenset((
    "bad_spec", "duplicate_column", "malformed", "missing_column",
    "unreadable_file", "unrecognised_file",
))  # fmt: skip

_LISTED = 100  # errors of one kind in one file that are listed; the rest is counted
_FOUND = 3  # things found that one line on many rows names
_LONGEST_FOUND = 30  # characters of one of them
_RANGES = 4  # stretches of rows that a warning names

# What is usual where tables are not written for judgebench, and changes nothing.
USUAL = ("blank_label", "duplicate_item")


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
        text = ", ".join(rows)
        return f"row {text}" if text.isdecimal() else f"rows {text}"

    def on(self, problem: Problem) -> Problem:
        """The problem with how often and where it occurred, and the first things found."""
        found = ", ".join(self.found)
        if not self.ranges:
            return replace(problem, found=found)
        message = f"{problem.message} ({self.times:,} time{'s' * (self.times > 1)}, {self.rows})"
        return replace(problem, message=message, line=self.ranges[0][0], found=found)


class Findings:
    """Collects problems; whether one is an error follows from its kind alone."""

    def __init__(self) -> None:
        self._errors: list[Problem] = []
        # By kind and file: how many, and the row of the last.
        self._error_counts: dict[tuple[str, str], tuple[int, int | None]] = {}
        self._warnings: dict[Problem, _Count] = {}  # by the warning without rows

    def add(
        self, kind: str, message: str, at: tuple[str, int | None], field: str = "",
        found: str | None = None, allowed: str = "",
    ) -> None:  # fmt: skip
        """Note one problem at a file and row. `found` is shown quoted and shortened; a warning
        shows the first few."""
        (file, line), shown = at, "" if found is None else shorten(found)
        if kind in WARNINGS:
            warning = Problem(message, file, None, field, "", allowed, kind)
            self._warnings.setdefault(warning, _Count()).add(line, _brief(shown) if found else "")
            return
        assert kind in ERRORS, kind
        before, _ = self._error_counts.get((kind, file), (0, None))
        self._error_counts[kind, file] = before + 1, line
        if before < _LISTED:
            self._errors.append(Problem(message, file, line, field, shown, allowed, kind))

    def extend(self, kind: str, problems: Iterable[Problem]) -> None:
        """Note errors that are already worded."""
        for problem in problems:
            self._error_counts[kind, problem.file] = 1, None
            self._errors.append(replace(problem, kind=kind))

    @property
    def lost_rows(self) -> bool:
        """True where some rows could not be read at all."""
        return any(kind in _LOSES_ROWS for kind, _ in self._error_counts)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Every error; beyond a hundred of one kind in one file, one that counts the rest."""
        rest = []
        for (kind, file), (count, last) in self._error_counts.items():
            if count > _LISTED:
                where = f", the last in row {last}" if last is not None else ""
                said = f"and {count - _LISTED:,} more such errors, {count:,} in all{where}"
                rest.append(Problem(said, file, kind=kind))
        return (*self._errors, *rest)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """One for each kind, file and column, with its count and rows; `line` is the first."""
        return tuple(count.on(warning) for warning, count in self._warnings.items())


def counted_once(problems: Iterable[Problem]) -> list[Problem]:
    """Problems that differ in row and in what was found alone, as one: at the first row, with how
    often, in which rows, and the first things found.

    >>> few = [Problem("is no split", "t.csv", line, "part", f"'{line}'") for line in (2, 3, 9)]
    >>> print(*counted_once(few))
    t.csv:2: part: is no split (3 times, rows 2-3, 9); found '2', '3', '9'
    """
    first: dict[Problem, Problem] = {}
    counts: dict[Problem, _Count] = {}
    for problem in dict.fromkeys(problems):
        key = replace(problem, line=None, found="")
        first.setdefault(key, problem)
        counts.setdefault(key, _Count()).add(problem.line, _brief(problem.found))
    return [
        count.on(key) if count.times > 1 and count.ranges else first[key]
        for key, count in counts.items()
    ]


def _brief(found: str) -> str:
    half = _LONGEST_FOUND // 2
    return found if len(found) <= _LONGEST_FOUND else f"{found[:half]}…{found[1 - half :]}"
