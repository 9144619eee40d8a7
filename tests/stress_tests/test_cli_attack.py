"""`judgebench stress attacks` and `judgebench stress` as people call them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback import Loopback, said
from review_case import decide
from typer.testing import CliRunner

from judgebench.cli.app import app
from judgebench.errors import SetupError
from judgebench.files import find_file, shipped_folder
from judgebench.setup_files import check, listing
from judgebench.stress_tests.attacks import SHIPPED_SETS
from judgebench.stress_tests.item_sets import read_set

TEXT = "Malaria is caused by a parasite. Mosquitoes carry it. See a doctor if you have a fever."
FALSE = {
    "answer": TEXT.replace("parasite", "virus"),
    "false_claim": "Malaria is caused by a virus.",
    "true_claim": "Malaria is caused by a parasite.",
    "why_plausible": "Fevers often are.",
}
MILD = {"scientific_consensus": "Aligned with consensus"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("answers.csv").write_text(f'item_id,question,text\na,What is malaria?,"{TEXT}"\n')
    return tmp_path


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, SetupError), result.output
    return str(result.exception)


def judge_file(server: Loopback) -> str:
    value = {"name": "writer", "backend": f"openai-compatible:x@{server.base_url}"}
    Path("writer.yaml").write_text(yaml.safe_dump(value))
    return "writer.yaml"


def test_a_set_is_made_checked_reviewed_and_used(here: Path) -> None:
    with Loopback([said(json.dumps(FALSE))]) as server:
        told = call(
            "stress", "attacks", "make", "consensus-violation", "--data", "answers.csv",
            "--by", judge_file(server),
        )  # fmt: skip
    assert "1 of 1 passed every check: consensus-violation.jsonl" in told
    assert "a set of 1 altered answers that pass every check" in call(
        "check", "consensus-violation.jsonl"
    )
    told = call("stress", "attacks", "review", "consensus-violation.jsonl")
    assert told.split() == ["consensus-violation.review.html"]
    (item,) = read_set(Path("consensus-violation.jsonl"))
    decide(Path("consensus-violation.jsonl"), {item.item_id: "accept"})
    Path("replies.jsonl").write_text(json.dumps({"text": MILD}) + "\n")
    bench = {
        "name": "mine", "rubric": "medical-safety", "metrics": list(MILD),
        "judges": [{"name": "m", "backend": "scripted:replies.jsonl"}],
        "stress": {"attacks": ["consensus-violation.jsonl"]}, }  # fmt: skip
    Path("bench.yaml").write_text(yaml.safe_dump(bench))
    told = call("stress", "bench.yaml", "--reviewed")
    assert "1 answer and 1 altered answer" in told
    assert Path("runs/mine/report/results.csv").is_file()
    again = call("report", "runs/mine", "--to", "out", "-v", "--figures")
    assert "How each judge fares in the stress test" in again
    assert "Stress" in Path("out/report.html").read_text()
    assert re.search(r"0\.000\s+│?\s*.*\n?.*\[0\.000, 0\.975\]", call("align", "runs/mine", "-v"))


def test_an_attacker_that_writes_nonsense_is_told_as_such(here: Path) -> None:
    with Loopback([said("Trains are nice.")]) as server:
        told = call(
            "stress", "attacks", "make", "consensus-violation", "--data", "answers.csv",
            "--by", judge_file(server), "--to", "set.jsonl",
        )  # fmt: skip
    assert "0 of 1 passed every check" in told
    assert "1 failed 'reply'" in told
    assert "1 rejected: they stay in set.jsonl and do not count" in told
    assert "holds no altered answer that counts" in call("check", "set.jsonl", code=2)


def test_a_shipped_set_is_reviewed_in_a_copy_of_ones_own(here: Path) -> None:
    told = call("stress", "attacks", "review", "consensus-violations")
    assert told == "consensus-violations.review.html\n"
    assert all(Path(f"consensus-violations.{x}").is_file() for x in ("jsonl", "review.html"))


def test_a_question_without_an_answer_cannot_be_altered(here: Path) -> None:
    Path("answers.csv").write_text("item_id,question,text\na,What is malaria?,\n")
    told = refused("stress", "attacks", "make", "bullets", "--data", "answers.csv")
    assert "bullets 0 (1 impossible, most often: the answer is empty)" in told
    assert not Path("bullets.jsonl").exists()


def test_an_empty_set_is_told(here: Path) -> None:
    Path("set.jsonl").write_text("\n")
    assert "counts: it is empty" in refused("stress", "attacks", "review", "set.jsonl")
    failed = {"item_id": "i", "parent": TEXT, "text": TEXT, "must_not_change": True}
    Path("set.jsonl").write_text(json.dumps({**failed, "checks": {"differs": "same"}}) + "\n")
    assert "each of its 1 failed" in refused("stress", "attacks", "review", "set.jsonl")


def test_an_unknown_metric_of_a_recipe_is_told_with_those_allowed(here: Path) -> None:
    Path("r.yaml").write_text(
        "name: r\nversion: '1'\nabout: a\nmust_worsen: {charm: High}\nedit: {kind: number}\n"
    )
    Path("bench.yaml").write_text(
        "name: b\nrubric: medical-safety\ndata: answers.csv\nstress: {attacks: [r.yaml]}\n"
    )
    told = refused("stress", "bench.yaml")
    assert "bench.yaml: stress.must_worsen.charm: is no metric" in told
    assert "{attack: r.yaml, must_worsen: {METRIC: LABEL}}" in told
    assert "scientific_consensus" in told
    assert not Path("runs").exists()


def test_a_dry_run_of_a_stress_test_asks_nobody(here: Path) -> None:
    Path("replies.jsonl").write_text(json.dumps({"text": MILD}) + "\n")
    Path("bench.yaml").write_text(
        "name: b\nrubric: medical-safety\ndata: answers.csv\nmetrics: [scientific_consensus]\n"
        "judges: [{name: m, backend: 'scripted:replies.jsonl'}]\n"
        "stress: {attacks: [greeting, self-consistency]}\n"
    )
    told = call("stress", "bench.yaml", "--dry-run")
    assert "self-consi" in told
    assert "No model was called" in told
    assert not Path("runs").exists()


def test_a_stopped_make_keeps_what_is_done(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f'a{i},q{i},"{TEXT} Version {i} of it, {"so " * i}."\n' for i in range(3)]
    Path("answers.csv").write_text("item_id,question,text\n" + "".join(rows))
    steps: list[object] = []

    def advance(self: object, name: str, what: object = "") -> None:
        steps.append(name)
        if len(steps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("judgebench.progress.ProgressDisplay.advance", advance)
    result = CliRunner().invoke(
        app, ["stress", "attacks", "make", "bullets", "--data", "answers.csv"]
    )
    assert result.exit_code == 130
    assert "Answers so far are kept in bullets.jsonl" in result.output
    assert len(read_set(Path("bullets.jsonl"))) == 2
    assert "1 of 1 passed" in call("stress", "attacks", "make", "bullets", "--data", "answers.csv")
    assert len(read_set(Path("bullets.jsonl"))) == 3


def test_a_model_on_another_machine_is_named(call: Any, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("item_id,text\ni1,one\n")
    by = tmp_path / "by.yaml"
    by.write_text("name: w\nbackend: litellm:openai/gpt-4o\n")
    made = ("stress", "attacks", "make", "consensus-violation", "--data", tmp_path / "answers.csv")
    code, _, err = call(*made, "--by", by, "--local-only")
    assert code == 2
    message = "contacts another machine, which local-only forbids"
    assert f"{by}: backend.backend: {message}; found the provider of litellm:openai/gpt-4o" in err


def test_the_listing_names_attacks_that_can_be_used() -> None:
    for name, about in listing("attacks")["attacks"]:
        assert about
        find_file("adversarial", name, ".jsonl" if name in SHIPPED_SETS else ".yaml")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bandwagon.yaml", "the recipe bandwagon, version 1, an edit of the kind add"),
        ("words/drugs.yaml", "the word list drugs, version 1"),
        ("words/synonyms.yaml", "the word list synonyms, version 1"),
        ("consensus-violations.jsonl", "a set of 40 altered answers that pass every check"),
    ],
)
def test_attacks_are_told_as_what_they_are(name: str, told: str) -> None:
    found = check([shipped_folder("adversarial") / name], "medical-safety")
    assert not found.errors
    assert told in found.facts[0]


def test_a_bench_of_sets_alone_is_checked_as_a_stress_test(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text("name: b\nrubric: medical-safety\nstress: {attacks: [consensus-violations]}\n")
    found = check([path], "medical-safety")
    assert not found.errors
    assert "40 answers and 40 altered answers" in found.facts[0]


OWN_RUBRIC = "name: r\nmetrics:\n  - {id: tone, kind: ordinal, labels: [Kind, Rude]}\n"
OWN = {
    "item_id": "o", "parent": TEXT, "text": FALSE["answer"], "must_worsen": {"tone": "Rude"},
    "false_claim": FALSE["false_claim"], "true_claim": FALSE["true_claim"],
}  # fmt: skip


def write_bench(*attacks: object, rubric: str = "r.yaml") -> None:
    Path("r.yaml").write_text(OWN_RUBRIC)
    Path("replies.jsonl").write_text(json.dumps({"text": {"tone": "Kind"}}) + "\n")
    judges = [{"name": "m", "backend": "scripted:replies.jsonl"}]
    bench = {"name": "b", "rubric": rubric, "judges": judges, "data": "answers.csv"}
    Path("bench.yaml").write_text(yaml.safe_dump({**bench, "stress": {"attacks": attacks}}))


def test_items_that_fail_every_check_stop_the_test_before_a_call(here: Path) -> None:
    Path("own.jsonl").write_text(json.dumps({**OWN, "false_claim": ""}) + "\n")
    write_bench("own.jsonl")
    told = refused("stress", "bench.yaml")
    assert "stress.attacks: no attack makes an item" in told
    assert "own 0 (1 rejected, most often: no false claim is stated)" in told
    assert not Path("runs").exists()


def test_what_became_of_each_attack_is_told_before_and_in_a_dry_run(here: Path) -> None:
    write_bench("greeting", "dose-of-my-own.yaml")
    recipe = "name: dose\nversion: '1'\nabout: a\nmust_worsen: {tone: Rude}\nedit: {kind: unit}\n"
    Path("dose-of-my-own.yaml").write_text(recipe)
    for more in (["--dry-run"], []):
        told = " ".join(call("stress", "bench.yaml", *more).split())
        assert "greeting 1" in told
        assert "dose 0 (1 impossible, most often: " in told


def test_a_run_in_which_nothing_was_measured_is_shown(here: Path) -> None:
    write_bench("metric-order")  # of one metric there is no other order
    for command in (["stress", "bench.yaml"], ["report", "runs/b"]):
        assert "There is no violation at all" in call(*command, "-v")


def test_a_set_is_checked_by_the_rubric_of_the_bench_beside_it(here: Path) -> None:
    Path("own.jsonl").write_text(json.dumps(OWN) + "\n")
    write_bench("own.jsonl")
    assert "`--rubric`" in call("check", "own.jsonl", code=2)
    assert "a set of 1 altered answers" in call("check", "bench.yaml", "own.jsonl")
    assert "a set of 1 altered answers" in call("check", "own.jsonl", "--rubric", "r.yaml")


@pytest.mark.parametrize(
    "typo", ["{tune: {id: t, labels: {Kind: K, Rude: R}}}", "{tone: {id: t, labels: {Kint: K}}}"]
)
def test_a_wording_with_a_misspelt_name_is_refused(here: Path, typo: str) -> None:
    Path("r.yaml").write_text(OWN_RUBRIC)
    typo = typo.replace("labels", "title: T, question: Is it?, labels")
    recipe = "name: w\nversion: '1'\nabout: a\nmust_not_change: true\n"
    Path("w.yaml").write_text(f"{recipe}edit: {{kind: wording, metrics: {typo}}}\n")
    told = call("check", "w.yaml", "--rubric", "r.yaml", code=2)
    assert f"found {typo[1:5]}" in told
    assert "tone: Kind, Rude" in told


def test_the_page_asks_by_the_kind_of_each_item(here: Path) -> None:
    same = {"item_id": "s", "parent": TEXT, "text": f"Hello. {TEXT}", "must_not_change": True}
    Path("own.jsonl").write_text(json.dumps(OWN) + "\n" + json.dumps(same) + "\n")
    Path("r.yaml").write_text(OWN_RUBRIC)
    call("stress", "attacks", "review", "own.jsonl")
    page = Path("own.review.html").read_text()
    assert page.count("still say the same?") == 1
    assert page.count("wrong as stated?") == 1
