import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgebench.errors import SetupError
from judgebench.prompt import ARGUMENTS, load_prompt
from judgebench.ranking.examples import control_arguments
from judgebench.ranking.task import ProxyTask, SplitSizes, TaskInstance
from judgebench.ranking.task_file import Columns, read_table_task

BASIC: dict[str, Any] = {"text": "q", "label": "y", "argument": "why"}
FULL = Columns(**BASIC, item_id="id", group="place", split="part")
LABELS = ("yes", "no")


def read(
    path: Path, columns: Columns = FULL, sizes: SplitSizes | None = None, labels: Any = LABELS
) -> tuple[list[TaskInstance], tuple[str, ...]]:
    return read_table_task({"data": path}, columns, labels, sizes, 0)


def csv_file(path: Path, *rows: str, head: str = "id,q,y,why,place,part") -> Path:
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def jsonl_file(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return path


def test_a_csv_with_a_column_that_says_the_split(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "t.csv", "a,Q1,yes,W,P,train", "b,Q2,no,W,,Dev", "c,Q3,no,W,,TEST")
    instances, notes = read(path)
    assert instances[0] == TaskInstance("a", "Q1", "yes", "W", "train", group="P")
    assert [(i.split, i.group) for i in instances[1:]] == [
        ("development", "Q2"), ("test", "Q3"),
    ]  # fmt: skip
    assert notes == ()


def test_a_file_a_split(tmp_path: Path) -> None:
    paths = {
        key: csv_file(tmp_path / f"{key}.csv", f"Q {key},yes,W", head="q,y,why")
        for key in ("train", "development", "test")
    }
    instances, _ = read_table_task(paths, Columns(**BASIC), LABELS, None, 0)
    assert [(i.item_id, i.split) for i in instances] == [
        ("train-0", "train"), ("development-0", "development"), ("test-0", "test"),
    ]  # fmt: skip


def test_options_as_a_list_in_jsonl(tmp_path: Path) -> None:
    rows = [{"q": "Q", "y": 2, "why": "W", "o": ["x", "z"], "c": "text", "s": "train"}]
    columns = Columns(**BASIC, options="o", context="c", split="s")
    ((only, turned), _) = read(jsonl_file(tmp_path / "t.jsonl.gz", *rows), columns, labels=())
    assert (turned.options, turned.label, turned.version) == (("z", "x"), "1", 1)
    assert (only.options, only.label, only.label_text, only.context) == (
        ("x", "z"), "2", "z", "text",
    )  # fmt: skip


def test_options_as_columns_of_a_csv_may_end_blank(tmp_path: Path) -> None:
    rows = ("Q1,1,W,a,b,c,train", "Q2,2,W,a,b,,test")
    path = csv_file(tmp_path / "t.csv", *rows, head="q,y,why,o1,o2,o3,s")
    columns = Columns(**BASIC, options=("o1", "o2", "o3"), split="s")
    instances, _ = read(path, columns, labels=())
    assert [i.options for i in instances if not i.version] == [("a", "b", "c"), ("a", "b")]


OPTIONS = Columns(**BASIC, options=("A", "B", "C"))
HEAD = "q,y,why,A,B,C"
THIRDS = SplitSizes(train=0.6, development=0.2, test=0.2)


def test_questions_that_begin_alike_are_questions_of_their_own(tmp_path: Path) -> None:
    rows = [f"Which of these is true?,{'ABC'[i % 3]},W{i},a{i},b{i},c{i}" for i in range(30)]
    instances, _ = read(csv_file(tmp_path / "t.csv", *rows, head=HEAD), OPTIONS, THIRDS, ())
    firsts = [i for i in instances if not i.version]
    assert Counter(i.split for i in firsts) == {"train": 18, "development": 6, "test": 6}
    assert len({i.source for i in instances}) == 30
    # The same options in another order are the same question, which no split may tear.
    twice = ["Q,1,W,a,b,c", "Q,2,W,b,a,c", *rows]
    instances, _ = read(csv_file(tmp_path / "t.csv", *twice, head=HEAD), OPTIONS, THIRDS, ())
    assert len({i.split for i in instances if i.text == "Q"}) == 1


def test_the_right_option_of_an_own_table_takes_every_place(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "t.csv", "Q,b,Because.,x,y,z", head=HEAD)
    instances, notes = read(path, OPTIONS, None, ())
    assert [(i.item_id, i.label, i.options) for i in instances] == [
        ("0", "2", ("x", "y", "z")), ("0-v1", "1", ("y", "x", "z")), ("0-v2", "3", ("x", "z", "y")),
    ]  # fmt: skip
    assert {i.label_text for i in instances} == {"y"}
    assert notes == ()


@pytest.mark.parametrize("why", ["Option B is best.", "See answer 2.", "C is wrong", "(A) is true"])
def test_options_keep_their_order_where_an_argument_names_one(tmp_path: Path, why: str) -> None:
    path = csv_file(tmp_path / "t.csv", f"Q,1,{why},x,y,z", "R,1,An answer a day.,x,y,z", head=HEAD)
    instances, notes = read(path, OPTIONS, None, ())
    assert [i.item_id for i in instances] == ["0", "1", "1-v1", "1-v2"]
    assert notes[0].startswith("1 arguments name an option by its place")


@pytest.mark.parametrize("key", ["2", "B", "b", "yellow"])
def test_the_key_of_options_is_a_place_a_letter_or_the_option(tmp_path: Path, key: str) -> None:
    path = csv_file(tmp_path / "t.csv", f"Q,{key},W,red,yellow,blue", head=HEAD)
    instances, _ = read(path, OPTIONS, None, ())
    assert (instances[0].label, instances[0].label_text) == ("2", "yellow")


def test_a_table_needs_no_arguments(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "t.csv", "Q1,yes", "Q2,no", head="q,y")
    instances, notes = read(path, Columns(text="q", label="y"), None)
    assert [(i.text, i.argument) for i in instances] == [("Q1", ""), ("Q2", "")]
    assert notes == ()
    ranked = [replace(i, split="test") for i in instances]
    prompt = load_prompt("misinformation", kind=ARGUMENTS)
    task = ProxyTask("t", "T", LABELS, ranked, prompt)
    found = control_arguments(task, ("label-only", "noise"), 0, None)
    assert {a.system for a in found} == {"label-only"}


def test_every_bad_cell_of_the_file_is_told_at_once(tmp_path: Path) -> None:
    path = csv_file(
        tmp_path / "t.csv",
        "a,Q,yse,W,,train", "a,Q,no,W,,train", "c,,no,W,,train", "d,Q,no,W,,exam", ",Q,no,W,,test",
    )  # fmt: skip
    with pytest.raises(SetupError) as caught:
        read(path)
    assert [(p.line, p.field) for p in caught.value.problems] == [
        (2, "y"), (4, "q"), (5, "part"), (6, "id"),
    ]  # fmt: skip
    first = str(caught.value.problems[0])
    assert "did you mean 'yes'?; found 'yse'; allowed: yes, no" in first
    assert "allowed: train, development, test" in str(caught.value)


def test_what_thirty_rows_share_is_one_problem_with_their_count(tmp_path: Path) -> None:
    rows = [f"Q{i},{'XYZV'[i % 4]},W,a{i},b{i},c{i}" for i in range(30)]
    path = csv_file(tmp_path / "t.csv", *rows, ",1,W,a,b,c", head=HEAD)
    with pytest.raises(SetupError) as caught:
        read(path, OPTIONS, None, ())
    places, blank = map(str, caught.value.problems)
    assert "names no option (30 times, rows 2-31)" in places
    assert places.endswith("found 'X', 'Y', 'Z'; allowed: A, B, C, 1, 2, 3, the option itself")
    assert blank.endswith("is blank")


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ({"o": ["x", "z"], "y": "3"}, "y", "names no option; found '3'; allowed: A, B, 1, 2"),
        ({"o": ["x"], "y": "1"}, "o", "two options or more are needed"),
        ({"o": ["x", " ", "z"], "y": "1"}, "o", "none of them blank"),
        ({"o": "x", "y": "1"}, "o", "two options or more are needed"),
        ({"o": "[x", "y": "1"}, "o", "two options or more are needed"),
    ],
)
def test_bad_options_are_told(tmp_path, row, field, message) -> None:
    path = jsonl_file(tmp_path / "t.jsonl.gz", {"q": "Q", "why": "W", "s": "train", **row})
    with pytest.raises(SetupError) as caught:
        read(path, Columns(**BASIC, options="o", split="s"), labels=())
    (first,) = caught.value.problems  # none that follows from it
    assert (first.line, first.field) == (1, field)
    assert message in str(first)


def test_a_missing_column_is_told_with_the_nearest(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "t.csv", "a,Q,yes,W,,train", head="id,q,y,whi,place,part")
    with pytest.raises(SetupError, match="why: the column is missing; did you mean 'whi'"):
        read(path)


def test_rows_without_an_argument_are_left_out_and_told(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "t.csv", "a,Q,yes, ,,train", "b,Q2,no,W,,test")
    instances, notes = read(path)
    assert [i.item_id for i in instances] == ["b"]
    assert notes == ("1 rows without an argument are left out.",)
