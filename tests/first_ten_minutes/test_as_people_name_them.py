"""Tables with the names, numbers and sheets that people use: read as they are meant, or an error
that says what settles it."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.guess import Hints
from judgebench.data.understand import Understood, understand_files, understand_given
from judgebench.errors import SetupError

N = 30
PEOPLE = ("kim", "lee", "jo")
TASTES = ("empathy", "accuracy")
Rows = Sequence[Sequence[object]]


def of(i: int, slip: int = 0) -> str:
    """The label of item i; with a slip every so manyth item has another one."""
    return ("Safe", "Unsure", "Unsafe")[(i + bool(slip and i % slip == 0)) % 3]


def table(path: Path, rows: Rows, delimiter: str = ",") -> Path:
    with path.open("w", newline="") as out:
        csv.writer(out, delimiter=delimiter).writerows(rows)
    return path


def long(folder: Path, *heads: str, more: Rows = ()) -> list[Path]:
    """A row for each item, annotator and metric, under four heads; a judge's without the second."""
    points = [(i, who, m, 1 + (i + (i % 7 == k)) % 5) for i in range(N) for m in TASTES
              for k, who in enumerate(PEOPLE)]  # fmt: skip
    judged = [(f"c{i}", m, 1 + (i + (i % 9 == 0)) % 5) for i in range(N) for m in TASTES]
    people = table(
        folder / "labels.csv", [heads, *((f"c{i}", *rest) for i, *rest in points), *more]
    )
    return [people, table(folder / "gpt4.csv", [(heads[0], *heads[2:]), *judged])]


def wide(folder: Path, name: str = "labels.csv") -> Path:
    rows = [(f"q{i}", of(i), of(i, 7)) for i in range(N)]
    return table(folder / name, [("id", "Huber", "Silva"), *rows])


def verdicts(folder: Path, name: str = "judged.csv", **cells: str) -> Path:
    rows = [(f"q{i}", cells.get(f"q{i}", of(i, 9))) for i in range(N)]
    return table(folder / name, [("id", "verdict"), *rows])


def read(paths: Sequence[Path], **columns: Any) -> Understood:
    return understand_files(paths, Hints.given(columns))


def annotators(found: Understood) -> str:
    return found.lines[0].partition(": ")[2].partition(";")[0]


@pytest.mark.parametrize("head", ["rater", "wer"])
def test_one_column_of_names_is_that_of_the_annotators(tmp_path: Path, head: str) -> None:
    tables = long(tmp_path, "item", head, "criterion", "score")
    found = read(tables, annotators=head)
    assert annotators(found) == f"3 annotators in column {head}"
    assert [metric.title for metric in found.rubric.metrics] == list(TASTES)
    assert jb.study(*tables, columns={"annotators": head}).makers == ("jo", "kim", "lee")


@pytest.mark.parametrize("head", ["user", "wer"])
def test_a_column_of_names_in_an_export_of_chats(tmp_path: Path, head: str) -> None:
    talk = [{"role": "user", "content": "What may I take for it?"}]
    lines = ({"id": f"c{i}", "messages": talk, head: who, "label": of(i, 7 * k)}
             for i in range(N) for k, who in enumerate(PEOPLE))  # fmt: skip
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    judge = table(tmp_path / "gpt4.csv", [("id", "label"), *((f"c{i}", of(i)) for i in range(N))])
    assert annotators(read([path, judge], annotators=head)) == f"3 annotators in column {head}"


def test_one_column_of_labels_is_still_one_annotator(tmp_path: Path) -> None:
    rows = [(f"q{i}", of(i), of(i, 7)) for i in range(N)]
    path = table(tmp_path / "sheet.csv", [("id", "rater", "gpt4"), *rows])
    assert annotators(read([path], annotators="rater")) == "1 annotator in the columns rater"


def test_named_columns_of_labels_leave_the_column_of_the_judges(tmp_path: Path) -> None:
    rows = [(f"p{i // 2}", f"v{i % 2}", of(i), of(i, 7)) for i in range(N)]
    people = table(tmp_path / "labels.csv", [("task", "variant", "Huber", "Silva"), *rows])
    judged = [(*row[:2], who, of(i, 9)) for i, row in enumerate(rows) for who in ("gpt-4", "o1")]
    heads = ("task", "variant", "judge", "safety")
    found = read(
        [people, table(tmp_path / "judged.csv", [heads, *judged])], annotators=["Huber", "Silva"]
    )
    assert found.found.by == ("task", "variant")
    assert [*found.judges[0].names] == ["gpt-4", "o1"]


def test_names_under_a_head_of_their_own_are_found_or_asked_for_in_one_error(
    tmp_path: Path,
) -> None:
    heads = ("item", "wer", "criterion", "score")
    assert annotators(read(long(tmp_path, *heads))) == "3 annotators in column wer"
    twice = [(f"c{i}", "kim", "empathy", 9) for i in range(3)]  # which spoil what tells rows apart
    tables = long(tmp_path, *heads, more=twice)
    with pytest.raises(SetupError) as error:
        read(tables)
    (problem,) = error.value.problems
    assert (problem.line, problem.field) == (1, "annotators")
    assert "no column says who labelled it" in problem.message
    assert "--annotators 'wer' (in Python columns={'annotators': 'wer'})" in problem.allowed


@pytest.mark.parametrize(
    "heads",
    [
        ("Fall", "Gutachter", "Kriterium", "Note"),
        ("Nr", "Prüferin", "Merkmal", "Bewertung"),
        ("Cas", "Évaluateur", "Critère", "Note"),
        ("Caso", "Evaluador", "Criterio", "Puntuación"),
    ],
)
def test_columns_named_in_other_languages(tmp_path: Path, heads: tuple[str, ...]) -> None:
    found = read(long(tmp_path, *heads))
    assert annotators(found) == f"3 annotators in column {heads[1]}"
    said = {m.title: m.label_texts for m in found.rubric.metrics}
    assert said == dict.fromkeys(TASTES, ("1", "2", "3", "4", "5"))
    assert found.found.by == (heads[0],)
    assert f"judge gpt4 in column {heads[3]}" in found.lines[1]


def test_a_german_mark_is_a_label_and_a_note_in_words_is_none(tmp_path: Path) -> None:
    rows = [(f"q{i}", who, f"{1 + (i + (i % 7 == k)) % 5},0", "gut" if i % 2 else "na ja")
            for i in range(N) for k, who in enumerate(PEOPLE)]  # fmt: skip
    for heads, read_one in ((("Fall", "Gutachter", "Note", "Kommentar"), "Note"),
                            (("Fall", "Gutachter", "Urteil", "Note"), "Urteil")):  # fmt: skip
        found = read([table(tmp_path / "noten.csv", [heads, *rows], ";")])
        assert [metric.title for metric in found.rubric.metrics] == [read_one]
        assert any(f"not read: {heads[3]}, because its name" in line for line in found.lines)


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    rows = [(f"q{i}", of(i), of(i, 7), i / 7, "ab"[i % 2], "") for i in range(N)]
    heads = ("id", "Huber", "Silva", "certainty", "facet", "empty")
    found = read([table(tmp_path / "labels.csv", [heads, *rows]), verdicts(tmp_path)])
    (said,) = (line for line in found.lines if line.startswith("not read: "))
    assert [part.split(",")[0] for part in said.removeprefix("not read: ").split("; ")] == [
        "certainty", "facet",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("people", "judge", "labels"),
    [
        (("1,0", "2,0", "10,0"), ("1.0", "2.0", "10.0"), ("1", "2", "10")),
        (("1,0", "2,5", "10,0"), ("1", "2.5", "10"), ("1.0", "2.5", "10.0")),
        (("1", "2.5", "10"), ("1,0", "2,5", "10,0"), ("1", "2.5", "10")),
    ],
)
def test_a_decimal_comma_is_a_point(
    tmp_path: Path, people: Sequence[str], judge: Sequence[str], labels: Sequence[str]
) -> None:
    rows = [(f"q{i}", people[-i % 3], people[-i % 3 - (i % 7 == 0)]) for i in range(N)]
    given = table(tmp_path / "labels.csv", [("id", "Huber", "Silva"), *rows], ";")
    judged = [(f"q{i}", judge[-i % 3]) for i in range(N)]
    found = jb.study(given, table(tmp_path / "gpt4.csv", [("id", "verdict"), *judged], ";"))
    assert found.rubric.metrics[0].label_texts == labels
    (gpt,) = (one for one in found.judges if one.kind == "judge")
    said = [next(iter(gpt.verdicts[f"q{i}"].labels.values())) for i in range(N)]
    assert said == [labels[-i % 3] for i in range(N)]
    assert not any("one side never gives" in note for note in found.notes)


def test_a_label_of_the_judge_alone_is_named_with_its_own_table(tmp_path: Path) -> None:
    tables = [wide(tmp_path), verdicts(tmp_path, q8="unsaved", q11="unsaved")]
    said = "'unsaved' (given by judged 2 times, never by people)"
    assert any(said in line for line in read(tables).lines)
    with pytest.raises(SetupError) as error:
        read(tables, order="Safe < Unsure < Unsafe")
    (problem,) = error.value.problems
    assert (Path(problem.file).name, problem.found) == (
        "judged.csv", "unsaved (did you mean 'Unsafe'?)",
    )  # fmt: skip
    misspelt = [tables[0], verdicts(tmp_path, q8="unsave", q11="unsave")]
    found = read(misspelt, order="Safe < Unsure < Unsafe")
    assert any("(read 'unsave' as Unsafe, 2 times)" in line for line in found.lines)


def test_an_order_may_be_numbers_and_holds_for_all_metrics_with_these_labels(
    tmp_path: Path,
) -> None:
    tables = long(tmp_path, "item", "rater", "criterion", "score")
    down = ("5", "4", "3", "2", "1")
    for order in ("5 < 4 < 3 < 2 < 1", [5, 4, 3, 2, 1]):
        found = read(tables, order=order)
        assert [m.label_texts for m in found.rubric.metrics] == [down, down]
    found = read(tables, order={"empathy": [1, 2, 3, 4, 5], "accuracy": down})
    assert [m.label_texts for m in found.rubric.metrics] == [down[::-1], down]
    assert {m.kind for m in found.rubric.metrics} == {"ordinal"}
    found = read(tables, order=["empathy: 1 < 2 < 3 < 4 < 5", "5 < 4 < 3 < 2 < 1"])
    assert [m.label_texts for m in found.rubric.metrics] == [down[::-1], down]
    with pytest.raises(
        SetupError, match=r"is no order of labels; found 1 < 2 < 3; allowed: METRIC"
    ):
        read(tables, order="1 < 2 < 3")


def workbook(path: Path, sheets: Mapping[str, Rows]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as lines:
        return list(csv.reader(lines))


def test_sheets_of_several_people_are_no_judges(tmp_path: Path) -> None:
    rows, judged = rows_of(wide(tmp_path)), rows_of(verdicts(tmp_path))
    one = [["id", "safety"], *judged[1:]]
    both = [[*row, of(i, 5) if i else "gpt4"] for i, row in enumerate(rows)]
    for sheets in (
        {"Pilot": rows, "Main": rows}, {"Anna": one, "Bob": one},
        {"Pilot": both, "Main": both}, {"Pilot": rows, "Main": rows, "gpt-4": judged},
    ):  # fmt: skip
        with pytest.raises(SetupError) as error:
            read([workbook(tmp_path / "book.xlsx", sheets)])
        (problem,) = error.value.problems
        assert (problem.field, problem.found) == ("sheet", ", ".join(list(sheets)[:2]))
        assert "save the sheet that is meant as a file of its own" in problem.allowed


def test_a_sheet_is_a_judges_by_its_name_or_a_column(tmp_path: Path) -> None:
    rows, judged = rows_of(wide(tmp_path)), rows_of(verdicts(tmp_path))
    topics = [["id", "topic"], *([f"q{i}", "ab"[i % 2]] for i in range(N))]
    for name, head in (("LLM", "safety"), ("Second", "verdict"), ("Second", "gpt-4")):
        sheets = {"Items": topics, "Main": rows, name: [["id", head], *judged[1:]]}
        found = read([workbook(tmp_path / "book.xlsx", sheets)])
        assert annotators(found) == "2 annotators in the columns Huber, Silva"
        assert f"book.xlsx, sheet {name}: judge" in found.lines[1]


def test_the_one_sheet_that_is_read_is_named(tmp_path: Path) -> None:
    sheets = {"Read me": [["About this workbook"]], "Main": rows_of(wide(tmp_path))}
    found = read([workbook(tmp_path / "book.xlsx", sheets), verdicts(tmp_path)])
    assert "book.xlsx: read sheet Main, and no other" in found.lines


def test_labels_in_other_case_are_one_label_and_said(tmp_path: Path) -> None:
    rows = [(f"q{i}", of(i).upper() if i % 9 == 0 else of(i), of(i)) for i in range(N)]
    people = table(tmp_path / "labels.csv", [("id", "Huber", "Silva"), *rows])
    found = read([people, verdicts(tmp_path, q3="safe")])
    (said,) = (line for line in found.lines if line.startswith("read "))
    assert said == "read 'SAFE' as Safe (4 times), 'safe' as Safe (1 time)"


def test_tables_of_verdicts_may_be_given_by_the_names_of_judges(tmp_path: Path) -> None:
    labels, path = wide(tmp_path), verdicts(tmp_path)
    frame = pd.read_csv(path)
    given = {"gpt-4.1": frame, "claude": path, "my judge": frame.rename(columns={"verdict": "o1"})}
    study = jb.study(labels, given)
    said = {one.name for one in study.judges if one.kind == "judge"}
    assert said == {"gpt-4.1", "claude", "my-judge"}
    assert {d.judge for d in jb.decide(labels, given).decisions} == said
    with pytest.raises(SetupError, match=r"gpt: give a table: .* found an int"):
        understand_given(labels, {"gpt": 3})
    rubric = jb.Rubric.from_labels({"label": ["Safe", "Unsure", "Unsafe"]})
    rows = [["item_id", "annotator", "label"]]
    rows += [[item, who, said] for item, *both in rows_of(labels)[1:]
             for who, said in zip("ab", both, strict=True)]  # fmt: skip
    entry = {"name": "x", "verdicts": pd.DataFrame({"item_id": frame.id, "label": frame.verdict})}
    study = jb.study(table(tmp_path / "long.csv", rows), entry, rubric=rubric)
    assert [one.name for one in study.judges if one.kind == "judge"] == ["x"]


def test_a_judge_among_the_raters_is_named_by_a_flag(tmp_path: Path) -> None:
    rows = [(f"i{i}", who, "Safe" if i % 2 else "Unsafe") for i in range(40) for who in "abj"]
    frame = pd.DataFrame(rows, columns=["item", "rater", "label"])
    with pytest.raises(SetupError, match="is one of the annotators: --as-judge j puts it in a"):
        jb.decide(frame, columns={"judge": "j"})
