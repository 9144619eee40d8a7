"""The worth of scorers beside the humans of a study, metric by metric.

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from judgebench.alignment.raters import corrected
from judgebench.records import Estimate, Results, Row, is_slot
from judgebench.results.shown import Shown
from judgebench.scorers.candidates import (
    Candidate,
    ScorerRun,
    ScorersRead,
    Severities,
    judge_candidates,
    scorer_candidates,
    severities,
)
from judgebench.scorers.consistency import steady_rows
from judgebench.scorers.scorer import reference_systems, references_of
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.association import (
    Association,
    Coefficient,
    Level,
    Rated,
    association,
    associations,
    difference,
)
from judgebench.stats.intervals import LEVEL
from judgebench.stats.paired_tests import SIDES_SWAPPED, SIGNS_FLIPPED
from judgebench.stats.repeated_measures import LEAST, redundancy
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
        rows += _of_metric(metric.id, humans, found, study.level) if humans else ()
    rows += corrected(rows, ("test", "of", "scope", "beside"))
    x = np.stack(list(columns.values()), axis=1)
    of_humans = {
        metric.title: {c: replace(humans.mean, scores=x[humans.rows]) for c, x in columns.items()}
        for metric, humans in known.items() if humans
    }  # fmt: skip
    rows += redundancy_rows(list(columns), x, study.clusters, study.level, of_humans)
    rows += steady_rows(study, read) if read and runs else ()
    beside = {metric.id: humans for metric, humans in known.items() if humans}
    titles = {metric.id: metric.title for metric in ordinal if metric.id in beside}
    copies = reference_systems((a.system, a.text, references_of(a)) for a in study.answers)
    every = Results(tuple(rows))
    return BesideHumans(titles, tuple(runs), every, beside, study.gaps, tuple(copies))


def _counts(study: Study, runs: Sequence[ScorerRun]) -> Iterator[Row]:
    """The number of answers with each reason, instead of a score or beside it."""
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
    metric: str, humans: Severities, candidates: Sequence[Candidate], level: float
) -> Iterator[Row]:
    """Each candidate beside the humans, an annotator in its place, and the differences."""
    sides = {c.name: humans.beside(c) for c in candidates}
    for c in candidates:
        found = associations(sides[c.name], level)
        for one in (one for one in found.values() if one.level in humans.levels):
            keys = {"scope": one.level, "kind": c.kind, "better": c.better}
            row = Row("association", one.coefficient, one.estimate, c.name, metric, keys)
            yield from with_chance(row, one)
    yield from _ceiling(metric, humans, level)
    for scope in humans.levels:
        place = scope, TESTED[scope]
        for c in (c for c in candidates if not c.better):  # in the direction that favours it
            value = association(sides[c.name], *place, level).estimate.value
            if (value or 0.0) < 0:
                sides[c.name] = replace(sides[c.name], scores=-sides[c.name].scores)
        for kind, beside in zip(("control", "judge"), BESIDE, strict=True):
            rivals = {c.name: sides[c.name] for c in candidates if c.kind == kind}
            judges = {c.name: sides[c.name] for c in candidates if c.kind == "judge"}
            for row in _differences(rivals, judges, place, level):
                yield replace(row, metric=metric, keys={**row.keys, "beside": beside})


def _ceiling(metric: str, humans: Severities, level: float) -> Iterator[Row]:
    """Every person beside the mean of the others; and the median of them, by what they labelled."""
    found = {who: associations(side, level) for who, side in humans.annotators()}
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
    rivals: Mapping[str, Rated], judges: Mapping[str, Rated], place: Place, level: float
) -> Iterator[Row]:
    """Each of the judges beside the best of the rivals that are not defined on a few alone."""
    found = {who: association(one, *place, level).estimate for who, one in rivals.items()}
    n = max((e.n for e in found.values()), default=0)
    reached = {w: e.value for w, e in found.items() if e.value is not None and 2 * e.n >= n}
    best = max(reached, key=lambda who: reached[who], default="")
    for name, side in judges.items() if best else ():
        if name != best:
            apart = difference(rivals[best], side, *place, level)
            about = {"scope": place[0], "who": best}
            yield Row("difference", place[1], apart.estimate, name, keys=about)
            for test, p in zip(TESTS[place[0]], (apart.p, apart.williams), strict=False):
                method, reason = _test_method(test, place[0]), "" if p is not None else _NO_TEST
                said = Estimate(p, method=method, n=apart.estimate.n, reason=reason)
                yield Row("test", "p", said, name, keys={**about, "test": test, "of": place[1]})


def _test_method(test: str, level: Level) -> str:
    if test == "Williams' p":
        return "Williams' test of two correlations with the same severities, two-sided"
    return SIGNS_FLIPPED if level == "within" else SIDES_SWAPPED


TITLES: Mapping[str, str] = {
    "pearson": "Pearson's r", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b",
    "pairwise": "Pairwise accuracy",
}  # fmt: skip
TESTED: Mapping[Level, Coefficient] = {
    "pooled": "spearman", "within": "spearman", "system": "pearson",
}  # fmt: skip
TESTS: Mapping[Level, tuple[str, ...]] = {
    "pooled": ("p",), "within": ("p",), "system": ("p", "Williams' p"),
}  # fmt: skip
BESIDE = ("best baseline", "best scorer")
MEDIAN = "the median annotator"
SIGNIFICANT = 0.05
_SHUFFLED = "the mean over shuffled scores, or by count"


@dataclass(frozen=True, repr=False)
class BesideHumans(Shown):
    """The worth of scorers. `measure` describes the rows; `titles` are those of the metrics that
    have human severities, `humans`."""

    presented_by = "judgebench.scorers.report:scorers_part"

    titles: Mapping[str, str]
    runs: tuple[ScorerRun, ...]
    rows: Results
    humans: Mapping[str, Severities]
    gaps: tuple[str, ...] = ()
    references: tuple[str, ...] = ()  # what is said of systems that are the reference text

    def held(self, metric: str, kind: str, level: Level = "pooled") -> list[Row]:
        """The coefficient of that level, of all of a kind, the strongest first."""
        about = {"metric": metric, "scope": level, "kind": kind}
        rows = self.rows.select("association", TESTED[level], **about)
        return sorted(rows, key=strength, reverse=True)

    def beats_controls(self, judge: str, metric: str, level: Level = "pooled") -> bool:
        """True where it is shown to go with the humans more than the best baseline does."""
        about = {"judge": judge, "metric": metric, "scope": level, "beside": BESIDE[0]}
        low = self.rows.find(TESTED[level], "difference", **about).low
        p = self.rows.find("p_holm", test=TESTS[level][0], **about).value
        return low is not None and low > 0 and p is not None and p <= SIGNIFICANT


def with_chance(row: Row, found: Association) -> Iterator[Row]:
    """The row of a coefficient and, of pairwise accuracy, one of what is reached by chance."""
    yield row
    if found.chance is not None:
        chance = Estimate(found.chance, n=found.estimate.n, reason=_SHUFFLED)
        yield replace(row, analysis="chance", estimate=chance)


def strength(row: Row) -> float:
    """The association with the humans; in either direction where none was declared."""
    value = row.estimate.value
    if value is None:
        return -1.0
    return abs(value) if not row["better"] else value


_OF_SYSTEMS: Sequence[tuple[Level, Coefficient]] = [("pooled", "pearson")]  # a row is a system
BETWEEN = " | "  # the members of a family
_TOO_FEW = f"fewer than {LEAST} items have both"


def redundancy_rows(
    names: Sequence[str],
    scores: FloatArray,
    clusters: Clusters,
    level: float = LEVEL,
    beside: Mapping[str, Mapping[str, Rated]] = {},
    *,
    ranked: bool = True,
) -> Iterator[Row]:
    """Of scores (items, names), NaN where there is none: `stats.redundancy` as rows. `beside` holds
    them, by metric, beside the humans."""
    found, there = redundancy(scores, clusters, ranked, level), ~np.isnan(scores)
    places: Iterable[tuple[Level, Coefficient]] = TESTED.items() if ranked else _OF_SYSTEMS
    shared = there.T.astype(np.int64) @ there
    for i in found.order:
        for j in (j for j in found.order if j != i):
            n, r = int(shared[i, j]), float(found.matrix[i, j])
            undefined = _TOO_FEW if n < LEAST else "one of the two does not vary"
            reason = undefined if np.isnan(r) else "no interval is computed"
            estimate = Estimate(None if np.isnan(r) else r, n=n, reason=reason)
            coefficient, about = "spearman" if ranked else "pearson", {"who": names[j]}
            yield Row("redundancy", coefficient, estimate, names[i], "", about)
    for members, mean_r in zip(found.families, found.mean_r, strict=True):
        if len(members) > 1:
            about = {"members": BETWEEN.join(names[i] for i in members)}
            n = int(shared[np.ix_(members, members)].min())
            yield Row("family", "mean_r", replace(mean_r, n=n), keys=about)
            own = [i for i in members if all(i != twin.second for twin in found.twins)]
            for metric, sides in beside.items():
                sign = {names[i]: -1 if found.matrix[own[0], i] < 0 else 1 for i in own}
                turned = {c: replace(sides[c], scores=sign[c] * sides[c].scores)
                          for c in sign if c in sides}  # fmt: skip
                for (a, b), place in product(combinations(turned, 2), places):
                    apart = difference(turned[a], turned[b], *place, level, tested=False)
                    keys = {"who": a, "scope": place[0], **about}
                    yield Row("alike", place[1], apart.estimate, b, metric, keys)
    for twin in found.twins:
        about = {"who": names[twin.first], "formula": twin.formula}
        one = Estimate(1.0, n=int(shared[twin.first, twin.second]))
        yield Row("function", "formula", one, names[twin.second], "", about)
