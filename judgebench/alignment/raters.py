"""The humans among themselves: agreement, the human ceiling, the distribution of labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any, Literal

import numpy as np

from judgebench.alignment.judge_scores import (
    AC,
    AC_MEANING,
    ALPHA,
    ALPHA_MEANING,
    MOST_ANNOTATORS_IN_PAIRS,
    NOMINAL,
    STATISTICS,
    Declared,
    FailurePolicy,
    by_key,
    chance_corrected,
    paired_labels,
    score_of,
)
from judgebench.alignment.notes import without
from judgebench.records import Estimate, Row, group_by_key, is_slot
from judgebench.rubric import Metric
from judgebench.stats.agreement import (
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
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.classification import ACCURACY, confusion_by_cluster, fill_failures, of_label
from judgebench.stats.intervals import ClusterCounts, Statistic, clustered_estimate
from judgebench.stats.paired_tests import SIGNS_FLIPPED, difference_of, holm, mcnemar_clustered
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.text import counted


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


TESTED = ("accuracy", "severe_recall")
NEVER_APART = "on no question is one of them right more often than the other"
SAME_LABELS = "both gave the same labels on all these answers"


@dataclass(frozen=True)
class PairedLabels:
    """Truth, the labels of two judges and the cluster of each item that any human rated (items,);
    -1 where there is no truth or label."""

    truth: IntArray
    judged: tuple[IntArray, IntArray]
    clusters: Clusters


def both_of(
    study: Study, pair: tuple[JudgeVerdicts, JudgeVerdicts], metric: Metric
) -> PairedLabels:
    """Two judges of a study; the truth is -1 where either was not asked."""
    truth, one, clusters = paired_labels(study, pair[0], metric)
    other_truth, other, _ = paired_labels(study, pair[1], metric)
    return PairedLabels(np.minimum(truth, other_truth), (one, other), clusters)


def formula_of(declared: Declared, metric: Metric) -> Statistic:
    """Of confusion counts; that of severe recall too, whose interval is exact elsewhere."""
    return (
        declared.formula(metric) if declared.formula else of_label("recall", len(metric.labels) - 1)
    )


def failure_policies(
    found: PairedLabels, metric: Metric
) -> Iterator[tuple[FailurePolicy, PairedLabels, int]]:
    """The labels of both under each way to count what is missing, and how many truths are left
    out; three ways where either judge failed on some items.

    Left out are items to which either gave no label, so that both are scored on the same. Else a
    missing label of either counts as in an alignment: as the worst label, or as the truth.
    """
    truth, (one, two) = found.truth, found.judged
    both = (one >= 0) & (two >= 0)
    failures = int(((truth >= 0) & ~both).sum())
    kept = np.where(both, one, -1), np.where(both, two, -1)
    yield "left_out", replace(found, judged=kept), failures
    policies: tuple[FailurePolicy, ...] = ("worst", "best")
    for policy in policies if failures else ():
        k, ordinal = len(metric.labels), metric.kind == "ordinal"
        filled = [fill_failures(truth, labels, policy, k, ordinal) for labels in (one, two)]
        yield policy, replace(found, judged=(filled[0], filled[1])), 0


def score_differences(
    study: Study, metric: Metric, both: PairedLabels, missing: int,
    statistics: Collection[str] = STATISTICS.keys(),
) -> Iterator[tuple[Declared, Estimate, list[Estimate]]]:  # fmt: skip
    """Each of these statistics: the second minus the first, and what each of both reaches."""
    k, truth = len(metric.labels), both.truth
    shared = [confusion_by_cluster(truth, labels, both.clusters, k) for labels in both.judged]
    same = bool((both.judged[0] == both.judged[1])[truth >= 0].all())
    for declared in (STATISTICS[key] for key in statistics):
        if declared.of_severe and metric.severe == "none":
            continue
        values = [score_of(study, declared, metric, ClusterCounts(C), missing) for C in shared]
        if values[0].reason == NOMINAL:
            difference = values[0]
        else:
            formula = formula_of(declared, metric)
            difference = paired_difference(formula, study.level, missing, *shared)
        if same and difference.value is not None:
            difference = replace(difference, low=None, high=None, method="", reason=SAME_LABELS)
        yield declared, difference, values


def paired_difference(
    statistic: Statistic, level: float, missing: int, a: FloatArray, b: FloatArray
) -> Estimate:
    """The difference of a statistic of two counts (clusters, ...) of the same items."""
    counts, items = np.stack([a, b], axis=-1), statistic.items
    n = round(float(a.sum() if items is None else items(a.sum(axis=0))))
    return clustered_estimate(counts, difference_of(statistic), level, n=n, n_missing=missing)


def right_alone(both: PairedLabels) -> FloatArray:
    """1 where only the second judge is right, -1 where only the first is (items,); NaN where either
    gave no label."""
    one, two = (np.where(labels < 0, np.nan, labels == both.truth) for labels in both.judged)
    return np.asarray(two - one)


def share_tests(metric: Metric, both: PairedLabels) -> Iterator[tuple[str, Estimate]]:
    """The permutation test of accuracy, and of the most severe items: whole clusters of answers
    change places between the two."""
    truth, of_item = both.truth, right_alone(both)
    for statistic in TESTED[: 2 if metric.has_severe else 1]:
        used = truth >= 0 if statistic == "accuracy" else truth == len(metric.labels) - 1
        apart = of_item[used]
        p, missing = mcnemar_clustered(apart, both.clusters[used]), int(np.isnan(apart).sum())
        reason = "" if p is not None else NEVER_APART
        n = len(apart) - missing
        yield statistic, Estimate(p, None, None, SIGNS_FLIPPED, n, missing, reason)


def corrected(rows: Sequence[Row], family: Sequence[str]) -> Iterator[Row]:
    """Holm's correction of the p values among the rows, over those with the same values of the keys
    `family`; the method names these, and how many tests there are."""
    families = group_by_key(
        (tuple(row[key] for key in family), row)
        for row in rows
        if row.statistic in ("p", "permutation_p")
    )
    for values, tests in families.items():
        p_values = [row.estimate.value for row in tests]
        n_tests = counted(sum(p is not None for p in p_values), "test")
        which = ", ".join(f"{key} {x}" for key, x in zip(family, values, strict=True) if x)
        for row, p in zip(tests, holm(p_values), strict=True):
            method = f"Holm's correction over {n_tests} ({which}); {row.estimate.method}"
            estimate = replace(row.estimate, value=p, method=method)
            yield replace(row, statistic="p_holm", estimate=estimate)


@dataclass(frozen=True)
class Outcomes:
    """Which of any two judges of a study is right on one metric, one entry per truth (rule `each`:
    per human label)."""

    study: Study
    metric: Metric

    def apart(self, first: str, second: str) -> tuple[FloatArray, Clusters]:
        """1 where only the first is right, -1 where only the second is, NaN where either gave no
        label, of what both were asked, and its clusters."""
        of = {judge.name: judge for judge in self.study.judges}
        both = both_of(self.study, (of[second], of[first]), self.metric)
        known = both.truth >= 0
        return right_alone(both)[known], both.clusters[known]


def comparisons(study: Study, metric: Metric) -> Iterator[Row]:
    """Each two real judges, and each real judge with each control, on one metric: the accuracy of
    the first minus that of the second, with two p values.

    Only items to which both gave a label count. The permutation flips the sign of whole clusters;
    `p_holm` is that one, corrected over all these pairs.
    """
    pairs = [*combinations(study.real_judges, 2), *product(study.real_judges, study.controls)]
    rows = []
    for first, second in pairs:
        both = both_of(study, (second, first), metric)
        _, labelled, missing = next(failure_policies(both, metric))
        difference = accuracy_difference(labelled, metric, study.level, missing)
        _, test = next(share_tests(metric, labelled))
        if difference.value is None:
            test = replace(test, reason=difference.reason)
        for statistic, estimate in (("accuracy_difference", difference), ("permutation_p", test)):
            keys = {"who": second.name}
            rows.append(Row("comparison", statistic, estimate, first.name, metric.id, keys))
    yield from (*rows, *corrected(rows, ("metric",)))


def accuracy_difference(both: PairedLabels, metric: Metric, level: float, missing: int) -> Estimate:
    """The accuracy of the second of two judges minus that of the first."""
    k = len(metric.labels)
    counts = [confusion_by_cluster(both.truth, x, both.clusters, k) for x in both.judged]
    return paired_difference(ACCURACY, level, missing, *counts)
