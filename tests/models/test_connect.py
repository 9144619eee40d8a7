"""The question of `check --connect` against servers that answer as no server should."""

from __future__ import annotations

import socketserver
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from judgebench.models import hosts as connect
from judgebench.models.settings import BackendSettings


@contextmanager
def answering(data: bytes, trickle: bytes = b"") -> Iterator[str]:
    """A server that says this to everybody, and then goes on with `trickle` for ever."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4096)
            with suppress(OSError):
                self.request.sendall(data)
                while trickle:
                    self.request.sendall(trickle)
                    time.sleep(0.05)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def asked(base_url: str) -> str:
    return connect.unreachable(base_url, "m", BackendSettings(base_url=base_url))


def http(body: bytes, status: str = "200 OK", *headers: bytes) -> bytes:
    head = [f"HTTP/1.1 {status}".encode(), b"Connection: close", *headers]
    return b"\r\n".join([*head, b"", body])


def listing(*names: str) -> bytes:
    inner = ",".join(f'{{"id": {name}}}' for name in names)
    return f'{{"data": [{inner}]}}'.encode()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (http(b"[" * 100_000), ""),
        (http(b"\xff\xfe no JSON"), ""),
        (http(b"9" * 5000), ""),
        (http(listing("1", "null", "[" * 500 + "]" * 500, "9" * 400)), ""),
        (http(listing('"m"', '"x"')), ""),
        (http(listing('"' + "x" * 100_000 + '"')), "does not list the model 'm' (it lists xxx"),
        (http(b"[" * 100_000, "500 no"), "answers HTTP 500: [[["),
        (http(b"9" * 5000, "999 no"), "answers HTTP 999: 999"),
        (http(b"{}", "301 no", b"Location: http://127.0.0.1:1/"), "answers HTTP 301: {}"),
        (http(b"{}", "401 no", b"Content-Length: 99"), "answers HTTP 401: "),
        (http(b"{}", "200 OK", b"Content-Length: " + b"9" * 5000), ""),
        (http(b"zz\r\n{}", "500 no", b"Transfer-Encoding: chunked"), "no server answers: "),
        (http(b"zz\r\n{}", "200 OK", b"Transfer-Encoding: chunked"), "no server answers: "),
        (http(b"{}", "200 OK", b"X: " + b"x" * 100_000), "no server answers: "),
        (http(b"{}", "200 OK", *[b"X: x"] * 1000), "no server answers: "),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "no server answers: "),
        (b"HTTP/1.1 " + b"9" * 5000 + b" no\r\n\r\n", "no server answers: "),
        (b"", "no server answers: "),
    ],
)
def test_whatever_a_server_says_is_told_in_one_line(data: bytes, told: str) -> None:
    with answering(data) as base_url:
        fault = asked(base_url)
    assert fault.startswith(told)
    assert bool(fault) is bool(told)
    assert len(fault) < 1200


@pytest.mark.parametrize(
    ("data", "trickle"),
    [(http(b""), b" "), (b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"HTTP/1.1 200 OK\r\nX: ", b"x")],
)
def test_a_server_that_never_ends_is_left(
    monkeypatch: pytest.MonkeyPatch, data: bytes, trickle: bytes
) -> None:
    monkeypatch.setattr(connect, "_PATIENCE_S", 0.3)
    with answering(data, trickle) as base_url:
        assert asked(base_url) == "gives no whole answer within 0.3 s"
