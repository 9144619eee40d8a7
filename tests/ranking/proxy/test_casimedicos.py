from __future__ import annotations

import io
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judgebench.errors import SetupError
from judgebench.ranking.proxy.task import SPLITS, TaskInstance
from judgebench.ranking.proxy.task_file import load_reader
from judgebench.shipped import shipped_folder

READER: Any = load_reader(shipped_folder("tasks") / "casimedicos.py")
names_a_place, versions = READER.names_a_place, READER.versions

DOCUMENT = """QUESTION TYPE: INVENTED
CLINICAL CASE:
A man (aged 40) has pain.
1- is no option here.
What is it?
1- Gout.
2- A long option
over two lines.
3- Fracture.
4- nan
CORRECT ANSWER: 3
The correct answer is 3.
Option 1 hurts less, "as he says".
"""


def read_casimedicos(path: Path) -> tuple[list[TaskInstance], tuple[str, ...]]:
    found: tuple[list[TaskInstance], tuple[str, ...]] = READER.read({"archive": path}, None, 0)
    return found


def iob2(text: str) -> str:
    """Sentences, one a line, as tokens with labels, one a line."""
    lines = [[f"{token} O" for token in line.split(" ")] for line in text.strip().splitlines()]
    return "\n\n".join("\n".join(line) for line in lines) + "\n\n"


def archive(path: Path, **members: str) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for name in ("train", "dev", "test"):
            if name in members or not members.get("only"):
                data = iob2(members.get(name, DOCUMENT)).encode()
                info = tarfile.TarInfo(f"casimedicos-arg/EN/{name}.tsv")
                info.size = len(data)
                file.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture(scope="module")
def published(shared_data: Path) -> tuple[list[TaskInstance], tuple[str, ...]]:
    return read_casimedicos(shared_data / "casimedicos-arg" / "casimedicos-arg.tar.gz")


def test_every_published_document_is_read_in_its_split(
    published: tuple[list[TaskInstance], tuple[str, ...]],
) -> None:
    instances, notes = published
    firsts = [i for i in instances if i.version == 0]
    assert Counter(i.split for i in firsts) == dict(zip(SPLITS, (381, 55, 117), strict=True))
    assert Counter(len(i.options) for i in firsts) == {4: 298, 5: 255}
    assert Counter(i.label for i in firsts) == {"3": 153, "4": 114, "2": 114, "1": 112, "5": 60}
    assert len(instances) == 298 * 4 + 255 * 5
    assert not any("left out" in note for note in notes)


def test_no_published_explanation_names_a_place_that_the_rules_can_see(
    published: tuple[list[TaskInstance], tuple[str, ...]],
) -> None:
    instances, notes = published
    firsts = [i for i in instances if i.version == 0]
    assert all(i.argument for i in firsts)
    assert sum(names_a_place(i.argument, len(i.options)) for i in firsts) == 0
    (note,) = (note for note in notes if "rewritten" in note)
    assert int(note.split()[0]) > 240


def test_each_place_holds_the_right_option_once(
    published: tuple[list[TaskInstance], tuple[str, ...]],
) -> None:
    instances, _ = published
    of_group: dict[str, list[TaskInstance]] = {}
    for i in instances:
        of_group.setdefault(i.group, []).append(i)
    for held in of_group.values():
        assert sorted(i.label for i in held) == [str(k) for k in range(1, len(held[0].options) + 1)]
        assert len({i.label_text for i in held}) == len({i.argument for i in held}) == 1
        assert len({i.split for i in held}) == 1
    assert len({i.item_id for i in instances}) == len(instances)


def test_a_document_is_rebuilt_from_its_tokens(tmp_path: Path) -> None:
    instances, _ = read_casimedicos(archive(tmp_path / "a.tar.gz"))
    first = instances[0]
    assert first.text == "A man (aged 40) has pain. 1- is no option here. What is it?"
    assert first.options == ("Gout.", "A long option over two lines.", "Fracture.")
    assert (first.item_id, first.label, first.split, first.row) == ("train-0", "3", "train", 0)
    assert first.argument == 'Gout hurts less, "as he says".'
    assert [i.item_id for i in instances[:3]] == ["train-0", "train-0-v1", "train-0-v2"]


def test_the_wrong_options_keep_their_order_in_all_versions() -> None:
    made = versions(TaskInstance("x", "t", "2", "a", "train", ("p", "right", "q"), group="g"))
    assert [(i.version, i.label, i.options) for i in made] == [
        (0, "2", ("p", "right", "q")),
        (1, "1", ("right", "p", "q")),
        (2, "3", ("p", "q", "right")),
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("CORRECT ANSWER: 3", "CORRECT ANSWER: 4", "right answer is none of the options"),
        ("CORRECT ANSWER: 3", "So it is 3", "parts are not marked"),
        ("CLINICAL CASE:", "CASE:", "parts are not marked"),
        ("2- A long option\nover two lines.\n3- Fracture.\n", "", "lacks options"),
        ('Option 1 hurts less, "as he says".\n', "", "says nothing but the number"),
    ],
)
def test_a_document_that_is_no_question_is_counted_and_named(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    bad = DOCUMENT.replace(old, new)
    assert bad != DOCUMENT
    instances, notes = read_casimedicos(archive(tmp_path / "a.tar.gz", dev=DOCUMENT + bad))
    assert {i.group for i in instances} == {"train-0", "dev-0", "test-0"}
    assert notes[-1].startswith("1 documents are left out: dev-1 (")
    assert reason in notes[-1]


def test_a_torn_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_text("nothing of the kind")
    with pytest.raises(SetupError, match="cannot be read as an archive"):
        read_casimedicos(path)


def test_an_archive_that_lacks_files_is_told(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", only="x", train=DOCUMENT)
    with pytest.raises(SetupError) as caught:
        read_casimedicos(path)
    assert [p.field for p in caught.value.problems] == ["EN/dev.tsv", "EN/test.tsv"]


def test_a_line_that_is_no_token_with_its_label_is_told(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", test=DOCUMENT.replace("Gout.", "Gout. extra\tcolumn"))
    with pytest.raises(SetupError, match="must hold a token and its label; found 'extra"):
        read_casimedicos(path)


def test_a_file_without_documents_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="holds no document"):
        read_casimedicos(archive(tmp_path / "a.tar.gz", test="Something else."))
