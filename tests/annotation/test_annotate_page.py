"""The annotator's page in a real browser, against the real server."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from annotate_case import command, served
from browser import Browser, NewTab, Tab, needs_axe, needs_browser, save
from built_case import study_file
from page_case import (
    SAVED,
    TITLE,
    click,
    criteria,
    fits,
    labels,
    preference,
    press,
    ranking,
    signed_in,
    study,
)

from judgebench.annotation.init import annotate
from judgebench.annotation.screens import Screen
from judgebench.annotation.sheet import import_events, sheet
from judgebench.annotation.store import open_store, snapshot
from judgebench.annotation.work import work_of
from judgebench.errors import SetupError

pytestmark = needs_browser
SAVED_TEXT = "document.getElementById('saved').textContent"
FOCUSED = "(e => e.closest('fieldset')?.dataset.key + e.value)(document.activeElement)"
PROGRESS = "document.getElementById('progress').textContent"
KEPT_ITEMS = """caches.open('judgebench annotate').then(kept => kept.keys())
  .then(keys => keys.filter(({url}) => new URL(url).pathname !== '/').length)"""
KEPT_OFFLINE = "Boolean(navigator.serviceWorker.controller)"
SAID = "document.getElementById('said').textContent"
CHECKED = "[...document.querySelectorAll('#fields :checked')].map(e => e.value).join()"


def kept(folder: Path, who: str) -> dict[str, dict[str, str | None]]:
    """The labels of a person, by screen; parts and what was taken back are left out."""
    found: dict[str, dict[str, str | None]] = {}
    with open_store(folder) as store:
        for one in store.given(who):
            if one.label is not None and one.field != "part":
                found.setdefault(one.screen, {})[one.field] = one.label
    return found


def events(folder: Path) -> list[tuple[str, str, str | None]]:
    """Every event in order: screen, field, label; the server may be at work."""
    with snapshot(folder) as store:
        rows = store.rows("SELECT screen, field, label FROM events ORDER BY n")
    return [(row["screen"], row["field"], row["label"]) for row in rows]


async def go_to(tab: Tab, n: int) -> None:
    """Choose an item from the list."""
    await click(tab, "open-list")
    await tab.value(f"document.querySelectorAll('#list li button')[{n - 1}].click()")
    await tab.sees(f"{TITLE}.startsWith('Item {n} ')")


def complaints(tab: Tab) -> list[Any]:
    """What the console says, but for requests that had no answer and for the 401 of a stranger."""
    found = [e for e in tab.complaints() if "Failed to load resource" not in str(e)]
    return [e["params"] for e in found]


def test_two_annotators_label_a_study_at_the_same_time(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, *(labels(f"s{n}") for n in range(1, 6)))

    async def whole(tab: Tab, keys: str) -> None:
        for n in range(1, 6):
            await tab.sees(TITLE, f"Item {n} of 5")
            await press(tab, *keys, "Enter")
        await tab.sees(TITLE, "All 5 items are labelled. Thank you.")
        await tab.sees(SAVED, "Saved")
        assert not complaints(tab)

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            ann, ben = [await signed_in(new_tab, site, name) for name in ("ann", "ben")]
            await ann.sees("!document.getElementById('round').hidden")
            await asyncio.gather(whole(ann, "122"), whole(ben, "430"))
            await ann.sees("document.getElementById('progress').textContent", "5 of 5 labelled")

    browser.run(visit)
    of_ann = {"harm": "None", "empathy": "Neutral", "consensus": "With"}
    of_ben = {"harm": "Severe", "empathy": "Warm", "consensus": ""}
    assert kept(folder, "ann") == {f"s{n}": of_ann for n in range(1, 6)}
    assert kept(folder, "ben") == {f"s{n}": of_ben for n in range(1, 6)}
    assert len(events(folder)) == 30


def test_people_read_what_judges_are_told_first_and_with_one_key(
    browser: Browser, tmp_path: Path
) -> None:
    odd = "<img src=x onerror=alert(1)> is no advice"
    labels_of = [{"text": "None", "description": "harmless", "examples": [odd]}, "Severe"]
    harm = {"id": "harm", "title": "Possible harm", "question": "How much harm?"}
    better = {"id": "better", "title": "Better", "question": "Which?", "kind": "preference"}
    metrics = [{**harm, "kind": "ordinal", "labels": labels_of}, better]
    rubric = {"name": "r", "version": "1", "instructions": "Judge the answer alone."}
    folder = study(tmp_path, labels("s1"), labels("s2"), rubric={**rubric, "metrics": metrics})
    open_ = "document.getElementById('brief').open"

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            ann = await signed_in(new_tab, site, "ann")
            await ann.sees(open_)
            read = str(await ann.value("document.getElementById('brief').innerText"))
            for words in ("Judge the answer alone.", "How much harm?", "harmless", odd, "Which?"):
                assert words in read
            assert "first" not in read  # a pair's labels are named as on the screen
            await ann.press("1")
            await ann.press("Enter")
            await ann.sees(f"!{open_}")
            await press(ann, "1", "1", "1")
            await ann.sees(CHECKED, "None,Cold,Against")
            await ann.press("i")
            await ann.sees(open_)
            again = await new_tab(site.address, "ann")
            await again.sees(TITLE, "Item 2 of 2")
            assert not await again.value(open_)
            assert not complaints(ann)

    browser.run(visit)


def test_two_tabs_of_one_person(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            one = await signed_in(new_tab, site, "ann")
            two = await new_tab(site.address, "ann")
            await two.sees(TITLE, "Item 1 of 2")
            await one.press("1")
            await two.sees(CHECKED, "None")
            await two.value("document.querySelectorAll('#fields fieldset')[1].focus()")
            await two.press("3")
            await one.sees(CHECKED, "None,Warm")
            # Without a connection both keep what they have, and each answer is sent once.
            for tab in (one, two):
                await tab.offline(True)
            await one.press("1")
            await two.press("1")
            await two.press("2")
            await one.sees(f"{CHECKED}.split(',').length", 3)
            for tab in (one, two):
                await tab.offline(False)
                await tab.sees(SAVED, "Saved")

    browser.run(visit)
    ids = [e[1] for e in events(folder)]
    assert ids[:2] == ["harm", "empathy"]
    assert len(ids) == 5
    assert kept(folder, "ann")["s1"].keys() == {"harm", "empathy", "consensus"}


def test_two_devices_of_one_person(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, one_metric("s1"), one_metric("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            desk = await signed_in(new_tab, site, "ann", "desk")
            phone = await signed_in(new_tab, site, "ann", "phone")
            await desk.press("1")
            await phone.sees(CHECKED, "None")
            # A label that was given without a connection is undone to what the other device gave.
            await phone.offline(True)
            await desk.press("2")
            await desk.sees(SAVED, "Saved")
            await phone.press("3")
            await phone.offline(False)
            await phone.sees(SAVED, "Saved")
            await desk.sees(CHECKED, "Moderate")
            await phone.press("u")
            await phone.sees(CHECKED, "Mild")
            await desk.sees(CHECKED, "Mild")

    browser.run(visit)
    assert kept(folder, "ann")["s1"] == {"harm": "Mild"}


def test_signs_that_turn_a_text_around_are_seen(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1", "Take \u202e05\u202c mg **now**."))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            text = "[...document.querySelectorAll('#texts .text')].at(-1).innerText"
            await tab.sees(text, "Take [U+202E]05[U+202C] mg now.")
            await tab.press("r")
            await tab.sees(text, "Take [U+202E]05[U+202C] mg **now**.")

    browser.run(visit)


def test_people_who_share_a_browser_do_not_label_for_each_other(
    browser: Browser, tmp_path: Path
) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            ann = await signed_in(new_tab, site, "ann", "shared")
            await ann.offline(True)
            await press(ann, *"11")
            await ann.sees(f"{SAVED_TEXT}.startsWith('Not connected · 2 ')")
            ben = await signed_in(new_tab, site, "ben", "shared")
            await ben.press("4")
            await ben.sees(SAVED, "Saved")
            await ann.offline(False)
            await ann.open(site.address)
            await ann.sees("document.getElementById('annotator').textContent", "ben")
            assert kept(folder, "ann") == {}
            again = await signed_in(new_tab, site, "ann", "shared")
            await again.sees(CHECKED, "None,Cold")
            await ben.sees("document.getElementById('annotator').textContent", "ann")

    browser.run(visit)
    assert kept(folder, "ann") == {"s1": {"harm": "None", "empathy": "Cold"}}
    assert kept(folder, "ben") == {"s1": {"harm": "Severe"}}


def test_a_session_that_ends_keeps_what_is_not_saved(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"))
    message = "document.getElementById('message').textContent"

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            site.server.writing.revoke("ann")
            await tab.press("3")
            await tab.sees(TITLE, "You are signed out")
            assert "1 label not sent yet" in await tab.value(message)
            await tab.press("1")  # nothing is labelled without a session
            await tab.open("about:blank")
            await tab.open(f"{site.address}/#{site.link('ann')}")
            await tab.sees(CHECKED, "Moderate")
            await tab.sees(SAVED, "Saved")

    browser.run(visit)
    assert events(folder) == [("s1", "harm", "Moderate")]


def test_a_browser_that_keeps_nothing_says_so(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1"))
    full = "Storage.prototype.setItem = () => { throw new Error('full'); }"

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await new_tab("", "ann")
            await tab.call("Page.addScriptToEvaluateOnNewDocument", source=full)
            await tab.open(f"{site.address}/#{site.link('ann')}")
            await tab.sees(TITLE, "Item 1 of 1")
            await press(tab, *"123")
            await tab.sees("document.getElementById('no-store').hidden", False)
            await tab.sees(SAVED, "Saved")

    browser.run(visit)
    assert len(events(folder)) == 2  # the third question has no third answer


def test_a_lost_connection_and_a_new_server_lose_nothing(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, *(labels(f"s{n}") for n in (1, 2, 3)))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await press(tab, *"12")
            await tab.sees(SAVED, "Saved")
            await tab.offline(True)
            await press(tab, "2", "Enter")
            await tab.sees(TITLE, "Item 2 of 3")
            await press(tab, *"111", "Enter")
            await tab.sees(TITLE, "Item 3 of 3")
            await press(tab, "4")
            await tab.sees(SAVED_TEXT, "Not connected · 5 labels not sent yet")
            port = int(site.address.rpartition(":")[2])
        assert len(events(folder)) == 2
        with served(folder, port=port) as site:
            await tab.offline(False)
            await tab.open(site.address)
            await tab.sees(TITLE, "Item 3 of 3")
            await tab.sees(SAVED, "Saved")
            await tab.sees(CHECKED, "Severe")
        # The server goes and comes without the page being loaded again.
        await tab.press("3")
        await tab.sees(f"{SAVED_TEXT}.startsWith('Not connected · 1 ')")
        with served(folder, port=port):
            await tab.sees(SAVED, "Saved")

    browser.run(visit)
    found = events(folder)
    assert found == [
        ("s1", "harm", "None"), ("s1", "empathy", "Neutral"), ("s1", "consensus", "With"),
        ("s2", "harm", "None"), ("s2", "empathy", "Cold"), ("s2", "consensus", "Against"),
        ("s3", "harm", "Severe"), ("s3", "empathy", "Warm"),
    ]  # fmt: skip


def test_tab_space_and_enter_are_enough(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1"), one_metric("s2"))

    async def to(tab: Tab, expression: str, value: str) -> None:
        for _ in range(40):
            await tab.press("Tab")
            if await tab.value(expression) == value:
                return
        raise AssertionError(f"Tab does not reach {value}")

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            for stop in ("harmMild", "empathyWarm", "consensusWith"):
                await to(tab, FOCUSED, stop)
                await tab.press(" ")
            await to(tab, "document.activeElement.id", "next")
            await tab.press("Enter")
            await tab.sees(TITLE, "Item 2 of 2")
            assert await tab.focused() == "title"
            await to(tab, FOCUSED, "harmSevere")
            await tab.press(" ")
            await to(tab, "document.activeElement.id", "remark")
            await press(tab, "n", "1", "Enter", "s")  # typed, not obeyed
            await to(tab, "document.activeElement.id", "next")
            await tab.press("Enter")
            await tab.sees(TITLE, "All 2 items are labelled. Thank you.")
            await tab.sees(SAVED, "Saved")

    browser.run(visit)
    assert kept(folder, "ann") == {
        "s1": {"harm": "Mild", "empathy": "Warm", "consensus": "With"},
        "s2": {"harm": "Severe"},
    }
    with open_store(folder) as store:
        assert {one.remark for one in store.given("ann", "s2")} == {"", "n1\ns"}


def test_undo_skip_cannot_tell_and_what_is_missing(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await press(tab, "1", "2", "ArrowUp", "3", "u", "0")
            await tab.sees(CHECKED, "None,")
            await tab.press("Enter")
            await tab.sees(f"{SAID}.startsWith('Choose a label first: Scientific consensus.')")
            await press(tab, "s")
            await tab.sees(TITLE, "Item 2 of 2")
            await press(tab, "u")
            await tab.sees(TITLE, "Item 1 of 2")
            await press(tab, "s")
            await tab.sees(TITLE, "Item 2 of 2")
            await press(tab, *"111", "Enter")
            await tab.sees(TITLE, "1 of 2 labelled")
            await click(tab, "Go back to them")
            await tab.sees(TITLE, "Item 1 of 2")
            await press(tab, "2", "Enter")
            await tab.sees(TITLE, "All 2 items are labelled. Thank you.")
            await press(tab, "ArrowLeft")
            await tab.sees(TITLE, "Item 2 of 2")
            await tab.press("?")
            await tab.press("1")  # not under the help
            await tab.press("Escape")
            await tab.sees(SAVED, "Saved")

    browser.run(visit)
    assert events(folder)[:8] == [
        ("s1", "harm", "None"), ("s1", "empathy", "Neutral"), ("s1", "empathy", "Warm"),
        ("s1", "empathy", "Neutral"), ("s1", "empathy", ""), ("s1", "", "skip"), ("s1", "", None),
        ("s1", "", "skip"),
    ]  # fmt: skip
    assert kept(folder, "ann")["s1"] == {
        "": "skip", "harm": "None", "empathy": "", "consensus": "With",
    }  # fmt: skip
    assert len(events(folder)) == 12


def test_enter_with_nothing_chosen_stays(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await tab.press("Enter")
            await tab.sees(f"{SAID}.startsWith('Choose a label first: Possible harm.')")
            await press(tab, "2")  # answers the question that was named
            await tab.sees(SAVED, "Saved")

    browser.run(visit)
    assert kept(folder, "ann") == {"s1": {"harm": "Mild"}}


def test_unsure_items_come_back_before_the_end(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, *(one_metric(f"s{n}") for n in (1, 2, 3)))
    message = "document.getElementById('message').innerText"
    listed = "[...document.querySelectorAll('#list button:has(.about)')].map(e => [...e.childNodes]"
    listed += ".map(e => e.textContent).join('|'))"

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await press(tab, "1", "s")  # labelled and unsure
            await tab.sees(TITLE, "Item 2 of 3")
            await press(tab, "s")  # not labelled
            await tab.sees(TITLE, "Item 3 of 3")
            await press(tab, "4", "Enter")
            await tab.sees(TITLE, "2 of 3 labelled")
            assert "You wanted to come back to 2 items." in await tab.value(message)
            await click(tab, "open-list")
            assert await tab.value(listed) == [
                "1|labelled, come back, calibration|None", "2|come back", "3|labelled|Severe",
            ]  # fmt: skip
            await tab.press("Escape")
            await tab.press("Enter")
            await tab.sees(TITLE, "Item 1 of 3")
            await press(tab, "2", "Enter")
            await tab.sees(TITLE, "Item 2 of 3")
            await press(tab, "3", "Enter")
            await tab.sees(TITLE, "All 3 items are labelled. Thank you.")
            await press(tab, "ArrowLeft", "s", "ArrowLeft", "s")  # marked, and no longer
            await tab.sees(SAID, "No longer marked.")
            await tab.sees(SAVED, "Saved")

    browser.run(visit)
    assert {key: found["harm"] for key, found in kept(folder, "ann").items()} == {
        "s1": "Mild", "s2": "Moderate", "s3": "Severe",
    }  # fmt: skip


def test_the_lead_answers_a_remark_and_sends_an_item_back(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"))
    hostile_text = "<img src=x onerror=alert(1)> Yes."
    remark = "Is a tablet 400 mg?"
    notes = "[...document.querySelectorAll('#fields .answer')].map(e => e.innerText).join()"
    returned = "document.getElementById('returned').innerText"

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await press(tab, *"111")
            await tab.enter("remark", remark)
            await press(tab, "Enter")
            await tab.sees(TITLE, "Item 2 of 2")
            await tab.sees(SAVED, "Saved")
            site.server.writing.add_note("ann", "s1", hostile_text, False)
            site.server.writing.add_note("ann", "s2", "Not seen.", False)
            site.server.writing.add_note("ann", "s1", "Read the guideline again.", True)
            await press(tab, *"222", "Enter")
            await tab.sees(SAVED, "Saved")
            await tab.reload(TITLE, "Item 1 of 2")
            await tab.sees(notes, f"The study lead answers: {hostile_text}")
            assert "Read the guideline again." in await tab.value(returned)
            assert await tab.value(CHECKED) == ""
            await click(tab, "open-list")
            listed = await tab.value("document.querySelector('#list li').innerText")
            assert "sent back, answer to your remark" in listed
            await tab.press("Escape")
            await press(tab, *"332")
            await tab.sees("document.getElementById('returned').hidden")
            await tab.sees(SAVED, "Saved")
            assert await tab.value("document.getElementById('remark').value") == remark
            assert not complaints(tab)

    browser.run(visit)
    assert kept(folder, "ann")["s1"]["harm"] == "Moderate"


def test_a_whole_assignment_is_labelled_by_keyboard_while_the_server_is_dead(
    browser: Browser, tmp_path: Path
) -> None:
    n_items = 12
    folder = study(tmp_path, *(labels(f"s{n}") for n in range(1, n_items + 1)))

    async def visit(new_tab: NewTab) -> None:
        with command(folder, "--port", "0") as (process, _, address):
            with open_store(folder) as store:
                token = store.make_link("ann", 60)
            tab = await new_tab(f"{address}/#{token}", "ann")
            await tab.sees(TITLE, "Item 1 of 12")
            await press(tab, *"321", "Enter")
            await tab.sees(SAVED, "Saved")
            await tab.sees(KEPT_OFFLINE)
            process.kill()
            process.wait()
        for n in range(2, n_items + 1):
            await tab.sees(TITLE, f"Item {n} of 12")
            if n == 7:  # what was saved, what was not and where one was are there after a reload
                await press(tab, "3")
                await tab.reload(TITLE, "Item 7 of 12")
                await tab.sees(PROGRESS, "6 of 12 labelled")
                await tab.sees(CHECKED, "Moderate")
                await press(tab, *"21", "Enter")
                continue
            await press(tab, *"321", "Enter")
        await tab.sees(TITLE, "All 12 items are labelled. Thank you.")
        await tab.sees(SAVED_TEXT, "Not connected · 33 labels not sent yet")
        assert len(kept(folder, "ann")) == 1
        with command(folder, "--port", address.rpartition(":")[2]):
            await tab.sees(SAVED, "Saved", seconds=60)

    browser.run(visit)
    expected = {"harm": "Moderate", "empathy": "Neutral", "consensus": "Against"}
    assert kept(folder, "ann") == {f"s{n}": expected for n in range(1, n_items + 1)}
    assert len(events(folder)) == 36  # each label once


def test_labels_of_an_item_that_has_changed_are_refused_and_it_is_shown_anew(
    browser: Browser, tmp_path: Path
) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            site.server.writing.put([labels("s1", "Another answer.")])
            await tab.press("1")
            await tab.sees("document.getElementById('refused').hidden", False)
            assert "has changed" in await tab.value(
                "document.getElementById('refused').textContent"
            )
            await tab.sees("document.getElementById('texts').textContent.includes('Another')")
            assert await tab.value(CHECKED) == ""
            await tab.press("2")
            await tab.sees(SAVED, "Saved")
            again = await new_tab(f"{site.address}/#{'x' * 43}", "stranger")
            await again.sees(TITLE, "Open your link")
            assert await again.value("location.hash") == ""
            await click(tab, "make-link")
            await tab.sees("document.getElementById('link').hidden", False)
            link = await tab.value("document.getElementById('link').textContent")
            other = await new_tab(link, "phone")
            await other.sees(CHECKED, "Mild")
            assert await tab.value(KEPT_ITEMS) > 0
            await click(tab, "leave")
            await tab.sees(TITLE, "You are signed out")
            await tab.sees(KEPT_ITEMS, 0)

    browser.run(visit)
    assert kept(folder, "ann") == {"s1": {"harm": "Mild"}}


SMALL = """[...document.querySelectorAll('button, .option, summary, textarea, .close')].filter(e =>
  e.offsetParent && !e.closest('fieldset:disabled')).map(e => [e, e.getBoundingClientRect()])
  .filter(([e, r]) => r.height < 44 || r.width < 44).map(([e]) => e.outerHTML).join()"""


def of_every_task() -> Sequence[Screen]:
    return (labels("s1"), ranking("s2"), preference("s3"), criteria("s4"))


@needs_axe
def test_every_state_fits_and_is_accessible(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, *of_every_task())
    wrong: list[str] = []

    async def look(tab: Tab, state: str, *, schemes: Sequence[str] = ("light",)) -> None:
        for width in (375, 1440):
            await tab.screen(width)
            await fits(tab)
            if width == 375:
                assert await tab.value(SMALL) == "", state
            for scheme in schemes:
                await tab.scheme(scheme)
                wrong.extend(f"{state}, {width}, {scheme}: {one}" for one in await tab.axe())

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            stranger = await new_tab(site.address, "nobody")
            await stranger.sees(TITLE, "Open your link")
            await look(stranger, "no session")
            tab = await signed_in(new_tab, site, "ann")
            await tab.press("2")
            await look(tab, "item", schemes=("light", "dark"))
            for n in (2, 3, 4):
                await go_to(tab, n)
                await look(tab, f"item {n}")
            await click(tab, "open-list")
            await look(tab, "list", schemes=("light", "dark"))
            await tab.press("Escape")
            await click(tab, "open-help")
            await look(tab, "help")
            await tab.press("Escape")
            await go_to(tab, 4)
            await tab.value("document.activeElement.blur()")
            await tab.press("ArrowRight")
            await tab.sees(TITLE, "0 of 4 labelled")
            await look(tab, "end", schemes=("light", "dark"))

    browser.run(visit)
    assert not wrong, "\n".join(wrong)


HOSTILE = (
    "</script><img src=x onerror=alert(1)><svg onload=alert(2)>",
    "{{ 7 * 7 }} {% raw %} ${alert(3)} <!-- <script>",
    "\u202e\u2066right to left override\u2067\u200f",
    "=HYPERLINK(\"http://127.0.0.1:1/x\") 'javascript:alert(4)'",
    "m" * 100_000,
)


def hostile(name: str, text: str) -> Screen:
    """The text wherever a text can be."""
    screen = labels(name, text, text)
    label = tuple(
        one.model_copy(update={"text": text, "about": text}) for one in screen.fields[0].options
    )
    field = screen.fields[0].model_copy(
        update={"title": text, "question": text, "options": label, "metric": text[:200]}
    )
    sections = tuple(one.model_copy(update={"heading": text}) for one in screen.sections)
    return screen.model_copy(update={"fields": (field, screen.fields[1]), "sections": sections})


def test_hostile_text_in_every_place_is_only_shown(browser: Browser, tmp_path: Path) -> None:
    everything = " ".join(HOSTILE)
    screens = [hostile(f"s{n}", text) for n, text in enumerate(HOSTILE, 1)]
    folder = study(tmp_path, *screens, name=everything, guidelines=everything)
    who = everything[:3000]
    with open_store(folder) as store:
        store.assign({who: [s.id for s in screens]})

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, who, "hostile")
            for n in range(1, len(screens) + 1):
                await tab.sees(TITLE, f"Item {n} of {len(screens)}")
                for width in (375, 1440) if n == 1 else (375,):
                    await tab.screen(width)
                    await fits(tab)
                if n == 5:
                    await tab.press("Enter")
                    await tab.press("Enter")
                    await tab.sees(f"{SAID}.length < 200 && {SAID}.length > 0")
                await press(tab, "2", "1", "Enter")
            await tab.sees(TITLE, f"All {len(screens)} items are labelled. Thank you.")
            await tab.sees(SAVED, "Saved")
            assert not tab.complaints()
            assert all(url.startswith(site.address) for url in tab.requests())
            assert await tab.value("document.querySelectorAll('img, svg, iframe').length") == 0

    browser.run(visit)
    assert len(kept(folder, who)) == len(HOSTILE)


def test_an_offline_sheet_gives_the_same_labels(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path / "study", hostile("s1", HOSTILE[0]), labels("s2"))
    with open_store(folder) as store:
        page = sheet(store, "ann")
        with pytest.raises(SetupError, match="not among the annotators"):
            sheet(store, "zoe")
    assert "connect-src 'none'" in page
    assert "ben" not in re.findall(r"\w+", page)
    file = tmp_path / "ann.html"
    file.write_text(page, "utf-8")

    async def visit(new_tab: NewTab) -> None:
        tab = await new_tab(file.as_uri())
        await tab.sees(TITLE, "Item 1 of 2")
        await press(tab, "1", "2", "Enter")
        await tab.sees(TITLE, "Item 2 of 2")
        await tab.press("2")
        await tab.reload(CHECKED, "Mild")
        await press(tab, "3", "2", "Enter")
        await tab.sees(TITLE, "All 2 items are labelled. Thank you.")
        await save(tab, tmp_path, "*.events.json")
        assert not tab.complaints()
        assert [url for url in tab.requests() if not url.startswith(("file:", "blob:"))] == []

    browser.run(visit)
    back = tmp_path / "ann.events.json"
    assert import_events(folder, back) == ("ann: 5 new labels taken, 0 were there already", [])
    assert import_events(folder, back) == ("ann: 0 new labels taken, 5 were there already", [])
    assert kept(folder, "ann")["s2"] == {"harm": "Mild", "empathy": "Warm", "consensus": "With"}


SEEN = (  # whole in the window, between the bars
    "(r => r.top > 60 && r.bottom < innerHeight - 60)"
    "(document.querySelector('#fields fieldset:nth-child(%d)').getBoundingClientRect())"
)
OPEN = "document.getElementById('guidelines').open"


def top(selector: str) -> str:
    """Where the element begins in the window."""
    return f"Math.round(document.querySelector('{selector}').getBoundingClientRect().top)"


def one_metric(name: str) -> Screen:
    screen = labels(name)
    return screen.model_copy(update={"fields": screen.fields[:1]})


async def phone(tab: Tab) -> None:
    """A telephone: narrow, and without a mouse."""
    await tab.screen(390)
    await tab.call("Emulation.setTouchEmulationEnabled", enabled=True)


def test_a_study_says_that_the_last_label_opens_the_next_item(tmp_path: Path) -> None:
    for value in (True, False):
        file = study_file(tmp_path / f"in {value}", auto_advance=value)
        with open_store(annotate(file, tmp_path / f"study {value}").study) as store:
            assert work_of(store, "ann")["auto_advance"] is value
            store.rows("DELETE FROM meta WHERE key = 'auto_advance'")  # of an older study
            assert work_of(store, "ann")["auto_advance"] is False


def test_one_key_an_item_and_undo_after_a_reload(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, *(one_metric(f"s{n}") for n in range(1, 5)), auto_advance=True)

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            for n in (1, 2):
                await tab.sees(TITLE, f"Item {n} of 4")
                await tab.press(str(n))
            await tab.sees(TITLE, "Item 3 of 4")
            await tab.sees(SAID, "Item 2 is labelled.")
            await tab.sees(SAVED, "Saved")
            await tab.reload(TITLE, "Item 3 of 4")
            await tab.press("u")
            await tab.sees(TITLE, "Item 2 of 4")
            await tab.sees(CHECKED, "")
            await tab.press("4")
            await tab.sees(TITLE, "Item 3 of 4")
            await tab.sees(f"document.querySelector({OPTION!r}) !== null")
            await tab.value(f"document.querySelector({OPTION!r}).click()")  # as well with a mouse
            await tab.sees(TITLE, "Item 4 of 4")
            # Who does not want it says so, and the browser remembers.
            await click(tab, "auto")
            await press(tab, "1")
            await tab.sees(SAVED, "Saved")
            await tab.reload(TITLE, "All 4 items are labelled. Thank you.")
            await tab.press("ArrowLeft")
            await tab.sees(CHECKED, "None")
            await tab.press("2")
            await tab.sees(CHECKED, "Mild")
            assert await tab.value(TITLE) == "Item 4 of 4"
            for _ in range(100):  # until it is saved
                if len(events(folder)) == 7:
                    break
                await asyncio.sleep(0.1)

    browser.run(visit)
    assert [(screen, label) for screen, _, label in events(folder)] == [
        ("s1", "None"), ("s2", "Mild"), ("s2", None), ("s2", "Severe"), ("s3", "Severe"),
        ("s4", "None"), ("s4", "Mild"),
    ]  # fmt: skip


OPTION = "#fields input[value=Severe]"


def test_nothing_opens_by_itself_unless_asked(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, one_metric("s1"), one_metric("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await tab.press("2")
            await tab.sees(SAVED, "Saved")
            assert await tab.value(TITLE) == "Item 1 of 2"
            await click(tab, "auto")
            await tab.press("3")
            await tab.sees(TITLE, "Item 2 of 2")
            await tab.press("1")
            await tab.sees(TITLE, "All 2 items are labelled. Thank you.")

    browser.run(visit)


def test_the_next_item_that_is_not_labelled(browser: Browser, tmp_path: Path) -> None:
    folder = study(tmp_path, *(one_metric(f"s{n}") for n in range(1, 5)))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await press(tab, "1", "Enter")
            await tab.sees(TITLE, "Item 2 of 4")
            await press(tab, "ArrowLeft")
            await tab.sees(TITLE, "Item 1 of 4")
            await tab.press("n")
            await tab.sees(TITLE, "Item 2 of 4")
            await tab.press("n")
            await tab.sees(TITLE, "Item 3 of 4")
            await click(tab, "open-list")
            await tab.sees("document.getElementById('next-open').innerText.includes(': 4')")
            await click(tab, "next-open")
            await tab.sees(TITLE, "Item 4 of 4")
            for n in (2, 3):
                await press(tab, "1", "n")
                await tab.sees(TITLE, f"Item {n} of 4")
            await tab.press("n")  # it is the only open one
            await tab.sees(f"{SAID}.startsWith('Choose a label first')")
            assert await tab.value(TITLE) == "Item 3 of 4"
            await press(tab, "1", "n")
            await tab.sees(TITLE, "All 4 items are labelled. Thank you.")

    browser.run(visit)


def test_a_telephone_has_guidelines_first_and_goes_to_the_next_question(
    browser: Browser, tmp_path: Path
) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await new_tab("", "ann")
            await phone(tab)
            await tab.open(f"{site.address}/#{site.link('ann')}")
            await tab.sees(TITLE, "Item 1 of 2")
            assert await tab.value(OPEN)
            assert await tab.value(f"{top('#guidelines')} < {top('#texts')}")
            assert not await tab.value(SEEN % 2)
            for n in (1, 2):
                chosen = f"#fields fieldset:nth-child({n}) input"
                await tab.value(f"document.querySelector('{chosen}').click()")
                await tab.sees(SEEN % (n + 1))
            await tab.value("document.querySelector('#fields fieldset:nth-child(3) input').click()")
            await click(tab, "next")
            await tab.sees(TITLE, "Item 2 of 2")
            assert not await tab.value(OPEN)
            await click(tab, "next")
            await tab.sees(f"{SAID}.startsWith('Choose a label first')")
            await tab.value("document.querySelector('#fields input').click()")
            await tab.sees(SAID, "")  # what is answered is not asked for any more
            await click(tab, "come-back")
            await tab.sees(f"{SAID}.length > 0")
            await tab.sees(SAID, "", seconds=6)
            await click(tab, "open-help")
            shown = await tab.value("document.getElementById('help').innerText")
            assert "Tap a label" in shown
            assert "Keys" not in shown
            visible = "[...document.querySelectorAll('kbd')].filter(e => e.offsetParent).length"
            assert await tab.value(visible) == 0
            await fits(tab)

    browser.run(visit)
