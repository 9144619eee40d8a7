"""Tables of the Alternative Annotator Test's sets: JSON keyed by annotator, then item."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

# What the parts of an item's id are, by set: `dm-test-8764fb__M11__coherence`.
PARTS = {
    "10k_prompts": ["group"],
    "lgbteen": ["group", "system", "asked"],
    "mtbench": ["group", "first", "second", "asked"],
    "summeval": ["group", "system", "asked"],
    "wax": ["group", "association", "explanation"],
}
COLUMNS = ["item_id", "annotator", "judge", "label", "group", "system", "asked"]


def prepare(data: Path, to: Path) -> None:
    """Write labels.csv and verdicts.csv of the set in `data` (data/framing, …) into `to`."""
    names = PARTS.get(data.name, ["group", "asked"])
    for file, who, name in (("human", "annotator", "labels"), ("llm", "judge", "verdicts")):
        said = json.loads((data / f"{file}_annotations.json").read_text("utf-8"))
        rows = [(i, w, label) for w, labels in said.items() for i, label in labels.items()]
        table = pd.DataFrame(rows, columns=["item_id", who, "label"])
        parts = table.item_id.str.rsplit("__", n=len(names) - 1, expand=True)
        table = table.join(parts.set_axis(names, axis=1))
        if data.name == "mtbench":
            table["system"] = table["first"] + " and " + table["second"]
        if data.name == "framing":  # the newspaper is the first part of an article's name
            table["system"] = table.group.str.partition("--")[0]
        if data.name.startswith("cebab"):  # a review and its edits are one group
            table["group"] = table.group.str[:-6]
        table.reindex(columns=COLUMNS).to_csv(to / f"{name}.csv", index=False)
