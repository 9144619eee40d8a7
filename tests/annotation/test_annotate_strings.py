"""The words of the annotator's page in every language, and the page in the browser's language."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from annotate_case import served
from browser import Browser, NewTab, Tab, needs_axe, needs_browser
from page_case import TITLE, click, fits, labels, preference, press, ranking, speaks, study

import judgebench.annotation
from judgebench.annotation.screens import Section
from judgebench.annotation.sheet import sheet
from judgebench.annotation.store import open_store
from judgebench.rubric import Rubric

FOLDER = Path(judgebench.annotation.__file__).parent
STRINGS = yaml.safe_load((FOLDER / "strings.yaml").read_text("utf-8"))
LANGUAGES = ("en", "de", "fr", "es", "zh")
LANGUAGE = "document.documentElement.lang"
FIRST_LABEL = "document.querySelector('#fields .option span').textContent"
LABELLED = {
    "en": "All 2 items are labelled. Thank you.", "de": "Alle 2 Items sind gelabelt. Danke.",
    "fr": "Les 2 éléments sont étiquetés. Merci.", "es": "Los 2 ítems están etiquetados. Gracias.",
    "zh": "全部 2 条均已标注。谢谢。",
}  # fmt: skip


@pytest.mark.parametrize("key", STRINGS)
def test_a_string_has_every_language_and_the_same_placeholders(key: str) -> None:
    texts = STRINGS[key]
    assert set(texts) == set(LANGUAGES)
    assert all(isinstance(text, str) and text.strip() for text in texts.values())
    forms = [form for text in texts.values() for form in text.split("|")]
    assert len({frozenset(re.findall(r"{(\w+)}", form)) for form in forms}) == 1


def test_the_page_uses_every_string_and_no_other() -> None:
    script = (FOLDER / "annotate.js").read_text("utf-8")
    template = (FOLDER / "annotate.html.jinja").read_text("utf-8")
    named = set(re.findall(r'"(\w+)"', script + template))
    assert set(STRINGS) <= named
    used = set(re.findall(r'words\("(\w+)"', script))
    used |= set(re.findall(r'data-(?:words|label)="(\w+)"', template))
    assert used <= set(STRINGS)


@needs_browser
def test_the_sheet_speaks_the_browsers_language(browser: Browser, tmp_path: Path) -> None:
    rubric = Rubric.from_labels({"harm": ["no", "yes"]}).model_dump(mode="json")
    in_question = Section(heading="Labels in question", text="no, yes")
    last = labels("s2")
    last = last.model_copy(update={"sections": (*last.sections, in_question)})
    folder = study(tmp_path / "study", labels("s1"), last, rubric=rubric)
    page = tmp_path / "ann.html"
    with open_store(folder) as store:
        page.write_text(sheet(store, "ann"), "utf-8")

    async def visit(new_tab: NewTab) -> None:
        for language, spoken in [
            ("de-AT,en", "de"),
            ("zh-TW", "zh"),
            ("es", "es"),
            ("pt,fr", "fr"),
            ("nl", "en"),
        ]:
            tab = await new_tab("", language)
            await speaks(tab, language)
            await tab.open(page.as_uri())
            await tab.sees(LANGUAGE, spoken)
            await tab.press("Escape")  # the instructions
            await press(tab, *"111", "Enter", *"111", "Enter")
            await tab.sees(TITLE, LABELLED[spoken])
            # Headings are words of the page.
            await press(tab, "ArrowLeft")
            texts = (
                "[...document.querySelectorAll('#texts h2')].map(e => e.innerText + e.lang).join()"
            )
            keys = ("question", "reference", "answer", "labels_in_question")
            headings = [STRINGS[key][spoken] for key in keys]
            await tab.sees(texts, ",".join(headings))
            await tab.screen(390)
            await fits(tab)
            assert await tab.value("innerWidth") == 390  # a telephone widens it to what overflows

    browser.run(visit)


@needs_axe
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_state_fits_and_is_accessible_in(
    language: str, browser: Browser, tmp_path: Path
) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"), preference("s3"), ranking("s4"))
    wrong = list[str]()

    async def look(tab: Tab, state: str, widths: Sequence[int] = (390,)) -> None:
        for width in widths:
            await tab.screen(width)
            await fits(tab)
            wrong.extend(f"{state}, {width}: {one}" for one in await tab.axe())

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await new_tab("", language)
            await speaks(tab, language)
            await tab.open(site.address)
            await tab.sees("!document.getElementById('message').hidden")
            await look(tab, "no session")
            await tab.open(f"{site.address}/#{site.link('ann')}")
            await tab.sees("!document.getElementById('work').hidden")
            assert await tab.value(LANGUAGE) == language
            await tab.press("Enter")
            await look(tab, "nothing chosen", (390, 1440))
            await press(tab, *"111", "s", "s")
            await tab.sees(FIRST_LABEL, STRINGS["is_better"][language].format(letter="A"))
            for name in ("open-list", "open-help"):
                await click(tab, name)
                await look(tab, name)
                await tab.press("Escape")
            await tab.offline(True)
            await press(tab, "1")
            await look(tab, "offline")
            await press(tab, "ArrowRight", "ArrowRight")
            await look(tab, "end")
            await tab.offline(False)
            assert not [e for e in tab.complaints() if "Failed to load" not in str(e)]

    browser.run(visit)
    assert not wrong, "\n".join(wrong)
