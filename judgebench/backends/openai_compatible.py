"""Any server that speaks OpenAI's chat completions over HTTP: vLLM, llama.cpp, a gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from judgebench.backends.chat import Completion, Lane, UnreadableBodyError, chat_body, read_chat
from judgebench.backends.contract import Reply, Request
from judgebench.backends.settings import PACE, BackendSettings
from judgebench.backends.transport import (
    DEFAULT_WAITS,
    Attempt,
    TransientError,
    Transport,
    UnreachableError,
    Waits,
    error_text,
    failure,
    retry_after,
)
from judgebench.errors import Problem, SetupError


class OpenAICompatible:
    """A Backend over plain HTTP.

    `structured: auto` means `json_schema`, and never anything else: a server that refuses it ends
    the run with a SetupError that says what to set, because a judge whose replies are enforced in
    another way is another judge, and its signature is taken before the first call.
    A key is sent only where `api_key_env` names its variable. Raises SetupError for a base_url
    that is none.
    """

    def __init__(self, model: str, settings: BackendSettings, waits: Waits = DEFAULT_WAITS) -> None:
        self._model = model
        self._settings = settings
        self._base_url = _checked(settings.base_url)
        self._lane: Lane = "json_schema" if settings.structured == "auto" else settings.structured
        self._transport = Transport(settings, waits)

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "openai-compatible",
            "model": self._model,
            "base_url": self._base_url,
            "structured": self._lane,
            "runtime": self._settings.runtime(*PACE),
        }

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        return self._transport.stream(self._open, requests)

    def close(self) -> None:
        self._transport.close()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Attempt]:
        key = self._settings.api_key()
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.concurrency),
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            proxy=_proxy(self._base_url),
        ) as session:
            yield partial(self._attempt, session)

    async def _attempt(self, session: aiohttp.ClientSession, request: Request) -> Completion:
        body = {"model": self._model, **chat_body(request, self._lane)}
        url = f"{self._base_url}/chat/completions"
        try:
            async with session.post(url, json=body, allow_redirects=False) as response:
                raw = await response.read()
        except TimeoutError:
            raise TransientError(f"no reply within {self._settings.timeout_s:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise UnreachableError(f"no server answers at {self._base_url}: {error}") from None
        except aiohttp.ClientError as error:
            raise TransientError(f"the connection broke: {error!r}") from None
        return self._read(response, raw)

    def _read(self, response: aiohttp.ClientResponse, raw: bytes) -> Completion:
        status = response.status
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw.decode(errors="replace")
            if status < 300:
                raise TransientError(f"the body is not JSON: {error_text(body)}") from None
        if status < 300 and isinstance(body, dict) and body.get("error"):
            # Some gateways report an engine's error in a body that came with status 200.
            code = body["error"].get("code") if isinstance(body["error"], dict) else None
            status = code if isinstance(code, int) and code >= 300 else 500
        if status >= 300:
            after = retry_after(response.headers.get("Retry-After"))
            return failure(status, error_text(body), self._about(), self._lane, after)
        try:
            return read_chat(body)
        except UnreadableBodyError as error:
            raise TransientError(str(error)) from None

    def _about(self) -> str:
        key = self._settings.api_key_env
        sent = f"the key in {key}" if key else "no key (api_key_env is not set)"
        return f"{self._base_url}, model {self._model}, {sent}"


def _checked(base_url: str | None) -> str:
    """`base_url` without its last slash. It is shown in errors and reports: no secrets in it."""
    field, allowed = "settings.base_url", "a URL such as http://127.0.0.1:8000/v1"
    if base_url is None:
        raise SetupError(Problem("is needed", field=field, allowed=allowed))
    try:
        url = urlsplit(base_url)
        bare = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        raise SetupError(Problem("is no URL", field=field, allowed=allowed)) from None
    if not bare or url.username or url.password or url.query or url.fragment:
        message = "must be http:// or https:// with a host, and hold no user, password or query"
        raise SetupError(Problem(message, field=field, allowed=allowed))
    return base_url.rstrip("/")


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for `url`."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
