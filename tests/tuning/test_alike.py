"""Near-duplicates: against brute force, and what a sketch knows again."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.judges.retrieval import words_of
from judgebench.learning.folds import alike, known_texts, sketch
from judgebench.rubric import normalise


def same(a: str, b: str) -> bool:
    """The relation as the documentation states it, with sets of words."""
    one, other = words_of(a), words_of(b)
    if one == other:
        return bool(one) or normalise(a) == normalise(b)
    if len(one) < 10 or len(other) < 10:
        return False
    runs, others = ({tuple(w[i : i + 3]) for i in range(len(w) - 2)} for w in (one, other))
    both, shorter = len(runs & others), min(len(runs), len(others))
    if shorter >= 30 and 5 * both >= 4 * shorter:  # a passage of the longer one
        return True
    return 5 * both >= 4 * len(runs | others)


def brute_force(texts: list[str]) -> list[int]:
    code = list(range(len(texts)))
    for i in range(len(texts)):
        for j in range(i):
            if same(texts[i], texts[j]):
                code = [code[j] if c == code[i] else c for c in code]
    order = list(dict.fromkeys(code))
    return [order.index(c) for c in code]


@st.composite
def families(draw: st.DrawFn) -> list[str]:
    """Texts of few words, and copies of them with words changed, left out or added."""
    word = st.sampled_from(["the", "a", "pain", "dose", "call", "is", "not", "of"])
    texts: list[list[str]] = draw(st.lists(st.lists(word, max_size=60), min_size=1, max_size=4))
    for _ in range(draw(st.integers(0, 8))):
        words = list(draw(st.sampled_from(texts)))
        for _ in range(draw(st.integers(0, 2))):
            place = draw(st.integers(0, len(words)))
            words[place : place + draw(st.integers(0, 1))] = draw(st.lists(word, max_size=1))
        texts.append(words)
    return [" ".join(words) for words in texts]


@given(families())
@settings(max_examples=150, deadline=None)
def test_groups_are_those_of_brute_force(texts: list[str]) -> None:
    assert alike(texts).tolist() == brute_force(texts)


@given(families())
@settings(max_examples=60, deadline=None)
def test_a_sketch_knows_what_is_alike_and_nothing_else(texts: list[str]) -> None:
    known = known_texts(texts[-1:], [sketch(text) for text in texts[:-1]])
    assert bool(known) is any(same(texts[-1], text) for text in texts[:-1])


def test_case_and_punctuation_do_not_count_and_short_texts_must_be_equal() -> None:
    texts = ["Yes.", "yes", "No", "", "  ", "👍", "👎", "…"]
    assert alike(texts).tolist() == [0, 0, 1, 2, 2, 3, 4, 2]
    nine = "one two three four five six seven eight nine"
    assert alike([nine, nine + " ten"]).tolist() == [0, 1]
    assert alike([]).tolist() == []


def numbered(begin: int, end: int, kind: str = "word") -> str:
    return " ".join(f"{kind}{n}" for n in range(begin, end))


def test_a_passage_is_alike_to_the_texts_that_hold_it() -> None:
    """96 % of it stand inside four others, which share nothing else."""
    passage = numbered(0, 52)
    held = " ".join([numbered(0, 50), "otherwise", "so"])
    others = [
        f"{numbered(0, 90, f'before{k}x')} {held} {numbered(0, 40, f'behind{k}x')}"
        for k in range(4)
    ]
    assert alike([*others, passage, numbered(0, 52, "apart")]).tolist() == [0, 0, 0, 0, 0, 1]
    assert known_texts([*others, numbered(0, 90, "apart")], [sketch(passage)]) == {*others}
    assert all(known_texts([passage], [sketch(text)]) for text in others)


def test_a_short_stock_reply_ties_no_longer_texts_together() -> None:
    stock = "I am sorry, but I cannot answer this question. Please ask a doctor or a pharmacist."
    longer = [f"{stock} {numbered(0, 60, f'own{k}x')}" for k in range(5)]
    assert alike([stock, stock.upper(), *longer]).tolist() == [0, 0, 1, 2, 3, 4, 5]


@pytest.mark.long
def test_twenty_thousand_answers_take_seconds() -> None:
    rng = np.random.default_rng(0)
    often = 1 / np.arange(1, 20_001)
    words = np.array([f"w{n}" for n in range(20_000)])
    own = [rng.choice(words, n, p=often / often.sum()) for n in rng.integers(60, 200, 16_000)]
    parts = [own[k][: len(own[k]) // 2 + 20] for k in rng.integers(0, 16_000, 4_000)]
    began = time.process_time()
    found = alike([" ".join(text) for text in (*own, *parts)])
    assert time.process_time() - began < 40  # 7 on an idle machine
    assert len(set(found.tolist())) == pytest.approx(16_000, rel=0.01)


def test_a_long_text_is_known_by_four_fifths_of_its_runs() -> None:
    words = np.random.default_rng(0).permutation(3000).astype(str).tolist()
    # Of 1,000 words those after the first 90, and 180, are again there: shares .83 and .69.
    texts = [" ".join(words[start : 1000 + start]) for start in (90, 180)]
    further = " ".join(words[220:1220])
    known = sketch(" ".join(words[:1000]))
    assert [known_texts([text], [known]) for text in texts] == [{text} for text in texts]
    assert not known_texts([further], [known])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_many_texts_of_one_template(share: float) -> None:
    """Thousands that are all alike, or all nearly so, are grouped as brute force groups a few."""
    fixed = " ".join(f"fixed{n}" for n in range(int(100 * share) + 20))
    own = [" ".join(f"own{k}x{n}" for n in range(int(20 * (1 - share)) + 1)) for k in range(400)]
    texts = [f"{fixed} {end}" for end in own]
    expected = brute_force([texts[0], texts[1]])
    assert (len(set(alike(texts).tolist())) == 1) is (expected == [0, 0])
