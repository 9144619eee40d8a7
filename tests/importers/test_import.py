"""`judgebench import`: what it writes, what it refuses, and what can be done with the result."""

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import judgebench as jb

FILES = Path(__file__).parent / "files"


def problems(file: Path, **settings: Any) -> list[str]:
    with pytest.raises(jb.SetupError) as error:
        jb.import_file(file, file.parent / "to", **settings)
    assert not (file.parent / "to").exists()  # nothing was written
    return [str(problem).replace(f"{file.parent}/", "") for problem in error.value.problems]


def test_the_command_reports_what_it_read_left_out_and_wrote(call, tmp_path: Path) -> None:
    code, out, err = call("import", FILES / "label-studio-snapshot.json", "--to", tmp_path / "to")
    assert (code, err) == (0, "")
    lines = out.replace(f"{tmp_path}/", "").splitlines()
    assert lines[:3] == [
        "Label Studio, JSON",
        "6 answers to 6 questions",
        "19 human labels by ann@example.org, bob@example.org",
    ]
    assert "Left out: annotations that were skipped (1)" in lines
    assert [line.removeprefix("Wrote to/") for line in lines if line.startswith("Wrote")] == [
        "answers.csv", "labels.csv", "verdicts.csv", "rubric.yaml", "bench.yaml",
    ]  # fmt: skip
    assert lines[-1].endswith(
        "judgebench decide --labels to/labels.csv --verdicts to/verdicts.csv --answers "
        "to/answers.csv --rubric to/rubric.yaml"
    )


IMPORTABLE = sorted(
    path.name
    for path in FILES.iterdir()
    if path.suffix not in (".md", ".eval") and path.name != "lm-eval-results.json"
)


@pytest.mark.parametrize("name", IMPORTABLE)
def test_what_was_written_passes_check(call, tmp_path: Path, name: str) -> None:
    jb.import_file(FILES / name, tmp_path)
    code, out, _ = call("check", tmp_path / "bench.yaml", tmp_path / "rubric.yaml")
    assert code == 0, out
    assert "No errors." in out


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """The folder of an imported log whose answers two people have labelled."""
    folder = tmp_path / "to"
    jb.import_file(FILES / "inspect.json", folder)
    template = folder / "labels-template.csv"
    with template.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["item_id", "annotator", "correct", "length", "polite"]
    right = ("opening", "loan", "café")
    filled = [
        [item, who, "C" if item in right else "I", "short", "true"]
        for who in ("ann", "bob")
        for item, *_ in rows
    ]
    with template.open("w", newline="") as file:
        csv.writer(file).writerows([header, *filled])
    return folder


def test_an_imported_log_can_be_decided_upon_at_once(call, labelled: Path) -> None:
    files = [labelled / name for name in ("labels-template.csv", "verdicts.csv", "data.yaml")]
    arguments = zip(("--labels", "--verdicts", "--answers"), files, strict=True)
    rubric = ("--rubric", labelled / "rubric.yaml")
    code, out, _ = call("decide", *(a for pair in arguments for a in pair), *rubric, "--json")
    assert code == 0
    decided = {(d["judge"], d["metric"]): d for d in json.loads(out)["decisions"]}
    assert decided["model_graded_qa", "correct"]["accuracy"]["n"] == 3
    assert decided["model_graded_qa", "correct"]["accuracy"]["n_missing"] == 2  # no verdicts
    assert decided["includes", "correct"]["accuracy"]["n"] == 4


def test_an_imported_log_runs_as_a_benchmark(labelled: Path) -> None:
    jb.run(labelled / "bench.yaml", labelled / "run")
    study = jb.open_run(labelled / "run")
    (judge,) = [judge for judge in study.judges if judge.name == "model_graded_qa"]
    states = {item: verdict.status for item, verdict in judge.verdicts.items()}
    assert states == {
        "opening": "ok", "loan": "ok", "café": "ok", "print": "failed", "room": "unparsed",
    }  # fmt: skip


def test_values_of_many_kinds_are_scores_and_no_labels(tmp_path: Path) -> None:
    rows = [
        {**row, "doc_id": number, "metrics": ["rouge1"], "rouge1": number / 100}
        for number, row in enumerate(lines_of("lm-eval-choices.jsonl") * 3)
    ]
    path = written(tmp_path, "\n".join(map(json.dumps, rows)))
    report = jb.import_file(path, tmp_path / "to")
    told = "metric 'rouge1' is left out of the rubric, for these are no labels: 18 different values"
    assert f"{told}, such as '0'" in report.found
    assert not (tmp_path / "to" / "rubric.yaml").exists()
    assert report.next_steps[0].startswith("Write a rubric.yaml")


def test_metrics_that_no_rubric_can_hold_are_written_apart(call, tmp_path: Path) -> None:
    rows = [
        {**row, "doc_id": number, "metrics": ["acc", "rouge1", "bleu"], "rouge1": number / 100,
         "bleu": None}
        for number, row in enumerate(lines_of("lm-eval-choices.jsonl") * 3)
    ]  # fmt: skip
    path = written(tmp_path, "\n".join(map(json.dumps, rows)))
    report = jb.import_file(path, tmp_path / "to")
    with (tmp_path / "to" / "other-verdicts.csv").open(newline="") as file:
        judges = [row["judge"] for row in csv.DictReader(file)]
    assert (judges.count("rouge1"), judges.count("bleu"), len(judges)) == (18, 18, 36)
    assert "metric 'bleu' is left out of the rubric: it has no label at all" in report.found
    code, out, _ = call("check", tmp_path / "to" / "bench.yaml")
    assert code == 0, out
    assert "1 judge" in out


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text("mine")
    (tmp_path / "rubric.yaml").write_text("mine too")
    with pytest.raises(jb.SetupError) as error:
        jb.import_file(FILES / "inspect.json", tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/answers.jsonl: exists and is not overwritten\n"
        f"{tmp_path}/rubric.yaml: exists and is not overwritten"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "rubric.yaml"]


def test_nothing_is_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        if path.name == "verdicts.csv":
            raise OSError("no space left")
        path.write_bytes(content)

    monkeypatch.setattr("judgebench.importing.write_atomically", full)
    with pytest.raises(OSError, match="no space left"):
        jb.import_file(FILES / "inspect.json", tmp_path)
    assert not list(tmp_path.iterdir())


def test_texts_that_a_spreadsheet_would_spoil_are_written_as_jsonl(tmp_path: Path) -> None:
    log = json.loads((FILES / "inspect.json").read_text())
    long, torn = "x" * 40_000, "one\r\ntwo \x00 three"
    log["samples"][0]["output"]["completion"] = long
    log["samples"][2]["output"]["completion"] = torn
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    report = jb.import_file(path, tmp_path / "to")
    lines = (tmp_path / "to" / "answers.jsonl").read_text().splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert long in texts
    assert "one\r\ntwo � three" in texts
    assert report.left_out["characters that no text may hold, replaced by U+FFFD"] == 1
    assert (tmp_path / "to" / "verdicts.csv").exists()


def test_the_name_of_a_judge_is_one_that_a_bench_can_hold(tmp_path: Path) -> None:
    with pytest.raises(jb.SetupError) as error:
        jb.import_file(FILES / "inspect.json", tmp_path, replies_as_verdicts="gpt 4/mini")
    assert str(error.value) == (
        "is no name of a judge: letters, digits and . _ - only; found 'gpt 4/mini'"
    )


# Files that cannot be imported -----------------------------------------------------------------


def written(tmp_path: Path, text: str | bytes, name: str = "log") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_unknown_content_is_named_with_what_is_known(tmp_path: Path) -> None:
    known = (
        "allowed: inspect_ai logs (.eval, JSON); lm-evaluation-harness samples (--log_samples, "
        "JSONL); promptfoo results (--output results.json); Label Studio exports (JSON, JSON_MIN, "
        "CSV); Argilla records (to_json, to_list(flatten=True) as JSON)"
    )
    message = "log: is no log or export that judgebench can import"
    other = written(tmp_path, '{"model": "m", "scores": [1]}')
    assert problems(other) == [f"{message}; found JSON with the keys model, scores; {known}"]
    table = written(tmp_path, "item_id,text\na,b\n")
    assert problems(table) == [
        f"{message}: a table of your own needs no import, see `judgebench init`; found a table "
        f"with the columns item_id, text; {known}"
    ]
    with zipfile.ZipFile(tmp_path / "log", "w") as archive:
        archive.writestr("a.txt", "hello")
    assert problems(other) == [f"{message}; found a zip archive with a.txt; {known}"]
    assert problems(written(tmp_path, "[]"))[0].startswith(f"{message}; found JSON: a list of 0")


def test_a_file_by_another_tools_name_is_recognised_by_its_content(tmp_path: Path) -> None:
    path = written(tmp_path, (FILES / "promptfoo.json").read_bytes(), "samples.jsonl")
    assert jb.import_file(path, tmp_path / "to").found[0] == "promptfoo 0.121.20"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "log: is empty"),
        (b"PK\x03\x04 torn", "log: is a damaged or incomplete zip archive: copy the file again"),
        (b"\xff\xfe\x00", "log: is neither a zip archive nor text in UTF-8 (byte 0)"),
        ('{"eval": {"task": "a"', "log:1: is not JSON, or not all of it: Expecting ',' delimiter"),
        ('{"doc_id": 1}\n{"doc_id": 2', "log:2: is not JSON; found '{\"doc_id\": 2'"),
        ("a,b\n1,2,3\n", "log:2: has 3 cells where the header has 2"),
        ("a,b\n", "log: has a header and no rows"),
        ('{"results": {}, "configs": {}, "n-shot": {}}',
         "log: holds the scores of lm-evaluation-harness, and no replies; allowed: the file "
         "samples_….jsonl of --log_samples beside it"),
        ('{"results": {"version": 3, "results": []}, "stats": {}}',
         "log: holds no results: the evaluation ran no test"),
        ('{"eval": {"task": "t", "model": "m"}, "status": "error", "samples": []}',
         "log: holds no samples (the status of the log is 'error')"),
    ],
)  # fmt: skip
def test_damaged_and_empty_files(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert problems(written(tmp_path, text)) == [message]


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(jb.SetupError, match=r"nowhere: (cannot be read: )?(?i:no such file)"):
        jb.import_file(tmp_path / "nowhere")
    with pytest.raises(jb.SetupError, match="cannot be read: is a folder"):
        jb.import_file(tmp_path)


def test_an_eval_log_that_is_cut_off(tmp_path: Path) -> None:
    whole = (FILES / "inspect.eval").read_bytes()
    path = written(tmp_path, whole[: len(whole) // 2], "log")
    assert problems(path) == ["log: is a damaged or incomplete zip archive: copy the file again"]


def test_an_eval_log_whose_samples_are_damaged(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    with zipfile.ZipFile(tmp_path / "log", "w") as archive:
        archive.writestr("header.json", '{"version": 2}')
    (message,) = problems(tmp_path / "log")
    assert message.startswith("log: is damaged: inspect_ai cannot read it (")


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FILES / name).read_text().splitlines()]


def test_duplicate_ids_are_errors(tmp_path: Path) -> None:
    log = json.loads((FILES / "inspect.json").read_text())
    log["samples"].append(log["samples"][0])
    assert problems(written(tmp_path, json.dumps(log))) == [
        "log: has samples with the same id and epoch; found café (epoch 1)"
    ]
    rows = lines_of("lm-eval-filters.jsonl")
    twice = "\n".join(json.dumps(row) for row in [*rows, rows[0]])
    assert problems(written(tmp_path, twice)) == [
        "log: has several rows of one document and filter: import each task by itself; found 0 "
        "(filter strict-match)"
    ]
    tasks = json.loads((FILES / "label-studio.json").read_text())
    tasks[1]["id"] = tasks[0]["id"]
    assert problems(written(tmp_path, json.dumps(tasks))) == [
        f"log: has several tasks with one id; found {tasks[0]['id']}"
    ]
    records = json.loads((FILES / "argilla.json").read_text())
    records[1]["id"] = "opening"
    assert problems(written(tmp_path, json.dumps(records))) == [
        "log: has several records with one id; found opening"
    ]


def test_lines_that_lack_what_the_others_have_are_all_named(tmp_path: Path) -> None:
    rows = lines_of("lm-eval-filters.jsonl")
    del rows[1]["resps"], rows[3]["target"]
    text = "\n".join(map(json.dumps, rows))
    assert problems(written(tmp_path, text)) == ["log:2: lacks resps", "log:4: lacks target"]


@pytest.mark.parametrize(
    ("name", "key", "value", "about"),
    [
        ("inspect.json", "samples", [{"id": 1}], "inspect_ai logs (.eval, JSON)"),
        ("argilla.json", "responses", {"correct": ["yes"]}, "Argilla records (to_json, "
         "to_list(flatten=True) as JSON)"),
        ("label-studio.json", "annotations", [None], "Label Studio exports (JSON, JSON_MIN, CSV)"),
    ],
)  # fmt: skip
def test_a_file_that_is_only_like_that_of_a_tool(
    tmp_path: Path, name: str, key: str, value: Any, about: str
) -> None:
    content = json.loads((FILES / name).read_text())
    (content if isinstance(content, dict) else content[2])[key] = value
    (message,) = problems(written(tmp_path, json.dumps(content)))
    expected = f"log: is like {about}, but is not laid out as judgebench knows them (a fault at "
    assert message.startswith(expected)


def test_a_log_without_scores_gives_answers_to_label(tmp_path: Path) -> None:
    log = json.loads((FILES / "inspect.json").read_text())
    log["eval"]["scorers"] = []
    for sample in log["samples"]:
        sample["scores"] = None
    report = jb.import_file(written(tmp_path, json.dumps(log)), tmp_path / "to")
    assert [path.name for path in report.files] == ["answers.csv", "data.yaml"]
    assert "no scorer was run: there are no verdicts" in report.found


def test_a_log_in_which_every_sample_failed_is_an_error(tmp_path: Path) -> None:
    log = json.loads((FILES / "inspect.json").read_text())
    log["samples"] = [sample for sample in log["samples"] if sample["id"] == "fine"]
    assert problems(written(tmp_path, json.dumps(log))) == [
        "log: holds no answer to import; found samples that were never run (5), samples that ended "
        "in an error, without an answer (1)"
    ]
