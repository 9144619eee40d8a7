"""Small plots inside a page, an interval on a line: where everything stands in them. Their SVG is
in `strips.html.jinja`; it scales in width alone, so that text keeps its size on every screen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from judgebench.results.part import Intervals, Standing

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


def annotator_dots(standing: Standing) -> list[tuple[float, float]]:
    """The value of each annotator, and how far below the line it is drawn, in pixels: beside the
    judge. Of places in a list, it is that of all."""
    annotators = [*standing.annotators.values()] or [standing.humans]
    places = stacked(e.value for e in annotators if e.value is not None)
    return [(value, place and 5.5 * place + math.copysign(8.5, place)) for value, place in places]


def numbers_below(standing: Standing) -> Sequence[Number]:
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
