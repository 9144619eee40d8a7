"""Two studies written as strings: one character an item, as in align_case."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from align_case import answers, labels, metric, rubric, verdicts

import judgebench as jb
from judgebench.comparison.analysis import Compared, differences
from judgebench.comparison.result import Comparison
from judgebench.records import Answer, Results
from judgebench.rubric import Metric
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import Study, study_of

TRUE = "aaabbcabca" * 6
HUMANS = {"ann": TRUE, "bob": TRUE[::-1], "cem": TRUE}


def side(
    judges: Mapping[str, str],
    humans: Mapping[str, str] = HUMANS,
    *,
    measured: Metric | None = None,
    groups: str = "",
    level: float = 0.95,
    controls: Mapping[str, str] | None = None,
    ties: str = "upper",
    **changes: Any,
) -> Study:
    """A study with one metric, `harm`, and labels made blind."""
    items = answers(len(next(iter(judges.values()))), groups)
    found = study_of(
        rubric(measured or metric()),
        items,
        labels(humans),
        TruthConfig.model_validate({"ties": ties, "blind": "yes"}),
        level,
    )
    judged = [verdicts(name, row, items) for name, row in judges.items()]
    judged += [verdicts(name, row, items, "control") for name, row in (controls or {}).items()]
    return replace(found, **{"judges": tuple(judged), "name": "case", **changes})


def with_answers(study: Study, *changed: Answer, humans: Mapping[str, str] = HUMANS) -> Study:
    """The same study with some answers replaced or added, and verdicts on all of them."""
    items = {answer.item_id: answer for answer in (*study.answers, *changed)}
    found = study_of(study.rubric, tuple(items.values()), labels(humans), study.config, study.level)
    judged = []
    for judge in study.judges:
        said = dict(judge.verdicts)
        model = next(iter(said.values()))
        for answer in changed:
            kept = said.get(answer.item_id, model)
            said[answer.item_id] = replace(
                kept, item_id=answer.item_id, content_hash=answer.content_hash
            )
        judged.append(replace(judge, verdicts=said))
    return replace(found, judges=tuple(judged), name=study.name)


def compared(a: str, b: str, humans: Mapping[str, str] = HUMANS, **more: Any) -> Comparison:
    """The comparison of one judge, `j`, in two studies of the same answers."""
    return jb.compare(side({"j": a}, humans, **more), side({"j": b}, humans, **more))


def measured_rows(study: Study) -> Results:
    """The differences of the two judges of a study on its only metric, without decisions."""
    first, second = study.judges
    (only,) = study.rubric.metrics
    return Results(tuple(differences(Compared(study, (first, second), only))))


def noisy(true: str, wrong: float, rng: np.random.Generator) -> str:
    """Labels a, b, c with a share replaced at random."""
    return "".join(str(rng.choice(list("abc"))) if rng.random() < wrong else x for x in true)
