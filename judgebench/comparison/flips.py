"""Every verdict that differs between A and B, item by item."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgebench.comparison.differences import Compared, labels_of
from judgebench.records import Estimate
from judgebench.results.rows import Row

RIGHT = ("A", "B", "neither", "unknown")


def flips(compared: Compared) -> Iterator[Row]:
    """The items whose label differs, also where one of both gave none: `label_a`, `label_b`, the
    `truth` and whose label is `right`. The value is the severity by B minus that by A.

    First those that A has right and B has not, then those with the largest shift.
    """
    study, metric = compared.study, compared.metric
    one, two = compared.judged()
    truth = study.humans[metric.id].truth
    differ = np.flatnonzero(one != two)
    severity = np.array([*metric.severities, 0] if metric.kind == "ordinal" else [])
    right = np.where(truth < 0, 3, np.where(one == truth, 0, np.where(two == truth, 1, 2)))
    shift = np.zeros(len(one))
    if metric.kind == "ordinal":
        shift = np.where((one >= 0) & (two >= 0), severity[two] - severity[one], np.nan)
    far = np.nan_to_num(np.abs(shift), nan=np.inf)
    order = differ[np.lexsort((-far[differ], right[differ]))]
    texts = [labels_of(labels, metric) for labels in (one, two, truth)]
    ids = list(study.answers.item_ids())
    for row in order.tolist():
        keys = {
            "who": compared.pair[0].name, "item_id": ids[row], "label_a": texts[0][row],
            "label_b": texts[1][row], "truth": texts[2][row], "right": RIGHT[int(right[row])],
        }  # fmt: skip
        known = metric.kind == "ordinal" and not np.isnan(shift[row])
        moved = Estimate(float(shift[row]), n=1) if known else Estimate(None, reason="")
        yield Row("flip", "severity_shift", moved, compared.pair[1].name, metric.id, keys)
