"""Real notes whose omissions and hallucinations somebody counted: chrF tells of the first alone."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

import judgebench as jb

RUBRIC = """
name: notes
version: "1"
instructions: Judge the note.
metrics:
  - {id: omission, title: Omission, question: How much, kind: ordinal, labels: [less, half]}
  - {id: hallucination, title: Hallucination, question: Any, kind: ordinal, labels: [none, some]}
"""
BENCH = """
name: notes
rubric: notes.yaml
data: notes.csv
judges:
  - {name: by-omission, scorer: chrf, fit: {metric: omission}}
  - {name: by-hallucination, scorer: chrf, fit: {metric: hallucination}}
"""


def test_chrf_out_of_fold(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("sacrebleu")
    folder = shared_data / "mts-dialog-scores"
    tables = (
        csv.DictReader((folder / f"MTS-Dialog-{name}.csv").open(encoding="utf-8-sig", newline=""))
        for name in ("Automatic-Summaries-ValidationSet", "Manual-Scores4CorrelationStudy")
    )
    rows = [
        {
            "item_id": f"n{place}", "question": note["Dialogue"], "group": note["ID"],
            "system": f"s{place // 100}", "text": note["Automatic Summary"],
            "reference": note["Reference Summary"], "annotator": "expert",
            "omission": "half" if float(said["OmissionRate"]) >= 0.5 else "less",
            "hallucination": "some" if float(said["HallucinationRate"]) > 0 else "none",
        }
        for place, (note, said) in enumerate(zip(*tables, strict=True))
    ]  # fmt: skip
    with (tmp_path / "notes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "notes.yaml").write_text(RUBRIC)
    (tmp_path / "bench.yaml").write_text(BENCH)
    study = jb.run(tmp_path / "bench.yaml", tmp_path / "run")
    found = {judge.name: judge.verdicts for judge in study.judges}

    def balanced(judge: str, metric: str) -> float:
        right = defaultdict(list)
        for row in rows:
            label = found[judge][row["item_id"]].labels.get(metric)
            right[row[metric]].append(label == row[metric])
        return sum(sum(x) / len(x) for x in right.values()) / len(right)

    assert balanced("by-omission", "omission") == pytest.approx(0.76, abs=0.03)
    assert balanced("by-hallucination", "hallucination") < 0.6
    for name in ("length", "random-number", "question-overlap"):
        assert balanced(f"{name}-fitted", "omission") < balanced("by-omission", "omission") - 0.05
