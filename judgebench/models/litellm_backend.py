"""The providers that litellm knows, through `litellm.acompletion`."""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.models.chat import (
    Lane,
    TransientError,
    ask_with_less,
    chat_body,
    enforced,
    error_status,
    error_text,
    failure,
    read_chat,
    strict,
    wait_asked_for,
)
from judgebench.models.contract import Reply, Request
from judgebench.models.settings import PACE, BackendSettings, Body
from judgebench.models.transport import DEFAULT_WAITS, FEW_WORDS, Attempt, Backoff, Transport

_MOST_COST = 1_000.0  # US dollars for one call: what is more is no cost
_LOG_PROBABILITIES = frozenset({"logprobs", "top_logprobs"})
_FOR_MINUTES = {"type": "ephemeral"}


class LiteLLM:
    """A Backend over any of litellm's providers; `base_url` sends it to a server of your own.

    `structured: auto` is settled before the first call by what litellm says the provider
    declares (`_declared_lane`), and told by `describe`. Where `base_url` is given, no key is sent
    unless `api_key_env` names its variable, and the cost is unknown unless `price` is given;
    elsewhere litellm finds the provider's usual variable and knows its price.
    Raises SetupError for a model whose provider litellm does not know, and for a base_url that is
    no URL or holds a secret.
    """

    def __init__(
        self, model: str, settings: BackendSettings, waits: Backoff = DEFAULT_WAITS
    ) -> None:
        self._litellm = _litellm()
        self._model, self._settings = model, settings
        if "?" in (settings.checked_base_url() or ""):
            message = "holds a query, which only an openai-compatible backend can send"
            raise SetupError(Problem(message, field="settings.base_url"))
        self._supported = self._supported_parameters()
        self._lane: Lane = (
            self._declared_lane() if settings.structured == "auto" else settings.structured
        )
        self._transport = Transport(settings, waits, f"litellm's {model}")

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "litellm",
            "model": self._model,
            "structured": self._lane,
            "seed_sent": "seed" in self._supported,
            **self._settings.runtime("thinking"),
            "runtime": self._settings.runtime(*PACE),
            **self._settings.runtime("base_url"),
        }

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        return self._transport.stream(self._open, requests)

    def drain(self) -> None:
        self._transport.drain()

    def close(self) -> None:
        self._transport.close()

    def _supported_parameters(self) -> frozenset[str]:
        try:
            _, provider, _, _ = self._litellm.get_llm_provider(
                self._model, api_base=self._settings.base_url
            )
        except self._litellm.BadRequestError:
            message, allowed = (
                "litellm does not know this model's provider",
                "PROVIDER/MODEL, such as ",
            )
            raise SetupError(
                Problem(message, "", None, "backend", self._model, allowed + "openai/NAME")
            ) from None
        self._speaks_openai = bool(self._settings.base_url) and provider == "openai"
        # Claude keeps in its cache what is marked; others cache of their own accord.
        self._caches = provider == "anthropic" and "claude" in self._model
        found = self._litellm.get_supported_openai_params(self._model, custom_llm_provider=provider)
        return frozenset(found or ())

    def _declared_lane(self) -> Lane:
        """The strictest of what is declared. Of a server of the user's own (`base_url`) nothing
        is known, and json_schema is taken, as by the openai-compatible backend."""
        if self._settings.base_url or self._litellm.supports_response_schema(self._model):
            return "json_schema"
        if {"tools", "tool_choice"} <= self._supported:
            return "tool"
        return "json_object" if "response_format" in self._supported else "none"

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Attempt]:
        connector = aiohttp.TCPConnector(limit=self._settings.concurrency, force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            try:
                yield partial(self._attempt, session)
            finally:
                self._forget_clients()

    async def _attempt(self, session: aiohttp.ClientSession, request: Request) -> Reply:
        """One try."""
        body = chat_body(request, settings=self._settings)
        if request.schema is not None:
            body |= enforced(strict(request.schema), self._lane)
        ask = partial(self._ask, session, request)
        if request.messages == FEW_WORDS:
            return await ask_with_less(ask, body, self._about)
        return await ask(body)

    async def _ask(self, session: aiohttp.ClientSession, request: Request, plain: Body) -> Reply:
        body, own_server = self._body(plain), self._settings.base_url
        key = self._settings.api_key() or ("none" if own_server else None)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                response = await self._litellm.acompletion(
                    model=self._model, api_base=own_server, api_key=key,
                    timeout=self._settings.timeout_s, num_retries=0, max_retries=0,
                    shared_session=session, **body,
                )  # fmt: skip
        except TimeoutError:
            raise TransientError(f"no reply within {self._settings.timeout_s:g} s") from None
        except Exception as error:  # litellm raises its own, openai's, httpx's and Python's
            return self._translated(error)
        labels_asked = request.labels_asked if "logprobs" in plain else None
        done = read_chat(response.model_dump(warnings=False), labels_asked)
        return replace(done, cost=self._cost(response))

    def _body(self, plain: Body) -> Body:
        """The body without a seed where the provider takes none (told in `describe`). Any other
        parameter that it does not take is litellm's to refuse."""
        body = {**plain, "messages": [*plain["messages"]]}
        if not self._supported.issuperset(_LOG_PROBABILITIES & body.keys()):
            raise SetupError(
                f"litellm declares no log-probabilities for {self._model}, so its labels have no "
                "probabilities: ask for none, or ask its server by openai-compatible:"
            )
        if "seed" not in self._supported:
            body.pop("seed", None)
        system = body["messages"][0]
        if self._caches and system["role"] == "system":
            marked = {"type": "text", "text": system["content"], "cache_control": _FOR_MINUTES}
            body["messages"][0] = {**system, "content": [marked]}
        if "tools" in body:  # else litellm imports its own tool gateway, which the base lacks
            body["_skip_mcp_handler"] = True
        thinking = self._settings.thinking
        asks = thinking.send if thinking else {}
        if thinking and thinking.budget and not asks and "thinking" in self._supported:
            body["thinking"] = {"type": "enabled", "budget_tokens": thinking.budget}
        if self._speaks_openai:
            # The openai client walks through a schema node by node, and litellm refuses what it
            # does not know of; what stands here is sent as it is, to the same place in the body.
            as_it_is = {"response_format", *asks} & body.keys()
            body["extra_body"] = {name: body.pop(name) for name in as_it_is}
        return body

    def _translated(self, error: Exception) -> Reply:
        status = error_status(getattr(error, "status_code", None))
        if status is None:
            raise TransientError(f"{type(error).__name__}: {_said(error)}")
        after = wait_asked_for(getattr(error, "litellm_response_headers", None) or {})
        return failure(status, _said(error), self._about, after)

    def _cost(self, response: Any) -> float | None:
        if self._settings.base_url:
            return None
        try:
            cost = float(self._litellm.completion_cost(response, model=self._model))
        except Exception:  # a model without a known price, told in several ways
            return None
        return cost if 0 <= cost <= _MOST_COST else None

    @property
    def _about(self) -> str:
        where = self._settings.base_url or "litellm"
        key = self._settings.api_key_env or "the provider's own key variable"
        return f"{where}, model {self._model}, {key}"

    def _forget_clients(self) -> None:
        """Drop what litellm cached for this event loop: a later loop may get the same id."""
        clients = self._litellm.in_memory_llm_clients_cache.cache_dict
        ending = f"-{id(asyncio.get_running_loop())}"
        for key in [k for k in clients if k.endswith(ending)]:
            clients.pop(key, None)


def _said(error: Exception) -> str:
    """litellm's message, with the provider's error code and parameter, which it leaves out."""
    body = getattr(error, "body", None)
    parts = {k: body.get(k) for k in ("code", "param")} if isinstance(body, dict) else {}
    text = str(error).partition("Traceback (most recent call last)")[0]
    return error_text({"message": " ".join(text.split()), **parts})


# At DEBUG these write down what servers say, addresses and headers included: a key may be in it.
_TALKATIVE = ("openai", "httpx", "httpcore")


def _litellm() -> Any:
    """litellm, kept from fetching its lists of prices and headers, from printing, and from using a
    connection again, on which a late second response would be taken for another request's."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    os.environ.setdefault("AIOHTTP_KEEPALIVE_TIMEOUT", "0")  # of sessions that litellm opens itself
    try:
        import litellm
    except ImportError:
        raise MissingExtra("a litellm backend", "providers", "litellm") from None
    litellm.suppress_debug_info = True
    # These say what a server sent, wherever litellm reads a field of another type than expected.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    return litellm
