"""JSON and JSON lines: which objects are rows, and what of the objects inside of them is."""

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgebench.data.formats import Nested
from tests.data.conftest import Write, columns, errors, read


def lines_of(objects: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in objects)


@pytest.fixture
def flat(write: Write) -> Any:
    """The columns of objects, the same in JSON and in JSON lines."""

    def read_both(objects: list[dict[str, Any]]) -> dict[str, list[object]]:
        as_lines = columns(write("a.jsonl", lines_of(objects)))
        assert columns(write("a.json", json.dumps(objects, indent=1))) == as_lines
        return as_lines

    return read_both


def test_single_values_are_their_texts_in_the_file(write: Write) -> None:
    path = write("a.json", '[{"id": 1, "x": 3.0, "y": 1e5, "on": true, "gone": null, "n": NaN}]')

    assert columns(path) == {
        "id": ["1"], "x": ["3.0"], "y": ["1e5"], "on": ["true"], "gone": [""], "n": ["NaN"]
    }  # fmt: skip


def test_absent_keys_are_blank_and_blank_lines_no_rows(write: Write) -> None:
    table, _ = read(write("a.jsonl", '{"id": "a"}\n\n{"topic": "z", "id": "b"}\n'))

    assert table.columns == {"id": ["a", "b"], "topic": ["", "z"]}
    assert [*table.lines] == [1, 3]


@pytest.mark.parametrize(
    ("document", "ids"),
    [
        ('[{"id": 1}, {"id": 2}]', ["1", "2"]),
        ('{"testCases": [{"id": 1}, {"id": 2}], "version": 3, "tags": []}', ["1", "2"]),
        ('{"i0": {"x": 1}, "i1": {"x": 2}}', ["i0", "i1"]),
        ('{"id": 1}\n{"id": 2}\n', ["1", "2"]),
    ],
    ids=["a list", "one list in an object", "objects by id", "lines in a .json"],
)
def test_documents_whose_objects_are_rows(write: Write, document: str, ids: list[str]) -> None:
    table, _ = read(write("a.json", document))

    assert table.texts("id") == ids
    assert [*table.lines] == [1, 2]


def test_the_key_of_objects_by_id_hides_no_id_of_theirs(write: Write) -> None:
    path = write("a.json", '{"i0": {"id": "x"}, "i1": {"n": 1}}')

    assert columns(path) == {"key": ["i0", "i1"], "id": ["x", ""], "n": ["", "1"]}


@pytest.mark.parametrize(
    ("document", "kind", "line", "message"),
    [
        ('{"kim": [{"id": 1}], "jo": [{"id": 2}]}', "malformed", None, "holds no rows"),
        ("3", "malformed", None, "holds no rows"),
        ("[]", "no_rows", None, "holds no rows"),
        ("", "no_rows", None, "holds no rows"),
        ('[{"id": 1},\n{"id": 2},,]', "malformed", 2, "is not JSON: Expecting value"),
        ('[{"id": 1}, 2]', "malformed", 2, "must hold an object"),
        ('[{"id": 1, "id": 2}]', "malformed", None, "is not JSON: duplicate key 'id'"),
        ("[" * 100_000, "malformed", None, "is not JSON: it is nested too deeply"),
    ],
    ids=["several lists", "a number", "no object", "nothing", "a fault", "no object in the list",
         "a duplicate key", "brackets without end"],
)  # fmt: skip
def test_documents_that_are_no_table(
    write: Write, document: str, kind: str, line: int | None, message: str
) -> None:
    (problem,) = errors(write("a.json", document))

    assert (problem.kind, problem.line, problem.message) == (kind, line, message)


def test_faulty_lines_are_named_together(write: Write) -> None:
    path = write("a.jsonl", '{"id": 1}\n{bad\n[1]\n{"id": 2, "x": {"k": 1, "k": 2}}\n{"id": 3}\n')

    problems = errors(path)

    assert [(p.kind, p.line, p.field) for p in problems] == [
        ("malformed", 2, ""), ("malformed", 3, ""), ("malformed", 4, ""),
    ]  # fmt: skip


def test_objects_inside_of_objects_are_columns(flat: Any) -> None:
    value: dict[str, Any] = {"end": "x"}
    for level in range(9):
        value = {f"k{level}": value}

    table = flat([{"id": "a", "doc": {"q": "Why?", "n": {"t": 1}}}, {"id": "b", "doc": "none"}])
    deep = flat([value])

    assert table == {
        "id": ["a", "b"], "doc": ["", "none"], "doc.q": ["Why?", ""], "doc.n.t": ["1", ""]
    }  # fmt: skip
    assert deep == {"k8.k7.k6.k5.k4.k3.k2.k1.k0": [Nested({"end": "x"})]}


def test_a_list_of_single_values_is_one_cell(flat: Any) -> None:
    assert flat([{"tones": ["a", 1, None, True]}, {"tones": []}, {"tones": "b"}]) == {
        "tones": [("a", "1", "", "true"), "b"]
    }  # the row without any tone is blank


def test_lists_of_one_object_each_are_inline(flat: Any) -> None:
    choice = {"choices": [{"message": {"role": "assistant", "content": "yes"}}]}

    table = flat([{"id": "a", "body": choice}, {"id": "b", "body": {"choices": []}}])

    assert table == {
        "id": ["a", "b"],
        "body.choices[0].message.role": ["assistant", ""],
        "body.choices[0].message.content": ["yes", ""],
    }


def test_each_annotation_is_a_row(flat: Any, write: Write) -> None:
    objects = [
        {"id": "t1", "said": {"by": [{"worker": "ann", "data": {"tone": "Kind"}},
                                     {"worker": "bob", "data": {"tone": "Rude"}}]}, "n": 1},
        {"id": "t2", "said": {"by": []}, "n": 2},
        {"id": "t3", "said": {}, "n": 3},
    ]  # fmt: skip

    table = flat(objects)

    assert table == {
        "id": ["t1", "t1", "t2", "t3"],
        "said.by.worker": ["ann", "bob", "", ""],
        "said.by.data.tone": ["Kind", "Rude", "", ""],
        "n": ["1", "1", "2", "3"],
    }
    assert read(write("b.jsonl", lines_of(objects)))[0].lines == [1, 1, 2, 3]


TURNS = [{"role": "user", "content": "Hi", "rating": 1}, {"role": "assistant", "content": "Ho"}]


@pytest.mark.parametrize(
    "entries",
    [
        TURNS,
        TURNS[:1],
        [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}],
        [{"criterion": "Names the dose", "points": 5}, {"criterion": "Is kind", "points": 1}],
        [{"label": "yes"}, "no"],
    ],
    ids=["turns", "one turn", "turns of ShareGPT", "criteria", "not objects alone"],
)
def test_other_lists_of_objects_stay_one_cell(flat: Any, entries: list[Any]) -> None:
    (cell,) = flat([{"id": "a", "x": entries}])["x"]

    assert isinstance(cell, Nested)
    assert [*cell.value] == json.loads(json.dumps(entries), parse_int=str)


def test_of_several_lists_the_first_that_names_annotators(flat: Any) -> None:
    objects = [{"scores": [{"value": 1}, {"value": 2}], "votes": [{"user": "a"}, {"user": "b"}],
                "labels": [{"rater": "c"}, {"rater": "d"}]}]  # fmt: skip

    table = flat(objects)
    nobody = flat([{"x": [{"value": 1}, {"value": 2}], "y": [{"label": 1}, {"label": 2}]}])

    assert table["votes.user"] == ["a", "b"]
    assert all(isinstance(cell, Nested) for cell in (*table["scores"], *table["labels"]))
    assert list(nobody) == ["x", "y"]


def test_parquet_and_frames_are_flattened_alike(tmp_path: Path) -> None:
    objects = [{"id": "a", "doc": {"q": "Why?"}, "votes": [{"rater": "c"}, {"rater": "d"}]}]
    pq.write_table(pa.Table.from_pylist(objects), tmp_path / "a.parquet")

    table, _ = read(tmp_path / "a.parquet")

    assert table.columns == {"id": ["a", "a"], "doc.q": ["Why?"] * 2, "votes.rater": ["c", "d"]}
    assert [*table.lines] == [2, 2]


def test_two_columns_of_one_path_are_an_error(write: Write) -> None:
    (problem,) = errors(write("a.jsonl", '{"a.b": "whole", "a": {"b": "part"}}'))

    assert (problem.kind, problem.found) == ("duplicate_column", "'a.b'")


@pytest.mark.parametrize("inside", [False, True])
def test_objects_that_share_no_keys_are_no_table(write: Write, inside: bool) -> None:
    values = ({f"key {i}": "x"} for i in range(10_000))
    text = lines_of([{"id": i, "x": value} if inside else value for i, value in enumerate(values)])
    path, start = write("keys.jsonl", text), time.process_time()

    (problem,) = errors(path)

    assert time.process_time() - start < 3
    assert problem.message == (
        "its 10,000 objects have 10,000 different keys, too many for a table: give every object "
        "the same few keys, such as annotator, metric and label"
    )
