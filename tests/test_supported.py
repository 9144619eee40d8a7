"""What `judgebench check` says that files support: each command that it names runs."""

import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from python_api import write_bench, write_tables

import judgebench as jb
from judgebench.features import FEATURES

TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables"
DECLARED = ("--order", "Harmful: no < yes", "--order", "Tone: friendly < curt < rude")

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tables of 60 answers, of which the commands are quick."""
    for name, n_rows in (("labels", 180), ("my-judge", 60), ("replies", 60)):
        rows = (TABLES / f"{name}.csv").read_text().splitlines()[: n_rows + 1]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    rows = (tmp_path / "labels.csv").read_text().splitlines()
    alone = [rows[0], *(row for row in rows if ",ann," in row)]
    (tmp_path / "one annotator.csv").write_text("\n".join(alone) + "\n")
    shutil.copy(tmp_path / "my-judge.csv", tmp_path / "old-judge.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def supported(call: Call, *words: str) -> tuple[dict[str, str], list[str]]:
    """The command of each use that is supported, and the lines of the table."""
    code, out, err = call("check", *words)
    assert (code, err) == (0, "")
    lines = out.partition("These files support:\n")[2].splitlines()
    rows = [line.split("  yes  ") for line in lines if "  yes  " in line]
    return {use.strip(): command for use, command in rows}, lines


def run_all(call: Call, commands: Sequence[str]) -> None:
    for command in dict.fromkeys(commands):
        for part in command.split(" && "):
            if "--certificate" not in part:  # which only some outcomes get
                code, _, err = call(*shlex.split(part)[1:])
                assert code == 0, (part, err)


def test_two_tables_support_all_but_a_second_judge(call: Call, folder: Path) -> None:
    commands, lines = supported(call, "labels.csv", "my-judge.csv", *DECLARED)
    assert set(commands) == {
        "agreement between annotators", "alignment of judges", "decision",
        "filter for severe answers", "rates of labels", "watch of a certificate",
    }  # fmt: skip
    assert "--order 'Harmful: no < yes'" in commands["decision"]
    assert any("comparison of two judges" in x and "a second judge" in x for x in lines)
    [declarations] = [x for x in lines if "--question COLUMN" in x]
    assert "--blind yes" in declarations
    run_all(call, [*commands.values()])


def test_a_judge_with_probabilities_may_decide_alone(call: Call, folder: Path) -> None:
    heads, *rows = (folder / "my-judge.csv").read_text().splitlines()
    columns = [f"probability_Refused_{label}" for label in ("no", "yes")]
    table = [",".join([heads, *columns]), *(f"{row},0.8,0.2" for row in rows)]
    (folder / "sure.csv").write_text("\n".join(table) + "\n")
    commands, _ = supported(call, "labels.csv", "sure.csv", *DECLARED)
    run_all(call, [commands["deciding alone where it is sure"]])


def test_two_judges_can_be_compared(call: Call, folder: Path) -> None:
    commands, _ = supported(call, "labels.csv", "my-judge.csv", "old-judge.csv")
    run_all(call, [commands["comparison of two judges"]])
    assert "--run runs/two-judges" in commands["comparison of two judges"]


@pytest.mark.parametrize(
    ("words", "use", "missing"),
    [
        (["one annotator.csv", "my-judge.csv"], "decision", "a second annotator"),
        (["labels.csv"], "rates of labels", "a judge's verdicts"),
        (
            ["labels.csv", "my-judge.csv"],
            "filter for severe",
            "--order 'METRIC: BEST < … < WORST'",
        ),
        (["replies.csv"], "agreement", "labels of people"),
    ],
)
def test_a_use_that_is_not_supported_names_what_is_missing(
    call: Call, folder: Path, words: list[str], use: str, missing: str
) -> None:
    _, lines = supported(call, *words)
    [line] = [line for line in lines if use in line]
    assert "  no   needs " in line
    assert missing in line


def test_answers_alone_wait_for_a_model(call: Call, folder: Path) -> None:
    commands, _ = supported(call, "replies.csv")
    assert commands == {"judging by a model": "judgebench init replies.csv --to mine"}
    run_all(call, [*commands.values()])


def test_a_benchmark_is_run_first(call: Call, folder: Path) -> None:
    write_tables(folder)
    write_bench(folder)
    commands, _ = supported(call, "bench.yaml")
    assert commands["verdicts of its judges"] == "judgebench run bench.yaml"
    assert commands["decision"] == "judgebench decide runs/small"
    if "stress" in FEATURES:
        assert commands["stress test"] == "judgebench stress bench.yaml"
    run_all(call, [*commands.values()])


def test_verdicts_of_other_answers_support_no_decision(folder: Path) -> None:
    jb.init(["labels.csv", "my-judge.csv"], "saved")
    verdicts = (folder / "my-judge.csv").read_text().replace("\nr", "\nother-r")
    (folder / "my-judge.csv").write_text(verdicts)
    [support] = jb.check(["saved/layout.yaml"]).supports
    assert (support.use, support.command) == ("decision", "")
    assert "no item of the verdicts of my-judge has a human label" in support.adds


def test_python_gives_the_same_records(folder: Path) -> None:
    report = jb.check(["labels.csv", "my-judge.csv"])
    by_use = {support.use: support for support in report.supports}
    assert by_use["decision"].command == "judgebench decide labels.csv my-judge.csv"
    assert not by_use["comparison of two judges"].command
    assert "These files support:" in repr(report)
