"""Mean and spread of a handful of numbers, as in a table's last columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def mean_and_sd(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The mean and the sample standard deviation (n - 1 in the denominator).

    None stands for an undefined number and is left out, never taken for 0. The mean of no number
    and the standard deviation of fewer than two are None.
    """
    x = np.array([value for value in values if value is not None], dtype=np.float64)
    mean = float(x.mean()) if len(x) else None
    sd = float(x.std(ddof=1)) if len(x) > 1 else None
    return mean, sd
