"""Backends: the border to other people's engines. Requests in, replies out (`contract.py`)."""

from __future__ import annotations

from judgebench.backends.contract import Backend
from judgebench.backends.settings import ALLOWED, BackendSettings
from judgebench.errors import Problem, SetupError
from judgebench.shipped import at_home

_SPELLINGS = (
    "litellm:MODEL, openai-compatible:MODEL (with settings.base_url, or MODEL@http://HOST/v1), "
    "vllm:MODEL, transformers:MODEL, llamacpp:smollm2, llamacpp:PATH.gguf, "
    "llamacpp:hub:OWNER/NAME/FILE.gguf, scripted:PATH.jsonl"
)


def open_backend(spec: str, settings: BackendSettings | None = None) -> Backend:
    """The backend that `spec` names, such as `litellm:gpt-4o` or `llamacpp:smollm2`.

    Raises SetupError for an unknown or empty spec and for settings that mean nothing to it,
    MissingExtra where its package is not installed.
    """
    settings = settings or BackendSettings()
    kind, model = split_spec(spec)
    settings.check_fits(kind)
    match kind:
        case "litellm":
            from judgebench.backends.litellm_backend import LiteLLM

            return LiteLLM(model, settings)
        case "openai-compatible":
            from judgebench.backends.openai_compatible import OpenAICompatible

            return OpenAICompatible(*_split_address(model, settings))
        case "vllm":
            from judgebench.backends.vllm_backend import open_vllm

            return open_vllm(model, settings)
        case "transformers":
            from judgebench.backends.transformers_backend import open_transformers

            return open_transformers(model, settings)
        case "llamacpp":
            from judgebench.backends.llamacpp import LlamaCpp

            return LlamaCpp(model, settings)
        case _:
            from judgebench.backends.scripted import Scripted

            return Scripted.from_file(at_home(model))


def split_spec(spec: str) -> tuple[str, str]:
    """`llamacpp:smollm2` as ("llamacpp", "smollm2"). Raises SetupError for what is no backend."""
    kind, _, model = spec.partition(":")
    if kind not in ALLOWED or not model:
        raise SetupError(Problem("is no backend", field="backend", found=spec, allowed=_SPELLINGS))
    return kind, model


def _split_address(model: str, settings: BackendSettings) -> tuple[str, BackendSettings]:
    """`MODEL@http://…` as MODEL and settings that hold the address."""
    name, at, address = model.rpartition("@")
    if not at or not address.startswith(("http://", "https://")):
        return model, settings
    if settings.base_url not in (None, address):
        raise SetupError(
            Problem("names another address than the backend does", field="settings.base_url")
        )
    return name, settings.model_copy(update={"base_url": address})
