"""The presentation of rankings: sentences that claim no more than the intervals bear, medals, and
tables declared as data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from judgebench.ranking.rankers import WRONG_CLAIMS, OneRanking, RankedTask, Rankings
from judgebench.records import Estimate, Row, group_by_key
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.tables import Cell, CellTone, Content, Layout, Table, TableSpec
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
    "development_score": ".3f", "mean_words": ",.1f", "train": ",.0f",
    "development": ",.0f", "epochs": ",.0f", "best_epoch": ",.0f", "seconds": ",.0f",
    "cut": ",.0f",
}  # fmt: skip


RankingTable = TableSpec[Rankings]

_SCORES = RankingTable(
    "ranking_scores",
    "Scores",
    lambda rankings: rankings.rows.select("system", "score"),
    ("task", "ranker"),
    "system",
    (
        "Higher is better. Evaluators: share of right decisions; judges: mean score, from 0 to 1; "
        "humans: minus the mean rank. Best of each row in bold.",
    ),
)
_AVERAGE_RANKS = RankingTable(
    "ranking_average_ranks",
    "Average ranks within instances, of the real arguments",
    lambda rankings: rankings.rows.select("system", "average_rank"),
    ("task", "ranker"),
    "system",
    ("1 is best. For reference, a control case where it would stand among the arguments.",),
)
_WHOLE = RankingTable(
    "ranking_whole",
    "Each ranker over all instances of a task",
    lambda rankings: rankings.rows.select("ranking"),
    ("task", "ranker"),
    notes=(
        "Average score, of real arguments. Scores of evaluators, judges and humans are of "
        "different kinds: compare them within one kind only. A high average says that the "
        "arguments help this evaluator, not that it ranks them well.",
        "Friedman's test: do the ranks of real arguments within instances differ at all? It holds "
        "the trainings that there were.",
    ),
    headings={
        "average": "Average score", "controls_below": "Control cases below all arguments",
        "chi_square": "Friedman's chi square", "p": "p",
    },
)  # fmt: skip
_AGREEMENT = RankingTable(
    "ranking_agreement",
    "How far rankers agree",
    lambda rankings: rankings.rows.select("agreement"),
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
    notes=("Inputs cut: of training, longer than the encoder takes.",),
    headings={
        "train": "Training instances", "development": "Development instances",
        "epochs": "Epochs", "best_epoch": "Best epoch", "development_score": "Development score",
        "seconds": "Seconds", "cut": "Inputs cut",
    },
    stubs={"ranker": "Evaluator", "other": "Encoder"},
)  # fmt: skip
_WRITING = RankingTable(
    "ranking_argument",
    "The systems and what they wrote",
    lambda rankings: rankings.rows.select("argument"),
    ("task", "system"),
    notes=("Test inputs cut: longer than the encoder takes.",),
    headings={"mean_words": "Mean words", "cut": "Test inputs cut"},
)
_REMARKS = {
    "agreement": "over {over}", "self_preference": "beside {other}",
}  # fmt: skip
_TABLES: Mapping[str, Sequence[RankingTable]] = {
    "All tasks together": (_SCORES, _WHOLE),
    "Average ranks": (_AVERAGE_RANKS,),
    "Do rankers agree?": (_AGREEMENT,),
    "Biases": (_LENGTH, _SELF_PREFERENCE),
    "Training and arguments": (_TRAINING, _WRITING),
}


def show(rankings: Rankings, spec: RankingTable) -> Table:
    """The table, of the statistics that have a heading."""
    titles = rankings.titles
    tasks = {task.name: task.title for task in rankings.tasks}
    names = {"task": tasks, "ranker": titles, "other": titles}
    layout = replace(spec.layout, signed=_SIGNED)
    if spec.across == "system":
        systems = [system for task in rankings.tasks for system in task.systems]
        titles = {s.name: s.name if s.is_argument else f"{s.name} (control)" for s in systems}
        layout = replace(layout, absent=_NOT_RANKED, headings=titles)
    best = {(r.task, r.ranker, system) for r in rankings.rankings for system in r.best}

    def cell(row: Row) -> Content:
        if row.statistic in _FORMS:
            value = row.estimate.value
            return None if value is None else format(value, _FORMS[row.statistic])
        if row.statistic == "score":
            is_best = (row["task"], row["ranker"], row["system"]) in best
            return Cell(estimate=row.estimate, best=is_best)
        remark = _REMARKS.get(row.analysis, "").format(**row.keys)
        return replace(layout.cell(row), remark=remark) if remark else layout.cell(row)

    is_shown = {*spec.headings, "score", "average_rank"}
    shown = (row for row in spec.rows(rankings) if row.statistic in is_shown)
    return layout.by_keys(shown, spec.down, spec.across, names, cell)


def rankings_part(rankings: Rankings) -> ReportSection:
    """The part of a report: each task, all tasks together, and the data behind the rankings."""
    how_sure = (HOW_SURE if any(r.placed for r in rankings.rankings) else NO_RANKINGS,)
    blocks = [Block("Whose arguments help to decide?", how_sure, lead=True, on_screen=True)]
    for number, task in enumerate(rankings.tasks, start=1):
        sentences = (*ranking_sentences(rankings, task), _about(task))
        medals = medals_table(rankings, task, f"ranking_medals-{number}")
        blocks.append(Block(task.title, sentences, (medals,), lead=True, on_screen=True))
    for n, (title, specs) in enumerate(_TABLES.items()):
        tables = tuple(show(rankings, spec) for spec in specs)
        blocks.append(Block(title, tables=tables, on_screen=n == 0, folded=n > 0))
    return ReportSection(
        key="rankings",
        title="whose arguments help to decide?",
        results=rankings.rows,
        blocks=tuple(blocks),
        notes=rankings.notes,
    )


def _about(task: RankedTask) -> str:
    """The number of instances, and which labels are not ranked."""
    left_out = f"; not ranked: {', '.join(task.left_out)}" if task.left_out else ""
    return f"{counted(task.n_instances, 'instance')}{left_out}."


# --- medals --------------------------------------------------------------------------------------


_MEDALS = {1: "🥇", 2: "🥈", 3: "🥉"}


def medals_table(rankings: Rankings, task: RankedTask, key: str) -> Table:
    """Rankers down, places across, and in each cell who stands there, control cases among them;
    cells of control cases that mislead are coloured."""
    misled = (
        "Above: how many real arguments a control case clearly ranks above, corrected for the "
        "number of pairs and rankers. Unclear: it clearly ranks above none, but not below all. "
        "An evaluator that is not misled ranks every control case below every argument."
    )
    level = "By score, best first; tied systems share a cell, and the places after it stay empty."
    ranked = rankings.of(task.name)
    width = max((len(ranking.placed) for ranking in ranked), default=0)
    return Layout(
        key,
        f"Who helps most, {task.title}",
        ("Ranker",),
        (level, misled if task.controls else ""),
        tuple(_MEDALS.get(i, f"{i}.") for i in range(1, width + 1)),
    ).listing((r.title, *_medals(r, task, width)) for r in ranked if r.placed)


def _medals(ranking: OneRanking, task: RankedTask, width: int) -> list[Cell]:
    """The cells of one ranker: systems that tie share the best of their places."""
    places = list(ranking.placed.values())
    cells = [Cell()] * width
    for place in dict.fromkeys(places):
        tied = [name for name, other in ranking.placed.items() if other == place]
        stands = {n: against_arguments(ranking, task, n) for n in tied if n in task.controls}
        look: CellTone = "unclear" if any(n for _, n in stands.values()) else ""
        look = "bad" if any(n for n, _ in stands.values()) else look
        names = ", ".join(_with_stand(name, stands.get(name)) for name in tied)
        cells[places.index(place)] = Cell(f"{names} (tied)" if len(tied) > 1 else names, look=look)
    return cells


def _with_stand(system: str, stand: tuple[int, int] | None) -> str:
    """`gold`, or `noise (control, above 2)`."""
    if stand is None:
        return system
    above, unclear = stand
    stand_text = f", above {above}" if above else ", unclear" if unclear else ""
    return f"{system} (control{stand_text})"


def against_arguments(ranking: OneRanking, task: RankedTask, control: str) -> tuple[int, int]:
    """The number of real arguments that a control case clearly ranks above, and of those that it
    cannot be distinguished from."""
    arguments = [name for name in task.arguments if name in ranking.placed]
    above = sum(ranking.clearly_above(control, name) for name in arguments)
    below = sum(ranking.clearly_above(name, control) for name in arguments)
    return above, len(arguments) - above - below


# --- sentences -----------------------------------------------------------------------------------


def ranking_sentences(rankings: Rankings, task: RankedTask) -> list[str]:
    """The sentences on the rankings of one task."""
    ranked = claiming(rankings, task)
    lengths = _rows_of(rankings, task, "length_bias", "rho")
    kin = _rows_of(rankings, task, "self_preference", "places")
    return [
        *_grouped((r.title, _best(r, task)) for r in ranked),
        *_grouped((r.title, _controls(r, task)) for r in ranked),
        *_no_difference(ranked),
        *_by_side(rankings, task, _with_humans(rankings, task), "tau-b", _AGREEMENTS),
        *_by_side(rankings, task, lengths, "rho", _LENGTHS),
        *_by_side(rankings, task, kin, "places", _KIN),
    ]


def claiming(rankings: Rankings, task: RankedTask) -> list[OneRanking]:
    """The rankers of a task of which anything is said: not the control rankers."""
    return [r for r in rankings.of(task.name) if r.kind != "control"]


def _grouped(sentences: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One sentence for all rankers of which the same is said."""
    groups = group_by_key((words, ranker) for ranker, words in sentences)
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
    misled = [
        f"{name} (above {above} of {counted(arguments, 'argument')})"
        for name, (above, _) in stands.items()
        if above
    ]
    unclear = [name for name, (above, n_unclear) in stands.items() if n_unclear and not above]
    parts = [f"misled by {listed(misled)}"] if misled else []
    if unclear:
        parts.append(f"{listed(unclear)} cannot be distinguished from some arguments")
    if not parts:
        parts = [f"not misled: every control case ranks below every argument ({listed(controls)})"]
    return "; ".join(parts)


def _no_difference(ranked: Sequence[OneRanking]) -> Iterator[str]:
    """The rankers whose ranks Friedman's test does not tell from chance."""
    p_values = [(r.title, r.friedman_p) for r in ranked]
    flat = [f"{name} (p = {p:.3f})" for name, p in p_values if p is not None and p >= WRONG_CLAIMS]
    if flat:
        yield f"Friedman's test shows no difference between the real arguments for {listed(flat)}."


_AGREEMENTS = {
    "up": "Agreement with the humans beyond chance: {}.",
    "down": "Disagreement with the humans beyond chance: {}.",
    "": "No agreement with the humans is shown: {}.",
}
_LENGTHS = {
    "up": "Longer arguments rank higher with {}.",
    "down": "Shorter arguments rank higher with {}.",
}
_KIN = {"up": "Arguments of a relative are ranked higher than other rankers do by {}."}


def _with_humans(rankings: Rankings, task: RankedTask) -> list[tuple[str, Row]]:
    """The agreement of rankers with the humans, by the ranker."""
    humans = {r.ranker for r in rankings.of(task.name) if r.kind == "humans"}
    pairs = [
        ([name for name in (row["ranker"], row["other"]) if name not in humans], row)
        for row in rankings.rows.select("agreement", "tau_b", task=task.name)
    ]
    return [(others[0], row) for others, row in pairs if len(others) == 1]


def _rows_of(
    rankings: Rankings, task: RankedTask, analysis: str, statistic: str
) -> list[tuple[str, Row]]:
    return [
        (row["ranker"], row) for row in rankings.rows.select(analysis, statistic, task=task.name)
    ]


def _by_side(
    rankings: Rankings, task: RankedTask, rows: Sequence[tuple[str, Row]], symbol: str,
    sentences: Mapping[str, str],
) -> Iterator[str]:  # fmt: skip
    """A sentence for each side of 0 on which there are rankers, `up` or `down`, whatever the number
    of rankers that this may be said of; else ''. Control rankers and what is undefined go."""
    titles = {r.ranker: r.title for r in claiming(rankings, task)}
    defined = [
        (name, row) for name, row in rows if name in titles and row.estimate.value is not None
    ]
    by_side: dict[str, list[str]] = {}
    for name, row in defined:
        p = rankings.rows.find("p", row.analysis, **{key: row[key] for key in row.keys}).value
        side = "up" if (row.estimate.value or 0.0) > 0 else "down"
        side = side if p and p * len(defined) < WRONG_CLAIMS else ""
        about = f" on {row['system']}, {row['akin']}" if row["system"] else ""
        words = f"{titles[name]}{about} ({symbol} {row.estimate:.2f})"
        by_side.setdefault(side, []).append(words)
    yield from (text.format(listed(by_side[side])) for side, text in sentences.items()
                if side in by_side)  # fmt: skip
