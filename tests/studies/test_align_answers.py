"""Answers by row and by item id; only a few are looked at again."""

from collections.abc import Iterator, Sequence

import pytest
from align_case import answers, labels, rubric, verdicts
from aligned import align

from judgebench.errors import SetupError
from judgebench.records import Answer
from judgebench.studies.answers import indexed


class Counted(Sequence[Answer]):
    """Answers that note how often they are read."""

    def __init__(self, items: list[Answer]) -> None:
        self.items, self.passes, self.single = items, 0, 0

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, row):
        self.single += 1
        return self.items[row]

    def __iter__(self) -> Iterator[Answer]:
        self.passes += 1
        return iter(self.items)


def test_the_index_holds_rows_hashes_and_groups_in_the_order_met() -> None:
    items = answers(4, "baab")
    found = indexed(items)
    assert [found.row(i) for i in ("i0", "i1", "i2", "i3", "i4")] == [0, 1, 2, 3, -1]
    assert [found.content_hash(row) for row in range(4)] == [a.content_hash for a in items]
    assert list(found.item_ids()) == ["i0", "i1", "i2", "i3"]
    assert found.clusters.codes.tolist() == [0, 1, 1, 0]
    assert found.clusters.n == 2
    assert list(found) == items
    assert (found[2], found[1:3], len(found)) == (items[2], items[1:3], 4)
    assert indexed(found) is found


def test_an_item_id_stands_for_one_answer() -> None:
    with pytest.raises(SetupError, match="duplicate item_id; found i1"):
        indexed([*answers(3), answers(3)[1]])


def test_answers_are_gone_through_and_read_again_only_for_the_list_of_every_item() -> None:
    items = Counted(answers(6))
    judges = [verdicts("m", "aabbcc", items.items), verdicts("k", "aabbca", items.items)]
    found = align("x", rubric(), items, labels({"ann": "aabbcc"}), judges)
    assert items.passes == 4, "for ids and hashes, for repeats, for groups, for kept columns"
    assert items.single == 6, "the questions of the first clusters"
    assert found.items is not None
    assert len(list(found.items().texts)) == 6
    assert items.passes > 3
