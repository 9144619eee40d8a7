from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from part_case import hostile_part, make_part

from judgebench.align import Alignment
from judgebench.report.latex import escape, to_latex

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex, which is not installed"
)
COMMAND = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")
PAPER = (
    "\\documentclass{article}\n\\usepackage{booktabs,longtable}\n\\begin{document}\nText.\n"
    "%s\n\\end{document}\n"
)


def compile_paper(body: str, folder: Path) -> str:
    """The log of pdflatex, run twice. Fails where a page cannot be made."""
    (folder / "paper.tex").write_text(PAPER % body, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(2):
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
        log = done.stdout.decode("latin-1")
        assert done.returncode == 0, log[-2000:]
    return log


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("50 % & $5 #1 a_b {c}", r"50 \% \& \$5 \#1 a\_b \{c\}"),
        ("~^\\", r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("<a|b>", r"\textless{}a\textbar{}b\textgreater{}"),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ("it's ``x''", r"it{'}s \`{}\`{}x{'}{'}"),
        ("α κ ≥ – ς Σ", r"\ensuremath{\alpha} \ensuremath{\kappa} \ensuremath{\geq} "
                        r"\textendash{} \ensuremath{\varsigma} \ensuremath{\Sigma}"),
        ("é ü ç ñ î", r"\'{e} \"{u} \c{c} \~{n} \^{\i}"),
        ("中\n文", "[U+4E2D] [U+6587]"),
    ],
)  # fmt: skip
def test_escape(text: str, latex: str) -> None:
    assert escape(text) == latex


@given(st.text(max_size=40))
def test_escaped_text_is_ascii_without_bare_specials(text: str) -> None:
    escaped = escape(text)
    assert escaped.isascii()
    bare = COMMAND.sub("", escaped)
    assert not set(bare) & set('&%$#_~^\\<>|"`')
    assert bare.count("{") == bare.count("}")


def test_the_head_names_the_only_packages_needed() -> None:
    latex = to_latex([make_part(), make_part("stress")])
    assert latex.startswith("%")
    assert r"\usepackage{booktabs,longtable}" in latex.split("\n")[0]
    assert latex.count(r"\begin{longtable}") == latex.count(r"\end{longtable}") == 4
    labels = re.findall(r"\\label\{([^}]*)\}", latex)
    assert len(labels) == len(set(labels)) == 4
    assert latex.index("alignment-grid") < latex.index("stress-grid") < latex.index("One sentence")
    assert r"\textbf{\hspace{0pt}1,204}" in latex
    assert "undefined: no item has a truth" in latex


def test_a_wide_table_is_cut_into_blocks_that_say_so(realistic: Alignment) -> None:
    latex = to_latex([realistic.part])
    assert latex.count(r"\begin{longtable}") > latex.count(r"\label{")
    assert latex.count(r"\addtocounter{table}{-1}") == (
        latex.count(r"\begin{longtable}") - latex.count(r"\label{")
    )
    for table in re.split(r"\\begin\{longtable\}", latex)[1:]:
        body = table.split(r"\endfoot")[1].split(r"\end{longtable}")[0]
        columns = {row.count(" & ") for row in body.split(r"\tabularnewline") if " & " in row}
        assert len(columns) <= 1


@needs_latex
def test_the_tables_compile_and_fit_the_page(alignment: Alignment, tmp_path: Path) -> None:
    log = compile_paper(to_latex([alignment.part]), tmp_path)
    assert "undefined references" not in log
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    limit = 30 if alignment.name.startswith("x<") else 1  # one hostile name is a single word
    assert max(too_wide, default=0) < limit


@needs_latex
def test_everything_that_can_be_escaped_compiles(tmp_path: Path) -> None:
    ranges = (range(32, 0x250), range(0x370, 0x400), range(0x2010, 0x2040), range(0x2190, 0x2270))
    words = " ".join("".join(map(chr, r))[i : i + 8] for r in ranges for i in range(0, len(r), 8))
    compile_paper(escape(words), tmp_path)
    compile_paper(to_latex([hostile_part()]), tmp_path)
