"""What a report shows of the rankings: sentences, medal grids, scores, and what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

from judgebench.ranking.rankers import OneRanking, RankedTask, RankerKind, Rankings
from judgebench.ranking.sentences import HOW_SURE, NO_RANKINGS, conclusion, ranking_sentences
from judgebench.ranking.suitability import draw_medals, has_controls, medals_table, system_colours
from judgebench.records import Estimate
from judgebench.results.part import Block, Drawing, Part
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, NO_REASON, Cell, Table, format_number, p_text
from judgebench.words import counted

_Cells = tuple[Cell, ...]
_TRAINED: tuple[RankerKind, ...] = ("baseline", "expert-trained", "llm-trained")
_HOLDS = (
    "Intervals hold items and trainings; those of an evaluator that was trained once are of one "
    "training run, and nothing is claimed of it."
)
_NO_TASK = Estimate(None, reason="this ranker did not rank this task")


def rankings_part(rankings: Rankings) -> Part:
    """Everything: each task, all tasks together, and what the rankings rest on."""
    tasks = list(enumerate(rankings.tasks, start=1))
    said = any(ranking_sentences(rankings, task) for task in rankings.tasks)
    how_sure = (HOW_SURE if said else NO_RANKINGS,)
    together = {
        "Do rankers agree?": tuple(_agreement(rankings, t, n) for n, t in tasks),
        "Control cases": (_controls_below(rankings),),
        "Biases": (_length(rankings), _self_preference(rankings)),
        "Training and arguments": (_trained(rankings), _systems(rankings), _tasks(rankings)),
    }
    return Part(
        key="rankings",
        title="whose arguments help to decide?",
        results=rankings.rows,
        blocks=(
            Block("Whose arguments help to decide?", how_sure, lead=True, on_screen=True),
            *(block for n, task in tasks for block in _of_task(rankings, task, n)),
            Block("All tasks together", tables=_average_tables(rankings), on_screen=True),
            *(Block(title, tables=tables, folded=True) for title, tables in together.items()),
        ),
        notes=rankings.notes,
    )


def _of_task(rankings: Rankings, task: RankedTask, number: int) -> Iterator[Block]:
    """What one task shows, and the ranks behind it."""
    ranked = rankings.of(task.name)
    grids = [medals_table(ranked, task, f"ranking_medals-{number}", with_controls=False)]
    if has_controls(ranked, task):
        key = f"ranking_controls-{number}"
        grids.append(medals_table(ranked, task, key, with_controls=True))
    draw = partial(draw_medals, ranked, task, system_colours(rankings.tasks))
    figure = Drawing(f"medals_{task.name}", f"Who helps most: {task.title}", draw)
    left_out = f"; not ranked: {', '.join(task.left_out)}" if task.left_out else ""
    n = rankings.instances(task.name)
    about = f"{counted(n, 'instance')}, scored by {task.metric_words}{left_out}."
    scores, *ranks = _by_system(rankings, task, number)
    said = (*filter(None, [conclusion(rankings, task)]), *ranking_sentences(rankings, task))
    yield Block(
        task.title, (*said, about) if ranked else (),
        (grids[-1], scores), (figure,) if grids[-1].rows else (), lead=True, on_screen=True,
    )  # fmt: skip
    tables = (*grids[:-1], *ranks, _neighbours(rankings, task, number))
    yield Block(f"Places and ranks: {task.title}", tables=tables, folded=True)


# --- one task: rankers down, systems across ------------------------------------------------------


def _by_system(rankings: Rankings, task: RankedTask, number: int) -> Iterator[Table]:
    """Scores, the best of a row in bold (as Tables 10-12), places, average ranks and groups."""
    columns = [s.name if s.is_argument else f"{s.name} (control)" for s in task.systems]
    for key, title, shown, note in (
        ("scores", "Scores", _score, (
            f"Higher is better. Evaluators: {task.metric_words}; judges: mean score, from 0 to 1; "
            "humans: minus the mean rank. Best of each row in bold."
        )),
        ("places", "Places by score, with their range over the resamples", _place,
         "1 is best; tied systems share the mean of their places. In brackets: the range."),
        ("average_ranks", "Average ranks within instances, of the real arguments", _average_rank,
         "1 is best. For reference, a control case where it would stand among the arguments."),
        ("groups", "Which average ranks differ: Nemenyi's groups", 
         lambda ranking, system: Cell(ranking.groups.get(system) or DASH),
         "Real arguments of one row that share a letter do not differ by Nemenyi's test."),
    ):  # fmt: skip
        rows = (
            (Cell(ranking.title), *(shown(ranking, system.name) for system in task.systems))
            for ranking in rankings.of(task.name)
            if key != "groups" or any(ranking.groups.values())
        )
        title = f"{title}, {task.title}"
        yield Table(f"ranking_{key}-{number}", title, ("Ranker", *columns), tuple(rows), (note,))


def _score(ranking: OneRanking, system: str) -> Cell:
    places = list(ranking.placed.values())
    is_best = bool(places) and places[0] == ranking.placed.get(system) != places[-1]
    unranked = Estimate(None, reason="this ranker did not rank it")
    return Cell(estimate=ranking.scores.get(system, unranked), best=is_best)


def _place(ranking: OneRanking, system: str) -> Cell:
    e = ranking.places.get(system)
    if e is None or e.value is None:
        return Cell(DASH) if e is None else _or_reason(e, str)
    if e.low is None or e.high is None:
        return Cell(f"{e.value:g}", remark="no range")
    return Cell(f"{e.value:g} ({e.low:g}–{e.high:g})")


def _average_rank(ranking: OneRanking, system: str) -> Cell:
    e = ranking.average_ranks.get(system)
    return Cell(DASH) if e is None else Cell(estimate=e)


def _neighbours(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """The systems in order of their scores, and how often each stays above the next one."""
    orders = [_order(r) for r in rankings.of(task.name) if r.shares]
    width = max(map(len, orders), default=1)
    return Table(
        f"ranking_neighbours-{number}",
        f"How certain it is that each system ranks above the next, {task.title}",
        ("Ranker", *(f"{i}." for i in range(1, width))),
        tuple((*map(Cell, order), *[Cell()] * (width - len(order))) for order in orders),
        (
            "In order of the scores. In brackets: share of resamples in which the system "
            "ranks above the next one, ties counted half.",
        ),
    )


def _order(ranking: OneRanking) -> list[str]:
    """The ranker, then `gold (93 %)`; the last system stands alone."""
    names, shares = list(ranking.placed), ranking.shares
    said = [f" ({_percent(shares[p])})" if p in shares else "" for p in pairwise(names)]
    return [ranking.title, *map(str.__add__, names, [*said, ""])]


def _percent(share: float) -> str:
    """`93 %` with a space that does not break; neither 0 nor 100 % unless it is so."""
    if 0 < share < 0.01:
        return "<\u00a01\u00a0%"
    return ">\u00a099\u00a0%" if 0.99 < share < 1 else f"{100 * share:.0f}\u00a0%"


# --- all tasks -----------------------------------------------------------------------------------


def _average_tables(rankings: Rankings) -> tuple[Table, ...]:
    """Averages, best systems and Friedman's test."""
    best = {task.name: _best_average(rankings, task) for task in rankings.tasks}
    every = [(r, task) for task in rankings.tasks for r in rankings.of(task.name)]
    return (
        Table(
            "ranking_averages",
            "Average score over real arguments",
            *_by_task(rankings, "average", lambda r: r.ranker in best[r.task]),
            (
                "Scores of evaluators, judges and humans are of different kinds: compare them "
                "within one kind only. Best evaluator of each task in bold. A high average says "
                "that the arguments help this evaluator, not that it ranks them well.",
            ),
        ),
        _two_stubs(
            "best",
            "Best system of each ranker, of the real arguments",
            ("Task", "Ranker", "Best system", "Its score", "Next below", "Ranks above it in"),
            (row for r, task in every if (row := _best(r, task))),
            "Share of resamples, ties counted half.",
        ),
        _two_stubs(
            "friedman",
            "Do the real arguments differ at all? Friedman's test of the ranks within instances",
            ("Task", "Ranker", "Instances", "Missing", "Chi square", "p", "Critical difference"),
            (_friedman(r, task) for r, task in every),
            "Critical difference: of two average ranks, by Nemenyi's test. Both hold the trainings "
            "that there were.",
        ),
    )


def _by_task(
    rankings: Rankings, statistic: str, is_best: Callable[[OneRanking], bool]
) -> tuple[tuple[str, ...], tuple[_Cells, ...]]:
    """Columns and rows of a statistic of whole rankings; rankers down, tasks across."""
    found = {(r.ranker, r.task): r for r in rankings.rankings}

    def cell(ranker: str, task: str) -> Cell:
        ranking = found.get((ranker, task))
        if ranking is None:
            return Cell(estimate=_NO_TASK)
        return Cell(estimate=ranking.whole.get(statistic, _NO_TASK), best=is_best(ranking))

    return ("Ranker", *(task.title for task in rankings.tasks)), tuple(
        (Cell(title), *(cell(ranker, task.name) for task in rankings.tasks))
        for ranker, title in rankings.titles.items()
    )


def _best_average(rankings: Rankings, task: RankedTask) -> set[str]:
    """The trained evaluators with the highest average."""
    values = {
        r.ranker: e.value
        for r in rankings.of(task.name)
        if r.kind in _TRAINED and (e := r.whole.get("average")) and e.value is not None
    }
    return {ranker for ranker, value in values.items() if value == max(values.values())}


def _best(ranking: OneRanking, task: RankedTask) -> _Cells:
    """The best real argument of one ranker (right of Table 1); empty where it ranked none."""
    wanted = set(task.arguments)
    found = {s: place for s, place in ranking.placed.items() if s in wanted}
    if not found:
        return ()
    names = list(found)
    tied = [name for name in names if found[name] == found[names[0]]]
    below = names[len(tied)] if len(names) > len(tied) else DASH
    share = ranking.shares.get((tied[0], below))
    return (
        *_texts(task.title, ranking.title, ", ".join(tied) + (" (tied)" if len(tied) > 1 else "")),
        Cell(estimate=ranking.scores[tied[0]]),
        *_texts(below, DASH if share is None else _percent(share)),
    )


def _friedman(ranking: OneRanking, task: RankedTask) -> _Cells:
    statistics = ("chi_square", "p", "critical_difference")
    chi_square, p, distance = (ranking.whole.get(name, _NO_TASK) for name in statistics)
    return (
        *_texts(task.title, ranking.title, f"{chi_square.n:,}", f"{chi_square.n_missing:,}"),
        _or_reason(chi_square, "{:.2f}".format),
        _or_reason(p, p_text),
        _or_reason(distance, format_number),
    )


def _or_reason(e: Estimate, text: Callable[[float], str]) -> Cell:
    if e.value is None:
        return Cell(DASH, remark=f"undefined: {e.reason or NO_REASON}")
    return Cell(text(e.value))


def _texts(*texts: str) -> _Cells:
    return tuple(map(Cell, texts))


def _two_stubs(
    key: str, title: str, columns: tuple[str, ...], rows: Iterable[_Cells], note: str
) -> Table:
    """A table whose first two columns name the row."""
    return Table(f"ranking_{key}", title, columns, tuple(rows), (note,), stubs=2)


# --- what they rest on ---------------------------------------------------------------------------


def _cells(rankings: Rankings, row: Row, *keys: str) -> _Cells:
    """What names a row: titles of tasks and rankers, other keys as they are."""
    titles = {task.name: task.title for task in rankings.tasks} | rankings.titles
    return _texts(
        *(row[k] if k in ("system", "akin") else titles.get(row[k], row[k]) for k in keys)
    )


def _agreement(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """Every pair of rankers, those with the humans first."""
    humans = {r.ranker for r in rankings.rankings if r.kind == "humans"}
    agreements = rankings.rows.pivot("agreement", "task", "ranker", "other")
    pairs = [(pair, found) for (of, *pair), found in agreements.items() if of == task.name]
    rows = []
    for _, found in sorted(pairs, key=lambda pair: not humans & set(pair[0])):
        tau = found["tau_b"]
        ranker, other = _cells(rankings, tau, "ranker", "other")
        estimates = (
            Cell(estimate=row.estimate, signed=statistic != "top_1")
            for statistic, row in found.items()
            if statistic != "p"
        )
        rows.append((ranker, replace(other, remark=f"over {tau['over']}"), *estimates))
    return _two_stubs(
        f"agreement-{number}",
        f"How far rankers agree, {task.title}",
        ("Ranker", "Other ranker", "Kendall's tau-b", "Spearman's rho",
         "tau-b of the average ranks", "Same best system"),
        rows,
        "tau-b and rho of the ranks within an instance, means over the instances and "
        "systems that both rank. Same best system: share of the instances. " + _HOLDS,
    )  # fmt: skip


def _controls_below(rankings: Rankings) -> Table:
    """The share of control cases that rank below all real arguments."""
    return Table(
        "ranking_controls_below",
        "Control cases below all real arguments of their instance",
        *_by_task(rankings, "controls_below", lambda ranking: False),
        ("Share of the instances' control cases; 1 is best.",),
    )


def _length(rankings: Rankings) -> Table:
    """Do longer arguments rank higher?"""
    rows = (
        (
            *_cells(rankings, found["rho"], "task", "ranker"),
            Cell(estimate=found["rho"].estimate, signed=True),
            Cell(estimate=found["longest_first"].estimate),
        )
        for found in rankings.rows.pivot("length_bias", "task", "ranker").values()
    )
    return _two_stubs(
        "length",
        "Length bias: do longer arguments rank higher?",
        ("Task", "Ranker", "Words and rank, rho", "Longest is the best"),
        rows,
        "Spearman's rho within instances, over real arguments: above 0, longer arguments rank "
        "higher. " + _HOLDS,
    )


def _self_preference(rankings: Rankings) -> Table:
    """Does a ranker favour the generator that it is related to?"""
    rows = (
        (
            *_cells(rankings, row, "task", "ranker", "system", "akin"),
            Cell(estimate=row.estimate, signed=True, remark=f"beside {row['other']}"),
        )
        for row in rankings.rows.select("self_preference", "places")
    )
    return _two_stubs(
        "self_preference",
        "Self-preference: does a ranker favour the generator that it is related to?",
        ("Task", "Ranker", "Generator", "Relation", "Places higher"),
        rows,
        "How many places higher than the other rankers of the task rank it, on average. " + _HOLDS,
    )


_TRAINING = {  # statistic -> heading and format
    "train": ("Training instances", ",.0f"), "development": ("Development instances", ",.0f"),
    "epochs": ("Epochs", ",.0f"), "best_epoch": ("Best epoch", ",.0f"),
    "development_score": ("Development score", ".3f"), "seconds": ("Seconds", ",.0f"),
    "cut": ("Inputs cut", ",.0f"), "cut_arguments": ("Arguments cut", ",.0f"),
}  # fmt: skip
_WRITING = {
    "mean_words": ("Mean words", ",.1f"), "verbatim": ("Verbatim", ".1%"),
    "cut": ("Test inputs cut", ",.0f"),
}  # fmt: skip


def _counts(found: Mapping[str, Row], forms: Mapping[str, tuple[str, str]]) -> _Cells:
    """A text for each of these statistics."""
    values = {statistic: row.estimate.value for statistic, row in found.items()}
    return _texts(
        *(
            DASH if (v := values.get(k)) is None else format(v, form)
            for k, (_, form) in forms.items()
        )
    )


def _trained(rankings: Rankings) -> Table:
    """What training each evaluator took."""
    evaluators = rankings.rows.pivot("trained", "task", "ranker").values()
    rows = (
        _cells(rankings, found["train"], "task", "ranker", "other") + _counts(found, _TRAINING)
        for found in evaluators
    )
    return _two_stubs(
        "trained",
        "Training of the evaluators",
        ("Task", "Evaluator", "Encoder", *(heading for heading, _ in _TRAINING.values())),
        rows,
        "Inputs cut: of training, longer than the encoder takes. Arguments cut: those among "
        "them that lost some of the argument.",
    )


def _systems(rankings: Rankings) -> Table:
    """Who wrote arguments, how long, and how much of an extract is really in the document."""
    kinds = {"gold": "experts", "model": "model", "control": "control case"}
    found = rankings.rows.pivot("argument", "task", "system")
    rows = (
        _texts(task.title, system.name, kinds[system.kind])
        + _counts(found.get((task.name, system.name), {}), _WRITING)
        for task in rankings.tasks
        for system in task.systems
    )
    return _two_stubs(
        "systems",
        "The systems and what they wrote",
        ("Task", "System", "Kind", *(heading for heading, _ in _WRITING.values())),
        rows,
        "Verbatim: share of the words of extracts that stand in the document. Test inputs cut: "
        "longer than the encoder takes.",
    )


def _tasks(rankings: Rankings) -> Table:
    """The tasks: metric, instances, and the classes that are not ranked."""
    rows = (
        (t.title, t.name, t.metric_words, f"{rankings.instances(t.name):,}", ", ".join(t.left_out))
        for t in rankings.tasks
    )
    return Table(
        "ranking_tasks",
        "The tasks",
        ("Task", "Name", "Metric", "Instances ranked", "Classes left out"),
        tuple(_texts(*row, left_out or "none") for *row, left_out in rows),
        ("Test instances of a class that is left out are not ranked.",),
    )
