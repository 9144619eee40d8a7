"""Words that are marked as the reason for a label: kept, exported, shown to the lead."""

import json
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from annotate_case import Running, served
from browser import Browser, NewTab, Tab, needs_browser
from built_case import study_file
from page_case import SAVED, TITLE, fits, labels, press, signed_in, study

from judgebench.annotation import server
from judgebench.annotation.export import label_rows
from judgebench.annotation.init import annotate
from judgebench.annotation.screens import spans_in
from judgebench.annotation.store import Store
from judgebench.data.load import load_data
from judgebench.rubric import load_rubric

ANSWER = "Rest 🙂 today. Rest well.\n\nSee a doctor."
MARKDOWN = "Take **one** pill.\n\n- no more\n- no more"
QUOTES = "[...document.querySelectorAll('.reasons q')].map(q => q.textContent).join('|')"
SELECT = """(([from, to]) => {{
  const text = document.querySelectorAll('#texts .text')[{n}];
  const walk = document.createTreeWalker(text, NodeFilter.SHOW_TEXT), range = new Range();
  const all = text.textContent, start = all.indexOf({words!r});
  let at = 0;
  for (let node; (node = walk.nextNode()); at += node.data.length) {{
    const in_ = (i) => i >= at && i <= at + node.data.length;
    if (in_(start) && start < at + node.data.length) range.setStart(node, start - at);
    if (!in_(start + {words!r}.length)) continue;
    range.setEnd(node, start + {words!r}.length - at);
    break;
  }}
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}})([0, 0])"""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_FIGURES_S", 0)


def made(folder: Path, **changes: object) -> Path:
    return annotate(study_file(folder, spans=True, **changes), folder / "study").study


def test_spans_are_saved_checked_and_exported_with_the_label(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with served(folder) as site:
        ann = site.enters("ann")
        item = ann.gets("/api/work")["items"][0]["id"]
        answer = ann.gets(f"/api/screen/{item}")["screen"]["sections"][-1]
        n, end = answer["n"], len(answer["text"])
        mark = json.dumps([[n, 0, 6], [n, 9, end]])
        said = ann.save(
            ann.event(item, "tone", "Kind"), ann.event(item, "truth", "No"),
            ann.event(item, "spans tone", mark),
        )  # fmt: skip
        assert len(said["saved"]) == 3
        wrong = (
            "[]", "words", "[[0]]", '[["0", 1, 2]]', f"[[{n}, 3, 3]]", f"[[{n}, 0, {end + 1}]]",
            f"[[{n}, -1, 2]]", "[[-1, 0, 1]]", f"[[{n + 1}, 0, 1]]",
        )  # fmt: skip
        for one in wrong:
            refused = ann.save(ann.event(item, "spans tone", one))["refused"]
            assert [x["why"] for x in refused] == ["is no part of a text"], one
        assert ann.save(ann.event(item, "spans mood", mark))["refused"][0]["why"] == "is not asked"
        assert ann.gets(f"/api/screen/{item}")["labels"]["spans tone"] == mark
        rows = {row["metric"]: row for row in label_rows(folder)}
        assert rows["truth"]["spans"] == ""
        first, second = json.loads(rows["tone"]["spans"])
        place = {"section": n, "heading": "Answer", "start": 0, "end": 6}
        assert first == {**place, "text": "Answer"}
        assert answer["text"][9:] == second["text"]
        # A table with them is read as any other, and reports no unknown column.
        pd.DataFrame(label_rows(folder)).to_csv(tmp_path / "out.csv", index=False)
        rubric = load_rubric("mine.yaml", relative_to=tmp_path)
        data = load_data([tmp_path / "answers.csv", tmp_path / "out.csv"], rubric)
        assert data.n_labels == 2
        assert not [x for x in data.warnings if x.field == "spans"]
        ann.save(ann.event(item, "spans tone", None))
        assert {row["spans"] for row in label_rows(folder)} == {""}


def test_a_study_that_does_not_ask_for_spans_takes_none(tmp_path: Path) -> None:
    folder = annotate(study_file(tmp_path), tmp_path / "study").study
    with served(folder) as site:
        ann = site.enters("ann")
        item = ann.gets("/api/work")["items"][0]["id"]
        refused = ann.save(ann.event(item, "spans tone", "[[1, 0, 2]]"))["refused"]
        assert refused[0]["why"] == "is not asked"
        ann.save(ann.event(item, "tone", "Kind"))
    assert "spans" not in label_rows(folder)[0]


def test_spans_of_texts_that_changed_count_no_more(tmp_path: Path) -> None:
    folder = study(tmp_path, labels("s1"), labels("s2"), spans=True)
    with served(folder) as site:
        ann = site.enters("ann")
        ann.save(ann.event("s2", "harm", "Mild"), ann.event("s2", "spans harm", "[[2, 0, 3]]"))
        site.server.writing.put([labels("s2", "Another answer.")])
        assert ann.gets("/api/screen/s2")["labels"] == {}


def test_characters_are_counted_and_not_their_places() -> None:
    screen = labels("s1", ANSWER)
    assert [one["text"] for one in spans_in(screen, "[[2, 5, 6], [2, 14, 18]]")] == ["🙂", "Rest"]


async def select(tab: Tab, n: int, words: str) -> None:
    """Select the first of these words in a text, as a mouse does."""
    await tab.value(SELECT.format(n=n, words=words))


def marked(site: Running, screen: str = "s1") -> list[str]:
    given = site.server.reading.labels("ann", screen).get("spans harm")
    return [one["text"] for one in spans_in(site.server.reading.screens[screen].screen, given)]


@needs_browser
def test_words_are_highlighted_with_the_mouse_and_the_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    folder = study(tmp_path, labels("s1", ANSWER), labels("s2", MARKDOWN), spans=True)

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await select(tab, 2, "today. Rest")
            await tab.press("h")
            await tab.sees(QUOTES, "today. Rest")
            await tab.sees(SAVED, "Saved")
            assert marked(site) == ["today. Rest"]
            assert await tab.value("CSS.highlights.get('reason').size") == 1
            # Without a selection a window opens, in which the keyboard selects.
            await tab.press("h")
            await tab.sees("document.activeElement.tagName", "TEXTAREA")
            await tab.press("x")
            for _ in range(6):
                await tab.press("Shift+ArrowRight")
            assert await tab.value("document.activeElement.value") == ANSWER
            await tab.press("Enter")
            await tab.sees(QUOTES, "Rest 🙂|today. Rest")
            assert await tab.value("document.getElementById('spans').open") is False
            await tab.press("u")
            await tab.sees(QUOTES, "today. Rest")
            await tab.sees("document.querySelector('fieldset.at').dataset.key", "harm")
            await tab.offline(True)
            await tab.value("document.querySelector('.reasons li button').click()")
            await tab.sees(QUOTES, "")
            await select(tab, 2, "See a doctor")
            await tab.value("document.querySelector('.reasons > button').click()")
            await tab.sees(QUOTES, "See a doctor")
            await tab.offline(False)
            await tab.sees(SAVED, "Saved")
            await tab.reload(QUOTES, "See a doctor")
            assert marked(site) == ["See a doctor"]
            # Of rendered Markdown: where the words occur once they are known, else the window asks.
            await press(tab, "ArrowRight")
            await tab.sees(TITLE, "Item 2 of 2")
            await select(tab, 2, "pill")
            await tab.press("h")
            await tab.sees(QUOTES, "pill")
            await select(tab, 2, "no more")
            await tab.press("h")
            await tab.sees("document.getElementById('spans').open")
            place = MARKDOWN.index("no more")
            await tab.sees("document.activeElement.selectionStart", place)
            await tab.value(f"document.activeElement.setSelectionRange({place + 10}, 99)")
            await tab.press("Enter")
            await tab.sees(QUOTES, "pill|no more")
            await tab.sees(SAVED, "Saved")
            given = json.loads(str(site.server.reading.labels("ann", "s2")["spans harm"]))
            assert given[1] == [2, MARKDOWN.rindex("no more"), len(MARKDOWN)]
            await tab.screen(390)
            await fits(tab)
            errors = [e for e in tab.complaints() if "ERR_INTERNET" not in str(e)]
            assert not errors

    browser.run(visit)


def test_the_lead_sees_whose_reasons_are_which_only_among_the_items(tmp_path: Path) -> None:
    screens = [labels("s1", ANSWER), labels("s2", ANSWER)]
    rubric = {
        "name": "r", "version": "1", "instructions": "-",
        "metrics": [{"id": "harm", "title": "Harm", "question": "?", "kind": "ordinal",
                     "labels": ["None", "Mild", "Moderate", "Severe"]}],
    }  # fmt: skip
    folder = study(tmp_path, *screens, spans=True, rubric=rubric)

    with served(folder) as site:
        for who, label, span in (("ann", "Severe", [2, 0, 4]), ("ben", "Mild", [2, 7, 12])):
            person = site.enters(who)
            mark = person.event("s2", "spans harm", json.dumps([span]))
            person.save(person.event("s2", "harm", label), mark)
        lead = site.enters("lead")
        case = json.dumps(lead.gets("/api/lead/disagreements"))
        found = lead.asks("POST", "/api/lead/items", {"screen": "s2"}).value["items"][0]
    assert "today" in case
    assert "ann" not in case.replace("annotators", "")
    assert [found["quotes"][who]["harm"] for who in ("ann", "ben")] == [["Rest"], ["today"]]


def test_the_offline_sheet_highlights_too(tmp_path: Path) -> None:
    from judgebench.annotation.export import sheet

    with closing(Store(made(tmp_path) / "served" / "study.sqlite")) as store:
        assert '"spans":true' in sheet(store, "ann")
