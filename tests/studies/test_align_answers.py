"""Answers by row and by item id; only a few are looked at again."""

import pytest
from align_case import answers

from judgebench.errors import SetupError
from judgebench.studies.answers import indexed


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
