"""Answers in a file are the answers that were put in, however they are asked for."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.data.answer_file import AnswerFile, answer_line, write_answers
from judgebench.errors import SetupError
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


def numbered(n: int) -> list[Answer]:
    return [Answer(f"i{i}", f"text {i} " * 3, question=f"q{i // 3}") for i in range(n)]


def in_file(path: Path, answers: Sequence[Answer]) -> AnswerFile:
    with path.open("wb") as file:
        write_answers(file, answers)
    return AnswerFile.open(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers") / "answers.jsonl"


@settings(deadline=None)
@given(st.lists(ANSWER, min_size=1, max_size=8), st.slices(8))
def test_a_file_of_answers_is_the_sequence_that_was_put_in(
    place: Path, answers: list[Answer], some: slice
) -> None:
    filed = in_file(place, answers)
    assert list(filed) == answers
    assert [filed[row] for row in range(-len(answers), len(answers))] == answers * 2
    assert list(filed[some]) == answers[some]
    assert list(keys_of(filed)) == [(a.item_id, a.content_hash) for a in answers]
    assert list(ids_and_groups(filed)) == [(a.item_id, a.group) for a in answers]
    assert list(text_lengths(filed)) == [len(a.text) for a in answers]
    assert list(likenesses(filed)) == [likeness(a) for a in answers]
    assert [head_of(filed, row) for row in range(len(answers))] == [
        (a.item_id, a.group, a.content_hash) for a in answers
    ]


@given(ANSWER)
def test_a_line_holds_the_fields_and_nothing_else(answer: Answer) -> None:
    line = answer_line(answer)
    fields = asdict(answer)
    parts = fields.pop("parts")  # only where there are any
    assert json.loads(line) == {**fields, **({"parts": [*parts]} if parts else {})}
    assert line.count("\n") == 1


def test_an_index_that_is_out_of_range_is_an_index_error(tmp_path: Path) -> None:
    filed = in_file(tmp_path / "a.jsonl", numbered(3))
    for row in (3, -4):
        with pytest.raises(IndexError):
            filed[row]


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


def test_several_threads_read_at_once(tmp_path: Path) -> None:
    answers = numbered(3000)
    filed = in_file(tmp_path / "a.jsonl", answers)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: list(filed), range(6)))
        rows = list(pool.map(filed.__getitem__, range(3000)))
    assert all(one == answers for one in found)
    assert rows == answers
