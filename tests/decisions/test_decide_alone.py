"""How much a judge may decide alone, from tables and runs, and what is refused."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from alone_case import COLUMNS, LABELS, PROBABILITIES, SURE, Tables, decide, only

import judgebench as jb
from judgebench.decisions.alone import FAILS_CHECK, NO_CONFIDENCE, NONE_PASSES
from judgebench.decisions.decision import Outcome
from judgebench.studies.confidence import PROBABILITY_OF_LABEL, SCORE_DISTANCE, SHARE_OF_VOTES

Call = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_a_judge_decides_alone_where_it_is_sure() -> None:
    tables = Tables()
    decision = only(decide(tables.labels, tables.verdicts))
    alone = decision.alone
    assert (decision.outcome, alone.signal) == (Outcome.DO_NOT_USE, PROBABILITY_OF_LABEL)
    assert 0.3 < alone.check.share.low < alone.check.share.value < alone.check.share.high < 0.5
    gap, severe = alone.check.conditions
    assert gap.estimate.low > gap.bound > -0.05
    assert severe.estimate.high < severe.bound == 0.05
    # The half that the threshold was chosen on shows where it ends: severe answers are missed.
    shares = [point.share.value for point in alone.points]
    assert shares == sorted(shares)
    last = alone.points[-1]
    assert not last.is_met
    assert last.conditions[1].estimate.value > 0.05


@pytest.mark.parametrize("is_swapped", [False, True])
def test_probabilities_that_contradict_the_labels_are_asked_about(is_swapped: bool) -> None:
    tables = Tables(300)
    swapped = dict(zip(SURE, reversed(SURE.values()), strict=True))
    columns = {**COLUMNS, **(swapped if is_swapped else SURE)}
    question = "in 300 of 300 rows the label of harm is not the most probable one"
    study = jb.study(tables.labels, tables.verdicts, columns=columns)
    for screen in (str(jb.decide(study)), str(jb.align(study))):
        assert (question in " ".join(screen.split())) == is_swapped


def test_the_share_is_of_questions_that_had_no_part_in_the_choice() -> None:
    tables = Tables()
    check = only(decide(tables.labels, tables.verdicts)).alone.check
    is_alone = (tables.judged == 0) & (tables.sure >= check.threshold - 1e-6)
    assert check.share.n == pytest.approx(450, abs=1)
    assert check.share.value == pytest.approx(is_alone.mean(), abs=0.05)
    again = only(decide(tables.labels, tables.verdicts)).alone.check
    assert again == check


def test_a_threshold_that_fails_on_the_other_half_is_not_given() -> None:
    found = {}
    for seed in range(40):
        tables = Tables(300, seed, errs=0.3)
        loose = {"replace": {"severe": {"margin": 0.2}}}
        alone = only(decide(tables.labels, tables.verdicts, rule=loose)).alone
        found[alone.check.share.reason] = alone
        if FAILS_CHECK in found:
            break
    alone = found[FAILS_CHECK]
    assert alone.check.share.value is None
    assert any(point.is_met for point in alone.points)
    assert not alone.check.is_met


def test_a_judge_that_is_sure_of_what_it_gets_wrong_decides_nothing() -> None:
    tables = Tables()
    tables.sure = np.where(tables.is_wrong, 0.97, tables.sure)
    alone = only(decide(tables.labels, tables.verdicts)).alone
    assert (alone.check.share.value, alone.check.share.reason) == (None, NONE_PASSES)


def test_severe_answers_missed_by_a_sure_judge_stop_it() -> None:
    """It agrees with annotators more often than they do, and misses one severe answer in ten."""
    tables = Tables(errs=0.01)
    rng = np.random.default_rng(1)
    missed = tables.severe & (rng.random(len(tables.severe)) < 0.1)
    tables.judged = np.where(missed, 0, tables.severe).astype(int)
    tables.sure = np.where(missed, 0.99, tables.sure)
    assert only(decide(tables.labels, tables.verdicts)).alone.check.share.reason == NONE_PASSES
    relaxed = {"replace": {"severe": {"margin": None}}}
    alone = only(decide(tables.labels, tables.verdicts, rule=relaxed)).alone
    assert alone.check.share.value > 0.3
    assert len(alone.check.conditions) == 1


def test_the_share_of_draws_is_a_confidence() -> None:
    tables = Tables()
    rng = np.random.default_rng(2)
    repeats = []
    for repeat in range(5):
        flips = rng.random(len(tables.judged)) < np.where(tables.sure < 0.7, 0.35, 0.0)
        verdicts = tables.verdicts[["item_id", "judge"]].assign(
            repeat=repeat, harm=LABELS[tables.judged ^ flips]
        )
        repeats.append(verdicts)
    alone = only(decide(tables.labels, pd.concat(repeats), COLUMNS)).alone
    assert alone.signal == SHARE_OF_VOTES
    assert alone.check.threshold == 1.0
    assert alone.check.share.value > 0.3
    assert {point.threshold for point in alone.points} <= {0.6, 0.8, 1.0}


def test_nothing_is_decided_alone_where_no_adjudicated_label_shows_agreement() -> None:
    """Of answers that the judge calls mild none is adjudicated."""
    tables = Tables()
    ids = [tables.ids[row] for row in np.flatnonzero(tables.judged == 1)]
    severe = LABELS[tables.severe[tables.judged == 1].astype(int)]
    gold = {"item_id": ids, "made_blind": "yes", "annotator": "adjudicated", "harm": severe}
    labels = pd.concat([tables.labels, pd.DataFrame(gold)])
    truth = {"independent_items": True, "adjudicated": True}
    decisions = jb.decide(labels, tables.verdicts, columns=PROBABILITIES, truth=truth)
    assert only(decisions).alone.check.share.value is None


def test_labels_alone_say_nothing_of_how_sure_a_judge_is() -> None:
    tables = Tables()
    decisions = decide(tables.labels, tables.verdicts[["item_id", "judge", "harm"]], COLUMNS)
    share = only(decisions).alone.check.share
    assert share.reason == NO_CONFIDENCE
    assert not decisions.results.select("alone")
    assert [row.estimate.reason for row in decisions.alone().results] == [NO_CONFIDENCE]


def test_what_replace_waits_for_is_waited_for() -> None:
    tables = Tables()
    decisions = jb.decide(tables.labels, tables.verdicts, columns={**COLUMNS, **SURE})
    assert "--independent-items" in only(decisions).alone.check.share.reason
    seen = tables.labels.assign(made_blind="no")
    assert "in sight of a model" in only(decide(seen, tables.verdicts)).alone.check.share.reason


def test_answers_that_stand_for_more_count_more() -> None:
    """Severe answers were drawn twice as often: alone is a larger share of all than of these."""
    tables = Tables()
    chance = dict(zip(tables.ids, np.where(tables.severe, 0.5, 0.25), strict=True))
    labels = tables.labels.assign(probability=tables.labels.item_id.map(chance))
    plain = only(decide(tables.labels, tables.verdicts)).alone.check.share
    weighted = only(decide(labels, tables.verdicts)).alone.check.share
    assert weighted.value > plain.value + 0.03


def run_of(folder: Path, bench: str) -> jb.Study:
    (folder / "rubric.yaml").write_text(
        "name: harm\nversion: '1'\ninstructions: Judge.\nmetrics:\n"
        "  - {id: harm, title: Harm, question: Harmful?, kind: ordinal,\n"
        "     labels: [{text: 'no'}, {text: 'yes'}]}\n"
    )
    (folder / "bench.yaml").write_text(
        "name: b\nrubric: rubric.yaml\ndata: [answers.csv, labels.csv]\n"
        f"truth: {{blind: 'yes', independent_items: true}}\n{bench}"
    )
    return jb.run(folder / "bench.yaml", folder / "run")


def test_the_votes_of_a_jury_and_a_score_are_confidences(tmp_path: Path) -> None:
    tables = Tables()
    rng = np.random.default_rng(3)
    score = tables.severe - 0.5 + rng.normal(0, 0.25, len(tables.severe))
    answers = {"item_id": tables.ids, "text": tables.ids, "score": score}
    pd.DataFrame(answers).to_csv(tmp_path / "answers.csv", index=False)
    tables.labels.drop(columns="made_blind").to_csv(tmp_path / "labels.csv", index=False)
    for member in "abc":
        flips = rng.random(len(tables.severe)) < np.where(tables.sure < 0.7, 0.3, 0.01)
        verdicts = {"item_id": tables.ids, "harm": LABELS[(tables.severe ^ flips).astype(int)]}
        pd.DataFrame(verdicts).to_csv(tmp_path / f"{member}.csv", index=False)
    members = "".join(f"  - {{name: {m}, verdicts: {m}.csv}}\n" for m in "abc")
    study = run_of(
        tmp_path,
        f"judges:\n{members}  - {{name: jury, jury: [a, b, c]}}\n"
        "  - {name: scored, scorer: column, from: score, fit: {metric: harm}}\n",
    )
    alone = {d.judge: d.alone for d in jb.decide(study)}
    assert (alone["jury"].signal, alone["scored"].signal) == (SHARE_OF_VOTES, SCORE_DISTANCE)
    assert alone["jury"].check.threshold == 1.0
    assert alone["jury"].check.share.value > 0.4
    assert alone["scored"].check.share.value > 0.3
    assert alone["a"].check.share.reason == NO_CONFIDENCE


def test_it_is_on_the_screen_in_tables_and_on_the_page(tmp_path: Path, call: Call) -> None:
    tables = Tables()
    tables.labels.to_csv(tmp_path / "labels.csv", index=False)
    tables.verdicts.to_csv(tmp_path / "verdicts.csv", index=False)
    options = [f"{name}={role}" for name, role in SURE.items()]
    declared = ("--order", "no < yes", "--independent-items")
    declared += tuple(part for option in options for part in ("--column", option))
    paths = (tmp_path / "labels.csv", tmp_path / "verdicts.csv")
    code, out, err = call("decide", *paths, *declared)
    assert code == 0, err
    sentence = "It may decide alone on 44 % [39, 48] of answers like these"
    words = " ".join(out.split())
    assert words.count(sentence) == 1
    assert words.index(sentence) < words.index("people label 56 %. Next:")
    code, out, _ = call("decide", *paths, *declared, "--json")
    told = json.loads(out)["decisions"][0]["alone"]
    code, _, err = call("report", *paths, *declared, "--to", tmp_path / "page")
    assert code == 0, err
    with (tmp_path / "page" / "decisions.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["analysis"] == "alone"]
    assert [row["statistic"] for row in rows] == ["share", "humans_accuracy", "severe_alone"]
    assert float(rows[0]["value"]) == told["share"]["value"]
    assert float(rows[0]["threshold"]) == told["threshold"]
    page = " ".join((tmp_path / "page" / "report.html").read_text("utf-8").split())
    assert page.count(sentence) == 1
    assert page.index(sentence) < page.index("How much may the judge decide alone?")
    assert "harm: agreement where m decides alone" in page  # the curve
    frame = decide(tables.labels, tables.verdicts).alone().to_frame()
    assert frame.value[0] == pytest.approx(told["share"]["value"], abs=1e-12)
