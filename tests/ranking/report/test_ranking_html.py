from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from browser import Tab, browse, needs_browser
from page_reader import Page
from ranking_case import (
    bare_rankings,
    hostile_rankings,
    large_rankings,
    paper_rankings,
    planted_rankings,
)
from stress_report_case import HOSTILE, alone

from judgebench.align import Alignment
from judgebench.ranking.report.tables import all_ranking_tables
from judgebench.ranking.result import Rankings
from judgebench.report.old.html import to_html
from judgebench.report.words import printable

PLANTED = planted_rankings()


def page(rankings: Rankings = PLANTED) -> str:
    return to_html(alone(), None, None, rankings)


def test_every_element_is_closed_ids_are_unique_and_links_lead_somewhere(tiny: Alignment) -> None:
    for made in (PLANTED, paper_rankings(), hostile_rankings(), bare_rankings()):
        for html in [page(made), *([to_html(tiny, None, None, made)] if made is PLANTED else [])]:
            read = Page(html)
            assert read.open == []
            ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
            assert len(ids) == len(set(ids))
            assert {a["href"] for tag, a in read.elements if tag == "a"} <= {f"#{i}" for i in ids}


def test_the_page_opens_with_words_then_grids_then_scores() -> None:
    words = Page(page()).words
    assert "alone: whose arguments help to decide?" in words
    places = [
        words.index(text)
        for text in (
            "expert-trained: misled by label-only (above 2 of 3 arguments).",
            "Real arguments only",
            "With the control cases",
            "Scores, Claims about health",
            "Places by score",
            "Average score over real arguments",
            "How far rankers agree",
            "Length bias",
            "Training of the evaluators",
        )
    ]
    assert places == sorted(places)
    assert "There are no human labels" not in words
    assert "0 answers" not in words


def test_a_misleading_control_case_is_told_by_colour_sign_and_words() -> None:
    html = page(replace(PLANTED, tasks=PLANTED.tasks[:1]))
    assert html.count('<span class="system above">') == 1
    place = html.index('<span class="system above">')
    cell = Page(html[place : html.index("</td>", place)]).words
    assert cell.split() == ["label-", "only", "▲", "control,", "above", "2", "arguments"]


def test_every_table_is_on_the_page_and_the_best_numbers_are_bold() -> None:
    words, html = Page(page()).words, page()
    for table in all_ranking_tables(PLANTED):
        assert table.title in words or table.key.startswith(("ranking_medals", "ranking_controls"))
    assert '<span class="value best">0.900</span>' in html


def test_no_request_leaves_the_page_and_one_script_may_run() -> None:
    read = Page(page(hostile_rankings()))
    for tag, attrs in read.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "use", "svg")
        assert not set(attrs) & {"src", "srcset", "action", "background", "style"}
        assert not any(name.startswith("on") for name in attrs)
    kinds = [attrs.get("type") for tag, attrs in read.elements if tag == "script"]
    assert kinds.count(None) == 1
    shown = "".join(read.words.split())
    assert "".join(printable(HOSTILE).split()) in shown


def test_without_rankings_the_page_holds_nothing_of_them(tiny: Alignment) -> None:
    html = to_html(tiny)
    assert html == to_html(tiny, None, None, None)
    for word in ("medals", "--fooled", 'id="rankings"', "swatch"):
        assert word not in html


def test_the_other_parts_stay_as_they_are_beside_the_rankings(tiny: Alignment) -> None:
    plain, both = to_html(tiny), to_html(tiny, None, None, PLANTED)
    start, end = '<section id="summary">', "</main>"
    assert plain[plain.index(start) : plain.index(end)] in both


def test_empty_parts_leave_no_empty_headings() -> None:
    html = page(bare_rankings())
    assert "With the control cases" not in html
    assert "Do rankers agree?" not in html
    assert "Biases" not in html
    nothing = Page(page(replace(bare_rankings(), rankings=()))).words
    assert "Nothing was ranked." in nothing


@needs_browser
def test_no_text_runs_in_a_browser_and_nothing_is_fetched(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(hostile_rankings()), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        return await tab.value("document.title"), tab.requests(), tab.complaints()

    title, requests, complaints = browse(path, tmp_path, visit)
    assert title == "alone: whose arguments help to decide?"
    assert [url.rsplit("/", 1)[1] for url in requests] == ["report.html"]
    assert complaints == []


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
