"""Keys and passwords, kept out of all that is shown or written.

A server may say anything: its errors, and the replies of its model, can hold the key that it was
sent. So what came from outside is scrubbed before it goes on.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, unquote, urlsplit

_HOLDS_A_KEY = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)S?(?:_|$)", re.IGNORECASE)
_SHORTEST = 8  # characters; what is shorter may stand anywhere by chance
_CUT = ("…", "...")  # how our own messages end where they were cut off
_HIDDEN = "***"


class Secrets:
    """The secrets of the environment: the values of variables that are named like a key's, of
    the one that `api_key_env` names, and the passwords of proxies."""

    def __init__(self, api_key_env: str | None) -> None:
        self._api_key_env = api_key_env
        self._forms: tuple[str, ...] = ()
        self.read()

    def read(self) -> None:
        """Look at the environment anew."""
        found = {s for s in self._values() if len(s) >= _SHORTEST}
        forms = {form for secret in found for form in _forms(secret)}
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def scrubbed(self, text: str) -> str:
        """`text` without any secret, be it plain, quoted, in base64 or cut off."""
        for form in self._forms:
            if form[:_SHORTEST] in text:
                text = _without(text, form)
        return text

    def _values(self) -> Iterator[str]:
        for name, value in os.environ.items():
            if name == self._api_key_env or _HOLDS_A_KEY.search(name):
                yield value.strip()
            elif name.upper().endswith("_PROXY"):
                yield from _passwords(value)


def _without(text: str, form: str) -> str:
    text = text.replace(form, _HIDDEN)
    for end in range(len(form) - 1, _SHORTEST - 1, -1):
        for mark in _CUT:
            text = text.replace(form[:end] + mark, _HIDDEN + mark)
    return text


def _passwords(url: str) -> Iterator[str]:
    try:
        password = urlsplit(url).password
    except ValueError:
        return
    if password:
        yield password
        yield unquote(password)


def _forms(secret: str) -> Iterator[str]:
    """The ways in which a secret is commonly written."""
    yield from (secret, quote(secret, safe=""), quote_plus(secret))
    for once in (json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        yield from (once, json.dumps(once)[1:-1], repr(once)[1:-1])
    for before in range(3):  # base64 groups bytes by threes, and something may stand before it
        padded = b"\0" * before + secret.encode("utf-8", "surrogateescape")
        whole = base64.b64encode(padded).decode()
        own = whole[(before * 4 + 2) // 3 : len(padded) * 4 // 3]  # not shared with what is beside
        if len(own) >= _SHORTEST:
            yield own
            yield own.translate(str.maketrans("+/", "-_"))
