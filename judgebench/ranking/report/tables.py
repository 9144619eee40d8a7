"""The rankings as plain tables. Every key begins with `ranking_`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from judgebench.ranking.report.basis import basis_tables
from judgebench.ranking.report.lookup import (
    NO_TASK,
    NOT_RANKED,
    argument_names,
    metric_words,
    placed_systems,
    ranker_titles,
    shares_above,
    shown_ranker,
)
from judgebench.ranking.report.medals import medal_tables
from judgebench.ranking.result import RankedSystem, RankedTask, RankerKind, Ranking, Rankings
from judgebench.results.tables import DASH, NO_REASON, Cell, Table, format_number

Row = tuple[Cell, ...]
_TRAINED: tuple[RankerKind, ...] = ("baseline", "expert-trained", "llm-trained")


def all_ranking_tables(rankings: Rankings) -> list[Table]:
    """Every table of the Markdown and LaTeX reports, in order; empty ones are left out."""
    numbered = list(enumerate(rankings.tasks, start=1))
    opening = [
        table
        for number, task in numbered
        for table in (*medal_tables(rankings, task, number), score_table(rankings, task, number))
    ]
    ranks = [table for number, task in numbered for table in rank_tables(rankings, task, number)]
    return with_rows([*opening, *average_tables(rankings), *ranks, *basis_tables(rankings)])


def with_rows(tables: list[Table]) -> list[Table]:
    """The tables that are not empty."""
    return [table for table in tables if table.rows]


def rank_tables(rankings: Rankings, task: RankedTask, number: int) -> list[Table]:
    """Places, average ranks and neighbours of one task; empty ones are left out."""
    return with_rows(
        [
            places_table(rankings, task, number),
            average_ranks_table(rankings, task, number),
            groups_table(rankings, task, number),
            neighbours_table(rankings, task, number),
        ]
    )


def average_tables(rankings: Rankings) -> list[Table]:
    """Averages, best systems and Friedman's test over all tasks; empty ones are left out."""
    return with_rows([averages_table(rankings), best_table(rankings), friedman_table(rankings)])


# --- one task: rankers down, systems across ------------------------------------------------------


def score_table(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """Every ranker's score of every system, the best of a row in bold (as Tables 10-12)."""
    rows = [_scores(ranking, task) for ranking in rankings.of(task.name)]
    return Table(
        f"ranking_scores-{number}",
        f"Scores, {task.title}",
        ("Ranker", *_columns(task)),
        tuple(rows),
        (
            f"Higher is better. Evaluators: {metric_words(task)}; judges: mean score, from 0 to 1; "
            "humans: minus the mean rank. Best of each row in bold.",
        ),
    )


def _columns(task: RankedTask) -> list[str]:
    return [s.name if s.is_argument else f"{s.name} (control)" for s in task.systems]


def _scores(ranking: Ranking, task: RankedTask) -> Row:
    placed = placed_systems(ranking)
    best = {s.system for s in placed if placed[0].place == s.place < placed[-1].place}
    found = {s.system: s for s in ranking.systems}
    return (
        Cell(shown_ranker(ranking)),
        *(
            Cell(estimate=found[s.name].score if s.name in found else NOT_RANKED,
                 best=s.name in best)
            for s in task.systems
        ),
    )  # fmt: skip


def _wide_rows(
    rankings: Rankings, task: RankedTask, shown: Callable[[RankedSystem], Cell]
) -> tuple[Row, ...]:
    """A row a ranker: one cell for each system of the task."""
    rows = []
    for ranking in rankings.of(task.name):
        found = {s.system: s for s in ranking.systems}
        cells = (shown(s) if (s := found.get(x.name)) else Cell(DASH) for x in task.systems)
        rows.append((Cell(shown_ranker(ranking)), *cells))
    return tuple(rows)


def places_table(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """The place by score, and where it lies in the resamples."""
    return Table(
        f"ranking_places-{number}",
        f"Places by score, with their range over the resamples, {task.title}",
        ("Ranker", *_columns(task)),
        _wide_rows(rankings, task, _place),
        ("1 is best; who ties shares the mean of the places. In brackets: the range.",),
    )


def _place(system: RankedSystem) -> Cell:
    if system.score.value is None:
        return Cell(DASH, remark=f"undefined: {system.score.reason or NO_REASON}")
    if system.place_range is None:
        return Cell(f"{system.place:g}", remark="no range")
    low, high = system.place_range
    return Cell(f"{system.place:g} ({low:g}–{high:g})")


def average_ranks_table(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """The mean of the ranks within instances."""
    return Table(
        f"ranking_average_ranks-{number}",
        f"Average ranks within instances, {task.title}",
        ("Ranker", *_columns(task)),
        _wide_rows(rankings, task, lambda s: Cell(estimate=s.average_rank)),
        ("1 is best.",),
    )


def groups_table(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """The letters of Nemenyi's groups; no row for a ranker without any."""
    rows = _wide_rows(rankings, task, lambda s: Cell(s.group or DASH))
    return Table(
        f"ranking_groups-{number}",
        f"Which average ranks differ: Nemenyi's groups, {task.title}",
        ("Ranker", *_columns(task)),
        tuple(row for row in rows if any(cell.text != DASH for cell in row[1:])),
        ("Systems of one row that share a letter do not differ by Nemenyi's test.",),
    )


def neighbours_table(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """The systems in order of their scores, and how often each stays above the next one."""
    orders = [(shown_ranker(r), _order(r)) for r in rankings.of(task.name)]
    width = max((len(cells) for _, cells in orders), default=0)
    return Table(
        f"ranking_neighbours-{number}",
        f"How surely each system stands above the next, {task.title}",
        ("Ranker", *(f"{i}." for i in range(1, width + 1))),
        tuple(
            (Cell(ranker), *cells, *[Cell()] * (width - len(cells)))
            for ranker, cells in orders
            if any("%" in cell.text for cell in cells)
        ),
        (
            "In order of the scores. In brackets: share of resamples in which the system stays "
            "above the next one, ties counted half.",
        ),
    )


def _order(ranking: Ranking) -> list[Cell]:
    """`gold (93 %)`; the last system stands alone."""
    names, shares = [s.system for s in placed_systems(ranking)], shares_above(ranking)
    told = [f" ({_percent(shares[p])})" if p in shares else "" for p in pairwise(names)]
    return [Cell(name + share) for name, share in zip(names, [*told, ""], strict=False)]


def _percent(share: float) -> str:
    """`93 %` with a space that does not break; neither 0 nor 100 % unless it is so."""
    if 0 < share < 0.01:
        return "<\u00a01\u00a0%"
    return ">\u00a099\u00a0%" if 0.99 < share < 1 else f"{100 * share:.0f}\u00a0%"


# --- all tasks -----------------------------------------------------------------------------------


def averages_table(rankings: Rankings) -> Table:
    """Mean score over real arguments, the best evaluator of a task in bold (left of Table 1)."""
    found = {(r.ranker, r.task): r for r in rankings.rankings}
    best = {task.name: _best_average(rankings, task) for task in rankings.tasks}
    return Table(
        "ranking_averages",
        "Average score over real arguments",
        ("Ranker", *(task.title for task in rankings.tasks)),
        tuple(
            (
                Cell(title),
                *(
                    Cell(
                        estimate=r.average if (r := found.get((ranker, task.name))) else NO_TASK,
                        best=ranker in best[task.name],
                    )
                    for task in rankings.tasks
                ),
            )
            for ranker, title in ranker_titles(rankings).items()
        ),
        (
            "Scores of evaluators, judges and humans are of different kinds: compare them within "
            "one kind only. Best evaluator of each task in bold. A high average says that the "
            "arguments help this evaluator, not that it ranks them well.",
        ),
    )


def _best_average(rankings: Rankings, task: RankedTask) -> set[str]:
    """The trained evaluators with the highest average."""
    values = {
        r.ranker: r.average.value
        for r in rankings.of(task.name)
        if r.kind in _TRAINED and r.average.value is not None
    }
    return {ranker for ranker, value in values.items() if value == max(values.values())}


def best_table(rankings: Rankings) -> Table:
    """The best real argument of each ranker and task (right of Table 1)."""
    return Table(
        "ranking_best",
        "Best system of each ranker, of the real arguments",
        ("Task", "Ranker", "Best system", "Its score", "Next below", "Stays above it in"),
        tuple(
            row
            for task in rankings.tasks
            for ranking in rankings.of(task.name)
            if (row := _best_row(ranking, task))
        ),
        ("Stays above: share of resamples, ties count half.",),
        stubs=2,
    )


def _best_row(ranking: Ranking, task: RankedTask) -> Row:
    wanted = set(argument_names(task))
    found = [s for s in placed_systems(ranking) if s.system in wanted]
    if not found:
        return ()
    tied = [s.system for s in found if s.place == found[0].place]
    below = found[len(tied)].system if len(found) > len(tied) else DASH
    share = shares_above(ranking).get((tied[0], below))
    return (
        Cell(task.title),
        Cell(shown_ranker(ranking)),
        Cell(", ".join(tied) + (" (tied)" if len(tied) > 1 else "")),
        Cell(estimate=found[0].score),
        Cell(below),
        Cell(DASH if share is None else _percent(share)),
    )


def friedman_table(rankings: Rankings) -> Table:
    """Friedman's test and Nemenyi's critical difference of every ranker and task."""
    return Table(
        "ranking_friedman",
        "Do the systems differ at all? Friedman's test over the ranks within instances",
        ("Task", "Ranker", "Instances", "Missing", "Chi square", "p", "Critical difference"),
        tuple(
            (
                Cell(task.title),
                Cell(shown_ranker(r)),
                Cell(f"{r.n:,}"),
                Cell(f"{r.n_missing:,}"),
                _or_reason(None if r.chi_square is None else f"{r.chi_square:.2f}", r.reason),
                _or_reason(p_text(r.p), r.reason),
                _or_reason(_number(r.critical_difference), r.reason),
            )
            for task in rankings.tasks
            for r in rankings.of(task.name)
        ),
        ("Critical difference: of two average ranks, by Nemenyi's test.",),
        stubs=2,
    )


def _number(value: float | None) -> str | None:
    return None if value is None else format_number(value)


def p_text(p: float | None) -> str | None:
    """`0.031`, `< 0.001`; None where there is none."""
    return "< 0.001" if p is not None and p < 0.001 else _number(p)


def _or_reason(text: str | None, reason: str) -> Cell:
    return (
        Cell(text) if text is not None else Cell(DASH, remark=f"undefined: {reason or NO_REASON}")
    )
