"""Figures for papers and slides: how intervals are drawn, and what all figures share.

Colours are told apart with every common kind of colour blindness, and each is doubled by a shape, a
place or a printed number.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import groupby
from typing import Any

import numpy as np

from judgebench.errors import MissingExtra
from judgebench.records import Estimate
from judgebench.results.part import Figure, Intervals, Lane, Standing, margin_words
from judgebench.results.strip import stacked
from judgebench.results.tables import DASH
from judgebench.words import percent, wrapped

FORMATS = ("svg", "png", "pdf")  # for a page, to look at, for a paper
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],  # what a reader of an SVG may have
    "svg.fonttype": "none",  # text stays text: small, and as sharp as the page
    "svg.hashsalt": "judgebench",
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a $ in a name is a $
    "figure.dpi": 100,
    "savefig.dpi": 160,
}
SMALL = 8.4  # points: no text of a page has fewer than 11 pixels
# Okabe and Ito's colours with a shape each; they repeat after eight judges, the shapes after nine.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C510A", "#555555")
_SHAPES = ("o", "s", "D", "^", "v", "P", "X", "p", "h")
_GREY = "#767676"
_WARN = "#8a4b00"
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


def _undefined(after: str, estimates: Iterable[Estimate]) -> str:
    """The meaning of a dash; empty where there is none."""
    return f"{after}{DASH} means undefined" * any(e.value is None for e in estimates)


def _row_name(stubs: Sequence[str], estimates: Sequence[Estimate]) -> str:
    """The name of a row, and the smallest and largest n of its defined estimates."""
    measured = [e for e in estimates if e.value is not None] or list(estimates)
    return "\n".join([*(wrapped(s, 30) for s in stubs if s != DASH), counts_line(measured)])


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
    looks = looks_of([lane for _, lanes in shown.lines for lane in lanes])
    names = [
        _row_name([line], [x.estimate for x in lanes if x.kind != "human"])
        if shown.counts
        else wrapped(line, 30)
        for line, lanes in shown.lines
    ]
    heights = [
        max(0.16 * (1.5 + name.count("\n")), 0.14 + 0.09 * len(lanes))
        for name, (_, lanes) in zip(names, shown.lines, strict=True)
    ]
    across = 1 if max((len(look["label"]) for look in looks.values()), default=0) > 30 else 2
    entries = -(-(len(looks) + len(shown.bounds)) // across)
    height = 1.3 + 0.2 * entries + len(names) * max(heights, default=0.3)
    axes = ax or (new or new_figure)(5.6, height).subplots()
    for y, (_, lanes) in enumerate(shown.lines):
        axes.axhspan(y - 0.5, y + 0.5, color="#f4f4f4" if y % 2 else "white", zorder=0)
        for place, lane in enumerate(lanes):
            at = y - 0.4 + (place + 0.5) * 0.8 / len(lanes)
            _whisker(axes, lane.estimate, at, looks[lane.name])
    for look in looks.values():  # every lane stands in the legend, also where it has no value
        axes.plot([], [], linestyle="none", **look)
    for (words, bound), line in zip(shown.bounds.items(), _LINES * 9, strict=False):
        axes.axvline(bound, color="#444444", linewidth=0.9, linestyle=line, label=words)
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(len(names) - 0.5, -0.5), ylabel=shown.down)
    if shown.limits or axes.get_xlim()[0] > -0.1:  # else some are negative, and all are shown
        axes.set_xlim(*(shown.limits or (-0.02, 1.02)))
    if shown.percent:
        axes.xaxis.set_major_formatter(lambda x, _: percent(x))
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    none = _undefined("; ", (lane.estimate for _, lanes in shown.lines for lane in lanes))
    axes.set_xlabel(wrapped(f"{shown.axis or 'Value with interval'}{none}", 48))
    if ax:
        axes.set_title(wrapped(shown.title, 48), loc="left", fontsize=10)
    else:
        axes.figure.suptitle(wrapped(shown.title, 62), x=0.02, ha="left", fontsize=10)
    (ax or axes.figure).legend(**(_UNDER if ax else {"loc": "outside lower left"}), ncols=across)
    return axes.figure


def draw_standings(standings: Sequence[Standing], new: _New | None = None, ax: Any = None) -> Any:
    """A row for each judge, the metrics after each other: its share with the interval, a dot for
    each annotator, a bar for the best baseline, and shaded what the decision allows; in a `new`
    figure, or in the axes `ax`. In a column of a paper, names and outcomes stand on two lines."""
    rows = [
        (metric, one)
        for metric, same in groupby(standings, key=lambda one: one.metric)
        for one in (None, *same)
    ]
    names = [metric if one is None else one.judge for metric, one in rows]
    axes = ax or (new or new_figure)(6.8, 1.25 + 0.27 * len(rows)).subplots()
    narrow = axes.bbox.width / axes.figure.dpi < _NARROW
    if narrow and not ax:
        axes.figure.set_figheight(1.6 + 0.34 * len(rows))
    for y, (_, one) in enumerate(rows):
        if one is not None:
            _draw_standing(axes, y, one, margin_words(standings))
            share = percent(one.accuracy.value)
            said = f"{share}\n{one.outcome}" if narrow else f"judge {share}  {one.outcome}"
            colour, size = _OUTCOMES.get(one.look, _COLOURS[0]), _IN_COLUMN if narrow else SMALL
            look: dict[str, Any] = {"color": colour, "fontsize": size}
            axes.text(
                1.02, y, said.rstrip(), va="center", transform=axes.get_yaxis_transform(), **look
            )
    _shares(axes, names, narrow, beside=ax is not None)
    for label, (_, one) in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("normal" if one else "bold")
    return axes.figure


def _shares(axes: Any, names: Sequence[str], narrow: bool = False, *, beside: bool = False) -> None:
    """Name the rows and the scale, and say what the marks are: below the figure, or below axes that
    have others `beside` them."""
    axes.set_yticks(range(len(names)), [wrapped(name, 18 if narrow else 34) for name in names])
    axes.set(xlim=(0, 1.02), ylim=(len(names) - 0.4, -0.6))
    axes.set_xlabel(wrapped("Share of answers with the reference label", 24 if narrow else 50))
    steps = 2 if narrow else 5
    axes.set_xticks(*zip(*((x / steps, percent(x / steps)) for x in range(steps + 1)), strict=True))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="#e3e3e3", linewidth=0.6)
    axes.set_axisbelow(True)
    handles = {text: mark for mark, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    look: dict[str, Any] = {"ncols": 1 if narrow else 3, **(_UNDER if beside else {})}
    if narrow:
        axes.xaxis.label.set_size(_IN_COLUMN)
        axes.tick_params(labelsize=_IN_COLUMN)
        look |= {"fontsize": _IN_COLUMN}
    if not beside:
        look |= {"loc": "outside lower center"}
    (axes if beside else axes.figure).legend(handles.values(), handles.keys(), **look)


def _draw_standing(axes: Any, y: float, one: Standing, within: str) -> None:
    humans, own, best = one.humans.value, one.accuracy.value, one.baseline.value
    colour = _OUTCOMES.get(one.look, _COLOURS[0])
    if humans is not None and one.margin:
        shade: dict[str, Any] = {"color": _COLOURS[2], "alpha": 0.15, "linewidth": 0}
        axes.barh(y, 1 - humans + one.margin, 0.86, humans - one.margin, label=within, **shade)
    people = stacked(e.value for e in one.annotators.values() if e.value is not None)
    look: dict[str, Any] = {"linestyle": "none", "color": _GREY, "markersize": 5, "zorder": 5}
    aside = [y + 0.24 * place + 0.18 * np.sign(place) for _, place in people]  # of the judge
    places = [[value for value, _ in people], aside]
    axes.plot(*places, marker="o", markeredgecolor="white", label="annotator", **look)
    if best is not None:
        bar: dict[str, Any] = {"marker": "|", "markersize": 11, "markeredgewidth": 2.2}
        axes.plot([best], [y], linestyle="none", color="#b98900", label="best baseline", **bar)
    if own is not None:
        shape: dict[str, Any] = {"markersize": 7.5, "elinewidth": 2.2, "zorder": 4}
        shape |= {"marker": _MARKS.get(one.look, "d")}
        if one.look == "unclear":  # told apart without colours, too
            shape |= {"markerfacecolor": "white", "markeredgewidth": 1.6}
        label = f"judge: {one.outcome}" if one.outcome else "judge, with its interval"
        axes.errorbar(own, y, xerr=whisker(one.accuracy), color=colour, label=label, **shape)


def looks_of(lanes: Sequence[Lane]) -> Mapping[str, dict[str, Any]]:
    """Label, colour and shape of each lane by its name; controls are hollow, humans black."""
    kinds = {lane.name: lane.kind for lane in lanes}
    looks: dict[str, dict[str, Any]] = {}
    for name, kind in kinds.items():
        number = [n for n, k in kinds.items() if k == kind].index(name)
        look = {"label": wrapped(name, 40), "marker": _SHAPES[number % len(_SHAPES)]}
        looks[name] = (
            look
            | {
                "judge": {"markersize": 4, "color": _COLOURS[number % len(_COLOURS)]},
                "control": {"markersize": 4, "color": _GREY, "markerfacecolor": "white"},
                "human": {"markersize": 8, "color": "black", "marker": "|"},
            }[kind]
        )
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
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    figure.savefig(out, format=kind, metadata=dated.get(kind), facecolor="white")
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


def grid_ticks(axes: Any, columns: list[str], rows: list[str], titles: tuple[str, str]) -> None:
    """Names above the columns and beside the rows, their titles, and no frame."""
    axes.set_xticks(range(len(columns)), [wrapped(c, 14) for c in columns])
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_yticks(range(len(rows)), rows)
    axes.set(xlabel=titles[0], ylabel=titles[1])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def counts_line(estimates: list[Estimate]) -> str:
    """`n = 40` or `n = 12–40`: the smallest and the largest n."""
    counts = [e.n for e in estimates]
    least, most = min(counts, default=0), max(counts, default=0)
    return f"n = {least:,}" + (f"–{most:,}" if most > least else "")
