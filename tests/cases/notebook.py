"""Run a notebook in a kernel, as Jupyter does.

`python tests/cases/notebook.py examples/notebook.ipynb` writes the outputs into the file, from a
temporary copy of its folder.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any


def run_notebook(path: Path, folder: Path) -> dict[str, Any]:
    """The notebook with its outputs, run in `folder`; raises what a cell raises."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, record_timing=False, resources={"metadata": {"path": str(folder)}}
    ).execute()
    found: dict[str, Any] = json.loads(nbformat.writes(notebook))
    return found


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(path.parent, folder, dirs_exist_ok=True)
        notebook = run_notebook(path.resolve(), Path(folder))
    for cell in notebook["cells"]:  # warnings name files of the kernel
        if outputs := cell.get("outputs"):
            cell["outputs"] = [out for out in outputs if out.get("name") != "stderr"]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
