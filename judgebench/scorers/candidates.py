"""Numbers for answers: of the scorers in a run folder, of judges, and the humans' beside them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgebench.files import read_lines
from judgebench.records import Status
from judgebench.results.blocks import IntervalKind
from judgebench.rubric import Metric
from judgebench.runs.folder import BESIDE, RunFolder
from judgebench.runs.open import verdicts_of
from judgebench.scorers.config import BASELINES, RATIO_SCALES, Better
from judgebench.stats.arrays import FloatArray, IntArray, mean_of_defined
from judgebench.stats.association import LEVELS, Level, Rated
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.study import JudgeVerdicts, Study


@dataclass(frozen=True)
class ScorerRun:
    """The verdicts of one scorer on the study's answers; `judged.verdicts` hold the scores."""

    name: str
    better: Better
    judged: JudgeVerdicts

    @property
    def about(self) -> Mapping[str, Any]:
        """Its signature in full."""
        return self.judged.about or {}

    @property
    def kind(self) -> IntervalKind:
        """A control has no meaning of its own, so that all others must do better."""
        return "control" if self.about.get("scorer") in BASELINES else "judge"

    @property
    def is_ratio(self) -> bool:
        """True where its scale has a true zero."""
        return self.about.get("scorer") in RATIO_SCALES

    @property
    def remarks(self) -> Mapping[tuple[str, bool], int]:
        """(why, whether there is a score all the same) -> of how many answers it is said."""
        verdicts = self.judged.verdicts.values()
        told = Counter((v.reason or v.status.value, v.score is not None) for v in verdicts)
        return {one: n for one, n in told.items() if one != (Status.OK.value, True)}


@dataclass(frozen=True)
class Reworded:
    """Answers beside versions that must not change a verdict, as a stress test made them.

    `study` has all texts as its answers, `runs` hold the scorers' numbers on them; `versions` are,
    by recipe, the rows of each answer and its versions, -1 for what is not there.
    """

    study: Study
    runs: Sequence[ScorerRun]
    versions: Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True)
class ScorersRead:
    """The scorers of a run on the answers of its study, and on `reworded` ones if there are any."""

    runs: Sequence[ScorerRun]
    reworded: Reworded | None = None


def read_scorers(folder: RunFolder, study: Study) -> ScorersRead:
    """The scores in a run folder; of answers that were reworded too."""
    runs = _runs(folder, study.answers)
    return ScorersRead(runs, _reworded(folder, study) if runs else None)


def _runs(folder: RunFolder, answers: IndexedAnswers) -> tuple[ScorerRun, ...]:
    return tuple(
        ScorerRun(name, entry.get("better", ""), verdicts_of(folder, name, entry, answers))
        for name, entry in folder.manifest()["judges"].items()
        if entry["kind"] == "scorer"
    )


def _reworded(folder: RunFolder, study: Study) -> Reworded | None:
    versions: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for _, line in read_lines(folder.path / BESIDE) if folder.has_beside else ():
        if line.get("must_not_change") and not line.get("demand"):
            recipe, parent = versions[line["recipe"]], line["parent_id"]
            recipe.setdefault(parent, [parent]).append(line["item_id"])
    if not versions:
        return None
    texts, entries = folder.indexed_answers(), folder.manifest()["judges"]
    judges = [verdicts_of(folder, j.name, entries[j.name], texts)
              for j in study.judges if j.name in entries]  # fmt: skip
    whole = replace(study, answers=texts, judges=tuple(judges))
    rows = {
        recipe: [[*map(texts.row, ids)] for ids in by_parent.values()]
        for recipe, by_parent in versions.items()
    }
    return Reworded(whole, _runs(folder, texts), rows)


@dataclass(frozen=True)
class Candidate:
    """Numbers of one scorer or judge, NaN where there is none: `x` (answers,) as they are, and
    `severity`, turned so that more is more severe, unless nobody said which way is better."""

    name: str
    kind: IntervalKind
    x: FloatArray
    better: Better = "lower"
    metric: str = ""
    is_ratio: bool = False

    @property
    def severity(self) -> FloatArray:
        return -self.x if self.better == "higher" else self.x


def scorer_candidates(study: Study, runs: Sequence[ScorerRun]) -> list[Candidate]:
    """The scorers of a run."""
    return [
        Candidate(run.name, run.kind, study.scores(run.judged), run.better, is_ratio=run.is_ratio)
        for run in runs
    ]


def judge_candidates(
    study: Study, metric: Metric, runs: Sequence[ScorerRun]
) -> Iterator[Candidate]:
    """The judges that label an ordinal metric: the severity of the label, expected where each label
    has a probability. Of one that follows from a score that is not among `runs`, the score; so of
    controls."""
    known = [_scored_by(run.about) for run in runs]
    for judge in study.judges:
        is_control, about = judge.kind == "control", judge.about or {}
        left_out = _scored_by(about["of"]) in known if "cuts" in about else is_control
        if left_out or not judge.judges(metric):
            continue
        x = severity_of(study, judge, metric)
        if not np.isnan(x).all():
            yield Candidate(judge.name, "control" if is_control else "judge", x)


def _scored_by(about: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in about.items() if key not in ("judge", "runtime")}


def severity_of(study: Study, judge: JudgeVerdicts, metric: Metric) -> FloatArray:
    """(answers,), NaN where there is none: its score, else the expected severity where each label
    has a probability, else that of the label."""
    raw, labels = study.scores(judge), study.judged(judge, metric)
    if not np.isnan(raw).all():
        return raw
    p = study.probabilities(judge, metric)
    if p is not None and not np.isnan(p[labels >= 0]).any():
        return p @ np.array(metric.severities, dtype=np.float64)
    return label_severity(study, judge, metric)


def label_severity(study: Study, judge: JudgeVerdicts, metric: Metric) -> FloatArray:
    """(answers,), NaN where there is no label."""
    return _severity(metric, study.judged(judge, metric))


def _severity(metric: Metric, labels: IntArray) -> FloatArray:
    """Of labels, -1 for none, in their shape."""
    return np.where(labels >= 0, np.array(metric.severities, dtype=np.float64)[labels], np.nan)


@dataclass(frozen=True)
class Severities:
    """Human severities of one metric, of the answers at `rows` (rated,), which have any: `each`
    maker's of the truth (rated, makers), NaN where none, and their `mean`, which the numbers are
    held against. The `mean` has codes of systems where three or more are known."""

    makers: tuple[str, ...]
    rows: IntArray
    each: FloatArray
    mean: Rated

    def beside(self, candidate: Candidate) -> Rated:
        return replace(self.mean, scores=candidate.severity[self.rows])

    def annotators(self) -> Iterator[tuple[str, Rated]]:
        """Each maker's severities beside the mean of the others', of the answers that have both."""
        there = ~np.isnan(self.each)
        total, n = np.nansum(self.each, axis=1), there.sum(axis=1)
        for maker, own, has_own in zip(self.makers, self.each.T, there.T, strict=True):
            rows = has_own & (n > 1)
            if rows.any():
                others = (total - own)[rows] / (n - 1)[rows]
                systems = None if self.mean.systems is None else self.mean.systems[rows]
                yield maker, Rated(own[rows], others, self.mean.groups[rows].occurring(), systems)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels at which anything can be said."""
        several = np.bincount(self.mean.groups.codes).max() > 1
        left_out = {"within": not several, "system": self.mean.systems is None}
        return tuple(level for level in LEVELS if not left_out.get(level))


def severities(study: Study, metric: Metric) -> Severities | None:
    """Of an ordinal metric; None where no answer has a label."""
    import pandas as pd

    humans = study.humans[metric.id]
    values = humans.made.values
    labelled = (values >= 0).any(axis=1)
    rows, each = humans.ratings.rows[labelled], _severity(metric, values[labelled])
    if not len(rows):
        return None
    systems = pd.Series([study.answers[row].system for row in rows.tolist()])
    codes = systems.replace("", None).factorize()[0]
    clusters = humans.clusters[labelled].occurring()
    known = codes if codes.max() > 1 else None
    mean = Rated(np.full(len(rows), np.nan), mean_of_defined(each), clusters, known)
    return Severities(humans.makers, rows, each, mean)
