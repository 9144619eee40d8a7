"""The double check: what people say of items splits them, and the rates add up."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser import AXE, Tab, browse, needs_browser, save
from hypothesis import given
from hypothesis import strategies as st
from odd_texts import HOSTILE
from typer.testing import CliRunner

from judgebench.cli.app import app
from judgebench.data.formats import to_csv
from judgebench.errors import SetupError
from judgebench.people.page import Question, item_hash, read_decisions, review_page
from judgebench.tuning.rounds import CRITERIA, reviewed, shown_item

KEYS = [question.key for question in CRITERIA]
COLUMNS = ["item_id", "content_hash", *KEYS, "reviewer", "remark"]


def line(number: int, **more: Any) -> dict[str, Any]:
    return {
        "silver": True, "item_id": f"i{number}", "question": f"Question {number // 2}?",
        "system": "alexa", "text": f"Answer {number}.", "labels": {"risk": "Low"},
        "rationale": "Because.", "teacher": {"name": "gpt", "signature": "s"},
        "transcript": [{"question": "What is iron?", "passages": ["Iron is a metal."]}], **more,
    }  # fmt: skip


def write_lines(path: Path, found: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in found))
    return path


def sheet(path: Path, lines: Sequence[dict[str, Any]], said: Mapping[str, str]) -> Path:
    """A table of decisions: of each item p, f or a blank for each criterion."""
    words = {"p": "pass", "f": "FAIL ", "-": ""}
    items = {one["item_id"]: shown_item(one) for one in lines}
    rows = [
        [i, item_hash(items[i]), *(words[letter] for letter in given), "Ann", ""]
        for i, given in said.items()
    ]
    path.write_bytes(to_csv(COLUMNS, rows))
    return path


def test_items_are_split_by_what_everybody_said(tmp_path: Path) -> None:
    lines = [line(n) for n in range(6)]
    path = write_lines(tmp_path / "silver.jsonl", lines)
    ann = sheet(tmp_path / "ann.csv", lines, {
        "i0": "ppp", "i1": "pfp", "i2": "pp-", "i3": "ppp", "i4": "f--",
    })  # fmt: skip
    bob = sheet(tmp_path / "bob.csv", lines, {"i2": "--p", "i3": "ppf"})
    done = CliRunner().invoke(
        app, ["tune", "review", str(path), "--decisions", str(ann), "--decisions", str(bob)]
    )
    assert done.exit_code == 0, done.output
    accepted = (tmp_path / "silver.accepted.jsonl").read_text().splitlines()
    rejected = (tmp_path / "silver.rejected.jsonl").read_text().splitlines()
    assert [json.loads(one) for one in accepted] == [lines[0], lines[2]]
    assert [(json.loads(one)["item_id"], json.loads(one)["failed"]) for one in rejected] == [
        ("i1", ["attribution"]), ("i3", ["fluency"]), ("i4", ["knowledge"]),
    ]  # fmt: skip
    assert "1 without a decision, in neither file" in done.output
    assert "fails attribution: 25.0% (n = 4)" in done.output


def test_nobody_can_drop_fewer_than_fail_one_criterion() -> None:
    """With the paper's rates (section 3.1): 9.29 % fail attribution, so at least as many go."""
    n = 9874
    failing = {"knowledge": 587, "attribution": 917, "fluency": 588}
    lines = [line(i, question=f"q{i}") for i in range(n)]
    nested = {  # those who fail one fail the others too, so that as few are dropped as can be
        f"i{i}": {key: "fail" if i < failing[key] else "pass" for key in KEYS} for i in range(n)
    }
    found = reviewed(lines, [nested])
    assert found.rates.find("fails attribution").value == pytest.approx(1 - 0.9071, abs=1e-4)
    assert len(found.rejected) == 917 > 305  # the paper drops 305
    assert found.rates.find("dropped").value == found.rates.find("fails attribution").value
    assert found.rates.to_frame()["n"].tolist() == [n] * 4


@given(st.lists(st.lists(st.text("pf-", min_size=3, max_size=3), min_size=5, max_size=5),
                min_size=1, max_size=3))  # fmt: skip
def test_the_laws_of_a_split(people: list[list[str]]) -> None:
    lines = [line(n) for n in range(5)]
    words = {"p": "pass", "f": "fail", "-": ""}
    said = [
        {
            f"i{n}": dict(zip(KEYS, map(words.get, given), strict=True))
            for n, given in enumerate(one)
        }
        for one in people
    ]
    found = reviewed(lines, said)  # type: ignore[arg-type]
    ids = [[one["item_id"] for one in some] for some in
           (found.accepted, found.rejected, found.undecided)]  # fmt: skip
    assert sorted(one for some in ids for one in some) == [f"i{n}" for n in range(5)]
    for n in range(5):
        given = [one[n] for one in people]
        if any("f" in one for one in given):
            assert f"i{n}" in ids[1]
        elif all(any(one[place] == "p" for one in given) for place in range(3)):
            assert f"i{n}" in ids[0]
        else:
            assert f"i{n}" in ids[2]


def test_what_is_wrong_with_decisions_is_said_together(tmp_path: Path) -> None:
    lines = [line(n) for n in range(3)]
    items = [shown_item(one) for one in lines]
    hashes = [item_hash(one) for one in items]
    path = tmp_path / "d.csv"
    rows = [
        ["i0", hashes[0], "pass", "maybe", ""], ["i0", hashes[0], "", "", ""],
        ["i1", hashes[0], "", "", ""], ["i9", hashes[0], "", "", ""],
        ["i2", hashes[2], "", "", "f"],
    ]  # fmt: skip
    path.write_bytes(to_csv(COLUMNS[:5], rows))
    with pytest.raises(SetupError) as caught:
        read_decisions(path, items, CRITERIA)
    assert str(caught.value).splitlines() == [
        f"{path}:2: attribution: is no answer; found 'maybe'; allowed: pass, fail, or blank",
        f"{path}:3: item_id: occurs twice; found 'i0'",
        f"{path}:4: item_id: has changed since it was reviewed; found 'i1'",
        f"{path}:5: item_id: is not among the items; found 'i9'",
        f"{path}:6: fluency: is no answer; found 'f'; allowed: pass, fail, or blank",
    ]
    path.write_bytes(to_csv(["item_id", *KEYS], []))
    with pytest.raises(SetupError, match="content_hash: the column is missing"):
        read_decisions(path, items, CRITERIA)


def test_a_file_that_holds_no_items_is_refused(tmp_path: Path) -> None:
    wrong = line(3, transcript=[{"passages": []}], rationale=None)
    unsound = [line(1), line(1), {"item_id": 3, "labels": []}, line(2), wrong]
    path = write_lines(tmp_path / "s.jsonl", unsound)
    result = CliRunner().invoke(app, ["tune", "review", str(path)])
    said = str(result.exception).splitlines()
    assert said[0] == f"{path}:2: item_id: occurs twice; found 'i1'"
    assert [one.split(": ")[:2] for one in said[1:]] == [
        [f"{path}:3", "item_id"], [f"{path}:3", "text"], [f"{path}:3", "labels"],
        [f"{path}:5", "rationale"], [f"{path}:5", "transcript.0.question"],
    ]  # fmt: skip
    assert list(tmp_path.glob("*.html")) == []
    path.write_text("")
    result = CliRunner().invoke(app, ["tune", "review", str(path)])
    assert str(result.exception) == f"{path}: holds no item"


def test_the_page_does_not_say_who_wrote_the_labels(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "silver.jsonl", [line(1)])
    done = CliRunner().invoke(app, ["tune", "review", str(path)])
    page = tmp_path / "silver.review.html"
    assert done.output.strip() == str(page)
    html = page.read_text()
    assert "What is iron?" in html
    assert "Because." in html
    assert "gpt" not in html
    assert "alexa" not in html


PROGRESS = "document.getElementById('progress').textContent"
SHOWN = "document.getElementById('item').innerText"


@needs_browser
def test_answers_by_keyboard_outlive_a_reload_and_are_read_back(tmp_path: Path) -> None:
    lines = [line(n, text=text) for n, text in enumerate(["One.", "Two.", "\n".join(HOSTILE)])]
    items = [shown_item(one) for one in lines]
    page = tmp_path / "silver.review.html"
    page.write_text(review_page("silver", items, CRITERIA))

    async def visit(tab: Tab) -> tuple[list[str], Path]:
        await tab.enter("reviewer", "Ann")
        for key in ("p", "p", "f", "ArrowRight", "f", "ArrowDown", "p"):
            await tab.press(key)
        seen = [await tab.value(PROGRESS)]
        await tab.reload(PROGRESS, seen[0])  # goes on at the first item without all answers
        seen += [await tab.value(PROGRESS), await tab.value(SHOWN)]
        await tab.press("ArrowRight")
        for _ in range(3):
            await tab.press("p")
        await tab.enter("remark", '=1+1 "so"')
        saved = await save(tab, tmp_path)
        assert tab.complaints() == []
        assert [url for url in tab.requests() if not url.startswith(("file:", "blob:"))] == []
        return seen, saved

    seen, saved = browse(page, tmp_path, visit)
    assert seen[:2] == ["1 of 3 items answered"] * 2
    assert "Two." in seen[2]
    assert saved.name == "silver.decisions.csv"
    said = read_decisions(saved, items, CRITERIA)
    assert [[said[f"i{n}"][key] for key in KEYS] for n in range(3)] == [
        ["pass", "pass", "fail"], ["fail", "", "pass"], ["pass"] * 3,
    ]  # fmt: skip
    assert said["i2"]["remark"] == '=1+1 "so"'
    assert said["i2"]["reviewer"] == "Ann"
    with saved.open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.DictReader(file))[2]["remark"].startswith("'=")  # no spreadsheet runs it


@needs_browser
def test_a_page_of_revisions_takes_another_text(tmp_path: Path) -> None:
    asked = [Question("decision", "Take the revision?", ("accept", "reject", "edit"))]
    items = [{
        "id": "i1", "title": "round 1", "edit": "The revised reason.",
        "sections": [["Revision", "The revised reason."], ["Exchange", "No. Yes.", True]],
    }]  # fmt: skip
    page = tmp_path / "rounds.html"
    page.write_text(review_page("rounds", items, asked))

    async def visit(tab: Tab) -> Path:
        await tab.enter("edit", "My own reason.")
        await tab.press("e")
        assert tab.complaints() == []
        assert AXE is None or await tab.axe() == []
        return await save(tab, tmp_path)

    said = read_decisions(browse(page, tmp_path, visit), items, asked)
    assert (said["i1"]["decision"], said["i1"]["edit"]) == ("edit", "My own reason.")
