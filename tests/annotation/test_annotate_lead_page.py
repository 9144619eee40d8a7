"""The study lead's page in a real browser: figures, disagreements, hostile texts and names."""

from collections.abc import Iterator
from typing import Any

import pytest
from annotate_case import Running, plain, served, small_study
from browser import Browser, NewTab, Tab, needs_axe, needs_browser

from judgebench.records import ADJUDICATED

pytestmark = needs_browser
HOSTILE = "</script><img src=x onerror=\"document.body.dataset.ran='yes'\">"
READY = "document.getElementById('all').hidden === false"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Three people, one with a hostile name; they differ on the harm of three of eight items."""
    folder = tmp_path_factory.mktemp("study")
    screens = [
        plain(f"s{i}", f"{HOSTILE} {i}").model_copy(update={"group": f"g{i}"}) for i in range(9)
    ]
    everybody = [one.id for one in screens]
    small_study(folder, screens, dict.fromkeys(("ann", "ben", HOSTILE), everybody))
    with served(folder) as running:
        for who in ("ann", HOSTILE):
            person = running.enters(who)
            for i in range(8):
                harm = "no" if i in (2, 4, 6) and who == "ann" else "yes"
                remark = HOSTILE if i == 4 else ""
                person.save(
                    person.event(f"s{i}", "harm", harm, remark=remark),
                    person.event(f"s{i}", "tone", "yes", remark=remark),
                )
        yield running


def text_of(element: str) -> str:
    return f"document.getElementById('{element}').textContent"


async def opened(new_tab: NewTab, site: Running) -> Tab:
    tab = await new_tab(f"{site.address}/lead#{site.link('lead')}", "lead")
    await tab.sees(READY)
    return tab


def adjudications(site: Running) -> dict[str, Any]:
    given = site.server.reading.given(ADJUDICATED)
    return {one.screen: (one.field, one.label, one.reason, one.remark) for one in given}


def test_the_lead_sees_how_far_everybody_is(browser: Browser, site: Running) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        assert await tab.value("location.hash") == ""
        assert "0 of 8" in await tab.value(text_of("tiles"))  # ben has done none
        assert "0.57 [" in await tab.value(text_of("agreed"))  # 4 of 7 pairs of the main round
        drawn = await tab.value("document.querySelectorAll('#agreed g.main line').length")
        assert drawn == 3  # the α of the tone, which never differs, is undefined
        told = await tab.value("document.querySelector('#uses svg').getAttribute('aria-label')")
        assert told == "ann: yes 63 %, no 38 %"
        assert "2 s" in await tab.value(text_of("tiles"))
        assert not tab.complaints()

    browser.run(visit)


def test_hostile_names_and_texts_are_shown_and_never_run(browser: Browser, site: Running) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        for place in ("people", "uses", "case", "said"):
            assert HOSTILE in await tab.value(text_of(place)), place
        assert await tab.value("document.body.dataset.ran") is None
        assert await tab.value("document.querySelectorAll('main img').length") == 0
        assert {url.split("/")[2] for url in tab.requests()} == {site.address.split("/")[2]}

    browser.run(visit)


def test_disagreements_are_settled_by_keyboard_and_hide_names(
    browser: Browser, site: Running
) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        await tab.value("document.querySelector(\"a[href='#disagreements']\").focus()")
        await tab.press("Enter")
        await tab.sees("document.activeElement.id", "case")
        assert await tab.value(text_of("where")) == "1 of 3, 3 to adjudicate"
        assert "ann" not in (await tab.value(text_of("case"))).replace("annotators", "")
        await tab.press("Enter")  # nothing is chosen
        await tab.sees(text_of("unsaved"), "Not saved: choose a label, and why they differ.")
        await tab.press("2")
        assert await tab.value("document.getElementById('unsaved').hidden")
        await tab.press("Enter")
        await tab.sees(text_of("unsaved"), "Not saved: choose why they differ.")
        await tab.press("g")
        await tab.press("Enter")
        await tab.sees(text_of("where"), "2 of 3, 2 to adjudicate")
        assert "3 disagreements, 1 adjudicated." in await tab.value(text_of("reasons"))
        assert adjudications(site) == {"s2": ("harm", "no", "guideline gap", "")}
        await tab.press("1")
        await tab.press("s")
        await tab.press("ArrowLeft")  # what is not saved is not kept
        checked = "[...document.querySelectorAll('#case :checked')].map(e => e.value)"
        assert await tab.value(checked) == ["no", "guideline gap"]
        assert await tab.value(text_of("where")) == "1 of 3, adjudicated, 2 to adjudicate"
        assert await tab.value("document.getElementById('case').className") == "adjudicated"
        for shown in ("2 of 3, 2 to adjudicate", "3 of 3, 1 to adjudicate"):
            await tab.press("ArrowRight")
            await tab.sees(text_of("where"), shown)
            await tab.press("1")
            await tab.press("s")
            await tab.press("Enter")
        await tab.sees(f"{text_of('case')}.startsWith('Every disagreement is adjudicated.')")
        assert "3 disagreements, 3 adjudicated." in await tab.value(text_of("reasons"))
        assert not tab.complaints()

    browser.run(visit)
    assert len(site.server.reading.given("ann")) == 16  # the originals stay


def test_keys_work_where_the_disagreement_is_seen_and_remarks_lead_to_their_item(
    browser: Browser, site: Running
) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        picked = "document.querySelector('#case input[name=label]:checked')?.value"
        await tab.press("1")  # far above the disagreements: nothing is chosen unseen
        assert await tab.value(picked) is None
        await tab.value("document.getElementById('disagreements').scrollIntoView()")
        assert await tab.value("document.activeElement === document.body")
        await tab.press("1")
        await tab.sees(picked, "yes")
        await tab.value("document.querySelector('#said summary').click()")
        await tab.sees("document.querySelector('#said details p')?.textContent", "I cough.")
        await tab.value("document.querySelector('#said details button').click()")
        await tab.sees("document.activeElement.id", "case")
        assert f"{HOSTILE} 4" in await tab.value(text_of("case"))
        assert not tab.complaints()

    browser.run(visit)


def test_figures_are_read_again_and_what_is_typed_stays(browser: Browser, site: Running) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        await tab.value("document.querySelector('#case textarea').value = 'half a tho'")
        before = len(tab.requests())
        await tab.value("document.dispatchEvent(new Event('visibilitychange'))")
        await tab.sees("document.querySelector('#case textarea').value", "half a tho")
        await tab.value("new Promise(done => setTimeout(done, 300))")
        asked = [url.rsplit("/", 1)[1] for url in tab.requests()[before:]]
        assert asked == ["lead", "items"]  # and no disagreements

    browser.run(visit)


def test_annotators_get_no_figures(browser: Browser, site: Running) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await new_tab(f"{site.address}/#{site.link('ben')}", "ben")
        await tab.sees("document.getElementById('title').textContent !== 'Labels'")
        await tab.open(f"{site.address}/lead")
        await tab.sees(f"{text_of('as-of')}.startsWith('You are signed out')")
        assert await tab.value("document.getElementById('all').hidden")

    browser.run(visit)


@needs_axe
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (375, "dark")])
def test_everybody_can_use_it(browser: Browser, site: Running, width: int, scheme: str) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        await tab.scheme(scheme)
        await tab.screen(width)
        await tab.value("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert await tab.axe() == []
        assert await tab.value("document.documentElement.scrollWidth") <= width

    browser.run(visit)
