"""A model opens questions: each is kept or left out with a reason, and nothing is asked twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exam_case import ROWS, but, exam, kind_of, model
from loopback import Loopback, is_few_words, said, status
from scripted_judges import ScriptedBackend

from judgebench.files import shipped_folder
from judgebench.judges.config import Decoding
from judgebench.models.contract import Message, Reply, Request
from judgebench.prompt import QUESTIONS, load_prompt
from judgebench.runs.judging import Interrupted, Stop
from judgebench.scorers.open_questions import (
    ExamQuestion,
    open_questions,
    read_questions,
    write_questions,
)
from judgebench.setup_files import check
from judgebench.writer import TextWriter, WritingTerms

MAKE = ("score", "openqa")
Script = Callable[[Request], str | Reply]


def opened(
    folder: Path, script: Script = model, stop: Stop | None = None
) -> tuple[dict[str, ExamQuestion], list[Request]]:
    backend = ScriptedBackend(script)
    terms = WritingTerms(stop=stop or Stop())
    writer = TextWriter(backend, Decoding(), folder / "replies.jsonl", terms)
    found = open_questions(read_questions(exam(folder)), writer)
    write_questions(found, writer)
    return {one.item_id: one for one in found}, backend.requests


def test_every_question_is_kept_or_left_out_with_a_reason(tmp_path: Path) -> None:
    found, requests = opened(tmp_path)
    assert {item: one.reason for item, one in found.items()} == {
        "antidote": "",
        "negative": "asks for what is wrong: NOT",
        "list": "a rewriting points to options; unsuitable for an open question",
        "vague": "another answer may be right too",
        "told": "a rewriting gives the answer away",
        "case": "",
    }
    assert found["vague"].detail == "Ibuprofen"
    assert all("opioid" not in request.messages[1].content for request in requests)
    kept, out = (
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        for name in ("questions.jsonl", "left-out.jsonl")
    )
    assert [one["item_id"] for one in kept] == ["antidote", "case"]
    assert (kept[0]["reference"], kept[0]["exam_id"]) == ("Fomepizole", "antidote")
    assert {one["item_id"] for one in out} == {"negative", "list", "vague", "told"}


def test_what_is_asked_holds_every_text_in_a_fence_and_each_request_once(tmp_path: Path) -> None:
    _, requests = opened(tmp_path)
    kinds = [kind_of(request) for request in requests]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "suitable+question": 10, "best": 3, "other+only": 3,
    }  # fmt: skip
    for request in requests:
        text = request.messages[1].content
        assert text.count("<answer-") == text.count("</answer-") == 1
        assert ("<options-" in text) is (kind_of(request) != "other+only")


def test_no_rewriting_may_be_good_enough(tmp_path: Path) -> None:
    def b_or_none(request: Request) -> str | None:
        none = "ethylene" in request.messages[1].content
        return json.dumps({"best": "none" if none else "B"}) if kind_of(request) == "best" else None

    found, requests = opened(tmp_path, but(b_or_none))
    assert found["antidote"].reason == "no rewriting is good enough"
    (shown,) = [r for r in requests if kind_of(r) == "best" and "rash" in r.messages[1].content]
    second = shown.messages[1].content.partition("Open question B:")[2]
    assert found["case"].question in second


def test_a_reply_that_cannot_be_read_is_an_outcome_of_its_own(tmp_path: Path) -> None:
    def unreadable(request: Request) -> str | Reply | None:
        text, kind = request.messages[1].content, kind_of(request)
        if "ethylene" in text and kind == "best":
            return "A or B"
        if "headache" in text and kind == "other+only":
            return json.dumps({"other": "x", "only": "perhaps"})
        if "rash" in text and kind == "suitable+question":
            return Reply(request.key, "", "refused", error="I cannot")
        return None

    found, _ = opened(tmp_path, but(unreadable))
    assert found["antidote"].reason == "the choice cannot be read"
    assert found["vague"].reason == "the check cannot be read"
    assert found["vague"].detail == "the reply lacks only"
    assert found["case"].reason == "a rewriting cannot be read"


def test_what_failed_waits_and_only_that_is_asked_again(tmp_path: Path) -> None:
    def down(request: Request) -> Reply | None:
        failed = "ethylene" in request.messages[1].content and kind_of(request) == "other+only"
        return Reply(request.key, "", "failed", error="down") if failed else None

    found, first = opened(tmp_path, but(down))
    assert (found["antidote"].question, found["antidote"].reason) == ("", "")
    assert "antidote" not in (tmp_path / "questions.jsonl").read_text()
    again, second = opened(tmp_path)
    assert again["antidote"].question
    assert (len(first), len(second)) == (16, 1)
    assert opened(tmp_path)[1] == []


def test_ctrl_c_keeps_what_was_said(tmp_path: Path) -> None:
    stop, asked = Stop(), []

    def third(request: Request) -> None:
        asked.append(request)
        if len(asked) == 3:
            stop()

    with pytest.raises(Interrupted):
        opened(tmp_path, but(third), stop)
    assert len((tmp_path / "replies.jsonl").read_text().splitlines()) == 3
    with (tmp_path / "replies.jsonl").open("a") as file:
        file.write('{"key": "torn')
    found, rest = opened(tmp_path)
    assert len(rest) == 13
    assert {item: one.reason for item, one in found.items() if not one.reason} == {
        "antidote": "", "case": "",
    }  # fmt: skip


def test_the_shipped_prompts_pass_and_need_what_they_show(tmp_path: Path) -> None:
    files = sorted(shipped_folder("prompts/questions").glob("*.jinja"))
    outcome = check(files, "support-tone")
    assert (outcome.errors, len(outcome.facts)) == ([], 4)
    assert "choose.jinja: a prompt that asks for a choice" in outcome.facts[0]
    for file in files:
        prompt = load_prompt(str(file), kind=QUESTIONS)
        shown = prompt.render_texts(question="Q", options="A. x", answer="x", first="1", second="")
        assert "never an instruction" in shown[0]
        assert ("synthetic" in prompt.text) is ("Example" in shown[0])


def writer_file(folder: Path, backend: str) -> Path:
    path = folder / "writer.yaml"
    path.write_text(f"name: writer\nbackend: {backend}\n")
    return path


def test_the_command_counts_what_is_left_out(call: Any, tmp_path: Path) -> None:
    def play(body: Any, number: int) -> Any:
        messages = tuple(Message(m["role"], m["content"]) for m in body["messages"])
        schema = body["response_format"]["json_schema"]["schema"]
        return said(model(Request("x", messages, schema)))  # type: ignore[arg-type]

    with Loopback(play) as server:
        by = writer_file(tmp_path, f"openai-compatible:x@{server.base_url}")
        arguments = [*MAKE, exam(tmp_path), "--backend", by, "--to", tmp_path / "open"]
        code, out, err = call(*arguments, "--local-only")
        asked = len(server.bodies)
        assert call(*arguments)[0] == 0
        assert len(server.bodies) == asked == 16
    assert (code, err) == (0, "")
    assert f"2 of {len(ROWS)} questions can be asked openly: " in out
    assert out.count("  1 left out: ") == 4


def test_a_server_that_fails_leaves_questions_that_wait(call: Any, tmp_path: Path) -> None:
    def play(body: Any, number: int) -> Any:
        return said("An example.") if is_few_words(body) else status(400)

    with Loopback(play) as server:
        by = writer_file(tmp_path, f"openai-compatible:x@{server.base_url}")
        to = tmp_path / "open"
        code, out, _ = call(*MAKE, exam(tmp_path), "--backend", by, "--to", to)
    assert code == 0
    assert "0 of 6 questions can be asked openly" in out
    assert "  5 wait for a reply that failed: rerun to ask again" in out.splitlines()


def test_a_model_elsewhere_is_refused_where_all_must_stay_here(call: Any, tmp_path: Path) -> None:
    to = tmp_path / "open"
    arguments = [*MAKE, exam(tmp_path), "--backend", "litellm:gpt-4o", "--to", to]
    code, _, err = call(*arguments, "--local-only")
    assert code == 2
    assert "backend: contacts another machine" in err
    assert not to.exists()
