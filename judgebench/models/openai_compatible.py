"""Any server that speaks OpenAI's chat completions over HTTP: vLLM, llama.cpp, a gateway."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import aiohttp

from judgebench.errors import Problem, SetupError
from judgebench.files import to_bytes
from judgebench.models.batch import Sent
from judgebench.models.chat import (
    Lane,
    TransientError,
    UnreachableError,
    UnreadableBodyError,
    as_chat,
    ask_with_less,
    chat_body,
    enforced,
    error_status,
    error_text,
    failure,
    read_chat,
    read_json,
    strict,
    wait_asked_for,
)
from judgebench.models.contract import QUESTIONS, Reply, Request
from judgebench.models.settings import PACE, BackendSettings, Body, proxy_of, url_below
from judgebench.models.transport import DEFAULT_WAITS, FEW_WORDS, Attempt, Backoff, Transport
from judgebench.rubric import Metric


class Format(NamedTuple):
    """A way to ask a server, whose path names it: what is posted for a body of chat completions,
    and the Reply in the JSON that comes back; `read` raises UnreadableBodyError. With `write`
    a body is made of the request alone, and nothing in it is a parameter."""

    path: str
    read: Callable[[Any, Request], Reply]
    sent: Callable[[Body], Body] = dict
    write: Callable[[Request], Body] | None = None


CHAT = Format("/chat/completions", lambda body, request: read_chat(body, request.labels_asked))


class OpenAICompatible:
    """A Backend over plain HTTP; `model` may name the address too, as `MODEL@http://HOST/v1`.

    `structured: auto` means `json_schema`, and never anything else: a server that refuses it ends
    the run with a SetupError that says what to set, because a judge whose replies are enforced in
    another way is another judge, and its signature is taken before the first call.
    A key is sent only where `api_key_env` names its variable. Raises SetupError for a base_url
    that is none.
    """

    def __init__(
        self, model: str, settings: BackendSettings, waits: Backoff = DEFAULT_WAITS,
        format: Format = CHAT,
    ) -> None:  # fmt: skip
        name, _, address = model.rpartition("@")
        if address.startswith(("http://", "https://")):
            if settings.base_url not in (None, address):
                message = "names another address than the backend does"
                raise SetupError(Problem(message, field="settings.base_url"))
            model, settings = name, settings.model_copy(update={"base_url": address})
        base_url = settings.checked_base_url()
        if base_url is None:
            allowed = "a URL such as http://127.0.0.1:8000/v1"
            raise SetupError(Problem("is needed", field="settings.base_url", allowed=allowed))
        self._model, self._settings, self._base_url = model, settings, base_url
        self._lane: Lane = "json_schema" if settings.structured == "auto" else settings.structured
        self._format, self._url = format, url_below(base_url, format.path)
        self._form: tuple[Mapping[str, Any] | None, Body] = None, {}  # of the last schema
        self._marks = map(f"{uuid4().hex}-{{:08d}}".format, count())
        self._repeats: bool | None = None  # whether replies repeat their request's mark, if known
        self._transport = Transport(settings, waits, f"{model} at {self._base_url}")

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "openai-compatible" if self._format is CHAT else self._format.path[1:],
            "model": self._model,
            "base_url": self._base_url,
            "structured": QUESTIONS if self._format.write else self._lane,
            **self._settings.runtime(*_ASKED),
            "runtime": self._settings.runtime(*PACE),
        }

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        return self._transport.stream(self._open, requests)

    def drain(self) -> None:
        self._transport.drain()

    def close(self) -> None:
        self._transport.close()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Attempt]:
        async with (
            self._session(is_shared=False) as single,
            self._session(is_shared=True) as shared,
        ):
            yield partial(self._attempt, (single, shared))

    def _session(self, is_shared: bool) -> aiohttp.ClientSession:
        """One whose connections serve a single request each, unless they are shared."""
        limit = self._settings.concurrency
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limit, force_close=not is_shared),
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
            headers={"Content-Type": "application/json", **self._settings.sent_headers()},
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy_of(self._base_url),
        )

    async def _attempt(self, sessions: Sessions, request: Request) -> Reply:
        async def ask(body: Body) -> Reply:
            asked = request.labels_asked if write or "logprobs" in body else None
            status, raw, after = await self._post(sessions, _json(self._format.sent(body)))
            return self._read(status, raw, replace(request, labels_asked=asked), after)

        write, body = self._format.write, self._body(request)
        if request.messages == FEW_WORDS and not write:
            return await ask_with_less(ask, body, self._about)
        return await ask(body)

    async def _post(self, sessions: Sessions, data: bytes) -> tuple[int, bytes, float | None]:
        """Status, body and the seconds that the server asks for. Raises TransientError."""
        mark, is_shared = next(self._marks), self._repeats is True
        try:
            async with sessions[is_shared].post(
                self._url, data=data, headers={_MARK: mark}, allow_redirects=False
            ) as response:
                raw = await _whole(response)
        except TimeoutError:
            raise TransientError(f"no reply within {self._settings.timeout_s:g} s") from None
        except aiohttp.ClientConnectorError as error:
            # Its text begins with the library's own settings; the cause stands in brackets.
            cause = str(error).partition("[")[2].rstrip("]") or error
            raise UnreachableError(f"no server answers at {self._base_url}: {cause}") from None
        except aiohttp.ClientError as error:
            # Its repr may hold the headers that were sent, and so the key.
            raise TransientError(f"the connection broke: {type(error).__name__}: {error}") from None
        repeated = mark.encode() in raw or mark in response.headers.get(_MARK, "")
        if is_shared and not repeated:
            self._repeats = False
            raise TransientError(f"a response over a shared connection lacks its request's {_MARK}")
        if repeated and self._repeats is None:
            self._repeats = True
        return response.status, raw, wait_asked_for(response.headers)

    def written(self, request: Request) -> Sent:
        """The request that a call sends."""
        return Sent(self._url, self._settings.sent_headers(), _json(self._body(request)))

    def read_back(self, request: Request, status: int, body: bytes) -> Reply:
        """The reply of a call that gets this. Raises as a call does."""
        return self._transport.reply(request, self._read(status, body, request))

    def _body(self, request: Request) -> Body:
        """The body of a request. What a schema adds is the same for many."""
        if self._format.write:
            body = self._format.write(request)
            return {"model": self._model, **body, **self._settings.extra_body}
        schema, form = self._form
        if request.schema is not schema:
            form = enforced(strict(request.schema), self._lane) if request.schema else {}
            self._form = request.schema, form
        return {"model": self._model, **chat_body(request, settings=self._settings), **form}

    def _read(self, status: int, raw: bytes, request: Request, after: float | None = None) -> Reply:
        """The meaning of a response. Raises as `failure` does."""
        body = read_json(raw)
        if status < 300 and isinstance(body, dict) and (error := body.get("error")):
            # Some gateways report an engine's error in a body that came with status 200.
            status = error_status(error.get("code") if isinstance(error, dict) else None) or 500
        if status >= 300:
            return failure(status, error_text(body), self._about, after)
        if isinstance(body, str):
            raise TransientError(f"the body is not JSON: {error_text(body)}")
        return self._format.read(body, request)

    @property
    def _about(self) -> str:
        key = self._settings.api_key_env
        sent = f"the key in {key}" if key else "no key (`api_key_env` names none)"
        return f"{self._base_url}, model {self._model}, {sent}"


Sessions = tuple[aiohttp.ClientSession, aiohttp.ClientSession]
_MARK = "X-Request-Id"
_ASKED = ("thinking", "headers", "extra_body")  # what a judge's replies depend on
_LONGEST_BODY = 8 * 2**20  # bytes, unpacked; a whole reply with its usage has a few thousand


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return to_bytes(value)
    except ValueError:  # lone surrogates, which UTF-8 cannot hold, are escaped
        return json.dumps(value).encode()


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body. Raises TransientError for one longer than any reply, without reading it whole."""
    try:
        await response.content.readexactly(_LONGEST_BODY + 1)
    except asyncio.IncompleteReadError as body:
        return body.partial
    raise TransientError(f"the body is longer than {_LONGEST_BODY} bytes")


# By status and reason for being incomplete; a host that leaves the status out has ended.
_FINISH = {
    ("completed", None): "stop", (None, None): "stop",
    ("incomplete", "max_output_tokens"): "length",
    ("incomplete", "content_filter"): "content_filter",
}  # fmt: skip


_NAMES = {"messages": "input", "max_tokens": "max_output_tokens"}


def _written(chat: Body) -> Body:
    """A body of chat completions in the names of this API."""
    body: Body = {"store": False, **{_NAMES.get(name, name): v for name, v in chat.items()}}
    if body.pop("logprobs", False):
        body["include"] = ["message.output_text.logprobs"]
    if form := body.pop("response_format", None):
        written = {"type": form["type"], **form.get("json_schema", {})}
        more = body.get("text")  # a `verbosity`
        body["text"] = {**(more if isinstance(more, dict) else {}), "format": written}
    return body


def _read_response(body: Any, request: Request) -> Reply:
    """Raises UnreadableBodyError where there is no whole response, as `read_chat` does. What the
    model says on its way to the reply (`commentary`) is none of it."""
    try:
        items = [item for item in body["output"] if item.get("phase") != "commentary"]
        parts = [
            part
            for item in items
            for part in (*(item.get("summary") or ()), *(item.get("content") or ()))
        ]
        incomplete = body.get("incomplete_details") or {}
        message = {
            "content": _joined(parts, "output_text"),
            "refusal": _joined(parts, "refusal"),
            "reasoning_content": _joined(parts, "summary_text", "reasoning_text"),
        }
        choice = {
            "message": message,
            "finish_reason": _FINISH[body.get("status"), incomplete.get("reason")],
            "logprobs": {"content": [e for part in parts for e in part.get("logprobs") or ()]},
        }
    except (AttributeError, LookupError, TypeError):
        raise UnreadableBodyError(f"no whole response: {error_text(body)}") from None
    return read_chat(as_chat(body, choice), request.labels_asked)


def _joined(parts: list[Body], *types: str) -> str:
    """The text of the parts of these types; a refusal has its own key."""
    return "".join(part.get("text") or part["refusal"] for part in parts if part["type"] in types)


# A Backend as `OpenAICompatible` is one.
responses = partial(OpenAICompatible, format=Format("/responses", _read_response, _written))


MAX_QUESTIONS = 400  # the API's bound


class Question(NamedTuple):
    """A question as it is asked: which of these labels, how far on the scale from the first label
    to the last, or whether the only label is right. Predicates share their metric's key."""

    key: str
    kind: Literal["choice", "score", "predicate"]
    text: str
    options: Mapping[str, str]  # the labels with their descriptions


def named_questions(request: Request) -> dict[str, Question]:
    """The questions by the names under which they are asked. Raises SetupError for too many, or for
    a request that asks for text."""
    questions = [q for each in request.metrics.items() for q in _questions(*each)]
    if not 0 < len(questions) <= MAX_QUESTIONS:
        raise SetupError(
            f"a decision model answers 1 to {MAX_QUESTIONS} questions of a rubric in one request, "
            f"and writes no text; found {len(questions)}: write `mode: per_metric` if these are "
            "too many, or show fewer texts at once"
        )
    return {f"q{number}": question for number, question in enumerate(questions, 1)}


def _questions(key: str, metric: Metric) -> Iterator[Question]:
    """One; of a metric that takes several labels one for each. A scale has no place for labels that
    give no grade (`abstain`), so that a metric with such is a choice."""
    text = f"{key}: {metric.question}"
    options = {label.text: label.description or label.text for label in metric.labels}
    if metric.several:
        for label, meaning in options.items():
            statement = f"{text}\nAmong the right labels is {label!r}: {meaning}"
            yield Question(key, "predicate", statement, {label: meaning})
    elif metric.kind == "ordinal" and not metric.abstain:
        yield Question(key, "score", text, options)
    else:
        in_order = {label: options.get(label, label) for label in metric.options}
        yield Question(key, "choice", text, in_order)


_LISTS = {"choice": ("choices", "value"), "score": ("levels", "label")}


def decision_body(request: Request) -> dict[str, Any]:
    """The body of /v1/decisions, without the model."""
    turns = [{"role": turn.role, "content": turn.content} for turn in request.messages]
    questions = []
    for name, (_, kind, text, options) in named_questions(request).items():
        typed: dict[str, Any] = {"type": kind, "name": name, "instructions": text}
        if kind != "predicate":
            field, key = _LISTS[kind]
            typed[field] = [{key: label, "description": meant} for label, meant in options.items()]
        questions.append(typed)
    return {"input": turns, "questions": questions}


def state_body(request: Request) -> dict[str, Any]:
    """The body of /v1/systemone, without the model."""
    questions = {}
    for name, (_, kind, text, options) in named_questions(request).items():
        levels = list(map(": ".join, options.items()))
        criteria = {"criteria": levels if kind == "score" else options}
        how = {"type": "noul"} if kind == "predicate" else {"type": kind, **criteria}
        questions[name] = {**how, "instructions": text}
    state = "\n\n".join(turn.content for turn in request.messages)
    return {"state": state, "questions": questions}


_RIGHT = 0.5  # a label of several is given from this probability on
_ROUNDING = 0.005  # of a probability with two decimals
_LEAST = 1e-38  # float32 knows nothing smaller; a model says 0

Weights = dict[str, float]  # the probability of each label


def _read_decision(body: Any, request: Request) -> Reply:
    """The completion in a body of either protocol. Raises UnreadableBodyError where it does not
    answer the questions, each once and by probabilities of its labels."""
    named, weights, declined = named_questions(request), dict[str, Weights](), list[str]()
    try:
        answers = body["answers"]
        by_name = answers if isinstance(answers, dict) else {a["name"]: a for a in answers}
        if len(answers) != len(named) or by_name.keys() != named.keys():
            raise ValueError("other questions are answered than were asked")
        for name, question in named.items():
            if by_name[name]["type"] == "refusal":
                declined.append(question.key)
            else:
                weights.setdefault(question.key, {}).update(_weights(question, by_name[name]))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnreadableBodyError(f"no decision: {error}: {error_text(body)}") from None
    labels = {key: _label(m, weights[key]) for key, m in request.metrics.items() if key in weights}
    refusal = f"the model declines to answer {', '.join(declined)}" if declined else ""
    message = {"content": json.dumps(labels, ensure_ascii=False), "refusal": refusal}
    done = read_chat(as_chat(body, {"message": message}))
    if request.labels_asked is None:
        return done
    logs = {
        key: {label: math.log(max(p, _LEAST)) for label, p in found.items()}
        for key, found in weights.items()
    }
    return replace(done, log_probabilities=logs)


def _weights(question: Question, answer: Body) -> Weights:
    """The probabilities in an answer, which add up to 1 but for their rounding. Raises ValueError
    where they are none of these labels, or another label is likelier than the choice."""
    weights = _listed(question, answer)
    total = 1.0 if question.kind == "predicate" else math.fsum(weights.values())
    are_shares = all(0 <= p <= 1 for p in weights.values())
    is_whole = abs(total - 1) <= len(weights) * _ROUNDING
    if weights.keys() != question.options.keys() or not (are_shares and is_whole):
        raise ValueError(f"{question.key} has no probabilities of its labels, but {weights}")
    chosen = [answer["choice"]] if question.kind == "choice" else []
    if any(weights[label] < max(weights.values()) for label in chosen):
        raise ValueError(f"{question.key}: another label is likelier than {chosen[0]!r}")
    # The choice comes first, which settles a tie.
    return {label: weights[label] / total for label in (*chosen, *question.options)}


def _listed(question: Question, answer: Body) -> Weights:
    """The probabilities in an answer: a list of labels, or an object by label, or by level."""
    if question.kind == "predicate":
        p: float = answer["probability"] if "probability" in answer else answer["noul"]
        return dict.fromkeys(question.options, p)
    shares = answer["probabilities"]
    if not isinstance(shares, dict):
        return {each.get("label", each["value"]): each["probability"] for each in shares}
    if question.kind == "choice":
        return shares
    return {label: shares[str(level)] for level, label in enumerate(question.options)}


def _label(metric: Metric, weights: Weights) -> str | list[str]:
    """The likeliest label, the less severe one of two on a scale; of several all that are rather
    right than wrong, and at least one."""
    likeliest = max(weights, key=weights.__getitem__)
    if not metric.several:
        return likeliest
    return [label for label, p in weights.items() if p >= _RIGHT] or [likeliest]


# Backends of a decision model, as `OpenAICompatible` is one.
decisions = partial(
    OpenAICompatible, format=Format("/decisions", _read_decision, write=decision_body)
)
systemone = partial(OpenAICompatible, format=Format("/systemone", _read_decision, write=state_body))
