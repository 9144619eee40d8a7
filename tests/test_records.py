from dataclasses import replace

import pytest

from judgebench.records import Answer, Estimate, Usage, add_known, content_hash, is_slot


@pytest.mark.parametrize(
    ("estimate", "shown"),
    [
        (Estimate(0.81249, 0.774, 0.85), "0.812 [0.774, 0.850]"),
        (Estimate(0.5), "0.500"),
        (Estimate(None, reason="one label only"), "–"),
        (Estimate(None, 0.1, 0.2), "–"),
    ],
)
def test_an_estimate_shows_its_interval_and_never_nan(estimate: Estimate, shown: str) -> None:
    assert str(estimate) == shown
    assert f"{estimate:.3f}" == shown


def test_the_hash_of_an_answer_is_of_what_a_judge_may_see() -> None:
    answer = Answer("i", "text", question="q", reference="r")
    for other in ("text", "question", "reference"):
        assert replace(answer, **{other: "new"}).content_hash != answer.content_hash
    assert replace(answer, item_id="j").content_hash == answer.content_hash
    assert replace(answer, system="gpt").content_hash == answer.content_hash


def test_a_content_hash_knows_no_order_of_keys_and_tells_texts_from_numbers() -> None:
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert content_hash(["1"]) != content_hash([1])
    assert content_hash(["a", "b"]) != content_hash(["ab"])


def test_what_is_unknown_adds_nothing_and_is_not_zero() -> None:
    assert add_known(None, None) is None
    assert add_known(None, 0.0) == 0.0
    assert add_known(1.5, None) == 1.5
    assert Usage(1, None, 5) + Usage(2, 7, None) == Usage(3, 7, 5)


def test_slots_are_told_from_people() -> None:
    assert is_slot("crowd#3")
    assert not is_slot("dr-lee")
