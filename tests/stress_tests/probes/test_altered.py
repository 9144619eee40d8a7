from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from judgebench.records import Answer
from judgebench.stress_tests.probes.altered import BY_HAND, AlteredAnswer, apply_changes, span_diff

TEXT = st.text(alphabet=st.sampled_from("ab .,é\n1"), max_size=60)


@given(TEXT, TEXT)
def test_the_changes_lead_from_the_parent_to_the_text(old: str, new: str) -> None:
    changes = span_diff(old, new)
    assert apply_changes(old, changes) == new
    assert all(old[c.start : c.end] == c.old for c in changes)
    assert all(c.old != c.new for c in changes)


@given(TEXT)
def test_a_text_has_no_changes_to_itself(text: str) -> None:
    assert span_diff(text, text) == ()


def test_changes_are_whole_words() -> None:
    (change,) = span_diff("It is a parasite.", "It is a virus.")
    assert (change.old, change.new) == ("parasite", "virus")


def test_an_altered_answer_shares_its_parents_cluster_and_reference() -> None:
    parent = Answer("a", "sound", question="q", system="s", reference="r", group="g")
    item = AlteredAnswer("a~x", parent, "false", "x", "1", "h")
    answer = item.answer
    assert (answer.item_id, answer.text) == ("a~x", "false")
    assert (answer.group, answer.question, answer.reference) == ("g", "q", "r")


def test_who_altered_it_is_said_in_words() -> None:
    item = AlteredAnswer("a~x", Answer("a", "sound"), "false", "x", "1", "h")
    assert item.made_by == "altered by rule"
    assert replace(item, generator=BY_HAND).made_by == "altered by hand"
    assert replace(item, generator="m:1a2b").made_by == "altered by m:1a2b"


def test_failed_checks_are_those_with_a_reason() -> None:
    parent = Answer("a", "sound")
    item = AlteredAnswer("i", parent, "t", "x", "1", "h", checks={"differs": "", "length": "long"})
    assert item.failed_checks == {"length": "long"}
