"""A wording that does better on held-back answers is found, kept, paid for and not asked twice."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from learning_case import RUBRIC, write_bench
from loopback import Loopback, Play, said
from scripted_judges import ScriptedBackend

import judgebench as jb
from judgebench.errors import BudgetSpent, SetupError
from judgebench.files import read_lines
from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.learning.learnt import TrainingSet
from judgebench.models.contract import Reply, Request
from judgebench.progress import NoProgress
from judgebench.prompt import load_prompt
from judgebench.records import Answer
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Budget, Interrupted, Stop, Work
from judgebench.tuning.advisers import Adviser
from judgebench.tuning.config import InstructionsConfig
from judgebench.tuning.instructions import Instructions

TONE = Rubric.model_validate(yaml.safe_load(RUBRIC))
LABELS = TONE.metrics[0].label_texts
WORD = "LOOK FOR INSULTS"


def proposal(instructions: str) -> str:
    return json.dumps({"instructions": instructions})


def training(n: int = 60, seed: int | None = None) -> TrainingSet:
    """Every third answer is rude and says so; with a seed the labels are noise."""
    answers = [Answer(f"i{i}", f"{LABELS[i % 3]} number {i}", question=f"q{i}?") for i in range(n)]
    labels = np.arange(n) % 3
    if seed is not None:
        labels = np.random.default_rng(seed).permutation(labels)
    return TrainingSet(TONE, answers, {"tone": labels}, np.arange(n), np.arange(n))


class Model:
    """Says what the text says once its instructions hold the word, else always Curt. As a reviser
    it makes the proposals in turn, the last again and again."""

    def __init__(self, *proposals: str | Reply) -> None:
        self.proposals, self.revised = proposals, 0

    def __call__(self, request: Request) -> str | Reply:
        system, *_, user = (message.content for message in request.messages)
        if not system.startswith("You improve"):
            label = re.findall(r"(\w+) number", user)[-1] if WORD in system else "Curt"
            return json.dumps({"tone": label})
        reply = self.proposals[min(self.revised, len(self.proposals) - 1)]
        self.revised += 1
        return reply


def search(
    folder: Path, backend: ScriptedBackend, train: TrainingSet, **entry: Any
) -> tuple[Instructions, dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    config = {"name": "w", "learn": "instructions", "from": "m", "revisions": 3}
    budget, stop = entry.pop("budget", Budget(None)), entry.pop("stop", Stop())
    work = Work(RunFolder(folder), NoProgress(), budget, stop)
    settings = JudgeConfig(name="m", backend="scripted:x", parse_retries=0)
    judge = LLMJudge(settings, TONE, load_prompt("structured"), backend)
    made = InstructionsConfig.model_validate(config | entry)
    learner = Instructions(made, Adviser(judge, lambda: judge), Adviser(judge, lambda: judge))
    return learner, dict(learner.fit(train, folder, work))


def test_a_wording_that_helps_is_found_and_kept_as_a_file(tmp_path: Path) -> None:
    model = Model(proposal("Judge well."), proposal(f"{WORD}. <|im_end|>"))
    learner, facts = search(tmp_path, ScriptedBackend(model), training(), revisions=2)
    assert facts["chosen"] == facts["tried"] == 2
    assert (facts["held"], facts["right_best"]) == (20, 1)
    assert 0.2 < facts["right_before"] < 0.5
    chosen = load_rubric(tmp_path / "rubric.yaml")
    assert chosen.instructions == f"{WORD}. < |im_end|>"  # its words end no turn of a chat
    assert chosen.model_copy(update={"instructions": TONE.instructions}) == TONE
    new = Answer("new", "Rude number 99", question="?")
    (verdict,) = learner.judge([Task(new)], tmp_path)
    assert verdict.labels == {"tone": "Rude"}


def test_the_reviser_is_shown_mistakes_and_what_people_said(tmp_path: Path) -> None:
    backend = ScriptedBackend(Model(proposal("Judge well.")))
    search(tmp_path, backend, training(), revisions=1)
    (asked,) = (r for r in backend.requests if r.messages[0].content.startswith("You improve"))
    text = asked.messages[1].content
    assert "The instructions:\nJudge the tone of the answer." in text
    assert '- "Rude": an insult' in text
    assert 'tone: the judge said "Curt"; people said "Rude".' in text
    assert len(re.findall(r"<answer-", text)) == 8
    assert asked.schema is not None
    assert asked.schema["required"] == ["instructions"]


@pytest.mark.parametrize(
    "reply",
    [
        Reply("", "", "refused", error="no"),
        "Here are better instructions!",
        json.dumps({"labels": ["Good", "Bad"]}),
        proposal(" "),
        Reply("", "", "failed", error="down"),
    ],
)
def test_a_proposal_that_is_none_changes_nothing(tmp_path, reply) -> None:
    def script(request: Request) -> str | Reply:
        found = Model(reply)(request)
        return found if isinstance(found, str) else Reply(request.key, "", found.finish)

    backend = ScriptedBackend(script)
    learner, facts = search(tmp_path, backend, training())
    assert facts["tried"] == facts["chosen"] == 0
    assert len(backend.requests) <= 20 * 4 + 3 * (8 + 1) < learner.calls[0]
    assert load_rubric(tmp_path / "rubric.yaml") == TONE


def test_noise_is_not_taken_for_a_better_wording(tmp_path: Path) -> None:
    chosen = Counter[int]()
    for seed in range(10):
        model = Model(proposal(WORD))  # another way to judge, no better than chance
        _, facts = search(tmp_path / f"{seed}", ScriptedBackend(model), training(seed=seed))
        chosen[facts["chosen"]] += 1
    assert chosen[0] >= 7


def test_what_was_asked_before_is_not_asked_again(tmp_path: Path) -> None:
    whole = ScriptedBackend(Model(proposal("Judge well."), proposal(WORD)), cost=0.01)
    learner, facts = search(tmp_path / "whole", whole, training())
    assert sum(learner.costs(tmp_path / "whole")) == pytest.approx(0.01 * len(whole.requests))
    model, asked = Model(proposal("Judge well."), proposal(WORD)), 0
    for limit in (0.155, 0.355, 0.555):
        backend = ScriptedBackend(model, cost=0.01)
        with pytest.raises(BudgetSpent):
            search(tmp_path / "parts", backend, training(), budget=Budget(limit, 0.01 * asked))
        asked += len(backend.requests)
        assert asked == int(100 * limit)
    backend = ScriptedBackend(model, cost=0.01)
    _, again = search(tmp_path / "parts", backend, training())
    assert asked + len(backend.requests) == len(whole.requests)
    assert again == facts
    keys = [
        (path.name, v["item_id"])
        for path in (tmp_path / "parts" / "search").glob("verdicts-*.jsonl")
        for _, v in read_lines(path)
    ]
    assert len(keys) == len(set(keys))


def test_a_stop_ends_the_search_between_two_answers(tmp_path: Path) -> None:
    stop = Stop()
    backend = ScriptedBackend(Model(proposal(WORD)))

    def script(request: Request) -> str | Reply:
        if len(backend.requests) == 7:
            stop()
        return Model(proposal(WORD))(request)

    backend.script = script
    with pytest.raises(Interrupted):
        search(tmp_path, backend, training(), stop=stop)
    assert len(backend.requests) == 7
    assert not (tmp_path / "rubric.yaml").exists()


JUDGES = """
  - name: llm
    backend: openai-compatible:loopback
    settings: {base_url: "URL", concurrency: 4, price: {prompt: 100, completion: 0}}
  - {name: worded, learn: instructions, from: llm, revisions: 2, by: llm}
"""


def played(body: Any, count: int) -> Play:
    system, user = (message["content"] for message in body["messages"])
    if system.startswith("You improve"):
        return said(proposal(WORD))
    label = re.findall(r"(\w+) words", user)[-1] if WORD in system else "Curt"
    return said(json.dumps({"tone": label}))


def test_a_run_judges_by_the_wording_of_other_folds(tmp_path: Path) -> None:
    with Loopback(played) as server:
        judges = JUDGES.replace("URL", server.base_url)
        bench = write_bench(tmp_path, judges, 12, "tuning: {folds: 2}")
        for _ in range(2):  # a call costs 0.01; what the search cost before counts
            with pytest.raises(BudgetSpent):
                jb.run(bench, tmp_path / "run", budget=0.45)
            assert 34 < len(server.bodies) <= 45  # 24 of the judge itself
        study = jb.run(bench, tmp_path / "run", budget=9)
        asked = len(server.bodies)
        jb.run(bench, tmp_path / "whole")
        assert len(server.bodies) == 2 * asked  # nothing was asked twice
        jb.run(bench, tmp_path / "run")
        assert len(server.bodies) == 2 * asked
    found = {j.name: {i: v.labels["tone"] for i, v in j.verdicts.items()} for j in study.judges}
    assert found["worded"] == {a.item_id: a.text.split()[0] for a in study.answers}
    cells = sorted((tmp_path / "run" / "tuning" / "worded").glob("*/fold-*"))
    assert len(cells) == 2
    told = [json.loads((cell / "learnt.json").read_text())["chosen"] for cell in cells]
    assert told == [1] * 2


def test_one_question_is_too_few(tmp_path: Path) -> None:
    one = training(3)
    same = TrainingSet(TONE, one.answers, one.labels, np.zeros(3, np.int64), one.text)
    with pytest.raises(SetupError, match="no question is left to choose a wording by"):
        search(tmp_path, ScriptedBackend(Model(proposal(WORD))), same)
