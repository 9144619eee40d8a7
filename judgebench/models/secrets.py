"""Keys and passwords, kept out of all that is shown or written.

A server may say anything: its errors, and the replies of its model, can hold the key that it was
sent. So what came from outside is scrubbed before it goes on.
"""

from __future__ import annotations

import base64
import html
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

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
        heads = _either({secret[:n] for secret in found for n in _ENDS})
        tails = _either({secret[-n:] for secret in found for n in _ENDS})
        self._beside_mark = re.compile(f"{heads}{_MARK}(?:{tails})?|{_MARK}{tails}")

    def scrubbed(self, text: str) -> str:
        """`text` without any eight characters in a row of a secret, be it plain, escaped, in
        hexadecimal digits or in base64, without the ends of one that are left beside stars or dots,
        and without what looks like a key or stands before the host of a URL."""
        for _ in range(_PASSES):  # what is hidden may bring together what was apart
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

    def scrubbed_name(self, text: str) -> str:
        """The name of a model without what is in no text: no part is left of one that holds a key
        or a password."""
        return _HIDDEN if self.stands_in(text) else self.scrubbed(text)

    def stands_in(self, text: str) -> bool:
        """Whether a part of a judge's settings holds a key: one that is known, looks like one, is
        named as one (`;key=`), or a user or password of a URL or host."""
        return any(
            any(secret in read for secret in self._long)
            or any(p.search(read) for p in (_LOOKS_LIKE_A_KEY, _NAMED_KEY, _USERINFO, _LOGIN))
            for read, _ in _decoded(text)
        )

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Where `text` says what must be hidden. Every run of eight holds one of the pieces that
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
    """What a text says with its escapes and its hexadecimal digits as they stand, and read."""
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
    """What runs of hexadecimal digits say, in pairs from the first or the second digit on."""
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
