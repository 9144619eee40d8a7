"""A table of DialSummEval: three people's ratings in one file, metrics in a file per system."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def prepare(data: Path, to: Path) -> None:
    """Write summaries.csv into `to`: a summary, `consistency_1` and so on, and its metrics."""
    table = pd.read_json(
        data / "annotation_campus/human_judgment.jsonl", lines=True, dtype={"id": str}
    )
    for i in range(3):
        given = pd.DataFrame(table.annotations.str[i].tolist(), table.index)
        table = table.join(given.add_suffix(f"_{i + 1}"))
    scores = []
    for folder in sorted((data / "reproduce/analysis/models_eval_new").glob("[A-N]")):
        lines = (folder / "summs.txt").read_text("utf-8").rstrip("\n").split("\n")
        about = pd.DataFrame({"model_id": folder.name, "text": lines})
        scores.append(about.join(pd.read_csv(folder / "metrics.csv")))
    # The two lists of summaries are in different orders: a summary is known by its text.
    found = pd.concat(scores)
    table["key"], found["key"] = table.summary.str.strip(), found.pop("text").str.strip()
    table = table.merge(found, on=["model_id", "key"], validate="one_to_one")
    table.drop(columns=["annotations", "key"]).to_csv(to / "summaries.csv", index=False)
