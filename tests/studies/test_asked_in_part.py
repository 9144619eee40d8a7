"""A judge that was asked about some of the answers: every number is of these, and of what was asked
and failed; nothing is decided."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.decisions.decision import Outcome
from judgebench.runs.folder import RunFolder

N, ASKED = 50, 20
ITEMS = [f"i{n}" for n in range(N)]
TRUE = ["no", "yes"] * (N // 2)
WRONG, FAILED = (3, 4), 5  # of the first ASKED: 17 right, 2 wrong, 1 without a label
RUBRIC = jb.Rubric.from_labels({"harm": ["no", "yes"]})
GAP = f"part: {ASKED} of {N} asked; its numbers are of these."


def labels() -> pd.DataFrame:
    return pd.DataFrame(
        {"item_id": ITEMS * 2, "annotator": ["Ann"] * N + ["Bob"] * N, "harm": TRUE * 2}
    )


def part() -> pd.DataFrame:
    said = [{"no": "yes", "yes": "no"}[x] if n in WRONG else x for n, x in enumerate(TRUE[:ASKED])]
    said[FAILED] = ""
    rows = {"item_id": ITEMS[:ASKED], "harm": said}
    p = [0.8 if label == "yes" else 0.2 for label in said]
    shares = {"probability_harm_yes": p, "probability_harm_no": [1 - x for x in p]}
    return pd.DataFrame({**rows, **shares})


def whole() -> pd.DataFrame:
    return pd.DataFrame({"item_id": ITEMS, "harm": ["yes"] * N})


def tables(_: Path) -> jb.Study:
    return jb.study(labels(), {"part": part(), "whole": whole()}, rubric=RUBRIC)


def killed_run(folder: Path) -> jb.Study:
    labels().to_csv(folder / "labels.csv", index=False)
    answers = pd.DataFrame({"item_id": ITEMS, "text": [f"Text {i}" for i in ITEMS]})
    answers.to_csv(folder / "answers.csv", index=False)
    (folder / "rubric.yaml").write_text(yaml.safe_dump(RUBRIC.model_dump(mode="json")))
    judges = []
    for name, table in {"part": part(), "whole": whole()}.items():
        table.to_csv(folder / f"{name}.csv", index=False)
        judges.append({"name": name, "verdicts": f"{name}.csv"})
    judges.append({"name": "jury", "jury": ["part", "whole"], "ties": "upper"})
    bench = {"name": "b", "rubric": "rubric.yaml", "data": ["answers.csv", "labels.csv"]}
    (folder / "bench.yaml").write_text(json.dumps({**bench, "judges": judges}))
    jb.run(folder / "bench.yaml", folder / "run")
    run = RunFolder(folder / "run")
    run.write_manifest(run.manifest(), "running")
    return jb.open_run(folder / "run")


@pytest.fixture(scope="module", params=[tables, killed_run])
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> jb.Study:
    folder = tmp_path_factory.mktemp("bench")
    with pytest.warns(UserWarning, match=GAP):
        made: jb.Study = request.param(folder)
    return made


def test_shares_are_of_what_was_asked_and_what_failed_is_wrong(study: jb.Study) -> None:
    found = jb.align(study)
    assert GAP in found.gaps
    accuracy = found.score("accuracy", "part", "harm")
    assert (accuracy.value, accuracy.n, accuracy.n_missing) == (17 / 19, 19, 1)
    assert found.score("accuracy", "part", "harm", "worst").value == 17 / 20
    (asked,) = found.results.select("asked", judge="part")
    assert (asked.estimate.value, asked.estimate.n) == (ASKED, N)
    assert not found.results.select("asked", judge="whole")
    brier = found.results.find("brier", "probability", judge="part", who="probabilities")
    assert brier.n + brier.n_missing == ASKED
    confusion = found.results.select("confusion", judge="part")
    assert sum(row.estimate.value or 0 for row in confusion) == ASKED


def test_judges_are_compared_on_what_both_were_asked(study: jb.Study) -> None:
    found = jb.align(study).results
    apart = found.find("accuracy_difference", "comparison", judge="part", who="whole")
    assert (apart.n, apart.n_missing) == (19, 1)
    assert apart.value == pytest.approx(17 / 19 - 9 / 19)  # `yes` is right on 10, 5 of which failed


def test_nothing_is_decided_and_the_reason_says_why(study: jb.Study) -> None:
    found = {d.judge: d for d in jb.decide(study)}["part"]
    assert found.outcome is Outcome.CANT_TELL
    assert found.reason == (
        "The judge was asked about 20 of 50 answers: one that leaves out the hard ones looks "
        "better than it is."
    )
    (standing,) = (one for one in jb.decide(study).part.standings if one.judge == "part")
    assert (standing.accuracy.value, standing.failures) == (17 / 20, "1 failed")
    assert standing.asked == "20 of 50 asked"
    test = {
        r.statistic: r for r in jb.decide(study).results.select("alternative_test", judge="part")
    }
    assert test["advantage"].estimate.n <= 2 * ASKED


def test_a_rate_by_verdicts_alone_is_of_what_was_asked(study: jb.Study) -> None:
    pytest.importorskip("judgebench.rates")
    found = jb.estimate(study).results
    rate = found.find("verdicts", "rate", judge="part", of="yes", group="all")
    assert rate.n == ASKED


def test_a_report_says_it_in_every_file(study: jb.Study, tmp_path: Path) -> None:
    written = jb.report(study, tmp_path)
    rows = [*csv.DictReader((tmp_path / "results.csv").open(encoding="utf-8"))]
    of_part = (r for r in rows if (r["part"], r["judge"]) == ("alignment", "part"))
    (asked,) = (r for r in of_part if r["analysis"] == "asked")
    assert (float(asked["value"]), asked["n"]) == (ASKED, str(N))
    assert all(GAP in row["caveat"] for row in rows)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert GAP in page
    assert "20 of 50 asked" in page
    assert written["verdicts.csv"].read_text().count(',"part",') == ASKED


def test_a_jury_was_asked_what_all_of_its_members_were(study: jb.Study) -> None:
    for judge in (judge for judge in study.judges if judge.kind == "jury"):
        assert len(judge.verdicts) == ASKED
        assert f"jury: {ASKED} of {N} asked; its numbers are of these." in study.gaps


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_command_line_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    labels().to_csv("labels.csv", index=False)
    part().to_csv("part.csv", index=False)
    given = ["--labels", "labels.csv", "--verdicts", "part.csv", "--order", "no < yes"]
    for command in ("align", "decide"):
        shown = CliRunner().invoke(app, [command, *given])
        assert shown.exit_code == 0
        assert GAP in shown.stdout
    assert "judge 85 %" in shown.stdout
    assert "20 of 50 asked, 1 failed" in " ".join(shown.stdout.split())
    found = CliRunner().invoke(app, ["decide", *given, "--json"])
    assert json.loads(found.stdout)["decisions"][0]["asked"] == "20 of 50 asked"
