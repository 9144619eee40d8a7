"""Small alignments written as strings: one character an item, for humans and for judges.

`a`, `b`, `c` are labels from least to most severe; `.` is no label, `_` a blank cell and `?` an
abstention.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from aligned import align

from judgebench.alignment import Alignment
from judgebench.records import Answer, Estimate, HumanLabel, Status, Usage, Verdict
from judgebench.rubric import Metric, Rubric
from judgebench.stats.intervals import LEVEL
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts

ABSTAIN = "?"
LABELS = ("a", "b", "c")
Row = Sequence[float] | None  # the probabilities of the labels, where a judge gives some


def metric(kind: str = "ordinal", labels: str = "abc", severities: Sequence[int] = (), **more: Any):
    given = dict(zip(labels, severities, strict=False))
    value = {
        "id": "harm", "title": "Harm", "question": "How bad?", "kind": kind, "abstain": ABSTAIN,
        "labels": [{"text": text, "severity": given.get(text)} for text in labels],
    }  # fmt: skip
    return Metric.model_validate({**value, **more})


def rubric(*metrics: Metric) -> Rubric:
    return Rubric(name="r", version="1", instructions="i", metrics=metrics or (metric(),))


def answers(n: int, groups: str = "") -> list[Answer]:
    """`groups`: one character an item; without it every item is its own question."""
    return [Answer(f"i{i}", f"text {i}", group=groups[i] if groups else f"g{i}") for i in range(n)]


def labels(humans: Mapping[str, str], name: str = "harm") -> list[HumanLabel]:
    return [
        HumanLabel(f"i{i}", annotator, name, None if said == "_" else said)
        for annotator, row in humans.items()
        for i, said in enumerate(row)
        if said != "."
    ]


def verdicts(
    judge: str, rows: Mapping[str, str] | str, items: Sequence[Answer], kind: Any = "judge"
) -> JudgeVerdicts:
    """`rows`: one string a metric id, or one string for `harm`."""
    rows = {"harm": rows} if isinstance(rows, str) else rows
    found = {}
    for i, item in enumerate(items):
        given = {m: row[i] for m, row in rows.items() if row[i] != "."}
        status = Status.OK if len(given) == len(rows) else Status.UNPARSED
        found[item.item_id] = Verdict(item.item_id, item.content_hash, judge, "s", status, given)
    return JudgeVerdicts(judge, kind, "s", found, Usage(len(items)))


def saying(
    rows: Sequence[Row], items: Sequence[Answer], name: str = "m", abstain: float = 0.0
) -> JudgeVerdicts:
    """A judge whose label is its likeliest; None is a verdict without probabilities, label `a`."""
    found = {}
    for item, row in zip(items, rows, strict=True):
        label = LABELS[int(np.argmax(row))] if row is not None else "a"
        weights = dict(zip(LABELS, row, strict=True)) if row is not None else {}
        given = {"harm": {**weights, ABSTAIN: abstain}} if row is not None else None
        found[item.item_id] = Verdict(
            item.item_id, item.content_hash, name, "s", Status.OK, {"harm": label}, given
        )
    return JudgeVerdicts(name, "judge", "s", found)


def drawn_people(n: int = 120, seed: int = 0) -> tuple[dict[str, str], np.ndarray]:
    """Three annotators who draw from a distribution that the judge knows."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([2, 1, 0.5], n)
    humans = {
        who: "".join(LABELS[rng.choice(3, p=row)] for row in p) for who in ("ann", "bob", "cy")
    }
    return humans, p


def aligned(
    humans: Mapping[str, str],
    judges: Mapping[str, str] | None = None,
    *,
    measured: Metric | None = None,
    groups: str = "",
    controls: Mapping[str, str] | None = None,
    level: float = LEVEL,
    **truth: Any,
) -> Alignment:
    """An alignment on one metric."""
    rows = [*humans.values(), *(judges or {}).values(), *(controls or {}).values()]
    assert len({len(row) for row in rows}) == 1, "rows differ in length"
    items = answers(len(rows[0]), groups)
    found = [verdicts(name, row, items) for name, row in (judges or {}).items()]
    found += [verdicts(name, row, items, "control") for name, row in (controls or {}).items()]
    return align(
        "case", rubric(measured or metric()), items, labels(humans), found, TruthConfig(**truth),
        level,
    )  # fmt: skip


def score(
    found: Alignment, statistic: str, judge: str = "m", failures: str = "left_out",
    of: str = "harm",
) -> Estimate:  # fmt: skip
    return only(found, "score", statistic, judge=judge, failures=failures, metric=of)


def agreed(found: Alignment, statistic: str, who: str = "all", of: str = "harm") -> Estimate:
    return only(found, "agreement", statistic, who=who, metric=of)


def ceiling(found: Alignment, statistic: str, annotator: str = "all", of: str = "harm") -> Estimate:
    return only(found, "ceiling", statistic, who=annotator, metric=of)


def only(found: Alignment, analysis: str, statistic: str, **keys: str) -> Estimate:
    """The estimate of the one row with these keys."""
    (row,) = found.results.select(analysis, statistic, **keys)
    return row.estimate
