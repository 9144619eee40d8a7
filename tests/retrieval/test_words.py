"""Texts found by the words that they share with a question."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.judges.retrieval import WordSearch, words_of

WORDS = st.sampled_from(["tick", "flu", "iron", "the", "of"])
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=8)


@given(TEXTS, st.lists(WORDS, max_size=4).map(" ".join))
def test_scores_are_those_of_the_formula(texts: list[str], question: str) -> None:
    held = [text.split() for text in texts]
    mean = max(1.0, sum(map(len, held)) / len(held))

    def score(text: list[str]) -> float:
        total = 0.0
        for word in set(question.split()):
            n, times = sum(word in other for other in held), text.count(word)
            weight = math.log(1 + (len(held) - n + 0.5) / (n + 0.5))
            total += weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(text) / mean))
        return total

    expected = [score(text) for text in held]
    search = WordSearch(texts)
    assert search.scores(question) == pytest.approx(expected)
    found = search.nearest(question, 3)
    assert found == sorted(found, key=lambda place: -search.scores(question)[place])
    assert set(found) <= {place for place, value in enumerate(expected) if value > 0}
    assert len(found) == min(3, sum(value > 0 for value in expected))


def test_a_rare_word_counts_more_and_a_short_text_wins() -> None:
    search = WordSearch(["the flu", "the tick and the bed and long grass", "the tick"])
    assert search.nearest("The TICK?", 2) == [2, 1]
    assert search.nearest("measles", 2) == []


def test_case_width_and_scripts_without_spaces() -> None:
    assert words_of("ＩＲＯＮ, iron-rich_Straße 4") == ["iron", "iron", "rich", "strasse", "4"]
    assert words_of("什么是流感") == list("什么是流感")
    search = WordSearch(["狂犬病是致命的", "流感是一种疾病", "Бешенство смертельно"])
    assert search.nearest("什么是流感？", 1) == [1]
    assert search.nearest("Что такое бешенство?", 3) == [2]
