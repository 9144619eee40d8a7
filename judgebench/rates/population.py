"""Answers of which some are labelled, whatever they were read from: a study or one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgebench.alignment.caveats import reference_labels
from judgebench.data.tables import read_table
from judgebench.errors import Problem, SetupError
from judgebench.rates.result import ALL, MEAN, MEAN_LABEL
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.jackknife import LEVEL
from judgebench.stats.partly_labelled import Prediction, cross_fitted
from judgebench.studies.drawn import NOT_SAID, Cells, Drawn, Mask, texts_of
from judgebench.studies.labelled import FEWEST, MOST_GROUPS, traits_of
from judgebench.studies.study import Study

COMBINED = "all judges together"


@dataclass(frozen=True)
class Target:
    """Something whose mean over answers is asked for: `y` (items,), NaN without a human label, and
    by label the `values` whose mean that is; none of a score."""

    name: str
    y: FloatArray
    values: FloatArray | None = None
    is_rate: bool = True

    def said(self, judged: IntArray) -> FloatArray:
        """The values of the verdicts (items,); one without a label is as the others are on
        average, so that rates add up to 1."""
        assert self.values is not None
        read = judged >= 0
        failed = self.values[judged[read]].mean() if read.any() else 0.0
        return np.where(read, self.values[judged], failed)


@dataclass(frozen=True)
class Voice:
    """A judge, or several together: the answers on which a verdict is due, and by the name of a
    target what is predicted of it."""

    name: str
    due: Mask
    predicted: Mapping[str, Prediction]


@dataclass(frozen=True)
class Measure:
    """The estimates asked of a metric or a score: its targets, those `main` ones that a screen
    shows, who says something of them, on which answers (`about`), and the columns of numbers by
    which labelled and other answers are compared."""

    key: str
    title: str
    targets: Sequence[Target]
    main: Sequence[str]
    voices: Sequence[Voice]
    about: Mask
    traits: Mapping[str, FloatArray]

    @property
    def labels(self) -> list[Target]:
        """The targets that are the rate of one label each; of a score none."""
        return [
            t for t in self.targets if t.is_rate and t.values is not None and t.values.sum() == 1
        ]


@dataclass(frozen=True)
class Population:
    """The answers. `cells` holds what is known of each, `whose` says whose labels they are, and
    `drawn` how the labelled ones were drawn where a plan does not say it."""

    name: str
    cells: Cells
    clusters: Clusters
    whose: str
    drawn: Drawn
    level: float = LEVEL
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of answers."""
        return len(self.clusters)

    def groups(self, by: str) -> Mapping[str, Mask]:
        """All answers, and those of each value of a column. Raises SetupError for too many."""
        whole = np.ones(self.n, dtype=np.bool_)
        if not by:
            return {ALL: whole}
        texts = texts_of(self.cells, by)
        values = sorted(set(texts[texts != ""].tolist()))
        if len(values) > MOST_GROUPS:
            message = f"has {len(values):,} values, and at most {MOST_GROUPS} are groups"
            raise SetupError(Problem(message, field="by", found=by))
        return {ALL: whole, **{value: texts == value for value in values}}

    def usual_by(self) -> str:
        """The systems, where there are several."""
        systems = {*self.cells.get("system", ())}
        return "system" if 1 < len(systems) <= MOST_GROUPS else ""


def of_study(study: Study) -> tuple[Population, list[Measure]]:
    """The answers of a study, and each metric that somebody labelled."""
    whose = "The rate of a label is how often an annotator gives it, the mean of all of them."
    texts = [(answer.question, answer.group) for answer in study.answers]  # in one pass
    columns = np.array(texts, dtype=object).reshape(-1, 2).T
    cells = {**study.cells, "question": columns[0], "group": columns[1]}
    population = Population(
        study.name, cells, study.clusters,
        whose if study.config.rule == "each" else reference_labels(study),
        study.drawn, study.level, study.notes, study.gaps,
    )  # fmt: skip
    labelled = [m for m in study.rubric.metrics if (study.humans[m.id].truth >= 0).any()]
    return population, [_of_metric(study, metric) for metric in labelled]


def _of_metric(study: Study, metric: Metric) -> Measure:
    targets = _targets(study, metric)
    names, k = [target.name for target in targets], len(metric.labels)
    about = study.answers.of_kind(metric, study.rubric)
    judged = {j.name: study.judged(j, metric) for j in study.real_judges}
    due = {j.name: study.asked(j, metric) for j in study.real_judges}
    voices = [
        Voice(name, due[name], {t.name: _as_it_is(t.said(labels)) for t in targets})
        for name, labels in judged.items()
    ]
    main = [names[k - 1], *names[k : 2 * k - 2]]  # the severe ones
    if metric.kind == "nominal":
        rarer = int(np.nanmean(targets[0].y) > np.nanmean(targets[1].y))
        main = names if k > 2 else [names[rarer]]
    traits = traits_of(study, metric, study.real_judges)
    columns = [(labels == i).astype(np.float64) for labels in judged.values() for i in range(-1, k)]
    due_to_all = np.logical_and.reduce([about, *due.values()])
    voices += _together(targets, columns, due_to_all, study.clusters) if len(judged) > 1 else []
    return Measure(metric.id, metric.title, targets, main, voices, about, traits)


def _as_it_is(f: FloatArray) -> Prediction:
    return Prediction(f, f)


def _together(
    targets: Sequence[Target], columns: Sequence[FloatArray], due: Mask, clusters: Clusters
) -> list[Voice]:
    """All judges as one, where there are labels enough to learn how to combine them."""
    X = np.stack([x for x in columns if np.ptp(x)] or columns[:1], axis=1)
    if (~np.isnan(targets[0].y) & due).sum() < FEWEST:
        return []
    found = {t.name: cross_fitted(np.where(due, t.y, np.nan), X, clusters) for t in targets}
    return [Voice(COMBINED, due, found)]


def _targets(study: Study, metric: Metric) -> list[Target]:
    """The rate of each label; of ordered ones also of a label or worse, and the mean severity
    (or higher, and the mean label, where none is severe).
    Under the rule `each` the rates are those of a random annotator."""
    humans, k = study.humans[metric.id], len(metric.labels)

    def mean(values: FloatArray) -> FloatArray:
        y = np.full(len(humans.truth), np.nan)
        if humans.config.rule == "each":
            given = humans.made.values
            total = np.where(given >= 0, values[given], 0.0).sum(axis=1)
            y[humans.ratings.rows] = ratio(total, (given >= 0).sum(axis=1))
            return y
        known = humans.truth >= 0
        y[known] = values[humans.truth[known]]
        return y

    wanted = dict(zip(metric.label_texts, np.eye(k), strict=True))
    if metric.kind == "ordinal":
        worse = [(np.arange(k) >= label).astype(np.float64) for label in range(1, k - 1)]
        texts = metric.label_texts[1 : k - 1]
        onwards = "or worse" if metric.has_severe else "or higher"
        wanted |= {f"{t} {onwards}": values for t, values in zip(texts, worse, strict=True)}
    found = [Target(name, mean(values), values) for name, values in wanted.items()]
    if metric.kind == "ordinal" and k > 2:
        of_label = np.array(metric.values, dtype=np.float64)
        name = MEAN if metric.has_severe else MEAN_LABEL
        found.append(Target(name, mean(of_label), of_label, is_rate=False))
    return found


def of_table(
    table: Any, scores: Mapping[str, Sequence[str]], question: str = ""
) -> tuple[Population, list[Measure]]:
    """The answers of a table with a row each, and each of its columns of human `scores`, blank
    where nobody gave one, with the columns of numbers that predict it. `question` is the column
    that says which rows belong together. Raises SetupError."""
    needed = [*scores, *(c for columns in scores.values() for c in columns)]
    read = read_table(table, [*needed, *([question] if question else [])])
    numbers = dict(zip(needed, read.numbers(*needed).T, strict=True))
    clusters = Clusters.of(read.filled(question) if question else read.lines)
    cells = {c: np.array(read.contents(c), dtype=object) for c in read.columns}
    whose, drawn = "Means of scores that people gave.", NOT_SAID.or_usual(cells)
    population = Population("scores", cells, clusters, whose, drawn)
    about, measures = np.ones(len(read), dtype=np.bool_), []
    for column, predictors in scores.items():
        target = Target(f"mean {column}", numbers[column], is_rate=False)
        known = {p: numbers[p] for p in predictors}
        voices = [
            Voice(p, ~np.isnan(x), {target.name: _as_it_is(np.where(np.isnan(x), 0.0, x))})
            for p, x in known.items()
        ]
        traits = {p: x for p, x in known.items() if not np.isnan(x).any()}
        if len(known) > 1:
            due = np.logical_and.reduce([v.due for v in voices])
            spread = [
                np.where(due, x - np.nanmean(x), 0) / (np.nanstd(x) or 1) for x in known.values()
            ]
            voices += _together([target], spread, due, clusters)
        measures.append(Measure(column, column, [target], [target.name], voices, about, traits))
    return population, measures
