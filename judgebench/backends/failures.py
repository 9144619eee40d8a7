"""What a failed try means: a fault that a retry may get past, a limit, or a setting to fix."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from judgebench.backends.chat import Completion, Lane
from judgebench.errors import SetupError


class TransientError(Exception):
    """A try failed, and a retry may succeed. `after`: the seconds the server asked for."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class UnreachableError(TransientError):
    """Not even a connection could be made."""


class RateLimitedError(TransientError):
    """The endpoint is well and wants to be asked less often."""


# What an endpoint's error says, where its number alone does not tell.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum context|exceeds? the (?:model's )?context"
    r"|(?:prompt|input|request)s? (?:is|are|was) too (?:long|large)|too many (?:input )?tokens"
    r"|reduce the length",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"content[ _]?(?:filter|policy|management|moderation)|flagged|responsible ai"
    r"|safety (?:system|filter|settings)",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(r"insufficient[_ ](?:quota|credits|balance|funds)", re.IGNORECASE)
_NO_LANE = {
    "json_schema": re.compile(r"response_format|json.?schema|structured.outputs?", re.IGNORECASE),
    "json_object": re.compile(r"response_format|json.?object", re.IGNORECASE),
    "tool": re.compile(r"\btools?\b|tool_choice|function.call", re.IGNORECASE),
}
_OWN_FAULT = re.compile(r"json_validate_failed|failed_generation", re.IGNORECASE)

_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
_MAY_DECLINE = _ABOUT_THE_REQUEST | {403}

_OVERLOADED = frozenset({503, 529})
_TRANSIENT = frozenset({408, 409, 425})


def failure(
    status: int, message: str, about: str, lane: Lane, after: float | None = None
) -> Completion:
    """What an endpoint's error means: a Completion that is `too_long`, `refused` or `failed`.

    Raises TransientError where another try may help (RateLimitedError for a 429, or a 503 or 529
    that says when to come again), and SetupError (which names `about`: the
    URL, model and key variable) where no request can succeed.
    """
    said = f"HTTP {status}: {message}"
    if status in _ABOUT_THE_REQUEST and _TOO_LONG.search(message):
        return Completion("", "too_long", error=said)
    if status in _MAY_DECLINE and _DECLINED.search(message):
        return Completion("", "refused", error=said)
    if _NO_MONEY.search(message):
        raise SetupError(f"the account has no credit left at {about}; {said}")
    if status == 429 or (status in _OVERLOADED and after is not None):
        raise RateLimitedError(said, after)
    if status in _TRANSIENT or status >= 500:
        raise TransientError(said, after)
    if status not in _ABOUT_THE_REQUEST:
        raise SetupError(f"{_mend(status)}: {about}; {said}")
    pattern = _NO_LANE.get(lane)
    if pattern and pattern.search(message) and not _OWN_FAULT.search(message):
        raise SetupError(
            f"the endpoint refuses the way in which JSON is asked for ({lane}); set "
            f"`structured` to json_schema, tool, json_object or none: {about}; {said}"
        )
    return Completion("", "failed", error=said)


def _mend(status: int) -> str:
    match status:
        case 401 | 403:
            return "the endpoint refuses the key"
        case 402:
            return "the endpoint asks for payment"
        case 404 | 405:
            return "the endpoint knows no such model or path"
        case _ if status < 400:
            return "the endpoint lies elsewhere (it redirects)"
        case _:
            return "the endpoint cannot be used in this way"


def retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, given in seconds or as an HTTP date (RFC 9110,
    section 10.2.3); None where there is none that can be read."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def error_text(body: Any) -> str:
    """What an error body says: its message, type, code and parameter, wherever they stand."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        parts = [error.get(k) for k in ("message", "detail", "type", "code", "param")]
        error = "; ".join(_plain(p) for p in parts if p) or error
    text = " ".join(_plain(error).split())
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"


_LONGEST_MESSAGE = 1000


def _plain(value: Any) -> str:
    try:
        return str(value)
    except RecursionError:
        return "a value nested too deeply to be shown"
