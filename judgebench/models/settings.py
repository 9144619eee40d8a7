"""The secrets of the environment, kept out of all that is shown or written.

A server may say anything: its errors, and the replies of its model, can hold the key that it was
sent. So what came from outside is scrubbed before it goes on. A secret that stands in a text as it
is is cut out of it. In any other form (with escapes, in hexadecimal digits, in base64, with
something between its characters) it is found by its letters and digits, and nothing of the text
remains.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache, partial
from string import Template
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit
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
from judgebench.records import Usage

_SHORTEST = 8  # characters of a secret in a row; what is shorter may stand anywhere by chance
_SHORTEST_FOLDED = 12  # letters and digits of a form of it: `githubpa` is in `GitHub pages`
_PIECE = 4  # characters, by which a text without a secret is known quickly
_HIDDEN = "***"
_ALL_HIDDEN = "*** (a text that holds a key or password in another form)"
_PASSES = 8  # by which escapes of escapes are read
_LONGEST_NAME = 200
_MOST_NAMES = 256  # of models that are remembered: nearly every reply repeats the one before
NAMED_LIKE_A_KEY = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(?:_|$)|_(?:PASS|PWD|PAT|AUTH)$",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^/\s@\"'<>]+(?=@)")
# `user:password@host` in a name, where a digest (`@sha256:`) and a version (`@001`) may stand too.
_LOGIN = re.compile(r":[^\s@/:]{4,}@(?!sha\d+:)(?:[a-z]|\[|\d+(?:\.\d+){3})", re.IGNORECASE)
_NAMED_KEY = re.compile(r"(?:key|token|secret|password|passwd|pwd|sig|auth)=[^&;\s]", re.IGNORECASE)
# How keys of well-known services begin, and tokens of the web (JWT).
_STARTS = (
    "sk-", "sk_", "pk_", "rk_", "gsk_", "csk-", "hf_", "xai-", "pplx-", "nvapi-", "r8_", "AIza",
    "AKIA", "eyJ", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-",
)  # fmt: skip
_LOOKS_LIKE_A_KEY = re.compile(
    rf"(?:\b|(?<=\\[nrt]))(?:{'|'.join(_STARTS)})"
    r"(?=[\w.-]{0,99}\d)(?=[\w.-]{0,99}[A-Za-z0-9]{12})[\w.-]{16,}"
)
_IN_SETTINGS = (_LOOKS_LIKE_A_KEY, _NAMED_KEY, _USERINFO, _LOGIN)
_ESCAPED = re.compile(r"[%&\\]")
_X = "[0-9a-fA-F]"
_CODE = re.compile(  # of a character in programs, in JSON and in old URLs
    rf"\\(?:x({_X}{{2}})|u({_X}{{4}})|u\{{({_X}{{1,5}})\}}|U000({_X}{{5}}))|%u({_X}{{4}})"
)
_BLANK = re.compile(r"\\[bfnrt]")  # in JSON and in programs
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


class Secrets:
    """The secrets of the environment: the values of variables that are named like a key's, of
    the one that `api_key_env` names, and the passwords of URLs, such as those of proxies."""

    def __init__(self, api_key_env: str | None = None) -> None:
        self._api_key_env = api_key_env
        self.read()

    def read(self) -> None:
        """Look at the environment anew."""
        secrets = {value for value in self._values() if len(value) >= _SHORTEST}
        self._plain = _Runs(secrets, _SHORTEST)
        self._folded = _Runs({form for s in secrets for form in _forms(s)}, _SHORTEST_FOLDED)
        self.scrubbed_name = lru_cache(_MOST_NAMES)(self._name)

    def scrubbed(self, text: str) -> str:
        """`text` without any eight characters in a row of a secret, and without what looks like a
        key or stands before the host of a URL; nothing of a text that holds a secret in another
        form."""
        while starts := self._plain.starts(text):  # what is hidden may join what was apart
            characters = list(text)
            for start in starts:
                characters[start : start + _SHORTEST] = "\0" * _SHORTEST
            text = re.sub("\0+", _HIDDEN, "".join(characters))
        if "://" in text:
            text = _USERINFO.sub(_HIDDEN, text)
        if any(map(text.__contains__, _STARTS)):
            text = _LOOKS_LIKE_A_KEY.sub(_HIDDEN, text)
        if self._is_folded_in(text):  # of an error, only what an endpoint said need go
            text = self._hidden("; ".join(map(self._hidden, text.split("; "))))
        return text

    def _hidden(self, text: str) -> str:
        return _ALL_HIDDEN if self._is_folded_in(text) else text

    def _is_folded_in(self, text: str) -> bool:
        """Return whether a secret stands in a text in another form. What is a line's end in JSON
        (`\\n`) may be a backslash and a letter of the secret as well."""
        readings = {text, _BLANK.sub(" ", text)}
        return any(self._folded.starts(_fold(reading)) for reading in readings)

    def stands_in(self, text: str) -> bool:
        """Find whether a part of a judge's settings holds a key: one that is known, looks like one,
        is named as one (`;key=`), or a user or password of a URL or host."""
        readings = text, unquote(text)
        is_known = self._is_folded_in(text)
        return is_known or any(p.search(reading) for p in _IN_SETTINGS for reading in readings)

    def _name(self, text: str) -> str:
        """The name of a model as one line that JSON need not escape, and no part of one that holds
        a key or a password."""
        if self.stands_in(text) or self.scrubbed(text) != text:
            return _HIDDEN
        name = text[:_LONGEST_NAME].replace("\\", "/").replace('"', "'")
        return "".join(c if c.isprintable() else "?" for c in name)

    def _values(self) -> Iterator[str]:
        for name, value in os.environ.items():
            is_named = NAMED_LIKE_A_KEY.search(name) and not os.path.exists(value)  # not a path
            if is_named or name == self._api_key_env:
                yield value.strip()
            for url in value.split() if "@" in value else ():
                if "://" in url or name.upper().endswith("_PROXY"):
                    user, _, password = url.rpartition("@")[0].rpartition("//")[2].partition(":")
                    yield from (password or user, unquote(password or user))


class _Runs:
    """The runs of so many characters in a row that stand in any of some texts."""

    def __init__(self, texts: Iterable[str], length: int) -> None:
        self._length = length
        self._runs = {text[i : i + length] for text in texts for i in range(len(text) - length + 1)}
        self._pieces = {
            tuple(run[i : i + _PIECE]) for run in self._runs for i in range(length - _PIECE + 1)
        }

    def starts(self, text: str) -> list[int]:
        """Where such runs start. Each holds one of the pieces that are looked for first."""
        length, step = self._length, self._length - _PIECE + 1
        pieces = zip(*(text[i::step] for i in range(_PIECE)), strict=False)
        if self._pieces.isdisjoint(pieces):
            return []
        return [i for i in range(len(text)) if text[i : i + length] in self._runs]


def _fold(text: str) -> str:
    """The letters and digits of a text in small letters, its escapes read, without accents."""
    for _ in range(_PASSES):
        escaped = text
        if not _ESCAPED.search(text):
            break
        text = html.unescape(unquote(_CODE.sub(_character, text)))
        if text == escaped:
            break
    if _SURROGATE.search(text):  # JSON writes characters beyond the first 65,536 as two escapes
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    data = unicodedata.normalize("NFKD", text).encode("ascii", "ignore")
    return data.translate(None, _NO_LETTERS).decode().lower()


def _character(code: re.Match[str]) -> str:
    return chr(int("".join(filter(None, code.groups())), 16))


def _forms(secret: str) -> Iterator[str]:
    """A secret, its hexadecimal digits and its base64 as they stand in a folded text. Base64 groups
    bytes by threes, and something may stand before it."""
    data = secret.encode("utf-8", "surrogateescape")
    yield _fold(secret)
    yield data.hex()
    for n_before in range(3):
        padded = b"\0" * n_before + data
        whole = base64.b64encode(padded).decode()
        yield _fold(whole[(n_before * 4 + 2) // 3 : len(padded) * 4 // 3])  # not shared with others


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
        problems = [
            Problem(
                f"means nothing to a {backend} backend",
                field=f"settings.{name}",
                allowed=", ".join(sorted(allowed)) or "no settings",
            )
            for name in self.model_dump(exclude_defaults=True)
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
