"""The page in a real browser: what runs, what is asked of the network, what the list shows."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from alignment_case import HOSTILE
from browser import Tab, needs_axe, needs_browser
from browser import browse as browse_page
from part_case import estimate, hostile_part, make_part

import judgebench as jb
from judgebench.alignment import Alignment
from judgebench.records import Results
from judgebench.reporting import analyse, parts
from judgebench.results.blocks import Block, Items, ItemVerdict, ReportSection
from judgebench.results.documents import to_html
from judgebench.results.tables import Cell, CellTone, Table
from judgebench.stats.intervals import LEVEL

pytestmark = needs_browser
CARDS = "document.querySelectorAll('.cards article').length"


def test_no_injected_script_runs_and_nothing_is_fetched(tmp_path: Path) -> None:
    part = hostile_part()
    path = tmp_path / "report.html"
    path.write_text(to_html([part], "hostile"), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        while not await tab.value("document.querySelector('.more').hidden"):
            await tab.value("document.querySelector('.more').click()")
        await tab.value("for (const d of document.querySelectorAll('details')) d.open = true")
        return (
            await tab.value("document.title"),
            await tab.value("document.body.innerText"),
            await tab.value("document.scripts.length"),
            await tab.value(CARDS),
            await tab.value("document.querySelectorAll('img, iframe, .cards script').length"),
            tab.requests(),
            tab.complaints(),
        )

    found = browse_page(path, tmp_path, visit)
    title, text, scripts, cards, foreign, requests, complaints = found
    assert title == "hostile: what alignment says"
    assert (scripts, cards, foreign) == (2, 45, 0)
    assert "{{ 7*7 }}" in text
    assert "</script><script>document.title='pwned'</script>" in text
    assert [url.rsplit("/", 1)[1] for url in requests] == ["report.html"]
    assert complaints == []


ITEMS = "document.querySelector('.items')"
COUNT = f"parseInt({ITEMS}.querySelector('output').textContent.split(' of ')[1].replace(',', ''))"
CHOOSE = f"""((name, value) => {{
  const label = [...{ITEMS}.querySelectorAll('label')].find((l) => l.firstChild.data === name);
  const control = label.children[0];
  const option = [...(control.options || [])].find((o) => o.textContent === value);
  control.value = option ? option.value : value;
  control.dispatchEvent(new Event('input', {{bubbles: true}}));
}})"""


async def choose(tab: Tab, **values: str) -> None:
    for name, value in values.items():
        await tab.value(f"{CHOOSE}({name.replace('_', ' ')!r}, {value!r})")


def test_items_are_filtered_by_metric_judge_annotator_label_and_text(
    realistic: Alignment, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([realistic.part], "x"), encoding="utf-8")
    metric, judge = realistic.rubric.metrics[3], "smollm2-135m"
    label = metric.label_texts[1]

    async def visit(tab: Tab) -> dict[str, int]:
        found = {}
        for way in ("all", "judges", "annotators"):
            await choose(tab, Show=way, Metric=metric.title, Judge=judge)
            found[way] = await tab.value(COUNT)
        await choose(tab, Show="all", Annotators_say=label)
        found["label"] = await tab.value(COUNT)
        await choose(tab, Judge_says=label)
        found["both"] = await tab.value(COUNT)
        await choose(tab, Annotators_say="", Judge_says="", Annotator="A")
        found["annotator"] = await tab.value(COUNT)
        await choose(tab, Annotator="", Text="item-007")
        found["text"] = await tab.value(COUNT)
        assert await tab.value(f"{ITEMS}.querySelectorAll('.row').length") <= 12
        assert tab.complaints() == []
        return found

    found = browse_page(path, tmp_path, visit)
    assert realistic.part.items
    items = realistic.part.items()
    said = next(one for one in items.said if one.title == metric.title)
    signs = list(zip(said.reference, said.judges[judge], *said.annotators.values(), strict=True))
    known = [(reference, label) for reference, label, *_ in signs if reference >= "0"]
    given = [{sign for sign in people if sign >= "0"} for _, _, *people in signs]
    assert found == {
        "all": len(items.ids),
        "judges": sum(reference != label for reference, label in known),
        "annotators": sum(len(labels) > 1 for labels in given),
        "label": sum(reference == "1" for reference, _ in known),
        "both": sum(pair == ("1", "1") for pair in known),
        "annotator": sum(sign >= "0" for sign in said.annotators["A"]),
        "text": sum("item-007" in item for item in items.ids),
    }
    assert 0 < found["both"] < found["label"] < found["annotator"] <= found["all"]


def many(n: int = 20_000) -> ReportSection:
    """As many items as a page is to carry, with labels of three people and a judge on two metrics
    and hostile ids and texts among them."""
    people = {who: ("0123" * n)[place : n + place] for place, who in enumerate("abc")}
    labels = ("No harm", "Some harm", "Severe harm", "Deadly")
    said = [
        ItemVerdict(metric, labels, range(4), "0123" * (n // 4), people, {"m": ("03" * n)[:n]})
        for metric in ("Tone", "Harm")
    ]
    texts = [((("Question", f"q{i % 900}"), ("Answer", f"answer {i} " * 60)), ()) for i in range(n)]
    texts[5] = ((("Answer", HOSTILE[0]),), ((HOSTILE[1], HOSTILE[2]),))
    ids = [f"item-{i}" for i in range(n)]
    ids[5] = f"{HOSTILE[0]} #%2F?=&"
    items = Items(ids, [""] * n, said, texts)
    return ReportSection("many", "many", Results(), (Block("A", ("b",)),), items=lambda: items)


def test_20000_items_stay_fluent_and_a_link_opens_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    part = many()
    path.write_text(to_html([part], "x"), encoding="utf-8")
    timed = f"""(() => {{
      const start = performance.now();
      {ITEMS}.querySelector('form').dispatchEvent(new Event('input'));
      document.body.offsetHeight;
      return performance.now() - start;
    }})()"""
    assert part.items
    hostile = part.items().ids[5]
    opened = "document.querySelector('.row[open]')?.dataset.item"

    async def visit(tab: Tab) -> tuple[Any, ...]:
        times = sorted([await tab.value(timed) for _ in range(5)])
        rows = await tab.value("document.querySelectorAll('.row').length")
        for item in ("item-17777", hostile):
            await tab.value(f"location.hash = '#item-' + encodeURIComponent({json.dumps(item)})")
            await tab.sees(opened, item)
            await tab.sees("document.querySelectorAll('.row[open] article').length", 1)
        focused = await tab.value("document.activeElement.parentElement.dataset.item")
        text = await tab.value("document.querySelector('.row[open]').innerText")
        foreign = "document.querySelectorAll('.rows :is(script, img, iframe)').length"
        await tab.value("location.hash = '#misses-Harm=m'")
        await tab.sees("document.querySelector('.row[open]')", None)
        misses = await tab.value(COUNT)
        return times, rows, focused, text, await tab.value(foreign), misses, tab.complaints()

    times, rows, focused, text, foreign, misses, complaints = browse_page(path, tmp_path, visit)
    assert times[2] < 1000  # milliseconds; a tenth of it on a machine at rest
    assert rows == 12
    assert focused == hostile
    assert HOSTILE[0] in text
    assert (foreign, complaints) == (0, [])
    assert misses == 10_000  # the judge says 0 or 3, in turn: right on every second


def test_items_are_opened_and_turned_with_the_keyboard_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([many(40)], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.value("document.querySelector('.items .on').focus()")
        await tab.press("Enter")
        told = await tab.value("document.querySelector('.items output').textContent")
        await tab.press("Tab")
        await tab.press("Enter")
        await tab.sees("document.querySelectorAll('.row[open] article').length", 1)
        return told, await tab.focused(), tab.complaints()

    told, focused, complaints = browse_page(path, tmp_path, visit)
    assert told == "13 to 20 of 20"
    assert focused == "SUMMARY"
    assert complaints == []


def test_of_equally_far_misses_the_too_mild_and_the_undisputed_come_first(tmp_path: Path) -> None:
    said = ItemVerdict(
        "Harm", ("no", "yes"), range(2), "0110",
        {"a": "0110", "b": "0010", "c": "0111"}, {"m": "1001"},
    )  # fmt: skip
    ids = ["too severe", "split", "undisputed", "both"]
    both, asked = (("Question", "why?"), ("Answer", "x")), (("Question", "why?"),)
    texts = [(both, ()), (both, ()), (asked, ()), (both, ())]
    part = ReportSection("few", "few", Results(), items=lambda: Items(ids, [""] * 4, [said], texts))
    path = tmp_path / "report.html"
    path.write_text(to_html([part], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> Any:
        await tab.value("location.hash = '#misses-Harm=m'")
        rows = "[...document.querySelectorAll('.row')].map((r) => "
        return [await tab.value(f"{rows}{one})") for one in
                ("r.dataset.item", "r.querySelector('.excerpt').textContent")]  # fmt: skip

    ids, excerpts = browse_page(path, tmp_path, visit)
    assert ids == ["undisputed", "split", "too severe", "both"]
    assert excerpts == ["why?", "x", "x", "x"]  # where there is no answer, its question


@needs_browser
def test_nobody_agrees_where_nobody_labelled(tmp_path: Path) -> None:
    """Of two metrics: labelled by two and the judge, by the judge alone, and by nobody."""
    said = [
        ItemVerdict(title, ("no", "yes"), range(2), "0  ", {"a": "0  ", "b": "0  "}, {"m": "00 "})
        for title in ("Harm", "Tone")
    ]
    texts = [((("Answer", "x"),), ())] * 3
    items = Items(["all", "judge", "none"], [""] * 3, said, texts)
    path = tmp_path / "report.html"
    part = ReportSection("few", "few", Results(), items=lambda: items)
    path.write_text(to_html([part], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> Any:
        await tab.value("location.hash = '#items'")
        rows = "[...document.querySelectorAll('.row')].map((r) => "
        bits = "[...r.querySelectorAll('.bit span')].map((s) => s.textContent).join()"
        return await tab.value(f"{rows}r.dataset.item + ' ' + {bits})")

    assert browse_page(path, tmp_path, visit) == ["all agree,agrees", "judge ,–", "none ,–"]


def decided(metrics: int, judges: int) -> list[ReportSection]:
    """The report of a small study of real analyses."""
    rows = [(f"i{i:02}", f"q{i % 30}") for i in range(60)]
    names = [f"metric-{m}" for m in range(metrics)]

    def labels(who: str, kind: str, shift: int) -> pd.DataFrame:
        given = {n: ["abc"[(i + (i % shift == 0)) % 3] for i in range(60)] for n in names}
        about = {"item_id": [item for item, _ in rows], "question": [q for _, q in rows]}
        return pd.DataFrame({**about, kind: who, **given})

    people = pd.concat([labels(who, "annotator", 7 + n) for n, who in enumerate(("ann", "bob"))])
    verdicts = pd.concat([labels(f"judge-{j}", "judge", 2 + j) for j in range(judges)])
    rubric = jb.Rubric.from_labels({name: ["a", "b", "c"] for name in names})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        level = LEVEL
        study = jb.study(people, verdicts, rubric=rubric, level=level)
        return parts(analyse(replace(study, name="small")))


@needs_axe
@pytest.mark.parametrize(("metrics", "judges"), [(1, 1), (3, 2)])
def test_a_report_is_short_small_and_open_to_everybody(
    metrics: int, judges: int, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html(decided(metrics, judges), "small"), encoding="utf-8")
    assert path.stat().st_size < 1_500_000

    async def visit(tab: Tab) -> tuple[Any, ...]:
        heights, fits, faults = {}, [], []
        for width in (1440, 390):
            await tab.screen(width)
            heights[width] = await tab.value("document.documentElement.scrollHeight")
            fits.append(await tab.value("document.documentElement.scrollWidth <= innerWidth"))
            seen = "document.querySelector('.say').getBoundingClientRect().bottom"
            fits.append(await tab.value(f"{seen} <= 850"))
            key = "document.querySelector('.key').getBoundingClientRect().top"
            fits.append(await tab.value(f"{key} > {seen}") is (width == 390))  # no room before it
            await tab.scheme("dark" if width == 390 else "light")
            faults += await tab.axe()
        folds = "document.querySelectorAll('.fold, .fold details, .row:first-child')"
        if judges > 1:  # the same, and much more of it
            return heights, fits, faults, tab.complaints()
        await tab.value(f"for (const d of {folds}) d.open = true")
        await tab.sees("document.querySelectorAll('.row article').length", 1)
        faults += await tab.axe()
        return heights, fits, faults, tab.complaints()

    heights, fits, faults, complaints = browse_page(path, tmp_path, visit)
    assert faults == []
    assert all(fits)
    assert heights[1440] <= 900 * (4 if metrics == judges == 1 else 6)
    assert complaints == []


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
LOOKS: tuple[CellTone, ...] = ("good", "fair", "bad", "unclear", "none")


def looks_part() -> ReportSection:
    """Numbers with interval and mark in every look, below a table that is ordinary."""
    cells = [Cell(estimate=estimate(0.5), remark=f"why {look}", look=look) for look in LOOKS]
    table = Table("looks", "Looks", ("Metric", *LOOKS), ((Cell("tone"), *cells),))
    part = make_part()
    facts = ("9 answers", "2 annotators")
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


def test_columns_order_rows(realistic: Alignment, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([realistic.part], "x"), encoding="utf-8")
    rows = "[...document.querySelectorAll('[data-title^=\"Accuracy against\"] tbody tr')]"
    column = "document.querySelector('[data-title^=\"Accuracy against\"] th:nth-child(2)')"
    numbers = f"{rows}.map((r) => parseFloat(r.cells[1].querySelector('.value').textContent))"

    async def visit(tab: Tab) -> tuple[Any, ...]:
        ordered = []
        for _ in range(3):
            await tab.value(f"{column}.querySelector('button').click()")
            ordered.append((await tab.value(f"{column}.ariaSort"), await tab.value(numbers)))
        return ordered, tab.complaints()

    ordered, complaints = browse_page(path, tmp_path, visit)
    (up, rising), (down, falling), (none, given) = ordered
    assert (up, down, none) == ("ascending", "descending", None)
    assert rising == sorted(given)
    assert falling == sorted(given, reverse=True)
    assert complaints == []


def test_without_javascript_every_table_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html([looks_part()], "x"), encoding="utf-8")

    async def visit(tab: Tab) -> tuple[Any, ...]:
        await tab.call("Emulation.setScriptExecutionDisabled", value=True)
        await tab.open(path.as_uri())
        visible = "[...document.querySelectorAll('%s')].filter((e) => e.checkVisibility()).length"
        found = [await tab.value(visible % what) for what in (".wide table", "form, button")]
        return tuple(found)

    tables, controls = browse_page(path, tmp_path, visit)
    assert tables == 1  # the others are folded, and open without it
    assert controls == 0


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
