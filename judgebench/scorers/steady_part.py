"""What is shown of scores that were taken several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from judgebench.records import Estimate
from judgebench.report.words import counted, listed
from judgebench.results.part import Block, Part
from judgebench.results.rows import Results
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Table
from judgebench.scorers.steady import ANALYSIS, ANSWERS

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
    "questions, has a standard error of {}."
)
_EDGE = 0.1


@dataclass(frozen=True, repr=False)
class Consistency(Shown):
    """How steady the scores of a table are; `steady` describes the rows."""

    rows: Results

    @property
    def part(self) -> Part:
        blocks = steady_blocks(self.rows)
        return Part("consistency", "how steady are the scores?", self.rows, blocks)


def steady_blocks(rows: Results, titles: Mapping[str, str] | None = None) -> tuple[Block, ...]:
    """A block for each kind of runs; `titles` are those of metrics by id."""
    return tuple(_block(rows, runs, titles or {}) for runs in rows.values("runs", ANALYSIS))


def _block(rows: Results, runs: str, titles: Mapping[str, str]) -> Block:
    numbers: dict[str, dict[str, Estimate]] = {}
    for row in (row for row in rows.select(ANALYSIS, runs=runs) if row.judge):
        name = row.judge + (f": {titles.get(row.metric, row.metric)}" if row.metric else "")
        numbers.setdefault(name, {})[row.statistic] = row.estimate
    columns = [key for key in _COLUMNS if any(key in by for by in numbers.values())]
    cells = tuple(
        (Cell(name), *(_cell(key, by[key]) for key in columns)) for name, by in numbers.items()
    )
    again = "Several answers of a system to a question"
    title = again if runs == ANSWERS else f"Answers beside versions of them: {runs}"
    headings = ("Score", *(_COLUMNS[key] for key in columns))
    wanted = (_WANTED.format(x) for x in rows.values("standard_error", ANALYSIS) if x)
    table = Table(f"steady_{runs}", title, headings, cells, (*_NOTES, *wanted))
    heading = "Is one answer enough?" if runs == ANSWERS else f"Robust to {runs}?"
    said = (*_counted(rows, runs), *_conclusions(numbers))
    return Block(heading, said, (table,), on_screen=True)


def _cell(key: str, estimate: Estimate) -> Cell:
    """Numbers of runs are whole."""
    if not key.startswith("runs") or estimate.value is None:
        return Cell(estimate=estimate)
    interval = "" if estimate.low is None else f" [{estimate.low:,.0f}, {estimate.high:,.0f}]"
    return Cell(f"{estimate.value:,.0f}{interval}", remark=estimate.reason)


def _counted(rows: Results, runs: str) -> Iterator[str]:
    units, same, least, most = (
        int(rows.find(key, ANALYSIS, runs=runs).value or 0)
        for key in ("units", "same", "least", "most")
    )
    times = f"{least} to {most}" if least < most else f"{most}"
    what = "pair of system and question", "pairs of system and question"
    if runs == ANSWERS:
        yield f"{counted(units, *what)} with {times} answers each."
    else:
        yield f"{counted(units, 'answer')}, each in {times} versions, the answer itself among them."
    if same:
        yield (
            f"In {same:,} of them all texts are the same: what differs there is noise of the judge."
        )


def _conclusions(numbers: Mapping[str, Mapping[str, Estimate]]) -> Iterator[str]:
    """What a reader may do, and where the two ways to see it disagree."""

    def values(key: str) -> dict[str, float]:
        return {k: v for k, by in numbers.items() if key in by and (v := by[key].value) is not None}

    flips = values("flips")
    if unsure := [name for name, value in flips.items() if value > _EDGE]:
        yield (
            f"Do not rank systems by one run of {listed(unsure)}: two runs put two systems in "
            f"opposite order in more than {_EDGE:.0%} of cases."
        )
    if constant := [name for name, value in values("within_sd").items() if value == 0]:
        yield f"{listed(constant)}: every run of an answer has the same score."
    over, icc = values("variance_over_range"), values("icc")
    if noisy := [name for name, value in icc.items() if value < 0.5]:
        yield f"{listed(noisy)}: more than half of the variance of scores is noise (ICC < 0.5)."
    odd = [
        (icc[b] - icc[a], a, b) for a in icc for b in icc if over[a] < over[b] and icc[a] < icc[b]
    ]
    if odd:
        _, a, b = max(odd)
        yield (
            f"Divided by its range, {a} looks steadier than {b} ({over[a]:.3g} against "
            f"{over[b]:.3g}); beside the differences between answers it is noisier (ICC "
            f"{icc[a]:.3f} against {icc[b]:.3f})."
        )
