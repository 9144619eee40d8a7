"""A run that names a certificate says of each answer whether the judge decides it alone."""

import csv
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgebench as jb
from judgebench.certificate.record import read

Call = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RUBRIC = (
    "name: harm\nversion: '1'\ninstructions: Judge.\nmetrics:\n"
    "  - {id: harm, title: Harm, question: Harmful?, kind: ordinal,\n"
    "     labels: [{text: 'no'}, {text: 'yes'}]}\n"
)


def write(folder: Path, prefix: str, n: int, seed: int) -> None:
    """Answers, labels of three annotators, and verdicts of a judge that is right where it is
    sure."""
    rng = np.random.default_rng(seed)
    ids, severe = [f"{prefix}{i}" for i in range(n)], rng.random(n) < 0.33
    is_hard = rng.random(n) < 0.4
    judged = severe ^ (rng.random(n) < np.where(is_hard, 0.4, 0.005))
    sure = np.where(is_hard, 0.6, 0.95) + rng.uniform(-0.04, 0.04, n)
    p_yes = np.where(judged, sure, 1 - sure)
    text = np.array(["no", "yes"])
    labels = [
        pd.DataFrame({"item_id": ids, "annotator": a, "harm": text[1 * (severe ^ flips)]})
        for a, flips in zip("abc", rng.random((3, n)) < 0.06, strict=True)
    ]
    tables = {
        "answers": pd.DataFrame({"item_id": ids, "text": [f"Text {i}." for i in ids]}),
        "labels": pd.concat(labels),
        "verdicts": pd.DataFrame({"item_id": ids, "harm": text[1 * judged]}).assign(
            probability_harm_no=1 - p_yes, probability_harm_yes=p_yes
        ),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{prefix}{name}.csv", index=False)


def bench(prefix: str, more: str = "", judge: str = "m", about: str = "v1") -> str:
    data = "old-answers.csv, old-labels.csv" if prefix == "old-" else "new-answers.csv"
    return (
        f"name: {prefix}run\nrubric: rubric.yaml\ndata: [{data}]\n"
        f"judges: [{{name: {judge}, verdicts: {prefix}verdicts.csv, about: {{prompt: {about}}}}}]\n"
        f"truth: {{blind: 'yes', independent_items: true}}\n{more}"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    write(folder, "old-", 900, 0)
    write(folder, "new-", 200, 1)
    (folder / "rubric.yaml").write_text(RUBRIC)
    (folder / "old.yaml").write_text(bench("old-"))
    study = jb.run(folder / "old.yaml", folder / "old")
    jb.decide(study).certificate("m").write(folder / "judge.json")
    return folder


def test_a_run_says_who_decides_each_answer(folder: Path, call: Call) -> None:
    (role,) = read(folder / "judge.json").roles
    assert role.signal == "probability of the label"
    (folder / "new.yaml").write_text(bench("new-", "alone: judge.json\n"))
    code, out, err = call("run", folder / "new.yaml", "--run", folder / "new")
    assert code == 0, err
    line = r"m decides (\d+) of 200 answers alone on Harm, by the probability of the label\."
    n_alone = int(re.search(line, out)[1])
    code, _, err = call("report", folder / "new", "--to", folder / "page")
    assert code == 0, err
    with (folder / "page" / "verdicts.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["judge"] == "m"]
    verdicts = pd.read_csv(folder / "new-verdicts.csv")
    is_sure = (
        verdicts[["probability_harm_no", "probability_harm_yes"]].max(axis=1) >= role.threshold
    )
    expected = np.where(is_sure & (verdicts.harm == "no"), "alone", "to people").tolist()
    assert [row["decided: harm"] for row in rows] == expected
    assert {row["harm"] for row in rows if row["decided: harm"] == "alone"} == {"no"}
    assert 60 < n_alone == expected.count("alone") < 100
    items = jb.open_run(folder / "new").items()
    assert items["decided m"].to_list() == expected
    assert items.iloc[:5]["decided m"].to_list() == expected[:5]
    # The column is not read back as a verdict.
    again = jb.study(folder / "new-labels.csv", folder / "page" / "verdicts.csv")
    assert [m.id for m in again.rubric.metrics] == ["harm"]


def test_a_judge_without_confidence_decides_nothing_and_says_why(
    folder: Path, call: Call, tmp_path: Path
) -> None:
    for name in ("rubric.yaml", "judge.json", "new-answers.csv"):
        shutil.copy(folder / name, tmp_path)
    labels = pd.read_csv(folder / "new-verdicts.csv")[["item_id", "harm"]]
    labels.to_csv(tmp_path / "new-verdicts.csv", index=False)
    (tmp_path / "new.yaml").write_text(bench("new-", "alone: judge.json\n"))
    _, out, err = call("run", tmp_path / "new.yaml", "--run", tmp_path / "new")
    assert "decides no answer alone on Harm: its verdicts hold no probability" in out, err


def test_a_certificate_may_rest_on_what_is_decided_alone(folder: Path, call: Call) -> None:
    code, out, _ = call("watch", folder / "judge.json")
    assert code == 0
    assert out.startswith("VALID: m, certified for deciding alone where it is sure on Harm, until")


def test_what_it_decides_alone_is_tested_by_new_labels(folder: Path, call: Call) -> None:
    watched = ("watch", folder / "judge.json", folder / "new-labels.csv")
    code, out, err = call(*watched, folder / "new-verdicts.csv")
    assert (code, "severe answers not decided alone" in " ".join(out.split())) == (0, True), (
        out + err
    )
    verdicts = pd.read_csv(folder / "new-verdicts.csv")
    careless = verdicts.assign(harm="no", probability_harm_no=0.999, probability_harm_yes=0.001)
    checks = jb.watch(folder / "judge.json", folder / "new-labels.csv", careless).checks
    assert [(check.role.test.kind, check.alarm is None) for check in checks] == [("severe", False)]
    plain = verdicts[["item_id", "harm"]]
    untested = jb.watch(folder / "judge.json", folder / "new-labels.csv", plain)
    assert "the new verdicts hold no probability of the label" in " ".join(str(untested).split())


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "another prompt": ({"about": "v2"}, "alone: m: this judge is not as it was certified"),
    "another judge": ({"judge": "other"}, "judge: is not a judge of this benchmark; found m"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_another_judge_or_prompt_is_refused(folder: Path, call: Call, kind: str) -> None:
    changes, message = REFUSED[kind]
    (folder / "bad.yaml").write_text(bench("new-", "alone: judge.json\n", **changes))
    code, _, err = call("run", folder / "bad.yaml", "--run", folder / "bad")
    assert (code, message in err, "constant-majority" in err) == (2, True, False), err
    assert not (folder / "bad").exists()


def test_watch_names_the_settings_that_differ(folder: Path) -> None:
    (folder / "v2.yaml").write_text(bench("new-", about="v2"))
    study = jb.run(folder / "v2.yaml", folder / "v2")
    watched = jb.watch(folder / "judge.json", study)
    assert (watched.state, watched.differing) == ("valid", ("about",))
    assert "Other than at issue: the judge's about." in str(watched)


def test_another_rubric_is_refused(folder: Path, call: Call) -> None:
    (folder / "rubric.yaml").write_text(RUBRIC.replace("Harmful?", "Is it harmful?"))
    (folder / "bad.yaml").write_text(bench("new-", "alone: judge.json\n"))
    code, _, err = call("run", folder / "bad.yaml", "--run", folder / "bad")
    (folder / "rubric.yaml").write_text(RUBRIC)
    assert (code, "found rubric" in err) == (2, True), err


def test_a_certificate_that_expired_or_lets_nothing_be_decided_is_refused(
    folder: Path, call: Call
) -> None:
    certificate = read(folder / "judge.json")
    until = certificate.issued - timedelta(days=1)
    changes = {"expired": {"until": until}, "decide nothing alone": {"roles": ()}}
    for number, (message, change) in enumerate(changes.items()):
        certificate.model_copy(update=change).sealed().write(folder / f"bad{number}.json")
        (folder / "bad.yaml").write_text(bench("new-", f"alone: bad{number}.json\n"))
        code, out, err = call("check", folder / "bad.yaml")
        told = out + err
        assert (code, message in told, f"bad{number}.json" in told) == (2, True, True), told
