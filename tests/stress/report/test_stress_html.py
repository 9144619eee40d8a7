from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from page_reader import Page
from stress_report_case import HOSTILE, JUDGES, alone, hostile_stress, make_stress

from judgebench.align import Alignment
from judgebench.records import Estimate
from judgebench.report.old.contents import NO_LABELS
from judgebench.report.old.html import to_html
from judgebench.report.words import printable
from judgebench.stress.report.html import MOST_MISSES, STATIC_MISSES, stress_section

STRESS = make_stress()


def bare(text: str) -> str:
    return "".join(printable(text).split())


def test_every_element_is_closed_and_ids_are_unique(alignment: Alignment) -> None:
    for stress in (STRESS, hostile_stress()):
        page = Page(to_html(alignment, stress))
        assert page.open == []
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert {a["href"] for tag, a in page.elements if tag == "a"} <= {f"#{i}" for i in ids}


def test_without_a_stress_result_the_page_holds_nothing_of_it(alignment: Alignment) -> None:
    html = to_html(alignment)
    assert html == to_html(alignment, None)
    assert "stress" not in html.lower()
    assert "miss-items" not in html
    assert "--b9" not in html


def test_the_alignment_part_stays_as_it_is_beside_a_stress_test(realistic: Alignment) -> None:
    plain, both = to_html(realistic), to_html(realistic, STRESS)
    start, end = '<section id="summary">', '<script type="application/json" id="data">'
    assert plain[plain.index(start) : plain.index(end)] in both
    assert both.index('id="caveats"') < both.index('<section id="stress"') < both.index(start)


def test_without_human_labels_one_line_takes_the_place_of_the_alignment() -> None:
    page = Page(to_html(alone(), STRESS))
    assert NO_LABELS in page.words
    ids = {attrs.get("id") for _, attrs in page.elements}
    assert {"stress", "misses", "summary", "alignment", "judges"} <= ids
    assert not ids & {"confusions", "labels", "annotators", "disagreements", "items", "data"}
    assert page.open == []


def test_no_request_leaves_the_page_and_one_script_may_run() -> None:
    page = Page(to_html(alone(), hostile_stress()))
    for tag, attrs in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "svg")
        assert not set(attrs) & {"src", "srcset", "action", "background", "ping"}
        assert not any(name.startswith("on") for name in attrs)
    kinds = [attrs.get("type") for tag, attrs in page.elements if tag == "script"]
    assert kinds == ["application/json", None]
    assert not any(
        word in page.scripts[-1] for word in ("fetch", "innerHTML", "eval", "document.write")
    )


def test_hostile_text_of_a_miss_is_shown_as_it_is() -> None:
    stress = hostile_stress()
    page = Page(to_html(alone(), stress))
    words = bare("".join(page.text))
    item = stress.misses[0].item
    for text in (
        item.text, item.parent.text, item.parent.question, item.item_id, item.false_claim,
        item.true_claim, item.why_plausible, item.source, *stress.judges, *stress.notes,
        stress.recipes[0].about,
    ):  # fmt: skip
        assert bare(text) in words
    assert words.count(bare(HOSTILE)) > 100


def test_the_first_misses_are_in_the_page_and_the_others_in_its_data() -> None:
    for stress in (STRESS, hostile_stress()):
        page = Page(to_html(alone(), stress))
        cards = [
            a for tag, a in page.elements if tag == "details" and a.get("class") == "item miss"
        ]
        assert len(cards) == STATIC_MISSES
        assert not set(page.scripts[0]) & set("<>&")
        rest = json.loads(page.scripts[0])
        later = stress.misses[STATIC_MISSES:]
        assert len(rest) == len(later) > 0
        for shown, miss in zip(rest, later, strict=True):
            assert "".join(text for _, text in shown["altered"]) == miss.item.text
            assert (shown["id"], shown["question"]) == (
                miss.item.item_id, miss.item.parent.question,
            )  # fmt: skip
        assert "holds the first 23 of 31" in page.words


def test_a_very_long_list_of_misses_is_cut() -> None:
    section = stress_section(replace(STRESS, misses=STRESS.misses[:1] * (MOST_MISSES + 5)))
    assert section["n_shown"] == MOST_MISSES
    assert len(json.loads(section["more_misses"])) == MOST_MISSES - STATIC_MISSES


def test_changed_spans_are_marked_on_both_sides() -> None:
    html = to_html(alone(), STRESS)
    assert "caused by a <del>virus</del>. Drink" in html
    assert "caused by a <ins>bacterium</ins>. Drink" in html
    assert "Antibiotics <del>do not help</del> here" in html


@given(st.none() | st.floats(0, 1))
def test_the_darker_the_worse_and_controls_in_grey(value: float | None) -> None:
    planted = tuple(replace(p, success=Estimate(value, reason="few")) for p in STRESS.planted)
    block = stress_section(replace(STRESS, planted=planted, detections=(), invariances=()))["heat"]
    for row in block[0]["heat"]:
        kinds = zip(row[2:], block[0]["kinds"][2:], strict=True)
        for colour, kind in kinds:
            if value is None:
                assert colour == "none"
            else:
                assert colour[0] == ("g" if kind == "control" else "b")
                assert int(colour[1:]) == min(9, int(10 * value))
    assert block[0]["kinds"][2:].count("control") == list(JUDGES.values()).count("control")


def test_a_part_may_be_missing() -> None:
    for gone in ("recipes", "detections", "invariances", "planted", "consistency", "halo",
                 "misses", "notes"):  # fmt: skip
        page = Page(to_html(alone(), replace(STRESS, **{gone: ()})))
        assert page.open == []
    assert 'id="misses"' not in to_html(alone(), replace(STRESS, misses=()))
