"""Tables of MT-bench, where the order of the two models differs from vote to vote."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def prepare(data: Path, to: Path) -> None:
    """Write labels.csv, the votes of experts, and verdicts.csv, GPT-4's, into `to`."""
    human = votes(data / "human.jsonl.gz").rename(columns={"judge": "annotator"})
    human[human.annotator.str.startswith("expert")].to_csv(to / "labels.csv", index=False)
    gpt4 = votes(data / "gpt4_pair.jsonl.gz")
    consistent = gpt4.label.mask(gpt4.winner == "tie (inconsistent)", "inconsistent")
    both = [gpt4.assign(judge="gpt-4"), gpt4.assign(judge="gpt-4-consistent", label=consistent)]
    pd.concat(both).to_csv(to / "verdicts.csv", index=False)


def votes(file: Path) -> pd.DataFrame:
    """One row per vote, with the two models in alphabetical order. Where the order of the answers
    changed GPT-4's mind, the label is a tie, as in the paper."""
    found = pd.read_json(file, lines=True)
    models = found[["model_a", "model_b"]]
    found["first"], found["second"] = models.min(axis=1), models.max(axis=1)
    swapped = found.model_a > found.model_b
    label = ((found.winner == "model_a") ^ swapped).map({True: "first", False: "second"})
    found["label"] = label.mask(found.winner.str.startswith("tie"), "tie")
    found["metric"] = "turn_" + found.turn.astype(str)
    return found
