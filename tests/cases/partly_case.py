"""Samples of which some items are labelled, from a table of counts: rows are the truth (another
label, this one, none known), columns the judge's label (another, this one)."""

import numpy as np

from judgebench.stats.arrays import Clusters
from judgebench.stats.partly_labelled import Prediction, Sample


def sample_of(table, cluster: int = 1) -> tuple[Sample, np.ndarray]:
    """The items, so many in a row a cluster, and what the judge says of each."""
    counts = np.array(table, dtype=int).reshape(3, 2)
    y = np.repeat([0.0, 0, 1, 1, np.nan, np.nan], counts.ravel())
    f = np.repeat([0.0, 1, 0, 1, 0, 1], counts.ravel())
    codes = np.arange(len(y)) // cluster
    return Sample(y, Clusters(codes, int(codes.max(initial=0)) + 1)), f


def alone(f: np.ndarray) -> Prediction:
    """The prediction of one judge, who learnt from nobody."""
    return Prediction(f, f)
