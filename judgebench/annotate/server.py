"""The server of a study: the annotators' page, the lead's page, and what they ask and save.

It opens the study's SQLite file and no other. A label is acknowledged once it is on the disk.
"""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import sqlite3
import ssl
import sys
import time
import traceback
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal, TypeVar

from aiohttp import web
from pydantic import Field as Limits
from pydantic_core import from_json

from judgebench.annotate.folder import LEAD, link_of, served_file
from judgebench.annotate.guard import Limit, Refused, Site, check_request
from judgebench.annotate.screens import PART
from judgebench.annotate.store import ADJUDICATED, Event, Role, Saved, Store
from judgebench.backends.calls import new_event_loop
from judgebench.backends.hosts import is_local
from judgebench.errors import Problem, SetupError
from judgebench.web.page import local_page, page_script
from judgebench.yaml_file import Strict, validate

MOST_TOGETHER = 500  # requests whose events are kept in one transaction
SESSION_S, DEVICE_LINK_S = 30 * 24 * 3600, 15 * 60
_LARGEST, _PATIENCE_S = 1 << 20, 30
_HERE = Path(__file__).parent
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_SENTENCES = {
    404: "There is nothing here.",
    405: "There is nothing here.",
    413: "The request is too large.",
}


class Token(Strict):
    """What enters: the part of a link behind the #."""

    token: Annotated[str, Limits(max_length=100)]


class Events(Strict):
    """What an annotator did, in order."""

    events: Annotated[tuple[Event, ...], Limits(max_length=100)]


class Adjudication(Event):
    """The lead's label where annotators disagree, and why they do."""

    reason: Literal["ambiguous", "guideline gap", "slip", "genuine"]
    at: str = ""


Sent = TypeVar("Sent", bound=Strict)


@dataclass(frozen=True)
class Waiting:
    """Events of one request that are not on the disk yet."""

    session: str
    who: str
    events: Sequence[Event]
    saved: asyncio.Future[Saved]


class Saver:
    """Keeps whatever waits in one transaction, so that many share one writing to the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def save(self, session: str, who: str, events: Sequence[Event]) -> Saved:
        """Returns once the events are on the disk. Raises Refused where the session has ended."""
        saved: asyncio.Future[Saved] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(session, who, events, saved))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())
        return await saved

    async def _write(self) -> None:
        while self._waiting:
            turn, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
            try:
                found = await asyncio.to_thread(self._keep, turn)
            except Exception as error:
                found = [error] * len(turn)
            for waiting, outcome in zip(turn, found, strict=True):
                if waiting.saved.done():  # the request was given up
                    continue
                if isinstance(outcome, Exception):
                    waiting.saved.set_exception(outcome)
                else:
                    waiting.saved.set_result(outcome)

    def _keep(self, turn: Sequence[Waiting]) -> list[Saved | Exception]:
        """The outcome of each; a session may have ended since its request came in."""
        live = [one for one in turn if self._store.who(one.session)]
        saved = dict(
            zip(map(id, live), self._store.save([(o.who, o.events) for o in live]), strict=True)
        )
        return [saved.get(id(one), _no_session()) for one in turn]


def _no_session() -> Refused:
    return Refused(401, "You are not logged in: open the link that you were given, or a new one.")


class Server:
    """One study. It has two connections to its file: who reads does not wait for who writes."""

    def __init__(self, file: Path, site: Site) -> None:
        """Raises SetupError where the file is no study."""
        self.site = site
        self.reading, self.writing = Store(file), Store(file)
        self._saver = Saver(self.writing)
        self._sessions = Limit(300, 50)
        self._entering, self._all_entering = Limit(30, 0.5), Limit(200, 20)

    def close(self) -> None:
        self.reading.close()
        self.writing.close()

    def application(self) -> web.Application:
        """The routes of the study."""
        app = web.Application(middlewares=[self._guarded], client_max_size=_LARGEST)
        app.on_response_prepare.append(_add_headers)
        app.add_routes(
            [
                web.get("/", _page("annotate")),
                web.get("/lead", _page("lead")),
                web.post("/api/enter", self._enter),
                web.post("/api/link", self._link),
                web.post("/api/lead/link", self._link),
                web.post("/api/leave", self._leave),
                web.post("/api/lead/leave", self._leave),
                web.get("/api/work", self._work),
                web.get("/api/screen/{id}", self._screen),
                web.post("/api/events", self._events),
                web.post("/api/lead/adjudicate", self._adjudicate),
            ]
        )
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Refusals and errors are sentences; what is logged holds no token and no label."""
        try:
            check_request(self.site, request.method, request.path, request.headers)
            answer: web.StreamResponse = await handler(request)
            return answer
        except Refused as refused:
            wait = {"Retry-After": str(math.ceil(refused.wait))} if refused.wait else None
            return _json({"error": str(refused)}, refused.status, wait)
        except web.HTTPException as error:
            return _json({"error": _SENTENCES.get(error.status, error.reason)}, error.status)
        except (ConnectionError, web.RequestPayloadError):
            return _json({"error": "The request broke off."}, 400)
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__))
            print(f"{type(error).__name__} in {request.path}\n{where}", file=sys.stderr, flush=True)
            if isinstance(error, sqlite3.OperationalError):
                return _json({"error": "Nothing could be saved just now: try again."}, 503)
            return _json({"error": "Something failed here; the study lead's log has more."}, 500)

    def _session(self, request: web.Request) -> tuple[str, str, Role]:
        """Token, name and role of whoever asks. What is below /api/lead is the lead's and nobody
        else's. Raises Refused."""
        wanted: Role = "lead" if request.path.startswith("/api/lead") else "annotator"
        names = [self.site.cookie(role) for role in (wanted, _OTHER[wanted])]
        sessions = [request.cookies[name] for name in names if name in request.cookies]
        known = [(session, self.reading.who(session)) for session in sessions]
        found = [(session, *who) for session, who in known if who is not None]
        if not found:
            raise _no_session()
        self._sessions.check(found[0][0])
        if found[0][2] != wanted:
            raise Refused(
                403, f"This is for {'the study lead' if wanted == LEAD else 'annotators'}."
            )
        return found[0]

    async def _enter(self, request: web.Request) -> web.Response:
        forwarded = ",".join(request.headers.getall("X-Forwarded-For", []))
        self._entering.check(self.site.client(request.remote or "", forwarded))
        self._all_entering.check("")
        token = (await _sent(request, Token)).token
        session = await asyncio.to_thread(self.writing.enter, token, SESSION_S)
        who = self.reading.who(session) if session else None
        if session is None or who is None:
            raise Refused(401, "This link was used or is too old: ask the lead for a new one.")
        answer = _json({"name": who[0], "role": who[1]})
        answer.set_cookie(
            self.site.cookie(who[1]), session, max_age=SESSION_S, path="/", httponly=True,
            secure=self.site.secure, samesite="Strict",
        )  # fmt: skip
        return answer

    async def _link(self, request: web.Request) -> web.Response:
        _, name, role = self._session(request)
        self._entering.check(f"link of {name}")
        token = await asyncio.to_thread(self.writing.make_link, name, role, DEVICE_LINK_S)
        return _json({"token": token})

    async def _leave(self, request: web.Request) -> web.Response:
        session, _, role = self._session(request)
        await asyncio.to_thread(self.writing.leave, session)
        answer = _json({})
        name, secure = self.site.cookie(role), self.site.secure
        answer.del_cookie(name, path="/", httponly=True, secure=secure, samesite="Strict")
        return answer

    async def _work(self, request: web.Request) -> web.Response:
        _, name, _ = self._session(request)
        meta, screens = self.reading.meta, self.reading.screens
        labels: dict[str, dict[str, str | None]] = {}
        for given in self.reading.given(name):
            labels.setdefault(given.screen, {})[given.field] = given.label
        items = [
            {
                "id": key,
                "state": screens[key].screen.state(labels.get(key, {})),
                "calibration": screens[key].calibration,
            }
            for key in self.reading.assigned(name)
        ]
        done = [str(item["id"]) for item in items if item["state"] == "done"]
        looked = self.reading.milliseconds(name)
        seconds = round(median(looked[name, key] for key in done) / 1000, 1) if done else None
        own = {"annotator": name, "total": len(items), "done": len(done), "items": items}
        said = {key: meta.get(key, "") for key in ("task", "guidelines")}
        study = meta.get("name", "")
        return _json({"study": study, **said, **own, "seconds_per_item": seconds})

    async def _screen(self, request: web.Request) -> web.Response:
        _, name, _ = self._session(request)
        key = request.match_info["id"]
        if key not in self.reading.assigned(name):
            raise Refused(404, "This item is not among yours.")
        screen, given = self.reading.screens[key].screen, self.reading.given(name, key)
        labels = {one.field: one.label for one in given if one.label is not None}
        part = screen.revealed(labels)
        return _json(
            {
                "screen": screen.shown_to(name, self.reading.meta.get("seed", 0), part),
                "hash": screen.hash,
                "labels": {field: label for field, label in labels.items() if field != PART},
                "remark": next((one.remark for one in reversed(given)), ""),
                "part": part,
                "locked": [field.key for field in screen.fields if field.part < part],
            }
        )

    async def _events(self, request: web.Request) -> web.Response:
        session, name, _ = self._session(request)
        events = (await _sent(request, Events)).events
        return _outcome(await self._saver.save(session, name, events))

    async def _adjudicate(self, request: web.Request) -> web.Response:
        session, _, _ = self._session(request)
        sent = await _sent(request, Adjudication)
        event = sent if sent.at else sent.model_copy(update={"at": _now()})
        return _outcome(await self._saver.save(session, ADJUDICATED, [event]))


_OTHER: Mapping[Role, Role] = {"lead": "annotator", "annotator": "lead"}


async def _sent(request: web.Request, model: type[Sent]) -> Sent:
    """What a page sends. Raises Refused, with every problem."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            value = from_json(await request.read(), allow_inf_nan=False)
    except TimeoutError:
        raise Refused(400, "The request came in too slowly.") from None
    except ValueError:
        raise Refused(400, "The request is not JSON.") from None
    try:
        return validate(value, model)
    except SetupError as error:
        raise Refused(400, str(error)) from None


def _outcome(saved: Saved) -> web.Response:
    refused = [{"client_id": key, "why": why} for key, why in saved.refused.items()]
    kept = {"saved": saved.saved, "refused": refused, "state": dict(saved.states)}
    return _json({**kept, "at": _now()})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _json(
    value: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.json_response(value, status=status, headers=headers)


async def _add_headers(request: web.Request, answer: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        answer.headers.setdefault(name, value)
    answer.headers["Server"] = "judgebench"  # aiohttp would tell its version


def _page(name: str) -> Callable[[web.Request], Any]:
    """The handler of a page. It holds nothing of the study, so it is made once."""
    page = _HERE / name
    if page.with_suffix(".html.jinja").is_file():
        html, policy = local_page(page, page_script(page.with_suffix(".js")), {}, connect="'self'")
    else:
        html, policy = "<!doctype html><title>judgebench</title>", "default-src 'none'"

    async def show(request: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
        return web.Response(text=html, content_type="text/html", headers=headers)

    return show


@asynccontextmanager
async def running(
    server: Server, listening: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """The server answers there while this lasts; at the end, what is being saved is finished."""
    # A body that is packed could be a thousand times as large once it is read.
    runner = web.AppRunner(
        server.application(), access_log=None, auto_decompress=False, shutdown_timeout=10
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listening, ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()


def serve(
    study: Path, host: str = "127.0.0.1", port: int = 8765, *,
    tls: tuple[Path, Path | None] | None = None, behind_proxy: str = "", open_lead: bool = False,
) -> None:  # fmt: skip
    """Serve a study until Ctrl-C. Several servers of one study do not harm each other.

    `port` 0 is any that is free; `tls` are the files of a certificate and its key. Raises
    SetupError where the study or the port cannot be opened, and where labels would cross a network
    as clear text: another host than this machine's own needs `tls` or a proxy that has it.
    """
    if not (is_local(host) or tls or behind_proxy):
        message = "would send labels as clear text: give a certificate, or the proxy that has one"
        raise SetupError(Problem(message, field="host", found=host))
    if host in ("0.0.0.0", "::") and not behind_proxy:
        message = "is no name that a browser can open: give the name or address of this machine"
        raise SetupError(Problem(message, field="host", found=host))
    context = _tls(*tls) if tls else None
    with listening(host, port) as bound:
        site = Site.at(host, bound.getsockname()[1], context is not None, behind_proxy)
        with closing(Server(served_file(study), site)) as server:
            server.writing.set(address=site.address)
            print(_said(server, study), flush=True)
            with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(_until_stopped(server, bound, context, open_lead))
    print("Stopped. All labels that were acknowledged are kept.", flush=True)


async def _until_stopped(
    server: Server, listening: socket.socket, tls: ssl.SSLContext | None, open_lead: bool
) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)  # a second one ends at once
        stopped.set()

    with suppress(NotImplementedError):  # Windows, where Ctrl-C cancels this function
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
    async with running(server, listening, tls):
        if open_lead:
            link = link_of(server.writing, LEAD)
            if not await asyncio.to_thread(webbrowser.open, link):
                print(f"No browser can be opened here. The lead's page: {link}", flush=True)
        await stopped.wait()


def listening(host: str, port: int) -> socket.socket:
    """A socket that waits for browsers. Raises SetupError where the address cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot be used: {reason}"
        raise SetupError(Problem(message, field="port", found=f"{host}:{port}")) from None


def _tls(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """Raises SetupError where the files are no certificate and its key."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        message = f"is no certificate with its key: {error.strerror or error}"
        raise SetupError(Problem(message, str(certificate), found=str(key or ""))) from None
    return context


def _said(server: Server, study: Path) -> str:
    """What is printed at the start: the address, who can come in, and how to go on."""
    store, now = server.reading, time.time()
    waiting = store.rows("SELECT DISTINCT name FROM links WHERE used = 0 AND until > ?", now)
    inside = store.rows("SELECT DISTINCT name FROM sessions WHERE until > ?", now)
    has = {row["name"]: "has a link" for row in waiting} | {row["name"]: "is in" for row in inside}
    people = [f"  {name}: {has.get(name, 'needs a link')}" for name in (*store.annotators, LEAD)]
    last = f"A new link: judgebench annotate link {study} NAME. Ctrl-C ends the server."
    return "\n".join([f"Serving {study} at {server.site.address}", *people, last])
