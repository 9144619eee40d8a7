"""align, decide and report of files, without a run folder or a bench.yaml."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app

TONES = ["Friendly", "Curt", "Rude"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    items = [f"i{n}" for n in range(60)]
    labels = [(i, a, TONES[n % 3]) for n, i in enumerate(items) for a in ("Ann", "Bob")]
    pd.DataFrame(labels, columns=["item_id", "annotator", "tone"]).to_csv("labels.csv", index=False)
    verdicts = [(i, TONES[n % 3] if n % 4 else "") for n, i in enumerate(items)]
    frame = pd.DataFrame(verdicts, columns=["item_id", "tone"])
    frame.to_csv("gpt4.csv", index=False)
    frame[frame.tone != ""].to_csv("part.csv", index=False)
    Path("tone.yaml").write_text(
        "name: tone\nversion: '1'\ninstructions: Judge the tone.\nmetrics:\n"
        "  - {id: tone, title: Tone, question: What tone, kind: ordinal,"
        " labels: [Friendly, Curt, Rude]}\n"
    )
    return tmp_path


def ask(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, list(words), catch_exceptions=True)
    if isinstance(found.exception, jb.SetupError):
        return 2, str(found.exception)
    return found.exit_code, found.stdout


GIVEN = ("--labels", "labels.csv", "--rubric", "tone.yaml")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_decide_of_files_is_decide_of_the_study_in_python(files: Path) -> None:
    code, out = ask("decide", *GIVEN, "--verdicts", "gpt4.csv", "--json")
    assert code == 0
    (decision,) = json.loads(out)["decisions"]
    study = jb.study("labels.csv", "gpt4.csv", rubric="tone.yaml")
    (same,) = jb.decide(study).decisions
    assert (decision["judge"], decision["outcome"]) == ("gpt4", "DO NOT USE")
    assert decision["reason"] == same.reason == "It gives no label on 25 % of the answers."


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_several_files_and_a_judge_that_was_asked_in_part(files: Path) -> None:
    both = ("--verdicts", "gpt4.csv", "--verdicts", "part.csv")
    code, out = ask("align", *GIVEN, *both, "--expected", "rows", "--json")
    assert code == 0
    rows = [
        row for row in json.loads(out)["alignment"]
        if row["analysis"] == "score" and row["statistic"] == "accuracy"
    ]  # fmt: skip
    missing = {(r["judge"], r["failures"]): r["n_missing"] for r in rows}
    assert missing["gpt4", "left_out"] == 15
    assert missing["part", "left_out"] == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("blank", ["", None])
@pytest.mark.parametrize("place", ["files", "run"])
def test_an_annotator_as_judge_fails_where_a_cell_is_blank(
    files: Path, blank: str | None, place: str
) -> None:
    """An unreadable judge that was imported as annotator: blank cells, or no rows, on 15 of 60."""
    everybody = pd.concat(
        [pd.read_csv("labels.csv"), pd.read_csv("gpt4.csv").assign(annotator="m")]
    )
    kept = everybody if blank == "" else everybody[everybody.tone.notna()]
    kept.to_csv("all.csv", index=False)
    if place == "run":
        everybody[["item_id"]].drop_duplicates().assign(text="Some.").to_csv("a.csv", index=False)
        Path("bench.yaml").write_text("name: b\nrubric: tone.yaml\ndata: [a.csv, all.csv]\n")
        jb.run("bench.yaml", "run")
    given = ("run",) if place == "run" else ("--labels", "all.csv", "--rubric", "tone.yaml")
    code, out = ask("decide", *given, "--as-judge", "m", "--json")
    (found,) = json.loads(out)["decisions"]
    reasons = {
        "": ("DO NOT USE", "It gives no label on 25 % of the answers."),
        None: ("CAN'T TELL", "The judge was asked about 45 of 60 answers: "),
    }
    assert (code, found["outcome"]) == (0, reasons[blank][0])
    assert found["reason"].startswith(reasons[blank][1])
    assert (found["accuracy"]["n"], found["accuracy"]["n_missing"]) == (
        45, 15 if blank == "" else 0,
    )  # fmt: skip
    _, out = ask("align", *given, "--as-judge", "m", "--json", "--expected", "rows")
    score = [
        row for row in json.loads(out)["alignment"]
        if (row["statistic"], row.get("judge"), row["analysis"]) == ("accuracy", "m", "score")
    ]  # fmt: skip
    assert score[0]["n_missing"] == (15 if blank == "" else 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_annotator_as_judge_stands_beside_judges_in_python(files: Path) -> None:
    study = jb.study("labels.csv", "gpt4.csv", rubric="tone.yaml", as_judges=["Ann"])
    assert {d.judge for d in jb.decide(study).decisions} == {"Ann", "gpt4"}
    assert study.makers == ("Bob",)
    verdicts = {"Ann": "gpt4.csv"}
    with pytest.raises(jb.SetupError, match="two judges have this name"):
        jb.study("labels.csv", verdicts, rubric="tone.yaml", as_judges=["Ann"])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_align_prints_the_tables_of_a_paper_and_with_v_the_decisions_too(files: Path) -> None:
    code, out = ask("align", *GIVEN, "--verdicts", "gpt4.csv")
    assert code == 0
    assert re.search(r"gpt4 +\.75 \[\.\d\d, \.\d\d\] +\.62 +\.47 .* do not use", out)
    assert "Failures count as wrong: gpt4 15 of 60 labels." in " ".join(out.split())
    assert "Agreement among the annotators" in out
    assert "It gives no label on 25 % of the answers." not in out
    _, every = ask("align", *GIVEN, "--verdicts", "gpt4.csv", "-v")
    assert "It gives no label on 25 % of the answers." in every
    shown = [line for line in out.splitlines() if line and not line.startswith("More with")]
    assert not set(shown) - set(every.splitlines())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_report_of_files(files: Path) -> None:
    code, _ = ask("report", *GIVEN, "--verdicts", "gpt4.csv", "--to", "out", "-q")
    assert code == 0
    assert "gpt4" in Path("out/report.html").read_text()
    code, said = ask("report", *GIVEN, "--verdicts", "gpt4.csv")
    assert (code, said) == (2, "--to: say where to write the report of files")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give a run folder, or tables: labels.xlsx gpt4.xlsx"),
        (("labels.csv", *GIVEN), "no judge to decide on: give a table of verdicts as well"),
        ((".", *GIVEN), "give either a run folder or tables; found ."),
        (("runs/demo", "--item", "id"), "give either a run folder or tables"),
        (("labels.csv", "gpt4.csv", "--item", "nr"), "no table has this column; found nr"),
        ((*GIVEN, "--verdicts", "no.csv"), "no.csv: no such file"),
    ],
)
def test_what_does_not_go_together(files: Path, words: tuple[str, ...], said: str) -> None:
    code, out = ask("decide", *words)
    assert code == 2
    assert said in out
