"""Items of a judged study that people label once more, and what their labels say.

No comparison of labels shows errors that annotators and judge share. New labels do: an expert's on
items on which all of them agree, an adjudicator's on the others, and blind ones on any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.annotation.tasks import IN_QUESTION
from judgebench.data.load import read_study
from judgebench.data.reading import GivenTables, infer_layout, sources_of
from judgebench.errors import Problem, SetupError
from judgebench.records import ADJUDICATED
from judgebench.rubric import BETWEEN, Metric
from judgebench.runs.from_tables import Given
from judgebench.runs.open import opened_study
from judgebench.stats.agreement import as_sets, members
from judgebench.stats.arrays import IntArray
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.text import counted

if TYPE_CHECKING:
    import pandas as pd


Kind = Literal["agreed", "disagreements", "again"]
_ITEMS: Mapping[Kind, str] = {
    "agreed": "on which annotators and judge agree",
    "disagreements": "on which annotators and judges differ, not yet adjudicated",
    "again": "that annotators of the bar labelled",
}
_N_ITEMS: Mapping[Kind, int] = {"agreed": 59, "again": 100}  # of disagreements all
_COLUMNS = ("item_id", "group", "system", "question", "reference", "text")
LEVEL = 0.01  # of the test of labels that were made again, one-sided


@dataclass(frozen=True, slots=True)
class _ItemLabels:
    """The labels of one metric on the items that annotators of the bar labelled: places of labels,
    or sets of them where several may be right; -1 where there is none."""

    metric: Metric
    rows: Labels  # (items,) of the study
    annotators: IntArray  # (items, annotators)
    judges: IntArray  # (items, judges)
    is_due: NDArray[np.bool_]  # (items, judges): where a label of the judge counts
    is_settled: NDArray[np.bool_]  # (items,): where there is an adjudicated label

    def candidates(self, kind: Kind) -> Labels:
        """Return the positions of all items that may be drawn. Raises SetupError for none."""
        if kind not in _ITEMS:
            raise SetupError(Problem("is no draw", "", None, "kind", kind, ", ".join(_ITEMS)))
        has_label = self.annotators >= 0
        if kind == "again":
            return np.flatnonzero(has_label.any(axis=1))
        is_shared = has_label.sum(axis=1) >= 2
        if not is_shared.any():
            raise SetupError(Problem("no item has labels of two annotators of the bar"))
        label = self.annotators.max(axis=1)[:, None]
        is_same = ((self.annotators == label) | ~has_label).all(axis=1)
        is_same &= ((self.judges == label) | ~self.is_due).all(axis=1)
        is_open = ~is_same & ~self.is_settled
        is_kind = is_same & self.is_due.all(axis=1) if kind == "agreed" else is_open
        if not (is_shared & is_kind).any():
            raise SetupError(Problem(f"there is no item {_ITEMS[kind]}"))
        return np.flatnonzero(is_shared & is_kind)

    def in_question(self, position: int) -> str:
        """Return all labels that somebody gave an item, in the order of the rubric."""
        labels = np.concatenate([self.annotators[position], self.judges[position]])
        sets = labels if self.metric.several else as_sets(labels)
        is_given = members(sets, len(self.metric.labels)).any(axis=0)
        return BETWEEN.join(np.array(self.metric.label_texts)[is_given])


def _leak(n_matches: IntArray, n_labels: IntArray, is_match: IntArray) -> str:
    """Return whether labels of record may have been made in sight of the judge, in words."""
    record, new = 100 * (n_matches / n_labels).mean(), 100 * is_match.mean()
    p = p_of_new_labels(n_matches, n_labels, is_match)
    meaning = (
        "labels of record may have been made in sight of the judge, or whoever labelled again errs "
        "more often"
        if p <= LEVEL
        else "no sign that labels of record were made in sight of the judge"
    )
    return (
        f"the judge gives {record:.1f} % of the labels of record and {new:.1f} % of the new ones "
        f"(exact, one-sided, p = {p:.2g}; at 1 %): {meaning}"
    )


def p_of_new_labels(n_matches: IntArray, n_labels: IntArray, is_match: IntArray) -> float:
    """Return the chance that new labels match the judge's so rarely if they are like the others.

    Of each item `n_matches` of `n_labels` labels of record match the judge's, and the new label
    does or does not: (items,). If all labels of an item are alike, each of them is as likely to be
    the new one (exact permutation test; of one label of record that of McNemar 1947).

    >>> p_of_new_labels(np.array([1, 1, 1]), np.array([1, 1, 1]), np.array([False, False, True]))
    0.25
    """
    distribution = np.ones(1)
    for chance in (n_matches + is_match) / (n_labels + 1):
        distribution = np.convolve(distribution, [1 - chance, chance])
    return float(distribution[: is_match.sum() + 1].sum())


def _only(by_name: Mapping[str, Any], name: str, field: str) -> Any:
    """Return what has this name; without one the only one. Raises SetupError."""
    if name in by_name or (not name and len(by_name) == 1):
        return by_name[name or next(iter(by_name))]
    message = "is not in the study" if name or not by_name else "name one"
    raise SetupError(Problem(message, "", None, field, name, ", ".join(by_name)))


def _judges(study: Study, name: str, only: bool) -> list[JudgeVerdicts]:
    """Return all judges but baselines, or that of this name, or the only one. Raises SetupError."""
    judges = {judge.name: judge for judge in study.real_judges}
    is_one = name or only or not judges
    return [_only(judges, name, "judge")] if is_one else [*judges.values()]


def _item_labels(study: Study, name: str, judges: Sequence[JudgeVerdicts]) -> _ItemLabels:
    metrics = {metric.id: metric for metric in study.rubric.metrics if metric.of == "answer"}
    metric: Metric = _only(metrics, name, "metric")
    humans = study.humans[metric.id]
    ratings = humans.ratings.of(humans.in_bar())
    labels_of = study.judged_sets if metric.several else study.judged
    is_due = np.column_stack([study.asked(judge, metric) for judge in judges])[ratings.rows]
    judged = np.column_stack([labels_of(judge, metric) for judge in judges])[ratings.rows]
    annotators = ratings.values if ratings.sets is None else ratings.sets
    labels = np.where(is_due, judged, -1)
    return _ItemLabels(metric, ratings.rows, annotators, labels, is_due, ratings.adjudicated >= 0)


def _new_labels(study: Study, metric: Metric, table: Any) -> Mapping[str, int]:
    """Return the labels of one annotator, by item. Raises SetupError for those of several."""
    tables = GivenTables(labels=sources_of(table, "labels"))
    layout = infer_layout(tables, rubric=study.rubric.only([metric.id]))
    rows = [row for row in read_study(layout).labels if row.label and metric.places(row.label)]
    names = sorted({row.annotator for row in rows} - {ADJUDICATED})
    if len(names) > 1:
        several = ", ".join(names)
        raise SetupError(Problem("give the labels of one annotator", "labels", found=several))
    place = metric.set_of if metric.several else metric.index
    return {row.item_id: place(row.label or "") for row in rows if row.annotator in names}


def draw(
    study: Study | str | Path,
    kind: Kind,
    *,
    metric: str = "",
    judge: str = "",
    items: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Draw items of a study or a run folder that people are to label once more, at random.

    `agreed`: 59 on which all annotators of the bar and the judge agree; an expert who labels them
    shows errors that these share. `disagreements`: all on which two annotators or more, or one of
    them and a judge, differ and that nobody adjudicated, with these labels in the column
    `labels_in_question`; labels of the annotator `adjudicated` on them are gold. `again`: 100 that
    annotators of the bar labelled, for one of them to label again. `metric` and `judge` may be left
    out where there is one; all judges count for disagreements. Raises SetupError where there are
    fewer than `items`, and where the study has no texts of them.

    >>> import judgebench as jb
    >>> list(jb.draw(study, "agreed", metric="tone", items=20))  # doctest: +SKIP
    ['item_id', 'group', 'system', 'question', 'reference', 'text']
    """
    import pandas as pd

    study = opened_study(study)
    labels = _item_labels(study, metric, _judges(study, judge, kind == "agreed"))
    candidates = labels.candidates(kind)
    n_drawn = _N_ITEMS.get(kind, len(candidates)) if items is None else items
    if not 1 <= n_drawn <= len(candidates):
        limits = f"1 to {len(candidates):,}, {_ITEMS[kind]}"
        raise SetupError(Problem("cannot be drawn", "", None, "items", str(n_drawn), limits))
    positions = np.random.default_rng(seed).permutation(candidates)[:n_drawn]
    answers = [study.answers[row] for row in labels.rows[positions].tolist()]
    drawn = pd.DataFrame({column: [getattr(a, column) for a in answers] for column in _COLUMNS})
    if kind == "disagreements":
        drawn[IN_QUESTION] = [*map(labels.in_question, positions.tolist())]
    if not any(drawn.text):
        message = "has no texts to label: give the answers, too, in the run or with --save FOLDER"
        raise SetupError(Problem(message, field="study", found=study.name))
    return drawn


def count_drawn(
    study: Study | str | Path, kind: Kind, labels: Given, *, metric: str = "", judge: str = ""
) -> str:
    """Say what the labels of one annotator on drawn items tell. Of `agreed` items: how many the
    expert contradicts, with an exact interval. Of items labelled `again`: whether the judge gives
    the labels of record more often than the new ones, as it does where these were made in sight of
    the judge (exact, one-sided, at 1 %). Raises SetupError for labels of no such item.

    >>> import judgebench as jb
    >>> jb.count_drawn(study, "agreed", "expert/labels.csv", metric="tone")  # doctest: +SKIP
    'Tone: the expert contradicts 1 of 20 items on which annotators and judge agree: ...'
    """
    if kind == "disagreements":
        message = "are not counted: their labels are gold, and stand beside the other labels"
        raise SetupError(Problem(message, found=kind, allowed="agreed, again"))
    study = opened_study(study)
    item_labels = _item_labels(study, metric, _judges(study, judge, only=True))
    new = _new_labels(study, item_labels.metric, labels)
    ids = [study.answers[row].item_id for row in item_labels.rows.tolist()]
    positions = [
        i for i in item_labels.candidates(kind) if ids[i] in new and item_labels.judges[i, 0] >= 0
    ]
    if not positions:
        raise SetupError(Problem(f"no label of an item {_ITEMS[kind]}", field="labels"))
    is_match = np.array([new[ids[i]] for i in positions]) == item_labels.judges[positions, 0]
    what = f"{counted(len(positions), 'item')} {_ITEMS[kind]}"
    if kind == "agreed":
        n_wrong = int((~is_match).sum())
        result = (
            f"the expert contradicts {n_wrong} of {what}: "
            f"{clopper_pearson(n_wrong, len(positions)):.3f} (exact 95 % interval)"
        )
    else:
        annotators = item_labels.annotators[positions]
        n_matches = (annotators == item_labels.judges[positions]).sum(axis=1)
        result = f"of {what}, {_leak(n_matches, (annotators >= 0).sum(axis=1), is_match)}"
    return f"{item_labels.metric.title}: {result}."
