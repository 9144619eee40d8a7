"""Tables of SummEval's experts, one metric for each criterion, from the files of AltTest."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd


def prepare(data: Path, to: Path) -> None:
    """Write labels.csv and verdicts.csv, with a column for each criterion, into `to`."""
    for file, who, name in (("human", "annotator", "labels"), ("llm", "judge", "verdicts")):
        said = json.loads((data / f"{file}_annotations.json").read_text("utf-8"))
        table = pd.DataFrame(said).rename_axis(columns=who).stack().rename("rating").reset_index()
        ids = table.pop("level_0").str.split("__", expand=True)
        table = table.join(ids.set_axis(["article", "system", "criterion"], axis=1))
        table = table.pivot(index=["article", "system", who], columns="criterion", values="rating")
        table.astype("Int64").to_csv(to / f"{name}.csv")
