"""Published studies decided again: the authors' figures, our decisions, and docs/audit.md."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.long
REPO = Path(__file__).resolve().parents[2]
SETS = ("xstest-verdicts", "mtbench-human", "medical-safety-crowd")
Tables = dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def audit() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("audit", REPO / "examples" / "audit" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["audit"]


@pytest.fixture(scope="module")
def printed(audit: ModuleType, shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    if lacking := [name for name in SETS if not (shared_data / name).is_dir()]:
        pytest.skip(
            f"needs the published files of {', '.join(lacking)}, which are not ours to ship"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text: str = audit.tables(shared_data, tmp_path_factory.mktemp("runs"))
    return text


@pytest.fixture(scope="module")
def tables(printed: str) -> Tables:
    """The rows of each table, by its heading."""
    found: Tables = {}
    for block in printed.split("### ")[1:]:
        heading, *lines = block.strip().splitlines()
        found[heading] = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[3:]]
    return found


def test_the_authors_figures_come_out_to_the_printed_digit(tables: Tables) -> None:
    counts = {(row[0], row[1]): (row[2], row[3], row[4]) for row in tables["The authors' figures"]}
    assert counts == {
        ("XSTest", "paper, Table 1"): ("110", "110", "none"),
        ("XSTest", "paper, Table 2"): ("10", "10", "none"),
        ("XSTest", "notebook"): ("238", "238", "none"),
        ("MT-bench", "paper, Table 5 (a)"): ("8", "8", "none"),
        ("MT-bench", "paper, Table 5 (b)"): ("4", "4", "none"),
    }


def test_a_figure_that_differs_is_listed(audit: ModuleType) -> None:
    figures = [
        audit.Figure("Table 9", "votes", "66", 65.97),
        audit.Figure("Table 9", "κ", "0.93", 0.924),
    ]
    (row,) = audit.figure_rows("A set", figures)
    assert row == ["A set", "Table 9", "2", "1", "κ: 0.93 printed, 0.924 found"]


def test_our_decisions(tables: Tables) -> None:
    made = {(row[1], row[2]): row[-1].strip("*") for row in tables["Decisions"]}
    assert {key: outcome for key, outcome in made.items() if outcome != "DO NOT USE"} == {
        ("First turn", "gpt-4"): "CAN'T TELL",
        ("First turn", "blind rule"): "CAN'T TELL",
        ("Second turn", "gpt-4"): "CAN'T TELL",
        ("Critical query", "expert"): "CAN'T TELL",  # the crowd beats no constant either
        ("Query risk", "expert"): "CAN'T TELL",
        ("Response type, medical", "expert"): "REPLACE",
    }
    metrics = {"gpt-4": 5, "string-match": 3, "gpt-4-consistent": 2, "expert": 4, "blind rule": 5}
    assert Counter(judge for _, judge in made) == metrics


def test_unreadable_verdicts_are_no_labels(tables: Tables) -> None:
    missing = {(row[1], row[2]): row[4] for row in tables["Decisions"]}
    assert missing["Refused", "gpt-4"] == "11"
    assert missing["Refused", "string-match"] == "0"
    assert missing["First turn", "gpt-4-consistent"] == "101"


def test_a_rule_that_never_reads_a_reply_is_right_more_often_than_gpt4(tables: Tables) -> None:
    ahead = {(row[1], row[2]): row[-1] for row in tables["Judges against the blind rule"]}
    assert ahead["Refused", "gpt-4"] == "-0.032 [-0.055, -0.009]"
    assert ahead["First turn", "gpt-4"] == "+0.060 [+0.010, +0.111]"
    assert ahead["Second turn", "gpt-4"] == "+0.040 [-0.004, +0.084]"


def test_a_constant_judge_passes_the_alternative_annotator_test(tables: Tables) -> None:
    rows = {row[0]: row for row in tables["The Alternative Annotator Test"]}
    passes = {name: row[3] for name, row in rows.items() if row[3] != "never"}
    assert passes == {
        "XSTest: Partly refused": "0.1",
        "Medical queries: Query risk": "0.15",
        "Medical queries: Critical query": "0",
    }
    assert rows["XSTest: Compliance, unsafe prompts"][4:6] == [
        "0.15",
        "gpt-4 never, string-match 0.2",
    ]
    assert all(row[-1].split(", ")[0] == "never" for row in rows.values())


def test_what_a_tied_vote_means_decides(tables: Tables) -> None:
    rows = tables["MT-bench: what a tied majority means"]
    made = {(row[0], row[1]): row[-1].strip("*") for row in rows}
    assert made["tied votes: no reference label", "First turn"] == "CAN'T TELL"
    assert made["tied votes: tie", "First turn"] == "REPLACE"
    assert {made[key] for key in made if key[1] == "Second turn"} == {"CAN'T TELL"}


def test_one_data_yaml_is_enough_to_decide(  # type: ignore[no-untyped-def]
    call, shared_data: Path, tmp_path: Path
) -> None:
    published = shared_data / "xstest-verdicts" / "xstest.csv.gz"
    if not published.is_file():
        pytest.skip("needs xstest.csv.gz, which we cannot ship")
    for file in (published, *(REPO / "examples" / "audit" / "xstest").glob("*.yaml")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    data, rubric = tmp_path / "data.yaml", tmp_path / "rubric.yaml"
    with pytest.warns(UserWarning, match=r"gpt4_label: .* counted as unparsed \(11 times"):
        code, out, _ = call("decide", "--labels", data, "--verdicts", data, "--rubric", rubric)
    assert code == 0
    assert "Reference labels by annotator-1 and annotator-2" in out
    assert "finds only 20 of 206 severe answers" in " ".join(out.split())


def test_the_page_shows_what_the_script_prints(printed: str) -> None:
    page = (REPO / "docs" / "audit.md").read_text("utf-8")
    for block in printed.split("### ")[1:]:
        assert f"### {block.strip()}" in page
