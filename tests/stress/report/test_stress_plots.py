from __future__ import annotations

import warnings
from dataclasses import replace

from matplotlib.image import AxesImage
from stress_report_case import make_stress

from judgebench.records import Estimate
from judgebench.stress.report.plots import draw_heat_map, draw_stress
from judgebench.stress.report.tables import heat_tables

STRESS = make_stress()


def test_the_heat_map_comes_in_every_format() -> None:
    found = dict(draw_stress(STRESS))
    assert found["stress_heat_map.png"].startswith(b"\x89PNG")
    assert found["stress_heat_map.pdf"].startswith(b"%PDF")
    assert len(found) == 2
    assert found == dict(draw_stress(STRESS))


def test_every_number_of_the_three_blocks_is_printed_in_its_cell() -> None:
    figure = draw_heat_map(STRESS)
    tables = heat_tables(STRESS)
    assert len(figure.axes) == len(tables) == 3
    for axes, table in zip(figure.axes, tables, strict=True):
        texts = {text.get_position(): text.get_text() for text in axes.texts}
        for i, row in enumerate(table.rows):
            for j, cell in enumerate(row[table.stubs :]):
                assert cell.estimate is not None
                assert texts[j, i - 0.12] == f"{cell.estimate.value:.2f}"
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert [name.split("\n")[0] for name in names] == [row[0].text for row in table.rows]


def test_controls_are_grey_and_judges_are_not() -> None:
    for axes in draw_heat_map(STRESS).axes:
        judges, controls = (x for x in axes.get_children() if isinstance(x, AxesImage))
        assert judges.get_array().mask[:, -2:].all()
        assert controls.get_array().mask[:, :-2].all()
        greys = controls.cmap(controls.norm(controls.get_array()[:, -2:]))
        assert (greys[..., 0] == greys[..., 1]).all()
        assert (greys[..., 1] == greys[..., 2]).all()


def test_undefined_numbers_and_hostile_names_are_drawn() -> None:
    hostile = "$x_1$ </script> {{ 7*7 }} 中"
    judges = {hostile if name == "smollm2-135m" else name: k for name, k in STRESS.judges.items()}
    planted = tuple(
        replace(p, judge=hostile, success=Estimate(None, reason="none"))
        if p.judge == "smollm2-135m" else p
        for p in STRESS.planted
    )  # fmt: skip
    changed = replace(STRESS, judges=judges, planted=planted, invariances=())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dict(draw_stress(changed))
    assert len(found) == 2
    shown = [text.get_text() for text in draw_heat_map(changed).axes[-1].texts]
    assert shown.count("–") == 3


def test_a_stress_test_that_asked_nothing_has_no_figure() -> None:
    nothing = replace(STRESS, detections=(), invariances=(), planted=())
    assert list(draw_stress(nothing)) == []
