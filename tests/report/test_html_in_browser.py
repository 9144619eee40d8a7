"""The page in a real browser: what runs, what is asked of the network, what the list shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from browser import Tab, needs_browser
from browser import browse as browse_page

from judgebench.align import Alignment
from judgebench.report.old.html import to_html
from judgebench.stress.result import StressResult

pytestmark = needs_browser
T = TypeVar("T")


def browse(
    alignment: Alignment,
    folder: Path,
    visit: Callable[[Tab], Awaitable[T]],
    stress: StressResult | None = None,
) -> T:
    page = folder / "report.html"
    page.write_text(to_html(alignment, stress), encoding="utf-8")
    return browse_page(page, folder, visit)


def test_no_injected_script_runs_and_nothing_is_fetched(hostile: Alignment, tmp_path: Path) -> None:
    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        return (
            await tab.value("document.title"),
            await tab.value("document.body.innerText"),
            await tab.value("document.scripts.length"),
            await tab.value("document.querySelectorAll('#items article').length"),
            await tab.value("document.querySelectorAll('img, svg, iframe, #items script').length"),
            tab.requests(),
            tab.complaints(),
        )

    title, text, scripts, cards, foreign, requests, complaints = browse(hostile, tmp_path, visit)
    assert title == f"{hostile.name}: judges against human labels"
    assert (scripts, foreign) == (2, 0)
    assert cards == len(hostile.disagreements)
    for d in hostile.disagreements:
        first = d.answer.text.split("\u2028")[0].split("\n")[0].strip()
        assert first[:20] in text
    assert "{{ 7*7 }}" in text
    assert [url.rsplit("/", 1)[1] for url in requests] == ["report.html"]
    assert complaints == []


def test_the_list_is_filtered_as_the_data_say(realistic: Alignment, tmp_path: Path) -> None:
    async def visit(tab: Tab) -> dict[str, int]:
        found = {}
        for name, settings in {
            "all": {},
            "judge": {"by-judge": "smollm2-135m"},
            "metric": {"by-judge": "smollm2-135m", "by-metric": "extent_of_harm"},
            "mild": {
                "by-judge": "smollm2-135m", "by-metric": "extent_of_harm", "by-direction": "mild",
            },
            "missing": {"by-judge": "smollm2-135m", "by-direction": "missing"},
            "text": {"by-text": "item-007"},
        }.items():  # fmt: skip
            for control in ("by-judge", "by-metric", "by-direction", "by-text"):
                await tab.enter(control, settings.get(control, ""))
            told = await tab.value("document.getElementById('how-many').textContent")
            found[name] = int(told.split(" of ")[1].split()[0])
        assert await tab.value("document.querySelectorAll('#items article').length") <= 20
        assert tab.complaints() == []
        return found

    found = browse(realistic, tmp_path, visit)
    severity = realistic.rubric.metrics[3].label_texts

    def differs(d: Any, judge: str, metric: str) -> bool:
        truth, label = d.truth.get(metric), d.verdicts[judge].labels.get(metric)
        return truth is not None and label != truth

    items = realistic.disagreements
    judge = "smollm2-135m"
    ids = [metric.id for metric in realistic.rubric.metrics]
    harm = "extent_of_harm"
    pairs = [(d.truth.get(harm), d.verdicts[judge].labels.get(harm)) for d in items]
    assert found == {
        "all": len(items),
        "judge": sum(any(differs(d, judge, m) for m in ids) for d in items),
        "metric": sum(differs(d, judge, harm) for d in items),
        "mild": sum(
            severity.index(said) < severity.index(truth) for truth, said in pairs if truth and said
        ),
        "missing": sum(
            any(m in d.truth and m not in d.verdicts[judge].labels for m in ids) for d in items
        ),
        "text": sum(d.answer.item_id == "item-007" for d in items),
    }


def test_one_panel_is_shown_at_a_time(realistic: Alignment, tmp_path: Path) -> None:
    shown = "[...document.querySelectorAll('.panel')].filter((p) => p.offsetHeight).map("
    shown += "(p) => p.dataset.statistic + ' ' + p.dataset.failures).join()"

    async def visit(tab: Tab) -> list[Any]:
        seen = [await tab.value(shown)]
        await tab.enter("choose-statistic", "severity_error")
        await tab.enter("choose-failures", "worst")
        seen.append(await tab.value(shown))
        width = "document.documentElement.scrollWidth <= innerWidth"
        metrics = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        await tab.call("Emulation.setDeviceMetricsOverride", **metrics)
        return [*seen, await tab.value(width)]

    assert browse(realistic, tmp_path, visit) == ["accuracy left_out", "severity_error worst", True]
