"""Tables with the names, numbers and sheets that people use are read as they are meant."""

import re
from pathlib import Path

import pandas as pd
import pytest
from sheets import Rows, label_of, printed, read, table, workbook

import judgebench as jb
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


def verdicts(folder: Path) -> Path:
    rows = [(f"q{i}", label_of(i, 9)) for i in range(N)]
    return table(folder / "judged.csv", [("id", "verdict"), *rows])


@pytest.mark.parametrize(
    ("heads", "columns"),
    [
        (("item", "rater", "criterion", "score"), {}),
        (("item", "raised_by", "criterion", "score"), {"raised_by": "annotator"}),
        (("Fall", "Gutachter", "Kriterium", "Note"), {}),
        (("Cas", "Évaluateur", "Critère", "Note"), {}),
        (("Caso", "Evaluador", "Criterio", "Calificación"), {}),
    ],
)
def test_columns_of_a_long_table_are_known_in_five_languages(
    tmp_path: Path, heads: tuple[str, ...], columns: dict[str, str]
) -> None:
    study = jb.study(*long(tmp_path, *heads), columns=columns)
    assert study.makers == ("jo", "kim", "lee")
    labels = {metric.title: metric.label_texts for metric in study.rubric.metrics}
    assert labels == dict.fromkeys(TASTES, ("1", "2", "3", "4", "5"))
    assert [judge.name for judge in study.real_judges] == ["gpt4"]
    assert {answer.item_id for answer in study.answers} == {f"c{i}" for i in range(N)}


def test_one_more_row_of_somebody_is_named_with_its_row(call, tmp_path: Path) -> None:
    twice = [(f"c{i}", "kim", "empathy", 9) for i in range(3)]
    tables = long(tmp_path, "item", "rater", "criterion", "score", extra=twice)
    code, _, err = call("decide", *tables)
    assert code == 2
    assert "rows 2 and 182 are both about c0 · kim · empathy" in err
    code, _, err = call("decide", *tables, *printed(err, "the first one counts"))
    assert code == 0, err


def test_a_column_named_rater_may_hold_labels(call, tmp_path: Path) -> None:
    rows = [(f"q{i}", label_of(i), label_of(i, 7)) for i in range(N)]
    path = table(tmp_path / "sheet.csv", [("id", "rater", "gpt4"), *rows])
    code, _, err = call("decide", path, "--annotators", "rater")
    assert code == 2
    code, out, err = call("decide", path, *printed(err, ": a label that a person"))
    assert (code, "label label by rater" in out) == (0, True), err


def test_columns_that_tables_share_may_be_the_item_together(call, tmp_path: Path) -> None:
    rows = [(f"p{i // 2}", f"v{i % 2}", label_of(i), label_of(i, 7)) for i in range(N)]
    people = table(tmp_path / "labels.csv", [("task", "variant", "Huber", "Silva"), *rows])
    judged = [
        (*row[:2], who, label_of(i, 9)) for i, row in enumerate(rows) for who in ("gpt-4", "o1")
    ]
    judge = table(tmp_path / "judged.csv", [("task", "variant", "judge", "safety"), *judged])
    study = jb.study(people, judge, columns={"annotators": ["Huber", "Silva"]})
    assert (len(study.answers), study.makers) == (N, ("Huber", "Silva"))
    assert [judge.name for judge in study.real_judges] == ["gpt-4", "o1"]
    _, _, err = call("decide", people, judge)
    code, out, err = call(
        "decide", people, judge, *printed(err, "task, variant: which answer a row")
    )
    assert (code, f"{N} answers" in out) == (0, True), err


def test_an_order_may_be_numbers_and_holds_for_all_metrics(
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
    with pytest.raises(SetupError, match=r"leaves out labels that .*: 4, 5; found 1 < 2 < 3"):
        read(tables, order="1 < 2 < 3")


def test_sheets_of_the_same_columns_are_asked_about(call, tmp_path: Path) -> None:
    safety = [("id", "safety"), *((f"q{i}", label_of(i, 9)) for i in range(N))]
    book = workbook(tmp_path / "book.xlsx", Anna=safety, Bob=safety)
    judge = verdicts(tmp_path)
    code, _, err = call("decide", book, judge)
    assert code == 2
    assert "sheet Bob has the same columns, and no column names annotators" in err
    code, _, err = call("decide", book, judge, *printed(err, "labels of people"))
    assert code == 0, err
    assert {"Anna", "Bob"} <= set(jb.study(book, judge).makers)


def test_sheets_of_other_items_are_more_rows(tmp_path: Path) -> None:
    rows = [(f"p{i}", label_of(i), label_of(i, 7)) for i in range(60)]
    head = ("id", "Huber", "Silva")
    summary = [("Reviewer", "Unsafe"), ("Huber", 20), ("Silva", 19)]
    sheets = {"Batch 1": [head, *rows[:30]], "Batch 2": [head, *rows[30:]], "Summary": summary}
    judge = table(tmp_path / "gpt-4.csv", [("id", "safety"), *((i, label) for i, label, _ in rows)])
    book = workbook(tmp_path / "book.xlsx", **sheets)
    with pytest.raises(
        SetupError, match=r"Summary:1: has other columns .* sheets that count: 'FILE,"
    ):
        jb.study(book, judge)
    study = jb.study([f"{book}, sheet Batch 1", f"{book}, sheet Batch 2"], judge)
    assert (study.makers, len(study.answers)) == (("Huber", "Silva"), 60)


@pytest.mark.parametrize(("item", "n"), [("id", 2), ("Ticket #", 2), ("Ticket #", 30)])
def test_people_by_metric_over_two_files_are_one_table(
    call, tmp_path: Path, item: str, n: int
) -> None:
    kinds = {"Harm": ("no", "yes", "no"), "Tone": ("curt", "rude", "curt", "kind")}
    cells = [
        [texts[(i + i // 7 * who) % len(texts)] for texts in kinds.values() for who in (0, 1)]
        for i in range(2 * n)
    ]
    head = (item, "Harm (Kim)", "Harm (Jo)", "Tone (Kim)", "Tone (Jo)")
    rows = [(f"t{i}", *row) for i, row in enumerate(cells)]
    march, april = (
        str(table(tmp_path / f"{name}.csv", [head, *part]))
        for name, part in (("march", rows[:n]), ("april", rows[n:]))
    )
    judge = str(table(tmp_path / "j.csv", [(item, *kinds), *((r[0], r[1], r[3]) for r in rows)]))
    for words in ([march, april, judge], ["--labels", march, "--labels", april, judge]):
        code, out, err = call("align", *words)
        assert (code, err) == (0, "")
        assert re.search(r"Tone \(Jo\) +label tone by Jo", out)
        assert f"{2 * n} answers" in out


def test_tables_of_verdicts_may_be_given_by_the_names_of_judges(tmp_path: Path) -> None:
    labels, path = wide(tmp_path), verdicts(tmp_path)
    frame = pd.read_csv(path)
    tables = {"gpt-4.1": frame, "claude": path, "my judge": frame.rename(columns={"verdict": "o1"})}
    assert {judge.name for judge in jb.study(labels, tables).real_judges} == {*tables}
    assert {d.judge for d in jb.decide(labels, tables).decisions} == {*tables}
    with pytest.raises(SetupError, match=r"gpt: give a table: .* found the type int"):
        jb.study(labels, {"gpt": 3})
