"""The rule `dawid_skene` in an alignment: truth, human ceiling and what is told of them."""

import numpy as np
import pytest
from align_case import aligned, ceiling, metric, score

from judgebench.errors import SetupError
from judgebench.studies.reference_labels import TruthConfig, settle

MODEL = TruthConfig(rule="dawid_skene")


def rows(seed: int, items: int, skills: dict[str, float]) -> dict[str, str]:
    """`truth` and one row an annotator, who errs as often as his skill says."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, items, p=[0.5, 0.3, 0.2])
    said = {"truth": truth}
    for name, skill in skills.items():
        wrong = (truth + rng.integers(1, 3, items)) % 3
        said[name] = np.where(rng.random(items) < skill, truth, wrong)
    return {name: "".join("abc"[i] for i in codes) for name, codes in said.items()}


SKILLS = {"ann": 0.97, "bob": 0.55, "cy": 0.6, "dee": 0.55}
CASE = rows(1, 200, SKILLS)
HUMANS = {name: CASE[name] for name in SKILLS}


def coded(names) -> np.ndarray:
    return np.array([["abc".index(x) for x in HUMANS[name]] for name in names]).T


def notes_of(humans, **more) -> list[str]:
    return [n for n in aligned(humans, rule="dawid_skene", **more).notes if "Dawid" in n]


def test_a_good_judge_is_nearer_to_the_model_than_to_the_majority() -> None:
    judge = {"m": CASE["truth"]}
    model, majority = (
        score(aligned(HUMANS, judge, rule=rule), "accuracy") for rule in ("dawid_skene", "majority")
    )
    assert model.value > majority.value + 0.03
    assert model.n == majority.n == 200


def test_the_ceiling_leaves_each_annotator_out_of_the_model() -> None:
    found = aligned(HUMANS, rule="dawid_skene")
    for name in HUMANS:
        others = [other for other in HUMANS if other != name]
        truth = settle(coded(others), metric(), MODEL)
        expected = (coded([name])[:, 0] == truth).mean()
        assert ceiling(found, "accuracy", name).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("humans", "reason"),
    [
        ({"ann": "abca"}, "there is one annotator only"),
        ({"ann": "aaaa", "bob": "aaaa", "cy": "aa.."}, "only one label was ever given"),
        ({"ann": "abca", "bob": "bbca"}, "no item has three labels"),
    ],
)
def test_without_a_model_the_report_says_why_and_takes_the_majority(humans, reason) -> None:
    (note,) = notes_of(humans)
    assert note.startswith("No Dawid-Skene model on Harm: ")
    assert reason in note
    judge = {"m": "abca"}
    model, majority = (aligned(humans, judge, rule=r) for r in ("dawid_skene", "majority"))
    assert model.results.select("score") == majority.results.select("score")
    assert model.results.select("ceiling") == majority.results.select("ceiling")


def test_slots_are_refused_before_anything_is_counted() -> None:
    slots = {f"crowd#{i}": row for i, row in enumerate(HUMANS.values())}
    with pytest.raises(SetupError, match="is a place in a list, not a person"):
        aligned(slots, rule="dawid_skene")
    found = aligned({**slots, **HUMANS}, rule="dawid_skene", annotators=list(HUMANS))
    assert found.study.makers == ("ann", "bob", "cy", "dee")


def test_a_model_that_does_not_converge_is_told(monkeypatch) -> None:
    monkeypatch.setattr("judgebench.stats.consensus.MOST_ITERATIONS", 2)
    assert any("had not converged" in note for note in notes_of(HUMANS))
