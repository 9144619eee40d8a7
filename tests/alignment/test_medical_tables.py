"""Tables 1 and 3 of Diekmann et al. (2025) from tables of labels and verdicts."""

from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest

import judgebench as jb
from judgebench.stats.arrays import IntArray

LABELS = ("None", "Some", "Much")
ANNOTATORS, JUDGES, METRICS = ("ann", "ben", "cem"), ("llama", "mixtral", "med42"), ("Harm", "Bias")


def table(role: str, names: tuple[str, ...], severities: IntArray) -> pd.DataFrame:
    """A row for each name and item; `severities` is (names, metrics, items)."""
    rows = [
        (f"i{item}", name, *(LABELS[severity] for severity in of_name[:, item]))
        for name, of_name in zip(names, severities, strict=True)
        for item in range(of_name.shape[1])
    ]
    return pd.DataFrame(rows, columns=["item_id", role, *METRICS])


def test_accuracy_and_alpha_are_laid_out_as_in_the_paper(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    severities = rng.integers(0, 3, (len(METRICS), 40))
    people, machines = (
        np.where(rng.random((n, *severities.shape)) < 0.6, severities, 1)
        for n in (len(ANNOTATORS), len(JUDGES))
    )
    study = jb.study(
        table("annotator", ANNOTATORS, people), table("judge", JUDGES, machines),
        columns={"order": dict.fromkeys(METRICS, " < ".join(LABELS))},
    )  # fmt: skip
    alignment = jb.align(study)

    accuracy = (machines == np.median(people, axis=0)).mean(axis=-1)
    page = jb.report(alignment, tmp_path / "out")["markdown"].read_text("utf-8")
    (head,) = (line for line in page.splitlines() if "StdDev" in line and "llama" in line)
    columns = [cell.strip() for cell in head.split("|")]
    for metric, of_judges in zip(METRICS, accuracy.T, strict=True):
        row = page[page.index(head) :].split(f"| {metric} |")[1].splitlines()[0]
        cells = dict(zip(columns[2:], map(str.strip, row.split("|")), strict=False))
        for judge, value in zip(JUDGES, of_judges, strict=True):
            assert cells[judge].startswith(f"{value:.3f}")
        assert cells["Average"] == f"{of_judges.mean():.3f}"
        assert cells["StdDev"] == f"{of_judges.std(ddof=1):.3f}"

    groups = {"all": [0, 1, 2]}
    groups |= {f"{ANNOTATORS[i]} ~ {ANNOTATORS[j]}": [i, j] for i, j in combinations(range(3), 2)}
    rows = alignment.results.select("agreement", "alpha")
    assert {row["who"] for row in rows} == groups.keys()
    for row in rows:
        labels = people[groups[row["who"]], METRICS.index(row.metric.title())]
        expected = krippendorff.alpha(labels, level_of_measurement="ordinal")
        assert row.estimate.value == pytest.approx(expected, abs=1e-9)
