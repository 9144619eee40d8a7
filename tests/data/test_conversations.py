"""Items that are conversations."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.data.cells import Nested
from judgebench.data.conversation import ROLES, criteria_of, judged, turns_of
from judgebench.data.load import load_data
from judgebench.data.spec import DataSpec
from judgebench.errors import SetupError
from judgebench.records import Answer, Dataset, Part, in_words
from judgebench.rubric import Rubric

Write = Callable[[str, str | bytes], Path]

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Is it safe?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": [{"type": "text", "text": "And this?"}, {"type": "image_url"}]},
    {"role": "assistant", "content": "No."},
]


def load(write: Write, rubric: Rubric, entry: str, rows: list[dict[str, Any]]) -> Dataset:
    write("chats.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    data = f"files: [{{path: chats.jsonl, items: {{item_id: id, messages: chat{entry}}}}}]"
    return load_data(write("data.yaml", data), rubric)


def test_the_last_turn_is_judged(write: Write, rubric: Rubric) -> None:
    (answer,) = load(write, rubric, "", [{"id": "x", "chat": CHAT}]).answers
    assert (answer.item_id, answer.text) == ("x", "No.")
    assert [turn.role for turn in answer.turns] == ["system", "user", "assistant", "user"]
    assert answer.turns[-1].text == "And this?\n[image_url]"
    assert answer.question == in_words(answer.turns)
    assert answer.group == "system: Be brief.\n\nuser: Is it safe?"
    assert answer.kind == "answer"


def test_every_turn_is_judged(write: Write, rubric: Rubric) -> None:
    found = load(write, rubric, ", judge: every", [{"id": "x", "chat": CHAT}]).answers
    assert [(a.item_id, a.text, len(a.turns)) for a in found] == [
        ("x@3", "Yes.", 2),
        ("x@5", "No.", 4),
    ]
    assert len({a.group for a in found}) == 1


def test_the_whole_is_judged(write: Write, rubric: Rubric) -> None:
    row = {"id": "x", "chat": CHAT, "q": "A chat on safety"}
    (answer,) = load(write, rubric, ", judge: whole, question: q", [row]).answers
    assert answer.text == in_words(answer.turns)
    assert len(answer.turns) == 5
    assert answer.question == "A chat on safety"


def test_the_last_turn_may_stand_in_its_own_column(write: Write, rubric: Rubric) -> None:
    rows = [{"id": i, "chat": CHAT[:2], "reply": f"Reply {i}", "by": i} for i in "ab"]
    found = load(write, rubric, ", text: reply, system: by", rows).answers
    assert [(a.text, a.system, len(a.turns)) for a in found] == [
        ("Reply a", "a", 2),
        ("Reply b", "b", 2),
    ]
    assert len({a.group for a in found}) == 1


@pytest.mark.parametrize("end", ["csv", "parquet", "json"])
def test_conversations_in_any_table(write: Write, rubric: Rubric, tmp_path: Path, end: str) -> None:
    chat = [turn for turn in CHAT if isinstance(turn["content"], str)]
    expected = load(write, rubric, "", [{"id": "x", "chat": chat}]).answers
    frame = pd.DataFrame([{"id": "x", "chat": chat}])
    match end:
        case "csv":
            frame.to_csv(tmp_path / "other.csv")  # a list as Python writes it
        case "parquet":
            frame.to_parquet(tmp_path / "other.parquet")
        case _:
            frame.to_json(tmp_path / "other.json", orient="records")
    data = f"files: [{{path: other.{end}, items: {{item_id: id, messages: chat}}}}]"
    assert load_data(write("data.yaml", data), rubric).answers == expected


def test_faults_name_file_row_and_place(write: Write, rubric: Rubric) -> None:
    rows = [
        {"id": "a", "chat": []},
        {
            "id": "b",
            "chat": [{"role": "bot", "content": "Yes."}, {"role": "user", "content": {"a": "b"}}],
        },
        {"id": "c", "chat": [{"role": "user", "content": "Is it safe?"}]},
        {"id": "d", "chat": ["Is it safe?"]},
        {"id": "e", "chat": {"role": "user"}},
        {"id": "f", "chat": "Is it safe?"},
        {"id": "g", "chat": [{"role": "assistant", "content": "  "}]},
    ]
    with pytest.raises(SetupError) as caught:
        load(write, rubric, "", rows)
    file = caught.value.problems[0].file
    found = [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems]
    roles = ", ".join(ROLES)
    assert found == [
        "1: chat: the conversation is empty; allowed: a list of {role, content}",
        f"2: chat[0].role: is no role; found 'bot'; allowed: {roles}",
        "2: chat[1].content: is no content; found \"{'a': 'b'}\"; "
        "allowed: a text, or a list of {type: text, text}",
        "3: chat: no turn is the assistant's, so there is nothing to judge",
        "4: chat[0]: is no turn; found 'Is it safe?'; allowed: {role, content}",
        "5: chat: is no list of turns; allowed: a list of {role, content}",
        "6: chat: is neither a JSON list nor a Python list",
        "7: chat: the text is empty; in a data.yaml `if_empty: keep` reads it as an empty answer, "
        "`if_empty: skip` leaves such rows out; found '  '",
    ]


def test_a_call_of_a_tool_is_shown() -> None:
    call = {"function": {"name": "search", "arguments": '{"for": "dose"}'}}
    turns, faults = turns_of(
        Nested([{"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": "10 mg"}])
    )  # fmt: skip
    assert not faults
    assert [turn.text for turn in turns] == ['[calls search({"for": "dose"})]', "10 mg"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"judge": "last"},
            "judge says what is judged of a conversation: name its column, messages",
        ),
        ({"messages": "m", "question": "q"}, "the question is the conversation: remove question"),
        ({"messages": "m", "judge": "every", "criteria": "c"}, "ID@2, ID@4 and so on"),
    ],
)
def test_what_does_not_fit_a_conversation(entry: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataSpec.model_validate({"files": [{"path": "x", "items": {"item_id": "id", **entry}}]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
    | st.sampled_from(["user", "assistant", "role", "content"]),
    lambda inside: st.lists(inside, max_size=3)
    | st.dictionaries(
        st.sampled_from(["role", "content", "type", "text", "tool_calls", "id", "points", "tags"]),
        inside,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON, st.booleans())
def test_whatever_a_cell_holds_is_read_or_reported(value: Any, as_text: bool) -> None:
    cell = json.dumps(value) if as_text else Nested(value)
    for read in (turns_of, criteria_of):
        found, faults = read(cell)
        assert all(fault.message for fault in faults)
        assert all(isinstance(one.text, str) for one in found)


def test_deep_nesting_is_a_fault() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert turns_of(Nested(deep))[1][0].message == "is nested too deeply"
    assert turns_of("[" * 100_000)[1][0].message == "is neither a JSON list nor a Python list"


@given(st.lists(st.tuples(st.sampled_from(ROLES), st.text("ab \n", max_size=4)), max_size=8))
def test_every_turn_of_the_assistant_is_judged_once(turns: list[tuple[str, str]]) -> None:
    talk = [Part(role, text) for role, text in turns]
    if not any(part.role == "assistant" for part in talk):
        return
    rows = list(judged(Answer("x", ""), talk, "every"))
    said = [p.text for p in talk if p.role == "assistant" and p.text.strip()]
    assert [row.text for row in rows if row.text.strip()] == said
    for row in rows:
        place = int(row.item_id.removeprefix("x@"))
        assert (row.text, row.parts) == (talk[place - 1].text, tuple(talk[: place - 1]))
    (last,) = judged(Answer("x", ""), talk, "last")
    assert (last.text, last.parts, last.group) == (rows[-1].text, rows[-1].parts, rows[-1].group)
