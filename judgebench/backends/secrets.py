"""Keys and passwords, kept out of all that is shown or written.

A server may say anything: its errors, and the replies of its model, can hold the key that it was
sent. So what came from outside is scrubbed before it goes on.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus, unquote

_HOLDS_A_KEY = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(?:_|$)|_(?:PASS|PWD|PAT|AUTH)$",
    re.IGNORECASE,
)
_SHORTEST = 8  # characters; what is shorter may stand anywhere by chance
_PIECE = 4  # characters, by which a text without a secret is known quickly
_HIDDEN = "***"
_PASSES = 8
# Of what a message leaves out, and how much of a key's ends stands beside such a mark.
_MARKS = ("**", "\u2022\u2022", "\u2026", "...", "xxxx", "XXXX")
_MARK = r"(?:\*{2,99}|\u2022{2,99}|\u2026|\.{3,99}|x{4,99}|X{4,99})"
_ENDS = range(_SHORTEST - 1, 3, -1)
_USERINFO = re.compile(r"(?<=://)[^/\s@\"'<>]+@")
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
        self._runs, self._pieces = (
            frozenset(form[i : i + n] for form in forms for i in range(len(form) - n + 1))
            for n in (_SHORTEST, _PIECE)
        )
        heads = _either({secret[:n] for secret in found for n in _ENDS})
        tails = _either({secret[-n:] for secret in found for n in _ENDS})
        self._beside_mark = re.compile(f"{heads}{_MARK}(?:{tails})?|{_MARK}{tails}")

    def scrubbed(self, text: str) -> str:
        """`text` without any eight characters in a row of a secret, be it plain, quoted or in
        base64, without the ends of one that are left beside stars or dots, and without what looks
        like a key or stands before the host of a URL."""
        for _ in range(_PASSES):  # what is hidden may bring together what was apart
            before = text
            text = self._without_runs(text)
            if any(mark in text for mark in _MARKS):
                text = self._beside_mark.sub(_HIDDEN, text)
            if "://" in text:
                text = _USERINFO.sub(f"{_HIDDEN}@", text)
            if any(start in text for start in _STARTS):
                text = _LOOKS_LIKE_A_KEY.sub(_HIDDEN, text)
            if text == before:
                break
        return text

    def stands_in(self, text: str) -> bool:
        """Whether a part of a judge's settings holds a key: one that is known, looks like one, is
        named as one (`;key=`), or a user or password of a URL."""
        return (
            any(secret in text for secret in self._long)
            or any(p.search(text) for p in (_LOOKS_LIKE_A_KEY, _NAMED_KEY, _USERINFO))
        )  # fmt: skip

    def _without_runs(self, text: str) -> str:
        """Every run of eight holds a whole piece that begins at one of these places."""
        places = range(0, len(text) - _PIECE + 1, _SHORTEST - _PIECE + 1)
        if self._pieces.isdisjoint([text[i : i + _PIECE] for i in places]):
            return text
        shown, end = "", 0
        for i in range(len(text) - _SHORTEST + 1):
            if text[i : i + _SHORTEST] in self._runs:
                if i > end or not end:
                    shown += text[end:i] + _HIDDEN
                end = i + _SHORTEST
        return shown + text[end:]

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
    """The ways in which a secret is commonly written."""
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret))
    yield re.sub("%..", lambda escape: escape[0].lower(), quote(secret, safe=""))
    yield html.escape(secret)
    for once in (json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        yield from (once, json.dumps(once)[1:-1], repr(once)[1:-1])
    for before in range(3):  # base64 groups bytes by threes, and something may stand before it
        padded = b"\0" * before + secret.encode("utf-8", "surrogateescape")
        whole = base64.b64encode(padded).decode()
        own = whole[(before * 4 + 2) // 3 : len(padded) * 4 // 3]  # not shared with what is beside
        if len(own) >= _SHORTEST:
            yield own
            yield own.translate(str.maketrans("+/", "-_"))
