"""Data sets of benches and studies: their sources, answers without texts, chosen judges, and tables
that a feature reads."""

import csv
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data import tables
from judgebench.data.load import load_data, read_verdicts
from judgebench.errors import Problem, SetupError
from judgebench.features import Feature
from judgebench.rubric import Rubric
from judgebench.runs.features import FeatureParts
from judgebench.runs.folder import RunFolder
from judgebench.runs.run_bench import run
from tests.data.conftest import Write

ANSWERS = "item_id,text\na,One\nb,Two\n"


def test_sources_are_hashed_and_their_order_changes_nothing(rubric: Rubric, write: Write) -> None:
    labels = "item_id,annotator,tone\na,ann,Kind\nb,ann,Neutral\n"
    paths = [write("answers.csv", ANSWERS), write("labels.csv", labels)]
    data, other = load_data(paths, rubric), load_data(paths[::-1], rubric)
    assert (data.answers, data.labels) == (other.answers, other.labels)
    assert data.sources == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }


def test_files_of_one_name_are_two_sources(rubric: Rubric, write: Write, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "labels.csv").write_text("item_id,annotator,tone\nb,ann,Kind\n")
    paths = [write("answers.csv", ANSWERS),
             write("labels.csv", "item_id,annotator,tone\na,ann,Kind\n"),
             tmp_path / "b" / "labels.csv"]  # fmt: skip
    data = load_data(paths, rubric)
    assert [x.item_id for x in data.labels] == ["a", "b"]
    assert list(data.sources) == ["answers.csv", "labels.csv", str(paths[2])]


def test_no_answers_at_all_is_an_error(rubric: Rubric, write: Write) -> None:
    write("a.csv", "id,tone\n")
    path = write("layout.yaml", "tables: [{file: a.csv, columns: {id: item, tone: label tone}}]")
    with pytest.raises(SetupError, match=r"a\.csv: holds no rows"):
        load_data(path, rubric)


# Judges in tables --------------------------------------------------------------------------------


def test_a_source_names_one_judge_or_has_all(rubric: Rubric, write: Write) -> None:
    path = write("v.csv", "item_id,judge,tone\na,gpt-4,Kind\nb,gpt-4,Neutral\na,llama,Kind\n")
    judges, _ = read_verdicts(path, rubric, ())
    assert {judge: list(rows) for judge, rows in judges.items()} == {
        "gpt-4": ["a", "b"], "llama": ["a"]
    }  # fmt: skip
    assert list(read_verdicts(path, rubric, (), "llama")[0]) == ["llama"]
    with pytest.raises(SetupError, match="no verdict of this judge; found bard; allowed: gpt-4, l"):
        read_verdicts(path, rubric, (), "bard")
    path = write("one.csv", "item_id,tone\na,Kind\n")  # whoever is the only one there
    assert list(read_verdicts(path, rubric, (), "bard")[0]) == ["bard"]


def test_labels_and_verdicts_of_no_common_item_are_an_error() -> None:
    labels = pd.DataFrame({"id": [*"aabb"], "rater": ["x", "y"] * 2, "tone": ["k", "r", "k", "k"]})
    verdicts = pd.DataFrame({"id": ["v1", "v2"], "tone": ["k", "r"]})
    with pytest.raises(SetupError) as error:
        jb.study(labels, verdicts, columns={"only_common": True})
    assert "no item of the verdicts of verdicts has a human label" in str(error.value)


# Answers without texts ---------------------------------------------------------------------------

LAYOUT = """tables:
- file: a.csv
  columns: {{item_id: item, question: {question}, text: {text}, ann: label politeness by ann,
             bob: label politeness by bob}}
"""
BENCH = """name: b
rubric: support-tone
data: {data}
metrics: [politeness]
judges: [{judges}]
"""
SCRIPTED = '{name: m, backend: "scripted:replies.jsonl", prompt: structured}'
RECORDED = "{name: m, verdicts: verdicts.csv}"
LABELS = ("Polite", "Impolite")


def write_rows(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """24 answers, every sixth empty, labelled by two; a reply and verdicts of a judge."""
    labels = [LABELS[i % 3 == 0] for i in range(24)]
    texts = ["" if i % 6 == 0 else f"Reply number {i}, in some words." for i in range(24)]
    rows = [[str(i), f"How {i}?", texts[i], labels[i], labels[(i + 1) % 24]] for i in range(24)]
    write_rows(tmp_path / "a.csv", [["item_id", "question", "text", "ann", "bob"], *rows])
    rows = [[str(i), who, labels[i]] for i in range(24) for who in ("ann", "bob")]
    write_rows(tmp_path / "labels.csv", [["item_id", "annotator", "politeness"], *rows])
    rows = [[str(i), labels[i]] for i in range(24)]
    write_rows(tmp_path / "verdicts.csv", [["item_id", "politeness"], *rows])
    reply = {"text": json.dumps({"politeness": "Polite"})}
    (tmp_path / "replies.jsonl").write_text(json.dumps(reply) + "\n")
    return tmp_path


def bench(room: Path, judges: str, data: str = "layout.yaml", texts: bool = False) -> Path:
    roles = {"question": "question", "text": "text"} if texts else {}
    (room / "layout.yaml").write_text(
        LAYOUT.format(**{"question": "group", "text": "ignored", **roles})
    )
    judges = judges.replace("replies.jsonl", str(room / "replies.jsonl"))
    (room / "bench.yaml").write_text(BENCH.format(data=data, judges=judges))
    return room / "bench.yaml"


def n_scored(study: jb.Study) -> list[int]:
    """How many items the accuracy of the judge m rests on."""
    rows = jb.align(study).to_frame()
    which = "judge == 'm' and statistic == 'accuracy' and analysis == 'score'"
    return [int(n) for n in rows.query(which)["n"]]


def test_empty_answers_are_judged_labelled_and_counted(room: Path) -> None:
    loaded = jb.load_bench(bench(room, SCRIPTED, texts=True))
    (warning,) = (w for w in loaded.dataset.warnings if w.kind == "empty_answer")
    assert "(4 times, rows 2, 8, 14, 20)" in warning.message
    folder = RunFolder(room / "run")
    run(loaded, folder)
    for judge in ("m", "longest-answer"):
        verdicts = {verdict.item_id: verdict for verdict in folder.verdicts(judge)}
        assert len(verdicts) == 24
        assert verdicts["0"].status == "ok"
    study = jb.open_run(room / "run")
    assert n_scored(study) == [24]
    jb.report(study, room / "report")
    assert "(no text)" in (room / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("data", ["layout.yaml", "labels.csv"])
def test_labels_without_texts_where_no_model_is_asked(room: Path, data: str) -> None:
    loaded = jb.load_bench(bench(room, RECORDED, data))
    assert {judge.name for judge in loaded.controls} == {
        "constant-majority", "constant-fixed", "random", "prior"
    }  # fmt: skip  # without texts none is the longest
    run(loaded, RunFolder(room / "run"))
    study = jb.open_run(room / "run")
    assert n_scored(study) == [24]
    assert "m" in set(jb.decide(study).to_frame()["judge"])
    as_judge = jb.open_run(room / "run", as_judges=["ann"])
    assert "ann" in {judge.name for judge in as_judge.judges}


@pytest.mark.parametrize(("data", "file"), [("layout.yaml", "a.csv"), ("labels.csv", "labels.csv")])
def test_a_model_needs_texts(room: Path, data: str, file: str) -> None:
    path = bench(room, SCRIPTED + ", {name: n, verdicts: verdicts.csv}", data)
    with pytest.raises(SetupError, match="reads answers, whose texts are not given") as error:
        jb.load_bench(path)
    (problem,) = error.value.problems
    assert (problem.field, Path(problem.found).name) == ("judges.m", file)


def test_a_study_keeps_empty_answers(room: Path) -> None:
    texts = ["", None, *[f"Some words, {i}." for i in range(22)]]
    answers = pd.DataFrame({"item_id": [str(i) for i in range(24)], "text": texts})
    with pytest.warns(UserWarning, match="kept as an empty answer"):
        study = jb.study(room / "labels.csv", None, answers, rubric="support-tone")
    assert [answer.text for answer in study.answers][:3] == ["", "", "Some words, 0."]


# Tables that a feature reads ---------------------------------------------------------------------

ROWS = [("a", "ann", "Kind", "0f3c"), ("b", "ann", "Neutral", "0f3c")]


def rows_of(path: Path) -> Sequence[Mapping[str, str]]:
    """A table of labels, as a database holds it."""
    if not path.is_file():
        raise jb.SetupError(Problem("no such study", str(path)))
    with sqlite3.connect(path) as file:
        rows = file.execute("SELECT item_id, annotator, tone, study FROM labels").fetchall()
    file.close()
    return [dict(zip(("item_id", "annotator", "tone", "study"), row, strict=True)) for row in rows]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """The file `study.sqlite`, which another process goes on writing to."""
    feature = Feature("fake", "fake", table="study.sqlite")
    monkeypatch.setitem(feature.__dict__, "parts", FeatureParts(rows=rows_of))
    monkeypatch.setattr(tables, "FEATURES", {"fake": feature})
    file = sqlite3.connect(tmp_path / "study.sqlite")
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("CREATE TABLE labels (item_id, annotator, tone, study)")
    save(file, ROWS)
    file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    yield file
    file.close()


def save(file: sqlite3.Connection, rows: Sequence[tuple[str, ...]]) -> None:
    file.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", rows)
    file.commit()


def test_a_feature_reads_its_tables_as_a_csv_is_read(
    write: Write, tmp_path: Path, rubric: Rubric, database: sqlite3.Connection
) -> None:
    paths = [write("answers.csv", ANSWERS), tmp_path / "study.sqlite"]
    data = load_data(paths, rubric)
    assert [label.label for label in data.labels] == ["Kind", "Neutral"]
    assert not data.warnings  # the column `study` is no unknown one
    verdicts = write("verdicts.csv", "item_id,judge,tone\na,j,Kind\nb,j,Kind\n")
    assert jb.study(paths[1], verdicts, rubric=rubric).n_labels == 2
    before = paths[1].read_bytes()
    save(database, [("a", "ben", "Neutral", "0f3c")])
    assert paths[1].read_bytes() == before  # what was added lies in another file
    again = load_data(paths, rubric)
    assert len(again.labels) == 3
    assert again.sources["study.sqlite"] != data.sources["study.sqlite"]


def test_problems_of_a_features_table_name_file_and_row(
    write: Write, tmp_path: Path, rubric: Rubric, database: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    save(database, [("c", "ann", "Kind", "0f3c"), ("b", "ben", "Blue", "0f3c")])
    answers = write("answers.csv", ANSWERS)
    with pytest.raises(SetupError) as error:
        load_data([answers, tmp_path / "study.sqlite"], rubric)
    assert [(Path(p.file).name, p.line, p.kind) for p in error.value.problems] == [
        ("study.sqlite", 5, "unknown_label"), ("study.sqlite", 4, "unknown_item"),
    ]  # fmt: skip
    for name, message in (("other", "no such study"), ("study", "unknown file format")):
        with pytest.raises(SetupError, match=message) as error:
            load_data([answers, tmp_path / f"{name}.sqlite"], rubric)
        assert len(error.value.problems) == 1
        monkeypatch.setattr(tables, "FEATURES", {})  # then without the feature
