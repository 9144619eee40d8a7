"""The tables that the example medical-safety-crowd makes of the published files."""

import runpy
from pathlib import Path

PREPARE = Path(__file__).parents[2] / "examples" / "medical-safety-crowd" / "prepare.py"


def crowd_tables(shared_data: Path, folder: Path) -> Path:
    """The folder with queries.csv, responses.csv, expert-queries.csv and expert-responses.csv."""
    runpy.run_path(str(PREPARE))["main"](shared_data / "medical-safety-crowd", folder)
    return folder
