"""Calls that litellm makes without a network: what it would send is kept, what it gets is given.

So a batch holds, to the byte, what single calls send, and its results are read as theirs are.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from judgebench.backends.batch_api import Sent
from judgebench.backends.chat import Completion, TransientError
from judgebench.errors import SetupError

Call = Callable[[Any], Awaitable[Completion]]  # with the client that it is to use

_OPENAI = "https://api.openai.com/v1"
_KEPT = ("authorization", "x-api-key", "anthropic-", "openai-")  # headers, or how they begin


class Rehearsal:
    """A client of litellm's for a provider that speaks `protocol`: `openai` or `anthropic`."""

    def __init__(self, protocol: str | None, key: str | None, base_url: str | None) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._open(protocol, key, base_url))
        self._sent: Sent | None = None

    async def _open(self, protocol: str | None, key: str | None, base_url: str | None) -> None:
        import httpx

        self._reply = httpx.Response
        self._http = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        self._client: Any
        if protocol == "anthropic":
            from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

            self._client = AsyncHTTPHandler()
            self._client.client = self._http
        else:
            from openai import AsyncOpenAI

            named = (os.environ.get(f"OPENAI_{name}") for name in ("BASE_URL", "API_BASE"))
            url = base_url or next(filter(None, named), _OPENAI)
            key = key or os.environ.get("OPENAI_API_KEY")
            self._client = AsyncOpenAI(
                api_key=key or "none", base_url=url, http_client=self._http, max_retries=0
            )

    def _answer(self, request: Any) -> Any:
        kept = {k: v for k, v in request.headers.items() if k.startswith(_KEPT)}
        self._sent = Sent(str(request.url), kept, request.content)
        status, body = self._given
        return self._reply(status, content=body, headers={"Content-Type": "application/json"})

    def sent(self, call: Call) -> Sent:
        """What a call sends. Raises SetupError where it sends nothing."""
        self._sent = None
        try:
            done = self.outcome(call, 400, b"{}")
        except (SetupError, TransientError) as error:
            if self._sent is None:
                raise SetupError(str(error)) from None
        if self._sent is None:
            raise SetupError(done.error)
        return self._sent

    def outcome(self, call: Call, status: int, body: bytes) -> Completion:
        """What a call comes to that gets this. Raises as the call does."""
        self._given = status, body
        return self._runner.run(_awaited(call, self._client))

    def close(self) -> None:
        """End what litellm began. May be called twice."""
        with suppress(RuntimeError):  # it is being used: the process is about to end
            self._runner.close()


async def _awaited(call: Call, client: Any) -> Completion:
    return await call(client)
