"""The humans among themselves: agreement, the human ceiling, the distribution of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np

from judgebench.align.statistics import (
    AC,
    AC_MEANING,
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
    ICC_1,
    ICC_2_1,
    ICC_2_K,
    OBSERVED_AGREEMENT,
    agreement_counts_by_cluster,
    all_agree,
    at_least_two_agree,
    coincidences_by_cluster,
    fleiss_kappa,
    krippendorff_alpha,
    severity_sums_by_cluster,
    vote_pairs_by_cluster,
)
from judgebench.stats.resample import ClusterCounts, Statistic, cluster_bootstrap
from judgebench.study.study import Study
from judgebench.study.truth import BlankPolicy, settle

Votes = IntArray  # (rated, annotators), -1 where there is no label


def _chance_corrected(
    counts: Callable[..., FloatArray | IntArray], chosen: Callable[[Metric], Statistic]
) -> Callable[[Study, Metric, Votes], Estimate]:
    def measured(study: Study, metric: Metric, values: Votes) -> Estimate:
        n = int(((values >= 0).sum(axis=1) >= 2).sum())
        sums = counts(*_votes(study, metric, values))
        return _of_items(cluster_bootstrap(sums, chosen(metric), study.resampling, n=n), study)

    return measured


def _alpha(study: Study, metric: Metric, values: Votes) -> Estimate:
    level: Literal["nominal", "ordinal"] = metric.kind
    chosen = krippendorff_alpha(level)
    measured = _chance_corrected(coincidences_by_cluster, lambda metric: chosen)
    found = measured(study, metric, values)
    return replace(found, method=f"{level} level of measurement; {found.method}")


def _share(chosen: Callable[..., Estimate]) -> Callable[[Study, Metric, Votes], Estimate]:
    def measured(study: Study, metric: Metric, values: Votes) -> Estimate:
        humans = study.humans[metric.id]
        shared = (values, humans.clusters, study.resampling)
        return _of_items(chosen(*shared), study)

    return measured


def _observed(study: Study, metric: Metric, values: Votes) -> Estimate:
    pairs = vote_pairs_by_cluster(*_votes(study, metric, values))
    found = cluster_bootstrap(pairs, OBSERVED_AGREEMENT, study.resampling, n=round(pairs.sum()))
    return _of_pairs(found)


def _intraclass(chosen: Statistic) -> Callable[[Study, Metric, Votes], Estimate]:
    """Of people, since a slot is somebody else on every item; on the items that all rated."""

    def measured(study: Study, metric: Metric, values: Votes) -> Estimate:
        sums = severity_sums_by_cluster(*_votes(study, metric, values), metric.severities)
        n = int((values >= 0).all(axis=1).sum())
        found = cluster_bootstrap(sums, chosen, study.resampling, n=n)
        who = f"{values.shape[1]} annotators, on the items that all rated"
        method = f"{who}; {found.method}" if found.method else who
        return _of_items(replace(found, method=method), study)

    return measured


def _votes(study: Study, metric: Metric, values: Votes) -> tuple[Votes, Clusters, int]:
    humans = study.humans[metric.id]
    return values, humans.clusters, len(metric.labels)


def _of_items(estimate: Estimate, study: Study) -> Estimate:
    """The estimate with all items missing that it does not use, also those that nobody rated."""
    return replace(estimate, n_missing=len(study.answers) - estimate.n)


# `formula` makes an Estimate from the study, the metric and the votes. Those that are shown of
# "pairs" are measured for each pair of people, too; those of "people" need the same people
# throughout and severities.
AGREEMENT_STATISTICS = by_key(
    Declared(
        "alpha", "Krippendorff's α", "agreement beyond chance, any number of annotators",
        _alpha, shown=frozenset({"pairs"}),
    ),
    Declared(
        "ac", AC, AC_MEANING, _chance_corrected(agreement_counts_by_cluster, chance_corrected)
    ),
    Declared(
        "fleiss", "Fleiss' κ", "agreement beyond chance, unweighted",
        _chance_corrected(agreement_counts_by_cluster, lambda metric: fleiss_kappa()),
    ),
    Declared(
        "at_least_two", "≥ 2 agree", "share of items on which two annotators or more agree",
        _share(at_least_two_agree),
    ),
    Declared(
        "all_agree", "All agree", "share of items on which all annotators agree",
        _share(all_agree),
    ),
    Declared(
        "observed", "Observed agreement", "share of pairs of labels of one item that are equal",
        _observed,
    ),
    Declared(
        "icc1", "ICC(1)", "share of the variance of single severities that lies between items",
        _intraclass(ICC_1), needs_severities=True, shown=frozenset({"people"}),
    ),
    Declared(
        "icc2", "ICC(2,1)", "absolute agreement of single annotators' severities",
        _intraclass(ICC_2_1), needs_severities=True, shown=frozenset({"people"}),
    ),
    Declared(
        "icc2k", "ICC(2,k)", "absolute agreement of the mean severity of all annotators",
        _intraclass(ICC_2_K), needs_severities=True, shown=frozenset({"people"}),
    ),
)  # fmt: skip


def agreement(study: Study) -> Iterator[Row]:
    """How far those who make the truth agree: all together, and each pair of named people."""
    for metric in study.rubric.metrics:
        made = study.humans[metric.id].made
        named = [a for a in made.annotators if not is_slot(a)]
        for declared in AGREEMENT_STATISTICS.values():
            if "people" not in declared.shown:
                yield _agreed(study, metric, declared, made.values, "all")
            elif len(named) >= 2 and declared.fits(metric):
                yield _agreed(study, metric, declared, made.of(named).values, "all")
        if 2 <= len(named) <= MOST_ANNOTATORS_IN_PAIRS:
            for pair in combinations(named, 2):
                for declared in AGREEMENT_STATISTICS.values():
                    if "pairs" in declared.shown:
                        votes = made.of(pair).values
                        yield _agreed(study, metric, declared, votes, " ~ ".join(pair))
    yield from _pooled_agreement(study)


def _agreed(study: Study, metric: Metric, declared: Declared, votes: Votes, who: str) -> Row:
    assert declared.formula is not None
    estimate = declared.formula(study, metric, votes)
    return Row("agreement", declared.key, estimate, "", metric.id, {"who": who})


def _pooled_agreement(study: Study) -> Iterator[Row]:
    """Shares over all metrics at once: one entry per item and metric."""
    made = [study.humans[m.id].made for m in study.rubric.metrics]
    values = [ratings.values for ratings in made]
    width = max(v.shape[1] for v in values)
    padded = [np.pad(v, ((0, 0), (0, width - v.shape[1])), constant_values=-1) for v in values]
    clusters = study.clusters[np.concatenate([ratings.rows for ratings in made])].occurring()
    shared = (np.concatenate(padded), clusters, study.resampling)
    cells = len(study.answers) * len(made)
    for key, share in (("at_least_two", at_least_two_agree), ("all_agree", all_agree)):
        estimate = share(*shared)
        estimate = replace(estimate, n_missing=cells - estimate.n)
        yield Row("agreement", key, estimate, "", "all", {"who": "all"})


def ceiling(study: Study, metric: Metric) -> Iterator[Row]:
    """Each annotator against the truth of the others: what a perfect colleague would reach."""
    humans = study.humans[metric.id]
    if study.config.rule == "each":
        yield from _ceiling_of_pairs(study, metric)
        return
    counts = {a: _against_others(study, metric, a) for a in humans.ratings.annotators}
    makers = [counts[a] for a in humans.makers]
    if makers:
        pooled = np.sum([c for c, _ in makers], axis=0)
        yield from _ceiling_scores(study, "all", metric, pooled, sum(m for _, m in makers))
    for annotator, (own, missing) in counts.items():
        if not is_slot(annotator):
            yield from _ceiling_scores(study, annotator, metric, own, missing)


def _against_others(study: Study, metric: Metric, annotator: str) -> tuple[FloatArray, int]:
    """Confusion counts of one annotator, and how many of their labels nobody else's can check."""
    humans = study.humans[metric.id]
    truth = humans.truth_without(annotator)
    own = humans.ratings.of([annotator]).values[:, 0]
    k = len(metric.labels)
    counts = confusion_by_cluster(truth, own, humans.clusters, k)
    return counts, int(((own >= 0) & (truth < 0)).sum())


def _ceiling_of_pairs(study: Study, metric: Metric) -> Iterator[Row]:
    pairs = vote_pairs_by_cluster(*_votes(study, metric, study.humans[metric.id].made.values))
    for row in _ceiling_scores(study, "all", metric, pairs, 0):
        yield replace(row, estimate=_of_pairs(row.estimate))


def _ceiling_scores(
    study: Study, annotator: str, metric: Metric, counts: FloatArray, missing: int
) -> Iterator[Row]:
    shared = ClusterCounts(counts)
    for declared in STATISTICS.values():
        if "ceiling" not in declared.shown or declared.formula is None or not declared.fits(metric):
            continue
        estimate = cluster_bootstrap(
            shared, declared.formula(metric), study.resampling,
            n=round(counts.sum()), n_missing=missing,
        )  # fmt: skip
        if not counts.any():
            reason = "no item was labelled by this annotator and another"
            estimate = replace(estimate, reason=reason)
        yield Row("ceiling", declared.key, estimate, "", metric.id, {"who": annotator})


def distribution(study: Study, metric: Metric) -> Iterator[Row]:
    """The truth's labels (`each`: all labels) under both policies for blank cells."""
    made = study.humans[metric.id].made
    policies: tuple[BlankPolicy, ...] = ("missing", "least_severe")
    for policy in policies if metric.kind == "ordinal" else policies[:1]:
        values = made.with_blanks(policy)
        each = study.config.rule == "each"
        truth = values.ravel() if each else settle(values, metric, study.config)
        counts = np.bincount(truth[truth >= 0], minlength=len(metric.labels))
        for text, count in zip(metric.label_texts, counts.tolist(), strict=False):
            estimate = Estimate(count, n=int(counts.sum()))
            keys = {"human_label": text, "blanks": policy}
            yield Row("distribution", "count", estimate, "", metric.id, keys)


def _of_pairs(estimate: Estimate) -> Estimate:
    return replace(estimate, method=f"n counts pairs of labels; {estimate.method}")
