"""Answers in a file are the answers that were put in."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.data.conversation import answer_line, read_answers
from judgebench.errors import SetupError
from judgebench.records import Answer, Part

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


def numbered(n: int) -> tuple[Answer, ...]:
    return tuple(Answer(f"i{i}", f"text {i} " * 3, question=f"q{i // 3}") for i in range(n))


def written(path: Path, answers: Sequence[Answer]) -> Path:
    path.write_bytes("".join(map(answer_line, answers)).encode())
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers") / "answers.jsonl"


@settings(deadline=None)
@given(st.lists(ANSWER, min_size=1, max_size=8))
def test_answers_are_read_as_they_were_written(place: Path, answers: list[Answer]) -> None:
    assert read_answers(written(place, answers)) == tuple(answers)


@given(ANSWER)
def test_a_line_holds_the_fields_and_nothing_else(answer: Answer) -> None:
    line = answer_line(answer)
    fields = asdict(answer)
    parts = fields.pop("parts")  # only where there are any
    assert json.loads(line) == {**fields, **({"parts": [*parts]} if parts else {})}
    assert line.count("\n") == 1


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(written(path, numbered(3)).read_bytes()[:-5])
    assert read_answers(path) == numbered(2)
    path.write_bytes(b"")
    assert read_answers(path) == ()


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
    path.write_bytes(written(path, numbered(2)).read_bytes() + line + b"\n")
    with pytest.raises(SetupError, match=message) as raised:
        read_answers(path)
    assert (raised.value.problems[0].file, raised.value.problems[0].line) == (str(path), 3)


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such file"):
        read_answers(tmp_path / "none.jsonl")
