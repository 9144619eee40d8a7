"""`judgebench init`: files of a benchmark from the columns of a user's file."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from sheets import Rows, printed, table, workbook

import judgebench as jb
from judgebench.features import FEATURES

NAMES = ["bench.yaml", "layout.yaml", "rubric.yaml"]


def written(folder: Path) -> dict[str, Any]:
    """The YAML files, and the rows of the templates."""
    found: dict[str, Any] = {p.name: yaml.safe_load(p.read_text()) for p in folder.glob("*.yaml")}
    for path in folder.glob("*-template.csv"):
        with path.open(newline="") as file:
            found[path.name] = list(csv.reader(file))
    return found


@pytest.fixture
def start(call, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Run `init`, then `check` on what it wrote; returns what it printed and what it wrote."""

    def run(file: Path, *options: object) -> tuple[str, dict[str, Any]]:
        folder = tmp_path / "made"
        code, out, err = call("init", file, "--to", folder, *options)
        assert (code, err) == (0, ""), err
        code, told, err = call("check", *(folder / name for name in NAMES))
        assert (code, err) == (0, ""), told
        assert "No errors." in told
        return out, written(folder)

    return run


def columns(found: dict[str, Any]) -> dict[str, str]:
    (sheet,) = found["layout.yaml"]["tables"]
    return dict(sheet["columns"])


WIDE = [
    ("ID", "Prompt", "Response", "Model", "Rater", "Harm level", "Tone (1-10)", "Language"),
    ("a1", "Ibuprofen?", "Ask your pharmacist.", "m1", "kim", "low", "1", "en"),
    ("a1", "Ibuprofen?", "Ask your pharmacist.", "m1", "lee", "mild", "2", "en"),
    ("a2", "Ibuprofen?", "As much as you like.", "m2", "kim", "severe", "10", "de"),
    ("a2", "Ibuprofen?", "As much as you like.", "m2", "lee", "severe", "10", "de"),
    ("a3", "Tea?", "In moderation.", "m1", "kim", "low", "1", "en"),
    ("a3", "Tea?", "In moderation.", "m1", "lee", "low", "", "en"),
]
BOTH = ("--column", "Harm level=label", "--column", "Tone (1-10)=label")


def test_what_is_open_is_asked_and_nothing_is_written(call, start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = table(tmp_path / "ours.csv", WIDE)
    code, _, err = call("init", file)
    assert (code, [*tmp_path.glob("*.yaml")]) == (2, [])
    assert "ours.csv: which columns hold labels? Harm level, Tone (1-10)" in err
    assert err.count("--column") == 6
    _, found = start(file, *printed(err, "Harm level, Tone (1-10): a label"))
    assert columns(found)["Tone (1-10)"] == "label tone_1_10"


def test_a_wide_file_of_answers_and_labels(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    out, found = start(table(tmp_path / "ours.csv", WIDE), *BOTH)
    assert columns(found) == {
        "ID": "item", "Prompt": "question", "Response": "text", "Model": "system",
        "Rater": "annotator", "Harm level": "label harm_level", "Tone (1-10)": "label tone_1_10",
        "Language": "ignored",
    }  # fmt: skip
    harm, tone = found["rubric.yaml"]["metrics"]
    assert [label["text"] for label in harm["labels"]] == ["low", "mild", "severe"]
    assert [label["text"] for label in tone["labels"]] == ["1", "2", "10"]  # by size, not as texts
    assert "labels-template.csv" not in found  # people have labelled
    assert "sort the labels from the least to the most severe" in out
    assert f"judgebench check {tmp_path / 'made' / 'bench.yaml'}" in out
    text = (tmp_path / "made" / "rubric.yaml").read_text()
    assert "# ORDER THE LABELS. Which label is worse than which cannot be guessed." in text
    ordinal = text.replace("kind: nominal", "kind: ordinal")
    (tmp_path / "made" / "rubric.yaml").write_text(ordinal)
    bench = jb.load_bench(tmp_path / "made" / "bench.yaml")
    assert bench.rubric.metrics[0].most_severe == "severe"
    bench.close()


def test_where_there_are_no_texts_none_are_invented(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("item", "coder", "tone"), ("x", "a", "good"), ("x", "b", "bad"), ("y", "a", "good")]
    out, found = start(table(tmp_path / "labels.tsv", rows, "\t"))
    assert columns(found) == {"item": "item", "coder": "annotator", "tone": "label tone"}
    bench = jb.load_bench(tmp_path / "made" / "bench.yaml")
    assert [answer.text for answer in bench.dataset.answers] == ["", ""]
    bench.close()
    assert sorted(found) == NAMES
    assert "Give a judge's verdicts as well; or, for a judge that is called" in out


def test_metrics_of_a_long_file_may_be_spelt_in_several_ways(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels = [("Tone", "good"), ("Harm", "No"), ("Tone", "bad"), ("tone", "good")]
    lines = [
        {"example_id": i, "criterion": metric, "score": score, "coder": f"c{i}"}
        for i, (metric, score) in enumerate(labels)
    ]
    file = tmp_path / "long.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, found = start(file)
    assert [*columns(found).values()] == ["item", "metric", "label", "annotator"]
    tone, harm = found["rubric.yaml"]["metrics"]
    assert [label["text"] for label in tone["labels"]] == ["good", "bad"]
    assert harm["labels"][0]["text"] == "No"
    assert len(harm["labels"]) == 2  # a metric needs two


@pytest.mark.parametrize(
    ("first", "second", "metric", "who"),
    [
        ("tone_rater1", "tone_rater2", "tone", ("rater1", "rater2")),
        ("annotator-1 tone", "annotator-2 tone", "tone", ("annotator-1", "annotator-2")),
        ("rating_1", "rating_2", "rating", ("annotator-1", "annotator-2")),
    ],
)
@pytest.mark.parametrize("texts", [True, False], ids=["with answers", "labels alone"])
def test_columns_may_be_named_by_annotators(
    start, tmp_path: Path, texts: bool, first: str, second: str, metric: str,
    who: tuple[str, ...],
) -> None:  # type: ignore[no-untyped-def]  # fmt: skip
    said = ("good", "bad")
    rows = [("id", "text" if texts else "split", first, second)]
    rows += [(f"i{i}", f"t{i}", said[i % 2], said[i // 2 % 2]) for i in range(8)]
    rows += [("i8", "t8", "good", "awful"), ("i9", "t9", "good", "awful")]
    _, found = start(table(tmp_path / "wide.csv", rows))
    assert [columns(found)[c] for c in (first, second)] == [f"label {metric} by {w}" for w in who]
    (one,) = found["rubric.yaml"]["metrics"]
    assert [label["text"] for label in one["labels"]] == ["good", "bad", "awful"]


def test_an_id_of_the_question_is_an_item_with_the_system(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("id", "system", "answer", "ok")]
    rows += [
        (f"q{i}", s, f"{s} says {i}", "yes" if i % 2 else "no") for i in range(4) for s in "ab"
    ]
    _, found = start(table(tmp_path / "q.csv", rows))
    assert columns(found)["system"] == "item system"
    bench = jb.load_bench(tmp_path / "made" / "bench.yaml")
    assert {(a.item_id, a.system) for a in bench.dataset.answers} == {
        (f"q{i} · {s}", s) for i in range(4) for s in "ab"
    }
    bench.close()


def test_answers_alone_get_an_example_and_a_template(start, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "answers.json"
    answers = [{"uuid": f"u{i}", "output": f"text {i}"} for i in range(3)]
    file.write_text(json.dumps(answers))
    out, found = start(file)
    assert sorted(found) == ["bench.yaml", "labels-template.csv", "layout.yaml", "rubric.yaml"]
    assert "replace the example by your metrics and labels" in out
    template = tmp_path / "made" / "labels-template.csv"
    template.write_text(template.read_text().replace("your-name,", "ann,Good"))
    bench = tmp_path / "made" / "bench.yaml"
    bench.write_text(
        bench.read_text().replace("[layout.yaml]", "[layout.yaml, labels-template.csv]")
    )
    code, told, _ = call("check", bench)
    assert (code, "3 human labels" in told) == (0, True)
    if "annotate" not in FEATURES:
        return
    # The command that collects labels is named, and works as it is printed.
    [study] = re.findall(r"`({name: labels, items: .*annotators: \[ann, ben\]})`", out)
    (tmp_path / "annotate.yaml").write_text(study)
    study_dir = tmp_path / "study"
    code, told, err = call("annotate", "init", tmp_path / "annotate.yaml", "--to", study_dir)
    assert (code, "3 items" in told) == (0, True), err


def test_a_confirmed_question_is_still_its_text(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("ID", "System prompt", "User question", "Reply")]
    rows += [(f"t{i}", "Be kind.", f"May I swim on day {i // 2}?", f"Wait {i}.") for i in range(20)]
    _, found = start(table(tmp_path / "replies.csv", rows), "--question", "User question")
    assert columns(found) == {
        "ID": "item", "System prompt": "ignored", "User question": "group question", "Reply": "text"
    }  # fmt: skip
    bench = jb.load_bench(tmp_path / "made" / "bench.yaml")
    assert bench.dataset.answers[2].question == bench.dataset.answers[2].group
    bench.close()


def test_answers_in_a_table_of_their_own_are_not_missing(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    said = [(f"a{i}", who, ("ok", "bad")[i % 2]) for i in range(9) for who in ("ann", "ben")]
    labels = table(tmp_path / "labels.csv", [("ID", "annotator", "safety"), *said])
    texts = [(f"a{i}", f"Wait for {i} days and then ask your doctor.") for i in range(9)]
    answers = table(tmp_path / "answers.csv", [("ID", "Reply"), *texts])
    code, out, _ = call("init", answers, labels)
    assert code == 0
    assert "hold no answers" not in out
    assert f"In {tmp_path / 'bench.yaml'}, name the judges." in out


def test_odd_names_and_labels_come_through(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels = ["No", "null", "1: #x", "- {a}", "ja, 'gut'", "重要 😀", 'say "hi"', "~x"]
    heads = ("a: b # c", "- [重]", "A b", "a B!")
    rows = [("id", "text", *heads)]
    for i in range(24):
        odd, even = labels[i % 8], labels[(i + 1) % 8]
        rows.append((f"i{i}", f"t{i}", odd, even, *(("x", "true"), ("xy", "false"))[i % 2]))
    options = [word for head in heads for word in ("--column", f"{head}=label {head}")]
    _, found = start(table(tmp_path / "odd name (1).csv", rows), *options, "--spell", "null=null")
    metrics = found["rubric.yaml"]["metrics"]
    assert [m["title"] for m in metrics] == [*heads]
    assert [m["id"] for m in metrics] == ["a_b_c", "metric", "a_b", "a_b_2"]
    assert [label["text"] for label in metrics[0]["labels"]] == labels


def test_nothing_is_overwritten(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = table(tmp_path / "ours.csv", WIDE)
    for name in ("rubric.yaml", "bench.yaml"):
        (tmp_path / name).write_text("mine")
    code, out, err = call("init", file, *BOTH)
    assert (code, out) == (2, "")
    assert f"{tmp_path / 'bench.yaml'}: exists and is not overwritten" in err
    assert f"{tmp_path / 'rubric.yaml'}: exists and is not overwritten" in err
    assert (tmp_path / "rubric.yaml").read_text() == "mine"
    assert not (tmp_path / "layout.yaml").exists()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("id", "when"), ("x", "1"), ("y", "2")], "holds neither texts to judge nor labels"),
        ([("id", "text", "ok"), ("x", "t")], "has 2 cells where the header has 3"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
    rows: Rows,
    expected: str,
) -> None:
    code, _, err = call("init", table(tmp_path / "ours.csv", rows), "--to", tmp_path / "new")
    assert code == 2
    assert expected in err
    assert "ours.csv" in err
    assert not list((tmp_path / "new").glob("*"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", "b"), ("1 x", "2"), ("1 x", "2")], "no column says which item a row is about"),
        ([("id", "ok"), ("x", "no"), ("x", "yes"), ("y", "no"), ("y", "yes")],
         "rows 2 and 3 are both about x"),
        ([("id", "text", "rater", "ok"), ("x", "t", "a", "no"), ("x", "t", "a", "yes"),
          ("y", "u", "a", "no"), ("z", "v", "b", "yes")], "rows 2 and 3 are both about x · a"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_told_apart_are_asked_about(
    call,  # type: ignore[no-untyped-def]
    tmp_path: Path,
    rows: Rows,
    expected: str,
) -> None:
    code, _, err = call("init", table(tmp_path / "ours.csv", rows), "--to", tmp_path / "new")
    assert (code, expected in err) == (2, True), err
    assert not (tmp_path / "new").exists()


def test_it_is_a_function_as_well(tmp_path: Path) -> None:
    both = {"Harm level": "label", "Tone (1-10)": "label"}
    started = jb.init(table(tmp_path / "ours.csv", WIDE), tmp_path / "mine", both)
    assert [path.name for path in started.files] == NAMES
    assert any("metric Harm level: low, mild, severe" in line for line in started.found)
    assert "Next:" in repr(started)


def test_verdicts_of_a_model_beside_labels_are_a_judge(call, start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels = ["safe", "risky", "harmful"]
    header = ("id", "prompt", "annotation_1", "annotation_2", "gpt4_label", "claude-3 verdict")
    rows = [
        (f"q{n}", f"Question {n}?", labels[n % 3], labels[n % 3], labels[n % 2], labels[n % 3])
        for n in range(40)
    ]
    rows += [("q40", "Why?", "safe", "safe", "I'm sorry, but I can't help with that.", "safe")]
    _, found = start(table(tmp_path / "ours.csv", [header, *rows]), "--failed", "*")
    assert found["bench.yaml"]["judges"] == [
        {"name": "gpt4", "verdicts": "layout.yaml"}, {"name": "claude-3", "verdicts": "layout.yaml"}
    ]  # fmt: skip
    assert columns(found)["claude-3 verdict"] == "verdict annotation by claude-3"
    bench = tmp_path / "made" / "bench.yaml"
    code, out, _ = call("run", bench, "--run", tmp_path / "run", "--json")
    assert code == 0
    outcomes = {d["judge"]: d["would_be"] for d in json.loads(out)["decisions"]}
    assert outcomes == {"claude-3": None, "gpt4": "DO NOT USE"}


def test_of_several_sheets_the_one_with_labels_is_read(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    ratings = [("id", "question", "answer", "rater", "quality")]
    ratings += [
        (f"q{i}", "Safe?", f"Yes, {i}", who, quality)
        for i in range(12)
        for who, quality in (("kim", ("good", "bad")[i % 2]), ("lee", ("good", "bad")[i // 6]))
    ]
    sheets = {
        "Read me": [("About this workbook",), ("Ratings of the pilot study, in spring.",)],
        "Ratings, final": ratings,
    }
    _, found = start(workbook(tmp_path / "book.xlsx", **sheets))
    labelled = {t["sheet"]: t["columns"] for t in found["layout.yaml"]["tables"]}
    assert labelled["Ratings, final"]["quality"] == "label quality"
    assert set(labelled.get("Read me", {}).values()) <= {"ignored"}
