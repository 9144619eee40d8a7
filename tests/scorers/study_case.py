"""A benchmark with scorers of known worth, whose humans' severities are at hand as arrays."""

import csv
from pathlib import Path

import numpy as np

RUBRIC = """
name: notes
version: "1"
instructions: Judge the note.
metrics:
  - id: omission
    title: Omission
    question: How much is missing?
    kind: ordinal
    labels: [None, Some, Much, Most]
  - id: hallucination
    title: Hallucination
    question: Is something made up?
    kind: ordinal
    labels: [None, Some]
"""
SCORERS = """
scorers:
  - {scorer: column, name: good, from: good, better: higher}
  - {scorer: column, name: twin, from: twin, better: higher}
  - {scorer: column, name: noise, from: noise, better: lower}
  - {scorer: column, name: gappy, from: gappy, better: lower}
"""
LABELS = (("None", "Some", "Much", "Most"), ("None", "Some"))
SYSTEMS = ("ann-net", "bob-net", "cat-net", "dan-net")


def write_notes(
    folder: Path, scorers: str = SCORERS, questions: int = 30, more: str = ""
) -> tuple[Path, dict[str, np.ndarray]]:
    """bench.yaml, and the columns by name with `omission` and `hallucination` of each annotator
    (answers, 3). `good` is better where less is omitted and knows nothing of hallucinations, `twin`
    is 2 ** good, `noise` a draw, `gappy` the annotators' mean with every fifth cell blank."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, n = np.random.default_rng(4), questions * len(SYSTEMS)
    true = np.clip(rng.integers(0, 3, n) + np.arange(n) % len(SYSTEMS) // 2, 0, 3)
    omission = np.clip(true[:, None] + rng.integers(-1, 2, (n, 3)), 0, 3)
    hallucination = (rng.random((n, 3)) < 0.3).astype(int)
    good = np.round(3 - true + rng.normal(0, 0.8, n), 3)
    columns = {
        "good": good, "twin": np.round(2**good, 6), "noise": np.round(rng.random(n), 4),
        "gappy": np.where(np.arange(n) % 5, omission.mean(axis=1).round(4), np.nan),
    }  # fmt: skip
    answers: list[list[str]] = [["item_id", "question", "system", "text", *columns]]
    labels = [["item_id", "annotator", "omission", "hallucination"]]
    for i in range(n):
        text = f"note {i} " + "word " * int(rng.integers(1, 9))
        cells = ["" if np.isnan(x[i]) else f"{x[i]}" for x in columns.values()]
        q, s = divmod(i, len(SYSTEMS))
        answers.append([f"n{i}", f"Question {q}?", SYSTEMS[s], text, *cells])
        for who in range(3):
            said = (LABELS[0][omission[i, who]], LABELS[1][hallucination[i, who]])
            labels.append([f"n{i}", "ABC"[who], *said])
    for name, rows in (("answers.csv", answers), ("labels.csv", labels)):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    (folder / "notes.yaml").write_text(RUBRIC)
    bench = folder / "bench.yaml"
    bench.write_text(
        f"name: notes\nrubric: notes.yaml\ndata: [answers.csv, labels.csv]\n{scorers}\n{more}\n"
    )
    return bench, {**columns, "omission": omission, "hallucination": hallucination}
