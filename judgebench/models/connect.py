"""Whether an endpoint could be asked: its key is set, and somebody answers at its address.

No model is called: a server is asked for the list of its models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from http.client import HTTPException
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from judgebench.errors import Problem, SetupError
from judgebench.models import kind_of
from judgebench.models.chat import error_text, read_json
from judgebench.models.secrets import Secrets
from judgebench.models.settings import BackendSettings

_PATIENCE_S = 10.0
_LONGEST = 2**20  # bytes of an answer that are read
_MOST_NAMED = 8  # models


def unset_keys(backend: str, settings: BackendSettings) -> Iterator[Problem]:
    """The variable that `api_key_env` names, or those that the model's provider reads, where they
    are not set."""
    try:
        settings.api_key()
    except SetupError as error:
        yield from error.problems
    if settings.api_key_env is None and settings.base_url is None:
        for name in kind_of(backend).lacks_keys(backend.partition(":")[2]):
            message = f"the environment variable {name} is not set; or set `api_key_env` to another"
            yield Problem(message, field="settings.api_key_env")


def unreachable(base_url: str, model: str, settings: BackendSettings) -> str:
    """What keeps a server from being asked, from one request for its list of models; empty where
    it answers and has the model, or has no such list."""
    try:
        key = settings.api_key()
    except SetupError:  # reported where keys are checked
        return ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    asked, said = Request(f"{base_url}/models", headers=headers), list[str]()
    # A time limit of a socket is for a single byte, and a server may send one after another.
    thread = Thread(target=lambda: said.append(_fault(asked, model, settings)), daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    fault = said[0] if said else f"gives no whole answer within {_PATIENCE_S:g} s"
    return Secrets(settings.api_key_env).scrubbed(fault)


def _fault(asked: Request, model: str, settings: BackendSettings) -> str:
    try:
        with open_whatever(asked, _PATIENCE_S) as answer:
            status, raw = answer.getcode(), answer.read(_LONGEST)
    except (OSError, HTTPException, ValueError) as error:
        return f"no server answers: {error_text(str(getattr(error, 'reason', error)))}"
    body = read_json(raw)
    if status < 300:
        return _lacking(model, body)
    hint = settings.hint(status, asked.full_url.removesuffix("/models"))
    if status in (404, 405) and not hint:  # a server without a list of models
        return ""
    return f"answers HTTP {status}: {error_text(body)}{hint}"


def open_whatever(asked: Request, timeout_s: float) -> Any:
    """The server's answer, be it an error or not. Raises OSError, HTTPException or ValueError."""
    try:
        return build_opener(_NoRedirect).open(asked, timeout=timeout_s)
    except HTTPError as answer:
        return answer


def _lacking(model: str, body: Any) -> str:
    """That the list of models lacks the model; empty where it has it, or is no such list."""
    listed = body.get("data") if isinstance(body, dict) else None
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        return ""
    ids = (one.get("id") for one in listed if isinstance(one, dict))
    names = [name for name in ids if isinstance(name, str)]
    if not names or model in names:
        return ""
    near = get_close_matches(model, names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    more = ", …" if len(names) > _MOST_NAMED else ""
    known = error_text(", ".join(names[:_MOST_NAMED]) + more)
    return f"does not list the model {model!r}{guess} (it lists {known})"


class _NoRedirect(HTTPRedirectHandler):
    """A key is sent to the address that was given and nowhere else."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None
