"""The audit of published studies, on a synthetic one whose right answers are known."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

AUDIT = Path(__file__).parents[1] / "examples" / "audit"


def decide_again(*options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, AUDIT / "decide_again.py", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    study = shutil.copytree(AUDIT.with_name("audit-synthetic"), folder / "studies" / "synthetic")
    figures = study / "published.csv"
    figures.write_text(figures.read_text().replace(",0.96,", ",0.97,"))
    (folder / "page.md").write_text("# A page\n\n### Outcomes\n\n| old |\n\nThe end.\n")
    call = decide_again(study.parent, "--to", folder, "--update", folder / "page.md")
    assert call.returncode == 0, call.stderr
    assert "published passes that pass again: 2, and beat every baseline: 1\n" in call.stdout
    return folder


def test_judges_and_rules_are_decided_and_tested(pages: Path) -> None:
    rows = pd.read_csv(pages / "audit.csv").set_index("judge")
    decisions = rows[(rows.analysis == "decision") & (rows.statistic == "accuracy")]
    assert decisions.outcome.to_dict() == {"reader": "REPLACE", "column-reader": "DO NOT USE"}
    assert decisions.value.round(5).to_dict() == {"reader": 0.93875, "column-reader": 0.89}
    passes = rows[(rows.statistic == "passes") & (rows.value == 1)]
    assert set(passes.index) == {"reader", "column-reader", "by-asked"}
    assert set(rows[rows.analysis == "choice"].before) == {"REPLACE", "DO NOT USE"}


def test_figures_are_compared_and_tables_written(pages: Path) -> None:
    tables, page = (pages / "tables.md").read_text(), (pages / "page.md").read_text()
    assert "| 5 | 4 | reader: average advantage: 0.97 printed, 0.9563 found |" in tables
    (outcomes,) = re.findall(r"### Outcomes\n\n(?:\|.*\n)+", tables)
    assert page == f"# A page\n\n{outcomes}\nThe end.\n"


def test_every_study_is_read(tmp_path: Path) -> None:
    studies = runpy.run_path(str(AUDIT / "decide_again.py"))["read_studies"](AUDIT, tmp_path)
    assert len(studies) == len([*AUDIT.glob("*/study.yaml")]) == 19
    assert {"judge", "metric"} == {key for s in studies for key in set().union(*s.card.passes)}


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    call = decide_again(tmp_path / "absent")
    assert call.returncode == 2
    assert "no study.yaml in this folder or one below" in call.stderr
