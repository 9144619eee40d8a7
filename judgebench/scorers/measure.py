"""What scorers are worth beside the humans of a study, metric by metric.

Rows `association` hold a coefficient of a scorer's or judge's numbers with the mean severity of
those who make the truth, at a `level`; `turned` says how its sign came about. Rows `chance` hold
what pairwise accuracy reaches by chance. Rows `ceiling` hold an annotator, `who`, beside the mean
of the others, and the mean of all annotators' coefficients. Rows `difference` hold a scorer minus
`who`, the best scorer or the best control (`beside`), on the answers that both scored; rows `test`
their p values, Holm's over scorers and metrics. Rows `count` say how many answers have which
`reason`, and whether there is a `score` all the same; `steady` describes the rows `repeated`.

A scorer whose direction nobody declared is, beside another, turned so that its coefficient is
positive, which favours it; so are the controls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgebench.align.differences import corrected
from judgebench.records import Estimate, is_slot
from judgebench.results.rows import Results, Row
from judgebench.scorers.candidates import (
    Candidate,
    Severities,
    beside_others,
    columns,
    judge_candidates,
    scorer_candidates,
    severities,
)
from judgebench.scorers.reading import ScorerRun, ScorersRead
from judgebench.scorers.redundant import redundancy_rows
from judgebench.scorers.result import BESIDE, TESTED, TESTS, BesideHumans
from judgebench.scorers.steady_study import steady_rows
from judgebench.stats.association import (
    Association,
    Coefficient,
    Level,
    Rated,
    associations,
    difference,
)
from judgebench.stats.resample import Resampling, percentile_interval
from judgebench.study.study import Study

_APART = "the annotators labelled different answers; each has an interval of their own"
_NO_TEST = "both order all these answers alike, or there are too few"
NOT_YET = "not scored yet"


def measure_scorers(study: Study) -> BesideHumans | None:
    """None where no scorer scored the study."""
    read: ScorersRead | None = study.beside.get("scorers")
    if read is None:
        return None
    runs = read.runs
    ordinal = [m for m in study.rubric.metrics if m.of == "answer" and m.kind == "ordinal"]
    known = {metric: severities(study, metric) for metric in ordinal}
    scorers, rows = scorer_candidates(study, runs), [*_counts(study, runs)]
    for metric, humans in known.items():
        found = sorted([*scorers, *judge_candidates(study, metric)], key=_controls_last)
        rows += _of_metric(metric.id, humans, found, study.resampling) if humans else ()
    rows += corrected(rows, ("test", "of", "level", "beside"))
    names, x = zip(*columns(study, scorers), strict=True)
    rows += redundancy_rows(names, np.stack(x, axis=1), study.clusters, study.resampling)
    rows += steady_rows(study, read)
    beside = {metric.id: humans for metric, humans in known.items() if humans}
    titles = {metric.id: metric.title for metric in ordinal if metric.id in beside}
    return BesideHumans(titles, tuple(runs), Results(tuple(rows)), beside, study.gaps)


def _controls_last(candidate: Candidate) -> bool:
    return candidate.kind == "control"


def _counts(study: Study, runs: Sequence[ScorerRun]) -> Iterator[Row]:
    """How many answers have which reason, instead of a score or beside it."""
    n = sum(answer.kind == "answer" for answer in study.answers)
    for run in runs:
        told = dict(run.remarks)
        if left := n - len(run.judged.verdicts):
            told[NOT_YET, False] = left
        for (reason, scored), count in told.items():
            keys = {"reason": reason, "score": "yes" if scored else "no"}
            yield Row("count", "answers", Estimate(count, n=n), run.name, "", keys)


Place = tuple[Level, Coefficient]


@dataclass(frozen=True)
class _Compared:
    """The candidates of one metric beside the humans, and what was found of each."""

    metric: str
    candidates: Sequence[Candidate]
    sides: Mapping[str, Rated]
    found: Mapping[str, Mapping[Place, Association]]

    def forward(self, c: Candidate, place: Place) -> tuple[float, Rated]:
        """Its coefficient, -inf where undefined, and its numbers: turned where nobody said how and
        the coefficient is negative."""
        value, side = self.found[c.name][place].estimate.value, self.sides[c.name]
        if value is not None and value < 0 and not c.declared:
            return -value, replace(side, scores=-side.scores)
        return -math.inf if value is None else value, side


def _of_metric(
    metric: str, humans: Severities, candidates: Sequence[Candidate], resampling: Resampling
) -> Iterator[Row]:
    sides = {c.name: humans.beside(c.x) for c in candidates}
    found = {name: associations(side, resampling) for name, side in sides.items()}
    for c in candidates:
        for one in (one for one in found[c.name].values() if one.level in humans.levels):
            keys = {"level": one.level, "kind": c.kind, "turned": c.turned}
            row = Row("association", one.coefficient, one.estimate, c.name, metric, keys)
            yield row
            if one.chance is not None:
                chance = Estimate(one.chance, n=one.estimate.n)
                yield replace(row, analysis="chance", estimate=chance)
    yield from _ceiling(metric, humans, resampling)
    compared = _Compared(metric, candidates, sides, found)
    for place in (place for place in TESTED.items() if place[0] in humans.levels):
        yield from _differences(compared, place, resampling)


def _ceiling(metric: str, humans: Severities, resampling: Resampling) -> Iterator[Row]:
    """Every person beside the mean of the others, and the mean over annotators."""
    own, others = beside_others(humans.each)
    labelled, mean = ~np.isnan(own), humans.mean
    names = [who for who, rows in zip(humans.makers, labelled.T, strict=True) if rows.any()]
    found = []
    for x, y, rows in zip(own.T, others.T, labelled.T, strict=True):
        systems = None if mean.systems is None else mean.systems[rows]
        side = Rated(x[rows], y[rows], mean.groups[rows].occurring(), systems)
        found += [associations(side, resampling)] if rows.any() else []
    crossed = bool((labelled == labelled[:, :1]).all())
    for place in (place for place in found[0] if place[0] in humans.levels) if found else ():
        each = [one[place] for one in found]
        keys = {"level": place[0]}
        for who, one in zip(names, each, strict=True):
            if not is_slot(who):
                about = {**keys, "who": who}
                yield Row("ceiling", place[1], one.estimate, "", metric, about)
        every = _mean(each, mean.groups.n, resampling, crossed=crossed)
        yield Row("ceiling", place[1], every, "", metric, {**keys, "who": "all"})


def _mean(
    found: Sequence[Association], groups: int, resampling: Resampling, *, crossed: bool
) -> Estimate:
    """Over annotators, in proportion to what they labelled. Where all labelled the same answers,
    their resamples are the same, and so there is an interval."""
    known = [one for one in found if one.estimate.value is not None]
    if not known:
        return found[0].estimate
    weights = [one.estimate.n for one in known]
    value = float(np.average([one.estimate.value or 0.0 for one in known], weights=weights))
    n = max(weights)
    if not crossed or not all(len(one.replicates) for one in found):
        reason = known[0].estimate.reason or _APART
        return Estimate(value, n=n, reason=reason, level=resampling.level)
    replicates = np.average([one.replicates for one in known], axis=0, weights=weights)
    interval = percentile_interval(value, replicates, groups, resampling)
    return replace(interval, n=n, level=resampling.level)


def _differences(of: _Compared, place: Place, resampling: Resampling) -> Iterator[Row]:
    """Each scorer beside the best of the scorers, and beside the best of the controls."""
    for kind, beside in zip(("control", "judge"), BESIDE, strict=True):
        rivals = [c for c in of.candidates if c.kind == kind]
        best = max(rivals, key=lambda c: of.forward(c, place)[0], default=None)
        if best is None:
            continue
        for c in (c for c in of.candidates if c.kind == "judge" and c is not best):
            sides = of.forward(best, place)[1], of.forward(c, place)[1]
            found = difference(*sides, *place, resampling)
            about = {"level": place[0], "beside": beside, "who": best.name}
            yield Row("difference", place[1], found.estimate, c.name, of.metric, about)
            for test, p in zip(TESTS[place[0]], (found.p, found.williams), strict=False):
                said = Estimate(p, n=found.estimate.n, reason="" if p is not None else _NO_TEST)
                keys = {**about, "test": test, "of": place[1]}
                yield Row("test", "p", said, c.name, of.metric, keys)
