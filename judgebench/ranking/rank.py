"""One ranker's scores made into a ranking: places, how firm they are, and which systems differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from judgebench.ranking.rankers import ONCE, RankerScores, System, columns
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.means import mean_of, means, sums_by_cluster
from judgebench.stats.paired import p_of_differences, resampled_trainings, with_trainings
from judgebench.stats.ranks import (
    Firmness,
    firmness,
    friedman,
    groups,
    levels,
    nemenyi_critical_difference,
    places,
)
from judgebench.stats.resample import (
    ClusterCounts,
    Resampling,
    Statistic,
    bootstrap_replicates,
    cluster_bootstrap,
)

FEWEST_CLUSTERS = 10  # resamples of fewer make any order look firm
NO_INSTANCE = "no instance has a score for every system"
NO_ARGUMENT = "there is no real argument"
_NO_CONTROL = Estimate(None, reason="there is no control case")
_NO_SCORE = Estimate(None, reason="there is no score")
_Group = tuple[str, Mapping[str, str], Mapping[str, Estimate]]  # analysis, keys, by statistic
_MEANS = Statistic(means, lambda sums: "")


def rank(
    scores: RankerScores, systems: Sequence[System], resampling: Resampling, metric: str
) -> list[Row]:
    """The rows `system`, `ranking` and `above` of those of `systems` that this ranker scored.

    An evaluator's score is the share of right decisions (accuracy, which micro-F1 equals where each
    instance has one class) and its rows have the metric `metric`; that of judges and humans is the
    mean value. Everything rests on the same instances, those with a score for every system; the
    others are missing. A system without any score is left out, and the reason of `chi_square` says
    so. Scores, and values, that differ by no more than 1e-6 (`stats.ranks.TIE`) are level.
    Average ranks, Friedman's test and Nemenyi's groups (`differ`) are of the real arguments alone;
    a control case has the average rank at which it would stand among them.
    Ranges of places and shares `above` come from the very resamples of the scores' intervals; fewer
    than ten clusters give none, and no p. Intervals and p of an evaluator hold items and trainings;
    trained once it has no p.
    """
    table = complete(scores, systems)
    unscored = f"without any score: {', '.join(table.unscored)}" if table.unscored else ""
    if table.n:
        groups = _ranking(table, resampling, unscored)
    else:
        test = Differ([], _joined(NO_INSTANCE, unscored))
        groups = iter([_whole(table, test, _NO_CONTROL, _NO_SCORE)])
    return [
        Row(analysis, statistic, e, "", metric if table.is_share else "", {**scores.keys, **keys})
        for analysis, keys, estimates in groups
        for statistic, e in estimates.items()
    ]


def _ranking(table: Complete, resampling: Resampling, unscored: str) -> Iterator[_Group]:
    found, average, firm = _scored(table, resampling)
    arguments = table.of(arguments=True)
    few = (
        f"fewer than {FEWEST_CLUSTERS} groups of instances are too few to say how firm the order is"
    )
    loose = "" if firm else few
    average_ranks, controls_below = _ranked(table, resampling)
    test = differ(places(table.values[:, arguments]), table.clusters, resampling.level)
    letters = dict(zip(arguments, test.letters, strict=True))
    place = _places(table, firm, resampling, loose)
    names = [system.name for system in table.systems]
    order = sorted(range(len(names)), key=lambda i: (place[i].value or 0.0, names[i]))
    for i in order:
        keys = {"system": names[i], "system_kind": table.systems[i].kind}
        keys["group"] = letters.get(i, "")
        estimates = {"score": found[i], "place": place[i], "average_rank": average_ranks[i]}
        yield "system", keys, estimates
    test = replace(test, reason=_joined(test.reason, unscored, loose))
    yield _whole(table, test, controls_below, average)
    p = p_of_differences(table.trainings, table.clusters, arguments)
    unsure = loose or (ONCE if table.is_share and len(table.trainings) < 2 else "")
    for distance in range(1, len(order)):  # neighbours first
        for i, j in zip(order, order[distance:], strict=False):
            share = {"share_of_resamples": Estimate(float(firm.above[i, j]))} if firm else {}
            found_p = Estimate(None if unsure else float(p[i, j]), n=table.n, reason=unsure)
            yield "above", {"system": names[i], "other": names[j]}, {**share, "p": found_p}


def _whole(table: Complete, test: Differ, controls_below: Estimate, average: Estimate) -> _Group:
    """Friedman's test, and means over systems."""
    tested = {
        name: Estimate(value, n=table.n, n_missing=table.n_missing, reason=test.reason)
        for name, value in (
            ("chi_square", test.chi_square), ("p", test.p),
            ("critical_difference", test.critical_difference),
        )
    }  # fmt: skip
    return "ranking", {}, {**tested, "controls_below": controls_below, "average": average}


def _scored(
    table: Complete, resampling: Resampling
) -> tuple[list[Estimate], Estimate, Firmness | None]:
    """Each system's score, the mean score of the real arguments, and how firm the places are."""
    arguments = table.of(arguments=True)
    score, k = table.score, len(table.systems)
    trained = table.trainings.mean(axis=1)
    if arguments:
        score = np.hstack([score, score[:, arguments].mean(axis=1, keepdims=True)])
        average = trained[:, arguments].mean(axis=1, keepdims=True)
        trained = np.hstack([trained, average])
    sample, found = _means(table, score, resampling, is_proportion=table.is_share)
    found = list(map(with_trainings, found, trained.T))
    average = found[k] if arguments else _NO_SCORE
    if table.clusters.n < FEWEST_CLUSTERS:
        return found[:k], average, None
    replicates = bootstrap_replicates(sample, _MEANS, resampling)
    away = resampled_trainings(trained, len(replicates), resampling.seed)
    replicates = (replicates + away)[:, :k]
    return found[:k], average, firmness(replicates, resampling.level)


def _places(
    table: Complete, firm: Firmness | None, resampling: Resampling, loose: str
) -> list[Estimate]:
    """The place of each system's score (1 best, ties share the mean place) and its range."""
    place = places(table.score.mean(axis=0)).tolist()
    n, missing, level = table.n, table.n_missing, resampling.level
    about = Estimate(None, n=n, n_missing=missing, reason=loose, level=level)
    if firm is None:
        return [replace(about, value=value) for value in place]
    method = f"range over {resampling.resamples} resamples, seed {resampling.seed}"
    limits = zip(place, firm.low.tolist(), firm.high.tolist(), strict=True)
    return [replace(about, value=v, low=low, high=high, method=method) for v, low, high in limits]


def _ranked(table: Complete, resampling: Resampling) -> tuple[list[Estimate], Estimate]:
    """The average ranks, and the share of control cases below all real arguments."""
    arguments, controls = table.of(arguments=True), table.of(arguments=False)
    level = levels(table.values)
    others = level[:, None, arguments]  # an argument among all of them, itself counted half
    among = (others > level[:, :, None]).sum(axis=2) + (others == level[:, :, None]).sum(axis=2) / 2
    own = np.array([0.5 if i in arguments else 1.0 for i in range(len(table.systems))])
    _, average_ranks = _means(table, among + own, resampling)
    if not arguments or not controls:
        return average_ranks, _NO_CONTROL if arguments else Estimate(None, reason=NO_ARGUMENT)
    lowest = level[:, arguments].min(axis=1, keepdims=True)
    below = (level[:, controls] < lowest).mean(axis=1, keepdims=True)
    _, (share,) = _means(table, below, resampling, is_proportion=True)
    return average_ranks, share


def _means(
    table: Complete, x: FloatArray, resampling: Resampling, *, is_proportion: bool = False
) -> tuple[ClusterCounts, list[Estimate]]:
    """The mean of each column of x (instances, m), and the clusters' sums that it rests on."""
    sample = ClusterCounts(sums_by_cluster(x, table.clusters))
    statistics = (mean_of(j, NO_INSTANCE, is_proportion=is_proportion) for j in range(x.shape[1]))
    n, missing = table.n, table.n_missing
    return sample, [
        cluster_bootstrap(sample, s, resampling, n=n, n_missing=missing) for s in statistics
    ]


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


# --- where every system has a score --------------------------------------------------------------


@dataclass(frozen=True)
class Complete:
    """The instances on which every system has a score, which a ranking rests on.

    `trainings` is (trainings, instances, systems), one of a judge, and `score` its mean; `values`
    is (instances, systems), `clusters` are those of the instances.
    `is_share` marks scores that are shares of right decisions. `unscored` names the systems that
    have no score at all and are left out.
    """

    systems: tuple[System, ...]
    trainings: FloatArray
    values: FloatArray
    clusters: Clusters
    n_missing: int
    is_share: bool
    unscored: tuple[str, ...]

    @cached_property
    def score(self) -> FloatArray:
        """The mean over the trainings (instances, systems)."""
        return np.asarray(self.trainings.mean(axis=0))

    @property
    def n(self) -> int:
        """How many instances there are, 0 without a system."""
        return len(self.values)

    def of(self, *, arguments: bool) -> list[int]:
        """The columns of the real arguments, or of the control cases."""
        return [i for i, s in enumerate(self.systems) if s.is_argument == arguments]


def complete(scores: RankerScores, systems: Sequence[System]) -> Complete:
    """The complete instances of those of `systems` that the ranker knows.

    The score is `correct` where there is one, else the value. Systems come sorted by their name, so
    that the order in which they are given cannot move a resample.
    """
    known = sorted((s for s in systems if s.name in scores.systems), key=lambda s: s.name)
    names = [s.name for s in known]
    values = columns(scores.values, scores, names)
    right = scores.trainings
    if right is None:
        right = (scores.values if scores.correct is None else scores.correct)[None]
    trainings = np.stack([columns(one, scores, names) for one in right])
    there = np.isfinite(values) & np.isfinite(trainings).all(axis=0)
    scored = np.asarray(there.any(axis=0))
    whole = there[:, scored].all(axis=1) & scored.any()
    codes = np.unique(scores.clusters[whole], return_inverse=True)[1]
    kept = scored.tolist()
    return Complete(
        tuple(s for s, yes in zip(known, kept, strict=True) if yes),
        trainings[:, whole][..., scored],
        values[whole][:, scored],
        Clusters(codes, int(codes.max(initial=-1)) + 1),
        scores.n_missing + int((~whole).sum()),
        scores.correct is not None,
        tuple(s.name for s, yes in zip(known, kept, strict=True) if not yes),
    )


# --- whether systems differ ----------------------------------------------------------------------


@dataclass(frozen=True)
class Differ:
    """Friedman's test with Nemenyi's groups. `letters` has one entry per system. `reason` says why
    there is no test, or that clusters are its blocks."""

    letters: Sequence[str]
    reason: str = ""
    chi_square: float | None = None
    p: float | None = None
    critical_difference: float | None = None


def differ(ranks: FloatArray, clusters: Clusters, level: float) -> Differ:
    """Friedman's test and Nemenyi's groups of ranks (instances, systems), 1 the best.

    Blocks must be independent. They are the instances, or, where a cluster holds
    several, the clusters: the systems' mean ranks in each are ranked anew. Where the test finds no
    difference at 1 - `level`, all systems are of one group. No test with fewer than 3 systems or 2
    blocks, or where all systems tie in every block.
    """
    n, k = ranks.shape
    clustered = clusters.n < n
    blocks = "clusters" if clustered else "instances"
    if k < 3 or clusters.n < 2:
        here = f"here are {k} and {clusters.n}"
        reason = f"Friedman's test needs 3 real arguments and 2 {blocks}; {here}"
        return Differ([""] * k, reason)
    found = friedman(levels(-means(sums_by_cluster(ranks, clusters))))
    if found.p is None:
        return Differ([""] * k, f"all systems tie in all {found.blocks} {blocks}")
    distance = nemenyi_critical_difference(k, found.blocks, level)
    apart = found.p <= 1 - level
    letters = groups(found.average_ranks, distance) if apart else ["a"] * k
    reason = (
        f"Friedman's test ranks the mean ranks in {clusters.n} clusters, "
        f"since the {n} instances are not independent"
    )
    return Differ(letters, reason if clustered else "", found.chi_square, found.p, distance)
