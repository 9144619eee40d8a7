"""Connections on which nothing, or only half a request, comes: they end, and stop nobody else."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from annotate_case import Running, served, small_study

from judgebench.annotation import server

HALF = b"GET /api/work HTTP/1.1\r\nHost: 127.0"


@contextmanager
def half_open(site: Running, count: int, sent: bytes = HALF) -> Iterator[list[socket.socket]]:
    """So many connections of one address that have sent this and no more."""
    with ExitStack() as opened:
        found = []
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", site.port), timeout=20)
            found.append(opened.enter_context(one))
            one.sendall(sent)
        yield found


def closed(connection: socket.socket, within: float) -> bool:
    """True where the server ends the connection within so many seconds."""
    connection.settimeout(within)
    with suppress(TimeoutError):
        try:
            return connection.recv(100) == b""
        except ConnectionError:
            return True
    return False


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Running]:
    with served(small_study(tmp_path)) as running:
        yield running


@pytest.mark.parametrize("sent", [HALF, b"G", b""], ids=["half a request", "a letter", "nothing"])
def test_64_half_open_connections_stop_nobody(site: Running, sent: bytes) -> None:
    with half_open(site, 64, sent) as slow:
        begun = time.monotonic()
        ann = site.enters("ann")
        event = ann.event("s1", "harm", "yes")
        assert ann.save(event)["saved"] == [event["client_id"]]
        assert time.monotonic() - begun < 1
        assert not closed(slow[0], 0.2)  # it has its time


def test_who_sends_half_a_request_has_so_many_seconds(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 1)
    with half_open(site, 64) as slow:
        begun = time.monotonic()
        assert all(closed(one, 10) for one in slow)
        assert 1 <= time.monotonic() - begun < 6
    assert site.enters("ann").gets("/api/work")["annotator"] == "ann"


def test_a_letter_now_and_then_gives_no_more_time(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 1)
    with half_open(site, 1, b"") as (slow,):
        end = time.monotonic() + 10
        while not closed(slow, 0.1):
            assert time.monotonic() < end
            with suppress(ConnectionError):
                slow.sendall(b"G")


def test_a_kept_connection_waits_longer_for_its_next_request_and_not_for_ever(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(server, "_KEPT_S", 4)
    whole = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n\r\n".encode()
    with half_open(site, 1, whole) as (kept,):
        begun = time.monotonic()
        answer = kept.makefile("rb")
        assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
        kept.sendall(HALF)
        kept.settimeout(20)
        with suppress(ConnectionError):
            answer.read()
        assert 3 < time.monotonic() - begun < 12


def test_of_too_many_that_wait_those_go_whose_time_ends_first(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_WAITING", 8)
    with half_open(site, 8) as first:
        assert not closed(first[0], 2.5)
        with half_open(site, 8) as later:
            assert not closed(first[0], 1)  # who came a moment ago may only not be read yet
            assert all(closed(one, 5) for one in first)
            assert not closed(later[-1], 0.5)
        assert site.enters("ann").gets("/api/work")["annotator"] == "ann"
