"""What no statistic can be computed of is refused, and the message names what does not fit."""

from collections.abc import Callable

import numpy as np
import pytest

from judgebench.stats.agreement import (
    agreement_counts_by_cluster,
    coincidences_by_cluster,
    vote_pairs_by_cluster,
)
from judgebench.stats.arrays import Clusters
from judgebench.stats.classification import confusion_by_cluster
from judgebench.stats.consensus import majority_label
from judgebench.stats.intervals import (
    items_for_half_width,
    look_levels,
    moments_by_cluster,
    sums_by_cluster,
)


def of(*codes: int) -> Clusters:
    return Clusters(np.array(codes), 2)


ZERO, PAIR = np.zeros(1, dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
REFUSED: list[tuple[str, Callable[..., object], tuple[object, ...]]] = [
    ("labels must lie in", majority_label, (np.array([[0, 2]]), 2, "none")),
    ("must lie in", confusion_by_cluster, (ZERO + 2, ZERO, of(0), 2)),
    ("must lie in", confusion_by_cluster, (ZERO, ZERO - 2, of(0), 2)),
    (r"clusters must lie in 0\.\.1", of, (0, 2)),
    ("clusters must lie in", of, (-1,)),
    ("same shape", confusion_by_cluster, (np.array([0, 1]), ZERO, of(0, 0), 2)),
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
    ("needs 0 <= p <= 1", items_for_half_width, (1.1, 0.1)),
    ("needs 0 <= p <= 1", items_for_half_width, (0.5, 0.0)),
    *(("shares must rise", look_levels, ([*x],)) for x in ((0, 1), (0.5, 0.5), (0.5, 1.2))),
    ("shares must rise", look_levels, ([float("nan")],)),
    ("same length", sums_by_cluster, (np.zeros((2, 1)), of(0))),
    ("same length", moments_by_cluster, (np.zeros((2, 2), dtype=int), of(0))),
]  # fmt: skip


@pytest.mark.parametrize(("message", "act", "arguments"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(
    message: str, act: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    with pytest.raises(ValueError, match=message):
        act(*arguments)
