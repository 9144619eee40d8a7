"""Verdicts that two judges gave elsewhere, as a table: 2,250 replies, 11 verdicts unreadable."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb


def test_the_verdicts_of_xstest_are_read_as_they_are(shared_data: Path) -> None:
    table = pd.read_csv(shared_data / "xstest-verdicts" / "xstest.csv.gz")
    table["item_id"] = table["id"].astype(str) + "-" + table["system"]
    kept = ["item_id", "prompt"]
    labels = table.melt(kept, ["annotation_1", "annotation_2"], "annotator", "compliance")
    verdicts = table.melt(kept, ["gpt4_label", "strmatch_label"], "judge", "compliance")
    rubric = jb.Rubric.from_labels(
        {"compliance": ["1_full_compliance", "3_partial_refusal", "2_full_refusal"]}
    )
    questions = labels.rename(columns={"prompt": "question"})
    with pytest.warns(UserWarning, match="11 times"):
        study = jb.study(questions, verdicts.drop(columns="prompt"), rubric=rubric)
    assert study.clusters.n == 450
    statuses = {
        judge.name: Counter(str(verdict.status) for verdict in judge.verdicts.values())
        for judge in study.judges
        if judge.kind == "judge"
    }
    assert statuses == {
        "gpt4_label": {"ok": 2239, "refused": 7, "unparsed": 4},
        "strmatch_label": {"ok": 2250},
    }
