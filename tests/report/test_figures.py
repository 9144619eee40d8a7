from __future__ import annotations

import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import get_args

import pytest
from part_case import UNDEFINED, hostile_part, make_part

from judgebench.report.figure import described, drawn
from judgebench.results.part import HeatMap, Intervals, Scale, figures_of
from judgebench.results.tables import Cell

SIGNATURES = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


def test_every_figure_comes_in_every_format() -> None:
    found = drawn(figures_of([make_part("alignment"), make_part("stress")]))
    assert list(found) == [
        f"{key}_{name}" for key in ("alignment", "stress") for name in ("heat", "lanes", "drawing")
    ]
    for saved in found.values():
        assert {kind: content[: len(SIGNATURES[kind])] for kind, content in saved.items()} == (
            SIGNATURES
        )


def test_hostile_names_are_drawn_as_text_and_file_names_are_plain() -> None:
    part = hostile_part("=a/../b <c>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = drawn(figures_of([part]))
    for name, saved in found.items():
        assert not set(name) & set("/\\<>|'\" $&=")
        root = ET.fromstring(saved["svg"])
        assert not {element.tag.split("}")[1] for element in root.iter()} & {"script", "img", "a"}


@pytest.mark.parametrize("scale", get_args(Scale))
def test_a_heat_map_prints_every_number_whatever_its_scale(scale: Scale) -> None:
    (heat, *_) = figures_of([make_part()])
    assert isinstance(heat, HeatMap)
    svg = drawn([replace(heat, scale=scale)])["alignment_heat"]["svg"].decode()
    for text in ("0.50", "[0.40, 0.60]", "0.25", "–", "judge-1", "n = 10"):
        assert text in svg


def test_a_heat_map_of_undefined_numbers_and_lanes_of_none_are_no_error() -> None:
    heat, lanes, _ = figures_of([make_part()])
    assert isinstance(heat, HeatMap)
    assert isinstance(lanes, Intervals)
    nothing = replace(
        heat.table, rows=((Cell("x"), *(Cell(estimate=UNDEFINED) for _ in range(3))),)
    )
    assert drawn([replace(heat, table=nothing), replace(lanes, lines=(("x", ()),))])


def test_intervals_name_each_lane_and_each_bound() -> None:
    _, lanes, _ = figures_of([make_part()])
    svg = drawn([lanes])["alignment_lanes"]["svg"].decode()
    for text in ("judge-1", "a control", "humans", "at least judge-1", "Accuracy"):
        assert text in svg
    assert "judge-1 0.500, a control –, humans 0.900" in described(lanes)


def test_two_figures_of_one_key_have_two_files_and_the_same_figure_the_same_file() -> None:
    _, _, drawing = figures_of([make_part()])
    found = drawn([drawing, drawing])
    assert len(found) == 2
    assert found["alignment_drawing"] == next(iter(drawn([drawing]).values()))


def test_pyplot_is_left_alone() -> None:
    """No figure is registered anywhere, and the user's backend stays what it was."""
    code = "import sys, judgebench.report.write; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    from matplotlib import pyplot

    drawn(figures_of([make_part()]))
    assert pyplot.get_fignums() == []
