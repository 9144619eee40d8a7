from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

from decide_report_case import HOSTILE, JUDGES, NOTES, hostile_decisions, make_decisions
from hypothesis import given
from hypothesis import strategies as st
from page_reader import Page
from stress_report_case import alone, make_stress

from judgebench.align import Alignment
from judgebench.decide.report.bars import axes_by_key, make_bar
from judgebench.decide.report.html import OUTCOME_LOOKS, STATE_LOOKS, decide_section
from judgebench.decide.report.triage import triage_groups
from judgebench.decide.report.words import NO_DECISIONS
from judgebench.decide.result import Condition, Outcome, State, TriagePoint
from judgebench.records import Estimate
from judgebench.report.old.html import to_html
from judgebench.report.words import printable

DECIDED = make_decisions()
SHARE = st.floats(0, 1)


def bare(text: str) -> str:
    return "".join(printable(text).split())


def test_every_element_is_closed_ids_are_unique_and_links_lead_somewhere(
    tiny: Alignment, hostile: Alignment
) -> None:
    whole = to_html(tiny, make_stress(), DECIDED)
    for html in (whole, to_html(hostile, None, hostile_decisions())):
        page = Page(html)
        assert page.open == []
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert {a["href"] for tag, a in page.elements if tag == "a"} <= {f"#{i}" for i in ids}


def test_the_page_opens_with_the_decisions_then_caveats_then_evidence(
    tiny: Alignment,
) -> None:
    noted = replace(tiny, notes=("A caveat.",))
    html = to_html(noted, make_stress(), DECIDED)
    parts = ("decisions", "caveats", "evidence", "stress", "summary", "alignment")
    places = [html.index(f'id="{part}"') for part in parts]
    assert places == sorted(places)
    title = "may these judges stand in for the annotators?"
    assert f"<title>{tiny.name}: {title}</title>" in html


def test_without_decisions_the_page_holds_nothing_of_them(hostile: Alignment) -> None:
    html = to_html(hostile)
    assert html == to_html(hostile, None, None)
    for word in ("outcome", "--replace", 'id="evidence"', "<svg"):
        assert word not in html.replace("svg/onload", "")


def test_the_other_parts_stay_as_they_are_beside_the_decisions(tiny: Alignment) -> None:
    plain, both = to_html(tiny), to_html(tiny, None, DECIDED)
    start, end = '<section id="summary">', "<script>"
    assert plain[plain.index(start) : plain.index(end, plain.index("</main>"))] in both


def test_no_request_leaves_the_page_and_one_script_may_run() -> None:
    page = Page(to_html(alone(), None, hostile_decisions()))
    for tag, attrs in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "use", "image")
        assert not set(attrs) & {"src", "srcset", "action", "background", "ping", "xlink:href"}
        assert not any(name.startswith("on") for name in attrs)
        assert attrs.get("href", "#").startswith("#")
    assert sum(tag == "svg" for tag, _ in page.elements) == len(DECIDED.curves)
    kinds = [attrs.get("type") for tag, attrs in page.elements if tag == "script"]
    assert kinds.count(None) == 1


def test_hostile_text_is_shown_as_it_is() -> None:
    decisions = hostile_decisions()
    page = Page(to_html(alone(), None, decisions))
    words = bare("".join(page.text))
    first = decisions.decisions[0]
    for text in (
        *decisions.judges, first.reason, first.replace[0].title, *decisions.in_words,
        *decisions.notes, decisions.rubric.metrics[0].title, decisions.curves[0].signal,
    ):  # fmt: skip
        assert bare(text) in words
    assert words.count(bare(HOSTILE)) > 100


def test_every_decision_has_a_chip_by_colour_sign_and_word() -> None:
    page = Page(to_html(alone(), None, DECIDED))
    chips = Counter(a["class"] for _, a in page.elements if (a.get("class") or "")[:5] == "chip ")
    outcomes = Counter(d.outcome for d in DECIDED.decisions)
    for outcome, (sign, look) in OUTCOME_LOOKS.items():
        assert chips[f"chip {look}"] == 2 * outcomes[outcome] + 1  # matrix, evidence, legend
        assert page.words.count(f"{sign} {outcome.value}") == chips[f"chip {look}"]
    assert set(OUTCOME_LOOKS) == set(Outcome)
    assert set(STATE_LOOKS) == set(State)


def test_a_chip_leads_to_its_conditions_which_hold_every_number() -> None:
    section = decide_section(DECIDED)
    found = {(d.judge, d.metric): d for d in DECIDED.decisions}
    cards = zip(DECIDED.rubric.metrics, section["metrics"], section["matrix"], strict=True)
    for metric, (title, row), (_, chips) in cards:
        assert title == metric.title
        for judge, card, chip in zip(JUDGES, row, chips, strict=True):
            decision = found[judge, metric.id]
            assert (card.judge, card.chip) == (judge, chip)
            assert (chip.words, chip.reason) == (decision.outcome.value, decision.reason)
            shown = [c for demand in card.demands for _, _, c, _ in demand.conditions]
            assert shown == [*decision.replace, *decision.assist]
            assert bool(card.more) == (decision.more is not None)
    html = to_html(alone(), None, DECIDED)
    assert "No condition could be computed." in html
    assert "+0.180 [" in " ".join(re.sub(r"<[^>]*>", "", html).split())


def test_the_rule_notes_and_jury_are_told() -> None:
    words = Page(to_html(alone(), None, DECIDED)).words
    for text in (*DECIDED.in_words, *NOTES, "Gain", "No threshold is recommended"):
        assert text in words


def test_a_part_may_be_missing() -> None:
    for gone in ("decisions", "curves", "juries", "alternative_tests", "in_words", "notes"):
        page = Page(to_html(alone(), None, replace(DECIDED, **{gone: ()})))
        assert page.open == []
        assert (NO_DECISIONS in page.words) == (gone == "decisions")


KEYS = st.sampled_from(["humans_accuracy", "severe_items", "severe_recall", "failures", "unheard"])
NUMBERS = st.lists(st.floats(-2, 300), min_size=3, max_size=3).map(sorted)


@given(KEYS, NUMBERS, st.floats(-1, 40), st.booleans())
def test_a_bar_keeps_to_its_axis_and_the_right_side_begins_at_the_bound(
    key: str, numbers: list[float], bound: float, at_least: bool
) -> None:
    low, value, high = numbers
    e = Estimate(value, low, high, "m", 5)
    condition = Condition(key, "t", State.UNCLEAR, e, bound, at_least)
    decision = replace(DECIDED.decisions[0], replace=(condition,), assist=())
    axes = axes_by_key(replace(DECIDED, decisions=(decision,)))
    bar = make_bar(condition, axes[key])
    assert bar.low is not None
    assert bar.at is not None
    assert bar.high is not None
    assert 0 <= bar.low <= bar.at <= bar.high <= 100
    assert 0 <= bar.bound <= 100
    edges = (bar.right, bar.right + bar.span)
    assert edges == ((bar.bound, 100) if at_least else (0, bar.bound))
    assert bar.beyond == (value > axes[key][1])


def test_bars_of_one_kind_share_an_axis_that_holds_all_of_them() -> None:
    axes = axes_by_key(DECIDED)
    for decision in DECIDED.decisions:
        for c in (*decision.replace, *decision.assist):
            bar = make_bar(c, axes[c.key])
            assert bar.beyond == (c.key == "severe_items" and (c.estimate.value or 0) > 40)
    assert axes["humans_accuracy"] == (-1.0, 1.0)
    assert axes["severe_items"] == (0.0, 40.0)
    assert axes["severe_recall"] == (0.0, 1.0)


@given(st.lists(st.tuples(SHARE, SHARE, SHARE), max_size=8))
def test_a_curve_is_steps_inside_its_frame(drawn: list[tuple[float, float, float]]) -> None:
    points = tuple(
        TriagePoint(0.5, Estimate(sent), Estimate(caught, caught / 2, (1 + caught) / 2, "m", n=9))
        for sent, caught, _ in drawn
    )
    undefined = TriagePoint(1.0, Estimate(None, reason="none"), Estimate(None, reason="none"))
    curve = replace(DECIDED.curves[0], points=(undefined, *points))
    ((_, (picture,)),) = triage_groups(replace(DECIDED, curves=(curve,)))
    places = [tuple(map(float, pair.split(","))) for pair in picture.line.split()]
    assert len(places) == max(0, 2 * len(points) - 1)
    assert all(0 <= number <= 100 for place in places for number in place)
    for (x, y), (later_x, later_y) in pairwise(places):
        assert later_x >= x
        assert later_x == x or later_y == y
    assert len(picture.band.split()) == 2 * len(places)


def test_the_recommended_point_stands_where_it_sends_and_catches() -> None:
    ((_, (picture,)),) = triage_groups(replace(DECIDED, curves=DECIDED.curves[:1]))
    choice = DECIDED.curves[0].choice
    assert choice is not None
    assert choice.sent.value is not None
    assert choice.missed.value is not None
    assert picture.choice is not None
    assert abs(picture.choice.x - 100 * choice.sent.value) < 0.06
    assert abs(picture.choice.y - 100 * choice.missed.value) < 0.06
    assert picture.target == (50.0, 10.0)
    unknown = replace(choice, missed=Estimate(None, reason="no severe answer"))
    curve = replace(DECIDED.curves[0], choice=unknown)
    ((_, (picture,)),) = triage_groups(replace(DECIDED, curves=(curve,)))
    assert picture.choice is None
