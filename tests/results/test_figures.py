import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from part_case import UNDEFINED, hostile_part, make_part

from judgebench.alignment import Alignment
from judgebench.errors import MissingExtra
from judgebench.results.figure import (
    EVERY_FORMAT,
    described,
    draw_heat_map,
    draw_intervals,
    drawn,
    fonts_for,
    ink_on,
)
from judgebench.results.part import HeatMap, Intervals, Scale, figures_of
from judgebench.results.tables import Cell
from judgebench.results.write import write_report

SIGNATURES = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


def test_every_figure_comes_in_every_format() -> None:
    found = drawn(figures_of([make_part("alignment"), make_part("stress")]), EVERY_FORMAT)
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
    assert "judge-1 0.500 [0.400, 0.600], a control –, humans 0.900" in described(lanes)


def test_two_figures_of_one_key_have_two_files_and_the_same_figure_the_same_file() -> None:
    _, _, drawing = figures_of([make_part()])
    found = drawn([drawing, drawing])
    assert len(found) == 2
    assert found["alignment_drawing"] == next(iter(drawn([drawing]).values()))


@pytest.mark.long
def test_all_text_of_a_figure_has_at_least_11_pixels(alignment: Alignment) -> None:
    """An SVG is shown in its own size, where a point is 4/3 pixels."""
    for name, saved in drawn(figures_of([alignment.part, make_part("x")])).items():
        sizes = re.findall(r"font(?:-size)?: (?:\S+ )*?([\d.]+)px", saved["svg"].decode())
        assert sizes
        assert min(map(float, sizes)) * 4 / 3 >= 11, name


def test_every_figure_has_titles_on_both_axes(realistic: Alignment) -> None:
    for figure in figures_of([realistic.part]):
        if isinstance(figure, HeatMap):
            shown = draw_heat_map(figure)
        else:
            shown = draw_intervals(figure) if isinstance(figure, Intervals) else figure.draw()
        across = [shown.get_supxlabel(), *(axes.get_xlabel() for axes in shown.axes)]
        down = [shown.get_supylabel(), *(axes.get_ylabel() for axes in shown.axes)]
        assert any(across), figure.key
        assert any(down), figure.key


@given(st.tuples(*[st.floats(0, 1)] * 3))
def test_letters_stand_out_from_any_colour(colour: tuple[float, float, float]) -> None:
    def light(rgb: tuple[float, ...]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    ground, ink = light(colour), {"black": 0.0, "white": 1.0}[ink_on(colour)]
    assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) >= 4.5


@pytest.mark.parametrize("title", ["语气与礼貌程度", "الضرر المحتمل", "הטיה אפשרית"])
def test_every_script_is_drawn_or_its_lack_is_said(title: str) -> None:
    _, lanes, _ = figures_of([make_part()])
    assert isinstance(lanes, Intervals)
    saved = drawn([replace(lanes, lines=((title, lanes.lines[0][1]),))])["alignment_lanes"]
    svg = saved["svg"].decode()
    families, missing = fonts_for(set(title) - {" "})
    assert title in svg
    assert bool(missing) == ("No font on this machine has" in svg)
    assert all(f"'{family}'" in svg for family in families)
    assert all(f"U+{ord(c):04X}" in svg for c in missing[:8])


def test_pyplot_is_left_alone() -> None:
    """No figure is registered anywhere, and the user's backend stays what it was."""
    code = "import sys, judgebench.results.write; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    from matplotlib import pyplot

    before = pyplot.get_fignums()  # what other tests of this process drew for a notebook
    drawn(figures_of([make_part()]))
    assert pyplot.get_fignums() == before


def test_without_matplotlib_files_name_what_to_install_and_a_page_needs_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as where it is not installed
    figures = list(figures_of([make_part()]))
    assert write_report([make_part()], tmp_path)["html"].is_file()
    with pytest.raises(MissingExtra, match=r"\[figures\]'"):
        drawn(figures, EVERY_FORMAT)
