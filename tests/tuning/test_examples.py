"""Labelled cases before the question: the nearest, of the training folds alone."""

import json
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_run import start
from learning_case import write_bench
from loopback import PATIENCE, Loopback, Play, said, status, until
from scripted_judges import ScriptedBackend

import judgebench as jb
from judgebench.errors import BudgetSpent, SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.learning.folds import alike
from judgebench.learning.learnt import TrainingSet
from judgebench.models.contract import Request
from judgebench.progress import NoProgress
from judgebench.prompt import load_prompt
from judgebench.records import Answer, Status, Verdict
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Budget, Stop, Work
from judgebench.runs.load import check_local, load_bench
from judgebench.tuning.advisers import Adviser
from judgebench.tuning.examples import Examples

SHOTS = """
  - name: llm
    backend: openai-compatible:loopback
    settings: {base_url: "URL", concurrency: 4, price: {prompt: 100, completion: 100}}
  - {name: shots, learn: examples, from: llm, k: 4}
"""
ZERO = '{"tone":"Curt"}'
MATERIAL = re.compile(r"<(question|answer)-[0-9a-f]{8}>\n(.*?)\n</", re.DOTALL)


def copied(body: Any, count: int) -> Play:
    """A judge that says what people said of the nearest case, the last that it is shown."""
    *before, _ = body["messages"]
    return said(before[-1]["content"] if before[-1]["role"] == "assistant" else ZERO)


def shown(messages: Sequence[Any]) -> list[dict[str, str]]:
    """Question and answer of each user turn, the judged one last."""
    return [dict(MATERIAL.findall(m["content"])) for m in messages if m["role"] == "user"]


def with_url(server: Loopback, judges: str = SHOTS) -> str:
    return judges.replace("URL", server.base_url)


def check_apart(bodies: Sequence[Any]) -> int:
    """No example shares question or text with what is judged; how many requests had examples."""
    with_examples = 0
    for body in bodies:
        *cases, judged = shown(body["messages"])
        texts = alike([judged["answer"], *(case["answer"] for case in cases)])
        assert len(set(texts.tolist())) == len(texts)
        assert judged["question"] not in [case["question"] for case in cases]
        with_examples += len(cases) == 4
        assert len(cases) in (0, 4)
    return with_examples


def test_a_run_shows_the_nearest_cases_of_other_folds(tmp_path: Path) -> None:
    faults = {26: status(500), 27: status(429, Retry_After="0")}
    with Loopback(lambda body, n: faults.get(n) or copied(body, n)) as server:
        more = "stress: {attacks: [greeting]}"
        bench = write_bench(tmp_path, with_url(server), 12, more)
        run = tmp_path / "run"
        attacking = pytest.importorskip("judgebench.stress_tests.make")
        study = jb.run(load_bench(bench, extend=attacking.StressExtension()), run)
        with_examples = check_apart(server.bodies)
    found = {j.name: {i: v.labels["tone"] for i, v in j.verdicts.items()} for j in study.judges}
    assert with_examples >= 48  # 24 answers and 24 altered ones
    texts = {answer.item_id: answer.text.split()[0] for answer in study.answers}
    right = np.mean([found["shots"][i] == label for i, label in texts.items()])
    assert right == 1
    assert {found["llm"][i] for i in texts} == {"Curt"}
    assert {v.status for v in RunFolder(run).verdicts("shots")} == {Status.OK}
    facts = json.loads(next((run / "tuning" / "shots").glob("*/fold-1/learnt.json")).read_text())
    assert 0 < facts["cases"] <= 20


def test_it_stops_at_the_budget_and_goes_on(tmp_path: Path) -> None:
    with Loopback(copied) as server:
        bench, run = write_bench(tmp_path, with_url(server)), tmp_path / "run"
        with pytest.raises(BudgetSpent):
            jb.run(bench, run, budget=0.75)  # a call costs 0.012, and is expected to cost 0.097
        spent = len(server.bodies)
        assert 40 < spent <= 0.75 / 0.012
        assert sum(v.cost or 0 for v in RunFolder(run).verdicts("shots")) > 0
        with pytest.raises(BudgetSpent):  # what it cost before counts
            jb.run(bench, run, budget=0.75)
        assert len(server.bodies) <= 0.75 / 0.012
        jb.run(bench, run, budget=5)
        assert len(server.bodies) == 80  # nothing was asked twice


@pytest.mark.long
def test_ctrl_c_keeps_what_is_in_flight_and_waits_for_nothing_else(tmp_path: Path) -> None:
    def slow(body: Any, count: int) -> Play:
        return status(429, Retry_After="1000000000") if count > 50 else copied(body, count)

    with Loopback(slow) as server:
        bench, run = write_bench(tmp_path, with_url(server)), tmp_path / "run"
        process = start(bench, run)
        assert until(lambda: len(server.bodies) > 51)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)  # far less than it was told to wait
        assert process.returncode
        assert b"Interrupted: stopped" in output, output.decode()
        kept = {v.item_id for v in RunFolder(run).verdicts("shots") if v.status is Status.OK}
        assert len(kept) == 11
        server.script = copied
        process = start(bench, run)
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert len({v.item_id for v in RunFolder(run).verdicts("shots")}) == 40


TONE = load_rubric("support-tone")
ONE = TONE.only([TONE.metrics[0].id])
FIRST, SECOND = ONE.metrics[0].label_texts[:2]


def answer(n: int, text: str, question: str = "") -> Answer:
    return Answer(f"i{n}", text, question=question or f"question {n}?")


def training(cases: Sequence[Answer], labels: Sequence[int], rubric: Rubric = ONE) -> TrainingSet:
    places = np.array(labels)
    every = {m.id: places for m in rubric.metrics}
    codes = np.arange(len(cases))
    return TrainingSet(rubric, list(cases), every, codes, codes)


def learnt(
    folder: Path, train: TrainingSet, judged: Answer, k: int = 3, **config: Any
) -> tuple[list[Request], list[Verdict]]:
    """The requests for one answer, and its verdicts."""
    first = json.dumps({m.id: m.label_texts[0] for m in train.rubric.metrics})
    backend = ScriptedBackend(lambda request: config.pop("reply", first))
    settings = JudgeConfig(name="m", backend="scripted:x", **{
        key: value for key, value in config.items() if key != "reply"
    })  # fmt: skip
    prompt = load_prompt(settings.prompt)
    judge = LLMJudge(settings, train.rubric, prompt, backend)
    learner = Examples(Adviser(judge, lambda: judge), k)
    folder.mkdir(exist_ok=True)
    work = Work(RunFolder(folder), NoProgress(), Budget(None), Stop())
    learner.fit(train, folder, work)
    verdicts = list(learner.judge([Task(judged)], folder))
    learner.close()
    return backend.requests, verdicts


def texts_of(request: Request) -> list[str]:
    turns = [{"role": m.role, "content": m.content} for m in request.messages]
    return [case["answer"] for case in shown(turns)]


CASES = [answer(n, f"red cat number {n}") for n in range(5)]
JUDGED = answer(99, "a red cat that sat there")


def test_the_nearest_stands_last(tmp_path: Path) -> None:
    cases = [answer(0, "a blue dog"), answer(1, "a red cat"), answer(2, "a red cat sat there now")]
    (request,), _ = learnt(tmp_path, training(cases, [0, 1, 0]), JUDGED)
    assert texts_of(request) == ["a blue dog", "a red cat", "a red cat sat there now", JUDGED.text]
    assert [m.role for m in request.messages] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    said_of = [m.content for m in request.messages if m.role == "assistant"]
    metric = ONE.metrics[0].id
    assert [json.loads(text)[metric] for text in said_of] == [FIRST, SECOND, FIRST]


def test_one_place_is_kept_for_another_label(tmp_path: Path) -> None:
    other = answer(9, "something else entirely")
    (request,), _ = learnt(tmp_path, training([*CASES, other], [0] * 5 + [1]), JUDGED)
    assert texts_of(request)[0] == other.text
    (request,), _ = learnt(tmp_path / "a", training(CASES, [0] * 5), JUDGED)
    assert len(texts_of(request)) == 4
    (request,), _ = learnt(tmp_path / "b", training([*CASES, other], [0] * 5 + [1]), JUDGED, k=1)
    assert other.text not in texts_of(request)


def test_each_text_is_shown_once_and_never_its_own(tmp_path: Path) -> None:
    cases = [answer(0, "A red cat!"), answer(1, "a red cat"), answer(2, "far away")]
    cases.append(answer(3, JUDGED.text.upper()))
    (request,), _ = learnt(tmp_path, training(cases, [0, 0, 1, 0]), JUDGED)
    assert sorted(texts_of(request)[:-1]) == ["A red cat!", "a red cat", "far away"]
    (request,), _ = learnt(tmp_path / "a", training([*cases, cases[1]], [0, 0, 1, 0, 0]), JUDGED)
    assert texts_of(request).count("a red cat") == 1


def test_each_metric_by_itself_takes_cases_with_that_label(tmp_path: Path) -> None:
    two = TONE.only([m.id for m in TONE.metrics[:2]])
    a, b = (m.id for m in two.metrics)
    cases = [answer(0, "only the first"), answer(1, "only the second")]
    labels = {a: np.array([0, -1]), b: np.array([-1, 1])}
    train = TrainingSet(two, cases, labels, np.arange(2), np.arange(2))
    requests, _ = learnt(tmp_path, train, JUDGED, mode="per_metric")
    assert [texts_of(r)[:-1] for r in requests] == [["only the first"], ["only the second"]]
    (request,), _ = learnt(tmp_path / "x", train, JUDGED)
    assert texts_of(request) == [JUDGED.text]  # no case has both labels


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("from: nobody", r"judges\.shots\.from: is no judge of this benchmark; found nobody"),
        ("from: given", r"is no language model of this benchmark; found given; allowed: llm"),
        ("from: llm, k: 0", r"k: .*greater than or equal to 1"),
        ("k: 2", r"from: Field required"),
        ("from: wordy", "gives reasons with its labels, looks things up or is shown several"),
        ("from: llm, by: given, learn: instructions", r"shots\.by: is no language model of this"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, entry: str, why: str) -> None:
    judges = f"""
  - {{name: llm, backend: "scripted:{tmp_path}/script.jsonl"}}
  - {{name: wordy, backend: "scripted:{tmp_path}/script.jsonl", prompt: rationale}}
  - {{name: given, verdicts: v.csv}}
  - {{name: shots, {entry}{", learn: examples" * ("learn" not in entry)}}}
"""
    bench = write_bench(tmp_path, judges)
    (tmp_path / "v.csv").write_text("item_id,tone\nmodel-x-0,Curt\n")
    (tmp_path / "script.jsonl").write_text(json.dumps({"text": json.loads(ZERO)}) + "\n")
    with pytest.raises(Exception, match=why):
        jb.run(load_bench(bench), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("encoder", "learn: head, encoder: someone/some-encoder"),
        ("model", "learn: lora, model: someone/some-model"),
    ],
)
def test_a_hub_is_another_machine(tmp_path, monkeypatch, key, entry) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    llm = '  - {name: llm, backend: "scripted:x.jsonl"}\n'
    with pytest.raises(SetupError, match=rf"judges\.shots\.{key}: .*huggingface\.co"):
        check_local(write_bench(tmp_path, f"{llm}  - {{name: shots, {entry}}}"))
    check_local(write_bench(tmp_path, f"{llm}  - {{name: shots, learn: examples, from: llm}}"))
    (tmp_path / "someone").mkdir()
    (tmp_path / "someone" / "some-encoder").mkdir()
    (tmp_path / "someone" / "some-model").mkdir()
    check_local(write_bench(tmp_path, f"{llm}  - {{name: shots, {entry}}}"))
