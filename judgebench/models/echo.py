"""How likely given texts are, by a server that lists the tokens of a prompt with their probability.

Two dialects are known: vLLM's `prompt_logprobs`, which works behind a chat too, and `echo` of
OpenAI's completions. Many servers take these parameters and ignore them, or list something else.
So a dialect is used only if a probe shows that it gives a token, as part of a prompt, the
probability with which the same server lists it as a reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgebench.errors import RunError, SetupError
from judgebench.models.contract import Before, Completions, Draws, Reply, Weighed
from judgebench.models.label_tree import common_prefix

Body = dict[str, Any]
_PROBE = "The capital of France is"
_LISTED = 5  # replies that are compared: as many as OpenAI's protocol lists
_ROUNDING = 0.1  # natural logarithms, between two ways through one engine
_REFUSED = re.compile("HTTP (400|413|422):")  # for what a text is: asked again, it is the same
_ABOVE_ANY = 0.01  # a log-probability may pass 0 by rounding


@dataclass(frozen=True)
class _Listed:
    """A token of a prompt: what tells it from others, its text, and its log-probability."""

    id: str
    text: str
    log_p: float | None


class EchoWeigher:
    """A `Weigher` over a server; `post` sends bodies to paths and gives a reply for each."""

    def __init__(
        self, model: str, post: Callable[[Sequence[tuple[str, Body]]], Sequence[Reply]]
    ) -> None:
        self._model, self._post = model, post
        self._dialect: str | None = None
        self._opens = False  # whether the server puts a token of its own before a text

    def weigh(self, texts: Sequence[tuple[Before, str]]) -> Sequence[Weighed]:
        self._dialect = self._dialect or self._probed()
        if self._dialect == "echo" and any(not isinstance(before, str) for before, _ in texts):
            raise _cannot("`echo` knows no chat: set `given` to a text that holds {question}")
        if not self._opens and any(before == "" for before, _ in texts):
            why = "no token stands before a text, so that its first has no probability"
            raise _cannot(f"{why}: set `given` to a text that holds {{question}}")
        heads = list(dict.fromkeys(before for before, _ in texts if before))
        told = self._listed([(head, "") for head in heads] + list(texts), self._dialect)
        known = dict(zip(heads, told, strict=False))
        return [
            _weighed(known.get(before), one, text)
            for (before, text), one in zip(texts, told[len(heads) :], strict=True)
        ]

    def draw(self, before: Before, targets: Sequence[str], draws: Draws) -> Completions:
        raise _cannot("completions are weighed by a model in this process")

    def _probed(self) -> str:
        """The dialect in which the server is right. Raises SetupError with what is wrong."""
        said = self._sent([("/completions", self._body(_PROBE) | {"logprobs": _LISTED})])[0]
        try:
            replies = json.loads(said.text)["choices"][0]["logprobs"]["top_logprobs"][0]
        except (ValueError, LookupError, TypeError):
            raise _cannot(said.error or "it lists no probabilities of a reply") from None
        wrong = []
        for dialect in ("prompt_logprobs", "echo"):
            try:
                wrong.append(f"{dialect}: {self._wrong(dialect, replies)}")
            except SetupError as error:  # the server refuses the parameter
                wrong.append(f"{dialect}: {error}")
            if wrong[-1] == f"{dialect}: ":
                return dialect
        raise _cannot("; ".join(wrong))

    def _wrong(self, dialect: str, replies: Mapping[str, float]) -> str:
        """What shows that the server does not list a prompt's probabilities; empty if nothing."""
        texts = [_PROBE, *(_PROBE + reply for reply in replies)]
        told = self._listed([("", text) for text in texts], dialect)
        if reason := next((one for one in told if isinstance(one, str)), ""):
            return reason
        alone, *longer = (one for one in told if not isinstance(one, str))
        compared = 0
        for (reply, expected), one in zip(replies.items(), longer, strict=True):
            if [t.id for t in one[:-1]] != [t.id for t in alone]:
                continue  # the tokenizer joins this reply with the prompt
            found, compared = one[-1].log_p, compared + 1
            if found is None or not abs(found - expected) <= _ROUNDING:
                return f"{reply!r} has {found} in a prompt and {expected} as a reply"
        self._opens = "".join(one.text for one in alone[1:]).strip() == _PROBE
        return "" if compared > 1 else "no token stands alike in a prompt and in a reply"

    def _listed(
        self, texts: Sequence[tuple[Before, str]], dialect: str
    ) -> Sequence[list[_Listed] | str]:
        """The tokens of each text behind what stands before it, or why there are none."""
        calls = [self._call(before, text, dialect) for before, text in texts]
        return [_read(said, dialect) for said in self._sent(calls)]

    def _call(self, before: Before, text: str, dialect: str) -> tuple[str, Body]:
        how: Body = {"prompt_logprobs": 0} if dialect != "echo" else {"echo": True, "logprobs": 1}
        if isinstance(before, str):
            return "/completions", self._body(before + text) | how
        turns = [{"role": one.role, "content": one.content} for one in before]
        if text:
            turns.append({"role": "assistant", "content": text})
            how = {**how, "add_generation_prompt": False, "continue_final_message": True}
        return "/chat/completions", self._body("", messages=turns) | how

    def _body(self, prompt: str, **chat: Any) -> Body:
        asked = chat or {"prompt": prompt}
        return {"model": self._model, **asked, "max_tokens": 1, "temperature": 0}

    def _sent(self, calls: Sequence[tuple[str, Body]]) -> Sequence[Reply]:
        """Raises RunError for a call that failed after all retries: it is worth another run."""
        replies = self._post(calls)
        for reply in replies:
            if reply.finish == "failed" and not _REFUSED.match(reply.error):
                raise RunError(f"the server does not say how likely texts are: {reply.error}")
        return replies


def _read(said: Reply, dialect: str) -> list[_Listed] | str:
    if said.finish != "stop":
        return said.error
    try:
        body = json.loads(said.text)
        choice = body["choices"][0]
        if dialect == "echo":
            listed = choice["logprobs"]
            rows = list(zip(listed["tokens"], listed["token_logprobs"], strict=True))
            found = [_Listed(str(token), str(token), log_p) for token, log_p in rows]
            found = found[: body["usage"]["prompt_tokens"]]
        else:
            rows = choice.get("prompt_logprobs") or body["prompt_logprobs"]
            found = [_Listed("", "", None), *(_of_vllm(row) for row in rows[1:])]
            if len(found) != body["usage"]["prompt_tokens"]:
                return "it lists other tokens than the prompt has"
    except (ValueError, LookupError, TypeError, AttributeError):
        return "it lists no tokens of the prompt"
    if any(one.log_p is None or not one.log_p <= _ABOVE_ANY for one in found[1:]):
        return "what it lists are no log-probabilities"
    return found


def _of_vllm(row: Mapping[str, Any]) -> _Listed:
    ((id_, told),) = row.items()
    return _Listed(id_, told["decoded_token"], told["logprob"])


def _weighed(head: list[_Listed] | str | None, whole: list[_Listed] | str, text: str) -> Weighed:
    if isinstance(whole, str) or isinstance(head, str):
        return Weighed(reason=head if isinstance(head, str) else str(whole))
    start = len(common_prefix([[t.id for t in head], [t.id for t in whole]])) if head else 1
    log_p = [one.log_p for one in whole[start:]]
    return Weighed([x for x in log_p if x is not None])


def _cannot(why: str) -> SetupError:
    return SetupError(f"this endpoint does not say how likely a given text is: {why}")
