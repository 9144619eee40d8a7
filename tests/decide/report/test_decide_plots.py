from __future__ import annotations

import warnings
from dataclasses import replace

from decide_report_case import HOSTILE, JUDGES, hostile_decisions, make_decisions
from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch

from judgebench.decide.report.plots import draw_decisions, draw_matrix

DECIDED = make_decisions()


def test_the_matrix_comes_in_every_format_and_is_drawn_the_same_again() -> None:
    bare = replace(DECIDED, curves=())
    found = dict(draw_decisions(bare))
    assert found["decisions.png"].startswith(b"\x89PNG")
    assert found["decisions.pdf"].startswith(b"%PDF")
    assert len(found) == 2
    assert found == dict(draw_decisions(bare))


def test_every_outcome_is_written_in_its_cell_on_its_own_colour() -> None:
    (axes,) = draw_matrix(DECIDED).axes
    words = {text.get_position(): text.get_text() for text in axes.texts}
    found = {(d.judge, d.metric): d.outcome.value for d in DECIDED.decisions}
    assert words == {
        (j, i): found[judge, metric.id]
        for i, metric in enumerate(DECIDED.rubric.metrics)
        for j, judge in enumerate(JUDGES)
    }
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    shown = {(text.get_text(), to_hex(box.get_facecolor()))
             for text, box in zip(axes.texts, boxes, strict=True)}  # fmt: skip
    assert len(shown) == len(dict(shown)) == 4


def test_hostile_names_and_gaps_are_drawn() -> None:
    hostile = hostile_decisions()
    gap = replace(hostile, decisions=hostile.decisions[1:], curves=())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(dict(draw_decisions(gap))) == 2
    (axes,) = draw_matrix(gap).axes
    assert axes.texts[0].get_text() == "–"
    assert "$x_1$" in HOSTILE


def test_where_nothing_was_decided_there_is_no_figure() -> None:
    assert list(draw_decisions(replace(DECIDED, decisions=(), curves=()))) == []
