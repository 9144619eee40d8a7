"""Answers in a file are the answers that were put in, however they are asked for."""

import gc
import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.data.answer_file import AnswerFile, answer_line, write_answers
from judgebench.data.gather import AnswerSpool
from judgebench.errors import DiskFailed, SetupError
from judgebench.records import Answer, Part
from judgebench.studies.answers import (
    head_of,
    ids_and_groups,
    keys_of,
    likeness,
    likenesses,
    text_lengths,
)

TEXT = st.text(st.characters(), max_size=20)  # with lone surrogates and control characters
ANSWER = st.builds(
    Answer,
    item_id=TEXT,
    text=TEXT,
    question=TEXT,
    system=TEXT,
    reference=st.none() | TEXT,
    group=TEXT,
    metadata=st.dictionaries(TEXT, TEXT, max_size=2),
    parts=st.lists(st.builds(Part, TEXT, TEXT, TEXT, TEXT), max_size=2).map(tuple),
)


def spooled(answers: list[Answer], most_in_memory: int = 0) -> AnswerFile:
    spool = AnswerSpool(most_in_memory)
    for answer in answers:
        spool.add(answer)
    found = spool.done()
    assert isinstance(found, AnswerFile)
    return found


def numbered(n: int, words: int = 3) -> list[Answer]:
    return [Answer(f"i{i}", f"text {i} " * words, question=f"q{i // 3}") for i in range(n)]


def in_file(path: Path, answers: list[Answer]) -> AnswerFile:
    with path.open("wb") as file:
        write_answers(file, answers)
    return AnswerFile.open(path)


@settings(deadline=None)
@given(st.lists(ANSWER, min_size=1, max_size=8), st.slices(8))
def test_a_file_of_answers_is_the_sequence_that_was_put_in(
    answers: list[Answer], some: slice
) -> None:
    filed = spooled(answers)
    assert list(filed) == answers
    assert [filed[row] for row in range(-len(answers), len(answers))] == answers * 2
    assert list(filed[some]) == answers[some]
    for whole, part in ((filed, answers), (filed[some], answers[some])):
        assert len(whole) == len(part)
        assert list(keys_of(whole)) == [(a.item_id, a.content_hash) for a in part]
        assert list(ids_and_groups(whole)) == [(a.item_id, a.group) for a in part]
        assert list(text_lengths(whole)) == [len(a.text) for a in part]
        assert list(likenesses(whole)) == [likeness(a) for a in part]
        assert [head_of(whole, row) for row in range(len(part))] == [
            (a.item_id, a.group, a.content_hash) for a in part
        ]


@given(ANSWER)
def test_a_line_holds_the_fields_and_nothing_else(answer: Answer) -> None:
    line, hashed = answer_line(answer)
    fields = asdict(answer)
    parts = fields.pop("parts")  # only where there are any
    assert json.loads(line) == {**fields, **({"parts": [*parts]} if parts else {})}
    assert line.count(b"\n") == 1
    assert f"{hashed:016x}" == answer.content_hash


def test_an_index_that_is_out_of_range_is_an_index_error() -> None:
    filed = spooled(numbered(3))
    for row in (3, -4):
        with pytest.raises(IndexError):
            filed[row]


def test_slices_of_slices_and_their_copies_are_files_of_their_own(tmp_path: Path) -> None:
    answers = numbered(50)
    part = spooled(answers)[10:40][5:20]
    assert list(part) == answers[15:30]
    with (tmp_path / "part.jsonl").open("wb") as file:
        write_answers(file, part)
    assert isinstance(part, AnswerFile)
    copy = AnswerFile.open(tmp_path / "part.jsonl", part.index_bytes())
    assert list(copy) == answers[15:30]
    assert list(keys_of(copy)) == list(keys_of(part))
    assert list(text_lengths(copy)) == list(text_lengths(part))


def test_what_was_written_is_read_with_and_without_an_index(tmp_path: Path) -> None:
    answers = numbered(20)
    plain = in_file(tmp_path / "answers.jsonl", answers)
    indexed = AnswerFile.open(tmp_path / "answers.jsonl", plain.index_bytes())
    assert list(plain) == list(indexed) == answers
    assert list(keys_of(plain)) == list(keys_of(indexed)) == list(keys_of(answers))
    assert list(likenesses(plain)) == list(likenesses(indexed)) == list(likenesses(answers))
    sink = io.BytesIO()
    write_answers(sink, plain)
    assert sink.getvalue() == (tmp_path / "answers.jsonl").read_bytes()


def test_lines_with_their_fields_in_another_order_are_read_as_well(tmp_path: Path) -> None:
    answers = numbered(4)
    lines = [json.dumps(dict(reversed(asdict(a).items())), indent=None) for a in answers]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    filed = AnswerFile.open(tmp_path / "a.jsonl")
    assert list(filed) == answers
    assert list(keys_of(filed)) == list(keys_of(answers))
    assert list(ids_and_groups(filed)) == list(ids_and_groups(answers))


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    in_file(path, numbered(3))
    path.write_bytes(path.read_bytes()[:-5])
    assert list(AnswerFile.open(path)) == numbered(2)
    path.write_bytes(b"")
    assert list(AnswerFile.open(path)) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"no json", "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b'{"item_id": "a"}', "is damaged"),
        (b'{"item_id": "a", "text": "b", "colour": "c"}', "is damaged"),
        (b'{"item_id":"a","group":"g","text":"\xff"}', "is not JSON"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "a.jsonl"
    in_file(path, numbered(2))
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(SetupError, match=message) as raised:
        list(AnswerFile.open(path)[1:])
    assert (raised.value.problems[0].file, raised.value.problems[0].line) == (str(path), 3)


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such file"):
        AnswerFile.open(tmp_path / "none.jsonl")


def test_several_threads_read_at_once() -> None:
    answers = numbered(3000, words=30)  # several blocks
    filed = spooled(answers)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: list(filed), range(6)))
        rows = list(pool.map(filed.__getitem__, range(3000)))
    assert all(one == answers for one in found)
    assert rows == answers


def test_few_answers_stay_in_memory() -> None:
    spool = AnswerSpool(10_000)
    for answer in numbered(20):
        spool.add(answer)
    assert spool.done() == tuple(numbered(20))


def test_a_spool_gives_back_what_it_took_so_far() -> None:
    spool = AnswerSpool(500)
    for row, answer in enumerate(numbered(200)):
        spool.add(answer)
        assert len(spool) == row + 1
        assert spool[row] == answer
        assert spool[row // 2] == numbered(row // 2 + 1)[-1]
        assert spool.item_id(row) == answer.item_id


def test_nothing_of_a_spool_stays_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    filed = spooled(numbered(50))
    part = filed[3:]
    assert list(tmp_path.iterdir()) == []
    del filed
    assert list(part) == numbered(50)[3:]
    assert open_in(tmp_path)
    del part
    gc.collect()
    assert not open_in(tmp_path)


def open_in(folder: Path) -> list[str]:
    """The files of that folder that this process holds open, deleted ones too."""
    links = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # of other threads, closed meanwhile
            links.append(os.readlink(f"/proc/self/fd/{number}"))
    return [link for link in links if link.startswith(str(folder))]


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w+b", buffering=0) as full:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full)
        with pytest.raises(DiskFailed, match="set TMPDIR"):
            spooled(numbered(5))
