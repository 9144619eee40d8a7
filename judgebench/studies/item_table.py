"""Every item with the labels of everybody, as a data frame and as the rows of verdicts.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.records import DECIDED_COLUMN, HUMAN_COLUMN, TRAINED_ON, Status
from judgebench.rubric import Metric
from judgebench.stats.agreement import response_sets
from judgebench.stats.arrays import IntArray
from judgebench.studies.confidence import confidence
from judgebench.studies.study import JudgeVerdicts, Study

if TYPE_CHECKING:
    import pandas as pd


DECIDERS = "certificate"  # in `Study.beside`: who decides each item, by metric and judge
_NONE = "its verdicts hold no probability, score or repeated draw, so that people decide all"
NOT_JUDGED, NO_LABEL = "not judged", "no label"
Texts = Sequence[str]  # one for each item; empty where there is no label


def reference_texts(study: Study, metric: Metric) -> Texts:
    """The reference label of each item; of several right labels the response set."""
    humans = study.humans[metric.id]
    if not metric.several:
        return _texts(metric, humans.truth)
    shares = humans.made.shares(len(metric.labels), study.config)
    sets = response_sets(shares, study.config.accepted_by)
    return _texts(metric, _of_all(study, humans.made.rows, sets))


def labels_by_annotator(study: Study, metric: Metric) -> Mapping[str, Texts]:
    """The label that each annotator gave each item, by name."""
    ratings = study.humans[metric.id].ratings
    labels = (ratings.values if ratings.sets is None else ratings.sets).T
    of_all = (_texts(metric, _of_all(study, ratings.rows, codes)) for codes in labels)
    return dict(zip(ratings.annotators, of_all, strict=True))


def judge_labels(study: Study, judge: JudgeVerdicts, metric: Metric) -> tuple[Texts, Texts]:
    """The label that a judge gave each item, and how its verdict ended. Only where no label counts
    is the verdict itself read, which takes time."""
    codes = (study.judged_sets if metric.several else study.judged)(judge, metric)
    labels, ids = [*_texts(metric, codes)], [*study.answers.item_ids()]
    statuses = [Status.OK.value] * len(labels)
    for row in np.flatnonzero(codes < 0).tolist():
        labels[row], statuses[row] = _without_label(judge, metric, ids[row])
    return labels, statuses


def _without_label(judge: JudgeVerdicts, metric: Metric, item: str) -> tuple[str, str]:
    """An abstention, or the reason why there is no label."""
    if (verdict := judge.verdicts.get(item)) is None:
        return "", NOT_JUDGED
    if verdict.reason == TRAINED_ON:
        return "", TRAINED_ON
    label = verdict.labels.get(metric.id) or ""
    if label in metric.abstain:
        return label, verdict.status.value
    return "", NO_LABEL if verdict.status is Status.OK else verdict.status.value


def _texts(metric: Metric, codes: IntArray) -> Texts:
    """The texts of labels, or of sets of them (items,); empty where the code is negative."""
    text_of = metric.text_of if metric.several else metric.label_texts.__getitem__
    texts = {code: text_of(code) if code >= 0 else "" for code in np.unique(codes).tolist()}
    return [texts[code] for code in codes.tolist()]


def _of_all(study: Study, rows: IntArray, codes: IntArray) -> IntArray:
    whole = np.full(len(study.answers), -1, dtype=np.int64)
    whole[rows] = codes
    return whole


def human_columns(study: Study, metric: Metric) -> Mapping[str, Texts]:
    """The reference label and each annotator's, by the name of a column."""
    people = labels_by_annotator(study, metric)
    columns = {"reference": reference_texts(study, metric)} if people else {}
    return columns | {f"annotator {name}": labels for name, labels in people.items()}


def item_frame(study: Study) -> pd.DataFrame:
    """One row for each item and metric: see `Study.items`."""
    import pandas as pd

    answers = ((x.item_id, x.question, x.group) for x in study.answers)
    ids, questions, groups = zip(*answers, strict=True)
    frames = []
    for metric in study.rubric.metrics:
        columns: dict[str, Any] = {"item_id": ids, "question": questions, "group": groups}
        columns |= study.cells
        columns |= {"metric": metric.id, **human_columns(study, metric)}
        for judge in study.real_judges:
            labels, statuses = judge_labels(study, judge, metric)
            columns |= {f"judge {judge.name}": labels, f"status {judge.name}": statuses}
            if decided := study.beside.get(DECIDERS, {}).get(metric.id, {}).get(judge.name):
                columns[f"decided {judge.name}"] = [*map(decided.get, ids)]
        frames.append(pd.DataFrame(columns)[study.answers.of_kind(metric, study.rubric)])
    return pd.concat(frames, ignore_index=True).replace("", float("nan"))


def decided_lines(study: Study) -> Iterator[str]:
    """`m decides 314 of 900 answers alone on Harm, …`, for each judge of a run that may."""
    for metric in study.rubric.metrics:
        decided = study.beside.get(DECIDERS, {}).get(metric.id, {})
        for judge in (judge for judge in study.real_judges if judge.name in decided):
            words, signal = decided[judge.name].values(), confidence(study, judge, metric).signal
            yield (
                f"{judge.name} decides {[*words].count('alone'):,} of {len(words):,} answers alone "
                f"on {metric.title}, by the {signal}." if signal else
                f"{judge.name} decides no answer alone on {metric.title}: {_NONE}."
            )  # fmt: skip


def verdict_rows(study: Study) -> Iterator[Sequence[str]]:
    """The names of the columns, then a row for each answer and each judge that is no control: a
    label for each metric, how the verdict ended and, where a label is missing, why; then of each
    metric the reference label and the label of each annotator."""
    metrics, gaps = study.rubric.metrics, [" ".join(study.gaps)] if study.gaps else []
    of_people = {
        f"{HUMAN_COLUMN}{name} {metric.id}": labels
        for metric in metrics
        for name, labels in human_columns(study, metric).items()
    }
    about, ended = ("item_id", "question", "system", "group", "judge"), ("status", "reason")
    ids = (metric.id for metric in metrics)
    decided = study.beside.get(DECIDERS, {})
    columns = (f"{DECIDED_COLUMN}{metric}" for metric in decided)
    yield (*about, *ids, *ended, *columns, *of_people, *["incomplete" for _ in gaps])
    judges = study.real_judges
    asked = {judge.name: study.coded(judge).was_asked(study.answers) for judge in judges}
    by_judge = {j.name: [judge_labels(study, j, m)[0] for m in metrics] for j in judges}
    for row, answer in enumerate(study.answers):
        item = (answer.item_id, answer.question, answer.system, answer.group)
        human_labels = [labels[row] for labels in of_people.values()]
        for judge in (judge for judge in judges if asked[judge.name][row]):
            labels, ended = [texts[row] for texts in by_judge[judge.name]], ("ok", "")
            if not all(labels):
                verdict = judge.verdicts[answer.item_id]
                # Beside a label a blank cell says what failed: such a row reads back as `ok`.
                is_partial = any(labels) and verdict.status is Status.FAILED
                ended = ("ok" if is_partial else verdict.status.value, verdict.reason)
            by = (of.get(judge.name, {}).get(answer.item_id, "") for of in decided.values())
            yield (*item, judge.name, *labels, *ended, *by, *human_labels, *gaps)
