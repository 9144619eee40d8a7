"""What of a study was answered, or written anew, several times."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from judgebench.results.rows import Row
from judgebench.scorers.candidates import severity_of
from judgebench.scorers.reading import ScorerRun, ScorersRead
from judgebench.scorers.steady import (
    ANSWERS,
    RATIO_SCALES,
    Repeats,
    Scores,
    counts,
    repeated_rows,
    repeats_of,
)
from judgebench.study.answers import IndexedAnswers
from judgebench.study.study import Study
from judgebench.study.verdicts import scores


def steady_rows(study: Study, read: ScorersRead) -> Iterator[Row]:
    """How steady scorers and judges are where systems answered several times, and where a stress
    test wrote answers anew; see `steady`."""
    yield from _rows(study, read.runs, [_answered_again(study)])
    if (reworded := read.reworded) is not None:
        texts = reworded.study.answers
        versions = [
            _repeats(recipe, texts, {i: list(map(texts.row, ids)) for i, ids in by_parent.items()})
            for recipe, by_parent in reworded.versions.items()
        ]
        yield from _rows(reworded.study, reworded.runs, versions)


def _answered_again(study: Study) -> Repeats:
    held: dict[Hashable, list[int]] = {}
    if study.clusters.n < len(study.answers):  # otherwise they need not be gone through
        for row, answer in enumerate(study.answers):
            if answer.system and answer.kind == "answer":
                held.setdefault((answer.system, answer.question or answer.group), []).append(row)
    return _repeats(ANSWERS, study.answers, held)


def _repeats(runs: str, answers: IndexedAnswers, held: Mapping[Hashable, Sequence[int]]) -> Repeats:
    several = [rows for rows in held.values() if len(rows) > 1 and min(rows) >= 0]
    first = [answers[rows[0]] for rows in several]
    units = [(one.system, one.question or one.group, one.group) for one in first]
    same = sum(len({answers.content_hash(row) for row in rows}) == 1 for rows in several)
    return repeats_of(runs, list(zip(units, several, strict=True)), same)


def _rows(study: Study, runs: Sequence[ScorerRun], kinds: Iterable[Repeats]) -> Iterator[Row]:
    found = list(_scores(study, runs))
    for repeats in (repeats for repeats in kinds if len(repeats.rows)):
        yield from counts(repeats)
        for one in found:
            yield from repeated_rows(repeats, one, study.resampling)


def _scores(study: Study, runs: Sequence[ScorerRun]) -> Iterator[Scores]:
    """Every scorer as it scores, and every judge's severities on each ordinal metric: expected
    ones, where each label has a probability; those of its labels, where it follows from a score."""
    for run in runs:
        is_ratio = run.about.get("scorer") in RATIO_SCALES
        yield Scores(run.name, "", scores(run.judged.verdicts, study.answers), is_ratio)
    for metric in study.rubric.metrics:
        for judge in study.judges if metric.kind == "ordinal" else ():
            if judge.kind != "control" and judge.judges(metric):
                x, labels = severity_of(study, judge, metric), study.judged(judge, metric)
                if "of" in (judge.about or {}):
                    x = np.where(labels >= 0, np.array(metric.severities, float)[labels], np.nan)
                yield Scores(judge.name, metric.id, x)
