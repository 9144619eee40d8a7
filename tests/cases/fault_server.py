"""A chat-completions server on 127.0.0.1 that fails by a seeded script known beforehand.

    with FaultServer(seed=1) as server:
        ...  # server.base_url, server.received, server.cut_off, server.deaths

Every request holds the number of its answer (`case-17`). Which fault that answer meets follows
from the seed and the number, and what a call gets from how many replies the answer was sent
before: never from time or from other answers. So the ending of every answer is known beforehand
(`expected`), and so is the number of its calls, except that a call which the dying server cuts
off, or which finds nobody listening, changes nothing and is to be made again.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Literal

from loopback import InThread, completion

from judgebench.records import Status
from judgebench.rubric import Rubric, load_rubric

RUBRIC_NAME = "support-tone"
RUBRIC: Rubric = load_rubric(RUBRIC_NAME)
BIG = 50_000_000  # bytes
OUTAGE_S = 0.1  # how long a dead server is dead

Labels = Mapping[str, str]
Then = Literal["keep", "end", "reset", "hang", "die"]


@dataclass(frozen=True)
class Wire:
    """Bytes to send after some seconds, and what happens to the connection then."""

    data: bytes = b""
    then: Then = "keep"
    after: float = 0.0


@dataclass(frozen=True)
class Act:
    """What one call gets. `means`: the status of a verdict, or None where another try is due."""

    means: Status | None
    play: Callable[[Labels], Wire]


@dataclass(frozen=True)
class Fault:
    """What the calls for one answer get in turn, the last act again and again.

    `weight`: how many of 1,000 answers meet it. `advice` is for the docs.
    """

    name: str
    weight: int
    acts: tuple[Act, ...]
    advice: str


@dataclass(frozen=True)
class Line:
    """One expected line of the store. `exhausted`: every allowed try was made, all in vain."""

    status: Status
    calls: int
    exhausted: bool = False


def expected(fault: Fault, max_retries: int, parse_retries: int) -> list[Line]:
    """The verdicts that an answer under this fault must end in; the last is the one that counts."""
    lines: list[Line] = []
    calls_before = 0
    for _ in range(parse_retries + 1):
        line = _line(fault, calls_before, max_retries)
        lines.append(line)
        calls_before += line.calls
        if line.status is not Status.UNPARSED:
            break
    return lines


def _line(fault: Fault, calls_before: int, max_retries: int) -> Line:
    for calls in range(1, max_retries + 2):
        act = fault.acts[min(calls_before + calls, len(fault.acts)) - 1]
        if act.means is not None:
            return Line(act.means, calls)
    return Line(Status.FAILED, max_retries + 1, exhausted=True)


def labels_of(seed: int, number: int) -> Labels:
    """What the server says of that answer, where it says anything sound."""
    chance = random.Random(f"labels/{seed}/{number}")
    return {metric.id: chance.choice(metric.options) for metric in RUBRIC.metrics}


# What is sent ---------------------------------------------------------------------------------


def http(code: int, body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    """A whole HTTP response; underscores in names of headers stand for hyphens."""
    lines = [f"HTTP/1.1 {code} on purpose", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def reply(text: str | None, finish: str = "stop", **message: object) -> bytes:
    return http(200, json.dumps(completion(text, finish, **message)).encode())


def as_json(labels: Labels) -> str:
    return json.dumps(labels, ensure_ascii=False)


def sound(labels: Labels) -> Wire:
    return Wire(reply(as_json(labels)))


GOOD = Act(Status.OK, sound)


def again(data: bytes, then: Then = "keep") -> Act:
    """Something that another try mends."""
    return Act(None, lambda labels: Wire(data, then))


def error(code: int, message: str = "on purpose", **headers: str) -> bytes:
    body = {"error": {"message": message, "type": "test", "code": None}}
    return http(code, json.dumps(body).encode(), **headers)


def said(means: Status, make: Callable[[Labels], str], finish: str = "stop") -> Act:
    """A whole reply whose text follows from the labels."""
    return Act(means, lambda labels: Wire(reply(make(labels), finish)))


def _changed(labels: Labels, **other: object) -> str:
    return json.dumps({**labels, **other})


def _loosely(labels: Labels) -> str:
    return json.dumps({name: f" {text.upper()}... " for name, text in labels.items()})


def _lacking(labels: Labels) -> str:
    return json.dumps(dict(list(labels.items())[1:]))


def _twice(labels: Labels) -> str:
    return as_json(labels)[:-1] + ', "politeness": "Polite", "politeness": "Impolite"}'


@cache
def _big_body() -> bytes:
    return reply("x" * BIG)


def _not_utf8(labels: Labels) -> Wire:
    body = json.dumps(completion(as_json(labels))).encode()
    return Wire(
        http(200, body.replace(b"Polite", b"\xff\xfePol\xc3\x28ite").replace(b"{", b"{\x80", 1))
    )


HUGE = 10**400


def _with(**parts: object) -> Callable[[Labels], Wire]:
    """A sound reply whose body has other parts too."""
    return lambda labels: Wire(
        http(200, json.dumps({**completion(as_json(labels)), **parts}).encode())
    )


def _opposite(labels: Labels) -> Labels:
    """Another verdict."""
    return {m.id: next(o for o in m.options if o != labels[m.id]) for m in RUBRIC.metrics}


def _tool_call(labels: Labels) -> dict[str, object]:
    function = {"name": "reply", "arguments": as_json(labels)}
    return {"id": "call-1", "type": "function", "function": function}


def _by_calls(*others: Callable[[Labels], Labels]) -> Callable[[Labels], Wire]:
    """The verdict as a tool call, and what others make of it as further calls."""
    return lambda labels: Wire(
        reply(None, "tool_calls", tool_calls=[_tool_call(f(labels)) for f in (dict, *others)])
    )


def _two_choices(labels: Labels) -> Wire:
    first, second = completion(as_json(labels)), completion(as_json(_opposite(labels)))
    second["choices"][0]["index"] = 1
    both = {**first, "choices": [*first["choices"], *second["choices"]]}
    return Wire(http(200, json.dumps(both).encode()))


def _call_beside_content(labels: Labels) -> Wire:
    call = _tool_call(_opposite(labels))
    return Wire(reply(as_json(labels), "tool_calls", tool_calls=[call]))


_PAGE = b"<html><body>Bad gateway</body></html>"
_PAST = "Sun, 06 Nov 1994 08:49:37 GMT"
_WHOLE = reply("never seen")
_HEAD = _WHOLE.index(b"\r\n\r\n") + 4
_ODD_AFTER = ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", "nan", "5\x01")
_CODE = {"error": {"message": "on purpose", "code": HUGE}}
_NOTHING = http(200, json.dumps({**completion("x"), "choices": []}).encode())
_FILTERED = error(400, "The prompt triggered the content management policy")
_TOO_LONG = error(400, "This model's maximum context length is 2048 tokens, you sent 9000")
_NO_RETRY = "Nothing: retried; the verdict is valid."
_FAILED = "Rerun the same command: only answers without a reply are asked."
_RETRIED = "Nothing: asked again (`parse_retries`); both replies are kept."
_UNREAD = "Read `raw` in the verdicts; a stricter `structured` or a larger model may help."
_REFUSED = "Counted separately in every score; another model or provider may judge it."
_ACCEPTED = "Nothing."


def _mended(name: str, weight: int, *acts: Act, advice: str = _NO_RETRY) -> Fault:
    return Fault(name, weight, (*acts, GOOD), advice)


_SLOW = Act(Status.OK, lambda labels: Wire(sound(labels).data, after=0.3))
_HANGS = Act(None, lambda labels: Wire(then="hang"))
_DIES = Act(None, lambda labels: Wire(then="die"))
_WRONG = said(Status.UNPARSED, lambda labels: _changed(labels, politeness="Charming"))
_LACKS = said(Status.UNPARSED, _lacking)
_CUT_TEXT = said(Status.UNPARSED, lambda labels: as_json(labels)[:-12])
_CUT_SHORT = said(Status.UNPARSED, lambda labels: as_json(labels)[:-12], "length")
_DECLINES = said(Status.REFUSED, lambda _: "I'm sorry, but I cannot judge this text.")

FAULTS: tuple[Fault, ...] = (
    _mended("429 with Retry-After in seconds", 15, *[again(error(429, Retry_After="0"))] * 2),
    _mended("429 with Retry-After as a date", 15, again(error(429, Retry_After=_PAST))),
    _mended("429 without Retry-After", 15, *[again(error(429))] * 2),
    _mended("500", 15, again(error(500))),
    _mended("502 with a page of HTML", 15, again(http(502, _PAGE, "text/html"))),
    _mended("503 with Retry-After", 10, again(error(503, Retry_After="0"))),
    _mended("503 twice", 10, *[again(error(503))] * 2),
    Fault("500 for ever", 4, (again(error(500)),), _FAILED),
    Fault("slow first byte", 10, (_SLOW,), _ACCEPTED),
    _mended("no byte within `timeout_s`", 1, _HANGS),
    _mended("connection reset before a reply", 15, again(b"", "reset")),
    _mended("connection reset inside a body", 15, again(_WHOLE[: _HEAD + 40], "reset")),
    _mended("connection closed inside a body", 10, again(_WHOLE[: _HEAD + 40], "end")),
    Fault("connection reset for ever", 4, (again(b"", "reset"),), _FAILED),
    _mended("no HTTP at all", 10, again(b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "end")),
    _mended("body that is not gzip as it says", 10, again(
        http(200, b"never gzip", Content_Encoding="gzip"), "end")),
    _mended("truncated JSON body", 15, again(http(200, _WHOLE[_HEAD:-9]))),
    _mended("error inside a body with status 200", 10, again(
        http(200, b'{"error": {"message": "engine died", "code": 502}}'))),
    _mended("page of HTML with status 200", 15, again(http(200, _PAGE, "text/html"))),
    _mended("empty list of choices", 15, again(_NOTHING)),
    Fault("empty list of choices for ever", 4, (again(_NOTHING),), _FAILED),
    _mended("body that is not UTF-8", 15, Act(None, _not_utf8)),
    _mended("body of 50 MB", 1, Act(None, lambda labels: Wire(_big_body(), "end"))),
    _mended("body of JSON nested 100,000 deep", 5, again(http(200, b"[" * 100_000))),
    _mended("server dies and comes back", 1, _DIES),
    Fault("wrong content type (text/plain)", 15, (Act(Status.OK, lambda labels: Wire(
        http(200, json.dumps(completion(as_json(labels))).encode(), "text/plain"))),), _ACCEPTED),
    _mended("wrong label, then a right one", 15, _WRONG, advice=_RETRIED),
    Fault("wrong label for ever", 10, (_WRONG,), _UNREAD),
    Fault("extra keys", 15, (said(Status.OK, lambda labels: _changed(labels, why="It is.")),),
          _ACCEPTED),
    _mended("missing metric, then a whole reply", 15, _LACKS, advice=_RETRIED),
    Fault("missing metric for ever", 5, (_LACKS,), _UNREAD),
    Fault("labels in another case, with trailing dots", 15, (said(Status.OK, _loosely),),
          _ACCEPTED),
    _mended("a metric with two labels, then a sound reply", 10, said(Status.UNPARSED, _twice),
            advice=_RETRIED),
    _mended("a number where a label belongs, then a sound reply", 10,
            said(Status.UNPARSED, lambda labels: _changed(labels, politeness=1)), advice=_RETRIED),
    _mended("damaged JSON in the reply, then a sound one", 10, _CUT_TEXT, advice=_RETRIED),
    _mended("reply cut by the token limit, then a whole one", 10, _CUT_SHORT, advice=_RETRIED),
    Fault("reply cut by the token limit for ever", 5, (_CUT_SHORT,),
          "Raise `decoding.max_tokens`."),
    Fault("content-filter finish", 15, (said(Status.REFUSED, lambda _: "part of",
          "content_filter"),), _REFUSED),
    Fault("declared refusal", 10, (Act(Status.REFUSED, lambda _: Wire(
        http(200, json.dumps(completion(None, refusal="I cannot judge this.")).encode()))),),
          _REFUSED),
    Fault("refusal in plain words", 15, (_DECLINES,), _REFUSED),
    Fault("prompt refused by a content policy", 10, (Act(Status.REFUSED, lambda _: Wire(
        _FILTERED)),), _REFUSED),
    Fault("prompt longer than the model's context", 10, (Act(Status.SKIPPED, lambda _: Wire(
        _TOO_LONG)),), "Use a model with a longer context; nothing is truncated."),
    Fault("another bad request (400)", 5, (Act(Status.FAILED, lambda _: Wire(
        error(400, "no such character"))),), "Read the verdict's `reason`; " + _FAILED[:1].lower()
        + _FAILED[1:]),
    _mended("429 with a Retry-After that is no time", 10,
            *[again(error(429, Retry_After=value)) for value in _ODD_AFTER]),
    _mended("429 with a Retry-After of 400 digits", 4, again(error(429, Retry_After="9" * 400))),
    _mended("error whose code has 400 digits", 10, again(http(200, json.dumps(_CODE).encode()))),
    _mended("choices that are no list", 10, again(
        http(200, json.dumps({**completion("x"), "choices": {"0": "x"}}).encode()))),
    Fault("usage of 400 digits", 15, (Act(Status.OK, _with(
        usage=dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), HUGE),
        created=HUGE)),), _ACCEPTED),
    Fault("usage below 0", 10, (Act(Status.OK, _with(
        usage=dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), -1))),),
          _ACCEPTED),
    Fault("tool calls that agree", 10, (Act(Status.OK, _by_calls(dict)),), _ACCEPTED),
    _mended("two tool calls that differ, then a sound reply", 10,
            Act(Status.UNPARSED, _by_calls(_opposite)), advice=_RETRIED),
    _mended("two choices that differ, then a sound reply", 10,
            Act(Status.UNPARSED, _two_choices), advice=_RETRIED),
    Fault("a tool call beside content that differs, for ever", 5,
          (Act(Status.UNPARSED, _call_beside_content),), _UNREAD),
    Fault("another model's reply", 10, (Act(Status.OK, _with(model="another")),),
          "The report says so; name a fixed version of the model."),
    _mended("429, then a reset, then a wrong label, then 500", 10, again(error(429)),
            again(b"", "reset"), _WRONG, again(error(500)), advice=_RETRIED),
)  # fmt: skip

HEALTHY = Fault("none", 1000 - sum(f.weight for f in FAULTS), (GOOD,), _ACCEPTED)
_DRAW = [fault for fault in (*FAULTS, HEALTHY) for _ in range(fault.weight)]


class FaultServer(InThread):
    """The server. `received` and `cut_off` count by answer: whole requests, and those of them
    whose connection died with the server before a reply was sent."""

    def __init__(self, seed: int, faults: tuple[Fault, ...] | None = None) -> None:
        self.seed = seed
        self.received: Counter[int] = Counter()
        self.cut_off: Counter[int] = Counter()
        self.deaths = 0
        self._acted: Counter[int] = Counter()
        self._draw = _DRAW if faults is None else faults
        self._connections: set[_Connection] = set()
        self._port = 0

    def fault_of(self, number: int) -> Fault:
        """The fault that this answer meets."""
        return random.Random(f"{self.seed}/{number}").choice(self._draw)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def next_wire(self, number: int) -> Wire:
        """What the answer's next call gets."""
        self.received[number] += 1
        acts = self.fault_of(number).acts
        act = acts[min(self._acted[number], len(acts) - 1)]
        self._acted[number] += 1
        return act.play(labels_of(self.seed, number))

    def undone(self, number: int) -> None:
        """The call was cut off before anything was said: the next gets what it was to get."""
        self.cut_off[number] += 1
        self._acted[number] -= 1

    async def _live(self, started: Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self._listen()
        started.set_result(None)
        await self._stop.wait()
        self._server.close()
        for connection in list(self._connections):
            connection.reset()

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self._port, backlog=1024, reuse_address=True
        )
        self._port = self._server.sockets[0].getsockname()[1]

    def die(self) -> None:
        """Close the listening socket, reset every connection, and listen again a little later."""
        if not self._server.is_serving():
            return
        self.deaths += 1
        self._server.close()
        for connection in list(self._connections):
            connection.die()
        self._loop.call_later(OUTAGE_S, lambda: self._loop.create_task(self._listen()))

    def opened(self, connection: _Connection) -> None:
        self._connections.add(connection)

    def closed(self, connection: _Connection) -> None:
        self._connections.discard(connection)


_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_NUMBER = re.compile(rb"case-(\d+)\b")
_AT_ONCE = struct.pack("ii", 1, 0)  # closing sends a reset and drops what was not sent


class _Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, server: FaultServer) -> None:
        self._server = server
        self._buffer = b""
        self._unanswered: int | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unanswered = None
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _LENGTH.search(self._buffer, 0, head)
        size = int(length[1]) if length else 0
        if len(self._buffer) < head + 4 + size:
            return
        found = _NUMBER.search(self._buffer, head)
        if found is None:  # a few words, which are asked where nobody was answered for a while
            self._buffer = b""
            self._transport.write(http(200, json.dumps(completion("x")).encode()))
            return
        number, self._buffer = int(found[1]), b""
        self._play(number, self._server.next_wire(number))

    def _play(self, number: int, wire: Wire) -> None:
        self._unanswered = number
        if wire.then == "die":
            self._unanswered = None  # its own call is answered by the death
            self._server.die()
        elif wire.after:
            asyncio.get_running_loop().call_later(wire.after, self._send, wire)
        elif wire.then != "hang":
            self._send(wire)

    def _send(self, wire: Wire) -> None:
        if self._unanswered is None or self._transport.is_closing():
            return
        self._unanswered = None
        self._transport.write(wire.data)
        if wire.then == "end":
            self._transport.close()
        elif wire.then == "reset":
            self.reset()

    def reset(self) -> None:
        """Break the connection off with a TCP reset."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()

    def die(self) -> None:
        """The server went: what was asked and not answered is to be asked again."""
        if self._unanswered is not None:
            self._server.undone(self._unanswered)
            self._unanswered = None
        self.reset()
