"""Whether two reports hold the same numbers: every value, limit and count, key by key.

    python benchmarks/same_numbers.py OLD/report NEW/report

Compares the CSV files of two report folders. A row is known by its keys, which are all columns but
those of the estimate and those left out by --ignore; `--rename old=new` maps the columns of a
report that an earlier release wrote (`table` is read as `analysis` anyway), and `--rename
column:old=new` maps one entry of a column. Prints every number that differs and every row that
stands on one side only, and exits with 1 where there is any.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

NUMBERS = ("value", "low", "high", "n", "n_missing")
NOT_KEYS = {*NUMBERS, "level", "method", "reason"}
Key = tuple[tuple[str, str], ...]
Found = Mapping[Key, list[tuple[str, ...]]]


def read(path: Path, renamed: Mapping[str, str], ignored: set[str]) -> Found:
    """The numbers of each row by its keys; several rows with the same keys in their order."""
    csv.field_size_limit(sys.maxsize)
    found: dict[Key, list[tuple[str, ...]]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            keys = {renamed.get(name, name): text for name, text in row.items()}
            keys = {name: renamed.get(f"{name}:{text}", text) for name, text in keys.items()}
            key = tuple(
                sorted((k, v) for k, v in keys.items() if v and k not in NOT_KEYS | ignored)
            )
            found[key].append(tuple(row.get(name) or "" for name in NUMBERS))
    return found


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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN")
    asked = parser.parse_args(arguments)
    renamed = {"table": "analysis", **dict(pair.split("=", 1) for pair in asked.rename)}
    wrong = 0
    for name in sorted(
        {path.name for side in (asked.old, asked.new) for path in side.glob("*.csv")}
    ):
        if missing := [side for side in (asked.old, asked.new) if not (side / name).is_file()]:
            print(f"{name}: only in one report, not in {missing[0]}")
            wrong += 1
            continue
        old, new = (
            read(side / name, renamed, set(asked.ignore)) for side in (asked.old, asked.new)
        )
        lines = list(differences(old, new))
        rows = sum(map(len, new.values()))
        print(f"{name}: {rows:,} rows, {len(lines)} differences")
        for line in lines:
            print(f"  {line}")
        wrong += len(lines)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
