"""Label probabilities from servers that list log-probabilities beside their replies."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from loopback import Body, Loopback, Play, completion, raw

from judgebench.errors import SetupError
from judgebench.models.contract import (
    Backend,
    Conditioning,
    LabelField,
    LabelsAsked,
    Message,
    Reply,
    Request,
)
from judgebench.models.litellm_backend import LiteLLM
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import Backoff

QUICK = Backoff(first=0.001, longest=0.05)
HARM = LabelField("harm", ("none", "some"))
BIAS = LabelField("bias", ("no", "yes little", "yes great"))
TABLES: list[dict[str, float]] = [
    {'{"': 1},
    {"harm": 1},
    {'":"': 1},
    {"some": 0.75, "none": 0.25},
    {'","bias":"': 1},
    {"no": 0.995, "yes": 0.005},
    {'"}': 1},
    {"": 1},
]

Opener = Callable[[Loopback], Backend]


@pytest.fixture(params=["openai-compatible", "litellm"])
def opener(request: pytest.FixtureRequest) -> Opener:
    def open_(server: Loopback) -> Backend:
        settings = BackendSettings(base_url=server.base_url, timeout_s=90, max_retries=1)
        if request.param == "litellm":
            return LiteLLM("openai/loopback", settings, QUICK)
        return OpenAICompatible("loopback", settings, QUICK)

    return open_


def listed(tables: list[dict[str, float]]) -> dict[str, Any]:
    """Log-probabilities as the chat completions API lists them; the first of each was written."""

    def entry(piece: str, share: float) -> dict[str, Any]:
        return {"token": piece, "bytes": list(piece.encode()), "logprob": math.log(share)}

    content = []
    for table in tables:
        entries = [entry(*pair) for pair in table.items()]
        content.append({**entries[0], "top_logprobs": entries})
    return {"content": content}


def says(tables: list[dict[str, float]], logprobs: Any) -> dict[str, Any]:
    body = completion("".join(next(iter(table)) for table in tables))
    body["choices"][0]["logprobs"] = logprobs
    return body


def ask(*fields: LabelField, how: Conditioning = "chained") -> Request:
    labels = LabelsAsked(fields, how) if fields else None
    return Request("1", (Message("user", "Judge."),), labels_asked=labels)


def only(backend: Backend, request: Request) -> Reply:
    (reply,) = backend.complete([request])
    return reply


def test_probabilities_are_read_beside_the_reply(opener: Opener) -> None:
    with Loopback([raw(says(TABLES, listed(TABLES)))]) as server:
        reply = only(opener(server), ask(HARM, BIAS))
    assert (reply.finish, reply.error) == ("stop", "")
    assert reply.text == '{"harm":"some","bias":"no"}'
    assert reply.log_probabilities is not None
    assert list(reply.log_probabilities) == ["harm", "bias"]
    assert reply.log_probabilities["harm"] == pytest.approx(
        {"none": math.log(0.25), "some": math.log(0.75)}
    )
    assert server.bodies[0]["logprobs"] is True
    assert server.bodies[0]["top_logprobs"] == 20


def test_nothing_is_asked_or_told_where_no_labels_are_asked(opener: Opener) -> None:
    with Loopback([raw(says(TABLES, listed(TABLES)))]) as server:
        reply = only(opener(server), ask())
    assert reply.log_probabilities is None
    assert not server.bodies[0].keys() & {"logprobs", "top_logprobs"}


def test_a_field_that_cannot_be_told_apart_is_left_out_and_told(opener: Opener) -> None:
    tables = [*TABLES[:5], {"no": 0.8, "yes": 0.2}, *TABLES[6:]]
    with Loopback([raw(says(tables, listed(tables)))]) as server:
        reply = only(opener(server), ask(HARM, BIAS))
    assert list(reply.log_probabilities or ()) == ["harm"]
    assert reply.error == "bias: 20% of the probability could be any label's"


@pytest.mark.parametrize("given", [None, {"content": None}, {"content": []}, {}])
def test_an_endpoint_without_log_probabilities_ends_the_run(opener: Opener, given: Any) -> None:
    with (
        Loopback([raw(says(TABLES, given))]) as server,
        pytest.raises(SetupError, match="gives no log-probabilities"),
    ):
        only(opener(server), ask(HARM))
    assert len(server.bodies) == 2  # one asks whether it is the answer


def test_several_independent_labels_are_refused_before_a_call(opener: Opener) -> None:
    with Loopback([raw(says(TABLES, listed(TABLES)))]) as server:
        with pytest.raises(SetupError, match="one metric a request"):
            only(opener(server), ask(HARM, BIAS, how="independent"))
        assert server.bodies == []
        reply = only(opener(server), ask(HARM, how="independent"))
    assert list(reply.log_probabilities or ()) == ["harm"]


@pytest.mark.parametrize(
    ("name", "value"), [("logprob", "high"), ("logprob", 7.0), ("bytes", 10**9), ("token", None)]
)
def test_log_probabilities_that_are_none_are_told(name: str, value: Any) -> None:
    """Straight from the wire: litellm would stumble over them before we do."""
    given = listed(TABLES)
    given["content"][3][name] = value
    given["content"][3] |= {"bytes": None} if name == "token" else {}
    with Loopback([raw(says(TABLES, given))]) as server:
        settings = BackendSettings(base_url=server.base_url)
        reply = only(OpenAICompatible("loopback", settings, QUICK), ask(HARM))
    assert reply.log_probabilities is None
    assert "cannot be read" in reply.error
    assert reply.text.startswith('{"harm"')


def test_a_refusal_has_no_labels() -> None:
    def refused(body: Body, count: int) -> Play:
        return raw(completion(None, "content_filter"))

    with Loopback(refused) as server:
        settings = BackendSettings(base_url=server.base_url)
        reply = only(OpenAICompatible("loopback", settings, QUICK), ask(HARM))
    assert (reply.finish, reply.log_probabilities) == ("refused", None)


def test_litellm_refuses_a_provider_that_declares_none() -> None:
    settings = BackendSettings(base_url="http://127.0.0.1:9")
    backend = LiteLLM("anthropic/claude-sonnet-4-5", settings, QUICK)
    with pytest.raises(SetupError, match="declares no log-probabilities"):
        only(backend, ask(HARM))
