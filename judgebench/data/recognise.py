"""Recognise plain files by the names of their columns, as judgebench names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgebench.data.findings import Findings, nearest
from judgebench.data.gather import Collected
from judgebench.data.guess import NAMES, PAIRS, plain_name
from judgebench.data.open_table import DataTable
from judgebench.data.spec import (
    FileLabelSpec,
    FileSpec,
    FileVerdictSpec,
    IdSource,
    ItemSpec,
    LabelSpec,
    Source,
)
from judgebench.errors import some
from judgebench.records import CHANCES, WEIGHTS
from judgebench.rubric import Rubric

_ANSWER = ("item_id", "text", "question", "system", "reference", "group")
_OF_VERDICTS = ("judge", "status", "raw", "repeat", "shown_first", "rationale")
_PROBABILITY = "probability_"
_NEEDED = (
    "item_id and text (answers); item_id, annotator, metric and label (long labels); "
    "item_id, annotator and a column for each metric (wide labels)"
)


def recognise(table: DataTable, gathered: Collected) -> FileSpec | None:
    """Describe what the table contains by its columns; None where they do not say, which is
    reported."""
    rubric, findings, who = gathered.rubric, gathered.findings, gathered.who
    named: dict[str, str] = {}
    for column in filter(None, table.columns):
        if named.setdefault(column.casefold(), column) != column:
            findings.add(
                "duplicate_column",
                f"differs from the column {named[column.casefold()]!r} only in its case",
                (table.file, 1),
                column,
            )
    replies = bool(gathered.source and gathered.source.replies)
    labels = None if replies else _label_columns(named, table, gathered)
    about = _about(named, rubric)
    rest = [
        c for c in _rest(named, labels, who) if c not in (*about.values(), *about.get("pair", ()))
    ]
    drawn = [c for c in rest if plain_name(c) in (*WEIGHTS, *CHANCES)]  # how labels were drawn
    drawn = drawn if who == "annotator" and labels and not about else []
    rest = [column for column in rest if column not in drawn]
    kept = who == "annotator" and "text" in named and labels is None
    wanted = ["item_id", *([who] if labels else ["text", "metric", "label"])]
    wanted += [] if labels else [m.id for m in rubric.metrics]
    wanted = ["item_id", who, "raw"] if replies else wanted[:1] if kept else wanted
    if _misspelt([w for w in wanted if w not in named], rest, table, findings):
        return None
    readable = "raw" in named if replies else labels or kept
    if "item_id" not in named or not readable:
        message = f"unrecognised columns ({some(named.values())}): describe the file in a data.yaml"
        allowed = "item_id and raw (replies)" if replies else _NEEDED.replace("annotator", who)
        findings.add("unrecognised_file", message, (table.file, None), allowed=allowed)
        return None
    item_id = IdSource(column=named["item_id"])
    _report_unused(rest, labels, kept or replies, table.file, gathered)
    if who == "judge":
        verdicts = _verdict_columns(named, item_id, labels, about, rubric)
        return FileSpec(path=table.file, verdicts=(verdicts,))
    if about or "text" not in named:
        assert labels is not None
        known = about or {
            **{name: _source(named, name) for name in ("question", "group", "system")},
            "metadata": tuple(drawn),
        }
        own = FileLabelSpec(item_id=item_id, **known, **dict(labels))
        return FileSpec(path=table.file, labels=(own,))
    item = ItemSpec(
        item_id=item_id,
        text=_source(named, "text"),
        question=_source(named, "question"),
        system=_source(named, "system"),
        reference=_source(named, "reference"),
        group=_source(named, "group"),
        metadata=tuple(rest) if kept else tuple(drawn),
        if_empty="keep" if gathered.keeps_empty else "error",
        labels=(labels,) if labels else (),
    )
    return FileSpec(path=table.file, items=(item,))


def _misspelt(
    wanted: Sequence[str], columns: Sequence[str], table: DataTable, findings: Findings
) -> bool:
    """True where a needed column exists under a similar or another usual name, which is
    reported."""
    near = {column: nearest(column, wanted, cutoff=0.7) for column in columns}
    plain = {column: plain_name(column) for column in columns}
    for name in wanted:
        meant = [c for c in columns if plain[c] in NAMES.get(name, ())]
        if meant and not any(f"'{name}'" in told for told in near.values()):
            near[meant[0]] = f"; did you mean {name!r}?"
    for column in filter(near.get, near):
        findings.add("unknown_column", f"is not read{near[column]}", (table.file, 1), column)
    return any(near.values())


def _source(named: dict[str, str], name: str) -> Source | None:
    return Source(column=named[name]) if name in named else None


def _label_columns(
    named: dict[str, str], table: DataTable, gathered: Collected
) -> LabelSpec | None:
    """The labels among the columns: long if there are `metric` and `label`, else wide."""
    rubric, findings = gathered.rubric, gathered.findings
    annotator = _source(named, gathered.who)
    preferences = [metric.id for metric in rubric.metrics if metric.preference]
    if "metric" in named and "label" in named:
        return LabelSpec(annotator=annotator, metric=named["metric"], label=named["label"])
    metrics: dict[str, str] = {}
    for name, column in named.items():
        metric = None if name in (*_ANSWER, "annotator", gathered.who) else rubric.find(column)
        if metric and (first := metrics.setdefault(metric.id, column)) != column:
            findings.add(
                "duplicate_column",
                f"the columns {first!r} and {column!r} are the same metric",
                (table.file, 1),
                column,
            )
    if not metrics and "winner" in named and len(preferences) == 1:
        metrics = {preferences[0]: named["winner"]}
    return LabelSpec(annotator=annotator, metrics=metrics) if metrics else None


def _about(named: dict[str, str], rubric: Rubric) -> dict[str, Any]:
    """The columns of two responses, or of a criterion, that the labels of a row are about."""
    for pair in PAIRS if "text" not in named and "pair" in rubric.kinds else ():
        if named.keys() >= set(pair):
            return {"pair": tuple(named[name] for name in pair)}
    if "criterion" in named and "text" not in named and "criterion" in rubric.kinds:
        return {"criterion": named["criterion"]}
    return {}


def probability_columns(
    named: Mapping[str, str], rubric: Rubric, long: bool
) -> dict[str, str | tuple[str, str]]:
    """The columns of label probabilities: `probability_` is followed by a label in a long table, by
    a metric and a label in a wide one."""
    shares: dict[str, str | tuple[str, str]] = {}
    for name, column in named.items():
        of = column[len(_PROBABILITY) :] if name.startswith(_PROBABILITY) else ""
        if long and of:
            shares[column] = of
        for metric in rubric.metrics if of and not shares.get(column) else ():
            for start in (f"{metric.id}_", f"{metric.title}_"):
                if of.casefold().startswith(start.casefold()):
                    shares[column] = (metric.id, of[len(start) :])
    return shares


def _verdict_columns(
    named: dict[str, str], item_id: IdSource, labels: LabelSpec | None, about: dict[str, Any],
    rubric: Rubric,
) -> FileVerdictSpec:  # fmt: skip
    """The verdicts among the columns."""
    shares = probability_columns(named, rubric, bool(labels and labels.metric))
    return FileVerdictSpec(
        **about, item_id=item_id, judge=_source(named, "judge"), probabilities=shares,
        metric=labels.metric if labels else None, label=labels.label if labels else None,
        metrics=labels.metrics if labels else {},
        status=named.get("status"), raw=named.get("raw"), repeat=named.get("repeat"),
        shown_first=named.get("shown_first"), rationale=named.get("rationale"),
    )  # fmt: skip


def _rest(named: dict[str, str], labels: LabelSpec | None, who: str) -> list[str]:
    """The columns that nothing reads."""
    read = {named[name] for name in _ANSWER if name in named}
    if who == "judge":
        read |= {named[name] for name in _OF_VERDICTS if name in named}
        read |= {column for name, column in named.items() if name.startswith(_PROBABILITY)}
    if labels is not None:
        read |= {c for c in (labels.metric, labels.label, *labels.metrics.values()) if c}
        read |= {labels.annotator.column or ""} if labels.annotator else set()
        read |= {
            named.get(x, "") for x in ("study", "made_blind", "spans")
        }  # what an annotation study adds
    return [column for column in named.values() if column not in read]


def _report_unused(
    columns: Sequence[str], found: LabelSpec | None, kept: bool, file: str, gathered: Collected
) -> None:
    """Report unused columns; one that looks like a misspelt metric is an error."""
    rubric, findings = gathered.rubric, gathered.findings
    there = found.metrics if found else {}
    absent = [] if found and found.metric else [m for m in rubric.metrics if m.id not in there]
    lacking = [name for m in absent for name in (m.id, m.title)]
    for column in columns:
        if near := nearest(column, lacking, cutoff=0.8):
            findings.add(
                "unknown_metric",
                f"is not a metric of the rubric{near} If not, describe the file in a data.yaml",
                (file, 1),
                column,
            )
        elif not kept:
            findings.add("unused_column", "is not a metric and is not read", (file, 1), column)
