"""Items that are drawn by what judges disagree about, with a known chance."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from annotate_case import give_labels
from built_case import study_file
from hypothesis import given
from hypothesis import strategies as st

import judgebench as jb
from judgebench.annotation.export import label_rows
from judgebench.annotation.init import annotate
from judgebench.annotation.screens import AT_RANDOM, chances, drawn
from judgebench.annotation.store import open_store
from judgebench.errors import SetupError

IDS = [f"quartz-{q}{s}" for q in range(4) for s in "shm"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 60))
def test_chances_add_up_to_the_number_and_a_tenth_is_drawn_at_random(doubt, n: int) -> None:
    found = chances(np.array(doubt), n)
    assert found.sum() == pytest.approx(min(n, len(doubt)))
    assert (found <= 1 + 1e-12).all()
    assert (found >= min(1, AT_RANDOM * n / len(doubt)) - 1e-9).all()
    order = np.argsort(doubt)
    assert (np.diff(found[order]) >= -1e-12).all()  # more doubt, no smaller chance


def test_items_are_drawn_as_often_as_their_chance_says_and_more_hold_fewer() -> None:
    doubt = np.repeat([0.0, 0.3, 1.0], 40)
    found, names = chances(doubt, 30), [f"i{n}" for n in range(120)]
    times = np.zeros(120)
    for seed in range(600):
        few = drawn(found, names, 30, seed)
        assert len(few) == 30
        assert {*few} <= {*drawn(chances(doubt, 45), names, 45, seed)}
        times[few] += 1
    for group in range(3):
        rows = slice(40 * group, 40 * group + 40)
        assert times[rows].mean() / 600 == pytest.approx(found[rows].mean(), rel=0.05)


def verdict_files(folder: Path) -> list[str]:
    """Two judges who differ on the answers to the first question alone."""
    for name, other in (("gpt4", "Curt"), ("claude", "Rude")):
        rows = [[one, name, other if one[7] == "0" else "Kind"] for one in IDS]
        table = pd.DataFrame(rows, columns=["item_id", "judge", "tone"])
        table.to_csv(folder / f"{name}.csv", index=False)
    return ["gpt4.csv", "claude.csv"]


def chosen(folder: Path, **choose: object) -> Path:
    """A study of the drawn items."""
    file = study_file(folder, metrics=["tone"], items="answers.csv",
                      choose={"items": 6, "verdicts": verdict_files(folder), **choose})  # fmt: skip
    annotate(file, folder / "study")
    return folder / "study"


def label_all(study: Path) -> pd.DataFrame:
    with open_store(study) as store:
        for name in store.annotators:
            for screen in store.assigned(name):
                (field,) = store.screens[screen].screen.fields
                give_labels(store, name, screen, {field.key: "Kind"})
    return pd.DataFrame(label_rows(study))


def test_a_study_holds_the_drawn_items_and_exports_their_chance(tmp_path: Path) -> None:
    labels = label_all(chosen(tmp_path))
    assert labels.item_id.nunique() == 6
    chance = labels.groupby("item_id").probability.first().astype(float)
    doubted = chance[[one[7] == "0" for one in chance.index]]
    agreed = chance[[one[7] != "0" for one in chance.index]]
    assert doubted.min() > 1.5 * agreed.max() > 0
    assert {*labels.columns} >= {"item_id", "annotator", "metric", "label", "probability"}


def test_rates_and_decisions_weigh_the_labels(tmp_path: Path) -> None:
    labels = label_all(chosen(tmp_path))
    verdicts = pd.read_csv(tmp_path / "gpt4.csv")
    answers = pd.read_csv(tmp_path / "answers.csv")
    rubric = jb.Rubric.from_labels({"tone": ["Kind", "Curt", "Rude"]})
    study = jb.study(labels, verdicts, answers, rubric=rubric)
    for found in (jb.estimate(study), jb.decide(study)):
        assert any("weighted by the column probability" in note for note in found.notes)


@pytest.mark.parametrize(
    ("task", "choose", "said"),
    [
        ("labels", {"items": 3}, "needs verdicts of 2 or more judges"),
        ("labels", {"items": 3, "verdicts": ["gpt4.csv"]}, "found 1"),
        ("labels", {"items": 0, "by": "random"}, "items"),
        ("labels", {"items": 3, "by": "unsure"}, "disagreement"),
        ("labels", {"items": 3, "verdicts": ["none.csv", "gpt4.csv"]}, "none.csv"),
        ("ranking", {"items": 3, "by": "random"}, "is for other tasks"),
    ],
)
def test_what_cannot_be_chosen_by_is_an_error(tmp_path: Path, task, choose, said: str) -> None:
    verdict_files(tmp_path)
    file = study_file(tmp_path, task, choose=choose)
    with pytest.raises(SetupError, match=said):
        annotate(file, tmp_path / "study")
    assert not (tmp_path / "study").exists()
