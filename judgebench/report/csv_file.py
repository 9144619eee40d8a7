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
from judgebench.report.comparisons import ALL_TIE, why_no_p
from judgebench.report.words import printable
from judgebench.results.part import Part

ESTIMATE_COLUMNS = ("value", "low", "high", "level", "n", "n_missing", "method", "reason")
COLUMNS = (
    # score, agreement, ceiling, unanimity, rate, probability, calibration, temperature, comparison,
    # ranking, distribution, confusion, verdicts
    "table",
    "judge",
    "metric",
    "statistic",  # in `rate` the method: human, verdicts, ppi, rogan_gladen; labels_saved
    "failures",  # left_out, worst, best
    # annotator, pair of annotators or "all"; second judge in `comparison`, group in `ranking`;
    # unanimous, split or single in `unanimity`; what was scored in `probability`; the bin in
    # `calibration`, the half in `temperature`
    "who",
    "human_label",
    "label",  # the judge's label in `confusion`: empty = none was given
    "blanks",  # how blank cells were read in `distribution`
    *ESTIMATE_COLUMNS,
)


def to_csv(alignment: Alignment) -> str:
    """The text of alignment.csv, lines ended by a line feed."""
    return csv_text(COLUMNS, _rows(alignment))


def part_csv(part: Part) -> str:
    """The rows of a part as the text of its CSV file, lines ended by a line feed."""
    return csv_text(part.results.columns, (row.plain() for row in part.results))


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
    for u in a.by_unanimity:
        yield {
            "table": "unanimity", "judge": u.judge, "metric": u.metric, "statistic": u.statistic,
            "failures": "left_out", "who": u.part, **estimate_columns(u.estimate),
        }  # fmt: skip
    yield from _rates(a)
    yield from _probabilities(a)
    yield from _between_judges(a)
    yield from _counts(a)


def _rates(a: Alignment) -> Iterator[dict[str, Any]]:
    """Every rate, and below that of `ppi` how many human labels it saves."""
    for rate in a.rates:
        key = {
            "table": "rate", "judge": rate.judge, "metric": rate.metric, "human_label": rate.label,
        }  # fmt: skip
        yield {**key, "statistic": rate.method, **estimate_columns(rate.estimate)}
        if rate.saved is not None:
            yield {**key, "statistic": "labels_saved", "value": rate.saved, "n": rate.estimate.n}


def _probabilities(a: Alignment) -> Iterator[dict[str, Any]]:
    """Every score; of every bin its mean confidence and the share right; temperature scaling."""
    for s in a.probability_scores:
        yield {
            "table": "probability", "judge": s.judge, "metric": s.metric,
            "statistic": s.statistic, "who": s.source, **estimate_columns(s.estimate),
        }  # fmt: skip
    for curve in a.calibration_curves:
        for place, point in enumerate(curve.bins, start=1):
            key = {
                "table": "calibration", "judge": curve.judge, "metric": curve.metric,
                "who": f"bin {place}",
            }  # fmt: skip
            yield {**key, "statistic": "confidence", "value": point.confidence, "n": point.right.n}
            yield {**key, "statistic": "share_right", **estimate_columns(point.right)}
    for t in a.temperatures:
        key = {"table": "temperature", "judge": t.judge, "metric": t.metric}
        for half, estimate in enumerate(t.scaling.temperatures, start=1):
            yield {
                **key, "statistic": "temperature", "who": f"half {half}",
                **estimate_columns(estimate),
            }  # fmt: skip
        scores = ("log_loss_before", "log_loss_after", "change", "ece_before", "ece_after")
        for name in scores:
            yield {**key, "statistic": name, **estimate_columns(getattr(t.scaling, name))}


def _between_judges(a: Alignment) -> Iterator[dict[str, Any]]:
    """Every comparison with its p values; every average rank, and what all ranks share."""
    for c in a.comparisons:
        key = {"table": "comparison", "judge": c.first, "who": c.second, "metric": c.metric}
        yield {**key, "statistic": "accuracy_difference", **estimate_columns(c.difference)}
        for statistic in ("mcnemar_p", "permutation_p", "p_holm"):
            p = getattr(c, statistic)
            reason = why_no_p(c.difference) if p is None else ""
            n = {"n": c.difference.n, "n_missing": c.difference.n_missing}
            yield {**key, "statistic": statistic, "value": p, **n, "reason": reason}
    for r in a.rankings:
        key = {"table": "ranking", "judge": r.judge, "who": r.group, "metric": r.metric}
        yield {**key, "statistic": "average_rank", **estimate_columns(r.average_rank)}
    for r in a.rankings[:1]:
        for statistic in ("friedman_p", "critical_difference"):
            value, rank = getattr(r, statistic), r.average_rank
            reason = "" if value is not None else rank.reason if rank.value is None else ALL_TIE
            yield {
                "table": "ranking", "metric": r.metric, "statistic": statistic, "value": value,
                "n": rank.n, "n_missing": rank.n_missing, "reason": reason,
            }  # fmt: skip


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
