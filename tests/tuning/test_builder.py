"""Items to learn from are what a teacher said, with where it comes from; the rest says why not."""

import json
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
from judgebench.rubric import load_rubric
from judgebench.tuning.examples import read_silver
from judgebench.tuning.review import teacher_items, write_items

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
            "  - {name: who, learn: bag-of-words}\n  - {name: panel, jury: [teacher, who]}",
            questions=6,
        )
        jb.run(file, folder / "run")
    return file


def test_the_command_writes_items_with_all_that_a_reader_needs(bench: Path) -> None:
    to = bench.parent / "silver"
    code, said = tune("review", bench.parent / "run", "teacher", "--to", to)
    assert code == 0, said
    items = lines(to / "items.jsonl")
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
    assert "model-x-3" not in {item["item_id"] for item in items}
    assert f"11 items: {to}/items.jsonl" in said
    assert "1 left out, without every label" in said
    # What is written can be learnt from.
    found = read_silver(to / "items.jsonl", load_rubric(str(bench.parent / "tone.yaml")))
    assert set(found.labels["tone"].tolist()) == {1}
    assert found.reasons[0] == item["rationale"]


def test_errors_write_nothing(bench: Path, tmp_path: Path) -> None:
    to = tmp_path / "s"

    def problem(*judges: str) -> str:
        code, said = tune("review", bench.parent / "run", *judges, "--to", to)
        assert code != 0
        assert not to.exists()
        return said

    assert "is no judge of the run; found nobody; allowed: " in problem("nobody")
    for name in ("who", "panel", "constant-majority"):
        said = problem("teacher", name)
        assert "is fitted to the human labels of the run, or a baseline: no teacher" in said


def test_silver_labels_never_count_as_labels_of_people(bench: Path, tmp_path: Path) -> None:
    folder = bench.parent
    to = write_items(teacher_items(folder / "run", ["teacher"])[0], tmp_path / "silver.jsonl")
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
