"""An endpoint on 127.0.0.1 that answers every request twice: the second response comes late, on the
same connection, while the next request is on its way, is being answered, or is not yet made.

    with LateServer(late_s=0.02) as server:
        ...  # server.base_url, server.connections
"""

import asyncio
import json
import re
from concurrent.futures import Future
from itertools import count

from loopback import InThread, completion

LATENCY_S = 0.01
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class LateServer(InThread):
    """The server. A reply says what the last message of its request did."""

    def __init__(self, late_s: float) -> None:
        self.late_s = late_s
        self.connections = 0
        self.numbers = count()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def response(self, body: bytes) -> bytes:
        """The bytes of a whole response to that request; none is equal to another."""
        said = completion(json.loads(body)["messages"][-1]["content"])
        content = json.dumps({**said, "id": f"chatcmpl-{next(self.numbers)}"}).encode()
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content

    async def _live(self, started: Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        started.set_result(None)
        await self._stop.wait()
        server.close()


class _Connection(asyncio.Protocol):
    def __init__(self, server: LateServer) -> None:
        self._server, self._received = server, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections += 1

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        size = int(length[1]) if length else 0
        if not end or len(rest) < size:
            return
        body, self._received = rest[:size], rest[size:]
        for after in (0.0, self._server.late_s):
            asyncio.get_running_loop().call_later(LATENCY_S + after, self._send, body)

    def _send(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(self._server.response(body))
