"""What no statistic can be computed of is refused, and the message names what does not fit."""

from collections.abc import Callable

import numpy as np
import pytest

from judgebench.stats.alternative_test import DuelTerms, alternative_annotator_test
from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import (
    confusion_by_cluster,
    fill_failures,
    mean_severity_error,
)
from judgebench.stats.consensus import dawid_skene, majority_label
from judgebench.stats.interrater import (
    agreement_counts_by_cluster,
    coincidences_by_cluster,
    gwet_ac,
    vote_pairs_by_cluster,
)
from judgebench.stats.intervals import clopper_pearson, items_for_half_width, look_levels
from judgebench.stats.means import moments_by_cluster, sums_by_cluster
from judgebench.stats.paired import (
    moves_by_cluster,
)
from judgebench.stats.partly_labelled import Sample
from judgebench.stats.ranks import friedman
from judgebench.stats.recalibration import best_cuts, rising
from judgebench.stats.thresholds import triage_points


def of(*codes: int) -> Clusters:
    return Clusters(np.array(codes), 2)


ZERO, PAIR = np.zeros(1, dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
REFUSED: list[tuple[str, Callable[..., object], tuple[object, ...]]] = [
    ("labels must lie in", dawid_skene, (np.array([[0, 3]]), 3)),
    ("labels must lie in", majority_label, (np.array([[0, 2]]), 2, "none")),
    ("must lie in", confusion_by_cluster, (ZERO + 2, ZERO, of(0), 2)),
    ("must lie in", confusion_by_cluster, (ZERO, ZERO - 2, of(0), 2)),
    (r"clusters must lie in 0\.\.1", of, (0, 2)),
    ("clusters must lie in", of, (-1,)),
    ("same shape", confusion_by_cluster, (np.array([0, 1]), ZERO, of(0, 0), 2)),
    ("3 labels need 3 severities", mean_severity_error([0, 1]).formula, (np.ones((3, 3)),)),
    ("two labels or more", fill_failures, (ZERO, ZERO - 1, "worst", 1, True)),
    ("4 labels need 4 severities", gwet_ac([0, 1]).formula, (np.ones((4, 4)),)),
    *(
        case
        for count in (
            agreement_counts_by_cluster, coincidences_by_cluster, vote_pairs_by_cluster,
                )
        for case in (
            ("labels must lie in", count, (PAIR + 4, of(0), 4)),
            ("same length", count, (PAIR, of(0, 0), 4)),
        )
    ),
    ("successes must lie in", clopper_pearson, (4, 3)),
    ("successes must lie in", clopper_pearson, (-1, 3)),
    ("needs 0 <= p <= 1", items_for_half_width, (1.1, 0.1)),
    ("needs 0 <= p <= 1", items_for_half_width, (0.5, 0.0)),
    *(("shares must rise", look_levels, ([*x],)) for x in ((0, 1), (0.5, 0.5), (0.5, 1.2))),
    ("shares must rise", look_levels, ([float("nan")],)),
    ("same length", sums_by_cluster, (np.zeros((2, 1)), of(0))),
    ("same length", moments_by_cluster, (np.zeros((2, 2), dtype=int), of(0))),
    ("flipped", moves_by_cluster, (ZERO + 2, ZERO, of(0))),
    ("same shape", moves_by_cluster, (ZERO, PAIR[0], of(0, 0))),
    ("same shape", Sample, (np.zeros(3), of(0, 1))),
    ("3 judges and 2 blocks", friedman, (np.zeros((5, 2)),)),
    ("missing", friedman, (np.array([[1.0, 2, 3], [1, np.nan, 3]]),)),
    (r"label must lie in 0\.\.1; found 0\.\.2", best_cuts, (np.arange(3.0), np.arange(3), 2)),
    (r"label must lie in 0\.\.1; found 0\.\.2", rising, (np.arange(3.0), np.arange(3), 2)),
    ("severe", triage_points, (np.zeros(1), ZERO + 2, ZERO)),
    ("negative", triage_points, (np.zeros(1), ZERO, ZERO - 1)),
    ("same shape", triage_points, (np.zeros(2), ZERO, PAIR[0])),
    ("same length", alternative_annotator_test, (PAIR, PAIR[0], 2)),
    ("judge", alternative_annotator_test, (PAIR, ZERO + 2, 2)),
    *(("epsilon", DuelTerms, (epsilon,)) for epsilon in (1.0, -0.1)),
]  # fmt: skip


@pytest.mark.parametrize(("message", "act", "arguments"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(
    message: str, act: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    with pytest.raises(ValueError, match=message):
        act(*arguments)
