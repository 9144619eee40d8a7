"""A GGUF model in this process, by llama.cpp (extra `embedded`): no server, no network, no GPU.

Replies are the same bit for bit whatever was asked before. Two things would break that, and both
are kept out: several slots at once, and llama.cpp's prompt cache, which evaluates a prompt in
other pieces depending on what it shares with the last one. Most of a judge's prompt is its system
message, though, so that is evaluated once and kept (see `LlamaEngine.ask`).

Threads of one engine spend much of their time waiting for each other where the model is small, so
`concurrency` asks for several engines side by side, each with a copy of the model.

Label probabilities are asked for once a reply is written (`Probes`). The server tells
log-probabilities of all tokens, before the grammar takes out those that fit no
label; of a weak model the fitting ones are then often not among the first thousand. So it is
asked anew for one token at each place where labels still part: after the rendered prompt and the
very tokens of the reply, under a grammar of the labels, with the probabilities that are left after
sampling at temperature 1 (`post_sampling_probs`). What has been evaluated is kept, so each
such probe costs about one token, and the branches that the reply did not take can be asked too.

A probe tells the distribution under its grammar only if the first draw was against it: llama.cpp
draws without the grammar, and draws again under it where the token does not fit. So a token that
fits nowhere, a control character, is made certain to be drawn first.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from http.client import HTTPConnection, HTTPException
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from judgebench.errors import MissingExtra, Problem, RunError, SetupError
from judgebench.models.chat import (
    Lane,
    TransientError,
    chat_body,
    error_text,
    failure,
    read_chat,
)
from judgebench.models.checkpoints import break_up, enforces_schema, local_path, sha256_of
from judgebench.models.contract import LabelsAsked, Reply, Request
from judgebench.models.settings import BackendSettings
from judgebench.models.token_scoring import LabelsRead, Place, Token, read_labels

DEFAULT_CONTEXT = 4096


class LlamaCpp:
    """A Backend over the GGUF file at `model`, or a name in WEIGHTS.

    The model is loaded with the first request. Raises SetupError where the file is no GGUF.
    """

    def __init__(self, model: str, settings: BackendSettings) -> None:
        self._path = _find(model)
        self._context = settings.context or DEFAULT_CONTEXT
        self._engines = settings.concurrency_or(1)
        self._threads = settings.threads or max(1, default_threads() // self._engines)
        self._lane: Lane = "json_schema" if enforces_schema(settings) else "none"
        self._version = _xllamacpp().__version__
        self._idle: list[LlamaEngine] = []

    @cached_property
    def _sha256(self) -> str:
        return sha256_of(self._path)

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "llamacpp",
            "version": self._version,
            "model": self._path.name,
            "sha256": self._sha256,
            "context": self._context,
            "structured": self._lane,
            "runtime": {"threads": self._threads, "concurrency": self._engines},
        }

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply a request, as each finishes; no more requests are read than engines work."""
        source = iter(requests)
        with ThreadPoolExecutor(self._engines, "judgebench-llamacpp") as pool:
            working = {pool.submit(self._reply, r) for r in islice(source, self._engines)}
            while working:
                done, working = wait(working, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                    working |= {pool.submit(self._reply, r) for r in islice(source, 1)}

    def _reply(self, request: Request) -> Reply:
        """Runs on a thread of its own; whoever works holds an engine that nobody else has."""
        try:
            engine = self._idle.pop()
        except IndexError:
            engine = self._loaded()
        began = time.monotonic()
        try:
            done = self._completed(engine, request)
        finally:
            self._idle.append(engine)
        usage, latency = replace(done.usage, calls=1), time.monotonic() - began
        return replace(done, key=request.key, usage=usage, latency=latency, model="", reasoning="")

    def _loaded(self) -> LlamaEngine:
        return LlamaEngine(self._path, self._threads, self._context)

    def _completed(self, engine: LlamaEngine, request: Request) -> Reply:
        texts = [replace(m, content=engine.disarmed(m.content)) for m in request.messages]
        request = replace(request, messages=tuple(texts))
        body = engine.reply(request, self._lane)
        try:
            has_error = "error" in body
            done = failure(400, error_text(body), str(self._path)) if has_error else read_chat(body)
        except TransientError as error:
            done = Reply("", "", "failed", error=str(error))
        if request.labels_asked is None or done.finish not in ("stop", "length"):
            return done
        read = Probes(engine, chat_body(request, self._lane), body).read(request.labels_asked)
        return replace(done, error=read.reason, log_probabilities=read.log_probabilities or None)

    def close(self) -> None:
        self._idle.clear()


class LlamaEngine:
    """A loaded model and what its one slot holds."""

    def __init__(self, path: Path, threads: int, context: int) -> None:
        self._key = secrets.token_urlsafe(24)
        self._server = load(path, threads, context, key=self._key)
        self._system = ""
        self._intact = 0
        # Most messages are one system text, so what was found of it is remembered.
        self.disarmed = lru_cache(16)(partial(break_up, control=self._control_tokens))

    def _control_tokens(self, text: str) -> list[tuple[int, int]]:
        """The places where llama.cpp would read control tokens of the model in a text."""
        pieces = self._pieces(text, True) - self._pieces(text, False)
        # A piece beside a control token may be another without it, and is none itself.
        control = [p for p in pieces if self._pieces(p, True) != self._pieces(p, False)]
        return [m.span() for m in re.finditer("|".join(map(re.escape, control)) or "(?!)", text)]

    def _pieces(self, text: str, parse_special: bool) -> set[str]:
        """The tokens of a text, of those that are whole characters."""
        tokens = self.tokens(text, parse_special=parse_special, with_pieces=True)
        return {token["piece"] for token in tokens if isinstance(token["piece"], str)}

    def tokens(self, text: str, **how: bool) -> list[Any]:
        """The tokens of a text, nothing put before it unless `add_special` says so."""
        return list(self.ask("/tokenize", {"content": text, "add_special": False, **how})["tokens"])

    def reply(self, request: Request, lane: Lane) -> Any:
        """The body of the reply to a request, as if it were the first ever asked.

        The system message is evaluated alone, and each request goes on from there. The tokens in
        which the rendered request agrees with that prefix are reused, and they are reused only
        if every one of them still is what the first evaluation left (`_intact` counts those): a
        token evaluated again, in a batch of another size, differs in its last bits.
        """
        body = {**chat_body(request, lane), **PLAIN_SAMPLING}
        if request.labels_asked is not None:
            body |= WITH_TOKEN_IDS
        first = request.messages[0]
        if first.role == "system":
            for anew in (first.content != self._system, True):
                if not self._evaluate(first.content, anew):
                    break
                reply = self._chat(body, reuse=True)
                if _reused(reply) <= self._intact:
                    return reply
        self._system = ""
        return self._chat(body, reuse=False)

    def _evaluate(self, system: str, anew: bool) -> bool:
        """Have the slot hold the system message; False where the model's template cannot."""
        alone = {"messages": [{"role": "system", "content": system}], "max_tokens": 0}
        reply = self._chat(alone, reuse=not anew)
        self._system = system
        if "error" in reply:
            return False
        counted = reply["usage"]["prompt_tokens"]
        self._intact = counted if anew else min(self._intact, _reused(reply))
        return True

    def _chat(self, body: dict[str, Any], reuse: bool) -> Any:
        return self._response("/v1/chat/completions", {**body, "cache_prompt": reuse})

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of the engine's reply. Raises RunError for a refusal."""
        response = self._response(path, body)
        if "error" in response:
            raise RunError(f"llama.cpp refuses {path}: {error_text(response)}")
        return response

    def _response(self, path: str, body: Mapping[str, Any]) -> Any:
        connection = HTTPConnection(urlsplit(self._server.listening_address).netloc)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            return json.load(connection.getresponse())
        except (OSError, HTTPException) as error:
            raise RunError(f"llama.cpp does not answer: {error}") from error
        finally:
            connection.close()


def _reused(reply: Any) -> int:
    return int(reply.get("timings", {}).get("cache_n", 0))


def load(path: Path, threads: int, context: int, slots: int = 1, key: str = "") -> Any:
    """An xllamacpp.Server, which always listens: here only on loopback, behind a random key."""
    engine = _xllamacpp()
    params = engine.CommonParams()
    params.model.path = str(path)
    params.n_parallel = slots
    params.n_ctx = context * slots
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    # On a CPU plain attention is the faster way: a fifth of the time of a reply.
    params.flash_attn_type = engine.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [key or secrets.token_urlsafe(24)]
    params.ui = params.endpoint_slots = params.fit_params = params.warmup = False
    params.verbosity = 0  # llama.cpp writes to stderr past Python
    try:
        return engine.Server(params)
    except RuntimeError as error:
        raise SetupError(
            Problem(f"llama.cpp cannot load this model: {error}", file=str(path))
        ) from None


def default_threads() -> int:
    """`JUDGEBENCH_THREADS` where it is set, else the cores that this process may use."""
    if (given := os.environ.get("JUDGEBENCH_THREADS", "")).isdigit():
        return max(1, int(given))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _xllamacpp() -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise MissingExtra("a llamacpp backend", "embedded", "xllamacpp") from None
    return xllamacpp


def _find(model: str) -> Path:
    path = Path(local_path(model))
    try:
        with path.open("rb") as file:
            is_gguf = file.read(4) == b"GGUF"
    except OSError as error:
        raise SetupError(Problem(f"cannot be read: {error.strerror}", file=str(path))) from None
    if not is_gguf:
        raise SetupError(Problem("is no GGUF file", file=str(path)))
    return path


# llama.cpp's own defaults would cut the distribution that temperature and top_p are declared for.
PLAIN_SAMPLING = {"top_k": 0, "min_p": 0.0}
# The cheapest way to the ids of a reply's tokens: at temperature 0 one candidate is left.
WITH_TOKEN_IDS = {"logprobs": True, "top_logprobs": 1, "post_sampling_probs": True}

_LISTED = 64  # tokens that a probe lists; labels seldom begin in more ways
_CERTAIN = 1000.0  # a logit above all others
_NEVER_IN_JSON = "\x01"


class Probes:
    """One-token requests about the reply in `answered`, which `body` asked for."""

    def __init__(
        self, engine: LlamaEngine, body: Mapping[str, Any], answered: Mapping[str, Any]
    ) -> None:
        self._engine, self._body = engine, body
        (choice,) = answered["choices"]
        content = choice.get("logprobs", {}).get("content", [])
        self._written = [Token(bytes(t["bytes"]), 0.0, int(t["id"])) for t in content]
        self._text: str = choice["message"]["content"] or ""
        self._prompt_tokens: int = answered["usage"]["prompt_tokens"]

    def read(self, asked: LabelsAsked) -> LabelsRead:
        """The log-probabilities of the labels of each field, or why there are none."""
        pieces = [token.piece for token in self._written]
        return read_labels(self._text, pieces, asked.fields, self._ask)

    def _ask(self, place: Place) -> list[Token] | None:
        grammar = place.grammar()
        if grammar is None:
            return None
        behind = place.ids_before(self._written)
        reply = self._engine.ask(
            "/v1/completions",
            {
                "prompt": [self._prompt, *behind],
                "n_predict": 1,
                "temperature": 1.0,
                "top_p": 1.0,
                **PLAIN_SAMPLING,
                "grammar": grammar,
                "logit_bias": [[self._never_fits, _CERTAIN]],
                "n_probs": _LISTED,
                "post_sampling_probs": True,
                "cache_prompt": True,
            },
        )
        if reply["usage"]["prompt_tokens"] != self._prompt_tokens + len(behind):
            return None  # this template's prompt is not rendered alike on its own
        (step,) = reply["choices"][0]["logprobs"]["content"]
        return [
            Token(bytes(entry["bytes"]), math.log(entry["prob"]), int(entry["id"]))
            for entry in step["top_probs"]
            if entry["prob"] > 0
        ]

    @cached_property
    def _prompt(self) -> str:
        return str(self._engine.ask("/apply-template", self._body)["prompt"])

    @cached_property
    def _never_fits(self) -> int:
        tokens = self._engine.tokens(_NEVER_IN_JSON)
        if not tokens:
            raise SetupError("this model knows no control character, so its labels cannot be asked")
        return int(tokens[-1])
