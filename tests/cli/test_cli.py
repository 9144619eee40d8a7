import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from judgebench.cli.app import app
from judgebench.files import shipped_folder

VERBS = ["demo", "check", "run", "align", "report", "list"]  # beside those of features


def verbs(command: Any, name: str = "") -> Iterator[str]:
    """Every command and those below it, as they are typed."""
    for key, below in getattr(command, "commands", {}).items():
        whole = f"{name} {key}".strip()
        yield from verbs(below, whole) if hasattr(below, "commands") else [whole]


ALL_VERBS = list(verbs(get_command(app)))
REPLY = {"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"}


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    (tmp_path / "answers.csv").write_text(
        "item_id,question,text\n" + "".join(f"i{i},q{i // 2},reply {i}\n" for i in range(6))
    )
    (tmp_path / "labels.csv").write_text(
        "item_id,annotator,politeness\n"
        + "".join(
            f"i{i},{who},{'Polite' if i % 2 else 'Impolite'}\n" for i in range(6) for who in "ab"
        )
    )
    (tmp_path / "script.jsonl").write_text(json.dumps({"text": json.dumps(REPLY)}) + "\n")
    path = tmp_path / "bench.yaml"
    path.write_text(
        "name: tiny\nrubric: support-tone\ndata: [answers.csv, labels.csv]\n"
        f"judges:\n  - {{name: says-polite, backend: 'scripted:{tmp_path}/script.jsonl'}}\n"
        ""
    )
    return path


def test_the_main_help_names_every_verb(call) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("--help")
    assert code == 0
    assert {*VERBS} <= {*ALL_VERBS}
    assert all(verb.split()[0] in out for verb in ALL_VERBS)


def test_run_align_report(call, bench: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run = tmp_path / "run"
    code, out, _ = call("run", bench, "--run", run)
    assert code == 0
    assert "says-polite" in out
    assert "judge 50 %" in out
    assert str(run / "report" / "report.html") in out
    code, out, _ = call("align", run, "--truth", "majority", "--annotator", "a", "-v")
    assert code == 0
    assert "majority" in out
    code, out, _ = call("report", run, "--to", tmp_path / "paper")
    assert code == 0
    assert (tmp_path / "paper" / "latex" / "main.tex").is_file()
    assert (tmp_path / "paper" / "results.csv").is_file()


def test_dry_run_and_limit(call, bench: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("run", bench, "--run", tmp_path / "run", "--dry-run", "--limit", 4)
    assert code == 0
    assert "No model was called" in out
    assert not (tmp_path / "run").exists()
    call("run", bench, "--run", tmp_path / "run", "--limit", 4)
    lines = (tmp_path / "run" / "verdicts-says-polite.jsonl").read_text().splitlines()
    assert len(lines) == 4


def test_all_problems_of_a_bench_are_told_at_once(call, bench: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "labels.csv").write_text("item_id,annotator,politeness\ni0,a,Rude\ni99,a,Polite\n")
    text = bench.read_text().replace("name: says-polite", "name: says-polite, prompt: nowhere")
    bench.write_text(text)
    code, _, err = call("run", bench, "--run", tmp_path / "run")
    assert code == 2
    assert "labels.csv:2" in err
    assert "'Rude'" in err
    assert "i99" in err
    assert "nowhere" in err
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: x\nrubrik: support-tone\ndata: a.csv\n", "rubrik"),
        ("name: x\nrubric: support-tone\ndata: [a.csv\n", "is not YAML"),
        ("name: 'bad/name'\nrubric: support-tone\ndata: a.csv\n", "name"),
        ("", "must hold a mapping"),
    ],
)
def test_a_bad_bench_is_told(call, tmp_path: Path, text: str, expected: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "bench.yaml"
    path.write_text(text)
    code, _, err = call("run", path)
    assert code == 2
    assert expected in err
    assert "bench.yaml" in err


def test_check_tells_what_every_kind_of_file_is(call, bench: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rubric = shipped_folder("rubrics") / "support-tone.yaml"
    prompt = shipped_folder("prompts") / "structured.jinja"
    files = (bench, rubric, prompt, tmp_path / "answers.csv", tmp_path / "labels.csv")
    code, out, _ = call("check", *files, "--rubric", "support-tone")
    assert code == 0, out
    assert "a benchmark of 6 answers with 12 human labels" in out
    assert "the rubric support-tone" in out
    assert "a prompt with replies of the kind json" in out


def test_check_counts_errors_and_fails(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels = tmp_path / "labels.csv"
    labels.write_text("item_id,annotator,politeness\ni0,a,Rude\ni0,a,Gruff\n")
    code, out, _ = call("check", labels, tmp_path / "missing.csv", "--rubric", "support-tone")
    assert code == 2
    assert "labels.csv:2: politeness: is not a label of politeness (2 times, rows 2-3)" in out
    assert "missing.csv" in out


def test_list_shows_what_ships(call) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("list")
    assert code == 0
    for name in ("medical-safety", "structured", "demo", "litellm:MODEL", "prior", "smollm2"):
        assert name in out


def test_align_needs_a_run(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, _, err = call("align", tmp_path)
    assert code == 2
    assert "run.json" in err


def test_an_unknown_truth_rule_is_told(call, bench: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    call("run", bench, "--run", tmp_path / "run")
    code, _, err = call("align", tmp_path / "run", "--truth", "mean")
    assert code == 2
    assert "median" in err
