"""A server on loopback that lists the tokens of a prompt with their probability, each a letter."""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from aiohttp import web
from loopback import Loopback, raw
from markov import LETTERS, NEXT


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
    lists: bool = True, begins: bool = True, change: Callable[[list[Any]], list[Any]] = list
) -> Callable[[Mapping[str, Any], int], Any]:
    """What a server says that lists a prompt's probabilities, or ignores that it is asked to."""

    def play(body: Mapping[str, Any], count: int) -> Any:
        prompt = body.get("prompt")
        if prompt is None:
            # The answer's turn goes on from the prompt of the chat.
            turns = [turn["content"] for turn in body["messages"]]
            prompt = f"<{turns[0]}>" + "".join(turns[1:])
            assert body.get("continue_final_message", False) == (len(turns) > 1)
        rows = change(listed(prompt, begins))
        told = [{}, *({t: {"logprob": p, "decoded_token": t}} for t, p in rows[1:])]
        top = {letter: log_p(prompt[-1], letter) for letter in "ab. T"}
        choice: dict[str, Any] = {"text": "a", "finish_reason": "length"}
        if body.get("logprobs"):
            choice["logprobs"] = {
                "tokens": ["a"], "token_logprobs": [top["a"]], "top_logprobs": [top],
            }  # fmt: skip
        answer = {"choices": [choice], "usage": {"prompt_tokens": len(rows)}}
        if "prompt_logprobs" in body and lists:
            answer["prompt_logprobs"] = [None, *told[1:]]
        return raw(answer)

    return play


def along(text: str) -> list[float]:
    return [p for _, p in listed(text, False) if p is not None]
