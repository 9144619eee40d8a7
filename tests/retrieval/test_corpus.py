import csv
import gzip
import json
from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.judges.retrieval import Corpus, read_corpus


def problem_of(path: Path, column: str = "text") -> str:
    with pytest.raises(SetupError) as caught:
        read_corpus(path, column)
    return str(caught.value)


def test_jsonl_is_read_plain_or_packed_and_with_or_without_a_last_newline(tmp_path: Path) -> None:
    rows = [{"text": " one "}, {"text": "two", "title": "II"}, {"text": "one"}, {"title": "III"}]
    content = "\n".join(map(json.dumps, rows)).encode()
    (tmp_path / "a.jsonl").write_bytes(content)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(content + b"\n"))
    for name in ("a.jsonl", "b.jsonl.gz"):
        corpus = read_corpus(tmp_path / name)
        assert corpus.documents == ("one", "two")
    assert read_corpus(tmp_path / "a.jsonl", "title").documents == ("II", "III")


def test_csv_is_read_by_its_column(tmp_path: Path) -> None:
    path = tmp_path / "c.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "body"], ["x", "a,\nb"], ["y", " "], ["z", "c"]])
    assert read_corpus(path, "body").documents == ("a,\nb", "c")


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in [
        ("b.txt", "\ufeffbee\n"), ("a.txt", "ay"), ("sub/c.TXT", "sea"), ("sub/d.txt", "ay"),
        ("e.txt", " \n"), ("notes.md", "not this"),
    ]:  # fmt: skip
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_corpus(tmp_path).documents == ("ay", "bee", "sea")


def test_a_corpus_without_texts_is_told_with_what_was_found(tmp_path: Path) -> None:
    assert "no such file" in problem_of(tmp_path / "none.jsonl")
    assert "found nothing; allowed: a table with a text" in problem_of(tmp_path)
    (tmp_path / "e.jsonl").write_text('{"text": ""}\n{"text": "  "}\n')
    said = problem_of(tmp_path / "e.jsonl")
    assert "e.jsonl: holds no rows" in said
    (tmp_path / "f.jsonl").write_text("")
    assert "f.jsonl" in problem_of(tmp_path / "f.jsonl")
    (tmp_path / "g.csv").write_text("text\n")
    assert "holds no rows" in problem_of(tmp_path / "g.csv")


def test_a_corpus_without_the_column_names_those_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id,texts\n1,a\n")
    said = problem_of(path)
    assert "text: the column is missing; did you mean 'texts'?; found id, texts" in said


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "fine"}\n{"text": ["a"]}\nno json\n{"text": [{"a": 1}]}\n')
    with pytest.raises(SetupError) as caught:
        read_corpus(path)
    assert sorted(p.line or 0 for p in caught.value.problems) == [2, 3, 4]
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"\xff\xfe bad")
    (folder / "b.txt").write_bytes(b"caf\xe9")
    with pytest.raises(SetupError) as caught:
        read_corpus(folder)
    assert [Path(p.file).name for p in caught.value.problems] == ["a.txt", "b.txt"]


def test_the_hash_changes_with_texts_and_their_borders() -> None:
    hashes = {
        Corpus(texts).describe()["content"] for texts in [("x", "yz"), ("xy", "z"), ("yz", "x")]
    }
    assert len(hashes) == 3
