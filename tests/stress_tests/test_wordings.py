"""The same question in other words, and the opposite question with labels carried back."""

import json
from pathlib import Path

import pytest
from review_case import decide
from stress_case import invariance, stress_run
from test_stress_run import SEVERE, bench_file
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.errors import SetupError
from judgebench.files import shipped_folder, shipped_names
from judgebench.prompt import load_prompt
from judgebench.rubric import load_rubric, shipped_rubrics
from judgebench.runs.folder import RunFolder
from judgebench.runs.run_bench import run
from judgebench.stress_tests.recipes import load_recipe
from judgebench.stress_tests.result import EVERY
from judgebench.stress_tests.wordings import instruction_texts, read_wordings

PATH = shipped_folder("adversarial") / "wordings.yaml"
SAFETY = load_rubric("medical-safety")


def shipped():
    return read_wordings(load_recipe(PATH).edit, SAFETY, SAFETY, PATH)


@pytest.mark.parametrize("name", shipped_names("prompts", ".jinja"))
def test_every_sentence_of_a_shipped_prompt_has_two_other_wordings(name: str) -> None:
    wordings, prompt = shipped(), load_prompt(name)
    texts = [answer.text for answer in instruction_texts([Path(name)])]
    assert all(sentence in prompt.text for sentence in texts)
    for number in (0, 1):
        # What has no other wording: half sentences around a value.
        same = [s for s in texts if wordings.reword(s, number) == s]
        assert [s for s in same if s[0].isupper() and s[-1] == "."] == []
    assert wordings.reword(prompt.text, 0) != wordings.reword(prompt.text, 1)


@pytest.mark.parametrize("name", shipped_rubrics())
def test_every_question_of_a_shipped_rubric_has_two_other_wordings(name: str) -> None:
    rubric, wordings = load_rubric(name), shipped()
    others = [wordings.rubric(rubric, number) for number in (0, 1)]
    for metric, *reworded in zip(rubric.metrics, *(other.metrics for other in others), strict=True):
        assert len({metric.question, *(other.question for other in reworded)}) == 3
        assert all(other.label_texts == metric.label_texts for other in reworded)
        assert all(other.options == metric.options for other in reworded)
    assert len({rubric.instructions, *(other.instructions for other in others)}) == 3


def run_of(path: Path, tmp_path: Path):
    folder = RunFolder(tmp_path / "run")
    run(jb.load_bench(path, stress=True), folder)
    return stress_run(folder)


def test_verdicts_that_move_with_the_words_are_counted(tmp_path: Path) -> None:
    # The judge is severe where it is told "nothing besides", as one of the two wordings says it.
    path = bench_file(tmp_path, [("and nothing besides", SEVERE)], ["wordings"])
    found = invariance(run_of(path, tmp_path), probe="wordings", metric="extent_of_harm")
    assert (found.flipped.value, found.flipped.n) == (1 / 2, 8)
    assert found.shift.value == 1  # two labels, in half of the cases


OPPOSITE = {"appropriate_content": "No great clinical significance", "extent_of_harm": "No harm"}
DIRECT = {"inappropriate_content": "Yes great clinical significance", "extent_of_harm": "No harm"}


@pytest.mark.parametrize(
    ("reply", "flipped"),
    [(OPPOSITE, 0), ({**OPPOSITE, "appropriate_content": "Yes"}, 1)],
)
def test_the_label_of_an_opposite_question_is_carried_back(
    tmp_path: Path, reply: dict[str, str], flipped: int
) -> None:
    rules = [("Is all content of the answer correct", reply), ("", DIRECT)]
    path = bench_file(tmp_path, rules, ["opposite-questions"], metrics=list(DIRECT))
    result = run_of(path, tmp_path)
    found = invariance(result, probe="opposite-questions", metric="inappropriate_content")
    assert (found.flipped.value, found.flipped.n) == (flipped, 4)
    rows = result.rows.select("invariance", "flipped", judge="m", recipe="opposite-questions")
    assert [row.metric for row in rows] == ["inappropriate_content", EVERY]  # harm has no opposite
    assert rows[1].estimate.n == 4
    lines = (tmp_path / "run" / "verdicts-m~opposite-questions~1.jsonl").read_text()
    assert "appropriate_content" in lines  # as the judge said it


def test_opposites_that_fit_no_judged_metric_are_refused(tmp_path: Path) -> None:
    path = bench_file(tmp_path, [], ["opposite-questions"])
    with pytest.raises(SetupError, match="words nothing anew"):
        jb.load_bench(path, stress=True)


REWORDED = "How bad is it if a patient acts on the answer?"


def test_only_what_a_person_accepted_is_used(tmp_path: Path) -> None:
    sentence = SAFETY.metrics[3].question
    lines = [
        {"item_id": f"w{n}", "parent": sentence, "text": text, "must_not_change": True}
        for n, text in enumerate([REWORDED, "How bad? If a patient acted?"])
    ]  # fmt: skip
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = "name: own\nversion: '1'\nabout: x\nmust_not_change: true\n"
    recipe += "edit: {kind: wording, sets: [own.jsonl]}\n"
    (tmp_path / "own.yaml").write_text(recipe)
    decide(tmp_path / "own.jsonl", {"w0": "accept"})
    edit = load_recipe(tmp_path / "own.yaml").edit
    accepted = read_wordings(edit, SAFETY, SAFETY, tmp_path / "own.yaml").sentences
    assert accepted == {sentence: [REWORDED]}
    result = run_of(bench_file(tmp_path, [], ["own.yaml"], metrics=list(DIRECT)), tmp_path)
    metrics = result.rows.values("metric", "invariance")
    assert metrics == [SAFETY.metrics[3].id, EVERY]  # the questions of the others are as they were


def test_a_model_words_a_rubric_of_your_own_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rubric = "name: r\ninstructions: You rate one reply to a customer.\nmetrics:\n"
    rubric += "  - {id: tone, kind: ordinal, question: Is the reply kind to the customer?, "
    rubric += "labels: [Kind, Rude]}\n"
    Path("r.yaml").write_text(rubric)
    reply = {"answer": "Would you say that the reply is kind to the customer?"}
    Path("replies.jsonl").write_text(json.dumps({"text": reply}) + "\n")
    command = ["stress", "attacks", "make", "rephrase-instructions", "--data", "r.yaml"]
    command += ["--by", "scripted:replies.jsonl", "--to", "own.jsonl"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in Path("own.jsonl").read_text().splitlines()]
    assert {line["text"] for line in lines} == {reply["answer"]}
    assert "Is the reply kind to the customer?" in {line["parent"] for line in lines}
