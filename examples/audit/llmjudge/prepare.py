"""A table of the LLMJudge challenge, which has a file without a header for each judge."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

QREL = ["query", "_", "passage", "relevance"]  # q49 0 p3659 3


def prepare(data: Path, to: Path) -> None:
    """Write labels.csv into `to`: the assessor's label and a column for each submission."""
    files = {"assessor": data / "LLMJudge/data/llmjudge_test_qrel_idx.txt"}
    for file in sorted((data / "LLMJudge-benchmark/submissions/scores").glob("*.txt")):
        files[file.stem] = file
    columns = {
        name: pd.read_csv(file, sep=r"\s+", header=None, names=QREL)
        .set_index(["query", "passage"])
        .relevance
        for name, file in files.items()
    }
    table = pd.DataFrame(columns).reset_index()
    table.insert(0, "item_id", table["query"] + "-" + table["passage"])
    table.to_csv(to / "labels.csv", index=False)
