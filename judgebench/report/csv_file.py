"""CSV files: every number of an analysis in one long table, one row per number.

A text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a carriage
return) gets a leading apostrophe; numbers are written as they are. An undefined number is an empty
`value` with a `reason`. A label may read `None` or `NA`, which pandas reads as missing unless it is
given `keep_default_na=False, na_values=[""]`.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from judgebench.report.words import printable
from judgebench.results.part import Part

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|inf)", re.ASCII)


def part_csv(part: Part) -> str:
    """The rows of a part as the text of its CSV file, lines ended by a line feed; no spreadsheet
    runs it. What a row lacks is an empty cell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, part.results.columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in part.results:
        writer.writerow({key: safe(value) for key, value in row.plain().items()})
    return out.getvalue()


def safe(value: Any) -> Any:
    """A text that no spreadsheet runs; other values as they are, None as an empty cell."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    runs = text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER.fullmatch(text)
    return f"'{text}" if runs else text
