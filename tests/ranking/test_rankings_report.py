"""The rankings in Markdown, LaTeX, CSV, the terminal and the figures."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from browser import Tab, browse, needs_browser
from latex_case import compile_tables, needs_latex
from matplotlib.patches import Rectangle
from page_reader import Page
from ranking_case import (
    HOSTILE,
    NOTES,
    RANKERS,
    bare_rankings,
    hostile_rankings,
    large_rankings,
    paper_rankings,
    planted_rankings,
)
from rich.console import Console

from judgebench.ranking.pages import HOW_SURE, NO_RANKINGS
from judgebench.ranking.rankers import Rankings
from judgebench.ranking.suitability import (
    ARGUMENT_COLOURS,
    CONTROL_COLOURS,
    draw_medals,
    system_colours,
)
from judgebench.results.figure import drawn
from judgebench.results.html import to_html
from judgebench.results.latex import to_latex
from judgebench.results.markdown import to_markdown
from judgebench.results.part import figures_of
from judgebench.results.rows import Results
from judgebench.results.terminal import print_parts
from judgebench.results.write import part_csv, write_report

PLANTED = planted_rankings()
NOTHING = replace(bare_rankings(), rows=Results())


def markdown(rankings: Rankings = PLANTED) -> str:
    return to_markdown([rankings.part], rankings.name)


def test_a_report_has_its_files(tmp_path: Path) -> None:
    found = write_report([bare_rankings().part], tmp_path, name="bare", figures=True)
    assert found.keys() == {
        "results.csv", "markdown", "html", "latex/appendix.tex", "plots/medals_claims.png",
        "plots/medals_claims.pdf",
    }  # fmt: skip


# --- Markdown -------------------------------------------------------------------------------------


def test_the_markdown_opens_with_words_and_shows_medals_and_bold_numbers() -> None:
    text = markdown()
    assert text.startswith("# planted: whose arguments help to decide?")
    assert "| Ranker | 🥇 | 🥈 | 🥉 | 4th |" in text
    assert "| expert-trained | gold | label-only (control, above 2) | smollm2-135m |" in text
    assert "| expert-trained | **0.900** [0.880, 0.920] | 0.700 [0.680, 0.720] |" in text
    misled = text.index("- expert-trained: misled by label-only (above 2 of 3 arguments).")
    assert misled < text.index(f"- {NOTES[0]}") < text.index("## All tasks together")
    assert HOW_SURE in text


def test_where_nothing_was_ranked_one_sentence_says_so() -> None:
    assert NO_RANKINGS in markdown(NOTHING)
    assert list(figures_of([NOTHING.part])) == []


# --- LaTeX ----------------------------------------------------------------------------------------


def test_medals_are_words_and_the_best_is_bold_in_latex() -> None:
    latex = to_latex([PLANTED.part])["appendix.tex"]
    assert latex.isascii()
    assert r"\scriptsize \hspace{0pt}1st" in latex
    assert r"\textbf{\hspace{0pt}0.900}\newline" in latex
    labels = re.findall(r"\\label\{([^}]*)\}", latex)
    assert len(labels) == len(set(labels))
    assert latex.index("misled by label") < latex.index(r"\begin{longtable}")


@needs_latex
@pytest.mark.parametrize("made", [paper_rankings, planted_rankings, hostile_rankings])
def test_the_tables_compile_and_fit_the_page(made: object, tmp_path: Path) -> None:
    log = compile_tables([made().part], tmp_path)  # type: ignore[operator]
    assert "Float too large" not in log or made is hostile_rankings
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert made is hostile_rankings or max(too_wide, default=0) < 1  # its names cannot be broken


# --- CSV ------------------------------------------------------------------------------------------


def read(rankings: Rankings = PLANTED) -> pd.DataFrame:
    text = part_csv(rankings.part)
    assert "nan" not in text
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


def test_every_number_is_one_row() -> None:
    table = read()
    assert len(table) == len(PLANTED.rows.rows)
    rows = table.query("analysis == 'system'").set_index(["task", "ranker", "system", "statistic"])
    for r in PLANTED.rankings:
        for system, score in r.scores.items():
            at = rows.sort_index().loc[(r.task, r.ranker, system)]
            assert tuple(at.loc["score", ["value", "low", "high"]]) == (
                score.value, score.low, score.high,
            )  # fmt: skip
            assert at.loc["place", "value"] == r.places[system].value
            assert at.loc["average_rank", "group"] == r.groups[system]
    assert set(rows["system_kind"]) == {"gold", "model", "control"}


def test_undefined_is_empty_with_a_reason() -> None:
    table = read(bare_rankings())
    undefined = table[(table["analysis"] == "ranking") & table["value"].isna()]
    assert set(undefined["statistic"]) == {"chi_square", "p", "critical_difference",
                                           "controls_below"}  # fmt: skip
    assert undefined["reason"].notna().all()


# --- the terminal ---------------------------------------------------------------------------------


def printed(rankings: Rankings, width: int = 120) -> str:
    out = io.StringIO()
    print_parts([rankings.part], Console(file=out, width=width, color_system=None))
    return out.getvalue()


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [80, 200])
def test_the_terminal_shows_words_grids_and_scores(width: int) -> None:
    text = printed(PLANTED, width)
    assert max(map(len, text.split("\n"))) <= width
    assert "…" not in text
    assert "expert-trained: misled by label-only (above 2 of 3 arguments)." in unwrapped(text)
    for title in ("Who helps most, Claims about health: with", "Scores, Statements about trials",
                  "Average score over real arguments"):  # fmt: skip
        assert title in unwrapped(text)
    assert all(ranker.split("/")[0] in text for ranker in RANKERS)


def test_caveats_come_last() -> None:
    text = printed(PLANTED)
    assert text.index("Whose arguments help") < text.index(f"! {NOTES[0]}")
    assert NO_RANKINGS in printed(NOTHING)


# --- figures --------------------------------------------------------------------------------------


def draw(rankings: Rankings) -> Any:
    task = rankings.tasks[0]
    return draw_medals(rankings.of(task.name), task, system_colours(rankings.tasks))


def test_every_task_has_a_figure() -> None:
    paper = paper_rankings()
    found = drawn(figures_of([replace(paper, tasks=paper.tasks[1:]).part]))
    assert list(found) == ["medals_misinformation", "medals_nli"]
    assert found["medals_nli"]["svg"].startswith(b"<?xml")


def test_each_place_is_a_box_in_its_system_s_colour_with_its_name() -> None:
    figure = draw(PLANTED)
    colours = system_colours(PLANTED.tasks)
    assert len(figure.axes) == 2
    for axes in figure.axes:
        boxes = [p for p in axes.patches if isinstance(p, Rectangle)]
        assert len(boxes) == len(axes.texts)
        for box, text in zip(boxes, axes.texts, strict=True):
            name = text.get_text().split("\n")[0]
            hexed = "#" + "".join(f"{round(255 * c):02x}" for c in box.get_facecolor()[:3])
            assert hexed == colours[name]
            dashed = box.get_linestyle() not in ("solid", "-")
            assert dashed == (colours[name] in CONTROL_COLOURS)
    below = figure.axes[1]
    fooled = [t.get_text() for t in below.texts if "above" in t.get_text()]
    assert fooled == ["label-only\n▲ above 2"]
    assert [t.get_text() for t in below.get_yticklabels()][:2] == ["baseline", "expert-trained"]


def test_the_boxes_of_a_column_do_not_overlap() -> None:
    for rankings in (PLANTED, large_rankings()):
        for axes in draw(rankings).axes:
            boxes = sorted((p.get_x(), p.get_y(), p.get_y() + p.get_height())
                           for p in axes.patches)  # fmt: skip
            assert all(a[2] <= b[1] for a, b in pairwise(boxes) if a[0] == b[0])
            assert axes.get_ylim()[0] >= max(bottom for _, _, bottom in boxes)


def test_a_system_has_one_colour() -> None:
    every = (*ARGUMENT_COLOURS, *CONTROL_COLOURS)
    assert len(set(every)) == len(every)
    colours = system_colours(large_rankings().tasks)
    assert len(set(colours.values())) == len(colours) == 12


def test_hostile_names_are_drawn_and_file_names_are_plain() -> None:
    made = hostile_rankings()
    task = replace(made.tasks[0], name="../a b/$x")
    rows = made.rows.select(task="claims")[:200]
    rows = [replace(row, keys=row.keys | {"task": task.name}) for row in rows]
    changed = replace(made, tasks=(task,), rows=Results(tuple(rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(drawn(figures_of([changed.part]))) == ["medals_..-a-b-x"]
    assert HOSTILE in task.title


# --- the page -------------------------------------------------------------------------------------


def page(rankings: Rankings = PLANTED) -> str:
    return to_html([rankings.part], rankings.name)


def test_the_page_opens_with_words_then_grids_then_scores() -> None:
    words = Page(page()).words
    places = [
        words.index(text)
        for text in (
            "whose arguments help to decide",
            "expert-trained: misled by label-only (above 2 of 3 arguments).",
            "with the control cases",
            "Scores, Claims about health",
            "Places by score",
            "Average score over real arguments",
            "How far rankers agree",
            "Length bias",
            "Training of the evaluators",
        )
    ]
    assert places == sorted(places)


def test_a_misleading_control_case_is_told_by_colour_and_words() -> None:
    html = page(replace(PLANTED, tasks=PLANTED.tasks[:1]))
    (cell,) = re.findall(r'<td class="look-bad".*?</td>', html, re.S)
    assert "control, above 2" in "".join(Page(cell).words.split("\u200b"))


@needs_browser
def test_a_large_page_fits_a_telephone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    large = large_rankings()
    path.write_text(page(replace(large, tasks=large.tasks[:1])), encoding="utf-8")

    async def visit(tab: Tab) -> Any:
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        metrics = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        await tab.call("Emulation.setDeviceMetricsOverride", **metrics)
        return await tab.value("document.documentElement.scrollWidth <= innerWidth")

    assert browse(path, tmp_path, visit)
