"""Baselines: content-blind baselines, which any real judge must beat.

Where a control learns from human labels, the questions are cut into two halves and each half is
judged by what the other half's labels say, so that no control sees the labels it is scored on. Only
the constant does: learnt on other questions, it could be weaker than a constant. A rule that knows
which question is asked learns from the other half of the answers to each.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from judgebench.judges.known import QUESTION, By, known_columns, name_of, numbered
from judgebench.records import Answer, HumanLabel, Status, Verdict, canonical_json, content_hash
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.studies.answers import (
    head_of,
    ids_and_groups,
    joined_groups,
    keys_of,
    of_kind,
    text_lengths,
)
from judgebench.studies.study import MAJORITY

Control = Literal[
    "constant-majority", "constant-fixed", "random", "prior", "longest-answer", "constant-severe"
]
# Against human labels the most severe label is never the one to beat; it shows in a stress test
# that whoever calls everything wrong detects everything, and of a preference it is the tie.
CONTROLS: tuple[Control, ...] = tuple(c for c in get_args(Control) if c != "constant-severe")
UNTAUGHT: tuple[Control, ...] = ("constant-fixed", "random")  # need no human label
ABOUT: Mapping[Control, str] = {
    MAJORITY: "always the label that humans gave most often, so that no constant agrees more often "
    "(chosen on these labels, so slightly optimistic)",
    "constant-fixed": "always the least severe label (of a nominal metric: the first; of a "
    "preference: for the first response)",
    "constant-severe": "always the most severe label (of a nominal metric: the last; of a "
    "preference: a tie)",
    "random": "any label, all equally likely",
    "prior": "a label drawn as often as humans gave it in the other half of the questions",
    "longest-answer": "the longer the answer, the less severe its label, "
    "in the shares that humans gave in the other half of the questions (of a preference: for the "
    "longer response)",
}

ABOUT_BY = (
    "the commonest human label among the answers with the same value in COLUMN (system, question, "
    "or any other that stays with answers), learnt in the other half; few labels are drawn towards "
    "the shares of all. By itself: every column of 2 to √n values, of n labelled items"
)
_DRAWN = 5.0  # labels in the shares of all, that every value is taken to have had before

# A share of human labels by metric id: counts in the metric's label order.
Priors = Mapping[str, Sequence[int]]
_NONE = -1  # no label: no human of the other half gave any
_NOT_DUE = -2  # the metric is about other kinds of rows


def usual_controls(rubric: Rubric) -> tuple[Control, ...]:
    """The controls that are fitted by default; `constant-severe` where it means a tie."""
    always_tie = any(metric.preference for metric in rubric.metrics)
    return get_args(Control) if always_tie else CONTROLS


class ControlJudge:
    """Says at once what it makes of every answer that it was fitted on."""

    def __init__(
        self, control: Control | By, rubric: Rubric, answers: Sequence[Answer],
        labels: Iterable[HumanLabel], seed: int = 0, *, fit: Fit | None = None,
    ) -> None:  # fmt: skip
        """`fit` is what was learnt from the same answers and labels, if it exists already."""
        self.name: str = name_of(control) if isinstance(control, tuple) else control
        self._control = control
        self._rubric, self._answers = rubric, answers
        self._fit = fit or Fit(rubric, answers, labels, seed)
        self._about = {
            "judge": "control",
            "control": control,
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            "seed": seed,
            "fitted_on": self._fit.fitted_on,
            **({"learnt_from": "all labels"} if control == MAJORITY else {}),
            **({"known": self._fit.hash_of(control)} if isinstance(control, tuple) else {}),
        }
        self.signature = content_hash(self._about)

    def describe(self) -> Mapping[str, Any]:
        return self._about

    def codes(self) -> IntArray:
        """(answers, metrics): the place of each label in its metric's order, -1 for none, -2 where
        none is due."""
        columns = []
        for metric in self._rubric.metrics:
            found = self._fit.codes(self._control, metric).astype(np.int16)
            found[~of_kind(self._answers, metric, self._rubric)] = _NOT_DUE
            columns.append(found)
        return np.stack(columns, axis=1)

    def verdicts(self) -> Iterator[Verdict]:
        """One verdict an answer, in their order."""
        for key, codes in zip(keys_of(self._answers), self.codes(), strict=True):
            yield self.verdict(*key, codes)

    def verdict(self, item_id: str, content_hash: str, codes: IntArray) -> Verdict:
        """The verdict of one row of `codes()`."""
        metrics = zip(self._rubric.metrics, codes.tolist(), strict=True)
        chosen = [(metric, code) for metric, code in metrics if code != _NOT_DUE]
        missing = [m.id for m, code in chosen if code == _NONE]
        return Verdict(
            item_id, content_hash, self.name, self.signature,
            Status.SKIPPED if missing else Status.OK,
            labels={m.id: m.label_texts[code] for m, code in chosen if code != _NONE},
            reason=f"no human label in the other half for {', '.join(missing)}" if missing else "",
        )  # fmt: skip


def control_judges(
    controls: Iterable[Control], rubric: Rubric, answers: Sequence[Answer],
    labels: Iterable[HumanLabel], seed: int = 0, by: Sequence[By] | None = (),
) -> tuple[ControlJudge, ...]:  # fmt: skip
    """Several controls that are fitted together, and one for each of `by`: of None, for every
    column that `known_columns` chooses by itself."""
    chosen: list[Control | By] = list(controls)
    if not (chosen or by is None or by):
        return ()
    fit = Fit(rubric, answers, labels, seed, by)
    chosen += fit.known
    return tuple(ControlJudge(c, rubric, answers, labels, seed, fit=fit) for c in chosen)


class Fit:
    """The counts that controls learn from answers and human labels, in a few bytes per answer.

    The questions are split into two halves: whole clusters (`IndexedAnswers.clusters`) are in one
    half, and the halves differ by one of them at most. `half` (answers,) holds 0 or 1. `priors` say
    for half 0 and half 1 how often humans gave each label in the other half. `fitted_on` is a hash
    of all that the controls depend on, but for the columns that are `known`: see `hash_of`.
    """

    def __init__(
        self, rubric: Rubric, answers: Sequence[Answer], labels: Iterable[HumanLabel],
        seed: int = 0, by: Sequence[By] | None = (),
    ) -> None:  # fmt: skip
        self.rubric, self.seed = rubric, seed
        self._answers = answers
        ids, self.half = self._read(joined_groups(answers))
        self._by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int32)
        self._labels = self._labels_by_metric(ids, labels)
        self.priors = self._priors_of_other_half()
        self.fitted_on = self._content_hash()
        rows = [np.unique(rows) for rows, _ in self._labels.values()]
        n = len(np.unique(np.concatenate(rows))) if rows else 0
        self.known = known_columns(answers, by, math.isqrt(n)) if by is None or by else {}

    def hash_of(self, by: By) -> str:
        """A hash of what is known of each answer, in the order of their ids."""
        known = numbered([self.known[by][self._by_id]])
        return hashlib.sha256(known.astype("<i4").tobytes()).hexdigest()[:16]

    def codes(self, control: Control | By, metric: Metric) -> IntArray:
        """(answers,): what the control says on that metric, -1 where it knows no label."""
        if isinstance(control, tuple):
            return self._of_known(control, metric)
        n, k = len(self._answers), len(metric.labels)
        prior = np.array([self.priors[side][metric.id] for side in (0, 1)])
        order = np.tile(np.arange(k), (2, 1))
        match control:
            case "constant-fixed":
                return np.zeros(n, np.int64)
            case "constant-severe":
                return np.full(n, k - 1)
            case "random":
                return (self._fractions(control, metric) * k).astype(np.int64)
            case "constant-majority":
                given = prior.sum(axis=0)  # by those of both halves
                return np.full(n, given.argmax() if given.any() else _NONE)
            case "prior":
                return self._quantiles(prior, order, self._fractions(control, metric))
            case "longest-answer" if metric.preference:
                return np.fromiter(map(_longer, self._answers), np.int64, n)
            case "longest-answer":
                if metric.kind == "nominal":  # no label is less severe: the most common one first
                    order = np.argsort(-prior, axis=1, kind="stable")
                return self._quantiles(prior, order, self.shares_longer)

    def _of_known(self, by: By, metric: Metric) -> IntArray:
        """(answers,): the commonest label of those with the same value, in the other half."""
        value, (rows, given) = self.known[by], self._labels[metric.id]
        half = self._half_of_each_question if QUESTION in by else self.half
        k, n = len(metric.labels), int(value.max(initial=-1)) + 1
        cell = (2 * value[rows] + 1 - half[rows]) * k + given
        counts = np.bincount(cell, minlength=2 * n * k).reshape(n, 2, k)
        of_all = counts.sum(axis=0)
        total = of_all.sum(axis=1, keepdims=True)
        found = (counts + _DRAWN * of_all / np.maximum(total, 1)).argmax(axis=2)
        found[:, total[:, 0] == 0] = _NONE
        codes: IntArray = found[value, half]
        return codes

    @cached_property
    def _half_of_each_question(self) -> IntArray:
        """(answers,): 0 or 1, in turns among the answers of a group by the hashes of their ids."""
        named = (item_id for item_id, _ in ids_and_groups(self._answers))
        hashes = b"".join(d[:16] for d in _digests(named, self.seed, "half of a question"))
        groups = Clusters.of(group for _, group in ids_and_groups(self._answers)).codes
        order = np.lexsort((np.frombuffer(hashes, "S16"), groups))
        half = np.empty(len(groups), np.int64)
        half[order] = np.arange(len(groups)) % 2
        return half

    def _quantiles(self, prior: IntArray, order: IntArray, fractions: FloatArray) -> IntArray:
        """(answers,): the label at each answer's fraction of its half's prior (2, labels), where
        its labels are laid end to end in `order` (2, labels)."""
        found = np.full(len(fractions), _NONE)
        for side in (0, 1):
            edges = prior[side][order[side]].cumsum()
            if edges[-1]:
                own = self.half == side
                place = np.searchsorted(edges, fractions[own] * edges[-1], side="right")
                found[own] = order[side][place]
        return found

    def _fractions(self, control: Control, metric: Metric) -> FloatArray:
        """(answers,): numbers in [0, 1) that depend on seed, control, metric and item id alone: the
        same in any order, on any machine."""
        named = (item_id for item_id, _ in ids_and_groups(self._answers))
        digests = _digests(named, self.seed, control, metric.id)
        drawn = array("Q", (int.from_bytes(digest[:8], "big") for digest in digests))
        # Fifty-three bits, which a float holds exactly: sixty-four could round up to 1.
        return (np.frombuffer(drawn, np.uint64) >> 11) / 2**53

    @cached_property
    def shares_longer(self) -> FloatArray:
        """(answers,): which share of them is longer, or as long and before this one by its id."""
        n = len(self._answers)
        lengths = np.fromiter(text_lengths(self._answers), np.int64, n)[self._by_id]
        rank = np.empty(n, np.int64)
        rank[self._by_id[np.argsort(-lengths, kind="stable")]] = np.arange(n)
        return rank / n

    def _read(self, joined: Mapping[str, str]) -> tuple[list[str], IntArray]:
        """The item ids, and the half of each answer: odd or even among the sorted hashes."""
        ids = [item_id for item_id, _ in ids_and_groups(self._answers)]
        groups = (joined.get(group, group) for _, group in ids_and_groups(self._answers))
        # Collisions of so many bytes do not occur.
        hashes = b"".join(d[:16] for d in _digests(groups, self.seed, "half"))
        _, places = np.unique(np.frombuffer(hashes, "S16"), return_inverse=True)
        return ids, places % 2

    def _labels_by_metric(
        self, ids: Sequence[str], labels: Iterable[HumanLabel]
    ) -> dict[str, tuple[IntArray, IntArray]]:
        """By metric: the row of every label, also of each of several, and its place in the metric's
        order. Adjudicated labels are no annotator's."""
        said = [x for x in labels if x.label is not None and not x.adjudicated]
        labelled = {label.item_id for label in said}
        row_of = {item_id: row for row, item_id in enumerate(ids) if item_id in labelled}
        code = {
            (metric.id, text): (place, c)
            for place, metric in enumerate(self.rubric.metrics)
            for c, text in enumerate(metric.label_texts)
        }
        metrics = {metric.id: metric for metric in self.rubric.metrics}
        flat = array("q")
        for label in said:
            metric, row = metrics.get(label.metric), row_of.get(label.item_id)
            for text in metric.given_in(label.label or "") if metric and row is not None else ():
                if place := code.get((label.metric, text)):
                    flat.extend((*place, row_of[label.item_id]))
        found = np.array(flat, dtype=np.int64).reshape(-1, 3)
        of = (found[found[:, 0] == place] for place in range(len(self.rubric.metrics)))
        return {m.id: (x[:, 2], x[:, 1]) for m, x in zip(self.rubric.metrics, of, strict=True)}

    def _priors_of_other_half(self) -> tuple[Priors, Priors]:
        counts: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
        for metric in self.rubric.metrics:
            rows, given = self._labels[metric.id]
            for side in (0, 1):
                other = given[self.half[rows] != side]
                found = np.bincount(other, minlength=len(metric.labels))
                counts[side][metric.id] = found.tolist()
        return counts

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


def _longer(pair: Answer) -> int:
    """The place of the longer response, from 0; 2 where both are as long, or there are not two."""
    lengths = [len(response.text) for response in pair.responses]
    return lengths.index(max(lengths)) if len(lengths) == 2 and len({*lengths}) == 2 else 2


def _digests(texts: Iterable[str], *about: object) -> Iterator[bytes]:
    """The SHA-256 of each text behind what it is drawn for."""
    begun = hashlib.sha256(_bytes(*about, ""))
    for text in texts:
        digest = begun.copy()
        digest.update(_bytes(text))
        yield digest.digest()


def _bytes(*parts: object) -> bytes:
    return "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
