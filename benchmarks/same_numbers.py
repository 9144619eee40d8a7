"""Whether two reports hold the same numbers: every value, limit and count, key by key.

    python benchmarks/same_numbers.py OLD/report NEW/report

Compares the CSV files of two report folders and prints every number that differs and every row
that stands on one side only; exits with 1 where there is any. A row is known by the columns that
both files have, those of the estimate left out. Reports of earlier versions are read, too: their
column `table` as `analysis`, their outcome DON'T as DO NOT USE, and numbers beside the estimate
(`place`, `place_low`, `place_high`) as rows of their own.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

NUMBERS = ("value", "low", "high", "n", "n_missing")
ENDS = {"value": "", "low": "_low", "high": "_high"}
NOT_KEYS = {*NUMBERS, "level", "method", "reason", "missing"}
Line = Mapping[str, str]
Found = Mapping[tuple[tuple[str, str], ...], list[tuple[str, ...]]]


def lines(path: Path) -> list[Line]:
    """The rows of a CSV file in today's columns."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8", newline="") as file:
        return [line for row in csv.DictReader(file) for line in as_today(row)]


def as_today(row: dict[str, str]) -> Iterator[Line]:
    """A row of any release: one for its estimate, and one for each number beside it."""
    if "table" in row:
        row["analysis"] = row.pop("table")
    if row.get("outcome") == "DON'T":
        row["outcome"] = "DO NOT USE"
    beside = [name for name in row if {f"{name}_low", f"{name}_high"} <= row.keys()]
    other = {name: {key: row.pop(name + end) for key, end in ENDS.items()} for name in beside}
    yield row
    for name, numbers in other.items():
        if any(numbers.values()):
            yield {**row, "statistic": name, **numbers}


def by_keys(found: Sequence[Line], keys: set[str]) -> Found:
    """The numbers of each row by its keys; several rows with the same keys in their order."""
    rows: dict[tuple[tuple[str, str], ...], list[tuple[str, ...]]] = defaultdict(list)
    for line in found:
        key = tuple(sorted((k, v) for k, v in line.items() if v and k in keys))
        rows[key].append(tuple(line.get(name) or "" for name in NUMBERS))
    return rows


def differences(old: Found, new: Found) -> Iterator[str]:
    """One line for each number that differs and for each row on one side only."""
    for key in dict.fromkeys((*old, *new)):
        where = ", ".join(f"{name}={text}" for name, text in key)
        before, after = old.get(key, []), new.get(key, [])
        if len(before) != len(after):
            yield f"{len(before)} rows before, {len(after)} after: {where}"
        for one, other in zip(before, after, strict=False):
            for name, a, b in zip(NUMBERS, one, other, strict=True):
                if not same(name, a, b):
                    yield f"{name} was {a or 'empty'}, is {b or 'empty'}: {where}"


def same(name: str, one: str, other: str) -> bool:
    """Whether two numbers are equal as floats; no count is a count of 0."""
    if name in ("n", "n_missing"):
        one, other = one or "0", other or "0"
    if not one or not other:
        return one == other
    return float(one) == float(other)


def compare(old: Path, new: Path) -> int:
    """Print how two CSV files differ and return in how many places."""
    before, after = lines(old), lines(new)
    columns = [set().union(*(line.keys() for line in side)) for side in (before, after)]
    keys = (columns[0] & columns[1]) - NOT_KEYS
    found = list(differences(by_keys(before, keys), by_keys(after, keys)))
    print(f"{new.name}: {len(after):,} numbers, {len(found)} differences")
    for line in found:
        print(f"  {line}")
    return len(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """1 where any number differs."""
    parser = argparse.ArgumentParser(description="Compare the numbers of two reports.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    asked = parser.parse_args(arguments)
    wrong = 0
    for name in sorted(
        {path.name for side in (asked.old, asked.new) for path in side.glob("*.csv")}
    ):
        if (asked.old / name).is_file() and (asked.new / name).is_file():
            wrong += compare(asked.old / name, asked.new / name)
        else:
            print(f"{name}: in one report only")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
