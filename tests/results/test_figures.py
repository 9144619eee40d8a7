import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from part_case import hostile_part, make_part

from judgebench.alignment import Alignment
from judgebench.errors import MissingExtra
from judgebench.results.blocks import Intervals, figures_of
from judgebench.results.documents import write_report
from judgebench.results.figures import draw_intervals, drawn, ink_on

SIGNATURES = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


def test_every_figure_comes_in_every_format() -> None:
    found = drawn(figures_of([make_part("alignment"), make_part("stress")]))
    assert list(found) == [
        f"{key}_{name}" for key in ("alignment", "stress") for name in ("lanes", "drawing")
    ]
    for saved in found.values():
        assert {kind: content[: len(SIGNATURES[kind])] for kind, content in saved.items()} == (
            SIGNATURES
        )


def test_hostile_names_are_drawn_as_text_and_file_names_are_plain() -> None:
    part = hostile_part("=a/../b <c>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        found = drawn(figures_of([part]))
    for name, saved in found.items():
        assert not set(name) & set("/\\<>|'\" $&=")
        root = ET.fromstring(saved["svg"])
        assert not {element.tag.split("}")[1] for element in root.iter()} & {"script", "img", "a"}


def test_intervals_name_each_lane_and_each_bound() -> None:
    lanes, _ = figures_of([make_part()])
    svg = drawn([lanes])["alignment_lanes"]["svg"].decode()
    for text in ("judge-1", "a control", "humans", "at least judge-1", "Accuracy"):
        assert text in svg


def test_two_figures_of_one_key_have_two_files_and_the_same_figure_the_same_file() -> None:
    _, drawing = figures_of([make_part()])
    found = drawn([drawing, drawing])
    assert len(found) == 2
    assert found["alignment_drawing"] == next(iter(drawn([drawing]).values()))


def test_every_figure_has_titles_on_both_axes(realistic: Alignment) -> None:
    for figure in figures_of([realistic.part]):
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


def test_pyplot_is_left_alone() -> None:
    """No figure is registered anywhere, and the user's backend stays what it was."""
    code = "import sys, judgebench.results.documents; sys.exit('matplotlib' in sys.modules)"
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
        drawn(figures)
