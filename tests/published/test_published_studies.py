"""Published studies, decided again: a synthetic one whose right answers are known."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgebench as jb
from judgebench.published.card import StudyCard, read_folders
from judgebench.published.result import Audit
from judgebench.rubric import load_rubric

HOME = Path(__file__).parents[2] / "examples" / "audit"
SYNTHETIC = HOME.with_name("audit-synthetic")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def found(pages: Path) -> Audit:
    return jb.audit(SYNTHETIC, SYNTHETIC, to=pages)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    place = tmp_path / "studies" / "mine"
    shutil.copytree(SYNTHETIC, place)
    return place


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_a_judge_that_knows_the_question_alone_passes_the_test_and_replaces_nobody(
    found: Audit,
) -> None:
    outcomes = {row.judge: row["outcome"] for row in found.claims}
    assert outcomes == {"reader": "REPLACE", "column-reader": "DO NOT USE"}
    assert all(row.estimate.value == 1 for row in found.claims)
    about = {"metric": "tone", "study": SYNTHETIC.name}
    guarded = {j: found.found.find("guarded", "test", judge=j, **about).value for j in outcomes}
    assert guarded == {"reader": 1, "column-reader": 0}
    (study,) = found.studies
    assert [row.judge for row in study.blind_passes] == ["by-asked"]
    assert "2 of 2 published passes come out of the files: 1 of judges that" in str(found)


def test_the_rule_and_the_published_test_by_pandas_and_scipy_alone(found: Audit) -> None:
    """The paper's test of a judge and of a rule by question, in another way."""
    from scipy.stats import ttest_1samp

    labels = pd.read_csv(SYNTHETIC / "labels.csv").set_index("item_id")
    verdicts = pd.read_csv(SYNTHETIC / "verdicts.csv").set_index("item_id")
    people = ["Ada", "Ben", "Cleo"]
    for judge in verdicts:
        shares, p = [], []
        for who in people:
            others = labels[[other for other in people if other != who]]
            of_judge = others.eq(verdicts[judge], axis=0).mean(axis=1)
            of_person = others.eq(labels[who], axis=0).mean(axis=1)
            wins, losses = (of_judge >= of_person), (of_person >= of_judge)
            shares.append(wins.mean())
            d = losses.astype(float) - wins.astype(float)
            p.append(ttest_1samp(d, 0.1, alternative="less").pvalue)
        advantage = found.found.find("advantage", "test", judge=judge)
        assert advantage.value == pytest.approx(np.mean(shares), abs=1e-12)
        ranked = np.sort(p) * 3 * (1 + 1 / 2 + 1 / 3) / np.arange(1, 4)
        rate = found.found.find("winning_rate", "test", judge=judge).value
        assert rate == (np.minimum.accumulate(ranked[::-1]) <= 0.05).mean()


def test_printed_figures_are_compared_to_their_last_digit(found: Audit, copy: Path) -> None:
    rows = found.found.select("figure")
    assert len(rows) == 5
    assert {row["same"] for row in rows} == {"yes"}
    changed(copy / "published.csv", "0.96", "0.97")
    changed(copy / "published.py", '"49.6"', '"49.5"')
    again = jb.audit(copy, copy, choices=False)
    off = [row["what"] for row in again.found.select("figure") if row["same"] == "no"]
    assert off == ["reader: average advantage", "Ben: rude, %"]
    assert "reader: average advantage: 0.97 printed, 0.9563 found" in "".join(
        cell.value
        for block in again.part.blocks
        for t in block.tables
        for r in t.rows
        for cell in r
    )


def test_every_link_of_the_page_leads_somewhere(found: Audit, pages: Path) -> None:
    page = (pages / "report.html").read_text()
    links = set(re.findall(r'href="([^"]+)"', page))
    places = set(re.findall(r' id="([^"]+)"', page))
    assert {link for link in links if link.startswith("#on-")}
    for link in links:
        there = link[1:] in places if link.startswith("#") else (pages / link).is_file()
        assert there, link
    study = (pages / SYNTHETIC.name / "report.html").read_text()
    assert "One of them, column-reader, looks at" in study
    assert "What misleads" in study


def test_choices_say_what_they_turn_around(found: Audit) -> None:
    rows = found.found.select("choice")
    assert {"reference labels: dawid_skene", "two annotators, with the most labels"} >= {
        row["choice"] for row in rows
    }
    (other,) = {row["choice"] for row in rows} - {"reference labels: dawid_skene"}
    two = {row.judge: (row["before"], row["outcome"]) for row in rows if row["choice"] == other}
    assert two["column-reader"][0] == "DO NOT USE"


def test_another_truth_is_that_of_a_study_made_with_it() -> None:
    labels = pd.read_csv(SYNTHETIC / "labels.csv").drop(columns="text")
    long = labels.melt(["item_id", "asked"], var_name="annotator", value_name="tone")
    verdicts = pd.read_csv(SYNTHETIC / "verdicts.csv")[["item_id", "reader"]]
    said = verdicts.rename(columns={"reader": "tone"}).assign(judge="reader")
    rubric = load_rubric(SYNTHETIC / "rubric.yaml")
    study = jb.study(long, said, rubric=rubric)
    for truth in ({"rule": "dawid_skene"}, {"annotators": ("Ada", "Cleo"), "ties": "none"}):
        made = jb.study(long, said, rubric=rubric, truth=truth)
        under = study.under(made.config)
        assert under.humans["tone"].truth.tolist() == made.humans["tone"].truth.tolist()
        assert under.makers == made.makers


def test_the_same_files_give_the_same_bytes(found: Audit, pages: Path, tmp_path: Path) -> None:
    jb.audit(SYNTHETIC, SYNTHETIC, to=tmp_path)
    names = ["audit.csv", "tables.md", "report.html", f"{SYNTHETIC.name}/audit.csv"]
    assert [(tmp_path / n).read_bytes() for n in names] == [(pages / n).read_bytes() for n in names]


def test_a_study_without_its_files_is_skipped_and_said(copy: Path, call) -> None:  # type: ignore[no-untyped-def]
    changed(copy / "study.yaml", "ships_data: true", "data: elsewhere")
    code, out, _ = call("audit", copy.parent, "--downloads", copy.parent, "--no-choices")
    assert code == 0
    assert "mine: its files are not in" in out


def test_all_problems_of_all_folders_are_reported_together(copy: Path, call) -> None:  # type: ignore[no-untyped-def]
    other = copy.parent / "other"
    shutil.copytree(copy, other)
    changed(copy / "study.yaml", "title:", "titel:")
    changed(copy / "study.yaml", "passes:", "passed:")
    changed(other / "published.csv", ",0.92,", ",about .9,")
    changed(other / "study.yaml", "what:", "prepare: tables.py\nwhat:")
    code, _, err = call("audit", copy.parent)
    assert code == 2
    for said in (
        "titel: is not a known key; did you mean 'title'?",
        "passed: is not a known key; did you mean 'passes'?",
        "no such file 'tables.py'",
        "published.csv:3: printed: is no number; found 'about .9', scale 1",
    ):
        assert said in " ".join(err.split()), said


def test_keys_that_select_no_row_or_several_are_named(copy: Path) -> None:
    faults = (("tone,reader", "tone,raeder", 0), ("published,advantage", ",advantage", 2))
    for old, new, n in faults:
        shutil.copy(SYNTHETIC / "published.csv", copy)
        changed(copy / "published.csv", old, new)
        (problem,) = jb.audit(copy, copy, choices=False).failed
        assert f"these keys select {n} rows of the results" in str(problem)


def test_a_study_that_fails_says_why_and_stops_no_other(copy: Path, call) -> None:  # type: ignore[no-untyped-def]
    shutil.copytree(copy, copy.parent / "zz")
    (copy / "prepare.py").write_text("def prepare(data, to):\n    raise KeyError('column')\n")
    code, out, err = call("audit", copy.parent, "--no-choices")
    assert code == 2
    assert "1 published study" in out
    said = "prepare.py: prepare: cannot prepare the tables; found KeyError: 'column'"
    assert said in " ".join(err.split())
    assert said in " ".join(out.split())


def test_a_folder_without_studies_and_a_name_that_is_none(tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    code, _, err = call("audit", tmp_path)
    assert code == 2
    assert "holds no study: no study.yaml in it or one folder below" in " ".join(err.split())
    code, _, err = call("audit", HOME, "--only", "pandaml")
    assert code == 2
    assert "no such study; did you mean 'pandalm'?" in " ".join(err.split())


def test_the_schema_is_json_schema_and_every_study_obeys_it(call) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("audit", "--schema")
    assert code == 0
    schema = json.loads(out)
    assert {"title", "source", "files", "what", "claim"} <= set(schema["required"])
    assert schema == StudyCard.model_json_schema()
    names = [folder.name for folder in read_folders(HOME)]
    assert "alttest-framing" in names
    assert len(names) == len(list(HOME.glob("*/study.yaml")))


def test_the_synthetic_tables_are_those_that_make_py_writes(tmp_path: Path) -> None:
    shutil.copy(SYNTHETIC / "make.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "make.py"], check=True)
    for name in ("labels.csv", "verdicts.csv"):
        assert (tmp_path / name).read_bytes() == (SYNTHETIC / name).read_bytes()


def test_the_example_of_the_docstring_runs(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import doctest

    shutil.copytree(SYNTHETIC, tmp_path / "audit" / "synthetic")
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(recurse=False).find(jb.audit, "audit")
    assert doctest.DocTestRunner().run(test).failed == 0


def test_an_interrupted_audit_keeps_the_studies_that_are_done(copy: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from judgebench.published import run

    shutil.copytree(copy, copy.parent / "zz")
    audited = run._audited

    def stopped(folder, *rest):  # type: ignore[no-untyped-def]
        if folder.name == "zz":
            raise KeyboardInterrupt
        return audited(folder, *rest)

    monkeypatch.setattr(run, "_audited", stopped)
    found = jb.audit(copy.parent, copy.parent, to=copy.parent / "to", choices=False)
    assert [study.name for study in found.studies] == ["mine"]
    assert found.skipped == ("interrupted in zz: studies after it are left out",)
    assert (copy.parent / "to" / "mine" / "report.html").is_file()
    assert "interrupted in zz" in (copy.parent / "to" / "report.html").read_text()
