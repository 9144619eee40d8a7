"""Calls that litellm makes without a network: what it would send is kept, what it gets is given.

So a batch holds, to the byte, what single calls send, and its results are read as theirs are.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from judgebench.errors import SetupError
from judgebench.models.batch_api import Sent
from judgebench.models.chat import Completion, TransientError
from judgebench.models.contract import Request
from judgebench.models.settings import BackendSettings

_OPENAI = "https://api.openai.com/v1"
_JSON = {"Content-Type": "application/json"}
_KEPT = ("authorization", "x-api-key", "anthropic-", "openai-")  # headers, or how they begin


class Rehearsal:
    """What `attempt` comes to with a client of litellm's (`client=`) that has no network, of a
    provider that speaks `protocol`: `openai` or `anthropic`."""

    def __init__(
        self,
        attempt: Callable[..., Coroutine[Any, Any, Completion]],
        protocol: str | None,
        settings: BackendSettings,
    ) -> None:
        import httpx
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
        from openai import AsyncOpenAI

        def answer(request: httpx.Request) -> httpx.Response:
            kept = {k: v for k, v in request.headers.items() if k.startswith(_KEPT)}
            self._sent = [Sent(str(request.url), kept, request.content)]
            status, body = self._given
            return httpx.Response(status, content=body, headers=_JSON)

        self._attempt, self._runner = attempt, asyncio.Runner()
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        self._client: Any = AsyncHTTPHandler()
        self._client.client = http
        if protocol == "openai":
            env, url, key = os.environ, settings.base_url, settings.api_key()
            url = url or env.get("OPENAI_BASE_URL") or env.get("OPENAI_API_BASE") or _OPENAI
            key = key or env.get("OPENAI_API_KEY") or "none"
            self._client = AsyncOpenAI(api_key=key, base_url=url, http_client=http, max_retries=0)

    def sent(self, request: Request) -> Sent:
        """What a call sends. Raises SetupError where it sends nothing."""
        self._sent = list[Sent]()
        try:
            error = self.outcome(request, 400, b"{}").error
        except (SetupError, TransientError) as fault:
            error = str(fault)
        if not self._sent:
            raise SetupError(error)
        return self._sent[0]

    def outcome(self, request: Request, status: int, body: bytes) -> Completion:
        """What a call comes to that gets this. Raises as the call does."""
        self._given = status, body
        return self._runner.run(self._attempt(request, client=self._client))

    def close(self) -> None:
        """End what litellm began. May be called twice."""
        with suppress(RuntimeError):  # it is being used: the process is about to end
            self._runner.close()
