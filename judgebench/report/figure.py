"""What all figures share: style, size, files, and numbers printed into cells."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from judgebench.records import Estimate
from judgebench.report.words import wrapped
from judgebench.results.tables import DASH

FORMATS = ("png", "pdf", "svg")  # to look at, for a paper, for a page
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],  # what a reader of an SVG may have
    "svg.fonttype": "none",  # text stays text: small, and as sharp as the page
    "svg.hashsalt": "judgebench",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a $ in a name is a $
    "figure.dpi": 100,
    "savefig.dpi": 160,
}
DARK = 0.72  # shares above it are so dark that text on them is white


def save_figure(draw: Callable[[], Any]) -> Mapping[str, bytes]:
    """The figure that `draw` makes, in every format."""
    with _style():
        figure = draw()
        _lay_out(figure)
        return {kind: _save(figure, kind) for kind in FORMATS}


def slug(text: str) -> str:
    """`text` as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:80] or "figure"


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # A script that the font lacks is drawn as boxes; the tables and the page show it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def new_figure(width: float, height: float) -> Any:
    """A figure, in inches, that no global state holds on to, so that none is left open."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def _lay_out(figure: Any) -> None:
    """Make room for all text, once: as the figure's own engine it would work in every format."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    ConstrainedLayoutEngine().execute(figure)


def _save(figure: Any, kind: str) -> bytes:
    out = io.BytesIO()
    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    no_date = dates.get(kind)  # the same figure, the same file
    figure.savefig(out, format=kind, metadata=no_date, facecolor="white")
    return out.getvalue()


def number_in_cell(axes: Any, i: int, j: int, estimate: Estimate, dark: float = DARK) -> None:
    """The value of row i and column j, and under it the interval; white where above `dark`."""
    value = estimate.value
    colour = "white" if value is not None and value > dark else "black"
    axes.text(
        j, i - 0.12 if estimate.low is not None else i, DASH if value is None else f"{value:.2f}",
        ha="center", va="center", color=colour,
    )  # fmt: skip
    if value is not None and estimate.low is not None and estimate.high is not None:
        interval = f"[{estimate.low:.2f}, {estimate.high:.2f}]"
        axes.text(j, i + 0.22, interval, ha="center", va="center", fontsize=5.8, color=colour)


def grid_ticks(axes: Any, columns: list[str], rows: list[str]) -> None:
    """Names above the columns and beside the rows, and no frame."""
    axes.set_xticks(range(len(columns)), [wrapped(c, 14) for c in columns], fontsize=7)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def counts_line(estimates: list[Estimate]) -> str:
    """`n = 40` or `n = 12–40`: the smallest and the largest n."""
    counts = [e.n for e in estimates]
    least, most = min(counts, default=0), max(counts, default=0)
    return f"n = {least:,}" + (f"–{most:,}" if most > least else "")
