"""What is shown of scores that were taken several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from judgebench.records import Estimate
from judgebench.results.part import Block, Intervals, Lane, Part
from judgebench.results.rows import Results
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Table
from judgebench.scorers.steady import ANALYSIS, ANSWERS
from judgebench.words import counted, listed

_COLUMNS = {
    "within_sd": "SD within", "between_sd": "SD between", "icc": "ICC",
    "runs": "Runs for reliability 0.9", "runs_for_answer": "Runs for an answer",
    "runs_for_system": "Runs for a system", "cv": "CV", "flips": "Order flips",
    "variance_over_range": "Variance / range",
}  # fmt: skip
_NOTES = (
    "SD within: standard deviation of one run; that of a mean of r runs is smaller by the root of "
    "r. SD between: of answers without that noise. ICC: the share of the variance of single runs "
    "that lies between answers.",
    "Reliability 0.9: of so many runs the mean has a standard error of a third of SD between. "
    "Order flips: how often two runs put two systems in opposite order; 0.5 is a coin toss.",
    "Variance / range: as a published comparison of metrics does it; it has the unit of the score, "
    "and a few high scores make a metric near zero look steady. CV: mean of SD / mean, for scales "
    "with a true zero alone.",
)
_WANTED = (
    "Runs for an answer, for a system: until the mean score of an answer, or of a system over its "
    "questions, has the standard error that was asked for."
)
_EDGE = 0.1


@dataclass(frozen=True, repr=False)
class Consistency(Shown):
    """How steady the scores of a table with so many answers are; `steady` describes the rows."""

    name: str
    rows: Results
    n_answers: int

    @property
    def part(self) -> Part:
        blocks = steady_blocks(self.rows, {})
        return Part("consistency", "how steady are the scores?", self.rows, blocks)


def steady_blocks(rows: Results, titles: Mapping[str, str]) -> tuple[Block, ...]:
    """A block for each kind of runs; `titles` are those of metrics by id."""
    return tuple(_block(rows, runs, titles) for runs in rows.values("runs", ANALYSIS))


def _block(rows: Results, runs: str, titles: Mapping[str, str]) -> Block:
    numbers: dict[str, dict[str, Estimate]] = {}
    for row in (row for row in rows.select(ANALYSIS, runs=runs) if row.judge):
        name = row.judge + (f": {titles.get(row.metric, row.metric)}" if row.metric else "")
        numbers.setdefault(name, {})[row.statistic] = row.estimate
    columns = [key for key in _COLUMNS if any(key in by for by in numbers.values())]
    cells = ((Cell(name), *(_cell(k, by[k]) for k in columns)) for name, by in numbers.items())
    units, most = (int(rows.find(k, ANALYSIS, runs=runs).value or 0) for k in ("units", "most"))
    pairs = counted(units, "pair of system and question", "pairs of system and question")
    if runs == ANSWERS:
        heading, title = "Is one answer enough?", "Several answers of a system to a question"
        said = f"{pairs} with up to {most} answers each."
    else:
        heading, title = f"Robust to {runs}?", f"Answers beside versions of them: {runs}"
        said = f"{counted(units, 'answer')} with up to {counted(most - 1, 'version')} each."
    headings = ("Score", *(_COLUMNS[key] for key in columns))
    notes = (*_NOTES, *([_WANTED] if "runs_for_answer" in columns else ()))
    table = Table(f"steady_{runs}", title, headings, tuple(cells), notes)
    lines = tuple((name, (Lane("ICC", "judge", by["icc"]),)) for name, by in numbers.items())
    axis = "ICC: share of the variance that lies between answers"
    figure = Intervals(f"steady_{runs}", heading, lines, axis, down="Score")
    return Block(heading, (said, *_conclusions(numbers)), (table,), (figure,), on_screen=True)


def _cell(key: str, estimate: Estimate) -> Cell:
    """Numbers of runs are whole."""
    if not key.startswith("runs") or estimate.value is None:
        return Cell(estimate=estimate)
    return Cell(format(estimate, ",.0f"), remark=estimate.reason)


def _conclusions(numbers: Mapping[str, Mapping[str, Estimate]]) -> Iterator[str]:
    """What a reader may do, as far as the intervals bear it out, and where the two ways to see
    noise disagree."""
    ends = {name: {k: _ends(e) for k, e in by.items()} for name, by in numbers.items()}
    if unsure := [name for name, by in ends.items() if by["flips"][0] > _EDGE]:
        yield (
            f"Do not rank systems by one run of {listed(unsure)}: two runs put two systems in "
            f"opposite order in more than {_EDGE:.0%} of cases."
        )
    if constant := [name for name, by in numbers.items() if by["within_sd"].value == 0]:
        yield f"{listed(constant)}: every run of an answer has the same score."
    if noisy := [name for name, by in ends.items() if by["icc"][1] < 0.5]:
        yield f"{listed(noisy)}: more than half of the variance of scores is noise (ICC < 0.5)."
    odd = [
        (ends[b]["icc"][0] - ends[a]["icc"][1], a, b)
        for a, of in numbers.items()
        for b, to in numbers.items()
        if (of["variance_over_range"].value or 0) < (to["variance_over_range"].value or 0)
    ]
    if odd and max(odd)[0] > 0:
        _, a, b = max(odd)
        (u, i), (v, j) = ([numbers[c][k] for k in ("variance_over_range", "icc")] for c in (a, b))
        yield (
            f"Divided by its range, {a} looks steadier than {b} ({u.value:.3g} against "
            f"{v.value:.3g}); beside the differences between answers it is noisier (ICC {i} "
            f"against {j})."
        )


def _ends(estimate: Estimate) -> tuple[float, float]:
    """The interval, the value alone where it has none, and what bears nothing out where it is
    undefined."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return (-inf, inf) if estimate.value is None else (estimate.value, estimate.value)
    return low, high
