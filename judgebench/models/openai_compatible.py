"""Any server that speaks OpenAI's chat completions over HTTP: vLLM, llama.cpp, a gateway; and how
likely given texts are, by a server that lists the tokens of a prompt with their probability.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

import aiohttp

from judgebench.errors import Problem, RunError, SetupError
from judgebench.files import to_bytes
from judgebench.models.batch import Sent
from judgebench.models.chat import (
    Completion,
    Lane,
    TransientError,
    UnreachableError,
    UnreadableBodyError,
    enforced,
    error_status,
    error_text,
    failure,
    plain_body,
    read_chat,
    read_json,
    wait_asked_for,
)
from judgebench.models.contract import (
    Before,
    Completions,
    Draws,
    Message,
    Reply,
    Request,
    Weighed,
    Weigher,
)
from judgebench.models.hosts import proxy_of
from judgebench.models.settings import PACE, BackendSettings
from judgebench.models.transport import DEFAULT_WAITS, Attempt, Transport, Waits
from judgebench.models.weighing import common_prefix

# The Completion in the JSON that answers a request. Raises UnreadableBodyError.
Read = Callable[[Any, Request], Completion]


class OpenAICompatible:
    """A Backend over plain HTTP; `model` may name the address too, as `MODEL@http://HOST/v1`.

    `structured: auto` means `json_schema`, and never anything else: a server that refuses it ends
    the run with a SetupError that says what to set, because a judge whose replies are enforced in
    another way is another judge, and its signature is taken before the first call.
    A key is sent only where `api_key_env` names its variable. Raises SetupError for a base_url
    that is none.
    """

    def __init__(self, model: str, settings: BackendSettings, waits: Waits = DEFAULT_WAITS) -> None:
        model, settings = _split_address(model, settings)
        base_url = settings.checked_base_url()
        if base_url is None:
            allowed = "a URL such as http://127.0.0.1:8000/v1"
            raise SetupError(Problem("is needed", field="settings.base_url", allowed=allowed))
        self._model, self._settings, self._base_url = model, settings, base_url
        self._lane: Lane = "json_schema" if settings.structured == "auto" else settings.structured
        self._url = f"{self._base_url}/chat/completions"
        self._schemas: dict[int, tuple[Mapping[str, Any], bytes]] = {}  # by identity: with its JSON
        self._transport = Transport(settings, waits, f"{model} at {self._base_url}")
        self._marks, self._mark = count(), uuid4().hex
        self._marked: bool | None = None  # whether replies repeat their request's id; None: unknown

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "openai-compatible",
            "model": self._model,
            "base_url": self._base_url,
            "structured": self._lane,
            **self._settings.runtime("thinking"),
            "runtime": self._settings.runtime(*PACE),
        }

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        return self.asked("/chat/completions", self._encoded, _read_chat, requests)

    def asked(
        self, path: str, encode: Callable[[Request], bytes], read: Read, requests: Iterable[Request]
    ) -> Iterator[Reply]:
        """As `complete`, in another format: `encode` makes the body of a request."""

        async def attempt(sessions: _Sessions, request: Request) -> Completion:
            found = await self._post(sessions, f"{self._base_url}{path}", encode(request))
            return self._completion(*found, read, request)

        return self._transport.stream(partial(self._open, attempt), requests)

    def drain(self) -> None:
        self._transport.drain()

    def close(self) -> None:
        self._transport.close()

    def weigher(self) -> Weigher:
        """Asks the server nothing yet."""
        return PromptWeigher(self._model, self.posted)

    def posted(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Sequence[Reply]:
        """The server's replies to each path and body, as JSON in the reply's text."""

        async def attempt(sessions: _Sessions, request: Request) -> Completion:
            path, body = calls[int(request.key)]
            found = await self._post(sessions, f"{self._base_url}{path}", _json(body))
            said = self._sound(*found)
            return said if isinstance(said, Completion) else Completion(json.dumps(said), "stop")

        asked = [
            Request(str(i), (Message("user", json.dumps(body)),), max_tokens=1)
            for i, (_, body) in enumerate(calls)
        ]
        opened = partial(self._open, attempt)
        replies = {reply.key: reply for reply in self._transport.stream(opened, asked)}
        return [replies[request.key] for request in asked]

    @asynccontextmanager
    async def _open(
        self, attempt: Callable[[_Sessions, Request], Awaitable[Completion]]
    ) -> AsyncIterator[Attempt]:
        async with self._session(once=True) as once, self._session(once=False) as shared:
            yield partial(attempt, _Sessions(once, shared))

    def _session(self, *, once: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.concurrency, force_close=once),
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
            headers={"Content-Type": "application/json", **self._authorization()},
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy_of(self._base_url),
        )

    async def _post(
        self, sessions: _Sessions, url: str, data: bytes
    ) -> tuple[int, bytes, float | None]:
        """Status, body and the seconds that the server asks for. Raises TransientError."""
        mark, alone = f"{self._mark}-{next(self._marks):08d}", not self._marked
        session, headers = sessions.once if alone else sessions.shared, {_MARK: mark}
        try:
            async with session.post(
                url, data=data, headers=headers, allow_redirects=False
            ) as response:
                raw = await _whole(response)
        except TimeoutError:
            raise TransientError(f"no reply within {self._settings.timeout_s:g} s") from None
        except aiohttp.ClientConnectorError as error:
            # Its text begins with the library's own settings; the cause stands in brackets. TLS
            # counts its faults by numbers of its own.
            of_tls = isinstance(error, aiohttp.ClientSSLError)
            number, said = None if of_tls else getattr(error, "errno", None), str(error)
            known = os.strerror(number) if isinstance(number, int) and number > 0 else ""
            cause = known or said.partition("[")[2].rstrip("]") or said
            raise UnreachableError(f"no server answers at {self._base_url}: {cause}") from None
        except aiohttp.ClientError as error:
            # Its repr may hold the headers that were sent, and so the key.
            name = type(error).__name__
            raise TransientError(f"the connection broke: {name}: {error}") from None
        repeated = mark.encode() in raw or mark in response.headers.get(_MARK, "")
        if not (alone or repeated):
            self._marked = False
            raise TransientError(f"a response over a shared connection lacks its request's {_MARK}")
        if self._marked is None and repeated:
            self._marked = True
        return response.status, raw, wait_asked_for(response.headers)

    def written(self, request: Request) -> Sent:
        """The request that a call sends."""
        return Sent(self._url, self._authorization(), self._encoded(request))

    def read_back(self, request: Request, status: int, body: bytes) -> Reply:
        """The reply of a call that gets this. Raises as a call does."""
        done = self._completion(status, body, None, _read_chat, request)
        return self._transport.reply(request, done)

    def _authorization(self) -> dict[str, str]:
        key = self._settings.api_key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def encoded(self, body: Mapping[str, Any]) -> bytes:
        """A body and the model as JSON."""
        return _json({"model": self._model, **body})

    def _encoded(self, request: Request) -> bytes:
        """The body as JSON. What a schema adds is long, and the same for many requests: it is
        encoded once."""
        body = self.encoded(plain_body(request, self._settings))
        schema = request.schema
        if schema is None or self._lane == "none":
            return body
        known = self._schemas.get(id(schema))
        if known is None:
            if len(self._schemas) >= _MOST_SCHEMAS:  # of a caller that makes one a request
                self._schemas.clear()
            known = self._schemas[id(schema)] = schema, _json(enforced(schema, self._lane))
        return b"%b,%b" % (body[:-1], known[1][1:])

    def _completion(
        self, status: int, raw: bytes, after: float | None, read: Read, request: Request
    ) -> Completion:
        body = self._sound(status, raw, after)
        try:
            return body if isinstance(body, Completion) else read(body, request)
        except UnreadableBodyError as error:
            raise TransientError(str(error)) from None

    def _sound(self, status: int, raw: bytes, after: float | None) -> Any:
        """The body as JSON, or a Completion that says what is wrong. Raises as `failure` does."""
        body = read_json(raw)
        if status < 300 and isinstance(body, str):
            raise TransientError(f"the body is not JSON: {error_text(body)}")
        if status < 300 and isinstance(body, dict) and body.get("error"):
            # Some gateways report an engine's error in a body that came with status 200.
            code = body["error"].get("code") if isinstance(body["error"], dict) else None
            status = error_status(code) or 500
        if status >= 300:
            return failure(status, error_text(body), self._about(status), self._lane, after)
        return body

    def _about(self, status: int) -> str:
        key, hint = self._settings.api_key_env, self._settings.hint(status, self._base_url)
        sent = f"the key in {key}" if key else "no key (api_key_env is not set)"
        return f"{self._base_url}, model {self._model}, {sent}{hint}"


class _Sessions(NamedTuple):
    """Of connections that serve one request each, and of those that are used again."""

    once: aiohttp.ClientSession
    shared: aiohttp.ClientSession


_MARK = "X-Request-Id"
_MOST_SCHEMAS = 64
_LONGEST_BODY = 8 * 2**20  # bytes, unpacked; a whole reply with its usage has a few thousand


def _read_chat(body: Any, request: Request) -> Completion:
    return read_chat(body, request.labels_asked)


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return to_bytes(value)
    except ValueError:  # lone surrogates, which UTF-8 cannot hold, are escaped
        return json.dumps(value).encode()


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body. Raises TransientError for one longer than any reply, without reading it whole."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > _LONGEST_BODY:
            raise TransientError(f"the body is longer than {_LONGEST_BODY} bytes")
    return b"".join(parts)


def _split_address(model: str, settings: BackendSettings) -> tuple[str, BackendSettings]:
    """`MODEL@http://…` as MODEL and settings that hold the address."""
    name, at, address = model.rpartition("@")
    if not at or not address.startswith(("http://", "https://")):
        return model, settings
    if settings.base_url not in (None, address):
        raise SetupError(
            Problem("names another address than the backend does", field="settings.base_url")
        )
    return name, settings.model_copy(update={"base_url": address})


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


class PromptWeigher:
    """A `Weigher` over a server; `post` sends bodies to paths and gives a reply for each.

    vLLM's parameter `prompt_logprobs` asks for the tokens of a prompt, also of a chat. Many servers
    take and ignore it, or list something else, so it is used only if a probe shows that a token has
    the same probability as part of a prompt and as a reply.
    """

    def __init__(
        self, model: str, post: Callable[[Sequence[tuple[str, Body]]], Sequence[Reply]]
    ) -> None:
        self._model, self._post = model, post
        self._probed = False
        self._opens = False  # whether the server puts a token of its own before a text

    def weigh(self, texts: Sequence[tuple[Before, str]]) -> Sequence[Weighed]:
        if not self._probed:
            self._probe()
        if not self._opens and any(before == "" for before, _ in texts):
            why = "no token stands before a text, so that its first has no probability"
            raise _cannot(f"{why}: set `given` to a text that holds {{question}}")
        heads = list(dict.fromkeys(before for before, _ in texts if before))
        listed = self._listed([(head, "") for head in heads] + list(texts))
        known = dict(zip(heads, listed, strict=False))
        return [
            _weighed(known.get(before), tokens)
            for (before, _), tokens in zip(texts, listed[len(heads) :], strict=True)
        ]

    def draw(self, before: Before, targets: Sequence[str], draws: Draws) -> Completions:
        raise _cannot("completions are weighed by a model in this process")

    def _probe(self) -> None:
        """Raises SetupError where the server does not list a prompt's probabilities."""
        try:
            said = self._sent([("/completions", self._body(_PROBE) | {"logprobs": _LISTED})])[0]
            replies = json.loads(said.text)["choices"][0]["logprobs"]["top_logprobs"][0]
            wrong = self._wrong(replies)
        except SetupError as error:  # the server refuses the parameter
            wrong = str(error)
        except (ValueError, LookupError, TypeError):
            wrong = said.error or "it lists no probabilities of a reply"
        if wrong:
            raise _cannot(f"prompt_logprobs: {wrong}")
        self._probed = True

    def _wrong(self, replies: Mapping[str, float]) -> str:
        """The evidence that the server does not list a prompt's probabilities; empty if nothing."""
        listed = self._listed([("", _PROBE), *(("", _PROBE + reply) for reply in replies)])
        if reason := next((one for one in listed if isinstance(one, str)), ""):
            return reason
        alone, *longer = (one for one in listed if not isinstance(one, str))
        compared = 0
        for (reply, expected), tokens in zip(replies.items(), longer, strict=True):
            if [t.id for t in tokens[:-1]] != [t.id for t in alone]:
                continue  # the tokenizer joins this reply with the prompt
            log_p, compared = tokens[-1].log_p, compared + 1
            if log_p is None or not abs(log_p - expected) <= _ROUNDING:
                return f"{reply!r} has {log_p} in a prompt and {expected} as a reply"
        self._opens = "".join(token.text for token in alone[1:]).strip() == _PROBE
        return "" if compared > 1 else "no token stands alike in a prompt and in a reply"

    def _listed(self, texts: Sequence[tuple[Before, str]]) -> Sequence[list[_Listed] | str]:
        """The tokens of each text behind what stands before it, or why there are none."""
        return [_read(said) for said in self._sent([self._call(*text) for text in texts])]

    def _call(self, before: Before, text: str) -> tuple[str, Body]:
        how: Body = {"prompt_logprobs": 0}
        if isinstance(before, str):
            return "/completions", self._body(before + text) | how
        turns = [{"role": turn.role, "content": turn.content} for turn in before]
        if text:
            turns.append({"role": "assistant", "content": text})
            how |= {"add_generation_prompt": False, "continue_final_message": True}
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


def _read(said: Reply) -> list[_Listed] | str:
    if said.finish != "stop":
        return said.error
    try:
        body = json.loads(said.text)
        rows = body["choices"][0].get("prompt_logprobs") or body["prompt_logprobs"]
        tokens = [_Listed("", "", None)]
        for row in rows[1:]:
            ((id_, told),) = row.items()
            tokens.append(_Listed(id_, told["decoded_token"], told["logprob"]))
        if len(tokens) != body["usage"]["prompt_tokens"]:
            return "it lists other tokens than the prompt has"
    except (ValueError, LookupError, TypeError, AttributeError):
        return "it lists no tokens of the prompt"
    if any(token.log_p is None or not token.log_p <= _ABOVE_ANY for token in tokens[1:]):
        return "what it lists are no log-probabilities"
    return tokens


def _weighed(head: list[_Listed] | str | None, whole: list[_Listed] | str) -> Weighed:
    if isinstance(whole, str) or isinstance(head, str):
        return Weighed(reason=head if isinstance(head, str) else str(whole))
    start = len(common_prefix([[t.id for t in head], [t.id for t in whole]])) if head else 1
    return Weighed([token.log_p for token in whole[start:] if token.log_p is not None])


def _cannot(why: str) -> SetupError:
    return SetupError(f"this endpoint does not say how likely a given text is: {why}")
