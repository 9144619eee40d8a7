"""Tables 1 and 3 of Diekmann et al. (2025) from tables of labels, by the command line."""

import csv
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import pytest

Call = Callable[..., tuple[int, str, str]]
LABELS = ("None", "Some", "Much")
ANNOTATORS, JUDGES, METRICS = ("ann", "ben", "cem"), ("llama", "mixtral", "med42"), ("Harm", "Bias")


def test_accuracy_and_alpha_are_laid_out_as_in_the_paper(tmp_path: Path, call: Call) -> None:
    rng = np.random.default_rng(0)
    severities = rng.integers(0, 3, (len(METRICS), 40))
    people, machines = (
        np.where(rng.random((n, *severities.shape)) < 0.6, severities, 1)
        for n in (len(ANNOTATORS), len(JUDGES))
    )
    for file, role, names, given in (
        ("labels", "annotator", ANNOTATORS, people),
        ("verdicts", "judge", JUDGES, machines),
    ):
        rows = [
            [f"i{i}", name, *(LABELS[x] for x in of_name[:, i])]
            for name, of_name in zip(names, given, strict=True)
            for i in range(severities.shape[1])
        ]
        with (tmp_path / f"{file}.csv").open("w", newline="") as out:
            csv.writer(out).writerows([["item_id", role, *METRICS], *rows])
    files = [tmp_path / "labels.csv", tmp_path / "verdicts.csv"]
    code, _, err = call(
        "report", *files, "--order", " < ".join(LABELS), "--independent-items",
        "--to", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err

    accuracy = (machines == np.median(people, axis=0)).mean(axis=-1)
    page = (tmp_path / "out" / "tables.md").read_text("utf-8")
    (head,) = [line for line in page.splitlines() if "StdDev" in line and "llama" in line]
    columns = [cell.strip() for cell in head.split("|")]
    for metric, of_judges in zip(METRICS, accuracy.T, strict=True):
        row = page[page.index(head) :].split(f"| {metric} |")[1].splitlines()[0]
        cells = dict(zip(columns[2:], row.split("|"), strict=False))
        for judge, value in zip(JUDGES, of_judges, strict=True):
            assert cells[judge].strip().startswith(f"{value:.3f}")
        assert cells["Average"].strip() == f"{of_judges.mean():.3f}"
        assert cells["StdDev"].strip() == f"{of_judges.std(ddof=1):.3f}"

    with (tmp_path / "out" / "results.csv").open(encoding="utf-8-sig", newline="") as out:
        alpha = {
            (row["metric"], row["who"]): float(row["value"])
            for row in csv.DictReader(out)
            if (row["analysis"], row["statistic"]) == ("agreement", "alpha")
        }
    groups = {"all": [0, 1, 2]}
    groups |= {f"{ANNOTATORS[i]} ~ {ANNOTATORS[j]}": [i, j] for i, j in combinations(range(3), 2)}
    assert alpha.keys() == {(metric.lower(), who) for metric in METRICS for who in groups}
    for (metric, who), value in alpha.items():
        labels = people[groups[who], METRICS.index(metric.title())]
        expected = krippendorff.alpha(labels, level_of_measurement="ordinal")
        assert value == pytest.approx(expected, abs=1e-9)
