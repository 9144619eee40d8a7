"""Likelihoods in a benchmark: scored by a server on loopback, kept, and refused where it is far."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from prompt_server import Completions, along, server

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.models.hosts import host_of
from judgebench.studies.verdicts import scores

TEXTS = ("ab", "b a", "aab")


def bench_of(folder: Path, **scorer: Any) -> Path:
    rows = [f"i{i},ab,{text}" for i, text in enumerate(TEXTS)]
    (folder / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]) + "\n")
    labels = [f"i{i},{who},Polite" for i in range(len(TEXTS)) for who in "xy"]
    (folder / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *labels]) + "\n")
    bench = {
        "name": "likely", "rubric": "support-tone", "data": ["answers.csv", "labels.csv"],
        "controls": False, "scorers": [{"scorer": "bits-per-byte", **scorer}],
    }  # fmt: skip
    (folder / "bench.yaml").write_text(json.dumps(bench))
    return folder / "bench.yaml"


def test_a_run_scores_by_a_server_and_asks_nothing_twice(tmp_path: Path) -> None:
    with Completions(server()) as at:
        url = {"base_url": at.base_url}
        bench = bench_of(tmp_path, backend="openai-compatible:m", settings=url, given="question")
        jb.load_bench(bench, local_only=True).close()
        study = jb.run(bench, tmp_path / "run")
        asked = len(at.bodies)
        jb.run(bench, tmp_path / "run")
        assert len(at.bodies) == asked
        told = json.loads((tmp_path / "run" / "run.json").read_text())
        assert told["hosts"] == [host_of(at.base_url)]
    (run,) = study.beside["scorers"].runs
    # Each text stands behind the question, as the chat of the server's model renders it.
    expected = [-sum(along(f"<ab>{text}")[3:]) / len(text) / math.log(2) for text in TEXTS]
    assert scores(run.judged.verdicts, study.answers) == pytest.approx(expected)


def test_the_hosts_of_a_judge_that_follows_from_a_score_are_noted(tmp_path: Path) -> None:
    with Completions(server()) as at:
        url = {"base_url": at.base_url}
        bench = bench_of(tmp_path, backend="openai-compatible:m", settings=url)
        told = json.loads(bench.read_text())
        fit = {"metric": "politeness", "folds": 3}
        told["judges"] = [{"name": "fitted", "fit": fit, **told.pop("scorers")[0]}]
        bench.write_text(json.dumps(told))
        texts = [f"i{i},{'ab'[: i + 1] * (i + 1)},{text}" for i, text in enumerate(TEXTS)]
        answers = "\n".join(["item_id,question,text", *texts]) + "\n"
        (tmp_path / "answers.csv").write_text(answers)
        labels = [f"i{i},x,{label}" for i, label in enumerate(("Polite", "Impolite", "Polite"))]
        rows = ["item_id,annotator,politeness", *labels]
        (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
        jb.run(bench, tmp_path / "run")
        manifest = json.loads((tmp_path / "run" / "run.json").read_text())
        assert manifest["hosts"] == [host_of(at.base_url)]


def test_a_scorer_that_asks_another_machine_is_refused_with_the_judges(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, backend="openai-compatible:m@http://192.0.2.1:8000/v1")
    with pytest.raises(SetupError) as refused:
        jb.load_bench(bench, local_only=True)
    (problem,) = refused.value.problems
    assert problem.message == "contacts another machine, which local-only forbids"
    assert (problem.field, problem.found) == ("scorers.bits-per-byte.backend", "192.0.2.1:8000")
