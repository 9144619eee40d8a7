import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from page_reader import Page
from part_case import estimate, hostile_part, make_part

from judgebench.alignment import Alignment
from judgebench.records import Estimate, Results
from judgebench.results.blocks import (
    MISSES,
    UNDERSTOOD,
    Block,
    Card,
    DecisionSummary,
    ReportSection,
    margin_words,
)
from judgebench.results.documents import Provenance, fragment, to_html
from judgebench.results.tables import CellTone
from judgebench.text import printable

HOSTILE_NAME = "x</title><script>document.title='pwned'</script>"


def page_of(*parts: ReportSection, name: str = "study") -> str:
    return to_html(parts, name)


@cache
def plain() -> str:
    return page_of(make_part(), make_part("stress"))


@cache
def hostile() -> str:
    return page_of(hostile_part(), hostile_part("stress"), name=HOSTILE_NAME)


def test_every_element_is_closed_and_ids_are_unique() -> None:
    for html in (plain(), hostile()):
        page = Page(html)
        assert page.open == []
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        links = {attrs["href"] for tag, attrs in page.elements if tag == "a"}
        assert links <= {f"#{i}" for i in ids}


def test_nothing_is_asked_of_anybody() -> None:
    for html in (plain(), hostile()):
        page = Page(html)
        for tag, attrs in page.elements:
            assert tag not in ("link", "iframe", "object", "embed", "base")
            assert not set(attrs) & {"srcset", "action", "background", "ping"}
            assert "src" not in attrs
            assert (attrs.get("href") or "#").startswith("#")
            assert not any(name.startswith("on") for name in attrs)
        style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
        assert style
        assert "url(" not in style[1]
        assert "@import" not in style[1]
        used = r"\b(fetch|XMLHttpRequest|import|innerHTML|eval|write)\b"
        assert not re.search(used, page.scripts[-1])


def test_the_policy_lets_only_the_one_script_run() -> None:
    page = Page(hostile())
    policy = next(a["content"] for t, a in page.elements if "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    kinds = [attrs.get("type") for tag, attrs in page.elements if tag == "script"]
    assert kinds == ["application/json", "application/json", None]


def test_hostile_text_is_shown_as_it_is() -> None:
    words = "".join("".join(Page(hostile()).text).split())
    part = hostile_part()
    (table,) = part.blocks[1].tables
    for text in (HOSTILE_NAME, *part.notes, *table.columns, *table.notes):
        assert "".join(printable(text).split()) in words


def test_whoever_uses_no_eyes_or_no_mouse_is_served() -> None:
    page = Page(plain())
    assert ("html", {"lang": "en"}) in page.elements
    plots = [attrs for tag, attrs in page.elements if tag == "svg" and attrs.get("class") == "lane"]
    assert len(plots) == 6
    assert all(attrs["aria-label"] for attrs in plots)
    assert any("judge-1: 0.500" in (attrs["aria-label"] or "") for attrs in plots)
    scopes = {attrs.get("scope") for tag, attrs in page.elements if tag == "th"}
    assert scopes == {"col", "row", "rowgroup"}
    scrolled = [a for t, a in page.elements if t == "div" and a.get("class") == "wide"]
    assert scrolled
    assert all(a["tabindex"] == "0" and a["role"] == "region" and a["aria-label"] for a in scrolled)
    assert page.elements.count(("p", {
        "id": "detail", "class": "detail", "aria-live": "polite", "hidden": None,
    })) == 1  # fmt: skip


def test_what_a_number_rests_on_is_a_touch_away_and_under_its_table() -> None:
    page = Page(plain())
    tips = [attrs["title"] or "" for tag, attrs in page.elements if "title" in attrs]
    assert "n = 10, 0 missing; 95 % interval: bootstrap" in tips
    assert "undefined: no item has a reference label; n = 3, 1 missing" in tips
    assert "undefined: no item has a reference label" in page.words
    assert "0.500" in page.words
    assert "[0.400, 0.600]" in page.words


def test_what_leads_comes_first_then_each_caveat_once_then_the_others() -> None:
    words = Page(plain()).words
    assert words.count("Read this.") == 1
    order = [words.index(text) for text in ("0.500", "Read this.", "One sentence.")]
    assert order == sorted(order)
    assert "No rows" not in plain()
    assert "<details><summary>Folded</summary>" in plain()


def test_how_tables_were_read_stands_apart_from_the_caveats() -> None:
    page = page_of(replace(make_part(), notes=("Read this.", f"{UNDERSTOOD}a.csv: judge m.")))
    caveats, heading, read = page.partition("<h3>How the tables were read</h3>")
    assert "– 1 caveat<" in caveats
    assert heading
    assert read.startswith('<ul class="said"><li>a.csv: judge m.</li></ul>')


def test_all_but_what_the_page_is_about_is_folded_under_the_question_that_it_answers() -> None:
    part = make_part()
    asked = replace(part, blocks=tuple(replace(b, asks="wrong") for b in part.blocks if not b.lead))
    page = page_of(replace(part, blocks=(*part.blocks[1:2],)), asked)
    before, _, after = page.partition("<h2>Where does it go wrong?</h2>")
    assert "Scores of judge-1" in before
    assert '<details class="fold"><summary>Figures</summary>' in after
    assert "<h2>What if?</h2>" not in page


def test_cards_survive_as_json() -> None:
    page = Page(hostile())
    data = json.loads(page.scripts[0])
    assert not set(page.scripts[0]) & set("<>&")
    assert page.scripts[0].isascii()
    cards = hostile_part().blocks[-1].cards
    assert [card["title"] for card in data["cards"]] == [card.title for card in cards]
    first, shown = cards[1], data["cards"][1]
    assert shown["texts"][0] == ["Question", [["", first.texts[0][1]]]]
    assert shown["texts"][1][1] == [list(one) for one in first.texts[1][1]]
    assert shown["folded"][0][1] == [["", first.folded[0][1]]]
    assert shown["facets"] == [dict(facet) for facet in first.facets]
    assert dict(data["facets"])["Metric"] == ["tone", "harm"]
    assert shown["grid"]["columns"] == list(first.grid.columns)


@given(st.text(alphabet="</script>!-& \u2028\u2029\ud800\x00\"'\\é", max_size=40))
def test_no_text_ends_the_script_element(text: str) -> None:
    part = ReportSection(
        "x", "x", Results(), (Block("Cards", cards=(Card("c", texts=(("t", text),)),)),)
    )
    page = Page(to_html([part], "x"))
    assert not set(page.scripts[0]) & set("<>&\u2028\u2029")
    assert json.loads(page.scripts[0])["cards"][0]["texts"][0][1] == [["", text]]


def test_a_notebook_shows_a_table_without_a_page(tiny: Alignment) -> None:
    shown = fragment(hostile_part())
    assert Page(shown).open == []
    assert "<script>document" not in shown
    assert "<table>" in tiny._repr_html_()
    assert Page(to_html([replace(tiny.part, blocks=())], tiny.name)).open == []


JUDGED: Mapping[str, Any] = {
    "metric": "Tone", "failures": "", "asked": "", "humans": estimate(0.9), "margin": 0.05,
    "annotators": {"ann": estimate(0.88), "bob": estimate(0.92)}, "baseline": estimate(0.5),
    "baseline_name": "prior",
}  # fmt: skip


def standing(judge: str, value: float, outcome: str = "DO NOT USE", **more: Any) -> DecisionSummary:
    look: CellTone = "bad" if outcome == "DO NOT USE" else "good"
    about = {
        "why": f"Why {judge}.",
        "next": f"Read its {MISSES}.",
        "accuracy": estimate(value),
    }
    return DecisionSummary(judge, outcome=outcome, look=look, **{**JUDGED, **about, **more})


def test_the_first_screen_has_outcome_plot_reason_and_next_step_of_each_judge() -> None:
    part = replace(
        make_part(),
        screen=(Block(standings=(standing("m", 0.7), standing("k", 0.9, "REPLACE"))),),
        answer="In part.", facts=("9 answers", "2 annotators"),
    )  # fmt: skip
    html = to_html([part], "tones")
    assert "<title>Can m or k replace the annotators of “tones”?</title>" in html
    words = Page(html.partition("<details")[0]).words
    for said in ("9 answers · 2 annotators", "In part.", "Tone", "DO NOT USE", "Why k.", "REPLACE"):
        assert said in words
    plots = [a for tag, a in Page(html).elements if tag == "svg" and a.get("class") == "strip"]
    assert [a["aria-label"] for a in plots] == [
        "m, Tone: 70 % [60, 80]; annotators 88 % and 92 %; best baseline prior 50 %",
        "k, Tone: 90 % [80, 100]; annotators 88 % and 92 %; best baseline prior 50 %",
    ]
    assert "href" not in html.partition("</main>")[0].partition("<main>")[2]  # nothing to browse


def page_with(*standings: DecisionSummary, **more: Any) -> str:
    return to_html([replace(make_part(), screen=(Block(standings=standings),), **more)], "x")


def test_a_next_step_is_in_words_and_its_code_is_folded() -> None:
    step = "Declare what is true: `--blind yes`, or `--blind no` where one was seen."
    html = page_with(standing("m", 0.7, next=step))
    assert "</b> Declare what is true.</p>" in html
    fold = html.partition('<details class="how"><summary>how</summary>')[2].partition("</details>")
    assert fold[0].startswith("<code>--blind yes</code>, or <code>--blind no</code> where")


def test_terms_of_a_decision_are_explained_under_the_plots() -> None:
    html = page_with(standing("m", 0.7), terms=("Severe: 'Harm'.",))
    under = html.partition('<p class="units">')[2].partition("</p>")[0]
    assert under.endswith("Severe: &#39;Harm&#39;.")


def test_the_page_ends_with_how_it_was_made() -> None:
    made = Provenance("2026-11-29", {"a.csv": "0123456789abcdef"}, "judgebench report a.csv", "1.2")
    words = Page(to_html([make_part()], "x", made)).words
    ending = words.partition("How this report was made")[2].split()
    assert " ".join(ending) == (
        "On 2026-11-29 with judgebench 1.2, from a.csv (SHA-256 0123456789ab…). The same again: "
        "judgebench report a.csv"
    )
    in_python = Page(to_html([make_part()], "x", replace(made, command=""))).words
    assert "The same again" not in in_python


def test_the_margins_of_a_plot_are_said_in_words() -> None:
    of_two = [standing("m", 0.7, margin=margin) for margin in (0.04, 0.05)]
    assert margin_words(of_two) == "at most 5 points below the annotators (on some metrics 4)"
    assert margin_words(of_two[:1]) == "at most 4 points below the annotators"


def test_the_margin_of_a_plot_lies_below_the_annotators() -> None:
    strips = [page_with(standing("m", 0.7, margin=margin)) for margin in (0.05, 0.1)]
    begins = [float(re.findall(r'class="margin" x="([\d.]+)%"', strip)[0]) for strip in strips]
    assert begins[1] < begins[0] < 90


@example([0.0, 1.0, 0.0625])
@given(st.lists(st.floats(0, 1) | st.none(), min_size=3, max_size=3))
def test_numbers_of_a_plot_do_not_lie_on_each_other(values: list[float | None]) -> None:
    """Of baseline and annotators below the line, each 90 pixels wide, on 290 pixels, beside which
    the page leaves 36 and 68 free."""
    judge, humans, base = (Estimate(None) if x is None else Estimate(x) for x in values)
    plot = page_with(standing("m", 0.5, accuracy=judge, humans=humans, baseline=base))
    found = re.findall(r'<text class="(?:control|human)" x="([\d.]+)%" y="60" dx="(-?\d+)" '
                       r'text-anchor="(\w+)">(\w+) ', plot)  # fmt: skip
    assert len(found) == sum(x is not None for x in values[1:])
    shift = {"start": 0, "middle": -45, "end": -90}
    edges = sorted(2.9 * float(x) + int(dx) + shift[anchor] for x, dx, anchor, _ in found)
    assert all(later - earlier >= 90 for earlier, later in pairwise(edges))
    assert all(-45 <= edge <= 290 + 68 - 90 for edge in edges)


def test_a_fold_says_what_is_inside() -> None:
    part = make_part()
    summary, lead, *_ = part.blocks
    told = replace(summary, asks="wrong", gist="2 of 9 labels")
    asked = replace(part, blocks=(lead, told))
    assert "<summary>Summary <span>– 2 of 9 labels</span></summary>" in page_of(asked)
