"""The border to other people's engines: requests in, replies out.

A backend owns its concurrency, rate limits and transport retries. It never reads a reply for its
meaning: parsing, and asking again when a reply cannot be read, belong to the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from judgebench.errors import Problem, SetupError
from judgebench.records import Lookup, Usage
from judgebench.rubric import Metric

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "refused", "failed", "too_long", "unclear"]
# What a label's probability is conditioned on: the prompt alone, or also the fields before it.
Conditioning = Literal["independent", "chained"]
# What a backend says of `structured` where nothing makes a reply meet its schema.
FREE = (None, "none", "json_object")
# What one says of it that answers `Request.metrics`, and writes nothing of its own.
QUESTIONS = "questions"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat: who speaks, and the text."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class LabelField:
    """A key of the reply's JSON object and the strings that may stand there."""

    key: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabelsAsked:
    """Fields, in the order of the reply, whose options' log-probabilities are asked for."""

    fields: tuple[LabelField, ...]
    conditioning: Conditioning


@dataclass(frozen=True, slots=True)
class Request:
    """One chat completion. `key` is the caller's and comes back on the reply; `item` names in
    messages what is asked about.

    `schema` is a JSON schema that the reply's text must meet; None asks for free text.
    `labels_asked` asks for log-probabilities beside the text: see `Reply.log_probabilities`.
    `temperature`, `top_p` and `seed` are left to the engine where they are None. `metrics` are the
    questions that a rubric asks, by the keys of the reply's JSON object: all that an engine reads
    that decides and writes nothing.
    """

    key: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 512
    temperature: float | None = 0.0
    top_p: float | None = 1.0
    seed: int | None = 0
    labels_asked: LabelsAsked | None = None
    item: str = ""
    metrics: Mapping[str, Metric] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to the request with the same `key`.

    `finish`: `stop` is a whole reply, `length` one cut at `max_tokens`, `refused` a refusal that
    the provider declared, `failed` no reply after all retries, `too_long` a prompt that does not
    fit the model's context, `unclear` a reply that says different things in different places.
    `error` says why for the last four. `latency` is in seconds. `model` is who says to have
    replied; empty where nobody does. `reasoning` is what the engine says that the model thought,
    where it tells this apart from the text.

    `log_probabilities` holds, for each field that was asked for, the natural logarithm of every
    option's probability, normalised over the options. A field whose options the engine cannot
    tell apart is left out, and `error` says why; nothing weaker ever stands in its place.

    `transcript` is what was looked up on the way (`judges.knowledge`); no backend fills it in.
    """

    key: str
    text: str
    finish: Finish = "stop"
    usage: Usage = Usage()
    cost: float | None = None
    latency: float = 0.0
    error: str = ""
    log_probabilities: Mapping[str, Mapping[str, float]] | None = None
    model: str = ""
    reasoning: str = ""
    transcript: tuple[Lookup, ...] = ()


BACKEND_METHODS = ("describe", "complete", "close")


class Backend(Protocol):
    """Any object with these three is a backend."""

    def describe(self) -> Mapping[str, Any]:
        """The facts on which its replies depend (engine, model, weights, how a schema is enforced)
        and how it was set to run. JSON-able, no secrets; `signature` below hashes all but
        `runtime`.

        Where `structured` is missing, `none` or `json_object`, a reply is free text: it may quote.
        """
        ...

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Exactly one reply a request, each yielded as it finishes, in any order.

        `requests` is read lazily, no further ahead than the backend can work on, so that a
        million of them need no memory. Closing the iterator ends all work in flight.
        Raises SetupError where no request can ever succeed (a wrong key, an unknown model, labels
        asked of an engine that gives no log-probabilities, or not with that conditioning), and
        EndpointDown where an endpoint has stopped answering. What an endpoint that replies to
        others says of one request is that request's `failed` reply.
        """
        ...

    def close(self) -> None:
        """Give back the model, sockets and threads. May be called twice."""
        ...


def drain(backend: Backend) -> None:
    """Have a backend start no other call, where it has a method of this name: it then ends its
    streams once the calls in flight have. For any thread."""
    getattr(backend, "drain", lambda: None)()


# What stands before a text: a chat's turns, plain text, or nothing where that is empty.
Before = str | tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TokenScores:
    """The natural log-probability of each token of a text, in order, or the `reason` why there is
    none."""

    log_p: Sequence[float] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Draws:
    """The drawing of completions, and the places where targets are weighed in them: behind the
    first 0, `stride`, 2 * `stride`, ... tokens."""

    count: int
    max_tokens: int
    temperature: float
    top_p: float
    stride: int
    seed: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """A completion without the token that ended it: `log_p` of each of its `tokens`, whatever the
    temperature and top-p that they were drawn with, the `places` where targets were weighed, and
    each target's log-probability there: (targets, places)."""

    tokens: Sequence[int]
    log_p: Sequence[float]
    places: Sequence[int]
    targets: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions that were drawn, and each target's tokens; or the `reason` why there are none."""

    drawn: Sequence[Drawn] = ()
    targets: Sequence[Sequence[int]] = ()
    reason: str = ""


class TokenScorer(Protocol):
    """Says how likely given texts are. A backend with a method `weigher` gives one."""

    def weigh(self, texts: Sequence[tuple[Before, str]]) -> Sequence[TokenScores]:
        """One for each text behind what stands before it; behind nothing, from BOS on, or EOS where
        there is no BOS. Raises SetupError where the engine cannot."""
        ...

    def draw(self, before: Before, targets: Sequence[str], draws: Draws) -> Completions:
        """Completions, and how likely each target was at places in them. Raises SetupError."""
        ...


def weigher_of(backend: Backend, spec: str) -> Callable[[], TokenScorer]:
    """A function that opens the weigher of a backend, which may load a model. Raises SetupError
    where it has none."""
    make: Callable[[], TokenScorer] | None = getattr(backend, "weigher", None)
    if make is None:
        message = "does not say how likely a given text is"
        allowed = "transformers:, vllm:"
        raise SetupError(Problem(message, field="backend", found=spec, allowed=allowed))
    return make
