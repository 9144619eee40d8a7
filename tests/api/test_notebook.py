"""examples/notebook.ipynb runs from its first cell to its last, and shows what it says it shows."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from notebook import run_notebook

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def texts(notebook: dict[str, Any]) -> list[str]:
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", ())]
    return ["".join(out["data"]["text/plain"]) for out in outputs if "data" in out]


def test_the_notebook_runs_in_a_kernel_and_shows_each_result_once(tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="needs nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    shutil.copytree(EXAMPLES / "demo", tmp_path / "demo")
    notebook = run_notebook(EXAMPLES / "notebook.ipynb", tmp_path)
    stored = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    assert texts(notebook) == texts(stored)  # else: python tests/cases/notebook.py FILE
    code = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for outputs in code:
        shown = [out for out in outputs if out["output_type"] != "stream"]
        assert len(shown) == 1
        assert not [out for out in outputs if out.get("name") == "stdout"]
    data = [next(out["data"] for out in outputs if "data" in out) for outputs in code]
    assert "DO NOT USE  judge " in "".join(data[0]["text/plain"])
    assert "".join(data[0]["text/html"]).count("DO NOT USE") >= 1
    assert "humans_accuracy" in "".join(data[1]["text/plain"])
    assert "annotator-3" in "".join(data[3]["text/plain"])
    picture = base64.b64decode(data[4]["image/png"])
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_the_outputs_in_the_file_are_those_of_its_cells() -> None:
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    assert "image/png" in code[-1]["outputs"][-1]["data"]


def test_every_plot_of_a_notebook_is_shown(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    shutil.copytree(EXAMPLES / "demo", tmp_path / "demo")
    tables = "'demo/labels.csv', 'demo/qwen2.5-coder-1.5b.csv'"
    first = f"import judgebench as jb; found = jb.align({tables})"
    lines = [first, "found.plot()", "found.plot()", "import matplotlib.pyplot as p; p.plot([1, 2])"]
    file = tmp_path / "plots.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, lines)]), file)
    cells = run_notebook(file, tmp_path)["cells"]
    drawn = [[key for out in cell["outputs"] for key in out.get("data", ())] for cell in cells[1:]]
    assert ["image/png" in kinds for kinds in drawn] == [True] * 3
