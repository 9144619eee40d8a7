"""examples/notebook.ipynb runs from its first cell to its last, and shows what it says it shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from notebook import run_notebook

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_notebook_runs_and_shows_decisions_numbers_and_a_plot(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "demo", tmp_path / "demo")
    notebook = run_notebook(EXAMPLES / "notebook.ipynb", tmp_path)
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", ())]
    shown = [out["data"] for out in outputs if "data" in out]
    assert "DO NOT USE" in shown[0]["text/plain"]
    assert "<table" in shown[0]["text/html"]
    assert any("humans_accuracy" in data["text/plain"] for data in shown)
    assert any("annotator-3" in data["text/plain"] for data in shown)
    assert "image/png" in shown[-1]


def test_the_outputs_in_the_file_are_those_of_its_cells() -> None:
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
