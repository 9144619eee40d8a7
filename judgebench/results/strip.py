"""Small plots inside a page: an interval on a line, drawn as SVG that scales in width alone, so
that its text keeps its size on every screen.

The shape says who is drawn, and the colour the outcome: a judge is a diamond, hollow where nothing
is known, an annotator a dot, a baseline a bar.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from markupsafe import Markup

from judgebench.records import Estimate
from judgebench.results.part import Intervals, Lane, LaneKind, Standing
from judgebench.results.tables import in_per_cent
from judgebench.words import listed, percent, printable

Limits = tuple[float, float]
_SHARES: Limits = (0.0, 1.0)
_EDGE = 2.0  # per cent of the width that stay free on either side
_ENDS = (0.15, 0.9)  # beyond them a number would leave the page beside its place
_NEAR, _NEARER = 0.5, 0.3  # apart: nearer, two numbers under their places would touch
_HALF = 50  # pixels of half a number with its word
_SAME = 0.025  # so near to each other, dots are drawn apart
_PLACES = (-0.45, 0.45, -1.0, 1.0, 0.0)  # a judge is on the line
_SHAPES: Mapping[LaneKind, Markup] = {
    "judge": Markup("M0-8 5.5 0 0 8-5.5 0Z"),
    "control": Markup("M-2-9H2V9H-2Z"),
    "human": Markup("M-4.5 0a4.5 4.5 0 1 0 9 0 4.5 4.5 0 1 0-9 0Z"),
}
_WORDS = {"control": "baseline", "human": "humans"}
# The ends of the scale stand beside it, where no other number is.
_SCALE = Markup(
    '<text class="end" x="2%" y="34" dx="-7" text-anchor="end">0</text>'
    '<text class="end" x="98%" y="34" dx="7" text-anchor="start">100 %</text>'
)


def standing_strip(standing: Standing) -> Markup:
    """A judge's interval between the best baseline and the annotators, from 0 to 100 %."""
    humans, baseline = standing.humans.value, standing.baseline.value
    pieces = [_line("axis", 0, 1, 30), *(_line("tick", x, x, 30) for x in (0, 0.5, 1)), _SCALE]
    if humans is not None and standing.margin:
        low = max(0.0, humans - standing.margin)
        width = f"{_place(1.0) - _place(low):.2f}%"
        pieces.insert(0, _tag("rect", "margin", x=_x(low), y=16, width=width, height=28))
    if baseline is not None:
        pieces.append(_mark("control", baseline, 30))
    pieces += _interval(standing.accuracy, "judge", 30, look=standing.look)
    people = [*standing.annotators.values()] or [standing.humans]  # of places in a list, all pooled
    for value, place in stacked(e.value for e in people if e.value is not None):
        aside = math.copysign(8.5, place) if place else 0  # of the judge
        pieces.append(_mark("human", value, 30 + aside + 5.5 * place))
    pieces += _numbers_below(standing)
    if standing.accuracy.value is not None:
        look = f"judge {standing.look}".rstrip()
        pieces.append(_number(standing.accuracy.value, 6, look))
    return _svg("strip", 66, _in_words(standing), pieces)


def stacked(values: Iterable[float]) -> list[tuple[float, float]]:
    """Each value with its place above (-1) or below (1) the line, so that those that nearly
    coincide are seen as several.

    >>> stacked([0.84, 0.5, 0.84])
    [(0.5, -0.45), (0.84, -0.45), (0.84, 0.45)]
    """
    ordered = sorted(values)
    near = (sum(x - y < _SAME for y in ordered[:i]) for i, x in enumerate(ordered))
    return [(x, _PLACES[n % len(_PLACES)]) for x, n in zip(ordered, near, strict=True)]


def key_mark(kind: LaneKind, look: str = "") -> Markup:
    """The mark of a judge, an annotator or a baseline for the legend, as it is in the plots."""
    drawn = Estimate(0.5, 0.05, 0.95) if kind == "judge" else Estimate(0.5)
    return _svg("mark", 16, "", _interval(drawn, kind, 8, look=look))


def lane_strip(figure: Intervals, lane: Lane, limits: Limits) -> Markup:
    """One interval of a figure on a line between `limits`, with the bounds that it is held
    against."""
    pieces = [
        _line("axis", *limits, 12, limits),
        *(_line("bound", x, x, 12, limits) for x in figure.bounds.values()),
    ]
    pieces += _interval(lane.estimate, lane.kind, 12, limits)
    return _svg("lane", 24, f"{lane.name}: {figure.shown(lane)}", pieces)


def limits_of(figure: Intervals) -> Limits:
    """The ends of a figure's scale: its own, else 0 and 1, else what its numbers need."""
    if figure.limits:
        return figure.limits
    found = [lane.estimate for _, lanes in figure.lines for lane in lanes]
    numbers = [x for e in found for x in (e.value, e.low, e.high) if x is not None]
    numbers += [*figure.bounds.values()]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    return _SHARES if low >= 0 and high <= 1 else (low, high if high > low else low + 1)


def _in_words(standing: Standing) -> str:
    people = [percent(e.value) for e in standing.annotators.values() if e.value is not None]
    said = (
        f"{standing.judge}, {standing.metric}: {in_per_cent(standing.accuracy)}",
        f"annotators {listed(people or [percent(standing.humans.value)])}",
        f"best baseline {standing.baseline_name} {percent(standing.baseline.value)}",
    )
    return "; ".join(said)


def _interval(
    e: Estimate, kind: LaneKind, y: int, limits: Limits = _SHARES, look: str = ""
) -> list[Markup]:
    """A mark with its interval; nothing where the number is undefined."""
    if e.value is None:
        return []
    mark = _mark(kind, e.value, y, limits, look)
    if e.low is None or e.high is None:
        return [mark]
    return [_line(f"whisker {kind} {look}".rstrip(), e.low, e.high, y, limits), mark]


def _mark(
    kind: LaneKind, value: float, y: float, limits: Limits = _SHARES, look: str = ""
) -> Markup:
    return Markup('<svg class="{}" x="{}" y="{:g}"><path d="{}"></path></svg>').format(
        f"{kind} {look}".rstrip(), _x(value, limits), y, _SHAPES[kind]
    )


def _numbers_below(standing: Standing) -> Iterator[Markup]:
    """The numbers of baseline and annotators, side by side where they are near to each other."""
    of = ((standing.baseline.value, "control"), (standing.humans.value, "human"))
    found = sorted((value, look) for value, look in of if value is not None)
    if len(found) < 2 or found[1][0] - found[0][0] >= _NEAR:
        yield from (_number(value, 60, look) for value, look in found)
        return
    (low, first), (high, second) = found
    apart = _HALF if high - low < _NEARER else 0
    at_left, at_right = low < _ENDS[0], high > _ENDS[1]
    left = ("middle", 0) if at_left else ("end", -apart * at_right)
    right = ("middle", 0) if at_right else ("start", apart * at_left)
    yield _number(low, 60, first, *left)
    yield _number(high, 60, second, *right)


def _number(value: float, y: int, look: str, anchor: str = "middle", shift: int = 0) -> Markup:
    """A number above or under its place, after the word for whose it is."""
    attributes = {"x": _x(value), "y": y, "dx": shift, "text-anchor": anchor}
    said = f"{_WORDS.get(look, 'judge')} {percent(value)}"
    return Markup("{}{}</text>").format(_open("text", look, attributes), said)


def _line(look: str, low: float, high: float, y: int, limits: Limits = _SHARES) -> Markup:
    tick = {"tick": 4, "bound": 11}.get(look, 0)
    return _tag("line", look, x1=_x(low, limits), x2=_x(high, limits), y1=y - tick, y2=y + tick)


def _place(value: float, limits: Limits = _SHARES) -> float:
    low, high = limits
    return _EDGE + (100 - 2 * _EDGE) * min(1.0, max(0.0, (value - low) / (high - low)))


def _x(value: float, limits: Limits = _SHARES) -> str:
    return f"{_place(value, limits):.2f}%"


def _tag(name: str, look: str, **attributes: object) -> Markup:
    return Markup("{}</{}>").format(_open(name, look, attributes), Markup(name))


def _open(name: str, look: str, attributes: Mapping[str, object]) -> Markup:
    given = Markup("").join(
        Markup(' {}="{}"').format(Markup(key), value) for key, value in attributes.items()
    )
    return Markup('<{} class="{}"{}>').format(Markup(name), look, given)


def _svg(look: str, height: int, words: str, pieces: Iterable[Markup]) -> Markup:
    return Markup(
        '<svg class="{}" height="{}" width="100%" role="img" aria-label="{}">{}</svg>'
    ).format(look, height, printable(words), Markup("").join(pieces))
