"""Draw docs/outcomes.png, by `.plot()`, and docs/page.png, the head of a report in Chromium.

python docs/tables/picture.py        # needs the extra `figures`, and Chromium for the page
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


def photograph(page: str, picture: Path) -> None:
    """The first screen of a page."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    subprocess.run(
        [
            str(chromium), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={page}-profile", "--window-size=1200,1080",
            f"--screenshot={picture}", page,
        ],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip


def main() -> None:
    """Decide, draw and write the report."""
    truth = {"blind": "yes", "independent_items": True}
    tables = HERE / "labels.csv", HERE / "my-judge.csv"
    study = jb.study(*tables, truth=truth, columns={"order": ORDER})
    axes = jb.decide(study).plot()
    axes.figure.savefig(HERE.parent / "outcomes.png", dpi=150, bbox_inches="tight")
    with tempfile.TemporaryDirectory() as folder:
        jb.report(study, folder)
        photograph(f"{folder}/report.html", HERE.parent / "page.png")


if __name__ == "__main__":
    main()
