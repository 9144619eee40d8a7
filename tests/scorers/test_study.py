"""What a study finds of its scorers beside the humans."""

import csv
from pathlib import Path

import numpy as np
import pytest
from cluster_case import apart
from scipy import stats
from study_case import LABELS, SCORERS, write_notes

import judgebench as jb
from judgebench.records import Status, Verdict
from judgebench.results.shown import Shown
from judgebench.runs.features import analyses
from judgebench.scorers.candidates import ScorerRun, Severities
from judgebench.scorers.measure import MEDIAN, BesideHumans
from judgebench.scorers.report import CEILING
from judgebench.scorers.scorer import NO_REFERENCE
from judgebench.stats.association import Rated
from judgebench.stats.paired_tests import holm
from judgebench.studies.study import JudgeVerdicts

Ran = tuple[jb.Study, Shown, dict[str, np.ndarray]]

CONTROLS = {"length", "question-overlap", "random-number"}


def joined(text: str) -> str:
    """Without the line breaks of a terminal."""
    return " ".join(text.split())


def scorers_of(study: jb.Study) -> dict[str, bool]:
    """Name -> whether it is a control."""
    read = study.beside.get("scorers")
    return {run.name: run.kind == "control" for run in (read.runs if read else ())}


@pytest.mark.parametrize(
    ("more", "left"), [("controls: false", set()), ("controls: [prior]", set()), ("", CONTROLS)]
)
def test_controls_go_with_the_other_controls(tmp_path: Path, more: str, left: set[str]) -> None:
    bench, _ = write_notes(tmp_path, "scorers: [length]", questions=4, more=more)
    assert set(scorers_of(jb.run(bench, tmp_path / "run"))) == {"length", *left}


def test_why_there_is_no_score_is_counted(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, questions=5)
    study = jb.run(bench, tmp_path / "run")
    told = {run.name: run.remarks for run in study.beside["scorers"].runs}
    assert told["gappy"] == {("the column gappy is blank", False): 4}
    assert told["good"] == {}


def test_a_remark_beside_a_score_is_counted() -> None:
    said = [(0.5, Status.OK, "its tail was cut"), (None, Status.SKIPPED, NO_REFERENCE), (1.0,)]
    verdicts = {}
    for i, (score, *why) in enumerate(said):
        status, reason = why or (Status.OK, "")
        verdicts[f"{i}"] = Verdict(f"{i}", "h", "s", "s", status, reason=reason, score=score)
    run = ScorerRun("s", "higher", JudgeVerdicts("s", "judge", "s", verdicts))
    assert run.remarks == {("its tail was cut", True): 1, (NO_REFERENCE, False): 1}


def test_an_annotator_is_held_against_those_who_labelled_the_same() -> None:
    nan = np.nan
    each = np.array([[0.0, 2.0, nan], [1.0, nan, nan], [2.0, 2.0, 5.0]])
    mean = Rated(np.full(3, nan), np.zeros(3), apart(3))
    found = dict(Severities(("A", "B", "C"), np.arange(3), each, mean).annotators())
    assert {who: one.scores.tolist() for who, one in found.items()} == {
        "A": [0.0, 2.0], "B": [2.0, 2.0], "C": [5.0],
    }  # fmt: skip
    assert {who: one.human.tolist() for who, one in found.items()} == {
        "A": [2.0, 3.5], "B": [0.0, 3.5], "C": [2.0],
    }  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run with all scorers of the case, what the feature found in it, and the columns."""
    bench, columns = write_notes(tmp_path_factory.mktemp("notes"))
    study = jb.run(bench, bench.parent / "run")
    return study, analyses(study, "scorers")["scorers"], columns


def test_coefficients_are_those_of_scipy(ran: Ran) -> None:
    _, found, columns = ran
    human = columns["omission"].mean(axis=1)
    scipy = {
        "pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau,
    }  # fmt: skip
    for name, sign in (("good", -1), ("noise", 1), ("gappy", 1)):
        known = ~np.isnan(columns[name])
        for key, expected in scipy.items():
            about = {"judge": name, "metric": "omission", "scope": "pooled"}
            (row,) = found.results.select("association", key, **about)
            value = expected(sign * columns[name][known], human[known]).statistic
            assert row.estimate.value == pytest.approx(value, abs=1e-9)
            assert (row.estimate.n, row.estimate.n_missing) == (known.sum(), (~known).sum())
            assert row["better"] == ("higher" if sign < 0 else "lower")


def test_systems_are_compared_by_their_means(ran: Ran) -> None:
    _, found, columns = ran
    mean = [columns[name].reshape(-1, 4, *columns[name].shape[1:]) for name in ("good", "omission")]
    x, y = mean[0].mean(axis=0), mean[1].mean(axis=(0, 2))
    about = {"judge": "good", "metric": "omission", "scope": "system"}
    (row,) = found.results.select("association", "pearson", **about)
    assert row.estimate.value == pytest.approx(stats.pearsonr(-x, y).statistic)
    assert row.estimate.n == 4


def test_given_the_system_it_is_the_correlation_of_what_systems_leave(ran: Ran) -> None:
    _, found, columns = ran
    x, y = -columns["good"].reshape(-1, 4), columns["omission"].mean(axis=1).reshape(-1, 4)
    rest = [(side - side.mean(axis=0)).ravel() for side in (x, y)]
    about = {"judge": "good", "metric": "omission", "scope": "given the system"}
    r = found.results.find("pearson", "association", **about).value
    assert r == pytest.approx(stats.pearsonr(*rest).statistic)


def test_within_questions_it_is_the_mean_over_those_that_differ(ran: Ran) -> None:
    _, found, columns = ran
    x, y = -columns["good"].reshape(-1, 4), columns["omission"].mean(axis=1).reshape(-1, 4)
    each = [stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True) if np.ptp(b)]
    about = {"judge": "good", "metric": "omission", "scope": "within"}
    (row,) = found.results.select("association", "spearman", **about)
    assert row.estimate.value == pytest.approx(np.mean(each))
    assert row.estimate.n == len(each)


def test_the_ceiling_is_an_annotator_beside_the_mean_of_the_others(ran: Ran) -> None:
    _, found, columns = ran
    labels = columns["omission"]
    each = [
        stats.spearmanr(labels[:, a], np.delete(labels, a, axis=1).mean(axis=1)).statistic
        for a in range(3)
    ]
    about = {"metric": "omission", "scope": "pooled"}
    rows = found.results.select("ceiling", "spearman", **about)
    told = {row["who"]: row.estimate for row in rows}
    assert [told[who].value for who in "ABC"] == pytest.approx(each)
    assert told[MEDIAN] == told["ABC"[int(np.argsort(each)[1])]]
    assert told[MEDIAN].low is not None


def test_only_scorers_that_know_something_beat_the_controls(ran: Ran) -> None:
    study, found, _ = ran
    assert isinstance(found, BesideHumans)
    names = scorers_of(study)
    shown = {m: {s for s in names if found.beats_controls(s, m)} for m in found.titles}
    assert shown == {"omission": {"good", "twin", "gappy"}, "hallucination": set()}
    text = joined(str(found))
    assert "go with the humans more than the best baseline, length (rho 0.086" in text
    assert "Hallucination: no scorer is shown to go with the humans more than the best" in text


def test_a_correction_covers_scorers_and_metrics(ran: Ran) -> None:
    _, found, _ = ran
    about = {"test": "p", "scope": "pooled", "beside": "best baseline"}
    plain, corrected = (found.results.select("test", p, **about) for p in ("p", "p_holm"))
    assert len(plain) == 8  # four scorers, two metrics
    assert [r.estimate.value for r in corrected] == holm([r.estimate.value for r in plain])


def names_of(found: Shown, metric: str) -> dict[str, str]:
    """Who is held against the humans -> its kind."""
    rows = found.results.select("association", "spearman", metric=metric, scope="pooled")
    return {row.judge: row["kind"] for row in rows}


def test_a_judge_with_labels_is_a_scorer_too(tmp_path: Path) -> None:
    judge = "judges: [{name: llm, verdicts: llm.csv}]"
    bench, columns = write_notes(tmp_path, SCORERS, questions=10, more=judge)
    said = np.clip(np.round(columns["omission"].mean(axis=1)) + np.arange(40) % 2, 0, 3).astype(int)
    with (tmp_path / "llm.csv").open("w", newline="") as file:
        lines = ((f"n{i}", LABELS[0][label]) for i, label in enumerate(said))
        csv.writer(file).writerows([("item_id", "omission"), *lines])
    found = analyses(jb.run(bench, tmp_path / "run"), "scorers")["scorers"]
    assert names_of(found, "omission")["llm"] == "judge"
    assert "llm" not in names_of(found, "hallucination")
    about = {"judge": "llm", "metric": "omission", "scope": "pooled"}
    rho = stats.spearmanr(said, columns["omission"].mean(axis=1)).statistic
    assert found.results.find("spearman", "association", **about).value == pytest.approx(rho)
    assert (
        found.results.find("spearman", "redundancy", judge="llm: Omission", who="good").value
        is not None
    )


FITTED = "judges: [{name: judge, scorer: column, from: good, fit: {metric: omission}}]"


def test_a_judge_that_follows_from_a_scorer_of_the_run_says_nothing_new(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, SCORERS, questions=10, more=FITTED)
    found = analyses(jb.run(bench, tmp_path / "run"), "scorers")["scorers"]
    assert set(names_of(found, "omission")) == {"good", "twin", "noise", "gappy", *CONTROLS}


def test_a_judge_alone_stands_there_with_its_score(tmp_path: Path) -> None:
    bench, columns = write_notes(tmp_path, FITTED, questions=10)
    found = analyses(jb.run(bench, tmp_path / "run"), "scorers")["scorers"]
    fitted = {f"{name}-fitted": "control" for name in CONTROLS}
    assert names_of(found, "omission") == {"judge": "judge", **fitted}
    about = {"judge": "judge", "metric": "omission", "scope": "pooled"}
    rho = stats.spearmanr(-columns["good"], columns["omission"].mean(axis=1)).statistic
    assert found.results.find("spearman", "association", **about).value == pytest.approx(rho)


@pytest.mark.parametrize(
    ("drop", "more", "said"),
    [
        ("BC", "", "Each answer has one annotator's label: there is no human ceiling"),
        (
            "",
            "controls: false",
            "no scorer is shown to go with the humans more than a baseline: there is none; the "
            "strongest is gappy (rho 1.000).",
        ),
    ],
)
def test_what_is_lacking_is_said(tmp_path: Path, drop: str, more: str, said: str) -> None:
    bench, _ = write_notes(tmp_path, questions=10, more=more)
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = [row for row in csv.reader(file) if row[1] not in drop]
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    found = analyses(jb.run(bench, tmp_path / "run"), "scorers")["scorers"]
    assert said in joined(str(found))


def test_scorers_without_human_labels(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, questions=10, more="controls: [random]")
    bench.write_text(bench.read_text().replace("[answers.csv, labels.csv]", "answers.csv"))
    found = analyses(jb.run(bench, tmp_path / "run"), "scorers")["scorers"]
    text = found.part.blocks[0].text
    assert text[0] == "There are no human labels to hold the scorers against."


def test_each_two_scorers_are_correlated(ran: Ran) -> None:
    _, found, columns = ran
    r = found.results.find("spearman", "redundancy", judge="good", who="noise").value
    assert r == pytest.approx(stats.spearmanr(columns["good"], columns["noise"]).statistic)
    assert found.results.find("spearman", "redundancy", judge="twin", who="good").value == 1
    (matrix,) = found.part.blocks[2].tables
    assert {"good", "twin", "noise", "gappy", *CONTROLS} == {*matrix.columns[1:]}


def test_answers_of_two_groups_to_one_question_are_no_runs(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, "scorers: [length]", questions=1)
    rows = [["item_id", "group", "question", "system", "text"]]
    for group, n_words in (("a", 1), ("a", 3), ("b", 5), ("b", 7)):
        rows.append([f"{group}{n_words}", group, "What is new?", "ann-net", "word " * n_words])
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    bench.write_text(bench.read_text().replace("[answers.csv, labels.csv]", "answers.csv"))
    found = analyses(jb.run(bench, tmp_path / "run"), "scorers")["scorers"].results
    sizes = [
        found.find(key, "repeated", runs="answers", judge="").value for key in ("units", "most")
    ]
    assert sizes == [2, 2]
    spread = found.find("within_sd", "repeated", runs="answers", judge="length").value
    assert spread == pytest.approx(2**0.5)


def test_it_is_read_in_every_format(ran: Ran, tmp_path: Path) -> None:
    study, _, _ = ran
    jb.report(study, tmp_path)
    assert "gappy" in (tmp_path / "results.csv").read_text()
    page = (tmp_path / "report.html").read_text()
    for said in (
        "Scorers beside humans", CEILING, "the column gappy is blank",
        "its direction was not declared",
    ):  # fmt: skip
        assert said in page


def test_no_scorers_no_part(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, "", questions=4)
    assert "scorers" not in analyses(jb.run(bench, tmp_path / "run"))
