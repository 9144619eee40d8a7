"""Texts that are identical or nearly so."""

from __future__ import annotations

import numpy as np

from judgebench.rubric import normalise
from judgebench.stats.arrays import IntArray
from judgebench.study.answers import IndexedAnswers


def alike_texts(answers: IndexedAnswers) -> IntArray:
    """(answers,): a number that answers share whose texts are alike."""
    texts = [" ".join(normalise(answer.text).split()) for answer in answers]
    return np.unique(np.array(texts, dtype=object), return_inverse=True)[1]
