"""A real HTTP server on 127.0.0.1 that speaks chat completions and fails on demand. What is posted
in other protocols (`/v1/messages`, `/v1/responses`, …) is played to as well.

    with Loopback([status(429), said("hello")]) as server:
        ...  # server.base_url, server.bodies, server.peak

The plays of a list are used in turn, the last one again and again; a function of the body and the
call's number chooses freely.
"""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self

from aiohttp import web

from judgebench.models.transport import FEW_WORDS

Body = Mapping[str, Any]
Play = Callable[[web.Request, Body], Awaitable[web.StreamResponse]]
Script = Sequence[Play] | Callable[[Body, int], Play]

PATIENCE = 20.0  # seconds that a test waits for anything at most


def is_few_words(body: Body) -> bool:
    """Return whether this is the request that asks whether a server replies at all."""
    return bool(body["messages"][-1]["content"] == FEW_WORDS[0].content)


def completion(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A body as the chat completions API defines it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def said(text: str | None, finish: str = "stop", after: float = 0.0, **message: Any) -> Play:
    """A whole reply, after some seconds."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        await asyncio.sleep(after)
        return web.json_response(completion(text, finish, **message))

    return play


def echoed(after: float = 0.0) -> Play:
    """The text of the last message, so that replies can be told apart."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        await asyncio.sleep(after)
        return web.json_response(completion(body["messages"][-1]["content"]))

    return play


def raw(body: Any, code: int = 200, **headers: str) -> Play:
    """Any JSON with any status; underscores in names of headers stand for hyphens."""

    async def play(request: web.Request, _: Body) -> web.StreamResponse:
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        return web.json_response(body, status=code, headers=named)

    return play


def wire(body: Any, code: int = 200, **headers: str) -> Play:
    """As `raw`, byte by byte as given: also what no HTTP library would send."""

    async def play(request: web.Request, _: Body) -> web.StreamResponse:
        data = json.dumps(body).encode()
        named = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
        head = f"HTTP/1.1 {code} x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n{named}"
        assert request.transport is not None
        request.transport.write(f"{head}\r\n".encode() + data)
        request.transport.close()
        return web.Response()

    return play


def status(code: int, message: str = "on purpose", **headers: str) -> Play:
    """An error as OpenAI words it."""
    return raw({"error": {"message": message, "type": "test", "code": None}}, code, **headers)


def html(code: int = 200) -> Play:
    """A page in place of JSON, as gateways give."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        text = "<html><body>Bad gateway</body></html>"
        return web.Response(text=text, status=code, content_type="text/html")

    return play


def cut() -> Play:
    """A reply whose connection drops in the middle of the body."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        whole = json.dumps(completion("never seen")).encode()
        response = web.StreamResponse(headers={"Content-Length": str(len(whole))})
        response.content_type = "application/json"
        await response.prepare(request)
        await response.write(whole[: len(whole) // 2])
        assert request.transport is not None
        request.transport.abort()
        return response

    return play


def dropped() -> Play:
    """A connection that drops before anything is said."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return play


def hanging() -> Play:
    """No reply for as long as anybody waits."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        await asyncio.sleep(3 * PATIENCE)
        return web.Response(status=500)

    return play


class InThread:
    """A server that lives in a thread of its own while its block lasts."""

    def __enter__(self) -> Self:
        started: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live(started)))
        self._thread.start()
        started.result(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)


class Loopback(InThread):
    """The server. `bodies` and `headers` record each call; `peak` is the most served at once."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.bodies: list[Body] = []
        self.headers: list[Mapping[str, str]] = []
        self.serving = 0
        self.peak = 0
        self.base_url = ""

    @property
    def connections(self) -> int:
        """How many sockets are open."""
        server = self._runner.server
        return len(server.connections) if server is not None else 0

    async def _live(self, started: Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=1 << 28)
        self._add_routes(app)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        started.set_result(None)
        await self._stop.wait()
        await self._runner.cleanup()

    def _add_routes(self, app: web.Application) -> None:
        for name in ("chat/completions", "messages", "responses", "decisions", "systemone"):
            app.router.add_post(f"/v1/{name}", self._serve)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        count = len(self.bodies)
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        self.serving += 1
        self.peak = max(self.peak, self.serving)
        try:
            return await self._play(body, count)(request, body)
        finally:
            self.serving -= 1

    def _play(self, body: Body, count: int) -> Play:
        if callable(self.script):
            return self.script(body, count)
        return self.script[min(count, len(self.script) - 1)]


def until(condition: Callable[[], bool]) -> bool:
    """Wait, within PATIENCE, for a condition to hold; whether it does."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
