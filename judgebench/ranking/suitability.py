"""Test whether a task is fit to rank arguments by: only where experts agree which are better.

The rule follows section 3.3 of the paper on proxy tasks. Two things are asked of a few items that
two or more experts ranked: that the experts agree (Krippendorff's alpha of the ranks reaches a
bar), and that the systems differ (Friedman's test of the mean ranks). With both, the task is
suitable; without either, it is not. The bar is Krippendorff's own for tentative conclusions, 2/3
(Content Analysis, 2004, chapter 11): with it the paper's three tasks come out as it says, and the
one at 0.61 is fixed first, as its authors did, by leaving out a label.

Medal grids: rankers down, places across, and in each cell who stands there; as a table, and as a
figure with one colour per system, the same for every task.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.ranking.human import RANKS, HumanRanks
from judgebench.ranking.rankers import OneRanking, RankedTask
from judgebench.records import Estimate, Results, Row
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.figures import SMALL, grid_ticks, ink_on, new_figure
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, CellTone, Layout, Table
from judgebench.stats.agreement import coincidences_by_cluster, krippendorff_alpha
from judgebench.stats.arrays import Clusters, mean_of_defined
from judgebench.stats.intervals import LEVEL, clustered_estimate
from judgebench.stats.ranks import FRIEDMAN, friedman
from judgebench.text import counted, listed, wrapped

_MEDALS = ("🥇", "🥈", "🥉")
# Okabe and Ito's colours, then Tol's muted ones; all are told apart with every common kind of
# colour blindness, and a name stands in each.
ARGUMENT_COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#332288",
    "#117733", "#882255", "#88ccee", "#999933",
)  # fmt: skip
CONTROL_COLOURS = ("#d0d4d8", "#8d949b", "#eceef0", "#5d646b")
_WARN = "#a33b00"
_ONE, _TIED = 0.68, 0.46  # inches of a system alone, and of each that ties


@dataclass(frozen=True, slots=True)
class Placed:
    """A system at its place; `tied` where others share it.

    Of a control case, `above` counts the real arguments that it clearly ranks above, `unclear`
    those that it cannot be distinguished from."""

    system: str
    is_control: bool
    tied: bool
    above: int = 0
    unclear: int = 0

    @property
    def words(self) -> str:
        """The system, and what is said of a control case beside its name."""
        about = f", above {self.above}" if self.above else ", unclear" if self.unclear else ""
        return f"{self.system} (control{about})" if self.is_control else self.system


MedalCell = tuple[Placed, ...]  # who shares a place; may be empty
MedalGrid = Mapping[str, Sequence[MedalCell]]  # by ranker, one cell per place


def ordinal(number: int) -> str:
    """`4th`, `11th`, `21st`."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else endings.get(number % 10, 'th')}"


def medal(number: int) -> str:
    """A medal for the first three places, then `4th` and so on."""
    return _MEDALS[number - 1] if number <= len(_MEDALS) else ordinal(number)


def medal_grid(rankings: Sequence[OneRanking], task: RankedTask) -> MedalGrid:
    """The grid of all systems, control cases among them.

    Systems that tie share the best of their places, and the places after it stay empty.
    """
    rows = {r.title: _cells(r, task) for r in rankings}
    width = max(map(len, rows.values()), default=0)
    return {name: [*row, *[()] * (width - len(row))] for name, row in rows.items() if row}


def _cells(ranking: OneRanking, task: RankedTask) -> list[MedalCell]:
    ordered = list(ranking.placed.values())
    cells: list[MedalCell] = [()] * len(ordered)
    for system, place in ranking.placed.items():
        first, is_control = ordered.index(place), system in task.controls
        above, unclear = against_arguments(ranking, task, system) if is_control else (0, 0)
        tied = ordered.count(place) > 1
        cells[first] = (*cells[first], Placed(system, is_control, tied, above, unclear))
    return cells


def against_arguments(ranking: OneRanking, task: RankedTask, control: str) -> tuple[int, int]:
    """The number of real arguments that a control case clearly ranks above, and of those that it
    cannot be distinguished from."""
    arguments = [name for name in task.arguments if name in ranking.placed]
    above = sum(ranking.clearly_above(control, name) for name in arguments)
    below = sum(ranking.clearly_above(name, control) for name in arguments)
    return above, len(arguments) - above - below


def medals_table(rankings: Sequence[OneRanking], task: RankedTask, key: str) -> Table:
    """A medal grid as a table of names; cells of control cases that mislead are coloured."""
    grid = medal_grid(rankings, task)
    width = max(map(len, grid.values()), default=0)
    misled = (
        "Above: how many real arguments a control case clearly ranks above, corrected for the "
        "number of pairs and rankers. Unclear: it clearly ranks above none, but not below all. "
        "An evaluator that is not misled ranks every control case below every argument."
    )
    return Layout(
        key,
        f"Who helps most, {task.title}",
        ("Ranker",),
        (
            "By score, best first; tied systems share a cell, and the places after it stay empty.",
            misled if task.controls else "",
        ),
        tuple(medal(i) for i in range(1, width + 1)),
    ).listing((name, *map(_medal_cell, row)) for name, row in grid.items())


def _medal_cell(cell: MedalCell) -> Cell:
    """`gold, llama3 (tied)`."""
    names = ", ".join(placed.words for placed in cell)
    look: CellTone = "unclear" if any(placed.unclear for placed in cell) else ""
    look = "bad" if any(placed.above for placed in cell) else look
    return Cell(f"{names} (tied)" if len(cell) > 1 else names, look=look)


# --- the figure ----------------------------------------------------------------------------------


def system_colours(tasks: Sequence[RankedTask]) -> dict[str, str]:
    """The colour of each system of any task."""
    colours: dict[str, str] = {}
    counts = Counter[bool]()
    for system in (system for task in tasks for system in task.systems):
        if system.name not in colours:
            wheel = ARGUMENT_COLOURS if system.is_argument else CONTROL_COLOURS
            colours[system.name] = wheel[counts[system.is_argument] % len(wheel)]
            counts[system.is_argument] += 1
    return colours


def draw_medals(
    rankings: Sequence[OneRanking], task: RankedTask, colours: Mapping[str, str]
) -> Any:
    """A box for each system at its place; control cases are framed by dashes."""
    grid = medal_grid(rankings, task)
    n_places = max(map(len, grid.values()))
    figure = new_figure(max(4.5, 2.0 + 1.3 * n_places), 1.35 + sum(map(_height, grid.values())))
    _draw_grid(figure.subplots(), grid, colours)
    title = f"Who helps most: {task.title}"
    figure.suptitle(wrapped(title, int(11 * figure.get_figwidth())), x=0.02, ha="left", fontsize=11)
    return figure


def _height(row: Sequence[MedalCell]) -> float:
    """In inches: a cell with ties is taller."""
    return max(_ONE, _TIED * max(map(len, row)))


def _draw_grid(axes: Any, grid: MedalGrid, colours: Mapping[str, str]) -> None:
    heights = [_height(row) for row in grid.values()]
    top = [sum(heights[:i]) for i in range(len(heights) + 1)]
    for i, row in enumerate(grid.values()):
        for column, cell in enumerate(row):
            part = _ONE if len(cell) == 1 else _TIED
            start = top[i] + (heights[i] - part * len(cell)) / 2
            for k, placed in enumerate(cell):
                ground = colours.get(placed.system, ARGUMENT_COLOURS[0])
                _draw_system(axes, placed, ground, (column, start + k * part, part))
    width = max(map(len, grid.values()))
    axes.set(xlim=(-0.5, width - 0.5), ylim=(top[-1], 0))
    grid_ticks(axes, [ordinal(i) for i in range(1, width + 1)], [], ("Place", "Ranked by"))
    middles = [(a + b) / 2 for a, b in pairwise(top)]
    axes.set_yticks(middles, [wrapped(name, 24) for name in grid])


def _draw_system(axes: Any, placed: Placed, ground: str, at: tuple[int, float, float]) -> None:
    """A box in the system's colour with its name; a control case is framed by dashes. `at` is its
    column, top and height."""
    from matplotlib.patches import Rectangle

    column, y, height = at
    fooled = placed.above > 0
    frame: dict[str, Any] = {
        "edgecolor": _WARN if fooled else "#5d646b" if placed.is_control else "none",
        "linestyle": (0, (3, 2)) if placed.is_control else "solid",
        "linewidth": 2.2 if fooled else 1.0,
    }
    box = Rectangle((column - 0.46, y + 0.04), 0.92, height - 0.08, facecolor=ground, **frame)
    axes.add_patch(box)
    about = [f"▲ above {placed.above}"] * fooled + ["tied"] * placed.tied
    words = "\n".join(filter(None, (wrapped(placed.system, 17), ", ".join(about))))
    axes.text(
        column, y + height / 2, words, ha="center", va="center",
        color=ink_on(ground), fontsize=SMALL,
        fontstyle="italic" if placed.is_control else "normal",
    )  # fmt: skip


MIN_ALPHA = 2 / 3
SIGNIFICANT = 0.05
LEAST_RANKED = 5  # as the paper ranked before it decided
_ALPHA = krippendorff_alpha("ordinal")
MOST_TIMES = 20  # the items there are: a projection beyond says nothing
_FEW_ITEMS = 20  # in simulations the interval of so many and more held what it promises


class Fitness(StrEnum):
    """The verdict on a task."""

    SUITABLE = "suitable"
    NOT_SUITABLE = "not suitable"
    CANT_TELL = "can't tell"


@dataclass(frozen=True)
class TaskFitness:
    """The verdict on one task, by the experts' ranks.

    `rows` hold `alpha` over items that two or more experts ranked (`n` in it; `n_missing` were
    asked and are not among them); Friedman's `chi_square` and `p` over the items that have a mean
    rank for every system, or the reason why there is no test; the `mean_rank` of each system over
    the same items; and `alpha` of the items of one `label`, and of those `without` it. `is_firm` is
    true where the whole interval of alpha lies on the verdict's side of `min_alpha`; `more_items`
    projects how many further items it takes until it does, None where that cannot be said.
    """

    task: str
    experts: tuple[str, ...]
    min_alpha: float
    rows: Results
    left_out: tuple[str, ...]
    fitness: Fitness
    reasons: tuple[str, ...]
    is_firm: bool
    more_items: int | None

    @property
    def alpha(self) -> Estimate:
        """The agreement of the experts on all items."""
        return self.rows.find("alpha", "suitability")


@dataclass(frozen=True, repr=False)
class Suitability(Shown):
    """Every task that was ranked; `notes` say which ranks were left out."""

    tasks: tuple[TaskFitness, ...]
    notes: tuple[str, ...] = ()

    @property
    def part(self) -> ReportSection:
        """A block of sentences for each task, then the tables of all."""
        rows = Results(tuple(row for task in self.tasks for row in task.rows))
        verdicts = [
            Block(f"{task.task}: {headline(task)}", tuple(fitness_sentences(task)), on_screen=True)
            for task in self.tasks
        ]
        return ReportSection(
            key="suitability",
            title="is the task fit to rank arguments by?",
            results=rows,
            blocks=(*verdicts, Block("What it rests on", tables=_tables(rows), on_screen=True)),
            notes=self.notes,
            screen=(*verdicts, Block(text=self.notes)),
        )


def suitability(
    ranks: HumanRanks, level: float = LEVEL, min_alpha: float = MIN_ALPHA
) -> Suitability:
    """Test whether each task is fit to rank arguments by, with reasons.

    Raises SetupError where fewer than two experts ranked an item of a task.
    """
    found = tuple(fitness_of(ranks, task, level, min_alpha) for task in ranks.tasks)
    return Suitability(found, tuple(map(str, ranks.warnings)))


def fitness_of(
    ranks: HumanRanks, task: str, level: float = LEVEL, min_alpha: float = MIN_ALPHA
) -> TaskFitness:
    """Test one task as `suitability` tests all."""
    experts = ranks.experts(task)
    if len(experts) < 2:
        found = ", ".join(experts) or "none"
        message = "fewer than two experts ranked a whole item: agreement needs two"
        raise SetupError(Problem(message, field=task, found=found))
    alpha, labels = alpha_of(ranks, task, level), _by_label(ranks, task, level)
    tested, mean_ranks = _friedman(ranks, task)
    fitness, reasons = judge(alpha, tested["p"], min_alpha)
    of_task = {"task": task}
    rows = [Row("suitability", k, e, keys=of_task) for k, e in {"alpha": alpha, **tested}.items()]
    rows += [
        Row("mean_rank", "mean_rank", Estimate(mean), keys={**of_task, "system": system})
        for system, mean in zip(ranks.systems(task), mean_ranks, strict=False)
    ]
    rows += [
        Row("label", statistic, estimate, keys={**of_task, "label": label})
        for label, estimates in labels.items()
        for statistic, estimate in zip(("alpha", "without"), estimates, strict=True)
    ]
    return TaskFitness(
        task=task,
        experts=experts,
        min_alpha=min_alpha,
        rows=Results(tuple(rows)),
        left_out=ranks.left_out,
        fitness=fitness,
        reasons=(*reasons, *_on_labels(alpha, labels, min_alpha)),
        is_firm=_is_firm(fitness, alpha, min_alpha),
        more_items=more_items(alpha, min_alpha),
    )


def judge(
    alpha: Estimate, p: Estimate, min_alpha: float = MIN_ALPHA
) -> tuple[Fitness, tuple[str, ...]]:
    """The verdict and its reasons.

    Suitable where alpha reaches `min_alpha` and p lies below 0.05. Not suitable where neither is
    so, or where the whole interval of alpha lies below `min_alpha`: then the experts do not agree,
    whatever their means say. Can't tell where the two disagree, where one is undefined, or with
    fewer than five items.
    """
    reasons = (_on_agreement(alpha, min_alpha), _on_difference(p))
    if alpha.n < LEAST_RANKED:
        few = f"Only {alpha.n} items were ranked by two experts or more: {LEAST_RANKED} are needed."
        return Fitness.CANT_TELL, (few, *reasons)
    if alpha.value is None:
        return Fitness.CANT_TELL, reasons
    differ = None if p.value is None else p.value < SIGNIFICANT
    if alpha.value >= min_alpha:
        return (Fitness.SUITABLE if differ else Fitness.CANT_TELL), reasons
    is_below = alpha.high is not None and alpha.high < min_alpha
    return (Fitness.NOT_SUITABLE if is_below or differ is False else Fitness.CANT_TELL), reasons


def more_items(alpha: Estimate, min_alpha: float) -> int | None:
    """The number of further items until the interval of alpha clears the bar, if alpha stays.

        n' = n ((limit - alpha) / (bar - alpha))^2

    with `limit` the end of the interval on the bar's side: its width shrinks with the root of n.
    0 where it clears the bar now; None without an interval, or where n' is twenty times n or more.
    """
    if alpha.value is None or alpha.low is None or alpha.high is None:
        return None
    limit = alpha.low if alpha.value >= min_alpha else alpha.high
    reach, distance = abs(limit - alpha.value), abs(min_alpha - alpha.value)
    if reach >= distance * math.sqrt(MOST_TIMES):
        return None
    return max(0, math.ceil(alpha.n * (reach / distance) ** 2) - alpha.n)


def _is_firm(fitness: Fitness, alpha: Estimate, min_alpha: float) -> bool:
    if alpha.low is None or alpha.high is None:
        return False
    firm = {Fitness.SUITABLE: alpha.low >= min_alpha, Fitness.NOT_SUITABLE: alpha.high < min_alpha}
    return firm.get(fitness, False)


# --- agreement -----------------------------------------------------------------------------------


def alpha_of(
    ranks: HumanRanks, task: str, level: float = LEVEL, labels: Sequence[str] | None = None
) -> Estimate:
    """Krippendorff's ordinal alpha, a unit being the argument of one system on one item.

    The interval is over whole groups of items. `labels` keeps the items of these alone. `n`
    counts items that two experts or more ranked, `n_missing` the other ones that were asked.
    """
    asked = {
        item.item_id: item.group
        for item in ranks.asked.values()
        if item.task == task and (labels is None or item.label in labels)
    }
    items = tuple(asked)
    values = ranks.array(task, items, ranks.systems(task))
    shared = int(((~np.isnan(values)).any(axis=1).sum(axis=1) >= 2).sum())
    clusters = Clusters.of(asked[i] for i in items).codes
    ratings = np.where(np.isnan(values), 0, values).astype(np.int64) - 1  # 0 is no rank
    ratings = ratings.reshape(-1, ratings.shape[2])
    groups = Clusters(np.repeat(clusters, values.shape[1]), len(set(asked.values())))
    counts = coincidences_by_cluster(ratings, groups, len(RANKS))
    return clustered_estimate(counts, _ALPHA, level, n=shared, n_missing=len(items) - shared)


def _by_label(ranks: HumanRanks, task: str, level: float) -> dict[str, tuple[Estimate, Estimate]]:
    """Agreement on the items of a label, and on all others: for every label that two items or more
    carry, where there are several labels."""
    labels = Counter(i.label for i in ranks.asked.values() if i.task == task and i.label)
    if len(labels) < 2:
        return {}
    return {
        label: (
            alpha_of(ranks, task, level, [label]),
            alpha_of(ranks, task, level, [other for other in labels if other != label]),
        )
        for label, n in labels.items()
        if n >= 2
    }


# --- difference ----------------------------------------------------------------------------------


def _friedman(ranks: HumanRanks, task: str) -> tuple[dict[str, Estimate], list[float]]:
    """Chi-square and p over all items that any expert ranked, by the mean rank over those who did;
    and the mean ranks of the systems, none without an item."""
    items = tuple(dict.fromkeys(r.item_id for r in ranks.ranks if r.task == task))
    means = mean_of_defined(ranks.array(task, items, ranks.systems(task)))
    whole = means[~np.isnan(means).any(axis=1)]
    n, k = whole.shape
    found = friedman(-whole) if n >= 2 and k >= 3 else None
    if n == 0:
        reason = "no item has ranks for every system"
    elif found is None:
        reason = f"it needs 3 systems and 2 items or more, and there are {k} and {n}"
    elif found.p is None:
        reason = "the systems tie on every item"
    else:
        reason = "a test statistic has no interval"
    values = (found.chi_square, found.p) if found and found.p is not None else (None, None)
    method = FRIEDMAN if values[0] is not None else ""
    tested = [Estimate(value, method=method, n=n, reason=reason) for value in values]
    mean_ranks: list[float] = whole.mean(axis=0).tolist() if n else []
    return dict(zip(("chi_square", "p"), tested, strict=True)), mean_ranks


# --- reasons -------------------------------------------------------------------------------------


def _on_agreement(alpha: Estimate, bar: float) -> str:
    if alpha.value is None:
        return f"Agreement is undefined: {alpha.reason}."
    reaches = "reaches" if alpha.value >= bar else "stays below"
    said = f"The experts' alpha of {alpha.value:.2f} {reaches} the bar of {bar:.2f}"
    if alpha.low is None or alpha.high is None:
        return f"{said}, and has no interval: {alpha.reason}."
    between = f"[{alpha.low:.2f}, {alpha.high:.2f}]"
    if alpha.low < bar <= alpha.high:
        return f"{said}, but its interval {between} reaches across it."
    return f"{said}, with its whole interval {between}."


def _on_difference(p: Estimate) -> str:
    if p.value is None:
        return f"Whether the systems differ is not known, for want of a test: {p.reason}."
    shown = "< 0.001" if p.value < 0.001 else f"= {p.value:.3f}"
    differ = "differ" if p.value < SIGNIFICANT else "do not differ"
    return f"The systems {differ} in rank (Friedman, p {shown})."


def _on_labels(
    alpha: Estimate, labels: Mapping[str, tuple[Estimate, Estimate]], bar: float
) -> list[str]:
    """Sentences on the labels that, left out, would lift alpha over the bar."""
    if alpha.value is None or alpha.value >= bar:
        return []
    return [
        f"Without the items of the label {label!r} alpha would be {without.value:.2f}: if a reason "
        "speaks for leaving them out, do so, and try it on items that were not ranked before."
        for label, (_, without) in labels.items()
        if without.value is not None and without.value >= bar
    ]


# --- what a report shows --------------------------------------------------------------------------


def headline(found: TaskFitness) -> str:
    """`suitable`, or `suitable, for now` where the interval of alpha leaves it open."""
    is_open = found.fitness is not Fitness.CANT_TELL and not found.is_firm
    return f"{found.fitness.value}, for now" if is_open else found.fitness.value


def fitness_sentences(found: TaskFitness) -> list[str]:
    """The reasons, what they rest on, and how many more items would make it clear."""
    left_out = [f"Left out: items of {listed(found.left_out)}."] if found.left_out else []
    ranked = f"{counted(found.alpha.n, 'item')} ranked by two experts or more"
    missing = f", {found.alpha.n_missing:,} not" if found.alpha.n_missing else ""
    rests_on = f"It rests on {ranked}{missing}; experts: {listed(found.experts)}."
    return [*found.reasons, *left_out, rests_on, *_on_the_interval(found)]


def _on_the_interval(found: TaskFitness) -> Iterator[str]:
    if found.alpha.low is None or found.alpha.n < LEAST_RANKED:
        return
    if found.alpha.n < _FEW_ITEMS:
        yield (
            f"An interval from fewer than {_FEW_ITEMS} items is too narrow: where it should hold "
            "the true alpha in 95 of 100 cases, it did in 75 to 90 of 100 simulated ones."
        )
    if found.more_items is None:
        yield "How many more items would clear the bar cannot be said: alpha lies too close to it."
    elif found.more_items:
        yield (
            f"With about {counted(found.more_items, 'more item')} the interval would clear the "
            "bar, if alpha stays as it is: a simple projection, by the root of the number of items."
        )


_OF_TEST = {"alpha": "alpha", "chi_square": "Friedman chi-square", "p": "p"}
_BY_LABEL = {"alpha": "alpha", "without": "alpha without them"}


def _tables(rows: Results) -> tuple[Table, ...]:
    """What the verdicts rest on."""
    measures = Layout(
        "suitability",
        "Agreement of experts and difference of systems",
        ("task",),
        ("Alpha is Krippendorff's, ordinal, over the ranks of each argument.",),
        headings=_OF_TEST,
    ).by_keys(rows.select("suitability"), ("task",))
    mean_ranks = Layout(
        "suitability_mean_ranks",
        "Mean rank of each system, 1 the best",
        ("task",),
        ("Over the items of the test, each by the mean over its experts.",),
        absent=None,
    ).by_keys(
        rows.select("mean_rank"),
        ("task",),
        "system",
        cell=lambda row: f"{row.estimate.value:.2f}",
    )
    labels = Layout(
        "suitability_labels", "Agreement by label", ("task", "label"), headings=_BY_LABEL
    ).by_keys(rows.select("label"), ("task", "label"))
    return measures, mean_ranks, labels
