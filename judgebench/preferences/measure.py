"""Every number of the preferences wing, from a study."""

from __future__ import annotations

from judgebench.preferences.criteria import criterion_rows
from judgebench.preferences.gather import (
    by_scores,
    compared,
    preferred,
    rows_of,
    scales,
    scored,
    whole_scales,
)
from judgebench.preferences.orders import preference_rows, samples, score_rows
from judgebench.preferences.position import position_rows
from judgebench.preferences.result import Preferences
from judgebench.preferences.systems import system_rows, too_many
from judgebench.results.rows import Results, Row
from judgebench.studies.study import Study, backend_fact


def measure_preferences(study: Study, *, every: bool = True) -> Preferences | None:
    """How judges and humans compare several responses to one question, and judge criteria; None
    where the study holds neither. Unless `every`, also None where nobody compared anything: there
    are no preferences, criteria, composites or texts that a judge was shown side by side."""
    only_answers = study.rubric.kinds == {"answer"}
    if only_answers and study.clusters.n == len(study.answers):
        return None
    places = [
        row
        for judge in study.judges
        if judge.kind == "judge"
        for row in position_rows(study, judge)
    ]
    if only_answers and not (every or places or study.rubric.composite):
        return None
    rows = rows_of(study)
    whole = {scale.id: scale.title for scale in whole_scales(study)}
    judges = {judge.name: judge for judge in study.judges}
    # A judge stands also under the names by which its scores of single responses are compared.
    judges |= {by_scores(j.name, title): j for j in study.judges for title in whole.values()}
    models = {name: str(backend_fact(j.about, "model") or j.name) for name, j in judges.items()}
    kinds = {name: judge.kind for name, judge in judges.items()}
    titles = {m.id: m.title for m in study.rubric.metrics}
    titles |= {scale.id: scale.title for scale in scales(study)}
    drawn = {*study.rubric.composite, *(m.id for m in study.rubric.metrics if m.preference)}
    found: list[Row] = []
    notes: list[str] = []
    for scores in scored(study, rows):
        if len(scores.question) == scores.question.max() + 1:
            continue  # one response to each question
        notes += samples(scores)
        found += score_rows(scores, study.resampling)
        if scores.id in whole and (pairs := compared(study, rows, scores)):
            found += system_rows(pairs, models, study.resampling)
            notes += too_many(pairs)
    for metric in study.rubric.metrics:
        if metric.preference and (prefers := preferred(study, rows, metric)):
            found += preference_rows(prefers, study.resampling)
            found += system_rows(prefers.compared, models, study.resampling)
            notes += too_many(prefers.compared)
        if metric.of == "criterion":
            found += criterion_rows(study, metric)
    found += places
    if not found:
        return None
    return Preferences(kinds, titles, drawn, Results(tuple(found)), tuple(notes), study.gaps)
