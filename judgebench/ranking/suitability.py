"""Test whether a task is fit to rank arguments by: only where experts agree which are better.

The rule follows section 3.3 of the paper on proxy tasks. Two things are asked of a few items that
two or more experts ranked: that the experts agree (Krippendorff's alpha of the ranks reaches a
bar), and that the systems differ (Friedman's test of the mean ranks). With both, the task is
suitable; without either, it is not. The bar is Krippendorff's own for tentative conclusions, 2/3
(Content Analysis, 2004, chapter 11): with it the paper's three tasks come out as it says, and the
one at 0.61 is fixed first, as its authors did, by leaving out a label.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.ranking.human import RANKS, HumanRanks
from judgebench.ranking.rank import friedman_of
from judgebench.records import Estimate, Results, Row
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.shown import Shown
from judgebench.results.tables import Layout, Table
from judgebench.stats.agreement import coincidences_by_cluster, krippendorff_alpha
from judgebench.stats.arrays import Clusters, mean_of_defined
from judgebench.stats.intervals import LEVEL, clustered_estimate
from judgebench.stats.ranks import places
from judgebench.text import counted, listed

MIN_ALPHA = 2 / 3
SIGNIFICANT = 0.05
LEAST_RANKED = 5  # as the paper ranked before it decided
_ALPHA = krippendorff_alpha("ordinal")
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
    rank for every system, or the reason why there is no test; and the `mean_rank` of each system
    over the same items.
    """

    task: str
    experts: tuple[str, ...]
    min_alpha: float
    rows: Results
    left_out: tuple[str, ...]
    fitness: Fitness
    reasons: tuple[str, ...]

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
            Block(
                f"{task.task}: {task.fitness.value}", tuple(fitness_sentences(task)), on_screen=True
            )
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
    experts = ranks.annotators(task)
    if len(experts) < 2:
        found = ", ".join(experts) or "none"
        message = "fewer than two experts ranked a whole item: agreement needs two"
        raise SetupError(Problem(message, field=task, found=found))
    alpha = alpha_of(ranks, task, level)
    tested, mean_ranks = _friedman(ranks, task)
    fitness, reasons = judge(alpha, tested["p"], min_alpha)
    of_task = {"task": task}
    rows = [Row("suitability", k, e, keys=of_task) for k, e in {"alpha": alpha, **tested}.items()]
    rows += [
        Row("mean_rank", "mean_rank", Estimate(mean), keys={**of_task, "system": system})
        for system, mean in zip(ranks.systems(task), mean_ranks, strict=False)
    ]
    return TaskFitness(
        task=task,
        experts=experts,
        min_alpha=min_alpha,
        rows=Results(tuple(rows)),
        left_out=ranks.left_out,
        fitness=fitness,
        reasons=reasons,
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


# --- agreement -----------------------------------------------------------------------------------


def alpha_of(ranks: HumanRanks, task: str, level: float = LEVEL) -> Estimate:
    """Krippendorff's ordinal alpha, a unit being the argument of one system on one item.

    The interval is over whole groups of items. `n` counts items that two experts or more ranked,
    `n_missing` the other ones that were asked.
    """
    group_by_item = {i.item_id: i.group for i in ranks.asked.values() if i.task == task}
    items = tuple(group_by_item)
    values = ranks.array(task, items, ranks.systems(task))
    shared = int(((~np.isnan(values)).any(axis=1).sum(axis=1) >= 2).sum())
    clusters = Clusters.of(group_by_item.values())
    ratings = np.where(np.isnan(values), 0, values).astype(np.int64) - 1  # 0 is no rank
    ratings = ratings.reshape(-1, ratings.shape[2])
    groups = Clusters(np.repeat(clusters.codes, values.shape[1]), clusters.n)
    counts = coincidences_by_cluster(ratings, groups, len(RANKS))
    return clustered_estimate(counts, _ALPHA, level, n=shared, n_missing=len(items) - shared)


# --- difference ----------------------------------------------------------------------------------


def _friedman(ranks: HumanRanks, task: str) -> tuple[dict[str, Estimate], list[float]]:
    """Chi-square and p over all items that any annotator ranked, by the mean rank over those who
    did, as in the report of a ranking: items of one group are one block. And the mean ranks of the
    systems, none without an item."""
    items = tuple(dict.fromkeys(r.item_id for r in ranks.ranks if r.task == task))
    means = mean_of_defined(ranks.array(task, items, ranks.systems(task)))
    is_whole = ~np.isnan(means).any(axis=1)
    whole = means[is_whole]
    groups = np.array([ranks.asked[task, item].group for item in items])[is_whole]
    tested = friedman_of(places(-whole), Clusters.of(groups.tolist()))
    return tested, whole.mean(axis=0).tolist() if len(whole) else []


# --- reasons -------------------------------------------------------------------------------------


def _on_agreement(alpha: Estimate, bar: float) -> str:
    if alpha.value is None:
        return f"Agreement is undefined: {alpha.reason}."
    reaches = "reaches" if alpha.value >= bar else "stays below"
    sentence = f"The experts' alpha of {alpha.value:.2f} {reaches} the bar of {bar:.2f}"
    if alpha.low is None or alpha.high is None:
        return f"{sentence}, and has no interval: {alpha.reason}."
    between = f"[{alpha.low:.2f}, {alpha.high:.2f}]"
    if alpha.low < bar <= alpha.high:
        return f"{sentence}, but its interval {between} reaches across it."
    return f"{sentence}, with its whole interval {between}."


def _on_difference(p: Estimate) -> str:
    if p.value is None:
        return f"Whether the systems differ is not known, for want of a test: {p.reason}."
    shown = "< 0.001" if p.value < 0.001 else f"= {p.value:.3f}"
    differ = "differ" if p.value < SIGNIFICANT else "do not differ"
    return f"The systems {differ} in rank (Friedman, p {shown})."


# --- what a report shows --------------------------------------------------------------------------


def fitness_sentences(found: TaskFitness) -> list[str]:
    """The reasons, and what they rest on."""
    left_out = [f"Left out: items of {listed(found.left_out)}."] if found.left_out else []
    ranked = f"{counted(found.alpha.n, 'item')} ranked by two experts or more"
    missing = f", {found.alpha.n_missing:,} not" if found.alpha.n_missing else ""
    rests_on = f"It rests on {ranked}{missing}; experts: {listed(found.experts)}."
    too_narrow = (
        f"An interval from fewer than {_FEW_ITEMS} items is too narrow: where it should hold the "
        "true alpha in 95 of 100 cases, it did in 75 to 90 of 100 simulated ones."
    )
    is_few = found.alpha.low is not None and LEAST_RANKED <= found.alpha.n < _FEW_ITEMS
    return [*found.reasons, *left_out, rests_on, *([too_narrow] if is_few else [])]


_OF_TEST = {"alpha": "alpha", "chi_square": "Friedman chi-square", "p": "p"}


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
    return measures, mean_ranks
