"""How pairs, conversations, criteria and a judge's reasons stand on the page."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alignment_case import HOSTILE
from browser import Tab, browse, needs_browser
from page_reader import Page
from shown_case import TEXTS, answers, rubric, shown_study

from judgebench.records import Showing, Status, Verdict
from judgebench.results.blocks import MOST_SHOWN, Texts, reasons_of, texts_of
from judgebench.results.documents import to_html

HOSTILE_TEXTS = [f"{text} \u202e\u2028" for text in HOSTILE[:4]]


Shown = Mapping[str, tuple[Texts, Texts]]


@pytest.fixture(scope="module")
def shown() -> Shown:
    """By item the texts that are shown and those that are folded."""
    make = shown_study().part.items
    assert make
    items = make()
    return dict(zip(items.ids, items.texts, strict=True))


def test_a_pair_shows_both_responses_and_who_wrote_them(shown: Shown) -> None:
    texts = dict(shown["pair"][0])
    assert list(texts) == ["Question", "Responses"]
    assert texts["Responses"] == [
        ("column", f"First response, by {TEXTS[0]}"), ("", TEXTS[2]),
        ("column", f"Second response, by {TEXTS[1]}"), ("", TEXTS[3]),
    ]  # fmt: skip


def test_a_conversation_is_shown_turn_by_turn(shown: Shown) -> None:
    by_id = {answer.item_id: answer for answer in answers()}
    for item_id, heading, n in (
        ("after-3", "Conversation before it", 3), ("after-8", "Conversation before it", 8),
        ("whole", "Conversation", 4),
    ):  # fmt: skip
        texts = dict(shown[item_id][0])
        stretches = [
            one for turn in by_id[item_id].turns for one in (("turn", turn.role), ("", turn.text))
        ]
        assert texts[heading] == stretches
        assert len(stretches) == 2 * n
        assert ("Answer" in texts) == (item_id != "whole")


def test_a_criterion_is_shown_with_its_points_and_tags(shown: Shown) -> None:
    assert shown["hb1#c2"][0] == (
        ("Question", TEXTS[0]), ("Answer", TEXTS[3]),
        ("Criterion c2 (points: -5; tags: accuracy, emergency)", TEXTS[2]),
    )  # fmt: skip
    bare = replace(answers()[-1], metadata={"points": "1", "tags": ""})
    assert texts_of(bare)[-1] == ("Criterion c2 (points: 1)", TEXTS[2])
    assert texts_of(replace(bare, metadata={}))[-1] == ("Criterion c2", TEXTS[2])


def test_a_metric_is_marked_where_it_is_not_about_an_item() -> None:
    make = shown_study().part.items
    assert make
    items = make()
    about = {
        said.title: [x for x, sign in zip(items.ids, said.reference, strict=True) if sign != "/"]
        for said in items.said
    }
    assert about == {
        "Preference": ["pair"], "Quality": ["after-3", "after-8", "whole"], "Met": ["hb1#c2"],
    }  # fmt: skip


def test_the_reasons_of_a_judge_are_folded_and_complete(shown: Shown) -> None:
    ((heading, stretches),) = shown["pair"][1]
    assert heading == "m: its rationale, what it looked up, how it was shown"
    assert stretches == [
        ("column", "Rationale"), ("", f"First I read both. {TEXTS[0]}"),
        ("column", f"Looked up: {TEXTS[1]}"), ("", f"{TEXTS[2]}\n\n{TEXTS[3]}"),
        ("column", "Looked up: What dose?"), ("", "(no passage was found)"),
        ("column", "The first response shown first"), ("", "Preference: first"),
        ("column", "The second response shown first"),
        ("", "Preference: first as shown, so second as listed above"),
    ]  # fmt: skip
    ((_, in_a_list),) = shown["whole"][1]
    assert in_a_list[-2:] == [("column", "Shown as number 3 of 4"), ("", "Quality: good")]


def test_a_pair_left_without_a_label_says_why() -> None:
    pair = answers()[0]
    why = "preference: no label (inconsistent): first, then second"
    orders = tuple(Showing(place, 2, {"preference": "first"}) for place in (0, 1))
    said = Verdict("pair", pair.content_hash, "m", "s", Status.OK, reason=why, shown=orders)
    ((_, stretches),) = reasons_of("m", said, pair, rubric())
    assert stretches[-2:] == [("column", "Both together"), ("", why)]


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
    data = json.loads(page.scripts[0])
    texts = dict(zip(data["ids"], data["texts"], strict=True))
    (responses,) = [x for title, x in texts["pair"] if data["strings"][title] == "Responses"]
    assert [data["strings"][x] for mark, x in responses if not mark] == HOSTILE_TEXTS[2:]
    headings = [
        data["strings"][heading]
        for title, x in (one for of in (*data["texts"], *data["folded"].values()) for one in of)
        for heading in (title, *(at for mark, at in (x if isinstance(x, list) else []) if mark))
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
        await tab.value("for (const row of document.querySelectorAll('.row')) row.open = true")
        await tab.sees("document.querySelectorAll('.rows article').length", 5)
        found = {"turns": await tab.value(every), "visible": await tab.value(seen)}
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        found["unfolded"] = await tab.value(seen)
        found["text"] = await tab.value("document.body.innerText")
        for width in (375, 1280):
            await tab.screen(width)
            fits = "document.documentElement.scrollWidth <= innerWidth"
            found[f"fits {width}"] = await tab.value(fits)
        found["title"] = await tab.value("document.title")
        foreign = "document.querySelectorAll('.rows :is(script, img, svg)').length"
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
    assert found.part.facts[0].startswith("1 pair, 3 answers and 1 criterion to ")
    missing = {
        row.metric: (row.estimate.n, row.estimate.n_missing)
        for row in found.results.select("agreement", "all_agree", who="all")
    }
    assert missing == {"preference": (1, 0), "quality": (3, 0), "met": (1, 0)}
    assert not [note for note in found.notes if "have no reference label" in note]


def test_rows_without_a_truth_are_counted_by_what_they_are() -> None:
    found = shown_study(labelled=["after-3"])
    assert [note for note in found.notes if "have no reference label" in note] == [
        "Preference: 1 of 1 pairs have no reference label.",
        "Quality: 2 of 3 answers have no reference label.",
        "Met: 1 of 1 criteria have no reference label.",
    ]
