"""The benchmarks' scripts run: no number is judged here, because a test shares its machine."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
BENCHMARKS = REPO / "benchmarks"
COMPARES = {"same_numbers.py"}  # versions, and has no quick run
SCRIPTS = sorted({path.name for path in BENCHMARKS.glob("*.py")} - COMPARES)
PATIENCE_S = 300


def run(script: str, *arguments: str, missing: str = "") -> subprocess.CompletedProcess[str]:
    """What a script says and how it ends where the package `missing` cannot be imported."""
    path = str(BENCHMARKS / script)
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(BENCHMARKS)!r}); "
        f"sys.modules[{missing!r}] = None; sys.argv = {[path, *arguments]!r}; "
        f"runpy.run_path({path!r}, run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, *(["-c", code] if missing else [path, *arguments])],
        env={**os.environ, "PYTHONPATH": str(REPO), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def told(script: str, *arguments: str, missing: str = "") -> str:
    """What a script prints that ends well."""
    done = run(script, *arguments, missing=missing)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_benchmark_says_what_it_is_and_can_be_run_quickly(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(BENCHMARKS / script), run_name="__main__")
    assert ended.value.code == 0
    assert "--quick" in capsys.readouterr().out


def test_two_reports_are_compared_cell_by_cell_and_word_by_word(tmp_path: Path) -> None:
    table = "judge,statistic,value,method\nm,accuracy,0.5,exact\nm,kappa,,\n"
    for name, csv, page in (
        ("old", table, "Made 2026-01-01 10:00:00 in old.\nREPLACE"),
        ("new", table, "Made 2026-02-02 11:00:00 in new.\nREPLACE"),
        ("off", table.replace("exact", "t").replace(",kappa", ",alpha"), "in off.\nASSIST"),
        ("less", table.replace(",method", "").replace(",exact", ""), "in less.\nREPLACE"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "alignment.csv").write_text(csv)
        (tmp_path / name / "tables.md").write_text(
            page.replace(f"in {name}", f"in {tmp_path / name}")
        )
    old = str(tmp_path / "old")
    assert "2 files, 0 differences" in told("same_numbers.py", old, str(tmp_path / "new"))
    off = run("same_numbers.py", old, str(tmp_path / "off"))
    assert off.returncode == 1
    assert 'row 1, method: was "exact", is "t"' in off.stdout
    assert 'row 2, statistic: was "kappa", is "alpha"' in off.stdout
    assert "-REPLACE" in off.stdout
    assert "+ASSIST" in off.stdout
    less = run("same_numbers.py", old, str(tmp_path / "less"))
    assert 'row 1, method: was "exact", is null' in less.stdout


@pytest.mark.parametrize(
    ("script", "arguments", "row"),
    [
        ("endpoint.py", ["--check"], r"1 at a time: +\d+ a second"),
        ("startup.py", [], r"import judgebench .* \d+\.\d"),
        ("intervals.py", [], r"20 × 20 \| judgebench \| (100|9\d|8[05])"),
        ("rates.py", [], r"judge 0\.98 n 2000 .*\d\.\d\d"),
        ("house.py", [], r"all +[\d,]+ +[\d,]+\n +files +\d+"),
        ("decisions.py", ["--world", "imported, 72 %"], r"imported, 72 % blank .*100\.0 %"),
        ("decisions.py", ["--world", "of 85 %"], r"judge 97 % † .*\n\n† proposed by an out"),
        pytest.param("annotate.py", [], r"at once +\d+", marks=pytest.mark.long),
    ],
)
def test_a_quick_run_prints_its_ratios(script: str, arguments: list[str], row: str) -> None:
    assert re.search(row, told(script, *arguments, "--quick"))


def test_a_scenario_with_a_wrong_key_is_named(tmp_path: Path) -> None:
    for name in ("decisions.py", "scenarios.yaml"):
        text = (BENCHMARKS / name).read_text("utf-8")
        (tmp_path / name).write_text(text.replace("of: label,", "from: label,", 1), "utf-8")
    error = run(str(tmp_path / "decisions.py"), "--quick").stderr
    assert "scenarios.yaml: graded: poor: unknown ['from'], allowed: ['annotators'" in error


def test_one_pass_asks_once_an_answer_and_leaves_out_a_peer_that_is_missing() -> None:
    table = told("one_pass.py", "--quick", missing="deepeval")
    found = re.findall(r"^  judgebench, ([a-z ]+?)  +([\d. ]+)$", table, re.MULTILINE)
    rows = {name: [float(cell) for cell in cells.split()] for name, cells in found}
    one_pass, per_metric = rows["one pass"], rows["per metric"]
    assert (one_pass[0], per_metric[0]) == (2, 16)
    assert per_metric[4] == pytest.approx(one_pass[1] / per_metric[1], abs=1e-3)
    assert 1 / 8 < per_metric[4] < 1
    assert "GEval is left out, because deepeval is missing: pip install deepeval" in table


def test_a_planned_study_suffices_in_a_world_of_good_judges() -> None:
    table = told("planning.py", "--plans", "10", "--world", "good, 50 items")
    row = re.search(
        r"^\| good, 50 items \| 50 \| 10 \|.* (\d+) ± \d+ % \|.* (\d+) % \|$", table, re.M
    )
    assert row is not None
    assert int(row[1]) >= 60
    assert int(row[2]) >= 90  # with as much as a plan may ask for
