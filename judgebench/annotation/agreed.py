"""The check for shared errors: an expert labels a sample of items on which all agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from judgebench.data.given import read_given
from judgebench.errors import Problem, SetupError
from judgebench.records import ADJUDICATED
from judgebench.rubric import Metric
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.study import JudgeVerdicts, Study


def agreed_labels(study: Study, metric: str = "", judge: str = "") -> Mapping[int, int]:
    """The label on which all annotators of the bar, two at least, and the judge agree, by row.

    Raises SetupError for a judge or a metric that the study lacks, or has several of."""
    metrics = {one.id: one for one in study.rubric.metrics}
    on: Metric = _one(metrics, metric, "metric")
    judges = {one.name: one for one in study.judges if one.kind != "control"}
    by: JudgeVerdicts = _one(judges, judge, "judge")
    humans = study.humans[on.id]
    ratings = humans.ratings.of(humans.in_bar())
    labels = np.column_stack([ratings.values, study.judged(by, on)[ratings.rows]])
    last = labels[:, -1]
    same = ((labels == last[:, None]) | (labels < 0)).all(axis=1) & (last >= 0)
    same &= (ratings.values >= 0).sum(axis=1) >= 2
    return dict(zip(ratings.rows[same].tolist(), last[same].tolist(), strict=True))


def _one(found: Mapping[str, Any], name: str, what: str) -> Any:
    if name in found or (not name and len(found) == 1):
        return found[name or next(iter(found))]
    message = "is not in the study" if name else "name one"
    raise SetupError(Problem(message, field=what, found=name, allowed=", ".join(found)))


def sample(found: Mapping[int, int], items: int, seed: int) -> list[int]:
    """`items` of these rows, a simple random sample. Raises SetupError where there are fewer."""
    if not 1 <= items <= len(found):
        allowed = f"1 to {len(found):,}, on which annotators and judge agree"
        raise SetupError(
            Problem("cannot be drawn", field="items", found=str(items), allowed=allowed)
        )
    drawn = np.random.default_rng(seed).permutation(sorted(found))[:items]
    return [int(row) for row in drawn]


def contradicted(study: Study, labels: Any, metric: str = "", judge: str = "") -> str:
    """A sentence: how many agreed items the expert of these labels, a table, contradicts.

    Raises SetupError where there are none of one expert on such items."""
    found = agreed_labels(study, metric, judge)
    on: Metric = _one({one.id: one for one in study.rubric.metrics}, metric, "metric")
    rows = {study.answers[row].item_id: row for row in found}
    said = read_given(labels, [], None, study.rubric.only([on.id])).labels
    own = [x for x in said if x.label in on.label_texts and x.annotator != ADJUDICATED]
    experts = sorted({one.annotator for one in own})
    if len(experts) > 1:
        raise SetupError(
            Problem("give the labels of one expert", "labels", found=", ".join(experts))
        )
    if not (kept := [one for one in own if one.item_id in rows]):
        raise SetupError(
            Problem("no label of an item on which annotators and judge agree", "labels")
        )
    wrong = sum(on.index(one.label or "") != found[rows[one.item_id]] for one in kept)
    share = clopper_pearson(wrong, len(kept))
    return (
        f"{on.title}: the expert contradicts {wrong} of {len(kept)} items on which annotators and "
        f"judge agree: {share:.3f} (exact 95 % interval)."
    )
