"""Rates and means of all answers: each label, by system, by four ways side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.alignment.notes import reference_labels, tied_labels
from judgebench.data.tables import read_table
from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate, Results, Row
from judgebench.results.shown import Shown
from judgebench.rubric import Metric
from judgebench.runs.from_tables import Tables, study_from
from judgebench.runs.open import Truth, is_run
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio, value_counts
from judgebench.stats.intervals import LEVEL
from judgebench.stats.partly_labelled import (
    Asked,
    Powered,
    Prediction,
    Sample,
    correlation,
    cross_fitted,
    difference,
    labels_for_width,
    of_labels,
    prediction_powered,
    rogan_gladen,
    tuning_of,
    unlike,
)
from judgebench.studies.reference_labels import (
    NOT_SAID,
    Cells,
    Drawn,
    Mask,
    drawn_of,
    kept_columns,
    texts_of,
)
from judgebench.studies.study import FEWEST, MOST_GROUPS, Study, differences, traits_of
from judgebench.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from judgebench.data.layout import Layout

ALL = "all"  # as a group
MEAN = "mean severity"
MEAN_LABEL = "mean label"  # as a number, where no label is severe
COMBINED = "all judges together"
UNLIKE = "labelled answers do not look like the others"
_MOST_COMPARED = 10  # groups of which every two are compared
_MANY = 0.25  # as many more answers as have human labels, for rates in a report of all
_SAY_HOW = (
    "So there is no interval, unless --drawn says how they were drawn: weight=COLUMN, "
    "probability=COLUMN or strata=COLUMN, or random if they were all the same."
)
NOBODY_SAID = (
    "Nobody said how the labelled answers were drawn: they are taken for a random sample of all. "
    "If they were (the same chance for all), say --drawn random. Answers picked out because they "
    "are hard or easy bias every rate but the verdicts' own: if their chances are known, say "
    "--drawn with weight=COLUMN, probability=COLUMN or strata=COLUMN; else label a random sample "
    "of the others too."
)


@dataclass(frozen=True, repr=False)
class Rates(Shown):
    """The rate of each label, by system, in four ways.

    The rows are of the analysis `rate` (statistics `human`, `ppi`, `rogan_gladen`, `verdicts`),
    `difference` of two groups (`human`, `ppi`) and `labels` (`given`, `saved`, `needed`), with the
    keys `of` (the label, or `X or worse`, or `mean severity`; of `severe: none` `X or higher`, or
    `mean label`) and `group`. `titles` are those of metrics by their ids, `main` the keys `of` of
    each metric that a screen shows.
    """

    rows: Results
    titles: Mapping[str, str]
    main: Mapping[str, Sequence[str]]
    name: str
    headline: str
    n_answers: int
    by: str = ""
    width: float | None = None
    compared: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    urgent: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    requested: bool = True  # and not part of the report of another question
    ties: Mapping[str, str] = field(default_factory=dict)  # by metric: labels that a tie decides

    presented_by = "judgebench.rates.report:rates_part"

    def labels(self, metric: str) -> list[str]:
        """The keys `of` of a metric."""
        return list(dict.fromkeys(row["of"] for row in self.rows.select("rate", metric=metric)))

    def plot(self, *, ax: Axes | None = None, width: float | None = None) -> Axes:
        """The rates of every label that a screen shows, systems down, an interval for each way, as
        axes of matplotlib: `ax`, or those of a new figure of a `width` in inches. Raises SetupError
        where nothing was estimated."""
        from judgebench.results.blocks import Intervals, figures_of
        from judgebench.results.figures import draw_intervals, plotted

        figures = [f for f in figures_of([self.part]) if isinstance(f, Intervals)]
        lines = [(f"{f.title}, {name}", lanes) for f in figures for name, lanes in f.lines]
        whole = replace(figures[0], title=self.headline, lines=tuple(lines))
        axes: Axes = plotted(partial(draw_intervals, whole), ax, width)
        return axes


# --- answers of which some are labelled, whatever they were read from: a study or one table -------


@dataclass(frozen=True)
class Target:
    """Something whose mean over answers is asked for: `y` (items,), NaN without a human label, and
    by label the `values` whose mean that is; none of a score."""

    name: str
    y: FloatArray
    values: FloatArray | None = None
    is_rate: bool = True

    def predicted(self, judge_labels: IntArray) -> Prediction:
        """The values of the verdicts (items,); one without a label is as the others are on
        average, so that rates add up to 1."""
        assert self.values is not None
        is_read = judge_labels >= 0
        failed = self.values[judge_labels[is_read]].mean() if is_read.any() else 0.0
        F = np.where(is_read, self.values[judge_labels], failed)
        return Prediction(F, F)


@dataclass(frozen=True)
class Predictor:
    """A judge, or several together, or nobody ("", the human labels alone): the answers on which a
    verdict is due, and by the name of a target what is predicted of it."""

    name: str
    due: Mask
    predictions: Mapping[str, Prediction]


@dataclass(frozen=True)
class Measure:
    """The estimates asked of a metric or a score: its targets, of which the first `n_labels` are
    the rates of one label each; those `main` ones that a screen shows; who predicts them, on which
    answers (`about`); the columns of numbers by which labelled and other answers are compared; and
    a sentence on labels that a tie decides.
    """

    key: str
    title: str
    targets: Sequence[Target]
    n_labels: int
    main: Sequence[str]
    predictors: Sequence[Predictor]
    about: Mask
    traits: Mapping[str, FloatArray]
    ties: str = ""


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

    def groups(self, by: str) -> Mapping[str, Mask]:
        """All answers, and those of each value of a column. Raises SetupError for too many."""
        masks = {ALL: np.ones(len(self.clusters), dtype=np.bool_)}
        if by:
            texts = texts_of(self.cells, by)
            values = sorted({*texts.tolist()} - {""})
            if len(values) > MOST_GROUPS:
                message = f"has {len(values):,} values, and at most {MOST_GROUPS} are groups"
                raise SetupError(Problem(message, field="by", found=by))
            masks |= {value: texts == value for value in values}
        return masks


def of_study(study: Study) -> tuple[Population, list[Measure]]:
    """Return the answers of a study, and each metric that somebody labelled."""
    whose = "The rate of a label is how often an annotator gives it, the mean of all of them."
    population = Population(
        study.name, study.cells, study.clusters,
        whose if study.config.rule == "each" else reference_labels(study),
        study.drawn, study.level, study.notes, study.gaps,
    )  # fmt: skip
    labelled = [m for m in study.rubric.metrics if (study.humans[m.id].truth >= 0).any()]
    return population, [_of_metric(study, metric) for metric in labelled]


def _of_metric(study: Study, metric: Metric) -> Measure:
    targets, k = _targets(study, metric), len(metric.labels)
    names = [target.name for target in targets]
    about = study.answers.of_kind(metric, study.rubric)
    judge_labels = {j.name: study.judged(j, metric) for j in study.real_judges}
    predictors = [
        Predictor(
            judge.name,
            study.asked(judge, metric),
            {t.name: t.predicted(judge_labels[judge.name]) for t in targets},
        )
        for judge in study.real_judges
    ]
    main = [names[k - 1], *names[k : 2 * k - 2]]  # the severe ones
    if metric.kind == "nominal":
        rarer = int(np.nanmean(targets[0].y) > np.nanmean(targets[1].y))
        main = names if k > 2 else [names[rarer]]
    traits = traits_of(study, metric, study.real_judges)
    columns = [(x == i) * 1.0 for x in judge_labels.values() for i in range(-1, k)]
    predictors += _together(targets, columns, predictors, about, study.clusters)
    ties = ""
    if tied := tied_labels(study, [metric]):
        rule = study.config.in_words(metric, tied=tied)
        ties = (
            f"Human labels: {rule}. Settled otherwise, rates differ; --truth each counts them all."
        )
    return Measure(metric.id, metric.title, targets, k, main, predictors, about, traits, ties)


def _targets(study: Study, metric: Metric) -> list[Target]:
    """The rate of each label; of ordered ones also of a label or worse, and the mean severity (or
    higher, and the mean label, where none is severe). Under the rule `each` the rates are those of
    a random annotator."""
    texts, k = metric.label_texts, len(metric.labels)
    values_by_name = dict(zip(texts, np.eye(k), strict=True))
    onwards, mean = ("or worse", MEAN) if metric.has_severe else ("or higher", MEAN_LABEL)
    if metric.kind == "ordinal":
        for label in range(1, k - 1):
            is_worse = np.arange(k) >= label
            values_by_name[f"{texts[label]} {onwards}"] = is_worse.astype(np.float64)
        if k > 2:
            values_by_name[mean] = np.array(metric.values, dtype=np.float64)
    counts = _label_counts(study, metric)
    n = counts.sum(axis=1)
    return [
        Target(name, ratio(counts @ values, n), values, name != mean)
        for name, values in values_by_name.items()
    ]


def _label_counts(study: Study, metric: Metric) -> FloatArray:
    """How often people gave each label to each answer (items, labels): all labels under the rule
    `each`, else the reference label."""
    humans, k = study.humans[metric.id], len(metric.labels)
    counts = np.zeros((len(humans.truth), k))
    if humans.config.rule == "each":
        counts[humans.ratings.rows] = value_counts(humans.made.values, k)
    else:
        is_labelled = humans.truth >= 0
        counts[is_labelled] = np.eye(k)[humans.truth[is_labelled]]
    return counts


def _together(
    targets: Sequence[Target],
    columns: Sequence[FloatArray],
    predictors: Sequence[Predictor],
    about: Mask,
    clusters: Clusters,
) -> list[Predictor]:
    """All judges as one, where there are several and labels enough to learn how to combine them."""
    due = np.logical_and.reduce([about, *(predictor.due for predictor in predictors)])
    if len(predictors) < 2 or (~np.isnan(targets[0].y) & due).sum() < FEWEST:
        return []
    X = np.stack([x for x in columns if np.ptp(x)] or columns[:1], axis=1)
    combined = {t.name: cross_fitted(np.where(due, t.y, np.nan), X, clusters) for t in targets}
    return [Predictor(COMBINED, due, combined)]


def of_table(
    table: Any, scores: Mapping[str, Sequence[str]], question: str = ""
) -> tuple[Population, list[Measure]]:
    """Return the answers of a table with a row each, and each of its columns of human `scores`,
    blank where nobody gave one, with the columns of numbers that predict it. `question` is the
    column that says which rows belong together. Raises SetupError."""
    needed = [*scores, *(c for columns in scores.values() for c in columns)]
    read = read_table(table, [*needed, *([question] if question else [])])
    numbers = dict(zip(needed, read.numbers(*needed).T, strict=True))
    clusters = Clusters.of(read.filled(question) if question else read.lines)
    cells = {c: np.array(read.contents(c), dtype=object) for c in read.columns}
    whose, drawn = "Means of scores that people gave.", NOT_SAID.or_usual(cells)
    population = Population("scores", cells, clusters, whose, drawn)
    about = np.ones(len(read), dtype=np.bool_)
    measures = []
    for column, names in scores.items():
        target = Target(f"mean {column}", numbers[column], is_rate=False)
        predictors, scaled = [], []
        for name in names:
            x, is_known = numbers[name], ~np.isnan(numbers[name])
            filled = np.where(is_known, x, 0.0)
            predictors.append(Predictor(name, is_known, {target.name: Prediction(filled, filled)}))
            scaled.append(np.where(is_known, x - np.nanmean(x), 0) / (np.nanstd(x) or 1))
        traits = {p.name: numbers[p.name] for p in predictors if p.due.all()}
        predictors += _together([target], scaled, predictors, about, clusters)
        main = [target.name]
        measures.append(Measure(column, column, [target], 0, main, predictors, about, traits))
    return population, measures


# --- estimates ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The wishes: rates by each value of the column `by`, of answers `drawn` so, how many
    labels make an interval of that `width`, and limits that hold at `anytime`."""

    by: str = ""
    drawn: Drawn = NOT_SAID
    width: float | None = None
    anytime: bool = False


def estimate_population(population: Population, measures: Sequence[Measure], plan: Plan) -> Rates:
    """Estimate the means of all targets, of all answers and of each group.

    Raises SetupError for a column that the answers do not have, and where nobody labelled any.
    """
    n = len(population.clusters)
    is_labelled = np.any([~np.isnan(measure.targets[0].y) for measure in measures], axis=0)
    if not is_labelled.any():
        raise SetupError(Problem("no answer has a human label, so no rate can be estimated"))
    if plan.width is not None and plan.width <= 0:
        raise SetupError(Problem("must be more than 0", field="width", found=str(plan.width)))
    by, drawn = plan.by, plan.drawn if plan.drawn.is_said else population.drawn
    if not by and 1 < len({*population.cells.get("system", ())}) <= MOST_GROUPS:
        by = "system"
    plan = replace(plan, by=by, drawn=drawn)
    estimators = [_Estimator(population, plan, measure) for measure in measures]
    size = f"{population.name} · {counted(n, 'answer')} · {is_labelled.sum():,} with human labels"
    return Rates(
        rows=Results(tuple(row for estimator in estimators for row in estimator.rows())),
        titles={measure.key: measure.title for measure in measures},
        main={measure.key: measure.main for measure in measures},
        name=population.name,
        headline=f"{size} · by {by}" if by else size,
        n_answers=n,
        by=by,
        width=plan.width,
        compared=(population.whose,),
        notes=(
            *(note for estimator in estimators for note in estimator.notes),
            *_assumptions(population, plan, is_labelled),
            *population.notes,
        ),
        urgent=tuple(dict.fromkeys(alarm for e in estimators for alarm in e.alarms)),
        gaps=population.gaps,
        ties={measure.key: measure.ties for measure in measures},
    )


def measure_rates(study: Study) -> Rates | None:
    """Return the rates as a part of a report: None unless verdicts add something, because a judge
    labelled many answers that nobody else did."""
    for metric in study.rubric.metrics:
        is_labelled = study.humans[metric.id].truth >= 0
        extra = (study.judged(j, metric)[~is_labelled] >= 0 for j in study.real_judges)
        most = max((mask.sum() for mask in extra), default=0)
        if is_labelled.any() and most >= _MANY * is_labelled.sum():
            return replace(estimate_population(*of_study(study), Plan()), requested=False)
    return None


@contextmanager
def naming_by(by: str) -> Iterator[None]:
    """Say of a problem with this column that `by` names it, though it is kept for that."""
    try:
        yield
    except SetupError as error:
        raise SetupError([
            replace(p, field=p.field.replace("column", "by") if p.found == by else p.field)
            for p in error.problems
        ]) from None  # fmt: skip


class _Estimator:
    """The numbers of one measure."""

    def __init__(self, population: Population, plan: Plan, measure: Measure) -> None:
        self.level, self.plan, self.measure = population.level, plan, measure
        self.groups = population.groups(plan.by)
        y = measure.targets[0].y
        self.sample = plan.drawn.sample(y, population.clusters, population.cells)
        self.alarms: list[str] = []
        self.notes: list[str] = []
        self.is_unlike = {group: self._warn_if_unlike(group) for group in self.groups}

    def rows(self) -> Iterator[Row]:
        """Every number."""
        for target in self.measure.targets:
            for group in self.groups:
                yield from self._label_rows(target, group)
                for predictor in self.measure.predictors:
                    if (self.groups[group] & predictor.due).any():
                        yield from self._predictor_rows(target, predictor, group)
            yield from self._difference_rows(target)

    def _label_rows(self, target: Target, group: str) -> Iterator[Row]:
        sample = self._sample(target, self.groups[group] & self.measure.about)
        human = self._guarded(of_labels(sample, self._intervals(target)), group)
        human = replace(human, n_missing=len(sample.y) - sample.n)
        yield self._row("rate", "human", human, target, group=group)
        given = Estimate(float(sample.n), n=len(sample.y))
        yield self._row("labels", "given", given, target, group=group)

    def _predictor_rows(self, target: Target, predictor: Predictor, group: str) -> Iterator[Row]:
        def row(analysis: str, way: str, e: Estimate) -> Row:
            return self._row(analysis, way, e, target, group=group, judge=predictor.name)

        intervals, is_judge = self._intervals(target), predictor.name != COMBINED
        sample, F, powered = self._powered(target, predictor, group, intervals)
        if is_judge:
            yield row("rate", "verdicts", of_labels(Sample(F, sample.clusters), intervals))
        if sample.n == len(sample.y):
            return  # the human labels are of all these answers
        yield row("rate", "ppi", self._guarded(powered.estimate, group))
        if powered.effective is not None:
            yield row("labels", "saved", Estimate(powered.effective - sample.n, n=sample.n))
        if self.plan.width is not None:
            needed = labels_for_width(sample, powered, self.plan.width, intervals)
            yield row("labels", "needed", needed)
        if target.is_rate and is_judge:
            yield row("rate", "rogan_gladen",
                      self._guarded(rogan_gladen(sample, F, intervals), group))  # fmt: skip

    def _difference_rows(self, target: Target) -> Iterator[Row]:
        """Every two groups, by intervals that hold for all of them together (Bonferroni)."""
        groups = [group for group in self.groups if group != ALL]
        pairs = list(combinations(groups, 2))
        if not pairs or len(groups) > _MOST_COMPARED:
            return
        intervals = self._intervals(target, 1 - (1 - self.level) / len(pairs))
        nothing = np.zeros(len(target.y))
        human = Predictor("", self.measure.about, {target.name: Prediction(nothing, nothing)})
        for predictor in (human, *self.measure.predictors):
            by_group = {g: self._with_influence(target, predictor, g, intervals) for g in groups}
            for a, b in pairs:
                (rate_a, of_a), (rate_b, of_b) = by_group[a], by_group[b]
                shared = correlation(self.sample.clusters, of_a, of_b)
                gap = difference(rate_a, rate_b, shared)
                if gap.method:
                    gap = replace(gap, method=f"{gap.method}; Bonferroni for {len(pairs)}")
                keys = {"judge": predictor.name, "group": a, "against": b}
                way = "ppi" if predictor.name else "human"
                yield self._row("difference", way, gap, target, **keys)

    def _with_influence(
        self, target: Target, predictor: Predictor, group: str, intervals: Asked
    ) -> tuple[Estimate, FloatArray]:
        """The estimate of a group, and the influence of each item on it (items,)."""
        sample, _, powered = self._powered(target, predictor, group, intervals)
        influence = np.zeros(len(target.y))
        rows = self.groups[group] & predictor.due
        if powered.linear is not None:
            influence[rows] = powered.linear.influence
        elif not sample.why_none:
            labels = np.where(sample.labelled, sample.y, 0.0)
            influence[rows] = sample.w * (labels - sample.means(labels))
        return self._guarded(powered.estimate, group), influence

    def _powered(
        self, target: Target, predictor: Predictor, group: str, intervals: Asked
    ) -> tuple[Sample, FloatArray, Powered]:
        """The answers of a group on which verdicts are due, what is predicted of them, and their
        estimate. The tuning is one for all targets of labels, so that their rates add up to 1 and
        that of a label or worse to those of its labels."""
        rows = self.groups[group] & predictor.due

        def prediction(t: Target) -> Prediction:
            F = predictor.predictions[t.name]
            return Prediction(F.every[rows], F.own[rows])

        tuned = self.measure.targets[: self.measure.n_labels] or [target]
        tuning = 0.0
        if predictor.name:
            tuning = tuning_of([(self._sample(t, rows), prediction(t)) for t in tuned])
        sample, F = self._sample(target, rows), prediction(target)
        return sample, F.every, prediction_powered(sample, F, intervals, tuning)

    def _sample(self, target: Target, rows: Mask) -> Sample:
        return replace(self.sample, y=target.y).at(rows)

    def _intervals(self, target: Target, level: float | None = None) -> Asked:
        return Asked(level or self.level, target.is_rate, self.plan.anytime)

    def _row(
        self, analysis: str, way: str, e: Estimate, target: Target, judge: str = "", **keys: str
    ) -> Row:
        return Row(analysis, way, e, judge, self.measure.key, {"of": target.name, **keys})

    def _guarded(self, e: Estimate, group: str) -> Estimate:
        """Without an interval where the labelled answers are unlike the others."""
        if not self.is_unlike[group] or e.value is None:
            return e
        return replace(e, low=None, high=None, reason=UNLIKE)

    def _warn_if_unlike(self, group: str) -> bool:
        """True where no interval can be believed; what differs is noted."""
        rows, columns = self.groups[group] & self.measure.about, {**self.measure.traits}
        if group == ALL:  # which is also compared by its groups
            others = {g: mask for g, mask in self.groups.items() if g != ALL}
            columns |= {f"{self.plan.by} {g}": x.astype(np.float64) for g, x in others.items()}
        traits = {name: x[rows] for name, x in columns.items()}
        differing = unlike(self._sample(self.measure.targets[0], rows), traits)
        if not differing:
            return False
        where = f" of {group}" if group != ALL else ""
        words = differences(differing, f"the labelled answers{where}")
        note = f"{self.measure.title}: {words}."
        if self.plan.drawn.is_said:
            self.notes.append(note)
            return False
        self.alarms.append(f"{note} {_SAY_HOW}")
        return True


def _assumptions(population: Population, plan: Plan, is_labelled: Mask) -> Iterator[str]:
    """The assumptions of the intervals."""
    yield from filter(None, [plan.drawn.in_words()])
    if not (plan.drawn.is_said or is_labelled.all()):
        yield NOBODY_SAID
    elif not plan.drawn.columns:
        yield (
            "The labelled answers are taken for a random sample of all: answers picked out because "
            "they are hard or easy would bias every rate but the verdicts' own."
        )
    if plan.anytime:
        yield (
            "The limits hold at every look while labels arrive in batches, from about 50 labelled "
            "answers or questions on."
        )
    if (few := population.clusters[is_labelled].occurring().n) < FEWEST:
        yield f"The labels are of {counted(few, 'question')} only: intervals may be too narrow."


def estimate(
    study: Study | Tables | Layout,
    verdicts: Tables | None = None,
    *,
    by: str = "",
    drawn: str | Sequence[str] = (),
    width: float | None = None,
    anytime: bool = False,
    scores: Mapping[str, Sequence[str]] = {},
    truth: Truth | None = None,
    columns: Mapping[str, Any] = {},
) -> Rates:
    """Estimate how often each label occurs, of all answers and by each value of the column `by`
    (without one, by system): from human labels of a part of the answers and verdicts on all.

    The rates stand side by side by human labels alone, with the verdicts (PPI++), by Rogan-Gladen,
    and by verdicts alone, which are no valid estimate. `drawn` says how the labelled answers were
    drawn: `random`, `weight=COLUMN`, `probability=COLUMN`, `strata=COLUMN`, or several of them.
    Without it they are taken for a random sample where they look like the others, and where they
    do not, there are no intervals. With `width` it says how many more labels make intervals so
    wide; `anytime` limits hold at every look while labels arrive in batches. With truth `each` the
    rates are those of a random annotator.

    Of one table, `scores` maps columns of numbers that people gave, blank where nobody did, to the
    columns of numbers that predict them: `{"omissions": ["chrf"]}`; their means are estimated.

    Tables are understood as in `study`, and a run folder is opened. Raises SetupError where no
    answer has a human label and for columns that no answer has.

    >>> import judgebench as jb
    >>> rates = jb.estimate("few-labels.csv", "all-verdicts.csv", columns={"order": "no < yes"})
    >>> print(rates.results.find("ppi", "rate", of="yes", group="tuned"))
    0.010 [0.001, 0.061]
    """
    plan = Plan(by, drawn_of(drawn), width, anytime)
    if scores and not isinstance(study, Study):
        named = columns.get("question", "")
        question = named if isinstance(named, str) else next(iter(named), "")
        return estimate_population(*of_table(study, scores, question), plan)
    if not (isinstance(study, Study) or is_run(study)):
        columns = {**kept_columns(drawn, by), **columns}
    with naming_by(by):
        study = study_from(study, verdicts, truth, columns)
    return estimate_population(*of_study(study), plan)
