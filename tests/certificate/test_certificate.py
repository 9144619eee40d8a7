"""A certificate: what stands in it, how it is kept, signed, shown, compared, and renewed."""

from __future__ import annotations

import doctest
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from certified import certificate_of, swapped, written
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import judgebench as jb
from judgebench.features import WINGS

Call = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def issued(study: Path) -> Any:
    return certificate_of(study, again=[str(study / "again.csv")], with_anchors=True)


def test_it_says_what_was_decided_for_whom_on_what_and_until_when(issued: Any) -> None:
    one = issued.metrics["refused"]
    assert one.outcome == "REPLACE"
    conditions = {c.key: c for c in one.conditions if c.outcome == "REPLACE"}
    assert conditions["severe_recall"].value > 0.9 > conditions["severe_recall"].bound
    assert all(c.low is not None for key, c in conditions.items() if key != "severe_items")
    assert {w.key for w in one.watched} == {"agreement", "baseline", "severe_recall", "failures"}
    assert all((w.value > w.bound) == w.at_least for w in one.watched)
    assert (one.noise.pairs, one.noise.changed) == (600, 0)
    assert 0 < one.noise.most < 0.02
    people = issued.population
    assert (people.answers, people.questions) == (600, 600)
    assert people.shares["system"] == {"new": 300, "old": 300}
    assert sum(people.shares["length"].values()) == 600
    assert (issued.labels.annotators, issued.labels.blind) == (3, "yes")
    assert len(issued.anchors) == 600
    assert issued.anchors[0].text.startswith("Reply")
    assert (issued.valid.until - issued.issued).days == 180


def test_it_is_read_as_it_was_written_and_a_change_is_noticed(issued: Any, tmp_path: Path) -> None:
    path = issued.write(tmp_path / "judge.json")
    assert jb.read_certificate(path) == issued
    with pytest.raises(jb.SetupError, match="never overwritten"):
        issued.write(path)
    text = path.read_text("utf-8")
    assert "REPLACE" in text
    path.write_text(text.replace('"days": 180', '"days": 999'), encoding="utf-8")
    with pytest.raises(jb.SetupError, match="changed after it was issued"):
        jb.read_certificate(path)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(jb.SetupError, match=r"judge\.json"):
        jb.read_certificate(path)


def test_texts_of_answers_and_names_of_annotators_stay_out_unless_asked_for(study: Path) -> None:
    made = certificate_of(study)
    text = made.model_dump_json()
    assert "Reply" not in text
    assert "Question" not in text.replace("Question 1", "").split('"anchors"')[0]
    assert '"ann"' not in text
    assert made.metrics["refused"].noise.pairs == 0


def test_a_signature_fits_its_key_and_no_other(study: Path, call: Call, tmp_path: Path) -> None:
    keys = [Ed25519PrivateKey.generate() for _ in range(2)]
    for i, key in enumerate(keys):
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (tmp_path / f"key{i}.pem").write_bytes(private)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / f"public{i}.pem").write_bytes(public)
    path = certificate_of(study, key=tmp_path / "key0.pem").write(tmp_path / "signed.json")
    verify = ("certificate", "verify", path, "--public-key")
    assert call(*verify, tmp_path / "public0.pem")[0] == 0
    code, _, err = call(*verify, tmp_path / "public1.pem")
    assert (code, "is not signed with this key" in err) == (2, True)
    held = json.loads(path.read_text("utf-8"))
    held["signature"]["value"] = held["signature"]["value"][::-1]
    path.write_text(json.dumps(held), encoding="utf-8")
    code, _, err = call("certificate", "verify", path)
    assert (code, "signature does not fit" in err or "signature" in err) == (2, True)
    (tmp_path / "no.pem").write_text("no key", encoding="utf-8")
    with pytest.raises(jb.SetupError, match=r"no\.pem.*private key"):
        certificate_of(study, key=tmp_path / "no.pem")


def test_without_replace_or_assist_there_is_nothing_to_certify(study: Path) -> None:
    labels = pd.read_csv(study / "labels.csv")
    poor = pd.read_csv(study / "verdicts.csv").assign(refused="no")
    decided = jb.decide(
        jb.study(labels, poor, rubric=jb.Rubric.from_labels({"refused": ["no", "yes"]}))
    )
    with pytest.raises(jb.SetupError, match=r"nothing to certify.*DO NOT USE"):
        decided.certificate()


def test_replace_is_certified_only_of_labels_that_were_made_blind(study: Path) -> None:
    labels = pd.read_csv(study / "labels.csv").drop(columns="made_blind")
    columns = {"order": "no < yes"}
    for blind, error in (("unknown", "without sight of any model's label"), ("yes", None)):
        decided = jb.decide(labels, study / "verdicts.csv", truth={"blind": blind}, columns=columns)
        assert decided.decisions[0].outcome == "REPLACE"
        if error:
            with pytest.raises(jb.SetupError, match=error):
                decided.certificate()
        else:
            assert decided.certificate().labels.blind == "yes"


def test_from_the_command_line_to_a_certificate_and_back(here: Path, call: Call) -> None:
    decide = ("decide", "labels.csv", "verdicts.csv", "--order", "no < yes")
    code, out, err = call(*decide, "--certificate", "judge.json", "--again", "again.csv")
    assert code == 0, err
    assert "Certificate: judge.json. Next: judgebench watch judge.json NEW" in out
    code, _, err = call(*decide, "--certificate", "judge.json")
    assert (code, "judge.json: exists" in err) == (2, True)
    code, _, err = call(*decide, "--again", "again.csv")
    assert (code, "--again: is for --certificate" in err) == (2, True)
    code, _, err = call(*decide, "--certificate", "gpt-5=other.json")
    assert (code, "gpt-5" in err, "gpt-4" in err) == (2, True, True)
    assert not (here / "other.json").exists()
    code, out, _ = call("certificate", "show", "judge.json")
    assert code == 0
    for said in ("REPLACE on refused", "Valid until", "600 questions", "not signed", "0 of 600"):
        assert said in " ".join(out.split()), said
    code, out, _ = call("certificate", "show", "judge.json", "--json")
    assert {row["metric"] for row in json.loads(out)["certificate"]} == {"refused"}


def test_card_and_badge_say_how_it_stands(here: Path, call: Call) -> None:
    certificate_of(here).write("judge.json")
    code, out, _ = call("certificate", "card", "judge.json")
    assert (code, out.startswith("### Judge gpt-4: valid")) == (0, True)
    assert "| refused | REPLACE |" in out
    code, _, _ = call("certificate", "card", "judge.json", "--to", "badge.svg")
    root = ElementTree.parse(here / "badge.svg").getroot()
    assert code == 0
    assert "".join(root.itertext()).count("REPLACE: valid") == 2  # the title and the text


def test_two_certificates_are_compared(here: Path, call: Call) -> None:
    certificate_of(here).write("a.json")
    certificate_of(here, now=datetime(2030, 1, 1, tzinfo=UTC)).write("b.json")
    code, out, _ = call("certificate", "compare", "a.json", "b.json")
    assert code == 0
    assert "end: Valid until" in out
    assert "REPLACE" not in out
    _, out, _ = call("certificate", "compare", "a.json", "a.json")
    assert out == "They say the same.\n"


def test_a_renewal_draws_what_the_watch_allows_and_decides_again(here: Path, call: Call) -> None:
    certificate_of(here, again=["again.csv"], with_anchors=True).write("judge.json")
    renew = ("certificate", "renew", "judge.json", "log.csv")
    code, out, err = call(*renew, "--to", "renewal", "--who", "ann,ben", "--items", "60")
    assert code == 0, err
    assert "old labels and verdicts count again" in out
    assert "60 answers of 400 are to be labelled" in out
    if "annotate" in WINGS:
        init = ("annotate", "init", "renewal/annotate.yaml", "--to", "renewal/labels")
        code, out, err = call(*init)
        assert code == 0, err
    code, out, err = call(*renew, "fresh.csv", "--decide", "new.json")
    assert code == 0, err
    new = jb.read_certificate("new.json")
    assert new.metrics["refused"].outcome == "REPLACE"
    assert new.metrics["refused"].noise.pairs == 600
    assert new.population.answers == 400
    assert (new.labels.annotators, new.labels.labels) == (6, 1800 + 300)
    code, _, err = call(*renew, "--decide", "x.json")
    assert (code, "no new human label" in err) == (2, True)
    code, _, err = call(*renew)
    assert (code, "either --to FOLDER or --decide FILE" in err) == (2, True)
    assert not (here / "x.json").exists()


def test_after_a_swap_old_labels_count_with_new_verdicts_alone(here: Path, call: Call) -> None:
    certificate_of(here, again=["again.csv"]).write("judge.json")
    rows = pd.read_csv("verdicts.csv", dtype=str).to_dict("records")
    written(here / "swap.csv", swapped(rows[:500], 0.05))
    call("watch", "judge.json", "swap.csv")
    renew = ("certificate", "renew", "judge.json", "log.csv", "fresh.csv")
    code, _, err = call(*renew, "--decide", "new.json")
    assert (code, "give its verdicts on the anchors" in err) == (2, True)
    renewed = jb.renew("judge.json", "log.csv", "fresh.csv", "swap.csv")
    assert (renewed.plan.old_labels, renewed.plan.new_verdicts) == (True, True)
    assert renewed.decisions.basis.study.n_labels == 500 * 3 + 300
    # It differs from people more often than they do from each other, and is not certified again.
    code, _, err = call(*renew, "swap.csv", "--decide", "new.json")
    assert (code, "nothing to certify" in err) == (2, True)
    assert not (here / "new.json").exists()


def test_the_examples_of_the_functions_run(here: Path) -> None:
    certificate_of(here, again=["again.csv"], now=datetime(2026, 11, 26, tzinfo=UTC)).write(
        "judge.json"
    )
    (here / "fresh.csv").rename(here / "new-labels.csv")
    (here / "log.csv").replace(here / "verdicts.csv")
    for name in ("read_certificate", "watch"):
        (test,) = doctest.DocTestFinder(recurse=False).find(getattr(jb, name), name)
        assert doctest.DocTestRunner().run(test).failed == 0
