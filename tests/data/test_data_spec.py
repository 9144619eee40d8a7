"""data.yaml: what it maps, and how its own faults are told."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

import judgebench as jb
from judgebench.data.load import check_files, load_data
from judgebench.data.spec import DataSpec
from judgebench.errors import SetupError
from judgebench.records import content_hash, is_slot
from judgebench.rubric import Rubric, load_rubric
from judgebench.yaml_file import load_model

Write = Callable[[str, str | bytes], Path]

SHEET = (
    "ID,Patient question,Model A,Model B,A: tone,B: tone,note\n"
    "1,Why?,Because.,,0,1,x\n"
    "2,How?,So.,Thus.,2.0,n/a,y\n"
)
SPEC = """
files:
  - path: sheet.csv
    items:
      - item_id: {column: ID, prefix: a-}
        question: Patient question
        text: Model A
        system: {value: model-a}
        metadata: [note]
        labels:
          - {annotator: {value: ann}, metrics: {Tone of voice: "A: tone"}}
      - item_id: {column: ID, prefix: b-}
        question: Patient question
        text: Model B
        system: {value: model-b}
        if_empty: skip
        labels: {annotator: {value: ann}, metrics: {tone: "B: tone"}}
  - path: raters.tsv
    labels: {item_id: item, annotator: who, metric: criterion, label: verdict}
spellings:
  tone: {0: Kind, "1": Neutral, "2": rude - openly, "n/a": null}
"""
RATERS = "item\twho\tcriterion\tverdict\na-1\tben\ttone\tfriendly\nb-1\tben\ttone\tKind\n"


def test_one_row_many_items(rubric: Rubric, write: Write) -> None:
    write("sheet.csv", SHEET)
    write("raters.tsv", RATERS)
    found = load_data(write("data.yaml", SPEC), rubric)
    assert [(a.item_id, a.system, a.text, a.group) for a in found.answers] == [
        ("a-1", "model-a", "Because.", "Why?"),
        ("a-2", "model-a", "So.", "How?"),
        ("b-2", "model-b", "Thus.", "How?"),
    ]
    assert found.answers[1].metadata == {"note": "y"}
    assert [(x.item_id, x.annotator, x.label) for x in found.labels] == [
        ("a-1", "ann", "Kind"),
        ("a-2", "ann", "Rude – openly"),
        ("b-2", "ann", None),
        ("a-1", "ben", "Kind"),
    ]
    kinds = {w.kind: (Path(w.file).name, w.line, w.field) for w in found.warnings}
    assert kinds == {
        "skipped_item": ("sheet.csv", 2, "Model B"),
        "float_label": ("sheet.csv", 3, "A: tone"),
        "blank_label": ("sheet.csv", 3, "B: tone"),
        "label_without_item": ("raters.tsv", 3, ""),
    }
    assert sorted(Path(s).name for s in found.sources) == ["data.yaml", "raters.tsv", "sheet.csv"]


def test_another_folder_and_a_model(rubric: Rubric, write: Write, tmp_path: Path) -> None:
    write("sheet.csv", SHEET)
    write("raters.tsv", RATERS)
    (tmp_path / "else").mkdir()
    path = tmp_path / "else" / "data.yaml"
    path.write_text(SPEC)
    from_path = load_data(path, rubric, folder=tmp_path)
    spec = DataSpec.model_validate(
        {
            "files": [
                {
                    "path": "sheet.csv",
                    "items": [{"item_id": {"column": "ID", "prefix": "a-"}, "text": "Model A"}],
                }
            ]
        }
    )
    from_model = load_data(spec, rubric, folder=tmp_path)
    assert [a.item_id for a in from_model.answers] == ["a-1", "a-2"]
    assert [a.text for a in from_path.answers][:2] == [a.text for a in from_model.answers]
    with pytest.raises(SetupError, match=r"(?i)no such file"):
        load_data(path, rubric)


def test_several_files_are_one_set(rubric: Rubric, write: Write, tmp_path: Path) -> None:
    write("sheet.csv", "ID,t\n1,one\n")
    yaml = "files: [{path: sheet.csv, items: {item_id: ID, text: t}}]"
    one = write("data.yaml", yaml)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "sheet.csv").write_text("ID,t\n2,two\n")
    other = tmp_path / "b" / "data.yaml"
    other.write_text(yaml)
    labels = write("l.csv", "item_id,annotator,tone\n1,x,Kind\n2,x,Neutral\n")
    found = load_data([labels, one, other], rubric)
    assert [a.item_id for a in found.answers] == ["1", "2"]
    assert [x.label for x in found.labels] == ["Kind", "Neutral"]
    assert len(found.sources) == 5


def test_ids_from_texts_and_rows(rubric: Rubric, write: Write) -> None:
    write("q.csv", "q,extra\nWhy?,1\nHow?,2\n")
    yaml = "files: [{path: q.csv, items: {item_id: {hash_of: [q, extra], prefix: q-}, text: q}}]"
    found = load_data(write("data.yaml", yaml), rubric)
    assert found.answers[0].item_id == "q-" + content_hash(["Why?", "1"])
    assert found.answers[0].group == found.answers[0].item_id  # it stands alone
    yaml = "files: [{path: q.csv, items: {item_id: {row: true}, text: q}}]"
    found = load_data(write("data.yaml", yaml), rubric)
    assert [a.item_id for a in found.answers] == ["2", "3"]


def test_format_where_the_name_does_not_say_it(rubric: Rubric, write: Write) -> None:
    write("export.txt", "item_id\ttext\na\tone\n")
    yaml = "files: [{path: export.txt, format: tsv, items: {item_id: item_id, text: text}}]"
    assert load_data(write("data.yaml", yaml), rubric).answers[0].text == "one"


def test_what_is_ignored_may_contradict_itself_and_nothing_else_may(
    rubric: Rubric, write: Write
) -> None:
    yaml = """
labels_for_unknown_items: ignore
files:
  - {path: a.csv, items: {item_id: item_id, text: text}}
  - {path: l.csv, labels: {item_id: item_id, annotator: who, metrics: {tone: tone}}}
"""
    write("a.csv", "item_id,text\na,one\n")
    write("l.csv", "item_id,who,tone\na,y,Kind\nzz,y,Kind\nzz,y,Neutral\n")
    ignored = load_data(write("data.yaml", yaml), rubric)
    assert [label.item_id for label in ignored.labels] == ["a"]
    assert [(w.kind, w.line) for w in ignored.warnings] == [("ignored_label", 3)]
    write("l.csv", "item_id,who,tone\na,y,Kind\nzz,y,Kind\na,y,Neutral\n")
    with pytest.raises(SetupError) as caught:
        load_data(write("data.yaml", yaml), rubric)
    assert [(p.kind, p.line) for p in caught.value.problems] == [("conflicting_label", 4)]


def test_only_some_metrics(rubric: Rubric, write: Write) -> None:
    write("q.csv", "id,q,a,risk,src\n1,Why?,So.,Kind,No\n")
    yaml = """
files:
  - path: q.csv
    items:
      - {item_id: {column: id, prefix: q}, text: q,
         labels: {annotator: {value: e}, metrics: {tone: risk}}}
      - {item_id: {column: id, prefix: a}, text: a,
         labels: {annotator: {value: e}, metrics: {source: src}}}
"""
    path = write("data.yaml", yaml)
    assert [a.item_id for a in load_data(path, rubric).answers] == ["q1", "a1"]
    only = load_data(path, rubric, metrics=["Source given"])
    assert [a.item_id for a in only.answers] == ["a1"]
    assert [x.label for x in only.labels] == ["No"]
    labels = write("l.csv", "item_id,annotator,metric,label\na,x,source,None\na,x,tone,Kind\n")
    both = [write("a.csv", "item_id,text\na,one\n"), labels]
    assert [x.label for x in load_data(both, rubric, metrics=["tone"]).labels] == ["Kind"]


def test_list_cells_that_are_none(rubric: Rubric, write: Write) -> None:
    write(
        "a.tsv",
        "id\tt\tl\n"
        "a\tone\t[Kind, Neutral\n"
        "b\ttwo\t{'Kind'}\n"
        "c\tthree\t\n"
        "d\tfour\t('Kind',)\n"
        "e\tfive\t[__import__('os')]\n",
    )
    yaml = """
files:
  - path: a.tsv
    items: {item_id: id, text: t, labels: {annotator: {value: c}, metrics: {tone: l}, list: true}}
"""
    report = check_files([write("data.yaml", yaml)], rubric)
    found = {(p.kind, p.line) for p in report.errors}
    assert found == {("bad_list", 2), ("unknown_label", 3), ("bad_list", 6)}
    assert (report.labels, report.blank) == (1, 1)


BAD_SPECS = {
    "not yaml": ("files: [", "bad_spec", "is not YAML"),
    "empty": ("", "bad_spec", "mapping"),
    "unknown key": ("file: []", "bad_spec", "is not a known key"),
    "no files": ("files: []", "bad_spec", "at least 1"),
    "key twice": ("files: []\nfiles: []", "bad_spec", "duplicate"),
    "idle file": ("files: [{path: a.csv}]", "bad_spec", "nothing is read"),
    "NUL in a path": (
        'files: [{path: "a\\0.csv", items: {item_id: id, text: t}}]',
        "bad_spec",
        "pattern",
    ),
    "half long": (
        "files: [{path: a.csv, labels: {item_id: id, metric: m}}]",
        "bad_spec",
        "give both",
    ),
    "no shape": ("files: [{path: a.csv, labels: {item_id: id}}]", "bad_spec", "long"),
    "two ids": (
        "files: [{path: a.csv, items: {item_id: {row: true, column: id}, text: t}}]",
        "bad_spec",
        "exactly one",
    ),
    "two sources": (
        "files: [{path: a.csv, items: {item_id: id, text: {column: t, value: t}}}]",
        "bad_spec",
        "either a column or a value",
    ),
    "no column": (
        "files: [{path: a.csv, items: {item_id: id, text: txet}}]",
        "missing_column",
        "did you mean 'text'",
    ),
    "unknown metric": (
        "files: [{path: a.csv, items: {item_id: id, text: text, labels: {metrics: {tune: k}}}}]",
        "unknown_metric",
        "did you mean 'tone'",
    ),
    "metric twice": (
        "files: [{path: a.csv, items: {item_id: id, text: text, labels: "
        "{metrics: {tone: k, Tone of voice: id}}}}]",
        "bad_spec",
        "duplicate",
    ),
    "unknown target": (
        "files: [{path: a.csv, items: {item_id: id, text: text}}]\n"
        "spellings: {tone: {'0': Kindly}}",
        "unknown_label",
        "did you mean 'Kind'",
    ),
}


@pytest.mark.parametrize("case", BAD_SPECS)
def test_fault_in_spec(case: str, rubric: Rubric, write: Write) -> None:
    content, kind, message = BAD_SPECS[case]
    write("a.csv", "id,text,k\na,one,Kind\n")
    path = write("data.yaml", content)
    found = [p for p in check_files([path], rubric).errors if p.kind == kind]
    assert found
    assert message in " ".join(p.message for p in found)
    assert {Path(p.file).name for p in found} == (
        {"a.csv"} if kind == "missing_column" else {"data.yaml"}
    )
    with pytest.raises(SetupError):
        load_data(path, rubric)


def test_faults_in_spec_and_files_at_once(rubric: Rubric, write: Write) -> None:
    write("a.csv", "id,text,k\na,one,Kind\nb,,Kind\n")
    yaml = """
files:
  - path: a.csv
    items:
      item_id: id
      text: text
      labels: {metrics: {tune: k}}
  - {path: gone.csv, items: {item_id: id, text: text}}
"""
    report = check_files([write("data.yaml", yaml)], rubric)
    found = {(p.kind, Path(p.file).name, p.line) for p in report.errors}
    assert found == {
        ("unknown_metric", "data.yaml", None),
        ("empty_text", "a.csv", 3),
        ("unreadable_file", "gone.csv", None),
    }


def test_the_documented_examples_are_valid(write: Write) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    example, verdicts, judges, parts, pairs, both, criteria, chats = re.findall(
        r"```yaml\n(.*?)```", docs, re.DOTALL
    )
    write("replies.csv", "id,prompt_id,ann_1,ann_2,gpt4_label,gpt4_reply\na,q,1,2,3,Rude!\n")
    tone = Rubric.from_labels({"tone": ["Friendly", "Curt", "Rude"]})
    written = write("data.yaml", verdicts)
    (entry,) = yaml.safe_load(judges)["judges"]
    study = jb.study(written, {**entry, "from": str(written)}, rubric=tone)
    (judge,) = (judge for judge in study.judges if judge.name == entry["name"])
    assert [v.labels for v in judge.verdicts.values()] == [{"tone": "Rude"}]
    write("human.json", '{"ann": {"t1__M1__warm": "Friendly"}}')
    written.with_name("scores").mkdir()
    write("scores/a.txt", "t1__M1__warm Rude\n")
    written = write("data.yaml", parts)
    study = jb.study(written, {"from": str(written)}, rubric=tone)
    assert [(x.item_id, x.system) for x in study.answers] == [("t1__M1__warm", "M1")]
    assert [judge.name for judge in study.judges if judge.kind == "judge"] == ["a"]
    row = {"idx": 1, "instruction": "q", "response1": "rest", "response2": "", "ann1": 2}
    write("panda.json", json.dumps([row]))
    pandas = check_files([write("data.yaml", dedent(both))], load_rubric("preference"))
    assert (pandas.errors, pandas.labels) == ((), 1)
    write("votes.csv", "question,model_a,model_b,voter,winner,turn\nq,a,b,v,model_b,1\n")
    rubric = '[{"criterion": "Names rest"}]'
    answer = f'{{"id": "a", "question": "q", "answer": "rest", "rubrics": {rubric}}}'
    write("answers.jsonl", answer)
    write("physicians.csv", "id,criterion,physician,verdict\na,1,p,yes\n")
    turns = '[{"role": "user", "content": "q"}, {"role": "assistant", "content": "rest"}]'
    write("chats.jsonl", f'{{"id": "a", "messages": {turns}}}')
    for text, name in ((pairs, "preference"), (criteria, "criteria"), (chats, "support-tone")):
        found = check_files([write("data.yaml", text)], load_rubric(name))
        assert (found.errors, found.answers) == ((), 1), name
    spec = load_model(write("data.yaml", example), DataSpec)
    assert [len(file.items) + len(file.labels) for file in spec.files] == [1, 1]
    (plain,) = re.findall(r"```csv\n(.*?)```", docs, re.DOTALL)
    answers = write("answers.csv", "item_id,text\na-17,one\n")
    report = check_files([answers, write("labels.csv", plain)], load_rubric("medical-safety"))
    assert (report.errors, report.warnings) == ((), ())
    assert (report.labels, report.annotators) == (4, {"dr-a": 2, "dr-b": 2})


# --- spellings that cannot apply, blanks, lists of people ----------------------------------------

TABLE = "id\tt\ttone\tsource\na\tone\tKind\tNo\nb\ttwo\t\tNA\nc\tthree\t\t\n"
MAPPED = "files: [{{path: a.tsv, items: {{item_id: id, text: t, labels: {{{}}}}}}}]\n"
WIDE = "metrics: {tone: tone, source: source}"

CANNOT_APPLY = {
    "blank": (WIDE + ", spellings: {tone: {' ': Kind}}", "`blank: LABEL` beside the metrics"),
    "twice": (WIDE + ", spellings: {tone: {x: Kind, ' x ': Neutral}}", "the same spelling twice"),
    "other metric": (
        "metrics: {tone: tone}, spellings: {source: {x: 'No'}}",
        "can never apply: no column of labels is read for source",
    ),
    "blank of another": ("metrics: {tone: tone}, blank: {source: 'No'}", "is read for source"),
    "blank of no label": (WIDE + ", blank: {tone: 'No'}", "is not a label of tone"),
    "one blank for two": (WIDE + ", blank: 'No'", "is not a label of tone"),
}


@pytest.mark.parametrize("case", CANNOT_APPLY)
def test_spellings_that_can_never_apply(case: str, rubric: Rubric, write: Write) -> None:
    write("a.tsv", TABLE)
    labels, told = CANNOT_APPLY[case]
    report = check_files([write("data.yaml", MAPPED.format(labels))], rubric)
    assert [told in problem.message for problem in report.errors] == [True]


def test_spellings_of_a_metric_that_no_file_reads(rubric: Rubric, write: Write) -> None:
    write("a.tsv", TABLE)
    yaml = MAPPED.format("metrics: {tone: tone}") + "spellings: {source: {x: 'No'}}\n"
    (found,) = check_files([write("data.yaml", yaml)], rubric).errors
    assert found.message == "can never apply: no column of labels is read for source"
    assert (found.kind, found.field) == ("bad_spec", "spellings")


def test_spellings_may_be_another_label_of_the_rubric(rubric: Rubric, write: Write) -> None:
    write("a.tsv", TABLE)
    swapped = "metrics: {tone: tone}, spellings: {tone: {Kind: Neutral, Neutral: Kind}}"
    found = load_data(write("data.yaml", MAPPED.format(swapped)), rubric)
    assert [label.label for label in found.labels] == ["Neutral", None, None]


@pytest.mark.parametrize(
    ("blank", "labels"),
    [
        ("{tone: Neutral}", ["Kind", "No", "Neutral", "NA", "Neutral", None]),
        ("{tone: cannot say, Source given: None}",
         ["Kind", "No", "Cannot say", "NA", "Cannot say", "None"]),
    ],
)  # fmt: skip
def test_blanks_that_mean_something(
    rubric: Rubric, write: Write, blank: str, labels: list[str | None]
) -> None:
    write("a.tsv", TABLE)
    data = write("data.yaml", MAPPED.format(f"{WIDE}, blank: {blank}"))
    assert [label.label for label in load_data(data, rubric).labels] == labels
    report = check_files([data], rubric)
    (told,) = [w.message for w in report.warnings if w.kind == "mapped_blank" and w.field == "tone"]
    assert told == f"blank cell, counted as {labels[2]!r} (2 times, rows 3-4)"
    assert report.blank == labels.count(None)


def test_null_is_no_label_even_where_blanks_mean_something(rubric: Rubric, write: Write) -> None:
    write("a.tsv", "id\tt\ttone\na\tone\tn/a\nb\ttwo\t\n")
    labels = "metrics: {tone: tone}, blank: Neutral, spellings: {tone: {n/a: null}}"
    found = load_data(write("data.yaml", MAPPED.format(labels)), rubric)
    assert [label.label for label in found.labels] == [None, "Neutral"]


def crowd(write: Write, rows: str) -> Path:
    write("a.tsv", "id\tt\ttone\tsource\tworkers\n" + rows)
    labels = "list: true, annotator: workers, metrics: {tone: tone, source: source}"
    return write("data.yaml", MAPPED.format(labels))


def test_lists_beside_lists_of_annotators_are_people(rubric: Rubric, write: Write) -> None:
    data = crowd(
        write,
        "a\tone\t['Kind', 'Neutral']\t['No', 'NA']\t['w1', 'w2']\n"
        'b\ttwo\tNeutral\t\t["w2"]\nc\tthree\tKind|Kind\tNA|No\t w3 ; w1\nd\tfour\t[]\t[]\t[]\n',
    )
    found = load_data(data, rubric).labels
    assert not any(is_slot(label.annotator) for label in found)
    by_people = {(x.item_id, x.annotator, x.metric): x.label for x in found}
    assert by_people == {
        ("a", "w1", "tone"): "Kind", ("a", "w2", "tone"): "Neutral",
        ("a", "w1", "source"): "No", ("a", "w2", "source"): "NA",
        ("b", "w2", "tone"): "Neutral",
        ("c", "w3", "tone"): "Kind", ("c", "w1", "tone"): "Kind",
        ("c", "w3", "source"): "NA", ("c", "w1", "source"): "No",
    }  # fmt: skip


def test_lists_that_do_not_match_those_of_annotators(rubric: Rubric, write: Write) -> None:
    data = crowd(
        write,
        "a\tone\t['Kind', 'Neutral']\t\t['w1']\nb\ttwo\t['Kind']\t\t['w1', 'w2']\n"
        "c\tthree\t['Kind']\t\t\nd\tfour\t['Kind', 'Kind']\t\t['w1', ' ']\n"
        "e\tfive\t['Kind']\t\t['w1'\nf\tsix\t['Kind', 'Neutral']\t\t['w1', 'w1']\n",
    )
    found = check_files([data], rubric).errors
    assert [(p.kind, p.line) for p in sorted(found, key=lambda p: p.line or 0)] == [
        ("bad_list", 2), ("bad_list", 3), ("bad_list", 4), ("blank_annotator", 5),
        ("bad_list", 6), ("conflicting_label", 7),
    ]  # fmt: skip
    assert found[0].message == "lists 2 labels, and 'workers' 1 annotators"


def test_bare_numbers_dates_and_words_are_read_as_written(rubric: Rubric, write: Write) -> None:
    write("a.csv", "2024,1.10,yes,2024-01-02\n1,one,no,1.0\n2,two,0,1.0\n")
    content = """\
files:
  - path: a.csv
    items: {item_id: 2024, text: 1.10, labels: {annotator: 2024-01-02, metrics: {tone: yes}}}
spellings: {tone: {no: Kind, 0: Neutral}}
"""
    found = load_data(write("data.yaml", content), rubric)
    assert [answer.text for answer in found.answers] == ["one", "two"]
    assert [(x.annotator, x.label) for x in found.labels] == [("1.0", "Kind"), ("1.0", "Neutral")]
