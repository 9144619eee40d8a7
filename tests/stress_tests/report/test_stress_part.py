"""What is shown of a stress test, in every format."""

from __future__ import annotations

import json
from dataclasses import replace

from page_reader import Page
from stress_report_case import HOSTILE, JUDGES, hostile_stress, make_stress, without

from judgebench.results.html import to_html
from judgebench.results.part import HeatMap
from judgebench.words import printable

STRESS = make_stress()


def bare(text: str) -> str:
    return "".join(printable(text).split())


def test_a_heat_map_for_flips_misses_and_planted_verdicts_with_controls_in_grey() -> None:
    found = [figure for block in STRESS.part.blocks for figure in block.figures]
    assert [heat.key for heat in found] == [
        "stress_flips-heat", "stress_missed-heat", "stress_planted-heat",
    ]  # fmt: skip
    for heat in found:
        assert isinstance(heat, HeatMap)
        assert heat.scale == "bad"
        assert len(heat.kinds) == len(heat.table.columns)
        assert heat.kinds.count("control") == list(JUDGES.values()).count("control")
        assert heat.kinds[-2:] == ("control", "control")


def test_a_stress_test_that_asked_nothing_has_no_figure() -> None:
    nothing = without(STRESS, "violations", "invariance", "planted")
    assert not [figure for block in nothing.part.blocks for figure in block.figures]


def test_every_miss_is_a_card_with_its_changed_spans_marked() -> None:
    (cards,) = [block.cards for block in STRESS.part.blocks if block.cards]
    assert len(cards) == len(STRESS.misses)
    texts = dict(cards[0].texts)
    assert ("del", "virus") in texts["Sound parent"]
    assert ("ins", "bacterium") in texts["Altered answer"]
    without_any = replace(STRESS, misses=(), n_misses=0)
    assert not [block for block in without_any.part.blocks if block.cards]


def test_hostile_text_is_shown_as_it_is() -> None:
    stress = hostile_stress()
    page = Page(to_html([stress.part], "stressed"))
    assert page.open == []
    words = bare("".join(page.text))
    for text in (*stress.judges, *stress.notes, stress.recipes[0].name):
        assert bare(text) in words
    assert words.count(bare(HOSTILE)) > 100
    data = next(s for s in page.scripts if s.lstrip().startswith("{"))
    assert not set(data) & set("<>&")
    texts = dict(json.loads(data)["cards"][0]["texts"])
    item = stress.misses[0].item
    assert "".join(text for _, text in texts["Altered answer"]) == item.text
