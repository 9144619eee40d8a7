"""Small decisions written as strings: one character an item, as in align_case."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from align_case import answers, labels, metric, rubric, verdicts

from judgebench.decisions.decide import decisions
from judgebench.decisions.decision import Condition, Decision, TriageCurve
from judgebench.decisions.rule import DecisionRule
from judgebench.records import Results
from judgebench.rubric import Metric
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import Study, study_of


def noisy(true: str, wrong: float, seed: int) -> str:
    """Labels a, b, c with a share moved to a neighbour."""
    rng = np.random.default_rng(seed)
    moved = {"a": "b", "b": "c", "c": "b"}
    return "".join(moved[x] if rng.random() < wrong else x for x in true)


TRUE = "aaaaaabbbc" * 40
HUMANS = {f"h{i}": noisy(TRUE, 0.08, i) for i in range(3)}


def scoped(
    humans: Mapping[str, str], *, measured: Metric | None = None, groups: str = "", **truth: Any
) -> Study:
    """The study of one metric, of labels made blind unless `truth` says otherwise."""
    truth = {"blind": "yes", **truth}
    items = answers(max(len(row) for row in humans.values()), groups)
    return study_of(rubric(measured or metric()), items, labels(humans), TruthConfig(**truth))


def decided(
    humans: Mapping[str, str],
    judge: str,
    *,
    controls: Mapping[str, str] | None = None,
    measured: Metric | None = None,
    groups: str = "",
    rule: DecisionRule | None = None,
    curves: Sequence[TriageCurve] = (),
    stress: Results | None = None,
    **truth: Any,
) -> Decision:
    """The decision on one judge, `j`, beside a control that always says `a`; labels are made blind
    unless `truth` says otherwise."""
    truth = {"blind": "yes", **truth}
    items = answers(len(judge), groups)
    found = [verdicts("j", judge, items)]
    for name, row in (controls or {"constant": "a" * len(judge)}).items():
        found.append(verdicts(name, row, items, "control"))
    chosen = measured or metric()
    study = study_of(rubric(chosen), items, labels(humans), TruthConfig(**truth))
    study = replace(study, judges=tuple(found))
    (decision,) = decisions(study, rule or DecisionRule(), curves, stress)
    return decision


def label_table(humans: Mapping[str, str]) -> pd.DataFrame:
    """The annotators' labels as a user has them in a table."""
    return pd.concat(
        pd.DataFrame(
            {"item_id": [f"i{i}" for i in range(len(row))], "annotator": name, "harm": list(row)}
        )
        for name, row in humans.items()
    )


def verdict_table(row: str) -> pd.DataFrame:
    """The labels of the judge `j`."""
    return label_table({"j": row}).rename(columns={"annotator": "judge"})


def condition(decision: Decision, key: str) -> Condition:
    (found,) = [c for c in (*decision.replace, *decision.assist) if c.key == key]
    return found
