"""Settings of a backend (the keys under `settings:` in a judge's YAML), and the secrets among them.

Keys and passwords are kept out of all that is shown or written. A server may say anything: its
errors, and the replies of its model, can hold the key that it was sent. So what came from outside
is scrubbed before it goes on.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import unicodedata
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
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
    "messages": "prompt",
    **{name: f"decoding.{name}" for name in ("temperature", "top_p", "seed", "max_tokens")},
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
    if Secrets().stands_in(json.dumps(body)):
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
            if any(not _HOLDS_A_KEY.search(variable) for variable in variables):
                raise ValueError(f"{name} takes variables that are named as a key is, as API_KEY")
            is_key = _HOLDS_A_KEY.search(name.replace("-", "_")) and not variables
            if is_key or Secrets().stands_in(value):
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
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,40}")


_HOLDS_A_KEY = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(?:_|$)|_(?:PASS|PWD|PAT|AUTH)$",
    re.IGNORECASE,
)
_SHORTEST = 8  # characters; what is shorter may stand anywhere by chance
_PIECE = 4  # characters, by which a text without a secret is known quickly
_HIDDEN = "***"
_PASSES = 8
_LONGEST_NAME = 200
_MOST_NAMES = 256  # of models that are remembered: nearly every reply repeats the one before
# Of what a message leaves out, and how much of a key's ends stands beside such a mark.
_MARKS = ("**", "\u2022\u2022", "\u2026", "...", "xxxx", "XXXX")
_MARK = r"(?:\*{2,99}|\u2022{2,99}|\u2026|\.{3,99}|x{4,99}|X{4,99})"
_ENDS = range(_SHORTEST - 1, 3, -1)
_USERINFO = re.compile(r"(?<=://)[^/\s@\"'<>]+(?=@)")
# `user:password@host` in a name, where a digest (`@sha256:`) and a version (`@001`) may stand too.
_LOGIN = re.compile(r":[^\s@/:]{4,}@(?!sha\d+:)(?:[a-z]|\[|\d+(?:\.\d+){3})", re.IGNORECASE)
# How a character is written in URLs, in programs and JSON, and in HTML and XML; and characters
# that nobody sees.
_X = "[0-9a-fA-F]"
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_ESCAPE = re.compile(
    rf"[%\\&{_UNSEEN}](?:(?<=%)(?:u{_X}{{4}}|{_X}{{2}})"
    rf"|(?<=\\)(?:\\*(?:u{_X}{{4}}|u\{{{_X}{{1,5}}\}}|U000{_X}{{5}}|x{_X}{{2}}|[\"'/`])|\\+)"
    rf"|(?<=&)(?:#[0-9]{{1,9}};?|#[xX]{_X}{{1,8}};?|[a-zA-Z][a-zA-Z0-9]{{1,31}};)|(?<![%\\&]))"
)
_HEX = re.compile(rf"{_X}{{2}}(?:[ :-]?{_X}{{2}}){{{_SHORTEST - 1},}}")
# Eight characters of ASCII so written: quick to look for, since few words hold digits.
_HEX_TEXT = re.compile(rf"[2-7]{_X}(?:[ :-]?[2-7]{_X}){{{_SHORTEST - 1}}}")
# How keys of well-known services begin, and tokens of the web (JWT).
_STARTS = (
    "sk-", "sk_", "pk_", "rk_", "gsk_", "csk-", "hf_", "xai-", "pplx-", "nvapi-", "r8_", "AIza",
    "AKIA", "eyJ", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-",
)  # fmt: skip
_LOOKS_LIKE_A_KEY = re.compile(
    rf"(?:\b|(?<=\\[nrt]))(?:{'|'.join(_STARTS)})"
    r"(?=[\w.-]{0,99}\d)(?=[\w.-]{0,99}[A-Za-z0-9]{12})[\w.-]{16,}"
)
_NAMED_KEY = re.compile(r"(?:key|token|secret|password|passwd|pwd|sig|auth)=[^&;\s]", re.IGNORECASE)


class Secrets:
    """The secrets of the environment: the values of variables that are named like a key's, of
    the one that `api_key_env` names, and the passwords of URLs, such as those of proxies."""

    def __init__(self, api_key_env: str | None = None) -> None:
        self._api_key_env = api_key_env
        self.read()

    def read(self) -> None:
        """Look at the environment anew."""
        found = {s for s in self._values() if len(s) >= _SHORTEST}
        forms = {form for secret in found for form in _forms(secret)}
        self._long = tuple(secret for secret in found if len(secret) >= 2 * _SHORTEST)
        self._runs, pieces = (
            frozenset(form[i : i + n] for form in forms for i in range(len(form) - n + 1))
            for n in (_SHORTEST, _PIECE)
        )
        self._pieces = frozenset(map(tuple, pieces))
        # The name of a model as one line that JSON need not escape. No part is left of one that
        # holds a key or a password in any reading, and that is looked for before letters change.
        self.scrubbed_name = lru_cache(_MOST_NAMES)(self._name)
        heads = _either({secret[:n] for secret in found for n in _ENDS})
        tails = _either({secret[-n:] for secret in found for n in _ENDS})
        self._beside_mark = re.compile(f"{heads}{_MARK}(?:{tails})?|{_MARK}{tails}")

    def scrubbed(self, text: str) -> str:
        """`text` without any eight characters in a row of a secret, be it plain, escaped, in
        hexadecimal digits or in base64, without the ends of one that are left beside stars or dots,
        and without what looks like a key or stands before the host of a URL."""
        for _ in range(_PASSES if text else 0):  # what is hidden may join what was apart
            before = text
            spans = [
                (places[start], places[end])
                for read, places in _readings(text)
                for start, end in self._found(read)
            ]
            text = _without(text, spans)
            if text == before:
                break
        return text

    def _name(self, text: str) -> str:
        folded = unicodedata.normalize("NFKD", text)
        letters = "".join(c for c in folded if unicodedata.category(c)[0] not in "MCZ")
        for reading in (text, letters, letters.replace("\\", "").replace('"', "")):
            if self.stands_in(reading) or self.scrubbed(reading) != reading:
                return _HIDDEN
        name = text[:_LONGEST_NAME].replace("\\", "/").replace('"', "'")
        return "".join(c if c.isprintable() else "?" for c in name)

    def stands_in(self, text: str) -> bool:
        """Find whether a part of a judge's settings holds a key: one that is known, looks like one,
        is named as one (`;key=`), or a user or password of a URL or host."""
        return any(
            any(secret in read for secret in self._long)
            or any(p.search(read) for p in (_LOOKS_LIKE_A_KEY, _NAMED_KEY, _USERINFO, _LOGIN))
            for read, _ in _decoded(text)
        )

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of `text` that must be hidden. Every run of eight holds one of the pieces that
        begin at every fifth place."""
        step = _SHORTEST - _PIECE + 1
        if not self._pieces.isdisjoint(zip(*(text[i::step] for i in range(_PIECE)), strict=False)):
            for i in range(len(text) - _SHORTEST + 1):
                if text[i : i + _SHORTEST] in self._runs:
                    yield i, i + _SHORTEST
        patterns = (
            (self._beside_mark, _MARKS), (_USERINFO, ("://",)), (_LOOKS_LIKE_A_KEY, _STARTS)
        )  # fmt: skip
        for pattern, signs in patterns:
            if any(map(text.__contains__, signs)):
                yield from (match.span() for match in pattern.finditer(text))

    def _values(self) -> Iterator[str]:
        for name, value in os.environ.items():
            named = _HOLDS_A_KEY.search(name) and not os.path.exists(value)  # a path is no secret
            if named or name == self._api_key_env:
                yield value.strip()
            for url in value.split() if "@" in value else ():
                if "://" in url or name.upper().endswith("_PROXY"):
                    yield from _passwords(url)


def _either(texts: Iterable[str]) -> str:
    """A pattern of any of the texts, the longest first."""
    longest_first = sorted(texts, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, longest_first)) or '(?!)'})"


def _passwords(url: str) -> Iterator[str]:
    """The password of `http://user:password@host`, also without the scheme; of a user without one
    the user."""
    user, _, password = url.rpartition("@")[0].rpartition("//")[2].partition(":")
    yield password or user
    yield unquote(password or user)


def _forms(secret: str) -> Iterator[str]:
    """A secret as it stands in a text whose escapes are read: with its own escapes read too, with
    each byte as a character, with spaces as in a form of the web, and in base64."""
    data = secret.encode("utf-8", "surrogateescape")
    yield from (read for read, _ in _decoded(secret))
    yield from (data.decode("latin-1"), secret.replace(" ", "+"))
    for before in range(3):  # base64 groups bytes by threes, and something may stand before it
        padded = b"\0" * before + data
        whole = base64.b64encode(padded).decode()
        own = whole[(before * 4 + 2) // 3 : len(padded) * 4 // 3]  # not shared with what is beside
        if len(own) >= _SHORTEST:
            yield own
            yield own.translate(str.maketrans("+/", "-_"))


Read = tuple[str, Sequence[int]]  # a text, and where each character stood before; last, the end


def _readings(text: str) -> Iterator[Read]:
    """The readings of a text, with its escapes and its hexadecimal digits as they stand, and
    read."""
    for read, places in _decoded(text):
        yield read, places
        if _HEX_TEXT.search(read):
            yield from (_from_hex(read, places, first) for first in (0, 1))


def _decoded(text: str) -> Iterator[Read]:
    """A text, and the same with its escapes read, again and again while some are left."""
    places: Sequence[int] = range(len(text) + 1)
    yield text, places
    for _ in range(_PASSES):
        plain = text.isascii() and not any(map(text.__contains__, "%\\&"))
        if plain or not _ESCAPE.search(text):
            return
        parts, found, end = list[str](), array("l"), 0
        for escape in _ESCAPE.finditer(text):
            read, start = _character(escape[0]), escape.start()
            parts += (text[end:start], read)
            found.extend(places[end : start + len(read)])
            end = escape.end()
        found.extend(places[end:])
        text, places = "".join((*parts, text[end:])), found
        yield text, places


def _character(escape: str) -> str:
    """The character that an escape stands for, `&` for what is named otherwise; none for one that
    nobody sees."""
    if escape[0] == "&":
        return read if len(read := html.unescape(escape)) < 2 else "&"
    if escape[0] not in "%\\":
        return ""
    code = escape.strip("%\\uUx{}")
    return chr(int(code, 16)) if code.isalnum() else code or "\\"


def _from_hex(text: str, places: Sequence[int], first: int) -> Read:
    """The text of runs of hexadecimal digits, in pairs from the first or the second digit on."""
    said, found = list[str](), array("l")
    for run in _HEX.finditer(text):
        digits = [i for i in range(*run.span()) if text[i].isalnum()][first:]
        pairs = list(zip(digits[::2], digits[1::2], strict=False))
        said += [*(chr(int(text[a] + text[b], 16)) for a, b in pairs), "\0"]
        found.extend([*(places[a] for a, _ in pairs), places[run.end()]])
    found.append(places[-1])
    return "".join(said), found


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    shown, end = "", 0
    for start, stop in sorted(spans):
        if start > end or not shown:
            shown += text[end:start] + _HIDDEN
        end = max(end, stop)
    return shown + text[end:]
