"""A layout says what every column of every table is: in YAML, printed, and as it is read again."""

import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import yaml

import judgebench as jb
from judgebench.data.load import load_data
from judgebench.errors import SetupError
from judgebench.rubric import Rubric
from judgebench.setup_files import save
from tests.data.conftest import Write

SHEET = "ID,Question,Model A,kim,lee,note\n1,Why?,Because.,0,2.0,x\n2,How?,So.,n/a,1,y\n"
LAYOUT = """
rubric: rubric.yaml
tables:
- file: sheet.csv
  columns: {ID: item, Question: question, Model A: text, kim: label tone by Kim,
            lee: label Tone of voice by Lee, note: kept}
- file: gpt-4.tsv
  columns: {id: item, verdict: verdict tone by gpt-4}
spell: {tone: {0: Kind, "1": Neutral, "2": rude - openly, "n/a": null}}
"""


@pytest.fixture
def layout(write: Write, rubric: Rubric) -> Path:
    write("rubric.yaml", rubric.model_dump_json())
    write("sheet.csv", SHEET)
    write("gpt-4.tsv", "id\tverdict\n1\tKind\n2\tneutral\n")
    return write("layout.yaml", LAYOUT)


def test_a_layout_is_read_as_it_says(layout: Path, rubric: Rubric) -> None:
    data = load_data(layout, rubric)
    assert [(a.item_id, a.text, a.question, a.metadata) for a in data.answers] == [
        ("1", "Because.", "Why?", {"note": "x"}), ("2", "So.", "How?", {"note": "y"})
    ]  # fmt: skip
    assert [(x.item_id, x.annotator, x.metric, x.label) for x in data.labels] == [
        ("1", "Kim", "tone", "Kind"), ("1", "Lee", "tone", "Rude – openly"),
        ("2", "Kim", "tone", None), ("2", "Lee", "tone", "Neutral"),
    ]  # fmt: skip
    assert sorted(data.sources) == ["gpt-4.tsv", "layout.yaml", "sheet.csv"]
    (judge,) = (judge for judge in jb.study(layout).judges if judge.kind == "judge")
    assert judge.name == "gpt-4"
    assert {i: v.labels for i, v in judge.verdicts.items()} == {
        "1": {"tone": "Kind"}, "2": {"tone": "Neutral"}
    }  # fmt: skip


def test_its_tables_may_lie_in_another_folder(layout: Path, rubric: Rubric, tmp_path: Path) -> None:
    elsewhere = tmp_path / "b" / "layout.yaml"
    elsewhere.parent.mkdir()
    layout.rename(elsewhere)
    assert len(load_data(elsewhere, rubric, folder=tmp_path).answers) == 2
    with pytest.raises(SetupError, match=r"b/sheet.csv: no such file"):
        load_data(elsewhere, rubric)


def test_layouts_and_plain_tables_are_one_set(layout: Path, rubric: Rubric, write: Write) -> None:
    plain = write("more.csv", "item_id,tone\n1,Kind\nz,Kind\n")
    with pytest.raises(SetupError) as error:
        load_data([plain, layout], rubric)
    (problem,) = error.value.problems
    assert (problem.kind, problem.line, problem.found) == ("unknown_item", 3, "'z'")
    write("more.csv", "item_id,tone\n1,Kind\n")
    labels = load_data([plain, layout], rubric).labels
    assert Counter(x.annotator for x in labels if x.label) == {"Kim": 1, "Lee": 2, "more": 1}


def test_every_column_must_be_named_and_there(layout: Path, rubric: Rubric, write: Write) -> None:
    write("sheet.csv", SHEET.replace("note", "remark").replace("lee", "Lee"))
    with pytest.raises(SetupError) as error:
        load_data(layout, rubric)
    problems = [(p.line, p.field, p.message.partition(":")[0]) for p in error.value.problems]
    no_such, unnamed = "has no such column", "the layout says nothing of this column"
    assert problems == [
        (1, "lee", no_such), (1, "note", no_such), (1, "Lee", unnamed), (1, "remark", unnamed)
    ]  # fmt: skip
    assert error.value.problems[0].allowed == "ID, Question, Model A, kim, Lee, remark"
    assert error.value.problems[2].allowed.startswith("ignored, item, ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tables:", "tables: [", r"layout.yaml:4: is not YAML"),
        ("tables:", "table:", r"layout.yaml:\d+: table: is not a known key"),
        (
            "ID: item",
            "ID: itm",
            r"tables.0.columns.ID: is no role .*roles: item, group.*found 'itm'",
        ),
        ("Model A: text", "Model A: ", "tables.0.columns.Model A: .*found None"),
        ("by gpt-4}", "by gpt-4}\n  turn: every", "turn: is not a known key.*turns"),
        ("gpt-4}", "gpt-4}\n  turns: some", "turns: must be 'last', 'every' or 'whole'"),
        ("file: sheet.csv", 'file: "a\\0.csv"', "file: .*"),
        ("spell: {tone", "spell: {tune", "spell: is no metric; found tune; allowed: tone, source"),
        ("0: Kind", "0: Kid", "spell.tone: is no label of tone; found Kid; allowed: Kind, Neutral"),
        ("spell: {tone", "repeats: any\nspell: {tone", "repeats: must be '', 'first' or 'last'"),
        ("rubric: rubric.yaml", "", "names no rubric, which says what the labels are"),
        ("sheet.csv", "gone.csv", "gone.csv: no such file"),
    ],
)
def test_a_fault_names_file_field_and_what_is_allowed(
    layout: Path, old: str, new: str, message: str
) -> None:
    layout.write_text(LAYOUT.replace(old, new))
    with pytest.raises(SetupError) as error:
        jb.study(layout)
    (problem,) = error.value.problems
    assert re.search(message, str(problem))


def test_bare_numbers_and_words_in_yaml_are_texts(rubric: Rubric, write: Write) -> None:
    write("a.csv", "2024,1.10,yes,2024-01-02\n1,one,no,1.0\n2,two,0,1.0\n")
    path = write("layout.yaml", """\
tables:
- file: a.csv
  header: 1
  columns: {2024: item, 1.10: text, yes: label tone, 2024-01-02: annotator}
spell: {tone: {no: Kind, 0: Neutral}}
""")  # fmt: skip
    data = load_data(path, rubric)
    assert [answer.text for answer in data.answers] == ["one", "two"]
    assert [(x.annotator, x.label) for x in data.labels] == [("1.0", "Kind"), ("1.0", "Neutral")]


# What is inferred is written, and reads the same -----------------------------------------------

PEOPLE = pd.DataFrame({
    "Nr.": range(12), "prompt_id": [f"p{i // 2}" for i in range(12)],
    "Stars (Kim)": ["1", "2", "3"] * 4, "Stars (Lee)": ["1", "2", "2"] * 4,
})  # fmt: skip
JUDGE = PEOPLE[["Nr."]].assign(stars=["1", "3", "ERROR"] * 4)
SAID = {"order": "1 < 2 < 3", "failed": "ERROR", "question": "prompt_id", "spell": {"two": "2"}}


def test_what_is_inferred_is_saved_and_reads_the_same(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "gpt-4.csv").write_text("a title\n" + JUDGE.to_csv(index=False))
    columns = {**SAID, "header": "gpt-4.csv:2", "skip": "people.csv:13"}
    layout = jb.layout(tmp_path / "people.csv", tmp_path / "gpt-4.csv", columns=columns)
    save(layout, tmp_path / "saved")
    path = tmp_path / "saved" / "layout.yaml"
    before, after = jb.study(layout), jb.study(path)
    assert after.n_labels == 2 * 11
    assert list(after.answers) == list(before.answers)
    assert after.rubric.metrics == before.rubric.metrics
    assert [judge.verdicts for judge in after.judges] == [judge.verdicts for judge in before.judges]
    assert not after.unconfirmed_question
    written = yaml.safe_load(path.read_text("utf-8"))
    assert (written["failed"], written["spell"]) == (["ERROR"], {"stars": {"two": "2"}})
    people, judge = written["tables"]
    assert (people["file"], people["skip"], judge["header"]) == ("../people.csv", [13], [2])
    with pytest.raises(SetupError, match="is not overwritten"):
        save(layout, path.parent)


def test_what_all_tables_say_together_is_saved(write: Write, rubric: Rubric) -> None:
    layout = jb.layout(write("a.csv", "id,kim\nA1,Kind\nA1,Neutral\nA2,Kind\n,Kind\n"),
                       write("j.csv", "id,llm\na1,Kind\na2,Kind\n"), rubric=rubric,
                       columns={"repeats": "last", "only_common": True, "several": "+",
                                "fill_down": "id", "kim": "label tone by Kim"})  # fmt: skip
    folder = write("x", "").with_name("saved")
    save(layout, folder, {"blind": "yes"})
    study = jb.study(folder / "layout.yaml")
    assert study.config.blind == "yes"
    assert [a.item_id for a in study.answers] == ["A1", "A2"]


def test_a_frame_has_no_file_to_name(tmp_path: Path) -> None:
    layout = jb.layout(PEOPLE, JUDGE, columns=SAID)
    with pytest.raises(SetupError, match="DataFrame"):
        save(layout, tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_layout_prints_every_column_and_why() -> None:
    lines = repr(jb.layout(PEOPLE, JUDGE, columns={"failed": "ERROR"})).splitlines()
    assert [re.sub(" {2,}", "  ", line).strip() for line in lines] == [
        "labels  12 rows",
        "Nr.  item  0, 1, 2  its name",
        "prompt_id  group  p0, p1, p2  its name; not confirmed: --question 'prompt_id'",
        "Stars (Kim)  label stars by Kim  1, 2, 3  it shares labels",
        "Stars (Lee)  label stars by Lee  1, 2  it shares labels",
        "verdicts  12 rows",
        "Nr.  item  0, 1, 2  the items of labels",
        "stars  verdict stars by verdicts  1, 3, ERROR  its name",
        "metric Stars: 1, 2, 3 (no order said)",
    ]


def test_what_several_systems_answer_is_proposed_as_a_question() -> None:
    rows = [(f"p{i}", name) for i in range(6) for name in ("one", "two")]
    people = pd.DataFrame(rows, columns=["id", "system"]).assign(kim=[1, 2] * 6, lee=[2, 2, 1] * 4)
    judge = people[["id", "system"]].assign(stars=1)
    columns = {"kim": "label", "lee": "label"}
    study = jb.study(people, judge, columns=columns)
    assert len({answer.group for answer in study.answers}) == 6
    assert study.unconfirmed_question == "id"
    assert not jb.study(people, judge, columns={**columns, "question": "id"}).unconfirmed_question
