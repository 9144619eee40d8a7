"""What label probabilities are worth: tables, and reliability diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judgebench.align import (
    DISTRIBUTION_STATISTICS,
    TRUTH_STATISTICS,
    Alignment,
    CalibrationCurve,
    ProbabilityScore,
    Source,
)
from judgebench.records import Estimate
from judgebench.report.figure import new_figure
from judgebench.report.words import wrapped
from judgebench.results.tables import Cell, Table, format_number

_SIGNED = {"brier_skill", "resolution"}
_SOURCES: Mapping[Source, str] = {
    "probabilities": "Probabilities",
    "label": "Label alone",
    "annotator": "One annotator",
    "base_rates": "Base rates",
    "gain": "Nearer than one annotator by",
}
_TRUTH_NOTES = (
    "Brier, label alone: of the judge's label taken as a certainty. A judge that says the base "
    "rates of every answer has skill 0.",
    "Brier score = reliability - resolution + uncertainty. Chance lifts reliability, resolution "
    "and ECE; their intervals are without that.",
)
_OTHERS = (
    "Each annotator's label in turn is held back, and the distribution is that of the item's other "
    "labels; so judge, annotator and base rates are measured against the same, on the same items."
)
_FAIR = (
    "An annotator gives one label and no shades: the judge's label alone is the like-for-like "
    "rival, and shades gain over a certainty what base rates may gain, too."
)
_PROPER = "A proper score: nobody gains by being bolder or more timid than he is."
_NOT_PROPER = "Not a proper score: against few labels an item it favours bold probabilities."
_CURVE_NOTE = (
    "Answers in bins of equally many, by the probability of the judge's likeliest label. The "
    "interval of the share right is exact (Clopper-Pearson), items taken as independent."
)
_TEMPERATURE_NOTES = (
    "Temperature: fitted on one half of the questions and scored on the other, both ways. Above 1 "
    "the judge is bolder than it is right. The intervals take the temperatures as given.",
)

Scores = Mapping[tuple[str, str, str, Source], ProbabilityScore]


def probability_tables(alignment: Alignment) -> list[Table]:
    """The tables of judges that gave label probabilities; none where no judge did."""
    if not alignment.probability_scores:
        return []
    scores = {(s.judge, s.metric, s.statistic, s.source): s for s in alignment.probability_scores}
    distances = ("squared_distance", "total_variation", "jensen_shannon")
    return [
        _truth_table(alignment, scores),
        *(_distance_table(alignment, scores, statistic) for statistic in distances),
        _entropy_table(alignment, scores),
        _temperature_table(alignment),
        *_curve_tables(alignment),
    ]


def _pairs(alignment: Alignment) -> Iterator[tuple[str, str, tuple[Cell, Cell]]]:
    """Judge and metric of each curve, and the cells that name them."""
    titles = {metric.id: metric.title for metric in alignment.rubric.metrics}
    for curve in alignment.calibration_curves:
        named = (Cell(curve.judge), Cell(titles.get(curve.metric, curve.metric)))
        yield curve.judge, curve.metric, named


def _truth_table(alignment: Alignment, scores: Scores) -> Table:
    columns: list[tuple[str, str, Source]] = []
    for statistic, (heading, _) in TRUTH_STATISTICS.items():
        source: Source = "base_rates" if statistic == "uncertainty" else "probabilities"
        columns.append((heading, statistic, source))
    columns.insert(1, ("Brier, label alone", "brier", "label"))
    return _table(
        alignment, scores, "probabilities",
        "Label probabilities against the human truth", columns,
        (*_TRUTH_NOTES, *(f"{h}: {meaning}." for h, meaning in TRUTH_STATISTICS.values())),
    )  # fmt: skip


def _distance_table(alignment: Alignment, scores: Scores, statistic: str) -> Table:
    heading, meaning = DISTRIBUTION_STATISTICS[statistic]
    return _table(
        alignment, scores, f"probabilities-{statistic}",
        f"How far from the annotators' labels? {heading}",
        [(title, statistic, source) for source, title in _SOURCES.items()],
        (
            f"{heading}: {meaning}; 0 is best.",
            _PROPER if statistic == "squared_distance" else _NOT_PROPER,
            _OTHERS,
            _FAIR,
        ),
    )  # fmt: skip


def _entropy_table(alignment: Alignment, scores: Scores) -> Table:
    columns: list[tuple[str, str, Source]] = []
    for statistic in ("cross_entropy", "kl_divergence"):
        heading = DISTRIBUTION_STATISTICS[statistic][0]
        columns += [
            (heading, statistic, "probabilities"),
            (f"{heading}, base rates", statistic, "base_rates"),
        ]
    meanings = (DISTRIBUTION_STATISTICS[s] for s in ("cross_entropy", "kl_divergence"))
    return _table(
        alignment, scores, "probabilities-entropy",
        "How surprising are the annotators' labels to the judge?", columns,
        (*(f"{heading}: {meaning}; 0 is best." for heading, meaning in meanings), _PROPER, _OTHERS),
    )  # fmt: skip


def _table(
    alignment: Alignment,
    scores: Scores,
    key: str,
    title: str,
    columns: list[tuple[str, str, Source]],
    notes: tuple[str, ...],
) -> Table:
    """A row a judge and metric; `columns` holds (heading, statistic, source)."""
    rows = tuple(
        (
            *named,
            *(
                Cell(
                    estimate=scores[judge, metric, statistic, source].estimate,
                    signed=statistic in _SIGNED or source == "gain",
                )
                for _, statistic, source in columns
            ),
        )
        for judge, metric, named in _pairs(alignment)
    )
    headings = ("Judge", "Metric", *(heading for heading, _, _ in columns))
    return Table(key, title, headings, rows, notes, stubs=2)


def _temperature_table(alignment: Alignment) -> Table:
    scaled = {(t.judge, t.metric): t.scaling for t in alignment.temperatures}
    rows = []
    for judge, metric, named in _pairs(alignment):
        s = scaled[judge, metric]
        first = (*s.temperatures, s.log_loss_before, s.log_loss_after)
        cells = [
            *(Cell(estimate=e) for e in first),
            Cell(estimate=s.change, signed=True),
            *(Cell(estimate=e) for e in (s.ece_before, s.ece_after)),
        ]
        rows.append((*named, *cells))
    return Table(
        "temperature",
        "Would one temperature make the probabilities honest?",
        (
            "Judge", "Metric", "Temperature, one half", "Other half", "Log loss before", "After",
            "Change", "ECE (debiased) before", "ECE after",
        ),
        tuple(rows),
        _TEMPERATURE_NOTES,
        stubs=2,
    )  # fmt: skip


def _curve_tables(alignment: Alignment) -> Iterator[Table]:
    """The points of each judge's reliability diagrams."""
    titles = {metric.id: metric.title for metric in alignment.rubric.metrics}
    for number, (judge, curves) in enumerate(_by_judge(alignment).items(), start=1):
        rows = tuple(
            (
                Cell(titles.get(curve.metric, curve.metric)),
                Cell(f"{place} of {len(curve.bins)}"),
                Cell(f"{point.right.n:,}"),
                Cell(format_number(point.confidence)),
                Cell(_share_right(point.right)),
            )
            for curve in curves
            for place, point in enumerate(curve.bins, start=1)
        )
        title = f"Reliability diagram in numbers: {judge}"
        columns = ("Metric", "Bin", "Answers", "Mean confidence", "Share right")
        yield Table(f"calibration-{number}", title, columns, rows, (_CURVE_NOTE,), stubs=2)


def _share_right(right: Estimate) -> str:
    """`0.612 [0.500, 0.715]`."""
    cell = Cell(estimate=right)
    return f"{cell.value} {cell.interval}".strip()


def _by_judge(alignment: Alignment) -> Mapping[str, list[CalibrationCurve]]:
    """The curves that have a point, by judge."""
    found: dict[str, list[CalibrationCurve]] = {}
    for curve in alignment.calibration_curves:
        if curve.bins:
            found.setdefault(curve.judge, []).append(curve)
    return found


def reliability_figures(alignment: Alignment) -> dict[str, str]:
    """The name of each figure of `draw_reliability`, and the judge that it shows."""
    judges = enumerate(_by_judge(alignment), start=1)
    return {f"reliability_{number}": judge for number, judge in judges}


def draw_reliability(alignment: Alignment, judge: str) -> Any:
    """One judge: a panel a metric, confidence across and the share right up, with the diagonal."""
    curves = _by_judge(alignment)[judge]
    titles = {metric.id: metric.title for metric in alignment.rubric.metrics}
    errors = {s.metric: s.estimate for s in alignment.probability_scores
              if (s.judge, s.statistic) == (judge, "ece_debiased")}  # fmt: skip
    across = min(3, len(curves))
    down = -(-len(curves) // across)
    figure = new_figure(0.4 + 2.5 * across, 0.8 + 2.7 * down)
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for axes, curve in zip(panels, curves, strict=False):
        _panel(axes, curve)
        title = wrapped(titles.get(curve.metric, curve.metric), 34)
        error, n = errors[curve.metric], sum(point.right.n for point in curve.bins)
        axes.set_title(f"{title}\nECE {error:.2f}, n = {n:,}", loc="left", fontsize=7.5)
    for axes in panels[len(curves) :]:
        axes.set_visible(False)
    figure.supxlabel("Mean probability of the likeliest label", fontsize=8)
    figure.supylabel("Share right, with exact interval", fontsize=8)
    title = f"Reliability of {judge}; on the dashed line it is as often right as it says"
    figure.suptitle(wrapped(title, int(13 * figure.get_figwidth())), fontsize=9)
    return figure


def _panel(axes: Any, curve: CalibrationCurve) -> None:
    axes.plot([0, 1], [0, 1], linestyle="--", color="#767676", linewidth=0.8)
    for point in curve.bins:
        e = point.right
        if e.value is None or e.low is None or e.high is None:
            continue
        axes.errorbar(
            point.confidence, e.value, yerr=[[e.value - e.low], [e.high - e.value]],
            marker="o", markersize=4, color="#0072B2", elinewidth=1,
        )  # fmt: skip
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
