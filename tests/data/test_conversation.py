"""Cells that hold more than a text: conversations, of which turns are judged, and criteria."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import judgebench as jb
from judgebench.data.conversation import ROLES, criteria_of, judged, turns_of
from judgebench.data.formats import Nested
from judgebench.data.load import load_data
from judgebench.errors import SetupError
from judgebench.records import Answer, Dataset, Part, in_words
from judgebench.rubric import Rubric, load_rubric
from tests.data.conftest import Write

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Is it safe?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": [{"type": "text", "text": "And this?"}, {"type": "image_url"}]},
    {"role": "assistant", "content": "No."},
]
COLUMNS = {"id": "item", "chat": "messages"}


def layout(write: Write, *tables: dict[str, Any]) -> Path:
    return write("layout.yaml", yaml.safe_dump({"tables": tables}))


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def load(write: Write, rubric: Rubric, rows: list[dict[str, Any]], **table: Any) -> Dataset:
    """The data set of a table of conversations, in which keys stand beside `id` and `chat`."""
    write("chats.jsonl", lines(rows))
    columns = {**COLUMNS, **table.pop("columns", {})}
    return load_data(layout(write, {"file": "chats.jsonl", "columns": columns, **table}), rubric)


def problems(path: Path, rubric: Rubric, file: Path) -> list[str]:
    with pytest.raises(SetupError) as error:
        load_data(path, rubric)
    return [str(problem).removeprefix(f"{file}:") for problem in error.value.problems]


def test_the_last_turn_is_judged(write: Write, rubric: Rubric) -> None:
    (answer,) = load(write, rubric, [{"id": "x", "chat": CHAT}]).answers
    assert (answer.item_id, answer.text) == ("x", "No.")
    assert [turn.role for turn in answer.turns] == ["system", "user", "assistant", "user"]
    assert answer.turns[-1].text == "And this?\n[image_url]"
    assert answer.question == in_words(answer.turns)
    assert answer.group == "system: Be brief.\n\nuser: Is it safe?"
    assert answer.kind == "answer"


def test_every_turn_or_the_whole_is_judged(write: Write, rubric: Rubric) -> None:
    answers = load(write, rubric, [{"id": "x", "chat": CHAT}], turns="every").answers
    assert [(a.item_id, a.text, len(a.turns)) for a in answers] == [
        ("x@3", "Yes.", 2), ("x@5", "No.", 4)
    ]  # fmt: skip
    assert len({a.group for a in answers}) == 1
    row = {"id": "x", "chat": CHAT, "q": "A chat on safety"}
    (answer,) = load(write, rubric, [row], turns="whole", columns={"q": "question"}).answers
    assert answer.text == in_words(answer.turns)
    assert len(answer.turns) == 5
    assert answer.question == "A chat on safety"


def test_the_last_turn_may_stand_in_its_own_column(write: Write, rubric: Rubric) -> None:
    rows = [{"id": i, "chat": CHAT[:2], "reply": f"Reply {i}", "by": i} for i in "ab"]
    answers = load(write, rubric, rows, columns={"reply": "text", "by": "system"}).answers
    assert [(a.text, a.system, len(a.turns)) for a in answers] == [
        ("Reply a", "a", 2), ("Reply b", "b", 2)
    ]  # fmt: skip
    assert len({a.group for a in answers}) == 1


@pytest.mark.parametrize("end", ["csv", "parquet", "json"])
def test_conversations_in_any_table(write: Write, rubric: Rubric, tmp_path: Path, end: str) -> None:
    chat = [turn for turn in CHAT if isinstance(turn["content"], str)]
    expected = load(write, rubric, [{"id": "x", "chat": chat}]).answers
    frame = pd.DataFrame([{"id": "x", "chat": chat}])
    match end:
        case "csv":
            frame.to_csv(tmp_path / "other.csv", index=False)  # a list as Python writes it
        case "parquet":
            frame.to_parquet(tmp_path / "other.parquet")
        case _:
            frame.to_json(tmp_path / "other.json", orient="records")
    path = layout(write, {"file": f"other.{end}", "columns": COLUMNS})
    assert load_data(path, rubric).answers == expected


def test_faults_of_turns_name_row_and_place(write: Write, rubric: Rubric) -> None:
    turns = [{"role": "bot", "content": "Yes."}, {"role": "user", "content": {"a": "b"}}]
    chats = [
        [],
        turns,
        [{"role": "user", "content": "Is it safe?"}],
        ["Is it safe?"],
        "Is it safe?",
    ]
    path = write("chats.csv", "id,chat\n")
    pd.DataFrame({"id": range(5), "chat": map(json.dumps, chats)}).to_csv(path, index=False)
    messages = problems(layout(write, {"file": "chats.csv", "columns": COLUMNS}), rubric, path)
    assert [message.partition("; found")[0] for message in messages] == [
        "2: chat: the conversation is empty; allowed: a list of {role, content}",
        f"3: chat[0]: is no turn, {{role, content}}, with a role of {', '.join(ROLES)}",
        "3: chat[1]: has no content: a text, or a list of {type: text, text}",
        "4: chat: no turn is the assistant's, so there is nothing to judge",
        f"5: chat[0]: is no turn, {{role, content}}, with a role of {', '.join(ROLES)}",
        "6: chat: is no list of turns; allowed: a list of {role, content}",
    ]


def test_a_call_of_a_tool_is_shown() -> None:
    call = {"function": {"name": "search", "arguments": '{"for": "dose"}'}}
    turns, faults = turns_of(
        Nested([{"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": "10 mg"}])
    )  # fmt: skip
    assert not faults
    assert [turn.text for turn in turns] == ['[calls search({"for": "dose"})]', "10 mg"]


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
        parts, faults = read(cell)
        assert all(fault.message for fault in faults)
        assert all(isinstance(part.text, str) for part in parts)


def test_deep_nesting_is_a_fault() -> None:
    assert turns_of("[" * 100_000)[1][0].message == "is neither a JSON list nor a Python list"


@given(st.lists(st.tuples(st.sampled_from(ROLES), st.text("ab \n", max_size=4)), max_size=8))
def test_every_turn_of_the_assistant_is_judged_once(turns: list[tuple[str, str]]) -> None:
    talk = [Part(role, text) for role, text in turns]
    if not any(part.role == "assistant" for part in talk):
        return
    rows = list(judged(Answer("x", ""), talk, "every"))
    texts = [p.text for p in talk if p.role == "assistant" and p.text.strip()]
    assert [row.text for row in rows if row.text.strip()] == texts
    for row in rows:
        place = int(row.item_id.removeprefix("x@"))
        assert (row.text, row.parts) == (talk[place - 1].text, tuple(talk[: place - 1]))
    (last,) = judged(Answer("x", ""), talk, "last")
    assert (last.text, last.parts, last.group) == (rows[-1].text, rows[-1].parts, rows[-1].group)


# Criteria ----------------------------------------------------------------------------------------

ITEMS = [
    {
        "id": "x", "question": "What helps?", "answer": "Rest and water.",
        "rubrics": [
            {"criterion": "Names rest", "points": 5, "tags": ["axis:accuracy", "level:example"]},
            {"criterion": "Advises a drug", "points": -3, "tags": []},
        ],
    },
    {
        "id": "y", "question": "What helps?", "answer": "Nothing does.",
        "rubrics": [{"id": "kind", "text": "Is kind", "points": 1.5}],
    },
]  # fmt: skip
OF_ITEMS = {"id": "item", "question": "question", "answer": "text", "rubrics": "criteria"}
OF_LABELS = {"item": "item", "which": "criterion", "who": "annotator", "said": "label met"}
LABELS = "item,which,who,said\nx,1,Ann,true\nx,2,Ann,not met\nx,1,Bob,no\ny,kind,Ann,met\n"


@pytest.fixture(scope="module")
def criteria() -> Rubric:
    return load_rubric("criteria")


def criteria_layout(write: Write, file: str = "items.jsonl", labels: str = LABELS) -> Path:
    write("labels.csv", labels)
    return layout(
        write, {"file": file, "columns": OF_ITEMS}, {"file": "labels.csv", "columns": OF_LABELS}
    )


def test_every_criterion_is_an_item(write: Write, criteria: Rubric, tmp_path: Path) -> None:
    write("items.jsonl", lines(ITEMS))
    data = load_data(criteria_layout(write), criteria)
    assert [answer.item_id for answer in data.answers] == ["x#1", "x#2", "y#kind"]
    first, second, third = data.answers
    assert (first.text, first.question) == ("Rest and water.", "What helps?")
    assert first.criterion
    assert (first.criterion.text, first.criterion.name) == ("Names rest", "1")
    assert first.criterion.item_id == "x"
    assert dict(first.metadata) == {"points": "5", "tags": "axis:accuracy|level:example"}
    assert dict(second.metadata) == {"points": "-3", "tags": ""}
    assert third.metadata["points"] == "1.5"
    assert first.group == second.group
    assert {(x.item_id, x.annotator): x.label for x in data.labels} == {
        ("x#1", "Ann"): "met", ("x#2", "Ann"): "not met", ("x#1", "Bob"): "not met",
        ("y#kind", "Ann"): "met",
    }  # fmt: skip
    frame = pd.DataFrame(ITEMS)
    frame.assign(rubrics=frame.rubrics.map(json.dumps)).to_csv(tmp_path / "c.csv", index=False)
    frame.to_parquet(tmp_path / "c.parquet")
    frame.to_json(tmp_path / "c.json", orient="records")
    for end in ("csv", "parquet", "json"):
        again = load_data(criteria_layout(write, f"c.{end}"), criteria)
        assert again.answers == data.answers, end


def test_criteria_may_be_a_list_of_texts(write: Write, criteria: Rubric) -> None:
    row = {"item_id": "x", "text": "Rest.", "criteria": ["Names rest", "Is short"]}
    data = load_data(write("items.json", json.dumps([row])), criteria)
    named = [(x.item_id, x.criterion.text) for x in data.answers if x.criterion]
    assert named == [("x#1", "Names rest"), ("x#2", "Is short")]


def test_every_fault_of_a_criterion_is_reported(write: Write, criteria: Rubric) -> None:
    bad = [
        {"id": "a", "text": "Is kind"}, {"id": "a", "text": "Is short"}, {"id": "b"},
        {"id": "c", "text": "Is long", "points": "many"},
        {"id": "d", "text": "Is long", "points": 0}, {"id": "e", "text": {"de": "Ist lang"}},
        True, {"id": "f", "text": "Is long", "tags": {"a": "b"}},
    ]  # fmt: skip
    rows = [{**ITEMS[0], "rubrics": bad}, {**ITEMS[1], "rubrics": "{}"}]
    path = write("items.jsonl", lines(rows))
    no_text = "has no text or no id, or a character in it that no text may hold"
    points = "has no number of points: other than 0, below 0 for what should not be"
    messages = problems(criteria_layout(write), criteria, path)[:7]
    assert [message.partition("; found")[0] for message in messages] == [
        "1: rubrics[1].id: two criteria of 'x' have this id",
        f"1: rubrics[2]: {no_text}",
        f"1: rubrics[3]: {points}",
        f"1: rubrics[4]: {points}",
        "1: rubrics[5]: holds a dict, where one value was expected",
        "1: rubrics[6]: is no criterion, {id, text, points, tags}",
        "1: rubrics[7]: has no list of tags",
    ]


def test_unknown_criteria_are_errors(write: Write, criteria: Rubric) -> None:
    path = write("items.jsonl", lines(ITEMS))
    rows = ("1,Ann,met", "9,Ann,met", "999,Ann,met", ",Ann,met", "2,Ann,half")
    labels = LABELS[:20] + "".join(f"x,{row}\n" for row in rows)
    messages = problems(criteria_layout(write, labels=labels), criteria, path)
    assert "labels.csv:5: the row names no criterion" in messages[0]
    assert "labels.csv:6: said: is not a label of met; found 'half'" in messages[1]
    assert "labels.csv:3: item_id: no answer has this criterion; found 'x#9'" in messages[2]
    assert messages[3].endswith("found 'x#999'")
    assert len(messages) == 4
    path = write("answers.csv", "item_id,text\nx,Rest and water.\n")
    (message,) = problems(path, criteria, path)
    assert "the rubric has metrics of criteria, and the data hold none" in message


def test_frames_of_labels_on_criteria_make_a_study(criteria: Rubric) -> None:
    labels = pd.DataFrame(
        [("x", "1", "Ann", "met"), ("x", "2", "Ann", "not met"), ("y", "1", "Ann", "met")],
        columns=["item_id", "criterion", "annotator", "met"],
    )
    verdicts = labels.drop(columns="annotator").assign(judge="gpt-4")
    study = jb.study(labels, verdicts, rubric=criteria)
    (judge,) = (judge for judge in study.judges if judge.kind == "judge")
    assert (study.judged(judge, study.rubric.metrics[0]) == study.humans["met"].truth).all()
    assert [answer.item_id for answer in study.answers] == ["x#1", "x#2", "y#1"]
    assert study.clusters.codes.tolist() == [0, 0, 1]
    wrong = labels.drop(columns="criterion").drop_duplicates("item_id")
    with pytest.raises(SetupError, match="the metric met is about criteria, and this is an answer"):
        jb.study(wrong, rubric=criteria)
