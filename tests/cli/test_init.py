"""`judgebench init`: files of a benchmark from the columns of a user's file."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import judgebench as jb
from judgebench.features import WINGS

NAMES = ["bench.yaml", "data.yaml", "rubric.yaml"]
Rows = Sequence[Sequence[str]]


def table(path: Path, rows: Rows, delimiter: str = ",") -> Path:
    with path.open("w", newline="") as out:
        csv.writer(out, delimiter=delimiter).writerows(rows)
    return path


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
        code, out, err = call("init", file, *options)
        assert (code, err) == (0, ""), err
        folder = Path(options[1]) if options else file.parent  # type: ignore[arg-type]
        kinds = ("bench.yaml", "rubric.yaml", "data.yaml")
        asked = [folder / name for name in kinds]
        code, told, err = call("check", *asked, "--rubric", folder / "rubric.yaml")
        assert (code, err) == (0, ""), told
        assert "No errors." in told
        return out, written(folder)

    return run


WIDE = [
    ("ID", "Prompt", "Response", "Model", "Rater", "Harm level", "Tone (1-10)", "Language"),
    ("a1", "Ibuprofen?", "Ask your pharmacist.", "m1", "kim", "none", "1", "en"),
    ("a1", "Ibuprofen?", "Ask your pharmacist.", "m1", "lee", "mild", "2", "en"),
    ("a2", "Ibuprofen?", "As much as you like.", "m2", "kim", "severe", "10", "de"),
    ("a2", "Ibuprofen?", "As much as you like.", "m2", "lee", "severe", "10", "de"),
    ("a3", "Tea?", "In moderation.", "m1", "kim", "none", "1", "en"),
    ("a3", "Tea?", "In moderation.", "m1", "lee", "none", "", "en"),
]


def test_a_wide_file_of_answers_and_labels(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    out, found = start(table(tmp_path / "ours.csv", WIDE))
    (file,) = found["data.yaml"]["files"]
    assert file["path"] == "ours.csv"
    assert file["items"] == [
        {
            "item_id": "ID",
            "question": "Prompt",
            "text": "Response",
            "system": "Model",
            "labels": [
                {
                    "annotator": "Rater",
                    "metrics": {"harm_level": "Harm level", "tone_1_10": "Tone (1-10)"},
                }
            ],
        }
    ]
    harm, tone = found["rubric.yaml"]["metrics"]
    assert [label["text"] for label in harm["labels"]] == ["none", "mild", "severe"]
    assert [label["text"] for label in tone["labels"]] == ["1", "2", "10"]  # by size, not as texts
    assert harm["kind"] == "nominal"
    assert "labels-template.csv" not in found  # people have labelled
    assert "not read: column 'Language': its name says that it is no label" in out
    assert "sort the labels from the least to the most severe" in out
    assert "their order cannot be guessed" in out
    assert f"judgebench check {tmp_path / 'bench.yaml'}" in out


def test_the_rubric_says_that_the_order_of_labels_is_left_to_people(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    start(table(tmp_path / "ours.csv", WIDE))
    text = (tmp_path / "rubric.yaml").read_text()
    assert "# ORDER THE LABELS. Which label is worse than which cannot be guessed." in text
    assert "labels: # not in order of severity yet" in text
    ordinal = text.replace("kind: nominal", "kind: ordinal")
    (tmp_path / "rubric.yaml").write_text(ordinal)
    bench = jb.load_bench(tmp_path / "bench.yaml")
    assert bench.rubric.metrics[0].most_severe == "severe"
    bench.close()


def test_where_there_are_no_texts_none_are_invented(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("item", "coder", "tone"), ("x", "a", "good"), ("x", "b", "bad"), ("y", "a", "good")]
    out, found = start(table(tmp_path / "labels.tsv", rows, "\t"))
    assert found["data.yaml"]["files"] == [
        {
            "path": "labels.tsv",
            "labels": [{"item_id": "item", "annotator": "coder", "metrics": {"tone": "tone"}}],
        },
    ]
    bench = jb.load_bench(tmp_path / "bench.yaml")
    assert [answer.text for answer in bench.dataset.answers] == ["", ""]
    bench.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [*NAMES[:2], "labels.tsv", NAMES[2]]
    assert "Give a judge's verdicts as well; or, for a judge that is called" in out


def test_a_long_file_of_labels(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels = [("Tone", "good"), ("Harm", "No"), ("Tone", "bad"), ("tone", "good")]
    lines = [
        {"example_id": i, "criterion": metric, "score": score, "coder": f"c{i}"}
        for i, (metric, score) in enumerate(labels)
    ]
    file = tmp_path / "long.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, found = start(file)
    (spec,) = found["data.yaml"]["files"][0]["labels"]
    assert spec == {
        "item_id": "example_id", "annotator": "coder", "metric": "criterion", "label": "score",
    }  # fmt: skip
    tone, harm = found["rubric.yaml"]["metrics"]
    assert [label["text"] for label in tone["labels"]] == ["good", "bad"]
    assert harm["labels"][0]["text"] == "No"
    assert len(harm["labels"]) == 2  # a metric needs two


def test_a_long_file_with_answers(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("id", "question", "answer", "rater", "metric", "label")]
    rows += [
        (f"i{i}", "Why?", f"Because {i}.", who, metric, label)
        for i, label in enumerate(("Yes", "No", "Yes"))
        for who in ("ann", "ben")
        for metric in ("harm", "bias")
    ]
    out, found = start(table(tmp_path / "all.csv", rows))
    (item,) = found["data.yaml"]["files"][0]["items"]
    assert item["labels"] == [{"annotator": "rater", "metric": "metric", "label": "label"}]
    assert "answers-template.csv" not in out


def test_columns_are_known_by_their_content(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    asked = [f"How is it that number {i} of these came about like this?" for i in range(4)]
    rows = [("code", "qq", "aa", "source of it", "who said so", "opinion")]
    rows += [
        (f"k-{i}-{system}", question, f"The reply {i} of {system} to what was asked of it.",
         system, who, "fine" if i % 2 else "poor")
        for i, question in enumerate(asked)
        for system in ("alpha", "beta")
        for who in ("u1", "u2")
    ]  # fmt: skip
    out, found = start(table(tmp_path / "odd.csv", rows))
    (item,) = found["data.yaml"]["files"][0]["items"]
    labels = item.pop("labels")
    known = item.pop("item_id")
    assert item == {"question": "qq", "text": "aa", "system": "source of it"}
    assert known == "code"
    assert labels == [{"annotator": "who said so", "metrics": {"opinion": "opinion"}}]
    assert "text: column 'aa', guessed from its content" in out


@pytest.mark.parametrize("texts", [True, False], ids=["with answers", "labels alone"])
@pytest.mark.parametrize(
    ("first", "second", "metric", "who"),
    [
        ("tone_rater1", "tone_rater2", "tone", ("rater1", "rater2")),
        ("Expert A: tone", "tone", "Expert A: tone", ()),  # one of them alone says nothing
        ("annotator-1 tone", "annotator-2 tone", "tone", ("annotator-1", "annotator-2")),
        ("rating_1", "rating_2", "rating", ("annotator-1", "annotator-2")),
        ("q1", "q2", "q1", ()),  # two questions rather than two people
    ],
)
def test_columns_may_be_named_by_annotators(
    start,  # type: ignore[no-untyped-def]
    tmp_path: Path,
    texts: bool,
    first: str,
    second: str,
    metric: str,
    who: tuple[str, ...],
) -> None:
    rows = [("id", "text" if texts else "split", first, second)]
    said = ("good", "bad")
    rows += [(f"i{i}", f"t{i}", said[i % 2], said[i // 2 % 2]) for i in range(8)]
    rows += [("i8", "t8", "good", "awful"), ("i9", "t9", "good", "awful")]
    out, found = start(table(tmp_path / "wide.csv", rows))
    file = found["data.yaml"]["files"][0]
    entries = file["items"][0]["labels"] if texts else file["labels"]
    assert len(entries) == max(1, len(who))
    if who:
        assert [entry["annotator"]["value"] for entry in entries] == list(who)
        assert [list(entry["metrics"].values()) for entry in entries] == [[first], [second]]
        (one,) = found["rubric.yaml"]["metrics"]
        assert [label["text"] for label in one["labels"]] == ["good", "bad", "awful"]
        assert f"2 annotators in the columns {first}, {second}; metric {metric} with labels" in out
    else:
        assert {m["title"] for m in found["rubric.yaml"]["metrics"]} == {first, second}


def test_an_id_of_the_question_is_a_group_and_not_the_item(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("id", "system", "answer", "ok")]
    rows += [
        (f"q{i}", s, f"{s} says {i}", "yes" if i % 2 else "no") for i in range(4) for s in "ab"
    ]
    _, found = start(table(tmp_path / "q.csv", rows))
    (item,) = found["data.yaml"]["files"][0]["items"]
    assert item["item_id"] == "{id} · {system}"
    assert item["group"] == "id"
    bench = jb.load_bench(tmp_path / "bench.yaml")
    assert {a.group for a in bench.dataset.answers} == {"q0", "q1", "q2", "q3"}
    bench.close()


def test_answers_alone_get_an_example_and_a_template(start, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "answers.json"
    answers = [{"uuid": f"u{i}", "output": f"text {i}"} for i in range(3)]
    file.write_text(json.dumps(answers))
    out, found = start(file, "--to", tmp_path / "new" / "mine")
    assert sorted(found) == [*NAMES[:2], "labels-template.csv", NAMES[2]]
    assert (
        found["data.yaml"]["files"][0]["path"] == "../../answers.json"
        or Path(found["data.yaml"]["files"][0]["path"]) == file.absolute()
    )
    assert "no column looks like labels: the rubric holds an example to replace" in out
    template = tmp_path / "new" / "mine" / "labels-template.csv"
    template.write_text(template.read_text().replace("your-name,", "ann,Good"))
    bench = tmp_path / "new" / "mine" / "bench.yaml"
    bench.write_text(bench.read_text().replace("[data.yaml]", "[data.yaml, labels-template.csv]"))
    code, told, _ = call("check", bench)
    assert (code, "3 human labels" in told) == (0, True)
    if "annotate" not in WINGS:
        return
    # The command that collects labels is named, and works as it is printed.
    assert f"Collect labels: judgebench annotate init {bench} --to study" in out
    bench.write_text(f"{bench.read_text()}annotate: {{annotators: [ann, ben]}}\n")
    code, told, err = call("annotate", "init", bench, "--to", tmp_path / "study")
    assert (code, "3 items" in told) == (0, True), err


def test_a_column_named_as_a_question_is_shown_to_annotators(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("ID", "System prompt", "User question", "Reply")]
    rows += [(f"t{i}", f"Be kind {i}.", f"May I swim on day {i}?", f"Wait {i}.") for i in range(20)]
    _, found = start(table(tmp_path / "replies.csv", rows))
    (item,) = found["data.yaml"]["files"][0]["items"]
    assert item == {"item_id": "ID", "text": "Reply", "question": "User question"}


def test_a_column_of_texts_given_as_the_question_is_its_text_as_well(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("ID", "They wrote", "Topic", "Reply")]
    rows += [(f"t{i}", f"Day {i}?", ("sun", "sea")[i % 2], f"Wait {i}.") for i in range(20)]
    file = table(tmp_path / "replies.csv", rows)
    for column, more in (("They wrote", {"question": "They wrote"}), ("Topic", {})):
        _, found = start(file, "--to", tmp_path / column, "--question", column)
        (item,) = found["data.yaml"]["files"][0]["items"]
        assert item == {"item_id": "ID", "text": "Reply", "group": column, **more}


def test_answers_in_a_table_of_their_own_are_not_said_to_be_missing(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
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
    rows = [("id", "text", "a: b # c", "- [重]", "A b", "a B!", "stars")]
    for i in range(24):
        odd, even = labels[i % 8], labels[(i + 1) % 8]
        twos = (("x", "true", "*"), ("xy", "false", "ok"))[i % 2]  # a star is no letter
        rows.append((f"i{i}", f"t{i}", odd, even, *twos))
    out, found = start(table(tmp_path / "odd name (1).csv", rows))
    metrics = found["rubric.yaml"]["metrics"]
    assert [m["title"] for m in metrics] == ["a: b # c", "- [重]", "A b", "a B!"]
    assert [m["id"] for m in metrics] == ["a_b_c", "metric", "a_b", "a_b_2"]
    assert [label["text"] for label in metrics[0]["labels"]] == labels
    assert "not read: column 'stars': a value of it has no letters or digits" in out


def test_nothing_is_overwritten(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = table(tmp_path / "ours.csv", WIDE)
    for name in ("rubric.yaml", "bench.yaml"):
        (tmp_path / name).write_text("mine")
    code, out, err = call("init", file)
    assert (code, out) == (2, "")
    assert f"{tmp_path / 'bench.yaml'}: exists and is not overwritten" in err
    assert f"{tmp_path / 'rubric.yaml'}: exists and is not overwritten" in err
    assert (tmp_path / "rubric.yaml").read_text() == "mine"
    assert not (tmp_path / "data.yaml").exists()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", "b"), ("1 x", "2"), ("1 x", "2")], "no column says which item a row is about"),
        ([("id", "ok"), ("x", "no"), ("x", "yes")], "no column says who labelled it"),
        ([("id", "when"), ("x", "1"), ("y", "2")], "holds neither texts to judge nor labels"),
        ([("id", "metric", "label"), ("x", "m", "*")], "a label needs a letter or a digit"),
        ([("id", "text", "ok"), ("x", "t")], "has 2 cells where the header has 3"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_and_nothing_is_written(
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


def test_a_conflict_in_the_file_leaves_nothing_behind(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("id", "text", "rater", "ok"), ("x", "t", "a", "no"), ("x", "t", "a", "yes")]
    rows += [("y", "u", "a", "no"), ("z", "v", "b", "yes")]
    code, _, err = call("init", table(tmp_path / "ours.csv", rows))
    assert code == 2
    assert "ours.csv:3" in err
    assert [path.name for path in tmp_path.iterdir()] == ["ours.csv"]


def test_it_is_a_function_as_well(tmp_path: Path) -> None:
    started = jb.init(table(tmp_path / "ours.csv", WIDE), tmp_path / "mine")
    assert sorted(path.name for path in started.files) == NAMES
    assert any("metric Harm level with labels none, mild, severe" in x for x in started.found)
    assert "Next:" in repr(started)


def test_verdicts_of_a_model_beside_labels_are_a_judge_and_no_texts_are_needed(
    call,
    start,
    tmp_path: Path,  # type: ignore[no-untyped-def]
) -> None:
    labels = ["safe", "risky", "harmful"]
    header = ("id", "prompt", "annotation_1", "annotation_2", "gpt4_label", "claude-3 verdict")
    rows = [
        (f"q{n}", f"Question {n}?", labels[n % 3], labels[n % 3], labels[n % 2], labels[n % 3])
        for n in range(40)
    ]
    rows += [("q40", "Why?", "safe", "safe", "I'm sorry, but I can't help with that.", "safe")]
    out, found = start(table(tmp_path / "ours.csv", [header, *rows]))
    assert found["bench.yaml"]["judges"] == [
        {"name": "claude-3", "column": {"annotation": "claude-3 verdict"}},
        {"name": "gpt4", "column": {"annotation": "gpt4_label"}},
    ]
    assert "judges claude-3 in column claude-3 verdict; gpt4 in column gpt4_label" in out
    assert "items" not in found["data.yaml"]["files"][0]
    entries = found["data.yaml"]["files"][0]["labels"]
    assert [(e["annotator"], e["question"]) for e in entries] == [
        ({"value": "annotator-1"}, "prompt"), ({"value": "annotator-2"}, "prompt"),
    ]  # fmt: skip
    assert [metric["id"] for metric in found["rubric.yaml"]["metrics"]] == ["annotation"]
    assert not (tmp_path / "answers-template.csv").exists()
    code, out, _ = call("run", tmp_path / "bench.yaml", "--run", tmp_path / "run", "--json")
    assert code == 0
    outcomes = {d["judge"]: d["outcome"] for d in json.loads(out)["decisions"]}
    assert outcomes == {"claude-3": "CAN'T TELL", "gpt4": "DO NOT USE"}


def lines(path: Path, rows: Rows) -> Path:
    """Rows between tabs, as many published tables are: quotes are part of the texts."""
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    return path


def trec(n: int = 40) -> list[tuple[str, ...]]:
    """As of a TREC track: three assessors, and two runs that may hold the same sentence."""
    rows = [("unique_id", "topic", "sentence", "assessor", "fluent", "relevance")]
    for i in range(n):
        text = f"Aspirin thins the blood and irritates the stomach, case {i % 30}."
        for k, who in enumerate("ABC"):
            fluent = "garbage" if (i, who) == (7, "B") else ("yes", "no")[(i + k) % 2]
            relevance = "skipped" if (i, who) == (3, "B") else str((i + k) % 4)
            rows.append((f"t{i // 10}_{i}", f"t{i // 10}", text, who, fluent, relevance))
    return rows


def test_unique_id_is_the_item_and_what_is_no_label_is_read_as_blank(
    start,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    out, found = start(lines(tmp_path / "trec.tsv", trec()))
    (item,) = found["data.yaml"]["files"][0]["items"]
    assert (item["item_id"], item["labels"][0]["annotator"]) == ("unique_id", "assessor")
    fluent, relevance = found["rubric.yaml"]["metrics"]
    assert [label["text"] for label in fluent["labels"]] == ["yes", "no"]
    assert [label["text"] for label in relevance["labels"]] == ["0", "1", "2", "3"]
    assert found["data.yaml"]["spellings"] == {
        "fluent": {"garbage": None},
        "relevance": {"skipped": None},
    }
    assert "no labels of 'fluent', read as blank: garbage" in out
    bench = jb.load_bench(tmp_path / "bench.yaml")
    assert bench.dataset.n_labels == 2 * 3 * 40 - 2
    bench.close()


def test_a_word_that_is_not_rare_among_numbers_is_a_label(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("id", "text", "coder", "better")]
    rows += [(f"i{i}", f"t{i}", "kim", ("1", "2", "tie")[i % 3]) for i in range(60)]
    _, found = start(table(tmp_path / "ours.csv", rows))
    (metric,) = found["rubric.yaml"]["metrics"]
    assert [label["text"] for label in metric["labels"]] == ["1", "2", "tie"]
    assert "spellings" not in found["data.yaml"]


def test_a_rare_word_of_one_metric_stays_its_label_in_a_long_table(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [("id", "coder", "metric", "label")]
    rows += [(f"i{i}", "kim", "Tone", str(i % 3)) for i in range(200)]
    rows += [("i0", "kim", "Harm", "severe"), ("i1", "kim", "Harm", "none")]
    rows += [("i2", "kim", "Harm", "N/A")]
    _, found = start(table(tmp_path / "long.csv", rows))
    tone, harm = found["rubric.yaml"]["metrics"]
    assert [label["text"] for label in harm["labels"]] == ["severe", "none"]
    assert [label["text"] for label in tone["labels"]] == ["0", "1", "2"]
    assert found["data.yaml"]["spellings"]["harm"] == {"N/A": None}


QUOTES = [
    ("id", "question", "answer", "rater", "quality"),
    *(
        (f"q{i}", '"Safe" is what?', '"Yes", said she' if i % 3 else 'He said "no', who, quality)
        for i in range(12)
        for who, quality in (("kim", ("good", "bad")[i % 2]), ("lee", ("good", "bad")[i // 6]))
    ),
]


def test_a_table_without_quoting_is_read_with_the_setting_that_it_needs(
    start,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    out, found = start(lines(tmp_path / "plain.tsv", QUOTES))
    assert found["data.yaml"]["files"][0]["quoting"] == "none"
    assert "read with `quoting: none`" in out
    bench = jb.load_bench(tmp_path / "bench.yaml")
    assert {answer.text for answer in bench.dataset.answers} == {'"Yes", said she', 'He said "no'}
    bench.close()


def test_of_several_sheets_the_one_with_labels_is_read(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    sheets = {
        "Read me": [("About this workbook",), ("Ratings of the pilot study, in spring.",)],
        "Ratings, final": QUOTES,
        "Codes": [("code", "meaning"), ("good", "fine"), ("bad", "harmful")],
    }
    for name, rows in sheets.items():
        sheet = book[name] if name in book.sheetnames else book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(tmp_path / "book.xlsx")
    out, found = start(tmp_path / "book.xlsx")
    assert found["data.yaml"]["files"][0]["sheet"] == "Ratings, final"
    assert "read with `sheet: Ratings, final`" in out


def test_an_empty_response_is_an_answer_and_another_of_the_row_is_named(
    start,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    rows = [
        {
            "idx": i, "instruction": f"Do thing number {i} as well as you can.",
            "response1": "Done.", "response2": f"This is thing {i}, done in full." if i % 5 else "",
            "annotator1": i % 3, "annotator2": i % 2,
        }
        for i in range(30)
    ]  # fmt: skip
    file = tmp_path / "panda.json"
    file.write_text(json.dumps(rows))
    _, found = start(file)
    assert found["data.yaml"]["files"][0]["items"][0]["if_empty"] == "keep"
    bench = jb.load_bench(tmp_path / "bench.yaml")
    texts = [answer.text for answer in bench.dataset.answers]
    bench.close()
    assert len(texts) == 30
    assert texts[1] == "Response 1: Done.\n\nResponse 2: This is thing 1, done in full."


def test_json_that_lists_rows_by_annotator_is_read(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    said = {"ann1": ("good", "bad", "bad"), "ann2": ("bad", "bad", "good")}
    value = {
        who: [{"id": f"x{i}", "text": f"Answer {i}.", "tone": tone} for i, tone in enumerate(given)]
        for who, given in said.items()
    }
    file = tmp_path / "ours.json"
    file.write_text(json.dumps(value))
    _, found = start(file)
    (item,) = found["data.yaml"]["files"][0]["items"]
    assert item["labels"] == [{"annotator": "list_name", "metrics": {"tone": "tone"}}]
    bench = jb.load_bench(tmp_path / "bench.yaml")
    assert {(x.annotator, x.item_id, x.label) for x in bench.dataset.labels} == {
        (who, f"x{i}", tone) for who, given in said.items() for i, tone in enumerate(given)
    }
    bench.close()


def test_labels_by_annotator_inside_a_cell_name_the_remedy(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [{"id": f"x{i}", "text": f"Answer {i}.", "tone": {"ann1": "good"}} for i in range(3)]
    file = tmp_path / "ours.json"
    file.write_text(json.dumps(rows))
    out, _ = start(file)
    assert "column 'tone': its cells hold objects: name what is in them by a path" in out
    (tmp_path / "data.yaml").write_text(
        "files: [{path: ours.json, items: {item_id: id, text: text, labels: "
        "{annotator: {value: ann1}, metrics: {quality: tone.ann1}}}}]\n"
    )
    bench = tmp_path / "bench.yaml"
    assert jb.load_bench(bench).dataset.n_labels == 3
