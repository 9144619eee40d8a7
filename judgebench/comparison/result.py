"""The result of a comparison, and what makes it fail a check, such as that of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from judgebench.alignment.analysis import TRUTH_STATISTICS
from judgebench.alignment.judge_scores import STATISTICS, Declared, by_key
from judgebench.alignment.raters import SAME_LABELS, TESTED
from judgebench.errors import Problem, raise_any
from judgebench.records import NOT_COMPUTED, Estimate, Results, Status
from judgebench.results.blocks import ReportSection, incomplete
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell
from judgebench.rubric import Rubric

SIDES = ("A", "B")
RIGHT = ("A", "B", "neither", "unknown")  # who has a label right that changed
COUNTED = "worst"  # a missing label is no right one, of A as of B
OUTCOMES = ("DO NOT USE", "CAN'T TELL", "ASSIST", "REPLACE")  # from the least to the most

NO_LABEL = Declared("no_label", "No label", "share of answers without a usable label", best="lower")
PROBABILITY_STATISTICS = {k: TRUTH_STATISTICS[k] for k in ("brier", "log_loss")}
# Of a judge, whatever the metric: of the verdict that counts, without earlier attempts.
RUN_STATISTICS = by_key(
    *(
        Declared(status.value, status.value.capitalize(), f"share of verdicts that are {status}",
                 best="lower")
        for status in Status if status is not Status.OK
    ),
    Declared("cost", "Cost (US$)", "mean cost of a verdict", best="lower"),
    Declared("latency", "Seconds", "mean time that a verdict took", best="lower"),
    Declared("tokens", "Tokens", "mean number of tokens of prompt and reply", best="lower"),
)  # fmt: skip
CHANGES = by_key(
    Declared("flipped", "Changed", "share of answers with two labels whose label differs"),
    Declared("more_severe", "More severe", "share of answers that B labels more severe",
             of_severe=True),
    Declared("less_severe", "Less severe", "share of answers that B labels less severe",
             of_severe=True),
    Declared("mean_shift", "Mean shift", "label by B minus that by A, as numbers", best="zero",
             needs_severities=True),
)  # fmt: skip
DECLARED: Mapping[str, Declared] = {
    **STATISTICS,
    **by_key(NO_LABEL),
    **PROBABILITY_STATISTICS,
    **RUN_STATISTICS,
}
# What says whether B is better, and its name in a sentence.
JUDGED_BY = {
    "accuracy": "accuracy", "severe_recall": "severe recall",
    "no_label": "the share without a label",
}  # fmt: skip


@dataclass(frozen=True)
class DecisionChange:
    """The outcomes of A and B for one judge (B's; `who` is A's) and metric, and the reasons."""

    judge: str
    who: str
    metric: str
    outcomes: tuple[str, str]
    reasons: tuple[str, str]

    @property
    def differs(self) -> bool:
        return self.outcomes[0] != self.outcomes[1]

    @property
    def fell(self) -> bool:
        """True where B may do less than A, or is now known not to do what was unclear of A."""
        before, after = map(OUTCOMES.index, self.outcomes)
        return after < before


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

    rows: Results
    gaps: tuple[str, ...] = ()

    @property
    def part(self) -> ReportSection:
        """Its table stands with the comparison."""
        return incomplete(ReportSection("flips", "", self.rows, own_file=True), self.gaps)


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

    presented_by = "judgebench.comparison.report:comparison_part"

    name: str
    rubric: Rubric
    pairs: tuple[PairSummary, ...]
    rows: Results
    flips: Flips
    compared: tuple[str, ...]
    notes: tuple[str, ...]
    runs: tuple[str, str]
    gaps: tuple[str, ...] = ()

    @property
    def parts(self) -> list[ReportSection]:
        return [self.part, self.flips.part]

    @property
    def results(self) -> Results:
        return self.rows

    @cached_property
    def decisions(self) -> list[DecisionChange]:
        """What is decided on each judge and metric that is decided on in both."""
        a, b = (self.rows.select("decision", run=side) for side in SIDES)
        in_a = {(row["who"], row.judge, row.metric): row for row in a}
        pairs = [(in_a.get((row["who"], row.judge, row.metric)), row) for row in b]
        return [
            DecisionChange(
                second.judge, second["who"], second.metric, (first["outcome"], second["outcome"]),
                (first.estimate.reason, second.estimate.reason),
            )
            for first, second in pairs if first
        ]  # fmt: skip

    @property
    def n_answers(self) -> int:
        """The number of answers on which judges are compared."""
        return max(pair.n for pair in self.pairs)

    def title(self, metric: str) -> str:
        """The title of a metric by its id."""
        return {m.id: m.title for m in self.rubric.metrics}.get(metric, metric)

    def difference(
        self, statistic: str, judge: str, metric: str, failures: str = "left_out"
    ) -> Estimate:
        """One statistic of B minus that of A. Where nothing failed, the three ways of counting
        failures are one."""
        return self.find("difference", statistic, judge, metric, failures)

    def find(
        self,
        analysis: str,
        statistic: str,
        judge: str,
        metric: str,
        failures: str = COUNTED,
        **keys: str,
    ) -> Estimate:
        """The number with these keys, failures left out where nothing failed."""
        for policy in (failures, "left_out", ""):
            keys = {**keys, "judge": judge, "metric": metric, "failures": policy}
            if rows := self.rows.select(analysis, statistic, **keys):
                return rows[0].estimate
        return NOT_COMPUTED

    def shown_differences(self) -> Iterator[tuple[str, str, str, Estimate]]:
        """Statistic, judge, metric and difference of all in JUDGED_BY that chance does not explain,
        by the permutation test with Holm's correction over the metrics. The interval of the share
        without a label excludes 0 as well. A missing label counts as wrong."""
        for key in JUDGED_BY:
            for pair in self.pairs:
                for metric in self.rubric.metrics:
                    difference = self.difference(key, pair.b, metric.id, COUNTED)
                    p = self.find("test", "p_holm", pair.b, metric.id, of=key).value
                    is_apart = p is not None and p <= 1 - difference.level
                    if key not in TESTED:
                        is_apart = is_apart and excludes_0(difference)
                    if is_apart and difference.value:
                        yield key, pair.b, metric.id, difference

    @property
    def failures(self) -> bool:
        """True where either judge gave no label to some answer with a reference label."""
        return COUNTED in self.rows.values("failures", "difference")


def excludes_0(e: Estimate) -> bool:
    """True where 0 lies outside the interval."""
    return e.low is not None and e.high is not None and not e.low <= 0 <= e.high


def is_better(statistic: str, e: Estimate) -> bool:
    """True where the difference is in favour of B."""
    return ((e.value or 0) > 0) == (DECLARED[statistic].best == "higher")


Demand = Literal["worse", "decision"]
DEMANDS: tuple[Demand, ...] = get_args(Demand)


def margins(texts: Sequence[str], comparison: Comparison) -> list[tuple[float, str]]:
    """Read `0.05` and `0.05:tone`: B may be at most so much less accurate than A, on one metric or,
    where it is empty, on each. Raises SetupError with every problem."""
    allowed, problems = [], []
    ids = [metric.id for metric in comparison.rubric.metrics]
    for text in texts:
        number, _, metric = text.partition(":")
        try:
            margin = float(number)
        except ValueError:
            margin = -1.0
        if not 0 <= margin <= 1:
            share = "a share from 0 to 1, then a metric if it is for one: 0.05 or 0.05:METRIC"
            problems.append(Problem("is no margin", "", None, "--no-worse", text, share))
        elif metric not in ("", *ids):
            message = "is no metric that is compared"
            problems.append(Problem(message, "", None, "--no-worse", metric, ", ".join(ids)))
        allowed.append((margin, metric))
    raise_any(problems)
    return allowed


def check_demands(demands: Sequence[str]) -> None:
    """Raises SetupError for what is none of DEMANDS."""
    raise_any([
        Problem("cannot be checked", "", None, "--fail-on", demand, ", ".join(DEMANDS))
        for demand in demands
        if demand not in DEMANDS
    ])  # fmt: skip


def failures(
    comparison: Comparison, demands: Sequence[str] = (), allowed: Sequence[tuple[float, str]] = ()
) -> Iterator[str]:
    """A sentence for everything that is not as demanded.

    `worse`: B is shown to be worse than A on some metric, in any of JUDGED_BY, by
    `Comparison.shown_differences`. `decision`: a decision fell. Of a
    margin: B is not shown to be at most so much less accurate, as the interval of the difference
    reaches below it. A missing label counts as wrong.
    """
    c = comparison
    if "worse" in demands:
        for statistic, judge, metric, difference in c.shown_differences():
            if not is_better(statistic, difference):
                p = c.find("test", "p_holm", judge, metric, of=statistic).value
                yield (
                    f"{c.title(metric)} ({judge}): {JUDGED_BY[statistic]} is worse: "
                    f"difference {with_interval(difference)}, p after Holm {p:.3g}, "
                    f"n = {difference.n:,}"
                )
    for change in c.decisions if "decision" in demands else ():
        if change.fell:
            a, b = change.outcomes
            yield f"{c.title(change.metric)} ({change.judge}): the decision fell from {a} to {b}"
    for margin, of in allowed:
        yield from _beyond(c, margin, of)


def _beyond(c: Comparison, margin: float, of: str) -> Iterator[str]:
    for pair in c.pairs:
        for metric in c.rubric.metrics:
            e = c.difference("accuracy", pair.b, metric.id, COUNTED)
            is_above = e.low is not None and e.low >= -margin
            if of in ("", metric.id) and not is_above and e.reason != SAME_LABELS:
                yield (
                    f"{metric.title} ({pair.b}): accuracy is not shown to be at most {margin:g} "
                    f"worse: {with_interval(e)}"
                )


def with_interval(e: Estimate) -> str:
    """`-0.100 [-0.200, -0.010]`, with the reason where there is no interval."""
    cell = Cell(estimate=e, signed=True)
    return f"{cell.value} {cell.interval or f'({e.reason})'}"
