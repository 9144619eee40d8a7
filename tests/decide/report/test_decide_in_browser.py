"""The decisions in a real browser: what runs, what is asked of the network, where a chip leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browser import Tab, browse, needs_browser
from decide_report_case import hostile_decisions, make_decisions
from stress_report_case import alone

from judgebench.decide.result import Decisions
from judgebench.report.old.html import to_html

pytestmark = needs_browser


def page(decisions: Decisions, folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(to_html(alone(), None, decisions), encoding="utf-8")
    return path


def test_no_text_of_a_decision_runs_and_nothing_is_fetched(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        return (
            await tab.value("document.title"),
            await tab.value("document.getElementById('evidence').innerText"),
            await tab.value("document.querySelectorAll('#evidence script, img, iframe').length"),
            tab.requests(),
            tab.complaints(),
        )

    hostile = page(hostile_decisions(), tmp_path)
    title, text, foreign, requests, complaints = browse(hostile, tmp_path, visit)
    assert title == "alone: may these judges stand in for the annotators?"
    assert text.count("</script><script>document.title='pwned'</script>") > 50
    assert foreign == 0
    assert [url.rsplit("/", 1)[1] for url in requests] == ["report.html"]
    assert complaints == []


def test_a_chip_leads_to_its_conditions_and_the_page_fits_a_telephone(tmp_path: Path) -> None:
    async def visit(tab: Tab) -> list[Any]:
        shown = "document.getElementById('decision-1').closest('details').open"
        found = [await tab.value(shown)]
        await tab.value("document.querySelector('.outcomes a').click()")
        found += [await tab.value("location.hash"), await tab.value(shown)]
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        metrics = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        await tab.call("Emulation.setDeviceMetricsOverride", **metrics)
        return [*found, await tab.value("document.documentElement.scrollWidth <= innerWidth")]

    found = browse(page(make_decisions(), tmp_path), tmp_path, visit)
    assert found == [False, "#decision-1", True, True]
