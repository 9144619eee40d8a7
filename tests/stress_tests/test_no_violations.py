"""A stress test of a rubric that no violation fits says so before anything else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

REPLY = json.dumps({"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve replies, two annotators, a scripted judge and the rubric support-tone."""
    rows = [f"i{i},Is this reply {i} fine?,reply {i}" for i in range(12)]
    (tmp_path / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]) + "\n")
    rows = [f"i{i},{who},{'Polite' if i % 3 else 'Impolite'}" for i in range(12) for who in "ab"]
    (tmp_path / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *rows]) + "\n")
    (tmp_path / "script.jsonl").write_text(json.dumps({"text": REPLY}) + "\n")
    asked = {
        "name": "tiny", "rubric": "support-tone", "data": ["answers.csv", "labels.csv"],
        "metrics": ["politeness"], "report": {"resamples": 100},
        "judges": [{"name": "good", "backend": "scripted:script.jsonl"}],
    }  # fmt: skip
    (tmp_path / "bench.yaml").write_text(yaml.safe_dump(asked))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bench.yaml"


def test_a_stress_test_without_violations_says_so_first(call, bench: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("stress", bench, "--run", "run", "--sample", 2)
    assert code == 0
    second = (
        "Left out, because they do not fit the metrics of support-tone that are judged: "
        "consensus-violations, contraindication, diagnostic-test, dose-by-ten, drug-inside-class, "
        "drug-outside-class, number, pathogen-class, risk-group, unit. To use one, name it under "
        "stress.attacks with a must_worsen of your own."
    )
    assert " ".join(out.split()).startswith(
        "No altered answer is a violation: this stress test shows whether verdicts hold, not "
        f"whether a judge detects violations. {second}"
    )
    page = (bench.parent / "run" / "report" / "tables.md").read_text().replace("\\_", "_")
    assert "There is no violation at all: whether a judge detects one was not tested." in page
    assert second in page
