"""Both network backends against a real server that fails in every way that servers do."""

import asyncio
import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web
from loopback import (
    PATIENCE,
    Body,
    Loopback,
    completion,
    cut,
    dropped,
    echoed,
    hanging,
    html,
    is_few_words,
    raw,
    said,
    status,
    until,
    wire,
)
from tenacity import RetryCallState

from judgebench.errors import EndpointDown, SetupError
from judgebench.models.chat import TransientError
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.models.litellm_backend import LiteLLM
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.settings import BackendSettings, Price
from judgebench.models.transport import MANY_IN_A_ROW, Backoff
from judgebench.records import Usage

KEY = "sk-test-0123456789abcdef"
QUICK = Backoff(first=0.001, longest=0.05)
SCHEMA = {
    "type": "object",
    "properties": {"harm": {"type": "string", "enum": ["none", "some"]}},
    "required": ["harm"],
    "additionalProperties": False,
}

Opener = Callable[..., Backend]


@pytest.fixture(scope="session")
def litellm_at_work() -> None:
    """One call before all: what litellm imports with its first is no part of a time limit."""
    with Loopback([said("hello")]) as server:
        settings = BackendSettings(base_url=server.base_url)
        only(LiteLLM("openai/loopback", settings, QUICK))


@pytest.fixture(params=["openai-compatible", "litellm"])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Opener:
    monkeypatch.setenv("LOOPBACK_KEY", KEY)
    if request.param == "litellm":
        request.getfixturevalue("litellm_at_work")

    def open_(server: Loopback | str, waits: Any = QUICK, **settings: Any) -> Backend:
        url = server if isinstance(server, str) else server.base_url
        given = {"base_url": url, "api_key_env": "LOOPBACK_KEY", "timeout_s": 10, **settings}
        checked = BackendSettings.model_validate(given)
        if request.param == "litellm":
            return LiteLLM("openai/loopback", checked, waits)
        return OpenAICompatible("loopback", checked, waits)

    return open_


def ask(text: str = "hello", key: str = "1", **more: Any) -> Request:
    return Request(key, (Message("system", "Judge."), Message("user", text)), **more)


def to_others(play: Any) -> Any:
    """An endpoint that does this to every request, and replies to a few words."""
    return lambda body, n: said("x") if is_few_words(body) else play


def only(backend: Backend, request: Request | None = None) -> Reply:
    (reply,) = backend.complete([request or ask()])
    return reply


def test_request_reaches_the_server_as_it_was_made(opener: Opener) -> None:
    with Loopback([said('{"harm": "none"}')]) as server:
        request = ask("Is it?", schema=SCHEMA, max_tokens=77, temperature=0.5, top_p=0.9, seed=3)
        reply = only(opener(server), request)
    assert (reply.key, reply.text, reply.finish) == ("1", '{"harm": "none"}', "stop")
    assert (reply.usage.calls, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (
        1,
        100,
        20,
    )
    assert reply.cost is None
    (body,) = server.bodies
    assert body["messages"] == [
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": "Is it?"},
    ]
    assert body["model"] == "loopback"
    decoding = {name: body[name] for name in ("max_tokens", "temperature", "top_p", "seed")}
    assert decoding == {"max_tokens": 77, "temperature": 0.5, "top_p": 0.9, "seed": 3}
    assert body["response_format"]["json_schema"] == {
        "name": "reply",
        "strict": True,
        "schema": SCHEMA,
    }
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_tool_lane_reads_the_arguments(opener: Opener) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "reply", "arguments": '{"a": 1}'}}
    with Loopback([said(None, "tool_calls", tool_calls=[call])]) as server:
        backend = opener(server, structured="tool")
        reply = only(backend, ask(schema=SCHEMA))
    assert (reply.text, reply.finish) == ('{"a": 1}', "stop")
    body = server.bodies[0]
    assert body["tools"][0]["function"]["parameters"] == SCHEMA
    assert body["tool_choice"] == {"type": "function", "function": {"name": "reply"}}
    assert "response_format" not in body
    assert backend.describe()["structured"] == "tool"


def test_two_tool_calls_that_differ_are_no_verdict(opener: Opener) -> None:
    calls = [
        {"id": label, "type": "function", "function": {"name": "reply", "arguments": label}}
        for label in ('{"harm": "none"}', '{"harm": "some"}')
    ]
    both = {**completion('{"harm": "none"}')}
    both["choices"] = [*both["choices"], *completion('{"harm": "some"}')["choices"]]
    two = said(None, "tool_calls", tool_calls=calls)
    beside = said('{"harm": "some"}', "tool_calls", tool_calls=calls[:1])
    agreeing = said('{"harm": "none"}', "tool_calls", tool_calls=[calls[0]] * 2)
    with Loopback([two, raw(both), beside, agreeing]) as server:
        backend = opener(server, structured="tool", concurrency=1)
        replies = list(backend.complete(ask(key=str(i), schema=SCHEMA) for i in range(4)))
    assert [r.finish for r in replies] == ["unclear"] * 3 + ["stop"]
    assert {r.error for r in replies[:3]} == {
        "the reply says 2 different things in its choices and tool calls"
    }
    assert all("none" in r.text and "some" in r.text for r in replies[:3])
    assert replies[3].text == '{"harm": "none"}'


def test_the_model_that_replied_is_recorded(opener: Opener) -> None:
    bodies = [
        {**completion("x"), "model": "gpt-4o-2024-08-06", "system_fingerprint": "fp_1"},
        {**completion("x"), "model": "gpt-4o-2024-11-20"},
    ]
    with Loopback([raw(body) for body in bodies]) as server:
        one, two = opener(server, concurrency=1).complete([ask(key="1"), ask(key="2")])
    assert (one.model, two.model) == ("gpt-4o-2024-08-06, engine fp_1", "gpt-4o-2024-11-20")


@pytest.mark.parametrize(
    ("lane", "sent"), [("json_object", {"type": "json_object"}), ("none", None)]
)
def test_weaker_lanes(opener: Opener, lane: str, sent: object) -> None:
    with Loopback([said("{}")]) as server:
        assert only(opener(server, structured=lane), ask(schema=SCHEMA)).text == "{}"
    assert server.bodies[0].get("response_format") == sent


@pytest.mark.parametrize(
    "fault",
    [
        status(500),
        status(502),
        status(503),
        status(529),
        status(429, Retry_After="0.01"),
        status(408),
        status(409),
        status(425),
        html(502),
        html(200),
        cut(),
        dropped(),
        raw({"object": "nothing"}),
        raw({"choices": []}),
        raw({"error": {"message": "upstream died", "code": 502}}),
    ],
    ids=[
        "500", "502", "503", "529", "429", "408", "409", "425", "html-502", "html-200", "cut",
        "dropped", "no-choices", "empty-choices", "error-in-200",
    ],
)  # fmt: skip
def test_transient_faults_are_mended_by_trying_again(opener: Opener, fault: Any) -> None:
    with Loopback([fault, fault, said("at last")]) as server:
        reply = only(opener(server))
    assert (reply.text, reply.finish, reply.usage.calls) == ("at last", "stop", 3)
    assert len(server.bodies) == 3


def test_gives_up_after_the_last_retry(opener: Opener) -> None:
    with Loopback(to_others(status(503, "no room"))) as server:
        replies = list(opener(server, max_retries=2).complete([ask(key="a"), ask(key="b")]))
    assert sorted(r.key for r in replies) == ["a", "b"]
    assert {r.finish for r in replies} == {"failed"}
    assert all("503" in r.error and "no room" in r.error for r in replies)
    assert {r.usage.calls for r in replies} == {3}
    assert len([body for body in server.bodies if not is_few_words(body)]) == 6


def test_an_endpoint_that_never_replied_stops_the_judge(opener: Opener) -> None:
    with Loopback([status(503, "no room")]) as server, pytest.raises(EndpointDown, match="no room"):
        list(opener(server, max_retries=0).complete([ask(key="a"), ask(key="b")]))
    assert len(server.bodies) <= 3


def test_a_hanging_server_is_left_at_the_time_limit(opener: Opener) -> None:
    with Loopback([hanging(), said("at last")]) as server:
        reply = only(opener(server, timeout_s=0.4))
        assert (reply.text, reply.usage.calls) == ("at last", 2)
        assert until(lambda: server.serving == 0)


def trickling() -> Any:
    """A reply that begins at once and never ends, a blank at a time."""

    async def play(request: web.Request, body: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    return play


def test_a_trickling_body_is_left_at_the_time_limit(opener: Opener) -> None:
    with Loopback([trickling(), said("at last")]) as server:
        reply = only(opener(server, timeout_s=0.4))
        assert (reply.text, reply.usage.calls) == ("at last", 2)
        assert until(lambda: server.serving == 0)


def test_a_server_that_goes_away_for_good_fails_nothing(opener: Opener) -> None:
    with Loopback([echoed()]) as server:
        # a late answer of the closing server starts the count of failures anew: retries outlast it
        backend = opener(server, concurrency=4, max_retries=3, down_for_s=0.3)
        stream = backend.complete(ask(f"text {i}", str(i)) for i in range(1_000_000))
        replies = [next(stream) for _ in range(10)]
    with pytest.raises(EndpointDown, match="answered nothing"):
        replies.extend(stream)
    assert {r.finish for r in replies} == {"stop"}


@pytest.mark.parametrize("form", ["seconds", "milliseconds"])
@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_reaches_the_wait(opener: Opener, form: str, code: int) -> None:
    headers = {"Retry_After": "7"}
    if form == "milliseconds":  # which say it more exactly, where both are given
        headers = {"Retry_After": "8", "Retry_After_Ms": "7000"}
    asked: list[float] = []

    class Noting(Backoff):
        def __call__(self, state: RetryCallState) -> float:
            assert state.outcome is not None
            error = state.outcome.exception()
            assert isinstance(error, TransientError)
            assert error.after is not None
            asked.append(error.after)
            return 0.0

    with Loopback([status(code, **headers), said("done")]) as server:
        reply = only(opener(server, waits=Noting()))
    assert (reply.text, reply.usage.calls) == ("done", 2)
    assert asked == [7.0]


NO_SECONDS = (
    "nan", "inf", "-inf", "1e400", "9" * 400, "-5", "5\x0b", "\x01", "٣", "Mon,", "x" * 5000,
    "Fri, 31 Dec 9999 23:59:59 -2359", "Mon, 01 Jan 0001 00:00:00 +2359",
    "Mon, 01 Jan 2024 00:00:00 +9999", "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
)  # fmt: skip


def test_no_retry_after_ends_the_run(opener: Opener) -> None:
    limited = [wire({}, 429, Retry_After=value) for value in NO_SECONDS]
    failed = [wire({}, 503, Retry_After=value) for value in NO_SECONDS[:4]]
    with Loopback([*limited, *failed, said("at last")]) as server:
        reply = only(opener(server))
    assert (reply.text, reply.finish) == ("at last", "stop")
    assert reply.usage.calls == len(limited) + len(failed) + 1


HUGE = 10**400
COUNTS = (HUGE, 10**12, -1, 1.5, 2.0, True, "7", None, [7], {"n": 7}, 1e308, math.inf, math.nan)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # pytest undoes our own
def test_no_number_of_a_reply_ends_the_run(opener: Opener) -> None:
    """litellm calls some of these bodies no reply; what is read is a count or nothing."""

    def script(body: Any, n: int) -> Any:
        odd = COUNTS[n // 2] if n < 2 * len(COUNTS) else HUGE
        counts = {"prompt_tokens": odd, "completion_tokens": odd, "total_tokens": odd}
        usage = counts if n % 2 else odd
        return wire({**completion("x"), "usage": usage, "created": odd, "cost": odd})

    told: dict[str, Any] = {"price": Price(prompt=1, completion=1), "tokens_per_minute": 1e9}
    with Loopback(script) as server:
        backend = opener(server, concurrency=1, max_retries=0, **told)
        replies = list(backend.complete(ask(key=str(i)) for i in range(2 * len(COUNTS))))
    assert len(replies) == 2 * len(COUNTS)
    for reply in replies:
        assert reply.finish in ("stop", "failed")
        for count in (reply.usage.prompt_tokens, reply.usage.completion_tokens):
            assert count is None or 0 <= count <= 7  # litellm counts for itself what is no mapping
        assert "Traceback" not in reply.error
        assert reply.cost is None or 0 <= reply.cost < 1


def test_odd_codes_and_choices_are_faults_that_another_try_mends(opener: Opener) -> None:
    codes = [{"error": {"message": "m", "code": c}} for c in (HUGE, True, 99, 1000, -401, 401.0)]
    choices = [{**completion("x"), "choices": c} for c in (None, {}, 7, "x", [None], [{}], [[]])]
    parts = [completion(c) for c in (7, {}, [7])]  # type: ignore[arg-type]
    bodies = [*codes, *choices, *parts]
    with Loopback([*map(wire, bodies), said("at last")]) as server:
        reply = only(opener(server, max_retries=20))
    assert (reply.text, reply.usage.calls) == ("at last", len(bodies) + 1)


def test_wrong_key_ends_the_run_without_showing_it(opener: Opener) -> None:
    with Loopback([status(401, f"Incorrect API key provided: {KEY}")]) as server:
        backend = opener(server)
        with pytest.raises(SetupError) as caught:
            list(backend.complete(ask(key=str(i)) for i in range(100)))
    told = str(caught.value)
    assert server.base_url in told
    assert "loopback" in told
    assert "LOOPBACK_KEY" in told
    shown = told + repr(caught.value) + repr(backend) + json.dumps(dict(backend.describe()))
    assert KEY not in shown
    assert caught.value.__cause__ is None
    assert len(server.bodies) <= 17  # sixteen at once, and a few words


def test_a_wrong_key_in_the_middle_keeps_what_is_in_flight(
    opener: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    """The sixteenth of 30 calls is the first that is refused, as is all that is asked after it,
    while fifteen others are under way, which are answered once no other starts."""

    async def held(request: web.Request, body: Body) -> web.StreamResponse:
        latest = time.monotonic() + PATIENCE
        while "no other call starts" not in caplog.text and time.monotonic() < latest:
            await asyncio.sleep(0.01)
        return await echoed()(request, body)

    with Loopback(lambda body, n: status(401) if n >= 15 else held) as server:
        replies: list[Reply] = []
        stream = opener(server).complete(ask(f"text {i}", str(i)) for i in range(30))
        with pytest.raises(SetupError, match="refuses the key"):
            replies.extend(stream)
    assert len(replies) == len(server.bodies) - 2 == 15
    assert {r.finish for r in replies} == {"stop"}


def test_an_unknown_path_tells_how_most_addresses_end(opener: Opener) -> None:
    with Loopback([said("x")]) as server:
        server.base_url = server.base_url.removesuffix("/v1")
        with pytest.raises(SetupError, match=r"no such model or path .many end in /v1"):
            only(opener(server))


TOO_LONG = [
    "This model's maximum context length is 2048 tokens. However, you requested 9000 tokens",
    "request (15031 tokens) exceeds the available context size (2048 tokens)",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000 tokens",
    "`inputs` tokens + `max_new_tokens` must be <= 4096",
    "'max_tokens' is too large: 512. This model's maximum context length is 2048 tokens",
]
FILTERED = "The response was filtered due to the prompt triggering the content management policy"


@pytest.mark.parametrize(
    ("play", "finish", "text", "error"),
    [
        *((status(400, message), "too_long", "", "tokens") for message in TOO_LONG),
        (raw({"error": {"message": FILTERED, "code": "content_filter"}}, 400),
         "refused", "", "content management"),
        (status(400, "ResponsibleAIPolicyViolation: Responsible AI"), "refused", "", "Policy"),
        (status(403, "your input was flagged"), "refused", "", "flagged"),
        (status(422, "messages.0.role: unexpected value"), "failed", "", "unexpected value"),
        (said(None, refusal="I cannot judge this."), "refused", "", "cannot judge"),
        (said("part of", "content_filter"), "refused", "part of", "content_filter"),
        (said('{"harm": "no', "length"), "length", '{"harm": "no', ""),
        (said(None, "length", reasoning_content='{"harm": "some"}'), "length", "", ""),
    ],
)  # fmt: skip
def test_how_a_reply_ends(opener: Opener, play: Any, finish: str, text: str, error: str) -> None:
    with Loopback(to_others(play)) as server:
        reply = only(opener(server))
    assert (reply.finish, reply.text, reply.usage.calls) == (finish, text, 1)
    assert error in reply.error


SPENT = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}


@pytest.mark.parametrize(
    ("play", "settings", "message", "n_calls"),
    [
        # One asks whether it is the answer that is refused.
        *((status(code), {"api_key_env": None}, "the endpoint refuses the key", 2)
          for code in (401, 403)),
        (said("x"), {"api_key_env": "UNSET_KEY"}, "UNSET_KEY is not set", 0),
        (status(404, "The model `loopback` does not exist"), {}, "no such model", 2),
        (raw(SPENT, 429), {}, "credit", 2),
    ],
)  # fmt: skip
def test_what_nothing_mends_ends_the_run(
    opener: Opener, play: Any, settings: dict[str, Any], message: str, n_calls: int
) -> None:
    with Loopback([play]) as server, pytest.raises(SetupError, match=message):
        only(opener(server, **settings), ask(schema=SCHEMA))
    assert len(server.bodies) == n_calls


def test_other_bad_request_fails_only_itself(opener: Opener) -> None:
    def script(body: Any, count: int) -> Any:
        bad = body["messages"][-1]["content"] == "bad"
        return status(400, f"bad characters; key {KEY}") if bad else echoed()

    with Loopback(script) as server:
        replies = {r.key: r for r in opener(server).complete([ask("bad", "a"), ask("good", "b")])}
    assert (replies["b"].text, replies["b"].finish) == ("good", "stop")
    assert replies["a"].finish == "failed"
    assert "bad characters" in replies["a"].error
    assert KEY not in replies["a"].error


# Twelve faults of an endpoint, or of a filter before it, that a text can provoke.
PROVOKED = {
    "filter": html(403), "key": status(401), "payment": status(402), "path": status(404),
    "method": status(405), "law": status(451), "moved": wire({}, 302, Location="http://x/"),
    "credit": status(400, "the text says insufficient_quota"), "bad": status(400, "bad characters"),
    "lane": status(400, "the text says response_format"), "broken": status(500), "cut": cut(),
}  # fmt: skip


@pytest.mark.parametrize("play", PROVOKED.values(), ids=PROVOKED)
@pytest.mark.parametrize("where", ["first", "midway", "alone", "many"])
def test_what_a_text_provokes_is_its_own_failure(opener: Opener, play: Any, where: str) -> None:
    """Wherever it stands, alone at a resume, and however many of them there are."""
    many = set(range(20, 20 + 3 * MANY_IN_A_ROW))
    bad = {"first": {0}, "midway": {30}, "alone": {0}, "many": many}[where]
    n_texts = 1 if where == "alone" else 60

    def script(body: Any, count: int) -> Any:
        return play if "<script>" in str(body["messages"]) else said("good")

    with Loopback(script) as server:
        backend = opener(server, concurrency=4, max_retries=1, structured="json_schema")
        texts = ["<script>" if i in bad else "text" for i in range(n_texts)]
        asked = [ask(text, str(i), schema=SCHEMA) for i, text in enumerate(texts)]
        replies = {int(r.key): r for r in backend.complete(asked)}
    assert {i for i, r in replies.items() if r.finish == "failed"} == bad
    assert len(replies) == n_texts
    assert "refuses the key" not in replies[min(bad)].error


@pytest.mark.parametrize("code", [401, 404, 400, 500])
def test_an_endpoint_that_refuses_all_stops_the_judge_in_time(opener: Opener, code: int) -> None:
    """And says what it said of which item; the others are left to be asked again."""
    with Loopback(lambda body, n: said("good") if n < 5 else status(code, "so it ends")) as server:
        backend = opener(server, concurrency=2, max_retries=0, down_for_s=0.1)
        stream = backend.complete(ask(key=str(i), item=f"case-{i}") for i in range(200))
        replies: list[Reply] = []
        with pytest.raises((SetupError, EndpointDown)) as caught:
            replies.extend(stream)
    finishes = Counter(reply.finish for reply in replies)
    assert finishes["stop"] == 5
    assert finishes["failed"] <= MANY_IN_A_ROW + 1  # two are in flight
    assert re.search(rf"HTTP {code}: .*so it ends.* \(asked about case-\d+\)", str(caught.value))


def reading(at_most: int) -> Any:
    """An endpoint that reads no more tokens of a prompt, of four bytes each, in silence."""

    def script(body: Body, n: int) -> Any:
        n_tokens = len(body["messages"][-1]["content"].encode()) // 4
        usage = {"prompt_tokens": min(n_tokens, at_most), "completion_tokens": 5}
        return raw({**completion("Safe."), "usage": usage})

    return script


@pytest.mark.parametrize("first", [0, 7])
def test_a_prompt_that_was_cut_off_is_too_long(opener: Opener, first: int) -> None:
    """Wherever it stands; a long one that was read, in another script or of few letters, is not."""
    texts = ["word " * 100] * 8 + ["word " * 8_000, "\u5b57" * 10_000, "=" * 40_000]
    texts.insert(first, "word " * 130_000)
    with Loopback(reading(at_most=10_000)) as server:
        backend = opener(server, concurrency=1)
        replies = list(backend.complete(ask(text, str(i)) for i, text in enumerate(texts)))
    cut_off = {int(r.key): r for r in replies if r.finish != "stop"}
    assert list(cut_off) == [first]
    assert cut_off[first].finish == "too_long"
    assert "read 10,000 tokens of a prompt of 650,006 bytes" in cut_off[first].error
    assert cut_off[first].text == ""


def test_an_endpoint_that_counts_no_tokens_cuts_nothing_off(opener: Opener) -> None:
    with Loopback(reading(at_most=0)) as server:
        assert only(opener(server), ask("word " * 130_000)).finish == "stop"


# --- parameters ----------------------------------------------------------------------------------


def test_what_is_none_is_left_out_of_the_request(opener: Opener) -> None:
    with Loopback([said("x")]) as server:
        only(opener(server), ask(temperature=None, top_p=None, seed=None))
    assert set(server.bodies[0]) == {"model", "messages", "max_tokens"}


def lines(text: str) -> list[str]:
    """The lines to write that an error names."""
    head, _, rest = text.partition("the endpoint does not take the request as it is; write ")
    assert not head
    return re.findall("`([^`]+)`", rest.partition(": http")[0].partition(": litellm")[0])


TEMPERATURE, TOP_P, SEED = (f"decoding: {{{k}: null}}" for k in ("temperature", "top_p", "seed"))
EFFORT = {"thinking": {"budget": 9, "send": {"reasoning_effort": "none"}}}
REFUSED_PARAMETERS: list[tuple[str, str, dict[str, Any]]] = [
    ("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
     "value is supported.", TEMPERATURE, {}),
    ("`temperature` is deprecated for this model.", TEMPERATURE, {}),
    ("temperature: range: 0..1", TEMPERATURE, {}),
    ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
     "decoding: {temperature: null, top_p: null}", {}),
    ("`temperature` may only be set to 1 when thinking.type is enabled", TEMPERATURE, {}),
    ("Unsupported parameter: 'top_p' is not supported with this model.", TOP_P, {}),
    ("Unrecognized request argument supplied: seed", SEED, {}),
    ("[{'type': 'extra_forbidden', 'loc': ['body', 'seed'], 'msg': 'Extra inputs'}]", SEED, {}),
    ("max_tokens is too large: 9000. This model supports at most 4096 completion tokens",
     "decoding: {max_tokens: N}", {}),
    ("Unsupported value: 'reasoning_effort' does not support 'none' with this model.",
     "settings: {thinking: {send: {reasoning_effort: null}}}", EFFORT),
    ("response_format json_schema is not supported here", "settings: {structured: tool}", {}),
    ('"auto" tool choice requires --enable-auto-tool-choice', "settings: {structured: json_object}",
     {"structured": "tool"}),
]  # fmt: skip


@pytest.mark.parametrize(("message", "line", "settings"), REFUSED_PARAMETERS)
def test_a_refused_parameter_ends_the_run_with_the_line_that_fixes_it(
    opener: Opener, message: str, line: str, settings: dict[str, Any]
) -> None:
    code = 422 if message.startswith("[") else 400
    asked = (ask(key=str(i), schema=SCHEMA) for i in range(100))
    with Loopback([status(code, message)]) as server, pytest.raises(SetupError) as caught:
        list(opener(server, concurrency=4, **settings).complete(asked))
    assert lines(str(caught.value)) == [line]
    assert message[:40] in str(caught.value)
    assert len(server.bodies) <= 7  # four at once, one alone, and a few words with it and without


def test_what_is_refused_is_told_though_the_endpoint_then_fails(opener: Opener) -> None:
    first = [status(400, "`temperature` is deprecated")] * 2
    with Loopback([*first, status(500)]) as server, pytest.raises(SetupError) as caught:
        only(opener(server))
    assert lines(str(caught.value)) == [TEMPERATURE]


def test_names_that_each_refusal_gives_in_turn_end(opener: Opener) -> None:
    swap = "Unsupported parameter: use 'max_tokens' or 'max_completion_tokens', as you have not"
    with Loopback([status(400, swap)]) as server, pytest.raises(SetupError) as caught:
        only(opener(server))
    line = "settings: {max_tokens_as: max_completion_tokens}"
    assert lines(str(caught.value)) == [line, "decoding: {max_tokens: N}"]
    assert len(server.bodies) <= 4


ABOUT_THE_ANSWER = [
    "invalid character in 'Her temperature was 38.5, the seed of doubt was sown'",
    "temperatures of 'max tokenization' cannot be encoded",
    "messages.1: text content blocks must be non-empty",
]


def test_a_parameter_is_also_named_beside_the_message(opener: Opener) -> None:
    """As OpenAI's and vLLM's errors do."""
    error = {"message": "must be in [0, 2]", "code": 400, "param": "temperature"}
    with Loopback([raw({"error": error}, 400)]) as server, pytest.raises(SetupError) as caught:
        only(opener(server))
    assert lines(str(caught.value)) == [TEMPERATURE]


@pytest.mark.parametrize("message", ABOUT_THE_ANSWER)
def test_words_of_the_answer_are_no_parameters(opener: Opener, message: str) -> None:
    with Loopback(to_others(status(400, message))) as server:
        assert only(opener(server)).finish == "failed"


def test_who_has_replied_takes_the_parameters(opener: Opener) -> None:
    """What it then says of one is about the one answer."""
    message = "`max_tokens` leaves no room for this one"
    with Loopback([said("good"), status(400, message), said("good")]) as server:
        asked = [ask(key=str(i)) for i in range(3)]
        replies = list(opener(server, concurrency=1).complete(asked))
    assert [r.finish for r in replies] == ["stop", "failed", "stop"]
    assert message in replies[1].error


@pytest.mark.parametrize("message", [m for m, *_ in REFUSED_PARAMETERS])
def test_a_request_that_is_refused_first_is_not_taken_for_all(opener: Opener, message: str) -> None:
    """On a resume it may be the only one."""

    def script(body: Any, count: int) -> Any:
        return status(400, message) if "bad text" in str(body["messages"]) else said("good")

    with Loopback(script) as server:
        alone = only(opener(server), ask("bad text", schema=SCHEMA))
        asked = [ask("bad text" if n < 3 else "good text", str(n), schema=SCHEMA) for n in range(9)]
        replies = {r.key: r.finish for r in opener(server, concurrency=2).complete(asked)}
    assert alone.finish == "failed"
    assert message[:40] in alone.error
    assert replies == {str(n): "failed" if n < 3 else "stop" for n in range(9)}


def test_a_reply_is_bounded_under_the_name_that_the_endpoint_knows(opener: Opener) -> None:
    with Loopback([said("x")]) as server:
        only(opener(server, max_tokens_as="max_completion_tokens"), ask(max_tokens=77))
    assert server.bodies[0]["max_completion_tokens"] == 77
    assert "max_tokens" not in server.bodies[0]


# --- thinking and caches -------------------------------------------------------------------------


def counted(**details: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200, **details}
    return {**completion("x"), "usage": usage}


def test_thinking_is_asked_for_as_its_endpoint_takes_it_and_has_room(opener: Opener) -> None:
    send = {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": True}}
    with Loopback([said('{"harm": "none"}')]) as server:
        backend = opener(server, thinking={"budget": 2000, "send": send})
        plain = opener(server)
        only(backend, ask(max_tokens=77, schema=SCHEMA))
    (body,) = server.bodies
    assert {name: body[name] for name in send} == send
    assert body["max_tokens"] == 2077
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert backend.describe()["thinking"] == {"budget": 2000, "send": send}
    assert "thinking" not in plain.describe()


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thoughts_are_kept_beside_the_text(opener: Opener, name: str) -> None:
    with Loopback([said("Safe.", **{name: f"Is it? {KEY}"})]) as server:
        reply = only(opener(server))
    assert reply.text == "Safe."
    assert reply.reasoning.startswith("Is it?")
    assert KEY not in reply.reasoning


def test_tokens_of_thoughts_and_of_the_cache_are_counted_and_priced(opener: Opener) -> None:
    details = {
        "completion_tokens_details": {"reasoning_tokens": 150},
        "prompt_tokens_details": {"cached_tokens": 800},
    }
    price = Price(prompt=2.0, completion=10.0, cached=0.5)
    with Loopback([raw(counted(**details))]) as server:
        reply = only(opener(server, price=price))
        unpriced = only(opener(server, price=Price(prompt=2.0, completion=10.0)))
    assert reply.usage == Usage(1, 1000, 200, 150, 800)
    assert reply.cost == pytest.approx((200 * 2.0 + 800 * 0.5 + 200 * 10.0) / 1e6)
    assert unpriced.cost == pytest.approx((1000 * 2.0 + 200 * 10.0) / 1e6)


def test_tokens_of_the_cache_that_are_counted_apart_are_priced_too(opener: Opener) -> None:
    details = {
        "prompt_tokens_details": {"cached_tokens": 7500},
        "completion_tokens_details": {"reasoning_tokens": 300},
    }
    with Loopback([raw(counted(**details))]) as server:
        reply = only(opener(server, price=Price(prompt=3.0, completion=10.0, cached=2.0)))
    assert reply.usage == Usage(1, 8500, 500, 300, 7500)
    assert reply.cost == pytest.approx((1000 * 3.0 + 7500 * 2.0 + 500 * 10.0) / 1e6)


def messages_reply(request: Any, count: int) -> Any:
    """What Anthropic's protocol says of a reply after thoughts, its prompt mostly in the cache."""
    return raw(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [
                {"type": "thinking", "thinking": "Is it?", "signature": "x"},
                {"type": "text", "text": "Safe."},
            ],
            "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {
                "input_tokens": 40, "output_tokens": 300, "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 60,
            },
        }
    )  # fmt: skip


def test_claude_is_told_what_to_cache_and_its_budget(litellm_at_work: None) -> None:
    with Loopback(messages_reply) as server:
        given = {
            "base_url": server.base_url.removesuffix("/v1"),
            "thinking": {"budget": 1024},
            "price": {"prompt": 3.0, "completion": 15.0, "cached": 0.3},
        }
        settings = BackendSettings.model_validate(given)
        backend = LiteLLM("anthropic/claude-sonnet-4-5", settings, QUICK)
        asked = ask(temperature=None, top_p=None, seed=None, max_tokens=77)
        reply = only(backend, asked)
    (body,) = server.bodies
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert body["max_tokens"] == 1101
    assert not {"temperature", "top_p", "seed"} & body.keys()
    (system,) = body["system"]
    assert (system["text"], system["cache_control"]) == ("Judge.", {"type": "ephemeral"})
    assert "cache_control" not in json.dumps(body["messages"])
    with Loopback(messages_reply) as server:
        settings = BackendSettings(base_url=server.base_url.removesuffix("/v1"))
        alone = Request("1", (Message("user", "hello"),), top_p=None)
        only(LiteLLM("anthropic/claude-sonnet-4-5", settings, QUICK), alone)
    assert "cache_control" not in json.dumps(server.bodies)
    assert (reply.text, reply.reasoning) == ("Safe.", "Is it?")
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens) == (1000, 900)
    assert reply.cost == pytest.approx((100 * 3.0 + 900 * 0.3 + 300 * 15.0) / 1e6)


def test_a_parameter_that_litellm_refuses_names_the_line(
    litellm_at_work: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPBACK_KEY", KEY)
    backend = LiteLLM("openai/o3-mini", BackendSettings(api_key_env="LOOPBACK_KEY"), QUICK)
    with pytest.raises(SetupError) as caught:
        only(backend)
    assert "temperature: null" in lines(str(caught.value))[0]


def test_a_server_that_does_not_listen(opener: Opener) -> None:
    with Loopback([said("x")]) as server:
        gone = server.base_url
    backend = opener(gone, max_retries=1)
    # litellm does not tell this from a broken connection
    told = "Connection error" if isinstance(backend, LiteLLM) else "no server answers"
    with pytest.raises(EndpointDown, match=told):
        only(backend)


def test_a_server_without_tls_is_told_as_such() -> None:
    with Loopback([said("x")]) as server:
        url = server.base_url.replace("http://", "https://")
        with pytest.raises(EndpointDown, match=r"no server answers.*(?i:ssl)") as caught:
            only(OpenAICompatible("m", BackendSettings(base_url=url), QUICK))
    assert "not permitted" not in str(caught.value)


def test_an_endless_source_can_be_left(opener: Opener) -> None:
    before = set(threading.enumerate())

    def endless() -> Iterator[Request]:
        i = 0
        while True:
            yield ask(f"text {i}", str(i))
            i += 1

    def script(body: Any, count: int) -> Any:
        return echoed() if count < 3 else hanging()

    with Loopback(script) as server:
        inside = set(threading.enumerate())
        stream = opener(server, concurrency=4).complete(endless())
        assert next(stream).finish == "stop"
        stream.close()  # type: ignore[attr-defined]
        assert until(lambda: server.serving == 0)
        assert until(lambda: server.connections == 0)
        assert set(threading.enumerate()) == inside
        assert list(stream) == []
    assert set(threading.enumerate()) == before


def test_an_interrupt_in_the_consumer_ends_all_work(opener: Opener) -> None:
    with Loopback([said("x"), hanging()]) as server:
        inside = set(threading.enumerate())

        def interrupted() -> None:
            for _ in opener(server, concurrency=2).complete(ask(key=str(i)) for i in range(10)):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert until(lambda: server.connections == 0)
        assert until(lambda: set(threading.enumerate()) == inside)


# litellm drops a coroutine that it had just made when it is cancelled.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_error_in_the_source_comes_out_and_ends_all_work(opener: Opener) -> None:
    def broken() -> Iterator[Request]:
        yield ask()
        raise LookupError("no more rows")

    with Loopback([hanging()]) as server:
        inside = set(threading.enumerate())
        with pytest.raises(LookupError, match="no more rows"):
            list(opener(server).complete(broken()))
        assert until(lambda: server.connections == 0)
        assert set(threading.enumerate()) == inside


def test_streams_one_after_another_leave_nothing_open(opener: Opener) -> None:
    with Loopback([said("x")]) as server:
        inside = set(threading.enumerate())
        backend = opener(server)
        for _ in range(5):
            assert only(backend).text == "x"
            assert until(lambda: server.connections == 0)
        assert set(threading.enumerate()) == inside


def test_two_streams_may_take_turns(opener: Opener) -> None:
    with Loopback([echoed()]) as server:
        backend = opener(server, concurrency=2)
        one = backend.complete(ask(f"one {i}", str(i)) for i in range(6))
        two = backend.complete(ask(f"two {i}", str(i)) for i in range(6))
        pairs = list(zip(one, two, strict=True))
    assert sorted(r.text for r, _ in pairs) == [f"one {i}" for i in range(6)]
    assert sorted(r.text for _, r in pairs) == [f"two {i}" for i in range(6)]


def test_a_key_is_sent_only_where_its_variable_is_named(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-somebody-elses-key")
    with Loopback([said("x")]) as server:
        only(opener(server, api_key_env=None))
    assert "somebody" not in json.dumps(server.headers)
