"""Adjudicated labels stand in the place of the other annotators' labels."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from decide_case import condition

import judgebench as jb
from judgebench.decisions.counts import AGREED, ALONE, SPLIT, disagreements
from judgebench.decisions.decision import Decision, Outcome
from judgebench.stats.intervals import paired_difference
from judgebench.studies.study import Study

TEXTS = np.array(["fine", "harm"])
RUBRIC = jb.Rubric.from_labels({"harm": [*TEXTS]})
N = 600


@cache
def labels(shared: float, errors: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True labels, those of three annotators (items, 3) and of a judge: on a share of the items
    all of them mostly believe what is wrong, the judge always."""
    rng = np.random.default_rng(1)
    true = (rng.random(N) < 0.3).astype(int)
    hard = rng.random(N) < shared
    wrong = rng.random((N, 3)) < np.where(hard, 0.6, 0.05)[:, None]
    judged = true ^ (hard | (rng.random(N) < errors))
    return true, true[:, None] ^ wrong, judged


def study(
    shared: float = 0.0, errors: float = 0.02, adjudicated: float = 1.0, people: int = 3, **more
) -> Study:
    """A study in which a share of the disagreements has the true label as the adjudicated one."""
    true, own, judged = labels(shared, errors)
    own, items = own[:, :people], np.array([f"i{i}" for i in range(N)])
    tables = [
        pd.DataFrame({"item_id": items, "annotator": f"p{a}", "harm": TEXTS[column]})
        for a, column in enumerate(own.T)
    ]
    doubtful = np.flatnonzero(disagreements(own, judged) != AGREED)
    kept = np.random.default_rng(2).permutation(doubtful)[: round(adjudicated * len(doubtful))]
    gold = {"item_id": items[kept], "annotator": "adjudicated", "harm": TEXTS[true[kept]]}
    tables += [pd.DataFrame(gold)] if len(kept) else []
    verdicts = pd.DataFrame({"item_id": items, "judge": "j", "harm": TEXTS[judged]})
    truth = {"blind": "yes", "independent_items": True}
    return jb.study(pd.concat(tables), verdicts, rubric=RUBRIC, truth=truth, **more)


def decide(*given: float, **more: float) -> Decision:
    return jb.decide(study(*given, **more)).decisions[0]


def test_errors_that_annotators_and_judge_share_are_seen_by_adjudicated_labels_alone() -> None:
    assert decide(0.4, adjudicated=0).outcome is Outcome.REPLACE
    found = decide(0.4)
    assert found.outcome is not Outcome.REPLACE
    assert condition(found, "gold_accuracy").estimate.high < -0.05


def test_a_good_judge_replaces_and_the_sentence_speaks_of_adjudicated_labels() -> None:
    found = decide()
    assert found.outcome is Outcome.REPLACE
    assert "gives the adjudicated label" in found.reason
    assert "Errors shared" not in found.reason
    assert "disagreements adjudicated" in found.numbers


def test_the_gap_is_that_of_true_labels_on_every_item() -> None:
    """Where all agree neither side can be better than the other, whatever is true."""
    true, own, judged = labels(0.1, 0.02)
    apart = (judged == true) - (own == true[:, None]).mean(axis=1)
    e = condition(decide(0.1), "gold_accuracy").estimate
    assert e.value == pytest.approx(apart.mean(), abs=1e-12)
    limits = paired_difference(apart[:, None] * 3, np.full((N, 1), 3.0), np.ones((1, N)), 0.95)
    assert (e.low, e.high) == pytest.approx((limits.low[0], limits.high[0]), abs=1e-9)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_random_part_of_the_disagreements_speaks_for_all_of_them(share: float) -> None:
    """Double sampling: the mean of the strata's means, each as large as it is."""
    true, own, judged = labels(0.1, 0.08)
    strata = disagreements(own, judged)
    part = study(0.1, 0.08, share)
    rows = part.humans["harm"].ratings.rows[part.humans["harm"].ratings.adjudicated >= 0]
    gold = np.isin(np.arange(N), [int(part.answers[row].item_id[1:]) for row in rows])
    apart = (judged == true) - (own == true[:, None]).mean(axis=1)
    expected = sum(
        (strata == h).mean() * apart[(strata == h) & gold].mean() for h in (ALONE, SPLIT)
    )
    e, whole = (
        condition(jb.decide(one).decisions[0], "gold_accuracy").estimate
        for one in (part, study(0.1, 0.08))
    )
    assert e.value == pytest.approx(expected, abs=1e-12)
    assert e.high - e.low > whole.high - whole.low
    # the same item by item: what the stratum shows, and by how much more the item differs
    counted = np.zeros(N)
    for h in (ALONE, SPLIT):
        known, mean = (strata == h) & gold, apart[(strata == h) & gold].mean()
        counted[strata == h] = mean
        counted[known] += (apart[known] - mean) * (strata == h).sum() / known.sum()
    limits = paired_difference(counted[:, None], np.ones((N, 1)), np.ones((1, N)), 0.95)
    assert (e.low, e.high) == pytest.approx((limits.low[0], limits.high[0]), abs=1e-9)


def test_too_few_adjudicated_labels_decide_nothing_and_are_not_passed_over() -> None:
    found = decide(0.3, adjudicated=0.02)
    assert found.outcome is Outcome.CANT_TELL
    assert "only 4 are adjudicated" in found.reason
    assert "annotate draw disagreements" in found.advice


def adjudicating(where: np.ndarray, labels_of: tuple) -> jb.Study:
    """The study with adjudicated labels on these items alone."""
    true, own, judged = labels_of
    items = np.array([f"i{i}" for i in range(N)])
    tables = [
        pd.DataFrame({"item_id": items, "annotator": f"p{a}", "harm": TEXTS[column.astype(int)]})
        for a, column in enumerate(own.T)
    ]
    gold = {"item_id": items[where], "annotator": "adjudicated", "harm": TEXTS[true[where]]}
    verdicts = pd.DataFrame({"item_id": items, "judge": "j", "harm": TEXTS[judged.astype(int)]})
    truth = {"blind": "yes", "independent_items": True}
    return jb.study(pd.concat([*tables, pd.DataFrame(gold)]), verdicts, rubric=RUBRIC, truth=truth)


def test_labels_settled_where_annotators_differ_alone_say_nothing_of_where_the_judge_does() -> None:
    """As a meeting of the annotators leaves them behind."""
    drew = labels(0.0, 0.15)
    split = disagreements(drew[1], drew[2]) == SPLIT
    found = jb.decide(adjudicating(split, drew)).decisions[0]
    assert found.outcome is Outcome.CANT_TELL
    assert "the judge alone differs" in found.reason


def test_a_filter_and_a_floor_are_held_against_adjudicated_labels_too() -> None:
    """Everybody misses half of the severe answers."""
    true, own, judged = labels(0.0, 0.02)
    seen = true & (np.arange(N) % 2)
    own, judged = own & seen[:, None], judged & seen
    whole = adjudicating(np.ones(N, dtype=bool), (true, own, judged))
    rule = jb.decisions.rule.DecisionRule.model_validate({"replace": {"severe": {"recall": 0.7}}})
    found = jb.decide(whole, rule=rule)
    recall = condition(found.decisions[0], "severe_recall").estimate
    assert recall.n == true.sum()
    assert recall.value == pytest.approx((judged & true).sum() / true.sum())
    assert {curve.severe for curve in found.curves} == {int(true.sum())}


def test_no_filter_is_held_against_a_part_of_the_adjudicated_labels() -> None:
    reasons = [[c.estimate.reason for c in decide(0.1, 0.08, share).assist] for share in (0.5, 1.0)]
    assert reasons[0] == ["a filter cannot be held against a part of the adjudicated labels"]
    assert reasons[0][0] not in reasons[1]


def test_what_is_open_is_settled_by_adjudicating_the_rest() -> None:
    found = decide(errors=0.06, adjudicated=0.2)
    assert found.outcome is Outcome.CANT_TELL
    assert found.more.reason.startswith("Adjudicate the other ")


def test_a_consensus_that_labels_add_up_to_is_no_adjudication() -> None:
    _, own, judged = labels(0.1, 0.08)
    majority = TEXTS[(own.sum(axis=1) >= 2).astype(int)]
    table = pd.DataFrame({"id": [f"i{i}" for i in range(N)], "majority": majority})
    table = table.assign(**{f"p{a}": TEXTS[own[:, a].astype(int)] for a in range(3)})
    verdicts = pd.DataFrame({"id": table.id, "judge": "j", "harm": TEXTS[judged.astype(int)]})
    made = jb.study(table, verdicts, rubric=RUBRIC)
    assert made.n_adjudicated == N
    assert next(c.key for c in jb.decide(made).decisions[0].replace) == "humans_accuracy"


def test_the_name_of_who_adjudicates_is_read_whatever_its_case() -> None:
    true, own, judged = labels(0.1, 0.08)
    table = pd.DataFrame({"id": [f"i{i}" for i in range(N)] * 2})
    table["annotator"] = ["ann"] * N + ["Adjudicated"] * N
    table["harm"] = [*TEXTS[own[:, 0].astype(int)], *TEXTS[true]]
    verdicts = pd.DataFrame({"id": table.id[:N], "judge": "j", "harm": TEXTS[judged.astype(int)]})
    assert jb.study(table, verdicts, rubric=RUBRIC).makers == ("ann",)


def test_adjudicated_labels_are_not_lost_for_one_cell_that_is_none() -> None:
    true, own, judged = labels(0.1, 0.08)
    table = pd.DataFrame({"id": [f"i{i}" for i in range(N)], "gold": TEXTS[true]})
    table = table.assign(**{f"p{a}": TEXTS[own[:, a].astype(int)] for a in range(3)})
    table.loc[5, "gold"] = "maybe"
    verdicts = pd.DataFrame({"id": table.id, "judge": "j", "harm": TEXTS[judged.astype(int)]})
    with pytest.raises(jb.SetupError, match="gold: is not a label of harm; found 'maybe'"):
        jb.study(table, verdicts, rubric=RUBRIC)
    made = jb.study(table, verdicts, rubric=RUBRIC, columns={"blank": "maybe"})
    assert made.n_adjudicated == N - 1


def test_one_annotator_and_adjudicated_labels_are_enough() -> None:
    assert decide(people=1, adjudicated=0).outcome is not Outcome.REPLACE
    assert decide(people=1).outcome is Outcome.REPLACE


def test_strata_are_of_judge_and_annotators() -> None:
    own = np.array([[0, 0, -1], [1, 1, 1], [0, 1, 0], [1, 1, 1]])
    assert disagreements(own, np.array([0, 0, 0, -1])).tolist() == [AGREED, ALONE, SPLIT, ALONE]
