"""`judgebench import`: what it writes, what it refuses, and what can be done with the result."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import judgebench as jb
from judgebench.data.logs import LOG_SHEETS

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
        "6 answers",
        "22 labels",
    ]
    assert "Left out: annotations that were skipped, or have no result (2)" in lines
    assert [line.removeprefix("Wrote to/") for line in lines if line.startswith("Wrote")] == [
        "answers.jsonl", "labels.jsonl", "verdicts.jsonl",
    ]  # fmt: skip
    assert lines[-1] == f"  1. judgebench decide {FILES}/label-studio-snapshot.json"


LOGS = ["inspect.json", "promptfoo.json", *sorted(path.name for path in FILES.glob("lm-*.jsonl"))]


@pytest.mark.parametrize("name", LOGS)
def test_answers_of_a_log_begin_a_benchmark(call, tmp_path: Path, name: str) -> None:
    to = tmp_path / "to"
    (step,) = jb.import_file(FILES / name, to).next_steps
    assert step == f"judgebench init {to}/answers.jsonl, and collect labels as it says"
    started = jb.init(to / "answers.jsonl")
    assert [path.name for path in started.files][-1] == "labels-template.csv"
    code, out, _ = call("check", to / "bench.yaml", to / "rubric.yaml")
    assert code == 0, out
    assert "No errors." in out


def test_an_imported_log_can_be_decided_upon(call, tmp_path: Path) -> None:
    jb.import_file(FILES / "inspect.json", tmp_path)
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    right = ("opening", "loan", "café")
    labels = [
        {"item_id": row["item_id"], "annotator": who, "metric": "correct",
         "label": "C" if row["item_id"] in right else "I"}
        for who in ("ann", "bob")
        for row in answers
    ]  # fmt: skip
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, labels)))
    files = [tmp_path / f"{kind}.jsonl" for kind in LOG_SHEETS]
    order = ("--order", "C < I", "--judge", "model_graded_qa")
    code, out, err = call("decide", *files, *order, "--json")
    assert code == 0, err
    (decided,) = json.loads(out)["decisions"]
    assert decided["accuracy"]["n"] == 3
    assert decided["accuracy"]["n_missing"] == 2  # no verdicts


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text("mine")
    (tmp_path / "verdicts.jsonl").write_text("mine too")
    with pytest.raises(jb.SetupError) as error:
        jb.import_file(FILES / "inspect.json", tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/answers.jsonl: exists and is not overwritten\n"
        f"{tmp_path}/verdicts.jsonl: exists and is not overwritten"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "verdicts.jsonl"]


def test_nothing_is_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        if path.name == "verdicts.jsonl":
            raise OSError("no space left")
        path.write_bytes(content)

    monkeypatch.setattr("judgebench.setup_files.write_atomically", full)
    with pytest.raises(OSError, match="no space left"):
        jb.import_file(FILES / "inspect.json", tmp_path)
    assert not list(tmp_path.iterdir())


# Files that cannot be imported -----------------------------------------------------------------


def written(tmp_path: Path, text: str | bytes, name: str = "log") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_an_unknown_table_is_told_what_is_known(tmp_path: Path) -> None:
    (message,) = problems(written(tmp_path, "item_id,text\na,b\n", "log.csv"))
    start = "log.csv: is no log that judgebench knows; tables need no import: give them as they are"
    assert message.startswith(f"{start}; allowed: logs of inspect_ai, lm-evaluation-harness")


def test_a_file_by_another_tools_name_is_recognised_by_its_content(tmp_path: Path) -> None:
    path = written(tmp_path, (FILES / "promptfoo.json").read_bytes(), "samples.jsonl")
    assert jb.import_file(path, tmp_path / "to").found[0] == "promptfoo"


@pytest.mark.parametrize(
    ("text", "name"),
    [("", "log.json"), (b"\xff\xfe\x00", "log.json"), ('{"eval": {"task": "a"', "log.json"),
     ('{"doc_id": 1}\n{"doc_id": 2', "log.jsonl"), ('{"model": "m", "scores": [1]}', "log.json"),
     ("[]", "log.json"), ("a,b\n1,2,3\n", "log.csv"), ("a,b\n", "log.csv")],
)  # fmt: skip
def test_damaged_empty_and_unknown_files_name_the_file(
    tmp_path: Path, text: str | bytes, name: str
) -> None:
    assert problems(written(tmp_path, text, name))[0].startswith(name)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(jb.SetupError, match=r"nowhere: (cannot be read: )?(?i:no such file)"):
        jb.import_file(tmp_path / "nowhere")
    with pytest.raises(jb.SetupError, match=r"cannot be read: (?i:is a (folder|directory))"):
        jb.import_file(tmp_path)


def test_an_eval_log_that_is_cut_off(tmp_path: Path) -> None:
    whole = (FILES / "inspect.eval").read_bytes()
    path = written(tmp_path, whole[: len(whole) // 2], "log")
    assert problems(path) == ["log: is a damaged or incomplete zip archive: copy the file again"]


def test_an_archive_that_unpacks_to_a_thousand_times_its_size(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1.json", b"0" * (1 << 25))
    (message,) = problems(tmp_path / "log")
    assert message.startswith("log: cannot be read: unpacks to more than 100 times its size")


def test_an_eval_log_whose_samples_are_damaged(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    with zipfile.ZipFile(tmp_path / "log", "w") as archive:
        archive.writestr("header.json", '{"version": 2}')
    (message,) = problems(tmp_path / "log")
    assert message.startswith("log: is damaged: inspect_ai cannot read it (")


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FILES / name).read_text().splitlines()]


def test_samples_of_several_tasks_in_one_file_are_an_error(tmp_path: Path) -> None:
    rows = lines_of("lm-eval-filters.jsonl")
    twice = "\n".join(json.dumps(row) for row in [*rows, rows[0]])
    assert problems(written(tmp_path, twice)) == [
        "log: has several rows of one document and filter: import each task by itself"
    ]


@pytest.mark.parametrize(
    ("name", "key", "value", "tool"),
    [
        ("inspect.json", "samples", [{"id": 1}], "inspect_ai 0.3.285, model mockllm/small"),
        ("label-studio.json", "annotations", [None], "Label Studio, JSON"),
    ],
)
def test_a_file_that_is_only_like_that_of_a_tool(
    tmp_path: Path, name: str, key: str, value: Any, tool: str
) -> None:
    content = json.loads((FILES / name).read_text())
    (content if isinstance(content, dict) else content[2])[key] = value
    (message,) = problems(written(tmp_path, json.dumps(content)))
    assert message.startswith(f"log: is like {tool}, but laid out otherwise (")


def test_a_log_without_scores_gives_answers_to_label(tmp_path: Path) -> None:
    log = json.loads((FILES / "inspect.json").read_text())
    log["eval"]["scorers"] = []
    for sample in log["samples"]:
        sample["scores"] = None
    report = jb.import_file(written(tmp_path, json.dumps(log)), tmp_path / "to")
    assert [path.name for path in report.files] == ["answers.jsonl"]


def test_a_log_in_which_every_sample_failed_is_an_error(tmp_path: Path) -> None:
    log = json.loads((FILES / "inspect.json").read_text())
    log["samples"] = [sample for sample in log["samples"] if sample["id"] == "fine"]
    assert problems(written(tmp_path, json.dumps(log))) == [
        "log: holds no answer to import; found samples that ended in an error, without an answer "
        "(1)"
    ]
