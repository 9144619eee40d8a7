"""What the server of a study answers at all: to which hosts and origins, and how often."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from judgebench.annotation.store import Role
from judgebench.errors import Problem, SetupError
from judgebench.models.hosts import is_local

_PROXY = re.compile(r"(https://(?:[a-z0-9.-]+|\[[0-9a-f:]+\]))(:\d{1,5})?/?")


class Refused(Exception):
    """A request that gets no more than a sentence. `wait`: the seconds after which to try again."""

    def __init__(self, status: int, message: str, wait: float = 0.0) -> None:
        self.status, self.wait = status, wait
        super().__init__(message)


@dataclass(frozen=True)
class Site:
    """Where browsers find a study, and the hosts that they may name for it."""

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
                wrong, allowed = (
                    "is not the address of a proxy",
                    "such as https://label.example.org",
                )
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
        """Whether browsers come over TLS."""
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
            wait = -left / self._per_second
            raise Refused(429, f"Too many requests: try again in {wait:.0f} seconds.", wait)
