"""The sheet's page in a real browser: what it keeps, what it writes, what runs."""

from pathlib import Path

from browser import Tab, browse, needs_browser, save
from odd_texts import HOSTILE
from rank_case import items

from judgebench.ranking.human import RankedItem, read_key, read_ranks, write_sheets

pytestmark = needs_browser

PROGRESS = "document.getElementById('progress').textContent"
RANKS = "[...document.querySelectorAll('input[type=radio]:checked')].map((e) => e.value).join('')"
REMARK = "=1+1, \"quoted\";\nand '-2' 😀".replace("\n", " ")


async def click(tab: Tab, item: int, argument: int, rank: int) -> None:
    await tab.value(
        f"document.querySelector('[name=rank-{item}-{argument}][value=\"{rank}\"]').click()"
    )


def test_ranks_outlive_a_reload_and_reach_the_table(tmp_path: Path) -> None:
    write_sheets(items(2), ["anna"], tmp_path, n=None, seed=0)
    page = tmp_path / "sheets" / "anna.html"
    folder = tmp_path / "downloads"
    folder.mkdir()

    async def visit(tab: Tab) -> tuple[list[str], Path]:
        seen = [await tab.value(PROGRESS)]
        for argument, rank in enumerate((2, 2, 5, 1)):
            await click(tab, 0, argument, rank)
        await click(tab, 1, 0, 3)
        await tab.value(
            "(() => { const e = document.querySelector('#item-0 input.remark');"
            f" e.value = {REMARK!r}; e.dispatchEvent(new Event('input')); }})()"
        )
        await tab.reload(PROGRESS, "1 of 2 items ranked")
        seen += [await tab.value(PROGRESS), await tab.value(RANKS)]
        saved = await save(tab, folder)
        assert tab.complaints() == []
        assert [url for url in tab.requests() if not url.startswith(("file:", "blob:"))] == []
        return seen, saved

    seen, saved = browse(page, tmp_path, visit)
    assert seen == ["0 of 2 items ranked", "1 of 2 items ranked", "22513"]
    assert saved.name == "anna.csv"
    ranks = read_ranks([saved])
    behind = read_key(tmp_path / "sheet-key.json").letters["anna"][0]
    assert {r.system: r.rank for r in ranks.ranks} == dict(zip(behind, (2, 2, 5, 1), strict=True))
    assert [w.kind for w in ranks.warnings] == ["ranked in part"]
    # The script wrote what Python wrote, but for the ranks and the remark.
    blank = (tmp_path / "sheets" / "anna.csv").read_text("utf-8-sig").splitlines()
    filled = saved.read_text("utf-8-sig").splitlines()
    assert '\'=1+1, ""quoted""' in filled[1]
    assert filled[6:] == blank[6:]
    assert filled[4] == blank[4].replace('"D","",', '"D","1",')


def test_hostile_texts_are_shown_and_never_run(tmp_path: Path) -> None:
    hostile = RankedItem("t", "i", "", HOSTILE[0], HOSTILE[1], HOSTILE[2],
                         {f"system-{i}": text for i, text in enumerate(HOSTILE)})  # fmt: skip
    write_sheets([hostile], ["anna"], tmp_path, n=None, seed=0)

    async def visit(tab: Tab) -> tuple[str, str, int]:
        shown = await tab.value("document.querySelector('#item-0 h2').textContent")
        inside = await tab.value("document.querySelectorAll('#items script, #items img').length")
        assert tab.complaints() == []
        return await tab.value("document.title"), shown, inside

    title, shown, inside = browse(tmp_path / "sheets" / "anna.html", tmp_path, visit)
    assert (title, shown, inside) == ("Ranks of anna", HOSTILE[0], 0)
