"""Tables that are built to be slow or loud: each is read in time that grows with its size, or is
refused at once, in few words."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import judgebench as jb
from judgebench.data.logs import Log, Sample, Statement
from judgebench.errors import Problem, SetupError, shorten
from judgebench.rubric import load_rubric
from judgebench.setup_files import check

RUBRIC = "medical-safety"
ALLOWED_S = 3.0


@contextmanager
def quick() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < ALLOWED_S


def checked(path: Path, content: str) -> str:
    """What `check` says of a file, in time and briefly."""
    path.write_text(content)
    with quick():
        text = repr(check([path], RUBRIC))
    assert len(text) < 20_000
    return text


def started(path: Path, content: str) -> str:
    """What `init` says of a file, in time."""
    path.write_text(content)
    with quick():
        try:
            return repr(jb.init(path, path.parent / "new"))
        except SetupError as error:
            return str(error)


def test_what_is_echoed_is_short() -> None:
    long = "x" * 10**7
    text = str(SetupError(Problem(long, "f.csv", 1, long, long, long)))
    assert len(text) < 9_000
    assert text.startswith("f.csv:1: xxx")
    assert "… (10,000,000 characters)" in text
    deep: object = long
    for _ in range(30):
        deep = [deep] * 30
    assert all(len(shorten(value)) <= 80 for value in (long, deep, {"a": deep}, "\0" * 100))


def test_a_table_of_many_columns_is_read_in_time(tmp_path: Path) -> None:
    names = ",".join(f"column {i}" for i in range(9_000))
    row = ",".join(["x"] * 9_000)
    table = f"item_id,text,{names}\na,An answer.,{row}\nb,Another.,{row}\n"
    assert "2 answers" in checked(tmp_path / "wide.csv", table)
    text = checked(tmp_path / "long.csv", f"item_id,{'x' * 10**6}\na,b\n")
    assert f"unrecognised columns (item_id, {'x' * 80}…): say what they are" in text


@pytest.mark.parametrize("n_columns", [200, 2000])
def test_columns_that_may_be_ids_are_looked_at_in_time(tmp_path: Path, n_columns: int) -> None:
    names = ",".join(f"k{i}" for i in range(n_columns))
    rows = [",".join(f"v{(i + row) // 2}" for i in range(n_columns)) for row in range(6)]
    texts = "One answer or another long enough for one."
    table = "".join(f"{row},{texts}\n" for row in rows)
    text = started(tmp_path / "ids.csv", f"{names},text\n{table}")
    assert "ids.csv" in text
    assert len(text) < 200 * n_columns


def test_columns_that_are_not_read_are_counted(tmp_path: Path) -> None:
    names = ",".join(f"remark {i}" for i in range(2000))
    row = ",".join(["x"] * 2000)
    (tmp_path / "gpt-4.csv").write_text("id,tone\n" + "a,kind\nb,rude\n" * 2)
    labels = [f"{item},{rater},{tone},{row}" for item, tone in (("a", "kind"), ("b", "rude"))
              for rater in ("ann", "ben")]  # fmt: skip
    path = tmp_path / "f.csv"
    path.write_text("\n".join([f"id,rater,tone,{names}", *labels]))
    with quick():
        study = jb.study(path, tmp_path / "gpt-4.csv")
    (note,) = (note for note in study.notes if "not read" in note)
    assert "remark 0, remark 1" in note
    assert "1,980 more" in note


def test_a_log_of_many_answers_under_one_id() -> None:
    """Answers under one id and verdicts of one judge took the square of their number, or its
    cube."""
    start = time.process_time()
    said = [Statement("j", "m", "yes") for _ in range(1500)]
    log = Log("log.json")
    log.add(Sample("1", {"text": f"answer {i}"}, said if i == 0 else ()) for i in range(10_000))
    assert time.process_time() - start < ALLOWED_S
    assert [row["item_id"] for row in log.rows["answers"]][::5000] == ["1", "1#5001"]
    assert [row["repeat"] for row in log.rows["verdicts"]][::1499] == ["0", "1499"]


def test_bad_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"doc_id": 1}\n' + "{bad\n" * 5000)
    with pytest.raises(SetupError) as caught:
        jb.layout(path)
    assert len(caught.value.problems) == 101
    assert "samples.jsonl:2: is not JSON: " in str(caught.value)
    assert "and 4,900 more such errors, 5,000 in all, the last in row 5001" in str(caught.value)


def test_a_column_of_other_ids_is_not_taken_for_annotators(tmp_path: Path) -> None:
    """A table of what everybody said of every item would take gigabytes."""
    metric = load_rubric(RUBRIC).metrics[0]
    rows = (f"i{n},p{n},{metric.id},{metric.labels[0].text}\n" for n in range(10_500))
    text = checked(tmp_path / "f.csv", "item_id,annotator,metric,label\n" + "".join(rows))
    assert "10,500 annotators of 10,500 items cannot be compared: does this column name who" in text
