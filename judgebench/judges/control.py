"""Baselines: content-blind baselines, which any real judge must beat.

Some know facts about answers without reading them: who wrote an answer, which question it is to,
and every other column that stays with it.

Where a control learns from human labels, the questions are cut into two halves and each half is
judged by what the other half's labels say, so that no control sees the labels it is scored on. Only
the constant does: learnt on other questions, it could be weaker than a constant. A rule that knows
which question is asked learns from the other half of the answers to each.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import Problem, nearest, raise_any
from judgebench.records import (
    CHANCES,
    WEIGHTS,
    Answer,
    HumanLabel,
    Status,
    Verdict,
    canonical_json,
    columns_named,
    content_hash,
)
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
from judgebench.studies.reference_labels import ratings_by_metric
from judgebench.studies.study import MAJORITY

By = tuple[str, ...]  # one column, or several together
SYSTEM, QUESTION = "system", "question"
_LONGEST = 64  # characters of a judge's name
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
    "constant-fixed": "always the first label of the rubric (of a preference: for the first "
    "response)",
    "constant-severe": "always the last label of the rubric (of a preference: a tie)",
    "random": "any label, all equally likely",
    "prior": "a label drawn as often as humans gave it in the other half of the questions",
    "longest-answer": "the longer the answer, the better its label, "
    "in the shares that humans gave in the other half of the questions (of a preference: for the "
    "longer response)",
}

ABOUT_BY = (
    "the commonest human label among the answers with the same value in COLUMN (system, question, "
    "or any other that stays with answers), learnt in the other half; few labels are drawn towards "
    "the shares of all. By itself: every column of 2 to √n values, of n labelled items"
)
_DRAWN = 5.0  # labels in the shares of all, that every value is taken to have had before

_NONE = -1  # no label: no human of the other half gave any
_NOT_DUE = -2  # the metric is about other kinds of rows


def usual_controls(rubric: Rubric) -> tuple[Control, ...]:
    """The controls that are fitted by default; `constant-severe` where it means a tie."""
    always_tie = any(metric.preference for metric in rubric.metrics)
    return get_args(Control) if always_tie else CONTROLS


class ControlJudge:
    """Says at once what it makes of every answer that it was fitted on."""

    def __init__(self, control: Control | By, fit: Fit) -> None:
        self.name: str = name_of(control) if isinstance(control, tuple) else control
        self._control, self._fit = control, fit
        self._about = {
            "judge": "control",
            "control": control,
            "rubric": {"name": fit.rubric.name, "hash": fit.rubric.content_hash},
            "seed": fit.seed,
            "fitted_on": fit.fitted_on,
            **({"learnt_from": "all labels"} if control == MAJORITY else {}),
            **({"known": fit.hash_of(control)} if isinstance(control, tuple) else {}),
        }
        self.signature = content_hash(self._about)

    def describe(self) -> Mapping[str, Any]:
        return self._about

    def codes(self) -> IntArray:
        """(answers, metrics): see `codes_of`."""
        fit = self._fit
        by_metric = (fit.codes(self._control, metric) for metric in fit.rubric.metrics)
        return codes_of(by_metric, fit.rubric, fit.judged)

    def verdicts(self) -> Iterator[Verdict]:
        """One verdict an answer, in their order."""
        for key, codes in zip(keys_of(self._fit.judged), self.codes(), strict=True):
            yield self.verdict(*key, codes)

    def verdict(self, item_id: str, content_hash: str, codes: IntArray) -> Verdict:
        """The verdict of one row of `codes()`."""
        empty = Verdict(item_id, content_hash, self.name, self.signature, Status.SKIPPED)
        return with_codes(empty, codes, self._fit.rubric, "no human label in the other half for ")


def codes_of(by_metric: Iterable[IntArray], rubric: Rubric, answers: Sequence[Answer]) -> IntArray:
    """(answers, metrics): the place of each label in its metric's order, -1 for none, -2 where none
    is due; of (answers,) for each metric."""
    columns = [
        np.where(of_kind(answers, metric, rubric), codes, _NOT_DUE).astype(np.int16)
        for metric, codes in zip(rubric.metrics, by_metric, strict=True)
    ]
    return np.stack(columns, axis=1)


def with_codes(empty: Verdict, codes: IntArray, rubric: Rubric, why: str) -> Verdict:
    """The verdict with the labels of a row of `codes_of`; it is ok unless one lacks, for `why`."""
    chosen = [
        (metric, code)
        for metric, code in zip(rubric.metrics, codes.tolist(), strict=True)
        if code != _NOT_DUE
    ]
    labels = {metric.id: metric.label_texts[code] for metric, code in chosen if code != _NONE}
    if missing := [metric.id for metric, code in chosen if code == _NONE]:
        return replace(empty, labels=labels, reason=f"{why}{', '.join(missing)}")
    return replace(empty, labels=labels, status=Status.OK)


def control_judges(
    controls: Iterable[Control], rubric: Rubric, answers: Sequence[Answer],
    labels: Iterable[HumanLabel], seed: int = 0, by: Sequence[By] | None = (),
) -> tuple[ControlJudge, ...]:  # fmt: skip
    """Several controls that are fitted together, and one for each of `by`: of None, for every
    column that `known_columns` chooses by itself."""
    return Fit(rubric, answers, labels, seed, by).judges(controls)


class Fit:
    """The counts that controls learn from answers and human labels, in a few bytes per answer.
    They judge these answers, or those of `over`.

    The questions are split into two halves: whole clusters (`IndexedAnswers.clusters`) are in one
    half, and the halves differ by one of them at most. `half` (answers,) holds 0 or 1. `priors`
    (2, labels) say for half 0 and half 1 how often humans gave each label in the other half.
    `fitted_on` is a hash of all that the controls depend on, but for the columns that are `known`:
    see `hash_of`.
    """

    def __init__(
        self, rubric: Rubric, answers: Sequence[Answer], labels: Iterable[HumanLabel],
        seed: int = 0, by: Sequence[By] | None = (),
    ) -> None:  # fmt: skip
        self.rubric, self.answers, self.judged, self.seed = rubric, answers, answers, seed
        self._source: IntArray | None = None  # (judged,): see `over`
        joined = joined_groups(answers)
        self.half = self._places("half", (joined.get(g, g) for g in self._groups())) % 2
        self._by_id = _order_of_ids(answers)
        self._labels = self._labels_by_metric(list(labels))
        self.priors = {m.id: self._prior_of_other_half(m) for m in rubric.metrics}
        self.fitted_on = self._content_hash()
        n_labelled = len(np.unique(np.concatenate([rows for rows, _ in self._labels.values()])))
        self.known = known_columns(answers, by, math.isqrt(n_labelled))

    def judges(self, controls: Iterable[Control]) -> tuple[ControlJudge, ...]:
        """These controls, and one for each column that is known."""
        return tuple(ControlJudge(control, self) for control in (*controls, *self.known))

    def over(self, judged: Sequence[Answer], parents: Mapping[str, str]) -> Fit:
        """The same, to judge other answers, from which nothing is learnt: altered ones (`parents`:
        the id of what each was made of) as what they were made of, but for their length."""
        row_of = {item_id: row for row, item_id in enumerate(self._ids())}
        ids = (item_id for item_id, _ in ids_and_groups(judged))
        other = copy(self)
        other._source = np.array([row_of.get(parents.get(i, i), -1) for i in ids], dtype=np.int64)
        other.judged = judged
        other.fitted_on = other._content_hash()
        return other

    def _along(self, values: IntArray, unknown: int = 0) -> IntArray:
        """(judged,): the values (answers,) of what each answer is, or was made of."""
        if self._source is None:
            return values
        return np.where(self._source < 0, unknown, values[self._source])

    def _ids(self) -> Iterator[str]:
        return (item_id for item_id, _ in ids_and_groups(self.answers))

    def _groups(self) -> Iterator[str]:
        return (group for _, group in ids_and_groups(self.answers))

    def hash_of(self, by: By) -> str:
        """A hash of what is known of each answer, in the order of their ids."""
        known = self._along(self.known[by], _NONE)
        return content_hash(numbered([known[_order_of_ids(self.judged)]]).tolist())

    def codes(self, control: Control | By, metric: Metric) -> IntArray:
        """(judged,): what the control says on that metric, -1 where it knows no label."""
        if isinstance(control, tuple):
            return self._of_known(control, metric)
        n, k = len(self.judged), len(metric.labels)
        prior = self.priors[metric.id]
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
                return np.fromiter(map(_longer, self.judged), np.int64, n)
            case "longest-answer":
                if metric.kind == "nominal":  # no label is better: the most common one first
                    order = np.argsort(-prior, axis=1, kind="stable")
                elif not metric.has_severe:
                    order = order[:, ::-1]
                return self._quantiles(prior, order, self.shares_longer)

    def _of_known(self, by: By, metric: Metric) -> IntArray:
        """(judged,): the commonest label of those with the same value, in the other half; of a
        value that no answer has, that of all."""
        value, (rows, given) = self.known[by], self._labels[metric.id]
        half = self._half_of_each_question if QUESTION in by else self.half
        k, n = len(metric.labels), int(value.max(initial=-1)) + 2
        cell = (2 * value[rows] + 1 - half[rows]) * k + given
        counts = np.bincount(cell, minlength=2 * n * k).reshape(n, 2, k)
        of_all = counts.sum(axis=0)
        total = of_all.sum(axis=1, keepdims=True)
        found = (counts + _DRAWN * of_all / np.maximum(total, 1)).argmax(axis=2)
        found[:, total[:, 0] == 0] = _NONE
        codes: IntArray = found[self._along(value, n - 1), self._along(half)]
        return codes

    @cached_property
    def _half_of_each_question(self) -> IntArray:
        """(answers,): 0 or 1, in turns among the answers of a group by the hashes of their ids."""
        groups = Clusters.of(self._groups()).codes
        order = np.lexsort((self._places("half of a question", self._ids()), groups))
        half = np.empty(len(groups), np.int64)
        half[order] = np.arange(len(groups)) % 2
        return half

    def _quantiles(self, prior: IntArray, order: IntArray, fractions: FloatArray) -> IntArray:
        """(judged,): the label at each answer's fraction of its half's prior (2, labels), where
        its labels are laid end to end in `order` (2, labels)."""
        found, half = np.full(len(fractions), _NONE), self._along(self.half)
        for side in (0, 1):
            edges = prior[side][order[side]].cumsum()
            if edges[-1]:
                own = half == side
                place = np.searchsorted(edges, fractions[own] * edges[-1], side="right")
                found[own] = order[side][place]
        return found

    def _fractions(self, control: Control, metric: Metric) -> FloatArray:
        """(judged,): numbers in [0, 1) that depend on seed, control, metric and item id alone: the
        same in any order, on any machine."""
        ids = (item_id for item_id, _ in ids_and_groups(self.judged))
        drawn = self._hashes(ids, control, metric.id).view(">u8")[::2]
        # Fifty-three bits, which a float holds exactly: sixty-four could round up to 1.
        return (drawn >> 11) / 2**53

    def _places(self, purpose: str, texts: Iterable[str]) -> IntArray:
        """(texts,): the place of each among their sorted hashes, equal texts being one."""
        return np.unique(self._hashes(texts, purpose), return_inverse=True)[1]

    def _hashes(self, texts: Iterable[str], *purpose: str) -> NDArray[np.bytes_]:
        """(texts,): 16 bytes, of which no two texts have the same."""
        begun = hashlib.sha256(_bytes(self.seed, *purpose, ""))
        digests = bytearray()
        for text in texts:
            digest = begun.copy()
            digest.update(_bytes(text))
            digests += digest.digest()[:16]
        return np.frombuffer(bytes(digests), "S16")

    @cached_property
    def shares_longer(self) -> FloatArray:
        """(judged,): which share of the answers is longer, or as long and before this one by its
        id."""
        n = len(self.answers)
        lengths = np.fromiter(text_lengths(self.answers), np.int64, n)
        rank = np.empty(n, np.int64)
        rank[self._by_id[np.argsort(-lengths[self._by_id], kind="stable")]] = np.arange(n)
        if self._source is None:
            return rank / n
        judged = np.fromiter(text_lengths(self.judged), np.int64, len(self.judged))
        n_longer = n - np.searchsorted(np.sort(lengths), judged, side="right")
        is_same = judged == self._along(lengths, _NONE)  # so long as what it was made of
        return np.where(is_same, self._along(rank), n_longer) / n

    def _labels_by_metric(
        self, labels: Sequence[HumanLabel]
    ) -> dict[str, tuple[IntArray, IntArray]]:
        """By metric: the row of every label, also of each of several, and its place in the metric's
        order. Adjudicated labels are no annotator's."""
        labelled = {label.item_id for label in labels}
        row_of = {item_id: row for row, item_id in enumerate(self._ids()) if item_id in labelled}
        ratings = ratings_by_metric(
            self.rubric.metrics, lambda item_id: row_of.get(item_id, -1), labels
        )
        found: dict[str, tuple[IntArray, IntArray]] = {}
        for metric in self.rubric.metrics:
            rated, _, codes = np.nonzero(ratings[metric.id].named(len(metric.labels)))
            found[metric.id] = ratings[metric.id].rows[rated], codes
        return found

    def _prior_of_other_half(self, metric: Metric) -> IntArray:
        rows, codes = self._labels[metric.id]
        others = [codes[self.half[rows] != side] for side in (0, 1)]
        return np.stack([np.bincount(other, minlength=len(metric.labels)) for other in others])

    def _content_hash(self) -> str:
        """A hash of the priors and of every answer judged, in the order of their ids."""
        priors = {metric: prior.tolist() for metric, prior in self.priors.items()}
        digest = hashlib.sha256(_bytes(canonical_json(priors)))
        for row in _order_of_ids(self.judged).tolist():
            digest.update(_bytes("", *head_of(self.judged, row)))
        return digest.hexdigest()[:16]


def _order_of_ids(answers: Sequence[Answer]) -> NDArray[np.int32]:
    """(answers,): the rows in the order of their ids."""
    ids = [item_id for item_id, _ in ids_and_groups(answers)]
    return np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int32)


def _longer(pair: Answer) -> int:
    """The place of the longer response, from 0; 2 where both are as long, or there are not two."""
    lengths = [len(response.text) for response in pair.responses]
    return lengths.index(max(lengths)) if len(lengths) == 2 and len({*lengths}) == 2 else 2


def _bytes(*parts: object) -> bytes:
    return "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")


def name_of(by: By) -> str:
    """`by-system`, `by-system-and-Prompt_type`: a name that a judge may have. Letters that none
    may have are told apart by a hash.

    >>> name_of(("system", "Prompt type"))
    'by-system-and-Prompt_type'
    """
    whole = "-and-".join(by)
    name = "by-" + re.sub(r"[^A-Za-z0-9.-]+", "_", whole)
    if whole.isascii() and len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 7]}-{hashlib.sha256(whole.encode()).hexdigest()[:6]}"


def known_columns(
    answers: Sequence[Answer], by: Sequence[By] | None, most: int
) -> dict[By, IntArray]:
    """(answers,) for each of `by`: a number from 0 for each value. None: every column alone that
    has 2 to `most` values, of which one that only repeats another is left out.

    Raises SetupError where answers have no such column.
    """
    if not (by is None or by):
        return {}
    wanted = sorted({column for columns in by or () for column in columns})
    cells = _cells(answers, wanted, most)
    if by is None:
        return {(column,): codes for column, codes in _usual(cells, most)}
    allowed, problems = list(cells), list[Problem]()
    for column in wanted:
        if not (column in cells and cells[column].any()):
            message = f"is no column of the answers{nearest(column, allowed)}"
            problems.append(Problem(message, found=column, allowed=", ".join(sorted(allowed))))
    raise_any(problems)
    return {columns: numbered([cells[c] for c in columns]) for columns in by}


def _cells(answers: Sequence[Answer], wanted: Collection[str], most: int) -> dict[str, IntArray]:
    """(answers,) of each column: a number for each value, 0 for none. A column that nobody asked
    for is given up where it has more than `most` values."""
    values: dict[str, dict[str, int]] = {}
    cells: dict[str, IntArray] = {}
    for row, answer in enumerate(answers):
        for column, text in _facts(answer):
            codes = values.setdefault(column, {"": 0})
            if column not in cells:
                cells[column] = np.zeros(len(answers), np.int64)
            if column in wanted or len(codes) <= most + 1:
                cells[column][row] = codes.setdefault(text, len(codes))
    return {c: cells[c] for c in cells if c in wanted or len(values[c]) <= most + 1}


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    yield SYSTEM, answer.system or " vs ".join(p.name for p in answer.responses if p.name)
    yield QUESTION, answer.group
    yield from answer.metadata.items()


def _usual(cells: Mapping[str, IntArray], most: int) -> Iterator[tuple[str, IntArray]]:
    """Columns of 2 to `most` values, without those that say how likely an answer was drawn."""
    drawn = columns_named(cells, (*WEIGHTS, *CHANCES))
    seen: set[bytes] = set()
    for column in sorted(cells, key=lambda c: (c != SYSTEM, c)):
        codes = numbered([cells[column]])
        alike = codes.tobytes()
        if 1 < codes.max(initial=0) + 1 <= most and column not in drawn and alike not in seen:
            seen.add(alike)
            yield column, codes


def numbered(columns: Sequence[IntArray]) -> IntArray:
    """(answers,): a number from 0 for each combination of values, in the order of its first row."""
    _, first, which = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which.ravel()]
