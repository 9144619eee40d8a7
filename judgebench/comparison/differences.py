"""Every statistic of one judge minus that of another, on the same answers and the same truth.

Rows of `difference` hold B minus A, rows of `value` what each of them reaches on these answers.
All that is resampled is drawn for both at once. Which of the two is A changes nothing but the
signs: what is measured is put into one order first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from judgebench.alignment.against_truth import truths
from judgebench.alignment.differences import (
    SAME_LABELS,
    Both,
    both_of,
    either_way,
    failure_policies,
    paired_bootstrap,
    score_differences,
    share_tests,
)
from judgebench.alignment.probabilities import TRUTH_STATISTICS
from judgebench.alignment.statistics import (
    SOFT_AGREEMENT,
    STATISTICS,
    Declared,
    by_key,
)
from judgebench.comparison.matching import SIDES, Pair
from judgebench.records import Estimate, Status, Verdict
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.calibration_error import (
    calibration_error_difference,
    cross_entropy,
    expected_calibration_error,
    mean_score,
    one_hot,
    squared_distance,
)
from judgebench.stats.confusion import SOFT_AGREEMENT as SOFT_FORMULA
from judgebench.stats.confusion import (
    soft_agreement_by_cluster,
)
from judgebench.stats.consensus import label_shares
from judgebench.stats.interrater import coincidences_by_cluster, krippendorff_alpha
from judgebench.stats.means import clustered_mean
from judgebench.stats.paired import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    moves_by_cluster,
)
from judgebench.stats.resample import (
    ClusterCounts,
    Resampling,
    cluster_bootstrap,
)
from judgebench.studies.study import Study

Sides = tuple[IntArray, IntArray]

ALPHA = Declared(
    "alpha", "Krippendorff's α", "agreement beyond chance of the judge and all annotators together"
)
NO_LABEL = Declared("no_label", "No label", "share of answers without a usable label", best="lower")
PROBABILITY_STATISTICS = {k: TRUTH_STATISTICS[k] for k in ("brier", "log_loss", "ece_debiased")}
# Of a judge, whatever the metric: of the verdict that counts, without earlier attempts.
RUN_STATISTICS = by_key(
    *(
        Declared(status.value, status.value.capitalize(), f"share of verdicts that are {status}",
                 best="lower")
        for status in Status if status is not Status.OK
    ),
    Declared("cost", "Cost (US$)", "mean cost of a verdict", best="lower"),
    Declared("latency", "Seconds", "mean time that a verdict took", best="lower"),
    Declared("tokens", "Tokens", "mean number of tokens of prompt and reply", best="lower"),
)  # fmt: skip
CHANGES = by_key(
    Declared("flipped", "Changed", "share of answers with two labels whose label differs"),
    Declared("more_severe", "More severe", "share of answers that B labels more severe",
             needs_severities=True),
    Declared("less_severe", "Less severe", "share of answers that B labels less severe",
             needs_severities=True),
    Declared("mean_shift", "Mean shift", "severity by B minus that by A", needs_severities=True),
)  # fmt: skip
DECLARED: Mapping[str, Declared] = {
    **STATISTICS,
    **by_key(ALPHA, SOFT_AGREEMENT, NO_LABEL),
    **PROBABILITY_STATISTICS,
    **RUN_STATISTICS,
}


@dataclass(frozen=True)
class Compared:
    """Two judges on one metric of a study of the answers that both were asked about."""

    study: Study
    pair: Pair
    metric: Metric

    def judged(self) -> Sides:
        """The labels of both (items,), -1 where there is none."""
        one, two = (self.study.judged(judge, self.metric) for judge in self.pair)
        return one, two

    def of_truth(self) -> Both:
        """Truth, the labels of both and the cluster of each item that any human rated."""
        return both_of(self.study, self.pair, self.metric)

    def rows(
        self, statistic: str, difference: Estimate, values: Sequence[Estimate],
        failures: str = "left_out",
    ) -> Iterator[Row]:  # fmt: skip
        """The difference, and what each of both reaches."""
        a, b = self.pair
        keys = {"who": a.name, "failures": failures}
        yield Row("difference", statistic, difference, b.name, self.metric.id, keys)
        for side, value in zip(SIDES, values, strict=True):
            yield Row("value", statistic, value, b.name, self.metric.id, {**keys, "run": side})


def differences(compared: Compared) -> Iterator[Row]:
    """Every statistic on one metric."""
    yield from _scores(compared)
    yield from _agreement(compared)
    yield from _probabilities(compared)
    yield from _without_label(compared)
    yield from _changes(compared)


# --- against the truth ----------------------------------------------------------------------------


def _scores(compared: Compared) -> Iterator[Row]:
    """The statistics of an alignment; three ways where either judge failed on some items."""
    study, metric = compared.study, compared.metric
    keys = {"who": compared.pair[0].name}
    for policy, both, missing in failure_policies(compared.of_truth(), metric):
        for declared, difference, values in score_differences(study, metric, both, missing):
            yield from compared.rows(declared.key, difference, values, policy)
        for key, p in share_tests(metric, both, study.resampling.seed):
            about = {**keys, "failures": policy, "of": key}
            yield Row("test", "permutation_p", p, compared.pair[1].name, metric.id, about)


def _agreement(compared: Compared) -> Iterator[Row]:
    """Krippendorff's alpha with all annotators, and soft agreement; items to which either gave no
    label have none of both."""
    study, metric = compared.study, compared.metric
    humans = study.humans[metric.id]
    k, made = len(metric.labels), humans.made.values
    one, two = (labels[humans.ratings.rows] for labels in compared.judged())
    both = (one >= 0) & (two >= 0)
    rated = (made >= 0).any(axis=1)
    n, missing = int((both & rated).sum()), int((~both & rated).sum())
    shares = label_shares(made, k)

    def coincidences(labels: IntArray) -> FloatArray:
        ratings = np.column_stack([made, np.where(both, labels, -1)])
        return coincidences_by_cluster(ratings, humans.clusters, k)

    def agreed(labels: IntArray) -> FloatArray:
        return soft_agreement_by_cluster(shares, np.where(both, labels, -1), humans.clusters)

    measured = (
        (ALPHA, krippendorff_alpha(metric.kind), coincidences),
        (SOFT_AGREEMENT, SOFT_FORMULA, agreed),
    )
    same = bool((one[both] == two[both]).all())
    for declared, statistic, count in measured:
        counts = [count(labels) for labels in (one, two)]
        values = [
            cluster_bootstrap(C, statistic, study.resampling, n=n, n_missing=missing)
            for C in counts
        ]
        make = partial(paired_bootstrap, statistic, study.resampling, missing)
        difference = replace(either_way(make, *counts), n=n)
        if same and difference.value is not None:
            difference = replace(difference, low=None, high=None, reason=SAME_LABELS)
        yield from compared.rows(declared.key, difference, values)


def _probabilities(compared: Compared) -> Iterator[Row]:
    """Against one truth per item, where both gave probabilities; nothing where neither did."""
    study, metric = compared.study, compared.metric
    given = [study.probabilities(judge, metric) for judge in compared.pair]
    if given[0] is None and given[1] is None:
        return
    rows, truth, clusters = truths(study, metric)
    if given[0] is None or given[1] is None:
        lacking = SIDES[0] if given[0] is None else SIDES[1]
        undefined = Estimate(None, reason=f"{lacking} gave no label probabilities")
        for key in PROBABILITY_STATISTICS:
            yield from compared.rows(key, undefined, (undefined, undefined))
        return
    q, shared = one_hot(truth, len(metric.labels)), (clusters, study.resampling)
    a, b = given[0][rows], given[1][rows]
    lacks = np.isnan(a + b).any(axis=1)
    a[lacks] = b[lacks] = np.nan
    for key, score in (("brier", squared_distance), ("log_loss", cross_entropy)):
        scores = [np.where(lacks, np.nan, score(p, q)) for p in (a, b)]
        make = partial(_mean_difference, *shared)
        values = [mean_score(x, *shared) for x in scores]
        yield from compared.rows(key, either_way(make, *scores), values)
    errors = [expected_calibration_error(p, q, *shared).debiased for p in (a, b)]
    difference = either_way(lambda x, y: calibration_error_difference((x, y), q, *shared), a, b)
    yield from compared.rows("ece_debiased", difference, errors)


def _mean_difference(
    clusters: Clusters, resampling: Resampling, a: FloatArray, b: FloatArray
) -> Estimate:
    return mean_score(b - a, clusters, resampling)


# --- without a truth ------------------------------------------------------------------------------


def _without_label(compared: Compared) -> Iterator[Row]:
    """The share of answers without a usable label: unread, refused, failed or abstained."""
    missing = [(labels < 0).astype(np.float64) for labels in compared.judged()]
    yield from compared.rows("no_label", *_shares(compared.study, missing))


def _shares(study: Study, x: Sequence[FloatArray]) -> tuple[Estimate, list[Estimate]]:
    """The difference of two shares (items,) of 0 and 1, and both."""
    clusters, none = study.clusters, "there is no answer"
    values = [
        clustered_mean(one, clusters.codes, none, study.resampling, is_proportion=True) for one in x
    ]
    difference = either_way(partial(_mean_difference, clusters, study.resampling), x[0], x[1])
    return difference, values


def _changes(compared: Compared) -> Iterator[Row]:
    """How many labels changed, and which way; of answers to which both gave one."""
    study, metric = compared.study, compared.metric
    one, two = compared.judged()
    both = (one >= 0) & (two >= 0)
    one, two, clusters = one[both], two[both], study.clusters[both]
    shift = np.zeros(len(one), dtype=np.int64)
    if metric.kind == "ordinal":
        severity = np.array(metric.severities)
        shift = severity[two] - severity[one]
    counts = ClusterCounts(moves_by_cluster((one != two).astype(np.int64), shift, clusters))
    keys = {"who": compared.pair[0].name}
    measured = zip(CHANGES.values(), (FLIPPED, MORE_SEVERE, LESS_SEVERE, MEAN_SHIFT), strict=True)
    for declared, statistic in measured:
        if not declared.fits(metric):
            continue
        found = cluster_bootstrap(
            counts, statistic, study.resampling, n=len(one), n_missing=int((~both).sum())
        )
        yield Row("change", declared.key, found, compared.pair[1].name, metric.id, keys)


def of_the_runs(study: Study, pair: Pair) -> Iterator[Row]:
    """Statuses, cost, time and tokens of the verdicts of both; those that neither has are left
    out."""
    said = [[judge.verdicts[i] for i in study.answers.item_ids()] for judge in pair]
    keys = {"who": pair[0].name, "failures": ""}
    for declared in RUN_STATISTICS.values():
        x = [_facts(declared.key, verdicts) for verdicts in said]
        counts_status = declared.key in set(Status)
        if not np.nansum(np.abs(x)):  # nobody failed so, or nothing is known
            continue
        if counts_status:
            difference, values = _shares(study, x)
        else:
            values = [mean_score(one, study.clusters, study.resampling) for one in x]
            make = partial(_mean_difference, study.clusters, study.resampling)
            difference = either_way(make, x[0], x[1])
            unknown = [SIDES[i] for i, one in enumerate(x) if np.isnan(one).all()]
            if unknown:
                reason = f"unknown for {unknown[0]}: no model was called, or it does not report it"
                difference = replace(difference, reason=reason)
        yield Row("difference", declared.key, difference, pair[1].name, "", keys)
        for side, value in zip(SIDES, values, strict=True):
            yield Row("value", declared.key, value, pair[1].name, "", {**keys, "run": side})


def _facts(key: str, verdicts: Sequence[Verdict]) -> FloatArray:
    """One number of each verdict, NaN where it is unknown."""

    def fact(verdict: Verdict) -> float:
        if key == "cost":
            return np.nan if verdict.cost is None else verdict.cost
        if key == "latency":  # of a verdict that was not made here it is 0
            return verdict.latency or np.nan
        if key == "tokens":
            used = verdict.usage.prompt_tokens, verdict.usage.completion_tokens
            return np.nan if None in used else float(sum(u or 0 for u in used))
        return float(verdict.status == key)

    return np.array([fact(verdict) for verdict in verdicts])


def labels_of(labels: IntArray, metric: Metric) -> list[str]:
    """The text of each label, empty where there is none."""
    return [metric.label_texts[i] if i >= 0 else "" for i in labels.tolist()]
