"""Tables of FaithBench, whose files hold what each annotator marked in a summary.

No data.yaml can say this: who marked nothing in a summary has no entry there, and whether they read
it follows from what they marked in the other summaries of the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

ORDER = ["Consistent", "Benign", "Questionable", "Unwanted"]  # as in scripts/binarize.py
DETECTORS = ["gpt_4o", "gpt-4-turbo", "gpt-3.5-turbo", "trueteacher", "true_nli"]
SCORES = ["hhemv1", "hhem-2.1", "hhem-2.1-english"]
ALL = 10  # who marked so many of the 50 summaries of a file read them all


def prepare(data: Path, to: Path) -> None:
    """Write labels.csv, the worst mark of each annotator, and verdicts.csv into `to`."""
    labels, verdicts = [], []
    for file in sorted((data / "data_for_release").glob("batch_*.json")):
        samples = pd.DataFrame(json.loads(file.read_text("utf-8"))["samples"])
        samples.index = pd.Index(file.stem + "-" + samples.sample_id.astype(str), name="item_id")
        about = pd.DataFrame(samples.metadata.tolist(), samples.index)
        marks = (
            samples.annotations.explode()
            .dropna()
            .apply(pd.Series)
            .explode("label")
            .dropna(subset="label")
        )
        marks["place"] = marks.label.str.partition(".")[0].map(ORDER.index)
        worst = marks.groupby(["item_id", "annotator_name"]).place.max().unstack()
        worst = worst.reindex(samples.index)
        read = worst.columns[worst.notna().sum() >= ALL]
        worst[read] = worst[read].fillna(0)
        given = (
            worst.stack().dropna().astype(int).map(ORDER.__getitem__).rename("label").reset_index(1)
        )
        labels.append(given.join(samples.source).join(about.summarizer))
        said = about[DETECTORS].join((about[SCORES] >= 0.5).astype(int))
        verdicts.append(said.astype("Int64").rename_axis(columns="judge").stack().rename("label"))
    pd.concat(labels).to_csv(to / "labels.csv")
    pd.concat(verdicts).to_csv(to / "verdicts.csv")
