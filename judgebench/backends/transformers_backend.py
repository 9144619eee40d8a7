"""A judge's model inside this process, run by transformers; outlines binds it to a schema.

The schema becomes a finite automaton over the vocabulary that masks each step's logits
(Willard and Louf, arXiv:2307.09702).
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from judgebench.backends.checkpoint import ChatEncoder, enforces_schema, identify, too_long
from judgebench.backends.contract import Backend, Reply, Request
from judgebench.backends.settings import BackendSettings
from judgebench.errors import MissingExtra, RunError, SetupError
from judgebench.records import Usage


def open_transformers(model: str, settings: BackendSettings) -> Backend:
    """The model of a GGUF file, a local folder or a hub name, loaded.

    `settings.concurrency` is how many prompts are computed side by side. `settings.context`
    shortens the model's own context. On a GPU the weights keep their type, on a CPU they are
    computed with in float32. Raises MissingExtra without the packages, SetupError where the model
    cannot be loaded.
    """
    enforced = enforces_schema(settings)
    # Compiling the mask's kernel takes longer than a small run.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    try:
        import outlines
        import torch
        import transformers
    except ImportError as error:
        package = "transformers, outlines and torch"
        raise MissingExtra("transformers:", "transformers", package) from error
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    loaded, tokenizer = _load(model)
    own_context = getattr(loaded.config.get_text_config(), "max_position_embeddings", None)
    context = min(c for c in (settings.context, own_context, 1 << 20) if c is not None)
    description = {
        "backend": "transformers",
        "engine": f"transformers {transformers.__version__}",
        **identify(model),
        "dtype": str(loaded.dtype).removeprefix("torch."),
        "context": context,
        "structured": f"outlines {_version(outlines)}" if enforced else "none",
        "runtime": {
            "torch": torch.__version__,
            "device": loaded.device.type,
            **settings.runtime("concurrency", "threads"),
        },
    }
    return TransformersBackend(loaded, tokenizer, description, settings.concurrency)


def _version(package: Any) -> str:
    from importlib.metadata import version

    return version(package.__name__)


def _load(model: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = Path(model).expanduser()
    where, gguf = (path.parent, {"gguf_file": path.name}) if path.is_file() else (model, {})
    gpu = torch.cuda.is_available()
    # Half precision is emulated on many CPUs: slower than float32, and rounded differently.
    kind = {"dtype": "auto", "device_map": "auto"} if gpu else {"dtype": torch.float32}
    try:
        loaded = AutoModelForCausalLM.from_pretrained(where, **gguf, **kind)
        tokenizer = AutoTokenizer.from_pretrained(where, **gguf)
    except Exception as error:  # no such model, no hub, no memory, an unknown architecture, ...
        raise SetupError(f"transformers: cannot load {model!r}: {error}") from error
    return loaded.eval(), tokenizer


@dataclass(frozen=True, slots=True)
class _Row:
    """A request with its prompt's token ids and the most tokens that its reply may have."""

    request: Request
    prompt: list[int]
    room: int


class TransformersBackend:
    """See `open_transformers`.

    Greedy requests are computed `batch` at a time; their neighbours shift logits by rounding, so
    close calls may differ between batch sizes. A request with a temperature is computed alone,
    for its samples would depend on its neighbours.
    """

    def __init__(
        self, model: Any, tokenizer: Any, description: Mapping[str, Any], batch: int
    ) -> None:
        import outlines

        self._steered = outlines.from_transformers(model, tokenizer)  # sets the padding token
        self._model = model
        self._tokenizer = tokenizer
        self._description = description
        self._batch = batch
        self._encode = ChatEncoder(tokenizer, description["model"])
        self._ends = _forget_sampling(model, tokenizer)
        self._bound = lru_cache(maxsize=16)(self._compile)

    def describe(self) -> Mapping[str, Any]:
        return self._description

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        source = iter(requests)
        context: int = self._description["context"]
        while batch := list(islice(source, self._batch)):
            groups: dict[tuple[Any, ...], list[_Row]] = {}
            for place, request in enumerate(batch):
                prompt = self._encode(request)
                if len(prompt) >= context:
                    yield too_long(request, len(prompt), context)
                    continue
                row = _Row(request, prompt, min(request.max_tokens, context - len(prompt)))
                groups.setdefault(_alike(row, place), []).append(row)
            for rows in groups.values():
                yield from self._generate(rows)

    def _generate(self, rows: list[_Row]) -> list[Reply]:
        import torch

        first = rows[0]
        bound = self._processors(first.request)
        ids, mask = self._pad_left([row.prompt for row in rows])
        started = time.perf_counter()
        if first.request.temperature > 0 and first.request.seed is not None:
            torch.manual_seed(first.request.seed)
        try:
            with torch.inference_mode():
                output = self._model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    max_new_tokens=first.room,
                    logits_processor=bound,
                    **_decoding(first.request),
                )
        except torch.OutOfMemoryError as error:
            raise RunError(
                "transformers: out of memory; lower settings.concurrency or settings.context"
            ) from error
        seconds = (time.perf_counter() - started) / len(rows)
        replies = output[:, ids.shape[1] :].tolist()
        return [self._reply(row, new, seconds) for row, new in zip(rows, replies, strict=True)]

    def _pad_left(self, prompts: list[list[int]]) -> tuple[Any, Any]:
        """Token ids and attention mask, each (prompts, longest prompt)."""
        import torch

        width = max(map(len, prompts))
        pad = self._tokenizer.pad_token_id
        ids = [[pad] * (width - len(p)) + p for p in prompts]
        mask = [[0] * (width - len(p)) + [1] * len(p) for p in prompts]
        device = self._model.device
        return torch.tensor(ids, device=device), torch.tensor(mask, device=device)

    def _processors(self, request: Request) -> list[Any]:
        if request.schema is None or self._description["structured"] == "none":
            return []
        processor = self._bound(json.dumps(request.schema))  # the order of keys is the reply's
        processor.reset()
        return [processor]

    def _compile(self, schema: str) -> Any:
        import outlines
        from outlines.types import JsonSchema

        try:
            wanted = JsonSchema(schema, whitespace_pattern="")
            return outlines.Generator(self._steered, wanted).logits_processor
        except Exception as error:  # outlines' core raises kinds of its own
            raise SetupError(f"outlines cannot enforce this schema: {error}") from error

    def _reply(self, row: _Row, new: list[int], seconds: float) -> Reply:
        end = next((i for i, token in enumerate(new) if token in self._ends), None)
        kept = new if end is None else new[: end + 1]
        return Reply(
            key=row.request.key,
            text=self._tokenizer.decode(kept, skip_special_tokens=True),
            finish="length" if end is None else "stop",
            usage=Usage(1, len(row.prompt), len(kept)),
            latency=seconds,
        )

    def close(self) -> None:
        self._model = self._steered = None
        self._bound.cache_clear()
        gc.collect()


def _forget_sampling(model: Any, tokenizer: Any) -> frozenset[int]:
    """Drop the checkpoint's own sampling settings; the tokens that end a reply.

    Many checkpoints bring a repetition penalty or a top-k that would steer every reply unseen.
    """
    from transformers import GenerationConfig

    ends = model.generation_config.eos_token_id
    ends = {ends} if isinstance(ends, int) else set(ends or ())
    ends.add(tokenizer.eos_token_id)  # the one by which outlines ends a reply
    model.generation_config = GenerationConfig(
        eos_token_id=sorted(ends), pad_token_id=tokenizer.pad_token_id
    )
    return frozenset(ends)


def _alike(row: _Row, place: int) -> tuple[Any, ...]:
    """Equal for rows that one call can compute together."""
    request = row.request
    schema = None if request.schema is None else json.dumps(request.schema)
    return (schema, row.room, None if request.temperature == 0 else place)


def _decoding(request: Request) -> dict[str, Any]:
    if request.temperature == 0:
        return {"do_sample": False}
    return {
        "do_sample": True,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": 0,  # off; left out it would be 50
    }
