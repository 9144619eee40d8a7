import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.models.token_scoring import begins, grammar, value_start

LABELS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(LABELS, LABELS | st.integers() | st.lists(LABELS), max_size=4), st.data())
def test_values_are_found_where_they_stand(members: dict[str, object], data: st.DataObject) -> None:
    indent = data.draw(st.sampled_from([None, 0, 2]))
    text = "\n" + json.dumps(members, indent=indent, ensure_ascii=False) + " "
    for key, value in members.items():
        start = value_start(text, key)
        assert start is not None
        assert json.JSONDecoder().raw_decode(text, start)[0] == value


def test_a_key_that_comes_twice_or_within_a_string_has_no_place() -> None:
    assert value_start('{"a": "x", "b": "y", "a": "z"}', "a") is None
    assert value_start(json.dumps({"why": '{"a": "x"}', "b": "a"}), "a") is None
    assert value_start('{"a": "\\\\","b" : "y"}', "b") == 17


@given(LABELS, st.booleans(), st.data())
def test_every_part_of_a_string_as_json_writes_it_begins_it(
    label: str, ascii_only: bool, data: st.DataObject
) -> None:
    whole = json.dumps(label, ensure_ascii=ascii_only).encode() + b', "next"'
    assert begins(whole[: data.draw(st.integers(1, len(whole)))], label)


@given(LABELS, LABELS)
def test_the_whole_string_of_another_label_does_not(label: str, other: str) -> None:
    assert begins(json.dumps(other).encode(), label) == (label == other)


@pytest.mark.parametrize(
    ("value", "label", "expected"),
    [
        (b'"no', "no harm", True),
        (b'"no', "no", True),
        (b'"no"', "no", True),
        (b'"no"}', "no", True),
        (b'"no"\n ,"x', "no", True),
        (b'"no"x', "no", False),
        (b'"no,', "no", False),
        (b'"a \\u2013', "a – b", True),
        (b'"a \\u201', "a – b", True),
        (b'"a \xe2\x80', "a – b", True),
        (b'"a \xe2\x80\x93 b', "a – b", True),
        (b'"a \xe2\x81', "a – b", False),
        (b'"\\ud83d', "😀", True),
        (b'say "', "say", False),
    ],
)
def test_a_value_begins_a_label(value: bytes, label: str, expected: bool) -> None:
    assert begins(value, label) is expected


def test_a_grammar_escapes_what_its_notation_would_read() -> None:
    assert r'("grave \\\"harm\\\"\"" | "x\"")' in grammar(['grave \\"harm\\""', 'x"'])
