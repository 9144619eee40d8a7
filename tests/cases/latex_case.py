"""The tables of a report in a paper, set by pdflatex."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from judgebench.results.blocks import ReportSection
from judgebench.results.latex import to_latex

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex, which is not installed"
)
PACKAGES = "\\usepackage{booktabs}\n"
PAPER = "\\documentclass%s\n%s\\begin{document}\nText.\n%s\n\\end{document}\n"
ACL = "[11pt,twocolumn]{article}\\textwidth 455pt\\columnsep 17pt"  # columns of 219 pt
CLASSES = ("{article}", "[twocolumn]{article}", ACL, "[conference]{IEEEtran}")
# A line of the log for each float as wide as the page.
TELL_WIDE = (
    "\\makeatletter\\let\\wide\\@dblfloat\\def\\@dblfloat{\\typeout{WIDE}\\wide}\\makeatother\n"
)


def main_table(parts: Sequence[ReportSection], folder: Path, of: str) -> str:
    """The log of a paper of that class that reads in the main tables; skipped without the class."""
    need_class(of)
    (folder / "main.tex").write_text(to_latex(parts)["main.tex"], encoding="utf-8")
    return compile_paper(r"\input{main}", folder, of, PACKAGES + TELL_WIDE, runs=1)


def need_class(of: str) -> None:
    """Skip the test where the class of a paper, or its font, is not installed."""
    name = of.split("{")[1].split("}")[0]
    found = subprocess.run(
        ["kpsewhich", f"{name}.cls", "ptmr7t.tfm"], capture_output=True, text=True, check=False
    )
    if found.stdout.count("\n") < 2:
        pytest.skip(f"needs the class {name} and the font Times, which are not installed")


def write_tables(parts: Sequence[ReportSection], folder: Path) -> dict[str, str]:
    """The files that a paper reads in, by name, written into the folder `latex`."""
    (folder / "latex").mkdir(exist_ok=True)
    files = to_latex(parts)
    for name, content in files.items():
        (folder / "latex" / name).write_text(content, encoding="utf-8")
    return files


def compile_tables(parts: Sequence[ReportSection], folder: Path) -> str:
    """The log of a paper that reads in the main table, where there is one, and the appendix."""
    files = write_tables(parts, folder)
    read = [name for name in ("main.tex", "appendix.tex") if name in files]
    return compile_paper("\n".join(rf"\input{{latex/{name}}}" for name in read), folder)


def compile_paper(
    body: str, folder: Path, of: str = "{article}", preamble: str = PACKAGES, runs: int = 2
) -> str:
    """The log of pdflatex, run twice for references. Fails where a page cannot be made."""
    (folder / "paper.tex").write_text(PAPER % (of, preamble, body), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(runs):
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
        log = done.stdout.decode("latin-1")
        assert done.returncode == 0, log[-2000:]
    return log
