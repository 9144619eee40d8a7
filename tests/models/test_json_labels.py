import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.models.token_log_probabilities import begins, grammar, values

LABELS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(LABELS, LABELS | st.integers() | st.lists(LABELS), max_size=4), st.data())
def test_values_are_found_where_they_stand(members: dict[str, object], data: st.DataObject) -> None:
    indent = data.draw(st.sampled_from([None, 0, 2]))
    text = "\n" + json.dumps(members, indent=indent, ensure_ascii=data.draw(st.booleans())) + " "
    found = values(text)
    assert found is not None
    assert {key: value.of for key, value in found.items() if value} == members
    for value in found.values():
        assert value is not None
        assert json.JSONDecoder().raw_decode(text, value.start)[0] == value.of


def test_a_key_that_comes_twice_has_no_value() -> None:
    found = values('{"a": "x", "b": "y", "a": "z"}')
    assert found is not None
    assert found["a"] is None
    assert found["b"] is not None


@pytest.mark.parametrize(
    "text",
    ["", "{", '["a"]', '{"a": "x"', '{"a" "x"}', '{a: "x"}', '{"a": "x"} and more', '"a"',
     '{"a": "x",}', '{1: "x"}', "{" * 3, '{"a": ' + "[" * 100_000],
)  # fmt: skip
def test_what_is_no_object_has_no_values(text: str) -> None:
    assert values(text) is None


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
