"""How many labels does a study need? `judgebench plan`, and `jb.plan`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import judgebench as jb
import judgebench.planning.plan as plan_module
from judgebench.cli.app import app
from judgebench.decisions.decision import Outcome
from judgebench.decisions.rule import DecisionRule
from judgebench.planning.design import Design, Draw, draw
from judgebench.planning.plan import SIZES, Chances, Plan
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
        assert outcome(found, DecisionRule()) == decided(found, design.n_labels)


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
    chances = [good.chances.at(n)[Outcome.REPLACE].value for n in (100, 600, 5000)]
    assert chances == sorted(chances)
    assert chances[-1] > 0.9
    bad = jb.plan(agreement=0.9, severe_share=0.3, judge=-0.3, studies=QUICK)
    assert bad.goal is Outcome.DO_NOT_USE
    assert bad.needed[Design(agreement=0.9, severe_share=0.3, judge=-0.3)].value


def chances_of(replace: object, n: int = 400, **known: object) -> Chances:
    """Chances by n studies of each size: a share ended in REPLACE, the others in CAN'T TELL."""
    ended = np.zeros((len(SIZES), len(Outcome)), dtype=np.int64)
    ended[:, 0] = np.round(n * np.broadcast_to(replace, len(SIZES)))
    ended[:, -1] = n - ended[:, 0]
    return Chances(Design(**known), ended)


def test_the_chance_is_that_of_the_studies_and_its_interval_holds_it() -> None:
    shares = np.linspace(0, 1, len(SIZES))
    for size, share in zip(SIZES, shares, strict=True):
        found = chances_of(shares).at(size)[Outcome.REPLACE]
        assert found.value == pytest.approx(share, abs=0.04)
        assert found.low - 0.02 <= share <= found.high + 0.02


def test_fewer_studies_leave_a_wider_range_of_needed_answers() -> None:
    shares = np.linspace(0, 1, len(SIZES))
    many, few = (chances_of(shares, n).needed(Outcome.REPLACE) for n in (4000, 40))
    assert few.low < many.low <= many.value <= many.high < few.high
    assert many.high - many.low < 1000
    never = chances_of(0.7, 4000).needed(Outcome.REPLACE)
    assert (never.value, never.high) == (None, None)


RISING = np.linspace(0, 1, len(SIZES))  # the share of REPLACE by size


@pytest.mark.parametrize(
    ("replace", "n", "known", "is_cheaper"),
    [
        (RISING, 4000, {"oversampled": True}, False),  # the same number of labels
        (np.minimum(1, 1.3 * RISING), 4000, {"oversampled": True}, True),
        (np.minimum(1, 1.3 * RISING), 4, {"oversampled": True}, False),  # not shown
        (np.minimum(1, 1.1 * RISING), 4000, {"n_annotators": 5}, False),  # fewer answers alone
    ],
)
def test_a_design_is_cheaper_where_its_labels_are_shown_to_be_fewer(
    replace: object, n: int, known: dict[str, object], is_cheaper: bool
) -> None:
    other = chances_of(replace, n, **known)
    plan = Plan(chances_of(RISING, 4000), [other], DecisionRule(), finalist=other.design)
    assert plan.cheaper == (other.design if is_cheaper else None)
    said = " ".join(plan.part.blocks[0].text)
    assert ("Cheaper: " in said, "No other design" in said) == (is_cheaper, not is_cheaper)
    assert plan.part.answer.startswith("The chance of REPLACE is 80 % with 1,")


def test_the_design_that_seems_cheapest_is_simulated_afresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = []

    def watched(n_studies: dict[Design, int], *given: object) -> dict[Design, Chances]:
        runs.append((n_studies, given[1], simulate(n_studies, *given)))
        return runs[-1][2]

    simulate = plan_module.simulate
    monkeypatch.setattr(plan_module, "simulate", watched)
    plan = jb.plan(agreement=0.9, severe_share=0.3, judge=0.03, studies=QUICK, seed=7)
    (screening, screened_with, _), (again, afresh_with, afresh) = runs
    assert [*again] == [plan.finalist]
    assert again[plan.finalist] > screening[plan.finalist]
    assert afresh_with != screened_with  # other random numbers
    assert afresh[plan.finalist] in plan.others


def test_a_page_says_first_what_was_planned(call: Call, tmp_path: Path) -> None:
    known = ("--agreement", "0.9", "--severe-share", "0.3", "--judge", "0.03")
    assert call("plan", "--studies", "36", *known, "--to", tmp_path)[0] == 0
    top, _, rest = (tmp_path / "report.html").read_text().partition("</header>")
    assert "30 % of the answers severe" in top
    assert "judge minus annotator: +3 points" in top
    cells = rest.partition("</table>")[0]
    assert "<td" in cells
    assert "<wbr>" not in cells  # no number breaks inside


def test_a_plot_has_a_band_for_each_outcome() -> None:
    axes = Plan(chances_of(RISING), (), DecisionRule()).plot()
    assert len(axes.collections) == len(Outcome)


def test_a_command_says_first_what_happens_if_people_agree_less() -> None:
    command = "plan --agreement 0.9 --severe-share 0.3 --judge 0.03 --studies 36"
    said = CliRunner().invoke(app, command.split())
    assert said.exit_code == 0, said.output
    assert said.output.index("If two annotators agree on only 85 %") < said.output.index("Answers")
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--answers 60", "answers: is for a protocol"),
        ("--protocol {}/p.yaml", "rubric: says what people label by"),
        ("--protocol {}/p.yaml --rubric none.yaml", "none.yaml"),
        ("--protocol {}/p.yaml --rubric medical-safety --looks 1.5", "looks"),
        ("--protocol {}/p.yaml --rubric medical-safety --drawn dice", "drawn: is unknown"),
        ("--protocol {}/there.yaml --rubric medical-safety", "is not overwritten"),
        ("--studies 0", "studies: are too few; found 0; allowed: 15 or more"),
        ("--studies 14", "found 14"),
        ("--studies -3", "found -3"),
        ("--figures", "--figures: are written into a folder"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_simulated(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, said: str
) -> None:
    (tmp_path / "there.yaml").write_text("")
    monkeypatch.setattr(plan_module, "simulate", None)
    code, _, err = call("plan", *options.format(tmp_path).split())
    assert (code, said in err) == (2, True), err


def test_progress_is_shown_beside_the_plan(call: Call) -> None:
    _, out, err = call("plan", "--studies", "36")
    assert ("simulated sizes" in out, "simulated sizes" in err) == (False, True)


def test_chances_of_all_outcomes_add_up_and_what_never_came_has_none() -> None:
    chances = chances_of(0.4, 50).at(700)
    assert sum(chance.value for chance in chances.values()) == pytest.approx(1)
    assert chances[Outcome.ASSIST].value == 0
    assert 0 < chances[Outcome.ASSIST].high < 0.1
