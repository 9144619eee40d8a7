"""The figures of an alignment that are neither heat maps nor intervals, and what those show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from judgebench.alignment.alignment import Alignment
from judgebench.alignment.alignment_tables import count_of, naming, scores
from judgebench.alignment.statistics import LIMITS_OF_AGREEMENT, STATISTICS, label_numbers
from judgebench.records import Estimate
from judgebench.results.figure import (
    SMALL,
    draw_intervals,
    ink_on,
    new_panels,
    plotted,
    slug,
    whisker,
)
from judgebench.results.part import Drawing, Figure, Intervals, Lane, LaneKind
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.words import wrapped


def score_figure(a: Alignment, statistic: str) -> Intervals:
    """One statistic with its intervals on each metric: judges, baselines and one annotator."""
    spec = scores(STATISTICS[statistic])
    kinds: dict[str, LaneKind] = {judge.name: "judge" for judge in a.real_judges}
    kinds[""], name = "human", naming(a, spec)
    lines: dict[str, tuple[Lane, ...]] = {metric.title: () for metric in a.rubric.metrics}
    for row in spec.rows(a):
        lane = Lane(name(row, "judge"), kinds.get(row.judge, "control"), row.estimate)
        lines[name(row, "metric")] += (lane,)
    heading = STATISTICS[statistic].heading
    title = f"{heading} with interval, failures left out"
    key = f"judges_and_controls_{statistic}"
    return Intervals(key, title, tuple(lines.items()), axis=heading)


def score_plot(a: Alignment, statistic: str, ax: Any, width: float | None) -> Any:
    """The axes of `score_figure`."""
    draw = partial(draw_intervals, score_figure(a, statistic))
    return plotted(draw, ax, width)


def confusion_figures(a: Alignment) -> Iterator[Figure]:
    """The confusion matrices of each real judge."""
    real = [j for j in a.real_judges if a.results.select("confusion", judge=j.name)]
    for number, judge in enumerate(real, start=1):
        title = f"{judge.name} beside the reference label; framed where both agree"
        key = f"confusion_{number}_{slug(judge.name)[:40]}"
        yield Drawing(key, title, partial(draw_confusions, a, judge.name, title))


def reliability_figures(a: Alignment) -> Iterator[Figure]:
    """The reliability diagrams of each judge that gave probabilities."""
    for number, judge in enumerate(a.results.values("judge", "calibration"), start=1):
        title = f"Reliability of {judge}; on the dashed line it is as often right as it says"
        yield Drawing(f"reliability_{number}", title, partial(draw_reliability, a, judge, title))


def difference_figures(a: Alignment) -> Iterator[Figure]:
    """The Bland-Altman plots of each judge on metrics whose labels are numbers."""
    rows = a.results.select("limits_of_agreement", "lower_limit")
    judges = dict.fromkeys(row.judge for row in rows if row.estimate.n)
    for number, judge in enumerate(judges, start=1):
        title = f"Differences of {judge} from the reference label, with limits of agreement"
        yield Drawing(f"differences_{number}", title, partial(draw_differences, a, judge, title))


def draw_confusions(a: Alignment, judge: str, title: str) -> Any:
    """A matrix per metric, human label down, the judge's label across, missing last."""
    found = {m: a.results.select("confusion", judge=judge, metric=m.id) for m in a.rubric.metrics}
    metrics = [metric for metric, rows in found.items() if rows]  # those that it judges
    most = max(len(metric.labels) for metric in metrics)
    size = (2.0 + 0.86 * most, 1.5 + 0.5 * most)
    figure, panels = _panels(title, len(metrics), 2, size, (0.0, 0.5))
    for axes, metric in zip(panels, metrics, strict=True):
        counts = np.array([count_of(row.estimate) for row in found[metric]])
        _matrix(axes, counts.reshape(len(metric.labels), -1), metric)
    return figure


def _panels(
    title: str, n: int, most: int, size: tuple[float, float], beside: tuple[float, float]
) -> tuple[Any, Sequence[Any]]:
    figure, panels = new_panels(n, most, size, beside)
    figure.suptitle(wrapped(title, int(12 * figure.get_figwidth())), fontsize=10)
    return figure, panels


def _matrix(axes: Any, counts: Any, metric: Metric) -> None:
    from matplotlib.patches import Rectangle

    labels = metric.label_texts
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for (i, j), count in np.ndenumerate(counts):
        ink = ink_on(image.to_rgba(shares[i, j]))
        axes.text(j, i, f"{count:,}", ha="center", va="center", color=ink)
    axes.axvline(len(labels) - 0.5, color="white", linewidth=3)
    look: dict[str, Any] = {"fill": False, "edgecolor": "#D55E00", "linewidth": 1.6, "zorder": 3}
    for i in range(len(labels)):  # where judge and humans agree
        axes.add_patch(Rectangle((i - 0.47, i - 0.47), 0.94, 0.94, **look))
    columns = [*labels, "No label"]
    axes.set_xticks(range(len(columns)), [wrapped(c, 13) for c in columns], fontsize=SMALL)
    axes.set_yticks(range(len(labels)), [wrapped(c, 18) for c in labels], fontsize=SMALL)
    axes.set(xlabel="Label of the judge", ylabel="Reference label")
    axes.set_title(wrapped(metric.title, 40), loc="left", fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw_differences(a: Alignment, judge: str, title: str) -> Any:
    """A panel per metric: mean of judge and reference across, their difference up, the area of a
    point by its number of items, and lines at the mean difference and its limits."""
    of = partial(a.results.find, analysis="limits_of_agreement", judge=judge)
    metrics = [metric for metric in a.rubric.metrics if of("lower_limit", metric=metric.id).n]
    figure, panels = _panels(title, len(metrics), 3, (2.8, 2.7), (0.4, 0.8))
    for axes, metric in zip(panels, metrics, strict=True):
        numbers = dict(zip(metric.label_texts, label_numbers(metric), strict=True))
        every = a.results.select("confusion", judge=judge, metric=metric.id)
        rows = [row for row in every if row["label"] and row.estimate.value]
        counts = np.array([count_of(row.estimate) for row in rows])
        judged, human = (
            np.array([numbers[row[key]] for row in rows]) for key in ("label", "human_label")
        )
        area = 180 * counts / max(1, counts.max())
        axes.scatter(
            (judged + human) / 2, judged - human, s=area, color="#0072B2", alpha=0.6, linewidth=0
        )
        for key in LIMITS_OF_AGREEMENT:
            _limit_line(axes, of(key, metric=metric.id), "-" if key == "mean_difference" else "--")
        axes.set_title(wrapped(metric.title, 34), loc="left", fontsize=9)
    figure.supxlabel("Mean of judge and reference label", fontsize=9)
    figure.supylabel("Judge minus reference label", fontsize=9)
    return figure


def _limit_line(axes: Any, limit: Estimate, style: str) -> None:
    if limit.value is None:
        return
    axes.axhline(limit.value, color="#D55E00", linestyle=style, linewidth=1)
    if limit.low is not None:
        axes.axhspan(limit.low, limit.high, color="#D55E00", alpha=0.12, linewidth=0)


def draw_reliability(a: Alignment, judge: str, title: str) -> Any:
    """A panel per metric, confidence across and the share right up, with the diagonal."""
    select = partial(a.results.select, "calibration", judge=judge)
    metrics = [metric for metric in a.rubric.metrics if select(metric=metric.id)]
    figure, panels = _panels(title, len(metrics), 3, (2.5, 2.7), (0.4, 0.8))
    for axes, metric in zip(panels, metrics, strict=True):
        confidences, shares = (select(x, metric=metric.id) for x in ("confidence", "share_right"))
        _reliability_panel(axes, zip(confidences, shares, strict=True))
        about = {"judge": judge, "metric": metric.id, "who": "probabilities"}
        error = a.results.find("ece_debiased", "probability", **about)
        n = sum(row.estimate.n for row in shares)
        name = wrapped(metric.title, 34)
        axes.set_title(f"{name}\nECE {error:.2f}, n = {n:,}", loc="left", fontsize=9)
    figure.supxlabel("Mean probability of the likeliest label", fontsize=9)
    figure.supylabel("Share right, with exact interval", fontsize=9)
    return figure


def _reliability_panel(axes: Any, points: Iterable[tuple[Row, Row]]) -> None:
    axes.plot([0, 1], [0, 1], linestyle="--", color="#767676", linewidth=0.8)
    for confidence, share in points:
        if error := whisker(share.estimate):
            axes.errorbar(
                confidence.estimate.value, share.estimate.value, yerr=error,
                marker="o", markersize=4, color="#0072B2", elinewidth=1,
            )  # fmt: skip
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
