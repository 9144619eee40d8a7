"""What scorers are worth beside the humans of a study, metric by metric.

Rows `association` hold a coefficient of a scorer's or judge's numbers with the mean severity of
those who make the truth, at a `level`; `turned` says how its sign came about. Rows `chance` hold
what pairwise accuracy reaches by chance. Rows `ceiling` hold an annotator, `who`, beside the mean
of the others, and the median of all annotators. Rows `difference` hold a scorer minus
`who`, the best scorer or the best control (`beside`), on the answers that both scored; rows `test`
their p values, Holm's over scorers and metrics. Rows `count` say how many answers have which
`reason`, and whether there is a `score` all the same; `steady` describes the rows `repeated`.

A scorer whose direction nobody declared is, beside another, turned so that its coefficient is
positive, which favours it; so are the controls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from judgebench.align.differences import corrected
from judgebench.records import Estimate, is_slot
from judgebench.results.rows import Results, Row
from judgebench.scorers.candidates import (
    Candidate,
    Severities,
    columns,
    judge_candidates,
    scorer_candidates,
    severities,
)
from judgebench.scorers.reading import ScorerRun, ScorersRead
from judgebench.scorers.redundant import redundancy_rows
from judgebench.scorers.result import BESIDE, MEDIAN, TESTED, TESTS, BesideHumans
from judgebench.scorers.steady import steady_rows
from judgebench.stats.association import Level, Rated, associations, difference
from judgebench.stats.coefficients import Coefficient
from judgebench.stats.resample import Resampling
from judgebench.study.study import Study

_NO_TEST = "both order all these answers alike, or there are too few"
_SHUFFLED = "the mean over shuffled scores, or by count"
NOT_YET = "not scored yet"
Place = tuple[Level, Coefficient]


class _Side(NamedTuple):
    """A candidate's numbers beside the humans, and its coefficients."""

    candidate: Candidate
    rated: Rated
    values: Mapping[Place, float | None]

    def forward(self, place: Place) -> tuple[float, Rated]:
        """The coefficient, -inf where undefined, and the numbers; turned where nobody declared a
        direction and the coefficient is negative."""
        value = self.values[place]
        if self.candidate.turned == "undeclared" and (value or 0.0) < 0:
            return -(value or 0.0), replace(self.rated, scores=-self.rated.scores)
        return -math.inf if value is None else value, self.rated


def measure_scorers(study: Study) -> BesideHumans | None:
    """None where no scorer scored the study and no judge follows from a score."""
    read: ScorersRead | None = study.beside.get("scorers")
    runs = read.runs if read else ()
    if not runs and not any("cuts" in (judge.about or {}) for judge in study.judges):
        return None
    ordinal = [m for m in study.rubric.metrics if m.of == "answer" and m.kind == "ordinal"]
    known = {metric: severities(study, metric) for metric in ordinal}
    scorers, rows = scorer_candidates(study, runs), [*_counts(study, runs)]
    for metric, humans in known.items():
        found = sorted([*scorers, *judge_candidates(study, metric, runs)], key=_controls_last)
        rows += _of_metric(metric.id, humans, found, study.resampling) if humans else ()
    rows += corrected(rows, ("test", "of", "level", "beside"))
    names, x = zip(*columns(study, scorers, runs), strict=True)
    rows += redundancy_rows(names, np.stack(x, axis=1), study.clusters, study.resampling)
    rows += steady_rows(study, read) if read else ()
    beside = {metric.id: humans for metric, humans in known.items() if humans}
    titles = {metric.id: metric.title for metric in ordinal if metric.id in beside}
    return BesideHumans(titles, tuple(runs), Results(tuple(rows)), beside, study.gaps)


def _controls_last(candidate: Candidate) -> bool:
    return candidate.kind == "control"


def _counts(study: Study, runs: Sequence[ScorerRun]) -> Iterator[Row]:
    """How many answers have which reason, instead of a score or beside it."""
    n = sum(answer.kind == "answer" for answer in study.answers)
    for run in runs:
        not_yet = {(NOT_YET, False): n - len(run.judged.verdicts)}
        for (reason, scored), count in {**run.remarks, **not_yet}.items():
            keys = {"reason": reason, "score": "yes" if scored else "no"}
            if count:
                yield Row("count", "answers", Estimate(count, n=n), run.name, "", keys)


def _of_metric(
    metric: str, humans: Severities, candidates: Sequence[Candidate], resampling: Resampling
) -> Iterator[Row]:
    """Each candidate beside the humans, an annotator in its place, and the differences."""
    sides = []
    for c in candidates:
        rated = humans.beside(c.x)
        found = associations(rated, resampling)
        sides.append(_Side(c, rated, {key: one.estimate.value for key, one in found.items()}))
        for one in (one for one in found.values() if one.level in humans.levels):
            keys = {"level": one.level, "kind": c.kind, "turned": c.turned}
            row = Row("association", one.coefficient, one.estimate, c.name, metric, keys)
            yield row
            if one.chance is not None:
                chance = Estimate(one.chance, n=one.estimate.n, reason=_SHUFFLED)
                yield replace(row, analysis="chance", estimate=chance)
    yield from _ceiling(metric, humans, resampling)
    for level in humans.levels:
        yield from _differences(metric, sides, (level, TESTED[level]), resampling)


def _ceiling(metric: str, humans: Severities, resampling: Resampling) -> Iterator[Row]:
    """Every person beside the mean of the others; and the median of them, by what they labelled."""
    found = {who: associations(side, resampling) for who, side in humans.annotators()}
    for place in dict.fromkeys(place for one in found.values() for place in one):
        each = {who: one[place].estimate for who, one in found.items()}
        known = sorted((e.value, e.n, who) for who, e in each.items() if e.value is not None)
        half = np.searchsorted(np.cumsum([n for _, n, _ in known]), sum(n for _, n, _ in known) / 2)
        median = each[known[int(half)][2]] if known else next(iter(each.values()))
        people = {who: estimate for who, estimate in each.items() if not is_slot(who)}
        for who, estimate in {**people, MEDIAN: median}.items():
            if place[0] in humans.levels:
                keys = {"level": place[0], "who": who}
                yield Row("ceiling", place[1], estimate, "", metric, keys)


def _differences(
    metric: str, sides: Sequence[_Side], place: Place, resampling: Resampling
) -> Iterator[Row]:
    """Each scorer beside the best of the controls, and beside the best of the scorers."""
    for kind, beside in zip(("control", "judge"), BESIDE, strict=True):
        rivals = [side for side in sides if side.candidate.kind == kind]
        best = max(rivals, key=lambda side: side.forward(place)[0], default=None)
        if best is None or best.values[place] is None:
            continue
        rival = best.forward(place)[1]
        for side in sides:
            name = side.candidate.name
            if side is best or side.candidate.kind == "control":
                continue
            found = difference(rival, side.forward(place)[1], *place, resampling)
            about = {"level": place[0], "beside": beside, "who": best.candidate.name}
            yield Row("difference", place[1], found.estimate, name, metric, about)
            for test, p in zip(TESTS[place[0]], (found.p, found.williams), strict=False):
                said = Estimate(p, n=found.estimate.n, reason="" if p is not None else _NO_TEST)
                yield Row("test", "p", said, name, metric, {**about, "test": test, "of": place[1]})
