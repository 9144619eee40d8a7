"""`judgebench annotate serve` as a process: how it starts, how it ends, and `kill -9`."""

import multiprocessing
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from annotate_case import Person, command, enters, plain, served, small_study
from malformed import SECRET, malformed

from judgebench.annotation.server import serve
from judgebench.annotation.store import Saved, Store, open_store

PATIENCE = 60
ITEMS = [f"s{n}" for n in range(1, 9)]


def begun(person: Person, body: bytes) -> socket.socket:
    """A request whose body the server now waits for."""
    host, port = person.address.removeprefix("http://").split(":")
    lines = [
        "POST /api/events HTTP/1.1", f"Host: {host}:{port}", f"Origin: {person.address}",
        "X-Judgebench: 1", "Content-Type: application/json", f"Content-Length: {len(body)}",
        "Cookie: " + "; ".join(f"{k}={v}" for k, v in person.cookies.items()),
        "Expect: 100-continue", "Connection: close", "", "",
    ]  # fmt: skip
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
    connection.sendall("\r\n".join(lines).encode())
    assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
    return connection


def test_ctrl_c_ends_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    with command(study, "--port", "0") as (process, said, address):
        assert "ann: needs a link" in said
        assert f"judgebench annotate link {study} NAME" in said
        assert f"In links that begin with http://127.0.0.1:8765, write {address} instead." in said
        with open_store(study) as store:
            assert store.meta["address"] == address
        ann = enters(study, address, "ann")
        ann.save(ann.event("s1", "harm", "yes"))
        process.send_signal(signal.SIGINT)
        assert "Stopped." in process.communicate(timeout=PATIENCE)[0]
        assert process.returncode == 0
    with open_store(study) as store:
        assert store.labels("ann", "s1") == {"harm": "yes"}


def test_what_is_being_saved_when_the_server_ends_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saving, may_go_on, answers = threading.Event(), threading.Event(), list[Any]()

    def slow(store: Store, who: str, events: Sequence[Any]) -> Saved:
        saving.set()
        assert may_go_on.wait(PATIENCE)
        return save(store, who, events)

    with served(small_study(tmp_path)) as site:
        ann, save = site.enters("ann"), Store.save
        event = ann.event("s1", "harm", "yes")
        monkeypatch.setattr(Store, "save", slow)
        request = threading.Thread(target=lambda: answers.append(ann.save(event)))
        request.start()
        assert saving.wait(PATIENCE)
        threading.Timer(0.3, may_go_on.set).start()  # by then the server is ending
    request.join(PATIENCE)
    assert answers[0]["saved"] == [event["client_id"]]
    with open_store(tmp_path) as store:
        assert store.labels("ann", "s1") == {"harm": "yes"}


def test_a_second_ctrl_c_ends_at_once_and_only_the_served_file_was_open(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    (study / "key.json").write_text("the key")
    with command(study, "--port", "0") as (process, _, address):
        ann = enters(study, address, "ann")
        ann.save(ann.event("s1", "harm", "yes"))
        files = Path(f"/proc/{process.pid}/fd")
        if files.is_dir():  # Linux
            opened = {file.resolve() for file in files.iterdir()}
            own = {file.name for file in opened if file.is_relative_to(study.resolve())}
            assert own == {"study.sqlite", "study.sqlite-wal", "study.sqlite-shm"}
        with begun(ann, b"{}") as connection:
            process.send_signal(signal.SIGINT)
            assert "Ctrl-C again" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == -signal.SIGINT
            assert connection.recv(100) == b""
    with open_store(study) as store:
        assert store.labels("ann", "s1") == {"harm": "yes"}


def send(address: str, sent: bytes) -> None:
    """Send these bytes and nothing behind them, and wait until the server closes."""
    host, port = address.removeprefix("http://").split(":")
    at = (host, int(port))
    with socket.create_connection(at, PATIENCE) as connection, suppress(ConnectionError):
        connection.sendall(sent)  # which the server need not read to the end
        connection.shutdown(socket.SHUT_WR)
        connection.makefile("rb").read()


@pytest.mark.parametrize(
    "count", [240, pytest.param(10_000, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_the_log_says_that_malformed_requests_came_and_nothing_of_them(
    tmp_path: Path, count: int
) -> None:
    study = small_study(tmp_path)
    with ThreadPoolExecutor(9) as pool, command(study, "--port", "0") as (process, _, address):
        log = pool.submit(process.stdout.read)
        ann, ben = (enters(study, address, name) for name in ("ann", "ben"))
        (session,) = ann.cookies.values()
        cookie = "; ".join(f"{name}={value}" for name, value in ann.cookies.items())
        sent = [malformed(number, address, cookie) for number in range(count)]
        list(pool.map(lambda one: send(address, one), sent))
        assert ben.save(ben.event("s2", "harm", "yes"))["refused"] == {}
        process.send_signal(signal.SIGINT)
        written = log.result(PATIENCE)
    assert SECRET not in written
    assert not any(session[i : i + 8] in written for i in range(len(session) - 7))
    lines = [line for line in written.splitlines() if " malformed request: " in line]
    assert " error: " not in written
    assert len(lines) > count / 3
    assert len({line.rpartition(": ")[2] for line in lines}) > 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0", "--port", "0"], "clear text"),
        (["--cert", "nothing.pem"], "is no certificate"),
        (["--cert-key", "nothing.pem"], "needs a certificate: --cert"),
        (["--port", "99999"], "cannot be used"),
    ],
)
def test_what_cannot_be_served_is_said(
    call: Any, tmp_path: Path, options: Sequence[str], said: str
) -> None:
    code, _, error = call("annotate", "serve", small_study(tmp_path), *options)
    assert code == 2
    assert said in error


def test_a_used_port_and_a_folder_without_study_are_said(call: Any, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, error = call("annotate", "serve", small_study(tmp_path), "--port", port)
    assert code == 2
    assert f"127.0.0.1:{port}" in error
    code, _, error = call("annotate", "serve", tmp_path / "nothing", "--port", "0")
    assert code == 2
    assert "no such file" in error


# --- TLS --------------------------------------------------------------------------------------


def test_over_tls_a_cookie_is_bound_to_the_host(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the command openssl, to make a certificate")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    line = (
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        f"-keyout {key} -out {certificate} -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(line.split(), check=True, capture_output=True)
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=certificate)
    with served(small_study(tmp_path), own, trusting) as site:
        person = site.stranger
        reply = person.asks("POST", "/api/enter", {"token": site.link("ann")})
        cookie = reply.headers["Set-Cookie"]
        assert cookie.startswith("__Host-judgebench-")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=Strict"} <= set(cookie.split("; "))
        assert "Domain" not in cookie
        assert person.gets("/api/work")["annotator"] == "ann"
        plain_text = {"Origin": site.address.replace("https", "http")}
        assert person.asks("POST", "/api/link", headers=plain_text).status == 403


# --- kill -9 ----------------------------------------------------------------------------------


class Annotator(threading.Thread):
    """Somebody who labels on and on; what was not acknowledged is sent again, as the page does."""

    def __init__(self, person: Person, name: str, seed: int) -> None:
        super().__init__()
        self.person, self.rng, self.prefix = person, random.Random(seed), f"{name}-{seed}".ljust(12)
        self.acknowledged: list[dict[str, Any]] = []
        self.refused: list[Any] = []
        self.stopping = False

    def run(self) -> None:
        while not self.stopping:
            events = [self.event(n) for n in range(self.rng.randint(1, 4))]
            while not self.sent(events):
                time.sleep(0.005)

    def event(self, place: int) -> dict[str, Any]:
        item, number = self.rng.choice(ITEMS), len(self.acknowledged) + place
        return {
            "client_id": f"{self.prefix}-{number:08}".replace(" ", "-"), "screen": item,
            "hash": plain(item).hash, "field": self.rng.choice(("harm", "tone")),
            "label": self.rng.choice(("yes", "no", "", None)), "at": "2026-01-01T00:00:00Z",
        }  # fmt: skip

    def sent(self, events: list[dict[str, Any]]) -> bool:
        try:
            reply = self.person.asks("POST", "/api/events", {"events": events})
        except (OSError, HTTPException):  # killed, or not there yet
            return False
        if reply.status == 429:
            return False
        self.refused += reply.value.get("refused", [reply.value])  # adds client ids
        self.acknowledged += events
        return True


def free_port() -> int:
    """A port that no other program is given by chance while the server is down."""
    while True:
        port = random.randint(20_000, 30_000)
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)):
                return port


FRESH = multiprocessing.get_context("forkserver")
FRESH.set_forkserver_preload(["judgebench.annotation.server"])


def forked(study: Path, port: int) -> Callable[[], None]:
    """Start a clean process that has made its imports; what is returned kills it."""
    process = FRESH.Process(target=serve, args=(study, "127.0.0.1", port))
    process.start()
    return lambda: (process.kill(), process.join())[1]


def whole_command(study: Path, port: int) -> Callable[[], None]:
    """Start the command; what is returned kills it."""
    line = ["annotate", "serve", str(study), "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "judgebench", *line], stdout=subprocess.DEVNULL
    )
    return lambda: (process.kill(), process.wait())[0]


@pytest.mark.parametrize(
    ("start", "kills"),
    [(forked, 3), pytest.param(whole_command, 50, marks=pytest.mark.long)],
)
def test_kill_at_random_moments(
    tmp_path: Path, start: Callable[[Path, int], Callable[[], None]], kills: int
) -> None:
    """No label that was acknowledged is lost, and none is kept twice."""
    orders = {"ann": ITEMS, "ben": ITEMS}
    study, port = small_study(tmp_path, [*map(plain, ITEMS)], orders), free_port()
    address = f"http://127.0.0.1:{port}"
    people = []
    with open_store(study) as store:
        for seed, name in enumerate(orders):
            session = store.enter(store.make_link(name, 600), 600)
            cookies = {f"judgebench-{port}-annotator": str(session)}
            people.append(Annotator(Person(address, cookies), name, seed))
    for person in people:
        person.start()
    for kill in range(kills + 1):
        before = [len(person.acknowledged) for person in people]
        end = start(study, port)
        deadline = time.monotonic() + PATIENCE
        while any(len(p.acknowledged) == n for p, n in zip(people, before, strict=True)):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.1))
        if kill == kills:
            for person in people:
                person.stopping = True
            for person in people:
                person.join()
        end()
    with open_store(study) as store:
        for person, name in zip(people, orders, strict=True):
            assert not person.refused
            rows = store.rows("SELECT * FROM events WHERE annotator = ? ORDER BY n", name)
            acknowledged = [(e["client_id"], e["field"], e["label"]) for e in person.acknowledged]
            assert [(r["client_id"], r["field"], r["label"]) for r in rows] == acknowledged
            latest = {(e["screen"], e["field"]): e["label"] for e in person.acknowledged}
            assert {(g.screen, g.field): g.label for g in store.given(name)} == latest


# --- backup -----------------------------------------------------------------------------------


def test_a_backup_under_load_opens_and_holds_every_acknowledged_label(tmp_path: Path) -> None:
    orders = {"ann": ITEMS, "ben": ITEMS}
    study = small_study(tmp_path / "study", [*map(plain, ITEMS)], orders)
    with served(study) as site:
        lead = site.enters("lead")
        people = [Annotator(site.enters(name), name, n) for n, name in enumerate(orders)]
        for person in people:
            person.start()
        try:
            for n in range(3):
                time.sleep(0.3)
                before = [list(person.acknowledged) for person in people]
                file = tmp_path / f"{n}.sqlite"
                file.write_bytes(lead.asks("GET", "/api/lead/backup").value)
                with open_store(file) as store:
                    rows = store.rows("SELECT client_id FROM events")
                kept = [row["client_id"] for row in rows]
                assert {e["client_id"] for own in before for e in own} <= {*kept}
        finally:
            for person in people:
                person.stopping = True
            for person in people:
                person.join()
    assert min(len(person.acknowledged) for person in people) > 2
    (file := tmp_path / "served/study.sqlite").parent.mkdir()
    shutil.copy(tmp_path / "2.sqlite", file)
    with served(tmp_path) as site:  # it goes on from there
        ann = site.enters("ann")
        event = ann.event("s1", "harm", "yes")
        assert ann.save(event)["saved"] == [event["client_id"]]
