"""`judgebench decide` from the command line: outcomes, demands, exit codes, bad input."""

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from judgebench.cli.app import main

REPLY = {"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"}
ITEMS = 400


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with three colleagues, an expert who errs less, a trainee who errs more, and a judge
    that says the same of everything."""
    folder = tmp_path_factory.mktemp("decide")
    rng = np.random.default_rng(0)
    impolite = rng.random(ITEMS) < 0.3
    wrong = {"ann": 0.08, "bob": 0.08, "cem": 0.08, "expert": 0.02, "trainee": 0.35}
    rows = [
        f"i{i},{who},{'Impolite' if impolite[i] ^ (rng.random() < share) else 'Polite'}"
        for who, share in wrong.items()
        for i in range(ITEMS)
    ]
    (folder / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *rows]) + "\n")
    items = [f"i{i},q{i},reply {i}" for i in range(ITEMS)]
    (folder / "answers.csv").write_text("\n".join(["item_id,question,text", *items]) + "\n")
    (folder / "script.jsonl").write_text(json.dumps({"text": json.dumps(REPLY)}) + "\n")
    (folder / "bench.yaml").write_text(
        "name: planted\nrubric: support-tone\nmetrics: [politeness]\n"
        "data: [answers.csv, labels.csv]\n"
        f"judges:\n  - {{name: says-polite, backend: 'scripted:{folder}/script.jsonl'}}\n"
        "truth: {annotators: [ann, bob, cem], blind: yes}\n"
    )
    arguments = ["judgebench", "run", str(folder / "bench.yaml"), "--run", str(folder / "run")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    return folder / "run"


def test_every_metric_and_judge_has_an_outcome_with_its_reason(call, run_folder: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("decide", run_folder, "--as-judge", "expert", "--as-judge", "trainee", "-v")
    assert code == 0
    told = " ".join(out.split())
    assert "expert REPLACE judge 9" in told
    assert "agreement gap +0." in told
    assert re.search(r"trainee DO NOT USE judge \d+ %", told)
    assert re.search(r"says-polite DO NOT USE judge \d+ %", told)
    assert "! 3 judges were tried: intervals are widened to 98.33 %" in out
    assert "! There was no stress test" in out


@pytest.mark.parametrize(
    ("demand", "code"),
    [
        ("REPLACE:politeness:expert", 0),
        ("ASSIST:politeness:expert", 0),
        ("REPLACE:politeness:says-polite", 3),
    ],
)
def test_the_exit_code_tells_whether_a_demand_was_reached(
    call,  # type: ignore[no-untyped-def]
    run_folder: Path,
    demand: str,
    code: int,
) -> None:
    asked = ("decide", run_folder, "--as-judge", "expert", "--require", demand)
    found, out, _ = call(*asked)
    assert found == code
    assert (f"not reached: {demand}" in out) is (code == 3)


def test_every_bad_demand_is_told(call, run_folder: Path) -> None:  # type: ignore[no-untyped-def]
    bad = ("--require", "REPLACE:tone", "--require", "REPLACE", "--require", "NEVER:politeness")
    code, _, err = call("decide", run_folder, *bad)
    assert code == 2
    assert "REPLACE:tone" in err
    assert "NEVER:politeness" in err
    assert "Traceback" not in err


def test_a_rule_of_ones_own_changes_the_outcome(call, run_folder: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rule = tmp_path / "strict.yaml"
    rule.write_text("replace: {humans: {margin: 0.0}, severe: {recall: 0.999}}\n")
    code, out, _ = call("decide", run_folder, "--as-judge", "expert", "--rule", rule)
    assert code == 0
    assert "REPLACE for Politeness (expert)" not in " ".join(out.split())
    code, out, _ = call("check", rule)
    assert code == 0
    assert "a decision rule" in out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("severe_from: {politeness: Rude}\n", "severe_from.politeness"),
        ("replace: [\n", "is not YAML"),
    ],
)
def test_a_bad_rule_is_told_with_its_file(
    call,  # type: ignore[no-untyped-def]
    run_folder: Path,
    tmp_path: Path,
    text: str,
    expected: str,
) -> None:
    rule = tmp_path / "bad.yaml"
    rule.write_text(text)
    code, _, err = call("decide", run_folder, "--rule", rule)
    assert code == 2
    assert expected in err
    assert "bad.yaml" in err


def test_an_annotator_who_is_not_there_is_told(call, run_folder: Path) -> None:  # type: ignore[no-untyped-def]
    code, _, err = call("decide", run_folder, "--as-judge", "dora")
    assert code == 2
    assert "dora" in err
    assert "ann, bob, cem" in err
    code, _, err = call("decide", run_folder, "--as-judge", "says-polite")
    assert code == 2
    assert "name of a judge" in err


def test_a_pattern_puts_several_annotators_in_the_judges_place(call, run_folder: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("decide", run_folder, "--as-judge", "*e*", "--json")
    assert code == 0
    found = json.loads(out)
    assert {d["judge"] for d in found["decisions"]} == {"cem", "expert", "trainee", "says-polite"}
    (truth,) = found["truth"]
    assert "the median of ann and bob; ties (50 of 400) go to the more severe label." in truth


def test_the_report_opens_with_the_decisions(call, run_folder: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, _, _ = call("report", run_folder, "--as-judge", "expert", "--to", tmp_path / "paper")
    assert code == 0
    page = (tmp_path / "paper" / "report.html").read_text()
    assert page.index("REPLACE") < page.index("How sure is this?")
    with (tmp_path / "paper" / "decisions.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["analysis"] == "decision"]
    assert {(row["judge"], row["outcome"]) for row in rows} == {
        ("expert", "REPLACE"), ("says-polite", "DO NOT USE"),
    }  # fmt: skip


def test_an_interim_analysis_is_decided_at_its_level(call, run_folder: Path) -> None:  # type: ignore[no-untyped-def]
    looks = ("--looks", "0.2", "--looks", "0.4")
    code, out, _ = call("decide", run_folder, *looks, "-v")
    assert code == 0
    assert "interim analysis 2, at 40 % of the planned answers" in " ".join(out.split())
