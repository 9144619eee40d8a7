"""Calibration of label probabilities: remove what a judge favours whatever it reads.

A model prefers some labels before it has read anything: by their words, by their place in the
prompt. Both methods estimate that preference, the labels' prior, and subtract it:

    log p'(y | x) = log p(y | x) - log q(y) - log Z(x)

with Z(x) so that the labels' probabilities add up to 1. Arrays hold natural logarithms, one row
per item and one column per label. A row with a NaN is missing, and stays missing.
"""

from __future__ import annotations

import numpy as np

from judgebench.stats.arrays import FloatArray

# Softmax in double precision may give 0 to what is merely very unlikely; its logarithm is kept
# finite, or one such item would decide the prior.
LEAST_LOG = -690.0


def batch_prior(log_p: FloatArray) -> FloatArray:
    """Each label's mean log-probability over the items of a set: (items, k) -> (k,).

    NaN where no row is defined. Batch calibration (Zhou et al., ICLR 2024, arXiv:2309.17249)
    estimates the prior from the very set that is judged; the mean is taken of logarithms here,
    so that a constant factor on a label's probability vanishes exactly.
    """
    defined = _defined(log_p)
    if not len(defined):
        return np.full(log_p.shape[1], np.nan)
    return np.asarray(defined.mean(axis=0))


def content_free_prior(log_p: FloatArray) -> FloatArray:
    """The logarithm of each label's mean probability over content-free texts: (texts, k) -> (k,).

    NaN unless every text has its row. Contextual calibration (Zhao et al., ICML 2021,
    arXiv:2102.09690, section 5): W = diag(p_cf)^-1, where p_cf is the mean over the texts.
    """
    if not len(log_p) or np.isnan(log_p).any():
        return np.full(log_p.shape[1], np.nan)
    p_cf = np.exp(normalised(log_p)).mean(axis=0)
    return np.asarray(np.log(p_cf))


def without_prior(log_p: FloatArray, log_q: FloatArray) -> FloatArray:
    """log p' of the head of this module: (items, k) and (k,) -> (items, k).

    >>> log_p = np.log([[0.9, 0.1], [0.8, 0.2]])
    >>> np.exp(without_prior(log_p, batch_prior(log_p))).round(2).tolist()
    [[0.6, 0.4], [0.4, 0.6]]
    """
    return normalised(np.maximum(log_p, LEAST_LOG) - log_q)


def normalised(log_p: FloatArray) -> FloatArray:
    """Rows whose probabilities add up to 1: log p - log sum_y p(y); a row with a NaN is all NaN."""
    floored = np.maximum(log_p, LEAST_LOG)
    top = floored.max(axis=-1, keepdims=True)
    return np.asarray(floored - top - np.log(np.exp(floored - top).sum(axis=-1, keepdims=True)))


def _defined(log_p: FloatArray) -> FloatArray:
    return np.maximum(log_p[~np.isnan(log_p).any(axis=1)], LEAST_LOG)
