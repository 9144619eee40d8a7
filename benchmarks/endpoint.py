"""A chat-completions endpoint on loopback that answers every call after a fixed delay.

    with Endpoint(delay=0.1) as endpoint:
        ...  # endpoint.base_url, endpoint.counted()

It is a process of its own, on one core, and does as little as HTTP asks for: no framework, a
reply made beforehand, connections kept open, and the request's X-Request-Id repeated in the reply's
`id`, as vLLM does. `Endpoint(reply="MODULE:FUNCTION")` names another
`reply(body: bytes) -> bytes`, from a module that lies beside this one: it is given the body of a
request and returns the text of the message. Two are here: `verdict` and `fitting`.

    python benchmarks/endpoint.py --check  # how many requests a second it can do
    python benchmarks/endpoint.py --delay 0.1 --port 8000  # until standard input ends
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from judgebench.judges.replies import reply_schema
from judgebench.rubric import load_rubric

RUBRIC = "medical-safety"  # 8 metrics
CHARACTERS_A_TOKEN = 4
_PATIENCE_S = 20.0

MakeReply = Callable[[bytes], bytes]


@lru_cache
def whole_verdict() -> bytes:
    """A verdict on all metrics of the rubric: the first label of each."""
    return example(reply_schema("json", load_rubric(RUBRIC)))


def verdict(body: bytes) -> bytes:
    """The same whole verdict, whatever is asked."""
    return whole_verdict()


def fitting(body: bytes) -> bytes:
    """JSON that meets the request's own schema; without one, the whole verdict."""
    asked = json.loads(body).get("response_format") or {}
    schema = (asked.get("json_schema") or {}).get("schema")
    return example(schema) if schema else whole_verdict()


def example(schema: Any) -> bytes:
    """The plainest JSON text that meets a schema of the kinds that evaluators send."""
    return json.dumps(_example(schema, schema.get("$defs", {}))).encode()


def _example(schema: Any, named: Any) -> Any:
    if "$ref" in schema:
        return _example(named[schema["$ref"].rpartition("/")[2]], named)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], named)
    match schema.get("type"):
        case "object":
            return {k: _example(v, named) for k, v in schema.get("properties", {}).items()}
        case "array":
            return [_example(schema["items"], named)]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "text"


@dataclass
class Counted:
    """What the server has been asked. Prompts are counted where `count_prompts` was set.

    `prompt_characters` are those of the messages' texts; `prompt_tokens` are a quarter of them,
    call by call. `cpu_s` is the server's own processor time.
    """

    calls: int = 0
    body_bytes: int = 0
    prompt_characters: int = 0
    prompt_tokens: int = 0
    cpu_s: float = 0.0

    def add(self, body: bytes, count_prompt: bool) -> int:
        """Count a call; the tokens of its prompt, or a fixed number where none are counted."""
        self.calls += 1
        self.body_bytes += len(body)
        if not count_prompt:
            return 1000
        characters = sum(len(_text(m["content"])) for m in json.loads(body)["messages"])
        tokens = -(-characters // CHARACTERS_A_TOKEN)
        self.prompt_characters += characters
        self.prompt_tokens += tokens
        return tokens

    def since(self, earlier: Counted) -> Counted:
        """What came after `earlier`."""
        mine, theirs = asdict(self), asdict(earlier)
        return Counted(**{name: mine[name] - theirs[name] for name in mine})


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


@lru_cache(maxsize=4096)
def _response(text: bytes, prompt_tokens: int) -> bytes:
    """The HTTP response that carries `text`."""
    message = {"role": "assistant", "content": text.decode()}
    reply_tokens = len(text) // CHARACTERS_A_TOKEN
    body = {
        "id": _NO_ID,
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": reply_tokens,
            "total_tokens": prompt_tokens + reply_tokens,
        },
    }
    return _http(json.dumps(body).encode())


def _named(response: bytes, head: bytes) -> bytes:
    """The response with the id of its request, where that has one as long as the usual."""
    found = _ID.search(head)
    return response.replace(_NO_ID.encode(), b"chatcmpl-" + found[1], 1) if found else response


_NO_ID = f"chatcmpl-{'0' * 41}"
_ID = re.compile(rb"\r\nX-Request-Id: *([^\r]{41})(?:\r|$)", re.IGNORECASE)


def _http(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class _Connection(asyncio.Protocol):
    """One client. Requests that came together are answered together, in their order."""

    def __init__(self, counted: Counted, reply: MakeReply, delay: float, prompts: bool) -> None:
        self._counted = counted
        self._reply = reply
        self._delay = delay
        self._prompts = prompts
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self._received += data
        answers = []
        while (whole := self._next()) is not None:
            head, body = whole
            if head.startswith(b"GET"):
                self._counted.cpu_s = time.process_time()
                self._transport.write(_http(json.dumps(asdict(self._counted)).encode()))
            else:
                tokens = self._counted.add(body, self._prompts)
                answers.append(_named(_response(self._reply(body), tokens), head))
        if answers:
            self._loop.call_later(self._delay, self._write, b"".join(answers))

    def _next(self) -> tuple[bytes, bytes] | None:
        """The first request that has come in whole: its head and its body."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._received[:end])
        _, found, after = head.lower().partition(b"content-length:")
        whole = end + 4 + (int(after.partition(b"\r\n")[0]) if found else 0)
        if len(self._received) < whole:
            return None
        body = bytes(self._received[end + 4 : whole])
        del self._received[:whole]
        return head, body

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


async def serve(reply: MakeReply, delay: float, port: int, count_prompts: bool) -> None:
    """Answer until standard input ends; the address is printed first."""
    counted = Counted()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    server = await loop.create_server(
        lambda: _Connection(counted, reply, delay, count_prompts), "127.0.0.1", port, backlog=2048
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    loop.add_reader(sys.stdin, lambda: sys.stdin.readline() or ended.set())
    await ended.wait()


class Endpoint:
    """The server as a process of its own. `delay` is in seconds.

    `count_prompts` parses each body, which costs the server some of its speed.
    """

    base_url: str

    def __init__(
        self, delay: float = 0.1, reply: str = "endpoint:verdict", count_prompts: bool = False
    ) -> None:
        self._arguments = ["--delay", str(delay), "--reply", reply]
        self._arguments += ["--count-prompts"] if count_prompts else []

    def __enter__(self) -> Endpoint:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        if not self.base_url:
            raise RuntimeError(f"the endpoint did not start (exit {self._process.wait()})")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def counted(self) -> Counted:
        """What was asked so far."""
        opener = build_opener(ProxyHandler({}))  # loopback: whatever proxy the environment names
        with opener.open(f"{self.base_url}/count", timeout=_PATIENCE_S) as response:
            return Counted(**json.load(response))


class _Client(asyncio.Protocol):
    """Sends a batch of requests on one connection, and the next when all are answered."""

    def __init__(self, request: bytes, response: int, batches: int, batch: int) -> None:
        self._batch = request * batch
        self._expected = response * batch
        self._left, self._received = batches, 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._batch)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received < self._expected:
            return
        self._received, self._left = 0, self._left - 1
        if self._left:
            self._transport.write(self._batch)
        else:
            self._transport.close()
            self.done.set_result(None)


async def _pipelined(base_url: str, total: int, connections: int, batch: int) -> float:
    """Seconds for `total` requests of 6 kB by a client that hardly costs anything."""
    port = int(base_url.rpartition(":")[2].partition("/")[0])
    body = b'{"messages": [{"role": "user", "content": "' + b"x" * 6000 + b'"}]}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    batches = total // (connections * batch)
    size = len(_response(whole_verdict(), 1000))
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    clients = [
        (
            await loop.create_connection(
                lambda: _Client(request, size, batches, batch), "127.0.0.1", port
            )
        )[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(client.done for client in clients))
    return time.perf_counter() - began


def check(total: int) -> None:
    """Print what the server can do."""
    with Endpoint(delay=0.0) as endpoint:
        print("requests of 6 kB, no delay, one core of the server")
        for batch in (1, 4):
            before = endpoint.counted()
            seconds = asyncio.run(_pipelined(endpoint.base_url, total, 64, batch))
            done = endpoint.counted().since(before)
            print(
                f"  64 connections, {batch} at a time: {done.calls / seconds:8.0f} a second, "
                f"{1000 * done.cpu_s / done.calls:.3f} ms of the server's CPU a request"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--delay", type=float, default=0.1, help="seconds before each answer")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--reply", default="endpoint:verdict", help="MODULE:FUNCTION")
    parser.add_argument("--count-prompts", action="store_true", help="parse and count prompts")
    parser.add_argument("--check", action="store_true", help="print requests a second, and end")
    parser.add_argument("--quick", action="store_true", help="fewer requests for --check")
    arguments = parser.parse_args()
    if arguments.check:
        check(5_120 if arguments.quick else 51_200)
        return
    sys.path.insert(0, str(Path(__file__).parent))
    module, _, name = arguments.reply.partition(":")
    reply = getattr(importlib.import_module(module), name)
    asyncio.run(serve(reply, arguments.delay, arguments.port, arguments.count_prompts))


if __name__ == "__main__":
    main()
