"""The rankings in Markdown, LaTeX, CSV, the terminal and the figures."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.patches import Rectangle
from ranking_case import (
    NOTES,
    RANKERS,
    bare_rankings,
    hostile_rankings,
    large_rankings,
    paper_rankings,
    planted_rankings,
)
from rich.console import Console
from stress_report_case import HOSTILE, alone

from judgebench.align import Alignment
from judgebench.ranking.report.csv import COLUMNS, to_rankings_csv
from judgebench.ranking.report.looks import ARGUMENTS, CONTROLS, colour, system_steps
from judgebench.ranking.report.plots import draw_medals, draw_rankings
from judgebench.ranking.report.words import HOW_SURE, NO_RANKINGS
from judgebench.ranking.result import Rankings
from judgebench.report.old.contents import NO_LABELS, about_what, shows_alignment
from judgebench.report.old.latex import to_latex
from judgebench.report.old.markdown import to_markdown
from judgebench.report.old.write import print_rankings, print_tables, write_report

PLANTED = planted_rankings()
PAPER = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\n\\end{document}\n"


def markdown(rankings: Rankings = PLANTED) -> str:
    return to_markdown(alone(), None, None, rankings)


# --- what a report of rankings is about -----------------------------------------------------------


def test_rankings_need_no_human_labels(tiny: Alignment) -> None:
    assert not shows_alignment(alone(), None, PLANTED)
    assert shows_alignment(tiny, None, PLANTED)
    assert about_what(alone(), None, None, PLANTED) == "whose arguments help to decide?"
    assert about_what(tiny, None, None, PLANTED) == "judges against human labels"


def test_rankings_add_their_files_and_change_none_of_the_others(
    tiny: Alignment, tmp_path: Path
) -> None:
    bare = replace(tiny, scores=tiny.scores[:1], distribution=(), confusions=())
    plain = write_report(bare, tmp_path / "plain")
    both = write_report(bare, tmp_path / "both", None, None, bare_rankings())
    added = {"rankings_csv", "plots/medals_claims.png", "plots/medals_claims.pdf"}
    assert set(both) == set(plain) | added
    assert both["rankings_csv"].name == "rankings.csv"
    for key in set(plain) - {"markdown", "latex", "html"}:
        assert both[key].read_bytes() == plain[key].read_bytes()
    for path in plain.values():
        assert b"ranking_" not in path.read_bytes()


# --- Markdown -------------------------------------------------------------------------------------


def test_the_markdown_opens_with_words_and_shows_medals_and_bold_numbers() -> None:
    text = markdown()
    assert text.startswith("# alone: whose arguments help to decide?")
    assert "| Ranker | 🥇 | 🥈 | 🥉 | 4th |" in text
    assert "| expert-trained | gold | label-only (control, above 2) | smollm2-135m |" in text
    assert "| expert-trained | **0.900** [0.860, 0.940] | 0.700 [0.660, 0.740] |" in text
    misled = text.index("- expert-trained: misled by label-only (above 2 of 3 arguments).")
    assert misled < text.index(f"- {NOTES[0]}") < text.index("## Who helps most")
    assert HOW_SURE in text
    assert NO_LABELS not in text


def test_a_judge_s_alignment_stands_beside_the_rankings(tiny: Alignment) -> None:
    both, plain = to_markdown(tiny, None, None, PLANTED), to_markdown(tiny)
    assert plain[plain.index("## What was compared") : plain.index("\n## ", 200)] in both
    assert "## Accuracy against the human" in both
    without = to_markdown(replace(tiny, n_labels=0), None, None, PLANTED)
    assert NO_LABELS in without


def test_where_nothing_was_ranked_one_sentence_says_so() -> None:
    nothing = replace(bare_rankings(), rankings=())
    assert NO_RANKINGS in markdown(nothing)
    assert list(draw_rankings(nothing)) == []


def test_hostile_names_are_no_markup() -> None:
    text = markdown(hostile_rankings())
    assert "<script>" not in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(bars) == 1


# --- LaTeX ----------------------------------------------------------------------------------------


def test_medals_are_words_and_the_best_is_bold_in_latex() -> None:
    latex = to_latex(alone(), None, None, PLANTED)
    assert latex.isascii()
    assert r"\scriptsize \hspace{0pt}1st" in latex
    assert r"\textbf{\hspace{0pt}0.\penalty50{}900}\newline" in latex
    labels = re.findall(r"\\label\{([^}]*)\}", latex)
    assert len(labels) == len(set(labels))
    assert latex.index("misled by label") < latex.index(r"\begin{table}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("made", [paper_rankings, planted_rankings, hostile_rankings])
def test_the_tables_compile_and_fit_the_page(made: object, tmp_path: Path) -> None:
    latex = to_latex(alone(), None, None, made())  # type: ignore[operator]
    (tmp_path / "paper.tex").write_text(PAPER % latex, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    log = done.stdout.decode("latin-1")
    assert done.returncode == 0, log[-2000:]
    assert "Float too large" not in log or made is hostile_rankings
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert made is hostile_rankings or max(too_wide, default=0) < 1  # its names cannot be broken


# --- CSV ------------------------------------------------------------------------------------------


def read(rankings: Rankings = PLANTED) -> pd.DataFrame:
    text = to_rankings_csv(rankings)
    assert "nan" not in text
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


def test_every_system_of_every_ranking_is_one_row() -> None:
    table = read()
    assert tuple(table.columns) == COLUMNS
    rows = table.query("table == 'system'")
    expected = [(r, s) for r in PLANTED.rankings for s in r.systems]
    for row, (ranking, s) in zip(rows.itertuples(), expected, strict=True):
        assert (row.task, row.ranker, row.ranker_kind) == (
            ranking.task, ranking.ranker, ranking.kind,
        )  # fmt: skip
        assert (row.system, row.place, (row.place_low, row.place_high)) == (
            s.system, s.place, s.place_range,
        )  # fmt: skip
        assert (row.value, row.low, row.high) == (s.score.value, s.score.low, s.score.high)
        assert (row.average_rank, row.group) == (s.average_rank.value, s.group)
    assert set(rows["system_kind"]) == {"gold", "model", "control"}


def test_all_other_numbers_are_counted() -> None:
    counts = read()["table"].value_counts().to_dict()
    rankings = len(PLANTED.rankings)
    assert counts["ranking"] == 5 * rankings
    assert counts["above"] == sum(len(r.above) for r in PLANTED.rankings)
    assert counts["agreement"] == 4 * len(PLANTED.agreements)
    assert counts["length_bias"] == 2 * len(PLANTED.length_biases)
    assert counts["self_preference"] == len(PLANTED.self_preferences)
    assert counts["trained"] == 8 * len(PLANTED.trained)
    assert counts["task"] == 2
    assert counts["argument"] == 2 * 6 + 2 + 2


def test_undefined_is_empty_with_a_reason_and_formulas_are_text() -> None:
    table = read(bare_rankings())
    undefined = table[(table["table"] == "ranking") & table["value"].isna()]
    assert set(undefined["statistic"]) == {"chi_square", "p", "critical_difference",
                                           "controls_below"}  # fmt: skip
    assert undefined["reason"].notna().all()
    ranking = replace(bare_rankings().rankings[0], ranker="=1+1")
    assert read(replace(bare_rankings(), rankings=(ranking,)))["ranker"][0] == "'=1+1"


# --- the terminal ---------------------------------------------------------------------------------


def printed(rankings: Rankings, width: int = 120) -> str:
    out = io.StringIO()
    print_rankings(rankings, Console(file=out, width=width, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 200])
def test_the_terminal_shows_words_grids_and_scores(width: int) -> None:
    text = printed(PLANTED, width)
    assert max(map(len, text.split("\n"))) <= width
    assert "…" not in text
    assert "- expert-trained: misled by label-only (above 2 of 3 arguments)." in text
    for title in ("Who helps most, Claims about health: with", "Scores, Statements about trials",
                  "Average score over real arguments"):  # fmt: skip
        assert title in text
    assert all(ranker.split("/")[0] in text for ranker in RANKERS)


def test_rankings_are_printed_beside_the_rest() -> None:
    out = io.StringIO()
    console = Console(file=out, width=120, color_system=None)
    print_tables(alone(), console, rankings=PLANTED)
    text = out.getvalue()
    assert text.index("Whose arguments help") < text.index(f"! {NOTES[0]}")
    assert NO_LABELS not in text
    assert "0 answers" not in text
    assert NO_RANKINGS in printed(replace(bare_rankings(), rankings=()))


def test_hostile_names_are_neither_markup_nor_escape_codes() -> None:
    bad = "[bold]x[/bold]\x1b[31m"
    ranking = replace(bare_rankings().rankings[0], ranker=bad)
    text = printed(replace(bare_rankings(), rankings=(ranking,)))
    assert "[bold]x[/bold]\ufffd[31m" in text
    assert "\x1b" not in text


# --- figures --------------------------------------------------------------------------------------


def test_every_task_has_a_figure_in_every_format() -> None:
    paper = paper_rankings()
    found = dict(draw_rankings(replace(paper, tasks=paper.tasks[1:])))
    assert set(found) == {
        f"medals_{task}.{kind}" for task in ("misinformation", "nli") for kind in ("png", "pdf")
    }
    assert found["medals_nli.png"].startswith(b"\x89PNG")
    assert found["medals_nli.pdf"].startswith(b"%PDF")


def test_each_place_is_a_box_in_its_system_s_colour_with_its_name() -> None:
    figure = draw_medals(PLANTED, PLANTED.tasks[0])
    steps = system_steps(PLANTED)
    assert len(figure.axes) == 2
    for axes in figure.axes:
        boxes = [p for p in axes.patches if isinstance(p, Rectangle)]
        assert len(boxes) == len(axes.texts)
        for box, text in zip(boxes, axes.texts, strict=True):
            name = text.get_text().split("\n")[0]
            hexed = "#" + "".join(f"{round(255 * c):02x}" for c in box.get_facecolor()[:3])
            assert hexed == colour(steps[name])
            dashed = box.get_linestyle() not in ("solid", "-")
            assert dashed == (steps[name][0] == "control")
    below = figure.axes[1]
    fooled = [t.get_text() for t in below.texts if "above" in t.get_text()]
    assert fooled == ["label-only\n▲ above 2"]
    assert [t.get_text() for t in below.get_yticklabels()][:2] == ["baseline", "expert-trained"]


def test_the_boxes_of_a_column_do_not_overlap() -> None:
    for rankings in (PLANTED, large_rankings()):
        for axes in draw_medals(rankings, rankings.tasks[0]).axes:
            boxes = sorted((p.get_x(), p.get_y(), p.get_y() + p.get_height())
                           for p in axes.patches)  # fmt: skip
            assert all(a[2] <= b[1] for a, b in pairwise(boxes) if a[0] == b[0])
            assert axes.get_ylim()[0] >= max(bottom for _, _, bottom in boxes)


def test_a_system_has_one_colour_and_the_page_has_the_same() -> None:
    css = (Path(draw_medals.__code__.co_filename).parent / "section.css").read_text("utf-8")
    for kind, colours in (("argument", ARGUMENTS), ("control", CONTROLS)):
        assert len(set(colours)) == len(colours)
        for number, shade in enumerate(colours):
            assert f".{kind}-{number} {{ background: {shade}; }}" in css
    steps = system_steps(large_rankings())
    assert len(set(steps.values())) == len(steps) == 12


def test_hostile_names_are_drawn_and_file_names_are_plain() -> None:
    made = hostile_rankings()
    task = replace(made.tasks[0], name="../a b/$x")
    changed = replace(
        made, tasks=(task,), rankings=tuple(replace(r, task=task.name) for r in made.rankings[:2])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(dict(draw_rankings(changed))) == ["medals_a-b-x.png", "medals_a-b-x.pdf"]
    assert HOSTILE in task.title
