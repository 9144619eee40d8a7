"""Settings of a backend (the keys under `settings:` in a judge's YAML)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.models.secrets import Secrets
from judgebench.records import Usage

Structured = Literal["auto", "json_schema", "tool", "json_object", "none"]

PACE = (
    "concurrency", "timeout_s", "max_retries", "requests_per_minute", "tokens_per_minute",
    "down_for_s", "price",
)  # fmt: skip
# What means something to an endpoint, and to an engine inside this process.
REMOTE = frozenset({"base_url", "api_key_env", "structured", "thinking", "max_tokens_as", *PACE})
LOCAL = frozenset({"context", "threads", "structured", "concurrency"})


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
    send: dict[str, Any] = Field(default_factory=dict)

    @field_validator("send")
    @classmethod
    def _asks_for_thinking(cls, send: dict[str, Any]) -> dict[str, Any]:
        # Any other could change where a request goes, or what it asks, and be recorded nowhere.
        if other := [name for name in send if not _OF_THINKING.search(name)]:
            allowed = "names with reason, think or effort, chat_template_kwargs, output_config"
            raise ValueError(f"{other[0]!r} asks for no thinking (allowed: {allowed})")
        return send


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
    `max_tokens_as` is the name under which a request bounds its reply.
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
    context: int | None = Field(default=None, ge=256)
    threads: int | None = Field(default=None, ge=1)

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
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not (key and key.isascii() and key.isprintable()):
            fault = "holds what no key holds" if key else "is not set or empty"
            problem = f"the environment variable {self.api_key_env} {fault}"
            raise SetupError(Problem(problem, field="settings.api_key_env"))
        return key

    def hint(self, status: int, base_url: str | None) -> str:
        """A hint that may fix an endpoint's error, to be put behind its message; empty where
        nothing is known."""
        if status in (401, 403) and self.api_key_env is None:
            return "; set `api_key_env` to the variable that holds the key"
        if status in (404, 405) and base_url and not _VERSION.search(urlsplit(base_url).path):
            return f"; did you forget /v1? base_url: {base_url.rstrip('/')}/v1"
        return ""

    def checked_base_url(self) -> str | None:
        """`base_url` without its last slash. It is shown in errors and reports, so a SetupError is
        raised where it holds a secret, or is no URL."""
        if self.base_url is None:
            return None
        field, allowed = "settings.base_url", "a URL such as http://127.0.0.1:8000/v1"
        try:
            url = urlsplit(self.base_url)
            bare = url.scheme in ("http", "https") and url.hostname and url.port != 0
        except ValueError:
            raise SetupError(Problem("is no URL", field=field, allowed=allowed)) from None
        beside = url.username or url.password or url.query or url.fragment or ";" in url.path
        if not bare or beside or Secrets(self.api_key_env).stands_in(self.base_url):
            message = (
                "must be http:// or https:// with a host, and hold no user, password, query or key"
            )
            raise SetupError(Problem(message, field=field, allowed=allowed))
        return self.base_url.rstrip("/")

    def runtime(self, *names: str) -> dict[str, Any]:
        """The settings of these names that are set, for the `runtime` part of a description."""
        values = self.model_dump(mode="json", exclude_none=True)
        return {name: values[name] for name in names if name in values}


_OF_THINKING = re.compile(r"reason|think|effort|^chat_template_kwargs$|^output_config$")
_VERSION = re.compile(r"/v\d")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,40}")
