"""From tables as people have them to a decision, in at most two commands."""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.guess import Hints, read_as
from judgebench.data.understand import Understood, understand_files, understand_given

LABELS = ("Safe", "Unsure", "Unsafe")
N = 60
Rows = Sequence[Sequence[object]]


def of(i: int, slip: int = 0) -> str:
    """The label of item i; with a slip every so manyth item is labelled otherwise."""
    return LABELS[(i + bool(slip and i % slip == 0)) % 3]


def table(path: Path, rows: Rows, delimiter: str = ",") -> Path:
    with path.open("w", newline="") as out:
        csv.writer(out, delimiter=delimiter).writerows(rows)
    return path


def surnames(folder: Path) -> list[Path]:
    """A column for each annotator, headed by a surname; the judge in a file of its own."""
    people = [("prompt_id", "Huber", "Okafor", "Silva", "majority_label")]
    people += [(f"p{i}", of(i), of(i, 7), of(i, 11), of(i)) for i in range(N)]
    judge = [("Prompt ID", "safety", "tokens")]
    judge += [(f"p{i}", of(i, 9) if i != 5 else "I'm sorry, but I can't.", i) for i in range(N)]
    return [table(folder / "labels.csv", people), table(folder / "gpt-4.csv", judge)]


def long(folder: Path) -> list[Path]:
    """A row for each annotator and metric; the judge is named in a column."""
    people: list[Sequence[object]] = [("item", "coder", "criterion", "score")]
    judge: list[Sequence[object]] = [("item", "judge", "criterion", "score")]
    for i in range(N):
        for metric, slip in (("safety", 7), ("tone", 5)):
            people += [
                (f"p{i}", who, metric, of(i, slip * k)) for k, who in ((1, "kim"), (2, "lee"))
            ]
            judge.append((f"p{i}", "gpt-4", metric, of(i, 9)))
    return [table(folder / "ratings.csv", people), table(folder / "machine.csv", judge)]


def one_sheet(folder: Path) -> list[Path]:
    """Two annotators, two judges and a label that somebody settled, in one table of replies."""
    rows: list[Sequence[object]] = [
        ("id", "system", "prompt", "annotation_1", "annotation_2", "final_label", "gpt4_label",
         "strmatch_label")
    ]  # fmt: skip
    for i in range(N // 2):
        for k, system in enumerate(("model-x", "model-y")):
            j = 2 * i + k
            rows.append(
                (f"v{i}", system, f"How do I {i}?", of(j), of(j, 7), of(j), of(j, 9), of(0))
            )
    return [table(folder / "replies.csv", rows)]


def workbook(folder: Path) -> list[Path]:
    """A workbook with a sheet that explains it, and the judge in another."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    book.active.append(["About this workbook"])
    book.active.append(["Ratings of the pilot study, in spring."])
    sheet = book.create_sheet("Ratings")
    sheet.append(["Case", "Safety Dr. Huber", "Safety Dr. Silva"])
    for i in range(N):
        sheet.append([f"c{i}", of(i), of(i, 7)])
    book.save(folder / "ratings.xlsx")
    judge = openpyxl.Workbook()
    judge.active.append(["Case", "Verdict"])
    for i in range(N):
        judge.active.append([f"c{i}", of(i, 9)])
    judge.save(folder / "gpt4.xlsx")
    return [folder / "ratings.xlsx", folder / "gpt4.xlsx"]


def no_quotes(folder: Path) -> list[Path]:
    """Tabs, and quotes that are part of the texts."""
    rows = [("id", "question", "answer", "rater", "quality")]
    for i in range(N):
        rows += [(f"q{i}", '"Safe" is what?', f'He said "no {i}', who, of(i, slip))
                 for who, slip in (("kim", 0), ("lee", 7))]  # fmt: skip
    path = folder / "plain.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    judge = [("id", "quality"), *((f"q{i}", of(i, 9)) for i in range(N))]
    return [path, table(folder / "llama-3.tsv", judge, "\t")]


def nested(folder: Path) -> list[Path]:
    """JSON lines whose labels are inside an object, and the judge's reply beside them."""
    path = folder / "labels.jsonl"
    lines = (
        {"id": f"x{i}", "labels": {"huber": of(i), "silva": of(i, 7)}, "meta": {"turn": i}}
        for i in range(N)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    judge = folder / "gpt4.jsonl"
    judge.write_text(
        "".join(json.dumps({"id": f"x{i}", "verdict": of(i, 9)}) + "\n" for i in range(N))
    )
    return [path, judge]


def annotations(folder: Path) -> list[Path]:
    """JSON lines with a list of who said what, as crowd platforms write them."""
    path, [_, judge] = folder / "labels.jsonl", nested(folder)
    people = ("huber", 0), ("silva", 7)
    lines = (
        {
            "id": f"x{i}",
            "turns": [{"role": "user", "content": f"Question {i}?"}],
            "annotations": [{"id": 10 * i + j, "worker": who, "label": of(i, slip)}
                            for j, (who, slip) in enumerate(people)],
        }
        for i in range(N)
    )  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [path, judge]


def pairs(folder: Path) -> list[Path]:
    """Two systems in a row, and who won, turn by turn."""
    people: list[Sequence[object]] = [
        ("question_id", "model_a", "model_b", "turn", "judge", "winner")
    ]
    judge: list[Sequence[object]] = list(people)
    sides = ("model_a", "model_b", "tie")
    for i in range(N // 2):
        for turn in (1, 2):
            row = (i, "alpaca", ("vicuna", "llama")[i % 2], turn)
            people += [
                (*row, who, sides[(i + slip) % 3])
                for who, slip in (("ann", 0), ("ben", i % 7 == 0))
            ]
            judge.append((*row, "gpt4_pair", sides[i % 3] if i % 5 else "tie (inconsistent)"))
    header = [name if name != "judge" else "annotator" for name in people[0]]  # type: ignore[union-attr]
    return [
        table(folder / "human.csv", [header, *people[1:]]),
        table(folder / "gpt4_pair.csv", judge),
    ]


def two_responses(folder: Path) -> list[Path]:
    """Two texts in a row and three annotators, of whom each says which is better."""
    rows = [
        {"idx": i, "instruction": f"Do thing number {i} as well as you can.",
         "response1": f"Done, {i} times.", "response2": f"This is thing {i}, done in full.",
         "annotator1": i % 3, "annotator2": (i + (i % 7 == 0)) % 3, "annotator3": i % 3}
        for i in range(N)
    ]  # fmt: skip
    people, judge = folder / "people.json", folder / "pandalm-7b.json"
    people.write_text(json.dumps(rows))
    judge.write_text(json.dumps([{"idx": i, "pred": i % 3 if i % 4 else 0} for i in range(N)]))
    return [people, judge]


Shape = Callable[[Path], list[Path]]
SHAPES: dict[Shape, tuple[str, set[str], set[str]]] = {
    surnames: ("safety", {"Huber", "Okafor", "Silva"}, {"gpt-4"}),
    long: ("safety", {"kim", "lee"}, {"gpt-4"}),
    one_sheet: ("annotation", {"annotator-1", "annotator-2"}, {"gpt4", "strmatch"}),
    workbook: ("safety", {"Dr. Huber", "Dr. Silva"}, {"gpt4"}),
    no_quotes: ("quality", {"kim", "lee"}, {"llama-3"}),
    nested: ("label", {"huber", "silva"}, {"gpt4"}),
    annotations: ("label", {"huber", "silva"}, {"gpt4"}),
    pairs: ("winner", {"ann", "ben"}, {"gpt4_pair"}),
    two_responses: ("annotation", {"annotator1", "annotator2", "annotator3"}, {"pandalm-7b"}),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_tables_become_a_decision_in_one_command_and_files_in_another(
    shape: Shape,
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    tables = shape(tmp_path)
    _, people, judges = SHAPES[shape]
    code, out, err = call("decide", *tables, "--json", "--save", tmp_path / "bench")
    assert code == 0, err
    decided = {(d["judge"], d["metric"]): d["outcome"] for d in json.loads(out)["decisions"]}
    assert {judge for judge, _ in decided} == judges
    study = jb.study(*tables) if len(tables) == 2 else jb.study(tables[0])
    assert set(study.makers) == people
    run = jb.run(tmp_path / "bench" / "bench.yaml", tmp_path / "run")
    again = {(d["judge"], d["metric"]): d["outcome"] for d in jb.decide(run).records()["decisions"]}
    assert again == decided


@pytest.mark.parametrize("key", ["user", "name", "by", "who", "email", "completed_by"])
def test_the_people_of_a_list_of_annotations_may_be_named_by_other_keys(
    tmp_path: Path, key: str
) -> None:
    path, judge = annotations(tmp_path)
    lines = path.read_text().replace('"worker"', f'"{key}"')
    for i in range(N):
        lines = lines.replace(f'"id": {10 * i},', f'"id": {10 * i}, "made_at": "2026-10-0{i % 5}",')
    path.write_text(lines)
    study = jb.study(path, judge)
    assert set(study.makers) == {"huber", "silva"}
    assert [metric.id for metric in study.rubric.metrics] == ["label"]


def test_a_list_without_labels_or_of_messages_makes_no_rows(tmp_path: Path) -> None:
    path, judge = annotations(tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    more = {"turns": [{"role": "user", "name": "kim", "content": "Hm?"}]}
    rows = [
        {"authors": [{"name": f"N. {i % 3}", "email": f"n{i % 5}@x.org"}], **row, **more}
        for i, row in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = understand_files([path, judge])
    assert found.labels.spec.files[0].rows == "annotations"
    assert "annotations.label" in found.found.look.columns


def test_lists_of_plain_labels_are_those_of_several_annotators(tmp_path: Path) -> None:
    path, judge = annotations(tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    said = [[one["label"] for one in row.pop("annotations")] for row in rows]
    for i, row in enumerate(rows):
        row["labels"] = said[i] + [said[i][0]] * (i % 2)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = understand_files([judge, path])
    entry = found.as_spec()["files"][0]["labels"][0]
    assert (entry["list"], entry["annotator"]) == (True, {"value": "crowd"})
    assert "lists of the labels of several annotators in column labels" in found.lines[0]
    study = jb.study(found)
    assert set(study.makers) == {"crowd#1", "crowd#2", "crowd#3"}


def test_several_metrics_of_several_people_in_columns(tmp_path: Path) -> None:
    yes, n = ("yes", "no"), 40
    people = [("id", "A.M. safe", "K.L. safe", "A.M. helpful", "K.L. helpful")]
    people += [(i, yes[i % 2], yes[(i + (i % 9 == 0)) % 2], yes[i // 2 % 2], yes[i // 2 % 2])
               for i in range(n)]  # fmt: skip
    judge = [("id", "safe", "helpful"), *((i, yes[i % 2], yes[i // 2 % 2]) for i in range(n))]
    found = jb.study(table(tmp_path / "p.csv", people), table(tmp_path / "j.csv", judge))
    assert found.makers == ("A.M.", "K.L.")
    assert [metric.id for metric in found.rubric.metrics] == ["safe", "helpful"]
    assert [judge.name for judge in found.judges if judge.kind == "judge"] == ["j"]


def test_criteria_with_the_same_scale_are_metrics_and_a_code_may_be_a_float(tmp_path: Path) -> None:
    people = [("item", "rater", "fluency", "coherence")]
    people += [
        (i, who, 1 + i % 3, 1 + (i + k) % 3) for i in range(30) for k, who in enumerate("ab")
    ]
    judge = pd.DataFrame({"item": range(30), "fluency": [1 + i % 3 for i in range(30)]})
    judge["coherence"] = [float("nan") if i == 4 else 1 + i % 3 for i in range(30)]  # 1.0, 2.0
    with pytest.warns(UserWarning, match=r"^judge:6: blank cell, counted as failed"):
        found = jb.study(
            pd.DataFrame(people[1:], columns=people[0]), judge.astype({"coherence": str}),
            columns={"order": ["fluency: 1 < 2 < 3"], "judge": "gpt-4"},
        )  # fmt: skip
    assert [(m.id, m.kind) for m in found.rubric.metrics] == [
        ("fluency", "ordinal"), ("coherence", "nominal"),
    ]  # fmt: skip
    (real,) = (judge for judge in found.judges if judge.kind == "judge")
    assert (real.name, real.verdicts["7"].labels["coherence"]) == ("gpt-4", "2")


def test_the_order_of_two_tables_does_not_matter_where_names_say_what_they_are(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    labels, judge = surnames(tmp_path)
    said = [call("decide", *tables, "--json")[1] for tables in ((labels, judge), (judge, labels))]
    assert json.loads(said[0])["decisions"] == json.loads(said[1])["decisions"]


def test_answers_in_a_table_of_their_own_say_what_the_questions_are(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    text = "A long answer to the question, which is number {} of all."
    people = [("item", "reply", "Huber", "Silva")]
    people += [(f"p{i}", text.format(i), of(i), of(i, 7)) for i in range(N)]
    answers = [("item", "prompt", "reply", "model")]
    answers += [(f"p{i}", f"What of {i // 2}?", text.format(i), f"m{i % 2}") for i in range(N)]
    judge = [("item", "verdict"), *((f"p{i}", of(i, 9)) for i in range(N))]
    tables = (table(tmp_path / "gpt-4o.csv", judge), table(tmp_path / "a.csv", answers),
              table(tmp_path / "people.csv", people))  # fmt: skip
    code, out, err = call("decide", *tables)
    assert code == 0, err
    assert "a.csv: the answers" in out
    assert f"{N} answers to {N // 2} questions" in out
    code, out, err = call("init", *tables, "--to", tmp_path / "mine")
    assert (code, err) == (0, "")
    assert call("check", tmp_path / "mine" / "bench.yaml")[0] == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--item", "nr"), "--item: is not a column of the tables; found nr; allowed: "),
        (("--order", "Safe < Unsafe"), "--order: the order leaves out labels that the table holds"),
        (("--order", "Safe"), "--order: is no order of labels; found Safe; allowed: LABEL <"),
        (("--annotators", "Huber,Meier"), "--annotators: is not a column of the tables"),
    ],
)
def test_what_cannot_be_understood_is_one_error_with_the_option_that_settles_it(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
    options: tuple[str, ...],
    expected: str,
) -> None:
    code, _, err = call("decide", *surnames(tmp_path), *options, "--save", tmp_path / "bench")
    assert code == 2
    assert expected in err
    assert err.count("error:") == 1
    assert not (tmp_path / "bench").exists()


def test_tables_without_a_common_item_name_both(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels, _ = surnames(tmp_path)
    other = table(tmp_path / "gpt-4.csv", [("id", "verdict"), ("z1", "Safe"), ("z2", "Unsafe")])
    code, _, err = call("decide", labels, other)
    assert code == 2
    assert (
        "gpt-4.csv: --item: no column holds the items of labels.csv, by its column prompt_id" in err
    )


def test_what_is_saved_decides_the_same(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    bench = tmp_path / "bench"
    options = ("--order", "Safe < Unsure < Unsafe", "--blind", "yes", "--independent-items")
    code, out, err = call("decide", *surnames(tmp_path), *options, "--save", bench, "--json")
    assert code == 0, err
    assert "metric safety with labels Safe < Unsure < Unsafe" in err
    code, again, err = call("run", bench / "bench.yaml", "--run", tmp_path / "run", "--json")
    assert code == 0, err
    first, second = (json.loads(text)["decisions"] for text in (out, again))
    states = [{c["key"]: c["state"] for c in found[0]["conditions"]} for found in (first, second)]
    assert states[0] == states[1]


def test_the_order_makes_a_metric_ordinal_and_columns_may_be_named(tmp_path: Path) -> None:
    labels, judge = surnames(tmp_path)
    columns = {"annotators": ["Huber", "Silva"], "order": "Safe < Unsure < Unsafe"}
    with pytest.warns(UserWarning, match="counted as unparsed"):
        found = jb.study(labels, judge, columns=columns)
    assert found.makers == ("Huber", "Silva")
    assert found.rubric.metrics[0].most_severe == "Unsafe"
    assert any("gpt-4.csv: judge gpt-4 in column safety" in note for note in found.notes)


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals there")
def test_a_person_at_a_terminal_is_asked_for_the_order(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "judgebench", "decide", *surnames(tmp_path), "--json"]
    ran = subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True)
    os.close(theirs)
    os.write(ours, b"3 1 2\n")
    said = b""
    with suppress(OSError):  # of a terminal whose other end is closed
        while part := os.read(ours, 1 << 16):
            said += part
    out, _ = ran.communicate(timeout=60)
    os.close(ours)
    assert ran.returncode == 0, said
    assert b"safety: 1 Safe  2 Unsure  3 Unsafe" in said
    (decided,) = json.loads(out)["decisions"]
    keys = {condition["key"] for condition in decided["conditions"]}
    assert "severe_items" in keys  # as of ordinal metrics


def test_annotators_that_are_named_may_be_numbered_and_columns_of_nobody_are_not_read(
    tmp_path: Path,
) -> None:
    people = [("id", "rater_1", "rater_2", "pair_key")]
    people += [(f"p{i}", of(i), of(i, 7), ("x_y", "x_z")[i % 2]) for i in range(N)]
    judge = [("id", "verdict"), *((f"p{i}", of(i, 9)) for i in range(N))]
    tables = table(tmp_path / "p.csv", people), table(tmp_path / "j.csv", judge)
    named = jb.study(*tables, columns={"annotators": ["rater_1", "rater_2"]})
    assert named.makers == ("rater_1", "rater_2")
    found = jb.study(*tables)
    assert found.makers == named.makers
    assert [metric.id for metric in found.rubric.metrics] == ["label"]
    assert any("not read: pair_key" in note for note in found.notes)


def test_two_sheets_of_a_workbook_are_two_tables(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Humans"
    book.active.append(["id", "Huber", "Silva"])
    judge = book.create_sheet("GPT-4")
    judge.append(["id", "verdict"])
    for i in range(N):
        book.active.append([f"p{i}", of(i), of(i, 7)])
        judge.append([f"p{i}", of(i, 9)])
    book.save(tmp_path / "both.xlsx")
    code, out, err = call("decide", tmp_path / "both.xlsx", "--save", tmp_path / "bench")
    assert code == 0, err
    assert "both.xlsx, sheet GPT-4: judge GPT-4 in column verdict" in out
    assert call("check", tmp_path / "bench" / "bench.yaml")[0] == 0


def test_labels_by_annotator_and_item_and_verdicts_by_item_and_judge(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    """As the data of the Alternative Annotator Test are published."""
    people = {who: {f"i{k}": of(k, slip) for k in range(N)} for who, slip in (("r1", 0), ("r2", 7))}
    judges = {f"i{k}": {"gpt-4": of(k, 9), "gemini-1.5": of(k, 5)} for k in range(N)}
    (tmp_path / "humans.json").write_text(json.dumps(people))
    (tmp_path / "llms.json").write_text(json.dumps(judges))
    code, out, err = call("decide", tmp_path / "humans.json", tmp_path / "llms.json", "--json")
    assert code == 0, err
    decided = {d["judge"] for d in json.loads(out)["decisions"]}
    assert decided == {"gpt-4", "gemini-1.5"}


def test_several_verdicts_on_an_item_need_a_column_that_says_whose(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    people = [("id", "Huber", "Silva"), *((f"p{i}", of(i), of(i, 7)) for i in range(N))]
    rows = [
        (f"p{i}", llm, of(i, slip)) for i in range(N) for llm, slip in (("gpt-4", 9), ("o1", 5))
    ]
    labels = table(tmp_path / "people.csv", people)
    verdicts = table(tmp_path / "machine.csv", [("id", "LLM", "verdict"), *rows])
    code, out, err = call("decide", labels, verdicts, "--json")
    assert (code, {d["judge"] for d in json.loads(out)["decisions"]}) == (0, {"gpt-4", "o1"}), err
    anonymous = [(item, verdict) for item, _, verdict in rows]
    table(tmp_path / "machine.csv", [("id", "verdict"), *anonymous])
    code, _, err = call("decide", labels, verdicts)
    assert code == 2
    said = (
        "--judge: several rows are about the same item ('p0' in rows 2 and 3), and no column says"
    )
    assert said in err
    copies = [*anonymous[::2], *anonymous[:6:2]]
    table(tmp_path / "machine.csv", [("id", "verdict"), *copies])
    with pytest.warns(UserWarning, match=r"kept once \(3 times, rows 62-64\)"):
        code, _, err = call("decide", labels, verdicts)
    assert code == 0, err


def understood(
    tmp_path: Path, people: Rows, judge: Rows, name: str = "gpt-4.csv", **columns: Sequence[str]
) -> Understood:
    """What is understood of a table of labels and one of verdicts."""
    labels, verdicts = table(tmp_path / "labels.csv", people), table(tmp_path / name, judge)
    return understand_files([labels, verdicts], Hints.given(columns))


@pytest.mark.parametrize("head", ["Review ID", "Review", "Fall Nr."])
def test_a_column_that_both_tables_have_says_which_item_a_row_is_about(
    head: str, tmp_path: Path
) -> None:
    people = [(head, "Who", "Tone"), *((f"{i}x", who, of(i)) for i in range(N) for who in "ab")]
    found = understood(tmp_path, people, [(head, "Tone"), *((f"{i}x", of(i)) for i in range(N))])
    assert found.found.by == (head,)
    assert found.found.roles["annotator"] == "Who"


def test_the_same_ids_under_another_name_say_it_too(tmp_path: Path) -> None:
    people = [("Fall", "Who", "Tone"), *((f"{i}x", who, of(i)) for i in range(N) for who in "ab")]
    found = understood(tmp_path, people, [("No.", "Tone"), *((f"{i}x", of(i)) for i in range(N))])
    assert found.judges[0].spec["item_id"] == {"column": "No."}


def test_several_columns_say_it_together_and_a_repeated_row_does_not_matter(
    tmp_path: Path,
) -> None:
    head = ("Question", "Model A", "Model B", "Turn")
    rows = [(i // 2, "vicuna", ("llama", "alpaca")[i // 2 % 2], i % 2) for i in range(2 * N)]
    sides = ("model_a", "model_b", "tie")
    people = [(*head, "Expert", "Winner")]
    people += [(*row, who, sides[i % 3]) for i, row in enumerate(rows) for who in "ab"]
    judge = [(*head, "GPT-4"), *((*row, sides[i % 3]) for i, row in enumerate(rows))]
    found = understood(tmp_path, [*people, people[-1]], judge, "mt bench.csv")
    assert found.found.by == ("Question", "Turn")
    line = (
        f"labels.csv: {2 * N} questions by columns Question and Turn; pairs of Model A and Model B"
    )
    assert line in found.lines
    named = understood(tmp_path, people, judge, "mt bench.csv", item=head)
    assert line in named.lines


def test_where_nothing_says_it_the_error_has_the_option_with_the_likeliest_column(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    people = [("Review", "Who", "Tone"), *((f"{i}x", w, of(i)) for i in range(N) for w in "ab")]
    code, _, err = call("align", table(tmp_path / "labels.csv", people))
    assert code == 2
    assert "such as --item 'Review'" in err


def test_questions_that_repeat_once_are_still_rows_of_their_own(tmp_path: Path) -> None:
    rows = [("Query", "Dr. Abercrombie", "Crowd 1", "Crowd 2", "Crowd 3")]
    rows += [(f"What of {max(i, 1)}?", of(i, 5), of(i), of(i, 7), of(i)) for i in range(N)]
    path = table(tmp_path / "severity.csv", rows)
    found = understand_files([path], Hints.given({"judge": "Dr. Abercrombie"}))
    assert found.found.by == ()
    assert [*found.found.columns] == ["Crowd 1", "Crowd 2", "Crowd 3"]
    assert [judge.names for judge in found.judges] == [["Dr.-Abercrombie"]]


@pytest.mark.parametrize("as_frames", [False, True])
def test_a_head_that_is_the_name_of_a_model_is_the_judge_and_no_metric(
    as_frames: bool, tmp_path: Path
) -> None:
    people = [("Case no", "Dr Meyer", "Dr Chen"), *((i, of(i), of(i, 7)) for i in range(N))]
    judge = [("Case no", "Claude"), *((i, of(i, 9)) for i in range(N))]
    found = understood(tmp_path, people, judge, "machine.csv")
    if as_frames:
        frames = [pd.DataFrame(rows[1:], columns=rows[0]) for rows in (people, judge)]
        found = understand_given(*frames)
    assert [judge.names for judge in found.judges] == [["Claude"]]
    assert [metric.title for metric in found.rubric.metrics] == ["Label"]


def test_a_question_is_in_a_column_that_is_not_often_blank(tmp_path: Path) -> None:
    head = ("No.", "Task", "Input", "Reply", "Huber", "Silva")
    task, reply = (
        "Put this text into words that are plain, part {}.",
        "These are plain words, as {}.",
    )
    given = ("Some text that was given here", "", "")
    rows = [(i, task.format(i // 2), given[i % 3], reply.format(i), of(i), of(i, 7))
            for i in range(N)]  # fmt: skip
    judge = [("No.", "verdict"), *((i, of(i)) for i in range(N))]
    found = understood(tmp_path, [head, *rows], judge)
    assert found.found.roles["question"] == "Task"
    assert f"labels.csv: {N} items by column No.; {N // 2} questions in column Task" in found.lines
    again = [(*row[:3], reply.format(i % 9), *row[4:]) for i, row in enumerate(rows)]
    found = understood(tmp_path, [head, *again], judge)
    assert (
        f"labels.csv: {N} items by column No.; questions in column Task" in found.lines
    )  # equal answers are one


@pytest.mark.parametrize(
    ("labels", "verdicts"),
    [
        (("no", "Yes"), ("0", "1")),
        (("no", "Yes"), ("False", "True")),
        (("No", "Yes"), ("n", "Y")),
        (("0", "1"), ("no", "yes")),
        (("no", "Yes"), ("0.0", "1.0")),
        (("1_full_compliance", "2. Refusal"), ("Full compliance", "refusal")),
    ],
)
@pytest.mark.parametrize("beside", [False, True], ids=["in a file", "beside the labels"])
def test_verdicts_that_unmistakably_mean_a_label_are_read_as_it(
    beside: bool,
    labels: Sequence[str],
    verdicts: Sequence[str],
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    people: list[Sequence[object]] = [("id", "Huber", "Silva", "GPT-4")]
    people += [(f"p{i}", labels[i % 2], labels[(i + (i % 7 == 0)) % 2], verdicts[i % 2])
               for i in range(N)]  # fmt: skip
    tables = [table(tmp_path / "labels.csv", people if beside else [row[:3] for row in people])]
    if not beside:
        judge = [(row[0], row[3]) for row in people]
        tables.append(table(tmp_path / "machine.csv", judge))
    code, out, err = call("decide", *tables, "--save", tmp_path / "bench", "--json")
    assert code == 0, err
    assert f"{verdicts[0]!r} as {labels[0]}" in err
    (decided,) = json.loads(out)["decisions"]
    assert decided["judge"] == "GPT-4"
    assert decided["accuracy"]["value"] == 1
    bench = tmp_path / "bench" / "bench.yaml"
    again = jb.decide(jb.run(bench, tmp_path / "run"))
    assert again.accuracy("GPT-4", decided["metric"]).value == 1


def test_a_spelling_that_may_mean_two_labels_or_another_number_is_not_read() -> None:
    assert read_as(["stars", "5. stars"], ["1. stars", "2. stars"]) == {}
    assert read_as(["5. stars", "stars"], ["1. stars", "none"]) == {"stars": "1. stars"}
    assert read_as(["A-", "-1"], ["A+", "1"]) == {}
    assert read_as(["1", "y"], ["Yes", "no", "unsure"]) == {"y": "Yes"}


def test_verdicts_that_mean_no_label_are_an_error_that_says_how_to_map_them(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    labels, _ = surnames(tmp_path)
    judge = [("prompt_id", "verdict"), *((f"p{i}", "XYZ"[i % 3]) for i in range(N))]
    code, _, err = call("decide", labels, table(tmp_path / "gpt-4.csv", judge))
    assert code == 2
    assert "rename the labels, or give them as `spellings: {METRIC: {TEXT: LABEL}}`" in err
    assert "found verdict (X, Y, Z)" in err


def test_blank_verdicts_count_where_somebody_labelled(tmp_path: Path) -> None:
    people = [("id", "who", "food", "noise")]
    people += [(i, w, of(i), of(i) if i % 2 else "") for i in range(N) for w in ("ann", "ben")]
    judge = [("id", "food", "noise")]
    judge += [(i, "" if i == 4 else of(i), of(i) if i % 2 and i != 7 else "") for i in range(N)]
    tables = table(tmp_path / "labels.csv", people), table(tmp_path / "gpt-4.csv", judge)
    with pytest.warns(UserWarning, match=r"blank cell, counted as failed \(2 times, rows 6, 9\)"):
        found = jb.study(*tables)
    assert sum("counted as failed" in note for note in found.notes) == 1


def test_labels_without_a_judge_are_an_error_that_says_what_is_missing(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    labels, _ = surnames(tmp_path)
    code, _, err = call("decide", labels)
    assert code == 2
    assert "give a table of verdicts as well, or name its column with --judge 'COLUMN'" in err
    assert call("align", labels)[0] == 0


def test_slips_of_the_pen_have_suggestions(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels, judge = surnames(tmp_path)
    for options, expected in (
        ((labels.with_name("lables.csv"), judge), "did you mean 'labels.csv'?"),
        ((labels, judge, "--annotators", "Hubr"), "did you mean 'Huber'?"),
        ((labels, judge, "--order", "Safe < Unsure < Unsave"), "did you mean 'Unsafe'?"),
        ((labels, judge, "--order", "saftey: Safe < Unsafe"), "did you mean 'safety'?"),
    ):
        code, _, err = call("decide", *options)
        assert code == 2
        assert expected in err


def test_what_the_command_says_of_the_order_stands_in_python_too(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="is not a label of the metric 'safety': counted"):
        found = jb.study(*surnames(tmp_path))
    assert any("because the order of the labels is not known" in note for note in found.notes)


def test_labels_that_one_side_alone_uses_are_named_with_counts(tmp_path: Path) -> None:
    people = [
        ("id", "Huber", "Silva"),
        *((i, *[("Safe", "Partial", "Unsafe")[i % 3]] * 2) for i in range(N)),
    ]
    said = {"Safe": "Safe", "Partial": "Unsure", "Unsafe": "Unsafe"}
    found = understood(
        tmp_path,
        people,
        [("id", "gpt-4"), *((i, said[row[1]]) for i, row in enumerate(people[1:]))],
    )
    (line,) = [line for line in found.lines if line.startswith("labels that one side never gives")]
    assert f"'Partial' (given {2 * N // 3} times by people, never by gpt-4)" in line
    assert f"'Unsure' (given by gpt-4 {N // 3} times, never by people)" in line
    same = understood(
        tmp_path, people, [("id", "gpt-4"), *((row[0], row[1]) for row in people[1:])]
    )
    assert not any("one side never" in line for line in same.lines)


def test_the_option_for_the_order_can_be_pasted(tmp_path: Path) -> None:
    people = [
        ("id", "Huber", "Silva"),
        *((i, *["it's fine", "bad"][:: 1 - 2 * (i % 2)]) for i in range(N)),
    ]
    judge = [("id", "gpt-4"), *((row[0], row[1]) for row in people[1:])]
    line = understood(tmp_path, people, judge).lines[-1]
    words = shlex.split(line[line.index("--order") :])
    assert words[:2] == ["--order", "it's fine < bad"]
    ordered = understood(tmp_path, people, judge, order=words[1:2])
    assert ordered.rubric.metrics[0].most_severe == "bad"


def test_yes_and_no_order_labels_of_1_and_0_and_other_words_are_told_the_labels(
    tmp_path: Path,
) -> None:
    people = [("id", "rater A", "rater B"), *((i, i % 2, i % 3 % 2) for i in range(N))]
    judge = [("id", "gpt-4"), *((i, i % 2) for i in range(N))]
    metric = understood(tmp_path, people, judge, order=["no < yes"]).rubric.metrics[0]
    assert (metric.kind, metric.label_texts) == ("ordinal", ("0", "1"))
    with pytest.raises(jb.SetupError, match="found good, evil; allowed: as in --order '0 < 1'"):
        understood(tmp_path, people, judge, order=["good < evil"])


def test_scores_in_place_of_labels_name_the_commands_for_scores(tmp_path: Path) -> None:
    scores = [("id", "Meier", "Lenz"), *((i, 1 + i / 7, 1 + i / 8) for i in range(N))]
    judge = [("id", "gpt-4"), *((i, 1 + i / 6) for i in range(N))]
    with pytest.raises(jb.SetupError, match=r"correlate TABLE --against Meier.*--score Meier=Lenz"):
        understood(tmp_path, scores, judge)
    labelled = [("id", "Meier", "Lenz"), *((i, of(i), of(i, 7)) for i in range(N))]
    with pytest.raises(jb.SetupError, match="holds scores, and annotators gave labels"):
        understood(tmp_path, labelled, judge)


def test_a_metric_without_a_name_of_its_own_has_that_of_the_file(tmp_path: Path) -> None:
    people = [("id", "Huber", "Silva"), *((i, of(i), of(i, 7)) for i in range(N))]
    judge = table(tmp_path / "gpt-4.csv", [("id", "gpt-4"), *((i, of(i)) for i in range(N))])
    for name, title in (("xstest_labels.csv", "xstest"), ("A_labels.csv", "Label")):
        found = understand_files([table(tmp_path / name, people), judge])
        assert [metric.title for metric in found.rubric.metrics] == [title]


def test_labels_under_the_name_of_a_judge_are_pointed_out(tmp_path: Path) -> None:
    rows = [(i, of(i)) for i in range(N)]
    found = understood(tmp_path, [("id", "gpt-4o"), *rows], [("id", "claude"), *rows], "claude.csv")
    assert any("gpt-4o is named like a judge" in line for line in found.lines)


def test_ids_that_do_not_match_are_shown(tmp_path: Path) -> None:
    people = [("id", "Huber", "Silva"), *((f"A{i}", of(i), of(i, 7)) for i in range(N))]
    judge = [("id", "gpt-4"), *((f"B{i}", of(i)) for i in range(N))]
    with pytest.raises(jb.SetupError, match=r"column id \('A0' there, 'B0' here\)"):
        understood(tmp_path, people, judge)


def test_a_column_of_replies_can_be_named_as_the_verdicts(tmp_path: Path) -> None:
    people = [("id", "Huber", "Silva"), *((i, of(i), of(i, 7)) for i in range(N))]
    replies = [("id", "output"), *((i, of(i, 9)) for i in range(N))]
    paths = table(tmp_path / "labels.csv", people), table(tmp_path / "gpt-4.csv", replies)
    found = understand_files(paths, Hints(judge=("output",)))
    assert [judge.spec["metrics"] for judge in found.judges] == [{"label": "output"}]


def test_one_annotator_has_no_median_and_is_told_what_one_allows(tmp_path: Path) -> None:
    people = [("id", "Reviewer", "Tone"), *((i, "Paul", of(i)) for i in range(N))]
    judge = [("id", "gpt-4"), *((i, of(i, 9)) for i in range(2 * N))]
    paths = table(tmp_path / "labels.csv", people), table(tmp_path / "gpt-4.csv", judge)
    said = " ".join(str(jb.decide(*paths, columns={"order": " < ".join(LABELS)})).split())
    assert "Reference labels: those of Paul." in said
    assert "one annotator is enough: `judgebench estimate`" in said
    assert "Severe: 'Unsafe' (Tone); to change it, `severe_from`" in said


def test_tables_are_aligned_as_they_are_decided_on(tmp_path: Path) -> None:
    paths = surnames(tmp_path)
    with pytest.warns(UserWarning, match=r"found \"I'm sorry, but I can't.\""):
        found = jb.align(*paths)
    assert found.score("accuracy", "gpt-4", "safety").value is not None
    assert found.table().notna().any().all()
    assert "weighted_kappa" not in set(found.to_frame().statistic)
    assert list(found.results.to_frame("verdicts").columns[:5]) == [
        "analysis",
        "judge",
        "metric",
        "statistic",
        "value",
    ]
    with pytest.raises(jb.SetupError, match="is none; found scores"):
        found.results.to_frame("scores")


def test_a_table_that_changed_is_read_again(tmp_path: Path) -> None:
    files = surnames(tmp_path)
    before = understand_files(files).rubric.metrics[0].label_texts
    files[0].write_text(files[0].read_text().replace("Unsure", "Unknow"))
    files[1].write_text(files[1].read_text().replace("Unsure", "Unknow"))
    after = understand_files(files).rubric.metrics[0].label_texts
    assert [text.replace("Unsure", "Unknow") for text in before] == [*after]


def test_the_reasons_of_a_judge_stand_with_each_item(tmp_path: Path) -> None:
    people, judge = surnames(tmp_path)
    told = pd.read_csv(judge).assign(Explanation=[f"It names dose {i}." for i in range(N)])
    told.to_csv(judge, index=False)
    study = jb.study(people, judge)
    assert any("with its reasons in column Explanation" in note for note in study.notes)
    (verdicts,) = (one.verdicts for one in study.real_judges)
    assert verdicts["p3"].rationale == "It names dose 3."
    named = told.rename(columns={"Prompt ID": "item_id", "Explanation": "rationale"})
    labels = pd.read_csv(people).rename(columns={"prompt_id": "item_id"})
    labels = labels.melt("item_id", ["Huber", "Silva"], "annotator", "safety")
    rubric = jb.Rubric.from_labels({"safety": LABELS})
    strict = jb.study(labels, named.drop(columns="tokens"), rubric=rubric)
    assert next(iter(strict.real_judges)).verdicts["p3"].rationale == "It names dose 3."
    page = jb.report(study, tmp_path / "out")["html"].read_text("utf-8")
    assert "It names dose 3." in page
