"""Tables in a format that a wing brings: read as a CSV of the same rows would be."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

import judgebench as jb
from judgebench import features
from judgebench.checks import check_all
from judgebench.data import gather
from judgebench.data.answer_file import write_answers
from judgebench.data.load import is_kept, keep_data, load_data
from judgebench.errors import Problem
from judgebench.files import to_line
from judgebench.records import Dataset
from judgebench.rubric import Rubric
from judgebench.runs.wing import Wing

Write = Callable[[str, str | bytes], Path]
ANSWERS = "item_id,text\na,One\nb,Two\n"
ROWS = [("a", "ann", "Kind", "0f3c"), ("b", "ann", "Neutral", "0f3c")]


def rows_of(path: Path) -> Sequence[Mapping[str, str]]:
    """A table of labels, as a database holds it."""
    if not path.is_file():
        raise jb.SetupError(Problem("no such study", str(path)))
    with sqlite3.connect(path) as file:
        found = file.execute("SELECT item_id, annotator, tone, study FROM labels").fetchall()
    file.close()
    return [dict(zip(("item_id", "annotator", "tone", "study"), row, strict=True)) for row in found]


@pytest.fixture
def wing(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Wing("fake", tables={".sqlite": rows_of})
    monkeypatch.setattr(features, "wings", lambda: (fake,))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The file `study.sqlite`, which another process goes on writing to."""
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


@pytest.mark.usefixtures("wing", "database")
def test_its_rows_are_labels_as_those_of_a_csv(
    write: Write, tmp_path: Path, rubric: Rubric
) -> None:
    found = load_data([write("answers.csv", ANSWERS), tmp_path / "study.sqlite"], rubric)
    table = "item_id,annotator,tone,study\na,ann,Kind,0f3c\nb,ann,Neutral,0f3c\n"
    same = load_data([write("answers.csv", ANSWERS), write("study.csv", table)], rubric)
    assert found.labels == same.labels
    assert [label.label for label in found.labels] == ["Kind", "Neutral"]
    assert found.warnings == same.warnings == ()  # the column `study` is no unknown one


@pytest.mark.usefixtures("wing", "database")
def test_it_stands_wherever_a_table_may(write: Write, tmp_path: Path, rubric: Rubric) -> None:
    table, spec = tmp_path / "study.sqlite", "files: [{path: answers.csv, items: {item_id: "
    verdicts = write("verdicts.csv", "item_id,judge,tone\na,j,Kind\nb,j,Kind\n")
    assert jb.study(table, verdicts, rubric=rubric).n_labels == 2
    write("answers.csv", ANSWERS)
    spec += "{column: item_id}, text: {column: text}}}, {path: study.sqlite, labels: {item_id: "
    spec += "{column: item_id}, annotator: {column: annotator}, metrics: {tone: tone}}}]"
    assert len(load_data(write("data.yaml", spec), rubric).labels) == 2
    told = repr(check_all([tmp_path / "answers.csv", table], "support-tone"))
    assert f"{table}: unrecognised columns (item_id, annotator, tone, study)" in told


@pytest.mark.usefixtures("wing")
def test_problems_name_file_and_row(
    write: Write, tmp_path: Path, rubric: Rubric, database: sqlite3.Connection
) -> None:
    save(database, [("c", "ann", "Kind", "0f3c"), ("b", "ben", "Blue", "0f3c")])
    files = [write("answers.csv", ANSWERS), tmp_path / "study.sqlite"]
    with pytest.raises(jb.SetupError) as caught:
        load_data(files, rubric)
    assert [(Path(p.file).name, p.line, p.kind) for p in caught.value.problems] == [
        ("study.sqlite", 5, "unknown_label"), ("study.sqlite", 4, "unknown_item"),
    ]  # fmt: skip
    with pytest.raises(jb.SetupError, match="no such study") as caught:
        load_data([files[0], tmp_path / "other.sqlite"], rubric)
    assert len(caught.value.problems) == 1


@pytest.mark.usefixtures("database")
def test_without_the_wing_it_is_an_unknown_format(
    write: Write, tmp_path: Path, rubric: Rubric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "wings", tuple)
    with pytest.raises(jb.SetupError, match="unknown file format") as caught:
        load_data([write("answers.csv", ANSWERS), tmp_path / "study.sqlite"], rubric)
    assert len(caught.value.problems) == 1


@pytest.mark.usefixtures("wing")
def test_what_is_kept_of_it_is_read_anew_when_a_row_is_added(
    write: Write, tmp_path: Path, rubric: Rubric, database: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(gather, "MOST_IN_MEMORY", 0)
    files, run = [write("answers.csv", ANSWERS), tmp_path / "study.sqlite"], tmp_path / "run"
    run.mkdir()

    def load() -> Dataset:
        return load_data(files, rubric, kept_in=run)

    first = load()
    with (run / "answers.jsonl").open("wb") as file:
        write_answers(file, first.answers)
    (run / "labels.jsonl").write_text("".join(to_line(asdict(label)) for label in first.labels))
    keep_data(run, first)
    assert is_kept(run, load())
    before = files[1].read_bytes()
    save(database, [("a", "ben", "Neutral", "0f3c")])
    assert files[1].read_bytes() == before  # what was added lies in another file
    again = load()
    assert not is_kept(run, again)
    assert len(again.labels) == 3
    assert again.sources[str(files[1])] != first.sources[str(files[1])]
