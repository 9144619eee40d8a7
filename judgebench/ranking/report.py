"""The presentation of rankings: sentences that claim no more than the intervals bear, medal grids,
and tables declared as data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Literal

from judgebench.ranking.rankers import WRONG_CLAIMS, OneRanking, RankedTask, Rankings
from judgebench.ranking.suitability import (
    against_arguments,
    draw_medals,
    medals_table,
    system_colours,
)
from judgebench.records import Estimate, Row
from judgebench.results.blocks import Block, Drawing, ReportSection
from judgebench.results.tables import Cell, Content, Layout, Table, TableSpec, p_text
from judgebench.text import counted, listed

HOW_SURE = (
    "One system is said to rank above another only where its lead holds over other items and other "
    "trainings, corrected for the number of rankers and pairs: where nothing is so, each kind of "
    "sentence is there for a task in at most 5 % of studies. Otherwise they cannot be "
    "distinguished. Nothing is claimed of control rankers."
)
NO_RANKINGS = "Nothing was ranked."
_HOLDS = (
    "Intervals hold items and trainings; those of an evaluator that was trained once are of one "
    "training run, and nothing is claimed of it."
)
_NOT_RANKED = Estimate(None, reason="this ranker did not rank it")
_SIGNED = ("tau_b", "spearman", "tau_b_of_averages", "rho", "places")
# Statistics that are no estimates, and how they are written.
_FORMS = {
    "development_score": ".3f", "mean_words": ",.1f", "verbatim": ".1%", "train": ",.0f",
    "development": ",.0f", "epochs": ",.0f", "best_epoch": ",.0f", "seconds": ",.0f",
    "cut": ",.0f", "cut_arguments": ",.0f",
}  # fmt: skip


RankingTable = TableSpec[Rankings]


def _agreements(rankings: Rankings) -> list[Row]:
    """Every pair of rankers, those with the humans first."""
    humans = {r.ranker for r in rankings.rankings if r.kind == "humans"}
    rows = rankings.rows.select("agreement")
    return sorted(rows, key=lambda row: not humans & {row["ranker"], row["other"]})


_WHOLE = RankingTable(
    "ranking_whole",
    "Each ranker over all instances of a task",
    lambda rankings: rankings.rows.select("ranking"),
    ("task", "ranker"),
    notes=(
        "Average score, of real arguments. Scores of evaluators, judges and humans are of "
        "different kinds: compare them within one kind only. A high average says that the "
        "arguments help this evaluator, not that it ranks them well.",
        "Friedman's test: do the ranks of real arguments within instances differ at all? Critical "
        "difference: of two average ranks, by Nemenyi's test. Both hold the trainings that there "
        "were.",
    ),
    headings={
        "average": "Average score", "controls_below": "Control cases below all arguments",
        "chi_square": "Friedman's chi square", "p": "p",
        "critical_difference": "Critical difference",
    },
)  # fmt: skip
_AGREEMENT = RankingTable(
    "ranking_agreement",
    "How far rankers agree",
    _agreements,
    ("task", "ranker", "other"),
    notes=(
        "tau-b and rho of the ranks within an instance, means over the instances and systems that "
        f"both rank. Same best system: share of the instances. {_HOLDS}",
    ),
    headings={
        "tau_b": "Kendall's tau-b", "spearman": "Spearman's rho",
        "tau_b_of_averages": "tau-b of the average ranks", "top_1": "Same best system",
    },
    stubs={"other": "Other ranker"},
)  # fmt: skip
_LENGTH = RankingTable(
    "ranking_length_bias",
    "Length bias: do longer arguments rank higher?",
    lambda rankings: rankings.rows.select("length_bias"),
    ("task", "ranker"),
    notes=(
        "Spearman's rho within instances, over real arguments: above 0, longer arguments rank "
        f"higher. {_HOLDS}",
    ),
    headings={"rho": "Words and rank, rho", "longest_first": "Longest is the best"},
)
_SELF_PREFERENCE = RankingTable(
    "ranking_self_preference",
    "Self-preference: does a ranker favour the generator that it is related to?",
    lambda rankings: rankings.rows.select("self_preference"),
    ("task", "ranker", "system", "akin"),
    notes=(
        f"How many places higher than the other rankers of the task rank it, on average. {_HOLDS}",
    ),
    headings={"places": "Places higher"},
    stubs={"system": "Generator", "akin": "Relation"},
)
_TRAINING = RankingTable(
    "ranking_trained",
    "Training of the evaluators",
    lambda rankings: rankings.rows.select("trained"),
    ("task", "ranker", "other"),
    notes=(
        "Inputs cut: of training, longer than the encoder takes. Arguments cut: those among them "
        "that lost some of the argument.",
    ),
    headings={
        "train": "Training instances", "development": "Development instances",
        "epochs": "Epochs", "best_epoch": "Best epoch", "development_score": "Development score",
        "seconds": "Seconds", "cut": "Inputs cut", "cut_arguments": "Arguments cut",
    },
    stubs={"ranker": "Evaluator", "other": "Encoder"},
)  # fmt: skip
_WRITING = RankingTable(
    "ranking_argument",
    "The systems and what they wrote",
    lambda rankings: rankings.rows.select("argument"),
    ("task", "system"),
    notes=(
        "Verbatim: share of the words of extracts that stand in the document. Test inputs cut: "
        "longer than the encoder takes.",
    ),
    headings={"mean_words": "Mean words", "verbatim": "Verbatim", "cut": "Test inputs cut"},
)
_REMARKS = {"agreement": "over {over}", "self_preference": "beside {other}"}
_SCORES = (
    "Higher is better. Evaluators: {}; judges: mean score, from 0 to 1; humans: minus the mean "
    "rank. Best of each row in bold."
)


def show(rankings: Rankings, spec: RankingTable) -> Table:
    """The table, of the statistics that have a heading."""
    titles = rankings.titles
    tasks = {task.name: task.title for task in rankings.tasks}
    names = {"task": tasks, "ranker": titles, "other": titles}
    layout = replace(spec.layout, signed=_SIGNED)

    def cell(row: Row) -> Content:
        if row.statistic in _FORMS:
            value = row.estimate.value
            return None if value is None else format(value, _FORMS[row.statistic])
        remark = _REMARKS.get(row.analysis, "").format(**row.keys)
        return replace(layout.cell(row), remark=remark) if remark else layout.cell(row)

    rows = (row for row in spec.rows(rankings) if row.statistic in spec.headings)
    return layout.by_keys(rows, spec.down, spec.across, names, cell)


def rankings_part(rankings: Rankings) -> ReportSection:
    """The part of a report: each task, all tasks together, and the data behind the rankings."""
    has_claims = any(ranking_sentences(rankings, task) for task in rankings.tasks)
    how_sure = (HOW_SURE if has_claims else NO_RANKINGS,)
    behind = {
        "Do rankers agree?": (_AGREEMENT,),
        "Biases": (_LENGTH, _SELF_PREFERENCE),
        "Training and arguments": (_TRAINING, _WRITING),
    }
    return ReportSection(
        key="rankings",
        title="whose arguments help to decide?",
        results=rankings.rows,
        blocks=(
            Block("Whose arguments help to decide?", how_sure, lead=True, on_screen=True),
            *(
                block
                for number, task in enumerate(rankings.tasks, start=1)
                for block in _of_task(rankings, task, number)
            ),
            Block("All tasks together", tables=(show(rankings, _WHOLE),), on_screen=True),
            *(
                Block(title, tables=tuple(show(rankings, spec) for spec in specs), folded=True)
                for title, specs in behind.items()
            ),
        ),
        notes=rankings.notes,
    )


def _of_task(rankings: Rankings, task: RankedTask, number: int) -> Iterator[Block]:
    """The blocks of one task: its sentences, medals and scores, and the ranks behind them."""
    ranked = rankings.of(task.name)
    medals = medals_table(ranked, task, f"ranking_medals-{number}")
    draw = partial(draw_medals, ranked, task, system_colours(rankings.tasks))
    figure = Drawing(f"medals_{task.name}", f"Who helps most: {task.title}", draw)
    left_out = f"; not ranked: {', '.join(task.left_out)}" if task.left_out else ""
    n = rankings.instances(task.name)
    about = f"{counted(n, 'instance')}, scored by {task.metric_words}{left_out}."
    sentences = (*filter(None, [conclusion(rankings, task)]), *ranking_sentences(rankings, task))
    yield Block(
        task.title, (*sentences, about) if ranked else (),
        (medals, _scores(rankings, task, number)), (figure,) if medals.rows else (),
        lead=True, on_screen=True,
    )  # fmt: skip
    tables = (_average_ranks(rankings, task, number), _neighbours(rankings, task, number))
    yield Block(f"Ranks: {task.title}", tables=tables, folded=True)


# --- one task: rankers down, systems across ------------------------------------------------------


def _scores(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """Scores, the best of a row in bold (as Tables 10-12 of the paper)."""
    by_ranker = {ranking.ranker: ranking for ranking in rankings.of(task.name)}

    def cell(row: Row) -> Cell:
        places = by_ranker[row["ranker"]].placed
        values = list(places.values())
        is_best = bool(values) and values[0] == places.get(row["system"]) != values[-1]
        return Cell(estimate=row.estimate, best=is_best)

    notes = (_SCORES.format(task.metric_words),)
    layout = Layout(f"ranking_scores-{number}", f"Scores, {task.title}", ("Ranker",), notes)
    return _by_system(rankings, task, "score", layout, cell)


def _average_ranks(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """Average ranks, with Nemenyi's groups in the marks."""

    def cell(row: Row) -> Cell:
        return Cell(estimate=row.estimate, remark=row["group"] and f"group {row['group']}")

    title = f"Average ranks within instances, of the real arguments, {task.title}"
    notes = (
        "1 is best. For reference, a control case where it would stand among the arguments. Real "
        "arguments of one row with a group in common are not shown to differ (Nemenyi).",
    )
    layout = Layout(f"ranking_average_ranks-{number}", title, ("Ranker",), notes)
    return _by_system(rankings, task, "average_rank", layout, cell)


def _by_system(
    rankings: Rankings, task: RankedTask, statistic: str, layout: Layout,
    cell: Callable[[Row], Content],
) -> Table:  # fmt: skip
    """A line for each ranker and a column for each system."""
    headings = {s.name: s.name if s.is_argument else f"{s.name} (control)" for s in task.systems}
    rows = rankings.rows.select("system", statistic, task=task.name)
    declared = replace(layout, headings=headings, absent=_NOT_RANKED)
    return declared.by_keys(rows, ("ranker",), "system", {"ranker": rankings.titles}, cell)


def _neighbours(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """The systems in order of their scores, and whether each scores above the next one."""
    orders = [_order(r) for r in rankings.of(task.name) if not r.unsure]
    width = max(map(len, orders), default=1)
    return Layout(
        f"ranking_neighbours-{number}",
        f"How certain it is that each system ranks above the next, {task.title}",
        ("Ranker",),
        ("In order of the scores. In brackets: p that the next one has the same score.",),
        tuple(f"{i}." for i in range(1, width)),
    ).listing([*order, *[""] * (width - len(order))] for order in orders)


def _order(ranking: OneRanking) -> list[str]:
    """The ranker, then `gold (0.03)`; the last system stands alone."""
    names = list(ranking.placed)
    pairs = [f"{pair[0]} ({p_text(ranking.p.get(pair))})" for pair in pairwise(names)]
    return [ranking.title, *pairs, *names[-1:]]


# --- sentences -----------------------------------------------------------------------------------


def ranking_sentences(rankings: Rankings, task: RankedTask) -> list[str]:
    """The sentences on the rankings of one task."""
    ranked, titles = claiming(rankings, task), rankings.titles
    lengths = rankings.rows.select("length_bias", "rho", task=task.name)
    by_length = _sided(rankings, task, [(row["ranker"], row) for row in lengths])
    return [
        *_grouped((r.title, _best(r, task)) for r in ranked),
        *_grouped((r.title, _controls(r, task)) for r in ranked),
        *_no_difference(ranked),
        *_by_side(_with_humans(rankings, task), titles, "tau-b", _AGREEMENTS),
        *_by_side(by_length, titles, "rho", _LENGTHS),
        *_self_preferences(rankings, task, titles),
    ]


def claiming(rankings: Rankings, task: RankedTask) -> list[OneRanking]:
    """The rankers of a task of which anything is said: not the control rankers."""
    return [r for r in rankings.of(task.name) if r.kind != "control"]


def conclusion(rankings: Rankings, task: RankedTask) -> str:
    """A sentence on the arguments that rank clearly first, with the number of rankers of each."""
    ranked = [r for r in claiming(rankings, task) if len(_arguments(r, task)) > 1]
    if not ranked:
        return ""
    first = Counter(next(iter(_arguments(r, task))) for r in ranked if not _rivals(r, task))
    of = counted(len(ranked), "ranker")
    if not first:
        return f"No argument ranks clearly first with any of {of}."
    named = [f"{system} with {n:,}" for system, n in first.most_common()]
    return f"Of {of}, so many rank one argument clearly first: {listed(named)}."


def _grouped(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One sentence for all rankers of which the same is said."""
    groups: dict[str, list[str]] = {}
    for ranker, words in said:
        groups.setdefault(words, []).append(ranker)
    yield from (f"{listed(names)}: {words}." for words, names in groups.items() if words)


def _best(ranking: OneRanking, task: RankedTask) -> str:
    """The real argument that ranks first, if any clearly does."""
    places = _arguments(ranking, task)
    if len(places) < 2:
        return ""
    first = next(iter(places))
    tied = [name for name, place in places.items() if place == places[first]]
    rivals = [name for name in _rivals(ranking, task) if name not in tied]
    have = f"{listed(tied)} {'have' if len(tied) > 1 else 'has'} the best score"
    if rivals and ranking.unsure:
        return f"{have}, but {ranking.unsure}"
    if rivals:
        return f"{have}, but cannot be distinguished from {listed(rivals)}"
    if len(tied) > 1:
        return f"{listed(tied)} share the best score"
    return f"{tied[0]} ranks above every other argument"


def _arguments(ranking: OneRanking, task: RankedTask) -> dict[str, float]:
    """The places of the real arguments, best first."""
    return {s: place for s, place in ranking.placed.items() if s in set(task.arguments)}


def _rivals(ranking: OneRanking, task: RankedTask) -> list[str]:
    """The arguments that the first one is not clearly above."""
    first, *others = _arguments(ranking, task)
    return [name for name in others if not ranking.clearly_above(first, name)]


def _controls(ranking: OneRanking, task: RankedTask) -> str:
    """The control cases that mislead the ranker, or none."""
    controls = [name for name in task.controls if name in ranking.placed]
    arguments = sum(name in ranking.placed for name in task.arguments)
    if not controls or not arguments or ranking.unsure:
        return ""
    stands = {name: against_arguments(ranking, task, name) for name in controls}
    above = [
        f"{name} (above {count} of {counted(arguments, 'argument')})"
        for name, (count, _) in stands.items()
        if count
    ]
    unclear = [name for name, (count, open_) in stands.items() if open_ and not count]
    unsure = f"{listed(unclear)} cannot be distinguished from some arguments"
    if above:
        return f"misled by {listed(above)}" + (f"; {unsure}" if unclear else "")
    if unclear:
        return f"no control case clearly ranks above an argument, but {unsure}"
    rank = "rank" if len(controls) > 1 else "ranks"
    return f"not misled: {listed(controls)} {rank} below every argument"


def _no_difference(ranked: Sequence[OneRanking]) -> Iterator[str]:
    """The rankers whose ranks Friedman's test does not tell from chance."""
    p_values = [(r.title, e.value) for r in ranked if (e := r.whole.get("p"))]
    flat = [f"{name} (p = {p:.3f})" for name, p in p_values if p is not None and p >= WRONG_CLAIMS]
    if flat:
        yield f"Friedman's test shows no difference between the real arguments for {listed(flat)}."


def _with_humans(rankings: Rankings, task: RankedTask) -> list[_Sided]:
    """The agreement of rankers with the humans."""
    humans = {r.ranker for r in rankings.of(task.name) if r.kind == "humans"}
    found = []
    for row in rankings.rows.select("agreement", "tau_b", task=task.name):
        others = [name for name in (row["ranker"], row["other"]) if name not in humans]
        found += [(others[0], row)] if len(others) == 1 else []
    return _sided(rankings, task, found)


_Sided = tuple[str, Row, Literal["up", "down", ""]]  # ranker, row, and its side of 0
_AGREEMENTS = {
    "up": "Agreement with the humans beyond chance: {}.",
    "down": "Disagreement with the humans beyond chance: {}.",
    "": "No agreement with the humans is shown: {}.",
}
_LENGTHS = {
    "up": "Longer arguments rank higher with {}.",
    "down": "Shorter arguments rank higher with {}.",
}


def _by_side(
    sided: Sequence[_Sided], titles: Mapping[str, str], symbol: str, sentences: Mapping[str, str]
) -> Iterator[str]:
    """A sentence for each side of 0 on which there are rankers."""
    for side, sentence in sentences.items():
        on_it = [(name, row.estimate) for name, row, where in sided if where == side]
        if on_it:
            named = [f"{titles.get(name, name)} ({symbol} {e:.2f})" for name, e in on_it]
            yield sentence.format(listed(named))


def _self_preferences(
    rankings: Rankings, task: RankedTask, titles: Mapping[str, str]
) -> Iterator[str]:
    rows = rankings.rows.select("self_preference", "places", task=task.name)
    for _, row, side in _sided(rankings, task, [(row["ranker"], row) for row in rows]):
        if side == "up":
            yield (
                f"{titles.get(row['ranker'], row['ranker'])} ranks {row['system']} higher than "
                f"the other rankers do, by {row.estimate:.2f} places ({row['akin']})."
            )


def _sided(rankings: Rankings, task: RankedTask, rows: Sequence[tuple[str, Row]]) -> list[_Sided]:
    """Ranker, row, and `up` or `down` where it lies on that side of 0, whatever the number of
    rankers that this may be said of; otherwise empty. Control rankers and what is undefined go."""
    said = {r.ranker for r in claiming(rankings, task)}
    kept = [(name, row) for name, row in rows if name in said and row.estimate.value is not None]
    found: list[_Sided] = []
    for name, row in kept:
        p = rankings.rows.find("p", row.analysis, **{key: row[key] for key in row.keys}).value
        side: Literal["up", "down"] = "up" if (row.estimate.value or 0.0) > 0 else "down"
        found.append((name, row, side if p and p * len(kept) < WRONG_CLAIMS else ""))
    return found
