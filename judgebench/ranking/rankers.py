"""Several rankers beside each other: what they have in common, how far they agree, and what one may
favour beside quality (long arguments, and those of its own kin).

What a ranking finds: rankers' scores go in, rows come out, read back one ranker at a time.

Every number is a row of one of these analyses, keyed by `task`:

system           score, place (with the range that tests leave) and average_rank of a `system`
                 (of a control case: where it would stand among the real arguments); `group` holds
                 Nemenyi's letters of the real arguments
ranking          chi_square, p and critical_difference of one `ranker` over the real arguments;
                 controls_below (share of the control cases below all real arguments); average
                 (score over real arguments)
above            p that the scores of `system` and of `other`, which is below it, are equal
agreement        tau_b and its p, spearman, tau_b_of_averages, top_1 of `ranker` and `other`
length_bias      rho of words and rank and its p, longest_first
self_preference  places by which a ranker ranks the generator `system` higher than the rankers
                 `other` do that are not `akin` to it, and p
trained          what training an evaluator took
task, argument   instances ranked; mean_words, verbatim and cut of what a `system` wrote
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, cast, get_args

import numpy as np

from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, mean_of_defined
from judgebench.stats.jackknife import LEVEL, OF_CORRELATION, SHARE, Bounds
from judgebench.stats.means import Kind, clustered_mean
from judgebench.stats.paired import OVER_TRAININGS, left_out, p_of_mean, with_trainings
from judgebench.stats.ranks import JUMPS, places, spearman, tau_b, top_match

SystemKind = Literal["gold", "model", "control"]
RankerKind = Literal["baseline", "expert-trained", "llm-trained", "judge", "control", "humans"]
WRONG_CLAIMS = 0.05  # of studies in which a report claims what is not so, by kind of sentence
ONCE = "it was trained once, and another training may turn the order round"
_ASKED: Mapping[RankerKind, str] = {"judge": " (judge)", "control": " (control ranker)"}


@dataclass(frozen=True, slots=True)
class System:
    """A writer of arguments: the experts (`gold`), a model, or a control case. The first two write
    real arguments, the primary ones of the paper."""

    name: str
    kind: SystemKind

    @property
    def is_argument(self) -> bool:
        """True where it writes real arguments."""
        return self.kind != "control"


@dataclass(frozen=True)
class RankerScores:
    """One ranker's scores on one task, the input of every ranking.

    `values` is (instances, systems), higher is better and NaN is missing: the probability of the
    gold label (mean over draws), a judge's mean severity turned round to 0..1 with 1 the best, or
    minus the humans' mean rank. `correct` is (instances, systems), the share of draws that decide
    rightly with this argument, None for judges and humans; `trainings` is the same of each of them
    (draws, instances, systems), as `drawn` is the `values` of each. `clusters` (instances,) numbers
    the groups that are taken whole. `systems` are names, in the order of the columns.
    """

    task: str
    ranker: str
    kind: RankerKind
    systems: tuple[str, ...]
    items: tuple[str, ...]
    clusters: IntArray
    values: FloatArray
    correct: FloatArray | None = None
    trainings: FloatArray | None = None
    n_missing: int = 0  # instances that were to be ranked and are not here
    drawn: FloatArray | None = None

    def but(self, draw: int, draws: int) -> FloatArray:
        """The values over the first so many draws but this one; all of a judge, or of one draw."""
        return np.asarray(
            self.values if self.drawn is None or draws < 2
            else np.delete(self.drawn[:draws], draw, axis=0).mean(axis=0)
        )  # fmt: skip

    @property
    def keys(self) -> dict[str, str]:
        """The keys of its rows."""
        return {"task": self.task, "ranker": self.ranker, "ranker_kind": self.kind}


@dataclass(frozen=True, slots=True)
class RankedTask:
    """One task of the ranking: how it is scored, which systems wrote, which labels are not
    ranked."""

    name: str
    title: str
    metric: str
    systems: tuple[System, ...]
    left_out: tuple[str, ...] = ()

    @property
    def metric_words(self) -> str:
        """`micro-F1`; an unknown metric by its own name."""
        return "micro-F1" if self.metric == "micro_f1" else self.metric

    @property
    def arguments(self) -> list[str]:
        """The systems that wrote real arguments."""
        return [system.name for system in self.systems if system.is_argument]

    @property
    def controls(self) -> list[str]:
        """The control cases."""
        return [system.name for system in self.systems if not system.is_argument]


@dataclass(frozen=True)
class OneRanking:
    """One ranker on one task, as its rows tell it: estimates by system in the order of their
    places, those of the whole ranking by statistic, and p values by pair, both ways. `claims` is by
    how many rankers of the task a claim of this one is divided; `unsure` says why there is no p
    value and nothing is claimed."""

    task: str
    ranker: str
    kind: RankerKind
    scores: dict[str, Estimate]
    places: dict[str, Estimate]
    average_ranks: dict[str, Estimate]
    groups: dict[str, str]
    whole: dict[str, Estimate]
    p: dict[tuple[str, str], float | None]
    controls: set[str]
    claims: int
    unsure: str

    @property
    def title(self) -> str:
        """The ranker's name, and for a judge that it is one."""
        return f"{self.ranker}{_ASKED.get(self.kind, '')}"

    @property
    def placed(self) -> dict[str, float]:
        """The systems that have a place, best first."""
        found = {s: e.value for s, e in self.places.items() if e.value is not None}
        return dict(sorted(found.items(), key=lambda pair: pair[1]))

    def clearly_above(self, upper: str, lower: str) -> bool:
        """True where it may be claimed that `upper` ranks above `lower`.

        That the first of all ranks above every other one is one claim of a ranker, as is that all
        control cases rank below; that some control case ranks above some argument is one for each
        such pair (Bonferroni). Of a control ranker, which reads nothing, nothing is claimed.
        """
        p, place = self.p.get((upper, lower)), self.placed
        if self.kind == "control" or p is None or place[upper] >= place[lower]:
            return False
        misled = upper in self.controls
        pairs = len(self.controls) * (len(place) - len(self.controls)) if misled else 1
        return p * self.claims * pairs < WRONG_CLAIMS


@dataclass(frozen=True, repr=False)
class Rankings(Shown):
    """All that a ranking run finds; `rows` are described at the top of this module."""

    presented_by = "judgebench.ranking.pages:rankings_part"

    name: str
    tasks: tuple[RankedTask, ...]
    rows: Results
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @cached_property
    def rankings(self) -> list[OneRanking]:
        """Every ranker of every task: evaluators first, then judges, humans last."""
        found: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows:
            if row.analysis in ("system", "ranking", "above"):
                found.setdefault((row["task"], row["ranker"], row["ranker_kind"]), []).append(row)
        claims = Counter(task for task, _, kind in found if kind != "control")
        return [_one_ranking(key, rows, claims[key[0]]) for key, rows in found.items()]

    def of(self, task: str) -> list[OneRanking]:
        """The rankings of one task."""
        return [ranking for ranking in self.rankings if ranking.task == task]

    @property
    def titles(self) -> dict[str, str]:
        """Every ranker's name as it is shown: evaluators first, then judges, humans last."""
        order = get_args(RankerKind)
        ordered = sorted(self.rankings, key=lambda ranking: order.index(ranking.kind))
        return {ranking.ranker: ranking.title for ranking in ordered}

    def instances(self, task: str) -> int:
        """The number of ranked instances of a task."""
        return int(self.rows.find("instances", "task", task=task).value or 0)


def _one_ranking(key: tuple[str, str, str], rows: Sequence[Row], claims: int) -> OneRanking:
    """The ranking of that task, ranker and kind that these rows tell."""

    def of(analysis: str, statistic: str = "") -> list[Row]:
        return [r for r in rows if r.analysis == analysis and statistic in ("", r.statistic)]

    scores, places, average_ranks = (
        {row["system"]: row.estimate for row in of("system", statistic)}
        for statistic in ("score", "place", "average_rank")
    )
    tests = of("above", "p")
    pairs = {(row["system"], row["other"]): row.estimate.value for row in tests}
    return OneRanking(
        task=key[0],
        ranker=key[1],
        kind=cast(RankerKind, key[2]),
        scores=scores,
        places=places,
        average_ranks=average_ranks,
        groups={row["system"]: row["group"] for row in of("system")},
        whole={row.statistic: row.estimate for row in of("ranking")},
        p=pairs | {(other, system): p for (system, other), p in pairs.items()},
        controls={row["system"] for row in of("system") if row["system_kind"] == "control"},
        claims=claims,
        unsure=tests[-1].estimate.reason if tests else "",
    )


FEW_COMMON = "fewer than two systems are ranked by both"
NO_COMMON = "no instance is ranked by both"
LEVEL_RANKS = "in every instance one ranker sets all systems level, so no order can be compared"
LEVEL_AVERAGES = "one ranker gives all systems the same average rank, so no order can be compared"
FEW_RANKED = "fewer than two systems are ranked"
LEVEL_LENGTHS = "in every instance all arguments are of one length or ranked level"
NO_LENGTHS = "no instance has all arguments, with their lengths and scores"
_AGREEMENT = ("tau_b", "p", "spearman", "tau_b_of_averages", "top_1")
_KINDS: Mapping[Bounds, Kind] = {SHARE: "share", OF_CORRELATION: "correlation"}
NOT_COMMON = "the rankers have no instance with this generator and another system in common"


@dataclass(frozen=True)
class Matched:
    """Several rankers cut down to the instances and systems that all of them rank.

    `values` is (rankers, instances, systems) without a gap, `clusters` (instances,). `less` is
    (draws, rankers, instances, systems): the values when one training of each evaluator is left out
    in turn, nothing where all are judges and humans. `n_missing` counts the instances that all
    rankers hold and where one of them lacks a value.
    """

    systems: tuple[str, ...]
    values: FloatArray
    less: FloatArray
    clusters: IntArray
    n_missing: int


def match(rankers: Sequence[RankerScores], systems: Sequence[str]) -> Matched:
    """The instances and systems that all rankers rank, of those named and in their order.

    Clusters are those of the first. An instance that a ranker was never to rank, such as those
    outside the sample that humans saw, is not missing.
    """
    first = rankers[0]
    common = tuple(s for s in systems if all(s in ranker.systems for ranker in rankers))
    rows = [{item: row for row, item in enumerate(ranker.items)} for ranker in rankers]
    items = [item for item in first.items if all(item in known for known in rows)]
    draws = min((len(r.drawn) for r in rankers if r.drawn is not None), default=0)
    tables = [[ranker.values for ranker in rankers]]
    tables += [[ranker.but(draw, draws) for ranker in rankers] for draw in range(draws)]
    every = np.stack([
        [
            columns(values, ranker, common)[[known[item] for item in items]]
            for values, ranker, known in zip(one, rankers, rows, strict=True)
        ]
        for one in tables
    ])  # fmt: skip
    complete = np.isfinite(every[0]).all(axis=(0, 2))
    every = every[:, :, complete]
    clusters = first.clusters[[rows[0][item] for item in items]][complete]
    return Matched(common, every[0], every[1:], clusters, int((~complete).sum()))


def columns(table: FloatArray, ranker: RankerScores, systems: Sequence[str]) -> FloatArray:
    """The columns of these systems, of a table (instances, systems) of that ranker's shape."""
    return table[:, [ranker.systems.index(system) for system in systems]]


# --- agreement -----------------------------------------------------------------------------------


def agree(
    a: RankerScores, b: RankerScores, systems: Sequence[str], level: float = LEVEL
) -> list[Row]:
    """The agreement of `a` and `b` on those of `systems` and those instances that both rank; the
    key `over` names the systems.

    Kendall's tau_b and Spearman's rho are taken within each instance and averaged; an instance
    where one ranker ties all systems has none and counts as missing. `top_1` is the expected
    match where ties for the best are broken at random (`stats.ranks.top_match`).
    Intervals are over the clusters of `a`, and they and p hold trainings too; p is none where an
    evaluator was trained once. Undefined, with a reason, with fewer than two systems
    or without an instance.
    """
    both = match((a, b), systems)
    _, n, k = both.values.shape
    if k < 2 or n == 0:
        reason = FEW_COMMON if k < 2 else NO_COMMON
        found = [Estimate(None, n_missing=both.n_missing, reason=reason, level=level)]
        found *= len(_AGREEMENT)
    else:
        mean = partial(_mean, both, undefined=LEVEL_RANKS, level=level)
        found = [*mean(tau_b), mean(spearman)[0], _of_averages(both)]
        found.append(mean(top_match, bounds=SHARE)[0])
    keys = {"task": a.task, "ranker": a.ranker, "other": b.ranker, "over": ", ".join(both.systems)}
    named = zip(_AGREEMENT, found, strict=True)
    return [Row("agreement", statistic, estimate, keys=keys) for statistic, estimate in named]


def _of_averages(both: Matched) -> Estimate:
    """tau_b of the two rankers' average ranks."""
    x, y = (places(values).mean(axis=0) for values in both.values)
    value = float(tau_b(x, y))
    if np.isnan(value):
        return Estimate(None, n=len(both.clusters), n_missing=both.n_missing, reason=LEVEL_AVERAGES)
    return Estimate(value, n=len(both.clusters), n_missing=both.n_missing, reason=JUMPS)


# --- biases --------------------------------------------------------------------------------------


def length_bias(
    scores: RankerScores, words: FloatArray, systems: Sequence[str], level: float = LEVEL
) -> list[Row]:
    """The rank correlation of length and place within an instance, among the named systems.

    `words` (instances, systems) has the rows and columns of `scores`, NaN where the length is
    unknown. `rho` is Spearman's, of words and rank turned round; `longest_first` is the chance that
    the longest is the best, ties broken at random: where length does not matter, 1 / systems on
    average. Raises ValueError for words of another shape.
    """
    if words.shape != scores.values.shape:
        raise ValueError(f"words are {words.shape}, but scores {scores.values.shape}")
    both = match((scores, replace(scores, values=words, drawn=None)), systems)
    missing = scores.n_missing + both.n_missing
    both = replace(both, n_missing=missing)
    rho = p = longest = Estimate(None, n_missing=missing, reason=FEW_RANKED, level=level)
    if len(both.systems) > 1:
        rho, p = _mean(both, spearman, LEVEL_LENGTHS if len(both.clusters) else NO_LENGTHS, level)
        longest, _ = _mean(both, top_match, NO_LENGTHS, level, SHARE)
    keys = {"task": scores.task, "ranker": scores.ranker}
    found = {"rho": rho, "p": p, "longest_first": longest}
    return [Row("length_bias", statistic, e, keys=keys) for statistic, e in found.items()]


def self_preference(
    akin: RankerScores,
    others: Sequence[RankerScores],
    generator: str,
    systems: Sequence[str],
    level: float = LEVEL,
) -> tuple[Estimate, Estimate]:
    """The places by which `akin` ranks the generator above the mean of the others, and p.

        mean over instances of (mean over the others of r_other - r_akin)

    with r the place of the generator among those of `systems` that all of them rank, on the
    instances that all of them rank: above 0, the ranker favours it. Take the real arguments as
    systems: a ranker that is merely misled by control cases ranks every generator lower.
    """
    both = match((akin, *others), systems)
    n = both.values.shape[1]
    if generator not in both.systems or len(both.systems) < 2 or n == 0:
        missing = both.n_missing
        none = Estimate(None, n_missing=missing, reason=NOT_COMMON, level=level)
        return none, none
    at, most = both.systems.index(generator), len(both.systems) - 1.0

    def higher(own: FloatArray, *theirs: FloatArray) -> FloatArray:
        return np.asarray(places(np.array(theirs)).mean(axis=0) - places(own))[:, at]

    return _mean(both, higher, NOT_COMMON, level, (-most, most))


def _mean(
    both: Matched,
    each: Callable[..., FloatArray],
    undefined: str,
    level: float,
    bounds: Bounds = OF_CORRELATION,
) -> tuple[Estimate, Estimate]:
    """The mean over instances of `each` (instances,), of the rankers' values, within `bounds`; and
    the two-sided p that it is 0, none of one training alone. Both hold instances and trainings."""
    x, n_draws = each(*both.values), len(both.less)
    found = clustered_mean(
        x, both.clusters, undefined, level,
        n_missing=both.n_missing, kind=_KINDS.get(bounds, "mean"),
    )  # fmt: skip
    if not found.n or n_draws == 1:
        return found, Estimate(None, n=found.n, reason=ONCE if found.n else NO_COMMON)
    trained = left_out(mean_of_defined(np.array([each(*values) for values in both.less])))
    p = p_of_mean(x, Clusters.of(both.clusters.tolist()), trained)
    return with_trainings(found, trained, bounds), Estimate(p, method=OVER_TRAININGS, n=found.n)
