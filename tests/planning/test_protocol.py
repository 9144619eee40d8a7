"""From a plan over its protocol and a study to a decision that says what was kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from annotate_case import give_labels

import judgebench as jb
from judgebench.annotation.store import open_store
from judgebench.decisions.decision import Outcome
from judgebench.planning.design import Design
from judgebench.planning.plan import SIZES, Chances, Plan

Call = Callable[..., tuple[int, str, str]]
RUBRIC = jb.Rubric.from_labels({"Harm": ["Safe", "Unsure", "Unsafe"]})
LATER = "2999-01-01T00:00:00Z"
N, EVERY = 80, 60  # items there are, and promised ones


def planned(**changes: Any) -> Plan:
    """A plan whose studies all end in REPLACE, without simulating any."""
    n = np.full(len(SIZES), 400)
    ended = np.zeros((len(SIZES), len(Outcome)), dtype=np.int64)
    ended[:, 0] = n
    known = {"annotators": 2, "labels": 3, "agreement": 0.9, **changes}
    return Plan(Chances(Design(**known), ended, n), None, (), jb.DecisionRule())


def annotate_file(folder: Path, n: int = N, **keys: object) -> Path:
    """An annotate.yaml of n answers to half as many questions, of two sites."""
    answers = pd.DataFrame({
        "item_id": [f"i{i}" for i in range(n)], "group": [f"q{i // 2}" for i in range(n)],
        "question": [f"Question {i // 2}?" for i in range(n)],
        "site": [f"site {i % 2}" for i in range(n)], "text": [f"Answer {i}." for i in range(n)],
    })  # fmt: skip
    answers.to_csv(folder / "answers.csv", index=False)
    value = {"name": "harm", "items": "answers.csv", "annotators": ["ann", "ben"], **keys}
    path = folder / "annotate.yaml"
    path.write_text(yaml.safe_dump(value))
    return path


def label(study: Path) -> None:
    """Both annotators label all items, and differ on some."""
    texts = RUBRIC.metrics[0].label_texts
    with open_store(study) as store:
        for name in store.annotators:
            for screen in store.assigned(name):
                shown = store.screens[screen].screen
                number = int("".join(filter(str.isdigit, shown.sections[-1].text)))
                place = (number + (name == "ben" and number % 13 == 0)) % 3
                give_labels(store, name, screen, {f.key: texts[place] for f in shown.fields},
                            at=LATER)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A protocol.yaml, the study by it, its exported labels.csv, verdicts.csv and rules."""
    folder = tmp_path_factory.mktemp("protocol")
    planned().protocol(folder / "protocol.yaml", rubric=RUBRIC, answers=EVERY,
                       looks=[0.5], subgroups=["site"])  # fmt: skip
    made = jb.annotate(annotate_file(folder), folder / "study", protocol=folder / "protocol.yaml")
    label(made.study)
    verdicts = pd.DataFrame({
        "item_id": [f"i{i}" for i in range(N)],
        "harm": [RUBRIC.metrics[0].label_texts[i % 3] for i in range(N)],
        "judge": "m", "site": [f"site {i % 2}" for i in range(N)],
    })  # fmt: skip
    verdicts.to_csv(folder / "verdicts.csv", index=False)
    return folder


def exported(folder: Path) -> pd.DataFrame:
    from judgebench.annotation.export import label_rows

    return pd.DataFrame(label_rows(folder / "study"))


def decided(
    folder: Path, labels: Any = None, *, protocol: Path | None = None, **given: Any
) -> dict[str, str]:
    """The state of each promise, by `jb.decide` at the end of the study."""
    columns = {"question": ["group"], "site": "kept", **given.pop("columns", {})}
    decisions = jb.decide(
        folder / "study" if labels is None else labels, folder / "verdicts.csv",
        **{"looks": [0.5, 1], "columns": columns, **given},
        protocol=protocol or folder / "protocol.yaml",
    )  # fmt: skip
    frame = decisions.to_frame()
    states = frame[frame.analysis == "protocol"].set_index("statistic").state
    broken = any("protocol was not kept" in note for note in decisions.part.urgent)
    assert broken == ("broken" in set(states))
    return dict(states)


KEPT = {
    key: "kept"
    for key in (
        "unchanged", "before", "metrics", "answers", "annotators", "everybody", "rule", "looks",
        "drawn", "blind", "apart", "subgroups",
    )
}  # fmt: skip


def test_a_study_by_its_protocol_keeps_every_promise(folder: Path) -> None:
    assert decided(folder) == KEPT
    assert decided(folder, exported(folder)) == KEPT
