"""The page in a real browser: what runs, what is asked of the network, what the list shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import Tab, needs_browser
from browser import browse as browse_page
from part_case import estimate, hostile_part, make_part

from judgebench.alignment import Alignment
from judgebench.results.figure import drawn
from judgebench.results.html import to_html
from judgebench.results.part import Block, Part, figures_of
from judgebench.results.tables import Cell, Look, Table

pytestmark = needs_browser
CARDS = "document.querySelectorAll('.cards article').length"


def test_no_injected_script_runs_and_nothing_is_fetched(tmp_path: Path) -> None:
    part = hostile_part()
    images = [saved["svg"] for saved in drawn(figures_of([part])).values()]
    path = tmp_path / "report.html"
    path.write_text(to_html([part], "hostile", images), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        while not await tab.value("document.querySelector('.more').hidden"):
            await tab.value("document.querySelector('.more').click()")
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        loaded = "[...document.images].filter((i) => i.complete && i.naturalWidth > 0).length"
        return (
            await tab.value("document.title"),
            await tab.value("document.body.innerText"),
            await tab.value("document.scripts.length"),
            await tab.value(CARDS),
            await tab.value(loaded),
            await tab.value("document.querySelectorAll('svg, iframe, .cards script').length"),
            tab.requests(),
            tab.complaints(),
        )

    found = browse_page(path, tmp_path, visit)
    title, text, scripts, cards, images_loaded, foreign, requests, complaints = found
    assert title == "hostile: what alignment says"
    assert (scripts, cards, images_loaded, foreign) == (2, 45, 3, 0)
    assert "{{ 7*7 }}" in text
    assert "</script><script>document.title='pwned'</script>" in text
    asked = [url for url in requests if not url.startswith("data:image/svg+xml;base64,")]
    assert [url.rsplit("/", 1)[1] for url in asked] == ["report.html"]
    assert complaints == []


def test_cards_are_filtered_by_what_holds_together(realistic: Alignment, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([realistic.part], "x"), encoding="utf-8")
    asked: dict[str, dict[str, str]] = {
        "all": {},
        "judge": {"Judge": "smollm2-135m"},
        "metric": {"Judge": "smollm2-135m", "Metric": "Extent of Possible Harm"},
        "mild": {
            "Judge": "smollm2-135m", "Metric": "Extent of Possible Harm",
            "Direction": "judge less severe",
        },
        "missing": {"Judge": "smollm2-135m", "Direction": "no label from the judge"},
        "text": {"Text": "item-007"},
    }  # fmt: skip
    box = "[...document.querySelectorAll('.browse')].find((b) => b.querySelector('select'))"
    change = f"""((name, value) => {{
      const label = [...{box}.querySelectorAll('label')].find((l) => l.firstChild.data === name);
      label.children[0].value = value;
      label.children[0].dispatchEvent(new Event('input', {{bubbles: true}}));
    }})"""

    async def visit(tab: Tab) -> dict[str, int]:
        found = {}
        for name, settings in asked.items():
            for control in ("Judge", "Metric", "Direction", "Text"):
                await tab.value(f"{change}('{control}', '{settings.get(control, '')}')")
            told = await tab.value(f"{box}.querySelector('output').textContent")
            found[name] = int(told.split(" of ")[1].split()[0])
        assert await tab.value(f"{box}.querySelectorAll('article').length") <= 20
        assert tab.complaints() == []
        return found

    found = browse_page(path, tmp_path, visit)
    (block,) = [b for b in realistic.part.blocks if b.heading == "Disagreements"]

    def fits(wanted: dict[str, str]) -> int:
        return sum(any(wanted.items() <= facet.items() for facet in c.facets) for c in block.cards)

    text = asked.pop("text")["Text"]
    assert found.pop("text") == sum(text in card.title for card in block.cards)
    assert found == {name: fits(wanted) for name, wanted in asked.items()}
    assert found["all"] > found["judge"] > found["metric"] > found["mild"] > 0


# Every element with text of its own: its size in pixels, and how its colour stands out from what
# lies behind it (WCAG 2.2, relative luminance). Images hold their own text and are left out.
READABLE = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const found = rgb(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] > 0.99) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  for (const d of document.querySelectorAll("details")) d.open = true;
  return [...document.body.querySelectorAll("*")]
    .filter((e) => own(e) && e.checkVisibility() && !e.closest("script, noscript"))
    .map((e) => {
      const style = getComputedStyle(e);
      const [a, b] = [light(rgb(style.color).slice(0, 3)), light(behind(e))];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      return [e.tagName + " " + e.className, parseFloat(style.fontSize), contrast];
    });
})()"""
LOOKS: tuple[Look, ...] = ("good", "fair", "bad", "unclear", "none")


def looks_part() -> Part:
    """Numbers with interval and mark in every look, below a table that is ordinary."""
    cells = [Cell(estimate=estimate(0.5), remark=f"why {look}", look=look) for look in LOOKS]
    table = Table("looks", "Looks", ("Metric", *LOOKS), ((Cell("tone"), *cells),))
    part = make_part()
    facts = (("Outcomes", ("REPLACE 1",)), ("Judges", ("one: model", "two: model")))
    return replace(part, blocks=(*part.blocks, Block("Looks", tables=(table,))), facts=facts)


@pytest.mark.parametrize("width", [1440, 400])
def test_all_text_is_large_enough_and_stands_out_in_light_and_dark(
    width: int, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([looks_part()], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> dict[str, Any]:
        await tab.screen(width)
        found = {}
        for scheme in ("light", "dark"):
            await tab.scheme(scheme)
            found[scheme] = await tab.value(READABLE)
        return found

    found = browse_page(path, tmp_path, visit)
    assert found["light"] != found["dark"]
    for scheme, texts in found.items():
        assert len(texts) > 200
        assert [t for t in texts if t[1] < 11] == [], scheme
        assert [t for t in texts if t[2] < 4.5] == [], scheme


@pytest.mark.long
@pytest.mark.parametrize("width", [1440, 400])
def test_links_land_on_their_heading_and_only_boxes_scroll_sideways(
    width: int, realistic: Alignment, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    part = realistic.part
    images = [saved["svg"] for saved in drawn(list(figures_of([part]))[:2]).values()]
    path.write_text(to_html([part, hostile_part("x")], "x" * 80, images), encoding="utf-8")
    land = """((link) => {
      link.click();
      const heading = document.querySelector(link.getAttribute("href"));
      const box = heading.getBoundingClientRect();
      const seen = document.elementFromPoint(box.left + 5, box.top + box.height / 2);
      const bottom = document.documentElement.scrollHeight - innerHeight - scrollY < 2;
      const near = box.top < 60 || bottom || scrollY === 0;
      return [heading.textContent, box.top >= 0 && near, heading.contains(seen)];
    })"""

    cue = """(() => {
      const wide = [...document.querySelectorAll(".wide")]
        .filter((box) => box.scrollWidth > box.clientWidth + 2);
      const fades = (box) => getComputedStyle(box).maskImage.includes("gradient");
      return [wide.length, wide.filter(fades).length];
    })()"""

    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.screen(width)
        await tab.value("document.documentElement.style.scrollBehavior = 'auto'")
        links = "document.querySelectorAll('nav a')"
        n = await tab.value(f"{links}.length")
        landed = [await tab.value(f"{land}({links}[{i}])") for i in range(n)]
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        await tab.value("new Promise((done) => setTimeout(done, 200))")
        fits = await tab.value("document.documentElement.scrollWidth <= innerWidth")
        return landed, await tab.value(cue), fits, tab.complaints()

    landed, (wider, cued), fits, complaints = browse_page(path, tmp_path, visit)
    assert len(landed) > 10
    assert [found for found in landed if found[1:] != [True, True]] == []
    assert wider == cued
    assert wider > 0 or width == 1440
    assert fits
    assert complaints == []


def test_one_metric_at_a_time_and_columns_order_rows(realistic: Alignment, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([realistic.part], "x"), encoding="utf-8")
    rows = "[...document.querySelectorAll('[data-title^=\"Accuracy against\"] tbody tr')]"
    seen = f"{rows}.filter((r) => !r.hidden).map((r) => r.querySelector('.value').textContent)"
    column = "document.querySelector('[data-title^=\"Accuracy against\"] th:nth-child(2)')"
    numbers = f"{rows}.map((r) => parseFloat(r.cells[1].querySelector('.value').textContent))"

    async def visit(tab: Tab) -> tuple[Any, ...]:
        metrics = await tab.value(seen)
        ordered = []
        for _ in range(3):
            await tab.value(f"{column}.querySelector('button').click()")
            ordered.append((await tab.value(f"{column}.ariaSort"), await tab.value(numbers)))
        await tab.value(
            "(() => { const s = document.querySelector('#metrics select');"
            f" s.value = {metrics[2]!r}; s.dispatchEvent(new Event('input')); }})()"
        )
        chosen = await tab.value("document.querySelector('.browse select[name=Metric]').value")
        return metrics, ordered, await tab.value(seen), chosen, tab.complaints()

    metrics, ordered, shown, chosen, complaints = browse_page(path, tmp_path, visit)
    assert metrics == [m.title for m in realistic.rubric.metrics]
    (up, rising), (down, falling), (none, given) = ordered
    assert (up, down, none) == ("ascending", "descending", None)
    assert rising == sorted(given)
    assert falling == sorted(given, reverse=True)
    assert shown == [metrics[2]] == [chosen]
    assert complaints == []


def test_paper_is_white_leaves_folded_parts_out_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([make_part()], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.scheme("dark", media="print")
        return (
            await tab.value("getComputedStyle(document.body).backgroundColor"),
            await tab.value("document.body.innerText"),
            await tab.value("document.querySelectorAll('details[open]').length"),
        )

    ground, text, opened = browse_page(path, tmp_path, visit)
    assert ground == "rgb(255, 255, 255)"
    assert opened == 0
    assert "Parts that are folded on the screen are left out here" in text
    assert "45 to browse on the screen." in text
    assert "item-1 " not in text


def test_without_javascript_every_table_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([looks_part()], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.call("Emulation.setScriptExecutionDisabled", value=True)
        await tab.open(path.as_uri())
        visible = "[...document.querySelectorAll('%s')].filter((e) => e.checkVisibility()).length"
        found = [await tab.value(visible % what) for what in (".wide table", "form, button")]
        return *found, await tab.value("document.body.innerText")

    tables, controls, text = browse_page(path, tmp_path, visit)
    assert tables == 2  # the third is folded
    assert controls == 0
    assert "This list needs JavaScript" in text


def test_a_tap_tells_what_a_number_rests_on_and_the_page_fits_a_telephone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([make_part()], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.value("document.querySelector('td[title]').click()")
        told = await tab.value("document.getElementById('detail').textContent")
        await tab.screen(360)
        width = "document.documentElement.scrollWidth <= innerWidth"
        return told, await tab.value(width), tab.complaints()

    told, fits, complaints = browse_page(path, tmp_path, visit)
    assert told == "n = 10, 0 missing; 95 % interval: bootstrap"
    assert fits
    assert complaints == []
