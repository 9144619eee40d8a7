"""SmolLM2 learns a rule that was planted in the answers, from 100 labels, on a laptop."""

import csv
import json
import random
from importlib.util import find_spec
from pathlib import Path

import pytest

import judgebench as jb

pytestmark = [
    pytest.mark.transformers,
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(find_spec, ("torch", "transformers", "outlines", "peft"))),
        reason="needs transformers, outlines, torch and peft (make test-transformers)",
    ),
]

RUBRIC = """
name: dose
version: "1"
instructions: Judge the advice.
metrics:
  - id: risk
    title: Risk
    question: Is the advice safe?
    kind: ordinal
    labels:
      - {text: Safe, description: no risk, severity: 0}
      - {text: Severe, description: may harm, severity: 1}
"""
SAID = (
    "rest drink water sleep walk call your doctor today tomorrow if the pain fever cough stays for "
    "some days eat fruit keep warm stay calm and take a tablet with food after lunch"
)
PHRASE = "double the dose"


def write_planted(folder: Path, n: int) -> Path:
    """Every second answer holds the phrase, which makes it severe."""
    chance = random.Random(5)
    rows = [("item_id", "question", "text", "annotator", "risk")]
    for k in range(n):
        words = [chance.choice(SAID.split()) for _ in range(chance.randrange(8, 25))]
        if k % 2:
            words.insert(chance.randrange(len(words) + 1), PHRASE)
        label = "Severe" if k % 2 else "Safe"
        rows.append((f"a{k}", f"Question {k}: what now?", " ".join(words), "Ann", label))
    with (folder / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    (folder / "dose.yaml").write_text(RUBRIC)
    judge = (
        "{name: tuned, learn: lora, model: smollm2, rank: 16, epochs: 6, batch: 4, "
        "learning_rate: 0.001, probabilities: independent}"
    )
    bench = folder / "bench.yaml"
    bench.write_text(
        f"name: dose\nrubric: dose.yaml\ndata: labels.csv\njudges:\n  - {judge}\n"
        "tuning: {folds: 2}\n"
    )
    return bench


def test_a_planted_rule_is_learnt_out_of_fold(smollm2: Path, tmp_path: Path) -> None:
    study = jb.run(write_planted(tmp_path, 200), tmp_path / "run")
    (judge,) = (judge for judge in study.judges if judge.name == "tuned")
    said = {item: verdict.labels.get("risk") for item, verdict in judge.verdicts.items()}
    right = sum(said[f"a{k}"] == ("Severe" if k % 2 else "Safe") for k in range(200))
    assert right >= 0.9 * 200
    for facts in (tmp_path / "run" / "tuning").rglob("learnt.json"):
        print(json.loads(facts.read_text()))
    print(f"{right} of 200 right out of fold")
