"""Fewer keys for an item, and the page on a telephone."""

from __future__ import annotations

import asyncio
from pathlib import Path

from annotate_case import served
from browser import Browser, NewTab, Tab, needs_browser
from built_case import study_file
from page_case import (
    SAVED,
    TITLE,
    click,
    fits,
    labels,
    preference,
    press,
    signed_in,
    study,
    two_part,
)

from judgebench.annotation.export import snapshot
from judgebench.annotation.init import init
from judgebench.annotation.screens import Screen
from judgebench.annotation.store import open_store, work_of

pytestmark = needs_browser
CHECKED = "[...document.querySelectorAll('#fields :checked')].map(e => e.value).join()"
SAID = "document.getElementById('said').textContent"
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


def events(folder: Path) -> list[tuple[str, str | None]]:
    with snapshot(folder) as store:  # the server may be at work
        return [tuple(row) for row in store.rows("SELECT screen, label FROM events ORDER BY n")]


def test_a_study_says_that_the_last_label_opens_the_next_item(tmp_path: Path) -> None:
    for value in (True, False):
        file = study_file(tmp_path / f"in {value}", auto_advance=value)
        with open_store(init(file, tmp_path / f"study {value}").study) as store:
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
    assert events(folder) == [
        ("s1", "None"), ("s2", "Mild"), ("s2", None), ("s2", "Severe"), ("s3", "Severe"),
        ("s4", "None"), ("s4", "Mild"),
    ]  # fmt: skip


OPTION = "#fields input[value=Severe]"


def test_nothing_opens_by_itself_unless_asked_and_a_second_part_waits(
    browser: Browser, tmp_path: Path
) -> None:
    folder = study(tmp_path, one_metric("s1"), two_part("s2"))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await tab.press("2")
            await tab.sees(SAVED, "Saved")
            assert await tab.value(TITLE) == "Item 1 of 2"
            await click(tab, "auto")
            await tab.press("3")
            await tab.sees(TITLE, "Item 2 of 2")
            await press(tab, "1", "2")
            await tab.sees("document.querySelectorAll('#fields :checked').length", 2)
            await press(tab, "Enter", "Enter")
            await tab.sees("document.querySelectorAll('#fields fieldset').length", 3)
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

    browser.run(visit)


def test_two_answers_stand_side_by_side_where_there_is_room(
    browser: Browser, tmp_path: Path
) -> None:
    folder = study(tmp_path, preference("s1"), labels("s2"))
    boxes = "[...document.querySelectorAll('.compared')].map(e => e.getBoundingClientRect())"

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            for width, beside in ((1440, True), (1000, True), (999, False), (390, False)):
                await tab.screen(width)
                same = f"(([a, b]) => a.top === b.top && a.right <= b.left)({boxes})"
                assert await tab.value(same) is beside, width
                await fits(tab)
            await tab.press("ArrowRight")
            await tab.sees(f"{boxes}.length", 0)

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
            await tab.sees(f"{SAID}.startsWith('Still to answer')")
            await tab.value("document.querySelector('#fields input').click()")
            await tab.sees(SAID, "")  # what is answered is not asked for any more
            await click(tab, "skip")
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
