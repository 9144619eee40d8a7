"""Answers with known labels beside a decision: what both miss, what only one side finds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from decide_case import label_table, verdict_table

import judgebench as jb
from judgebench.decisions.decision import Decisions
from judgebench.decisions.sentences import ANCHORS_MISS

TRUE = "aaaac" * 120
PEOPLE = ("h0", "h1", "h2")
RULE = {"replace": {"anchors": 0.1}, "assist": {"sent": 0.0}}  # no filter
KNOWN = "c" * 30 + "a" * 30


def noisy(true: str, wrong: float, seed: int) -> str:
    is_wrong = np.random.default_rng(seed).random(len(true)) < wrong
    return "".join(("a" if x == "c" else "c") if w else x
                   for x, w in zip(true, is_wrong, strict=True))  # fmt: skip


def on_anchors(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(item_id="k" + table.item_id)


def anchors(people: str = KNOWN, known: str = KNOWN, **own: str) -> pd.DataFrame:
    """The labels of people, all the same but `own`, and the known ones."""
    labels = {**dict.fromkeys(PEOPLE, people), **own, "adjudicated": known}
    return on_anchors(label_table(labels))


def study(judge: str = KNOWN, labels: pd.DataFrame | None = None) -> jb.Study:
    """People and a judge who hardly err on 600 answers, with the judge's labels of the anchors."""
    people = label_table({name: noisy(TRUE, 0.04, n) for n, name in enumerate(PEOPLE)})
    verdicts = pd.concat([verdict_table(noisy(TRUE, 0.005, 9)), on_anchors(verdict_table(judge))])
    return jb.study(
        people if labels is None else pd.concat([people, labels]), verdicts,
        columns={"order": "a < c"}, truth={"blind": "yes", "independent_items": True},
    )  # fmt: skip


def estimate(decisions: Decisions, statistic: str, **keys: str) -> pd.Series:
    frame = decisions.to_frame()
    rows = frame[(frame.analysis == "anchors") & (frame.statistic == statistic)]
    for key, value in keys.items():
        rows = rows[rows[key] == value]
    (row,) = rows.to_dict("records")
    return pd.Series(row)


def test_thirty_severe_anchors_that_none_missed_meet_ten_per_cent() -> None:
    decisions = jb.decide(study(), rule=RULE, anchors=anchors())

    (decision,) = decisions
    both = estimate(decisions, "both_miss")
    assert decision.outcome == "REPLACE"
    assert (both.value, both.n) == (0, 30)
    assert both.high == pytest.approx(1 - 0.05 ** (1 / 30))
    assert estimate(decisions, "false_alarms", who="consensus").value == 0


def test_an_error_that_all_share_is_no_replace() -> None:
    missed = "a" * 15 + KNOWN[15:]
    assert next(iter(jb.decide(study(missed)))).outcome == "REPLACE"

    decisions = jb.decide(study(missed), rule=RULE, anchors=anchors(missed))

    (decision,) = decisions
    assert decision.outcome == "DO NOT USE"
    assert "misses, together with the annotators, 50 %" in decision.reason
    assert "change the guidelines" in decisions.part.standings[0].next
    assert estimate(decisions, "found", who="consensus").value == 0.5


def test_too_few_anchors_leave_it_open() -> None:
    few = "c" * 10 + "a" * 10
    decisions = jb.decide(study(few), rule=RULE, anchors=anchors(few, few))
    (decision,) = decisions
    assert decision.outcome == "CAN'T TELL"
    assert decision.more is not None
    assert "anchors" in decision.more.reason


def test_a_rule_that_names_them_waits_for_them() -> None:
    (decision,) = jb.decide(study(), rule=RULE)
    assert decision.outcome == "CAN'T TELL"
    assert "no answer with a known severe label has labels" in decision.reason


def test_without_the_rule_they_are_reported_and_decide_nothing() -> None:
    missed = "a" * 30 + KNOWN[30:]
    decisions = jb.decide(study(missed), anchors=anchors(missed))
    assert next(iter(decisions)).outcome == "REPLACE"
    assert estimate(decisions, "both_miss").value == 1
    assert "both miss 100 % of the answers" in str(decisions)
    assert ANCHORS_MISS in " ".join(str(decisions).split())


def test_it_says_that_people_miss_what_the_judge_finds() -> None:
    decisions = jb.decide(study(), anchors=anchors("a" * 8 + KNOWN[8:]))
    p = estimate(decisions, "p_judge_finds_more")
    assert (p.value, p.n) == (pytest.approx(2 / 2**8), 8)
    told = " ".join(str(decisions).split())
    assert "annotators miss severe flaws that the judge finds (p = 0.0078)" in told
    few = jb.decide(study(), anchors=anchors("a" * 4 + KNOWN[4:]))
    assert "the judge finds" not in " ".join(str(few).split())


def test_each_annotator_has_a_share_of_what_they_labelled() -> None:
    labels = anchors(h0="a" * 3 + KNOWN[3:], h1=KNOWN[:31] + "c" + KNOWN[32:])
    labels = labels[~((labels.annotator == "h2") & labels.item_id.isin(["ki0", "ki1"]))]
    decisions = jb.decide(study(), anchors=labels)
    assert estimate(decisions, "found", who="h0").value == 0.9
    assert estimate(decisions, "false_alarms", who="h1").value == pytest.approx(1 / 30)
    assert estimate(decisions, "found", who="h2").n == 28
    assert estimate(decisions, "found", who="consensus").value == 1


def test_anchors_are_no_labelled_answers_of_the_study() -> None:
    labels = anchors("a" * 60)
    with_labels = study(labels=labels[labels.annotator != "adjudicated"])
    decisions = jb.decide(with_labels, anchors=labels).to_frame()
    alone = jb.decide(study(), anchors=labels).to_frame()
    kinds = ["decision", "condition", "bar"]
    columns = ["analysis", "statistic", "judge", "metric", "value", "low", "high", "n"]
    first, second = (
        frame[frame.analysis.isin(kinds)][columns].reset_index(drop=True)
        for frame in (decisions, alone)
    )
    pd.testing.assert_frame_equal(first, second)


def test_a_judge_without_verdicts_on_them_is_told() -> None:
    people = label_table({name: noisy(TRUE, 0.04, n) for n, name in enumerate(PEOPLE)})
    asked = jb.study(
        people, verdict_table(noisy(TRUE, 0.005, 9)), columns={"order": "a < c"},
        truth={"blind": "yes", "independent_items": True},
    )  # fmt: skip
    (decision,) = jb.decide(asked, rule=RULE, anchors=anchors())
    assert decision.outcome == "CAN'T TELL"
    assert "have the judge label them too" in decision.reason


def test_a_label_that_the_judge_owes_is_a_miss() -> None:
    verdicts = on_anchors(verdict_table(KNOWN))
    verdicts.loc[verdicts.item_id == "ki0", "harm"] = ""
    people = label_table({name: noisy(TRUE, 0.04, n) for n, name in enumerate(PEOPLE)})
    judged = pd.concat([verdict_table(noisy(TRUE, 0.005, 9)), verdicts])
    owed = jb.study(people, judged, columns={"order": "a < c"}, truth={"blind": "yes"})
    decisions = jb.decide(owed, anchors=anchors())
    assert estimate(decisions, "found", judge="j").value == pytest.approx(29 / 30)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (anchors()[lambda rows: rows.annotator != "adjudicated"], "has no known label"),
        (anchors(known="x" * 60), "'x'"),
    ],
)
def test_a_bad_table_is_named(table: pd.DataFrame, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "anchors.csv"
    table.to_csv(path, index=False)
    with pytest.raises(jb.SetupError, match=reason) as refused:
        jb.decide(study(), anchors=path)
    assert "anchors.csv" in str(refused.value)


def test_a_bound_that_no_number_of_anchors_can_show_is_refused() -> None:
    with pytest.raises(jb.SetupError, match=r"replace\.anchors"):
        jb.decide(study(), rule={"replace": {"anchors": 0}})
