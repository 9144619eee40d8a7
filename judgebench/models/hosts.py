"""The machines that a backend contacts: whether they are this one, and whether the keys are set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener, getproxies, proxy_bypass

from judgebench.errors import Problem, SetupError
from judgebench.models import kind_of
from judgebench.models.checkpoint import WEIGHTS, cache_folder
from judgebench.models.settings import BackendSettings

_ALLOWED = (
    "a model in this process whose weights are here, or a server on this machine "
    "(settings.base_url with localhost, 127.0.0.1 or ::1); NO_PROXY keeps its calls from a proxy, "
    "HF_HUB_OFFLINE=1 takes weights from the cache of the hub"
)


def hosts_of(backend: str, settings: BackendSettings) -> list[str]:
    """The hosts that a backend such as `litellm:gpt-4o` contacts, as far as this is known before:
    its endpoint (`127.0.0.1:8000`), the proxy that the environment names for it, and where its
    weights come from, if they are not here. What Python code of the user's own does is not known.
    """
    model = backend.partition(":")[2]
    url = settings.base_url or model.rpartition("@")[2]
    if url.startswith(("http://", "https://")):
        return hosts_at(url)
    kind = kind_of(backend)
    if kind.weights == "any" or (kind.weights and model in WEIGHTS):
        return weights_hosts(model)
    return [f"the provider of {backend}"] if kind.remote else []


def hosts_at(url: str) -> list[str]:
    """The host of a URL, and the proxy that the environment names for it."""
    proxy = proxy_of(url)
    return [host_of(url), *([host_of(proxy)] if proxy else [])]


def weights_hosts(name: str) -> list[str]:
    """The host that weights of this name come from; none where they are here."""
    if Path(name).expanduser().exists():
        return []
    if name in WEIGHTS:
        there = (cache_folder() / "weights" / name).is_dir()
        return [] if there else ["the package index of pip"]
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return []
    return [host_of(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")]


def ray_hosts() -> list[str]:
    """The Ray cluster that the environment names; none where Ray starts on this machine alone."""
    address = os.environ.get("RAY_ADDRESS", "local")
    return [] if address == "local" else [f"the Ray cluster at {address}"]


def host_of(url: str) -> str:
    """`127.0.0.1:8000`: the host of a URL, and its port where it names one."""
    parts = urlsplit(url if "://" in url else f"//{url}")
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:  # no port is that large; whoever opens the URL says so
        return parts.netloc.rpartition("@")[2]
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def is_local(host: str) -> bool:
    """Return whether a host, with or without a port, is this machine by its loopback interface.

    >>> [is_local(host) for host in ("127.0.0.2:80", "[::1]:80", "localhost", "10.0.0.1")]
    [True, True, True, False]
    """
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def check_hosts(hosts: Iterable[str], field: str = "backend") -> None:
    """Raises SetupError where one of these hosts is another machine."""
    if remote := [host for host in hosts if not is_local(host)]:
        message = "contacts another machine, which local-only forbids"
        raise SetupError(Problem(message, field=field, found=", ".join(remote), allowed=_ALLOWED))


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for `url`."""
    parts = urlsplit(url)
    bypassed = proxy_bypass(parts.hostname or "")
    proxy = None if bypassed else getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def unset_keys(backend: str, settings: BackendSettings) -> Iterator[Problem]:
    """The variable that `api_key_env` names, or those that the model's provider reads, where they
    are not set."""
    try:
        settings.api_key()
    except SetupError as error:
        yield from error.problems
    if settings.api_key_env is None and settings.base_url is None:
        for name in kind_of(backend).lacks_keys(backend.partition(":")[2]):
            message = f"the environment variable {name} is not set; or set `api_key_env` to another"
            yield Problem(message, field="settings.api_key_env")


def open_whatever(asked: Request, timeout_s: float) -> Any:
    """The server's answer, be it an error or not. Raises OSError, HTTPException or ValueError."""
    try:
        return build_opener(_NoRedirect).open(asked, timeout=timeout_s)
    except HTTPError as answer:
        return answer


class _NoRedirect(HTTPRedirectHandler):
    """A key is sent to the address that was given and nowhere else."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None
