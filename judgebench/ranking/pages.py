"""The report of the rankings: sentences that say no more than the intervals bear, medal
grids, scores, and what they rest on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Literal

from judgebench.ranking.rankers import WRONG_CLAIMS, OneRanking, RankedTask, RankerKind, Rankings
from judgebench.ranking.suitability import (
    against_arguments,
    draw_medals,
    has_controls,
    medals_table,
    system_colours,
)
from judgebench.records import Estimate
from judgebench.results.layout import Content, Contents, Keys, Layout
from judgebench.results.part import Block, Drawing, Part
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, NO_REASON, Cell, Table, format_number, p_text
from judgebench.words import counted, listed

HOW_SURE = (
    "One system is said to rank above another only where its lead holds over other items and other "
    "trainings, corrected for the number of rankers and pairs: where nothing is so, each kind of "
    "sentence is there for a task in at most 5 % of studies. Otherwise they cannot be "
    "distinguished. Nothing is claimed of control rankers."
)
NO_RANKINGS = "Nothing was ranked."
_TRAINED: tuple[RankerKind, ...] = ("baseline", "expert-trained", "llm-trained")
_HOLDS = (
    "Intervals hold items and trainings; those of an evaluator that was trained once are of one "
    "training run, and nothing is claimed of it."
)
_NO_TASK = Estimate(None, reason="this ranker did not rank this task")


def rankings_part(rankings: Rankings) -> Part:
    """The part of a report: each task, all tasks together, and the data behind the rankings."""
    tasks = list(enumerate(rankings.tasks, start=1))
    said = any(ranking_sentences(rankings, task) for task in rankings.tasks)
    how_sure = (HOW_SURE if said else NO_RANKINGS,)
    together = {
        "Do rankers agree?": tuple(_agreement(rankings, t, n) for n, t in tasks),
        "Control cases": (
            _by_task(
                rankings,
                "controls_below",
                "Control cases below all real arguments of their instance",
                "Share of the instances' control cases; 1 is best.",
            ),
        ),
        "Biases": tuple(_biases(rankings)),
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
    """The blocks of one task: its sentences and scores, and the ranks behind them."""
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
        ("places", "Places by score, with the range that tests leave", _place,
         "1 is best; tied systems share the mean of their places. In brackets: the places that are "
         "left by the systems that are shown to score higher or lower (all pairs, Holm)."),
        ("average_ranks", "Average ranks within instances, of the real arguments",
         lambda ranking, system: ranking.average_ranks.get(system),
         "1 is best. For reference, a control case where it would stand among the arguments."),
        ("groups", "Which average ranks differ: Nemenyi's groups",
         lambda ranking, system: ranking.groups.get(system) or DASH,
         "Real arguments of one row that share a letter are not shown to differ (Nemenyi)."),
    ):  # fmt: skip
        lines = (
            (ranking.title, *(shown(ranking, system.name) for system in task.systems))
            for ranking in rankings.of(task.name)
            if key != "groups" or any(ranking.groups.values())
        )
        title = f"{title}, {task.title}"
        yield _listing(f"{key}-{number}", title, ("Ranker", *columns), lines, note, stubs=1)


def _score(ranking: OneRanking, system: str) -> Cell:
    places = list(ranking.placed.values())
    is_best = bool(places) and places[0] == ranking.placed.get(system) != places[-1]
    unranked = Estimate(None, reason="this ranker did not rank it")
    return Cell(estimate=ranking.scores.get(system, unranked), best=is_best)


def _place(ranking: OneRanking, system: str) -> Content:
    e = ranking.places.get(system)
    if e is None or e.value is None:
        return None if e is None else _or_reason(e, str)
    if e.low is None or e.high is None:
        return Cell(f"{e.value:g}", remark="no range")
    return f"{e.value:g} ({e.low:g}–{e.high:g})"


def _neighbours(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """The systems in order of their scores, and whether each scores above the next one."""
    orders = [_order(r) for r in rankings.of(task.name) if not r.unsure]
    width = max(map(len, orders), default=1)
    return _listing(
        f"neighbours-{number}",
        f"How certain it is that each system ranks above the next, {task.title}",
        ("Ranker", *(f"{i}." for i in range(1, width))),
        ([*order, *[""] * (width - len(order))] for order in orders),
        "In order of the scores. In brackets: p that the next one has the same score.",
        stubs=1,
    )


def _order(ranking: OneRanking) -> list[str]:
    """The ranker, then `gold (0.03)`; the last system stands alone."""
    names = list(ranking.placed)
    said = [f" ({p_text(ranking.p.get(pair))})" for pair in pairwise(names)]
    return [ranking.title, *map(str.__add__, names, [*said, ""])]


# --- all tasks -----------------------------------------------------------------------------------


def _average_tables(rankings: Rankings) -> tuple[Table, ...]:
    """Averages, best systems and Friedman's test."""
    every = [(r, task) for task in rankings.tasks for r in rankings.of(task.name)]
    best = {(ranker, t.name) for t in rankings.tasks for ranker in _best_average(rankings, t)}
    return (
        _by_task(
            rankings,
            "average",
            "Average score over real arguments",
            "Scores of evaluators, judges and humans are of different kinds: compare them "
            "within one kind only. Best evaluator of each task in bold. A high average says "
            "that the arguments help this evaluator, not that it ranks them well.",
            best,
        ),
        _listing(
            "best",
            "Best system of each ranker, of the real arguments",
            ("Task", "Ranker", "Best system", "Its score", "Next below", "p"),
            (row for r, task in every if (row := _best_line(r, task))),
            "p that both have the same score.",
        ),
        _listing(
            "friedman",
            "Do the real arguments differ at all? Friedman's test of the ranks within instances",
            ("Task", "Ranker", "Instances", "Missing", "Chi square", "p", "Critical difference"),
            (_friedman(r, task) for r, task in every),
            "Critical difference: of two average ranks, by Nemenyi's test. Both hold the trainings "
            "that there were.",
        ),
    )


def _by_task(
    rankings: Rankings, statistic: str, title: str, note: str,
    best: Collection[tuple[str, str]] = (),
) -> Table:  # fmt: skip
    """A statistic of whole rankings, rankers down and tasks across; `best` are in bold."""
    found = {(r.ranker, r.task): r.whole for r in rankings.rankings}

    def cell(keys: Keys) -> Cell:
        at = keys["ranker"], keys["task"]
        return Cell(estimate=found.get(at, {}).get(statistic, _NO_TASK), best=at in best)

    key = "averages" if statistic == "average" else statistic
    return Layout(f"ranking_{key}", title, ("Ranker",), (note,)).crossed(
        (((shown,), {"ranker": ranker}) for ranker, shown in rankings.titles.items()),
        [(task.title, {"task": task.name}) for task in rankings.tasks],
        cell,
    )


def _best_average(rankings: Rankings, task: RankedTask) -> set[str]:
    """The trained evaluators with the highest average."""
    values = {
        r.ranker: e.value
        for r in rankings.of(task.name)
        if r.kind in _TRAINED and (e := r.whole.get("average")) and e.value is not None
    }
    return {ranker for ranker, value in values.items() if value == max(values.values())}


def _best_line(ranking: OneRanking, task: RankedTask) -> Contents:
    """The best real argument of one ranker (right of Table 1); empty where it ranked none."""
    found = {s: place for s, place in ranking.placed.items() if s in task.arguments}
    if not found:
        return ()
    names = list(found)
    tied = [name for name in names if found[name] == found[names[0]]]
    below = names[len(tied)] if len(names) > len(tied) else DASH
    return (
        task.title, ranking.title, ", ".join(tied) + (" (tied)" if len(tied) > 1 else ""),
        ranking.scores[tied[0]], below, p_text(ranking.p.get((tied[0], below))),
    )  # fmt: skip


def _friedman(ranking: OneRanking, task: RankedTask) -> Contents:
    statistics = ("chi_square", "p", "critical_difference")
    chi_square, p, distance = (ranking.whole.get(name, _NO_TASK) for name in statistics)
    return (
        task.title, ranking.title, chi_square.n, chi_square.n_missing,
        _or_reason(chi_square, "{:.2f}".format), _or_reason(p, p_text),
        _or_reason(distance, format_number),
    )  # fmt: skip


def _or_reason(e: Estimate, text: Callable[[float], str]) -> Cell:
    if e.value is None:
        return Cell(DASH, remark=f"undefined: {e.reason or NO_REASON}")
    return Cell(text(e.value))


def _listing(
    key: str, title: str, columns: tuple[str, ...], lines: Iterable[Contents], note: str,
    stubs: int = 2,
) -> Table:  # fmt: skip
    """A table of these lines, the first `stubs` columns of which name the line."""
    beside = columns[stubs:]
    return Layout(f"ranking_{key}", title, columns[:stubs], (note,), beside).listing(lines)


# --- what they rest on ---------------------------------------------------------------------------


def _named(rankings: Rankings, *keys: str) -> Callable[[Row], tuple[str, ...]]:
    """The names of a row: titles of tasks and rankers, other keys as they are."""
    titles = {task.name: task.title for task in rankings.tasks} | rankings.titles
    return lambda row: tuple(
        row[k] if k in ("system", "akin") else titles.get(row[k], row[k]) for k in keys
    )


def _agreement(rankings: Rankings, task: RankedTask, number: int) -> Table:
    """Every pair of rankers, those with the humans first."""
    humans = {r.ranker for r in rankings.rankings if r.kind == "humans"}
    found = rankings.rows.select("agreement", task=task.name)
    name = _named(rankings, "ranker", "other")

    def line(row: Row) -> Contents:
        ranker, other = name(row)
        return ranker, Cell(other, remark=f"over {row['over']}")

    headings = {
        "tau_b": "Kendall's tau-b", "spearman": "Spearman's rho",
        "tau_b_of_averages": "tau-b of the average ranks", "top_1": "Same best system",
    }  # fmt: skip
    return Layout(
        f"ranking_agreement-{number}",
        f"How far rankers agree, {task.title}",
        ("Ranker", "Other ranker"),
        ("tau-b and rho of the ranks within an instance, means over the instances and "
         "systems that both rank. Same best system: share of the instances. " + _HOLDS,),
        headings=headings,
        signed=("tau_b", "spearman", "tau_b_of_averages"),
    ).of(
        sorted(
            (row for row in found if row.statistic in headings),
            key=lambda row: not humans & {row["ranker"], row["other"]},
        ),
        line,
        across=headings.values(),
    )  # fmt: skip


def _biases(rankings: Rankings) -> Iterator[Table]:
    """Length bias, and the preference of rankers for generators that they are related to."""
    headings = {"rho": "Words and rank, rho", "longest_first": "Longest is the best"}
    yield Layout(
        "ranking_length",
        "Length bias: do longer arguments rank higher?",
        ("Task", "Ranker"),
        ("Spearman's rho within instances, over real arguments: above 0, longer arguments rank "
         "higher. " + _HOLDS,),
        headings=headings,
        signed=("rho",),
    ).of(
        (row for row in rankings.rows.select("length_bias") if row.statistic in headings),
        _named(rankings, "task", "ranker"),
        across=headings.values(),
    )  # fmt: skip
    name = _named(rankings, "task", "ranker", "system", "akin")
    yield _listing(
        "self_preference",
        "Self-preference: does a ranker favour the generator that it is related to?",
        ("Task", "Ranker", "Generator", "Relation", "Places higher"),
        (
            (*name(row), Cell("", row.estimate, f"beside {row['other']}", signed=True))
            for row in rankings.rows.select("self_preference", "places")
        ),
        "How many places higher than the other rankers of the task rank it, on average. " + _HOLDS,
    )


_TRAINING = {  # statistic -> heading
    "train": "Training instances", "development": "Development instances", "epochs": "Epochs",
    "best_epoch": "Best epoch", "development_score": "Development score", "seconds": "Seconds",
    "cut": "Inputs cut", "cut_arguments": "Arguments cut",
}  # fmt: skip
_WRITING = {"mean_words": "Mean words", "verbatim": "Verbatim", "cut": "Test inputs cut"}
_FORMS = {"development_score": ".3f", "mean_words": ",.1f", "verbatim": ".1%"}


def _count(row: Row) -> str | None:
    value = row.estimate.value
    return None if value is None else format(value, _FORMS.get(row.statistic, ",.0f"))


def _trained(rankings: Rankings) -> Table:
    """The instances, epochs and seconds of each training."""
    return Layout(
        "ranking_trained",
        "Training of the evaluators",
        ("Task", "Evaluator"),
        ("Inputs cut: of training, longer than the encoder takes. Arguments cut: those among "
         "them that lost some of the argument.",),
        ("Encoder",),
        _TRAINING,
        absent=DASH,
    ).of(
        rankings.rows.select("trained"),
        _named(rankings, "task", "ranker", "other"),
        across=_TRAINING.values(),
        cell=_count,
    )  # fmt: skip


def _systems(rankings: Rankings) -> Table:
    """The systems, the length of their arguments, and the share of extracts in the document."""
    kinds = {"gold": "experts", "model": "model", "control": "control case"}
    found = rankings.rows.pivot("argument", "task", "system")

    def cell(keys: Keys) -> Content:
        row = found.get((keys["task"], keys["system"]), {}).get(keys["statistic"])
        return None if row is None else _count(row)

    return Layout(
        "ranking_systems",
        "The systems and what they wrote",
        ("Task", "System"),
        ("Verbatim: share of the words of extracts that stand in the document. Test inputs cut: "
         "longer than the encoder takes.",),
        ("Kind",),
    ).crossed(
        (
            ((task.title, s.name, kinds[s.kind]), {"task": task.name, "system": s.name})
            for task in rankings.tasks
            for s in task.systems
        ),
        [(heading, {"statistic": statistic}) for statistic, heading in _WRITING.items()],
        cell,
    )  # fmt: skip


def _tasks(rankings: Rankings) -> Table:
    """The tasks: metric, instances, and the classes that are not ranked."""
    return _listing(
        "tasks",
        "The tasks",
        ("Task", "Name", "Metric", "Instances ranked", "Classes left out"),
        (
            (t.title, t.name, t.metric_words, rankings.instances(t.name),
             ", ".join(t.left_out) or "none")
            for t in rankings.tasks
        ),
        "Test instances of a class that is left out are not ranked.",
        stubs=1,
    )  # fmt: skip


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
