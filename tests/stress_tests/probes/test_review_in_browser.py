"""The review page of a set in a real browser: what is decided there counts."""

from pathlib import Path

from browser import Tab, browse, needs_browser, save
from review_case import altered, written

from judgebench.stress_tests.item_sets import accepted_ids, write_review

pytestmark = needs_browser


def test_what_is_accepted_by_keyboard_counts(tmp_path: Path) -> None:
    path = written(tmp_path, altered())
    (tmp_path / "saved").mkdir()

    async def visit(tab: Tab) -> Path:
        await tab.enter("reviewer", "A. Person")
        for key in ("a", "ArrowRight", "r", "ArrowRight", "a"):
            await tab.press(key)
        marks = await tab.value("document.querySelectorAll('mark').length")
        assert marks > 1
        saved = await save(tab, tmp_path / "saved")
        assert tab.complaints() == []
        return saved

    saved = browse(write_review(path), tmp_path, visit)
    assert saved.name == "violations.decisions.csv"
    path.with_name(saved.name).write_bytes(saved.read_bytes())
    assert accepted_ids(path) == {"cv-01", "cv-03"}
