"""Studies of ordered labels of which none is severe: a quality score of 1 to 5."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score, mean_absolute_error

import judgebench as jb

ORDER = "1 < 2 < 3 < 4 < 5"
COLUMNS = {"order": ORDER, "severe": "none", "question": "question"}
OPTIONS = ("--order", ORDER, "--severe", "none", "--question", "question", "--blind", "yes")
# What is declared is repeated, and keys of rows are not words; neither speaks of severe answers.
DECLARED = re.compile(r"severe[:'\"]* *[:=]? *['\"]?none|severit(y|ies)")
SEVERE = re.compile(r".{0,40}(?:severe|or worse).{0,40}", re.IGNORECASE)


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """120 answers to 60 questions by three annotators; llama is poor and fails on some."""
    rng, n = np.random.default_rng(1), 120
    quality = rng.normal(3.2, 1.1, n)

    def rated(noise: float) -> list[str]:
        scores = np.clip(np.round(quality + rng.normal(0, noise, n)), 1, 5)
        return scores.astype(int).astype(str).tolist()

    items = {"id": range(n), "question": [f"q{i // 2}" for i in range(n)]}
    items["system"] = ["alpha", "beta"] * (n // 2)
    labels = pd.DataFrame({**items, "ann": rated(0.4), "ben": rated(0.4), "cid": rated(0.5)})
    poor = [label if i % 40 else "" for i, label in enumerate(rated(1.6))]
    return labels, pd.DataFrame({"id": range(n), "gpt": rated(0.4), "llama": poor})


@pytest.fixture(scope="module")
def study() -> jb.Study:
    return jb.study(*tables(), columns=COLUMNS, truth={"blind": "yes"})


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name, table in zip(("labels", "verdicts"), tables(), strict=True):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path / "labels.csv", tmp_path / "verdicts.csv"


def of_severe(text: str) -> list[str]:
    """The passages that speak of severe answers."""
    return SEVERE.findall(DECLARED.sub("", text))


def test_a_whole_report_speaks_of_no_severe_answer(call, files, tmp_path) -> None:
    code, out, err = call("report", *files, *OPTIONS, "--to", tmp_path / "out", "-v")
    written = {
        path.name: of_severe(path.read_text("utf-8"))
        for path in (tmp_path / "out").rglob("*")
        if path.suffix in (".html", ".md", ".tex", ".csv")
    }
    assert (code, of_severe(out + err)) == (0, [])
    assert {"report.html", "tables.md", "main.tex", "appendix.tex", "results.csv"} <= {*written}
    assert {name: found for name, found in written.items() if found} == {}


@pytest.mark.parametrize("command", ["decide", "align", "estimate"])
def test_no_screen_speaks_of_severe_answers(command, call, files) -> None:
    code, out, err = call(command, *files, *OPTIONS, "-v")
    assert (code, of_severe(out + err)) == (0, [])
    assert "ties go to the higher label" in out


def test_order_distances_and_weights_count(study) -> None:
    alignment = jb.align(study)
    labels, verdicts = tables()
    reference = labels[["ann", "ben", "cid"]].astype(int).median(axis=1).astype(int)
    judged = verdicts["gpt"].astype(int)
    kappa = cohen_kappa_score(reference, judged, weights="quadratic")
    error = mean_absolute_error(reference, judged)
    score = alignment.results.select("score", judge="gpt")
    found = {row.statistic: row.estimate.value for row in score}
    assert found["kappa_quadratic"] == pytest.approx(kappa)
    assert found["mae"] == pytest.approx(error)
    assert found["spearman"] == pytest.approx(reference.corr(judged, method="spearman"))
    assert "severe_recall" not in found


def test_every_number_but_that_of_severe_answers_stays(study) -> None:
    ordered = {key: value for key, value in COLUMNS.items() if key != "severe"}
    usual = jb.study(*tables(), columns=ordered, truth={"blind": "yes"})
    with_severe, without = (jb.align(one).to_frame() for one in (usual, study))
    kept = with_severe[~with_severe["statistic"].str.startswith("severe_")]
    assert len(kept) < len(with_severe)
    for column in ("statistic", "value", "low", "high", "n"):
        assert kept[column].tolist() == pytest.approx(without[column].tolist(), nan_ok=True)


def test_a_decision_rests_on_agreement_and_distance(study) -> None:
    decisions = jb.decide(study)
    assert {condition.key for decision in decisions for condition in decision.replace} == {
        "humans_accuracy", "humans_balanced_accuracy", "humans_distance", "controls", "failures",
    }  # fmt: skip
    assert not any(decision.assist for decision in decisions)
    assert "rests on agreement with annotators, the distance" in " ".join(str(decisions).split())


def test_estimated_means_are_those_of_the_scores() -> None:
    labels, verdicts = tables()
    rates = jb.estimate(labels[:80], verdicts[["id", "gpt"]], columns=COLUMNS)
    reference = labels[:80][["ann", "ben", "cid"]].astype(int).median(axis=1)
    mean = rates.results.find("human", "rate", of="mean label", group="all").value
    higher = rates.results.find("human", "rate", of="4 or higher", group="all").value
    assert mean == pytest.approx(reference.mean())
    assert higher == pytest.approx((reference >= 4).mean())


def test_a_comparison_of_judges_speaks_of_no_severe_answer(study) -> None:
    comparison = jb.compare(study, study, judges=("gpt", "llama"))
    shown = "".join(str(block) for part in comparison.parts for block in (part.blocks, part.screen))
    assert "Labels changed" in shown
    assert of_severe(shown + comparison.to_frame().to_csv()) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"order": "none"}, "is for ordered labels: give their order with --order"),
        ({"severe": "5"}, "must say `none`, or `METRIC: none`"),
        ({"severe": {"tone": "none"}}, "must say `none`, or `METRIC: none`"),
    ],
)
def test_what_is_no_ordered_score_is_refused(changed, message) -> None:
    with pytest.raises(jb.SetupError, match=re.escape(message)):
        jb.layout(*tables(), columns={**COLUMNS, **changed})


def test_a_rubric_says_it_itself() -> None:
    rubric = jb.Rubric.from_labels({"Quality": list("12345")}, severe={"Quality": "none"})
    labels, verdicts = (table.head(20) for table in tables())
    given = (labels[["id", "ann"]].set_axis(["id", "Quality"], axis=1), verdicts[["id", "gpt"]])
    columns = {"gpt": "verdict quality"}
    study = jb.study(*given, rubric=rubric, columns=columns)
    assert not study.rubric.metrics[0].has_severe
    said_again = {**columns, "severe": "none"}
    assert jb.study(*given, rubric=rubric, columns=said_again).rubric == study.rubric
    other = jb.Rubric.from_labels({"Quality": list("12345")})
    with pytest.raises(jb.SetupError, match="is said by the rubric"):
        jb.study(*given, rubric=other, columns=said_again)


def test_nominal_labels_and_a_named_severe_label_are_refused(study) -> None:
    with pytest.raises(jb.SetupError, match="'severe: none' is for ordered labels"):
        jb.Rubric.from_labels({"Label": "ab"}, nominal=["Label"], severe={"Label": "none"})
    with pytest.raises(jb.SetupError, match="`severe_from` in a decision rule says"):
        jb.Rubric.from_labels({"Label": "ab"}, severe={"Label": "b"})
    with pytest.raises(jb.SetupError, match="has no severe label by its rubric"):
        jb.decide(study, rule={"severe_from": {"label": "4"}})


def test_files_of_a_benchmark_keep_it(files, tmp_path) -> None:
    jb.init(files, tmp_path / "bench", columns=COLUMNS)
    bench = jb.load_bench(tmp_path / "bench" / "bench.yaml")
    (metric,) = bench.rubric.metrics
    assert (metric.kind, metric.has_severe) == ("ordinal", False)


def test_the_higher_of_two_scores_wins() -> None:
    rubric = jb.Rubric.from_labels({"Quality": list("12345")}, severe={"Quality": "none"})
    labels = pd.DataFrame(
        {
            "id": range(12),
            "question": [f"q{i // 2}" for i in range(12)],
            "system": ["alpha", "beta"] * 6,
            "Quality": ["5", "2"] * 6,
        }
    )
    verdicts = labels[["id"]].assign(gpt=["4", "1"] * 6)
    preferences = jb.prefer(jb.study(labels, verdicts, rubric=rubric))
    won = preferences.results.select("win_rate", system="alpha", judge="gpt")
    assert {row.statistic: row.estimate.value for row in won}.items() >= {
        ("judge", 1),
        ("humans", 1),
    }
