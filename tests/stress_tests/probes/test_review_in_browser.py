"""The review page in a real browser: what it keeps, what it writes, what runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import Tab, browse, needs_axe, needs_browser, save
from review_case import altered, hostile

from judgebench.stress_tests.item_sets import (
    only_accepted,
    read_decisions,
    review_hash,
    write_review,
)

pytestmark = needs_browser

PROGRESS = "document.getElementById('progress').textContent"
ITEM = "document.querySelector('.card header b + b').textContent"
DIFFERS = "document.getElementById('differs').hidden"
TOLD = "document.getElementById('how-many').textContent"
REMARK = "=1+1, \"quoted\";\nand '-2' 😀"


def test_decisions_outlive_a_reload_and_reach_the_table(tmp_path: Path) -> None:
    items = altered()
    page = write_review(items, tmp_path / "violations.jsonl")["html"]
    folder = tmp_path / "downloads"
    folder.mkdir()

    async def visit(tab: Tab) -> tuple[list[Any], Path]:
        await tab.enter("reviewer", "A. Person")
        await tab.press("a")
        seen = [await tab.value(PROGRESS)]
        await tab.press("ArrowRight")
        seen.append(await tab.value(ITEM))
        await tab.value("document.querySelector('[data-word=reject]').click()")
        await tab.enter("remark", REMARK)
        await tab.press("ArrowRight")
        await tab.press("a")
        await tab.press("a")  # taken back
        await tab.reload(PROGRESS, "2 of 4 items answered · 1 accept · 1 reject")
        seen += [await tab.value(PROGRESS), await tab.value(ITEM), await tab.value(DIFFERS)]
        saved = await save(tab, folder)
        assert tab.complaints() == []
        return seen, saved

    seen, saved = browse(page, tmp_path, visit)
    assert seen == [
        "1 of 4 items answered · 1 accept · 0 reject",
        "cv-02",
        "2 of 4 items answered · 1 accept · 1 reject",
        "cv-03",
        False,
    ]
    assert saved.name == "violations.review.csv"
    decisions = read_decisions(saved)
    assert only_accepted(items, decisions) == [items[0]]
    rejected = decisions["cv-02", review_hash(items[1])]
    assert rejected.accepted is False
    assert (rejected.reviewer, rejected.remark) == ("A. Person", REMARK)
    # The script wrote what Python would write.
    by_script = saved.read_bytes()
    (tmp_path / "violations.review.csv").write_bytes(by_script)
    write_review(items, tmp_path / "violations.jsonl")
    assert (tmp_path / "violations.review.csv").read_bytes() == by_script


def test_answers_of_the_browser_stay_over_those_of_the_table(tmp_path: Path) -> None:
    items = altered()
    to = tmp_path / "violations.jsonl"
    written = write_review(items, to)

    async def visit(tab: Tab) -> list[Any]:
        await tab.press("a")
        await tab.press("ArrowRight")
        await tab.press("r")
        # Meanwhile somebody fills in the table, and another item's text is mended.
        text = written["csv"].read_text(encoding="utf-8-sig")
        for item_id, decision in (("cv-01", "accept"), ("cv-02", "accept"), ("cv-03", "accept")):
            text = text.replace(f'"{item_id}","","","",', f'"{item_id}","{decision}","B","",')
        written["csv"].write_text(text, encoding="utf-8-sig")
        write_review([*items[:3], replace(items[3], text="Mended.")], to)
        await tab.reload(PROGRESS, "3 of 4 items answered · 2 accept · 1 reject")
        seen = [await tab.value(PROGRESS), await tab.value(TOLD)]
        await tab.value("window.confirm = () => true; document.getElementById('forget').click()")
        return [*seen, await tab.value(PROGRESS), await tab.value(DIFFERS)]

    assert browse(written["html"], tmp_path, visit) == [
        "3 of 4 items answered · 2 accept · 1 reject",
        "2 answers of this browser are not in the table that this page was made from.",
        "3 of 4 items answered · 3 accept · 0 reject",
        True,
    ]


def test_keys_typed_into_a_field_decide_nothing(tmp_path: Path) -> None:
    page = write_review(altered(), tmp_path / "violations.jsonl")["html"]

    async def visit(tab: Tab) -> list[Any]:
        await tab.value("document.getElementById('remark').focus()")
        await tab.press("a")
        await tab.press("r")
        field = await tab.value("document.getElementById('remark').value")
        return [field, await tab.value(PROGRESS)]

    assert browse(page, tmp_path, visit) == ["ar", "0 of 4 items answered · 0 accept · 0 reject"]


def test_hostile_text_is_shown_and_not_run(tmp_path: Path) -> None:
    items = hostile()
    page = write_review(items, tmp_path / "hostile.jsonl")["html"]
    folder = tmp_path / "downloads"
    folder.mkdir()

    async def visit(tab: Tab) -> tuple[list[str], list[Any], Path]:
        texts = []
        for _ in items:
            texts.append(await tab.value("document.getElementById('item').textContent"))
            await tab.enter("remark", items[len(texts) - 1].area.replace("\ud800", ""))
            await tab.press("a")
            await tab.press("ArrowRight")
        await tab.value("window.dispatchEvent(new Event('beforeprint'))")
        seen = [
            await tab.value("document.title"),
            await tab.value("document.scripts.length"),
            await tab.value("document.querySelectorAll('img, svg, iframe').length"),
            await tab.value("document.querySelectorAll('#print .card').length"),
        ]
        saved = await save(tab, folder)
        assert tab.complaints() == []
        names = [url.rsplit("/", 1)[1] for url in tab.requests() if not url.startswith("blob:")]
        assert names == ["hostile.review.html"]
        return texts, seen, saved

    texts, seen, saved = browse(page, tmp_path, visit)
    assert seen == ["Review of hostile", 2, 0, len(items)]
    for item, text in zip(items, texts, strict=True):
        shown = item.area.replace("\ud800", "\ufffd").split("\r")[0]
        assert text.replace("\ud800", "\ufffd").count(shown) >= 8
    decisions = read_decisions(saved)
    assert only_accepted(items, decisions) == items
    assert [d.remark for d in decisions.values()][:3] == [item.area for item in items[:3]]


@needs_axe
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_its_window_and_everybody_can_use_it(tmp_path: Path, width: int) -> None:
    page = write_review(altered(60), tmp_path / "violations.jsonl")["html"]

    async def visit(tab: Tab) -> list[str]:
        await tab.screen(width)
        assert await tab.value("document.documentElement.scrollWidth <= innerWidth")
        for key in ("a", "ArrowRight", "r"):
            await tab.press(key)
        wrong = await tab.axe()
        await tab.scheme("dark")
        return wrong + await tab.axe()

    assert browse(page, tmp_path, visit) == []
