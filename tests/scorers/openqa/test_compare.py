"""Open answers beside closed ones: two tables are joined and what goes together is found."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exam_case import exam, model
from loopback import Loopback, echoed
from scripted_judges import ScriptedBackend

import judgebench as jb
from judgebench.judges.config import Decoding
from judgebench.records import Results
from judgebench.scorers.open_questions import (
    open_questions,
    read_questions,
    write_questions,
)
from judgebench.writer import TextWriter, WritingTerms


def tables(n: int = 15) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of four systems, of which chrF goes with being right and the draw does not."""
    rng = np.random.default_rng(0)
    keys = {"exam_id": np.repeat([f"e{i}" for i in range(n)], 4), "system": list("abcd") * n}
    right = rng.random(4 * n) < np.tile([0.9, 0.7, 0.5, 0.3], n)
    chrf = 0.3 + 0.2 * right + 0.1 * rng.standard_normal(4 * n)
    scores = {"row": range(2, 4 * n + 2), "chrf": chrf, "draw": rng.standard_normal(4 * n)}
    said = np.where(right, "yes", "No")
    return pd.DataFrame({**keys, **scores}), pd.DataFrame({**keys, "correct": said})


def compared(opened: pd.DataFrame, closed: pd.DataFrame) -> Results:
    return jb.correlate([opened, closed], ["correct"], group="exam_id", system="system").results


def test_pearson_over_items_is_the_point_biserial_correlation() -> None:
    from scipy.stats import pointbiserialr

    opened, closed = tables()
    found = compared(opened, closed.sample(frac=1, random_state=1))
    pooled = found.select("correlation", "pearson", metric="correct", scope="pooled")
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
    with_both = compared(opened, twice)
    assert with_both.find("pearson", judge="chrf").value is None  # all are right half of the time
    first = compared(opened, closed[8:]).find("pearson", judge="chrf")
    assert (first.n, first.n_missing) == (52, 8)


def test_tables_that_do_not_fit_are_refused() -> None:
    opened, closed = tables(3)
    with pytest.raises(jb.SetupError, match="correct: is no number; found perhaps"):
        compared(opened, closed.assign(correct="perhaps"))
    with pytest.raises(jb.SetupError, match="exam_id: the column is missing"):
        compared(opened.drop(columns="exam_id"), closed)


def test_the_command_prints_and_writes_a_report(call: Any, tmp_path: Path) -> None:
    opened, closed = tables()
    paths = tmp_path / "scores.csv", tmp_path / "closed.csv"
    opened.to_csv(paths[0], index=False)
    closed.to_csv(paths[1], index=False)
    options = ("--against", "correct", "--group", "exam_id", "--system", "system")
    code, out, err = call("score", "correlate", *paths, *options, "--to", tmp_path / "report")
    assert (code, err) == (0, "")
    assert "How the columns go together" in out
    assert "With 4 systems, |r| below .95 shows nothing." in out
    assert (tmp_path / "report" / "report.html").exists()


def test_from_an_exam_to_the_comparison(call: Any, tmp_path: Path) -> None:
    """Open questions are answered and scored by the commands for any table; their ids lead back."""
    backend, replies = ScriptedBackend(model), tmp_path / "replies.jsonl"
    writer = TextWriter(backend, Decoding(), replies, WritingTerms())
    write_questions(open_questions(read_questions(exam(tmp_path)), writer), writer)
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
    found = compared(opened[["exam_id", "system", "length"]], closed.assign(correct=right))
    pooled = found.find("pearson", judge="length", metric="correct", scope="pooled")
    assert (pooled.n, round(pooled.value, 9)) == (8, 1)  # the question on a case is longer
