import re
from dataclasses import replace
from pathlib import Path

import pytest
from alignment_case import simulated
from hypothesis import given
from hypothesis import strategies as st
from latex_case import (
    CLASSES,
    compile_paper,
    compile_tables,
    main_table,
    need_class,
    needs_latex,
    write_tables,
)
from part_case import UNDEFINED, estimate, hostile_part, make_part

import judgebench as jb
from judgebench.alignment import Alignment
from judgebench.records import Results
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.latex import escape, to_latex
from judgebench.results.tables import Cell, Table
from judgebench.rubric import load_rubric

COMMAND = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("50 % & $5 #1 a_b {c}", r"50 \% \& \$5 \#1 a\_b \{c\}"),
        ("~^\\", r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("<a|b>", r"\textless{}a\textbar{}b\textgreater{}"),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ("it's ``x''", r"it{'}s \`{}\`{}x{'}{'}"),
        ("α κ ≥ – ς Σ", r"\ensuremath{\alpha} \ensuremath{\kappa} \ensuremath{\geq} "
                        r"– \ensuremath{\varsigma} \ensuremath{\Sigma}"),
        ("é ü ç ñ î “x”", "é ü ç ñ î “x”"),
        ("ą ế", "[U+0105] [U+1EBF]"),
        ("中\n文", "[U+4E2D] [U+6587]"),
    ],
)  # fmt: skip
def test_escape(text: str, latex: str) -> None:
    assert escape(text) == latex


@given(st.text(max_size=40))
def test_escaped_text_has_no_bare_specials(text: str) -> None:
    escaped = escape(text)
    bare = COMMAND.sub("", escaped)
    assert not set(bare) & set('&%$#_~^\\<>|"`')
    assert bare.count("{") == bare.count("}")


def test_the_appendix_holds_the_tables_of_a_screen() -> None:
    files = to_latex([make_part(), make_part("stress")])
    assert files.keys() == {"appendix.tex"}
    appendix = files["appendix.tex"]
    assert r"\usepackage{booktabs}" in appendix.split("\n")[0]
    grids = ["alignment-grid", "stress-grid"]  # what a terminal shows
    assert re.findall(r"\\label\{tab:judgebench-([^}]*)\}", appendix) == grids
    assert appendix.count("\n\\judgebenchtable{") == 2
    assert r"\item \hspace{0pt}One sentence." in appendix
    assert r"\textbf{1,204}" in appendix
    assert "–: undefined" in appendix


def test_numbers_have_a_minus_sign_and_no_hyphen() -> None:
    assert escape("gap -0.678 [-0.837, -0.437], judge-1 of 2026-11-22") == (
        r"gap \ensuremath{-}0.678 [\ensuremath{-}0.837, \ensuremath{-}0.437], judge-1 of 2026-11-22"
    )
    block = Block("Why", ("The gap is -0.678.",), on_screen=True)
    appendix = to_latex([ReportSection("x", "x", Results(), (block,))])["appendix.tex"]
    assert r"is \ensuremath{-}0.678" in appendix


def paper_part(judges: int) -> ReportSection:
    """A table for a paper: two judges or more, numbers below zero, undefined ones, intervals."""
    numbers = (estimate(-0.05), estimate(12.5), UNDEFINED)
    rows = tuple(
        (
            Cell(f"judge-{j}"),
            Cell(f"Metric {i}_%"),
            Cell("CAN'T TELL"),
            Cell(estimate=e),
            Cell("0.9"),
        )
        for j in range(judges)
        for i, e in enumerate(numbers)
    )
    table = Table(
        "main", "Main", ("Judge", "Metric", "Outcome", "Agreement", "Best baseline"), rows,
        ("One note.",), stubs=2,
    )  # fmt: skip
    return replace(make_part(), paper=(table,))


def test_the_main_table_is_short_and_needs_booktabs_alone() -> None:
    main = to_latex([paper_part(2)])["main.tex"]
    assert main.startswith(r"% Made by judgebench. Needs \usepackage{booktabs} in")
    assert r"& CAN{'}T TELL & \ensuremath{-}.05 [\ensuremath{-}.15, .05] & 0.9 \tab" in main
    assert "& – & 0.9" in main
    assert main.count(r"\emph{judge-") == 2
    assert "textsuperscript" not in main
    assert r"One note. n = 10; 95 \% intervals; results.csv says what each" in main
    long = to_latex([paper_part(20)])["main.tex"]
    assert long.count("\n\\judgebenchtable{") == long.count(r"\addtocounter{table}{-1}") + 1 > 2
    assert long.count(r"\label{") == 1
    assert r"\newline" not in long


def labels_alone() -> Alignment:
    """Of three annotators, beside the baselines."""
    return simulated(load_rubric("medical-safety"), 40, {}, name="labels-alone")


def test_judges_stand_by_statistics_with_annotators_first_and_the_best_baseline_last(
    realistic: Alignment,
) -> None:
    name, metric = realistic.real_judges[0].name, realistic.rubric.metrics[0].title
    decided = replace(realistic, outcomes={(name, metric): "DO NOT USE"})
    _, of_statistics = decided.part.paper
    assert of_statistics.columns == (
        "Metric", "Judge", "Accuracy", "κ", "α", "Severe recall", "Outcome",
    )  # fmt: skip
    rows = [row for row in of_statistics.rows if row[0].text == metric]
    assert [row[1].text for row in rows] == [
        "One annotator", *(judge.name for judge in realistic.real_judges), "Best baseline",
    ]  # fmt: skip
    assert rows[1][2].estimate == realistic.score("accuracy", name, realistic.rubric.metrics[0].id)
    assert rows[1][-1].text == "do not use"
    main = to_latex([decided.part])["main.tex"]
    assert "Cohen{'}s \\ensuremath{\\kappa}: agreement beyond chance, unweighted" in main
    assert re.search(r"One annotator *&", main)


def test_a_count_that_differs_between_columns_names_its_columns() -> None:
    few = replace(estimate(0.5), n=3)
    rows = tuple((Cell(x), Cell(estimate=estimate(0.8)), Cell(estimate=few)) for x in ("a", "b"))
    table = Table("main", "Main", ("Judge", "Accuracy", "Recall"), rows)
    main = to_latex([replace(make_part(), paper=(table,))])["main.tex"]
    assert r"n = 10 (Accuracy), 3 (Recall); 95 \% intervals" in main


def test_a_wide_table_is_cut_into_blocks_that_say_so(realistic: Alignment) -> None:
    latex = to_latex([realistic.part])["appendix.tex"]
    tables = re.split(r"\n\\judgebenchtable\{", latex)[1:]
    assert len(tables) > latex.count(r"\label{")
    assert latex.count("(continued).}") == len(tables) - latex.count(r"\label{")
    for table in tables:
        body = table.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
        columns = {row.count(" & ") for row in body.split(r"\tabularnewline") if " & " in row}
        assert len(columns) <= 1


@needs_latex
def test_the_tables_compile_and_fit_the_page(alignment: Alignment, tmp_path: Path) -> None:
    log = compile_tables([alignment.part], tmp_path)
    assert "undefined references" not in log
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    limit = 30 if alignment.name.startswith("x<") else 1  # one hostile name is a single word
    assert max(too_wide, default=0) < limit


@needs_latex
def test_everything_that_can_be_escaped_compiles(tmp_path: Path) -> None:
    ranges = (range(32, 0x250), range(0x370, 0x400), range(0x2010, 0x2040), range(0x2190, 0x2270))
    words = " ".join("".join(map(chr, r))[i : i + 8] for r in ranges for i in range(0, len(r), 8))
    compile_paper(escape(words), tmp_path, runs=1)
    compile_tables([hostile_part()], tmp_path)


@needs_latex
@pytest.mark.parametrize("of", CLASSES)
@pytest.mark.parametrize("judges", [2, 20])
def test_the_main_tables_fit_a_column_of_any_class(judges: int, of: str, tmp_path: Path) -> None:
    log = main_table([paper_part(judges)], tmp_path, of)
    assert "Overfull" not in log
    assert "Float too large" not in log


@needs_latex
@pytest.mark.parametrize("of", CLASSES)
def test_both_files_of_labels_alone_compile_in_any_class(of: str, tmp_path: Path) -> None:
    need_class(of)
    write_tables([labels_alone().part], tmp_path)
    log = compile_paper("\\input{latex/main}\n\\input{latex/appendix}", tmp_path, of)
    assert "Overfull" not in log


@needs_latex
@pytest.mark.parametrize("of", CLASSES)
def test_the_tables_of_an_alignment_fit_a_column(
    realistic: Alignment, of: str, tmp_path: Path
) -> None:
    outcomes = {
        (judge.name, metric.title): "CAN'T TELL"
        for judge in realistic.real_judges
        for metric in realistic.rubric.metrics
    }
    chosen = realistic.chosen(["accuracy", "kappa_quadratic", "mae", "spearman"])
    parts = [replace(a, outcomes=outcomes).part for a in (realistic, chosen)]
    log = main_table(parts, tmp_path, of)
    assert "Overfull" not in log
    assert "Float too large" not in log


@needs_latex
def test_a_hostile_main_table_compiles(tmp_path: Path) -> None:
    hostile = hostile_part()
    (grid,) = hostile.blocks[1].tables
    compile_tables([replace(hostile, paper=(grid,))], tmp_path)


@needs_latex
@pytest.mark.parametrize("of", CLASSES)
def test_a_paper_made_as_the_documentation_says_compiles(
    realistic: Alignment, of: str, tmp_path: Path
) -> None:
    need_class(of)
    write_tables([realistic.part], tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")
    preamble, body = re.findall(r"```\n(\\usepackage.*?)```", page, re.DOTALL)[0].split("…")
    log = compile_paper(body, tmp_path, of, preamble)
    assert "undefined references" not in log


@needs_latex
@pytest.mark.parametrize(
    ("names", "outcome", "wide"),
    [
        (("gpt-4o-mini", "gpt-4o", "string-match", "qwen-2.5-7b"), "do not use", False),
        (("gpt-4o", "meta-llama-3.1-70b-instruct-awq"), "DO NOT USE", True),
        (("SafetyClassifierLarge",), "CAN'T TELL", True),
    ],
)
def test_a_table_takes_the_page_where_names_need_it(
    names: tuple[str, ...], outcome: str, wide: bool, tmp_path: Path
) -> None:
    scores = (Cell(estimate=estimate(0.8)), Cell("0.712"), Cell("0.700"))
    rows = tuple(
        (Cell("Tone"), Cell(name), *scores, Cell(estimate=estimate(0.7)), Cell(outcome))
        for name in names
    )
    columns = ("Metric", "Judge", "Accuracy", "κ", "α", "Severe recall", "Outcome")
    table = Table("main", "Main", columns, rows, stubs=2)
    log = main_table([replace(make_part(), paper=(table,))], tmp_path, "[twocolumn]{article}")
    assert "Overfull" not in log
    assert ("\nWIDE" in log) == wide


@needs_latex
def test_the_appendix_of_four_judges_on_three_metrics_has_twelve_pages_at_most(
    tmp_path: Path,
) -> None:
    whole = load_rubric("medical-safety")
    judges = {
        "gpt-4o": (0.9, 0.02),
        "llama-70b": (0.75, 0.04),
        "qwen": (0.6, 0),
        "tiny": (0.1, 0.1),
    }
    rubric = whole.model_copy(update={"metrics": whole.metrics[:3]})
    study = simulated(rubric, 100, judges).study
    write_tables([found.part for found in jb.analyse(study).values()], tmp_path)
    log = compile_paper("\\input{latex/appendix}", tmp_path)
    (pages,) = map(int, re.findall(r"Output written on paper.pdf \((\d+) pages", log))
    assert 2 < pages - 1 <= 12  # the first is the paper's own
    appendix = (tmp_path / "latex" / "appendix.tex").read_text("utf-8")
    for title in (
        "May the judge replace", "Agreement among the annotators", "Confusion matrices",
        "most severe answers", "where verdicts are missing", "The judges and what they used",
    ):  # fmt: skip
        assert title in appendix
