"""Nobody learns from a question, or from words, that they then judge."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.learning.folds import alike_texts, components, folds_of
from judgebench.records import Answer
from judgebench.studies.answers import indexed

# (question, text) of each answer, of few, so that many are shared.
PAIRS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 25)), min_size=12, max_size=60)


def answers_of(pairs: list[tuple[int, int]]) -> list[Answer]:
    return [
        Answer(f"i{n}", f"the whole text number {text}", question=f"q{q}?")
        for n, (q, text) in enumerate(pairs)
    ]


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.integers(2, 4), st.integers(0, 3))
def test_no_fold_learns_from_its_own_texts(pairs: list[tuple[int, int]], n: int, seed: int) -> None:
    answers = answers_of(pairs)
    joined = components(*(np.array(codes) for codes in zip(*pairs, strict=True)))
    assume(joined.max() >= n)
    folds = folds_of(indexed(answers), n, seed)
    assert set(folds.of.tolist()) == set(range(n))
    for fold in range(n):
        judged = np.flatnonzero(folds.of == fold)
        learnt = folds.training(judged)
        own = {part for row in judged for part in (answers[row].question, answers[row].text)}
        for row in learnt.tolist():
            assert answers[row].question not in own
            assert answers[row].text not in own


@given(PAIRS)
def test_components_are_those_of_a_search(pairs: list[tuple[int, int]]) -> None:
    found = components(*map(np.array, zip(*pairs, strict=True)))
    reached = {0}
    while grown := {
        b for a in reached for b in range(len(pairs))
        if b not in reached and (pairs[a][0] == pairs[b][0] or pairs[a][1] == pairs[b][1])
    }:  # fmt: skip
        reached |= grown
    assert reached == set(np.flatnonzero(found == found[0]).tolist())


def test_a_stock_reply_does_not_put_all_into_one_fold() -> None:
    stock = [Answer(f"s{n}", "Sorry, I do not know that.", question=f"q{n}?") for n in range(50)]
    own = [Answer(f"o{n}", f"an answer of its own, {n}", question=f"q{n}?") for n in range(50)]
    folds = folds_of(indexed([*stock, *own]), 5)
    assert not folds.joined
    assert np.bincount(folds.of).tolist() == [20] * 5
    judged = np.flatnonzero(folds.of == 0)
    learnt = folds.training(judged)
    assert len(learnt) == 40
    assert (learnt >= 50).all()  # the stock reply itself is never learnt from


def test_few_answers_in_common_join_their_questions() -> None:
    answers = [Answer(f"i{n}", f"text number {n // 2}", question=f"q{n}?") for n in range(40)]
    folds = folds_of(indexed(answers), 4)
    assert folds.joined
    assert (folds.of[0::2] == folds.of[1::2]).all()


def test_too_few_questions() -> None:
    answers = [Answer(f"i{n}", f"text {n}", question=f"q{n % 3}?") for n in range(9)]
    with pytest.raises(SetupError, match="is more than the 3 groups of questions"):
        folds_of(indexed(answers), 5)


def test_answers_without_a_text_share_it_with_nobody() -> None:
    texts = ["", "Call a doctor.", "", "call a doctor", "Rest.", ""]
    found = alike_texts(indexed([Answer(f"i{n}", text) for n, text in enumerate(texts)]))
    assert len(set(found.tolist())) == 5
    assert found[1] == found[3]
