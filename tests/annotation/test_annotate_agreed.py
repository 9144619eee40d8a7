"""A sample of agreed items for an expert, and how many of them the expert contradicts."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import judgebench as jb
from judgebench import api

IDS = [f"i{n}" for n in range(200)]
RNG = np.random.default_rng(0)
LABELS = np.array(["ok", "bad"])
TRUE = RNG.integers(0, 2, 200)
SAID = {x: LABELS[np.where(RNG.random(200) < 0.1, 1 - TRUE, TRUE)] for x in ("ann", "ben", "j")}


@pytest.fixture(scope="module")
def study() -> jb.Study:
    people = pd.DataFrame({"item_id": IDS, "ann": SAID["ann"], "ben": SAID["ben"]})
    labels = people.melt("item_id", var_name="annotator", value_name="tone")
    verdicts = pd.DataFrame({"item_id": IDS, "judge": "j", "tone": SAID["j"]})
    answers = pd.DataFrame({"item_id": IDS, "text": IDS})
    rubric = jb.Rubric.from_labels({"tone": ["ok", "bad"]})
    return jb.study(labels, verdicts, answers, rubric=rubric)


def expert(drawn: pd.DataFrame, wrong: int) -> pd.DataFrame:
    said = dict(zip(IDS, SAID["j"], strict=True))
    other = {"ok": "bad", "bad": "ok"}
    tone = [other[said[i]] if n < wrong else said[i] for n, i in enumerate(drawn.item_id)]
    return pd.DataFrame({"item_id": drawn.item_id, "annotator": "dr-x", "tone": tone})


def test_items_are_drawn_on_which_all_agree_and_nothing_tells_the_label(study: jb.Study) -> None:
    drawn = jb.agreed(study)
    assert len(drawn) == 59 == drawn.item_id.nunique()
    at = [IDS.index(i) for i in drawn.item_id]
    assert all(SAID["ann"][n] == SAID["ben"][n] == SAID["j"][n] for n in at)
    assert not {"tone", "judge", "annotator"}.intersection(drawn.columns)
    assert jb.agreed(study).equals(drawn)
    assert not jb.agreed(study, seed=1).equals(drawn)


def test_what_the_expert_contradicts_has_an_exact_interval(study: jb.Study) -> None:
    drawn = jb.agreed(study)
    low, high = beta.ppf(0.025, 2, 58), beta.ppf(0.975, 3, 57)
    told = jb.contradicted(study, expert(drawn, 2))
    assert "contradicts 2 of 59" in told
    assert f"{2 / 59:.3f} [{low:.3f}, {high:.3f}]" in told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"items": 500}, "items: cannot be drawn; found 500; allowed: 1 to"),
        ({"judge": "k"}, "judge: is not in the study; found k; allowed: j"),
        ({"metric": "x"}, "metric: is not in the study; found x; allowed: tone"),
    ],
)
def test_what_cannot_be_drawn(study: jb.Study, given: dict[str, object], told: str) -> None:
    with pytest.raises(jb.SetupError, match=told):
        jb.agreed(study, **given)  # type: ignore[arg-type]


def test_labels_of_one_expert_on_agreed_items(study: jb.Study) -> None:
    drawn = expert(jb.agreed(study), 0)
    both = pd.concat([drawn, drawn.assign(annotator="dr-y")])
    with pytest.raises(jb.SetupError, match="one expert"):
        jb.contradicted(study, both)
    with pytest.raises(jb.SetupError, match="no label of an item"):
        jb.contradicted(study, drawn.assign(item_id=[f"z{n}" for n in range(59)]))


def test_the_command_draws_and_counts(
    study: jb.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    call: Callable[..., tuple[int, str, str]],
) -> None:  # fmt: skip
    monkeypatch.setattr(api, "open_run", lambda run: study)
    code, out, _ = call("annotate", "agreed", "run", "--to", tmp_path / "items.csv")
    assert (code, "59 items" in out) == (0, True)
    expert(pd.read_csv(tmp_path / "items.csv"), 0).to_csv(tmp_path / "x.csv", index=False)
    code, out, _ = call("annotate", "agreed", "run", "--count", tmp_path / "x.csv")
    assert (code, "contradicts 0 of 59" in out) == (0, True)
    assert call("annotate", "agreed", "run")[0] == 2
