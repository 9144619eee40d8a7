"""The page in a real browser: what runs, what is asked of the network, what the list shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browser import Tab, needs_browser
from browser import browse as browse_page
from part_case import hostile_part, make_part

from judgebench.align import Alignment
from judgebench.report.figure import drawn
from judgebench.report.html import to_html
from judgebench.results.part import figures_of

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


def test_a_tap_tells_what_a_number_rests_on_and_the_page_fits_a_telephone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([make_part()], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.value("document.querySelector('td[title]').click()")
        told = await tab.value("document.getElementById('detail').textContent")
        metrics = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        await tab.call("Emulation.setDeviceMetricsOverride", **metrics)
        width = "document.documentElement.scrollWidth <= innerWidth"
        return told, await tab.value(width), tab.complaints()

    told, fits, complaints = browse_page(path, tmp_path, visit)
    assert told == "n = 10, 0 missing; 95 % interval: bootstrap"
    assert fits
    assert complaints == []
