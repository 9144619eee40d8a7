"""Settings of a backend (the keys under `settings:` in a judge's YAML)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from functools import partial
from string import Template
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
)

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.models.secrets import NAMED_LIKE_A_KEY, Secrets
from judgebench.records import Usage

Body = dict[str, Any]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^(?:[ -#%-~]|\$\{[A-Z][A-Z0-9_]*\})+$")]
Structured = Literal["auto", "json_schema", "tool", "json_object", "none"]

PACE = (
    "concurrency", "timeout_s", "max_retries", "requests_per_minute", "tokens_per_minute",
    "down_for_s", "price",
)  # fmt: skip
# What means something to an endpoint, and to an engine inside this process.
REMOTE = frozenset({"base_url", "api_key_env", "structured", "thinking", "max_tokens_as", *PACE})
HTTP = REMOTE | {"headers", "extra_body"}  # of a protocol that is spoken here
DECIDING = HTTP - {"structured", "thinking", "max_tokens_as"}  # of a model that writes nothing
LOCAL = frozenset({"context", "threads", "structured", "concurrency"})

EXTRA_BODY, SEND = "settings.extra_body", "settings.thinking.send"
# The key of a judge's file that settles a parameter of the request; what stands in none of them
# is `settings.extra_body`.
PLACES = {
    "model": "backend",
    # The prompt and what it asks, in the words of all protocols.
    **dict.fromkeys(("messages", "input", "instructions", "prompt", "state"), "prompt"),
    "questions": "rubric",
    **{name: f"decoding.{name}" for name in ("temperature", "top_p", "seed", "max_tokens")},
    "max_output_tokens": "decoding.max_tokens",
    "max_completion_tokens": "settings.max_tokens_as",
    **dict.fromkeys(("response_format", "tools", "tool_choice"), "settings.structured"),
    **dict.fromkeys(("logprobs", "top_logprobs"), "probabilities"),
    **dict.fromkeys(("n", "stream"), "judgebench, which reads one whole reply"),
    **dict.fromkeys(
        ("top_k", "min_p", "stop", "provider", "structured_outputs", "repetition_penalty",
         "presence_penalty", "frequency_penalty", "logit_bias"), EXTRA_BODY,
    ),
}  # fmt: skip


def place_of(name: str) -> str:
    """The key of a judge's file that settles a parameter; empty where none is known to."""
    return PLACES.get(name) or (SEND if _OF_THINKING.search(name) else "")


def _settled_by(allowed: str, body: Body) -> Body:
    """The part of a body. Raises ValueError where it overrides what is settled elsewhere, or holds
    a key."""
    for name in body:
        if (place := place_of(name) or EXTRA_BODY) != allowed:
            raise ValueError(f"{name!r} is settled by {place}")
    try:
        text = json.dumps(body, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("must hold what JSON can (a date or `.nan` in quotes)") from None
    if Secrets().stands_in(text) or _KEY_BY_NAME.search(text):
        raise ValueError("must hold no key: `headers` take one from a variable")
    return body


class Price(BaseModel):
    """US dollars for a million tokens. `cached` is for prompt tokens that the endpoint had in its
    cache; without it they cost what others do."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)

    def cost(self, usage: Usage) -> float | None:
        """US dollars for one call; None where the endpoint did not count its tokens."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        rebate = 0.0 if self.cached is None else self.prompt - self.cached
        prompt = usage.prompt_tokens * self.prompt - (usage.cached_tokens or 0) * rebate
        return (prompt + usage.completion_tokens * self.completion) / 1e6


class Thinking(BaseModel):
    """The thinking of a reasoning model before it replies.

    The limit of a reply is raised by `budget` tokens. `send` holds the parameters of the request
    that ask for thinking, as the endpoint takes them; without any, litellm asks its provider for
    the budget where litellm declares that it takes one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    budget: int = Field(ge=0, le=1_000_000)
    send: Annotated[Body, AfterValidator(partial(_settled_by, SEND))] = {}


class BackendSettings(BaseModel):
    """Each backend takes the ones that mean something to it (`BackendKind.settings`).

    `api_key_env` names the environment variable that holds the key; the key itself never stands
    in a file. `concurrency` counts requests in flight, `timeout_s` bounds one try, from its first
    byte to the last of the reply, and `max_retries` counts tries after the first; one that was
    told to come less often (a 429) is not counted. `tokens_per_minute` counts those of prompts
    and replies: a quarter of the prompt's characters and the reply's bound, until the endpoint
    says how many it were. An endpoint that replies to nobody is only asked a few words, and given
    up when it has answered nothing for `down_for_s`. `context` is in tokens. `structured` says
    how a JSON schema is enforced: by the endpoint (`json_schema`), as the arguments of a forced
    tool call (`tool`), as JSON of any shape (`json_object`), or not at all (`none`).
    `max_tokens_as` is the name under which a request bounds its reply. `headers` are sent with
    each request; `${NAME}` in one is the variable that holds a key. `extra_body` holds what else
    the endpoint takes (`top_k`, `provider`), and nothing that another key settles.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str | None = None
    api_key_env: str | None = None
    concurrency: int = Field(default=16, ge=1, le=1024)
    timeout_s: float = Field(default=120, gt=0)
    max_retries: int = Field(default=5, ge=0, le=20)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    down_for_s: float = Field(default=300, gt=0)
    price: Price | None = None
    structured: Structured = "auto"
    thinking: Thinking | None = None
    max_tokens_as: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    headers: dict[HeaderName, HeaderValue] = {}
    extra_body: Annotated[Body, AfterValidator(partial(_settled_by, EXTRA_BODY))] = {}
    context: int | None = Field(default=None, ge=256)
    threads: int | None = Field(default=None, ge=1)

    @field_validator("headers")
    @classmethod
    def _without_keys(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            variables = Template(value).get_identifiers()
            if _OWN_HEADERS.fullmatch(name):
                raise ValueError(f"{name} is set by judgebench (a key: by `api_key_env`)")
            if any(not NAMED_LIKE_A_KEY.search(variable) for variable in variables):
                raise ValueError(f"{name} takes variables that are named as a key is, as API_KEY")
            is_login = _LOGINS.search(name) or NAMED_LIKE_A_KEY.search(name.replace("-", "_"))
            if (is_login and not variables) or Secrets().stands_in(value):
                raise ValueError(f"{name} must name the variable that holds the key: ${{API_KEY}}")
        return headers

    def check_fits(self, backend: str, allowed: Collection[str]) -> None:
        """Raises SetupError for every setting given that means nothing to `backend`, and for a key
        where its variable's name belongs."""
        given = self.model_dump(exclude_defaults=True)
        problems = [
            Problem(
                f"means nothing to a {backend} backend",
                field=f"settings.{name}",
                allowed=", ".join(sorted(allowed)) or "no settings",
            )
            for name in given
            if name not in allowed
        ]
        # What does not look like a variable's name may be the key itself: never show it.
        name = self.api_key_env
        if name is not None and name not in os.environ and not _VARIABLE.fullmatch(name):
            message = "must be the name of an environment variable that holds the key, and never "
            problems.append(Problem(message + "the key", field="settings.api_key_env"))
        raise_any(problems)

    @property
    def thinking_budget(self) -> int:
        """The tokens that a reply may have besides, to think with."""
        return self.thinking.budget if self.thinking else 0

    def concurrency_or(self, default: int) -> int:
        """`concurrency` where it was given, else what suits the engine."""
        return self.concurrency if "concurrency" in self.model_fields_set else default

    def api_key(self) -> str | None:
        """The key, or None where no variable is named. Raises SetupError where it is not set."""
        return _key(self.api_key_env, "api_key_env") if self.api_key_env else None

    def sent_headers(self) -> dict[str, str]:
        """The headers of a request, with the keys. Raises SetupError where one is not set."""
        key = self.api_key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        for name, value in self.headers.items():
            template = Template(value)
            keys = {k: _key(k, f"headers.{name}") for k in template.get_identifiers()}
            headers[name] = template.substitute(keys)
        return headers

    def checked_base_url(self) -> str | None:
        """`base_url` without the last slash of its path. Raises SetupError where it is no URL, or
        holds a secret, for it is shown in errors and reports."""
        if self.base_url is None:
            return None
        try:
            url = urlsplit(self.base_url)
            is_plain = url.scheme in ("http", "https") and url.hostname and url.port != 0
        except ValueError:
            is_plain = None
        extra = is_plain and (url.username or url.password or url.fragment or ";" in url.path)
        if not is_plain or extra or Secrets(self.api_key_env).stands_in(self.base_url):
            message = "must be http:// or https:// with a host, and hold no user, password or key"
            allowed = "a URL such as http://127.0.0.1:8000/v1"
            raise SetupError(Problem(message, field="settings.base_url", allowed=allowed))
        return url_below(self.base_url, "")

    def runtime(self, *names: str) -> dict[str, Any]:
        """The settings of these names that are set, for the `runtime` part of a description."""
        values = self.model_dump(mode="json", exclude_none=True)
        return {name: values[name] for name in names if values.get(name) not in (None, {})}


def _key(variable: str, setting: str) -> str:
    """The key in a variable of the environment. Raises SetupError where it is not set."""
    key = os.environ.get(variable, "").strip()
    if not (key and key.isascii() and key.isprintable()):
        fault = "holds what no key holds" if key else "is not set or empty"
        problem = f"the environment variable {variable} {fault}"
        raise SetupError(Problem(problem, field=f"settings.{setting}"))
    return key


def url_below(base_url: str, path: str) -> str:
    """The URL of a path below an address; a query of the address stays the end.

    >>> url_below("https://h/v1?api-version=2", "/batches?limit=100")
    'https://h/v1/batches?limit=100&api-version=2'
    """
    address, _, query = base_url.partition("?")
    mark = "&" if "?" in path else "?"
    return f"{address.rstrip('/')}{path}{mark + query if query else ''}"


def host_of(url: str) -> str:
    """`127.0.0.1:8000`: the host of a URL, and its port where it names one."""
    return urlsplit(url if "://" in url else f"//{url}").netloc.rpartition("@")[2].lower()


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for `url`."""
    parts = urlsplit(url)
    bypassed = proxy_bypass(parts.hostname or "")
    proxy = None if bypassed else getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


_OF_THINKING = re.compile(r"reason|think|effort|^chat_template_kwargs$|^output_config$")
_OWN_HEADERS = re.compile("authorization|content-type|content-length|host", re.IGNORECASE)
_LOGINS = re.compile("authorization|cookie", re.IGNORECASE)
_KEY_BY_NAME = re.compile(r'(?:api[-_]?key|secret|password|access[-_]?token)": "', re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,40}")
