"""Tell somebody that a certificate stands otherwise than before: a command, or a web address."""

from __future__ import annotations

import json
import shlex
import subprocess
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from judgebench.errors import Problem, RunError, SetupError

_WAIT = 30.0  # seconds


def call(hook: str, news: Mapping[str, Any]) -> None:
    """Run the command with the news as JSON on its standard input, or post them to the address.

    Raises SetupError for an address with a password in it, RunError where nobody took the news: a
    certificate that is revoked unnoticed would be worse.
    """
    text = json.dumps(news)
    if not hook.startswith(("http://", "https://")):
        _run(shlex.split(hook), text)
        return
    if urlsplit(hook).password is not None:
        message = "holds a password, which logs would show: let a command read it from where it is"
        raise SetupError(Problem(message, field="--hook"))
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(hook, text.encode(), head, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=_WAIT):
            pass
    except OSError as error:
        raise RunError(f"the hook {hook} took no news: {error}") from None


def _run(command: list[str], text: str) -> None:
    try:
        subprocess.run(command, input=text, text=True, check=True, timeout=_WAIT)
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"the hook {command[0]} took no news: {error}") from None
