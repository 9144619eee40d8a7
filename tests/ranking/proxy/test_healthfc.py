from collections import Counter
from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.files import shipped_folder
from judgebench.ranking.task import SPLITS, SplitSizes, TaskInstance
from judgebench.ranking.task_file import load_reader

READER = load_reader(shipped_folder("tasks") / "healthfc.py")
LABELS = READER.LABELS
PAPER = SplitSizes(train=518, development=111, test=112)
HEAD = "\ufeffen_claim,en_explanation,label\n"


def read_healthfc(
    path: Path, sizes: SplitSizes, seed: int
) -> tuple[list[TaskInstance], tuple[str, ...]]:
    return READER.read({"data": path}, sizes, seed)


def write(path: Path, *rows: str) -> Path:
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_the_published_file_gives_the_split_of_the_paper(shared_data: Path) -> None:
    instances, notes = read_healthfc(shared_data / "healthfc" / "Datensatz.csv.gz", PAPER, seed=0)
    by_split = {s: Counter(i.label for i in instances if i.split == s) for s in SPLITS}
    assert [sum(by_split[s].values()) for s in SPLITS] == [518, 111, 112]
    assert Counter(i.label for i in instances) == dict(zip(LABELS, (200, 419, 122), strict=True))
    for split, size in zip(SPLITS, (518, 111, 112), strict=True):
        for label, n in zip(LABELS, (200, 419, 122), strict=True):
            assert abs(by_split[split][label] - n * size / 741) < 1
    assert notes == ("9 of 750 rows have no explanation and are left out.",)
    assert len({i.item_id for i in instances}) == 741
    assert instances[0].text.startswith("Can masks reduce corona infections")


def test_rows_without_an_explanation_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", "c0,e0,0", "c1, ,1", "c2,e2,2", '"c3, again",e3,1')
    instances, notes = read_healthfc(path, SplitSizes(train=1, development=1, test=1), 0)
    assert [(i.item_id, i.text, i.label, i.argument, i.group) for i in instances] == [
        ("healthfc-0", "c0", "Supported", "e0", "c0"),
        ("healthfc-2", "c2", "Refuted", "e2", "c2"),
        ("healthfc-3", "c3, again", "Not enough information", "e3", "c3, again"),
    ]
    assert notes == ("1 of 4 rows have no explanation and are left out.",)


def test_every_bad_cell_is_told_with_its_row(tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", "c0,e0,3", ",e1,1", "c2,e2,yes")
    with pytest.raises(SetupError) as caught:
        read_healthfc(path, SplitSizes(train=1, development=1, test=1), 0)
    assert [(p.line, p.field) for p in caught.value.problems] == [
        (2, "label"), (3, "en_claim"), (4, "label"),
    ]  # fmt: skip
    assert "found '3'; allowed: 0, 1, 2" in str(caught.value)
