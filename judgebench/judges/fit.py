"""What control judges learn from answers and human labels, in a few bytes per answer."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Answer, HumanLabel, canonical_json
from judgebench.rubric import Rubric
from judgebench.study.answers import head_of, ids_and_groups, text_lengths

# A share of human labels by metric id: counts in the metric's label order.
Priors = Mapping[str, Sequence[int]]


class Fit:
    """The questions split into two halves, and the human labels in each.

    Whole groups are in one half, and the halves differ by one group at most. `priors` say for half
    0 and half 1 how often humans gave each label in the other half. `fitted_on` is a hash of all
    that the controls depend on.
    """

    def __init__(
        self,
        rubric: Rubric,
        answers: Sequence[Answer],
        labels: Iterable[HumanLabel],
        seed: int = 0,
    ) -> None:
        self.rubric, self.seed = rubric, seed
        self._answers = answers
        ids: list[str] = []
        self._groups = _Places(self._hashed_groups(ids))
        self._by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int32)
        del ids
        self.priors = self._priors_of_other_half(labels)
        self.fitted_on = self._content_hash()

    def half(self, group: str) -> int:
        """0 or 1. Raises KeyError for a group of other answers."""
        return self._groups.find(_hash(self.seed, "half", group), group) % 2

    def share_longer(self, item_id: str) -> float:
        """Which share of the answers is longer, or as long and before this one by its id.

        Raises KeyError for another answer.
        """
        places, ranks = self._ranks
        return ranks[places.find(_hash(item_id), item_id)] / len(self._answers)

    @cached_property
    def _ranks(self) -> tuple[_Places, array[int]]:
        """Every answer's place among them all, the longest first, by the place of its hashed id."""
        n = len(self._answers)
        lengths = np.fromiter(text_lengths(self._answers), np.int64, n)[self._by_id]
        rank = np.empty(n, np.int64)
        rank[self._by_id[np.argsort(-lengths, kind="stable")]] = np.arange(n)
        places = _Places(_hash(item_id) for item_id, _ in ids_and_groups(self._answers))
        return places, array("q", rank[places.first_rows].tobytes())

    def _priors_of_other_half(self, labels: Iterable[HumanLabel]) -> tuple[Priors, Priors]:
        said = [label for label in labels if label.label is not None]
        labelled = {label.item_id for label in said}
        half_of_item = {
            item_id: self.half(group)
            for item_id, group in ids_and_groups(self._answers)
            if item_id in labelled
        }
        counts: list[Counter[tuple[str, str | None]]] = [Counter(), Counter()]
        for label in said:
            if label.item_id in half_of_item:
                counts[1 - half_of_item[label.item_id]][label.metric, label.label] += 1
        first, second = (
            {m.id: [count[m.id, text] for text in m.label_texts] for m in self.rubric.metrics}
            for count in counts
        )
        return first, second

    def _content_hash(self) -> str:
        """`content_hash([priors, sorted([item_id, group, content_hash], ...)])`, piece by piece."""
        digest = hashlib.sha256(
            f"[{canonical_json(self.priors)},[".encode("utf-8", "surrogatepass")
        )
        comma = ""
        for row in self._by_id.tolist():
            named = comma + canonical_json(head_of(self._answers, row))
            digest.update(named.encode("utf-8", "surrogatepass"))
            comma = ","
        digest.update(b"]]")
        return digest.hexdigest()[:16]

    def _hashed_groups(self, ids: list[str]) -> Iterator[bytes]:
        """The hash of every answer's group; the item ids go into `ids` in passing."""
        for item_id, group in ids_and_groups(self._answers):
            ids.append(item_id)
            yield _hash(self.seed, "half", group)


def _hash(*parts: object) -> bytes:
    joined = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).digest()[:16]


class _Places:
    """The place of a hash among the different ones, in order; it is found in a microsecond.

    All sixteen bytes are compared: collisions of so many do not occur.
    """

    def __init__(self, hashes: Iterable[bytes]) -> None:
        joined = bytearray()
        for hashed in hashes:
            joined += hashed
        pairs = np.frombuffer(joined, ">u8").reshape(-1, 2).astype(np.uint64)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        pairs = pairs[order]
        is_new = np.ones(len(pairs), dtype=bool)
        is_new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
        self.first_rows: NDArray[np.int64] = order[is_new]  # of each different hash
        self._high = array("Q", pairs[is_new, 0].tobytes())
        self._low = array("Q", pairs[is_new, 1].tobytes())

    def find(self, hashed: bytes, named: str) -> int:
        """Raises KeyError, which names `named`, where there is no such hash."""
        high, low = int.from_bytes(hashed[:8], "big"), int.from_bytes(hashed[8:], "big")
        place = bisect_left(self._high, high)
        while place < len(self._high) and self._high[place] == high:
            if self._low[place] == low:
                return place
            place += 1
        raise KeyError(named)
