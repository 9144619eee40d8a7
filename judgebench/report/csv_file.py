"""alignment.csv: every number of an alignment in one long table, one row a number.

A text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a carriage
return) gets a leading apostrophe; numbers are written as they are. An undefined number is an empty
`value` with a `reason`. A label may read `None` or `NA`, which pandas takes for a gap unless it is
told `keep_default_na=False, na_values=[""]`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from judgebench.align import Alignment
from judgebench.records import Estimate
from judgebench.report.words import printable

COLUMNS = (
    "table",  # score, agreement, ceiling, distribution, confusion, verdicts
    "judge",
    "metric",
    "statistic",
    "failures",  # left_out, worst, best
    "who",  # annotator, pair of annotators or "all"
    "human_label",
    "label",  # the judge's label in `confusion`: empty = none was given
    "blanks",  # how blank cells were read in `distribution`
    "value",
    "low",
    "high",
    "level",
    "n",
    "n_missing",
    "method",
    "reason",
)


def to_csv(alignment: Alignment) -> str:
    """The text of alignment.csv, lines ended by a line feed."""
    return csv_text(COLUMNS, _rows(alignment))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table as CSV that no spreadsheet runs; what a row lacks is an empty cell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: safe(value) for key, value in row.items()})
    return out.getvalue()


def safe(value: Any) -> Any:
    """A text that no spreadsheet runs; other values as they are, None as an empty cell."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _rows(a: Alignment) -> Iterator[dict[str, Any]]:
    for s in a.scores:
        yield {
            "table": "score", "judge": s.judge, "metric": s.metric, "statistic": s.statistic,
            "failures": s.failures, **estimate_columns(s.estimate),
        }  # fmt: skip
    for g in a.agreement:
        yield {
            "table": "agreement", "metric": g.metric, "statistic": g.statistic, "who": g.who,
            **estimate_columns(g.estimate),
        }  # fmt: skip
    for c in a.ceiling:
        yield {
            "table": "ceiling", "metric": c.metric, "statistic": c.statistic, "who": c.annotator,
            **estimate_columns(c.estimate),
        }  # fmt: skip
    yield from _counts(a)


def _counts(a: Alignment) -> Iterator[dict[str, Any]]:
    for share in a.distribution:
        yield {
            "table": "distribution", "metric": share.metric, "statistic": "count",
            "human_label": share.label, "blanks": share.blanks, "value": share.count,
            "n": share.n,
        }  # fmt: skip
    for confusion in a.confusions:
        total = int(confusion.counts.sum())
        for human, row in zip(confusion.labels, confusion.counts, strict=True):
            for label, count in zip((*confusion.labels, ""), row, strict=True):
                yield {
                    "table": "confusion", "judge": confusion.judge, "metric": confusion.metric,
                    "statistic": "count", "human_label": human, "label": label,
                    "value": int(count), "n": total,
                }  # fmt: skip
    for judge in a.judges:
        for status, count in judge.statuses.items():
            yield {
                "table": "verdicts", "judge": judge.name, "statistic": str(status),
                "value": count, "n": judge.n,
            }  # fmt: skip


def estimate_columns(e: Estimate) -> dict[str, Any]:
    """The columns that tell one estimate."""
    return {
        "value": e.value, "low": e.low, "high": e.high, "level": e.level, "n": e.n,
        "n_missing": e.n_missing, "method": e.method, "reason": e.reason,
    }  # fmt: skip
