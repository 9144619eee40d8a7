"""What the streams of a backend have in common: when a call is lost, and what it came to."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from tenacity import RetryCallState

from judgebench.backends.chat import Completion
from judgebench.backends.contract import Reply, Request
from judgebench.backends.failures import RateLimitedError, TransientError, UnreachableError
from judgebench.backends.pace import Pace
from judgebench.backends.secrets import Secrets
from judgebench.backends.settings import BackendSettings
from judgebench.errors import EndpointDown, SetupError
from judgebench.records import Usage

_CHARACTERS_A_TOKEN = 4  # the usual rule of thumb for English


@dataclass(slots=True, eq=False)
class Call:
    """A request on its way. `faults` counts the failed tries that use up retries."""

    request: Request
    tokens: int
    turn: asyncio.Future[None] | None = None
    tries: int = 0
    faults: int = 0
    began: float = 0.0
    limited_since: float = math.inf


@dataclass(frozen=True, slots=True)
class Policy:
    """What the streams of a backend have in common; see `transport.Transport`."""

    settings: BackendSettings
    waits: Callable[[RetryCallState], float]
    pace: Pace
    where: str
    limited_for_s: float
    secrets: Secrets

    def expected_tokens(self, request: Request) -> int:
        """What a request may cost: its characters over 4, and the bound of its reply."""
        if self.settings.tokens_per_minute is None:
            return 0
        characters = sum(len(message.content) for message in request.messages)
        return characters // _CHARACTERS_A_TOKEN + request.max_tokens

    def scrubbed(self, text: str) -> str:
        """`text` without any key; a server may say the one that it was sent."""
        return self.secrets.scrubbed(text)

    def reply(self, call: Call, done: Completion) -> Reply:
        """What one call came to, tied to its request."""
        price, usage = self.settings.price, done.usage
        return Reply(
            key=call.request.key,
            text=self.scrubbed(done.text),
            finish=done.finish,
            usage=Usage(call.tries, usage.prompt_tokens, usage.completion_tokens),
            cost=price.cost(usage.prompt_tokens, usage.completion_tokens) if price else done.cost,
            latency=time.monotonic() - call.began,
            error=self.scrubbed(done.error),
            log_probabilities=done.log_probabilities,
        )

    def is_lost(self, call: Call, state: RetryCallState) -> bool:
        """Whether a call that failed is not to be tried again."""
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RateLimitedError):
            return time.monotonic() - call.limited_since > self.limited_for_s
        if isinstance(error, UnreachableError) and self._never_reached and self.pace.is_open:
            return True
        return call.faults > self.settings.max_retries

    def wait(self, state: RetryCallState) -> float:
        """Seconds until a call may be tried again. Where the endpoint asked for them, no other
        call starts before that either."""
        seconds = self.waits(state)
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, TransientError) and error.after is not None:
            self.pace.pause(seconds)
        return seconds

    @property
    def _never_reached(self) -> bool:
        return self.pace.last_answer == -math.inf

    def gave_up(self, call: Call, error: TransientError) -> Completion:
        """What a call that is lost came to. Raises SetupError where no endpoint was ever there,
        and EndpointDown where it answers nobody."""
        said = str(error)
        if isinstance(error, UnreachableError) and self._never_reached:
            raise SetupError(said)
        if isinstance(error, RateLimitedError) and self.pace.last_answer < call.limited_since:
            raise EndpointDown(
                f"{self.where} has answered nothing but this for "
                f"{self.limited_for_s:g} s: {self.scrubbed(said)}"
            )
        return Completion("", "failed", error=said)
