"""What `to_frame()` gives is what stands in the CSV files of a report, row for row."""

import re
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from python_api import rubric

import judgebench as jb


@pytest.fixture(scope="module")
def study(place: Path) -> jb.Study:
    return jb.open_run(place / "runs" / "small", as_judges=["annotator-1"])


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Every cell as a text, whatever a number looks like in a CSV file."""
    return frame.astype(object).where(frame.notna(), "").map(_text)


def _text(cell: object) -> str:
    try:
        return repr(float(str(cell)))
    except ValueError:
        return str(cell)


@pytest.mark.long
def test_frames_equal_the_csv_files_row_for_row(study: jb.Study, tmp_path: Path) -> None:
    written = jb.report(study, tmp_path)
    found = jb.analyse(study)
    assert len(found) >= 2
    every = pd.read_csv(written["results.csv"], dtype=str, keep_default_na=False)
    assert len(every) == sum(len(findings.to_frame("all")) for findings in found.values())
    for findings in found.values():
        frame = findings.to_frame("all")
        filed = every[every["part"] == findings.part.key].reset_index(drop=True)
        assert set(filed.pop("caveat")) <= {"", *study.gaps}
        assert (filed.drop(columns=[*frame.columns, "part"]) == "").all(axis=None)
        filed = filed[list(frame.columns)]
        assert len(filed) == len(frame) > 0
        assert_frame_equal(as_text(filed), as_text(frame.reset_index(drop=True)))


def test_every_condition_of_every_decision_is_a_row(study: jb.Study) -> None:
    frame = jb.decide(study).to_frame()
    decided = frame[frame.analysis == "decision"]
    assert len(decided) == len(rubric().metrics) * 2  # my-judge and annotator-1
    conditions = frame[frame.analysis == "condition"].groupby(["judge", "metric"])
    assert conditions.ngroups == len(decided)
    assert conditions.size().min() >= 7


def test_findings_print_a_summary_and_show_a_table_in_a_notebook(study: jb.Study) -> None:
    for findings in jb.analyse(study).values():
        assert "my-judge" in str(findings)
        assert len(str(findings).splitlines()) < 120
        assert "<table" in findings._repr_html_()
        assert len(repr(findings)) < 10_000
    assert "CAN'T TELL" in str(jb.decide(study))


def test_a_report_says_first_what_was_judged_by_whom_and_when(place: Path) -> None:
    opened = jb.open_run(place / "runs" / "small")
    given = jb.study(
        *(place / f"{n}.csv" for n in ("labels", "verdicts", "answers")), rubric=rubric()
    )
    said = [[f for one in jb.analyse(s).values() for f in one.part.facts] for s in (opened, given)]
    for facts in said:
        assert {"24 answers to 7 questions", "3 annotators"} <= {*facts}
        assert f"{len(rubric().metrics)} metrics" in facts
    dated = re.compile(rf"20\d\d-\d\d-\d\d, judgebench {re.escape(jb.__version__)}")
    run, tables = (any(map(dated.fullmatch, facts)) for facts in said)
    assert (run, tables) == (True, False)


def test_the_same_numbers_from_tables_and_from_the_run_that_gave_them(place: Path) -> None:
    opened = jb.open_run(place / "runs" / "small")
    files = (place / name for name in ("labels.csv", "verdicts.csv", "answers.csv"))
    given = jb.study(*files, rubric=rubric(), truth=opened.config, level=opened.level)
    for analysis in (jb.align, jb.decide):
        keys = ["analysis", "judge", "metric", "statistic"]
        one, other = (
            as_text(analysis(s).to_frame()).sort_values(keys, kind="stable", ignore_index=True)
            for s in (opened, given)
        )
        assert_frame_equal(one, other)


def test_decisions_are_a_table_of_what_a_screen_shows(place: Path) -> None:
    decisions = jb.decide(jb.open_run(place / "runs" / "small"))
    table = decisions.table()
    assert table.index.names == ["metric", "judge"]
    (empathy,) = (d for d in decisions.decisions if d.metric == "empathy")
    shown = table.loc["Empathy", "my-judge"]
    assert shown.outcome == empathy.outcome
    shares = decisions.shares("my-judge", "empathy")
    assert (shown.accuracy, shown.humans) == (shares.worst.value, shares.humans.value)
    assert shown.why
