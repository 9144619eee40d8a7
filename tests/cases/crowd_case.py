"""Annotators of known skill."""

import numpy as np


def crowd(errors: list[float], items: int = 400, seed: int = 0, k: int = 2) -> np.ndarray:
    """Annotators who give another label that often: (items, annotators)."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, k, items)
    wrong = rng.random((items, len(errors))) < np.array(errors)
    return np.where(wrong, (true[:, None] + 1) % k, true[:, None])
