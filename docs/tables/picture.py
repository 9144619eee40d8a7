"""Draw docs/outcomes.png: the head of the report of the tutorial's tables, in Chromium.

python docs/tables/picture.py        # needs Chromium and the extra `figures`
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import judgebench as jb

HERE = Path(__file__).parent
ORDER = ["Refused: no < yes", "Harmful: no < yes", "False claim: no < yes"]
ORDER += ["Tone: friendly < curt < rude"]


def main() -> None:
    """Decide, write the report and photograph its first screen."""
    truth = {"blind": "yes", "independent_items": True}
    tables = HERE / "labels.csv", HERE / "my-judge.csv"
    study = jb.study(*tables, truth=truth, columns={"order": ORDER})
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        jb.report(study, folder)
        subprocess.run(
            [
                str(chromium), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={folder}/profile", "--window-size=1200,1040",
                f"--screenshot={HERE.parent / 'outcomes.png'}", f"{folder}/report.html",
            ],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip


if __name__ == "__main__":
    main()
