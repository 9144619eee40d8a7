"""How many labels does a study need? Its chance of each outcome, before it has a label."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from judgebench.decisions.decision import Outcome
from judgebench.decisions.rule import DecisionRule, Rule, load_rule
from judgebench.errors import Problem, SetupError
from judgebench.files import validate
from judgebench.plan.design import Design, draw
from judgebench.plan.simulate import outcome
from judgebench.records import Estimate, Row
from judgebench.results.shown import Shown
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.intervals import LEVEL, exact_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = (100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 5000)  # answers, simulated
SHOWN = (100, 200, 400, 600, 1000, 1500, 2500, 5000)
OUTCOMES = (Outcome.REPLACE, Outcome.ASSIST, Outcome.DO_NOT_USE)
ENOUGH = 0.8
LESS_AGREEMENT = 0.05
_MOST_WORKERS = 8
_OVERSAMPLED_BELOW = 0.3  # of severe answers: where they are frequent nothing is gained
_ANNOTATORS = (2, 3, 5)  # that a design beside it has
_NEAR = math.log(2.5)  # sizes that are so many times as large or small tell of a size
_HELD = 1e-2  # curvature that holds a line where all studies of all sizes end alike
_LEAST_WORTH = 0.05
_STEPS, _TINY = 50, 1e-300


class Effort(NamedTuple):
    """The sizes of simulated studies, how many of each, and how many more where outcomes differ."""

    sizes: tuple[int, ...]
    first: int
    further: int


ASKED = Effort(SIZES, 24, 600)
BESIDE = Effort(SIZES[1::2], 16, 96)  # of a design beside the one that is asked about


@dataclass(frozen=True)
class Chances:
    """How the simulated studies of one design ended: `ended` (sizes, outcomes) of the `studies`
    (sizes,) of these `sizes`."""

    design: Design
    sizes: tuple[int, ...]
    ended: IntArray
    studies: IntArray

    def at(self, answers: float) -> dict[Outcome, Estimate]:
        """The chance of each outcome with so many labelled answers."""
        return {which: self.of(which, answers) for which in Outcome}

    def of(self, which: Outcome, answers: float) -> Estimate:
        """A line of the logit in the root of the number of answers, through the sizes nearby with
        tricube weights (Loader 1999, "Local Regression and Likelihood"); the interval is exact, of
        as many studies as its variance is worth."""
        sizes = np.array(self.sizes, dtype=np.float64)
        near = np.abs(np.log(sizes / answers)) / _NEAR
        weight = np.clip(1 - near**3, 0, None) ** 3
        x = np.sqrt(sizes / answers) - 1
        y, m = self.ended[:, [*Outcome].index(which)], self.studies
        b, C = _line(np.stack([np.ones_like(x), x], axis=1), y, m, weight)
        p = float(expit(b[0]))
        n = max(float(weight @ m), p * (1 - p) / max((p * (1 - p)) ** 2 * float(C[0, 0]), _TINY))
        low, high = exact_limits(p * n, n, LEVEL)
        return Estimate(p, low, high, "simulated studies of sizes nearby", int(m.sum()))

    def needed(self, goal: Outcome) -> int | None:
        """The least number of answers with which the chance of `goal` is ENOUGH; None where that
        is more than the largest size."""
        for answers in np.geomspace(self.sizes[0], self.sizes[-1], 80):
            if (self.of(goal, float(answers)).value or 0.0) >= ENOUGH:
                return _rounded(float(answers))
        return None


def _line(
    X: FloatArray, y: IntArray, m: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The coefficients of the logit of y / m by Newton's method, and their covariance."""
    b, held = np.zeros(X.shape[1]), _HELD * np.eye(X.shape[1])
    for _ in range(_STEPS):
        p = expit(X @ b)
        H = (X.T * (weight * m * p * (1 - p))) @ X + held
        step = np.linalg.solve(H, X.T @ (weight * (y - m * p)) - held @ b)
        b = b + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-8:
            break
    inside = (X.T * (weight**2 * m * p * (1 - p))) @ X + held
    inverse = np.linalg.inv(H)
    return b, inverse @ inside @ inverse


def _rounded(answers: float) -> int:
    """Up to two digits: more are not known."""
    step = int(10 ** (len(str(int(answers))) - 2))
    return math.ceil(answers / step) * step


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """What came out: of the design that was asked about, of the same where annotators agree less,
    and of others beside it.

    The rows are of the analysis `plan`, the chance of an outcome (statistics `replace`, `assist`,
    `do_not_use`, `cant_tell`) by `answers`, and `needed`, the `answers` and `labels` with which a
    design reaches its `goal` with a chance of 80 %.
    """

    chances: Chances
    if_less: Chances | None
    others: Sequence[Chances]
    rule: DecisionRule

    presented_by = "judgebench.plan.report:plan_part"
    name = "plan"

    @property
    def goal(self) -> Outcome | None:
        """The outcome that large studies of this judge have; None where that is none of all."""
        largest = dict(zip(Outcome, self.chances.ended[-1], strict=True))
        likeliest = max(largest, key=lambda which: largest[which])
        return likeliest if likeliest in OUTCOMES else None

    @property
    def needed(self) -> int | None:
        """The labelled answers with which the goal has a chance of 80 %; None where 5,000 are too
        few."""
        return self.chances.needed(self.goal) if self.goal else None

    @property
    def cheapest(self) -> Chances | None:
        """The design that reaches the goal with the fewest labels; None where none does."""
        reached = [(n * c.design.annotators, i, c) for i, c, n in self._reached()]
        return min(reached)[2] if reached else None

    def _reached(self) -> Iterator[tuple[int, Chances, int]]:
        for i, chances in enumerate((self.chances, *self.others)):
            if self.goal and (n := chances.needed(self.goal)):
                yield i, chances, n

    def rows(self) -> Iterator[Row]:
        """Every number."""
        for answers in SHOWN:
            for which, chance in self.chances.at(answers).items():
                statistic = which.name.lower()
                yield Row("plan", statistic, chance, keys={"answers": answers})
        for chances in (self.chances, *([self.if_less] if self.if_less else []), *self.others):
            design = chances.design
            about: dict[str, str | float] = {
                "annotators": design.annotators, "agreement": design.agreement,
                "oversampled": str(design.oversampled).lower(),
                "goal": self.goal.value if self.goal else "",
            }  # fmt: skip
            n = chances.needed(self.goal) if self.goal else None
            reason = "" if n else f"not within {SIZES[-1]:,} answers"
            for statistic, each in (("answers", 1), ("labels", design.annotators)):
                needed = Estimate(n and n * each, reason=reason)
                yield Row("needed", statistic, needed, keys=about)

    def plot(self, *, ax: Axes | None = None, width: float | None = None) -> Axes:
        """The chance of each outcome by the number of labelled answers, as axes of matplotlib:
        `ax`, or those of a new figure of a `width` in inches."""
        from judgebench.plan.report import draw_chances
        from judgebench.results.figures import plotted

        axes: Axes = plotted(partial(draw_chances, self), ax, width)
        return axes


def plan(rule: Rule | None = None, *, seed: int = 0, **known: Any) -> Plan:
    """The chance of each outcome of a study with so many labelled answers, by the code that decides
    a real one, before there is a label.

    `known` are the fields of `Design`: annotators, agreement, severe, labels, per_question, alike,
    judge, judge_severe, oversampled. Studies of twelve sizes are drawn and decided; a curve through
    all of them says the chance at any size. Raises SetupError for what cannot be.

    >>> import judgebench as jb
    >>> plan = jb.plan(annotators=3, agreement=0.9, severe=0.2, judge=0.02)
    >>> plan.chances.at(2000)[plan.goal].value > 0.5
    True
    """
    names = [each.name for each in fields(Design)]
    if wrong := [name for name in known if name not in names]:
        raise SetupError(
            [Problem("is not known of a design", "", None, "plan", w, ", ".join(names))
             for w in wrong]
        )  # fmt: skip
    decided = _rule_of(rule)
    design = Design(**known)
    design.check()
    less = replace(design, agreement=round(design.agreement - LESS_AGREEMENT, 6))
    others = [other for other in (less, *_beside(design)) if _is_possible(other)]
    asked = [(design, ASKED), *((other, BESIDE) for other in others)]
    found = simulated(asked, decided, seed)
    return Plan(
        found[0], next((c for c in found if c.design == less), None),
        [c for c in found[1:] if c.design != less], decided,
    )  # fmt: skip


def _rule_of(source: Rule | None) -> DecisionRule:
    if isinstance(source, Mapping):
        return validate(dict(source), DecisionRule, file="rule")
    if source is None or isinstance(source, DecisionRule):
        return source or DecisionRule()
    return load_rule(source)


def _beside(design: Design) -> Iterator[Design]:
    """The designs that one may choose in its place: more and fewer annotators, and severe answers
    oversampled."""
    yield from (replace(design, annotators=n) for n in _ANNOTATORS if n != design.annotators)
    if design.oversampled or design.severe < _OVERSAMPLED_BELOW:
        yield replace(design, oversampled=not design.oversampled)


def _is_possible(design: Design) -> bool:
    try:
        design.check()
    except SetupError:
        return False
    return True


def simulated(
    designs: Sequence[tuple[Design, Effort]], rule: DecisionRule, seed: int = 0
) -> list[Chances]:
    """The chances of each design, on all cores: first a few studies of each size, then more of the
    sizes of which some end in CAN'T TELL and others do not."""
    found = [Chances(design, effort.sizes, *_none(effort.sizes)) for design, effort in designs]
    with ProcessPoolExecutor(min(_MOST_WORKERS, os.cpu_count() or 1)) as pool:
        decide = partial(_ended, rule=rule, seed=seed)
        some = [np.full(len(effort.sizes), effort.first) for _, effort in designs]
        found = _more(pool.map, decide, found, some)
        further = [_spread(c, e.further) for c, (_, e) in zip(found, designs, strict=True)]
        return _more(pool.map, decide, found, further)


def _none(sizes: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """That no study ended, and that there was none."""
    return np.zeros((len(sizes), len(Outcome)), dtype=np.int64), np.zeros(len(sizes), np.int64)


def _spread(chances: Chances, further: int) -> IntArray:
    """So many studies, more of the sizes on which more depends: (sizes,)."""
    clear = 1 - chances.ended[:, -1] / chances.studies
    worth = np.sqrt(clear * (1 - clear)) + _LEAST_WORTH
    return np.asarray(np.round(further * worth / worth.sum()), dtype=np.int64)


def _more(
    run: Callable[..., Iterable[IntArray]], decide: Callable[..., IntArray],
    found: Sequence[Chances], studies: Sequence[IntArray],
) -> list[Chances]:  # fmt: skip
    """The chances with so many more studies of each size."""
    tasks = [
        (c.design, size, c.studies[i], n)
        for c, more in zip(found, studies, strict=True)
        for i, (size, n) in enumerate(zip(c.sizes, more.tolist(), strict=True))
    ]
    ended = iter(run(decide, *zip(*tasks, strict=True)))
    return [
        replace(
            c,
            studies=c.studies + more,
            ended=c.ended + np.array([next(ended) for _ in c.sizes], dtype=np.int64),
        )
        for c, more in zip(found, studies, strict=True)
    ]


def _ended(
    design: Design, size: int, before: int, studies: int, rule: DecisionRule, seed: int
) -> IntArray:
    """How many of so many studies of a size end in which outcome: (outcomes,)."""
    rng = np.random.default_rng([seed, size, before])
    drawn = (draw(design, size, rng) for _ in range(studies))
    counted = Counter(outcome(found, design.labels, rule, rng) for found in drawn)
    return np.array([counted[which] for which in Outcome])
