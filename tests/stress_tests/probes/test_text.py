import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.stress_tests.recipes import asserts, facts, mentions, negations
from judgebench.text import sentences

TEXT = (
    "Malaria is caused by a parasite (e.g. Plasmodium). Take 500 mg twice a day. "
    "Don't take 1,200mg! Dr. Lee says 2.5 ml.\n- one item\n- two items"
)


def test_sentences_end_at_stops_and_bullets_and_not_at_abbreviations() -> None:
    assert [s.text for s in sentences(TEXT)] == [
        "Malaria is caused by a parasite (e.g. Plasmodium).",
        "Take 500 mg twice a day.",
        "Don't take 1,200mg!",
        "Dr. Lee says 2.5 ml.",
        "- one item",
        "- two items",
    ]


@given(st.text(alphabet=st.sampled_from("aB .!?\n-1'"), max_size=80))
def test_sentences_stand_where_they_say_and_lose_no_word(text: str) -> None:
    found = sentences(text)
    assert all(text[s.start : s.end] == s.text for s in found)
    assert "".join("".join(s.text.split()) for s in found) == "".join(text.split())


def test_facts_are_numbers_with_units_names_and_negations() -> None:
    found = facts(TEXT, ["plasmodium", "malaria", "measles"])
    assert found["500 mg"] == found["1,200 mg"] == found["2.5 ml"] == 1
    assert found["plasmodium"] == found["malaria"] == found["(negations)"] == 1
    assert "measles" not in found


@pytest.mark.parametrize(
    ("text", "count"),
    [("It is safe.", 0), ("It isn't safe.", 1), ("It isn’t not safe.", 2), ("Never, nobody.", 2)],
)
def test_negations_are_counted(text: str, count: int) -> None:
    assert negations(text) == count


def test_a_term_is_mentioned_as_a_whole_word() -> None:
    assert mentions("The Flu is here", "flu")
    assert not mentions("fluid", "flu")


def test_two_claims_that_differ_in_one_word_are_kept_apart() -> None:
    true, false = "Malaria is caused by a parasite", "Malaria is caused by a virus"
    text = "Malaria, a common disease, is caused by a virus."
    assert asserts(text, false, beyond=true)
    assert not asserts(text, true, beyond=false)


def test_a_denied_claim_is_not_asserted() -> None:
    claim = "Pregnant women should take ibuprofen"
    assert not asserts("Pregnant women should not take ibuprofen.", claim)
    assert asserts("All pregnant women should take some ibuprofen.", claim)


def test_a_claim_without_content_is_asserted_by_nothing() -> None:
    assert not asserts("It is so.", "it is")
