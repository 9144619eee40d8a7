"""Every number of the preferences wing, from a study; and whether the place of a response among
those shown sways a judge.

Rows `position` hold, of the pairs asked in both orders, `flipped`, the share on which the judge
prefers another response, and `changed`, on which the two replies differ, ties among them; and
`first_place`, the share won by the response that was shown first, ties left out. Rows `place` hold
the mean severity by the `place` in a list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from judgebench.judges.replies import charged_notes
from judgebench.preferences.orders import (
    by_scores,
    compared,
    criterion_rows,
    preference_rows,
    preferred,
    rows_of,
    samples,
    scales,
    score_rows,
    scored,
    system_rows,
    too_many,
    whole_scales,
)
from judgebench.results.rows import Results, Row
from judgebench.results.shown import JudgesShown
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
from judgebench.stats.means import clustered_mean
from judgebench.studies.study import JudgeKind, JudgeVerdicts, Study, backend_fact

_NO_FLIP = "no pair has two verdicts, one in each order"
_ALL_TIES = "every verdict is a tie"
_NO_LABEL = "no response at this place has a label"


def position_rows(study: Study, judge: JudgeVerdicts) -> Iterator[Row]:
    """Rows on texts at different places; none where the judge saw one text at a time."""
    about = judge.about or {}
    if about.get("judge") == "language model" and "places" not in about:
        return  # its verdicts, which may be a million in a file, need not be read
    seen: dict[str, list[tuple[int, int, int]]] = defaultdict(list)  # row, place, label
    metrics = {m.id: m for m in study.rubric.metrics if m.preference or _in_lists(m)}
    for item_id, verdict in judge.verdicts.items():
        for showing in verdict.shown:
            row = study.answers.row(item_id)
            for name, label in showing.labels.items():
                index = metrics[name].index(label) if name in metrics else -1
                if row >= 0 and index >= 0 and showing.of > 1:
                    seen[name].append((row, showing.place, index))
    for name, of in seen.items():
        rows_of = _of_lists if _in_lists(metrics[name]) else _of_pairs
        yield from rows_of(study, judge, metrics[name], np.array(of))


def _in_lists(metric: Metric) -> bool:
    return metric.kind == "ordinal" and metric.of == "answer"


def _of_pairs(study: Study, judge: JudgeVerdicts, metric: Metric, seen: IntArray) -> Iterator[Row]:
    row, place, label = seen.T
    codes, due = study.clusters.codes, int(study.asked(judge, metric).sum())
    # The label of the two in their own order: 0 and 1 change sides where the first stood second.
    own = np.where((place == 1) & (label < 2), 1 - label, label)
    items, of = np.unique(row, return_inverse=True)
    by_place = np.full((len(items), 2), -1)
    by_place[of, place] = own
    twice, changed = (by_place >= 0).all(axis=1), by_place[:, 0] != by_place[:, 1]
    flipped = changed & (by_place < 2).all(axis=1)
    decided, both = label < 2, {"flipped": flipped, "changed": changed}
    told = {name: (np.where(twice, x, np.nan), items, _NO_FLIP) for name, x in both.items()}
    told["first_place"] = ((label[decided] == 0) * 1.0, row[decided], _ALL_TIES)
    for name, (x, of_row, undefined) in told.items():
        # Pairs that were never read; of replies, as many a pair as any pair has.
        n, each = (len(row), np.bincount(of).max()) if name == "first_place" else (len(items), 1)
        unseen = due * each - n
        estimate = clustered_mean(
            x, codes[of_row], undefined, study.level, n_missing=int(unseen), kind="share"
        )
        yield Row("position", name, estimate, judge.name, metric.id)


def _of_lists(study: Study, judge: JudgeVerdicts, metric: Metric, seen: IntArray) -> Iterator[Row]:
    row, place, label = seen.T
    severity = np.array(metric.values, dtype=np.float64)[label]
    for here in np.unique(place).tolist():
        at = place == here
        estimate = clustered_mean(
            severity[at], study.clusters.codes[row[at]], _NO_LABEL, study.level
        )
        yield Row("place", "severity", estimate, judge.name, metric.id, {"place": str(here + 1)})


@dataclass(frozen=True, repr=False)
class Preferences(JudgesShown):
    """The comparisons of responses to one question by judges and humans, and criteria of items.

    The rows, by their `analysis`: `order`, `response` and `vote` `win_rate`, `strength`,
    `ranking`, `longer`, `own_system`, `item_score` and `criterion` (see `orders`), `position` and
    `place` (see this module). `judges` says what each judge is,
    also those whose scores of single responses are compared (`NAME, by TITLE`); `titles` are those
    of the metrics and composites, of which the win rates by those in `drawn` have figures, or by
    the first alone.
    """

    presented_by = "judgebench.preferences.part:preferences_part"

    judges: Mapping[str, JudgeKind]
    titles: Mapping[str, str]
    drawn: Collection[str]
    rows: Results
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


def measure_preferences(study: Study) -> Preferences | None:
    """The comparisons of several responses to one question, and verdicts on criteria; None
    where the study holds neither. Where `preferences` stands beside the study as
    False, also None where nobody compared anything: there are no preferences, criteria, composites
    or texts that a judge was shown side by side."""
    every = study.beside.get("preferences", True)
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
    notes = [*charged_notes(study)]
    for scores in scored(study, rows):
        if len(scores.question) == scores.question.max() + 1:
            continue  # one response to each question
        notes += samples(scores)
        found += score_rows(scores, study.level)
        if scores.id in whole and (pairs := compared(study, rows, scores)):
            found += system_rows(pairs, models, study.level)
            notes += too_many(pairs)
    for metric in study.rubric.metrics:
        if metric.preference and (prefers := preferred(study, rows, metric)):
            found += preference_rows(prefers, study.level)
            found += system_rows(prefers.compared, models, study.level)
            notes += too_many(prefers.compared)
        if metric.of == "criterion":
            found += criterion_rows(study, metric)
    found += places
    if not found:
        return None
    return Preferences(kinds, titles, drawn, Results(tuple(found)), tuple(notes), study.gaps)
