"""Any server that speaks OpenAI's chat completions over HTTP: vLLM, llama.cpp, a gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

import aiohttp

from judgebench.errors import Problem, SetupError
from judgebench.files import to_bytes
from judgebench.models.batch import Sent
from judgebench.models.chat import (
    Completion,
    Lane,
    TransientError,
    UnreachableError,
    ask_with_less,
    chat_body,
    enforced,
    error_status,
    error_text,
    failure,
    read_chat,
    read_json,
    strict,
    wait_asked_for,
)
from judgebench.models.contract import QUESTIONS, Reply, Request
from judgebench.models.settings import PACE, BackendSettings, Body, proxy_of, url_below
from judgebench.models.transport import DEFAULT_WAITS, FEW_WORDS, Attempt, Transport, Waits


class Format(NamedTuple):
    """A way to ask a server, whose path names it: what is posted for a body of chat completions,
    and the Completion in the JSON that comes back; `read` raises UnreadableBodyError. With `write`
    a body is made of the request alone, and nothing in it is a parameter."""

    path: str
    read: Callable[[Any, Request], Completion]
    sent: Callable[[Body], Body] = dict
    write: Callable[[Request], Body] | None = None


def _read_chat(body: Any, request: Request) -> Completion:
    return read_chat(body, request.labels_asked)


CHAT = Format("/chat/completions", _read_chat)


class OpenAICompatible:
    """A Backend over plain HTTP; `model` may name the address too, as `MODEL@http://HOST/v1`.

    `structured: auto` means `json_schema`, and never anything else: a server that refuses it ends
    the run with a SetupError that says what to set, because a judge whose replies are enforced in
    another way is another judge, and its signature is taken before the first call.
    A key is sent only where `api_key_env` names its variable. Raises SetupError for a base_url
    that is none.
    """

    def __init__(
        self, model: str, settings: BackendSettings, waits: Waits = DEFAULT_WAITS,
        format: Format = CHAT,
    ) -> None:  # fmt: skip
        name, _, address = model.rpartition("@")
        if address.startswith(("http://", "https://")):
            if settings.base_url not in (None, address):
                message = "names another address than the backend does"
                raise SetupError(Problem(message, field="settings.base_url"))
            model, settings = name, settings.model_copy(update={"base_url": address})
        base_url = settings.checked_base_url()
        if base_url is None:
            allowed = "a URL such as http://127.0.0.1:8000/v1"
            raise SetupError(Problem("is needed", field="settings.base_url", allowed=allowed))
        self._model, self._settings, self._base_url = model, settings, base_url
        self._lane: Lane = "json_schema" if settings.structured == "auto" else settings.structured
        self._format, self._url = format, url_below(base_url, format.path)
        self._form: tuple[Mapping[str, Any] | None, Body] = None, {}  # of the last schema
        self._marks = map(f"{uuid4().hex}-{{:08d}}".format, count())
        self._repeats: bool | None = None  # whether replies repeat their request's mark, if known
        self._transport = Transport(settings, waits, f"{model} at {self._base_url}")

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "openai-compatible" if self._format is CHAT else self._format.path[1:],
            "model": self._model,
            "base_url": self._base_url,
            "structured": QUESTIONS if self._format.write else self._lane,
            **self._settings.runtime(*_ASKED),
            "runtime": self._settings.runtime(*PACE),
        }

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        return self._transport.stream(self._open, requests)

    def drain(self) -> None:
        self._transport.drain()

    def close(self) -> None:
        self._transport.close()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Attempt]:
        async with (
            self._session(is_shared=False) as single,
            self._session(is_shared=True) as shared,
        ):
            yield partial(self._attempt, (single, shared))

    def _session(self, is_shared: bool) -> aiohttp.ClientSession:
        """One whose connections serve a single request each, unless they are shared."""
        limit = self._settings.concurrency
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limit, force_close=not is_shared),
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
            headers={"Content-Type": "application/json", **self._settings.sent_headers()},
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy_of(self._base_url),
        )

    async def _attempt(self, sessions: Sessions, request: Request) -> Completion:
        async def ask(body: Body) -> Completion:
            asked = request.labels_asked if write or "logprobs" in body else None
            status, raw, after = await self._post(sessions, _json(self._format.sent(body)))
            return self._read(status, raw, replace(request, labels_asked=asked), after)

        write, body = self._format.write, self._body(request)
        if request.messages == FEW_WORDS and not write:
            return await ask_with_less(ask, body, self._about)
        return await ask(body)

    async def _post(self, sessions: Sessions, data: bytes) -> tuple[int, bytes, float | None]:
        """Status, body and the seconds that the server asks for. Raises TransientError."""
        mark, is_shared = next(self._marks), self._repeats is True
        try:
            async with sessions[is_shared].post(
                self._url, data=data, headers={_MARK: mark}, allow_redirects=False
            ) as response:
                raw = await _whole(response)
        except TimeoutError:
            raise TransientError(f"no reply within {self._settings.timeout_s:g} s") from None
        except aiohttp.ClientConnectorError as error:
            # Its text begins with the library's own settings; the cause stands in brackets.
            cause = str(error).partition("[")[2].rstrip("]") or error
            raise UnreachableError(f"no server answers at {self._base_url}: {cause}") from None
        except aiohttp.ClientError as error:
            # Its repr may hold the headers that were sent, and so the key.
            name = type(error).__name__
            raise TransientError(f"the connection broke: {name}: {error}") from None
        repeated = mark.encode() in raw or mark in response.headers.get(_MARK, "")
        if is_shared and not repeated:
            self._repeats = False
            raise TransientError(f"a response over a shared connection lacks its request's {_MARK}")
        if repeated and self._repeats is None:
            self._repeats = True
        return response.status, raw, wait_asked_for(response.headers)

    def written(self, request: Request) -> Sent:
        """The request that a call sends."""
        return Sent(self._url, self._settings.sent_headers(), _json(self._body(request)))

    def read_back(self, request: Request, status: int, body: bytes) -> Reply:
        """The reply of a call that gets this. Raises as a call does."""
        return self._transport.reply(request, self._read(status, body, request))

    def _body(self, request: Request) -> Body:
        """The body of a request. What a schema adds is the same for many."""
        if self._format.write:
            body = self._format.write(request)
            return {"model": self._model, **body, **self._settings.extra_body}
        schema, form = self._form
        if request.schema is not schema:
            form = enforced(strict(request.schema), self._lane) if request.schema else {}
            self._form = request.schema, form
        return {"model": self._model, **chat_body(request, settings=self._settings), **form}

    def _read(
        self, status: int, raw: bytes, request: Request, after: float | None = None
    ) -> Completion:
        """The meaning of a response. Raises as `failure` does."""
        body = read_json(raw)
        if status < 300 and isinstance(body, dict) and (error := body.get("error")):
            # Some gateways report an engine's error in a body that came with status 200.
            status = error_status(error.get("code") if isinstance(error, dict) else None) or 500
        if status >= 300:
            return failure(status, error_text(body), self._about, after)
        if isinstance(body, str):
            raise TransientError(f"the body is not JSON: {error_text(body)}")
        return self._format.read(body, request)

    @property
    def _about(self) -> str:
        key = self._settings.api_key_env
        sent = f"the key in {key}" if key else "no key (`api_key_env` names none)"
        return f"{self._base_url}, model {self._model}, {sent}"


Sessions = tuple[aiohttp.ClientSession, aiohttp.ClientSession]
_MARK = "X-Request-Id"
_ASKED = ("thinking", "headers", "extra_body")  # what a judge's replies depend on
_LONGEST_BODY = 8 * 2**20  # bytes, unpacked; a whole reply with its usage has a few thousand


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return to_bytes(value)
    except ValueError:  # lone surrogates, which UTF-8 cannot hold, are escaped
        return json.dumps(value).encode()


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body. Raises TransientError for one longer than any reply, without reading it whole."""
    try:
        await response.content.readexactly(_LONGEST_BODY + 1)
    except asyncio.IncompleteReadError as body:
        return body.partial
    raise TransientError(f"the body is longer than {_LONGEST_BODY} bytes")
