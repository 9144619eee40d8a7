"""The study lead's items, links, files and agreement over time: on the server and in a browser."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from annotate_case import Running, plain, served, small_study
from browser import Browser, NewTab, Tab, needs_axe, needs_browser

from judgebench.annotation import server
from judgebench.annotation.server import Limit
from judgebench.annotation.store import open_store

HOSTILE = "=</script><img src=x onerror=\"document.body.dataset.ran='yes'\">"
LEADS = [
    ("GET", "/api/lead/items"), ("GET", "/api/lead/item/s1"), ("GET", "/api/lead/backup"),
    ("POST", "/api/lead/person"), ("POST", "/api/lead/note"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_FIGURES_S", 0)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Running]:
    """Of 24 items, Zoe and ann have labelled the first 22 and differ on s3; s1 is calibration."""
    screens = [plain(f"s{i}", f"Rest {i}.") for i in range(1, 24)]
    screens = [one.model_copy(update={"group": one.id}) for one in [*screens, plain("s24")]]
    names = [one.id for one in screens]
    orders = {"Zoe": names, "ann": names, "ben": names[:2]}
    with served(small_study(tmp_path, screens, orders)) as running:
        for who, ms in (("ann", 4000), ("Zoe", 9000)):
            person = running.enters(who)
            for i in range(1, 23):
                harm = "no" if who == "ann" and i == 3 else "yes"
                remark = HOSTILE if i == 5 else ""
                of = {
                    "hash": plain(f"s{i}", f"Rest {i}.").model_copy(update={"group": f"s{i}"}).hash
                }
                person.save(
                    person.event(f"s{i}", "harm", harm, visible_ms=ms, remark=remark, **of),
                    person.event(f"s{i}", "tone", "", visible_ms=ms, remark=remark, **of),
                )
            person.save(person.event("s23", "harm", "no"))
        yield running


def test_the_lead_sees_every_item_and_who_differs(site: Running) -> None:
    lead = site.enters("lead")
    items = lead.gets("/api/lead/items")
    assert len(items) == 24
    assert [item["screen"] for item in items if item["differ"]] == ["s3"]
    begun = [item for item in items if "begun" in item["states"].values()]
    assert [(item["screen"], item["states"]["ann"]) for item in begun] == [("s23", "begun")]
    assert [item["screen"] for item in items if "ben" in item["states"]] == ["s1", "s2"]
    assert [item["screen"] for item in items if "Rest 7." in item["text"]] == ["s7"]
    one = lead.gets("/api/lead/item/s3")
    assert one["sections"][1]["text"] == "Rest 3."
    assert one["states"] == {"Zoe": "done", "ann": "done"}
    assert (one["labels"]["ann"], one["labels"]["Zoe"]["harm"]) == (
        {"harm": "no", "tone": ""},
        "yes",
    )
    assert one["differ"] == ["harm"]


@pytest.mark.parametrize(("method", "path"), LEADS)
def test_only_the_lead_on_the_studys_own_page_may(site: Running, method: str, path: str) -> None:
    ann, lead, body = site.enters("ann"), site.enters("lead"), {"act": "link", "name": "ben"}
    note = {"annotator": "ben", "screen": "s1", "text": "See page 2."}
    body = {"note": note}.get(path.rpartition("/")[2], body)
    assert site.stranger.asks(method, path, body).status == 401
    assert ann.asks(method, path, body).status == 401
    for foreign in ({"Origin": "https://evil.example"}, {"X-Judgebench": None}):
        assert lead.asks(method, path, body, foreign).status == 403
    if method == "POST":
        assert lead.asks(method, path, body, {"Origin": None}).status == 403
        assert lead.asks(method, path, body, {"Content-Type": "text/plain"}).status == 400
    assert site.server.reading.access["ben"] == "needs a link"
    assert lead.asks(method, path, body).status == 200


def test_a_link_is_made_used_once_and_its_access_ends(site: Running) -> None:
    lead, ben = site.enters("lead"), site.stranger
    made = lead.asks("POST", "/api/lead/person", {"act": "link", "name": "ben"}).value
    assert made["access"] == {"Zoe": "is in", "ann": "is in", "ben": "has a link", "lead": "is in"}
    for status in (200, 401):
        assert ben.asks("POST", "/api/enter", {"token": made["token"]}).status == status
    assert lead.gets("/api/lead")["access"]["ben"] == "is in"
    left = lead.asks("POST", "/api/lead/person", {"act": "revoke", "name": "ben"}).value
    assert left["access"]["ben"] == "needs a link"
    assert ben.asks("GET", "/api/work").status == 401
    for name in ("lead", "adjudicated", "eve", ""):
        for act in ("link", "revoke"):
            assert lead.asks("POST", "/api/lead/person", {"act": act, "name": name}).status == 404
    for name in ("lead", "Lead", "adjudicated", "Adjudicated", "ANN", "b/c", ""):
        refusal = lead.asks("POST", "/api/lead/person", {"act": "add", "name": name})
        assert (refusal.status, "alone" in str(refusal.value)) == (400, False), refusal.value
    assert lead.gets("/api/lead")["study"] == "small"  # the lead is still in
    site.server._entering = Limit(1, 0.001)
    said = [
        lead.asks("POST", "/api/lead/person", {"act": "link", "name": "ben"}).status
        for _ in range(2)
    ]
    assert said == [200, 429]


# --- in a browser -----------------------------------------------------------------------------


async def opened(new_tab: NewTab, site: Running) -> Tab:
    tab = await new_tab(f"{site.address}/lead#{site.link('lead')}", "lead")
    await tab.sees("document.getElementById('all').hidden === false")
    return tab


MATRIX = "[...document.querySelectorAll('#matrix tbody tr')].map(r => r.innerText.split(/\\s+/)[0])"
FOUND = "document.getElementById('found').textContent"
OPENED = "Boolean(document.querySelector('#matrix .detail'))"
SIGNS = (
    "[...document.querySelectorAll('#matrix tbody tr:nth-child(23) td')].map(c => c.textContent)"
)


@needs_browser
def test_the_lead_filters_items_and_opens_one(browser: Browser, site: Running) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        await tab.sees(FOUND, "24 items.")
        assert await tab.value(SIGNS) == ["main", "◐", "◐", "", ""]
        await tab.value("document.getElementById('by-differ').click()")
        await tab.sees(FOUND, "1 item.")
        await tab.value("document.querySelector('#matrix button').click()")
        await tab.sees(OPENED)
        shown = await tab.value("document.querySelector('#matrix .detail').innerText")
        for text in ("Rest 3.", "ann: No", "Zoe: Yes"):
            assert text in shown
        await tab.value("document.getElementById('by-differ').click()")
        await tab.enter("by-text", "rest 5.")
        typed = "dispatchEvent(new Event('input', {bubbles: true}))"
        await tab.value(f"document.getElementById('by-text').{typed}")
        await tab.sees(FOUND, "1 item.")
        await tab.sees(MATRIX, ["s5"])
        await tab.value("document.querySelector('#matrix button').click()")
        await tab.sees(OPENED)
        assert HOSTILE in await tab.value("document.querySelector('#matrix .detail').textContent")
        assert await tab.value("document.body.dataset.ran") is None
        assert not tab.complaints()

    browser.run(visit)


@needs_browser
def test_the_lead_makes_a_link_with_which_somebody_comes_in_and_revokes_it(
    browser: Browser, site: Running, tmp_path: Path
) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        of_ben = "document.querySelectorAll('#accesses tbody tr')[2]"
        await tab.value(f"{of_ben}.querySelectorAll('button')[0].click()")
        await tab.sees("document.getElementById('link').hidden", False)
        link = await tab.value("document.getElementById('link-text').value")
        ben = await new_tab(link, "ben")
        await ben.sees("document.getElementById('title').textContent !== 'judgebench'")
        assert site.server.reading.access["ben"] == "is in"
        revoke = f"{of_ben}.querySelectorAll('button')[1]"
        await tab.value(f"{revoke}.click()")
        assert site.server.reading.access["ben"] == "is in"  # one click ends nothing
        assert "End the access of ben" in await tab.value(f"{revoke}.textContent")
        await tab.value(f"{revoke}.click()")
        await tab.sees(f"{of_ben}.children[1].textContent", "needs a link")
        assert not tab.complaints()
        await tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        await tab.value("document.getElementById('backup').click()")
        await tab.value("new Promise(done => setTimeout(done, 1000))")
        with open_store(tmp_path / "study.sqlite") as store:
            assert store.annotators == ("Zoe", "ann", "ben")

    browser.run(visit)


@needs_browser
def test_the_lead_answers_a_remark_sends_back_and_adds_somebody(
    browser: Browser, site: Running
) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        said = "[...document.querySelectorAll('#said .said')]"
        answer = f"{said}.find(e => e.innerText.includes('s5, ann'))"
        await tab.value(f"{answer}.querySelector('input').value = 'See page 2.'")
        await tab.value(f"{answer}.querySelectorAll('button')[0].click()")
        await tab.sees(f"{answer}.querySelector('.answer p')?.textContent", "Sent.")
        assert [note["text"] for note in site.server.reading.notes] == ["See page 2."]
        told = f"{answer}.querySelector('.answer p').textContent"
        await tab.value(f"{answer}.querySelectorAll('button')[1].click()")
        await tab.sees(told, "Write why it is to be labelled again.")
        assert site.server.reading.labels("ann", "s5")
        await tab.value(f"{answer}.querySelector('input').value = 'The dose is wrong.'")
        await tab.value(f"{answer}.querySelectorAll('button')[1].click()")
        await tab.sees(told, "Sent back to ann, to be labelled again.")
        assert site.server.reading.labels("ann", "s5") == {}
        texts = f"[...{answer}.querySelectorAll('p.text')].slice(-2).map(p => p.textContent).join()"
        await tab.sees(texts, "You: See page 2.,You: The dose is wrong.")
        await tab.value("document.getElementById('add-name').value = 'ANN'")
        await tab.value("document.querySelector('#add button').click()")
        refusal = "This failed: name: is reserved, or named twice; found 'ANN'."
        await tab.sees("document.getElementById('facts').textContent", refusal)
        assert await tab.value("document.getElementById('warning').hidden")
        await tab.value("document.getElementById('add-name').value = 'dot'")
        await tab.value("document.querySelector('#add button').click()")
        await tab.sees("document.getElementById('link').hidden", False)
        assert "item" in await tab.value("document.getElementById('facts').textContent")
        assert site.server.reading.present == ["Zoe", "ann", "ben", "dot"]
        leaves = "document.querySelectorAll('#accesses tbody tr')[2].querySelectorAll('button')[2]"
        await tab.value(f"{leaves}.click()")
        assert "ben" in site.server.reading.present  # one click hands nothing over
        await tab.value(f"{leaves}.click()")
        for _ in range(50):
            if "ben" not in site.server.reading.present:
                break
            await asyncio.sleep(0.1)
        assert site.server.reading.present == ["Zoe", "ann", "dot"]
        assert len(tab.complaints()) == 1  # of the name that was refused

    browser.run(visit)


@needs_axe
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_everybody_can_use_it(browser: Browser, site: Running, width: int, scheme: str) -> None:
    async def visit(new_tab: NewTab) -> None:
        tab = await opened(new_tab, site)
        await tab.scheme(scheme)
        await tab.screen(width)
        await tab.value("document.querySelector('#matrix button').click()")
        await tab.value("document.querySelector('#accesses button').click()")
        await tab.sees("document.getElementById('link').hidden", False)
        assert await tab.axe() == []
        assert await tab.value("document.documentElement.scrollWidth") <= width

    browser.run(visit)
