"""Pictures that lie beside a table of items, on the served page and in a sheet."""

import struct
import zlib
from pathlib import Path

from annotate_case import served
from browser import Browser, NewTab, Tab, needs_axe, needs_browser
from built_case import study_file, table
from page_case import TITLE, fits, signed_in

from judgebench.annotation.init import annotate
from judgebench.annotation.sheet import sheet
from judgebench.annotation.store import open_store

WIDTH = 120
PICTURES = "[...document.querySelectorAll('#texts img')].map(e => [e.alt, e.naturalWidth].join())"
# An SVG that runs a script, a file outside of the folder, another host, a script as a picture.
OTHERS = "![b](hostile.svg) ![c](../outside.png) ![d](https://evil.example/e.png) ![e](fake.png)"

KEPT = "caches.open('judgebench annotate').then(kept => kept.keys()).then(keys => keys.length)"


def png(width: int, height: int = 40) -> bytes:
    """A grey picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)

    rows = (b"\0" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def made(folder: Path) -> Path:
    """A study of one item, whose text names a picture and what is none."""
    file = study_file(folder / "in", annotators=["ann"], per_item=1, items="answers.csv")
    (folder / "in" / "secret gpt.png").write_bytes(png(WIDTH))
    (folder / "outside.png").write_bytes(png(1))
    (folder / "in" / "hostile.svg").write_text("<svg onload='alert(1)'/>")
    (folder / "in" / "fake.png").write_text("<script>alert(1)</script>")
    text = f"See ![a scan](secret%20gpt.png).\n\n{OTHERS}"
    columns = ["item_id", "question", "system", "text"]
    table(folder / "in" / "answers.csv", columns, [["i1", "What is it?", "gpt", text]])
    return annotate(file, folder / "study").study


async def shows_the_picture(tab: Tab) -> None:
    await tab.sees(f"{PICTURES}.join()", f"a scan,{WIDTH}")
    text = await tab.value("document.getElementById('texts').innerText")
    for name in ("hostile.svg", "outside.png", "https://evil.example/e.png", "fake.png"):
        assert f"({name})" in text or f"{name})]" in text
    assert "secret" not in await tab.value("document.documentElement.outerHTML")
    assert not [e for e in tab.complaints() if "401" not in str(e)]


@needs_browser
def test_the_page_shows_pictures_also_without_the_server(browser: Browser, tmp_path: Path) -> None:
    folder = made(tmp_path)

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await shows_the_picture(tab)
            assert all(url.startswith(("blob:", site.address)) for url in tab.requests())
            await tab.sees(KEPT, 3)
        await tab.press("Escape")  # the instructions
        await tab.press("r")  # as it was written, and rendered again
        await tab.sees(f"{PICTURES}.length", 0)
        await tab.press("r")
        await tab.sees(f"{PICTURES}.join()", f"a scan,{WIDTH}")
        await tab.reload(TITLE, "Item 1 of 1")
        await tab.sees(f"{PICTURES}.join()", f"a scan,{WIDTH}")

    browser.run(visit)


@needs_axe
def test_a_sheet_holds_its_pictures(browser: Browser, tmp_path: Path) -> None:
    folder, page = made(tmp_path), tmp_path / "ann.html"
    with open_store(folder) as store:
        page.write_text(sheet(store, "ann"), "utf-8")

    async def visit(new_tab: NewTab) -> None:
        tab = await new_tab(page.as_uri())
        await tab.sees(TITLE, "Item 1 of 1")
        await shows_the_picture(tab)
        await tab.screen(390)
        await fits(tab)
        assert await tab.axe() == []
        assert all(url.startswith(("file:", "data:")) for url in tab.requests())

    browser.run(visit)
