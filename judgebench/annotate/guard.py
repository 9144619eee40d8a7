"""What the server of a study answers at all: to which hosts and origins, and how often."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from judgebench.annotate.store import Role
from judgebench.backends.hosts import is_local
from judgebench.errors import Problem, SetupError

_PORTS = {"http": 80, "https": 443}  # which browsers leave out


class Refused(Exception):
    """A request that gets no more than a sentence. `wait`: the seconds after which to try again."""

    def __init__(self, status: int, message: str, wait: float = 0.0) -> None:
        self.status, self.wait = status, wait
        super().__init__(message)


@dataclass(frozen=True)
class Site:
    """Where browsers find a study. `hosts` and `origins` are all that they may name."""

    address: str
    hosts: frozenset[str]
    origins: frozenset[str]
    behind_proxy: bool

    @classmethod
    def at(cls, host: str, port: int, secure: bool, behind_proxy: str = "") -> Site:
        """The site of a server that listens there; `behind_proxy` is the proxy's own address."""
        scheme = "https" if secure else "http"
        name = "127.0.0.1" if is_local(host) else f"[{host}]" if ":" in host else host.lower()
        hosts = {f"{known}:{port}" for known in ("127.0.0.1", "localhost", "[::1]", name)}
        if port == _PORTS[scheme]:
            hosts |= {known.rpartition(":")[0] for known in hosts}
        address, origins = f"{scheme}://{name}:{port}", {f"{scheme}://{known}" for known in hosts}
        if behind_proxy:
            address = _proxy_address(behind_proxy)
            hosts, origins = hosts | {address.partition("://")[2]}, {address}
        return cls(address, frozenset(hosts), frozenset(origins), bool(behind_proxy))

    @property
    def secure(self) -> bool:
        """Whether browsers come over TLS."""
        return self.address.startswith("https:")

    def cookie(self, role: Role) -> str:
        """The name of the cookie of a session. Cookies know no ports, and one browser may be the
        lead's and an annotator's."""
        prefix = "__Host-" if self.secure else ""
        return f"{prefix}judgebench-{urlsplit(self.address).port or 443}-{role}"

    def client(self, remote: str, forwarded: str) -> str:
        """The address that a request comes from; `forwarded` is the header X-Forwarded-For, whose
        last entry is the proxy's own."""
        return (forwarded.rpartition(",")[2].strip() if self.behind_proxy else "") or remote


def _proxy_address(url: str) -> str:
    """The address as browsers write it. Raises SetupError where it is none."""
    try:
        parts = urlsplit(url.lower())
        port = "" if parts.port in (None, 443) else f":{parts.port}"
        good = parts.scheme == "https" and parts.hostname and not parts.path.strip("/")
        good = good and not (parts.query or parts.fragment or parts.username)
    except ValueError:
        good = False
    if not good:
        message = "is not the address of a proxy"
        raise SetupError(Problem(message, found=url, allowed="such as https://label.hospital.org"))
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"https://{host}{port}"


def check_request(site: Site, method: str, path: str, headers: Mapping[str, str]) -> None:
    """Raises Refused where a request does not come from a page of this site."""
    if headers.get("Host", "").lower() not in site.hosts:
        raise Refused(403, "This server does not answer under that name: use the link as it is.")
    origin = headers.get("Origin")
    if (origin is None and method == "POST") or (origin is not None and origin not in site.origins):
        raise Refused(403, "The request comes from another site.")
    if not path.startswith("/api/"):
        return
    if headers.get("X-Judgebench") != "1":
        raise Refused(403, "The header X-Judgebench: 1 is missing.")
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if method == "POST" and kind != "application/json":
        raise Refused(400, "The header Content-Type must be application/json.")


class Limit:
    """So many at once, and from then on so many a second, for each key.

    Of more than `most` keys, those that were used least recently are forgotten.
    """

    def __init__(
        self, burst: int, per_second: float, most: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._burst, self._per_second, self._most, self._clock = burst, per_second, most, clock
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, key: str) -> None:
        """Count one more. Raises Refused where it is one too many."""
        now = self._clock()
        left, then = self._left.pop(key, (float(self._burst), now))
        left = min(self._burst, left + (now - then) * self._per_second)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > self._most:
            del self._left[next(iter(self._left))]
        if left < 1:
            wait = (1 - left) / self._per_second
            raise Refused(429, f"Too many requests: try again in {wait:.0f} seconds.", wait)
