"""Tables with the names, numbers and sheets that people use are read as they are meant."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from sheets import Rows, jsonl, label_of, read, table, workbook

import judgebench as jb
from judgebench.data.understand import understand_given
from judgebench.errors import SetupError

N = 30
PEOPLE = ("kim", "lee", "jo")
TASTES = ("empathy", "accuracy")


def long(folder: Path, *heads: str, extra: Rows = ()) -> list[Path]:
    """A row for each item, annotator and metric, under four heads; a judge's without the second."""
    points = [(i, who, m, 1 + (i + (i % 7 == k)) % 5) for i in range(N) for m in TASTES
              for k, who in enumerate(PEOPLE)]  # fmt: skip
    judged = [(f"c{i}", m, 1 + (i + (i % 9 == 0)) % 5) for i in range(N) for m in TASTES]
    people = [heads, *((f"c{i}", *rest) for i, *rest in points), *extra]
    judge = [(heads[0], *heads[2:]), *judged]
    return [table(folder / "labels.csv", people), table(folder / "gpt4.csv", judge)]


def wide(folder: Path) -> Path:
    rows = [(f"q{i}", label_of(i), label_of(i, 7)) for i in range(N)]
    return table(folder / "labels.csv", [("id", "Huber", "Silva"), *rows])


def verdicts(folder: Path, **cells: str) -> Path:
    rows = [(f"q{i}", cells.get(f"q{i}", label_of(i, 9))) for i in range(N)]
    return table(folder / "judged.csv", [("id", "verdict"), *rows])


@pytest.mark.parametrize(
    ("heads", "columns"),
    [
        (("item", "rater", "criterion", "score"), {"annotators": "rater"}),
        (("item", "wer", "criterion", "score"), {"annotators": "wer"}),
        (("item", "wer", "criterion", "score"), {}),
        (("Fall", "Gutachter", "Kriterium", "Note"), {}),
        (("Nr", "Prüferin", "Merkmal", "Bewertung"), {}),
        (("Cas", "Évaluateur", "Critère", "Note"), {}),
        (("Caso", "Evaluador", "Criterio", "Puntuación"), {}),
    ],
)
def test_columns_of_a_long_table_are_found(
    tmp_path: Path, heads: tuple[str, ...], columns: dict[str, str]
) -> None:
    study = jb.study(*long(tmp_path, *heads), columns=columns)
    assert study.makers == ("jo", "kim", "lee")
    labels = {metric.title: metric.label_texts for metric in study.rubric.metrics}
    assert labels == dict.fromkeys(TASTES, ("1", "2", "3", "4", "5"))
    assert [judge.name for judge in study.real_judges] == ["gpt4"]
    assert {answer.item_id for answer in study.answers} == {f"c{i}" for i in range(N)}


def test_names_that_cannot_be_found_are_asked_for_in_one_error(tmp_path: Path) -> None:
    twice = [(f"c{i}", "kim", "empathy", 9) for i in range(3)]  # which spoil what tells rows apart
    with pytest.raises(SetupError) as error:
        read(long(tmp_path, "item", "wer", "criterion", "score", extra=twice))
    (problem,) = error.value.problems
    assert (problem.line, problem.field) == (1, "annotators")
    assert "--annotators 'wer' (in Python columns={'annotators': 'wer'})" in problem.allowed


@pytest.mark.parametrize("head", ["user", "wer"])
def test_a_column_of_names_in_an_export_of_chats(tmp_path: Path, head: str) -> None:
    talk = [{"role": "user", "content": "What may I take for it?"}]
    rows = [
        {"id": f"c{i}", "messages": talk, head: who, "label": label_of(i, 7 * k)}
        for i in range(N)
        for k, who in enumerate(PEOPLE)
    ]
    judge = [("id", "label"), *((f"c{i}", label_of(i)) for i in range(N))]
    paths = jsonl(tmp_path / "chats.jsonl", rows), table(tmp_path / "gpt4.csv", judge)
    assert set(jb.study(*paths, columns={"annotators": head}).makers) == set(PEOPLE)


def test_one_column_of_labels_is_still_one_annotator(tmp_path: Path) -> None:
    rows = [(f"q{i}", label_of(i), label_of(i, 7)) for i in range(N)]
    path = table(tmp_path / "sheet.csv", [("id", "rater", "gpt4"), *rows])
    assert jb.study(path, columns={"annotators": "rater"}).makers == ("rater",)


def test_named_columns_of_labels_leave_the_column_of_the_judges(tmp_path: Path) -> None:
    rows = [(f"p{i // 2}", f"v{i % 2}", label_of(i), label_of(i, 7)) for i in range(N)]
    people = table(tmp_path / "labels.csv", [("task", "variant", "Huber", "Silva"), *rows])
    judged = [
        (*row[:2], who, label_of(i, 9)) for i, row in enumerate(rows) for who in ("gpt-4", "o1")
    ]
    judge = table(tmp_path / "judged.csv", [("task", "variant", "judge", "safety"), *judged])
    inferred = read([people, judge], annotators=["Huber", "Silva"])
    assert inferred.found.by == ("task", "variant")
    assert [*inferred.judges[0].names] == ["gpt-4", "o1"]


def test_a_german_mark_is_a_label_and_a_note_in_words_is_none(tmp_path: Path) -> None:
    rows = [
        (f"q{i}", who, f"{1 + (i + (i % 7 == k)) % 5},0", "gut" if i % 2 else "na ja")
        for i in range(N)
        for k, who in enumerate(PEOPLE)
    ]
    for label, note in (("Note", "Kommentar"), ("Urteil", "Note")):
        heads = ("Fall", "Gutachter", label, note)
        inferred = read([table(tmp_path / "noten.csv", [heads, *rows], ";")])
        assert [metric.title for metric in inferred.rubric.metrics] == [label]


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
    judged = [(f"q{i}", judge[-i % 3]) for i in range(N)]
    study = jb.study(
        table(tmp_path / "labels.csv", [("id", "Huber", "Silva"), *rows], ";"),
        table(tmp_path / "gpt4.csv", [("id", "verdict"), *judged], ";"),
    )
    assert study.rubric.metrics[0].label_texts == labels
    (gpt,) = study.real_judges
    judge_labels = [next(iter(gpt.verdicts[f"q{i}"].labels.values())) for i in range(N)]
    assert judge_labels == [labels[-i % 3] for i in range(N)]


def test_a_label_of_the_judge_alone_is_named_with_its_own_table(tmp_path: Path) -> None:
    labels = wide(tmp_path)
    with pytest.raises(SetupError) as error:
        read([labels, verdicts(tmp_path, q8="unsaved", q11="unsaved")], order="Safe<Unsure<Unsafe")
    (problem,) = error.value.problems
    assert Path(problem.file).name == "judged.csv"
    assert problem.found == "unsaved (did you mean 'Unsafe'?)"
    misspelt = verdicts(tmp_path, q8="unsave", q11="unsave")
    inferred = read([labels, misspelt], order="Safe < Unsure < Unsafe")
    assert inferred.rubric.metrics[0].label_texts == ("Safe", "Unsure", "Unsafe")


def test_an_order_may_be_numbers_and_holds_for_all_metrics_with_these_labels(
    tmp_path: Path,
) -> None:
    tables = long(tmp_path, "item", "rater", "criterion", "score")
    down = ("5", "4", "3", "2", "1")
    for order, labels in (
        ("5 < 4 < 3 < 2 < 1", [down, down]),
        ([5, 4, 3, 2, 1], [down, down]),
        ({"empathy": [1, 2, 3, 4, 5], "accuracy": down}, [down[::-1], down]),
        (["empathy: 1 < 2 < 3 < 4 < 5", "5 < 4 < 3 < 2 < 1"], [down[::-1], down]),
    ):
        metrics = read(tables, order=order).rubric.metrics
        assert [(m.kind, m.label_texts) for m in metrics] == [("ordinal", text) for text in labels]
    with pytest.raises(SetupError, match=r"is no order of labels; found 1 < 2 < 3; allowed: METR"):
        read(tables, order="1 < 2 < 3")


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as lines:
        return list(csv.reader(lines))


def test_sheets_of_several_people_are_no_judges(tmp_path: Path) -> None:
    rows, judged = rows_of(wide(tmp_path)), rows_of(verdicts(tmp_path))
    safety = [["id", "safety"], *judged[1:]]
    both = [[*row, label_of(i, 5) if i else "gpt4"] for i, row in enumerate(rows)]
    for sheets in (
        {"Pilot": rows, "Main": rows}, {"Anna": safety, "Bob": safety},
        {"Pilot": both, "Main": both}, {"Pilot": rows, "Main": rows, "gpt-4": judged},
    ):  # fmt: skip
        with pytest.raises(SetupError) as error:
            read([workbook(tmp_path / "book.xlsx", **sheets)])
        (problem,) = error.value.problems
        assert (problem.field, problem.found) == ("sheet", ", ".join(list(sheets)[:2]))


def test_a_sheet_is_a_judges_by_its_name_or_a_column(tmp_path: Path) -> None:
    rows, judged = rows_of(wide(tmp_path)), rows_of(verdicts(tmp_path))
    topics = [["id", "topic"], *([f"q{i}", "ab"[i % 2]] for i in range(N))]
    for name, head in (("LLM", "safety"), ("Second", "verdict"), ("Second", "gpt-4")):
        sheets = {"Items": topics, "Main": rows, name: [["id", head], *judged[1:]]}
        inferred = read([workbook(tmp_path / "book.xlsx", **sheets)])
        assert [*inferred.found.columns] == ["Huber", "Silva"]
        assert [judge.table.sheet for judge in inferred.judges] == [name]


def test_labels_in_other_case_are_one_label_and_said(tmp_path: Path) -> None:
    rows = [(f"q{i}", label_of(i).upper() if i % 9 == 0 else label_of(i), label_of(i))
            for i in range(N)]  # fmt: skip
    people = table(tmp_path / "labels.csv", [("id", "Huber", "Silva"), *rows])
    inferred = read([people, verdicts(tmp_path, q3="safe")])
    assert "read 'SAFE' as Safe (4 times), 'safe' as Safe (1 time)" in inferred.lines
    assert len(inferred.rubric.metrics[0].label_texts) == 3


def test_tables_of_verdicts_may_be_given_by_the_names_of_judges(tmp_path: Path) -> None:
    labels, path = wide(tmp_path), verdicts(tmp_path)
    frame = pd.read_csv(path)
    tables = {"gpt-4.1": frame, "claude": path, "my judge": frame.rename(columns={"verdict": "o1"})}
    names = {"gpt-4.1", "claude", "my-judge"}
    assert {judge.name for judge in jb.study(labels, tables).real_judges} == names
    assert {d.judge for d in jb.decide(labels, tables).decisions} == names
    with pytest.raises(SetupError, match=r"gpt: give a table: .* found an int"):
        understand_given(labels, {"gpt": 3})
    rubric = jb.Rubric.from_labels({"label": ["Safe", "Unsure", "Unsafe"]})
    people = pd.read_csv(labels).rename(columns={"id": "item_id"})
    people = people.melt("item_id", ["Huber", "Silva"], "annotator", "label")
    entry = {"name": "x", "verdicts": pd.DataFrame({"item_id": frame.id, "label": frame.verdict})}
    assert [judge.name for judge in jb.study(people, entry, rubric=rubric).real_judges] == ["x"]


def test_a_judge_among_the_raters_is_named_by_a_flag() -> None:
    rows = [(f"i{i}", who, "Safe" if i % 2 else "Unsafe") for i in range(40) for who in "abj"]
    frame = pd.DataFrame(rows, columns=["item", "rater", "label"])
    with pytest.raises(SetupError, match="is one of the annotators: --as-judge j puts it in a"):
        jb.decide(frame, columns={"judge": "j"})
