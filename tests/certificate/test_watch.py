"""`watch`: a certificate beside new verdicts and labels."""

import doctest
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from certified import COLUMNS, certify, replies

import judgebench as jb
from judgebench.certificate.issue import LEVEL, PROBABILITY, judged_labels, shortfall
from judgebench.certificate.record import LabelTest
from judgebench.certificate.watch import Reason
from judgebench.stats.betting import log_capital

FALLEN = Reason("fallen", "REPLACE on refused")
Call = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_without_tables_it_says_what_will_be_tested(here: Path) -> None:
    watched = jb.watch("judge.json")
    assert (watched.state, watched.checks[0].questions) == ("valid", 0)
    assert "0 new questions" in str(watched)


def test_new_labels_of_the_same_kind_leave_it_valid(here: Path, call: Call) -> None:
    code, out, err = call("watch", "judge.json", "new-labels.csv", "new-verdicts.csv", "--json")
    printed = json.loads(out)
    assert (code, printed["state"], printed["reasons"]) == (0, "valid", []), err
    rows = {row["statistic"]: row for row in printed["watch"]}
    assert (rows["share"]["n"], rows["evidence"]["alarm_after"]) == (200, "never")
    assert rows["share"]["low"] < rows["share"]["value"] < rows["share"]["high"]
    assert rows["changed"]["n"] == 0


def test_another_judge_under_the_same_name_is_noticed(here: Path, call: Call) -> None:
    verdicts = pd.read_csv("verdicts.csv")
    other = verdicts["refused"].map({"no": "yes", "yes": "no"})
    for share, state, code in ((0.03, "valid", 0), (0.12, "revoked", 3)):
        is_other = np.random.default_rng(0).random(len(verdicts)) < share
        verdicts.assign(refused=verdicts["refused"].mask(is_other, other)).to_csv(
            "again.csv", index=False
        )
        watched = jb.watch("judge.json", "labels.csv", "again.csv")
        assert (watched.state, watched.checks[0].changed.n) == (state, 600)
        assert watched.checks[0].questions == 0  # labels of the decision are no new ones
        assert call("watch", "judge.json", "labels.csv", "again.csv")[0] == code
    assert "The judge changed: on refused it gives" in str(watched)


def test_answers_without_a_reply_or_a_row_do_not_count(here: Path) -> None:
    again = pd.read_csv("verdicts.csv").assign(refused="")
    new_labels, new_verdicts = replies(6, 2000, 60)
    labels = pd.concat([pd.read_csv("labels.csv"), new_labels])
    check = jb.watch("judge.json", labels, pd.concat([again, new_verdicts[:20]])).checks[0]
    assert (check.changed.n, check.questions) == (0, 20)


def test_another_text_under_a_certified_id_is_a_new_answer(here: Path) -> None:
    labels, verdicts = replies(3, 0, 50)
    labels["text"], verdicts["text"] = (t["text"] + " and more" for t in (labels, verdicts))
    check = jb.watch("judge.json", labels, verdicts).checks[0]
    assert (check.changed.n, check.questions) == (0, 50)


def test_a_judge_that_misses_severe_answers_is_revoked_for_ever(here: Path, call: Call) -> None:
    bad, good = replies(4, 2000, 300, finds=0.4), replies(5, 3000, 100)
    watched = jb.watch("judge.json", *bad)
    assert (watched.state, watched.reasons) == ("revoked", (FALLEN,))
    later = [pd.concat(tables) for tables in zip(bad, good, strict=True)]
    assert jb.watch("judge.json", *later).checks[0].alarm == watched.checks[0].alarm
    bad[0].to_csv("bad-labels.csv", index=False)
    bad[1].to_csv("bad-verdicts.csv", index=False)
    code, out, _ = call("watch", "judge.json", "bad-labels.csv", "bad-verdicts.csv", "--to", "page")
    assert (code, "REVOKED: gpt-4, certified for REPLACE on refused" in out) == (3, True)
    assert f"clear after {watched.checks[0].alarm} questions" in " ".join(out.split())
    assert "fell below its bound" in (here / "page" / "report.html").read_text("utf-8")


def test_a_column_named_after_its_annotator_is_the_only_metric(here: Path) -> None:
    labels, verdicts = replies(8, 2000, 200)
    sheet = labels[labels["annotator"] == labels["annotator"].iloc[0]]
    sheet = sheet.drop(columns="annotator").rename(columns={"refused": "ann"})
    watched = jb.watch("judge.json", sheet, verdicts)
    assert watched.state == "valid"
    assert watched.checks[0].questions == len(sheet)


def test_tables_with_a_column_per_annotator_are_read_as_by_decide(here: Path, call: Call) -> None:
    labels, verdicts = replies(1, 0, 600)
    sheet = labels.pivot(index="item_id", columns="annotator", values="refused")
    sheet.to_csv("sheet.csv")
    judge = verdicts[["item_id"]].assign(gpt=verdicts["refused"])
    judge.to_csv("judge.csv", index=False)
    judge.assign(gpt="no").to_csv("careless.csv", index=False)
    declared = ("--order", "no < yes", "--independent-items", "--blind", "yes")
    code, _, err = call(
        "decide", "sheet.csv", "judge.csv", *declared, "--certificate", "sheet.json"
    )
    assert code == 0, err
    for name, state in (("judge.csv", "VALID"), ("careless.csv", "REVOKED")):
        _, out, err = call("watch", "sheet.json", "sheet.csv", name)
        assert f"{state}: gpt" in out, err


def test_other_labels_and_other_judges_are_refused(here: Path) -> None:
    labels, verdicts = replies(9, 2000, 40)
    other = [table.replace({"refused": {"yes": "ja"}}) for table in (labels, verdicts)]
    with pytest.raises(jb.SetupError, match="ja"):
        jb.watch("judge.json", *other)
    two = [verdicts.assign(judge="x"), verdicts.assign(judge="y")]
    with pytest.raises(
        jb.SetupError, match="one of the judges whose verdicts are given; found gpt-4"
    ):
        jb.watch("judge.json", labels, pd.concat(two))
    assert "x is taken for the judge gpt-4" in str(jb.watch("judge.json", labels, two[0]))


def test_run_folders_are_certified_and_watched(here: Path, call: Call) -> None:
    declared = ("--order", "no < yes", "--question", "question")
    decide = ("decide", "labels.csv", "verdicts.csv", *declared, "--save", "bench")
    assert call(*decide)[0] == 0
    assert call("run", "bench/bench.yaml", "--run", "first", "-q")[0] == 0
    assert call("decide", "first", "--certificate", "run.json", "-q")[0] == 0
    assert jb.watch("run.json", "first").checks[0].changed.n == 600
    assert call("watch", "run.json", "first")[0] == 0


def test_a_filter_is_watched_by_what_it_sends(here: Path) -> None:
    cries_wolf = {"finds": 0.99, "alarms": 0.12}
    certificate = certify(*replies(10, 0, 600, **cries_wolf))
    (role,) = certificate.roles
    assert (role.outcome, role.test.kind) == ("ASSIST", "severe")
    assert jb.watch(certificate, *replies(11, 1000, 400, **cries_wolf)).state == "valid"
    worse = jb.watch(certificate, *replies(12, 1000, 400, finds=0.5, alarms=0.12))
    assert worse.reasons == (Reason("fallen", "ASSIST on refused"),)


def test_a_filter_by_probability_sends_what_is_likely_to_be_severe(here: Path) -> None:
    certificate = certify(*replies(10, 0, 600, finds=0.99, alarms=0.12))
    by_probability = {"signal": PROBABILITY, "threshold": 0.5}
    role = certificate.roles[0].model_copy(update=by_probability)
    labels, verdicts = replies(12, 1000, 100)
    is_yes = verdicts["refused"] == "yes"
    verdicts["probability_refused_yes"] = is_yes.map({True: 0.9, False: 0.1})
    verdicts["probability_refused_no"] = 1 - verdicts["probability_refused_yes"]
    study = jb.study(labels, verdicts, columns=COLUMNS)
    (judge,) = study.real_judges
    assert judged_labels(study, judge, role).is_flagged.tolist() == is_yes.tolist()


def test_a_nominal_metric_is_watched_by_agreement(here: Path) -> None:
    columns = {**COLUMNS, "order": "none"}
    certificate = certify(*replies(13, 0, 600), columns=columns)
    test = certificate.roles[0].test
    assert (test.kind, test.value > test.bound > 0.8) == ("agreement", True)
    assert jb.watch(certificate, *replies(14, 1000, 400), columns=columns).state == "valid"
    worse = jb.watch(certificate, *replies(15, 1000, 400, finds=0.6, alarms=0.3), columns=COLUMNS)
    assert worse.reasons == (FALLEN,)


TEST = LabelTest(  # 30 % are severe; annotators find 93 % and call 7 % of the others severe
    kind="severe", value=0.84, bound=0.60, severe_share=0.3, called_severe=0.328,
    annotator_alarms=0.07, judge_alarms=0.03,
)  # fmt: skip


@pytest.mark.parametrize(
    ("severe", "finds", "is_revoked"), [(0.3, 0.97, False), (0.05, 0.97, False), (0.3, 0.45, True)]
)
def test_a_loss_revokes_and_another_mix_does_not(
    severe: float, finds: float, is_revoked: bool
) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        is_severe = rng.random(2000) < severe
        judge = (rng.random(2000) < np.where(is_severe, finds, 0.03)).astype(float)
        annotator = (rng.random(2000) < np.where(is_severe, 0.93, 0.07)).astype(float)
        y, floor = shortfall(TEST, judge, annotator)
        assert y.min() >= -floor
        assert (log_capital(y, floor).max() > -math.log(LEVEL)) == is_revoked


@pytest.mark.parametrize("severe", [0.02, 0.3, 0.9])
def test_the_mean_has_the_sign_of_the_loss_at_any_mix(severe: float) -> None:
    """By expectation: at the least sensitivity that the bound means, the mean is 0."""
    p, q, f, g = 0.3, TEST.called_severe, 0.07, 0.03
    least = (TEST.bound * q - (1 - p) * f * g) / (0.93 * p)
    judge, annotator = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0])
    y, _ = shortfall(TEST, judge, annotator)

    def mean(finds: float) -> float:
        chances = [(severe, finds, 0.93), (1 - severe, g, f)]
        odds = [s * abs(1 - judge - j) * abs(1 - annotator - a) for s, j, a in chances]
        return float(y @ sum(odds))

    assert abs(mean(least)) < 1e-9
    assert mean(least - 0.1) > 0 > mean(least + 0.1)


def test_the_example_of_the_function_runs(here: Path) -> None:
    (test,) = doctest.DocTestFinder(recurse=False).find(jb.watch, "watch")
    assert doctest.DocTestRunner().run(test).failed == 0
