"""A real nginx with the configuration of the documentation, and the container's command."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from annotate_case import HALF, Person, closed, small_study

from judgebench.annotation.store import SERVED, open_store

REPO = Path(__file__).resolve().parents[2]
CONTAINER = (REPO / "examples/annotate/Containerfile").read_text("utf-8")
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
NOBODY = 10001  # the user of the container
_AROUND = """
daemon off; pid nginx.pid; error_log error.log;
events { worker_connections 512; }
http { access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f;
uwsgi_temp_path u; scgi_temp_path s;
"""
needs_nginx = pytest.mark.skipif(
    NGINX is None or shutil.which("openssl") is None, reason="needs nginx and openssl"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def container_command(study: Path) -> list[str]:
    """The container's command for a study that lies elsewhere, on this machine alone, without the
    address of the proxy."""
    (found,) = re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)
    here = {"/study/study.sqlite": str(study / SERVED), "0.0.0.0": "127.0.0.1"}
    words = [str(word) for word in json.loads(found)]
    assert here.keys() <= {*words}
    return [sys.executable, "-m", *(here.get(word, word) for word in words)]


@contextmanager
def ended(command: Sequence[object], cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended by its id."""
    line = [str(word) for word in command]
    process = subprocess.Popen(line, cwd=cwd, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=20)


@dataclass
class Behind:
    """A study behind nginx."""

    study: Path
    address: str
    port: int
    trust: ssl.SSLContext

    def enters(self, name: str) -> Person:
        with open_store(self.study) as store:
            token = store.make_link(name, 600)
        person = Person(self.address, tls=self.trust)
        assert person.asks("POST", "/api/enter", {"token": token}).status == 200
        return person


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    """The server block of docs/annotate.md with other ports, and the container's command."""
    folder = tmp_path_factory.mktemp("proxy")
    study, port, own = small_study(folder / "study"), free_port(), free_port()
    line = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -keyout label.key -out label.pem -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(line.split(), cwd=folder, check=True, capture_output=True)
    page = (REPO / "docs/annotate.md").read_text("utf-8")
    (block,) = re.findall(r"```nginx\n(.*?)```", page, re.DOTALL)
    for before, after in {
        "listen 443": f"listen 127.0.0.1:{port}", "label.example.org": "127.0.0.1",
        "/etc/ssl/": f"{folder}/", "127.0.0.1:8765": f"127.0.0.1:{own}",
        "Host $host;": "Host $http_host;",
    }.items():  # fmt: skip
        assert before in block
        block = block.replace(before, after)
    (folder / "nginx.conf").write_text(f"{_AROUND}{block}}}")
    address = f"https://127.0.0.1:{port}"
    serve = [*container_command(study), address, "--port", own]
    trust = ssl.create_default_context(cafile=folder / "label.pem")
    with (
        ended([NGINX, "-p", folder, "-c", folder / "nginx.conf"], folder),
        ended(serve, folder) as server,
    ):
        assert address in server.stdout.readline()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                if Person(address, tls=trust).asks("GET", "/").status == 200:
                    break
            except OSError:
                time.sleep(0.1)
        yield Behind(study, address, port, trust)


@needs_nginx
def test_labels_are_saved_through_the_documented_proxy(behind: Behind) -> None:
    ann = behind.enters("ann")
    assert next(iter(ann.cookies)).startswith("__Host-judgebench-")
    event = ann.event("s1", "harm", "yes")
    assert ann.save(event)["saved"] == [event["client_id"]]
    other = ann.asks("GET", "/api/work", headers={"Host": "evil.example"})
    assert other.status == 403
    too_large = ann.asks("POST", "/api/events", b" " * (1 << 20) + b"{}")
    assert too_large.status == 413


@needs_nginx
def test_half_requests_to_the_proxy_stop_nobody(behind: Behind) -> None:
    slow = [socket.create_connection(("127.0.0.1", behind.port)) for _ in range(64)]
    wrapped = [behind.trust.wrap_socket(one, server_hostname="127.0.0.1") for one in slow[:32]]
    for one in wrapped:
        one.sendall(HALF)
    begun = time.monotonic()
    ann = behind.enters("ann")
    assert ann.save(ann.event("s1", "tone", "no"))["refused"] == {}
    assert time.monotonic() - begun < 1
    assert not closed(slow[-1], 0.1)
    for one in (*wrapped, *slow[32:]):
        one.close()


@needs_nginx
def test_guesses_are_counted_by_the_address_that_the_proxy_adds(behind: Behind) -> None:
    stranger = Person(behind.address, tls=behind.trust)
    said = [
        stranger.asks("POST", "/api/enter", {"token": f"{n}"}, {"X-Forwarded-For": f"10.0.0.{n}"})
        for n in range(40)
    ]
    assert said[-1].status == 429


# --- the container ----------------------------------------------------------------------------


def test_the_container_has_no_rights_and_sees_no_key() -> None:
    lines = [line for line in CONTAINER.splitlines() if line and not line.startswith("#")]
    steps = [line.split(maxsplit=1) for line in lines]
    known = ["FROM", "RUN", "USER", "WORKDIR", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"]
    assert [step for step, _ in steps] == known
    about = dict(steps)
    assert about["USER"] == f"{NOBODY}:{NOBODY}"
    assert about["STOPSIGNAL"] == "SIGINT"  # which ends the server after what is being saved
    assert json.loads(about["CMD"]) == ["https://label.example.org"]
    assert "/served:/study " in CONTAINER
    assert "-p 127.0.0.1:8765:8765" in CONTAINER


@pytest.mark.skipif(
    not shutil.which("setpriv") or os.geteuid() != 0, reason="needs root, to give up its rights"
)
def test_the_containers_command_runs_as_a_user_without_rights(tmp_path: Path) -> None:
    study, port = small_study(tmp_path / "study"), free_port()
    for path in (study / SERVED, (study / SERVED).parent):
        os.chown(path, NOBODY, NOBODY)
    ours = [path for path in (tmp_path, *tmp_path.parents) if "pytest-" in str(path)]
    for path in ours:  # pytest's folders are for their owner alone
        path.chmod(0o711)
    rights = f"--reuid {NOBODY} --regid {NOBODY} --clear-groups --no-new-privs --bounding-set -all"
    reads = f"import judgebench; open({str(study / SERVED)!r}).close()"
    if subprocess.run(["setpriv", *rights.split(), sys.executable, "-c", reads], cwd=tmp_path,
                      capture_output=True, check=False).returncode:  # fmt: skip
        pytest.skip("another user can read neither this checkout nor the folder of temporary files")
    serve = [*container_command(study), "https://label.example.org", "--port", port]
    with ended(["setpriv", *rights.split(), *serve], tmp_path) as process:
        assert "label.example.org" in process.stdout.readline()
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(rf"^Uid:\s+{NOBODY}\s", status, re.MULTILINE)
        assert re.search(r"^CapBnd:\s+0+$", status, re.MULTILINE)
        host = {"Host": "label.example.org"}
        here = Person(f"http://127.0.0.1:{port}")
        assert here.asks("GET", "/", headers=host).status == 200
