"""From the rows of tables to records: people's labels and judges' verdicts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import judgebench as jb
from judgebench.data.load import load_data, read_verdicts
from judgebench.data.rows import WHOLE_REPLY
from judgebench.errors import Problem, SetupError
from judgebench.records import ADJUDICATED, is_slot
from judgebench.rubric import BETWEEN, Rubric, load_rubric
from tests.data.conftest import Write

TABLE = "id\tt\ttone\tsource\na\tone\tKind\tNo\nb\ttwo\t\tNA\nc\tthree\t\t\n"
COLUMNS = {"id": "item", "t": "text", "tone": "label tone by ann", "source": "label source by ann"}


def layout_of(write: Write, rows: str, columns: Mapping[str, str], **keys: Any) -> Path:
    """A layout of one table of tabs."""
    write("a.tsv", rows)
    tables = [{"file": "a.tsv", "columns": dict(columns)}]
    return write("layout.yaml", yaml.safe_dump({"tables": tables, **keys}, sort_keys=False))


def errors(path: Path, rubric: Rubric) -> Sequence[Problem]:
    with pytest.raises(SetupError) as error:
        load_data(path, rubric)
    return error.value.problems


# Labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spell", "labels"),
    [
        ({}, ["Kind", None, None]),
        ({"tone": {"": "Neutral"}}, ["Kind", "Neutral", "Neutral"]),
        ({"tone": {"": "cannot say"}, "Source given": {"": "None"}}, ["Kind", *["Cannot say"] * 2]),
        ({"tone": {"Kind": "Neutral", "Neutral": "Kind"}}, ["Neutral", None, None]),
    ],
)
def test_blanks_and_labels_mean_what_is_said(
    rubric: Rubric, write: Write, spell: Mapping[str, Any], labels: list[str | None]
) -> None:
    path = layout_of(write, TABLE, COLUMNS, spell=spell)
    dataset = load_data(path, rubric)
    assert [x.label for x in dataset.labels if x.metric == "tone"] == labels
    notes = {(w.kind, w.field): w.message for w in dataset.warnings}
    if None in labels:
        assert "(2 times, rows 3-4)" in notes["blank_label", "tone"]


def test_words_for_nothing_are_blank_unless_they_are_labels(rubric: Rubric, write: Write) -> None:
    rows = "id\ttone\tsource\na\tn/a\tNA\nb\t-\tNone\nc\tNaN\tnull\nd\tnone\tno\n"
    columns = {key: COLUMNS[key] for key in ("id", "tone", "source")}
    dataset = load_data(layout_of(write, rows.replace("none", "?"), columns), rubric)
    labels = [(x.metric, x.label) for x in dataset.labels if x.label]
    assert labels == [("source", text) for text in ("NA", "None", "null", "No")]
    (error,) = errors(layout_of(write, rows, columns), rubric)
    assert (error.kind, error.line, error.found) == ("unknown_label", 5, "'none'")


def test_a_label_that_is_none_is_an_error_with_what_is_allowed(
    rubric: Rubric, write: Write
) -> None:
    rows = TABLE.replace("Kind", "Knid").replace("NA", "2-Mar")
    problems = errors(layout_of(write, rows, COLUMNS, spell={"tone": {"K": "Kind"}}), rubric)
    assert [(p.kind, p.line, p.field, p.found) for p in problems] == [
        ("unknown_label", 2, "tone", "'Knid'"), ("unknown_label", 3, "source", "'2-Mar'")
    ]  # fmt: skip
    assert problems[0].allowed.startswith("Kind, Neutral, Rude – openly, Cannot say, K; `spell`")


@pytest.mark.parametrize(
    ("repeats", "label"), [("first", "Kind"), ("last", "Neutral"), ("", "error")]
)
def test_of_several_labels_of_a_person_one_counts(
    rubric: Rubric, write: Write, repeats: str, label: str
) -> None:
    rows = "id\twho\ttone\na\tann\tKind\na\tann\t\na\tAnn\tNeutral\n"
    columns = {"id": "item", "who": "annotator", "tone": "label tone"}
    path = layout_of(write, rows, columns, repeats=repeats)
    if repeats:
        assert [(x.annotator, x.label) for x in load_data(path, rubric).labels] == [("ann", label)]
        return
    (problem,) = errors(path, rubric)
    assert (problem.kind, problem.line, problem.found) == ("conflicting_label", 4, "'Neutral'")
    assert "'ann' said 'Kind' of 'a' on tone in row 2" in problem.message


def test_several_columns_are_an_item_together(rubric: Rubric, write: Write) -> None:
    rows = "q\tbot\tkim\nq1\tx\tKind\nq1\ty\tNeutral\n\t\tKind\n"
    columns = {"q": "item", "bot": "item", "kim": "label tone by Kim"}
    (problem,) = errors(layout_of(write, rows, columns), rubric)
    assert (problem.kind, problem.line) == ("blank_id", 4)
    dataset = load_data(layout_of(write, rows.replace("\t\tKind\n", ""), columns), rubric)
    assert [x.item_id for x in dataset.labels] == ["q1 · x", "q1 · y"]
    long = rows.replace("q1", "q" * 200).replace("\t\tKind\n", "")
    ids = [x.item_id for x in load_data(layout_of(write, long, columns), rubric).labels]
    assert max(map(len, {*ids})) < 100 < len("q" * 200)
    assert len({*ids}) == 2


def test_adjudicated_labels_are_nobodys(rubric: Rubric, write: Write) -> None:
    columns = {**COLUMNS, "tone": "adjudicated tone"}
    dataset = load_data(layout_of(write, TABLE, columns), rubric)
    labels = [(x.annotator, x.label) for x in dataset.labels if x.metric == "tone"]
    assert labels == [(ADJUDICATED, "Kind"), (ADJUDICATED, None), (ADJUDICATED, None)]


def test_several_labels_in_a_cell_are_a_set(write: Write) -> None:
    topics = {"id": "topics", "title": "T", "question": "?", "kind": "nominal", "several": True,
              "labels": ["sport", "news", "art"]}  # fmt: skip
    rubric = Rubric.model_validate({"name": "r", "version": "1", "metrics": [topics]})
    rows = "id\tkim\na\tSport + news\nb\tart\nc\t\nd\tsport+music\n"
    columns = {"id": "item", "kim": "label topics by Kim"}
    path = layout_of(write, rows, columns, several="+", spell={"topics": {"music": "art"}})
    labels = [x.label for x in load_data(path, rubric).labels]
    assert [label and frozenset(label.split(BETWEEN)) for label in labels] == [
        {"sport", "news"}, {"art"}, None, {"sport", "art"}
    ]  # fmt: skip


# Lists of labels ---------------------------------------------------------------------------------


@pytest.mark.parametrize("style", [json.dumps, repr, "|".join, "; ".join])
def test_a_list_of_labels_has_a_place_for_each(rubric: Rubric, write: Write, style: Any) -> None:
    lists = [["Kind", "Neutral", "Kind"], [], ["neutral"]]
    rows = "".join(f"i{i}\t{style(entries)}\n" for i, entries in enumerate(lists))
    path = layout_of(write, "id\ttones\n" + rows, {"id": "item", "tones": "labels tone"})
    labels = load_data(path, rubric).labels
    assert [(x.item_id, x.annotator, x.label) for x in labels] == [
        ("i0", "crowd#1", "Kind"), ("i0", "crowd#2", "Neutral"), ("i0", "crowd#3", "Kind"),
        ("i2", "crowd#1", "Neutral"),
    ]  # fmt: skip
    assert all(is_slot(label.annotator) for label in labels)


CROWD = {"id": "item", "tone": "labels tone", "source": "labels source", "workers": "annotators"}


def test_lists_beside_lists_of_annotators_are_peoples(rubric: Rubric, write: Write) -> None:
    rows = (
        "id\ttone\tsource\tworkers\na\t['Kind', 'Neutral']\t['No', 'NA']\t['w1', 'w2']\n"
        'b\tNeutral\t\t["w2"]\nc\tKind|Kind\tNA|No\t w3 ; w1\nd\t[]\t[]\t[]\n'
    )
    labels = load_data(layout_of(write, rows, CROWD), rubric).labels
    assert {(x.item_id, x.annotator, x.metric): x.label for x in labels} == {
        ("a", "w1", "tone"): "Kind", ("a", "w2", "tone"): "Neutral",
        ("a", "w1", "source"): "No", ("a", "w2", "source"): "NA",
        ("b", "w2", "tone"): "Neutral",
        ("c", "w3", "tone"): "Kind", ("c", "w1", "tone"): "Kind",
        ("c", "w3", "source"): "NA", ("c", "w1", "source"): "No",
    }  # fmt: skip


def test_lists_that_are_none_or_do_not_match_are_errors(rubric: Rubric, write: Write) -> None:
    rows = (
        "id\ttone\tsource\tworkers\na\t['Kind', 'Neutral']\t\t['w1']\n"
        "b\t['Kind']\t\t['w1', 'w2']\nc\t['Kind']\t\t\nd\t['Kind', 'Kind']\t\t['w1', ' ']\n"
        "e\t['Kind']\t\t['w1'\nf\t['Kind', 'Neutral']\t\t['w1', 'w1']\n"
        "g\t[Kind, Neutral\t\t['w1']\nh\t[__import__('os')]\t\t['w1']\n"
    )
    problems = errors(layout_of(write, rows, CROWD), rubric)
    assert {(p.kind, p.line) for p in problems} == {
        *(("bad_list", line) for line in (2, 3, 4, 6, 8, 9)), ("blank_annotator", 5),
        ("conflicting_label", 7),
    }  # fmt: skip
    message = "lists 2 labels, and 'workers' 1 annotators"
    assert next(p for p in problems if p.line == 2).message == message


# Verdicts ----------------------------------------------------------------------------------------

VERDICTS = {"id": "item", "tone": "verdict tone", "judge": "judge"}


def cells(path: Path, rubric: Rubric) -> dict[tuple[str, str], Any]:
    """The entries of verdicts by judge and item, of one metric each."""
    judges, _ = read_verdicts(path, rubric, ())
    return {(judge, item): cell for judge, rows in judges.items()
            for item, entries in rows.items() for _, cell in entries}  # fmt: skip


def test_a_verdict_is_a_label_or_a_text_in_its_place(rubric: Rubric, write: Write) -> None:
    rows = (
        "id\ttone\tjudge\tstatus\twhy\nb\tkind\tgpt\t\tIt is warm.\nc\tERROR 429\tgpt\t\t\n"
        "d\tno idea\tgpt\t\t\ne\t\tgpt\tREFUSED\t\nf\t\tgpt\t\t\ng\ttimeout\tgpt\t\t\n"
    )
    columns = {**VERDICTS, "status": "status", "why": "rationale"}
    path = layout_of(write, rows, columns, failed=["ERROR 429"])
    entries = {item: cell for (_, item), cell in cells(path, rubric).items()}
    assert {item: (cell.label, cell.text, cell.status) for item, cell in entries.items()} == {
        "b": ("Kind", "", None), "c": (None, "ERROR 429", "failed"), "d": (None, "no idea", None),
        "e": (None, "", "refused"), "f": (None, "", None), "g": (None, "timeout", "failed"),
    }  # fmt: skip
    assert entries["b"].rationale == "It is warm."
    warnings = read_verdicts(path, rubric, ())[1]
    assert [(w.kind, w.line, w.found) for w in warnings] == [
        ("unread_verdict", 4, "'no idea'"), ("blank_verdict", 6, "")
    ]  # fmt: skip
    path = layout_of(write, rows, columns, failed=["*"])
    assert cells(path, rubric)["gpt", "d"].status == "failed"


@pytest.mark.parametrize("word", ["success", "Completed", "200", "done", "OK"])
def test_a_verdict_that_ended_well_in_other_words_is_read(
    rubric: Rubric, write: Write, word: str
) -> None:
    rows = f"id\ttone\tjudge\tstatus\na\tKind\tgpt\t{word}\n"
    read = cells(layout_of(write, rows, {**VERDICTS, "status": "status"}), rubric)
    assert read["gpt", "a"].label == "Kind"


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [
        ("a\tKind\t\tok\t", "blank_annotator", "no judge is named"),
        ("a\tKind\tgpt\tfailed\t", "bad_status", "has the status failed and a label"),
        ("a\tKind\tgpt\tlate\t", "bad_status", "is no status of a verdict"),
        ("b\tNeutral\tgpt\tok\t", "conflicting_verdict", "'gpt' said 'Kind' of 'b' on tone in"),
        (" \tKind\tgpt\tok\t", "blank_id", "the row names no item"),
        ("a\tKind\tgpt\tok\t1.5", "bad_probability", "is no probability"),
        ("a\tKind\tgpt\tok\tmuch", "bad_probability", "is no probability"),
        ("a\tKind\tgpt\tok\t0", "bad_probability", "probabilities add up to 0"),
    ],
)
def test_a_fault_of_a_verdict_names_its_row(
    rubric: Rubric, write: Write, row: str, kind: str, message: str
) -> None:
    rows = f"id\ttone\tjudge\tstatus\tp\nb\tKind\tgpt\tok\t0.5\n{row}\n"
    columns = {**VERDICTS, "status": "status", "p": "probability tone=Kind"}
    with pytest.raises(SetupError) as error:
        cells(layout_of(write, rows, columns), rubric)
    (problem,) = error.value.problems
    assert (problem.kind, problem.line) == (kind, 3)
    assert message in problem.message


def test_a_draw_of_a_judge_stands_once(rubric: Rubric, write: Write) -> None:
    rows = "id\ttone\tjudge\trun\na\tKind\tgpt\t1\na\tNeutral\tgpt\t2\n"
    path = layout_of(write, rows, {**VERDICTS, "run": "repeat"})
    draws = read_verdicts(path, rubric, ())[0]["gpt"]["a"]
    assert [(cell.repeat, cell.label) for _, cell in draws] == [("1", "Kind"), ("2", "Neutral")]
    path = layout_of(write, rows + "a\tKind\tgpt\t1\n", {**VERDICTS, "run": "repeat"})
    with pytest.raises(SetupError, match="'gpt' said 'Kind' of 'a' on tone, draw 1, in row 2"):
        read_verdicts(path, rubric, ())


def test_probabilities_and_the_texts_behind_verdicts_are_read(rubric: Rubric, write: Write) -> None:
    rows = "id\ttone\tp\tq\treply\na\tKind\t0.7\t0.2\tIt is kind.\nb\tNeutral\t\t\t\n"
    columns = {"id": "item", "tone": "verdict tone by gpt", "p": "probability tone=Kind",
               "q": "probability tone=neutral", "reply": "raw"}  # fmt: skip
    entries = cells(layout_of(write, rows, columns), rubric)
    assert entries["gpt", "a"].probabilities == {"Kind": 0.7, "Neutral": 0.2}
    assert entries["gpt", "a"].raw == "It is kind."
    assert entries["gpt", "b"].probabilities is None


def test_of_two_labels_one_probability_says_the_other(write: Write) -> None:
    table = "item_id,judge,harm,probability_harm_yes\na,gpt,yes,0.7\nb,gpt,no,0.0\nc,gpt,no,\n"
    entries = cells(write("two.csv", table), Rubric.from_labels({"harm": ["no", "yes"]}))
    shares = [entries["gpt", item].probabilities for item in "abc"]
    assert shares == [{"yes": 0.7, "no": pytest.approx(0.3)}, {"yes": 0, "no": 1}, None]
    of_three = Rubric.from_labels({"harm": ["no", "unsure", "yes"]})
    _, (warning,) = read_verdicts(write("three.csv", table.replace("0.0", "0.1")), of_three, ())
    assert (warning.kind, warning.field) == ("unused_column", "probability_harm_yes")
    assert "without the probabilities of the other labels: no, unsure (2 times" in warning.message


def test_names_of_columns_say_probabilities_of_plain_tables(rubric: Rubric, write: Write) -> None:
    wide = "item_id,judge,tone,probability_tone_Kind,probability_Tone of voice_neutral\n"
    entries = cells(write("wide.csv", wide + "a,gpt,Kind,0.7,0.2\n"), rubric)
    assert entries["gpt", "a"].probabilities == {"Kind": 0.7, "Neutral": 0.2}
    long = "item_id,judge,metric,label,probability_Kind\n"
    entries = cells(write("long.csv", long + "a,gpt,tone,Kind,0.7\n"), rubric)
    assert entries["gpt", "a"].probabilities == {"Kind": 0.7}


def test_whole_replies_are_kept_as_they_are(rubric: Rubric, write: Write) -> None:
    rows = "id\tout\na\t It is kind. \nb\t\n"
    path = layout_of(write, rows, {"id": "item", "out": "reply by gpt"})
    verdicts = read_verdicts(path, rubric, ())[0]["gpt"]
    assert [(m, cell.raw) for m, cell in verdicts["a"]] == [(WHOLE_REPLY, " It is kind. ")]
    assert [cell.raw for _, cell in verdicts["b"]] == [""]


def test_a_judge_of_whom_nothing_is_a_label_is_an_error(rubric: Rubric, write: Write) -> None:
    rows = "id\ttone\tjudge\na\tgood\tgpt\nb\tbad\tgpt\na\tKind\tother\n"
    with pytest.raises(SetupError, match="none of 2 verdicts of gpt is a label; found 'good, bad'"):
        cells(layout_of(write, rows, VERDICTS), rubric)


# Whether labels were made blind ------------------------------------------------------------------

PEOPLE = pd.DataFrame({"item_id": [*"aabb"], "annotator": ["ann", "ben"] * 2, "tone": "Kind"})


@pytest.mark.parametrize(
    ("blind", "declared", "is_blind"),
    [
        ([], {}, "unknown"),
        (["yes"] * 4, {}, "yes"),
        (["yes", "yes", " No", "yes"], {}, "no"),
        (["yes", "", "yes", "yes"], {}, "unknown"),
        (["double"] * 4, {}, "unknown"),
        (["yes"] * 4, {"blind": "no"}, "no"),
    ],
)
def test_a_column_says_whether_labels_are_blind(
    rubric: Rubric, tmp_path: Path, blind: list[str], declared: dict[str, str], is_blind: str
) -> None:
    labels = PEOPLE.assign(made_blind=blind) if blind else PEOPLE
    verdicts = pd.DataFrame({"item_id": ["a", "b"], "judge": "j", "tone": ["Kind", "Neutral"]})
    study = jb.study(labels, verdicts, rubric=rubric, truth=declared)
    assert study.config.blind == is_blind
    labels.to_csv(tmp_path / "labels.csv", index=False)
    if not declared:
        assert load_data(tmp_path / "labels.csv", rubric).blind == is_blind


def test_a_run_keeps_what_its_labels_say_of_blindness(tmp_path: Path) -> None:
    PEOPLE.assign(made_blind="yes", politeness="Polite").drop(columns="tone").to_csv(
        tmp_path / "labels.csv", index=False
    )
    (tmp_path / "answers.csv").write_text("item_id,text\na,x\nb,y\n")
    bench = tmp_path / "bench.yaml"
    bench.write_text("name: b\nrubric: support-tone\ndata: [answers.csv, labels.csv]\n")
    assert jb.load_bench(bench).config.truth.blind == "yes"


def test_the_preference_may_say_which_response_was_shown_first(write: Write) -> None:
    rows = "id\ta\tb\twinner\tjudge\tshown\nk\tx\ty\tx\tgpt\tb\nl\tx\ty\ty\tgpt\tz\n"
    columns = {"id": "item", "a": "first", "b": "second", "winner": "verdict", "judge": "judge",
               "shown": "shown_first"}  # fmt: skip
    rubric = load_rubric("preference")
    with pytest.raises(SetupError) as error:
        cells(layout_of(write, rows, columns), rubric)
    (problem,) = error.value.problems
    assert (problem.kind, problem.line, problem.found) == ("bad_pair", 3, "'z'")
    entries = cells(layout_of(write, rows.replace("gpt\tz", "gpt\t"), columns), rubric)
    for cell, is_first in zip(entries.values(), (False, None), strict=True):
        assert is_first is None or (cell.shown_first == cell.label) is is_first
    assert [bool(cell.shown_first) for cell in entries.values()] == [True, False]
