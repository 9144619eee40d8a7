"""Tables that are nearly right: read as they are meant, or an error that says what to change."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from sheets import jsonl, read, table
from sheets import label_of as label_among

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.features import WINGS
from judgebench.rubric import load_rubric

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


def test_the_judge_of_a_sheet_of_pairs_is_read_as_people_are(tmp_path: Path) -> None:
    rows = [["prompt_id", "model_a", "model_b", "Sofia", "Tom", "Uwe", "gpt-4o"]]
    draw = random.Random(1)
    for i in range(N):
        better = draw.choice("AB")
        judged = better if i % 9 else "A"
        sofia = "tie" if i % 11 == 0 else better
        rows.append([f"p{i}", "phi", "qwen", sofia, better, better, judged])
    (judge,) = jb.study(table(tmp_path / "arena.csv", rows)).real_judges
    judge_labels = {label for v in judge.verdicts.values() for label in v.labels.values()}
    assert (judge.name, judge_labels) == ("gpt-4o", {"first", "second"})


def test_a_judge_of_whom_nothing_can_be_read_is_an_error() -> None:
    rubric = jb.Rubric.from_labels({"label": ["Fine", "Breach"]})
    ids = [f"q{i}" for i in range(N)]
    people = pd.DataFrame(
        {"item_id": ids, "annotator": "Ann", "label": [label_of(i) for i in range(N)]}
    )
    wrong = pd.DataFrame({"item_id": ids, "judge": "gpt", "label": ["", "X"] * (N // 2)})
    with pytest.raises(SetupError, match=r"none of 20 verdicts of gpt is a label; found 'X'"):
        jb.study(people, wrong, rubric=rubric)


@pytest.mark.skipif("estimate" not in WINGS, reason="needs the wing `estimate`")
def test_answers_that_only_the_verdicts_have_count_in_a_rate(tmp_path: Path) -> None:
    rows = [["id", "reply", "Huber", "Silva"]]
    for i in range(N):
        text = f"The reply to question {i}, in many words."
        rows.append([f"q{i}", text, label_of(i), label_of(i, 7)])
    with_texts = table(tmp_path / "labels.csv", rows)
    without = table(tmp_path / "bare.csv", [[row[0], *row[2:]] for row in rows])
    draw = random.Random(2)
    judged = [["id", "verdict"], *([f"q{i}", label_of(i, 9)] for i in range(N))]
    judged += [[f"r{i}", draw.choice(("Fine", "Breach"))] for i in range(10 * N)]
    every = table(tmp_path / "gpt-4.csv", judged)
    rates = []
    for people in (with_texts, without):
        estimates = jb.estimate(people, every)
        assert estimates.n_answers == 11 * N
        judge = estimates.results.values("judge", "rate")[-1]
        find = estimates.results.find
        rates.append(find("ppi", "rate", judge=judge, of="Breach", group="all"))
    assert rates[0].low is not None
    assert (rates[0].value, rates[0].n) == (rates[1].value, rates[1].n)
    # A few ids that nobody labelled are rather slips, and say so.
    few = table(tmp_path / "few.csv", [*judged[: N + 1], ["q1x", "Fine"]])
    with pytest.warns(UserWarning, match="has rows for 1 items that are not in the data"):
        jb.study(with_texts, few)


def test_short_names_of_people_are_names(tmp_path: Path) -> None:
    rows = [{"uid": f"u{i}", "labels": {"amy": label_of(i), "cy": label_of(i, 7)}}
            for i in range(N)]  # fmt: skip
    path = jsonl(tmp_path / "export.jsonl", rows)
    judge = [["uid", "verdict"], *([f"u{i}", label_of(i)] for i in range(N))]
    tables = path, table(tmp_path / "sonnet.csv", judge)
    assert jb.study(*tables).makers == ("amy", "cy")
    assert sorted(jb.study(*tables, columns={"annotators": ["cy", "amy"]}).makers) == ["amy", "cy"]


def test_odd_cells_are_named_with_their_rows(call: Call, tmp_path: Path) -> None:
    """A swapped letter is a slip, and another end is none."""
    people = labels(tmp_path, huber_7="Breech", silva_9="?")
    code, _, err = call("decide", people, verdicts(tmp_path), "--order", "Fine < Breach")
    assert code == 2
    assert "'Breech' (Huber, row 9; did you mean 'Breach'?), '?' (Silva, row 11)" in err
    assert "Breach < " not in err
    swap = {"Fine": "TypeA", "Breach": "TypeB"}
    rows = [[f"q{i}", swap[label_of(i) if i % 9 else "Breach"], swap[label_of(i, 7)]]
            for i in range(N)]  # fmt: skip
    other = table(tmp_path / "types.csv", [["id", "Huber", "Silva"], *rows])
    judge = table(tmp_path / "sonnet.csv", [["id", "verdict"], *(r[:2] for r in rows)])
    _, out, err = call("decide", other, judge)
    assert "look like others" not in out + err


TWO = ["labels.csv", "sonnet.csv"]


@pytest.mark.parametrize(
    ("files", "options", "expected"),
    [
        (["labels.csv"] * 2, [], "the same table is given twice; found labels.csv"),
        (["labels.csv", "."], [], "is a folder: give a file, or a run folder alone"),
        (["labels.xls"], [], "labels.xls: no such file; did you mean 'labels.csv'?"),
        (["labels.csv"], [], "give a table of verdicts as well, or name its column with --judge"),
        (["labels.csv", "replies.csv"], [], "(if it holds a judge's replies: --judge response)"),
        (["labels.csv", "replies.csv"], ["--judge", "response"],
         "replies of which less than half give a label alone in a line, such as `Verdict: Fine`"),
        (["labels.csv", "xyz.csv"], [], "give them as `spellings: {METRIC: {TEXT: LABEL}}`"),
        (["labels.csv", "other.csv"], [],
         "other.csv: --item: no column holds the items of labels.csv, by its column id"),
        (TWO, ["--judge", "sonent"], "no such judge; did you mean 'sonnet'?"),
        (TWO, ["--annotators", "Hubr"], "did you mean 'Huber'?"),
        (TWO, ["--annotators", "Huber,Meier"], "--annotators: is not a column of the tables"),
        (TWO, ["--item", "nr", "--save", "bench"],
         "--item: is not a column of the tables; found nr; allowed: "),
        (TWO, ["--order", "Fine", "--save", "bench"],
         "--order: is no order of labels; found Fine; allowed: LABEL <"),
        (TWO, ["--order", "Fime < Breach"], "found Fime (did you mean 'Fine'?)"),
        (TWO, ["--order", "tune: Fine < Breach"], "did you mean 'tone'?"),
    ],
)  # fmt: skip
def test_slips_in_a_command_are_one_error_that_settles_them(
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: list[str],
    options: list[str],
    expected: str,
) -> None:
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
    assert err.count("error:") == 1
    assert not Path("bench").exists()


def test_the_error_has_the_option_with_the_likeliest_column(call: Call, tmp_path: Path) -> None:
    people = [("Review", "Who", "Tone")]
    people += [(f"{i}x", who, label_of(i)) for i in range(N) for who in "ab"]
    code, _, err = call("align", table(tmp_path / "labels.csv", people))
    assert code == 2
    assert "such as --item 'Review'" in err


def test_a_judge_of_a_file_may_have_another_name(tmp_path: Path) -> None:
    study = jb.study(labels(tmp_path), verdicts(tmp_path), columns={"judge": "Claude 3"})
    assert [judge.name for judge in study.real_judges] == ["Claude-3"]


def test_columns_named_like_models_are_judges(call: Call, tmp_path: Path) -> None:
    people = labels(tmp_path)
    for second, judges in (("claude", ["gpt4", "claude"]), ("checked", ["checked"])):
        rows = [["id", "gpt4", second]]
        rows += [[f"q{i}", label_of(i, 9), label_of(i, 5)] for i in range(N)]
        judged = table(tmp_path / "two.csv", rows)
        inferred = read([people, judged])
        assert [head for judge in inferred.judges for head in judge.read] == judges
    _, out, _ = call("decide", people, judged)
    assert "--judge checked,gpt4" in out


def test_what_is_no_table_is_named() -> None:
    with pytest.raises(SetupError, match="found an int"):
        jb.study(1)
    with pytest.raises(SetupError, match="labels: has no columns"):
        jb.study(pd.DataFrame())


def test_an_id_that_tells_items_apart_is_the_item_with_verdicts_and_without(tmp_path: Path) -> None:
    rows = [["conversation_id", "rater", "prompt_id", "model", "tone"]]
    for i in range(N):
        about = [f"p{i // 2}", "ab"[i % 2], label_of(i)]
        rows += [[str(i), who, *about] for who in ("ann", "ben")]
    people = table(tmp_path / "labels.csv", rows)
    judged = [["conversation_id", "tone"], *([i, label_of(i)] for i in range(N))]
    judge = table(tmp_path / "gpt4.csv", judged)
    for tables in ([people], [people, judge]):
        assert read(tables).found.by == ("conversation_id",)


def test_what_was_understood_is_said_once_and_is_no_caveat(call: Call, tmp_path: Path) -> None:
    command = "decide", labels(tmp_path), verdicts(tmp_path), "--order", "Fine < Breach"
    _, short, _ = call(*command)
    assert "4 caveats" in short
    _, long, _ = call(*command, "-v")
    assert (long.count("\n! "), "Understood" in long) == (4, False)
    _, told, _ = call(*command, "--json")
    assert "Understood: labels.csv" in told


def test_without_an_order_no_judge_replaces_anybody_and_none_can_be_declared(
    call: Call, tmp_path: Path
) -> None:
    def at(i: int, slip: int) -> str:
        return label_among(i, slip, ("Fine", "Odd", "Breach"))

    n, people = 600, ("Huber", "Silva", "Okafor")
    rows = [[f"q{i}", *(at(i, 0) if (i + 3 * j) % 11 else at(i + 1, 0) for j in range(3))]
            for i in range(n)]  # fmt: skip
    labels = table(tmp_path / "tone.csv", [["id", *people], *rows])
    judged = [["id", "verdict"], *([f"q{i}", at(i, 41)] for i in range(n))]
    options = ("decide", labels, table(tmp_path / "sonnet.csv", judged), "--blind", "yes",
               "--independent-items")  # fmt: skip
    _, out, _ = call(*options, "--json")
    (decision,) = json.loads(out)["decisions"]
    assert decision["outcome"] == "CAN'T TELL"
    assert "severe answers were not looked for" in decision["reason"]
    code, _, err = call(*options, "--require", "REPLACE:tone")
    assert code == 3
    for order in ("none", "Fine < Odd < Breach"):
        code, _, err = call(*options, "--order", order, "--require", "REPLACE:tone")
        assert code == 0, err
    call(*options, "--save", tmp_path / "saved")
    assert load_rubric(tmp_path / "saved" / "rubric.yaml").metrics[0].order == "unknown"


def test_a_metric_without_a_judge_is_named(call: Call, tmp_path: Path) -> None:
    heads = ["id", "Huber Tone", "Silva Tone", "Huber Harm", "Silva Harm", "gpt-4 Tone"]
    rows = []
    for i in range(N):
        harm = [label_among(i // 2, slip, ("no", "yes")) for slip in (0, 9)]
        rows.append([f"q{i}", label_of(i), label_of(i, 7), *harm, label_of(i, 9)])
    _, out, _ = call("decide", table(tmp_path / "sheet.csv", [heads, *rows]))
    assert "no judge labelled Harm: nothing is decided there" in out


def test_a_rule_names_a_metric_as_the_screen_does(call: Call, tmp_path: Path) -> None:
    rows = [["id", "Huber", "Silva"], *([f"q{i}", *2 * ("abc"[i % 3],)] for i in range(N))]
    people = table(tmp_path / "tone.csv", rows)
    judge = table(tmp_path / "gpt.csv", [["id", "verdict"], *(row[:2] for row in rows[1:])])
    (tmp_path / "rule.yaml").write_text("severe_from: {tone: b}\n")
    options = ("decide", people, judge, "--order", "a < b < c", "--rule", tmp_path / "rule.yaml")
    code, out, err = call(*options)
    assert code == 0, err
    assert "Severe: 'b' and 'c' (tone)" in out
    (tmp_path / "rule.yaml").write_text("severe_from: {tune: b}\n")
    code, _, err = call(*options)
    assert (code, "is not a metric of the rubric" in err, "allowed: tone" in err) == (2, True, True)


def test_an_order_that_makes_most_labels_severe_is_asked_about() -> None:
    labels = pd.DataFrame({
        "id": range(60), "Huber": ["Safe", "Safe", "Unsafe"] * 20, "gpt-4": ["Safe"] * 60,
    })  # fmt: skip
    question = "count as severe ('Safe'): does the order go from the least to the most severe"
    for order, is_asked in (("Unsafe < Safe", True), ("Safe < Unsafe", False)):
        screen = str(jb.decide(labels, columns={"order": order}))
        assert (question in " ".join(screen.split())) == is_asked


@pytest.mark.parametrize(("odd", "meant"), [("Brech", "Breach"), ("Fin", "Fine")])
def test_a_misspelt_label_of_a_judge_is_read_as_the_label_that_people_gave(
    odd: str, meant: str, tmp_path: Path
) -> None:
    inferred = read([labels(tmp_path), verdicts(tmp_path, odd)])
    assert any(f"(read {odd!r} as {meant}, 4 times)" in line for line in inferred.lines)
    (judge,) = jb.study(inferred).real_judges
    assert [[*judge.verdicts[f"q{i}"].labels.values()] for i in range(4)] == [[meant]] * 4


@pytest.mark.parametrize(
    ("odd", "order", "expected"),
    [
        ("Unfine", None, ("Fine", "Breach", "Unfine")),
        ("Maybe", None, ("Fine", "Breach", "Maybe")),
        ("Fines", "Fine < Fines < Breach", ("Fine", "Fines", "Breach")),
    ],
)
def test_another_label_of_a_judge_is_no_slip(
    odd: str, order: str | None, expected: tuple[str, ...], tmp_path: Path
) -> None:
    columns = {"order": order} if order else {}
    inferred = read([labels(tmp_path), verdicts(tmp_path, odd)], **columns)
    assert inferred.rubric.metrics[0].label_texts == expected


def test_another_grade_is_no_slip(tmp_path: Path) -> None:
    grade = ("Grade I", "Grade III")
    people = [["id", "Huber", "Silva"], *([f"q{i}", *2 * (grade[i % 2],)] for i in range(N))]
    judge = [["id", "verdict"]]
    judge += [[f"q{i}", "Grade II" if i < 4 else grade[i % 2]] for i in range(N)]
    paths = [table(tmp_path / "labels.csv", people), table(tmp_path / "sonnet.csv", judge)]
    assert read(paths).rubric.metrics[0].label_texts == (*grade, "Grade II")


def test_ids_that_are_written_differently_are_counted(call: Call, tmp_path: Path) -> None:
    people = labels(tmp_path)
    lines = read([people, verdicts(tmp_path, n=12, first_id="X")]).lines
    assert any("12 ids of sonnet.csv are not in labels.csv (such as 'X0')" in x for x in lines)
    lines = read([people, verdicts(tmp_path, n=4, first_id="X")]).lines
    assert "sonnet.csv: 4 items that nobody labelled: X0, X1, X2, X3" in lines
    rows = [["id", "verdict"], *([f"q{i}", label_of(i, 9)] for i in range(3 * N))]
    lines = read([people, table(tmp_path / "sonnet.csv", rows)]).lines
    assert f"sonnet.csv: {2 * N} items that nobody labelled" in lines
    cases = [["Case ID", "Huber", "Silva"], *([f"q{i}", *2 * (label_of(i),)] for i in range(N))]
    people, judge = table(tmp_path / "cases.csv", cases), verdicts(tmp_path, n=N, first_id="X")
    for options in ((), ("--item", "Case ID")):
        code, _, err = call("decide", people, judge, *options)
        assert (code, "'q0' there, 'X0' here" in err) == (2, True), err


def long_verdicts(folder: Path, head: str, *who: str) -> Path:
    rows = [[f"q{i}", one, label_of(i, 9 + j)] for i in range(N) for j, one in enumerate(who)]
    return table(folder / "verdicts.csv", [["id", head, "verdict"], *rows])


def test_a_rater_of_verdicts_is_a_judge(tmp_path: Path) -> None:
    for who in (("strict", "lenient"), ("gpt-4o", "llama-3")):
        long = long_verdicts(tmp_path, "rater", *who)
        assert [judge.names for judge in read([labels(tmp_path), long]).judges] == [[*who]]
    inferred = read([long, labels(tmp_path)])  # models alone, in whatever order
    assert [judge.names for judge in inferred.judges] == [[*who]]


def test_a_rater_who_labelled_is_no_judge(tmp_path: Path) -> None:
    for head, who in (("rater", ("Huber", "Silva")), ("version", ("one", "two"))):
        tables = [labels(tmp_path), long_verdicts(tmp_path, head, *who)]
        with pytest.raises(SetupError, match=r"whose verdicts they are; .*: --judge COLUMN"):
            read(tables)
    assert [judge.names for judge in read(tables, judge="version").judges] == [["one", "two"]]
