import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judgebench.stats.paired import benjamini_yekutieli

p_values = st.lists(st.none() | st.floats(0, 1), max_size=12)


@given(p_values)
def test_benjamini_yekutieli_equals_scipy_and_none_stays_uncounted(ps) -> None:
    found = benjamini_yekutieli(ps)
    assert [f is None for f in found] == [p is None for p in ps]
    known = [p for p in ps if p is not None]
    if known:
        expected = scipy.stats.false_discovery_control(known, method="by")
        assert [f for f in found if f is not None] == pytest.approx(list(expected))


def test_worked_by_hand() -> None:
    # H_3 = 11/6: 0.01 * 5.5 / 1, 0.02 * 5.5 / 2, 0.5 * 5.5 / 3
    found = benjamini_yekutieli([0.5, 0.01, 0.02])
    assert found == pytest.approx([0.5 * 5.5 / 3, 0.055, 0.055])
