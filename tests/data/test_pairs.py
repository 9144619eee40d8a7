from __future__ import annotations

from judgebench.data.pairs import oriented


def test_the_order_of_two_names_says_nothing_of_them() -> None:
    names = [f"system-{i}" for i in range(40)]
    pairs = [oriented(a, b) for a in names for b in names if a < b]
    assert all(oriented(b, a) == (a, b) for a, b in pairs)
    low_first = sum(a < b for a, b in pairs) / len(pairs)
    assert 0.4 < low_first < 0.6
