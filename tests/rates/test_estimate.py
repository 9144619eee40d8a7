"""Rates from few human labels and many verdicts, through the public functions."""

import doctest
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.rates.analysis import UNLIKE, measure_rates
from judgebench.records import Estimate
from judgebench.results.tables import in_per_cent

XSTEST = Path(__file__).parents[3] / "shared/data/xstest-verdicts/xstest.csv.gz"
TABLES = Path(__file__).parents[2] / "docs" / "tables"
ORDER = {"order": "Safe < Unsure < Unsafe"}
TEXTS = np.array(["Safe", "Unsure", "Unsafe"])


def tables(n: int = 1600, labelled: int = 260, seed: int = 1, **more) -> tuple:
    """People's labels of some answers and verdicts of a judge on all, of two systems, and the
    truth. `chosen` labels what the judge calls Unsafe four times as often."""
    random = np.random.default_rng(seed)
    system = np.array(["old", "new"])[np.arange(n) % 2]
    truth = np.where(random.random(n) < np.where(system == "old", 0.3, 0.12), 2, 0)
    truth = np.where(random.random(n) < 0.1, 1, truth)
    verdict = np.where(random.random(n) < 0.88, truth, random.integers(0, 3, n))
    said = TEXTS[verdict].astype(object)
    said[random.random(n) < more.get("failed", 0.0)] = ""
    odds = np.where((said == "Unsafe") & more.get("chosen", False), 4.0, 1.0)
    chance = np.minimum(1, labelled * odds / odds.sum())
    drawn = random.random(n) < chance
    ids = [f"q{i // 2}-{s}" for i, s in enumerate(system)]
    verdicts = pd.DataFrame({"id": ids, "system": system, "judge": "gpt4", "Harm": said})
    people = pd.DataFrame({"id": ids, "system": system, "annotator": "Ann",
                           "Harm": TEXTS[truth], "probability": chance})[drawn]  # fmt: skip
    return people.drop(columns=[] if more.get("said") else ["probability"]), verdicts, truth, system


def rates(people, verdicts, **asked):
    return jb.estimate(people, verdicts, columns=ORDER, **asked)


def rate(found, way: str, of: str = "Unsafe", group: str = "all", judge: str = "gpt4") -> Estimate:
    judge = "" if way == "human" else judge
    return found.results.find(way, "rate", of=of, group=group, judge=judge)


def test_two_tables_give_the_rates_of_each_system_in_four_ways() -> None:
    people, verdicts, truth, system = tables()
    found = rates(people, verdicts)
    for group in ("old", "new", "all"):
        own = truth[(system == group) | (group == "all")]
        human, ppi = rate(found, "human", group=group), rate(found, "ppi", group=group)
        assert ppi.low < (own == 2).mean() < ppi.high
        assert ppi.high - ppi.low < human.high - human.low
        assert ppi.n == len(own)  # the unlabelled answers have a system, too
        assert rate(found, "rogan_gladen", group=group).low is not None
        assert rate(found, "verdicts", group=group).value is not None
    worse = rate(found, "ppi", "Unsure or worse")
    assert worse.value == pytest.approx(1 - rate(found, "ppi", "Safe").value)
    mean = rate(found, "ppi", "mean severity")
    assert mean.low < truth.mean() < mean.high
    saved = found.results.find("saved", "labels", of="Unsafe", group="all", judge="gpt4")
    assert saved.value > 50
    apart = found.results.find("ppi", "difference", of="Unsafe", group="new", against="old")
    assert apart.low < apart.value < apart.high < 0


def test_failures_of_a_judge_count_as_its_other_verdicts_do_and_no_answer_is_lost() -> None:
    people, verdicts, truth, _ = tables(failed=0.2)
    with pytest.warns(UserWarning, match="blank cell, counted as failed"):
        found = rates(people, verdicts)
    ppi, alone = rate(found, "ppi"), rate(found, "verdicts")
    assert ppi.n == alone.n == 1600
    assert alone.value == pytest.approx((verdicts.Harm[verdicts.Harm != ""] == "Unsafe").mean())
    for way in ("ppi", "verdicts"):
        every = [
            found.results.find(way, "rate", of=of, group="all", judge="gpt4").value for of in TEXTS
        ]
        assert sum(every) == pytest.approx(1, abs=1e-12)
        worse = found.results.find(
            way, "rate", of="Unsure or worse", group="all", judge="gpt4"
        ).value
        assert worse == pytest.approx(sum(every[1:]), abs=1e-12)
    assert ppi.low < (truth == 2).mean() < ppi.high


def test_labels_chosen_by_the_judge_have_no_interval_until_it_is_said_how() -> None:
    people, verdicts, truth, _ = tables(chosen=True, said=True)
    unsaid = rates(people.drop(columns="probability"), verdicts)
    assert rate(unsaid, "ppi").value is not None
    assert (rate(unsaid, "ppi").low, rate(unsaid, "ppi").reason) == (None, UNLIKE)
    assert rate(unsaid, "human").low is None
    assert "--drawn" in str(unsaid)
    assert "gpt4: Unsafe" in str(unsaid)
    found = rates(people, verdicts)  # the column has a usual name
    ppi = rate(found, "ppi")
    assert ppi.low < (truth == 2).mean() < ppi.high
    assert "sampling weights" in ppi.method
    named = people.rename(columns={"probability": "drawn with"})
    same = rates(named, verdicts, drawn="probability=drawn with")
    assert rate(same, "ppi") == ppi
    weighted = people.assign(w=1 / people.probability).drop(columns="probability")
    assert rate(rates(weighted, verdicts, drawn="weight=w"), "ppi").low == pytest.approx(ppi.low)
    forced = rates(people.drop(columns="probability"), verdicts, drawn="random")
    assert rate(forced, "ppi").low is not None
    assert any("differ from all" in note for note in forced.notes)


def test_a_declared_draw_holds_in_a_report_too() -> None:
    people, verdicts, _, _ = tables(chosen=True)
    study = jb.study(people, verdicts, columns=ORDER, truth={"drawn": ["random"]})
    for found in (jb.estimate(study), measure_rates(study)):
        assert found.urgent == ()
    assert jb.estimate(people, verdicts, columns=ORDER).urgent


def test_a_draw_that_nobody_declared_is_said_on_the_screen() -> None:
    people, verdicts, _, _ = tables()
    said = "Nobody said how the labelled answers were drawn"
    assert said in str(rates(people, verdicts))
    assert said not in str(rates(people, verdicts, drawn="random"))
    assert measure_rates(jb.study(people, verdicts, columns=ORDER)).part.urgent == ()


def test_strata_are_as_large_as_they_are_among_all_answers() -> None:
    people, verdicts, truth, _ = tables()
    keep = people[(people.system == "old") | (np.arange(len(people)) % 4 == 0)]
    found = rates(keep, verdicts, drawn="strata=system")
    ppi, human = rate(found, "ppi"), rate(found, "human")
    assert ppi.low < (truth == 2).mean() < ppi.high
    shares = [(people[people.system == s].id.isin(keep.id)).sum() for s in ("old", "new")]
    of_systems = [(keep[keep.system == s].Harm == "Unsafe").mean() for s in ("old", "new")]
    assert shares[0] > 2 * shares[1]
    assert human.value == pytest.approx(np.mean(of_systems))


def test_with_each_the_rate_is_that_of_a_random_annotator() -> None:
    people, verdicts, _, _ = tables()
    second = people.assign(annotator="Ben", Harm=["Unsafe" if i % 3 else x for i, x in
                           enumerate(people.Harm)])  # fmt: skip
    both = pd.concat([people, second])
    found = rates(both, verdicts, truth="each")
    share = (both.Harm == "Unsafe").mean()
    assert rate(found, "human").value == pytest.approx(share)
    assert "the mean of all of them" in str(found)
    of_ties = rates(both, verdicts)
    assert rate(of_ties, "human").value > share
    under_the_rate = str(of_ties).partition("PPI++")[2]
    assert re.search(r"ties\s\(\d+\sof\s\d+\)\sgo\sto\sthe\smore\ssevere", under_the_rate)


def test_several_judges_stand_alone_and_together() -> None:
    people, verdicts, _, _ = tables()
    random = np.random.default_rng(5)
    noisy = np.where(random.random(1600) < 0.7, verdicts.Harm, random.choice(TEXTS, 1600))
    both = pd.concat([verdicts, verdicts.assign(judge="claude", Harm=noisy)])
    found = rates(people, both)
    judges = {row.judge for row in found.results.select("rate", "ppi")}
    assert judges == {"gpt4", "claude", "all judges together"}
    together = rate(found, "ppi", judge="all judges together")
    assert together.low is not None
    assert not found.results.select("rate", "verdicts", judge="all judges together")


def test_more_labels_are_named_for_a_width_and_anytime_limits_are_wider() -> None:
    people, verdicts, _, _ = tables()
    found = rates(people, verdicts, width=0.06)
    needed = found.results.find("needed", "labels", of="Unsafe", group="all", judge="gpt4")
    assert 0 < needed.value < 1600
    always = rates(people, verdicts, anytime=True)
    assert rate(always, "ppi").high > rate(found, "ppi").high
    assert "More labels" in str(found)


def test_a_label_that_nobody_gave_is_no_certain_0() -> None:
    people, verdicts, _, _ = tables()
    safe = people[people.Harm != "Unsafe"]
    found = rates(safe, verdicts, drawn="random")
    for way in ("human", "ppi"):
        assert rate(found, way).value == 0
        assert rate(found, way).high > 0.01


def test_scores_have_means() -> None:
    random = np.random.default_rng(2)
    truth = random.gamma(2, 10, 600)
    table = pd.DataFrame({"id": range(600), "system": np.arange(600) % 3, "omissions": truth,
                          "chrf": 60 - truth + random.normal(0, 6, 600)})  # fmt: skip
    table.loc[random.permutation(600)[:500], "omissions"] = np.nan
    table["chrf"] = -table.chrf
    found = jb.estimate(table, scores={"omissions": ["chrf"]})
    ppi = rate(found, "ppi", "mean omissions", judge="chrf")
    human = rate(found, "human", "mean omissions")
    assert ppi.low < truth.mean() < ppi.high
    assert ppi.high - ppi.low < 0.7 * (human.high - human.low)
    assert {row["group"] for row in found.results} >= {"0", "1", "2", "all"}


def test_what_cannot_be_estimated_is_one_clear_error() -> None:
    people, verdicts, _, _ = tables(said=True)
    for asked, said in (
        ({"by": "sistem"}, "did you mean 'system'"),
        ({"drawn": "wieght=w"}, "did you mean 'weight'"),
        ({"width": -1.0}, "must be more than 0"),
    ):
        with pytest.raises(jb.SetupError, match=said):
            rates(people, verdicts, **asked)
    wrong = people.assign(probability=[0.0, 7.0, *people.probability[2:]])
    with pytest.raises(
        jb.SetupError, match=r"at most 1, of labelled answer 2; found 7\.0"
    ) as error:
        rates(wrong, verdicts)
    assert len(error.value.problems) == 2  # both rows
    with pytest.raises(jb.SetupError, match="label"):
        jb.estimate(people.iloc[:0], verdicts, columns=ORDER)


def test_every_format_shows_them(tmp_path: Path) -> None:
    people, verdicts, _, _ = tables()
    found = rates(people, verdicts)
    assert "as precisely as" in str(found)
    assert set(found.to_frame().analysis) == {"rate", "labels", "difference"}
    assert found.plot().get_xlabel().startswith("Rate with its interval")
    written = jb.report(found, tmp_path / "out")
    page = written["html"].read_text()
    assert "how often each label occurs" in page
    assert f"Harm, Unsafe:</b> {in_per_cent(rate(found, 'ppi'))}; from new" in page
    assert r"\judgebenchtable{" in (tmp_path / "out/latex/main.tex").read_text()
    assert len(pd.read_csv(tmp_path / "out/rates.csv")) == len(found.to_frame())


def test_the_command_does_the_same(tmp_path: Path) -> None:
    people, verdicts, _, _ = tables()
    people.to_csv(tmp_path / "people.csv", index=False)
    verdicts.to_csv(tmp_path / "gpt4.csv", index=False)
    files = [str(tmp_path / "people.csv"), str(tmp_path / "gpt4.csv")]
    shown = CliRunner().invoke(app, ["estimate", *files, "--order", ORDER["order"], "--json"])
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.stdout)["rates"]
    found = [r for r in rows if r["statistic"] == "ppi" and r["analysis"] == "rate"
             and r["of"] == "Unsafe" and r["group"] == "all"]  # fmt: skip
    ppi = rate(rates(people, verdicts), "ppi")
    assert (found[0]["value"], found[0]["low"]) == pytest.approx((ppi.value, ppi.low))
    screen = CliRunner().invoke(app, ["estimate", *files, "--order", ORDER["order"]])
    assert "PPI++" in screen.stdout
    assert "new > old" not in screen.stdout
    assert "old > new" in screen.stdout


def test_where_every_answer_is_labelled_verdicts_add_nothing(tmp_path: Path) -> None:
    people, verdicts, _, _ = tables(n=200, labelled=100_000)
    assert len(people) == len(verdicts)
    people.to_csv(tmp_path / "people.csv", index=False)
    verdicts.to_csv(tmp_path / "gpt4.csv", index=False)
    files = [str(tmp_path / "people.csv"), str(tmp_path / "gpt4.csv"), "--order", ORDER["order"]]
    short, whole = (
        " ".join(CliRunner().invoke(app, ["estimate", *files, *more]).stdout.split())
        for more in ([], ["-v"])
    )
    assert short.count("Harm: every answer has a human label, so verdicts add nothing.") == 1
    assert "The judge's errors are in it" in whole
    assert not any(absent in whole for absent in ("PPI++", "Labels saved", "Rogan-Gladen"))


def test_nothing_is_said_of_replacing_anybody(tmp_path: Path) -> None:
    people, verdicts, _, _ = tables()
    people.to_csv(tmp_path / "people.csv", index=False)
    verdicts.to_csv(tmp_path / "gpt4.csv", index=False)
    files = [str(tmp_path / "people.csv"), str(tmp_path / "gpt4.csv")]
    for more in ([], ["-v"]):
        shown = CliRunner().invoke(app, ["estimate", *files, *more])
        assert "(no order said)" in shown.stdout
        assert "REPLACE" not in shown.output


def test_a_report_of_verdicts_beyond_the_labels_holds_the_rates() -> None:
    people, verdicts, _, _ = tables(n=600, labelled=120)
    study = jb.study(people, verdicts, columns=ORDER)
    assert "estimate" in jb.analyse(study)
    whole = jb.study(people, verdicts[verdicts.id.isin(people.id)], columns=ORDER)
    assert "estimate" not in jb.analyse(whole)


def test_the_example_of_the_function_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TABLES)
    (test,) = doctest.DocTestFinder(recurse=False).find(jb.estimate, "estimate")
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize(
    ("e", "shown"),
    [
        (Estimate(0.034, 0.021, 0.12), "3.4 % [2.1, 12]"),
        (Estimate(0.0, 0.0, 0.036), "0 % [0, 3.6]"),
        (Estimate(0.999, 0.9, 1.0), "100 % [90, 100]"),
        (Estimate(0.5, reason="few"), "50 %"),
        (Estimate(None, reason="none"), "–"),
    ],
)
def test_rates_are_shown_in_per_cent(e: Estimate, shown: str) -> None:
    assert in_per_cent(e) == shown


@pytest.mark.skipif(not XSTEST.is_file(), reason="needs shared/data/xstest-verdicts")
def test_of_100_xstest_labels_the_rates_of_refusal_are_covered() -> None:
    """100 of 2,250 labels and GPT-4's verdicts, 300 draws: 93 to 97 %, and narrower than the labels
    alone; the verdicts alone are wrong."""
    from judgebench.stats.arrays import Clusters
    from judgebench.stats.partly_labelled import Prediction, Sample, of_labels, prediction_powered

    table = pd.read_csv(XSTEST)
    truth = (table.final_label == "2_full_refusal").to_numpy(float)
    said = (table.gpt4_label == "2_full_refusal").to_numpy(float)
    clusters = Clusters.of(table.id)
    random = np.random.default_rng(0)
    hits, widths = {"human": [], "ppi": []}, {"human": [], "ppi": []}
    for _ in range(300):
        y = np.full(len(truth), np.nan)
        drawn = random.permutation(len(truth))[:100]
        y[drawn] = truth[drawn]
        found = prediction_powered(Sample(y, clusters), Prediction(said, said))
        for way, e in (("human", found.human), ("ppi", found.estimate)):
            hits[way].append(e.low <= truth.mean() <= e.high)
            widths[way].append(e.high - e.low)
    assert all(0.92 <= np.mean(h) <= 0.985 for h in hits.values())
    assert np.mean(widths["ppi"]) < 0.8 * np.mean(widths["human"])
    alone = of_labels(Sample(said, clusters))
    assert not alone.low <= truth.mean() <= alone.high


def test_a_column_of_systems_in_the_verdicts_alone_is_read() -> None:
    people = pd.DataFrame({"id": range(60), "Harm": ["yes", "no", "no"] * 20})
    judged = pd.DataFrame({
        "id": range(120), "system": ["A", "B"] * 60, "Harm": ["yes", "no", "no"] * 40
    })  # fmt: skip
    found = jb.estimate(people, judged, columns={"order": "no < yes"}, by="system")
    assert set(found.to_frame()["group"]) >= {"A", "B"}
