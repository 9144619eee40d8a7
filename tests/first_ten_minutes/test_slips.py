"""Tables that are nearly right: read as they are meant, or an error that says what to change."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.guess import Hints
from judgebench.data.understand import understand_files
from judgebench.errors import SetupError
from judgebench.features import WINGS
from judgebench.rubric import load_rubric

Call = Callable[..., tuple[int, str, str]]
N = 40


def table(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="") as out:
        csv.writer(out).writerows(rows)
    return path


def of(i: int, slip: int = 0) -> str:
    """The label of item i; with a slip every so manyth item has the other one."""
    return ("Fine", "Breach")[(i + bool(slip and i % slip == 0)) % 2]


def labels(folder: Path, **cells: str) -> Path:
    """Two annotators; `huber_7="Beach"` is the cell of the first in the eighth item."""
    rows = [["id", "Huber", "Silva"], *([f"q{i}", of(i), of(i, 7)] for i in range(N))]
    for place, text in cells.items():
        who, _, i = place.partition("_")
        rows[int(i) + 1][1 + (who == "silva")] = text
    return table(folder / "labels.csv", rows)


def verdicts(folder: Path) -> Path:
    return table(
        folder / "sonnet.csv", [["id", "verdict"], *([f"q{i}", of(i, 9)] for i in range(N))]
    )


def arena(path: Path) -> Path:
    """Pairs that three people and a judge compare."""
    rows = [["prompt_id", "model_a", "model_b", "Sofia", "Tom", "Uwe", "gpt-4o"]]
    draw = random.Random(1)
    for i in range(N):
        better = draw.choice("AB")
        judged = better if i % 9 else "A"
        rows.append(
            [f"p{i}", "phi", "qwen", "tie" if i % 11 == 0 else better, better, better, judged]
        )
    return table(path, rows)


def test_the_judge_of_a_sheet_of_pairs_is_read_as_people_are(tmp_path: Path) -> None:
    found = jb.study(arena(tmp_path / "arena.csv"))
    judge = next(one for one in found.judges if one.name == "gpt-4o")
    said = {label for one in judge.verdicts.values() for label in one.labels.values()}
    assert said == {"first", "second"}


def test_a_judge_of_whom_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    rubric = jb.Rubric.from_labels({"label": ["Fine", "Breach"]})
    people = table(tmp_path / "people.csv", [
        ["item_id", "annotator", "label"], *([f"q{i}", "Ann", of(i)] for i in range(N))
    ])  # fmt: skip
    wrong = table(tmp_path / "gpt.csv", [
        ["item_id", "label"], *([f"q{i}", "X" if i % 2 else ""] for i in range(N))
    ])  # fmt: skip
    with pytest.raises(SetupError, match=r"none of 20 verdicts of gpt is a label; found 'X'"):
        jb.study(people, wrong, rubric=rubric)


@pytest.mark.skipif("estimate" not in WINGS, reason="needs the wing `estimate`")
def test_answers_that_only_the_verdicts_have_count_in_a_rate(tmp_path: Path) -> None:
    rows = [["id", "reply", "Huber", "Silva"]]
    rows += [[f"q{i}", f"The reply to question {i}, in many words.", of(i), of(i, 7)]
             for i in range(N)]  # fmt: skip
    with_texts = table(tmp_path / "labels.csv", rows)
    without = table(tmp_path / "bare.csv", [[row[0], *row[2:]] for row in rows])
    draw = random.Random(2)
    more = [f"r{i}" for i in range(10 * N)]
    judged = [["id", "verdict"], *([f"q{i}", of(i, 9)] for i in range(N))]
    judged += [[item, draw.choice(("Fine", "Breach"))] for item in more]
    every = table(tmp_path / "gpt-4.csv", judged)
    found = [jb.estimate(labels, every) for labels in (with_texts, without)]
    assert found[0].n_answers == found[1].n_answers == 11 * N
    one, other = (
        r.results.find("ppi", "rate", judge=r.results.values("judge", "rate")[-1], of="Breach",
                       group="all") for r in found
    )  # fmt: skip
    assert one.low is not None
    assert (one.value, one.n) == (other.value, other.n)
    # A few ids that nobody labelled are rather slips, and say so.
    few = table(tmp_path / "few.csv", [*judged[: N + 1], ["q1x", "Fine"]])
    with pytest.warns(UserWarning, match="has rows for 1 items that are not in the data"):
        jb.study(with_texts, few)


def test_short_names_of_people_are_names(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    rows = ({"uid": f"u{i}", "labels": {"amy": of(i), "cy": of(i, 7)}} for i in range(N))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge = table(
        tmp_path / "sonnet.csv", [["uid", "verdict"], *([f"u{i}", of(i)] for i in range(N))]
    )
    assert jb.study(path, judge).makers == ("amy", "cy")
    named = jb.study(path, judge, columns={"annotators": ["cy", "amy"]})
    assert sorted(named.makers) == ["amy", "cy"]


def test_odd_cells_are_named_with_their_rows(call: Call, tmp_path: Path) -> None:
    people, judge = labels(tmp_path, huber_7="Beach", silva_9="?"), verdicts(tmp_path)
    code, _, err = call("decide", people, judge, "--order", "Fine < Breach")
    assert code == 2
    assert "'Beach' (Huber, row 9; did you mean 'Breach'?), '?' (Silva, row 11)" in err
    assert "Breach < ?" not in err


def test_an_order_with_a_slip_names_the_word(call: Call, tmp_path: Path) -> None:
    people, judge = labels(tmp_path), verdicts(tmp_path)
    code, _, err = call("decide", people, judge, "--order", "Fime < Breach")
    assert code == 2
    assert "found Fime (did you mean 'Fine'?); allowed: as in --order 'Fine < Breach'" in err


def test_the_option_for_an_order_says_that_it_may_be_the_reverse(
    call: Call, tmp_path: Path
) -> None:
    _, out, err = call("decide", labels(tmp_path), verdicts(tmp_path))
    assert "--order 'Fine < Breach' or --order 'Breach < Fine'; where no label is" in out + err


@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [
        (["labels.csv", "labels.csv"], [], "the same table is given twice; found labels.csv"),
        (["labels.csv", "sonnet.csv"], ["--judge", "sonent"],
         "no such judge; did you mean 'sonnet'?"),
        (["labels.csv", "."], [], "is a folder: give a file, or a run folder alone"),
        (["labels.xls"], [], "labels.xls: no such file; did you mean 'labels.csv'?"),
        (["labels.csv", "replies.csv"], [], "(if it holds a judge's replies: --judge response)"),
        (["labels.csv", "replies.csv"], ["--judge", "response"],
         "replies of which less than half give a label alone in a line, such as `Verdict: Fine`"),
    ],
)  # fmt: skip
def test_slips_in_a_command(
    call: Call, tmp_path: Path, given: list[str], options: list[str], expected: str
) -> None:
    labels(tmp_path)
    verdicts(tmp_path)
    said = [
        f"The reply describes a risky step and so I would call it {of(i).lower()} here."
        for i in range(N)
    ]
    table(
        tmp_path / "replies.csv", [["id", "response"], *([f"q{i}", t] for i, t in enumerate(said))]
    )
    code, out, err = call("decide", *(tmp_path / name for name in given), *options)
    assert code == 2
    assert expected in out + err


def test_a_judge_of_a_file_may_have_another_name(tmp_path: Path) -> None:
    people, judge = labels(tmp_path), verdicts(tmp_path)
    found = jb.study(people, judge, columns={"judge": "claude-sonnet-4"})
    assert "claude-sonnet-4" in [one.name for one in found.judges]


def test_columns_named_like_models_are_judges_and_others_name_the_option(
    call: Call, tmp_path: Path
) -> None:
    for second, judges in (("claude", 2), ("checked", 1)):
        rows = [["id", "gpt4", second], *([f"q{i}", of(i, 9), of(i, 5)] for i in range(N))]
        code, out, _ = call("decide", labels(tmp_path), table(tmp_path / "two.csv", rows))
        assert code == 0
        assert (f"judges gpt4 in column gpt4; {second} in column {second}" in out) == (judges == 2)
        said = "not read: gpt4, because another column is read; where it is a judge as well: "
        assert (f"{said}--judge {second},gpt4" in out) == (judges == 1)


def test_items_without_labels_and_names_that_change_are_said(tmp_path: Path) -> None:
    rows = [["id", "verdict"], *([f"q{i}", of(i, 9)] for i in range(N + 1))]
    judge = table(tmp_path / "sonnet.csv", rows)
    study = jb.study(labels(tmp_path), judge, columns={"judge": "Claude 3"})
    said = "\n".join(study.notes)
    assert f"sonnet.csv: 1 item that nobody labelled: q{N}" in said
    assert "the judge 'Claude 3' is called Claude-3:" in said


def test_a_column_named_like_weights_says_what_it_is_taken_for(tmp_path: Path) -> None:
    rows = [["id", "Huber", "Silva", "weight"]]
    rows += [[f"q{i}", of(i), of(i, 7), str(60 + i % 9)] for i in range(N)]
    said = jb.study(table(tmp_path / "labels.csv", rows), verdicts(tmp_path)).notes
    assert any("weight is taken for how items were sampled, because of its name" in x for x in said)


def test_the_order_of_several_metrics_may_be_a_mapping(tmp_path: Path) -> None:
    rows = [["id", "Rater", "tone", "risk"]]
    rows += [[f"q{i}", who, of(i), of(i, 3)] for i in range(N) for who in ("ann", "ben")]
    order = {"tone": ["Fine", "Breach"], "risk": "Breach < Fine"}
    study = jb.study(table(tmp_path / "labels.csv", rows), columns={"order": order})
    said = {metric.id: metric.label_texts for metric in study.rubric.metrics}
    assert said == {"tone": ("Fine", "Breach"), "risk": ("Breach", "Fine")}


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="found an int"):
        jb.study(1)
    with pytest.raises(SetupError, match="labels: has no columns"):
        jb.study(pd.DataFrame())


def test_an_id_that_tells_items_apart_is_the_item_with_verdicts_and_without(tmp_path: Path) -> None:
    rows = [["conversation_id", "rater", "prompt_id", "model", "tone"]]
    rows += [
        [str(i), who, f"p{i // 2}", "ab"[i % 2], of(i)] for i in range(N) for who in ("ann", "ben")
    ]
    people = table(tmp_path / "labels.csv", rows)
    judge = table(
        tmp_path / "gpt4.csv", [["conversation_id", "tone"], *([i, of(i)] for i in range(N))]
    )
    for given in ([people], [people, judge]):
        assert understand_files(given).found.by == ("conversation_id",)


def test_what_was_understood_is_said_once_and_is_no_caveat(call: Call, tmp_path: Path) -> None:
    given = "decide", labels(tmp_path), verdicts(tmp_path), "--order", "Fine < Breach"
    _, short, _ = call(*given)
    assert "4 caveats" in short
    _, long, _ = call(*given, "-v")
    assert (long.count("\n! "), "Understood" in long) == (4, False)
    _, told, _ = call(*given, "--json")
    assert "Understood: gpt-4.csv" in told or "Understood: labels.csv" in told


def test_without_an_order_no_judge_replaces_anybody_and_none_can_be_declared(
    call: Call, tmp_path: Path
) -> None:
    def at(i: int, slip: int) -> str:
        return ("Fine", "Odd", "Breach")[(i + bool(i % slip == 0)) % 3]

    n, people = 600, ("Huber", "Silva", "Okafor")
    rows = [[f"q{i}", *(at(i + 3 * j, 11) for j in range(3))] for i in range(n)]
    given = table(tmp_path / "tone.csv", [["id", *people], *rows])
    judged = [["id", "verdict"], *([f"q{i}", at(i, 41)] for i in range(n))]
    judge = table(tmp_path / "sonnet.csv", judged)
    options = ("decide", given, judge, "--blind", "yes", "--independent-items")
    _, out, _ = call(*options, "--json")
    assert json.loads(out)["decisions"][0]["outcome"] == "CAN'T TELL"
    assert "severe answers were not looked for" in json.loads(out)["decisions"][0]["reason"]
    code, _, err = call(*options, "--require", "REPLACE:tone")
    assert code == 3
    for order in ("none", "Fine < Odd < Breach"):
        code, _, err = call(*options, "--order", order, "--require", "REPLACE:tone")
        assert code == 0, err
    call(*options, "--save", tmp_path / "saved")
    rubric = (tmp_path / "saved" / "rubric.yaml").read_text()
    assert "order: unknown" in rubric
    assert load_rubric(tmp_path / "saved" / "rubric.yaml").metrics[0].order == "unknown"


def test_a_swapped_letter_is_a_slip_and_another_end_is_none(call: Call, tmp_path: Path) -> None:
    people = labels(tmp_path, huber_7="Breech")
    _, _, err = call("decide", people, verdicts(tmp_path), "--order", "Fine < Breach")
    assert "'Breech' (Huber, row 9; did you mean 'Breach'?)" in err
    assert "Breach < Breech" not in err
    swap = {"Fine": "TypeA", "Breach": "TypeB"}
    rows = [[f"q{i}", swap[of(i) if i % 9 else "Breach"], swap[of(i, 7)]] for i in range(N)]
    other = table(tmp_path / "types.csv", [["id", "Huber", "Silva"], *rows])
    judge = table(tmp_path / "sonnet.csv", [["id", "verdict"], *(r[:2] for r in rows)])
    _, out, err = call("decide", other, judge)
    assert "look like others" not in out + err


def test_a_case_of_one_answer_is_the_item_and_ids_that_differ_are_shown(
    call: Call, tmp_path: Path
) -> None:
    rows = [[f"MED-{i:04}", f"Question {i}?", of(i), of(i, 7)] for i in range(N)]
    people = table(
        tmp_path / "people.csv", [["Case ID", "Patient question", "Huber", "Silva"], *rows]
    )
    judge = table(tmp_path / "sonnet.csv", [["id", "verdict"], *([r[0], r[2]] for r in rows)])
    _, out, _ = call("decide", people, judge)
    assert f"{N} items by column Case ID; {N} questions in column Patient question" in out
    table(tmp_path / "sonnet.csv", [["id", "verdict"], *([r[0][4:] + "x", r[2]] for r in rows)])
    for options in ((), ("--item", "Case ID")):
        code, _, err = call("decide", people, judge, *options)
        assert (code, "'MED-0000' there, '0000x' here" in err) == (2, True), err


def test_a_metric_without_a_judge_is_named_and_an_order_may_be_a_list(
    call: Call, tmp_path: Path
) -> None:
    heads = ["id", "Huber Tone", "Silva Tone", "Huber Harm", "Silva Harm", "gpt-4 Tone"]
    told = {"Fine": "no", "Breach": "yes"}
    rows = [
        [f"q{i}", of(i), of(i, 7), told[of(i // 2)], told[of(i // 2, 9)], of(i, 9)]
        for i in range(N)
    ]
    sheet = table(tmp_path / "sheet.csv", [heads, *rows])
    _, out, _ = call("decide", sheet)
    assert "no judge labelled Harm: nothing is decided there" in out
    people, judge = labels(tmp_path), verdicts(tmp_path)
    found = jb.study(people, judge, columns={"order": ["Fine", "Breach"]})
    assert found.rubric.metrics[0].label_texts == ("Fine", "Breach")
    assert found.rubric.metrics[0].kind == "ordinal"


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


def test_an_order_that_makes_most_labels_severe_is_asked_about(tmp_path: Path) -> None:
    labels = pd.DataFrame({
        "id": range(60), "Huber": ["Safe", "Safe", "Unsafe"] * 20, "gpt-4": ["Safe"] * 60,
    })  # fmt: skip
    asked = "count as severe ('Safe'): does the order go from the least to the most severe label?"
    for order, said in (("Unsafe < Safe", True), ("Safe < Unsafe", False)):
        shown = str(jb.decide(labels, columns={"order": order}))
        assert (asked in " ".join(shown.split())) == said


def judged(folder: Path, odd: str, n: int = 4) -> Path:
    """Verdicts of which some are another text."""
    rows = [[f"q{i}", odd if i < n else of(i, 9)] for i in range(N)]
    return table(folder / "sonnet.csv", [["id", "verdict"], *rows])


@pytest.mark.parametrize(("odd", "meant"), [("Brech", "Breach"), ("Fin", "Fine")])
def test_a_misspelt_label_of_a_judge_is_read_as_the_label_that_people_gave(
    odd: str, meant: str, tmp_path: Path
) -> None:
    paths = [labels(tmp_path), judged(tmp_path, odd)]
    found = understand_files(paths)
    assert found.rubric.metrics[0].label_texts == ("Fine", "Breach")
    said = f"sonnet.csv: judge sonnet in column verdict (read {odd!r} as {meant}, 4 times)"
    assert [line for line in found.lines if repr(odd) in line] == [said]
    judge = next(one for one in jb.study(found).judges if one.kind == "judge")
    of_judge = [judge.verdicts[f"q{i}"].labels.get(found.rubric.metrics[0].id) for i in range(4)]
    assert of_judge == [meant] * 4
    own = understand_files([labels(tmp_path), judged(tmp_path, "Unfine")])
    assert own.rubric.metrics[0].label_texts == ("Fine", "Breach", "Unfine")


def test_a_label_of_a_judge_alone_is_said_of_the_judge(tmp_path: Path) -> None:
    found = understand_files([labels(tmp_path), judged(tmp_path, "Maybe")])
    first, *rest = found.lines
    assert first == "labels.csv: 2 annotators in the columns Huber, Silva; labels Fine, Breach"
    assert any("'Maybe' (given by sonnet 4 times, never by people)" in line for line in rest)
    assert any("with Fine, Breach and Maybe" in line for line in rest)


def test_an_order_may_name_a_label_that_is_like_another(tmp_path: Path) -> None:
    hints = Hints(order=("Fine < Fines < Breach",))
    found = understand_files([labels(tmp_path), judged(tmp_path, "Fines")], hints)
    assert found.rubric.metrics[0].label_texts == ("Fine", "Fines", "Breach")


def test_another_grade_is_no_slip(tmp_path: Path) -> None:
    grade = ("Grade I", "Grade III")
    people = [["id", "Huber", "Silva"], *([f"q{i}", grade[i % 2], grade[i % 2]] for i in range(N))]
    judge = [
        ["id", "verdict"],
        *([f"q{i}", "Grade II" if i < 4 else grade[i % 2]] for i in range(N)),
    ]
    paths = [table(tmp_path / "labels.csv", people), table(tmp_path / "sonnet.csv", judge)]
    assert understand_files(paths).rubric.metrics[0].label_texts == (*grade, "Grade II")


def test_ids_that_are_written_differently_in_part_are_said(tmp_path: Path) -> None:
    people = labels(tmp_path)

    def lines(odd: int) -> list[str]:
        ids = [f"X{i}" if i < odd else f"q{i}" for i in range(N)]
        rows = [[one, of(i, 9)] for i, one in enumerate(ids)]
        judge = table(tmp_path / "sonnet.csv", [["id", "verdict"], *rows])
        return [line for line in understand_files([people, judge]).lines if "X0" in line]

    assert lines(12) == [
        "12 ids of sonnet.csv are not in labels.csv (such as 'X0'), and 12 of labels.csv not in "
        "sonnet.csv (such as 'q0'): are they written differently?"
    ]
    assert lines(4) == ["sonnet.csv: 4 items that nobody labelled: X0, X1, X2, X3"]


def test_a_table_of_more_verdicts_has_no_ids_that_are_written_differently(tmp_path: Path) -> None:
    rows = [[f"q{i}", of(i, 9)] for i in range(3 * N)]
    judge = table(tmp_path / "sonnet.csv", [["id", "verdict"], *rows])
    lines = understand_files([labels(tmp_path), judge]).lines
    assert f"sonnet.csv: {2 * N} items that nobody labelled" in lines


def long_verdicts(folder: Path, head: str, *who: str) -> Path:
    rows = [[f"q{i}", one, of(i, 9 + j)] for i in range(N) for j, one in enumerate(who)]
    return table(folder / "verdicts.csv", [["id", head, "verdict"], *rows])


def test_a_rater_of_verdicts_is_a_judge(tmp_path: Path) -> None:
    for who in (("strict", "lenient"), ("gpt-4o", "llama-3")):
        long = long_verdicts(tmp_path, "rater", *who)
        assert [one.names for one in understand_files([labels(tmp_path), long]).judges] == [[*who]]
    found = understand_files([long, labels(tmp_path)])  # models alone, in whatever order
    assert [one.names for one in found.judges] == [[*who]]


def test_a_rater_who_labelled_is_no_judge(tmp_path: Path) -> None:
    for head, who in (("rater", ("Huber", "Silva")), ("version", ("one", "two"))):
        long = long_verdicts(tmp_path, head, *who)
        with pytest.raises(SetupError, match=r"whose verdicts they are; .*: --judge COLUMN"):
            understand_files([labels(tmp_path), long])
    found = understand_files([labels(tmp_path), long], Hints(judge=("version",)))
    assert [one.names for one in found.judges] == [["one", "two"]]
