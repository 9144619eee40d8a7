"""The Responses API, by a server that follows the types of the package openai 3.57."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from loopback import Body, Loopback, Play, html, raw, status

import judgebench as jb
from judgebench.errors import EndpointDown, SetupError
from judgebench.models.contract import LabelField, LabelsAsked, Message, Reply, Request
from judgebench.models.openai_compatible import responses
from judgebench.models.settings import BackendSettings, Thinking
from judgebench.models.transport import Backoff
from judgebench.records import Usage

QUICK = Backoff(first=0.001, longest=0.05)
SCHEMA = {"type": "object", "properties": {"tone": {"type": "string"}}}
USAGE = {
    "input_tokens": 80, "output_tokens": 30, "total_tokens": 110,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 20},
}  # fmt: skip
TURNS = Message("system", "Judge."), Message("user", "Hello")
ASK = Request("1", TURNS, SCHEMA, max_tokens=100, top_p=None, seed=None)


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": said, "annotations": [], **more}


def message(*content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": list(content), **more,
    }  # fmt: skip


def response(*output: Any, **more: Any) -> dict[str, Any]:
    """A body as `types/responses/response.py` has it."""
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m-1", "error": None,
        "status": "completed", "incomplete_details": None, "output": list(output),
        "usage": USAGE, **more,
    }  # fmt: skip


def reply_to(*plays: Play, request: Request = ASK, **settings: Any) -> tuple[Reply, Body]:
    with Loopback(plays) as server:
        held = BackendSettings(base_url=server.base_url, max_retries=1, **settings)
        (reply,) = responses("m", held, QUICK).complete([request])
    return reply, server.bodies[0]


def test_the_request_has_the_names_of_this_api() -> None:
    thinking = Thinking(budget=1000, send={"reasoning": {"effort": "low"}})
    _, body = reply_to(raw(response(message(text("{}")))), thinking=thinking)
    schema = {"type": "json_schema", "name": "reply", "strict": True, "schema": SCHEMA}
    assert body == {
        "model": "m", "store": False, "max_output_tokens": 1100, "temperature": 0.0,
        "input": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Hello"}],
        "text": {"format": schema}, "reasoning": {"effort": "low"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("form", "sent"), [("json_object", {"type": "json_object"}), ("none", None)]
)
def test_json_is_asked_for_as_the_settings_say(form: Any, sent: object) -> None:
    _, body = reply_to(raw(response(message(text("{}")))), structured=form)
    assert body.get("text") == (sent and {"format": sent})


def test_what_else_stands_beside_the_form_of_the_text_is_sent() -> None:
    more = {"text": {"verbosity": "low"}}
    _, body = reply_to(raw(response(message(text("{}")))), extra_body=more)
    assert body["text"]["verbosity"] == "low"
    assert body["text"]["format"]["schema"] == SCHEMA


def test_a_tool_is_no_way_to_ask_for_json_here() -> None:
    missing = status(400, "Missing required parameter: 'tools[0].name'.")
    with pytest.raises(SetupError, match=r"settings: \{structured: "):
        reply_to(missing, structured="tool")


@pytest.mark.parametrize(
    ("body", "finish", "said"),
    [
        (response(message(text('{"tone"'), text(': "Kind"}'))), "stop", '{"tone": "Kind"}'),
        (response(message(text("{}")), status=None), "stop", "{}"),
        (response(message(text("Hm."), phase="commentary"), message(text("{}"))), "stop", "{}"),
        (
            response(
                message(text('{"to')), status="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
            "length", '{"to',
        ),
        (
            response(status="incomplete", incomplete_details={"reason": "content_filter"}),
            "refused", "",
        ),
        (response(message({"type": "refusal", "refusal": "I cannot."})), "refused", ""),
        (response(), "stop", ""),
    ],
)  # fmt: skip
def test_items_become_a_reply(body: dict[str, Any], finish: str, said: str) -> None:
    reply, _ = reply_to(raw(body))
    assert (reply.finish, reply.text) == (finish, said)


def test_thoughts_tokens_and_the_model_are_kept() -> None:
    thoughts = {
        "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "It is"}],
        "content": [{"type": "reasoning_text", "text": " kind."}], "encrypted_content": "xyz",
    }  # fmt: skip
    reply, _ = reply_to(raw(response(thoughts, message(text("{}")))))
    assert (reply.text, reply.reasoning, reply.model) == ("{}", "It is kind.", "m-1")
    assert reply.usage == Usage(1, 80, 30, 20, 64)


def test_label_probabilities_come_from_the_listed_tokens() -> None:
    def entry(piece: str, share: float) -> dict[str, Any]:
        return {"token": piece, "bytes": list(piece.encode()), "logprob": math.log(share)}

    shares = [{'{"tone":"': 1.0}, {"Kind": 0.75, "Rude": 0.25}, {'"}': 1.0}]
    listed = [
        {**entry(*next(iter(s.items()))), "top_logprobs": [entry(*one) for one in s.items()]}
        for s in shares
    ]
    labels = LabelsAsked((LabelField("tone", ("Kind", "Rude")),), "chained")
    asked = Request("1", ASK.messages, SCHEMA, labels_asked=labels)
    body = response(message(text('{"tone":"Kind"}', logprobs=listed)))
    reply, sent = reply_to(raw(body), request=asked)
    assert (sent["include"], sent["top_logprobs"]) == (["message.output_text.logprobs"], 20)
    assert reply.log_probabilities is not None
    assert math.exp(reply.log_probabilities["tone"]["Rude"]) == pytest.approx(0.25)
    with pytest.raises(SetupError, match="gives no log-probabilities"):
        reply_to(raw(response(message(text('{"tone":"Kind"}')))), request=asked)


SOUND = raw(response(message(text("{}"))))
ODD = {
    "failed": (
        response(status="failed", error={"code": "server_error", "message": "It broke."}),
        "It broke",
    ),
    "queued": (response(status="queued"), "no whole response"),
    "steered": (
        response(status="incomplete", incomplete_details={"reason": "steered"}),
        "no whole response",
    ),
    "no output": ({"object": "response"}, "no whole response"),
    "items that are none": (response("text"), "no whole response"),
    "parts that are none": (response(message("text")), "no whole response"),
    "a chat completion": ({"choices": []}, "no whole response"),
    "a list": ([], "no whole response"),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_body_is_asked_for_again(odd: str) -> None:
    body, told = ODD[odd]
    reply, _ = reply_to(raw(body), SOUND)
    assert (reply.finish, reply.usage.calls) == ("stop", 2)
    with pytest.raises(EndpointDown, match=told):
        reply_to(raw(body))


@pytest.mark.parametrize("play", [status(500), html(502), status(429, Retry_After="0"), html()])
def test_a_fault_is_tried_again(play: Play) -> None:
    reply, _ = reply_to(play, SOUND)
    assert (reply.finish, reply.usage.calls) == ("stop", 2)


@pytest.mark.parametrize(
    ("play", "told"),
    [
        (status(400, "Unknown parameter: 'temperature'."), "temperature: null"),
        (status(404), "no such model or path"),
        (raw({}, 307, Location="http://127.0.0.1:9/v1/responses"), "redirects"),
    ],
)
def test_a_refused_request_says_what_to_set(play: Play, told: str) -> None:
    with pytest.raises(SetupError, match=told):
        reply_to(play)


def test_a_benchmark_is_judged(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("item_id,question,text\ni1,q,Please.\ni2,q,No.\n")
    (tmp_path / "labels.csv").write_text("item_id,annotator,politeness\ni1,ann,Polite\n")

    def script(body: Body, _: int) -> Play:
        polite = "Polite" if "Please" in body["input"][1]["content"] else "Impolite"
        said = {"solves_problem": "Fully", "politeness": polite, "channel": "Phone"}
        return raw(response(message(text(json.dumps(said)))))

    with Loopback(script) as server:
        bench = {
            "name": "b", "rubric": "support-tone", "data": ["answers.csv", "labels.csv"],
            "controls": False,
            "judges": [{"name": "m", "backend": f"responses:m@{server.base_url}"}],
        }  # fmt: skip
        (tmp_path / "bench.yaml").write_text(json.dumps(bench))
        jb.run(tmp_path / "bench.yaml", tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "verdicts-m.jsonl").open()]
    labels = {line["item_id"]: line["labels"]["politeness"] for line in lines}
    assert labels == {"i1": "Polite", "i2": "Impolite"}
