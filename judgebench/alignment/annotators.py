"""The humans among themselves: agreement, the human ceiling, the distribution of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from judgebench.alignment.against_truth import score_of
from judgebench.alignment.caveats import without
from judgebench.alignment.statistics import (
    AC,
    AC_MEANING,
    ALPHA,
    ALPHA_MEANING,
    MOST_ANNOTATORS_IN_PAIRS,
    STATISTICS,
    Declared,
    by_key,
    chance_corrected,
)
from judgebench.records import Estimate, is_slot
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.confusion import confusion_by_cluster
from judgebench.stats.interrater import (
    ICC_2_1,
    OBSERVED_AGREEMENT,
    agreement_counts_by_cluster,
    all_agree,
    at_least_two_agree,
    coincidences_by_cluster,
    fleiss_kappa,
    krippendorff_alpha,
    score_sums_by_cluster,
    vote_pairs_by_cluster,
)
from judgebench.stats.jackknife import ClusterCounts, Statistic, clustered_estimate
from judgebench.studies.study import Study


@dataclass(frozen=True)
class Votes:
    """The labels of some annotators on one metric; counts that several statistics use are kept."""

    study: Study
    metric: Metric
    values: IntArray  # (rated, annotators), -1 where there is no label
    kept: dict[Callable[..., Any], ClusterCounts] = field(default_factory=dict)

    @property
    def clusters(self) -> Clusters:
        return self.study.humans[self.metric.id].clusters

    def counts(self, by_cluster: Callable[..., Any]) -> ClusterCounts:
        """The counts of `by_cluster`."""
        if by_cluster not in self.kept:
            given = (self.values, self.clusters, len(self.metric.labels))
            self.kept[by_cluster] = ClusterCounts(by_cluster(*given))
        return self.kept[by_cluster]

    def estimate(self, counts: ClusterCounts, chosen: Statistic, used: Any) -> Estimate:
        """A statistic of the items `used` (rated,); all others are missing, also those that
        nobody rated."""
        found = clustered_estimate(counts, chosen, self.study.level, n=int(used.sum()))
        return self.of_items(found)

    def of_items(self, estimate: Estimate) -> Estimate:
        return replace(estimate, n_missing=self.study.n_about(self.metric) - estimate.n)

    @property
    def several(self) -> Any:
        """The items with two labels or more (rated,)."""
        return (self.values >= 0).sum(axis=1) >= 2


def _alpha(votes: Votes) -> Estimate:
    level: Literal["nominal", "ordinal"] = votes.metric.kind
    counts = votes.counts(coincidences_by_cluster)
    found = votes.estimate(counts, krippendorff_alpha(level), votes.several)
    return replace(found, method=f"{level} level of measurement; {found.method}")


def _beyond_chance(votes: Votes, chosen: Statistic) -> Estimate:
    """A coefficient; where overlap is partial, its method says which items each of the two terms
    rests on."""
    counts = votes.counts(agreement_counts_by_cluster)
    found = votes.estimate(counts, chosen, votes.several)
    alone = round(counts.total[-1].sum())  # items with one label
    if not alone or not found.method:
        return found
    rests = f"agreement on the {found.n:,} items with two labels or more, chance on all "
    return replace(found, method=f"{rests}{found.n + alone:,} items with a label; {found.method}")


def _share(votes: Votes, measured: Callable[..., Estimate]) -> Estimate:
    return votes.of_items(measured(votes.values, votes.clusters, votes.study.level))


def _observed(votes: Votes) -> Estimate:
    pairs = votes.counts(vote_pairs_by_cluster)
    n = round(pairs.total.sum())
    return _of_pairs(clustered_estimate(pairs, OBSERVED_AGREEMENT, votes.study.level, n=n))


def _intraclass(votes: Votes) -> Estimate:
    """Of people, since a slot is somebody else on every item; on the items that all rated."""
    values, there = votes.values, votes.values >= 0
    x = np.where(there, np.array(votes.metric.severities, dtype=np.float64)[values], np.nan)
    sums = ClusterCounts(score_sums_by_cluster(x, votes.clusters))
    found = votes.estimate(sums, ICC_2_1, there.all(axis=1))
    who = f"{values.shape[1]} annotators, on the items that all rated"
    return replace(found, method=f"{who}; {found.method}" if found.method else who)


def _pair_counts(values: IntArray, clusters: Clusters, k: int) -> FloatArray:
    return confusion_by_cluster(values[:, 0], values[:, 1], clusters, k)


def _of_pair(key: str) -> Declared:
    """A statistic of judges against the truth, of one annotator against another."""
    declared = STATISTICS[key]

    def formula(votes: Votes) -> Estimate:
        assert declared.formula is not None
        chosen = declared.formula(votes.metric)
        return votes.estimate(votes.counts(_pair_counts), chosen, votes.several)

    return replace(declared, formula=formula, shown=_PAIRS)


# `formula` makes an Estimate from Votes. `shown` says whose: of "all" annotators, of each of the
# "pairs" of people, or of the "people", the same throughout.
_ALL, _PAIRS = frozenset({"all"}), frozenset({"pairs"})
AGREEMENT_STATISTICS = by_key(
    Declared(
        "alpha", ALPHA, ALPHA_MEANING,
        _alpha, shown=_ALL | _PAIRS,
    ),
    Declared(
        "ac", AC, AC_MEANING,
        lambda votes: _beyond_chance(votes, chance_corrected(votes.metric)), shown=_ALL,
    ),
    Declared(
        "fleiss", "Fleiss' κ", "agreement beyond chance, unweighted",
        lambda votes: _beyond_chance(votes, fleiss_kappa()), shown=_ALL,
    ),
    Declared(
        "at_least_two", "≥ 2 agree", "share of items on which two annotators or more agree",
        lambda votes: _share(votes, at_least_two_agree), shown=_ALL,
    ),
    Declared(
        "all_agree", "All agree", "share of items on which all annotators agree",
        lambda votes: _share(votes, all_agree), shown=_ALL,
    ),
    Declared(
        "observed", "Observed agreement", "share of pairs of labels of one item that are equal",
        _observed, shown=_ALL,
    ),
    Declared(
        "icc2", "ICC(2,1)", "absolute agreement of single annotators, labels as numbers",
        _intraclass, needs_severities=True, shown=frozenset({"people"}),
    ),
    *map(_of_pair, ("kappa", "kappa_linear", "kappa_quadratic")),
)  # fmt: skip


def agreement(study: Study) -> Iterator[Row]:
    """The agreement of those who make the truth: all together, and each pair of named people."""
    for metric in study.rubric.metrics:
        made = study.humans[metric.id].made
        named = [a for a in made.annotators if not is_slot(a)]
        everybody, people = Votes(study, metric, made.values), made.of(named).values
        yield from _agreed(everybody, "all", "all")
        if len(named) >= 2:
            yield from _agreed(Votes(study, metric, people), "all", "people")
        if 2 <= len(named) <= MOST_ANNOTATORS_IN_PAIRS:
            for pair in combinations(named, 2):
                votes = Votes(study, metric, made.of(pair).values)
                yield from _agreed(votes, " ~ ".join(pair), "pairs")


def _agreed(votes: Votes, who: str, shown: str) -> Iterator[Row]:
    for key, declared in AGREEMENT_STATISTICS.items():
        if declared.formula and shown in declared.shown and declared.fits(votes.metric):
            estimate = declared.formula(votes)
            yield Row("agreement", key, estimate, "", votes.metric.id, {"who": who})


def ceiling(
    study: Study, metric: Metric, statistics: Iterable[Declared] = tuple(STATISTICS.values())
) -> Iterator[Row]:
    """Each annotator against the truth of the others in the bar: what a colleague would reach.
    Where these tie, an item is left out: the others of three tie far more often than the three who
    make the truth of a judge, and to settle it would make one of two careful people wrong.

    `all` are those in the bar, by every statistic; who is clearly worse than the others is not, and
    the method says so. Each annotator is measured by the usual statistics.
    """
    humans = study.humans[metric.id]
    if study.config.rule == "each":
        pairs = vote_pairs_by_cluster(humans.made.values, humans.clusters, len(metric.labels))
        for row in _ceiling_scores(study, "all", metric, pairs, 0, statistics):
            yield replace(row, estimate=_of_pairs(row.estimate))
        return
    counts = {a: _against_others(study, metric, a) for a in humans.ratings.annotators}
    if makers := [counts[a] for a in humans.in_bar()]:
        pooled, missing = np.sum([c for c, _ in makers], axis=0), sum(m for _, m in makers)
        for row in _ceiling_scores(study, "all", metric, pooled, missing, statistics):
            method = "; ".join(filter(None, (without(humans), row.estimate.method)))
            yield replace(row, estimate=replace(row.estimate, method=method))
    for annotator, (own, missing) in counts.items():
        if not is_slot(annotator):
            yield from _ceiling_scores(study, annotator, metric, own, missing, statistics)


def _against_others(study: Study, metric: Metric, annotator: str) -> tuple[FloatArray, int]:
    """Confusion counts of one annotator, and how many of their labels nobody else's can check."""
    humans = study.humans[metric.id]
    makers = humans.trusted()
    truth = humans.truth_without(annotator, makers, ties=annotator not in makers)
    own = humans.ratings.of([annotator]).values[:, 0]
    counts = confusion_by_cluster(truth, own, humans.clusters, len(metric.labels))
    return counts, int(((own >= 0) & (truth < 0)).sum())


def _ceiling_scores(
    study: Study, annotator: str, metric: Metric, counts: FloatArray, missing: int,
    statistics: Iterable[Declared],
) -> Iterator[Row]:  # fmt: skip
    shared = ClusterCounts(counts)
    for declared in statistics:
        is_usual = "ceiling" in declared.shown or annotator == "all"
        if not is_usual or not declared.fits(metric):
            continue
        estimate = score_of(study, declared, metric, shared, missing)
        if not counts.any():
            estimate = replace(
                estimate, reason="no item was labelled by this annotator and another"
            )
        yield Row("ceiling", declared.key, estimate, "", metric.id, {"who": annotator})


def distribution(study: Study, metric: Metric) -> Iterator[Row]:
    """The truth's labels (`each`: all labels)."""
    made = study.humans[metric.id].made
    truth = made.values if study.config.rule == "each" else made.truth(metric, study.config)
    yield from _counts("distribution", metric, truth, {})


def annotator_labels(study: Study, metric: Metric) -> Iterator[Row]:
    """The count of each person's labels."""
    people = study.humans[metric.id].people
    for who, own in zip(people.annotators, people.values.T, strict=True):
        yield from _counts("annotator_labels", metric, own, {"who": who})


def _counts(analysis: str, metric: Metric, labels: IntArray, keys: dict[str, str]) -> Iterator[Row]:
    """The counts of each label."""
    counts = np.bincount(labels[labels >= 0], minlength=len(metric.labels)).tolist()
    for text, count in zip(metric.label_texts, counts, strict=True):
        estimate = Estimate(count, n=sum(counts))
        yield Row(analysis, "count", estimate, "", metric.id, {**keys, "human_label": text})


def _of_pairs(estimate: Estimate) -> Estimate:
    return replace(estimate, method=f"n counts pairs of labels; {estimate.method}")
