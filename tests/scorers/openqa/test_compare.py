"""Open answers beside closed ones: two tables are joined and what goes together is found."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exam_case import exam, model
from loopback import Loopback, echoed
from scripted_judges import ScriptedBackend

from judgebench.errors import SetupError
from judgebench.judges.config import Decoding
from judgebench.scorers.correlate import CLOSED, Roles, open_against_closed
from judgebench.scorers.open_questions import (
    QuestionWriter,
    open_questions,
    read_questions,
    write_questions,
)
from judgebench.writer import WritingTerms

WHERE = Roles((), "exam_id", "system")


def tables(n: int = 15) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of four systems, of which chrF goes with being right and the draw does not."""
    rng = np.random.default_rng(0)
    keys = {"exam_id": np.repeat([f"e{i}" for i in range(n)], 4), "system": list("abcd") * n}
    right = rng.random(4 * n) < np.tile([0.9, 0.7, 0.5, 0.3], n)
    chrf = 0.3 + 0.2 * right + 0.1 * rng.standard_normal(4 * n)
    scores = {"row": range(2, 4 * n + 2), "chrf": chrf, "draw": rng.standard_normal(4 * n)}
    said = np.where(right, "yes", "No")
    return pd.DataFrame({**keys, **scores}), pd.DataFrame({**keys, "correct": said})


def test_pearson_over_items_is_the_point_biserial_correlation() -> None:
    from scipy.stats import pointbiserialr

    opened, closed = tables()
    found = open_against_closed(opened, closed.sample(frac=1, random_state=1), WHERE).results
    pooled = found.select("correlation", "pearson", metric=CLOSED, scope="pooled")
    assert [row.judge for row in pooled] == ["chrf", "draw"]
    right = closed["correct"] == "yes"
    for row in pooled:
        expected = pointbiserialr(right, opened[row.judge]).statistic
        assert row.estimate.value == pytest.approx(expected)
    assert pooled[0].estimate.low > 0.4
    assert pooled[1].estimate.low < 0 < pooled[1].estimate.high


def test_repeats_are_averaged_and_what_has_no_closed_answer_is_missing() -> None:
    opened, closed = tables()
    half = closed.assign(correct=(closed["correct"] != "yes").astype(int))
    twice = pd.concat([closed.replace({"yes": 1, "No": 0}), half])
    with_both = open_against_closed(opened, twice, WHERE).results
    assert with_both.find("pearson", judge="chrf").value is None  # all are right half of the time
    fewer = open_against_closed(opened, closed[8:], WHERE, scores=["chrf"]).results
    first = fewer.find("pearson", judge="chrf")
    assert (first.n, first.n_missing) == (52, 8)
    assert not fewer.select(judge="draw")


def test_tables_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    opened, closed = tables(3)
    with pytest.raises(SetupError, match="no question and system is in both tables"):
        open_against_closed(opened, closed.assign(system="z"), WHERE)
    with pytest.raises(SetupError, match="correct: is no number; found perhaps"):
        open_against_closed(opened, closed.assign(correct="perhaps"), WHERE)
    with pytest.raises(SetupError, match="the open answers:1: exam_id: the column is missing"):
        open_against_closed(opened.drop(columns="exam_id"), closed, WHERE)


def test_the_command_prints_and_writes_a_report(call: Any, tmp_path: Path) -> None:
    opened, closed = tables()
    paths = tmp_path / "scores.csv", tmp_path / "closed.csv"
    opened.to_csv(paths[0], index=False)
    closed.to_csv(paths[1], index=False)
    code, out, err = call("score", "openqa", "compare", *paths, "--to", tmp_path / "report")
    assert (code, err) == (0, "")
    assert "Columns beside closed accuracy" in out
    assert "With 4 systems, |r| below .95 shows nothing." in out
    assert (tmp_path / "report" / "report.html").exists()
    code, out, _ = call("score", "openqa", "compare", *paths, "--column", "draw", "--json")
    rows = json.loads(out)["correlations"]
    assert {row["judge"] for row in rows if row["metric"] == CLOSED} == {"draw"}


def test_from_an_exam_to_the_comparison(call: Any, tmp_path: Path) -> None:
    """Open questions are answered and scored by the commands for any table; their ids lead back."""
    writer = QuestionWriter(ScriptedBackend(model), Decoding(), tmp_path / "replies.jsonl")
    write_questions(open_questions(read_questions(exam(tmp_path)), writer, WritingTerms()), writer)
    tables = []
    for system in ("one", "two"):
        answers, scores = tmp_path / f"{system}.csv", tmp_path / f"{system}-scores.csv"
        with Loopback([echoed()]) as server:
            backend = f"openai-compatible:x@{server.base_url}"
            asked = ["--backend", backend, "--to", answers, "--repeats", 2, "--name", system]
            assert call("score", "answers", tmp_path / "questions.jsonl", *asked)[0] == 0
        kept = ["--scorer", "length", "--to", scores, "--kept", tmp_path / "kept"]
        assert call("score", answers, *kept)[0] == 0
        tables.append(pd.read_csv(scores))
    opened = pd.concat(tables)
    assert set(opened["exam_id"]) == {"antidote", "case"}
    closed = opened[["exam_id", "system"]].drop_duplicates()
    right = closed["exam_id"].map({"antidote": "no", "case": "yes"})
    found = open_against_closed(opened, closed.assign(correct=right), WHERE).results
    assert {row.judge for row in found.select("correlation", metric=CLOSED)} == {"length"}
    pooled = found.find("pearson", judge="length", metric=CLOSED, scope="pooled")
    assert (pooled.n, round(pooled.value, 9)) == (8, 1)  # the question on a case is longer
