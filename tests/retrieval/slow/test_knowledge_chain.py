"""The knowledge completion chain of AutoMedEval (Algorithm 1) in a run: the judge asks, passages
come from a store of vectors, and it asks on or judges."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from loopback import Body, Loopback, Play, is_few_words, said

import judgebench as jb

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `proxy`")

PASSAGES = (
    "Rabies is passed on by the bite of a sick animal. It is nearly always fatal.",
    "Beans and lentils hold much iron.",
    "A dark, cool bedroom helps against poor sleep.",
)
QUESTIONS = ("What may a dog give me?", "Why am I tired in the morning?")
VERDICT = {"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"}


def ask_twice(body: Body, count: int) -> Play:
    if is_few_words(body):
        return said("An example.")
    n_asked = sum(message["role"] == "assistant" for message in body["messages"])
    reply = VERDICT if n_asked == len(QUESTIONS) else {"question": QUESTIONS[n_asked]}
    return said(json.dumps(reply))


def test_a_run_answers_a_judges_questions_by_meaning(
    minilm: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    corpus = "".join(json.dumps({"text": passage}) + "\n" for passage in PASSAGES)
    (tmp_path / "corpus.jsonl").write_text(corpus)
    (tmp_path / "answers.csv").write_text("item_id,question,text\na,Is it bad?,It is harmless.\n")
    bench, run = tmp_path / "bench.yaml", tmp_path / "run"
    with Loopback(ask_twice) as server:
        bench.write_text(
            "name: chain\nrubric: support-tone\ndata: answers.csv\njudges:\n"
            f"  - {{name: m, backend: 'openai-compatible:x@{server.base_url}', knowledge: "
            f"{{corpus: corpus.jsonl, embedder: '{minilm}', questions: 2, passages: 1}}}}\n"
        )
        code, _, err = call("run", bench, "--run", run)
        last = [body for body in server.bodies if not is_few_words(body)][-1]
    assert code == 0, err
    assert PASSAGES[0] in str(last["messages"])
    (judge,) = (judge for judge in jb.open_run(run).judges if judge.name == "m")
    verdict = judge.verdicts["a"]
    assert verdict.labels == VERDICT
    assert [(lookup.question, lookup.passages) for lookup in verdict.transcript] == [
        (QUESTIONS[0], (PASSAGES[0],)),
        (QUESTIONS[1], (PASSAGES[2],)),
    ]
