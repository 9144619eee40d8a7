"""The humans among themselves: agreement, the human ceiling, the distribution of labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, repeat
from typing import Literal

import numpy as np

from judgebench.align.judges import statistic
from judgebench.align.result import AgreementScore, CeilingScore, LabelShare
from judgebench.records import Estimate, is_slot
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import FloatArray, IntArray
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
from judgebench.stats.resample import ClusterCounts, cluster_bootstrap
from judgebench.study.study import Study
from judgebench.study.truth import BlankPolicy, Labels, settle

# Beyond this many annotators a table of pairs is no longer read by anybody.
MOST_ANNOTATORS_IN_PAIRS = 12


def agreement(study: Study, rubric: Rubric) -> Iterator[AgreementScore]:
    """How far those who make the truth agree: all together, and each pair of named people."""
    for metric in rubric.metrics:
        made = study.humans[metric.id].made
        yield from _agreement_of(study, metric, made.values, "all")
        named = [a for a in made.annotators if not is_slot(a)]
        if len(named) >= 2 and metric.kind == "ordinal":
            yield from _intraclass(study, metric, made.of(named).values)
        if 2 <= len(named) <= MOST_ANNOTATORS_IN_PAIRS:
            for pair in combinations(named, 2):
                values = made.of(pair).values
                yield _alpha(study, metric, values, " ~ ".join(pair))
    yield from _pooled_agreement(study, rubric)


def _agreement_of(
    study: Study, metric: Metric, values: IntArray, who: str
) -> Iterator[AgreementScore]:
    yield _alpha(study, metric, values, who)
    humans = study.humans[metric.id]
    items, shared = len(study.answers), (values, humans.clusters)
    yield from _chance_corrected(study, metric, values, who)
    two = _of_items(at_least_two_agree(*shared, study.resampling), items)
    yield AgreementScore(metric.id, "at_least_two", who, two)
    every = _of_items(all_agree(*shared, study.resampling), items)
    yield AgreementScore(metric.id, "all_agree", who, every)
    pairs = vote_pairs_by_cluster(*shared, len(metric.labels))
    n = round(pairs.sum())
    observed = cluster_bootstrap(pairs, OBSERVED_AGREEMENT, study.resampling, n=n)
    yield AgreementScore(metric.id, "observed", who, _of_pairs(observed))


def _alpha(study: Study, metric: Metric, values: IntArray, who: str) -> AgreementScore:
    level: Literal["nominal", "ordinal"] = metric.kind
    humans = study.humans[metric.id]
    shared = (values, humans.clusters)
    counts = coincidences_by_cluster(*shared, len(metric.labels))
    usable = int(((values >= 0).sum(axis=1) >= 2).sum())
    estimate = cluster_bootstrap(
        counts, krippendorff_alpha(level), study.resampling,
        n=usable, n_missing=len(study.answers) - usable,
    )  # fmt: skip
    method = f"{level} level of measurement; {estimate.method}"
    return AgreementScore(metric.id, "alpha", who, replace(estimate, method=method))


def _chance_corrected(
    study: Study, metric: Metric, values: IntArray, who: str
) -> Iterator[AgreementScore]:
    humans = study.humans[metric.id]
    shared = (values, humans.clusters)
    counts = ClusterCounts(agreement_counts_by_cluster(*shared, len(metric.labels)))
    usable = int(((values >= 0).sum(axis=1) >= 2).sum())
    for chosen in (statistic("ac", metric), fleiss_kappa()):
        estimate = cluster_bootstrap(counts, chosen, study.resampling, n=usable)
        found = _of_items(estimate, len(study.answers))
        yield AgreementScore(metric.id, chosen.name, who, found)


def _intraclass(study: Study, metric: Metric, values: IntArray) -> Iterator[AgreementScore]:
    """Of people, since a slot is somebody else on every item; on the items that all rated."""
    humans = study.humans[metric.id]
    shared = (values, humans.clusters)
    sums = ClusterCounts(severity_sums_by_cluster(*shared, len(metric.labels), metric.severities))
    usable = int((values >= 0).all(axis=1).sum())
    who = f"{values.shape[1]} annotators, on the items that all rated"
    for chosen in (ICC_1, ICC_2_1, ICC_2_K):
        estimate = cluster_bootstrap(sums, chosen, study.resampling, n=usable)
        method = f"{who}; {estimate.method}" if estimate.method else who
        found = _of_items(replace(estimate, method=method), len(study.answers))
        yield AgreementScore(metric.id, chosen.name, "all", found)


def _pooled_agreement(study: Study, rubric: Rubric) -> Iterator[AgreementScore]:
    """Shares over all metrics at once: one entry per item and metric."""
    made = [study.humans[m.id].made for m in rubric.metrics]
    values = [ratings.values for ratings in made]
    width = max(v.shape[1] for v in values)
    padded = [np.pad(v, ((0, 0), (0, width - v.shape[1])), constant_values=-1) for v in values]
    clusters = study.clusters[np.concatenate([ratings.rows for ratings in made])].occurring()
    shared = (np.concatenate(padded), clusters, study.resampling)
    cells = len(study.answers) * len(made)
    two, every = at_least_two_agree(*shared), all_agree(*shared)
    yield AgreementScore("all", "at_least_two", "all", _of_items(two, cells))
    yield AgreementScore("all", "all_agree", "all", _of_items(every, cells))


def _of_items(estimate: Estimate, items: int) -> Estimate:
    """The estimate with all items missing that it does not use, also those that nobody rated."""
    return replace(estimate, n_missing=items - estimate.n)


def ceiling(study: Study, metric: Metric) -> Iterator[CeilingScore]:
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


def _ceiling_of_pairs(study: Study, metric: Metric) -> Iterator[CeilingScore]:
    humans = study.humans[metric.id]
    shared = (humans.made.values, humans.clusters)
    pairs = vote_pairs_by_cluster(*shared, len(metric.labels))
    for score in _ceiling_scores(study, "all", metric, pairs, 0):
        yield replace(score, estimate=_of_pairs(score.estimate))


def _ceiling_scores(
    study: Study, annotator: str, metric: Metric, counts: FloatArray, missing: int
) -> Iterator[CeilingScore]:
    shared = ClusterCounts(counts)
    names = ["accuracy", "kappa"] + (["weighted_kappa"] if metric.kind == "ordinal" else [])
    for name in names:
        estimate = cluster_bootstrap(
            shared, statistic(name, metric), study.resampling,
            n=round(counts.sum()), n_missing=missing,
        )  # fmt: skip
        if not counts.any():
            reason = "no item was labelled by this annotator and another"
            estimate = replace(estimate, reason=reason)
        yield CeilingScore(annotator, metric.id, name, estimate)


def distribution(study: Study, metric: Metric) -> Iterator[LabelShare]:
    """The truth's labels (`each`: all labels) under both policies for blank cells."""
    made = study.humans[metric.id].made
    policies: tuple[BlankPolicy, ...] = ("missing", "least_severe")
    for policy in policies if metric.kind == "ordinal" else policies[:1]:
        values = made.with_blanks(policy)
        truth = values.ravel() if study.config.rule == "each" else _settled(study, values, metric)
        counts = np.bincount(truth[truth >= 0], minlength=len(metric.labels))
        severities = metric.severities if metric.kind == "ordinal" else repeat(None)
        for text, severity, count in zip(metric.label_texts, severities, counts, strict=False):
            yield LabelShare(metric.id, text, severity, policy, int(count), int(counts.sum()))


def _settled(study: Study, values: IntArray, metric: Metric) -> Labels:
    return settle(values, metric, study.config)


def _of_pairs(estimate: Estimate) -> Estimate:
    return replace(estimate, method=f"n counts pairs of labels; {estimate.method}")
