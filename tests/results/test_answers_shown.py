"""How pairs, conversations, criteria and a judge's reasons stand on the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alignment_case import HOSTILE
from browser import Tab, browse, needs_browser
from page_reader import Page
from shown_case import TEXTS, answers, rubric, shown_study

from judgebench.records import Status, Verdict
from judgebench.results.answer_texts import MOST_SHOWN, reasons_of, texts_of
from judgebench.results.html import to_html
from judgebench.results.part import Card

HOSTILE_TEXTS = [f"{text} \u202e\u2028" for text in HOSTILE[:4]]


@pytest.fixture(scope="module")
def cards() -> dict[str, Card]:
    (block,) = [b for b in shown_study().part.blocks if b.heading == "Disagreements"]
    return {card.title: card for card in block.cards}


def test_a_pair_shows_both_responses_and_who_prefers_which(cards: dict[str, Card]) -> None:
    texts = dict(cards["pair"].texts)
    assert list(texts) == ["Question", "Responses"]
    assert texts["Responses"] == [
        ("column", f"First response, by {TEXTS[0]}"), ("", TEXTS[2]),
        ("column", f"Second response, by {TEXTS[1]}, preferred by ann and bob"), ("", TEXTS[3]),
    ]  # fmt: skip
    assert cards["pair"].about == ("distance 1",)


def test_the_judges_that_prefer_a_response_are_named_too() -> None:
    found = shown_study()
    (pair,) = [d for d in found.disagreements if d.answer.item_id == "pair"]
    said = {"m": replace(pair.verdicts["m"], labels={"preference": "first"}, shown=())}
    changed = replace(found, disagreements=(replace(pair, verdicts=said),))
    (block,) = [b for b in changed.part.blocks if b.heading == "Disagreements"]
    headings = [text for mark, text in dict(block.cards[0].texts)["Responses"] if mark == "column"]
    assert headings[0].endswith("preferred by judge m")
    assert not [f for f in block.cards[0].facets if "other order" in f["Direction"]]


def test_a_conversation_is_shown_turn_by_turn(cards: dict[str, Card]) -> None:
    by_id = {answer.item_id: answer for answer in answers()}
    for item_id, heading, n in (
        ("after-3", "Conversation before it", 3), ("after-8", "Conversation before it", 8),
        ("whole", "Conversation", 4),
    ):  # fmt: skip
        texts = dict(cards[item_id].texts)
        stretches = [
            one for turn in by_id[item_id].turns for one in (("turn", turn.role), ("", turn.text))
        ]
        assert texts[heading] == stretches
        assert len(stretches) == 2 * n
        assert ("Answer" in texts) == (item_id != "whole")


def test_a_criterion_is_shown_with_its_points_and_tags(cards: dict[str, Card]) -> None:
    assert cards["hb1#c2"].texts == (
        ("Question", TEXTS[0]), ("Answer", TEXTS[3]),
        ("Criterion c2 (-5 points; tags: accuracy, emergency)", TEXTS[2]),
    )  # fmt: skip
    bare = replace(answers()[-1], metadata={"points": "1", "tags": ""})
    assert texts_of(bare)[-1] == ("Criterion c2 (1 point)", TEXTS[2])
    assert texts_of(replace(bare, metadata={}))[-1] == ("Criterion c2", TEXTS[2])


def test_the_table_of_a_card_has_the_metrics_of_its_kind(cards: dict[str, Card]) -> None:
    shown = {title: [row[0].text for row in card.grid.rows] for title, card in cards.items()}
    assert shown == {
        "pair": ["Preference"], "after-3": ["Quality"], "after-8": ["Quality"],
        "whole": ["Quality"], "hb1#c2": ["Met"],
    }  # fmt: skip


def test_a_judge_of_other_rows_has_no_column() -> None:
    found = shown_study()
    grader = replace(found.judges[0], name="grader", about={"metrics": ["quality"]})
    changed = replace(found, judges=(*found.judges, grader))
    (block,) = [b for b in changed.part.blocks if b.heading == "Disagreements"]
    columns = {card.title: card.grid.columns[4:] for card in block.cards}
    assert columns["pair"] == columns["hb1#c2"] == ("m",)
    assert columns["whole"] == ("m", "grader")


def test_a_flipped_pair_is_marked_and_can_be_filtered(cards: dict[str, Card]) -> None:
    assert cards["pair"].grid.rows[0][-1].text == "≠ ⇄ tie"
    flipped = {"Direction": "judge says otherwise in the other order"}
    found = [
        title
        for title, card in cards.items()
        if any(flipped.items() <= f.items() for f in card.facets)
    ]
    assert found == ["pair"]
    html = to_html([shown_study().part], "x")
    said = "⇄ the judge said otherwise when the two responses stood in the other order"
    assert said in Page(html).words


def test_the_reasons_of_a_judge_are_folded_and_complete(cards: dict[str, Card]) -> None:
    ((heading, stretches),) = cards["pair"].folded
    assert heading == "m: its rationale, what it looked up, how it was shown"
    assert stretches == [
        ("column", "Rationale"), ("", f"First I read both. {TEXTS[0]}"),
        ("column", f"Looked up: {TEXTS[1]}"), ("", f"{TEXTS[2]}\n\n{TEXTS[3]}"),
        ("column", "Looked up: What dose?"), ("", "(no passage was found)"),
        ("column", "The first response shown first"), ("", "Preference: first"),
        ("column", "The second response shown first"),
        ("", "Preference: first as shown, so second as listed above"),
    ]  # fmt: skip
    ((_, in_a_list),) = cards["whole"].folded
    assert in_a_list[-2:] == [("column", "Shown as number 3 of 4"), ("", "Quality: good")]


def test_a_pair_left_without_a_label_says_why() -> None:
    found = shown_study()
    (pair,) = [d for d in found.disagreements if d.answer.item_id == "pair"]
    why = "preference: no label (inconsistent): first, then second"
    said = {"m": replace(pair.verdicts["m"], labels={}, reason=why)}
    changed = replace(found, disagreements=(replace(pair, verdicts=said),))
    (block,) = [b for b in changed.part.blocks if b.heading == "Disagreements"]
    assert block.cards[0].grid.rows[0][-1].text == "✕ ⇄ no label"
    assert block.cards[0].folded[0][1][-2:] == [("column", "Both together"), ("", why)]


def test_a_verdict_without_reasons_has_nothing_to_unfold() -> None:
    answer = answers()[0]
    plain = Verdict("pair", answer.content_hash, "m", "s", Status.OK)
    assert reasons_of("m", plain, answer, rubric()) == ()
    thinking = replace(plain, reasoning="Hm. The second warns.")
    assert reasons_of("m", thinking, answer, rubric()) == (
        ("m: its thoughts", [("column", "Thoughts"), ("", "Hm. The second warns.")]),
    )
    unread = replace(plain, status=Status.UNPARSED, reason="no JSON", raw="Well,", rationale="So:")
    assert [heading for heading, _ in reasons_of("m", unread, answer, rubric())] == [
        "m gave no usable verdict (unparsed): no JSON", "m: its rationale",
    ]  # fmt: skip


def test_a_long_rationale_is_cut_with_its_length() -> None:
    answer = answers()[0]
    long = Verdict("pair", "h", "m", "s", Status.OK, rationale="x" * 5000)
    ((_, stretches),) = reasons_of("m", long, answer, rubric())
    assert stretches[1][1] == "x" * MOST_SHOWN + "\n[cut; the rationale has 5000 characters]"


def hostile_html() -> str:
    return to_html([shown_study(HOSTILE[2], HOSTILE_TEXTS).part], "x")


def test_hostile_texts_stay_data_in_every_new_place() -> None:
    page = Page(hostile_html())
    assert page.open == []
    assert [attrs.get("type") for tag, attrs in page.elements if tag == "script"] == [
        "application/json", None,
    ]  # fmt: skip
    assert not set(page.scripts[0]) & set("<>&")
    shown = {card["title"]: card for card in json.loads(page.scripts[0])["cards"]}
    ((_, responses),) = [one for one in shown["pair"]["texts"] if one[0] == "Responses"]
    assert [text for mark, text in responses if not mark] == HOSTILE_TEXTS[2:]
    headings = [
        heading
        for card in shown.values()
        for title, stretches in (*card["texts"], *card["folded"])
        for heading in (title, *(text for mark, text in stretches if mark))
    ]
    assert any(HOSTILE[0] in heading for heading in headings)
    assert not [heading for heading in headings if "\u202e" in heading]


@needs_browser
def test_turns_fold_hostile_texts_do_not_run_and_the_page_fits_a_telephone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(hostile_html(), encoding="utf-8")
    of_turns = (
        "[...document.querySelectorAll('.turn')].map((t) => [...t.querySelectorAll('.piece')]"
    )
    every, seen = f"{of_turns}.length)", f"{of_turns}.filter((p) => p.checkVisibility()).length)"

    async def visit(tab: Tab) -> dict[str, Any]:
        found = {"turns": await tab.value(every), "visible": await tab.value(seen)}
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        found["unfolded"] = await tab.value(seen)
        found["text"] = await tab.value("document.body.innerText")
        for width in (375, 1280):
            await tab.screen(width)
            fits = "document.documentElement.scrollWidth <= innerWidth"
            found[f"fits {width}"] = await tab.value(fits)
        found["title"] = await tab.value("document.title")
        foreign = "document.querySelectorAll('.cards :is(script, img, svg)').length"
        found["foreign"] = await tab.value(foreign)
        found["complaints"] = tab.complaints()
        return found

    found = browse(path, tmp_path, visit)
    assert found["turns"] == found["unfolded"]
    assert sorted(zip(found["turns"], found["visible"], strict=True)) == [(3, 3), (4, 4), (8, 4)]
    assert "4 turns before" in found["text"]
    assert found["text"].count(HOSTILE[0]) > 5
    assert (found["fits 375"], found["fits 1280"]) == (True, True)
    assert found["title"] == "x: judges against human labels"
    assert found["foreign"] == 0
    assert found["complaints"] == []


def test_what_a_metric_is_not_about_is_not_missing() -> None:
    found = shown_study()
    said = "1 pair, 3 answers, 1 criterion and 10 human labels"
    assert found.compared[0].startswith(said)
    assert dict(found.part.facts)["Answers"][0].startswith("1 pair, 3 answers and 1 criterion to ")
    missing = {
        row.metric: (row.estimate.n, row.estimate.n_missing)
        for row in found.results.select("agreement", "all_agree", who="all")
    }
    assert missing == {"preference": (1, 0), "quality": (3, 0), "met": (1, 0), "all": (5, 0)}
    assert not [note for note in found.notes if "have no human truth" in note]


def test_rows_without_a_truth_are_counted_by_what_they_are() -> None:
    found = shown_study(labelled=["after-3"])
    assert [note for note in found.notes if "have no human truth" in note] == [
        "Preference: 1 of 1 pairs have no human truth.",
        "Quality: 2 of 3 answers have no human truth.",
        "Met: 1 of 1 criteria have no human truth.",
    ]
