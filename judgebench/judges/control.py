"""Control judges: content-blind baselines, which any real judge must beat.

Where a control learns from human labels, the questions are cut into two halves and each half is
judged by what the other half's labels say, so that no control sees the labels it is scored on.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, Literal, get_args

import numpy as np

from judgebench.judges.judge import Task
from judgebench.records import Answer, HumanLabel, Status, Verdict, canonical_json, content_hash
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import IntArray
from judgebench.study.answers import head_of, ids_and_groups, joined_groups, text_lengths

Control = Literal[
    "constant-majority", "constant-fixed", "random", "prior", "longest-answer", "constant-severe"
]
# Against human labels the most severe label is never the one to beat; it shows in a stress test
# that whoever calls everything wrong detects everything.
CONTROLS: tuple[Control, ...] = tuple(c for c in get_args(Control) if c != "constant-severe")
UNTAUGHT: tuple[Control, ...] = ("constant-fixed", "random")  # need no human label
ABOUT: Mapping[Control, str] = {
    "constant-majority": "always the most common human label of the other half of the questions",
    "constant-fixed": "always the least severe label (of a nominal metric: the first)",
    "constant-severe": "always the most severe label (of a nominal metric: the last)",
    "random": "any label, all equally likely",
    "prior": "a label drawn as often as humans gave it in the other half of the questions",
    "longest-answer": "the longer the answer, the less severe its label, "
    "in the shares that humans gave in the other half of the questions",
}

# A share of human labels by metric id: counts in the metric's label order.
Priors = Mapping[str, Sequence[int]]
Choice = Callable[[Metric, Sequence[int], Answer], int | None]


class ControlJudge:
    """Meets `judges.judge.Judge`; fitted when constructed, so that judging is cheap."""

    def __init__(
        self, control: Control, rubric: Rubric, answers: Sequence[Answer],
        labels: Iterable[HumanLabel], seed: int = 0, *, fit: Fit | None = None,
    ) -> None:  # fmt: skip
        """`fit` is what was learnt from the same answers and labels, if it exists already."""
        self.name: str = control
        self._rubric = rubric
        self._fit = fit or Fit(rubric, answers, labels, seed)
        self._choose = _choice(control, self._fit)
        self._about = {
            "judge": "control",
            "control": control,
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            "seed": seed,
            "fitted_on": self._fit.fitted_on,
        }
        self.signature = content_hash(self._about)

    def describe(self) -> Mapping[str, Any]:
        return self._about

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        for task in tasks:
            yield self._verdict(task.answer, task.content_hash)

    def _verdict(self, answer: Answer, content_hash: str) -> Verdict:
        prior = self._fit.priors[self._fit.half(answer.group)]
        chosen = [(m, self._choose(m, prior[m.id], answer)) for m in self._rubric.metrics]
        missing = [m.id for m, index in chosen if index is None]
        return Verdict(
            answer.item_id, content_hash or answer.content_hash, self.name, self.signature,
            Status.SKIPPED if missing else Status.OK,
            labels={m.id: m.label_texts[index] for m, index in chosen if index is not None},
            reason=f"no human label in the other half for {', '.join(missing)}" if missing else "",
        )  # fmt: skip

    def close(self) -> None:
        """There is nothing to release."""


def control_judges(
    controls: Iterable[Control], rubric: Rubric, answers: Sequence[Answer],
    labels: Iterable[HumanLabel], seed: int = 0,
) -> tuple[ControlJudge, ...]:  # fmt: skip
    """Several controls that are fitted together, in one pass over the answers."""
    chosen = tuple(controls)
    fit = Fit(rubric, answers, labels, seed) if chosen else None
    return tuple(ControlJudge(c, rubric, answers, labels, seed, fit=fit) for c in chosen)


def _choice(control: Control, fit: Fit) -> Choice:
    seed = fit.seed
    match control:
        case "constant-majority":
            return lambda metric, prior, answer: prior.index(max(prior)) if any(prior) else None
        case "constant-fixed":
            return lambda metric, prior, answer: 0
        case "constant-severe":
            return lambda metric, prior, answer: len(metric.labels) - 1
        case "random":
            return lambda metric, prior, answer: int(
                _fraction(seed, control, metric.id, answer.item_id) * len(metric.labels)
            )
        case "prior":
            return lambda metric, prior, answer: _quantile(
                prior, range(len(prior)), _fraction(seed, control, metric.id, answer.item_id)
            )
        case "longest-answer":
            return _by_length(fit)


def _by_length(fit: Fit) -> Choice:
    share_longer = lru_cache(maxsize=1)(fit.share_longer)  # the same for every metric

    def choose(metric: Metric, prior: Sequence[int], answer: Answer) -> int | None:
        order: Sequence[int] = range(len(prior))
        if metric.kind == "nominal":  # no label is less severe: the most common one first
            order = sorted(order, key=lambda i: -prior[i])
        return _quantile(prior, order, share_longer(answer.item_id))

    return choose


def _quantile(prior: Sequence[int], order: Sequence[int], fraction: float) -> int | None:
    """The label at `fraction` of the prior when its labels are laid end to end in `order`."""
    edges = list(accumulate(prior[i] for i in order))
    if not edges[-1]:
        return None
    return order[bisect_right(edges, fraction * edges[-1])]


def _fraction(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` alone: the same in any order, on any machine."""
    # Fifty-three bits, which a float holds exactly: sixty-four could round up to 1.
    return (int.from_bytes(_digest(*parts)[:8], "big") >> 11) / 2**53


class Fit:
    """What controls learn from answers and human labels, in a few bytes per answer.

    The questions are split into two halves: whole clusters (`IndexedAnswers.clusters`) are in one
    half, and the halves differ by one of them at most. `priors` say for half 0 and half 1 how often
    humans gave each label in the other half. `fitted_on` is a hash of all that the controls depend
    on.
    """

    def __init__(
        self, rubric: Rubric, answers: Sequence[Answer], labels: Iterable[HumanLabel], seed: int = 0
    ) -> None:
        self.rubric, self.seed = rubric, seed
        self._answers = answers
        self._joined = joined_groups(answers)
        ids: list[str] = []
        self._groups = _Places(self._hashed_groups(ids))
        self._by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int32)
        del ids
        self.priors = self._priors_of_other_half(labels)
        self.fitted_on = self._content_hash()

    def half(self, group: str) -> int:
        """0 or 1. Raises KeyError for a group of other answers."""
        return self._groups.find(self._hash_of(group), group) % 2

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
            yield self._hash_of(group)

    def _hash_of(self, group: str) -> bytes:
        return _hash(self.seed, "half", self._joined.get(group, group))


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()


def _hash(*parts: object) -> bytes:
    return _digest(*parts)[:16]


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
        self.first_rows: IntArray = order[is_new]  # of each different hash
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
