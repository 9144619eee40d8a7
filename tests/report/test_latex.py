from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stress_report_case import alone, hostile_stress, make_stress

from judgebench.align import Alignment
from judgebench.report.old.contents import NO_LABELS
from judgebench.report.old.latex import escape, to_latex

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex, which is not installed"
)
COMMAND = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")
PAPER = (
    "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\nText.\n"
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


def test_the_head_names_the_only_package_needed(realistic: Alignment) -> None:
    latex = to_latex(realistic)
    assert latex.startswith("%")
    assert r"\usepackage{booktabs}" in latex.split("\n")[0]
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") > 20
    labels = re.findall(r"\\label\{([^}]*)\}", latex)
    assert len(labels) == len(set(labels))


@needs_latex
def test_the_tables_compile_and_fit_the_page(alignment: Alignment, tmp_path: Path) -> None:
    log = compile_paper(to_latex(alignment), tmp_path)
    assert "Float too large" not in log
    assert "undefined references" not in log
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    limit = 30 if alignment.name.startswith("x<") else 1  # one hostile name is a single word
    assert max(too_wide, default=0) < limit


@needs_latex
def test_the_tables_of_a_stress_test_compile_and_fit_the_page(tmp_path: Path) -> None:
    for name, stress in (("plain", make_stress()), ("hostile", hostile_stress())):
        (tmp_path / name).mkdir()
        log = compile_paper(to_latex(alone(), stress), tmp_path / name)
        assert "Float too large" not in log
        too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
        assert name == "hostile" or max(too_wide, default=0) < 1  # its names cannot be broken


def test_the_tables_of_a_stress_test_stand_before_the_others(realistic: Alignment) -> None:
    latex = to_latex(realistic, make_stress())
    labels = re.findall(r"\\label\{tab:judgebench-([^}]*)\}", latex)
    assert len(labels) == len(set(labels))
    assert labels[0] == "stress-summary"
    both = [label for label in labels if not label.startswith("stress-")]
    plain = re.findall(r"\\label\{tab:judgebench-([^}]*)\}", to_latex(realistic))
    assert both == plain
    assert NO_LABELS not in latex
    assert NO_LABELS in to_latex(alone(), make_stress())


@needs_latex
def test_everything_that_can_be_escaped_compiles(tmp_path: Path) -> None:
    ranges = (range(32, 0x250), range(0x370, 0x400), range(0x2010, 0x2040), range(0x2190, 0x2270))
    words = " ".join("".join(map(chr, r))[i : i + 8] for r in ranges for i in range(0, len(r), 8))
    compile_paper(escape(words), tmp_path)
