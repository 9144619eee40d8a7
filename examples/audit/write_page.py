"""Put the tables that `judgebench audit … --to PAGES` wrote into docs/audit.md, by their titles.

python examples/audit/write_page.py PAGES
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
_TABLE = re.compile(r"^### (.+)\n\n((?:\|.*\n)+)", re.MULTILINE)


def main(pages: Path) -> None:
    """Replace every table of the page whose title the program wrote, too."""
    made = dict(_TABLE.findall((pages / "tables.md").read_text("utf-8")))

    def now(found: re.Match[str]) -> str:
        rows = re.sub(r"<sup>.*?</sup>", "", made.get(found[1], found[2]))
        return f"### {found[1]}\n\n{rows}"

    PAGE.write_text(_TABLE.sub(now, PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
