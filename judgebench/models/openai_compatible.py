"""Any server that speaks OpenAI's chat completions over HTTP: vLLM, llama.cpp, a gateway."""

from __future__ import annotations

import json
import os
from collections.abc import (
    AsyncIterator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager
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
    LabelsAsked,
    Reply,
    Request,
)
from judgebench.models.settings import PACE, BackendSettings, proxy_of
from judgebench.models.transport import DEFAULT_WAITS, Attempt, Transport, Waits


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
        return self._transport.stream(self._open, requests)

    def drain(self) -> None:
        self._transport.drain()

    def close(self) -> None:
        self._transport.close()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Attempt]:
        async with self._session(once=True) as once, self._session(once=False) as shared:
            yield partial(self._attempt, _Sessions(once, shared))

    def _session(self, *, once: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.concurrency, force_close=once),
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
            headers={"Content-Type": "application/json", **self._authorization()},
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy_of(self._base_url),
        )

    async def _attempt(self, sessions: _Sessions, request: Request) -> Completion:
        status, raw, after = await self._post(sessions, self._url, self._encoded(request))
        return self._read(status, raw, request.labels_asked, after)

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
        return self._transport.reply(request, self._read(status, body, request.labels_asked))

    def _authorization(self) -> dict[str, str]:
        key = self._settings.api_key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _encoded(self, request: Request) -> bytes:
        """The body as JSON. What a schema adds is long, and the same for many requests: it is
        encoded once."""
        body = _json({"model": self._model, **plain_body(request, self._settings)})
        schema = request.schema
        if schema is None or self._lane == "none":
            return body
        known = self._schemas.get(id(schema))
        if known is None:
            if len(self._schemas) >= _MOST_SCHEMAS:  # of a caller that makes one a request
                self._schemas.clear()
            known = self._schemas[id(schema)] = schema, _json(enforced(schema, self._lane))
        return b"%b,%b" % (body[:-1], known[1][1:])

    def _read(
        self, status: int, raw: bytes, asked: LabelsAsked | None, after: float | None = None
    ) -> Completion:
        body = self._sound(status, raw, after)
        try:
            return body if isinstance(body, Completion) else read_chat(body, asked)
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
