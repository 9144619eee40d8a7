"""From tables as people have them to a decision, in at most two commands."""

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
from sheets import LABELS, N, jsonl, label_of, read, read_two, table, workbook

import judgebench as jb
from judgebench.data.guess import read_as
from judgebench.data.understand import understand_given


def surnames(folder: Path) -> list[Path]:
    """A column for each annotator, headed by a surname; the judge in a file of its own."""
    people = [("prompt_id", "Huber", "Okafor", "Silva", "majority_label")]
    people += [(f"p{i}", *(label_of(i, slip) for slip in (0, 7, 11, 0))) for i in range(N)]
    judge = [("Prompt ID", "safety", "tokens")]
    judge += [
        (f"p{i}", label_of(i, 9) if i != 5 else "I'm sorry, but I can't.", i) for i in range(N)
    ]
    return [table(folder / "labels.csv", people), table(folder / "gpt-4.csv", judge)]


def long(folder: Path) -> list[Path]:
    """A row for each annotator and metric; the judge is named in a column."""
    people: list[Sequence[object]] = [("item", "coder", "criterion", "score")]
    judge: list[Sequence[object]] = [("item", "judge", "criterion", "score")]
    for i in range(N):
        for metric, slip in (("safety", 7), ("tone", 5)):
            people.append((f"p{i}", "kim", metric, label_of(i, slip)))
            people.append((f"p{i}", "lee", metric, label_of(i, 2 * slip)))
            judge.append((f"p{i}", "gpt-4", metric, label_of(i, 9)))
    return [table(folder / "ratings.csv", people), table(folder / "machine.csv", judge)]


def one_sheet(folder: Path) -> list[Path]:
    """Two annotators, two judges and a label that somebody settled, in one table of replies."""
    rows: list[Sequence[object]] = [
        ("id", "system", "prompt", "annotation_1", "annotation_2", "final_label", "gpt4_label",
         "strmatch_label")
    ]  # fmt: skip
    for i in range(N):
        labels = [label_of(i, slip) for slip in (0, 7, 0, 9)]
        rows.append(
            (f"v{i // 2}", f"model-{'xy'[i % 2]}", f"How do I {i // 2}?", *labels, LABELS[0])
        )
    return [table(folder / "replies.csv", rows)]


def workbooks(folder: Path) -> list[Path]:
    """A workbook with a sheet that explains it, and the judge in another."""
    ratings = [["Case", "Safety Dr. Huber", "Safety Dr. Silva"]]
    ratings += [[f"c{i}", label_of(i), label_of(i, 7)] for i in range(N)]
    about = {"Read me": [["About this workbook"], ["Ratings of the pilot study, in spring."]]}
    judge = [["Case", "Verdict"], *([f"c{i}", label_of(i, 9)] for i in range(N))]
    return [
        workbook(folder / "ratings.xlsx", **about, Ratings=ratings),
        workbook(folder / "gpt4.xlsx", Sheet=judge),
    ]


def two_sheets(folder: Path) -> list[Path]:
    people = [["id", "Huber", "Silva"]]
    people += [[f"p{i}", label_of(i), label_of(i, 7)] for i in range(N)]
    judge = [["id", "verdict"], *([f"p{i}", label_of(i, 9)] for i in range(N))]
    return [workbook(folder / "both.xlsx", **{"Humans": people, "GPT-4": judge})]


def no_quotes(folder: Path) -> list[Path]:
    """Tabs, and quotes that are part of the texts."""
    rows = [("id", "question", "answer", "rater", "quality")]
    for i in range(N):
        rows += [
            (f"q{i}", '"Safe" is what?', f'He said "no {i}', rater, label_of(i, slip))
            for rater, slip in (("kim", 0), ("lee", 7))
        ]
    path = folder / "plain.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    judge = [("id", "quality"), *((f"q{i}", label_of(i, 9)) for i in range(N))]
    return [path, table(folder / "llama-3.tsv", judge, "\t")]


def nested(folder: Path) -> list[Path]:
    """JSON lines whose labels are inside an object, and the judge's reply beside them."""
    rows = [
        {"id": f"x{i}", "labels": {"huber": label_of(i), "silva": label_of(i, 7)}, "meta": {"t": i}}
        for i in range(N)
    ]
    judge = [{"id": f"x{i}", "verdict": label_of(i, 9)} for i in range(N)]
    return [jsonl(folder / "labels.jsonl", rows), jsonl(folder / "gpt4.jsonl", judge)]


def annotations(folder: Path) -> list[Path]:
    """JSON lines with a list of who said what, as crowd platforms write them."""
    path, judge = nested(folder)
    people = ("huber", 0), ("silva", 7)
    rows = [
        {
            "id": f"x{i}",
            "turns": [{"role": "user", "content": f"Question {i}?"}],
            "annotations": [
                {"id": 10 * i + j, "worker": worker, "label": label_of(i, slip)}
                for j, (worker, slip) in enumerate(people)
            ],
        }
        for i in range(N)
    ]
    return [jsonl(path, rows), judge]


def pairs(folder: Path) -> list[Path]:
    """Two systems in a row, and who won, turn by turn."""
    head = ("question_id", "model_a", "model_b", "turn")
    people: list[Sequence[object]] = [(*head, "annotator", "winner")]
    judge: list[Sequence[object]] = [(*head, "judge", "winner")]
    sides = ("model_a", "model_b", "tie")
    for i in range(N // 2):
        for turn in (1, 2):
            row = (i, "alpaca", ("vicuna", "llama")[i % 2], turn)
            people.append((*row, "ann", sides[i % 3]))
            people.append((*row, "ben", sides[(i + (i % 7 == 0)) % 3]))
            judge.append((*row, "gpt4_pair", sides[i % 3] if i % 5 else "tie (inconsistent)"))
    return [table(folder / "human.csv", people), table(folder / "gpt4_pair.csv", judge)]


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


def by_annotator_and_item(folder: Path) -> list[Path]:
    """As the data of the Alternative Annotator Test are published."""
    people = {"r1": {f"i{k}": label_of(k) for k in range(N)}}
    people["r2"] = {f"i{k}": label_of(k, 7) for k in range(N)}
    judges = {f"i{k}": {"gpt-4": label_of(k, 9), "o1": label_of(k, 5)} for k in range(N)}
    (folder / "humans.json").write_text(json.dumps(people))
    (folder / "llms.json").write_text(json.dumps(judges))
    return [folder / "humans.json", folder / "llms.json"]


Shape = Callable[[Path], list[Path]]
SHAPES: dict[Shape, tuple[set[str], set[str]]] = {
    surnames: ({"Huber", "Okafor", "Silva"}, {"gpt-4"}),
    long: ({"kim", "lee"}, {"gpt-4"}),
    one_sheet: ({"annotator-1", "annotator-2"}, {"gpt4", "strmatch"}),
    workbooks: ({"Dr. Huber", "Dr. Silva"}, {"gpt4"}),
    two_sheets: ({"Huber", "Silva"}, {"GPT-4"}),
    no_quotes: ({"kim", "lee"}, {"llama-3"}),
    nested: ({"huber", "silva"}, {"gpt4"}),
    annotations: ({"huber", "silva"}, {"gpt4"}),
    pairs: ({"ann", "ben"}, {"gpt4_pair"}),
    two_responses: ({"annotator1", "annotator2", "annotator3"}, {"pandalm-7b"}),
    by_annotator_and_item: ({"r1", "r2"}, {"gpt-4", "o1"}),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_tables_become_a_decision_and_files_that_decide_the_same(
    shape: Shape, call, tmp_path: Path
) -> None:
    tables = shape(tmp_path)
    people, judges = SHAPES[shape]
    code, out, err = call("decide", *tables, "--json", "--save", tmp_path / "bench")
    assert code == 0, err
    decided = {(d["judge"], d["metric"]): d["outcome"] for d in json.loads(out)["decisions"]}
    assert {judge for judge, _ in decided} == judges
    study = jb.study(*tables)
    assert set(study.makers) == people
    run = jb.run(tmp_path / "bench" / "bench.yaml", tmp_path / "run")
    again = {(d["judge"], d["metric"]): d["outcome"] for d in jb.decide(run).records()["decisions"]}
    assert again == decided


@pytest.mark.parametrize("key", ["user", "name", "by", "who", "email", "completed_by"])
def test_people_of_a_list_of_annotations_have_other_keys(tmp_path: Path, key: str) -> None:
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
    messages = {"turns": [{"role": "user", "name": "kim", "content": "Hm?"}]}
    rows = [
        {"authors": [{"name": f"N. {i % 3}", "email": f"n{i % 5}@x.org"}], **row, **messages}
        for i, row in enumerate(rows)
    ]
    assert read([jsonl(path, rows), judge]).labels.spec.files[0].rows == "annotations"


def test_lists_of_plain_labels_are_those_of_several_annotators(tmp_path: Path) -> None:
    path, judge = annotations(tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for i, row in enumerate(rows):
        labels = [entry["label"] for entry in row.pop("annotations")]
        row["labels"] = labels + labels[:1] * (i % 2)
    study = jb.study(read([judge, jsonl(path, rows)]))  # in whatever order
    assert set(study.makers) == {"crowd#1", "crowd#2", "crowd#3"}


def test_several_metrics_of_several_people_in_columns(tmp_path: Path) -> None:
    yes, n = ("yes", "no"), 40
    people = [("id", "A.M. safe", "K.L. safe", "A.M. helpful", "K.L. helpful")]
    people += [(i, yes[i % 2], yes[(i + (i % 9 == 0)) % 2], yes[i // 2 % 2], yes[i // 2 % 2])
               for i in range(n)]  # fmt: skip
    judge = [("id", "safe", "helpful"), *((i, yes[i % 2], yes[i // 2 % 2]) for i in range(n))]
    study = jb.study(table(tmp_path / "p.csv", people), table(tmp_path / "j.csv", judge))
    assert study.makers == ("A.M.", "K.L.")
    assert [metric.id for metric in study.rubric.metrics] == ["safe", "helpful"]
    assert [judge.name for judge in study.real_judges] == ["j"]


def test_criteria_with_one_scale_are_metrics_and_codes_may_be_floats() -> None:
    people = pd.DataFrame(
        [(i, who, 1 + i % 3, 1 + (i + k) % 3) for i in range(30) for k, who in enumerate("ab")],
        columns=["item", "rater", "fluency", "coherence"],
    )
    judge = pd.DataFrame({"item": range(30), "fluency": [1 + i % 3 for i in range(30)]})
    judge["coherence"] = [float("nan") if i == 4 else 1 + i % 3 for i in range(30)]  # 1.0, 2.0
    columns = {"order": ["fluency: 1 < 2 < 3"], "judge": "gpt-4"}
    with pytest.warns(UserWarning, match=r"^judge:6: blank cell, counted as failed"):
        study = jb.study(people, judge.astype({"coherence": str}), columns=columns)
    assert [(m.id, m.kind) for m in study.rubric.metrics] == [
        ("fluency", "ordinal"), ("coherence", "nominal"),
    ]  # fmt: skip
    (real,) = study.real_judges
    assert (real.name, real.verdicts["7"].labels["coherence"]) == ("gpt-4", "2")


def test_answers_in_a_table_of_their_own_say_what_the_questions_are(call, tmp_path: Path) -> None:
    text = "A long answer to the question, which is number {} of all."
    people = [("item", "reply", "Huber", "Silva")]
    people += [(f"p{i}", text.format(i), label_of(i), label_of(i, 7)) for i in range(N)]
    answers = [("item", "prompt", "reply", "model")]
    answers += [(f"p{i}", f"What of {i // 2}?", text.format(i), f"m{i % 2}") for i in range(N)]
    judge = [("item", "verdict"), *((f"p{i}", label_of(i, 9)) for i in range(N))]
    tables = (table(tmp_path / "gpt-4o.csv", judge), table(tmp_path / "a.csv", answers),
              table(tmp_path / "people.csv", people))  # fmt: skip
    code, out, err = call("decide", *tables)
    assert code == 0, err
    assert f"{N} answers to {N // 2} questions" in out
    code, out, err = call("init", *tables, "--to", tmp_path / "mine")
    assert (code, err) == (0, "")
    assert call("check", tmp_path / "mine" / "bench.yaml")[0] == 0


def test_what_is_saved_decides_the_same(call, tmp_path: Path) -> None:
    bench = tmp_path / "bench"
    options = ("--order", "Safe < Unsure < Unsafe", "--blind", "yes", "--independent-items")
    code, out, err = call("decide", *surnames(tmp_path), *options, "--save", bench, "--json")
    assert code == 0, err
    code, again, err = call("run", bench / "bench.yaml", "--run", tmp_path / "run", "--json")
    assert code == 0, err
    first, second = (json.loads(text)["decisions"][0]["conditions"] for text in (out, again))
    assert {c["key"]: c["state"] for c in first} == {c["key"]: c["state"] for c in second}


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals there")
def test_a_person_at_a_terminal_is_asked_for_the_order(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "judgebench", "decide", *surnames(tmp_path), "--json"]
    ran = subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True)
    os.close(theirs)
    os.write(ours, b"3 1 2\n")
    screen = b""
    with suppress(OSError):  # of a terminal whose other end is closed
        while part := os.read(ours, 1 << 16):
            screen += part
    out, _ = ran.communicate(timeout=60)
    os.close(ours)
    assert ran.returncode == 0, screen
    assert b"safety: 1 Safe  2 Unsure  3 Unsafe" in screen
    (decided,) = json.loads(out)["decisions"]
    keys = {condition["key"] for condition in decided["conditions"]}
    assert "severe_items" in keys  # as of ordinal metrics


def test_named_annotators_may_be_numbered_and_no_key_is_one(tmp_path: Path) -> None:
    people = [("id", "rater_1", "rater_2", "pair_key")]
    people += [(f"p{i}", label_of(i), label_of(i, 7), ("x_y", "x_z")[i % 2]) for i in range(N)]
    judge = [("id", "verdict"), *((f"p{i}", label_of(i, 9)) for i in range(N))]
    tables = table(tmp_path / "p.csv", people), table(tmp_path / "j.csv", judge)
    for columns in ({"annotators": ["rater_1", "rater_2"]}, {}):
        study = jb.study(*tables, columns=columns)
        assert study.makers == ("rater_1", "rater_2")
    assert [metric.id for metric in study.rubric.metrics] == ["label"]


def test_several_verdicts_on_an_item_need_a_column_that_says_whose(call, tmp_path: Path) -> None:
    people = [("id", "Huber", "Silva")]
    people += [(f"p{i}", label_of(i), label_of(i, 7)) for i in range(N)]
    rows = [
        (f"p{i}", llm, label_of(i, k)) for i in range(N) for llm, k in (("gpt-4", 9), ("o1", 5))
    ]
    labels = table(tmp_path / "people.csv", people)
    verdicts = table(tmp_path / "machine.csv", [("id", "LLM", "verdict"), *rows])
    code, out, err = call("decide", labels, verdicts, "--json")
    assert (code, {d["judge"] for d in json.loads(out)["decisions"]}) == (0, {"gpt-4", "o1"}), err
    anonymous = [(item, verdict) for item, _, verdict in rows]
    table(tmp_path / "machine.csv", [("id", "verdict"), *anonymous])
    code, _, err = call("decide", labels, verdicts)
    assert code == 2
    assert "--judge: several rows are about the same item ('p0' in rows 2 and 3)" in err
    copies = [*anonymous[::2], *anonymous[:6:2]]
    table(tmp_path / "machine.csv", [("id", "verdict"), *copies])
    with pytest.warns(UserWarning, match=r"kept once \(3 times, rows 62-64\)"):
        code, _, err = call("decide", labels, verdicts)
    assert code == 0, err


@pytest.mark.parametrize(
    ("head", "judge_head"),
    [("Review ID",) * 2, ("Review",) * 2, ("Fall Nr.",) * 2, ("Fall", "No.")],
)
def test_equal_ids_in_both_tables_say_which_item_a_row_is_about(
    head: str, judge_head: str, tmp_path: Path
) -> None:
    people = [(head, "Who", "Tone")]
    people += [(f"{i}x", who, label_of(i)) for i in range(N) for who in "ab"]
    judge = [(judge_head, "Tone"), *((f"{i}x", label_of(i)) for i in range(N))]
    inferred = read_two(tmp_path, people, judge)
    assert inferred.found.by == (head,)
    assert inferred.found.roles["annotator"] == "Who"
    assert inferred.judges[0].spec["item_id"] == {"column": judge_head}


def test_several_columns_say_it_together_and_repeated_rows_do_not_matter(tmp_path: Path) -> None:
    head = ("Question", "Model A", "Model B", "Turn")
    rows = [(i // 2, "vicuna", ("llama", "alpaca")[i // 2 % 2], i % 2) for i in range(2 * N)]
    sides = ("model_a", "model_b", "tie")
    people = [(*head, "Expert", "Winner")]
    people += [(*row, who, sides[i % 3]) for i, row in enumerate(rows) for who in "ab"]
    judge = [(*head, "GPT-4"), *((*row, sides[i % 3]) for i, row in enumerate(rows))]
    inferred = read_two(tmp_path, [*people, people[-1]], judge)
    assert inferred.found.by == ("Question", "Turn")
    assert read_two(tmp_path, people, judge, item=head).found.by == ("Question", "Turn")


def test_questions_that_repeat_once_are_still_rows_of_their_own(tmp_path: Path) -> None:
    rows = [("Query", "Dr. Abercrombie", "Crowd 1", "Crowd 2", "Crowd 3")]
    rows += [
        (f"What of {max(i, 1)}?", *(label_of(i, slip) for slip in (5, 0, 7, 0))) for i in range(N)
    ]
    inferred = read([table(tmp_path / "severity.csv", rows)], judge="Dr. Abercrombie")
    assert inferred.found.by == ()
    assert [*inferred.found.columns] == ["Crowd 1", "Crowd 2", "Crowd 3"]
    assert [judge.names for judge in inferred.judges] == [["Dr.-Abercrombie"]]


@pytest.mark.parametrize("as_frames", [False, True])
def test_a_head_that_names_a_model_is_the_judge_and_no_metric(
    as_frames: bool, tmp_path: Path
) -> None:
    people = [("Case no", "Dr Meyer", "Dr Chen")]
    people += [(i, label_of(i), label_of(i, 7)) for i in range(N)]
    judge = [("Case no", "Claude"), *((i, label_of(i, 9)) for i in range(N))]
    inferred = read_two(tmp_path, people, judge)
    if as_frames:
        frames = [pd.DataFrame(rows[1:], columns=rows[0]) for rows in (people, judge)]
        inferred = understand_given(*frames)
    assert [judge.names for judge in inferred.judges] == [["Claude"]]
    assert [metric.title for metric in inferred.rubric.metrics] == ["Label"]


def test_a_question_is_in_a_column_that_is_not_often_blank(tmp_path: Path) -> None:
    task = "Put this text into words that are plain, part {}."
    texts = ("Some text that stands here for now", "", "")
    judge = [("No.", "verdict"), *((i, label_of(i)) for i in range(N))]
    for n_replies, line in ((N, f"; {N // 2} questions in column"), (9, "; questions in column")):
        rows: list[Sequence[object]] = [("No.", "Task", "Input", "Reply", "Huber", "Silva")]
        for i in range(N):
            texts_of_row = (task.format(i // 2), texts[i % 3], f"Plain words, as {i % n_replies}.")
            rows.append((i, *texts_of_row, label_of(i), label_of(i, 7)))
        inferred = read_two(tmp_path, rows, judge)
        assert inferred.found.roles["question"] == "Task"
        assert any(line in text for text in inferred.lines)  # equal answers are one


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
    beside: bool, labels: Sequence[str], verdicts: Sequence[str], call, tmp_path: Path
) -> None:
    people: list[Sequence[object]] = [("id", "Huber", "Silva", "GPT-4")]
    people += [(f"p{i}", labels[i % 2], label_of(i, 7, labels), verdicts[i % 2]) for i in range(N)]
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


def test_blank_verdicts_count_where_somebody_labelled(tmp_path: Path) -> None:
    people = [("id", "who", "food", "noise")]
    for i in range(N):
        noise = label_of(i) if i % 2 else ""
        people += [(i, who, label_of(i), noise) for who in ("ann", "ben")]
    judge = [("id", "food", "noise")]
    for i in range(N):
        judge.append((i, "" if i == 4 else label_of(i), label_of(i) if i % 2 and i != 7 else ""))
    tables = table(tmp_path / "labels.csv", people), table(tmp_path / "gpt-4.csv", judge)
    with pytest.warns(UserWarning, match=r"blank cell, counted as failed \(2 times, rows 6, 9\)"):
        study = jb.study(*tables)
    assert sum("counted as failed" in note for note in study.notes) == 1


def test_labels_that_one_side_alone_uses_are_named_with_counts(tmp_path: Path) -> None:
    people = [("id", "Huber", "Silva")]
    people += [(i, *[("Safe", "Partial", "Unsafe")[i % 3]] * 2) for i in range(N)]
    verdicts = {"Safe": "Safe", "Partial": "Unsure", "Unsafe": "Unsafe"}
    judge = [("id", "gpt-4"), *((i, verdicts[row[1]]) for i, row in enumerate(people[1:]))]
    inferred = read_two(tmp_path, people, judge)
    (line,) = (line for line in inferred.lines if line.startswith("labels that one side never"))
    assert f"'Partial' (given {2 * N // 3} times by people, never by gpt-4)" in line
    assert f"'Unsure' (given by gpt-4 {N // 3} times, never by people)" in line
    same = read_two(tmp_path, people, [("id", "gpt-4"), *(row[:2] for row in people[1:])])
    assert not any("one side never" in line for line in same.lines)


def test_the_option_for_the_order_can_be_pasted(tmp_path: Path) -> None:
    labels = ("it's fine", "bad")
    people = [("id", "Huber", "Silva"), *((i, labels[i % 2], labels[1 - i % 2]) for i in range(N))]
    judge = [("id", "gpt-4"), *(row[:2] for row in people[1:])]
    line = read_two(tmp_path, people, judge).lines[-1]
    words = shlex.split(line[line.index("--order") :])
    assert words[:2] == ["--order", "it's fine < bad"]
    ordered = read_two(tmp_path, people, judge, order=words[1:2])
    assert ordered.rubric.metrics[0].most_severe == "bad"


def test_yes_and_no_order_labels_of_1_and_0(tmp_path: Path) -> None:
    people = [("id", "rater A", "rater B"), *((i, i % 2, i % 3 % 2) for i in range(N))]
    judge = [("id", "gpt-4"), *((i, i % 2) for i in range(N))]
    metric = read_two(tmp_path, people, judge, order=["no < yes"]).rubric.metrics[0]
    assert (metric.kind, metric.label_texts) == ("ordinal", ("0", "1"))
    with pytest.raises(jb.SetupError, match="found good, evil; allowed: as in --order '0 < 1'"):
        read_two(tmp_path, people, judge, order=["good < evil"])


def test_scores_where_annotators_gave_labels_are_an_error(tmp_path: Path) -> None:
    labelled = [("id", "Meier", "Lenz"), *((i, label_of(i), label_of(i, 7)) for i in range(N))]
    judge = [("id", "gpt-4"), *((i, 1 + i / 6) for i in range(N))]
    with pytest.raises(jb.SetupError, match="holds scores, and annotators gave labels"):
        read_two(tmp_path, labelled, judge)


def test_a_metric_without_a_name_of_its_own_has_that_of_the_file(tmp_path: Path) -> None:
    people = [("id", "Huber", "Silva"), *((i, label_of(i), label_of(i, 7)) for i in range(N))]
    judge = table(tmp_path / "gpt-4.csv", [("id", "gpt-4"), *((i, label_of(i)) for i in range(N))])
    for name, title in (("xstest_labels.csv", "xstest"), ("A_labels.csv", "Label")):
        inferred = read([table(tmp_path / name, people), judge])
        assert [metric.title for metric in inferred.rubric.metrics] == [title]


def test_labels_under_the_name_of_a_judge_are_pointed_out(tmp_path: Path) -> None:
    rows = [(i, label_of(i)) for i in range(N)]
    inferred = read_two(tmp_path, [("id", "gpt-4o"), *rows], [("id", "claude"), *rows])
    assert any("gpt-4o is named like a judge" in line for line in inferred.lines)


def test_a_column_of_replies_can_be_named_as_the_verdicts(tmp_path: Path) -> None:
    people = [("id", "Huber", "Silva"), *((i, label_of(i), label_of(i, 7)) for i in range(N))]
    replies = [("id", "output"), *((i, label_of(i, 9)) for i in range(N))]
    paths = table(tmp_path / "labels.csv", people), table(tmp_path / "gpt-4.csv", replies)
    inferred = read(paths, judge="output")
    assert [judge.spec["metrics"] for judge in inferred.judges] == [{"label": "output"}]


def test_tables_are_aligned_as_they_are_decided_on(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"found \"I'm sorry, but I can't.\""):
        alignment = jb.align(*surnames(tmp_path))
    assert alignment.score("accuracy", "gpt-4", "safety").value is not None
    assert alignment.table().notna().any().all()
    assert "weighted_kappa" not in set(alignment.to_frame().statistic)
    with pytest.raises(jb.SetupError, match="is none; found scores"):
        alignment.results.to_frame("scores")


def test_a_table_that_changed_is_read_again(tmp_path: Path) -> None:
    files = surnames(tmp_path)
    before = read(files).rubric.metrics[0].label_texts
    for path in files:
        path.write_text(path.read_text().replace("Unsure", "Unknow"))
    after = read(files).rubric.metrics[0].label_texts
    assert [text.replace("Unsure", "Unknow") for text in before] == [*after]


def test_the_reasons_of_a_judge_stand_with_each_item(tmp_path: Path) -> None:
    people, judge = surnames(tmp_path)
    reasons = pd.read_csv(judge).assign(Explanation=[f"It names dose {i}." for i in range(N)])
    reasons.to_csv(judge, index=False)
    study = jb.study(people, judge)
    named = reasons.rename(columns={"Prompt ID": "item_id", "Explanation": "rationale"})
    labels = pd.read_csv(people).rename(columns={"prompt_id": "item_id"})
    labels = labels.melt("item_id", ["Huber", "Silva"], "annotator", "safety")
    rubric = jb.Rubric.from_labels({"safety": LABELS})
    strict = jb.study(labels, named.drop(columns="tokens"), rubric=rubric)
    for either in (study, strict):
        (real,) = either.real_judges
        assert real.verdicts["p3"].rationale == "It names dose 3."
    page = jb.report(study, tmp_path / "out")["html"].read_text("utf-8")
    assert "It names dose 3." in page
