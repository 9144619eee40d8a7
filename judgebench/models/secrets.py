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
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

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
