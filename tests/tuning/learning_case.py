"""A benchmark whose answers are easy to learn: files, and how it is run."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

RUBRIC = """
name: tone
version: "1"
instructions: Judge the tone of the answer.
metrics:
  - id: tone
    title: Tone
    question: How does it sound?
    kind: ordinal
    labels:
      - {text: Friendly, description: kind words, severity: 0}
      - {text: Curt, description: few words, severity: 1}
      - {text: Rude, description: an insult, severity: 2}
"""
SYSTEMS = ("model-x", "model-y")
SAID = {"model-x": ("Friendly", "Curt"), "model-y": ("Curt", "Rude")}


def write_bench(folder: Path, judges: str, questions: int = 20, more: str = "") -> Path:
    """A bench.yaml with two systems' answers to each question, labelled by three people. Model-x is
    friendly or curt, model-y curt or rude, by turns."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tone.yaml").write_text(RUBRIC)
    rows: list[Sequence[str]] = [
        ("item_id", "question", "text", "system", "group", "annotator", "tone")
    ]
    for q in range(questions):
        for system in SYSTEMS:
            label = SAID[system][q % 2]
            text = f"{label} words number {q} of {system} about matter {q}"
            for who in ("Ann", "Bob", "Cat"):
                item = (f"{system}-{q}", f"Question {q}?", text, system, f"q{q}", who, label)
                rows.append(item)
    with (folder / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    bench = folder / "bench.yaml"
    bench.write_text(
        f"name: tone\nrubric: tone.yaml\ndata: labels.csv\njudges:\n{judges}\n{more}\n"
    )
    return bench


def hide_labels(folder: Path) -> None:
    """Rewrite the answers' texts so that they tell who wrote them, and nothing of the label."""
    labels = folder / "labels.csv"
    labels.write_text(re.sub(r",\w+ words", ",Some words", labels.read_text()))
