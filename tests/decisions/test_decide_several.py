"""Decisions on metrics where several labels may be right: a judge hits the others' response set."""

import numpy as np
import pandas as pd
import pytest
import yaml

import judgebench as jb
from judgebench.decisions.counts import HumanSide, study_counts
from judgebench.decisions.decision import Outcome
from judgebench.stats.arrays import Clusters

LABELS = ["calm", "warm", "curt", "rude"]
ITEMS, PEOPLE = 240, "ABC"
TRUTH = {"independent_items": True, "blind": "yes"}


def world():
    """Two defensible labels on most items. Annotators accept both, and name the first first; one
    judge gives the first, one the second, one both, one every label, one no defensible label."""
    rng = np.random.default_rng(0)
    people, judges = [], []
    for i in range(ITEMS):
        first = int(rng.integers(0, 3))
        right = [first, first + 1] if rng.random() < 0.7 else [first]
        for who in PEOPLE:
            kept = [x for x in right if rng.random() < 0.9] or right[:1]
            said = [int(rng.integers(0, 4))] if rng.random() < 0.15 else kept
            people.append((f"i{i}", who, " | ".join(LABELS[x] for x in said)))
        wrong = next(x for x in range(4) if x not in right)
        for judge, said in {
            "first": right[:1], "second": right[-1:], "both": right, "all": range(4),
            "wrong": [wrong if i % 2 else right[0]],
        }.items():  # fmt: skip
            judges.append((f"i{i}", judge, " | ".join(LABELS[x] for x in said)))
    labels = pd.DataFrame(people, columns=["item_id", "annotator", "tone"])
    return labels, pd.DataFrame(judges, columns=["item_id", "judge", "tone"])


def rubric_file(folder, **changes):
    metric = {
        "id": "tone", "title": "Tone", "question": "Which tone?", "kind": "nominal",
        "labels": LABELS, "several": True, **changes,
    }  # fmt: skip
    value = {"name": "tone", "version": "1", "instructions": "Label.", "metrics": [metric]}
    path = folder / "tone.yaml"
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = rubric_file(tmp_path_factory.mktemp("rubric"))
    return jb.study(*world(), rubric=path, truth=TRUTH)


@pytest.fixture(scope="module")
def made(study):
    return jb.decide(study)


def condition(made, judge, key):
    decision = next(d for d in made.decisions if d.judge == judge)
    return next(c for c in decision.replace if c.key == key)


def labels_in(cell):
    return {LABELS.index(x) for x in cell.split(" | ")}


def hit(said, others):
    """The share of the labels said that at least half of the others accept."""
    right = {x for x in range(4) if (n := sum(x in o for o in others)) and 2 * n >= len(others)}
    return len(said & right) / len(said) if right else None


@pytest.mark.parametrize("judge", ["first", "second", "both", "all", "wrong"])
def test_the_gap_is_that_of_hits_beside_each_annotators_others(made, judge):
    labels, verdicts = world()
    own = {(i, a): labels_in(x) for i, a, x in labels.itertuples(index=False)}
    gaps = []
    for i, name, cell in verdicts.itertuples(index=False):
        for a in PEOPLE if name == judge else "":
            others = [own[i, o] for o in PEOPLE if o != a]
            if (mine := hit(own[i, a], others)) is not None:
                gaps.append(hit(labels_in(cell), others) - mine)
    found = condition(made, judge, "humans_accuracy")
    assert found.estimate.value == pytest.approx(np.mean(gaps))
    assert found.estimate.n == len(gaps)
    assert "any label that they accept is right" in found.title


def test_a_judge_that_gives_the_other_right_label_is_as_good(made, tmp_path):
    outcomes = {d.judge: d.outcome for d in made.decisions}
    assert outcomes["second"] is outcomes["first"] is outcomes["both"] is Outcome.REPLACE
    assert outcomes["wrong"] is outcomes["all"] is Outcome.DO_NOT_USE
    # By the label that annotators name first alone, the same judge must not be used.
    labels, verdicts = world()
    first = labels.assign(tone=labels.tone.str.split(" | ", regex=False).str[0])
    one = verdicts[verdicts.judge == "second"]
    rubric = rubric_file(tmp_path, several=False)
    forced = jb.decide(jb.study(first, one, rubric=rubric, truth=TRUTH))
    assert forced.decisions[0].outcome is Outcome.DO_NOT_USE


def test_what_is_shown_beside_a_decision_is_the_hit(study, made):
    rows = jb.align(study).results
    for judge in ("first", "second", "all"):
        expected = rows.find("hit", "several", judge=judge, failures="left_out", metric="tone")
        shares = made.shares(judge, "tone")
        assert shares.accuracy == expected
        assert shares.humans == rows.find("hit", "several", who="all", metric="tone")
        assert set(shares.annotators) == {*PEOPLE}
        assert shares.baseline.statistic == "hit"
    assert any("several labels may be right" in note for note in study.notes)
    assert "every label that at least 50 % of A, B and C accept" in made.context.compared


def test_agreement_is_not_balanced_over_sets(made):
    keys = {c.key for d in made.decisions for c in d.replace}
    assert "humans_accuracy" in keys
    assert not {key for key in keys if "balanced" in key}


def test_a_label_that_is_right_everywhere_lets_no_judge_replace(tmp_path):
    labels, verdicts = world()
    everywhere = labels.assign(tone="calm | " + labels.tone.str.replace("calm", "warm"))
    everywhere.tone = everywhere.tone.map(lambda x: " | ".join(dict.fromkeys(x.split(" | "))))
    one = verdicts[verdicts.judge == "first"]
    study = jb.study(everywhere, one, rubric=rubric_file(tmp_path), truth=TRUTH)
    assert jb.decide(study).decisions[0].outcome is not Outcome.REPLACE


def test_a_set_is_severe_where_all_its_labels_are():
    # Labels 0, 1, 2 of which 2 is severe: sets {2}, {1, 2}, {2}, {0}.
    truth = np.array([4, 6, 4, 1])
    own = np.stack([truth, truth], axis=1)
    side = HumanSide(truth, own, own, Clusters(np.arange(4), 4), 1, 2, np.ones((1, 2)), sets=3)
    judged = np.array([4, 4, 6, 4])
    counts = study_counts(side, judged, np.ones(4, dtype=bool), {"c": np.full(4, 4)})
    total = np.einsum("u,ux->x", counts.how_many, counts.severe)
    assert total.tolist() == [2, 1, 0]  # {1, 2} of the judge does not say that the third is severe
    right = float(np.einsum("u,uk->", counts.how_many, counts.judge_items))
    assert right == 1 + 1 + 0.5 + 0
    assert counts.levels == 0
