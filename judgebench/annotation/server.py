"""The server of a study: the annotators' page, the lead's page, and what they ask and save.

It opens the study's SQLite file and no other. A label is acknowledged once it is on the disk.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import signal
import socket
import sqlite3
import ssl
import sys
import threading
import time
import traceback
import webbrowser
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http import HttpProcessingError
from pydantic import Field as Limits
from pydantic_core import from_json

from judgebench.annotation.store import (
    ADDRESS,
    LEAD,
    MAX_TEXT,
    WEEK,
    Event,
    Reason,
    Role,
    Store,
    link_of,
    role_of,
    served_file,
    snapshot,
)
from judgebench.annotation.store import now as _now
from judgebench.annotation.work import assignment_of, page_of, screen_of, work_of
from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel, validate
from judgebench.models import is_local
from judgebench.models.transport import new_event_loop
from judgebench.records import ADJUDICATED
from judgebench.text import counted

if TYPE_CHECKING:
    from judgebench.annotation.lead import Collected

SESSION_S, DEVICE_LINK_S = 30 * 24 * 3600, 15 * 60
_LARGEST, _PATIENCE_S = 1 << 20, 30  # of a request
_KEPT_S = 75  # a connection without a request is kept open so long for the next one
_MOST_WAITING = 512  # connections that wait for a request: half of what a process may have open
_AT_LEAST_S = 5  # so long each may wait: whole requests that come all at once have their turn
_FIGURES_S = 5  # the lead's figures are computed no more often than that
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PROXY = re.compile(r"(https://(?:[a-z0-9.-]+|\[[0-9a-f:]+\]))(:\d{1,5})?/?")
_WORKER = Path(__file__).with_name("worker.js").read_text("utf-8")
_WORKER_POLICY = "default-src 'none'; connect-src 'self'"
_NO_SESSION = "You are not logged in: open the link that you were given, or a new one."
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


# --- to which hosts and origins the server answers at all, and how often --------------------------


class Refused(Exception):
    """A request that gets no more than a sentence."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True)
class Site:
    """The address of a study, and the hosts that they may name for it."""

    address: str
    hosts: frozenset[str]
    behind_proxy: bool = False

    @classmethod
    def at(cls, host: str, port: int, secure: bool = False, proxy: str = "") -> Site:
        """The site of a server that listens there; `proxy` is the address of one before it.

        Raises SetupError where labels would cross a network as clear text, and where browsers could
        not open the address.
        """
        if proxy:
            found = _PROXY.fullmatch(proxy.lower())
            if not found:
                wrong = "is not the address of a proxy"
                allowed = "such as https://label.example.org"
                raise SetupError(Problem(wrong, found=proxy, allowed=allowed))
            address = found[1] + (found[2] if found[2] not in (None, ":443") else "")
            return cls(address, frozenset([address.removeprefix("https://")]), True)
        if not (secure or is_local(host)):
            wrong = "would send labels as clear text: give a certificate, or the proxy that has one"
            raise SetupError(Problem(wrong, field="host", found=host))
        if host in ("0.0.0.0", "::"):
            wrong = "is nothing that a browser can open: give this machine's name or address"
            raise SetupError(Problem(wrong, field="host", found=host))
        name = "127.0.0.1" if is_local(host) else f"[{host}]" if ":" in host else host.lower()
        names = ("127.0.0.1", "localhost", "[::1]", name)
        hosts = {f"{known}:{port}" for known in names}
        if port == (443 if secure else 80):  # which browsers leave out
            hosts.update(names)
        return cls(f"http{'s' * secure}://{name}:{port}", frozenset(hosts))

    @property
    def secure(self) -> bool:
        """True where browsers come over TLS."""
        return self.address.startswith("https:")

    def cookie(self, role: Role) -> str:
        """The name of a session's cookie. Cookies know no ports, and one browser may be the lead's
        and an annotator's."""
        port = urlsplit(self.address).port or 443
        return f"{'__Host-' * self.secure}judgebench-{port}-{role}"

    def client(self, remote: str, forwarded: str) -> str:
        """The address that a request comes from. Of the header X-Forwarded-For only the last entry
        is the proxy's."""
        return (forwarded.rpartition(",")[2].strip() if self.behind_proxy else "") or remote

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raises Refused where a request does not come from a page of this site."""
        if headers.get("Host", "").lower() not in self.hosts:
            raise Refused(403, "The study is not served under this name: use the link as it is.")
        scheme, origin = self.address.partition("://")[0], headers.get("Origin")
        own = {f"{scheme}://{host}" for host in self.hosts}
        if origin not in own and (method == "POST" or origin is not None):
            raise Refused(403, "The request comes from another site.")
        if path.startswith("/api/") and headers.get("X-Judgebench") != "1":
            raise Refused(403, "The header X-Judgebench: 1 is missing.")
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if method == "POST" and kind != "application/json":
            raise Refused(400, "The header Content-Type must be application/json.")


class Limit:
    """So many at once, and from then on so many a second, for each key. Of more than `most` keys,
    the least recently used are forgotten."""

    def __init__(
        self, burst: float, per_second: float, most: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._burst, self._per_second, self._most, self._clock = burst, per_second, most, clock
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, key: str) -> None:
        """Count one more. Raises Refused where it is one too many."""
        now = self._clock()
        left, then = self._left.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second) - 1
        self._left[key] = (left if left >= 0 else left + 1, now)
        if len(self._left) > self._most:
            del self._left[next(iter(self._left))]
        if left < 0:
            wait = math.ceil(-left / self._per_second)
            raise Refused(429, f"Too many requests: try again in {counted(wait, 'second')}.")


class Connections:
    """Open connections, and the time until which each may wait for its next whole request."""

    def __init__(self) -> None:
        self._until = dict[web.RequestHandler, float]()

    @contextmanager
    def answering(self, connection: web.RequestHandler) -> Iterator[None]:
        """While this lasts, a request came in whole, and the connection does not wait."""
        self._until[connection] = math.inf
        try:
            yield
        finally:
            self._until[connection] = time.monotonic() + _KEPT_S

    def close_idle(self, found: Collection[web.RequestHandler]) -> None:
        """Close those of the open connections that have waited too long and, where too many wait,
        those whose time is over first: who sends half a request keeps nobody else out. Who came a
        moment ago may only not have been read yet."""
        now = time.monotonic()
        self._until = until = {one: self._until.get(one, now + _PATIENCE_S) for one in found}
        waiting = sorted((one for one in found if until[one] < math.inf), key=until.__getitem__)
        for left, one in zip(range(len(waiting), 0, -1), waiting, strict=True):
            crowded = left > _MOST_WAITING and until[one] < now + _PATIENCE_S - _AT_LEAST_S
            if one.transport and (crowded or until[one] < now):
                one.transport.abort()

    async def watch(self, server: web.Server) -> None:
        """Close idle connections every second."""
        while True:
            await asyncio.sleep(1)
            self.close_idle(server.connections)


# --- requests -------------------------------------------------------------------------------------


class Token(StrictModel):
    """The part of a link behind the #, which lets a person in."""

    token: Annotated[str, Limits(max_length=100)]


class Events(StrictModel):
    """The acts of an annotator, in order."""

    events: Annotated[tuple[Event, ...], Limits(max_length=100)]


class PersonAct(StrictModel):
    """What the lead does about an annotator."""

    act: Literal["add", "link", "revoke", "hand_over"]
    name: Annotated[str, Limits(max_length=100)]


class LeadNote(StrictModel):
    """The lead's answer to an annotator about an item, which may be sent back to be labelled
    again."""

    annotator: Annotated[str, Limits(max_length=100)]
    screen: Annotated[str, Limits(max_length=64)]
    text: Annotated[str, Limits(min_length=1, max_length=MAX_TEXT)]
    send_back: bool = False


class Adjudication(Event):
    """The lead's label where annotators disagree, and why they do."""

    reason: Reason
    at: Annotated[str, Limits(max_length=40)] = ""  # in its place comes the server's time


class Caller(NamedTuple):
    """Whoever asks, by the token of a session."""

    token: str
    name: str


Sent = TypeVar("Sent", bound=StrictModel)
Act = Callable[[Caller, Any], Any]  # what is answered to a caller and to what they sent, as JSON


class Server:
    """One study. It has three connections to its file: who reads does not wait for who writes, and
    nobody for the lead's figures."""

    def __init__(self, file: Path, site: Site) -> None:
        """Raises SetupError where the file is no study."""
        self.site = site
        self.reading, self.writing, self._figures = Store(file), Store(file), Store(file)
        self._reading_turn = threading.Lock()
        self.connections = Connections()
        self._collected: Collected | None = None
        self._read_at = -math.inf
        self.log = logging.Logger("served")  # of no other's settings, handlers and levels
        self.log.addHandler(_Kinds())
        self._requests, self._entering = Limit(300, 50), Limit(30, 0.5)

    def close(self) -> None:
        self.reading.close()
        self.writing.close()
        self._figures.close()

    def application(self) -> web.Application:
        """The routes of the study. What is below /api/lead is for the lead alone."""
        posted: dict[str, tuple[Act, type[StrictModel] | None]] = {
            "/api/link": (self._link, None),
            "/api/leave": (self._leave, None), "/api/lead/leave": (self._leave, None),
            "/api/events": (lambda who, sent: self._save(who, who.name, sent.events), Events),
            "/api/lead/adjudicate": (self._adjudicate, Adjudication),
            "/api/lead/note": (self._note, LeadNote),
            "/api/lead/person": (self._person, PersonAct),
        }  # fmt: skip
        read: dict[str, Act] = {
            "/api/work": lambda caller, _: work_of(self.reading, caller.name),
            "/api/assignment": lambda caller, _: assignment_of(self.reading, caller.name),
            "/api/screen/{id}": self._screen,
            "/api/picture/{name}": self._picture, "/api/lead/picture/{name}": self._picture,
            "/api/lead": lambda *_: self._newest().figures,
            "/api/lead/items": lambda *_: self._newest().items,
            "/api/lead/item/{id}": self._item,
            "/api/lead/disagreements": lambda *_: self._newest().disagreements,
            "/api/lead/backup": self._backup,
        }  # fmt: skip
        app = web.Application(middlewares=[self._guarded], client_max_size=_LARGEST)
        app.on_response_prepare.append(_add_headers)
        app.add_routes([
            web.get("/", _static(*page_of("annotate", {}, "'self'"))),
            web.get("/lead", _static(*page_of("lead", {}, "'self'"))),
            web.get("/worker.js", _static(_WORKER, _WORKER_POLICY, "text/javascript")),
            web.post("/api/enter", self._enter),
            *(web.post(path, self._answer(act, model)) for path, (act, model) in posted.items()),
            *(web.get(path, self._answer(act)) for path, act in read.items()),
        ])  # fmt: skip
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refusals and errors are sentences."""
        try:
            self.site.check(request.method, request.path, request.headers)
            with self.connections.answering(request.protocol):
                return await handler(request)
        except Refused as refused:
            return _error(refused.status, str(refused))
        except SetupError as error:
            return _error(400, str(error))
        except web.HTTPException as error:
            return _error(error.status, error.reason)
        except ConnectionError:
            return _error(400, "The request broke off.")
        except web.RequestPayloadError as error:
            self.log.info("", exc_info=error)
            return _error(400, "The request broke off.")
        except Exception as error:
            self.log.error("", exc_info=error)
            if isinstance(error, sqlite3.OperationalError):
                return _error(503, "Nothing could be saved just now: try again.")
            return _error(500, "Something failed here. The study lead finds more in the log.")

    def _caller(self, request: web.Request) -> Caller:
        """Whoever asks. Raises Refused where they may not."""
        role: Role = "lead" if request.path.startswith("/api/lead") else "annotator"
        token = request.cookies.get(self.site.cookie(role), "")
        name = self.reading.who(token)
        if not name or role_of(name) != role:
            raise Refused(401, _NO_SESSION)
        self._requests.check(token)
        return Caller(token, name)

    def _answer(self, act: Act, model: type[StrictModel] | None = None) -> Handler:
        """The handler that answers with what an act says, which a thread computes."""

        async def handle(request: web.Request) -> web.Response:
            caller = self._caller(request)
            sent = await _sent(request, model) if model else request.match_info
            return await asyncio.to_thread(lambda: _to_response(act(caller, sent)))

        return handle

    async def _enter(self, request: web.Request) -> web.Response:
        forwarded = ",".join(request.headers.getall("X-Forwarded-For", []))
        self._entering.check(self.site.client(request.remote or "", forwarded))
        token = (await _sent(request, Token)).token
        session = await asyncio.to_thread(self.writing.enter, token, SESSION_S)
        if session is None:
            raise Refused(401, "This link was used or is too old: ask the lead for a new one.")
        name = self.reading.who(session)
        answer = web.json_response({"name": name, "role": role_of(name)})
        answer.set_cookie(
            self.site.cookie(role_of(name)), session, max_age=SESSION_S, path="/", httponly=True,
            secure=self.site.secure, samesite="Strict",
        )  # fmt: skip
        return answer

    def _link(self, caller: Caller, _: Any) -> Any:
        """A link for another device of whoever asks."""
        self._entering.check(f"link of {caller.name}")
        return {"token": self.writing.make_link(caller.name, DEVICE_LINK_S)}

    def _leave(self, caller: Caller, _: Any) -> None:
        self.writing.leave(caller.token)

    def _screen(self, caller: Caller, path: Mapping[str, str]) -> Any:
        screen = screen_of(self.reading, caller.name, path["id"])
        if screen is None:
            raise Refused(404, "This item is not among yours.")
        return screen

    def _item(self, _: Caller, path: Mapping[str, str]) -> Any:
        if path["id"] not in self.reading.screens:
            raise Refused(404, "There is no such item.")
        return self._newest().item(path["id"])

    def _picture(self, _: Caller, path: Mapping[str, str]) -> web.Response:
        picture = self.reading.picture(path["name"])
        if picture is None:
            raise Refused(404, "There is no such picture.")
        return web.Response(body=picture.content, content_type=picture.kind)

    def _backup(self, *_: Any) -> web.Response:
        """A copy of the study's file as it is now."""
        with snapshot(self.reading.path) as store:
            return web.Response(body=store.to_bytes(), content_type="application/vnd.sqlite3")

    def _note(self, _: Caller, note: LeadNote) -> None:
        """An answer to an annotator, or an item sent back."""
        if note.screen not in self.reading.assigned(note.annotator):
            raise Refused(404, "This item is not among theirs.")
        self.writing.add_note(note.annotator, note.screen, note.text, note.send_back)

    def _person(self, _: Caller, sent: PersonAct) -> Any:
        """What the lead does about an annotator. Who is added, or asks for one, gets a link."""
        from judgebench.annotation.annotators import add_annotator, hand_over

        act, name, token, facts = sent.act, sent.name, "", list[str]()
        if act != "add" and name not in self.reading.annotators:
            raise Refused(404, "Nobody of this name labels here.")
        if act == "revoke":
            self.writing.revoke(name)
        elif act == "hand_over":
            facts = hand_over(self.writing, name)
        else:
            self._entering.check(f"link of {name}")
            facts = add_annotator(self.writing, name) if act == "add" else []
            token = self.writing.make_link(name, WEEK)
        return {"token": token, "facts": facts, "access": self.reading.access}

    def _newest(self) -> Collected:
        """The contents of the study, read on a connection of its own, anew after a while."""
        from judgebench.annotation.lead import Collected

        with self._reading_turn:
            if self._collected is None or time.monotonic() > self._read_at + _FIGURES_S:
                self._collected, self._read_at = Collected(self._figures), time.monotonic()
            return self._collected

    def _adjudicate(self, caller: Caller, sent: Adjudication) -> Any:
        event = sent.model_copy(update={"at": _now("milliseconds")})
        return self._save(caller, ADJUDICATED, [event])

    def _save(self, caller: Caller, who: str, events: Sequence[Event]) -> Any:
        """Keep events, unless the session has ended while they came in."""
        with self.writing.writing():
            if not self.writing.who(caller.token):
                raise Refused(401, _NO_SESSION)
            saved = self.writing.save(who, events)
        return {**asdict(saved), "at": _now("milliseconds")}


def _to_response(value: Any) -> web.Response:
    if isinstance(value, web.Response):
        return value
    return web.json_response(text=json.dumps(value, allow_nan=False))


class _Kinds(logging.Handler):
    """Prints the time, number and kind of what is logged, and nothing that a library says of it:
    that may quote a request, and with it cookies and labels."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        kind = type(error).__name__ if error else f"{record.module}, line {record.lineno}"
        malformed = isinstance(error, HttpProcessingError | web.RequestPayloadError)
        where = [] if malformed or not error else traceback.format_tb(error.__traceback__)
        what = "malformed request" if malformed else "error"
        with suppress(OSError):  # of a full disk; the request is answered
            line = f"{_now('milliseconds')} {what}: {kind}"
            print(line, *where, sep="\n", file=sys.stderr, flush=True)


async def _sent(request: web.Request, model: type[Sent]) -> Sent:
    """The request that a page sends. Raises Refused, with every problem."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return validate(from_json(await request.read(), allow_inf_nan=False), model)
    except TimeoutError:
        raise Refused(400, "The request came in too slowly.") from None
    except ValueError:
        raise Refused(400, "The request is not JSON.") from None


def _error(status: int, sentence: str) -> web.Response:
    return web.json_response({"error": sentence}, status=status)


async def _add_headers(request: web.Request, answer: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        answer.headers.setdefault(name, value)
    answer.headers["Server"] = "judgebench"  # aiohttp would tell its version


def _static(text: str, policy: str, kind: str = "text/html") -> Handler:
    """The handler of a page or a script. It holds nothing of the study, so it is made once."""
    headers = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}

    async def show(request: web.Request) -> web.Response:
        return web.Response(text=text, content_type=kind, headers=headers)

    return show


# --- the process ----------------------------------------------------------------------------------


@asynccontextmanager
async def running(
    server: Server, bound: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """The server answers there while this lasts; at the end, what is being saved is finished."""
    # A body that is packed could be a thousand times as large once it is read.
    runner = web.AppRunner(
        server.application(), access_log=None, auto_decompress=False, shutdown_timeout=10,
        logger=server.log,
    )  # fmt: skip
    await runner.setup()
    assert runner.server
    watch = asyncio.create_task(server.connections.watch(runner.server))
    try:
        await web.SockSite(runner, bound, ssl_context=tls).start()
        yield
    finally:
        watch.cancel()
        await runner.cleanup()


def listening(host: str, port: int) -> socket.socket:
    """A socket that waits for browsers. Raises SetupError where the address cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        message = f"cannot be used: {getattr(error, 'strerror', None) or error}"
        raise SetupError(Problem(message, field="port", found=f"{host}:{port}")) from None


def serve(
    study: Path, host: str = "127.0.0.1", port: int = 8765, *,
    tls: tuple[Path, Path | None] | None = None, proxy: str = "", open_lead: bool = False,
) -> None:  # fmt: skip
    """Serve a study until Ctrl-C. Several servers of one study do each other no harm.

    `port` 0 is any that is free; `tls` are the files of a certificate and its key; `proxy` is the
    address of a proxy with TLS before this server. Raises SetupError where the study or the port
    cannot be opened, or labels would cross a network as clear text.
    """
    context = _tls(*tls) if tls else None
    with listening(host, port) as bound:
        site = Site.at(host, bound.getsockname()[1], context is not None, proxy)
        with closing(Server(served_file(study), site)) as server:
            server.writing.set(address=site.address)
            logging.basicConfig(handlers=server.log.handlers, force=True)  # also what libraries say
            said = _said(server, study)
            link = link_of(server.writing, LEAD) if open_lead else ""
            with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(_until_interrupted(server, bound, context, said, link))
    print("Stopped. All labels that were acknowledged are kept.", flush=True)


async def _until_interrupted(
    server: Server, bound: socket.socket, tls: ssl.SSLContext | None, said: str, link: str
) -> None:
    async with running(server, bound, tls):
        print(said, flush=True)
        if link and not await asyncio.to_thread(webbrowser.open, link):
            print(f"No browser can be opened here. The lead's page: {link}", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            print("Finishing what is being saved. Ctrl-C again stops at once.", flush=True)


def _tls(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Raises SetupError where the files are no certificate and its key."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        wrong = f"is no certificate with its key: {error.strerror or error}"
        raise SetupError(Problem(wrong, str(certificate), found=str(key or ""))) from None
    return context


def _said(server: Server, study: Path) -> str:
    """The text that is printed at the start: the address, who can come in, and how to go on."""
    people = [f"  {name}: {has}" for name, has in server.reading.access.items()]
    if server.site.address != ADDRESS:
        people.append(f"In links that begin with {ADDRESS}, write {server.site.address} instead.")
    last = f"A new link: judgebench annotate link {study} NAME. Ctrl-C ends the server."
    return "\n".join([f"Serving {study} at {server.site.address}", *people, last])
