"""Shapes in which published data come: two responses in a row, criteria as texts, and so on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from judgebench.data.load import load_data
from judgebench.errors import SetupError
from judgebench.rubric import load_rubric

Write = Callable[[str, str], Path]

# As in PandaLM's test set: 1 and 2 name the better response, 0 is a tie; an input may be empty.
PANDA = [
    {
        "idx": 0, "instruction": "Name a fruit.", "input": "", "response1": "An apple.",
        "response2": "", "annotator1": 1, "annotator2": 1, "annotator3": 0,
    },
    {
        "idx": 1, "instruction": "Translate.", "input": "Guten Tag", "response1": "Good day",
        "response2": "Hello", "annotator1": 2, "annotator2": 1, "annotator3": 2,
    },
]  # fmt: skip
PANDA_SPEC = """\
files:
  - path: panda.json
    items:
      - {item_id: "{idx}-1", text: response1, question: "{instruction}\\n{input}", group: idx,
         system: {value: one}, if_empty: keep}
      - {item_id: "{idx}-2", text: response2, question: "{instruction}\\n{input}", group: idx,
         system: {value: two}, if_empty: keep}
    labels:
      - {item_id: idx, pair: [PAIR], annotator: {value: ann1}, metrics: {preference: annotator1}}
      - {item_id: idx, pair: [PAIR], annotator: {value: ann2}, metrics: {preference: annotator2}}
      - {item_id: idx, pair: [PAIR], annotator: {value: ann3}, metrics: {preference: annotator3}}
spellings:
  preference: {1: FIRST, 2: SECOND, 0: tie}
"""


@pytest.mark.parametrize("pair", ['"{idx}-1", "{idx}-2"', "{value: one}, {value: two}"])
def test_two_responses_in_one_row_are_compared(write: Write, pair: str) -> None:
    write("panda.json", json.dumps(PANDA))
    rubric = load_rubric("preference")
    first, second, tie = rubric.metrics[0].label_texts
    content = PANDA_SPEC.replace("PAIR", pair).replace("FIRST", f'"{first}"')
    content = content.replace("SECOND", f'"{second}"').replace("0: tie", f'0: "{tie}"')
    found = load_data(write("data.yaml", content), rubric)
    assert len(found.labels) == 6
    pairs = {row.item_id: row for row in found.answers if row.kind == "pair"}
    texts = {"1": {"An apple.", "Good day"}, "2": {"", "Hello"}}
    preferred = set()
    for label in found.labels:
        row = pairs[label.item_id]
        if label.label != tie:
            preferred.add((label.annotator, row.responses[label.label == second].text))
        assert {part.text for part in row.responses} in ({"An apple.", ""}, {"Good day", "Hello"})
    assert preferred == {
        ("ann1", "An apple."), ("ann2", "An apple."), ("ann1", "Hello"), ("ann2", "Good day"),
        ("ann3", "Hello"),
    }  # fmt: skip
    assert texts["2"] == {part.text for row in pairs.values() for part in row.responses} - {
        *texts["1"]
    }


def test_criteria_may_be_a_list_of_texts(write: Write) -> None:
    rows = [{"id": "x", "answer": "Rest.", "criteria": ["Names rest", "Is short"]}]
    write("items.json", json.dumps(rows))
    content = "files: [{path: items.json, items: {item_id: id, text: answer, criteria: criteria}}]"
    found = load_data(write("data.yaml", content), load_rubric("criteria"))
    named = [(x.item_id, x.criterion.text) for x in found.answers if x.criterion]
    assert named == [("x#1", "Names rest"), ("x#2", "Is short")]


def test_a_row_without_an_id_names_the_remedy(write: Write) -> None:
    path = write("rows.csv", "item_id,text\n,Rest.\nb,Sleep.\n")
    with pytest.raises(SetupError, match=r"names no item; allowed: an id; .*\{row: true\}"):
        load_data(path, load_rubric("preference"))
