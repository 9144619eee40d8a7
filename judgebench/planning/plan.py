"""How many labels does a study need? Its chance of each outcome, before it has a label."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from scipy.special import expit

from judgebench.decisions.decision import Outcome
from judgebench.decisions.rule import DecisionRule, Rule, rule_of
from judgebench.errors import Problem, SetupError
from judgebench.files import all_or_nothing, validate, write_atomically
from judgebench.planning.design import Design, draw
from judgebench.planning.simulate import outcome
from judgebench.protocol import Protocol
from judgebench.records import Estimate, Row
from judgebench.results.shown import Shown
from judgebench.rubric import Rubric, load_rubric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.intervals import LEVEL, exact_limits
from judgebench.studies.reference_labels import drawn_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = (100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 5000)  # answers, simulated
SHOWN = (100, 200, 400, 600, 1000, 1500, 2500, 5000)
ENOUGH = 0.8
LESS_AGREEMENT = 0.05
_BESIDE = 6  # so many times as few studies of designs beside the one that is asked about
_MOST_WORKERS = 8
_OVERSAMPLED_BELOW = 0.3  # of severe answers: where they are frequent nothing is gained
_ANNOTATORS = (2, 3, 5)  # that a design beside it has
_NEAR = math.log(2.5)  # sizes that are so many times as large or small tell of a size
_HELD = 1e-2  # curvature that holds a line where all studies of all sizes end alike
_LEAST_WORTH = 0.05
_GRID = 60  # numbers of answers that are tried
_STEPS, _STEADY, _TINY = 50, 1e-6, 1e-300


@dataclass(frozen=True)
class Chances:
    """How the simulated studies of one design ended: `ended` (sizes, outcomes) of the `studies`
    (sizes,) of each of SIZES."""

    design: Design
    ended: IntArray
    studies: IntArray

    def at(self, answers: float) -> dict[Outcome, Estimate]:
        """The chance of each outcome with so many labelled answers; together they are 1."""
        chances = {which: self.of(which, answers) for which in Outcome}
        total = sum(chance.value or 0.0 for chance in chances.values())
        return {
            which: replace(chance, value=(chance.value or 0.0) / total)
            for which, chance in chances.items()
        }

    def of(self, which: Outcome, answers: float) -> Estimate:
        """A line of the logit in the root of the number of answers, through the sizes nearby with
        tricube weights (Loader 1999, "Local Regression and Likelihood"); the interval is exact, of
        as many studies as its variance is worth."""
        near = np.abs(np.log(np.array(SIZES) / answers)) / _NEAR
        weight = np.clip(1 - near**3, 0, None) ** 3
        x = np.sqrt(np.array(SIZES) / answers) - 1
        ended = self.ended[:, [*Outcome].index(which)]
        n, found = float(weight @ self.studies), float(weight @ ended)
        p = found / n
        if 0 < found < n:
            p, variance = _at_zero(x, ended, self.studies, weight)
            n = max(n, p * (1 - p) / max(variance, _TINY))
        low, high = exact_limits(p * n, n, LEVEL)
        return Estimate(p, low, high, "simulated studies of sizes nearby", int(self.studies.sum()))

    def needed(self, goal: Outcome) -> int | None:
        """The least number of answers from which on the chance of `goal` is ENOUGH; None where that
        is more than the largest size."""
        least = None
        for answers in np.geomspace(SIZES[-1], SIZES[0], _GRID).tolist():
            if (self.of(goal, answers).value or 0.0) < ENOUGH:
                break
            digits = len(str(int(answers))) - 2  # two digits: more are not known
            least = math.ceil(answers / 10**digits) * 10**digits
        return least


def _at_zero(x: FloatArray, y: IntArray, m: IntArray, weight: FloatArray) -> tuple[float, float]:
    """The share y / m (sizes,) at x = 0 by a weighted line of its logit, and its variance."""
    X = np.stack([np.ones_like(x), x], axis=1)
    b, held = np.zeros(2), _HELD * np.eye(2)
    for _ in range(_STEPS):  # of Newton
        p = expit(X @ b)
        H = (X.T * (weight * m * p * (1 - p))) @ X + held
        step = np.linalg.solve(H, X.T @ (weight * (y - m * p)) - held @ b)
        b = b + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < _STEADY:
            break
    inside = (X.T * (weight**2 * m * p * (1 - p))) @ X + held
    C = np.linalg.inv(H) @ inside @ np.linalg.inv(H)
    share = float(expit(b[0]))
    return share, (share * (1 - share)) ** 2 * float(C[0, 0])


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

    presented_by = "judgebench.planning.report:plan_part"
    name = "plan"

    @property
    def goal(self) -> Outcome | None:
        """The outcome that large studies of this judge have; None where that is none of all."""
        largest = dict(zip(Outcome, self.chances.ended[-1], strict=True))
        likeliest = max(largest, key=lambda which: largest[which])
        return None if likeliest is Outcome.CANT_TELL else likeliest

    @cached_property
    def needed(self) -> Mapping[Design, int | None]:
        """By design, the labelled answers with which the goal has a chance of 80 %; None where
        5,000 are too few. First the design that was asked about, last where annotators agree
        less."""
        found = [self.chances, *self.others, *([self.if_less] if self.if_less else [])]
        return {c.design: c.needed(self.goal) if self.goal else None for c in found}

    @property
    def cheapest(self) -> Design | None:
        """The design that reaches the goal with the fewest labels; None where none does."""
        mine = (self.chances.design, *(other.design for other in self.others))
        labels = {d: n * d.n_annotators for d in mine if (n := self.needed[d])}
        return min(labels, key=lambda design: labels[design], default=None)

    def rows(self) -> Iterator[Row]:
        """Every number."""
        for answers in SHOWN:
            for which, chance in self.chances.at(answers).items():
                statistic = which.name.lower()
                yield Row("plan", statistic, chance, keys={"answers": answers})
        goal = self.goal.value if self.goal else ""
        for design, n in self.needed.items():
            about: dict[str, str | float] = {
                "annotators": design.n_annotators, "agreement": design.agreement,
                "oversampled": str(design.oversampled).lower(), "goal": goal,
            }  # fmt: skip
            reason = "" if n else f"not within {SIZES[-1]:,} answers"
            for statistic, each in (("answers", 1), ("labels", design.n_annotators)):
                needed = Estimate(n and n * each, reason=reason)
                yield Row("needed", statistic, needed, keys=about)

    def protocol(
        self, file: str | Path, *, rubric: Rubric | str | Path, answers: int | None = None,
        drawn: str = "", looks: Sequence[float] = (), subgroups: Sequence[str] = (),
    ) -> Protocol:  # fmt: skip
        """Write what the study promises before its first label, and return it: the labels of the
        `rubric`, the decision rule, and how many `answers` get labels (None: as many as the plan
        needs) of how many annotators.

        `drawn` says how they are drawn: `random`, or by a column of answers (`weight=COLUMN`,
        `probability=COLUMN`, `strata=COLUMN`), by default `probability=probability` where severe
        ones are oversampled; `looks` are the shares of them at interim analyses
        before the end, and `subgroups` columns whose values are decided apart. Raises SetupError
        with every problem, and where the file is there already.

        >>> import judgebench as jb
        >>> plan = jb.plan(n_annotators=3, agreement=0.9, severe_share=0.2, judge=0.04, studies=60)
        >>> plan.protocol("protocol.yaml", rubric="medical-safety", answers=400).annotators
        3
        """
        rubric = rubric if isinstance(rubric, Rubric) else load_rubric(rubric)
        self.rule.check(rubric)
        unnamed = {"robustness", "planted"} - self.rule.replace.model_fields_set  # not demanded
        design = self.chances.design
        drawn = drawn or ("probability=probability" if design.oversampled else "random")
        drawn_of(drawn)
        answers = self.needed[design] if answers is None else answers
        if answers is None or answers < 1:
            message = f"no number has a chance of {ENOUGH:.0%}: say how many answers get labels"
            raise SetupError(Problem(message, field="answers"))
        chances = self.chances.at(answers).items()
        keys = {
            "written": datetime.now(UTC).isoformat(timespec="seconds"), "answers": answers,
            "annotators": design.n_annotators, "drawn": drawn,
            "looks": [*looks], "subgroups": [*subgroups],
            "chances": {outcome.value: round(chance.value or 0, 3) for outcome, chance in chances},
            "assumed": asdict(design),
            "rubric": rubric.as_plain(),
            "rule": self.rule.model_dump(mode="json", exclude={"replace": unnamed}),
        }  # fmt: skip
        protocol, path = validate(keys, Protocol, str(file)), Path(file)
        protocol = protocol.model_copy(update={"sha256": protocol.content_hash})
        values = protocol.model_dump(mode="json", exclude_unset=True)
        with all_or_nothing(path.parent, [path]):
            text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
            write_atomically(path, text.encode())
        return protocol

    def plot(self, *, ax: Axes | None = None, width: float | None = None) -> Axes:
        """The chance of each outcome by the number of labelled answers, as axes of matplotlib:
        `ax`, or those of a new figure of a `width` in inches."""
        from judgebench.results.figures import plotted

        drawing: Any = self.part.blocks[0].figures[0]
        axes: Axes = plotted(drawing.draw, ax, width)
        return axes


def plan(rule: Rule | None = None, *, studies: int = 600, seed: int = 0, **known: Any) -> Plan:
    """The chance of each outcome of a study with so many labelled answers, by the code that decides
    a real one, before there is a label.

    `known` are the fields of `Design`: n_annotators, agreement, severe_share, n_labels,
    per_question, alike, judge, judge_severe, oversampled. About so many `studies` of twelve sizes
    are drawn and decided; a curve through them says the chance at any size: more are more exact.
    Raises SetupError for what cannot be.

    >>> import judgebench as jb
    >>> plan = jb.plan(n_annotators=3, agreement=0.9, severe_share=0.2, judge=0.04, studies=60)
    >>> print(plan.goal)
    REPLACE
    """
    names = [each.name for each in fields(Design)]
    if wrong := [name for name in known if name not in names]:
        raise SetupError(
            [Problem("is not known of a design", "", None, "plan", w, ", ".join(names))
             for w in wrong]
        )  # fmt: skip
    decided = rule_of(rule)
    design = Design(**known)
    design.check()
    less = replace(design, agreement=round(design.agreement - LESS_AGREEMENT, 6))
    others = [other for other in (less, *_beside(design)) if _is_possible(other)]
    beside = dict.fromkeys(others, studies // _BESIDE)
    found = simulated({design: studies, **beside}, decided, seed)
    return Plan(
        found[0], next((c for c in found if c.design == less), None),
        [c for c in found[1:] if c.design != less], decided,
    )  # fmt: skip


def _beside(design: Design) -> Iterator[Design]:
    """The designs that one may choose in its place: more and fewer annotators, and severe answers
    oversampled."""
    yield from (replace(design, n_annotators=n) for n in _ANNOTATORS if n != design.n_annotators)
    if design.oversampled or design.severe_share < _OVERSAMPLED_BELOW:
        yield replace(design, oversampled=not design.oversampled)


def _is_possible(design: Design) -> bool:
    try:
        design.check()
    except SetupError:
        return False
    return True


def simulated(designs: Mapping[Design, int], rule: DecisionRule, seed: int = 0) -> list[Chances]:
    """The chances of each design from about so many studies, on all cores: a third of them of all
    sizes alike, then more of the sizes of which some end in CAN'T TELL and others do not."""
    none = np.zeros((len(SIZES), len(Outcome)), dtype=np.int64)
    found = [Chances(design, none, none[:, 0]) for design in designs]
    with ProcessPoolExecutor(min(_MOST_WORKERS, os.cpu_count() or 1)) as pool:
        ended = partial(pool.map, partial(_ended, rule=rule, seed=seed))
        alike = [np.full(len(SIZES), 1 + n // (3 * len(SIZES))) for n in designs.values()]
        found = _more(ended, found, alike)
        further = (2 * n // 3 for n in designs.values())
        return _more(ended, found, [*map(_spread, found, further)])


def _spread(chances: Chances, further: int) -> IntArray:
    """So many studies, more of the sizes on which more depends: (sizes,)."""
    clear = 1 - chances.ended[:, -1] / chances.studies
    worth = np.sqrt(clear * (1 - clear)) + _LEAST_WORTH
    return np.asarray(np.round(further * worth / worth.sum()), dtype=np.int64)


def _more(
    ended: Callable[..., Iterable[IntArray]], found: Sequence[Chances], studies: Sequence[IntArray]
) -> list[Chances]:
    """The chances with so many more studies of each size."""
    tasks = [
        (chances.design, size, before, n)
        for chances, more in zip(found, studies, strict=True)
        for size, before, n in zip(SIZES, chances.studies, more, strict=True)
    ]
    counts = np.array([*ended(*zip(*tasks, strict=True))]).reshape(len(found), len(SIZES), -1)
    return [
        Chances(chances.design, chances.ended + counts[i], chances.studies + studies[i])
        for i, chances in enumerate(found)
    ]


def _ended(
    design: Design, size: int, before: int, studies: int, rule: DecisionRule, seed: int
) -> IntArray:
    """How many of so many studies of a size end in which outcome: (outcomes,)."""
    rng = np.random.default_rng([seed, size, before])
    drawn = (draw(design, size, rng) for _ in range(studies))
    counted = Counter(outcome(found, design.n_labels, rule, rng) for found in drawn)
    return np.array([counted[which] for which in Outcome])
