"""What scorers are worth beside the humans of a study, metric by metric.

Rows `association` hold a coefficient of a scorer's or judge's numbers with the mean severity of
those who make the truth, at a level (`scope`); scores of which higher ones are `better` are turned.
Rows `chance` hold what pairwise accuracy reaches by chance. Rows `ceiling` hold an annotator,
`who`, beside the mean of the others, and the median of all annotators. Rows `difference` hold a
scorer minus `who`, the best scorer or the best control (`beside`), on the answers that both scored;
rows `test` their p values, Holm's over scorers and metrics. Rows `count` hold the number of answers
with a reason, `why`, and whether there is a `score` all the same. `redundant` and `steady` describe
the others.

A scorer whose direction nobody declared is, beside another, turned so that its coefficient is
positive, which favours it; so are the controls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from judgebench.alignment.differences import corrected
from judgebench.records import Estimate, is_slot
from judgebench.results.rows import Results, Row
from judgebench.scorers.candidates import (
    Candidate,
    Severities,
    judge_candidates,
    scorer_candidates,
    severities,
)
from judgebench.scorers.reading import ScorerRun, ScorersRead
from judgebench.scorers.redundant import redundancy_rows
from judgebench.scorers.references import reference_systems, references_of
from judgebench.scorers.result import BESIDE, MEDIAN, TESTED, TESTS, BesideHumans, with_chance
from judgebench.scorers.steady import steady_rows
from judgebench.stats.association import Level, Rated, association, associations, difference
from judgebench.stats.coefficients import Coefficient
from judgebench.stats.resample import Resampling
from judgebench.studies.study import Study

_NO_TEST = "both order all these answers alike, or there are too few"
NOT_YET = "not scored yet"
Place = tuple[Level, Coefficient]


def measure_scorers(study: Study) -> BesideHumans | None:
    """None where no scorer scored the study and no judge follows from a score."""
    read: ScorersRead | None = study.beside.get("scorers")
    runs = read.runs if read else ()
    if not runs and not any("cuts" in (judge.about or {}) for judge in study.judges):
        return None
    ordinal = [m for m in study.rubric.metrics if m.of == "answer" and m.kind == "ordinal"]
    known = {metric: severities(study, metric) for metric in ordinal}
    scorers, rows = scorer_candidates(study, runs), [*_counts(study, runs)]
    columns = {c.name: c.x for c in scorers}
    for metric, humans in known.items():
        judges = list(judge_candidates(study, metric, runs))
        columns |= {f"{c.name}: {metric.title}": c.x for c in judges}
        found = sorted([*scorers, *judges], key=lambda c: c.kind == "control")
        rows += _of_metric(metric.id, humans, found, study.resampling) if humans else ()
    rows += corrected(rows, ("test", "of", "scope", "beside"))
    x = np.stack(list(columns.values()), axis=1)
    of_humans = {
        metric.title: {c: replace(humans.mean, scores=x[humans.rows]) for c, x in columns.items()}
        for metric, humans in known.items() if humans
    }  # fmt: skip
    rows += redundancy_rows(list(columns), x, study.clusters, study.resampling, of_humans)
    rows += steady_rows(study, read) if read else ()
    beside = {metric.id: humans for metric, humans in known.items() if humans}
    titles = {metric.id: metric.title for metric in ordinal if metric.id in beside}
    copies = reference_systems((a.system, a.text, references_of(a)) for a in study.answers)
    every = Results(tuple(rows))
    return BesideHumans(titles, tuple(runs), every, beside, study.gaps, tuple(copies))


def _counts(study: Study, runs: Sequence[ScorerRun]) -> Iterator[Row]:
    """How many answers have which reason, instead of a score or beside it."""
    n = len(study.answers)
    if study.rubric.kinds != {"answer"}:
        n = sum(answer.kind == "answer" for answer in study.answers)
    for run in runs:
        not_yet = {(NOT_YET, False): n - len(run.judged.verdicts)}
        for (reason, scored), count in {**run.remarks, **not_yet}.items():
            keys = {"why": reason, "score": "yes" if scored else "no"}
            if count:
                yield Row("count", "answers", Estimate(count, n=n), run.name, "", keys)


def _of_metric(
    metric: str, humans: Severities, candidates: Sequence[Candidate], resampling: Resampling
) -> Iterator[Row]:
    """Each candidate beside the humans, an annotator in its place, and the differences."""
    sides = {c.name: humans.beside(c) for c in candidates}
    for c in candidates:
        found = associations(sides[c.name], resampling)
        for one in (one for one in found.values() if one.level in humans.levels):
            keys = {"scope": one.level, "kind": c.kind, "better": c.better}
            row = Row("association", one.coefficient, one.estimate, c.name, metric, keys)
            yield from with_chance(row, one)
    yield from _ceiling(metric, humans, resampling)
    for level in humans.levels:
        place = level, TESTED[level]
        for c in (c for c in candidates if not c.better):  # in the direction that favours it
            value = association(sides[c.name], *place, resampling).estimate.value
            if (value or 0.0) < 0:
                sides[c.name] = replace(sides[c.name], scores=-sides[c.name].scores)
        for kind, beside in zip(("control", "judge"), BESIDE, strict=True):
            rivals = {c.name: sides[c.name] for c in candidates if c.kind == kind}
            judges = {c.name: sides[c.name] for c in candidates if c.kind == "judge"}
            for row in _differences(rivals, judges, place, resampling):
                yield replace(row, metric=metric, keys={**row.keys, "beside": beside})


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
                keys = {"scope": place[0], "who": who}
                yield Row("ceiling", place[1], estimate, "", metric, keys)


def _differences(
    rivals: Mapping[str, Rated], judges: Mapping[str, Rated], place: Place, resampling: Resampling
) -> Iterator[Row]:
    """Each of the judges beside the best of the rivals that are not defined on a few alone."""
    found = {who: association(one, *place, resampling).estimate for who, one in rivals.items()}
    n = max((e.n for e in found.values()), default=0)
    reached = {w: e.value for w, e in found.items() if e.value is not None and 2 * e.n >= n}
    best = max(reached, key=lambda who: reached[who], default="")
    for name, side in judges.items() if best else ():
        if name != best:
            apart = difference(rivals[best], side, *place, resampling)
            about = {"scope": place[0], "who": best}
            yield Row("difference", place[1], apart.estimate, name, keys=about)
            for test, p in zip(TESTS[place[0]], (apart.p, apart.williams), strict=False):
                said = Estimate(p, n=apart.estimate.n, reason="" if p is not None else _NO_TEST)
                yield Row("test", "p", said, name, keys={**about, "test": test, "of": place[1]})
