"""How many labels does a study need? `judgebench plan`, and `jb.plan`."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.decisions.decision import Outcome
from judgebench.decisions.rule import DecisionRule
from judgebench.planning.design import Design, Draw, draw
from judgebench.planning.plan import SIZES, Chances
from judgebench.planning.simulate import outcome

Call = Callable[..., tuple[int, str, str]]
QUICK = 36  # studies


def decided(found: Draw, labels: int) -> str:
    """What `jb.decide` says of the tables of a drawn study."""
    texts = np.array([f"level {label}" for label in range(labels)])
    ids = pd.DataFrame({"id": [f"i{i}" for i in range(len(found.judged))]})
    ids["question"] = [f"q{q}" for q in found.clusters.codes]
    people = {f"person {a}": texts[own] for a, own in enumerate(found.own.T)}
    table = ids.assign(**people)
    truth = {"blind": "yes"}
    columns: dict[str, object] = {
        "order": " < ".join(texts), "question": ["question"], "annotators": [*people],
    }  # fmt: skip
    if found.stands_for is not None:
        table["weight"] = found.stands_for
        truth["drawn"] = ["weight=weight"]
    verdicts = ids[["id"]].assign(judge=texts[found.judged])
    (decision,) = jb.decide(table, {"judge": verdicts}, truth=truth, columns=columns)
    return str(decision.outcome)


@pytest.mark.parametrize(
    "design",
    [
        Design(agreement=0.9, judge=0.02),
        Design(n_annotators=5, n_labels=3, judge=0.03),
        Design(judge=-0.2),
        Design(per_question=4, agreement=0.9, judge=0.03),
        Design(agreement=0.95, severe_share=0.4, judge=-0.01),
        Design(agreement=0.9, severe_share=0.1, oversampled=True, judge=0.02),
    ],
)
def test_a_simulated_study_ends_as_decide_ends_it(design: Design) -> None:
    rng = np.random.default_rng(4)
    for answers in (60, 240, 800):
        found = draw(design, answers, rng)
        ended = outcome(found, design.n_labels, DecisionRule(), rng)
        assert ended == decided(found, design.n_labels)


def test_annotators_of_a_drawn_study_agree_as_often_as_was_said() -> None:
    for design in (Design(), Design(n_labels=4), Design(per_question=5, alike=0.3)):
        found = draw(design, 200_000, np.random.default_rng(1))
        agreeing = (found.own[:, 0] == found.own[:, 1]).mean()
        assert agreeing == pytest.approx(design.agreement, abs=0.005)


def test_where_severe_answers_are_oversampled_their_weights_give_the_share_back() -> None:
    design = Design(severe_share=0.1, oversampled=True, agreement=0.9)
    found = draw(design, 100_000, np.random.default_rng(1))
    severe = np.median(found.own, axis=1) == 1
    assert severe.mean() > 0.2
    plain = draw(Design(severe_share=0.1, agreement=0.9), 100_000, np.random.default_rng(1))
    of_all = (np.median(plain.own, axis=1) == 1).mean()
    assert np.average(severe, weights=found.stands_for) == pytest.approx(of_all, abs=0.005)


def test_more_labels_and_a_better_judge_make_replace_likelier() -> None:
    good = jb.plan(agreement=0.9, severe_share=0.3, judge=0.03, studies=QUICK)
    assert good.goal is Outcome.REPLACE
    chances = [good.chances.of(Outcome.REPLACE, n).value for n in (100, 600, 5000)]
    assert chances == sorted(chances)
    assert chances[-1] > 0.9
    bad = jb.plan(agreement=0.9, severe_share=0.3, judge=-0.3, studies=QUICK)
    assert bad.goal is Outcome.DO_NOT_USE
    assert bad.needed[Design(agreement=0.9, severe_share=0.3, judge=-0.3)]


def test_the_chance_is_that_of_the_studies_and_its_interval_holds_it() -> None:
    n = np.full(len(SIZES), 400)
    ended = np.zeros((len(SIZES), len(Outcome)), dtype=np.int64)
    ended[:, 0] = np.linspace(0, 400, len(SIZES))
    ended[:, -1] = 400 - ended[:, 0]
    chances = Chances(Design(), ended, n)
    for size, share in zip(SIZES, ended[:, 0] / 400, strict=True):
        found = chances.of(Outcome.REPLACE, size)
        assert found.value == pytest.approx(share, abs=0.04)
        assert found.low - 0.02 <= share <= found.high + 0.02


def test_a_command_says_first_what_happens_if_people_agree_less() -> None:
    command = "plan --agreement 0.9 --severe-share 0.3 --judge 0.03 --studies 36"
    said = CliRunner().invoke(app, command.split())
    assert said.exit_code == 0, said.output
    assert said.output.index("If two annotators agree on 85 %") < said.output.index("Answers")
    found = json.loads(CliRunner().invoke(app, [*command.split(), "--json"]).output)["plan"]
    assert {row["statistic"] for row in found if row["analysis"] == "plan"} == {
        "replace", "assist", "do_not_use", "cant_tell",
    }  # fmt: skip
    assert all(
        row["low"] <= row["value"] <= row["high"] for row in found if row["analysis"] == "plan"
    )


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"agreement": 0.5}, "agreement"),
        ({"severe_share": 0.0}, "severe"),
        ({"n_annotators": 1}, "annotators"),
        ({"judge": 0.2}, "the judge cannot be so much better"),
        ({"skill": 0.2}, "n_annotators, agreement, severe"),
    ],
)
def test_what_cannot_be_is_said(known: dict[str, float], said: str) -> None:
    with pytest.raises(jb.SetupError, match=said):
        jb.plan(**known)


def test_options_of_a_protocol_need_one_and_are_read_before_anything_is_simulated(
    call: Call,
) -> None:
    for more in (["--answers", "60"], ["--looks", "0.5"], ["--protocol", "p.yaml"]):
        code, _, said = call("plan", *more)
        assert (code, "--protocol" in said) == (2, True)
    code, _, said = call("plan", "--protocol", "p.yaml", "--rubric", "none.yaml")
    assert (code, "none.yaml" in said) == (2, True)


def test_chances_of_all_outcomes_add_up_and_what_never_came_has_none() -> None:
    studies = np.full(len(SIZES), 50)
    ended = np.zeros((len(SIZES), len(Outcome)), dtype=np.int64)
    ended[:, 0], ended[:, -1] = 20, 30
    chances = Chances(Design(), ended, studies).at(700)
    assert sum(chance.value for chance in chances.values()) == pytest.approx(1)
    assert chances[Outcome.ASSIST].value == 0
    assert 0 < chances[Outcome.ASSIST].high < 0.1
