"""Items to learn from are what a teacher said, with where it comes from; the rest says why not."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from learning_case import write_bench
from loopback import Body, Loopback, Play, said
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.data.findings import Findings
from judgebench.data.tables import open_table
from judgebench.errors import SetupError
from judgebench.judges.judge import Task
from judgebench.rubric import load_rubric
from judgebench.tuning import export
from judgebench.tuning.examples import read_silver
from judgebench.tuning.export import Filters, build

CORPUS = [{"text": "A curt answer has few words."}, {"text": "Iron is in beans."}]


def tune(*args: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["tune", *map(str, args)])
    return done.exit_code, f"{done.output}{done.exception or ''}"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def played(body: Body, count: int) -> Play:
    """Asks first, then gives a reason and a label; one answer is refused."""
    asked = len(body["messages"]) > 2
    if not asked:
        return said(json.dumps({"question": "What is a curt answer?"}))
    if "number 3 of model-x" in str(body["messages"]):
        return said("I'm sorry, but I cannot help with that.")
    reply = {"rationale": "Few words, none of them unkind.", "tone": "Curt"}
    return said(json.dumps(reply))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark that was run, whose teacher looks things up (Algorithm 1)."""
    folder = tmp_path_factory.mktemp("teacher")
    (folder / "corpus.jsonl").write_text("".join(json.dumps(t) + "\n" for t in CORPUS))
    with Loopback(played) as server:
        file = write_bench(
            folder,
            f"  - {{name: teacher, backend: 'openai-compatible:x@{server.base_url}', "
            "prompt: rationale, settings: {max_retries: 0}, "
            "knowledge: {corpus: corpus.jsonl, embedder: words, questions: 1}}\n"
            "  - {name: who, learn: by-system}\n  - {name: panel, jury: [teacher, who]}",
            questions=6,
        )
        jb.run(file, folder / "run")
    return file


def test_the_command_writes_items_with_all_that_a_reader_needs(bench: Path) -> None:
    to = bench.parent / "silver.jsonl"
    code, said = tune("data", bench.parent / "run", "--judge", "teacher", "--to", to)
    assert code == 0, said
    items = lines(to)
    assert len(items) == 11
    item = items[0]
    manifest = json.loads((bench.parent / "run" / "run.json").read_text())
    assert item["silver"] is True
    assert item["teacher"] == {
        "name": "teacher", "signature": manifest["judges"]["teacher"]["signature"],
        "model": "loopback",
    }  # fmt: skip
    assert item["labels"] == {"tone": "Curt"}
    assert item["rationale"] == "Few words, none of them unkind."
    assert item["transcript"] == [
        {"question": "What is a curt answer?", "passages": [CORPUS[0]["text"]]}
    ]
    assert (item["question"], item["system"]) == ("Question 0?", "model-x")
    (rejected,) = lines(bench.parent / "silver.left-out.jsonl")
    assert rejected["item_id"] == "model-x-3"
    assert rejected["reason"].startswith("verdict ")
    assert f"11 items of teacher: {to}" in said
    assert "  1 left out: verdict" in said
    # What is written can be learnt from.
    found = read_silver(to, load_rubric(str(bench.parent / "tone.yaml")))
    assert set(found.labels["tone"].tolist()) == {1}
    assert found.reasons[0] == item["rationale"]


class Says:
    """A judge in Python: always the same label and reason."""

    name, signature = "says", "says, 1"

    def describe(self) -> dict[str, Any]:
        return {"judge": "rule"}

    def judge(self, tasks: Iterable[Task]) -> Iterator[jb.Verdict]:
        for task in tasks:
            yield jb.Verdict(
                task.answer.item_id, task.content_hash, self.name, self.signature, jb.Status.OK,
                {"tone": "Curt"},
            )  # fmt: skip

    def close(self) -> None:
        pass


LONG = "Please take it with food, and drink a glass of water with it every single morning."
ANSWERS = {
    "a": ("Iron?", LONG), "b": ("Iron?", LONG.upper() + " Bye!"), "c": ("Zinc?", LONG),
    "d": ("Buy my book?", "Only today."), "e": ("Iron?", "Yes, " + "really " * 90),
    "f": ("Iron?", "No."),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("says")
    write_bench(folder, "")
    rows = [
        {"item_id": i, "question": q, "text": t, "system": "x"} for i, (q, t) in ANSWERS.items()
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "bench.yaml").write_text("name: t\nrubric: tone.yaml\ndata: answers.jsonl\n")
    jb.run(folder / "bench.yaml", folder / "run", judges={"says": Says()})
    return folder / "run"


def test_filters_keep_out_and_say_why(run: Path, tmp_path: Path) -> None:
    chosen = Filters(irrelevant=("(?i)buy my",), characters=(4, 200))
    built = build(run, "says", chosen)
    assert [item["item_id"] for item in built.kept] == ["a", "c"]
    assert {item["item_id"]: item["reason"] for item in built.left_out} == {
        "b": "near-duplicate: a",
        "d": "irrelevant: (?i)buy my",
        "e": "length: 635 characters",
        "f": "length: 3 characters",
    }
    assert built.counts == {"length": 2, "near-duplicate": 1, "irrelevant": 1}
    shown = built.to_frame()
    assert shown["label.tone"].tolist() == ["Curt"] * 6
    assert shown["reason"].isna().sum() == 2
    assert len(build(run, "says", Filters(duplicates=True)).kept) == 6
    written = built.write(tmp_path / "s.jsonl")
    assert lines(written["left_out"]) == json.loads(json.dumps(built.left_out))


def test_errors_write_nothing(bench: Path, run: Path, tmp_path: Path) -> None:
    to = tmp_path / "s.jsonl"

    def problem(*args: object) -> str:
        code, said = tune("data", *args, "--to", to)
        assert code != 0
        assert not to.exists()
        return said

    folder = bench.parent / "run"
    assert "is no judge of the run; found nobody; allowed: " in problem(folder, "--judge", "nobody")
    for name in ("who", "panel", "constant-majority"):
        assert "is fitted to the human labels of the run, or a baseline: no teacher" in problem(
            folder, "--judge", name
        )
    assert "is not a metric of the rubric" in problem(run, "--judge", "says", "--metric", "harm")
    filters = tmp_path / "f.yaml"
    filters.write_text("irrelevant: ['(']\nlength: 3\ncharacters: [9, 2]\n")
    said = problem(run, "--judge", "says", "--filter", filters)
    assert f"{filters}:2: length: is not a known key" in said
    filters.write_text("duplicates: true\nirrelevant:\n- '('\n")
    assert "'(' is no regular expression: missing )" in problem(
        run, "--judge", "says", "--filter", filters
    )
    filters.write_text("characters: [9000, 9001]\n")
    assert "no item of says is left (6 length)" in problem(
        run, "--judge", "says", "--filter", filters
    )


def test_a_pattern_that_never_ends_is_stopped(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_SECONDS", 0.5)
    with pytest.raises(SetupError) as caught:
        build(run, "says", Filters(irrelevant=(r"(\w+\s*)+#",)))
    said = r"irrelevant: takes longer than 0.5 seconds over 6 texts; found '(\\w+\\s*)+#'"
    assert str(caught.value) == said


def test_silver_labels_never_count_as_labels_of_people(bench: Path, tmp_path: Path) -> None:
    folder, to = bench.parent, tmp_path / "silver.jsonl"
    build(folder / "run", "teacher").write(to)
    (tmp_path / "tone.yaml").write_text((folder / "tone.yaml").read_text())
    said = "silver.jsonl: silver: holds labels of a machine, which never count as labels of people"
    table = open_table(to, Findings())
    assert table is not None
    columns = dict.fromkeys(table.columns, "ignored") | {"item_id": "item", "text": "text"}
    layout = {"tables": [{"file": "silver.jsonl", "columns": columns}]}
    (tmp_path / "answers.yaml").write_text(json.dumps(layout))
    columns["labels.tone"] = "label tone by gpt"
    (tmp_path / "labels.yaml").write_text(json.dumps(layout))
    for name in ("silver.jsonl", "labels.yaml"):
        with pytest.raises(SetupError, match=said):
            jb.load_bench(_bench(tmp_path, name))
    # The answers alone may be judged by others.
    dataset = jb.load_bench(_bench(tmp_path, "answers.yaml")).dataset
    assert (len(dataset.answers), dataset.n_labels) == (11, 0)
    # Flattened into a table of labels it is refused too.
    flat = [{"item_id": i["item_id"], "annotator": "gpt", "tone": "Curt", "silver": True}
            for i in lines(to)]  # fmt: skip
    (tmp_path / "silver.jsonl").write_text("".join(json.dumps(row) + "\n" for row in flat))
    with pytest.raises(SetupError, match=said):
        jb.load_bench(_bench(tmp_path, "silver.jsonl"))


def _bench(folder: Path, data: str) -> Path:
    file = folder / "bench.yaml"
    file.write_text(f"name: t\nrubric: tone.yaml\ndata: {data}\n")
    return file
