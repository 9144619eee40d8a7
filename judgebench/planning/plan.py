"""The chance of each outcome of a study that has no label yet, by the number of answers."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from scipy.special import expit

from judgebench.decisions.decision import Outcome
from judgebench.decisions.rule import STRESSED, DecisionRule, Rule, rule_of
from judgebench.errors import Problem, SetupError
from judgebench.files import all_or_nothing, validate, write_atomically
from judgebench.planning.design import Design, draw
from judgebench.planning.simulate import outcome
from judgebench.progress import SILENT, Progress, ProgressDisplay
from judgebench.protocol import Promises, Protocol
from judgebench.records import Estimate, Row
from judgebench.results.shown import Shown
from judgebench.results.terminal import Screen
from judgebench.rubric import Rubric, load_rubric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.intervals import LEVEL, exact_limits
from judgebench.studies.reference_labels import drawn_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = (100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 5000)  # answers
ENOUGH = 0.8
LESS_AGREEMENT = 0.05
_FEWER = 15  # so many times as few studies of designs beside the one that is asked about
_ANNOTATORS = (2, 3, 5)  # that a design beside it has
_NEAR = 2.5  # sizes that are so many times as large or small tell of a size
_WORK, _METHOD = "simulated sizes", "simulated studies of sizes nearby"
_ROUNDS = (1 / 3, 2 / 3)  # of all studies
_LEAST_WORTH = 0.05
_TRIED = np.unique(np.geomspace(SIZES[-1], SIZES[0], 80).round(-1)).astype(int)[::-1].tolist()
_HELD = 1e-2  # curvature that holds a line where all studies of all sizes end alike
_STEPS, _STEADY, _TINY = 50, 1e-6, 1e-300


@dataclass(frozen=True)
class Chances:
    """The outcomes of the simulated studies of one design: `ended` (sizes, outcomes) counts the
    studies of each of SIZES."""

    design: Design
    ended: IntArray

    def at(self, answers: float) -> dict[Outcome, Estimate]:
        """Return the chance of each outcome with so many labelled answers; together they are 1.
        Raises SetupError where no size nearby is simulated."""
        _check_near(answers)
        chances = {which: self.of(which, answers) for which in Outcome}
        total = sum(chance.value or 0.0 for chance in chances.values())
        return {
            which: replace(chance, value=(chance.value or 0.0) / total)
            for which, chance in chances.items()
        }

    def of(self, which: Outcome, answers: float) -> Estimate:
        """Return the chance of an outcome: a line of its logit in the root of the number of
        answers, through the sizes nearby with tricube weights (Loader 1999, "Local Regression and
        Likelihood"); the interval is exact, of as many studies as its variance is worth."""
        studies, ratios = self.ended.sum(axis=1), np.array(SIZES) / answers
        weight = np.clip(1 - np.abs(np.log(ratios) / math.log(_NEAR)) ** 3, 0, None) ** 3
        ended = self.ended[:, [*Outcome].index(which)]
        n, found = float(weight @ studies), float(weight @ ended)
        p = found / n
        if 0 < found < n:
            p, variance = _at_zero(np.sqrt(ratios) - 1, ended, studies, weight)
            n = max(n, p * (1 - p) / max(variance, _TINY))
        return Estimate(p, *exact_limits(p * n, n, LEVEL), _METHOD, int(studies.sum()))

    def needed(self, goal: Outcome) -> Estimate:
        """Return the least number of answers from which on the chance of `goal` is ENOUGH; low and
        high are those with which the upper and the lower end of its interval are. None is more than
        the largest size."""
        chances = {n: self.of(goal, n) for n in _TRIED}
        steady = takewhile(lambda n: (chances[n].value or 0) >= ENOUGH, _TRIED)
        value = min(steady, default=None)
        low, high = (
            min((n for n in _TRIED if getattr(chances[n], end) >= ENOUGH), default=None)
            for end in ("high", "low")
        )
        high = high and value and max(high, value)
        reason = "" if high else f"its range does not end within {SIZES[-1]:,} answers"
        return Estimate(value, low, high, _METHOD, int(self.ended.sum()), reason=reason)


def _check_near(answers: float) -> None:
    """Raises SetupError where no size nearby is simulated, so that no chance is known."""
    low = int(SIZES[0] / _NEAR) + 1
    high = int(SIZES[-1] * _NEAR) - 1
    if not low <= answers <= high:
        raise SetupError(
            Problem(
                "studies of about so many answers are not simulated", field="answers",
                found=f"{answers:,}", allowed=f"{low} to {high:,}",
            )
        )  # fmt: skip


def _at_zero(x: FloatArray, y: IntArray, m: IntArray, weight: FloatArray) -> tuple[float, float]:
    """Return the share y / m (sizes,) at x = 0 by a weighted line of its logit, and its
    variance."""
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
    """The chances of the design that was asked about, and of others beside it: one where annotators
    agree less, more and fewer annotators, and severe answers oversampled or not. Of these the
    `finalist` seemed to need the fewest labels, and was then simulated afresh. `promised` is the
    number of answers of a protocol.

    The rows are of the analysis `plan`, the chance of an outcome (statistics `replace`, `assist`,
    `do_not_use`, `cant_tell`) by `answers`, and `needed`, the `answers` with which a design
    reaches its `goal` with a chance of 80 %.
    """

    chances: Chances
    others: Sequence[Chances]
    rule: DecisionRule
    finalist: Design | None = None
    promised: int | None = None

    presented_by = "judgebench.planning.report:plan_part"
    name = "plan"

    @property
    def design(self) -> Design:
        """The design that was asked about."""
        return self.chances.design

    @property
    def goal(self) -> Outcome | None:
        """The outcome that large studies of this judge have; None where that is none of all."""
        likeliest = [*Outcome][self.chances.ended[-1].argmax()]
        return None if likeliest is Outcome.CANT_TELL else likeliest

    @cached_property
    def needed(self) -> Mapping[Design, Estimate]:
        """By design, the labelled answers with which the goal has a chance of 80 %, and their
        range; None where 5,000 are too few."""
        none = Estimate(None, reason="large studies end in CAN'T TELL")
        return {
            c.design: c.needed(self.goal) if self.goal else none
            for c in (self.chances, *self.others)
        }

    @property
    def cheaper(self) -> Design | None:
        """The finalist, where the intervals show that it needs fewer labels than the design that
        was asked about; else None."""
        design = self.finalist
        if not design:
            return None
        most = (self.needed[design].high or math.inf) * design.n_annotators
        least = (self.needed[self.design].low or SIZES[-1]) * self.design.n_annotators
        return design if most < least else None

    def rows(self) -> Iterator[Row]:
        """Every number."""
        for answers in SIZES:
            for which, chance in self.chances.at(answers).items():
                yield Row("plan", which.name.lower(), chance, keys={"answers": answers})
        for design, needed in self.needed.items():
            yield Row("needed", "answers", needed, keys={
                "annotators": design.n_annotators, "agreement": design.agreement,
                "oversampled": str(design.oversampled).lower(),
            })  # fmt: skip

    def protocol(self, file: str | Path, **promises: Any) -> Protocol:
        """Write what the study promises before its first label, and return it: the decision rule,
        how many annotators label each answer, and `promises`: the labels of a `rubric` (a file or a
        shipped name), and how many `answers` get labels (default: as many as the plan needs).

        `drawn` says how they are drawn: `random`, or by a column of answers (`weight=COLUMN`,
        `probability=COLUMN`, `strata=COLUMN`), by default `probability=probability` where severe
        ones are oversampled; `looks` are the shares of them at interim analyses before the end, and
        `subgroups` columns whose values are decided apart. Raises SetupError with every problem,
        and where the file is there already.

        >>> import judgebench as jb
        >>> plan = jb.plan(n_annotators=3, agreement=0.9, severe_share=0.2, judge=0.04, studies=60)
        >>> plan.protocol("protocol.yaml", rubric="medical-safety", answers=400).annotators
        3
        """
        promised = check_promises(file, self.rule, promises)
        design, path = self.design, Path(file)
        answers = promised.answers or self.needed[design].value
        if answers is None:
            raise SetupError(Problem(
                f"no number has a chance of {ENOUGH:.0%}: say how many answers get labels",
                field="answers",
            ))  # fmt: skip
        drawn = "probability=probability" if design.oversampled else "random"
        unnamed = {*STRESSED} - self.rule.replace.model_fields_set  # not demanded
        keys = {
            "written": datetime.now(UTC).isoformat(timespec="seconds"), **promised.model_dump(),
            "answers": answers, "annotators": design.n_annotators,
            "drawn": promised.drawn or drawn, "rubric": promised.rubric.as_plain(),
            "chances": {
                outcome: round(chance.value or 0, 3)
                for outcome, chance in self.chances.at(answers).items()
            },
            "assumed": design.model_dump(),
            "rule": self.rule.model_dump(mode="json", exclude={"replace": unnamed}),
        }  # fmt: skip
        protocol = validate(keys, Protocol, str(file))
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


def check_promises(file: str | Path, rule: DecisionRule, promises: Mapping[str, Any]) -> Promises:
    """Return the promises, of which `rubric` may be a path or a shipped name. Raises SetupError
    with those that cannot be made by the rule, and where the file is there already."""
    if Path(file).exists():
        raise SetupError(Problem("exists and is not overwritten", str(file)))
    drawn_of(promises.get("drawn", ""))
    rubric = promises.get("rubric")
    if not rubric:
        raise SetupError(Problem("says what people label by: a protocol needs it", field="rubric"))
    rubric = rubric if isinstance(rubric, Rubric) else load_rubric(rubric)
    rule.check(rubric)
    promised = validate({**promises, "rubric": rubric}, Promises)
    if promised.answers:
        _check_near(promised.answers)
    return promised


def plan(
    rule: Rule | None = None, *, studies: int = 750, seed: int = 0, show_progress: bool = False,
    **known: Any,
) -> Plan:  # fmt: skip
    """Return the chance of each outcome of a study with so many labelled answers, by the code that
    decides a real one, before there is a label.

    `known` are the fields of `Design`: n_annotators, agreement, severe_share, n_labels,
    per_question, alike, judge, judge_severe, oversampled. About so many `studies` of twelve sizes
    are drawn and decided; a curve through them says the chance at any size: more are more exact.
    Progress is shown on standard error. Raises SetupError for what cannot be.

    >>> import judgebench as jb
    >>> plan = jb.plan(n_annotators=3, agreement=0.9, severe_share=0.2, judge=0.04, studies=60)
    >>> print(plan.goal)
    REPLACE
    """
    decision_rule = rule_of(rule)
    design = validate(known, Design, "plan")
    if studies < _FEWER:  # a design beside it would have none
        raise SetupError(Problem(
            "are too few", field="studies", found=str(studies), allowed=f"{_FEWER} or more"
        ))  # fmt: skip
    n_studies = {
        other: studies // (_FEWER if other.agreement == design.agreement else 3)
        for other in _variants(design)
    } | {design: studies}
    display = ProgressDisplay(Screen(sys.stderr)) if show_progress else nullcontext(SILENT)
    with display as progress:
        chances = simulate(n_studies, decision_rule, seed, progress)
        screened = Plan(chances.pop(design), [*chances.values()], decision_rule)
        finalist = _fewest_labels(screened)
        # The least of several noisy numbers is too low: its design gets other random numbers.
        chances |= simulate({finalist: studies // 3}, decision_rule, seed + 1, progress)
    return replace(screened, others=[*chances.values()], finalist=finalist)


def _fewest_labels(plan: Plan) -> Design:
    """The other design that seems to need the fewest labels, where annotators agree as often."""
    return min(
        (c.design for c in plan.others if c.design.agreement == plan.design.agreement),
        key=lambda design: (plan.needed[design].value or math.inf) * design.n_annotators,
    )


def _variants(design: Design) -> Iterator[Design]:
    """The designs beside it that can be."""
    for field, value in (
        ("agreement", round(design.agreement - LESS_AGREEMENT, 6)),
        *(("n_annotators", n) for n in _ANNOTATORS),
        ("oversampled", not design.oversampled),
    ):
        with suppress(SetupError):
            yield Design(**{**design.model_dump(), field: value})


def simulate(
    n_studies: Mapping[Design, int], rule: DecisionRule, seed: int = 0, progress: Progress = SILENT
) -> dict[Design, Chances]:
    """Return the chances of each design from about so many studies, on all cores, in rounds: first
    of all sizes alike, then more of those of which some end in CAN'T TELL and others do not."""
    ended = {design: np.zeros((len(SIZES), len(Outcome)), np.int64) for design in n_studies}
    progress.start(_WORK, len(_ROUNDS) * len(SIZES) * len(ended), 0)
    with ProcessPoolExecutor() as pool:
        for number, share in enumerate(_ROUNDS):
            allotted = {d: _allot(ended[d], share * n).tolist() for d, n in n_studies.items()}
            tasks = [
                (design, index, n[index])
                for index in reversed(range(len(SIZES)))  # the longest first
                for design, n in allotted.items()
            ]
            counts = pool.map(partial(_count, rule, [seed, number]), *zip(*tasks, strict=True))
            for (design, index, _), outcomes in zip(tasks, counts, strict=True):
                ended[design][index] += outcomes
                progress.advance(_WORK)
    return {design: Chances(design, counts) for design, counts in ended.items()}


def _allot(ended: IntArray, n: float) -> IntArray:
    """About n further studies by size (sizes,), after those that `ended` (sizes, outcomes) counts:
    more of the sizes of which some end in CAN'T TELL and others do not."""
    clear = 1 - ended[:, -1] / np.maximum(ended.sum(axis=1), 1)
    worth = np.sqrt(clear * (1 - clear)) + _LEAST_WORTH
    allotted: IntArray = np.ceil(n * worth / worth.sum()).astype(np.int64)
    return allotted


def _count(rule: DecisionRule, seed: Sequence[int], design: Design, index: int, n: int) -> IntArray:
    """Of n studies of a size the number with each outcome (outcomes,)."""
    rng = np.random.default_rng([*seed, index])
    counts = Counter(outcome(draw(design, SIZES[index], rng), rule) for _ in range(n))
    return np.array([counts[which] for which in Outcome])
