"""Estimate rates and means: each label, by system, by four ways side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.rates.population import (
    COMBINED,
    Measure,
    Population,
    Target,
    Voice,
    of_study,
    of_table,
)
from judgebench.rates.result import ALL, Rates
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.runs.from_tables import Tables, study_from
from judgebench.runs.open import Truth, is_run
from judgebench.stats.arrays import FloatArray
from judgebench.stats.partly_labelled import (
    Asked,
    Prediction,
    Sample,
    correlation,
    difference,
    labels_for_width,
    of_labels,
    prediction_powered,
    rogan_gladen,
    tuning_of,
    unlike,
)
from judgebench.studies.drawn import NOT_SAID, Drawn, Mask, drawn_of, kept_columns
from judgebench.studies.labelled import FEWEST, differences
from judgebench.studies.study import Study
from judgebench.words import counted, listed

if TYPE_CHECKING:
    from judgebench.data.layout import Layout


_MOST_COMPARED = 10  # groups of which every two are compared
_MANY = 0.25  # as many more answers as have human labels, for rates in a report of all
UNLIKE = "labelled answers do not look like the others"
_SAY_HOW = (
    "So there is no interval, unless --drawn says how they were drawn: weight=COLUMN, "
    "probability=COLUMN or strata=COLUMN, or random if they were all the same."
)


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
    if not any((~np.isnan(t.y)).any() for one in measures for t in one.targets):
        raise SetupError(Problem("no answer has a human label, so no rate can be estimated"))
    if plan.width is not None and plan.width <= 0:
        raise SetupError(Problem("must be more than 0", field="width", found=str(plan.width)))
    drawn = plan.drawn if plan.drawn.is_said else population.drawn
    plan = replace(plan, by=plan.by or population.usual_by(), drawn=drawn)
    found = [_Measured(population, plan, one) for one in measures]
    labelled = np.any([~np.isnan(one.targets[0].y) for one in measures], axis=0)
    rows = [row for one in found for row in one.rows()]
    by = [f"by {plan.by}"] if plan.by else []
    size = f"{population.name} · {counted(population.n, 'answer')}"
    return Rates(
        found=Results(tuple(rows)),
        titles={one.key: one.title for one in measures},
        main={one.key: one.main for one in measures},
        name=population.name,
        headline=" · ".join([size, f"{labelled.sum():,} with human labels", *by]),
        n_answers=population.n,
        by=plan.by,
        width=plan.width,
        compared=(population.whose, *_nothing_added(measures)),
        notes=(*(note for one in found for note in one.notes),
               *_assumed(population, plan, labelled), *population.notes),
        urgent=tuple(dict.fromkeys(note for one in found for note in one.alarms)),
        gaps=population.gaps,
    )  # fmt: skip


def _nothing_added(measures: Sequence[Measure]) -> Iterator[str]:
    """A sentence, where people labelled every answer on which there are verdicts."""
    judged = [one for one in measures if one.voices]
    whole = [one for one in judged if not np.isnan(one.targets[0].y[one.about]).any()]
    if whole:
        of = f"{listed([one.title for one in whole])}: every" if whole != measures else "Every"
        yield f"{of} answer has a human label: verdicts add nothing."


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


def measure_rates(study: Study) -> Rates | None:
    """The rates as a part of a report: None unless verdicts add something, because a judge labelled
    many answers that nobody else did."""
    for metric in study.rubric.metrics:
        known = study.humans[metric.id].truth >= 0
        more = (study.judged(j, metric)[~known] >= 0 for j in study.real_judges)
        most = max((found.sum() for found in more), default=0)
        if known.any() and most >= _MANY * known.sum():
            return replace(estimate_population(*of_study(study), Plan()), asked=False)
    return None


class _Measured:
    """The numbers of one measure."""

    def __init__(self, population: Population, plan: Plan, measure: Measure) -> None:
        self.population, self.plan, self.measure = population, plan, measure
        self.groups = population.groups(plan.by)
        self.whole = plan.drawn.sample(measure.targets[0].y, population.clusters, population.cells)
        self.alarms: list[str] = []
        self.notes: list[str] = []
        self.unlike = {group: self._is_unlike(group) for group in self.groups}

    def rows(self) -> Iterator[Row]:
        """Every number."""
        for target in self.measure.targets:
            whole = self._sample(target)
            for group, rows in self.groups.items():
                yield from self._of_labels(target, whole.at(rows & self.measure.about), group)
                for voice in self.measure.voices:
                    if (asked := rows & voice.due).any():
                        yield from self._of_voice(target, whole.at(asked), voice, group)
            yield from self._differences(target, whole)

    def _sample(self, target: Target) -> Sample:
        return replace(self.whole, y=target.y)

    def _asked(self, target: Target, level: float | None = None) -> Asked:
        return Asked(level or self.population.level, target.is_rate, self.plan.anytime)

    def _row(self, analysis: str, statistic: str, e: Estimate, target: Target,
             **keys: str) -> Row:  # fmt: skip
        judge = keys.pop("judge", "")
        return Row(analysis, statistic, e, judge, self.measure.key, {"of": target.name, **keys})

    def _of_labels(self, target: Target, sample: Sample, group: str) -> Iterator[Row]:
        found = self._guarded(of_labels(sample, self._asked(target)), group)
        found = replace(found, n_missing=len(sample.y) - sample.n)
        yield self._row("rate", "human", found, target, group=group)
        given = Estimate(float(sample.n), n=len(sample.y))
        yield self._row("labels", "given", given, target, group=group)

    def _of_voice(self, target: Target, sample: Sample, voice: Voice, group: str) -> Iterator[Row]:
        asked, keys = self._asked(target), {"group": group, "judge": voice.name}
        F = _at(voice.predicted[target.name], self.groups[group] & voice.due)
        if voice.name != COMBINED:
            alone = of_labels(Sample(F.every, sample.clusters), asked)
            yield self._row("rate", "verdicts", alone, target, **keys)
        if sample.n == len(sample.y):
            return  # the human labels are of all these answers
        tuning = self._tuning(target, voice, self.groups[group] & voice.due)
        powered = prediction_powered(sample, F, asked, tuning)
        ppi = self._guarded(powered.estimate, group)
        yield self._row("rate", "ppi", ppi, target, **keys)
        if powered.effective is not None:
            saved = Estimate(powered.effective - sample.n, n=sample.n)
            yield self._row("labels", "saved", saved, target, **keys)
        if self.plan.width is not None:
            needed = labels_for_width(sample, powered, self.plan.width, asked)
            yield self._row("labels", "needed", needed, target, **keys)
        if target.is_rate and voice.name != COMBINED:
            corrected = self._guarded(rogan_gladen(sample, F.every, asked), group)
            yield self._row("rate", "rogan_gladen", corrected, target, **keys)

    def _differences(self, target: Target, whole: Sample) -> Iterator[Row]:
        """Every two groups, by intervals that hold for all of them together (Bonferroni)."""
        groups = [group for group in self.groups if group != ALL]
        pairs = list(combinations(groups, 2))
        if not pairs or len(groups) > _MOST_COMPARED:
            return
        level = 1 - (1 - self.population.level) / len(pairs)
        nothing = np.zeros(len(whole.y))
        human = Voice("", self.measure.about, {target.name: Prediction(nothing, nothing)})
        for voice in (human, *self.measure.voices):
            found = {g: self._powered(target, whole, voice, g, level) for g in groups}
            for a, b in pairs:
                (one, p), (other, q) = found[a], found[b]
                apart = difference(one, other, correlation(whole.clusters, p, q))
                method = f"{apart.method}; Bonferroni for {len(pairs)}" if apart.method else ""
                way, keys = "ppi" if voice.name else "human", {"group": a, "against": b}
                apart = replace(apart, method=method)
                yield self._row("difference", way, apart, target, judge=voice.name, **keys)

    def _powered(
        self, target: Target, whole: Sample, voice: Voice, group: str, level: float
    ) -> tuple[Estimate, FloatArray]:
        """The estimate of a group at that level, and the influence of each item on it (items,)."""
        rows, influence = self.groups[group] & voice.due, np.zeros(len(whole.y))
        sample, F = whole.at(rows), _at(voice.predicted[target.name], rows)
        tuning = self._tuning(target, voice, rows)
        powered = prediction_powered(sample, F, self._asked(target, level), tuning)
        if powered.linear is not None:
            influence[rows] = powered.linear.influence
        elif not sample.why_none:
            labels = np.where(sample.labelled, sample.y, 0.0)
            influence[rows] = sample.w * (labels - sample.means(labels))
        return self._guarded(powered.estimate, group), influence

    def _tuning(self, target: Target, voice: Voice, rows: Mask) -> float:
        """One for all targets of labels, so that their rates add up to 1 and that of a label or
        worse to those of its labels."""
        if not voice.name:  # the human labels alone
            return 0.0
        targets = self.measure.labels or [target]
        return tuning_of([
            (self._sample(t).at(rows), _at(voice.predicted[t.name], rows)) for t in targets
        ])  # fmt: skip

    def _guarded(self, e: Estimate, group: str) -> Estimate:
        """Without an interval where the labelled answers are unlike the others."""
        if not self.unlike[group] or e.value is None:
            return e
        return replace(e, low=None, high=None, reason=UNLIKE)

    def _is_unlike(self, group: str) -> bool:
        """True where no interval can be believed; what differs is noted."""
        rows = self.groups[group] & self.measure.about
        sample = self._sample(self.measure.targets[0]).at(rows)
        found = unlike(sample, {name: x[rows] for name, x in self._traits(group).items()})
        if not found:
            return False
        where = f" of {group}" if group != ALL else ""
        note = f"{self.measure.title}: {differences(found, f'the labelled answers{where}')}."
        if self.plan.drawn.is_said:
            self.notes.append(note)
            return False
        self.alarms.append(f"{note} {_SAY_HOW}")
        return True

    def _traits(self, group: str) -> Mapping[str, FloatArray]:
        """The columns by which labelled answers are compared with all; of all also the groups."""
        others = {g: rows for g, rows in self.groups.items() if g != ALL and group == ALL}
        of_groups = {f"{self.plan.by} {g}": x.astype(np.float64) for g, x in others.items()}
        return {**self.measure.traits, **of_groups}


def _at(F: Prediction, rows: Mask) -> Prediction:
    return Prediction(F.every[rows], F.own[rows])


def _assumed(population: Population, plan: Plan, labelled: Mask) -> Iterator[str]:
    """The assumptions of the intervals."""
    yield from filter(None, [plan.drawn.in_words()])
    if not plan.drawn.columns:
        yield (
            "The labelled answers are taken for a random sample of all: answers picked out because "
            "they are hard or easy would bias every rate but the verdicts' own."
        )
    if plan.anytime:
        yield (
            "The limits hold at every look while labels arrive in batches, from about 50 labelled "
            "answers or questions on."
        )
    if (few := population.clusters[labelled].occurring().n) < FEWEST:
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
    how = [drawn] if isinstance(drawn, str) else [*drawn]
    plan = Plan(by, drawn_of(how), width, anytime)
    if scores and not isinstance(study, Study):
        named = columns.get("question", "")
        question = named if isinstance(named, str) else next(iter(named), "")
        return estimate_population(*of_table(study, scores, question), plan)
    if not (isinstance(study, Study) or is_run(study)):
        columns = {**kept_columns(how, by), **columns}
    with naming_by(by):
        study = study_from(study, verdicts, truth, columns)
    return estimate_population(*of_study(study), plan)
