"""Layouts in which others publish labels: a file for each judge, ids made of parts, labels by
annotator and item."""

import json
import time
from pathlib import Path

import pytest

from judgebench.data.findings import Findings
from judgebench.data.gather import VerdictSource
from judgebench.data.load import keep_data, load_data, read_verdicts
from judgebench.data.spec import DataSpec, parts_named, resolve
from judgebench.errors import SetupError
from judgebench.files import to_line
from judgebench.rubric import Rubric, load_rubric
from judgebench.yaml_file import load_model
from tests.data.conftest import Write

AUDIT = Path(__file__).parents[2] / "examples" / "audit"


def problems(path: Path, rubric: Rubric) -> list[str]:
    with pytest.raises(SetupError) as caught:
        load_data(path, rubric)
    return list(map(str, caught.value.problems))


def said(path: Path, rubric: Rubric) -> dict[tuple[str, str], str | None]:
    """The verdicts of a data.yaml by judge and item."""
    found = read_verdicts(VerdictSource([path]), rubric, ())
    return {
        (judge, item): one.label
        for judge, rows in found.judges.items()
        for item, told in rows.items()
        for _, one in told
    }


# Parts of a text ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        ("{a}__{b}", "x__y", ("x", "y")),
        ("{a}__{b}", "x__y__z", ("x", "y__z")),  # each is as short as it can be
        ("{a}__*__{c}", "x__y__z", ("x", "z")),
        ("*.{a}", "x.y.z", ("y.z",)),
        ("{a}-*", "x-", ("x",)),
        ("{a:1}{b}", "xyz", ("x", "yz")),
        ("{a}.txt", "x.txt.txt", ("x.txt",)),
        ("{review}{edit:6}__stars", "1761000004__stars", ("1761", "000004")),
        ("{a}.{b}", "xyz", None),
        ("{a}-{b}", "-y", None),
        ("{a}\n{b}", "x\ny\nz", ("x", "y\nz")),
        ("{{{a}}}", "{x}", ("x",)),
    ],
)
def test_a_pattern_names_the_parts_of_a_text(
    pattern: str, text: str, parts: tuple[str, ...] | None
) -> None:
    assert parts_named(pattern).of(text) == parts


def test_a_long_text_that_does_not_fit_takes_no_time() -> None:
    begun = time.process_time()
    assert parts_named("{a}__{b}__*__{c:3}__{d}!").of("_" * 300_000) is None
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('parts: {id: "{a}-{a}"}', "every part needs a name of its own, not 'a'"),
        ('parts: {id: "{a:0}-{b}"}', "'0' is no number of characters, as in {a:4}"),
        ('parts: {id: "{a:}-{b}"}', "'' is no number of characters"),
        ('parts: {id: "no name"}', "names no part"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_named(
    rubric: Rubric, write: Write, given: str, message: str
) -> None:
    spec = "files: [{path: a.csv, items: {item_id: id}, " + given + "}]"
    (told,) = problems(write("data.yaml", spec), rubric)
    assert message in told


GRID = {"ann": {"t1__M1__warm": "Kind", "t1__M2__warm": "Neutral"}, "ben": {"t1__M1__warm": "Kind"}}
PARTS = """\
files:
  - path: grid.json
    parts: {item_id: "{text}__{system}__{asked}"}
    labels:
      item_id: item_id
      annotator: list_name
      group: text
      system: system
      metadata: [asked]
      metrics: {tone: label}
"""


def test_labels_by_annotator_and_item_know_the_parts_of_the_id(
    rubric: Rubric, write: Write
) -> None:
    write("grid.json", json.dumps(GRID))
    found = load_data(write("data.yaml", PARTS), rubric)
    assert {(x.annotator, x.item_id, x.label) for x in found.labels} == {
        ("ann", "t1__M1__warm", "Kind"), ("ann", "t1__M2__warm", "Neutral"),
        ("ben", "t1__M1__warm", "Kind"),
    }  # fmt: skip
    first, second = found.answers
    assert (first.group, first.system, first.metadata) == ("t1", "M1", {"asked": "warm"})
    assert (second.group, second.system) == ("t1", "M2")


def test_ids_that_do_not_fit_are_reported_together(rubric: Rubric, write: Write) -> None:
    write("grid.json", json.dumps({"ann": {"t1__M1__a": "Kind", "t2": "Kind", "t3-M": "Kind"}}))
    told = problems(write("data.yaml", PARTS), rubric)
    assert len(told) == 2
    for one, row, found in zip(told, (2, 3), ("t2", "t3-M"), strict=True):
        assert f"grid.json:{row}: item_id: does not fit the pattern; found {found!r}" in one
        assert "allowed: {text}__{system}__{asked}" in one


def test_a_blank_cell_has_blank_parts(rubric: Rubric, write: Write) -> None:
    write("labels.csv", "id,topic,annotator,tone\na,x/y,ann,Kind\nb,,ann,Kind\n")
    spec = """\
files:
  - path: labels.csv
    parts: {topic: "{field}/{kind}"}
    labels: {item_id: id, annotator: annotator, system: field, metrics: {tone: tone}}
"""
    found = load_data(write("data.yaml", spec), rubric)
    assert [(x.item_id, x.system) for x in found.answers] == [("a", "x"), ("b", "")]


def test_a_part_named_like_a_column_and_one_of_no_column_are_errors(
    rubric: Rubric, write: Write
) -> None:
    write("grid.json", json.dumps(GRID))
    (told,) = problems(write("data.yaml", PARTS.replace("{asked}", "{label}")), rubric)
    assert "two columns have this name; found 'label'" in told
    (told,) = problems(write("b.yaml", PARTS.replace("parts: {item_id", "parts: {item")), rubric)
    assert "grid.json:1: item: has no such column" in told


# A file for each judge ------------------------------------------------------------------------


SCORES = """\
files:
  - path: "scores/{judge}.txt"
    format: spaces
    columns: [query, iteration, passage, grade]
    verdicts: {item_id: "{query}-{passage}", judge: judge, metrics: {tone: grade}}
spellings: {tone: {"0": Kind, "1": Neutral, "2": Rude - openly}}
"""


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    folder = tmp_path / "scores"
    folder.mkdir()
    (folder / "team-a.txt").write_text("q1 0 p1 0\nq1  0\tp2 1\n")
    (folder / "team-b.txt").write_text("q1 0 p1 2\nq1 0 p2 2\n\n")
    (folder / "notes.md").write_text("no scores")
    (folder / "old.txt").mkdir()
    return folder


@pytest.mark.parametrize(
    ("path", "judge"), [("scores/{judge}.txt", "judge: judge, "), ("*/*.txt", "")]
)
def test_every_file_that_fits_is_a_judge(
    rubric: Rubric, write: Write, scores: Path, path: str, judge: str
) -> None:
    """Named by its part of the path, else by the file."""
    spec = SCORES.replace("scores/{judge}.txt", path).replace("judge: judge, ", judge)
    rude = rubric.metrics[0].label_texts[2]
    assert said(write("data.yaml", spec), rubric) == {
        ("team-a", "q1-p1"): "Kind", ("team-a", "q1-p2"): "Neutral",
        ("team-b", "q1-p1"): rude, ("team-b", "q1-p2"): rude,
    }  # fmt: skip


def test_a_file_of_that_very_name_comes_first(rubric: Rubric, write: Write, scores: Path) -> None:
    (scores / "{judge}.txt").write_text("q1 0 p1 0\n")
    assert said(write("data.yaml", SCORES.replace("judge: judge, ", "")), rubric) == {
        ("{judge}", "q1-p1"): "Kind"
    }


def test_the_first_line_names_the_columns_where_nothing_else_does(
    rubric: Rubric, write: Write, scores: Path
) -> None:
    (scores / "team-a.txt").write_text("query iteration passage grade\nq1 0 p1 0\n")
    (scores / "team-b.txt").unlink()
    spec = SCORES.replace("    columns: [query, iteration, passage, grade]\n", "")
    assert said(write("data.yaml", spec), rubric) == {("team-a", "q1-p1"): "Kind"}


def test_what_is_wrong_with_any_file_is_reported_together(
    rubric: Rubric, write: Write, scores: Path
) -> None:
    (scores / "team-a.txt").write_text("q1 0 p1 0\nq1 p2 1\n")
    (scores / "team-b.txt").write_text("")
    with pytest.raises(SetupError) as caught:
        said(write("data.yaml", SCORES), rubric)
    told = list(map(str, caught.value.problems))
    assert [one.rpartition("scores/")[2] for one in told] == [
        "team-a.txt:2: has 3 cells where the header has 4",
        "team-b.txt: has a header and no rows",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scores/{judge}", "score/{judge}", "score/{judge}.txt: no file fits this path"),
        ("{judge}.txt", "{judge}.{judge}", "every part needs a name of its own, not 'judge'"),
        ("{judge}.txt", "{passage}.txt", "two columns have this name; found 'passage'"),
        ("format: spaces", "format: csv", "columns: applies to spaces only: remove it"),
    ],
)
def test_what_a_path_cannot_mean_is_an_error(
    rubric: Rubric, write: Write, scores: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(SetupError) as caught:
        said(write("data.yaml", SCORES.replace(old, new)), rubric)
    assert message in str(caught.value)


def test_a_new_file_that_fits_is_noticed(
    rubric: Rubric, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.data.gather.MOST_IN_MEMORY", 0)
    write("part-1.csv", "id,text\na,Rest\n")
    spec = 'files: [{path: "part-{n}.csv", items: {item_id: "{n}-{id}", text: text}}]'
    path, run = write("data.yaml", spec), tmp_path / "run"
    run.mkdir()
    first = load_data(path, rubric)
    lines = [{"item_id": x.item_id, "text": x.text} for x in first.answers]
    (run / "answers.jsonl").write_text("".join(map(to_line, lines)))
    (run / "labels.jsonl").write_text("")
    keep_data(run, first)
    write("part-2.csv", "id,text\na,Sleep\n")
    again = load_data(path, rubric, kept_in=run)
    assert [x.item_id for x in again.answers] == ["1-a", "2-a"]


@pytest.mark.parametrize(
    "file", sorted(AUDIT.glob("*/data.yaml")), ids=lambda file: file.parent.name
)
def test_the_studies_of_the_audit_name_what_their_rubrics_know(file: Path) -> None:
    findings = Findings()
    spec = load_model(file, DataSpec)
    resolve(spec, load_rubric(str(file.with_name("rubric.yaml"))), findings, str(file))
    assert list(findings.errors) == []


# A list in each object --------------------------------------------------------------------------

TONED = [
    {"id": "t1", "text": "Sure!", "data": {"said": [{"by": "ann", "tone": "Kind"},
                                                    {"by": "bob", "tone": "Neutral"}]}},
    {"id": "t2", "text": "No.", "data": {"said": [{"by": "ann", "tone": "Kind"}]}},
    {"id": "t3", "text": "Hm.", "data": {"said": []}},
    {"id": "t4", "text": "Well.", "data": {}},
]  # fmt: skip
OF_ENTRIES = """\
files:
  - path: FILE
    rows: data.said
    items: {item_id: id, text: text,
            labels: {annotator: data.said.by, metrics: {tone: data.said.tone}}}
"""


@pytest.mark.parametrize("file", ["said.json", "said.jsonl"])
def test_each_entry_of_a_list_is_a_row(write: Write, rubric: Rubric, file: str) -> None:
    lines = "".join(map(to_line, TONED))
    write(file, lines if file.endswith("l") else json.dumps(TONED))
    found = load_data(write("data.yaml", OF_ENTRIES.replace("FILE", file)), rubric)
    assert [answer.item_id for answer in found.answers] == ["t1", "t2", "t3", "t4"]
    given = {(one.item_id, one.annotator): one.label for one in found.labels if one.label}
    assert given == {("t1", "ann"): "Kind", ("t1", "bob"): "Neutral", ("t2", "ann"): "Kind"}


def test_rows_that_lead_to_no_list_are_an_error(write: Write, rubric: Rubric) -> None:
    write("said.json", json.dumps(TONED))
    spec = OF_ENTRIES.replace("FILE", "said.json").replace("rows: data.said", "rows: data.sayd")
    assert any("rows: leads to no list in any object" in said
               for said in problems(write("data.yaml", spec), rubric))  # fmt: skip
    write("said.csv", "id,text\nt1,Sure!\n")
    spec = OF_ENTRIES.replace("FILE", "said.csv")
    assert any("rows: applies to json and jsonl only" in said
               for said in problems(write("data.yaml", spec), rubric))  # fmt: skip
