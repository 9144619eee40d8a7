from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import Page

from judgebench.align import STATISTICS, Alignment
from judgebench.report.old.html import MOST_DISAGREEMENTS, disagreements_json, to_html
from judgebench.report.words import printable


def test_every_element_is_closed_and_ids_are_unique(alignment: Alignment) -> None:
    page = Page(to_html(alignment))
    assert page.open == []
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {attrs["href"] for tag, attrs in page.elements if tag == "a"}
    assert links <= {f"#{i}" for i in ids}


def test_nothing_is_asked_of_anybody(alignment: Alignment) -> None:
    html = to_html(alignment)
    page = Page(html)
    for tag, attrs in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "svg")
        assert not set(attrs) & {"src", "srcset", "action", "background", "ping"}
        assert (attrs.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in attrs)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert not re.search(r"\b(fetch|XMLHttpRequest|import|innerHTML|eval|write)\b", page.scripts[1])


def test_the_policy_lets_only_the_one_script_run(hostile: Alignment) -> None:
    page = Page(to_html(hostile))
    policy = next(a["content"] for t, a in page.elements if "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "unsafe-inline'; script" in policy
    assert "unsafe-eval" not in policy
    kinds = [attrs.get("type") for tag, attrs in page.elements if tag == "script"]
    assert kinds == ["application/json", None]


def test_hostile_text_is_shown_as_it_is(hostile: Alignment) -> None:
    words = "".join("".join(Page(to_html(hostile)).text).split())
    metric = hostile.rubric.metrics[0]
    names = [hostile.name, metric.title, *metric.label_texts, *hostile.notes, *hostile.annotators]
    for text in (*names, *(judge.name for judge in hostile.judges)):
        assert "".join(printable(text).split()) in words


def test_disagreements_survive_as_json(hostile: Alignment) -> None:
    page = Page(to_html(hostile))
    data = json.loads(page.scripts[0])
    assert not set(page.scripts[0]) & set("<>&")
    assert page.scripts[0].isascii()
    assert len(data["items"]) == len(hostile.disagreements)
    for item, d in zip(data["items"], hostile.disagreements, strict=True):
        assert (item["id"], item["text"]) == (d.answer.item_id, d.answer.text)
        assert (item["question"], item["reference"]) == (d.answer.question, d.answer.reference)
        assert item["truth"] == dict(d.truth)
        assert item["human"] == {m: dict(labels) for m, labels in d.human.items()}
        for judge, verdict in d.verdicts.items():
            shown = item["verdicts"][judge]
            assert shown["labels"] == dict(verdict.labels)
            assert shown["status"] == verdict.status
            assert shown.get("raw", "") == ("" if verdict.status == "ok" else verdict.raw)


@given(st.text(alphabet="</script>!-& \u2028\u2029\ud800\x00\"'\\é", max_size=40))
def test_no_text_ends_the_script_element(hostile: Alignment, text: str) -> None:
    d = hostile.disagreements[0]
    changed = replace(hostile, disagreements=(replace(d, answer=replace(d.answer, text=text)),))
    embedded = str(disagreements_json(changed))
    assert not set(embedded) & set("<>&\u2028\u2029")
    assert json.loads(embedded)["items"][0]["text"] == text


def test_a_long_list_is_cut_and_says_so(tiny: Alignment) -> None:
    d = tiny.disagreements[0]
    html = to_html(replace(tiny, disagreements=(d,) * (MOST_DISAGREEMENTS + 1)))
    page = Page(html)
    assert len(json.loads(page.scripts[0])["items"]) == MOST_DISAGREEMENTS
    assert "holds the first 2,000 of 2,001" in page.words


def test_raw_replies_are_kept_for_failures_only_and_cut(realistic: Alignment) -> None:
    d = next(d for d in realistic.disagreements if d.verdicts["smollm2-135m"].status != "ok")
    long = replace(d.verdicts["smollm2-135m"], raw="x" * 5000)
    verdicts = {**d.verdicts, "smollm2-135m": long}
    changed = replace(realistic, disagreements=(replace(d, verdicts=verdicts),))
    shown = json.loads(str(disagreements_json(changed)))["items"][0]["verdicts"]
    assert (len(shown["smollm2-135m"]["raw"]), shown["smollm2-135m"]["cut"]) == (4000, 5000)
    assert "raw" not in shown["Meta-Llama-3-70B-Instruct"]


def test_every_statistic_stands_three_ways_without_a_script(realistic: Alignment) -> None:
    html = to_html(realistic)
    for statistic in STATISTICS:
        for failures in ("left_out", "worst", "best"):
            panel = f'data-statistic="{statistic}" data-failures="{failures}"'
            assert html.count(panel) == 1
    assert '<div class="panel" hidden' not in html
    assert "<noscript>" in html


def test_where_nothing_failed_one_panel_a_statistic_is_enough(tiny: Alignment) -> None:
    html = to_html(tiny)
    assert html.count('class="panel"') == len(STATISTICS)
    assert 'data-failures="worst"' not in html


def test_what_a_number_rests_on_is_a_touch_away(realistic: Alignment) -> None:
    page = Page(to_html(realistic))
    tips = [attrs["title"] or "" for tag, attrs in page.elements if "title" in attrs]
    assert any(re.search(r"n = 87, 13 missing; 95 % interval: ", tip) for tip in tips)
    assert any(tip.startswith("undefined: ") for tip in tips)
    assert "more are needed for ±0.1" in page.words


def test_caveats_come_before_everything_else(realistic: Alignment) -> None:
    words = Page(to_html(realistic)).words
    assert words.index("no clinical weight") < words.index("Rubric medical-safety")


@pytest.mark.parametrize("gone", ["scores", "agreement", "ceiling", "distribution", "confusions"])
def test_a_part_may_be_missing(tiny: Alignment, gone: str) -> None:
    assert Page(to_html(replace(tiny, **{gone: ()}))).open == []
