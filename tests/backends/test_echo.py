"""Likelihoods from servers that list the tokens of a prompt, and from those that get it wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web
from loopback import Loopback, raw, status
from markov import LETTERS, NEXT

from judgebench.backends.contract import Draws, Message, Weigher, weigher_of
from judgebench.backends.openai_compatible import OpenAICompatible
from judgebench.backends.settings import BackendSettings
from judgebench.backends.transport import Waits
from judgebench.errors import EndpointDown, RunError, SetupError

ASKED = (Message("user", "ab"),)


class Completions(Loopback):
    """Also serves plain completions."""

    def _add_routes(self, app: web.Application) -> None:
        super()._add_routes(app)
        app.router.add_post("/v1/completions", self._serve)


def log_p(a: str, b: str) -> float:
    """Of a model that knows any letter: the chain's for its own, else some number."""
    if a in LETTERS and b in LETTERS and NEXT[LETTERS.index(a), LETTERS.index(b)] > 0:
        return math.log(NEXT[LETTERS.index(a), LETTERS.index(b)])
    return -1.0 - (ord(a) * 31 + ord(b) * 17) % 97 / 10


def listed(prompt: str, begins: bool) -> list[tuple[str, float | None]]:
    """The tokens of a prompt, each a letter."""
    letters = ["^"] * begins + list(prompt)
    logs = [log_p(a, b) for a, b in pairwise(letters)]
    return list(zip(letters, [None, *logs], strict=True))


def server(
    dialect: str, begins: bool = True, change: Callable[[list[Any]], list[Any]] = list
) -> Callable[[Mapping[str, Any], int], Any]:
    """What a server says that speaks one dialect and ignores the other."""

    def play(body: Mapping[str, Any], count: int) -> Any:
        prompt = body.get("prompt")
        if prompt is None:
            # The answer's turn goes on from the prompt of the chat.
            turns = [turn["content"] for turn in body["messages"]]
            prompt = f"<{turns[0]}>" + "".join(turns[1:])
            assert body.get("continue_final_message", False) == (len(turns) > 1)
        rows = change(listed(prompt, begins))
        told = [{}, *({str(ord(t[0])): {"logprob": p, "decoded_token": t}} for t, p in rows[1:])]
        top = {letter: log_p(prompt[-1], letter) for letter in "ab. T"}
        choice: dict[str, Any] = {"text": "a", "finish_reason": "length"}
        if body.get("logprobs"):
            both = [*(rows if body.get("echo") and dialect == "echo" else []), ("a", top["a"])]
            tokens, logs = zip(*both, strict=True)
            choice["logprobs"] = {
                "tokens": tokens, "token_logprobs": logs, "top_logprobs": [top] * len(both),
            }  # fmt: skip
        answer = {"choices": [choice], "usage": {"prompt_tokens": len(rows)}}
        if "prompt_logprobs" in body and dialect == "prompt_logprobs":
            answer["prompt_logprobs"] = [None, *told[1:]]
        return raw(answer)

    return play


def weigher(at: Loopback) -> Weigher:
    settings = BackendSettings(base_url=at.base_url, max_retries=2, down_for_s=0.2)
    return weigher_of(OpenAICompatible("m", settings, Waits(0.01, 0.02)), "openai-compatible:m")()


def along(text: str) -> list[float]:
    return [p for _, p in listed(text, False) if p is not None]


@pytest.mark.parametrize("dialect", ["prompt_logprobs", "echo"])
def test_a_server_that_is_right_is_used(dialect: str) -> None:
    with Completions(server(dialect)) as at:
        alone, behind = weigher(at).weigh([("", "ab b"), ("ba", "ab")])
    assert alone.log_p == pytest.approx(along("^ab b"))
    assert behind.log_p == pytest.approx(along("baab")[-2:])


def test_behind_a_chat_the_answers_turn_is_gone_on_with() -> None:
    with Completions(server("prompt_logprobs")) as at:
        (one,) = weigher(at).weigh([(ASKED, "ab")])
    assert one.log_p == pytest.approx(along("<ab>ab")[-2:])
    with (
        Completions(server("echo")) as at,
        pytest.raises(SetupError, match="`echo` knows no chat: set `given` to a text"),
    ):
        weigher(at).weigh([(ASKED, "ab")])


def test_a_server_without_a_first_token_weighs_only_behind_a_text() -> None:
    with Completions(server("echo", begins=False)) as at:
        (one,) = weigher(at).weigh([("ba", "ab")])
        assert one.log_p == pytest.approx(along("baab")[-2:])
        with pytest.raises(SetupError, match="no token stands before a text"):
            weigher(at).weigh([("", "ab")])


WRONG = {
    "it lists no tokens of the prompt": server("none"),
    "in a prompt and": server("echo", change=lambda rows: [(t, -0.5) for t, _ in rows]),
    "what it lists are no log-probabilities": server(
        "echo", change=lambda rows: [(t, 0.5) for t, _ in rows]
    ),
    "what it lists are no": server("echo", change=lambda rows: [(t, None) for t, _ in rows]),
    "no token stands alike": server(
        "echo", change=lambda rows: [(f"{t}{len(rows)}", p) for t, p in rows]
    ),
    "it lists no probabilities of a reply": lambda body, count: raw({"choices": [{}]}),
    "HTTP 400: no such thing": lambda body, count: status(400, "no such thing"),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_server_that_is_wrong_is_refused_with_the_reason(why: str) -> None:
    with Completions(WRONG[why]) as at, pytest.raises(SetupError) as refused:
        weigher(at).weigh([("ba", "ab")])
    assert "this endpoint does not say how likely a given text is" in str(refused.value)
    assert why in str(refused.value)


def test_faults_are_retried_and_then_end_the_work() -> None:
    right = server("echo")
    with Completions(lambda body, n: right(body, n) if n % 3 else status(503)) as at:
        (one,) = weigher(at).weigh([("ba", "ab")])
        assert one.log_p
    with Completions(right) as at:
        found = weigher(at)
        found.weigh([("ba", "ab")])
        at.script = lambda body, n: status(500)
        with pytest.raises((RunError, EndpointDown)):
            found.weigh([("ba", "ab")])


def test_a_text_that_is_too_long_changes_no_neighbour() -> None:
    right = server("echo")
    over = status(400, "maximum context length is 8 tokens")
    with Completions(lambda body, n: over if len(body["prompt"]) > 99 else right(body, n)) as at:
        long, short = weigher(at).weigh([("b", "ab" * 60), ("b", "ab")])
    assert long.reason == "HTTP 400: maximum context length is 8 tokens; test"
    assert short.log_p == pytest.approx(along("bab")[-2:])


def test_completions_are_not_weighed_by_a_server() -> None:
    with (
        Completions(server("echo")) as at,
        pytest.raises(SetupError, match="completions are weighed by a model in this process"),
    ):
        weigher(at).draw("b", ["ab"], Draws(2, 8, 1.0, 1.0, 1, 0))
