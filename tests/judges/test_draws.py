"""Several verdicts of one judge on an item, such as of a judge at temperature 1."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app

TONES = ["Kind", "Curt", "Rude"]
RUBRIC = jb.Rubric.from_labels({"tone": TONES})
# What three draws say of each item, and what is true; a dot is a reply that says no label.
DRAWS = {"a": "KKR", "b": "RRR", "c": "CKR", "d": "KK.", "e": "KC.", "f": "..."}
TRUE = {"a": "K", "b": "R", "c": "R", "d": "C", "e": "K", "f": "K"}
MAJORITY = {"a": "Kind", "b": "Rude", "c": "Rude", "d": "Kind", "e": "Curt"}  # ties: more severe
NAMES = {text[0]: text for text in TONES} | {".": ""}


def labels() -> pd.DataFrame:
    rows = [(i, who, NAMES[true]) for i, true in TRUE.items() for who in ("Ann", "Bob")]
    return pd.DataFrame(rows, columns=["item_id", "annotator", "tone"])


def verdicts(column: str = "seed", draws: dict[str, str] = DRAWS) -> pd.DataFrame:
    rows = [(i, n, NAMES[x]) for i, said in draws.items() for n, x in enumerate(said)]
    return pd.DataFrame(rows, columns=["item_id", column, "tone"])


def study(table: pd.DataFrame, **settings) -> jb.Study:  # type: ignore[no-untyped-def]
    settings = {"rubric": RUBRIC, **settings}
    return jb.study(labels(), {"m": table}, **settings)


def said(found: jb.Study) -> dict[str, str]:
    (judge,) = found.real_judges
    return {i: v.labels["tone"] for i, v in judge.verdicts.items() if "tone" in v.labels}


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("column", ["repeat", "run", "epoch", "seed"])
def test_the_label_is_the_majority_of_the_draws_that_give_one(column: str) -> None:
    found = study(verdicts(column))
    assert said(found) == MAJORITY
    (judge,) = found.real_judges
    assert judge.verdicts["d"].status is jb.Status.OK
    assert judge.verdicts["f"].status is jb.Status.FAILED


def test_a_column_of_another_name_is_said(tmp_path: Path) -> None:
    table = verdicts("roll")
    assert said(study(table, columns={"roll": "repeat"})) == MAJORITY
    with pytest.raises(jb.Unsettled) as error:
        study(table)
    (question,) = error.value.questions
    assert "no column names the judge or numbers its draws" in question.asks
    assert {"roll": "repeat"} in [reading.columns for reading in question.readings]
    with pytest.raises(jb.SetupError, match="'m' said 'Kind' of 'a' on tone in row 2") as refused:
        study(table.assign(judge="m"))
    assert "numbers a judge's draws (of another name: --column NAME=repeat)" in str(refused.value)
    assert said(study(table.assign(judge="m"), columns={"roll": "repeat"})) == MAJORITY


def test_two_columns_number_draws_together() -> None:
    table = verdicts().assign(run=lambda rows: rows.seed % 2)
    table["seed"] //= 2
    assert said(study(table)) == MAJORITY


@pytest.mark.parametrize(
    ("ties", "tied"), [("upper", ("Rude", "Curt")), ("lower", ("Kind", "Kind")), ("none", None)]
)
def test_ties_are_settled_as_those_of_the_reference_labels(
    ties: str, tied: tuple[str, str] | None
) -> None:
    found = study(verdicts(), truth={"ties": ties})
    expected = {"a": "Kind", "b": "Rude", "d": "Kind"}
    assert said(found) == expected | (dict(zip("ce", tied, strict=True)) if tied else {})
    (judge,) = found.real_judges
    if not tied:
        verdict = judge.verdicts["c"]
        assert (verdict.status, verdict.reason) == ("unparsed", "its draws are tied on tone")


def test_a_tie_of_labels_without_an_order_leaves_none() -> None:
    nominal = jb.Rubric.from_labels({"tone": TONES}, nominal=["tone"])
    assert said(study(verdicts(), rubric=nominal)).keys() == {"a", "b", "d"}


def test_draws_agree_as_counted_by_hand() -> None:
    found = jb.align(study(verdicts())).results
    of = {r.statistic: r.estimate for r in found.select("consistency", judge="m")}
    assert of["asked"].value == 3
    # Pairs of labels, and equal ones: a 3 and 1, b 3 and 3, c 3 and 0, d 1 and 1, e 1 and 0.
    assert of["agreement"].value == pytest.approx(5 / 11)
    assert (of["agreement"].n, of["agreement"].n_missing) == (11, 6 * 3 - 11)
    # The first draw is right on a, b and e, the majority on a, b and c.
    assert of["majority_gain"].value == 0
    assert of["majority_gain"].n == 5


def test_draws_go_with_their_question() -> None:
    """An interval is that of the items' majority labels, however many draws each is made of."""
    draws = {f"{i}{n}": said for n in range(6) for i, said in DRAWS.items()}
    people = pd.concat(
        [labels().assign(item_id=lambda t, n=n: t.item_id + str(n)) for n in range(6)]
    )
    made = jb.study(people, {"m": verdicts(draws=draws)}, rubric=RUBRIC)
    accuracy = jb.align(made).score("accuracy", "m", "tone")
    right = [MAJORITY[i[0]] == NAMES[TRUE[i[0]]] for i in draws if i[0] in MAJORITY]
    one = verdicts(draws={i: MAJORITY.get(i[0], ".")[0] for i in draws}).drop(columns="seed")
    alone = jb.align(jb.study(people, {"m": one}, rubric=RUBRIC)).score("accuracy", "m", "tone")
    assert accuracy == alone
    assert (accuracy.value, accuracy.n) == (sum(right) / len(right), 30)


def test_probabilities_are_the_mean_over_the_draws() -> None:
    table = verdicts(draws=dict.fromkeys(DRAWS, "KK"))
    for label, shares in zip(TONES, ([0.8, 0.6], [0.1, 0.4], [0.1, 0.0]), strict=True):
        table[f"probability_tone_{label}"] = shares * len(DRAWS)
    found = study(table)
    p = found.probabilities(found.real_judges[0], RUBRIC.metrics[0])
    assert p is not None
    assert p[0] == pytest.approx([0.7, 0.25, 0.05])


def test_the_same_draw_twice_is_an_error() -> None:
    table = pd.concat([verdicts(), verdicts()[:1]])
    with pytest.raises(jb.SetupError, match="'m' said 'Kind' of 'a' on tone, draw 0, in row 2"):
        study(table)


@pytest.mark.parametrize("again", ["Kind", "Rude"])
def test_a_draw_that_stands_twice_is_named_with_its_row(again: str, tmp_path: Path) -> None:
    """Where a column numbers the draws, nobody is asked which one does."""
    labels().to_csv(tmp_path / "labels.csv", index=False)
    twice = pd.DataFrame([("a", 0, again)], columns=["item_id", "seed", "tone"])
    pd.concat([verdicts(), twice]).to_csv(tmp_path / "m.csv", index=False)
    tables = [str(tmp_path / name) for name in ("labels.csv", "m.csv")]
    decided = CliRunner().invoke(app, ["decide", *tables, "--order", "Kind < Curt < Rude"])
    error = "m.csv:20: tone: 'm' said 'Kind' of 'a' on tone, draw 0, in row 2"
    assert error in str(decided.exception)


def test_a_bench_and_the_command_line_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    labels().to_csv("labels.csv", index=False)
    verdicts().to_csv("m.csv", index=False)
    answers = pd.DataFrame({"item_id": [*TRUE], "text": [f"Text {i}" for i in TRUE]})
    answers.to_csv("answers.csv", index=False)
    Path("rubric.yaml").write_text(yaml.safe_dump(RUBRIC.model_dump(mode="json")))
    bench = {"name": "b", "rubric": "rubric.yaml", "data": ["answers.csv", "labels.csv"]}
    judges = [{"name": "m", "verdicts": "m.csv"}]
    Path("bench.yaml").write_text(json.dumps({**bench, "judges": judges}))
    jb.run("bench.yaml", "run")
    of_run = jb.align(jb.open_run("run")).results.select("consistency")
    assert of_run == jb.align(study(verdicts())).results.select("consistency")
    assert said(jb.open_run("run")) == MAJORITY
    given = ["--labels", "labels.csv", "--verdicts", "m.csv", "--rubric", "rubric.yaml"]
    shown = CliRunner().invoke(app, ["align", *given, "-v"]).stdout
    assert "Self-consistency: several draws of an item" in shown
    assert "majority of up to 3 draws" in CliRunner().invoke(app, ["decide", *given, "-v"]).stdout
    judges = [{"name": "m", "verdicts": "m.csv", "ties": "lower"}]
    Path("bench.yaml").write_text(json.dumps({**bench, "judges": judges}))
    assert said(jb.run("bench.yaml", "lower"))["c"] == "Kind"
    verdicts("roll").to_csv("m.csv", index=False)
    with pytest.raises(jb.SetupError, match="or a column `repeat`, `run`, `epoch` or `seed` that"):
        jb.run("bench.yaml", "other")
