"""A certificate: what stands in it, what is refused, and what is certified at all."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from certified import certify

import judgebench as jb
from judgebench.certificate.record import read

Call = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_it_records_judge_decision_and_labelled_answers(here: Path) -> None:
    certificate = read(here / "judge.json")
    (role,) = certificate.roles
    rows = [row for row in certificate.results if row.get("outcome") == "REPLACE"]
    conditions = {row["statistic"]: row for row in rows if row["analysis"] == "condition"}
    assert (certificate.judge.name, role.name) == ("gpt-4", "REPLACE on refused")
    gap = conditions["severe_gap"]
    assert gap["value"] > gap["bound"] == pytest.approx(-0.05, abs=0.01)
    labelled = certificate.labelled
    assert labelled.systems == {"old": 300, "new": 300}
    assert (labelled.items, labelled.questions) == (600, 600)
    assert (labelled.annotators, labelled.blind) == (3, "yes")
    assert (len(certificate.verdicts), len(certificate.texts)) == (600, 600)
    assert certificate.until - certificate.issued == timedelta(days=180)
    assert certificate.rule["certificate"] == {"days": 180, "changed": 0.05, "severe": 0.7}
    text = (here / "judge.json").read_text("utf-8")
    assert not any(word in text for word in ("Reply", "Question 1", '"ann"'))
    test = role.test
    assert test.kind == "severe"
    assert test.severe_share == pytest.approx(0.35, abs=0.05)
    assert test.annotator_alarms == pytest.approx(0.04, abs=0.015)
    assert test.judge_alarms == pytest.approx(0.02, abs=0.02)
    assert test.bound == pytest.approx(test.value * 0.70 / 0.98, abs=0.02)


def test_it_is_never_overwritten(here: Path, call: Call) -> None:
    declared = ("--order", "no < yes", "--question", "question")
    decide = ("decide", "labels.csv", "verdicts.csv", *declared, "--certificate")
    code, out, err = call(*decide, "gpt-4=second.json")
    assert (code, "judgebench watch second.json LABELS VERDICTS" in out) == (0, True), err
    with pytest.raises(jb.SetupError, match=r"judge\.json: exists"):
        read(here / "second.json").write("judge.json")
    code, _, err = call(*decide, "gpt-5=third.json")
    assert (code, "gpt-5" in err, "gpt-4" in err) == (2, True, True)
    assert not (here / "third.json").exists()


def test_only_replace_of_blind_labels_and_assist_are_certified(here: Path) -> None:
    labels, verdicts = pd.read_csv("labels.csv"), pd.read_csv("verdicts.csv")
    with pytest.raises(jb.SetupError, match=r"nothing to certify.*DO NOT USE"):
        certify(labels, verdicts.assign(refused="no"))
    with pytest.raises(jb.SetupError, match=r"would be REPLACE if the labels.*--blind yes"):
        certify(labels.drop(columns="made_blind"), verdicts)


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "edited": (lambda x: x.replace(b'"days": 180', b'"days": 999'), "was edited after"),
    "twice": (lambda x: b'{"hash": "",' + x.split(b"{", 1)[1], "'hash': the key is given twice"),
    "deep": (lambda x: x.replace(b'"items": 600', b'"items": 600, "items": 6'), "given twice"),
    "later": (lambda x: x.replace(b"certificate 1", b"certificate 2"), "format: must be"),
    "empty": (lambda x: b"", "is not JSON"),
    "list": (lambda x: b"[" + x + b"]", "is not a JSON object"),
    "binary": (lambda x: bytes(range(256)), "is not JSON"),
    "no time zone": (lambda x: x.replace(b'Z",\n "until"', b'",\n "until"'), "issued"),
    "other": (lambda x: b"{}", "judge.json"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_that_is_not_as_issued_is_refused(here: Path, call: Call, kind: str) -> None:
    change, message = HOSTILE[kind]
    content = (here / "judge.json").read_bytes()
    (here / "judge.json").write_bytes(change(content))
    assert change(content) != content
    code, out, err = call("watch", "judge.json")
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1 or kind == "other"
    for path in (".", "nothing.json"):
        code, _, err = call("watch", path)
        assert (code, "a certificate cannot be read" in err) == (2, True)


def test_it_may_be_unchanged_and_expired(here: Path, call: Call) -> None:
    certificate = read(here / "judge.json")

    times = {"issued": certificate.issued - timedelta(10)}
    times["until"] = certificate.issued - timedelta(5)
    certificate.model_copy(update=times).sealed().write("old.json")
    code, out, _ = call("watch", "old.json")
    assert (code, out.startswith("EXPIRED")) == (3, True)
    assert "The file is unchanged since" in out
    assert "It expired on" in out
    assert json.loads(call("watch", "old.json", "--json")[1])["state"] == "expired"
    assert jb.watch(certificate.model_copy(update={"until": None})).state == "valid"
