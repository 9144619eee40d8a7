"""One self-contained page: no request leaves it, and all text in it is shown, never run.

Three walls stand between an answer's text and the page: Jinja escapes every value, the list of
disagreements is JSON that a script shows with `textContent` only, and the page's own policy lets
run only the one script whose hash it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from judgebench.align import STATISTICS, Alignment, Confusion, Disagreement, FailurePolicy
from judgebench.decide.result import Decisions
from judgebench.ranking.rankings import Rankings
from judgebench.records import Estimate, Status, Verdict
from judgebench.report.comparisons import comparison_table, ranking_table
from judgebench.report.lookup import (
    Scores,
    best_control,
    controls,
    find_ceiling,
    has_ceiling,
    real_judges,
    score_index,
    shortfall,
)
from judgebench.report.old.contents import (
    NO_LABELS,
    about_what,
    compared_sentences,
    shows_alignment,
    stress_tables,
)
from judgebench.report.probabilities import probability_tables
from judgebench.report.rates import rate_tables
from judgebench.report.tables import (
    BLANKS,
    ONLY_IN_PANELS,
    POLICIES,
    POLICY_HEADINGS,
    accuracy_table,
    agreement_table,
    ceiling_table,
    failures_table,
    flatten,
    judges_table,
    pairs_table,
    score_table,
    severe_table,
    standing_table,
)
from judgebench.report.unanimity import unanimity_tables
from judgebench.report.words import printable
from judgebench.results.tables import Cell, Table, footnotes
from judgebench.rubric import Metric
from judgebench.stress.result import StressResult
from judgebench.web.page import json_for_page, page_environment, page_script, script_hash

_HERE = Path(__file__).parents[2]
MOST_DISAGREEMENTS = 2000
_MOST_RAW = 4000  # characters of a raw reply that the page keeps


def to_html(
    alignment: Alignment,
    stress: StressResult | None = None,
    decisions: Decisions | None = None,
    rankings: Rankings | None = None,
) -> str:
    """The whole page."""
    aligned = shows_alignment(alignment, stress, rankings)
    script = page_script(*_files("js", ("report/old/page", aligned)))
    styles = _files("css", ("report/old/page", True))
    environment = page_environment(_HERE, printable)
    environment.filters["breakable"] = _breakable
    return environment.get_template("report/old/page.html.jinja").render(
        **_sections(alignment),
        about_what=about_what(alignment, stress, decisions, rankings),
        summary=compared_sentences(alignment, rankings),
        aligned=aligned,
        no_labels=NO_LABELS,
        stress=None if stress is None else stress_tables(stress),
        decide=None if decisions is None else decisions.part.blocks,
        style=Markup("".join(path.read_text(encoding="utf-8") for path in styles)),
        script=Markup(script),
        script_hash=script_hash(script),
        footnotes=footnotes,
    )


def _files(ending: str, *wanted: tuple[str, bool]) -> list[Path]:
    """The files of that ending: the page's own and those of its sections, where wanted."""
    return [_HERE / f"{name}.{ending}" for name, is_wanted in wanted if is_wanted]


def _breakable(text: str) -> Markup:
    """Escaped text that may break after the signs inside a model's name."""
    return Markup("<wbr>").join(re.split(r"(?<=[/:_.@-])(?=\w)", printable(text)))


def _sections(a: Alignment) -> dict[str, Any]:
    present = [s for s in STATISTICS if any(x.statistic == s for x in a.scores)]
    shown = a.disagreements[:MOST_DISAGREEMENTS]
    severe = [severe_table(a)] if "severe_recall" in present else []
    failed = [failures_table(a, s) for s in present if s not in ONLY_IN_PANELS]
    agreement = [agreement_table(a), *(pairs_table(a, s) for s in ("alpha", "observed"))]
    return {
        "name": a.name,
        "notes": a.notes,
        "standing": standing_table(a),
        "accuracy": accuracy_table(a),
        "statistics": {s: STATISTICS[s] for s in present},
        "policies": POLICY_HEADINGS,
        "panels": list(_panels(a, present)),
        "severe": [t for t in severe if t.rows],
        "failed": [t for t in failed if t.rows],
        "unanimity": unanimity_tables(a),
        "confusions": [(n, c) for n, c in _confusions(a) if c],
        "compared": [t for t in (ranking_table(a), comparison_table(a)) if t.rows],
        "distribution": list(_distribution(a)),
        "rates": rate_tables(a),
        "probabilities": [t for t in probability_tables(a) if t.rows],
        "agreement": [t for t in agreement if t.rows],
        "ceilings": [t for s in present if (t := ceiling_table(a, s)).rows],
        "judges": judges_table(a),
        "about": [(j.name, list(flatten(j.about))) for j in a.judges],
        "disagreements": disagreements_json(a),
        "n_shown": len(shown),
        "n_disagreements": len(a.disagreements),
    }


# --- the alignment: a heat map and a ladder for each statistic and way of counting failures ------


@dataclass(frozen=True)
class Lane:
    """One judge in a ladder; positions in percent of the axis, None where there is none."""

    kind: str  # judge, control, human
    cell: Cell
    name: str
    at: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Rung:
    """One metric of a ladder; `bar` and `ceiling` are where its two lines stand."""

    title: str
    lanes: list[Lane]
    bar: float | None
    ceiling: float | None


@dataclass(frozen=True)
class Panel:
    """What the page shows of one statistic under one way of counting failures."""

    statistic: str
    failures: FailurePolicy
    table: Table
    heat: list[list[str]]  # the CSS class of each cell
    kinds: list[str]  # the kind of each column
    rungs: list[Rung]
    axis: tuple[float, float]
    diverging: bool
    ceiling: bool


def _panels(a: Alignment, statistics: list[str]) -> Iterator[Panel]:
    failing = {s.statistic for s in a.scores if s.estimate.n_missing}
    scores, shown = score_index(a), (*real_judges(a), *controls(a))
    kinds = ["stub", *("control" if j.kind == "control" else "judge" for j in shown), "human"]
    for statistic in statistics:
        for failures in POLICIES:
            if failures != "left_out" and statistic not in failing:
                continue
            table = score_table(a, statistic, failures)
            axis = _axis(table, statistic)
            yield Panel(
                statistic=statistic,
                failures=failures,
                table=table,
                heat=[[_heat(cell, statistic, axis) for cell in row] for row in table.rows],
                kinds=kinds,
                rungs=[
                    _rung(a, scores, metric, statistic, table, row, kinds, axis)
                    for metric, row in zip(a.rubric.metrics, table.rows, strict=True)
                ],
                axis=axis,
                diverging=statistic == "severity_error",
                ceiling=has_ceiling(a, statistic),
            )


def _axis(table: Table, statistic: str) -> tuple[float, float]:
    """From 0 to 1, wider where values need it; symmetric about 0 for a signed statistic."""
    numbers = [
        number
        for row in table.rows
        for cell in row
        if (e := cell.estimate) is not None
        for number in (e.value, e.low, e.high)
        if number is not None
    ]
    if statistic == "severity_error":
        most = max([0.1, *(abs(number) for number in numbers)])
        return -most, most
    return min([0.0, *numbers]), max([1.0, *numbers])


def _heat(cell: Cell, statistic: str, axis: tuple[float, float]) -> str:
    """A step of the colour scale: h0 far from the humans … h9 near; u and o for signed errors."""
    value = cell.estimate.value if cell.estimate else None
    if value is None:
        return "none" if cell.estimate else ""
    if statistic == "severity_error":
        step = round(4 * abs(value) / axis[1])
        return f"{'o' if value > 0 else 'u'}{step}"
    low_is_good = shortfall(statistic, 1.0) > 0
    good = low_is_good - shortfall(statistic, value)
    return f"h{min(9, max(0, int(10 * good)))}"


def _rung(
    a: Alignment,
    scores: Scores,
    metric: Metric,
    statistic: str,
    table: Table,
    row: tuple[Cell, ...],
    kinds: list[str],
    axis: tuple[float, float],
) -> Rung:
    def at(number: float | None) -> float | None:
        return None if number is None else round(100 * (number - axis[0]) / (axis[1] - axis[0]), 2)

    def lane(kind: str, name: str, cell: Cell) -> Lane:
        e = cell.estimate or Estimate(None)
        return Lane(kind, cell, name, at(e.value), at(e.low), at(e.high))

    bar = best_control(a, scores, metric.id, statistic)
    return Rung(
        title=metric.title,
        lanes=[
            lane(kind, name, cell)
            for kind, name, cell in zip(kinds[1:], table.columns[1:], row[1:], strict=False)
        ],
        bar=at(bar[1].value) if bar else None,
        ceiling=at(find_ceiling(a, metric.id, statistic).value),
    )


# --- confusion matrices and labels ---------------------------------------------------------------


def _confusions(a: Alignment) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Every judge's matrices, controls last."""
    titles = {metric.id: metric.title for metric in a.rubric.metrics}
    for judge in (*real_judges(a), *controls(a)):
        name = judge.name + (" (control)" if judge.kind == "control" else "")
        yield name, [_matrix(c, titles) for c in a.confusions if c.judge == judge.name]


def _matrix(confusion: Confusion, titles: Mapping[str, str]) -> dict[str, Any]:
    shares = confusion.counts / confusion.counts.sum(axis=1, keepdims=True).clip(min=1)
    rows = [
        (label, [(f"{n:,}", f"h{min(9, int(10 * s))}") for n, s in zip(counts, share, strict=True)])
        for label, counts, share in zip(confusion.labels, confusion.counts, shares, strict=True)
    ]
    title = titles.get(confusion.metric, confusion.metric)
    return {"title": title, "columns": [*confusion.labels, "No label"], "rows": rows}


def _distribution(a: Alignment) -> Iterator[dict[str, Any]]:
    """A metric with its labels, each with its share under every blank policy."""
    for metric in a.rubric.metrics:
        shares = [x for x in a.distribution if x.metric == metric.id]
        policies = [b for b in BLANKS if any(x.blanks == b for x in shares)]
        rows = [
            {
                "label": label,
                "severity": next(x.severity for x in shares if x.label == label),
                "shares": [
                    next((x for x in shares if (x.label, x.blanks) == (label, b)), None)
                    for b in policies
                ],
            }
            for label in dict.fromkeys(x.label for x in shares)
        ]
        if rows:
            yield {"title": metric.title, "policies": [BLANKS[b] for b in policies], "rows": rows}


# --- disagreements -------------------------------------------------------------------------------


def disagreements_json(alignment: Alignment) -> Markup:
    """The data of the browsable list, safe inside a script element."""
    return json_for_page(
        {
            "metrics": [_metric(metric) for metric in alignment.rubric.metrics],
            "judges": [judge.name for judge in real_judges(alignment)],
            "items": [_item(d) for d in alignment.disagreements[:MOST_DISAGREEMENTS]],
        }
    )


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "id": metric.id,
        "title": metric.title,
        "ordinal": metric.kind == "ordinal",
        "labels": metric.label_texts,
        "abstain": metric.abstain,
    }


def _item(d: Disagreement) -> dict[str, Any]:
    return {
        "id": d.answer.item_id,
        "question": d.answer.question,
        "system": d.answer.system,
        "text": d.answer.text,
        "reference": d.answer.reference,
        "truth": dict(d.truth),
        "human": {metric: dict(labels) for metric, labels in d.human.items()},
        "verdicts": {judge: _verdict(verdict) for judge, verdict in d.verdicts.items()},
        "distance": d.distance,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """Labels and status; the raw reply only where it could not be used."""
    shown: dict[str, Any] = {"status": verdict.status.value, "labels": dict(verdict.labels)}
    if verdict.status is not Status.OK:
        shown["reason"] = verdict.reason
        shown["raw"] = verdict.raw[:_MOST_RAW]
        if len(verdict.raw) > _MOST_RAW:
            shown["cut"] = len(verdict.raw)
    return shown
