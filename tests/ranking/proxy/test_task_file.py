import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from judgebench.errors import SetupError
from judgebench.files import shipped_names
from judgebench.ranking.task import SPLITS
from judgebench.ranking.task_file import load_task, sample_task


def task_file(folder: Path, **changes: Any) -> Path:
    """A sound task of 12 rows, changed; a change to None takes the key away."""
    rows = [f"Q{i},{'yes' if i % 2 else 'no'},W{i}" for i in range(12)]
    (folder / "t.csv").write_text("\n".join(["q,y,why", *rows]) + "\n")
    spec: dict[str, Any] = {
        "name": "mine", "files": {"data": "t.csv"}, "labels": ["yes", "no"],
        "prompt": "misinformation", "split": {"train": 6, "development": 2, "test": 4},
        "columns": {"text": "q", "label": "y", "argument": "why"}, **changes,
    }  # fmt: skip
    path = folder / "task.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in spec.items() if v is not None}))
    return path


def test_a_task_of_ones_own_is_one_yaml_file(tmp_path: Path) -> None:
    path = task_file(tmp_path, leave_out=["no"], notes=["Mine."])
    task = load_task("task.yaml", relative_to=tmp_path)
    assert (task.name, task.title, task.labels) == (
        "mine", "mine", ("yes", "no"),
    )  # fmt: skip
    assert [len(task.of(split)) for split in SPLITS] == [6, 2, 4]
    assert {i.label for i in task.ranked} == {"yes"}
    assert task.notes == ("Mine.",)
    data = (path.parent / "t.csv").read_bytes()
    assert task.files == {"t.csv": hashlib.sha256(data).hexdigest()}


def test_files_are_seen_from_the_folder_of_data_where_one_is_given(tmp_path: Path) -> None:
    path = task_file(tmp_path)
    elsewhere = tmp_path / "data"
    elsewhere.mkdir()
    (tmp_path / "t.csv").rename(elsewhere / "t.csv")
    with pytest.raises(SetupError, match=r"proxy\.data_folder.*files\.data|files\.data.*proxy\."):
        load_task(str(path))
    assert len(load_task(str(path), data_folder=elsewhere).instances) == 12


def test_a_split_follows_from_the_seed(tmp_path: Path) -> None:
    path = str(task_file(tmp_path))
    first, same, other = (load_task(path, seed=seed).instances for seed in (5, 5, 6))
    assert first == same != other


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reader": "cvs"}, "reader"),
        (
            {"colums": {}},
            "is not a known key; did you mean 'columns'?",
        ),
        ({"files": {"train": "t.csv"}}, "table reads data or train, development, test"),
        ({"columns": None}, "columns: needed by the reader table"),
        ({"reader": "healthfc"}, "columns: needed by the reader table, and by no other"),
        ({"split": None}, "split: is needed"),
        ({"labels": None}, "labels: two different"),
        ({"labels": ["yes", "yes"]}, "two different ones"),
        ({"leave_out": ["maybe"]}, "leave_out: maybe is not a label"),
        ({"name": "my task"}, "name"),
        ({"prompt": "no-such"}, "nothing shipped has that name"),
        ({"labels": ["yes", "no", "open"]}, "the train split lacks the class 'open'"),
        ({"split": {"train": 6, "development": 2, "test": 9}}, "12 instances"),
    ],
)
def test_what_is_wrong_with_a_task_file_is_told(tmp_path, changes, message) -> None:
    path = task_file(tmp_path, **changes)
    with pytest.raises(SetupError) as caught:
        load_task(str(path))
    assert message in str(caught.value)


def test_a_sample_keeps_the_shares_of_the_classes(tmp_path: Path) -> None:
    task = load_task(str(task_file(tmp_path)))
    small = sample_task(task, {"train": 4, "test": 2}, seed=1)
    assert Counter(i.label for i in small.of("train")) == {"yes": 2, "no": 2}
    assert [len(small.of(split)) for split in SPLITS] == [4, 2, 2]
    assert small == sample_task(task, {"train": 4, "test": 2}, seed=1)
    assert sample_task(task, {}, seed=1) == task


def test_a_sample_of_the_test_split_draws_what_is_ranked(tmp_path: Path) -> None:
    task = load_task(str(task_file(tmp_path, leave_out=["no"])))
    assert len(sample_task(task, {"test": 2}, seed=0).ranked) == 2


def test_the_shipped_tasks_have_their_files_and_prompts(shared_data: Path) -> None:
    assert shipped_names("tasks", ".yaml") == ["misinformation", "multiple-choice", "nli"]
    claims = load_task("misinformation", data_folder=shared_data)
    assert [len(claims.of(split)) for split in SPLITS] == [518, 111, 112]
    assert {i.label for i in claims.ranked} == {"Supported", "Refuted"}
    nli = load_task("nli", data_folder=shared_data)
    assert [len(nli.of(split)) for split in SPLITS] == [1035, 140, 229]
    assert nli.prompt.reply == "evidence"


def test_versions_of_a_question_are_sampled_together(shared_data: Path) -> None:
    task = load_task("multiple-choice", data_folder=shared_data)
    assert task.labels == ("1", "2", "3", "4", "5")
    small = sample_task(task, {"train": 20, "development": 10, "test": 15}, seed=2)
    assert len(small.ranked) == 15
    firsts = [i for i in small.of("train") if i.version == 0]
    assert len(firsts) == 20
    assert len(small.of("train")) == sum(len(i.options) for i in firsts)
    assert len({i.source for i in small.instances}) == 45


READER = """
from judgebench.ranking.task import TaskInstance
from .names import NAMES

FILES, LABELS, SEEDED_SPLIT = ("data",), ("yes", "no"), False


def read(files, split, seed):
    rows = files["data"].read_text().split()
    splits = [s for s in ("train", "development", "test") for _ in LABELS]
    return [
        TaskInstance(NAMES[i], row, LABELS[i % 2], "why", splits[i]) for i, row in enumerate(rows)
    ], ("Read by hand.",)
"""


def own_reader(folder: Path, code: str = READER, **changes: Any) -> Path:
    (folder / "names.py").write_text("NAMES = 'abcdef'\n")
    (folder / "mine.py").write_text(code)
    (folder / "rows.txt").write_text("q1 q2 q3 q4 q5 q6")
    own = {"reader": "mine.py", "columns": None, "labels": None, "split": None}
    return task_file(folder, **{**own, "files": {"data": "rows.txt"}, **changes})


def test_a_task_may_have_a_reader_of_its_own_beside_it(tmp_path: Path) -> None:
    task = load_task(str(own_reader(tmp_path, leave_out=["no"])))
    assert [(i.item_id, i.text, i.split) for i in task.of("test")] == [
        ("e", "q5", "test"), ("f", "q6", "test"),
    ]  # fmt: skip
    assert task.labels == ("yes", "no")
    assert (len(task.ranked), task.notes) == (1, ("Read by hand.",))


@pytest.mark.parametrize(
    ("old", "new", "changes", "message"),
    [
        ("", "", {"reader": "other.py"}, "reader: is no Python file beside the task"),
        ("NAMES[i]", "'same'", {}, "item_id: duplicate item; found same"),
        ("rows = ", "rows = files['data'].oops", {}, "its reader failed: AttributeError"),
        ("def read", "def raed", {}, "its reader failed: AttributeError"),
        ("FILES, LABELS", "LABELS, FILE", {}, "has no attribute 'FILES'"),
        ("from .names", "from .nomes", {}, "No module named"),
        ("", "", {"files": {"dada": "rows.txt"}}, "mine.py reads data, found dada"),
        ("", "", {"leave_out": ["maybe"]}, "leave_out: maybe is not a label"),
        ("", "", {"split": {"train": 2, "development": 2, "test": 2}}, "given by the files"),
        ("SPLIT = (\"data\",), (\"yes\", \"no\"), False", "", {}, "its reader failed"),
    ],
)  # fmt: skip
def test_a_reader_that_does_not_do_is_reported(tmp_path, old, new, changes, message) -> None:
    path = own_reader(tmp_path, READER.replace(old, new) if old else READER, **changes)
    with pytest.raises(SetupError) as caught:
        load_task(str(path))
    assert message in str(caught.value)
