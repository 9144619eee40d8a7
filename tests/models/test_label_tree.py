import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.models.token_scoring import common_prefix, token_tree, visible_tokens


@st.composite
def texts_that_begin_alike(draw):
    """Texts with a common beginning, each with the place from which it is weighed."""
    head = draw(st.lists(st.integers(0, 8), min_size=1, max_size=5))
    texts = []
    for rest in draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1)):
        text = head + rest
        texts.append((text, draw(st.integers(1, len(text) - 1))))
    first = min(start for _, start in texts)
    return texts, draw(st.integers(0, min(len(head), first - 1)))


def path(rows: list[tuple[int, int]], row: int) -> list[int]:
    """The rows from the known tokens to `row`, both ends included."""
    way = []
    while row >= 0:
        way.append(row)
        row = rows[row][0]
    return way[::-1]


@settings(deadline=None, max_examples=60)
@given(case=texts_that_begin_alike())
def test_every_step_predicts_a_token_of_its_text_from_all_before_it(case) -> None:
    texts, n_known = case
    rows, steps = token_tree(texts, n_known)
    asked = iter(steps)
    for text, start in texts:
        for place in range(start, len(text)):
            row, token = next(asked)
            assert token == text[place]
            assert text[:n_known] + [rows[r][1] for r in path(rows, row)] == text[:place]
    assert next(asked, None) is None


@settings(deadline=None, max_examples=60)
@given(case=texts_that_begin_alike())
def test_a_row_sees_what_is_known_its_ancestors_and_itself_alone(case) -> None:
    texts, n_known = case
    rows, _ = token_tree(texts, n_known)
    assert len(set(rows)) == len(rows), "no token is read twice at one place"
    visible = visible_tokens([parent for parent, _ in rows], n_known)
    assert visible.shape == (len(rows), n_known + len(rows))
    for row in range(len(rows)):
        expected = [*range(n_known), *(n_known + r for r in path(rows, row))]
        assert np.flatnonzero(visible[row]).tolist() == expected


def test_texts_that_begin_alike_share_their_tokens() -> None:
    texts = [([1, 2, 3, 9], 3), ([1, 2, 3, 4, 9], 3), ([1, 5, 6, 9], 2), ([1, 5, 7, 9], 2)]
    rows, steps = token_tree(texts, 1)
    assert rows == [(-1, 2), (0, 3), (1, 4), (-1, 5), (3, 6), (3, 7)]
    # What is not weighed is no step; what follows 3 tells the first two apart.
    assert steps == [(1, 9), (1, 4), (2, 9), (3, 6), (4, 9), (3, 7), (5, 9)]


@pytest.mark.parametrize(
    ("sequences", "expected"), [([[1, 2, 3], [1, 2], [1, 2, 4]], [1, 2]), ([[1], [2]], [])]
)
def test_the_longest_common_beginning(sequences, expected) -> None:
    assert common_prefix(sequences) == expected
