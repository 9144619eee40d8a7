"""Labels that settle what annotators disagreed on: beside the annotators, never among them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judgebench as jb
from judgebench.learning.learnt import material_of
from judgebench.studies.study import Study

LABELS = ["Safe", "Doubtful", "Harmful"]
RUBRIC = jb.Rubric.from_labels({"safety": LABELS})
PEOPLE = ["ann", "ben", "cem"]
SETTLED = {"i0": "Harmful", "i1": "Safe", "i2": "Harmful", "i3": "Doubtful"}


def people(seed: int = 0, n: int = 60) -> pd.DataFrame:
    """Three annotators of whom each errs on its own."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    rows = []
    for who in PEOPLE:
        said = np.where(rng.random(n) < 0.8, truth, rng.integers(0, 3, n))
        rows += [(f"i{i}", f"q{i // 2}", who, LABELS[k]) for i, k in enumerate(said)]
    return pd.DataFrame(rows, columns=["item_id", "question", "annotator", "safety"])


def with_settled(labels: pd.DataFrame, settled: dict[str, str] = SETTLED) -> pd.DataFrame:
    rows = [
        (item, f"q{int(item[1:]) // 2}", "adjudicated", label) for item, label in settled.items()
    ]
    return pd.concat([pd.DataFrame(rows, columns=labels.columns), labels], ignore_index=True)


def study(labels: pd.DataFrame, **truth: Any) -> Study:
    """The annotators' labels beside a judge that says what ben says of every item but two."""
    of_ben = labels[labels.annotator == "ben"]
    verdicts = of_ben.assign(judge="judge").drop(columns=["annotator", "question"])
    verdicts.loc[verdicts.index[:2], "safety"] = ["Harmful", "Doubtful"]
    return jb.study(labels, verdicts, rubric=RUBRIC, truth=truth)


def rows_of(found: Any, *analyses: str) -> pd.DataFrame:
    frame = found.to_frame()
    return frame[frame.analysis.isin(analyses)].reset_index(drop=True) if analyses else frame


def test_no_number_changes_where_they_do_not_count_and_few_of_them_decide_nothing() -> None:
    plain, settled = study(people()), study(with_settled(people()))
    assert settled.n_adjudicated == 4
    assert settled.n_labels == plain.n_labels
    pd.testing.assert_frame_equal(rows_of(jb.align(settled)), rows_of(jb.align(plain)))
    for decisions in (
        jb.decide(settled),
        jb.decide(study(with_settled(people()), adjudicated=True)),
    ):
        (decision,) = decisions.decisions
        assert decision.outcome == "CAN'T TELL"
        assert decision.reason.startswith("Of 26 answers on which judge and annotators do not all")
        assert "only 3 are adjudicated" in decision.reason
    assert settled.humans["safety"].people.annotators == tuple(PEOPLE)
    controls = [j.signature for j in settled.judges if j.kind == "control"]
    assert controls == [j.signature for j in plain.judges if j.kind == "control"]


def test_where_they_count_they_are_the_truth_of_their_items_and_of_no_other() -> None:
    labels = with_settled(people(), SETTLED | {"i4": "Safe"})
    labels = labels[(labels.item_id != "i4") | (labels.annotator == "adjudicated")]
    plain, settled = study(labels), study(labels, adjudicated=True)
    before, after = plain.humans["safety"].truth, settled.humans["safety"].truth
    at = [settled.answers.row(item) for item in SETTLED]
    assert [LABELS[k] for k in after[at]] == list(SETTLED.values())
    assert after[settled.answers.row("i4")] == -1  # nobody has labelled it
    others = np.setdiff1d(np.arange(len(after)), at)
    assert after[others].tolist() == before[others].tolist()
    assert (before[at] != after[at]).any()


@pytest.mark.parametrize("rule", ["median", "majority", "dawid_skene"])
def test_annotators_are_compared_with_each_other_all_the_same(rule: str) -> None:
    labels = with_settled(people())
    plain, settled = study(labels, rule=rule), study(labels, rule=rule, adjudicated=True)
    own, counted = plain.humans["safety"], settled.humans["safety"]
    for who in PEOPLE:
        assert own.truth_without(who).tolist() == counted.truth_without(who).tolist()
    assert own.truth_of(["ann", "ben"]).tolist() != counted.truth_of(["ann", "ben"]).tolist()
    human = ("ceiling", "agreement", "annotator_labels")
    own_rows, counted_rows = (rows_of(jb.align(one), *human) for one in (plain, settled))
    pd.testing.assert_frame_equal(own_rows, counted_rows)


def test_what_learns_is_taught_what_was_settled() -> None:
    labels = with_settled(people())
    told = [jb.HumanLabel(r.item_id, r.annotator, "safety", r.safety) for r in labels.itertuples()]
    answers = study(labels).answers

    def truth(**config: Any) -> Sequence[int]:
        material = material_of(RUBRIC, answers, told, jb.TruthConfig(**config), folds=2)
        assert material.ratings["safety"].annotators == tuple(PEOPLE)
        return material.training(np.arange(len(answers))).labels["safety"].tolist()

    assert truth() == study(people()).humans["safety"].truth.tolist()
    assert (
        truth(adjudicated=True) == study(labels, adjudicated=True).humans["safety"].truth.tolist()
    )


def test_reports_say_how_many_there_are_and_whether_they_count() -> None:
    labels = with_settled(people())
    said = jb.decide(study(labels)).context.compared
    assert said.startswith("Reference labels: the median of ann, ben and cem")
    assert (
        "Adjudicated labels, on 4 items, are no reference labels without --adjudicated; judge and "
        "annotators are compared with them in decisions all the same." in said
    )
    said = jb.decide(study(labels, adjudicated=True)).context.compared
    assert said.endswith("Adjudicated labels, on 4 items, are the reference there.")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"annotators": ["adjudicated"]}, "makes it the item's reference label"),
        ({"rule": "each", "adjudicated": True}, "which 'each' does not"),
        ({"annotators": ["adj*"]}, "fits no annotator"),
    ],
)
def test_settings_that_would_make_an_annotator_of_them_are_errors(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(jb.SetupError, match=message):
        study(with_settled(people()), **settings)


def test_they_cannot_stand_alone() -> None:
    only = with_settled(people()).query("annotator == 'adjudicated'")
    verdicts = only.assign(judge="judge").drop(columns=["annotator", "question"])
    with pytest.raises(jb.SetupError, match="is no annotator"):
        jb.study(only, verdicts, rubric=RUBRIC)


def test_check_counts_them_apart(tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    table = with_settled(people()).assign(text="An answer.").rename(columns={"safety": "label"})
    table.assign(metric="safety").to_csv(tmp_path / "labels.csv", index=False)
    rubric = tmp_path / "rubric.yaml"
    rubric.write_text(
        'name: safety\nversion: "1"\ninstructions: Judge.\nmetrics:\n'
        '- {id: safety, title: Safety, question: "Is it safe?", kind: ordinal, labels: [\n'
        "  {text: Safe, severity: 0}, {text: Doubtful, severity: 1},\n"
        "  {text: Harmful, severity: 2}]}\n"
    )
    code, out, err = call("check", tmp_path / "labels.csv", "--rubric", rubric)
    assert code == 0, err
    assert "180 human labels" in out
    assert ", adjudicated:" not in out
    assert "Adjudicated labels, on 4 items, are no reference labels" in " ".join(out.split())


@pytest.mark.parametrize("command", ["decide", "align", "report", "estimate"])
def test_every_command_that_scores_lets_them_count(command: str, tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    labels = with_settled(people())
    labels.to_csv(tmp_path / "labels.csv", index=False)
    of_ben = labels[labels.annotator == "ben"].assign(judge="judge")
    of_ben.drop(columns=["annotator"]).to_csv(tmp_path / "verdicts.csv", index=False)
    files = (tmp_path / "labels.csv", tmp_path / "verdicts.csv", "--order", " < ".join(LABELS))
    more = ("--to", tmp_path / "out") if command in ("report", "estimate") else ("--verbose",)
    said = {}
    for option in ((), ("--adjudicated",)):
        code, out, err = call(command, *files, *option, *more)
        assert code in (0, 1), err
        page = tmp_path / "out" / "report.html"
        said[option] = " ".join((out + (page.read_text("utf-8") if page.exists() else "")).split())
    assert "the adjudicated label, and without one" not in said[()]
    assert "the adjudicated label, and without one" in said[("--adjudicated",)]


def test_estimate_takes_them_from_python() -> None:
    labels = with_settled(people(), {f"i{n}": "Harmful" for n in range(60)})
    of_ben = labels[labels.annotator == "ben"]
    verdicts = of_ben.assign(judge="judge").drop(columns=["annotator", "question"])
    given = {"columns": {"order": " < ".join(LABELS)}}
    rates = jb.estimate(labels, verdicts, truth={"adjudicated": True}, **given)
    assert rates.results.find("human", "rate", of="Harmful").value == 1.0
