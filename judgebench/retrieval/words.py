"""Texts ranked by the words that they share with a question: no model, no waiting."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from judgebench.stats.arrays import FloatArray, IntArray

_K1, _B = 1.2, 0.75  # the usual constants
# A word, or a single character of a script that puts no spaces between words.
_WORD = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case. Chinese, Japanese, Thai, Lao and Khmer are read
    character by character."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


class WordSearch:
    """Scores `texts` by BM25; Robertson and Zaragoza (2009), "The Probabilistic Relevance
    Framework: BM25 and Beyond", equation 3.15, k1 = 1.2, b = 0.75, with the weight of a word in n
    of N texts as ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.

    >>> WordSearch(["ticks live in grass", "iron is in beans"]).nearest("Where is iron?", 1)
    [1]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(words_of(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], dtype=float)
        room = _K1 * (1 - _B + _B * lengths / max(1.0, lengths.mean() if len(texts) else 1.0))
        held: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for word, times in count.items():
                held.setdefault(word, []).append((place, times))
        self._n = len(texts)
        self._parts: dict[str, tuple[IntArray, FloatArray]] = {}
        for word, found in held.items():
            places, times_ = np.array(found).T
            weight = np.log(1 + (self._n - len(found) + 0.5) / (len(found) + 0.5))
            self._parts[word] = (places, weight * times_ * (_K1 + 1) / (times_ + room[places]))

    def scores(self, question: str) -> FloatArray:
        """One score per text, (texts,); 0 where it shares no word with the question."""
        scores = np.zeros(self._n)
        for word in sorted(set(words_of(question))):
            if word in self._parts:
                places, parts = self._parts[word]
                scores[places] += parts
        return scores

    def nearest(self, question: str, k: int) -> list[int]:
        """Places of the `k` texts of the highest scores, the best first, of equal ones the first;
        fewer where fewer share a word with the question."""
        scores = self.scores(question)
        order = np.argsort(-scores, kind="stable")[:k]
        return [int(place) for place in order if scores[place] > 0]
