"""The rankings in Markdown, LaTeX, CSV, the terminal and the figures."""

import io
import re
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from latex_case import compile_tables, needs_latex
from matplotlib.patches import Rectangle
from ranking_case import (
    HOSTILE,
    bare_rankings,
    hostile_rankings,
    paper_rankings,
    planted_rankings,
)

from judgebench.ranking.rankers import Rankings
from judgebench.ranking.report import NO_RANKINGS
from judgebench.ranking.suitability import (
    ARGUMENT_COLOURS,
    CONTROL_COLOURS,
    draw_medals,
    system_colours,
)
from judgebench.records import Results
from judgebench.results.blocks import figures_of
from judgebench.results.documents import part_csv, to_markdown
from judgebench.results.figures import drawn

PLANTED = planted_rankings()
NOTHING = replace(bare_rankings(), rows=Results())


def markdown(rankings: Rankings = PLANTED) -> str:
    return to_markdown([rankings.part], rankings.name)


def test_where_nothing_was_ranked_one_sentence_says_so() -> None:
    assert NO_RANKINGS in markdown(NOTHING)
    assert list(figures_of([NOTHING.part])) == []


@needs_latex
@pytest.mark.parametrize("made", [paper_rankings, planted_rankings, hostile_rankings])
def test_the_tables_compile_and_fit_the_page(made: object, tmp_path: Path) -> None:
    log = compile_tables([made().part], tmp_path)  # type: ignore[operator]
    assert "Float too large" not in log or made is hostile_rankings
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert made is hostile_rankings or max(too_wide, default=0) < 1  # its names cannot be broken


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
    (axes,) = figure.axes
    boxes = [p for p in axes.patches if isinstance(p, Rectangle)]
    assert len(boxes) == len(axes.texts)
    for box, text in zip(boxes, axes.texts, strict=True):
        name = text.get_text().split("\n")[0]
        hexed = "#" + "".join(f"{round(255 * c):02x}" for c in box.get_facecolor()[:3])
        assert hexed == colours[name]
        dashed = box.get_linestyle() not in ("solid", "-")
        assert dashed == (colours[name] in CONTROL_COLOURS)
    fooled = [t.get_text() for t in axes.texts if "above" in t.get_text()]
    assert fooled == ["label-only\n▲ above 2"]
    assert [t.get_text() for t in axes.get_yticklabels()][:2] == ["baseline", "expert-trained"]


def test_the_boxes_of_a_column_do_not_overlap() -> None:
    for rankings in (PLANTED, paper_rankings()):
        for axes in draw(rankings).axes:
            boxes = sorted((p.get_x(), p.get_y(), p.get_y() + p.get_height())
                           for p in axes.patches)  # fmt: skip
            assert all(a[2] <= b[1] for a, b in pairwise(boxes) if a[0] == b[0])
            assert axes.get_ylim()[0] >= max(bottom for _, _, bottom in boxes)


def test_a_system_has_one_colour() -> None:
    every = (*ARGUMENT_COLOURS, *CONTROL_COLOURS)
    assert len(set(every)) == len(every)
    colours = system_colours(PLANTED.tasks)
    assert len(set(colours.values())) == len(colours) == 7


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
