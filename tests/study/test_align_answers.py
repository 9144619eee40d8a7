"""Answers are gone through once, and only a few are looked at again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from align_case import FEW, answers, labels, rubric, verdicts
from aligned import align

from judgebench.records import Answer
from judgebench.study.answers import indexed


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
    assert found.row_of == {"i0": 0, "i1": 1, "i2": 2, "i3": 3}
    assert [f"{h:016x}" for h in found.content_hashes] == [a.content_hash for a in items]
    assert found.clusters.codes.tolist() == [0, 1, 1, 0]
    assert found.clusters.n == 2
    assert list(found) == items
    assert (found[2], found[1:3], len(found)) == (items[2], items[1:3], 4)
    assert indexed(found) is found


def test_answers_are_read_once_and_again_only_where_judges_and_humans_differ() -> None:
    items = Counted(answers(6))
    judges = [verdicts("m", "aabbcc", items.items), verdicts("k", "aabbca", items.items)]
    found = align("x", rubric(), items, labels({"ann": "aabbcc"}), judges, resampling=FEW)
    assert [d.answer.item_id for d in found.disagreements] == ["i5"]
    assert (items.passes, items.single) == (1, 1)
