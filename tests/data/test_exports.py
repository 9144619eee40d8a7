"""Tables of other tools: what each column is, and which rows are of people and of models.

The tables are made of the columns that each record of exports.yaml names as its source.
"""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from judgebench.data.exports import Part, exports, parts, recognise, reshaped, split_kinds
from judgebench.data.findings import Findings
from judgebench.data.formats import Table
from judgebench.data.layout import Source
from judgebench.data.tables import open_table
from judgebench.data.vocabulary import ROLES, Column
from judgebench.errors import SetupError

Read = list[tuple[Part, list[dict[str, str]]]]
FILES = Path(__file__).parents[1] / "importers" / "files"


def table_of(text: str) -> Table:
    """The table in a CSV, whose cells are parted by `|`."""
    header, *rows = csv.reader(io.StringIO(text.strip()), delimiter="|")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(header)}
    return Table("export.csv", columns, range(2, len(rows) + 2))


def table_in(tmp_path: Path, value: Any) -> Table:
    """The table that the reader makes of JSON."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps(value))
    table = open_table(path, Findings())
    assert table is not None
    return table


def read(table: Table, tool: str) -> Read:
    """Each part of a tool's table, and its rows by role; of the columns that are not ignored."""
    export = recognise(table)
    assert export is not None
    assert export.tool == tool
    table = reshaped(table, tool)
    found = []
    for part in parts(table, export):
        rows = Source(Path("export.csv"), only=part.only).narrowed(table)
        names = [n for n in rows.columns if part.columns.get(n, Column("open")).role != "ignored"]
        roles = [str(part.columns[n]) if n in part.columns else n for n in names]
        found.append((part, [dict(zip(roles, row, strict=True)) for row in rows.rows(*names)]))
    return found


def test_records_have_roles_and_patterns_and_name_their_source() -> None:
    for export in exports().values():
        assert export.source
        assert {*export.columns} <= {*ROLES}
        patterns = [export.has, *export.columns.values(), export.melt, export.open, export.explode]
        for pattern in " ".join(patterns).split():
            re.compile(pattern)


def test_a_table_of_no_tool_is_none() -> None:
    assert recognise(table_of("item_id|annotator|label\n1|ann|yes\n")) is None


def test_an_unknown_tool_is_named_with_all_known(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is no known export; found Excel; allowed: Langfuse"):
        reshaped(table_of("a\n1\n"), "Excel")


def test_langfuse_rows_of_people_and_of_each_program() -> None:
    text = """
id|traceId|observationId|name|value|stringValue|dataType|source|comment|authorUserName
s1|t1||harm|1|yes|CATEGORICAL|ANNOTATION|too long|Ann
s2|t1||harm|0|no|CATEGORICAL|EVAL|it is safe|
s3|t1||stars|4||NUMERIC|ANNOTATION||Ann
s4|t1||harm|1|yes|CATEGORICAL|API||
s5|t1|o1|fix|0|Better so.|CORRECTION|ANNOTATION||Ann
"""
    people, evaluator, api = read(table_of(text), "Langfuse scores")
    assert people[1] == [
        {"item": "t1", "metric": m, "kind": "ANNOTATION", "rationale": why, "annotator": "Ann",
         "label": label}
        for m, label, why in (("harm", "yes", "too long"), ("stars", "4", ""))
    ]  # fmt: skip
    assert people[0].only["dataType"] == ("NUMERIC", "CATEGORICAL")
    assert [row["verdict by EVAL"] for row in evaluator[1]] == ["no"]
    assert [row["verdict by API"] for row in api[1]] == ["yes"]


def test_an_observation_is_the_item_of_its_score() -> None:
    text = """
traceId|observationId|name|value|stringValue|dataType|source|authorUserId
t1|o1|harm|1|yes|CATEGORICAL|ANNOTATION|ann
t1||harm|0|no|CATEGORICAL|ANNOTATION|ann
"""
    ((_, rows),) = read(table_of(text), "Langfuse scores")
    assert [row["item"] for row in rows] == ["o1", "t1"]


MTURK = "HITId|AssignmentId|WorkerId|AssignmentStatus|Input.docID|Input.reply"


def test_mturk_work_that_was_rejected_does_not_count() -> None:
    text = f"""{MTURK}|Answer.tone.label|Answer.comment
h1|a1|w1|Approved|d1|Hello.|polite|So.
h1|a2|w2|Rejected|d1|Hello.|rude|
h2|a3|w1|Submitted|d2|Go!|rude|
"""
    ((part, rows),) = read(table_of(text), "Amazon Mechanical Turk batch")
    assert rows[0]["item"] == "d1"
    assert rows[0]["text"] == "Hello."
    assert [(r["annotator"], r["label tone"]) for r in rows] == [("w1", "polite"), ("w1", "rude")]
    assert "label comment" not in rows[0]  # no two alike
    assert part.only == {"AssignmentStatus": ("Approved", "Submitted")}


def test_mturk_boxes_are_one_choice() -> None:
    text = f"""{MTURK}|Answer.tone.polite|Answer.tone.rude
h1|a1|w1|Approved|d1|Hello.|true|false
h2|a2|w1|Approved|d2|Go!|FALSE|TRUE
h3|a3|w1|Approved|d3|Hm.|false|false
"""
    ((_, rows),) = read(table_of(text), "Amazon Mechanical Turk batch")
    assert [(r["item"], r["metric"], r["label"]) for r in rows] == [
        ("d1", "tone", "polite"), ("d2", "tone", "rude"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["label-studio.csv", "label-studio-min.json"])
def test_columns_of_label_studio_are_read_by_name_and_cells(name: str) -> None:
    table = open_table(FILES / name, Findings())
    assert table is not None
    ((part, rows),) = read(table, "Label Studio CSV or JSON_MIN")
    assert part.columns["annotator"].role == "annotator"
    assert {"id", "item_id", "text", "correct"} <= rows[0].keys()  # as in any table
    assert "updated_at" not in rows[0]


def test_a_grid_of_google_forms_is_a_row_for_each_reply() -> None:
    text = """
Timestamp|Username|Harmful? [Reply 1]|Harmful? [Reply 2]|Polite? [Reply 1]|Remarks [all]
1|ann@x|no|yes|yes|fine
2||no|no||-
"""
    ((_, rows),) = read(table_of(text), "Google Forms")
    assert [(r["annotator"], r["item"], r["metric"], r["label"]) for r in rows] == [
        ("ann@x", "Reply 1", "Harmful?", "no"), ("row 3", "Reply 1", "Harmful?", "no"),
        ("ann@x", "Reply 2", "Harmful?", "yes"), ("row 3", "Reply 2", "Harmful?", "no"),
        ("ann@x", "Reply 1", "Polite?", "yes"),
    ]  # fmt: skip


QUALTRICS = "StartDate|EndDate|Progress|Finished|ResponseId"
IMPORT_ID = '{"ImportId":"startDate"}|{}|{"ImportId":"progress"}|{"ImportId":"finished"}|{}'


def test_questions_of_qualtrics_are_items_and_its_header_rows_no_answers() -> None:
    text = f"""{QUALTRICS}|Q1|Q2|Q3|Q2_DO
Start|End|Progress|Finished|Response ID|Reply 1 is|Reply 2 is|Who are you?|order
{IMPORT_ID}|q1|q2|q3|d
m|n|100|True|R_a|safe|unsafe|a nurse|1
m|n|100|True|R_b|safe|safe|a clerk|2
"""
    ((part, rows),) = read(table_of(text), "Qualtrics")
    assert part.only == {"Finished": ("True",)}
    assert [(r["annotator"], r["item"], r["label"]) for r in rows] == [
        ("R_a", "Q1", "safe"), ("R_b", "Q1", "safe"),
        ("R_a", "Q2", "unsafe"), ("R_b", "Q2", "safe"),
    ]  # fmt: skip


def test_loops_of_qualtrics_are_items_with_questions() -> None:
    text = f"""{QUALTRICS}|1_Q1|2_Q1|1_Q2|2_Q2
m|n|100|1|R_a|safe|unsafe|yes|yes
m|n|100|1|R_b|safe|safe|no|
"""
    ((_, rows),) = read(table_of(text), "Qualtrics")
    assert [(r["item"], r["metric"], r["label"]) for r in rows if r["annotator"] == "R_b"] == [
        ("1", "Q1", "safe"), ("2", "Q1", "safe"), ("1", "Q2", "no"),
    ]  # fmt: skip


PRODIGY = "_input_hash|_task_hash|_annotator_id|answer"


def test_prodigys_choices_count_where_they_were_accepted(tmp_path: Path) -> None:
    task = {"text": "Hello.", "_input_hash": 7, "_task_hash": -1, "_session_id": "db-ann"}
    options = [{"id": "polite", "text": "Polite"}, {"id": "rude", "text": "Rude"}]
    rows = [
        {**task, "options": options, "accept": ["rude"], "answer": "accept"},
        {**task, "options": options, "accept": [], "answer": "ignore"},
    ]
    ((part, said),) = read(table_in(tmp_path, rows), "Prodigy choice")
    assert said == [{"text": "Hello.", "item": "7", "annotator": "db-ann", "label": "rude"}]
    assert part.only == {"answer": ("accept",)}


def test_prodigys_classification_is_about_the_label_of_the_task() -> None:
    text = f"""{PRODIGY}|text|label
7|-1|db-ann|accept|Hello.|POLITE
7|-1|db-bob|reject|Hello.|POLITE
7|-1|db-cem|ignore|Hello.|POLITE
"""
    ((_, rows),) = read(table_of(text), "Prodigy classification")
    assert [(r["item"], r["annotator"], r["metric"], r["label"]) for r in rows] == [
        ("7", "db-ann", "POLITE", "accept"), ("7", "db-bob", "POLITE", "reject"),
    ]  # fmt: skip


def test_doccanos_list_of_one_label_is_the_label(tmp_path: Path) -> None:
    rows = [{"id": 5, "text": "Hello.", "label": ["polite"], "Comments": []},
            {"id": 6, "text": "Go!", "label": ["rude", "short"], "Comments": ["hm"]}]  # fmt: skip
    table = reshaped(table_in(tmp_path, rows), "doccano")
    assert table.columns["label"] == ["polite", ("rude", "short")]
    ((_, said),) = read(table_in(tmp_path, rows), "doccano")
    assert said[0] == {"item": "5", "text": "Hello.", "label": "polite"}


def test_every_question_of_argilla_has_rows_of_people_and_agents() -> None:
    table = open_table(FILES / "argilla-flat.json", Findings())
    assert table is not None
    people, agents = read(table, "Argilla records")
    ann, bob = (f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2))
    by_person = {(r["annotator"], r["metric"], r["item"]): r["label"] for r in people[1]}
    assert by_person[ann, "correct", "loan"] == "no"
    assert [i for who, metric, i in by_person if (who, metric) == (bob, "tone")] == [
        "opening", "café",
    ]  # fmt: skip  # the others are drafts, or were discarded
    assert {metric for _, metric, _ in by_person} == {"correct", "tone", "problems"}  # not `why`
    assert {r["judge"] for r in agents[1]} == {"grader-1"}
    assert [r["item"] for r in agents[1] if r["metric"] == "tone"] == ["opening", "fine", "print"]


def test_argillas_lists_that_do_not_fit_are_an_error() -> None:
    text = """
id|safe.responses|safe.responses.users|safe.responses.status
1|["yes", "no"]|["ann"]|["submitted"]
"""
    with pytest.raises(SetupError, match=r"export.csv: holds no lists of responses"):
        reshaped(table_of(text), "Argilla records")


def test_a_batch_of_openai_holds_whole_replies(tmp_path: Path) -> None:
    def line(custom_id: str, body: object, error: object = None) -> dict[str, object]:
        response = body and {"status_code": 200, "request_id": "r", "body": body}
        return {"id": "b", "custom_id": custom_id, "response": response, "error": error}

    choice = {"index": 0, "message": {"role": "assistant", "content": "yes"}}
    lines = [line("a1", {"model": "gpt", "choices": [choice]}), line("a2", None, {"code": "x"})]
    ((_, rows),) = read(table_in(tmp_path, lines), "OpenAI batch output")
    assert rows == [{"item": "a1", "reply": "yes"}, {"item": "a2", "reply": ""}]


def test_alpaca_evals_numbers_are_sides() -> None:
    text = """
instruction|output_1|generator_1|output_2|generator_2|annotator|preference|raw_completion
Write.|x|old|y|new|gpt4|2.0|(b)
"""
    ((part, rows),) = read(table_of(text), "alpaca_eval annotations")
    assert rows == [
        {"item": "Write.", "kept": "y", "first": "old", "second": "new", "judge": "gpt4",
         "verdict": "2.0", "raw": "(b)"},
    ]  # fmt: skip
    assert part.spell["2.0"] == "second"


FASTCHAT = {"question_id": 81, "judge": ["gpt-4", "pair-v2"], "turn": 1, "tstamp": 1.0}


def test_both_orders_of_a_fastchat_pair_are_verdicts(tmp_path: Path) -> None:
    pair = {**FASTCHAT, "model_1": "a", "model_2": "b", "g1_winner": "model_2", "g2_winner": "tie",
            "g1_user_prompt": "?", "g1_judgment": "[[B]]", "g2_user_prompt": "?",
            "g2_judgment": "[[C]]"}  # fmt: skip
    ((part, rows),) = read(table_in(tmp_path, [pair]), "FastChat pair judgments")
    about = {"first": "a", "second": "b", "judge": "gpt-4 pair-v2"}
    assert [{k: v for k, v in row.items() if k != "item"} for row in rows] == [
        {**about, "verdict": "model_2", "shown_first": "g1"},
        {**about, "verdict": "tie", "shown_first": "g2"},
    ]
    assert part.spell == {"model_1": "first", "model_2": "second", "g1": "first", "g2": "second"}


def test_fastchats_rating_of_minus_one_is_a_failure(tmp_path: Path) -> None:
    grade = {**FASTCHAT, "model": "a", "user_prompt": "?", "judgment": "[[-]]", "score": -1}
    ((part, rows),) = read(table_in(tmp_path, [grade]), "FastChat grades")
    assert (rows[0]["verdict"], rows[0]["raw"]) == ("-1", "[[-]]")
    assert part.spell == {"-1": "failed"}
    assert [n for n, c in part.columns.items() if c.role == "item"] == [
        "question_id", "turn", "model",
    ]  # fmt: skip


@pytest.mark.parametrize(("judge", "role"), [("expert_17", "annotator"), ("gpt4_pair", "judge")])
def test_judges_of_mt_bench_are_people_or_gpt4(judge: str, role: str) -> None:
    text = f"question_id|model_a|model_b|winner|judge|turn\n81|a|b|tie (inconsistent)|{judge}|1\n"
    ((part, rows),) = read(table_of(text), "MT-bench human votes")
    assert rows[0][role] == judge
    assert part.spell["tie (inconsistent)"] == "tie"


def test_annotations_of_phoenix_are_by_identifier_or_user() -> None:
    text = """
span_id|annotation_name|annotator_kind|metadata|identifier|id|source|user_id|result.label|result.score
s1|harm|HUMAN|{}||i1|APP|ann|yes|
s1|harm|HUMAN|{}||i2|APP|bob||1.0
s1|harm|LLM|{}|gpt|i3|API||no|0.0
"""
    people, models = read(table_of(text), "Phoenix annotations")
    assert [(r["annotator"], r["label"]) for r in people[1]] == [("ann", "yes"), ("bob", "1.0")]
    assert [(r["judge"], r["verdict"]) for r in models[1]] == [("gpt", "no")]


def mlflow(name: str, **of_proto: Any) -> dict[str, Any]:
    """An assessment with its name under this key."""
    source = {"source_type": of_proto.pop("kind", "HUMAN"), "source_id": of_proto.pop("by")}
    return {name: "harm", "source": source, "feedback": {"value": of_proto.pop("value")},
            "rationale": None, "valid": True, **of_proto}  # fmt: skip


@pytest.mark.parametrize("name", ["name", "assessment_name"])
def test_assessments_of_mlflow_are_rows_of_their_traces(tmp_path: Path, name: str) -> None:
    first = [mlflow(name, by="ann", value="yes"), mlflow(name, by="ann", value="no", valid=False)]
    second = [mlflow(name, by="gpt", value="yes", kind="LLM_JUDGE")]
    traces = [{"trace_id": "t1", "request": "Q", "response": "A", "assessments": first},
              {"trace_id": "t2", "request": "Q", "response": "A", "assessments": second},
              {"trace_id": "t3", "request": "Q", "response": "A", "assessments": []}]  # fmt: skip
    people, models = read(table_in(tmp_path, traces), "MLflow assessments")
    about = {"question": "Q", "text": "A", "metric": "harm"}
    assert people[1] == [
        {**about, "item": "t1", "kind": "HUMAN", "annotator": "ann", "label": "yes"},
    ]
    assert models[1] == [
        {**about, "item": "t2", "kind": "LLM_JUDGE", "judge": "gpt", "verdict": "yes"},
    ]


def test_feedback_of_langsmith_is_of_people_in_its_app() -> None:
    text = """
id|run_id|key|score|value|comment|feedback_source.type|feedback_source.user_id
f1|r1|harm|1||so|app|u1
f2|r1|harm||no||model|
f3|r1|harm||yes||api|
"""
    people, model, api = read(table_of(text), "LangSmith feedback")
    assert [(r["annotator"], r["label"]) for r in people[1]] == [("u1", "1")]
    assert [row["verdict by model"] for row in model[1]] == ["no"]
    assert [row["verdict by api"] for row in api[1]] == ["yes"]


def test_an_experiment_of_langsmith_has_verdicts_and_times() -> None:
    text = """
inputs.q|outputs.a|error|reference.a|feedback.harm|execution_time|example_id|id
Q|A||A|1|0.3|e1|r1
P|B||B|1|0.4|e2|r2
"""
    ((part, rows),) = read(table_of(text), "LangSmith experiment")
    assert rows[0]["verdict harm"] == "1"
    assert part.columns["execution_time"].role == "ignored"
    assert "example_id" not in part.columns  # read as in any table


SCORE = {"name": "harm", "value": 1.0, "category_name": "yes", "source": "ui", "created_by": "ann"}


def test_opiks_scores_are_rows_of_their_traces(tmp_path: Path) -> None:
    scores = [SCORE, {**SCORE, "source": "online_scoring", "created_by": "gpt"}]
    traces = [{"id": "t1", "name": "chat", "input": "Q", "output": "A", "feedback_scores": scores}]
    people, models = read(table_in(tmp_path, traces), "Opik feedback scores")
    assert [(r["item"], r["metric"], r["label"]) for r in people[1]] == [("t1", "harm", "yes")]
    assert [r["judge"] for r in models[1]] == ["gpt"]


def test_a_mean_over_opiks_authors_is_nobodys_label(tmp_path: Path) -> None:
    by_author = {"ann": {"value": 1.0}, "bob": {"value": 0.0}}
    score = {**SCORE, "value": 0.5, "value_by_author": by_author}
    traces = [{"id": "t1", "name": "chat", "input": "Q", "feedback_scores": [score, score]}]
    ((part, _),) = read(table_in(tmp_path, traces), "Opik feedback scores by several authors")
    assert not part.columns


def test_evaluation_events_are_verdicts(tmp_path: Path) -> None:
    name = "gen_ai.evaluation"
    attributes = {f"{name}.name": "harm", f"{name}.score.label": "yes", f"{name}.score.value": 1,
                  f"{name}.explanation": "so", "gen_ai.response.id": "r1"}  # fmt: skip
    events = [{"name": f"{name}.result", "attributes": attributes}]
    ((_, rows),) = read(table_in(tmp_path, events), "OpenTelemetry evaluation events")
    assert rows == [{"item": "r1", "metric": "harm", "rationale": "so", "verdict": "yes"}]


# Columns that say who judged, in any table ------------------------------------------------------


@pytest.mark.parametrize("name", ["source", "annotator_kind", "Source Type", "kind", "said.source"])
def test_rows_of_people_and_models_are_parts_of_any_table(name: str) -> None:
    table = table_of(f"id|rater|label|{name}\n1|ann|yes|Human\n1|gpt|no|LLM\n1|rule|no|code\n")
    split = split_kinds(table, {"label": Column("label")})
    assert split is not None
    people, model, _ = split
    assert people.only == {name: ("Human",)}
    assert [people.columns[c].role for c in ("rater", "label", name)] == [
        "annotator", "label", "kind",
    ]  # fmt: skip
    assert model.only == {name: ("LLM",)}
    assert [model.columns[c].role for c in ("rater", "label")] == ["judge", "verdict"]


@pytest.mark.parametrize("cells", ["Human|Human", "LLM|LLM", "Human|web", "Human|", "Human|llms"])
def test_cells_that_say_something_else_are_no_kinds(cells: str) -> None:
    first, second = cells.split("|")
    assert split_kinds(table_of(f"id|source\n1|{first}\n2|{second}\n"), {}) is None


def test_a_column_that_somebody_declares_otherwise_is_no_kind() -> None:
    table = table_of("id|source\n1|human\n2|llm\n")
    assert split_kinds(table, {"source": Column("ignored")}) is None
    assert split_kinds(table, {"source": Column("kind")}) is not None


def test_an_item_without_annotations_is_of_neither_kind() -> None:
    table = table_of("id|a.by|a.kind\n1|ann|human\n1|gpt|model\n2||\n")
    split = split_kinds(table, {"a.by": Column("annotator")})
    assert split is not None
    assert [part.only["a.kind"] for part in split] == [("human",), ("model",)]
    assert split[1].columns["a.by"].role == "judge"
