"""The double check: what people say of items splits them, and the rates add up."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from browser import AXE, Tab, browse, needs_browser, save
from learning_case import write_bench
from odd_texts import HOSTILE
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.data.formats import to_csv
from judgebench.judges.judge import Task
from judgebench.people.page import Question, read_decisions, review_page
from judgebench.records import Lookup
from judgebench.tuning.review import CRITERIA, rate_sentences, reviewed, teacher_items, write_page

KEYS = [question.key for question in CRITERIA]
COLUMNS = ["item_id", "content_hash", *KEYS, "reviewer", "remark"]


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder.open(encoding="utf-8")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two teachers, whose answers hold what is hostile."""
    folder = tmp_path_factory.mktemp("teachers")
    write_bench(folder, "")
    answers = [
        {"item_id": f"i{n}", "question": f"Question {n // 2}?", "system": "alexa", "text": text}
        for n, text in enumerate(["One.", "Two.", "\n".join(HOSTILE), "Four.", "Five.", "Six."])
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    (folder / "bench.yaml").write_text("name: t\nrubric: tone.yaml\ndata: answers.jsonl\n")
    judges = {"gpt": Teacher("gpt", "Because."), "chat": Teacher("chat", "As it seems.")}
    jb.run(folder / "bench.yaml", folder / "run", judges=judges)
    return folder / "run"


@dataclass
class Teacher:
    """A judge in Python that gives its reason and what it looked up."""

    name: str
    reason: str

    @property
    def signature(self) -> str:
        return f"{self.name}, 1"

    def describe(self) -> dict[str, Any]:
        return {"judge": "rule"}

    def judge(self, tasks: Iterable[Task]) -> Iterator[jb.Verdict]:
        for task in tasks:
            yield jb.Verdict(
                task.answer.item_id, task.content_hash, self.name, self.signature, jb.Status.OK,
                {"tone": "Curt"}, rationale=self.reason,
                transcript=(Lookup("What is iron?", ("Iron is a metal.",)),),
            )  # fmt: skip

    def close(self) -> None:
        pass


def page_items(folder: Path) -> list[dict[str, Any]]:
    data = (folder / "review.html").read_text().partition('type="application/json" id="data">')[2]
    items: list[dict[str, Any]] = json.loads(data.partition("</script>")[0])["items"]
    return items


def sheet(path: Path, items: list[dict[str, Any]], said: Mapping[str, str]) -> Path:
    """A table of decisions as the page saves it: of each item p, f or a blank per criterion."""
    words = {"p": "pass", "f": "FAIL ", "-": ""}
    rows = [
        [item["id"], item["hash"], *(words[letter] for letter in said[item["title"]]), "Ann", ""]
        for item in items
        if item["title"] in said
    ]
    path.write_bytes(to_csv(COLUMNS, rows))
    return path


def review(*args: object) -> str:
    done = CliRunner().invoke(app, ["tune", "review", *map(str, args)])
    assert done.exit_code == 0, done.output
    return done.output


def test_items_are_split_by_what_everybody_said(tmp_path: Path, run: Path) -> None:
    to = tmp_path / "silver"
    said = review(run, "gpt", "--to", to)
    assert f"6 items: {to}/items.jsonl" in said
    assert f"the page for people: {to}/review.html" in said
    items, shown = lines_of(to / "items.jsonl"), page_items(to)
    given = {"i0": "ppp", "i1": "pfp", "i2": "pp-", "i3": "ppp", "i4": "f--"}
    ann = sheet(tmp_path / "ann.csv", shown, given)
    bob = sheet(tmp_path / "bob.csv", shown, {"i2": "--p", "i3": "ppf"})
    said = review(run, "gpt", "--to", to, "--decisions", ann, "--decisions", bob)
    assert lines_of(to / "accepted.jsonl") == [items[0], items[2]]
    rejected = lines_of(to / "rejected.jsonl")
    assert [(item["item_id"], item["failed"]) for item in rejected] == [
        ("i1", ["attribution"]), ("i3", ["fluency"]), ("i4", ["knowledge"]),
    ]  # fmt: skip
    assert "fails attribution: 25.0% (n = 4)" in said
    assert "dropped: 60.0% (n = 5)" in said
    ann.write_text(ann.read_text().replace(shown[0]["hash"], "h1", 1).replace("FAIL ", "maybe", 1))
    done = CliRunner().invoke(
        app, ["tune", "review", str(run), "gpt", "--to", str(to), "--decisions", str(ann)]
    )
    assert str(done.exception).splitlines() == [
        f"{ann}:2: item_id: has changed since it was reviewed; found {shown[0]['id']!r}",
        f"{ann}:3: attribution: is no answer; found 'maybe'; allowed: pass, fail, or blank",
    ]


def test_quality_needs_decisions(tmp_path: Path, run: Path) -> None:
    to = tmp_path / "silver"
    done = CliRunner().invoke(
        app, ["tune", "review", str(run), "gpt", "--to", str(to), "--quality", "words"]
    )
    assert done.exit_code == 2
    assert "--quality learns from --decisions" in done.output


def test_nobody_can_drop_fewer_than_fail_one_criterion(run: Path, tmp_path: Path) -> None:
    """With the paper's rates (section 3.1): 9.29 % fail attribution, so at least as many go."""
    n, failing = 9874, {"knowledge": 587, "attribution": 917, "fluency": 588}
    ((item, *_), _) = teacher_items(run, ["gpt"])
    items = [{**item, "item_id": f"i{i}", "question": f"q{i}"} for i in range(n)]
    write_page(items, tmp_path / "review.html")
    # Those who fail one fail the others too, so that as few are dropped as can be.
    given = {f"i{i}": "".join("pf"[i < failing[key]] for key in KEYS) for i in range(n)}
    split = reviewed(items, [sheet(tmp_path / "d.csv", page_items(tmp_path), given)])
    assert all("exact (Clopper-Pearson)" in line for line in rate_sentences(split.rates))
    assert split.rates.find("fails attribution").value == pytest.approx(1 - 0.9071, abs=1e-4)
    assert len(split.rejected) == 917 > 305  # the paper drops 305
    assert split.rates.find("dropped").value == split.rates.find("fails attribution").value
    assert split.rates.to_frame()["n"].tolist() == [n] * 4


def test_the_page_does_not_say_who_wrote_the_labels(run: Path, tmp_path: Path) -> None:
    review(run, "gpt", "chat", "--to", tmp_path)
    html = (tmp_path / "review.html").read_text()
    assert len({item["id"] for item in page_items(tmp_path)}) == 12
    assert "What is iron?" in html
    assert "Because." in html
    assert "As it seems." in html
    assert not {"gpt", "chat", "alexa"} & set(re.findall(r"[\w]+", html.partition('id="data">')[2]))


PROGRESS = "document.getElementById('progress').textContent"
SHOWN = "document.getElementById('item').innerText"


@needs_browser
def test_answers_by_keyboard_outlive_a_reload(tmp_path: Path, run: Path) -> None:
    items = [
        item for item in teacher_items(run, ["gpt"])[0] if item["item_id"] in ("i0", "i1", "i2")
    ]
    page = write_page(items, tmp_path / "review.html")

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
    split = reviewed(items, [saved])
    assert [item["item_id"] for item in split.accepted] == ["i2"]
    assert [(item["item_id"], item["failed"]) for item in split.rejected] == [
        ("i0", ["fluency"]), ("i1", ["knowledge"]),
    ]  # fmt: skip
    with saved.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [[row[key] for key in KEYS] for row in rows] == [
        ["pass", "pass", "fail"], ["fail", "", "pass"], ["pass"] * 3,
    ]  # fmt: skip
    assert rows[2]["reviewer"] == "Ann"
    assert rows[2]["remark"] == '\'=1+1 "so"'  # no spreadsheet runs it


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
