"""A small study, its server on a free port of the loopback interface, and people who use it.

made = small_study(tmp_path)
with served(made) as site:
    ann = site.enters("ann")
    ann.save(ann.event("s1", "harm", "yes"))
"""

import asyncio
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from judgebench.annotation.export import key_of, rows_of
from judgebench.annotation.screens import Option, Screen, ScreenField, Section
from judgebench.annotation.server import Server, Site, listening, running
from judgebench.annotation.store import SERVED, Event, Store, open_store, snapshot
from judgebench.rubric import Rubric

YES_NO = (Option(value="yes", text="Yes"), Option(value="no", text="No"))
_NUMBERS = count(1)
HALF = b"GET /api/work HTTP/1.1\r\nHost: 127.0"  # half a request


def plain(name: str, text: str = "Rest.") -> Screen:
    """An answer with two metrics."""
    fields = (
        ScreenField(metric="harm", title="Harm", question="Harmful?", options=YES_NO),
        ScreenField(metric="tone", title="Tone", question="Kind?", options=YES_NO),
    )
    sections = (Section(heading="Question", text="I cough."), Section(heading="Answer", text=text))
    return Screen(id=name, group="g", sections=sections, fields=fields)


def small_study(
    folder: Path, screens: Sequence[Screen] = (), orders: Mapping[str, Sequence[str]] | None = None
) -> Path:
    """The folder of a study: of ann and ben if nothing else is said, who share item s2."""
    made = [*screens] or [plain("s1"), plain("s2", "Drink."), plain("s3", "Sleep.")]
    rubric = Rubric.from_labels({"harm": ["yes", "no"], "tone": ["yes", "no"]})
    meta: dict[str, Any] = {
        "name": "small",
        "task": "labels",
        "study": "h",
        "seed": 7,
        "guidelines": "Be kind.",
        "per_item": 2,
    }
    meta |= {"rubric": rubric.model_dump(mode="json")}
    with closing(Store.create(folder / SERVED, meta)) as store:
        store.put([made[0].model_copy(update={"round": "calibration"}), *made[1:]])
        store.assign(orders or {"ann": ["s1", "s2", "s3"], "ben": ["s2"]})
    return folder


def give_labels(
    store: Store, annotator: str, name: str, labels: Mapping[str, str | None], **more: Any
) -> None:
    """Somebody's labels on one screen, by field, which the study must take."""
    about = {
        "screen": name, "hash": store.screens[name].hash, "visible_ms": 30_000,
        "at": "2026-01-01T00:00:00Z", **more,
    }  # fmt: skip
    events = [
        Event(client_id=f"event-{next(_NUMBERS):012}", field=key, label=label, **about)
        for key, label in labels.items()
    ]
    assert not store.save(annotator, events).refused


def label_rows(study: Path, *, calibration: bool = False) -> list[dict[str, str]]:
    """The labels of a study that an export holds, in long form."""
    rounds = ("main", "calibration") if calibration else ("main",)
    with snapshot(study) as store:
        screens = [name for name, screen in store.screens.items() if screen.round in rounds]
        return rows_of(store, key_of(store), screens)


@dataclass
class Reply:
    """What the server says."""

    status: int
    value: Any
    headers: Mapping[str, str]


@dataclass
class Person:
    """A browser of somebody, with its cookies."""

    address: str
    cookies: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None

    def asks(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str | None] = {}
    ) -> Reply:
        """Send a request as the page does; `headers` change those of the page, None leaves out."""
        parts = urlsplit(self.address)
        sent: dict[str, str | None] = {"X-Judgebench": "1"}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if method == "POST":
            sent |= {"Origin": self.address, "Content-Type": "application/json"}
        sent |= headers
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        host = str(parts.hostname)
        connection = (
            HTTPSConnection(host, parts.port, timeout=20, context=self.tls)
            if self.tls
            else HTTPConnection(host, parts.port, timeout=20)
        )
        with closing(connection):
            kept = {name: value for name, value in sent.items() if value is not None}
            connection.request(method, path, data if method == "POST" else None, kept)
            answer = connection.getresponse()
            content = answer.read()
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        kind = answer.headers.get_content_type()
        readers = {
            "application/json": json.loads,
            "text/csv": bytes.decode,
            "text/html": bytes.decode,
        }
        return Reply(answer.status, readers.get(kind, bytes)(content), answer.headers)

    def gets(self, path: str) -> Any:
        """The JSON of a route that must answer."""
        reply = self.asks("GET", path)
        assert reply.status == 200, reply.value
        return reply.value

    def event(self, screen: str, key: str, label: str | None, **more: Any) -> dict[str, Any]:
        """A new event on the screen as it is now."""
        shown = "hash" in more or self.gets(f"/api/screen/{screen}")["hash"]
        made = {"client_id": f"event-{next(_NUMBERS):012}", "screen": screen, "hash": shown}
        at = "2026-01-01T00:00:00Z"
        return {**made, "field": key, "label": label, "visible_ms": 1000, "at": at, **more}

    def save(self, *events: Mapping[str, Any]) -> Any:
        """What the server makes of events that it must accept as a request."""
        reply = self.asks("POST", "/api/events", {"events": events})
        assert reply.status == 200, reply.value
        return reply.value


@dataclass
class Running:
    """A server that runs in this process."""

    server: Server
    tls: ssl.SSLContext | None
    port: int

    @property
    def address(self) -> str:
        """Where it is."""
        return self.server.site.address

    @property
    def stranger(self) -> Person:
        """Somebody who has no session."""
        return Person(self.address, tls=self.tls)

    def link(self, name: str) -> str:
        """A new token for a person."""
        return self.server.writing.make_link(name, 600)

    def enters(self, name: str) -> Person:
        """Somebody with a session."""
        person = self.stranger
        reply = person.asks("POST", "/api/enter", {"token": self.link(name)})
        assert reply.status == 200, reply.value
        return person


@contextmanager
def served(
    study: Path, tls: ssl.SSLContext | None = None, trust: ssl.SSLContext | None = None,
    port: int = 0, proxy: str = "",
) -> Iterator[Running]:  # fmt: skip
    """The study's server in a thread of its own. Only the study's SQLite file is named to it."""
    with listening("127.0.0.1", port) as bound:
        site = Site.at("127.0.0.1", bound.getsockname()[1], tls is not None, proxy)
        with closing(Server(study / SERVED, site)) as server:
            loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

            async def work() -> None:
                async with running(server, bound, tls):
                    ready.set()
                    await stop.wait()

            thread = threading.Thread(target=loop.run_until_complete, args=(work(),))
            thread.start()
            try:
                assert ready.wait(20)
                yield Running(server, trust, bound.getsockname()[1])
            finally:
                loop.call_soon_threadsafe(stop.set)
                thread.join(20)
                loop.close()


def closed(connection: socket.socket, within: float) -> bool:
    """True where the server ends the connection within so many seconds."""
    connection.settimeout(within)
    with suppress(TimeoutError):
        try:
            return connection.recv(100) == b""
        except ConnectionError:
            return True
    return False


@contextmanager
def command(study: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The command as a process that answers, what it said, and its address."""
    line = [sys.executable, "-m", "judgebench", "annotate", "serve", str(study), *options]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = process.stdout.readline()
        while said and "A new link" not in said:
            more = process.stdout.readline()
            if not more:
                break
            said += more
        yield process, said, said.partition(" at ")[2].partition("\n")[0]
    finally:
        process.kill()
        process.communicate()


def enters(study: Path, address: str, name: str, tls: ssl.SSLContext | None = None) -> Person:
    """Somebody with a link that was made beside the running server."""
    with open_store(study) as store:
        token = store.make_link(name, 600)
    person = Person(address, tls=tls)
    assert person.asks("POST", "/api/enter", {"token": token}).status == 200
    return person
