"""The result of a comparison, and what makes it fail a check, such as that of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from judgebench.alignment.differences import SAME_LABELS, TESTED
from judgebench.comparison.differences import DECLARED
from judgebench.errors import Problem, raise_any
from judgebench.records import Estimate
from judgebench.results.part import Part, incomplete
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, format_number
from judgebench.rubric import Rubric
from judgebench.words import counted

_MOST_SAID = 2  # conditions in a sentence
_WORTH: Mapping[str, int] = {"REPLACE": 3, "ASSIST": 2, "CAN'T TELL": 1}


@dataclass(frozen=True)
class Changed:
    """The outcome of A and B for one judge and metric, the reasons, and their conditions (rows) by
    outcome required for and key."""

    judge: str
    who: str
    metric: str
    outcomes: tuple[str, str]
    reasons: tuple[str, str]
    conditions: tuple[Mapping[tuple[str, str], Row], Mapping[tuple[str, str], Row]]

    @property
    def differs(self) -> bool:
        return self.outcomes[0] != self.outcomes[1]

    @property
    def fell(self) -> bool:
        """True where B may do less than A, or is now known not to do what was unclear of A."""
        before, after = (_WORTH.get(outcome, 0) for outcome in self.outcomes)
        return after < before

    def moved(self) -> Iterator[tuple[Row, Row]]:
        """The conditions that stand otherwise in B, of those that both have."""
        a, b = self.conditions
        yield from (
            (a[key], b[key]) for key in a if key in b and a[key]["state"] != b[key]["state"]
        )

    def why(self) -> str:
        """`agreement …: met (0.010) → unclear (-0.020), and 2 more conditions.`; empty where no
        condition of both stands otherwise."""
        said = [f"{b['title']}: {_state(a)} → {_state(b)}" for a, b in self.moved()]
        more = len(said) - _MOST_SAID
        said = [*said[:_MOST_SAID], *([counted(more, "more condition")] if more > 0 else [])]
        return f"{'; '.join(said)}." if said else ""


def _state(row: Row) -> str:
    return f"{row['state']} ({format_number(row.estimate.value)})"


@dataclass(frozen=True)
class PairSummary:
    """Two judges that are compared: their names, on how many answers, and the settings that are not
    the same, (setting, in A, in B)."""

    a: str
    b: str
    n: int
    settings: tuple[tuple[str, str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name of both, or `b − a`."""
        return self.b if self.a == self.b else f"{self.b} − {self.a}"


@dataclass(frozen=True, repr=False)
class Flips(Shown):
    """The verdicts that are not the same in A and B: a row each, in flips.csv."""

    found: Results
    gaps: tuple[str, ...] = ()

    @property
    def part(self) -> Part:
        """Its table stands with the comparison."""
        return incomplete(Part("flips", "", self.found, own_file=True), self.gaps)


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """The differences of B from A on the same answers.

    The analyses of `results` and the keys of their rows beside judge (B's) and metric; `who` is
    A's judge:

    - difference: B minus A; `failures` (left_out, worst, best)
    - value: what each reaches on these answers; `run` (A, B), `failures`
    - test: permutation_p and p_holm; `of`, the statistic that is tested; `failures`
    - change: how many labels changed, and which way
    - decision, condition: what is decided on these answers; `run`
    - truth: on how many answers the reference labels of both runs differ
    - left_out, left_out_item: how many answers are not compared, and which

    `flips` holds the verdicts that changed. `compared` says in sentences what was compared.
    """

    presented_by = "judgebench.comparison.part:comparison_part"

    name: str
    rubric: Rubric
    pairs: tuple[PairSummary, ...]
    found: Results
    flips: Flips
    decisions: tuple[Changed, ...]
    compared: tuple[str, ...]
    notes: tuple[str, ...]
    n_answers: int
    runs: tuple[str, str] = ("", "")
    gaps: tuple[str, ...] = ()

    @property
    def parts(self) -> list[Part]:
        return [self.part, self.flips.part]

    @property
    def results(self) -> Results:
        return self.found

    def title(self, metric: str) -> str:
        """The title of a metric by its id."""
        return {m.id: m.title for m in self.rubric.metrics}.get(metric, metric)

    def difference(
        self, statistic: str, judge: str, metric: str, failures: str = "left_out"
    ) -> Estimate:
        """One statistic of B minus that of A. Where nothing failed, the three ways of counting
        failures are one."""
        return self._find("difference", statistic, judge, metric, failures=failures)

    def value(
        self, statistic: str, judge: str, metric: str, run: str, failures: str = "left_out"
    ) -> Estimate:
        """The value that A or B reaches on these answers."""
        return self._find("value", statistic, judge, metric, run=run, failures=failures)

    def p_holm(
        self, judge: str, metric: str, of: str = "accuracy", failures: str = "left_out"
    ) -> Estimate:
        """The p value of the permutation test, corrected over the metrics."""
        return self._find("test", "p_holm", judge, metric, of=of, failures=failures)

    def is_shown(self, statistic: str, judge: str, metric: str, failures: str = "worst") -> bool:
        """Return whether chance does not explain a difference: by the permutation test with Holm's
        correction over the metrics where there is one, else by the interval."""
        found = self.difference(statistic, judge, metric, failures)
        if statistic in TESTED:
            p = self.p_holm(judge, metric, statistic, failures).value
            return p is not None and p <= 1 - found.level
        return (
            found.low is not None and found.high is not None and not (found.low <= 0 <= found.high)
        )

    @property
    def failures(self) -> bool:
        """True where either judge gave no label to some answer with a truth."""
        return "worst" in self.results.values("failures", "difference")

    def _find(
        self, analysis: str, statistic: str, judge: str, metric: str, **keys: str
    ) -> Estimate:
        about = {"judge": judge, "metric": metric}
        policies = dict.fromkeys((keys.pop("failures", "left_out"), "left_out", ""))
        rows: list[Row] = []
        for policy in policies:
            rows = rows or self.results.select(
                analysis, statistic, **about, **keys, failures=policy
            )
        return rows[0].estimate if rows else self.results.find("")

    def shown_as(self, statistic: str) -> tuple[str, bool]:
        """The heading of a statistic, and whether less of it is better."""
        declared = DECLARED[statistic]
        return declared.heading, declared.best == "lower"

    def records(self) -> dict[str, list[Any]]:
        """The records for JSON: every row, and every flip."""
        return {
            "comparison": [row.plain() for row in self.results],
            "flips": [row.plain() for row in self.flips.results],
        }


Demand = Literal["worse", "decision"]
DEMANDS: tuple[Demand, ...] = get_args(Demand)
COUNTED = "worst"  # a missing label is no right one, of A as of B


def margins(texts: Sequence[str], comparison: Comparison) -> list[tuple[float, str]]:
    """Read `0.05` and `0.05:tone`: B may be at most so much less accurate than A, on one metric or,
    where it is empty, on each. Raises SetupError with every problem."""
    found, problems = [], []
    known = [metric.id for metric in comparison.rubric.metrics]
    for text in texts:
        number, _, metric = text.partition(":")
        try:
            margin = float(number)
        except ValueError:
            margin = -1.0
        if not 0 <= margin <= 1:
            allowed = "a share from 0 to 1, then a metric if it is for one: 0.05 or 0.05:METRIC"
            problems.append(
                Problem("is no margin", field="--no-worse", found=text, allowed=allowed)
            )
        elif metric and metric not in known:
            message = "is no metric that is compared"
            names = ", ".join(known)
            problems.append(Problem(message, field="--no-worse", found=metric, allowed=names))
        found.append((margin, metric))
    raise_any(problems)
    return found


def check_demands(demands: Sequence[str]) -> None:
    """Raises SetupError for what is none of DEMANDS."""
    allowed = ", ".join(DEMANDS)
    problems = [
        Problem("cannot be checked", field="--fail-on", found=demand, allowed=allowed)
        for demand in demands
        if demand not in DEMANDS
    ]
    raise_any(problems)


def failures(
    comparison: Comparison, demands: Sequence[str] = (), allowed: Sequence[tuple[float, str]] = ()
) -> Iterator[str]:
    """A sentence for everything that is not as demanded.

    `worse`: B is shown to be less accurate than A, or to find fewer severe answers, on some metric
    (permutation test with Holm's correction over the metrics). `decision`: a decision fell. Of a
    margin: B is not shown to be at most so much less accurate, as the interval of the difference
    reaches below it. A missing label counts as wrong.
    """
    if "worse" in demands:
        yield from _worse(comparison)
    if "decision" in demands:
        for one in comparison.decisions:
            if one.fell:
                a, b = one.outcomes
                where = _about(comparison, one.judge, one.metric)
                yield f"{where}: the decision fell from {a} to {b}"
    for margin, of in allowed:
        yield from _beyond(comparison, margin, of)


def _worse(c: Comparison) -> Iterator[str]:
    for pair in c.pairs:
        for metric in c.rubric.metrics:
            for statistic in TESTED:
                about = (pair.b, metric.id)
                difference = c.difference(statistic, *about, COUNTED)
                p = c.p_holm(*about, statistic, COUNTED).value
                if c.is_shown(statistic, *about, COUNTED) and (difference.value or 0) < 0:
                    yield (
                        f"{_about(c, *about)}: {c.shown_as(statistic)[0].lower()} is worse: "
                        f"difference {_number(difference)}, p after Holm {p:.3g}"
                    )


def _beyond(c: Comparison, margin: float, of: str) -> Iterator[str]:
    for pair in c.pairs:
        for metric in c.rubric.metrics:
            e = c.difference("accuracy", pair.b, metric.id, COUNTED)
            above = e.low is not None and e.low >= -margin
            if of in ("", metric.id) and not (above or e.reason == SAME_LABELS):
                yield (
                    f"{_about(c, pair.b, metric.id)}: accuracy is not shown to be at most "
                    f"{margin:g} worse: {_number(e)}"
                )


def _about(c: Comparison, judge: str, metric: str) -> str:
    return f"{c.title(metric)} ({judge})"


def _number(e: Estimate) -> str:
    cell = Cell(estimate=e, signed=True)
    if e.value is None:
        return f"undefined, {e.reason}"
    return f"{cell.value} {cell.interval}".strip() + (f" ({e.reason})" if not cell.interval else "")
