"""From tables as people have them to a decision, in at most two commands."""

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest
from sheets import LABELS, N, asked, jsonl, label_of, printed, read_two, table, workbook
from sheets import two as two_files

import judgebench as jb


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


def two_sheets(folder: Path) -> list[Path]:
    people = [["id", "Huber", "Silva"]]
    people += [[f"p{i}", label_of(i), label_of(i, 7)] for i in range(N)]
    judge = [["id", "verdict"], *([f"p{i}", label_of(i, 9)] for i in range(N))]
    return [workbook(folder / "both.xlsx", **{"Humans": people, "GPT-4": judge})]


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
            people.append((*row, "a", sides[i % 3]))
            people.append((*row, "b", sides[(i + (i % 7 == 0)) % 3]))
            judge.append((*row, "gpt4_pair", sides[i % 3] if i % 5 else "tie (inconsistent)"))
    return [table(folder / "human.csv", people), table(folder / "gpt4_pair.csv", judge)]


Shape = Callable[[Path], list[Path]]
# Who labelled, who judged, and what the questions are answered with.
SHAPES: dict[Shape, tuple[set[str], set[str], list[str]]] = {
    surnames: ({"Huber", "Okafor", "Silva"}, {"gpt-4"}, ["says that the judge failed"]),
    long: ({"kim", "lee"}, {"gpt-4"}, []),
    one_sheet: ({"annotator-1", "annotator-2"}, {"gpt4", "strmatch"}, [": a judge's label"]),
    two_sheets: ({"Huber", "Silva"}, {"GPT-4"}, []),
    nested: ({"huber", "silva"}, {"gpt4"}, []),
    annotations: ({"huber", "silva"}, {"gpt4"}, []),
    pairs: ({"a", "b"}, {"gpt4_pair"}, []),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_tables_become_a_decision_and_files_that_decide_the_same(
    shape: Shape, call, tmp_path: Path
) -> None:
    command = ["decide", *shape(tmp_path)]
    people, judges, answers = SHAPES[shape]
    for means in answers:
        code, _, err = call(*command)
        assert code == 2
        command += printed(err, means)
    bench = tmp_path / "bench"
    code, out, err = call(*command, "--blind", "yes", "--json", "--save", bench)
    assert code == 0, err
    first = json.loads(out)["decisions"]
    assert {decision["judge"] for decision in first} == judges
    assert set(jb.study(bench / "layout.yaml").makers) == people
    run = jb.run(bench / "bench.yaml", tmp_path / "run")
    for again in (jb.decide(bench / "layout.yaml"), jb.decide(run)):
        for one, other in zip(first, again.records()["decisions"], strict=True):
            assert one["accuracy"]["value"] == pytest.approx(other["accuracy"]["value"])
            assert {c["key"]: c["state"] for c in one["conditions"]} == {
                c["key"]: c["state"] for c in other["conditions"]
            }


def test_a_column_on_which_nobody_disagrees_may_be_a_metric() -> None:
    people = pd.DataFrame(
        [(i, who, 1 + i % 3, 1 + (i + k) % 3) for i in range(30) for k, who in enumerate("ab")],
        columns=["item", "rater", "fluency", "coherence"],
    )
    codes = [1.0 + i % 3 if i != 4 else float("nan") for i in range(30)]
    judge = pd.DataFrame({"item": range(30), "fluency": [*"123"] * 10, "coherence": codes})
    with pytest.raises(jb.Unsettled, match="nobody ever disagrees on fluency") as unsettled:
        jb.study(people, judge)
    readings = unsettled.value.questions[0].readings
    columns = {
        "judge": "gpt-4",
        **next(r.columns for r in readings if "fluency: a label" in r.means),
    }
    with pytest.warns(UserWarning, match=r"^verdicts:6: blank cell, counted as failed"):
        (real,) = jb.study(people, judge, columns=columns).real_judges
    assert (real.name, real.verdicts["7"].labels["coherence"]) == ("gpt-4", "2")


def test_answers_in_a_table_of_their_own_say_the_questions(call, tmp_path: Path) -> None:
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


def test_equal_ids_in_both_tables_say_which_item_a_row_is_about(tmp_path: Path) -> None:
    people = [("Fall", "Who", "Tone")]
    people += [(f"{i}x", who, label_of(i)) for i in range(N) for who in "ab"]
    judge = [("No.", "Tone"), *((f"{i}x", label_of(i)) for i in range(N))]
    labels, verdicts = read_two(tmp_path, people, judge).sheets
    assert (labels.of("item"), labels.of("annotator")) == (["Fall"], ["Who"])
    assert verdicts.of("item") == ["No."]


def test_a_question_that_repeats_is_asked_about(tmp_path: Path) -> None:
    rows = [("Query", "Dr. Abercrombie", "Crowd 1", "Crowd 2", "Crowd 3")]
    rows += [
        (f"What of {max(i, 1)}?", *(label_of(i, slip) for slip in (5, 0, 7, 0))) for i in range(N)
    ]
    paths, columns = [table(tmp_path / "severity.csv", rows)], {"Dr. Abercrombie": "verdict"}
    for asks, means in (
        ("no column says which item", "Query: which answer"),
        ("it has several rows", "last"),
    ):
        question = asked(paths, **columns)
        assert question.asks.startswith(asks)
        columns |= next(r.columns for r in question.readings if means in r.means)
    study = jb.study(*paths, columns=columns)
    assert (study.makers, len(study.answers)) == (("Crowd 1", "Crowd 2", "Crowd 3"), N - 1)


@pytest.mark.parametrize(
    ("labels", "verdicts"),
    [
        (("no", "Yes"), ("false", "true")),
        (("No", "Yes"), ("n", "Y")),
    ],
)
def test_yes_and_no_are_the_same_in_other_words(
    labels: Sequence[str], verdicts: Sequence[str], tmp_path: Path
) -> None:
    rows: list[Sequence[object]] = [("id", "Huber", "Silva", "GPT-4")]
    rows += [(f"p{i}", labels[i % 2], label_of(i, 7, labels), verdicts[i % 2]) for i in range(N)]
    one = [table(tmp_path / "labels.csv", rows)]
    apart = two_files(tmp_path / "apart", [row[:3] for row in rows], [row[::3] for row in rows])
    for place, tables in (("one", one), ("two", apart)):
        jb.init(tables, tmp_path / place)
        for study in (jb.study(*tables), jb.study(tmp_path / place / "layout.yaml")):
            decisions = jb.decide(study)
            assert decisions.shares("GPT-4", study.rubric.metrics[0].id).accuracy.value == 1


@pytest.mark.parametrize(
    ("people", "judge"),
    [
        (("Safe", "Partial", "Unsafe"), ("Safe", "Unsure", "Unsafe")),
        (("Grade I", "Grade III"), ("Grade I", "Grade II")),
        (("1_full_compliance", "2. Refusal"), ("Full compliance", "refusal")),
        (("1,0", "2,0"), ("1.0", "2.0")),
    ],
)
def test_labels_that_people_never_gave_are_asked_about(
    people: Sequence[str], judge: Sequence[str], tmp_path: Path
) -> None:
    columns = {"spell": {text: text for text in people}}  # all of them are labels
    rows = [(i, people[i % len(people)], judge[i % len(people)]) for i in range(N)]
    files = two_files(tmp_path, [("id", "Kim", "Jo"), *((i, x, x) for i, x, _ in rows)],
                      [("id", "gpt-4"), *((i, x) for i, _, x in rows)])  # fmt: skip
    odd = next(text for text in judge if text not in people)
    question = asked(files, **columns)
    assert question.table == "gpt-4.csv"
    assert f"of gpt-4 holds {odd!r}" in question.asks
    for place in range(len(people)):
        if judge[place] not in people:
            columns["spell"][judge[place]] = people[place]
    assert jb.decide(*files, columns=columns).shares("gpt-4", "label").accuracy.value == 1


def test_the_option_for_the_order_can_be_pasted(call, tmp_path: Path) -> None:
    labels = ("it's fine", "bad")
    people = [("id", "Huber", "Silva"), *((i, *2 * (labels[i % 2],)) for i in range(2 * N))]
    paths = two_files(tmp_path, people, [("id", "gpt-4"), *(row[:2] for row in people[1:])])
    (decision,) = jb.decide(*paths)
    options = shlex.split(decision.advice.split("`")[1])
    code, out, err = call("decide", *paths, *options)
    assert (code, "metric Label: it's fine < bad" in out) == (0, True), err


def test_yes_and_no_order_labels_of_1_and_0(tmp_path: Path) -> None:
    people = [("id", "rater A", "rater B"), *((i, i % 2, i % 3 % 2) for i in range(N))]
    judge = [("id", "gpt-4"), *((i, i % 2) for i in range(N))]
    (metric,) = read_two(tmp_path, people, judge, order="no < yes").rubric.metrics
    assert (metric.kind, metric.label_texts) == ("ordinal", ("0", "1"))
    with pytest.raises(jb.SetupError, match=r"leaves out labels .*: 0, 1; found good < evil"):
        read_two(tmp_path, people, judge, order="good < evil")


def test_the_reasons_of_a_judge_stand_with_each_item(tmp_path: Path) -> None:
    people, judge = surnames(tmp_path)
    reasons = pd.read_csv(judge).assign(Explanation=[f"It names dose {i}." for i in range(N)])
    reasons.to_csv(judge, index=False)
    study = jb.study(people, judge, columns={"failed": "*"})
    assert study.real_judges[0].verdicts["p3"].rationale == "It names dose 3."
    page = jb.report(study, tmp_path / "out")["html"].read_text("utf-8")
    assert "It names dose 3." in page
