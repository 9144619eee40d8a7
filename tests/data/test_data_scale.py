"""Large data sets: held on disk, found by id, kept in a run folder for whoever resumes."""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.data import gather
from judgebench.data.answer_file import AnswerFile, write_answers
from judgebench.data.load import check_files, is_kept, keep_data, load_data
from judgebench.files import to_line
from judgebench.records import Dataset
from judgebench.rubric import Rubric
from judgebench.studies.answers import IdTable

Write = Callable[[str, str | bytes], Path]

ROWS = [
    {"item_id": f"i{n}", "text": f"text {n}", "question": f"q{n // 2}", "topic": "t"}
    for n in range(60)
]
LABELS = "item_id,annotator,tone\ni0,x,Kind\ni59,x,Neutral\n"


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer goes to disk at once."""
    monkeypatch.setattr(gather, "MOST_IN_MEMORY", 0)


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


# Finding ids ---------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=3) | st.integers(0, 300).map(str), max_size=300), st.text())
def test_an_id_table_finds_what_a_dictionary_finds(ids: list[str], other: str) -> None:
    kept: list[str] = []
    table = IdTable(kept.__getitem__)
    rows: dict[str, int] = {}
    for item_id in ids:
        row = table.find_or_add(item_id)
        if row == len(kept):
            kept.append(item_id)
        assert row == rows.setdefault(item_id, len(rows))
    assert len(table) == len(rows)
    for item_id in [*ids, other]:
        assert table.find(item_id) == rows.get(item_id, -1)


def test_ids_whose_hashes_are_equal_are_told_apart() -> None:
    class Same(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return 7

    kept = [Same(f"id {n}") for n in range(100)]
    table = IdTable(kept.__getitem__)
    assert [table.find_or_add(item_id) for item_id in kept] == list(range(100))
    assert [table.find(item_id) for item_id in kept] == list(range(100))
    assert table.find(Same("another")) == -1


# On disk as in memory ------------------------------------------------------------------------


def test_on_disk_the_same_is_read_as_in_memory(
    rubric: Rubric, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [{"item_id": "last", "text": "t", "reference": "r", "late": "x"}]
    paths = [write("a.jsonl", jsonl(ROWS + late)), write("l.csv", LABELS)]
    few = load_data(paths, rubric)
    monkeypatch.setattr(gather, "MOST_IN_MEMORY", 0)
    many = load_data(paths, rubric)
    assert isinstance(few.answers, tuple)
    assert isinstance(many.answers, AnswerFile)
    assert tuple(many.answers) == few.answers
    assert many.answers[0].metadata == {"topic": "t", "late": ""}
    assert (many.labels, many.warnings, many.sources) == (few.labels, few.warnings, few.sources)


def test_on_disk_the_same_faults_are_told(
    rubric: Rubric, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [*ROWS, ROWS[3], {**ROWS[5], "text": "other"}, {"item_id": "empty", "text": ""}]
    rows.append({"item_id": "e\u0301", "text": "a"})
    rows.append({"item_id": "\u00e9", "text": "b"})
    labels = LABELS + "i99,x,Kind\nempty,x,Kind\n"
    paths = [write("a.jsonl", jsonl(rows) + "no json\n[1]\n"), write("l.csv", labels)]
    few = check_files(paths, rubric)
    monkeypatch.setattr(gather, "MOST_IN_MEMORY", 0)
    assert check_files(paths, rubric) == few
    assert {"conflicting_item", "empty_text", "id_collision", "malformed"} <= {
        problem.kind for problem in few.errors
    }
    assert "in row 6 " in next(str(p) for p in few.errors if p.kind == "conflicting_item")
    assert [w.line for w in few.warnings if w.kind == "duplicate_item"] == [61]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_rows_are_read_without_holding_them(rubric: Rubric, tmp_path: Path, format: str) -> None:
    """Twelve megabytes of answers are read in a third of that memory and the few that stay."""
    path = tmp_path / f"a.{format}"
    rows = [{"item_id": f"i{n}", "text": f"{n} " + "word " * 800} for n in range(3000)]
    if format == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=100)
    else:
        head = ["item_id,text\n"] * (format == "csv")
        lines = [",".join(row.values()) + "\n" for row in rows] if head else [jsonl(rows)]
        path.write_text("".join(head + lines))
    del rows
    tracemalloc.start()
    try:
        answers = load_data(path, rubric).answers
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(answers) == 3000
    assert peak < 4e6 + gather.MOST_IN_MEMORY


# Kept in a run folder ------------------------------------------------------------------------


class Kept:
    """A run folder that keeps a data set of two files."""

    def __init__(self, rubric: Rubric, write: Write, folder: Path) -> None:
        self.rubric, self.write, self.folder = rubric, write, folder
        folder.mkdir()
        self.paths = [write("a.jsonl", jsonl(ROWS)), write("l.csv", LABELS)]
        self.read = load_data(self.paths, rubric)
        self.keep(self.read)

    def keep(self, dataset: Dataset) -> None:
        with (self.folder / "new.jsonl").open("wb") as file:
            write_answers(file, dataset.answers)
        (self.folder / "new.jsonl").replace(self.folder / "answers.jsonl")
        lines = [
            {"item_id": x.item_id, "annotator": x.annotator, "metric": x.metric, "label": x.label}
            for x in dataset.labels
        ]
        (self.folder / "labels.jsonl").write_text("".join(map(to_line, lines)))
        keep_data(self.folder, dataset)

    def again(self, **how: Any) -> Dataset:
        how = {"rubric": self.rubric, "kept_in": self.folder, **how}
        return load_data(self.paths, how.pop("rubric"), **how)

    def is_used(self, monkeypatch: pytest.MonkeyPatch, **how: Any) -> bool:
        """Whether the data set is taken from the folder, without reading a row."""
        opened: list[Path] = []
        from judgebench.data import load

        real = load.open_table
        monkeypatch.setattr(load, "open_table", lambda p, *x: opened.append(p) or real(p, *x))
        try:
            self.again(**how)
        finally:
            monkeypatch.setattr(load, "open_table", real)
        return not opened


@pytest.fixture
def kept(rubric: Rubric, write: Write, tmp_path: Path, on_disk: None) -> Kept:
    return Kept(rubric, write, tmp_path / "run")


def test_a_kept_data_set_is_the_one_that_was_read(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept.is_used(monkeypatch)
    again = kept.again()
    assert tuple(again.answers) == tuple(kept.read.answers)
    assert (again.labels, again.warnings) == (kept.read.labels, kept.read.warnings)
    assert (again.sources, again.origin) == (kept.read.sources, kept.read.origin)
    assert is_kept(kept.folder, again)
    assert not is_kept(kept.folder, kept.read)
    assert not is_kept(kept.folder, replace(again, origin=None))
    keep_data(kept.folder, again)
    assert kept.is_used(monkeypatch)
    kept.keep(again)  # a resume writes what it has read from the very folder
    assert kept.is_used(monkeypatch)
    assert tuple(kept.again().answers) == tuple(kept.read.answers)


@pytest.mark.parametrize(
    "name", ["a.jsonl", "l.csv", "run/answers.jsonl", "run/labels.jsonl", "run/answers.index"]
)
def test_whatever_file_changes_all_is_read_anew(
    kept: Kept, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (tmp_path / name).read_bytes()
    changed = whole.replace(b"text 7", b"test 7").replace(b"Kind", b"Neutral")
    (tmp_path / name).write_bytes(changed if changed != whole else whole[:-8])
    assert not kept.is_used(monkeypatch)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"reading": 1', b"\xff"])
def test_a_damaged_note_is_as_none(
    kept: Kept, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept.folder / "data.json").write_bytes(content)
    assert not kept.is_used(monkeypatch)


def test_another_choice_of_metrics_or_rubric_is_read_anew(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = kept.rubric.model_copy(update={"instructions": "Rate it well."})
    assert not kept.is_used(monkeypatch, metrics=["tone"])
    assert not kept.is_used(monkeypatch, rubric=other)
    assert not kept.is_used(monkeypatch, folder=kept.folder)
    kept.paths.reverse()
    assert not kept.is_used(monkeypatch)


def test_a_part_of_a_data_set_is_not_kept(kept: Kept) -> None:
    part = Dataset(kept.read.answers[:10], kept.read.labels)
    kept.keep(part)
    assert sorted(p.name for p in kept.folder.iterdir()) == ["answers.jsonl", "labels.jsonl"]


def test_a_small_data_set_is_not_kept(rubric: Rubric, write: Write, tmp_path: Path) -> None:
    small = Kept(rubric, write, tmp_path / "run")
    assert isinstance(small.read.answers, tuple)
    assert not (small.folder / "data.json").exists()
