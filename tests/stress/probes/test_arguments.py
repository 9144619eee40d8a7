from __future__ import annotations

import csv
import gzip
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.stress.probes.arguments import (
    CONTROL_CASES,
    Instance,
    control_case,
    lexical_retriever,
    passages_of,
)
from judgebench.stress.probes.text import words


def instances(n: int) -> list[Instance]:
    return [Instance(f"i{i}", f"text {i}", f"label {i % 3}", f"argument {i}") for i in range(n)]


# Groups of at most half of all: a draw without any argument used twice exists.
grouped = st.lists(st.integers(0, 5), min_size=2, max_size=30).filter(
    lambda groups: max(Counter(groups).values()) <= len(groups) / 2
)


def of_groups(groups: Sequence[int]) -> list[Instance]:
    return [
        Instance(f"i{i}", f"text {i}", "label", f"argument {i}", group=f"g{group}")
        for i, group in enumerate(groups)
    ]


def test_no_argument_is_empty_and_label_only_is_the_correct_label() -> None:
    made = instances(4)
    assert control_case("no-argument", made, 0) == ["", "", "", ""]
    assert control_case("label-only", made, 0) == ["label 0", "label 1", "label 2", "label 0"]
    assert CONTROL_CASES == ("no-argument", "label-only", "noise", "passages")


@given(grouped, st.integers(0, 1000))
def test_noise_is_each_argument_once_and_never_a_related_one(groups: list[int], seed: int) -> None:
    made = of_groups(groups)
    drawn = control_case("noise", made, seed)
    assert sorted(drawn) == sorted(i.argument for i in made)
    group_of = {i.argument: i.group for i in made}
    assert all(group_of[text] != i.group for text, i in zip(drawn, made, strict=True))


@given(grouped, st.integers(0, 1000), st.randoms(use_true_random=False))
def test_noise_depends_on_no_order(groups: list[int], seed: int, chance: random.Random) -> None:
    made = of_groups(groups)
    mixed = chance.sample(made, len(made))
    drawn = dict(zip((i.item_id for i in made), control_case("noise", made, seed), strict=True))
    again = dict(zip((i.item_id for i in mixed), control_case("noise", mixed, seed), strict=True))
    assert drawn == again


def test_noise_differs_from_seed_to_seed() -> None:
    made = instances(30)
    assert len({tuple(control_case("noise", made, seed)) for seed in range(10)}) == 10


def test_every_other_argument_is_drawn_about_as_often() -> None:
    made = instances(5)
    counts = Counter(control_case("noise", made, seed)[0] for seed in range(2000))
    assert set(counts) == {f"argument {i}" for i in range(1, 5)}
    # Four standard errors of 500 of 2,000.
    assert all(abs(count - 500) < 4 * math.sqrt(2000 * 0.25 * 0.75) for count in counts.values())


def test_one_large_group_draws_from_outside_it() -> None:
    made = of_groups([0] * 8 + [1, 2])
    drawn = control_case("noise", made, 0)
    assert set(drawn[:8]) <= {"argument 8", "argument 9"}
    assert drawn[8] != "argument 8"
    assert drawn[9] != "argument 9"


def test_same_texts_same_arguments_and_blank_arguments_are_no_noise() -> None:
    made = [
        Instance("a", "one text", "x", "first"),
        Instance("b", "one text", "y", "second", group="another"),
        Instance("c", "other text", "x", "first"),
        Instance("d", "a third text", "x", "  "),
        Instance("e", "a fourth text", "x", "third"),
    ]
    for seed in range(20):
        a, b, c, d, e = control_case("noise", made, seed)
        assert a == "third"
        assert b in ("first", "third")
        assert c in ("second", "third")
        assert d in ("first", "second", "third")
        assert e in ("first", "second")


def test_without_an_unrelated_argument_every_instance_is_told() -> None:
    made = [Instance("a", "t", "x", "first", "g"), Instance("b", "u", "x", "second", "g")]
    with pytest.raises(SetupError) as caught:
        control_case("noise", made, 0)
    assert [p.field for p in caught.value.problems] == ["argument of 'a'", "argument of 'b'"]
    with pytest.raises(SetupError, match="stands more than once"):
        control_case("noise", [*instances(3), instances(1)[0]], 0)
    assert control_case("noise", [], 0) == []


def test_passages_are_retrieved_for_the_text_and_joined() -> None:
    asked: list[str] = []

    def retrieve(query: str) -> Sequence[str]:
        asked.append(query)
        return [f"{query}, first", f"{query}, second"]

    assert control_case("passages", instances(2), 0, retrieve) == [
        "text 0, first\n\ntext 0, second",
        "text 1, first\n\ntext 1, second",
    ]
    assert asked == ["text 0", "text 1"]


def test_an_instance_without_passages_is_told() -> None:
    with pytest.raises(SetupError, match="retrieve from"):
        control_case("passages", instances(2), 0)
    with pytest.raises(SetupError) as caught:
        control_case("passages", instances(3), 0, lexical_retriever(["only 1 here"]))
    assert [p.field for p in caught.value.problems] == ["'i0'", "'i2'"]


# --- passages ------------------------------------------------------------------------------------

prose = st.text(alphabet="ab. \n\t-é", max_size=200)


@given(prose, st.integers(1, 40))
def test_passages_keep_every_character_within_their_length(text: str, characters: int) -> None:
    passages = passages_of(text, characters)
    assert all(0 < len(passage) <= characters for passage in passages)
    assert "".join("".join(passages).split()) == "".join(text.split())


@given(st.lists(st.text(alphabet="ab.", min_size=1, max_size=10)), st.integers(10, 40))
def test_no_word_is_cut_that_fits(cut: list[str], characters: int) -> None:
    assert " ".join(passages_of(" ".join(cut), characters)).split() == cut


def test_a_cut_falls_between_sentences_where_it_can() -> None:
    text = "One two three. Four five six. Seven eight nine ten eleven twelve."
    assert passages_of(text, 30) == [
        "One two three. Four five six.",
        "Seven eight nine ten eleven",
        "twelve.",
    ]


def test_scores_are_those_worked_out_by_hand() -> None:
    # Three passages of 2, 4 and 3 words, 3 on average. "ticks" is in two of them, "bite" in one.
    # Weights log(1 + 1.5/2.5) = 0.4700 and log(1 + 2.5/1.5) = 0.9808.
    # First: ticks 1 of 2 words: 1 / (1 + 1.2 (0.25 + 0.75 2/3)) = 0.5263, so 0.2474.
    # Second: ticks 3 of 4 words: 3 / (3 + 1.2 (0.25 + 0.75 4/3)) = 0.6667, so 0.3133.
    # Third: bite 1 of 3 words: 1 / 2.2 = 0.4545, so 0.4458.
    passages = ["ticks crawl", "ticks ticks ticks wait", "fleas also bite"]
    assert lexical_retriever(passages)("ticks bite") == [passages[2], passages[1], passages[0]]
    assert lexical_retriever(passages, k=1)("Ticks!") == [passages[1]]


def test_equal_passages_come_in_their_order_and_unlike_ones_never() -> None:
    passages = ["a fever", "the fever", "no word of it", "my fever"]
    retrieve = lexical_retriever(passages)
    assert retrieve("fever") == ["a fever", "the fever", "my fever"]
    assert retrieve("rash") == []
    assert lexical_retriever([])("fever") == []
    assert lexical_retriever(["...", "!"])("fever") == []


texts = st.lists(st.text(alphabet="abc ", max_size=20), min_size=1, max_size=8)


@given(texts, st.text(alphabet="abc ", max_size=10))
def test_the_ranking_is_that_of_the_formula(passages: list[str], query: str) -> None:
    held = [words(p) for p in passages]
    mean = sum(map(len, held)) / len(held)

    def score(place: int) -> float:
        total = 0.0
        for word in set(words(query)):
            n = sum(word in h for h in held)
            times = held[place].count(word)
            weight = math.log(1 + (len(held) - n + 0.5) / (n + 0.5))
            length = len(held[place]) / mean if mean else 1.0
            total += weight * times / (times + 1.2 * (1 - 0.75 + 0.75 * length))
        return total

    found = lexical_retriever([f"{p} " + "\u200b" * i for i, p in enumerate(passages)], k=8)(query)
    places = [p.count("\u200b") for p in found]
    scores = [score(place) for place in places]
    assert sorted(places) == [i for i in range(len(held)) if score(i) > 0]
    assert all(a >= b - 1e-12 for a, b in pairwise(scores))


def test_a_question_retrieves_passages_of_its_own_document(shared_data: Path) -> None:
    path = shared_data / "medquad-cdc" / "medquad_cdc_270.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    documents: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        for passage in passages_of(row["answer"]):
            assert len(passage) <= 300
            documents[passage].add(row["doc"])
    retrieve = lexical_retriever(list(documents))
    found = [row["doc"] in documents[retrieve(row["question"])[0]] for row in rows]
    assert len(rows) == 270
    # 204 of 270 at the time of writing; of 59 documents chance would find about 5.
    assert len({row["doc"] for row in rows}) == 59
    assert sum(found) > 2 / 3 * len(rows)
