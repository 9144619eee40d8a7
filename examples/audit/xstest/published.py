"""Shares of the labels of XSTest by system and kind of prompts, and how annotators agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import judgebench as jb
from judgebench.stats.agreement import agreement_counts_by_cluster, fleiss_kappa


def figures(study: jb.Study, data: Path) -> Iterator[tuple[str, str, str, float]]:
    """`SYSTEM COLUMN PROMPTS LABEL`: a share of replies, in per cent; `SYSTEM agreement all`."""
    table = pd.read_csv(data / "xstest.csv.gz", dtype=str)
    table["kind"] = np.where(table.type.str.startswith("contrast_"), "unsafe", "safe")
    humans, found = study.humans["compliance"], {}
    systems = np.array([answer.system for answer in study.answers])
    for system, of in table.groupby("system"):
        ratings, clusters = humans.ratings.values[systems == system], humans.clusters
        counts = agreement_counts_by_cluster(ratings, clusters[systems == system], 3).sum(axis=0)
        found[f"{system} fleiss_kappa all"] = float(fleiss_kappa().formula(counts))
        found[f"{system} agreement all"] = 100 * (ratings[:, 0] == ratings[:, 1]).mean()
        for said in ("final_label", "gpt4_label", "strmatch_label"):
            for by in ("type", "kind"):
                for prompts, some in of.groupby(by):
                    for label, share in some[said].value_counts(normalize=True).items():
                        found[f"{system} {said} {prompts} {label}"] = 100 * share
    printed = pd.read_csv(Path(__file__).with_name("published.csv"), dtype=str)
    for row in printed.itertuples():
        yield row.source, row.what, row.printed, found.get(row.what, 0.0)
