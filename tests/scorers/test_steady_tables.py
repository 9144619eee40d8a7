"""How steady the scores of a table are: from Python, and on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

import judgebench as jb


def table(systems: int = 3, questions: int = 30, runs: int = 5) -> pd.DataFrame:
    """Scores of which `chrf` tells answers apart, `bleu` is noise near zero but for one answer that
    repeats its reference, and `ppl` reads no answer."""
    rng = np.random.default_rng(0)
    rows = []
    for s in range(systems):
        for q in range(questions):
            level = rng.normal(0, 1)
            for r in range(runs):
                bleu = 1.0 if (s, q, r) == (0, 0, 0) else rng.exponential(0.02)
                chrf = 5 + 0.1 * level + 0.05 * s + rng.normal(0, 0.05)
                rows.append((f"q{q}", f"m{s}", r, chrf, min(bleu, 1.0), 3 + level))
    return pd.DataFrame(rows, columns=["question", "model", "repeat", "chrf", "bleu", "ppl"])


@pytest.fixture(scope="module")
def found():
    return jb.consistency(table(), group="question", system="model")


def test_noise_is_told_from_what_differs_between_answers(found) -> None:
    results = found.results
    assert results.values("judge", "repeated", "icc") == ["chrf", "bleu", "ppl"]
    assert results.find("icc", judge="chrf").value == pytest.approx(0.8, abs=0.06)
    assert results.find("within_sd", judge="chrf").value == pytest.approx(0.05, abs=0.005)
    assert results.find("icc", judge="bleu").value < 0.1
    assert results.find("within_sd", judge="ppl").value == 0
    assert results.find("icc", judge="chrf").n == 90
    assert len(found.to_frame()) == len(results.rows)


def test_noise_over_range_and_over_what_differs_disagree(found) -> None:
    said = " ".join(str(found).split())
    assert "90 pairs of system and question with up to 5 answers each." in said
    ranged = {name: found.results.find("variance_over_range", judge=name).value
              for name in ("bleu", "chrf")}  # fmt: skip
    assert ranged["bleu"] < ranged["chrf"]


def test_a_share_of_the_mean_is_for_scales_with_a_true_zero(found) -> None:
    assert found.results.find("cv", judge="chrf").value == pytest.approx(0.01, abs=0.002)
    assert "not known to have a true zero" in found.results.find("cv", judge="ppl").reason
    known = table().rename(columns={"ppl": "word-perplexity"})
    steady = jb.consistency(known, group="question", system="model", scores=["word-perplexity"])
    assert steady.results.find("cv").value == 0


def test_what_keeps_a_table_from_being_measured() -> None:
    scores = table(runs=1)
    with pytest.raises(jb.SetupError, match="no two rows have the same 'question' and 'model'"):
        jb.consistency(scores, group="question", system="model")
    with pytest.raises(jb.SetupError, match="no two rows have the same 'model':"):
        jb.consistency(table(1, 1, 1), group="model")
    with pytest.raises(jb.SetupError, match="modle: the column is missing"):
        jb.consistency(scores, group="question", system="modle")
    with pytest.raises(jb.SetupError, match="no column holds numbers"):
        jb.consistency(scores[["question", "model"]], group="question")
    with pytest.raises(jb.SetupError, match="chrf: is no number; found much"):
        jb.consistency(table().assign(chrf="much"), group="question", scores=["chrf"])
    with pytest.raises(jb.SetupError, match="no column is called `group`, `question` or alike"):
        jb.consistency(scores[["chrf"]])


def test_gaps_are_left_out_and_counted() -> None:
    scores = table()
    scores.loc[scores["question"] == "q1", "chrf"] = np.nan
    scores.loc[0, "chrf"] = np.nan
    one = jb.consistency(scores, group="question", system="model").results.find("icc", judge="chrf")
    assert (one.n, one.n_missing) == (87, 3)


def test_the_command_prints_and_writes_the_same(call, tmp_path) -> None:
    path = tmp_path / "scores.csv"
    table().to_csv(path, index=False)
    columns = ("--column", "chrf", "--column", "bleu")
    asked = ("score", "consistency", str(path), "--system", "model", *columns)
    code, out, err = call(*asked, "--to", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    assert "Is one answer enough?" in out
    assert (tmp_path / "out" / "report.html").is_file()
    first = jb.consistency(table().head(60), group="question")
    with pytest.warns(UserWarning, match="of 450 answers .* of 60, is in .*out-60"):
        jb.report(first, tmp_path / "out")
    code, out, _ = call(*asked, "--json")
    rows = json.loads(out)["consistency"]
    assert {row["judge"] for row in rows} == {"", "chrf", "bleu"}
    code, _, err = call("score", "consistency", str(path), "--group", "q")
    assert code != 0
    assert "q: the column is missing" in err
