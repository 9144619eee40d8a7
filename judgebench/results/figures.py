"""Figures for papers and slides: how intervals are drawn, and what all figures share.

Colours are told apart with every common kind of colour blindness, and each is doubled by a shape, a
place or a printed number.
"""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import cycle, groupby
from typing import Any

from judgebench.errors import MissingExtra
from judgebench.records import Estimate
from judgebench.results.blocks import (
    DecisionSummary,
    Figure,
    IntervalKind,
    Intervals,
    LabelledInterval,
    margin_words,
)
from judgebench.results.tables import DASH
from judgebench.text import percent, wrapped

FORMATS = ("svg", "png", "pdf")  # for a page, to look at, for a paper
_UNDATED: Mapping[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
_STYLE = {
    "font.sans-serif": ["DejaVu Sans"],  # matplotlib brings it along
    "svg.fonttype": "none",  # text stays text: small, and as sharp as the page
    "svg.hashsalt": "judgebench",
    "font.size": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a $ in a name is a $
    "savefig.dpi": 160,
}
SMALL = 8.4  # points: no text of a page has fewer than 11 pixels
# Okabe and Ito's colours with a shape each; they repeat after eight judges, the shapes after nine.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C510A", "#555555")
_SHAPES = ("o", "s", "D", "^", "v", "P", "X", "p", "h")
_GREY = "#767676"
_OF_KIND: Mapping[IntervalKind, dict[str, Any]] = {
    "control": {"color": _GREY, "markerfacecolor": "white"},
    "human": {"color": "black", "marker": "|", "markersize": 8},
}
_LINES = ("-", "--", ":", "-.")  # of the bounds
_MARKS = {"good": "D", "fair": "s", "bad": "X"}  # of outcomes; without one, and unclear: a lozenge
_NARROW = 3.9  # inches of axes, before room is made for names: those of a column of a paper
_IN_COLUMN = 7.2  # points
_UNDER = {"loc": "upper left", "bbox_to_anchor": (0, -0.2)}  # the legend of axes beside others
_OUTCOMES = {"good": "#1a7f4b", "fair": "#0b5cad", "bad": "#b3261e", "unclear": "#333333"}
# Families that have letters which the usual font lacks, such as Chinese ones.
_OTHER_SCRIPTS = (
    "Noto Sans", "WenQuanYi", "Droid Sans Fallback", "Arial Unicode", "Microsoft YaHei", "PingFang",
)  # fmt: skip
_New = Callable[[float, float], Any]


def drawn(figures: Iterable[Figure]) -> dict[str, dict[str, bytes]]:
    """File name without its ending -> format -> content, for each figure. Raises MissingExtra
    without matplotlib."""
    files: dict[str, dict[str, bytes]] = {}
    for figure in figures:
        name = slug(figure.key)
        if name in files:
            name = f"{name}-{len(files) + 1}"
        files[name] = save_figure(
            partial(draw_intervals, figure) if isinstance(figure, Intervals) else figure.draw
        )
    return files


def plotted(draw: Callable[..., Any], ax: Any = None, width: float | None = None) -> Any:
    """The axes of `draw_intervals` or `draw_standings`: those given, or of a figure that a notebook
    shows, of a `width` in inches."""
    _check_installed()
    import matplotlib.pyplot as plt

    plt.draw_if_interactive()  # loads a notebook's backend, whose settings end with a context
    with plt.rc_context(_STYLE):
        if ax is not None:
            draw(ax=ax)
            return ax
        figure = draw(new=lambda w, h: plt.figure(figsize=(width or w, h), layout="constrained"))
    return figure.axes[0]


def draw_intervals(shown: Intervals, new: _New | None = None, ax: Any = None) -> Any:
    """A band for each line, with a point and its interval for each lane, in a `new` figure or in
    the axes `ax`."""
    lanes = [lane for _, lanes in shown.lines for lane in lanes]
    looks = looks_of(lanes)
    room = 0.3 + 0.1 * max((len(lanes) for _, lanes in shown.lines), default=0)
    height = 1.3 + 0.1 * (len(looks) + len(shown.bounds)) + room * len(shown.lines)
    axes = ax or (new or new_figure)(5.6, height).subplots()
    for y, (_, line) in enumerate(shown.lines):
        axes.axhspan(y - 0.5, y + 0.5, color="#f4f4f4" if y % 2 else "white", zorder=0)
        for place, lane in enumerate(line):
            at = y - 0.4 + (place + 0.5) * 0.8 / len(line)
            _whisker(axes, lane.estimate, at, looks[lane.name])
    for look in looks.values():  # every lane stands in the legend, also where it has no value
        axes.plot([], [], linestyle="none", **look)
    for (words, bound), style in zip(shown.bounds.items(), cycle(_LINES), strict=False):
        axes.axvline(bound, color="#444444", linewidth=0.9, linestyle=style, label=words)
    axes.set(ylim=(len(shown.lines) - 0.5, -0.5), ylabel=shown.down)
    low, high = limits_of(shown)
    room_beside = 0.0 if shown.limits else 0.02 * (high - low)
    axes.set_xlim(low - room_beside, high + room_beside)
    if shown.percent:
        axes.xaxis.set_major_formatter(lambda x, _: percent(x))
    undefined = any(lane.estimate.value is None for lane in lanes)
    meaning = f"; {DASH} means undefined" if undefined else ""
    names = [_row_name(name, line, shown.counts) for name, line in shown.lines]
    _frame(axes, names, wrapped(f"{shown.axis or 'Value with interval'}{meaning}", 48))
    axes.set_title(wrapped(shown.title, 62), loc="left", fontsize=10)
    _legend(axes, ax is not None, 2)
    return axes.figure


def _row_name(name: str, lanes: Sequence[LabelledInterval], counts: bool) -> str:
    """The name of a line, and the smallest and largest n of its defined estimates."""
    numbers = [lane.estimate for lane in lanes if lane.kind != "human"]
    defined = [e.n for e in numbers if e.value is not None] or [e.n for e in numbers] or [0]
    n = "–".join(dict.fromkeys(f"{n:,}" for n in (min(defined), max(defined))))
    return f"{wrapped(name, 30)}\nn = {n}" if counts else wrapped(name, 30)


def _frame(axes: Any, names: Sequence[str], across: str) -> None:
    """The names of the rows and of the scale, and lines to read it by."""
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel(across)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _legend(axes: Any, is_beside: bool, n_columns: int, size: float = 8.5) -> None:
    """What the marks are, each once: below the figure, or below axes that are beside others."""
    marks = {text: mark for mark, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    place: dict[str, Any] = _UNDER if is_beside else {"loc": "outside lower center"}
    legend = axes.legend if is_beside else axes.figure.legend
    legend(marks.values(), marks.keys(), ncols=n_columns, fontsize=size, **place)


def draw_standings(
    standings: Sequence[DecisionSummary], new: _New | None = None, ax: Any = None
) -> Any:
    """A row for each judge, the metrics after each other: its share with the interval, a dot for
    each annotator, a bar for the best baseline, and shaded what the decision allows; in a `new`
    figure, or in the axes `ax`. In a column of a paper, names and outcomes stand on two lines."""
    rows: list[str | DecisionSummary] = []
    for metric, same in groupby(standings, key=lambda one: one.metric):
        rows += [metric, *same]
    axes = ax or (new or new_figure)(6.8, 1.25 + 0.27 * len(rows)).subplots()
    narrow = axes.bbox.width / axes.figure.dpi < _NARROW
    if narrow and not ax:
        axes.figure.set_figheight(1.6 + 0.34 * len(rows))
    size, width, words = (_IN_COLUMN, 18, 24) if narrow else (8.5, 34, 50)
    names = [wrapped(row if isinstance(row, str) else row.judge, width) for row in rows]
    _frame(axes, names, wrapped("Share of answers with the reference label", words))
    axes.set(xlim=(0, 1.02), ylim=(len(rows) - 0.4, -0.6))
    axes.set_xticks([0, 0.5, 1])
    axes.xaxis.set_major_formatter(lambda x, _: percent(x))
    axes.xaxis.label.set_size(size)
    axes.tick_params(labelsize=size)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for y, (row, name) in enumerate(zip(rows, axes.get_yticklabels(), strict=True)):
        if isinstance(row, str):
            name.set_fontweight("bold")
            continue
        _draw_standing(axes, y, row, margin_words(standings))
        share = percent(row.accuracy.value)
        outcome = f"{share}\n{row.outcome}" if narrow else f"judge {share}  {row.outcome}"
        look = {"color": _OUTCOMES.get(row.look, _COLOURS[0]), "fontsize": size, "va": "center"}
        axes.text(1.02, y, outcome.rstrip(), transform=axes.get_yaxis_transform(), **look)
    _legend(axes, ax is not None, 1 if narrow else 3, size)
    return axes.figure


def _draw_standing(axes: Any, y: float, one: DecisionSummary, within: str) -> None:
    colour = _OUTCOMES.get(one.look, _COLOURS[0])
    if one.humans.value is not None and one.margin:
        low = one.humans.value - one.margin
        shade: dict[str, Any] = {"color": _COLOURS[2], "alpha": 0.15, "linewidth": 0}
        axes.barh(y, 1 - low, 0.86, low, label=within, **shade)
    dot = {"color": _GREY, "markersize": 5, "markeredgecolor": "white", "zorder": 5}
    for value, down in annotator_dots(one):
        axes.plot(value, y + 0.03 * down, "o", label="annotator", **dot)
    if one.baseline.value is not None:
        bar = {"color": "#b98900", "markersize": 11, "markeredgewidth": 2.2}
        axes.plot(one.baseline.value, y, "|", label="best baseline", **bar)
    if one.accuracy.value is not None:
        ground = "white" if one.look == "unclear" else colour  # told apart without colours, too
        mark = {"markersize": 6.5, "markerfacecolor": ground, "markeredgewidth": 1.6, "zorder": 4}
        label = f"judge: {one.outcome}" if one.outcome else "judge, with its interval"
        interval = {"xerr": whisker(one.accuracy), "fmt": _MARKS.get(one.look, "d")}
        axes.errorbar(
            one.accuracy.value, y, color=colour, elinewidth=2.2, label=label, **interval, **mark
        )


def looks_of(lanes: Sequence[LabelledInterval]) -> Mapping[str, dict[str, Any]]:
    """Label, colour and shape of each lane by its name; controls are hollow, humans black."""
    looks: dict[str, dict[str, Any]] = {}
    counts = Counter[IntervalKind]()
    for name, kind in {lane.name: lane.kind for lane in lanes}.items():
        look = {"marker": _SHAPES[counts[kind] % len(_SHAPES)], "markersize": 4}
        look |= {"color": _COLOURS[counts[kind] % len(_COLOURS)], **_OF_KIND.get(kind, {})}
        looks[name] = {"label": wrapped(name, 40), **look}
        counts[kind] += 1
    return looks


def _whisker(axes: Any, e: Estimate, y: float, look: Mapping[str, Any]) -> None:
    """A point with its interval; a dash at the left edge where the number is undefined."""
    if e.value is None:
        at_edge = axes.get_yaxis_transform()
        axes.text(
            0.01, y, DASH, transform=at_edge, va="center", fontsize=SMALL, color=look["color"]
        )
        return
    shown = {**look, "label": "_nolegend_", "linestyle": "none", "elinewidth": 1}
    axes.errorbar(e.value, y, xerr=whisker(e), **shown)


def whisker(e: Estimate) -> list[list[float]] | None:
    """The lengths by which an interval reaches below and above its value, as `errorbar` takes
    it."""
    if e.value is None or e.low is None or e.high is None:
        return None
    return [[max(0.0, e.value - e.low)], [max(0.0, e.high - e.value)]]


# --- what all figures share -----------------------------------------------------------------------


def save_figure(draw: Callable[[], Any]) -> dict[str, bytes]:
    """The figure that `draw` makes, drawn once and saved in every format. Of a character that no
    installed font has, matplotlib warns."""
    _check_installed()
    import matplotlib as mpl
    from matplotlib.font_manager import fontManager
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.text import Text

    families = {font.name for font in fontManager.ttflist if font.name.startswith(_OTHER_SCRIPTS)}
    with mpl.rc_context(_STYLE):
        figure = draw()
        for text in figure.findobj(Text):
            if not text.get_text().isascii():
                text.set_fontfamily(["DejaVu Sans", *sorted(families)])
        # Make room for all text, once: as the figure's own engine it would work in every format.
        ConstrainedLayoutEngine().execute(figure)
        return {kind: _save(figure, kind) for kind in FORMATS}


def _save(figure: Any, kind: str) -> bytes:
    out = io.BytesIO()
    # Without its date the same figure is the same file.
    figure.savefig(out, format=kind, metadata=_UNDATED.get(kind), facecolor="white")
    return out.getvalue()


def slug(text: str) -> str:
    """`text` as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:80] or "figure"


def new_figure(width: float, height: float) -> Any:
    """A figure, in inches, that no global state holds on to, so that none is left open. Raises
    MissingExtra without matplotlib."""
    _check_installed()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def _check_installed() -> None:
    if find_spec("matplotlib") is None:
        raise MissingExtra("a figure", "figures", "matplotlib")


def new_panels(
    n: int, most: int, size: tuple[float, float], beside: tuple[float, float], **shared: bool
) -> tuple[Any, list[Any]]:
    """A figure with `n` panels of a `size` in inches, at most so many side by side."""
    across = min(most, n)
    down = -(-n // across)
    figure = new_figure(beside[0] + size[0] * across, beside[1] + size[1] * down)
    panels = list(figure.subplots(down, across, squeeze=False, **shared).flat)
    for axes in panels[n:]:
        axes.set_visible(False)
    return figure, panels[:n]


def ink_on(ground: Any) -> str:
    """Black or white, whichever stands out more from a colour (WCAG 2.2: at least 4.58 to 1)."""
    from matplotlib.colors import to_rgb

    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(ground)
    )
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "white"


Limits = tuple[float, float]
Number = tuple[float, str, str, int]  # its place, whose it is, its anchor and shift in pixels
_ENDS = (0.15, 0.9)  # beyond them a number would leave the page beside its place
_NEAR, _NEARER = 0.5, 0.3  # apart: nearer, two numbers under their places would touch
_HALF = 50  # pixels of half a number with its word
_SAME = 0.025  # so near to each other, dots are drawn apart
_PLACES = (-0.45, 0.45, -1.0, 1.0, 0.0)  # a judge is on the line


def stacked(values: Iterable[float]) -> list[tuple[float, float]]:
    """Each value with its place above (-1) or below (1) the line, so that those that nearly
    coincide are seen as several.

    >>> stacked([0.84, 0.5, 0.84])
    [(0.5, -0.45), (0.84, -0.45), (0.84, 0.45)]
    """
    ordered = sorted(values)
    near = (sum(x - y < _SAME for y in ordered[:i]) for i, x in enumerate(ordered))
    return [(x, _PLACES[n % len(_PLACES)]) for x, n in zip(ordered, near, strict=True)]


def annotator_dots(standing: DecisionSummary) -> list[tuple[float, float]]:
    """The value of each annotator, and how far below the line it is drawn, in pixels: beside the
    judge. Of places in a list, it is that of all."""
    annotators = [*standing.annotators.values()] or [standing.humans]
    places = stacked(e.value for e in annotators if e.value is not None)
    return [(value, place and 5.5 * place + math.copysign(8.5, place)) for value, place in places]


def numbers_below(standing: DecisionSummary) -> Sequence[Number]:
    """The numbers of baseline and annotators, side by side where they are near to each other."""
    numbers = ((standing.baseline.value, "control"), (standing.humans.value, "human"))
    known = sorted((value, kind) for value, kind in numbers if value is not None)
    if len(known) < 2 or known[1][0] - known[0][0] >= _NEAR:
        return [(value, kind, "middle", 0) for value, kind in known]
    (low, first), (high, second) = known
    apart = _HALF if high - low < _NEARER else 0
    at_left, at_right = low < _ENDS[0], high > _ENDS[1]
    left = ("middle", 0) if at_left else ("end", -apart * at_right)
    right = ("middle", 0) if at_right else ("start", apart * at_left)
    return [(low, first, *left), (high, second, *right)]


def limits_of(figure: Intervals) -> Limits:
    """The ends of a figure's scale: its own, else 0 and 1, else what its numbers need."""
    if figure.limits:
        return figure.limits
    estimates = [lane.estimate for _, lanes in figure.lines for lane in lanes]
    numbers = [x for e in estimates for x in (e.value, e.low, e.high) if x is not None]
    numbers += figure.bounds.values()
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1)
