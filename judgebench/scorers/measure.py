"""The worth of scorers beside the humans of a study, metric by metric.

Rows `association` hold a coefficient of a scorer's or judge's numbers with the mean severity of
those who make the truth, at a level (`scope`); scores of which higher ones are `better` are turned.
Rows `chance` hold what pairwise accuracy reaches by chance, rows `tie` the largest difference of
two scores that it takes for a tie. Rows `ceiling` hold an annotator, `who`, beside the mean of the
others, and the median of all annotators. Rows `difference` hold a scorer minus `who`, the best
control, on the answers that both scored; rows `test` their p values, Holm's over scorers and
metrics. Rows `count` hold the number of answers with a reason, `why`, and whether there is a
`score` all the same. `redundancy_rows` and `steady_rows` describe the others.

A scorer whose direction nobody declared is, beside another, turned so that its coefficient is
positive, which favours it; so are the controls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

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
from judgebench.scorers.scorer import copied_references
from judgebench.stats.arrays import FloatArray
from judgebench.stats.association import (
    COEFFICIENTS,
    Coefficient,
    Level,
    Rated,
    association,
    associations,
    difference,
    partial_correlation,
)
from judgebench.stats.intervals import LEVEL
from judgebench.stats.paired_tests import SIDES_SWAPPED, SIGNS_FLIPPED
from judgebench.stats.ranks import item_ranks
from judgebench.stats.repeated_measures import LEAST, redundancy
from judgebench.studies.study import Study

NOT_YET = "not scored yet"
NO_ESTIMATE = Estimate(None)  # of a row that is still to be filled in
TITLES: Mapping[str, str] = {
    "pearson": "Pearson's r", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b",
    "pairwise": "Pairwise accuracy",
}  # fmt: skip
GIVEN_SYSTEM = "given the system"
TESTED: Mapping[str, Coefficient] = {
    "pooled": "spearman", "within": "spearman", "system": "pearson", GIVEN_SYSTEM: "spearman",
}  # fmt: skip
BEST_BASELINE = "best baseline"
MEDIAN = "the median annotator"
SIGNIFICANT = 0.05
_SHUFFLED = "the mean over shuffled scores, or by count"
_NO_TEST = "both order all these answers alike, or there are too few"
_TOO_FEW = f"fewer than {LEAST} items have both"


@dataclass(frozen=True, repr=False)
class BesideHumans(Shown):
    """The worth of scorers. The module describes the rows; `titles` are those of the metrics that
    have human severities."""

    presented_by = "judgebench.scorers.report:scorers_part"

    titles: Mapping[str, str]
    rows: Results
    gaps: tuple[str, ...] = ()
    references: tuple[str, ...] = ()  # sentences on systems that are the reference text

    def beats_controls(self, judge: str, metric: str, scope: str = "pooled") -> bool:
        """True where it is shown to go with the humans more than the best baseline does."""
        keys = {"judge": judge, "metric": metric, "scope": scope}
        low = self.rows.find(TESTED[scope], "difference", **keys).low
        p = self.rows.find("p_holm", "test", **keys).value
        return low is not None and low > 0 and p is not None and p <= SIGNIFICANT


def measure_scorers(study: Study) -> BesideHumans | None:
    """None where no scorer scored the study and no judge follows from a score."""
    read: ScorersRead | None = study.beside.get("scorers")
    runs = read.runs if read else ()
    if not runs and not any("cuts" in (judge.about or {}) for judge in study.judges):
        return None
    ordinal = [m for m in study.rubric.metrics if m.of == "answer" and m.kind == "ordinal"]
    scorers, rows = scorer_candidates(study, runs), [*_counts(study, runs)]
    columns, titles = {c.name: c.x for c in scorers}, dict[str, str]()
    for metric in ordinal:
        judges = list(judge_candidates(study, metric, runs))
        columns |= {f"{c.name}: {metric.title}": c.x for c in judges}
        if humans := severities(study, metric):
            titles[metric.id] = metric.title
            candidates = sorted([*scorers, *judges], key=lambda c: c.kind == "control")
            rows += _of_metric(metric.id, humans, candidates, study.level)
    rows += corrected(rows, ("test", "of", "scope", "beside"))
    rows += redundancy_rows(list(columns), np.stack(list(columns.values()), axis=1))
    rows += steady_rows(study, read) if read and runs else ()
    sentences = tuple(copied_references(study.answers))
    return BesideHumans(titles, Results(tuple(rows)), study.gaps, sentences)


def _counts(study: Study, runs: Sequence[ScorerRun]) -> Iterator[Row]:
    """The number of answers with each reason, instead of a score or beside it."""
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
        blank = Row(
            "association", "", NO_ESTIMATE, c.name, metric, {"kind": c.kind, "better": c.better}
        )
        rows = association_rows(sides[c.name], blank, level)
        yield from (row for row in rows if row["scope"] in (*humans.levels, GIVEN_SYSTEM))
    yield from _ceiling(metric, humans, level)
    for scope in humans.levels:
        for c in (c for c in candidates if not c.better):  # in the direction that favours it
            value = association(sides[c.name], scope, TESTED[scope], level).estimate.value
            if (value or 0.0) < 0:
                sides[c.name] = replace(sides[c.name], scores=-sides[c.name].scores)
        baselines, judges = (
            {c.name: sides[c.name] for c in candidates if c.kind == kind}
            for kind in ("control", "judge")
        )
        for row in _differences(baselines, judges, scope, level):
            yield replace(row, metric=metric)


def association_rows(rated: Rated, row: Row, level: float = LEVEL) -> Iterator[Row]:
    """The row with each coefficient at each level, what pairwise accuracy reaches by chance and
    takes for a tie, and the correlations given the system (see `partial_correlation`), where three
    systems are known."""
    for found in associations(rated, level).values():
        keys, n = {"scope": found.level, **row.keys}, found.estimate.n
        of_level = replace(row, statistic=found.coefficient, estimate=found.estimate, keys=keys)
        yield of_level
        for analysis, value, reason in (
            ("chance", found.chance, _SHUFFLED), ("tie", found.tie, "the best on these data")
        ):  # fmt: skip
            if value is not None:
                estimate = Estimate(value, n=n, reason=reason)
                yield replace(of_level, analysis=analysis, estimate=estimate)
    if rated.systems is None:
        return
    known = ~np.isnan(rated.scores + rated.human)
    x, y = (np.where(known, side, np.nan) for side in (rated.scores, rated.human))
    for statistic, a, b in (("pearson", x, y), ("spearman", item_ranks(x), item_ranks(y))):
        estimate = partial_correlation(a, b, rated.systems, rated.groups, level)
        keys = {"scope": GIVEN_SYSTEM, **row.keys}
        yield replace(row, statistic=statistic, estimate=estimate, keys=keys)


def _ceiling(metric: str, humans: Severities, level: float) -> Iterator[Row]:
    """Every person beside the mean of the others; and the median of them, by what they labelled."""
    sides = dict(humans.annotators())
    for scope, coefficient in product(humans.levels, COEFFICIENTS) if sides else ():
        each = {w: association(s, scope, coefficient, level).estimate for w, s in sides.items()}
        known = sorted((e.value, e.n, who) for who, e in each.items() if e.value is not None)
        n = np.cumsum([n for _, n, _ in known])
        place = int(np.searchsorted(n, n[-1] / 2)) if known else 0
        median = each[known[place][2]] if known else next(iter(each.values()))
        people = {who: estimate for who, estimate in each.items() if not is_slot(who)}
        for who, estimate in {**people, MEDIAN: median}.items():
            yield Row("ceiling", coefficient, estimate, "", metric, {"scope": scope, "who": who})


def _differences(
    rivals: Mapping[str, Rated], judges: Mapping[str, Rated], scope: Level, level: float
) -> Iterator[Row]:
    """Each of the judges beside the best of the rivals that are not defined on a few alone."""
    place = scope, TESTED[scope]
    found = {who: association(side, *place, level).estimate for who, side in rivals.items()}
    n = max((e.n for e in found.values()), default=0)
    reached = {w: e.value for w, e in found.items() if e.value is not None and 2 * e.n >= n}
    best = max(reached, key=lambda who: reached[who], default="")
    for name, side in judges.items() if best else ():
        apart = difference(rivals[best], side, *place, level)
        keys = {"scope": scope, "who": best, "beside": BEST_BASELINE}
        yield Row("difference", place[1], apart.estimate, name, keys=keys)
        method = SIGNS_FLIPPED if scope == "within" else SIDES_SWAPPED
        reason = "" if apart.p is not None else _NO_TEST
        p = Estimate(apart.p, method=method, n=apart.estimate.n, reason=reason)
        yield Row("test", "p", p, name, keys={**keys, "test": "p", "of": place[1]})


def strength(row: Row) -> float:
    """The association with the humans; in either direction where none was declared."""
    value = row.estimate.value
    if value is None:
        return -1.0
    return abs(value) if not row["better"] else value


def redundancy_rows(
    names: Sequence[str], scores: FloatArray, *, ranked: bool = True
) -> Iterator[Row]:
    """Of scores (items, names), NaN where there is none: `stats.redundancy` as rows."""
    matrix, shared = redundancy(scores, ranked)
    coefficient = "spearman" if ranked else "pearson"
    for i, j in permutations(range(len(names)), 2):
        n, r = int(shared[i, j]), float(matrix[i, j])
        estimate = Estimate(r, n=n, reason="no interval is computed")
        if np.isnan(r):
            reason = _TOO_FEW if n < LEAST else "one of the two does not vary"
            estimate = Estimate(None, n=n, reason=reason)
        yield Row("redundancy", coefficient, estimate, names[i], "", {"who": names[j]})
