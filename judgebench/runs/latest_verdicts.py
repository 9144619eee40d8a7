"""What a judge said of each answer: label indices, label probabilities and statuses for all, whole
verdicts for a few.

A million verdicts as objects would take gigabytes. Read from a run folder they are a few arrays,
and a verdict is read again from its line when somebody asks for it.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from itertools import compress
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import Problem, SetupError
from judgebench.files import whole_lines
from judgebench.records import TRAINED_ON, Status, Usage, Verdict, add_known
from judgebench.rubric import Metric
from judgebench.runs.verdict_file import read_verdict
from judgebench.stats.arrays import FloatArray
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.truth import Labels
from judgebench.studies.verdicts import no_probabilities, shares, weighed

_STATUSES = tuple(Status)
_TRAINED_ON = len(_STATUSES)  # the code of what a judge skipped because it learnt from it
# A judge uses few of the possible combinations of labels, and those again and again.
_MOST_COMBINATIONS = 4096
_NOWHERE = -1  # the offset of a verdict that is not there
LinesByFile = dict[Path, set[int]]


class FiledVerdicts(Mapping[str, Verdict]):
    """The last verdict on each answer as it stands, by item_id, in the order of the answers.

    What was said of an older text, or under another signature, is left out. `usage`, `cost` and
    `models` are those of every line with the signature, not only of the last ones. The files may
    grow meanwhile, and nothing else. The numbers of lines that hold no verdict go into `left_out`;
    raises SetupError for one where that is None.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        signature: str,
        answers: IndexedAnswers,
        metrics: Sequence[Metric],
        left_out: LinesByFile | None = None,
    ) -> None:
        self._paths, self._answers = paths, answers
        self._metrics = [metric.id for metric in metrics]
        # The texts of each metric's labels, numbered as they are met; whether the rubric knows
        # them is asked when they are counted, as an older line may be wrong without harm.
        self._numbers: list[dict[str, int]] = [{} for _ in metrics]
        size = len(answers)
        self._offsets: array[int] | NDArray[Any] = array("q", [_NOWHERE]) * size
        self._file_of: array[int] | NDArray[Any] = array("i", [0]) * size
        self._status_of: array[int] | NDArray[Any] = array("b", [0]) * size
        self._row = struct.Struct(f"={len(metrics)}i")
        self._packed = lru_cache(_MOST_COMBINATIONS)(self._pack)
        # (answers, metrics) of int32
        self._labels: bytearray | NDArray[Any] = bytearray(self._row.size * size)
        self._probabilities = _FiledProbabilities(metrics, size)
        self._scores: FloatArray | None = None  # (answers,), once a verdict has one
        self.usage = Usage()
        self.cost: float | None = None
        self.models = Counter[str]()
        for file, path in enumerate(paths):
            for number, offset, line in whole_lines(path):
                try:
                    verdict = read_verdict(line, path, number)
                    if verdict.signature == signature:
                        if left_out is not None:
                            _check_labels(verdict, metrics)
                        self._note(verdict, file, offset, number)
                except SetupError:
                    if left_out is None:
                        raise
                    left_out.setdefault(path, set()).add(number)

    def only(self, answers: IndexedAnswers) -> FiledVerdicts:
        """The same for some of the answers, without reading the files again."""
        if answers is self._answers:
            return self
        found, rows = copy(self), self._rows_of(answers)
        found._answers = answers
        found._offsets = np.append(np.frombuffer(self._offsets, np.int64), _NOWHERE)[rows]
        found._file_of = np.frombuffer(self._file_of, np.int32)[rows]
        found._status_of = np.frombuffer(self._status_of, np.int8)[rows]
        found._labels = np.frombuffer(self._labels, np.int32).reshape(-1, len(self._metrics))[rows]
        found._probabilities = self._probabilities.only(rows)
        found._scores = None if self._scores is None else np.append(self._scores, np.nan)[rows]
        return found

    def _note(self, verdict: Verdict, file: int, offset: int, number: int) -> None:
        self.usage += verdict.usage
        self.cost = add_known(self.cost, verdict.cost)
        if verdict.model:
            self.models[str(verdict.model)] += 1
        row = self._answers.row_of(verdict.item_id, verdict.content_hash)
        if row < 0:
            return
        try:
            self._note_labels(row, verdict.labels)
        except (AttributeError, TypeError):
            message = "is no verdict: its labels are no texts by metric"
            raise SetupError(Problem(message, str(self._paths[file]), number)) from None
        try:
            self._probabilities.note(row, verdict.probabilities or {})
        except (AttributeError, TypeError, OverflowError, struct.error):
            message = "is no verdict: its probabilities are no numbers by metric and label"
            raise SetupError(Problem(message, str(self._paths[file]), number)) from None
        self._note_score(row, verdict.score, file, number)
        self._offsets[row], self._file_of[row] = offset, file
        own = verdict.reason == TRAINED_ON
        self._status_of[row] = _TRAINED_ON if own else _STATUSES.index(verdict.status)

    def _note_score(self, row: int, score: Any, file: int, number: int) -> None:
        if score is None and self._scores is None:
            return
        if not isinstance(score, float | int | None):
            message = "is no verdict: its score is no number"
            raise SetupError(Problem(message, str(self._paths[file]), number))
        if self._scores is None:
            self._scores = np.full(len(self._answers), np.nan)
        self._scores[row] = np.nan if score is None else score

    def _note_labels(self, row: int, labels: Mapping[str, str]) -> None:
        place = row * self._row.size
        said = tuple(map(labels.get, self._metrics))
        self._labels[place : place + self._row.size] = self._packed(said)

    def _pack(self, said: tuple[str | None, ...]) -> bytes:
        numbered = zip(said, self._numbers, strict=True)
        return self._row.pack(
            *(-1 if x is None else numbers.setdefault(x, len(numbers)) for x, numbers in numbered)
        )

    def label_indices(self, metric: Metric, answers: IndexedAnswers) -> Labels:
        """The label index of each of these answers, -1 where there is none or the judge abstained.

        Raises SetupError where a label is none of the metric's.
        """
        numbers = self._numbers[self._metrics.index(metric.id)]
        labels = np.frombuffer(self._labels, dtype=np.int32).reshape(-1, len(self._metrics))
        of_metric = np.where(self._there, labels[:, self._metrics.index(metric.id)], -1)
        used = np.bincount(of_metric + 1, minlength=len(numbers) + 1)[1:] > 0
        index = np.full(len(numbers) + 1, -1, dtype=np.int64)  # the last: -1 is no label
        for text, number in numbers.items():
            if used[number]:
                index[number] = metric.index(text)
        found: Labels = index[of_metric]
        if answers is self._answers:
            return found
        return np.append(found, -1)[self._rows_of(answers)]  # the last: -1 is no row

    def label_probabilities(self, metric: Metric, answers: IndexedAnswers) -> FloatArray:
        """Like `studies.verdicts.label_probabilities`."""
        found = self._probabilities.of(metric.id)
        if found is None:
            return no_probabilities(metric, answers)
        if answers is not self._answers:
            rows = self._rows_of(answers)
            found = np.where(rows[:, None] < 0, np.nan, found[rows])
        return shares(found, metric)

    def scores(self, answers: IndexedAnswers) -> FloatArray:
        """Like `studies.verdicts.scores`."""
        if self._scores is None:
            return np.full(len(answers), np.nan)
        if answers is self._answers:
            return self._scores
        return np.append(self._scores, np.nan)[self._rows_of(answers)]

    def _rows_of(self, answers: IndexedAnswers) -> Labels:
        """The row here of each of these answers, -1 where it has none."""
        found = map(self._answers.row, answers.item_ids())
        return np.fromiter(found, dtype=np.int64, count=len(answers))

    def was_asked(self, answers: IndexedAnswers) -> NDArray[np.bool_]:
        """Like `studies.verdicts.was_asked`."""
        if answers is self._answers:
            return self._there
        return np.append(self._there, False)[self._rows_of(answers)]

    def trained_on(self, answers: IndexedAnswers) -> NDArray[np.bool_]:
        """Like `studies.verdicts.trained_on`."""
        own = self._there & (np.frombuffer(self._status_of, dtype=np.int8) == _TRAINED_ON)
        return own if answers is self._answers else np.append(own, False)[self._rows_of(answers)]

    @property
    def _there(self) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = np.frombuffer(self._offsets, dtype=np.int64) != _NOWHERE
        return there

    def status_counts(self) -> Mapping[Status, int]:
        """How many verdicts ended how; none with 0."""
        found = np.frombuffer(self._status_of, dtype=np.int8)[self._there]
        found = np.where(found == _TRAINED_ON, _STATUSES.index(Status.SKIPPED), found)
        counts = np.bincount(found, minlength=len(_STATUSES))
        return {s: int(n) for s, n in zip(_STATUSES, counts, strict=True) if n}

    def __getitem__(self, item_id: str) -> Verdict:
        row = self._answers.row(item_id)
        if row < 0 or self._offsets[row] == _NOWHERE:
            raise KeyError(item_id)
        path = self._paths[self._file_of[row]]
        with path.open("rb") as file:
            file.seek(self._offsets[row])
            return read_verdict(file.readline(), path)

    def __contains__(self, item_id: object) -> bool:
        row = self._answers.row(item_id) if isinstance(item_id, str) else -1
        return bool(row >= 0 and self._offsets[row] != _NOWHERE)

    def __iter__(self) -> Iterator[str]:
        return compress(self._answers.item_ids(), self._there.tolist())

    def __len__(self) -> int:
        return int(self._there.sum())


def _check_labels(verdict: Verdict, metrics: Sequence[Metric]) -> None:
    """Raises SetupError for a label that the rubric lacks, as a damaged line may have."""
    for metric in metrics:
        if (label := verdict.labels.get(metric.id)) is not None:
            metric.index(label)


class _FiledProbabilities:
    """The probabilities of every metric's options side by side, (answers, columns) of float32, NaN
    where there are none; nothing is kept until a verdict has some."""

    def __init__(self, metrics: Sequence[Metric], size: int) -> None:
        self._size, self._kept, columns = size, bytearray(), 0
        self._columns: dict[str, slice] = {}
        self._read = []
        for metric in metrics:
            options = weighed(metric)
            self._read.append((metric.id, itemgetter(*options), (np.nan,) * len(options)))
            self._columns[metric.id] = slice(columns, columns + len(options))
            columns += len(options)
        self._row = struct.Struct(f"={columns}f")

    def note(self, row: int, given: Mapping[str, Mapping[str, float]]) -> None:
        """What the verdict of a row says; a metric is missing unless every option has a weight."""
        if not self._kept:
            if not given:
                return
            self._kept = bytearray(np.full(self._size * self._row.size // 4, np.nan, np.float32))
        said: list[float] = []
        for metric, read, missing in self._read:
            try:
                said += read(given[metric])
            except KeyError:
                said += missing
        self._row.pack_into(self._kept, row * self._row.size, *said)

    def only(self, rows: Labels) -> _FiledProbabilities:
        """Those of some rows; none for -1."""
        found = copy(self)
        if self._kept:
            found._size = len(rows)
            kept = np.frombuffer(self._kept, dtype=np.float32).reshape(self._size, -1)[rows]
            kept[rows < 0] = np.nan
            found._kept = bytearray(kept)
        return found

    def of(self, metric: str) -> NDArray[np.float32] | None:
        """That metric's columns; None where no verdict had any probability."""
        if not self._kept:
            return None
        kept = np.frombuffer(self._kept, dtype=np.float32).reshape(self._size, -1)
        return kept[:, self._columns[metric]]
