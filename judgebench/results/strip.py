"""Small plots inside a page: an interval on a line, drawn as SVG that scales in width alone, so
that its text keeps its size on every screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from markupsafe import Markup

from judgebench.records import Estimate
from judgebench.results.part import Intervals, Lane, Standing
from judgebench.results.tables import Cell
from judgebench.words import printable

Limits = tuple[float, float]
_SHARES: Limits = (0.0, 1.0)
_EDGE = 2.0  # per cent of the width that stay free on either side
_RIGHT = 0.93  # from here on a number stands to the left of its place
_NEAR = 0.12  # so far apart, two numbers side by side would touch at an edge
_WIDTH = 34  # pixels of a number


def standing_strip(standing: Standing) -> Markup:
    """A judge's interval between the best baseline and the annotators, on a scale from 0 to 1."""
    judge, humans, baseline = standing.accuracy, standing.humans, standing.baseline
    pieces = [_line("axis", 0, 1, 26), *(_line("tick", x, x, 26) for x in (0, 0.5, 1))]
    if humans.value is not None and standing.margin:
        at = _x(max(0.0, humans.value - standing.margin))
        width = f"{_place(1.0) - _place(max(0.0, humans.value - standing.margin)):.2f}%"
        pieces.insert(0, _tag("rect", "margin", x=at, y=13, width=width, height=26))
    if baseline.value is not None:
        at = _x(baseline.value)
        pieces.append(_tag("line", "base", x1=at, x2=at, y1=17, y2=35))
    people = [*standing.annotators.values()] or [humans]  # of places in a list, all of them pooled
    for place, value in enumerate(e.value for e in people if e.value is not None):
        y = 26 + (0, -5, 5)[place % 3]
        pieces.append(_tag("circle", "person", cx=_x(value), cy=y, r=4.5))
    pieces += _interval(judge, f"judge {standing.look}", 26)
    pieces += _numbers_below(standing)
    if judge.value is not None:
        pieces.append(_number(judge.value, 10, "judge", "middle"))
    return _svg("strip", 58, _in_words(standing), pieces)


def lane_strip(lane: Lane, limits: Limits, bounds: Iterable[float]) -> Markup:
    """One interval on a line between `limits`, with the bounds that it is held against."""
    pieces = [_line("axis", *limits, 12, limits), *(_bound(bound, limits) for bound in bounds)]
    pieces += _interval(lane.estimate, lane.kind, 12, limits)
    cell = Cell(estimate=lane.estimate)
    return _svg("lane", 24, f"{lane.name}: {cell.value} {cell.interval}", pieces)


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
    judge = Cell(estimate=standing.accuracy)
    said = [f"{standing.judge}, {standing.metric}: {judge.value} {judge.interval}".rstrip()]
    for name, estimate in (
        ("annotators", standing.humans), (f"best baseline {standing.baseline_name}".rstrip(),
                                          standing.baseline),
    ):  # fmt: skip
        if estimate.value is not None:
            said.append(f"{name} {Cell(estimate=estimate).value}")
    return "; ".join(said)


def _interval(e: Estimate, look: str, y: int, limits: Limits = _SHARES) -> list[Markup]:
    """A point with its interval; nothing where the number is undefined."""
    if e.value is None:
        return []
    ends = (
        []
        if e.low is None or e.high is None
        else [_line(f"whisker {look}", e.low, e.high, y, limits)]
    )
    return [*ends, _tag("circle", look, cx=_x(e.value, limits), cy=y, r=5)]


def _bound(bound: float, limits: Limits) -> Markup:
    x = _x(bound, limits)
    return _tag("line", "bound", x1=x, x2=x, y1=1, y2=23)


def _numbers_below(standing: Standing) -> Iterator[Markup]:
    """The numbers of baseline and annotators, side by side where they are near to each other."""
    of = ((standing.baseline.value, "base"), (standing.humans.value, "person"))
    found = sorted((value, look) for value, look in of if value is not None)
    if len(found) < 2:
        yield from (_number(value, 54, look, "middle") for value, look in found)
        return
    (low, first), (high, second) = found
    near = high - low < _NEAR
    yield _number(low, 54, first, "end", -_WIDTH if near and high > _RIGHT else 0)
    yield _number(high, 54, second, "start", _WIDTH if near and low < 1 - _RIGHT else 0)


def _number(value: float, y: int, look: str, anchor: str, shift: int = 0) -> Markup:
    """A number above or under its place, on the side where there is room for it."""
    anchor = "start" if value < 1 - _RIGHT else "end" if value > _RIGHT else anchor
    text = f"{value:.2f}".removeprefix("0")
    attributes = {"x": _x(value), "y": y, "dx": shift, "text-anchor": anchor}
    return Markup("{}{}</text>").format(_open("text", look, attributes), text)


def _line(look: str, low: float, high: float, y: int, limits: Limits = _SHARES) -> Markup:
    tick = 4 if low == high else 0
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
