"""Run a notebook without Jupyter: its code cells in order, and what the last line of each shows.

`python tests/cases/notebook.py examples/notebook.ipynb` writes the outputs into the file, from a
temporary copy of its folder.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any


def run_notebook(path: Path, folder: Path) -> dict[str, Any]:
    """The notebook with its outputs, run in `folder`; raises what a cell raises."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with contextlib.chdir(folder):
        for count, cell in enumerate(code, start=1):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = _run("".join(cell["source"]), names, f"cell {count}")
            cell["execution_count"] = count
            cell["outputs"] = [*_stream(printed.getvalue()), *_result(value, count)]
    return notebook


def _run(source: str, names: dict[str, Any], where: str) -> Any:
    """What the last line is worth, if it is an expression."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), where, "eval"), names)  # type: ignore[attr-defined]


def _stream(text: str) -> list[dict[str, Any]]:
    return [{"output_type": "stream", "name": "stdout", "text": text}] if text else []


def _result(value: Any, count: int) -> list[dict[str, Any]]:
    if value is None:
        return []
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_") and (html := value._repr_html_()):
        data["text/html"] = html
    if hasattr(value, "savefig"):
        image = io.BytesIO()
        value.savefig(image, dpi=80)
        data["image/png"] = base64.b64encode(image.getvalue()).decode()
    shown = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
    return [{**shown, "data": data}]


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(path.parent, folder, dirs_exist_ok=True)
        notebook = run_notebook(path.resolve(), Path(folder))
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + os.linesep, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
