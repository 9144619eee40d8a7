"""Every item with the labels of everybody, as a data frame and as the rows of verdicts.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.records import HUMAN_COLUMN, Status
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
from judgebench.stats.response_sets import response_sets

if TYPE_CHECKING:
    import pandas as pd

    from judgebench.studies.study import JudgeVerdicts, Study

REFERENCE = "reference"


def reference_sets(study: Study, metric: Metric) -> IntArray:
    """The response set of each item (items,) of a metric on which several labels may be right."""
    made, found = study.humans[metric.id].made, np.full(len(study.answers), -1, dtype=np.int64)
    shares = made.shares(len(metric.labels), study.config)
    found[made.rows] = response_sets(shares, study.config.accepted_by)
    return found


def human_labels(study: Study, metric: Metric) -> Mapping[str, Sequence[str]]:
    """The reference label of each item, and the label of each annotator, by the name of a column;
    empty where there is none. Nothing where nobody labelled."""
    ratings, is_set = study.humans[metric.id].ratings, metric.several
    if not len(ratings.rows):
        return {}
    codes = {REFERENCE: reference_sets(study, metric) if is_set else study.humans[metric.id].truth}
    values = ratings.values if ratings.sets is None else ratings.sets
    for annotator, own in zip(ratings.annotators, values.T, strict=True):
        column = codes[f"annotator {annotator}"] = np.full(len(study.answers), -1, dtype=np.int64)
        column[ratings.rows] = own
    text_of = metric.text_of if is_set else metric.label_texts.__getitem__
    texts = {code: text_of(code) for x in codes.values() for code in np.unique(x[x >= 0]).tolist()}
    return {name: [texts.get(code, "") for code in x.tolist()] for name, x in codes.items()}


def _ended(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[tuple[str, str]]:
    """The label of each item, and how its verdict ended; both empty where there is none. Only where
    no label counts is the verdict itself read, which takes time."""
    texts = (*metric.label_texts, "")
    judged, asked = study.judged(judge, metric), study.asked(judge, metric)
    for answer, code, is_asked in zip(study.answers, judged.tolist(), asked.tolist(), strict=True):
        if not is_asked:
            yield "", ""
        elif code >= 0 and not metric.several:
            yield texts[code], Status.OK.value
        else:
            verdict = judge.verdicts[answer.item_id]
            yield verdict.labels.get(metric.id, ""), verdict.status.value


def item_frame(study: Study) -> pd.DataFrame:
    """One row for each item and metric: see `Study.items`."""
    import pandas as pd

    questions = [answer.question for answer in study.answers]
    about = {"item_id": [*study.answers.item_ids()], "question": questions, **study.cells}
    frames = []
    for metric in study.rubric.metrics:
        columns: dict[str, Any] = {**about, "metric": metric.id, **human_labels(study, metric)}
        for judge in study.real_judges:
            labels, statuses = zip(*_ended(study, judge, metric), strict=True)
            columns |= {f"judge {judge.name}": labels, f"status {judge.name}": statuses}
        frame = pd.DataFrame(columns, range(len(study.answers)))
        frames.append(frame[study.answers.of_kind(metric, study.rubric)])
    return pd.concat(frames, ignore_index=True).fillna("")


def verdict_rows(study: Study) -> Iterator[Sequence[str]]:
    """The names of the columns, then a row for each answer and each judge that is no control: a
    label for each metric, how the verdict ended and, where a label is missing, why; then of each
    metric the reference label and the label of each annotator."""
    metrics, gaps = study.rubric.metrics, [" ".join(study.gaps)] if study.gaps else []
    humans = {
        f"{HUMAN_COLUMN}{name} {metric.id}": column
        for metric in metrics
        for name, column in human_labels(study, metric).items()
    }
    about, ended = ("item_id", "question", "system", "group", "judge"), ("status", "reason")
    ids = (metric.id for metric in metrics)
    yield (*about, *ids, *ended, *humans, *["incomplete" for _ in gaps])
    judges = study.real_judges
    asked = {judge.name: study.coded(judge).was_asked(study.answers) for judge in judges}
    several_right = any(metric.several for metric in metrics)
    codes = {judge.name: [study.judged(judge, metric) for metric in metrics] for judge in judges}
    for row, answer in enumerate(study.answers):
        item = (answer.item_id, answer.question, answer.system, answer.group)
        of_people = [column[row] for column in humans.values()]
        for judge in (judge for judge in judges if asked[judge.name][row]):
            places = [labels[row] for labels in codes[judge.name]]
            labels = [m.label_texts[i] for m, i in zip(metrics, places, strict=True)]
            ended = ("ok", "")
            if min(places) < 0 or several_right:  # only then is the verdict read, which takes time
                verdict = judge.verdicts[answer.item_id]
                labels = [verdict.labels.get(metric.id, "") for metric in metrics]
                ended = (verdict.status.value, verdict.reason)
            yield (*item, judge.name, *labels, *ended, *of_people, *gaps)
