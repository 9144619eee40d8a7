"""Tables and commands that are nearly right: asked about, or an error that says what to change."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from sheets import asked, printed, read, table
from sheets import label_of as label_among

import judgebench as jb
from judgebench.errors import SetupError

Call = Callable[..., tuple[int, str, str]]
N = 40


def label_of(i: int, slip: int = 0) -> str:
    return label_among(i, slip, ("Fine", "Breach"))


def labels(folder: Path, **cells: str) -> Path:
    """Two annotators; `huber_7="Beach"` is the cell of the first in the eighth item."""
    rows = [["id", "Huber", "Silva"], *([f"q{i}", label_of(i), label_of(i, 7)] for i in range(N))]
    for place, text in cells.items():
        who, _, i = place.partition("_")
        rows[int(i) + 1][1 + (who == "silva")] = text
    return table(folder / "labels.csv", rows)


def verdicts(folder: Path, odd: str = "", n: int = 4, first_id: str = "q") -> Path:
    """A judge's; the first ones may be another text, or have other ids."""
    rows = [["id", "verdict"]]
    for i in range(N):
        is_odd = i < n
        text = odd if odd and is_odd else label_of(i, 9)
        rows.append([f"{first_id if is_odd else 'q'}{i}", text])
    return table(folder / "sonnet.csv", rows)


def test_a_judge_of_whom_nothing_can_be_read_is_an_error() -> None:
    rubric = jb.Rubric.from_labels({"label": ["Fine", "Breach"]})
    ids = [f"q{i}" for i in range(N)]
    people = pd.DataFrame(
        {"item_id": ids, "annotator": "Ann", "label": [label_of(i) for i in range(N)]}
    )
    wrong = pd.DataFrame({"item_id": ids, "judge": "gpt", "label": ["", "X"] * (N // 2)})
    with pytest.raises(SetupError, match=r"none of 20 verdicts of gpt is a label; found 'X'"):
        jb.study(people, wrong, rubric=rubric)


TWO = ["labels.csv", "sonnet.csv"]


@pytest.mark.parametrize(
    ("files", "options", "expected"),
    [
        (["labels.csv"] * 2, [], "the same table is given twice; found labels.csv"),
        (["labels.csv", "."], [], "is a folder: give a file, or a run folder alone"),
        (["labels.xls"], [], "labels.xls: no such file; did you mean 'labels.csv'?"),
        (["labels.csv"], [], "are Huber, Silva people, or questions that one person answered?"),
        (["labels.csv", "replies.csv"], ["--annotators", "Huber,Silva"],
         "no judge to decide on: give a table of verdicts as well, or name its column with --col"),
        (["labels.csv", "xyz.csv"], [], "row 2 of verdict holds 'X' (14 such cells; also 'Y', 'Z'"),
        (["labels.csv", "other.csv"], [], "2 of its ids are not in labels.csv (z1, z2)"),
        (TWO, ["--annotators", "Hubr"], "no table has this column; did you mean 'Huber'?"),
        (TWO, ["--column", "Huber=lable"], "--column: is no role of a column"),
        (TWO, ["--item", "nr", "--save", "bench"], "no table has this column; found nr; allowed:"),
        (TWO, ["--order", "Fine", "--save", "bench"],
         "--order: is no order of labels; found Fine; allowed: LABEL <"),
        (TWO, ["--order", "Fime < Breach"], "leaves out labels that labels.csv holds: Fine; found"),
        (TWO, ["--order", "tune: Fine < Breach"], "did you mean 'tone'?"),
    ],
)  # fmt: skip
def test_slips_in_a_command_are_one_error_that_settles_them(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str],
    options: list[str], expected: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    labels(tmp_path)
    rows = [["id", "tone"], *([f"q{i}", label_of(i, 9)] for i in range(N))]
    table(tmp_path / "sonnet.csv", rows)
    text = "The reply describes a risky step and so I would call it {} here."
    replies = [[row[0], text.format(row[1].lower())] for row in rows[1:]]
    table(tmp_path / "replies.csv", [["id", "response"], *replies])
    table(tmp_path / "xyz.csv", [["id", "verdict"], *([f"q{i}", "XYZ"[i % 3]] for i in range(N))])
    table(tmp_path / "other.csv", [["id", "verdict"], ["z1", "Fine"], ["z2", "Breach"]])
    code, out, err = call("decide", *files, *options)
    assert code == 2
    assert expected in out + err
    assert err.count("error:") == (2 if "xyz.csv" in files else 1)  # a question for each text
    assert not Path("bench").exists()


def test_columns_named_like_models_are_judges(call: Call, tmp_path: Path) -> None:
    people = labels(tmp_path)
    rows = [["id", "gpt4", "claude"], *([f"q{i}", label_of(i, 9), label_of(i)] for i in range(N))]
    judged = table(tmp_path / "two.csv", rows)
    assert {judge.name for judge in jb.study(people, judged).real_judges} == {"gpt4", "claude"}
    table(judged, [["id", "gpt4", "checked"], *rows[1:]])
    code, _, err = call("decide", people, judged, "--json")
    assert code == 2
    _, out, err = call("decide", people, judged, "--json", *printed(err, ": a judge's label"))
    assert {d["judge"] for d in json.loads(out)["decisions"]} == {"gpt4", "checked"}, err


def test_what_is_no_table_is_named() -> None:
    with pytest.raises(SetupError, match="found the type int"):
        jb.study(1)
    with pytest.raises(SetupError, match="labels: holds no rows"):
        jb.study(pd.DataFrame())


def test_a_metric_without_a_judge_is_named(call: Call, tmp_path: Path) -> None:
    heads = ["id", "Huber Tone", "Silva Tone", "Huber Harm", "Silva Harm", "gpt-4 Tone"]
    rows = []
    for i in range(N):
        harm = [label_among(i // 2, slip, ("no", "yes")) for slip in (0, 9)]
        rows.append([f"q{i}", label_of(i), label_of(i, 7), *harm, label_of(i, 9)])
    _, out, _ = call("decide", table(tmp_path / "sheet.csv", [heads, *rows]))
    assert "no judge labelled Harm: nothing is decided there" in out


def test_an_order_that_makes_most_labels_severe_is_asked_about() -> None:
    labels = pd.DataFrame({
        "id": range(60), "Huber": ["Safe", "Safe", "Unsafe"] * 20, "gpt-4": ["Safe"] * 60,
    })  # fmt: skip
    question = "count as severe ('Safe'): does the order go from the least to the most severe"
    for order, is_asked in (("Unsafe < Safe", True), ("Safe < Unsafe", False)):
        screen = str(jb.decide(labels, columns={"order": order}))
        assert (question in " ".join(screen.split())) == is_asked


def test_ids_that_are_written_differently_are_counted(call: Call, tmp_path: Path) -> None:
    people, judge = labels(tmp_path), verdicts(tmp_path, n=12, first_id="X")
    code, _, err = call("decide", people, judge)
    assert code == 2
    assert "12 of its ids are not in labels.csv (X0, X1), and 12 of labels.csv not here" in err
    code, out, err = call("decide", people, judge, *printed(err, "only what both tables have"))
    assert (code, f"· {N - 12} answers" in out) == (0, True), err
    rows = [["id", "Huber", "Silva"], *([f"Q{i} ", *2 * (label_of(i),)] for i in range(N))]
    ids = table(tmp_path / "ids.csv", rows), verdicts(tmp_path)
    assert any("compared without" in line for line in read(ids).notes)


def long_verdicts(folder: Path, head: str, *who: str) -> Path:
    rows = [[f"q{i}", one, label_of(i, 9 + j)] for i in range(N) for j, one in enumerate(who)]
    return table(folder / "verdicts.csv", [["id", head, "verdict"], *rows])


def test_a_rater_of_verdicts_is_a_judge_unless_he_labelled(call: Call, tmp_path: Path) -> None:
    people = labels(tmp_path)
    for who in (("lenient", "strict"), ("gpt-4o", "llama-3")):
        study = jb.study(people, long_verdicts(tmp_path, "rater", *who))
        assert [judge.name for judge in study.real_judges] == [*who]
    code, _, err = call("decide", long_verdicts(tmp_path, "rater", *who), people)
    assert code == 0, err  # models alone, in whatever order
    with pytest.raises(SetupError, match=r"Huber labelled, too, in labels.csv: --as-judge Hu"):
        read([people, long_verdicts(tmp_path, "rater", "Huber", "Silva")])
    tables = [people, long_verdicts(tmp_path, "version", "one", "two")]
    assert "no column names the judge" in asked(tables).asks
    study = jb.study(*tables, columns={"version": "judge"})
    assert [judge.name for judge in study.real_judges] == ["one", "two"]
