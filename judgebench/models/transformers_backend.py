"""A judge's model inside this process, run by transformers; outlines binds it to a schema.

The schema becomes a finite automaton over the vocabulary, which masks each step's logits
(Willard and Louf, arXiv:2307.09702).
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from judgebench.errors import MissingExtra, RunError, SetupError
from judgebench.models.checkpoints import (
    ChatEncoder,
    check_base,
    enforces_schema,
    identify,
    identify_adapter,
    load,
    local_path,
    too_long,
    with_adapter,
)
from judgebench.models.contract import Draws, Reply, Request, TokenScorer
from judgebench.models.settings import BackendSettings
from judgebench.models.token_scoring import Floats, LabelScorer, Text, TextReader, TokenWeigher
from judgebench.records import Usage

_UNBOUNDED = 1 << 30


class TransformersBackend:
    """The model of a GGUF file, a local folder, a name in WEIGHTS or a hub name; loaded for the
    first request.

    `settings.concurrency` is how many prompts are computed side by side. `settings.context`
    bounds prompt and reply together; without it the model's own does. `adapter` is the folder of an
    adapter that goes on top of the model (see `adapter.py`). On a GPU weights keep
    their type, on a CPU the model computes in float32.
    Raises MissingExtra without the packages, SetupError where there is no such model.

    Greedy requests are computed together; their neighbours shift logits by rounding, so close
    calls may differ between settings of `concurrency`. A request with a temperature is computed
    alone, for its samples would depend on its neighbours. Requests that ask for labels are
    weighed one by one, and nothing is generated: see `label_scorer`.
    """

    def __init__(self, model: str, settings: BackendSettings, adapter: Path | None = None) -> None:
        model, enforced = local_path(model), enforces_schema(settings)
        torch, base = _import_torch(), identify(model)
        if adapter:
            check_base(adapter, base)
        gpu = torch.cuda.is_available()
        self._model, self._settings, self._adapter = model, settings, adapter
        self._engine: _LoadedModel | None = None
        self._description = {
            "engine": "transformers",
            "version": version("transformers"),
            **base,
            **({"adapter": identify_adapter(adapter)} if adapter else {}),
            # Many CPUs only emulate half precision: slower than float32, and rounded otherwise.
            "dtype": "auto" if gpu else "float32",
            "context": settings.context,
            "structured": f"outlines {version('outlines')}" if enforced else "none",
            "runtime": {
                "torch": torch.__version__,
                "device": "cuda" if gpu else "cpu",
                **settings.runtime("concurrency", "threads"),
            },
        }

    def describe(self) -> Mapping[str, Any]:
        return self._description

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        source = iter(requests)
        while batch := list(islice(source, self._settings.concurrency)):
            engine = self._loaded()
            groups = defaultdict[tuple[Any, ...], list[tuple[Request, list[int]]]](list)
            for place, request in enumerate(batch):
                if request.labels_asked is not None:
                    yield engine.weigh(request)
                    continue
                prompt = engine.encode(request)
                if len(prompt) >= engine.context:
                    yield too_long(request, len(prompt), engine.context)
                    continue
                room = min(request.max_tokens, engine.context - len(prompt))
                # Those that one call can compute together.
                alike = room, _text_of(request.schema), place if request.temperature else None
                groups[alike].append((request, prompt))
            for (room, *_), rows in groups.items():
                yield from engine.generate(rows, room)

    def weigher(self) -> TokenScorer:
        """Loads the model."""
        engine = self._loaded()
        return TokenWeigher(engine.encode, engine)

    def _loaded(self) -> _LoadedModel:
        import torch

        if self._engine is None:
            if self._settings.threads is not None:
                torch.set_num_threads(self._settings.threads)
            self._engine = _LoadedModel(self._model, self._description, self._adapter)
        return self._engine

    def close(self) -> None:
        self._engine = None
        gc.collect()


class _LoadedModel:
    """A loaded model and its tokenizer. Foreign errors end here."""

    def __init__(self, model: str, description: Mapping[str, Any], adapter: Path | None) -> None:
        import outlines

        self._model, self._tokenizer = _load(model, description, adapter)
        # outlines gives a tokenizer without a padding token the one that ends a reply.
        self._steered = outlines.from_transformers(self._model, self._tokenizer)
        self._ends = _forget_sampling(self._model, self._tokenizer)
        self._enforced = description["structured"] != "none"
        self._compiled = lru_cache(maxsize=16)(self._compile)
        self.encode = ChatEncoder(self._tokenizer, model)
        self._scorer: LabelScorer | None = None
        self._reader: TextReader | None = None
        config = self._model.config.get_text_config()
        most = getattr(config, "max_position_embeddings", None) or _UNBOUNDED
        # The most tokens that one pass reads.
        self.context: int = min(most, description["context"] or _UNBOUNDED)
        self.window = self.context

    def generate(self, rows: list[tuple[Request, list[int]]], room: int) -> Iterator[Reply]:
        """Replies to requests of one schema, each with its prompt's token ids, of at most `room`
        tokens."""
        (request, _), began = rows[0], time.perf_counter()
        seed = request.seed if request.temperature else None
        how = {"logits_processor": self._processors(request), **_decoding(request)}
        replies = self._generated([prompt for _, prompt in rows], room, seed, **how)
        seconds = (time.perf_counter() - began) / len(rows)
        for (request, prompt), tokens in zip(rows, replies, strict=True):
            end = next((i for i, token in enumerate(tokens) if token in self._ends), None)
            written = tokens if end is None else tokens[: end + 1]
            yield Reply(
                key=request.key,
                text=self._tokenizer.decode(written, skip_special_tokens=True),
                finish="length" if end is None else "stop",
                usage=Usage(1, len(prompt), len(written)),
                latency=seconds,
            )

    def _generated(
        self, prompts: list[list[int]], room: int, seed: int | None, **how: Any
    ) -> list[list[int]]:
        """The tokens of replies to prompts that are computed together."""
        import torch

        # Padded on the left: (prompts, longest prompt).
        width, pad = max(map(len, prompts)), self._tokenizer.pad_token_id
        ids = [[pad] * (width - len(p)) + p for p in prompts]
        mask = [[0] * (width - len(p)) + [1] * len(p) for p in prompts]
        if seed is not None:
            torch.manual_seed(seed)
        with _inference():
            output = self._model.generate(
                input_ids=torch.tensor(ids, device=self._model.device),
                attention_mask=torch.tensor(mask, device=self._model.device),
                max_new_tokens=room,
                **how,
            )
        replies: list[list[int]] = output[:, width:].tolist()
        return replies

    def weigh(self, request: Request) -> Reply:
        """The likeliest labels and the log-probabilities of all; nothing is generated."""
        with _inference():
            scorer = self._scorer = self._scorer or LabelScorer(
                self._model, self.encode, self.context
            )
            return scorer.reply(request)

    def log_p(self, groups: Sequence[Sequence[Text]]) -> Sequence[Sequence[Floats]]:
        with _inference():
            reader = self._reader = self._reader or TextReader(self._model)
            return [reader.read(texts) for texts in groups]

    def sampled(self, prompt: Sequence[int], draws: Draws) -> Sequence[list[int]]:
        """All computed together, from one seed."""
        how = {"num_return_sequences": draws.count, **_decoding(draws)}
        drawn = self._generated([list(prompt)], draws.max_tokens, draws.seed, **how)
        return [list(takewhile(lambda t: t not in self._ends, one)) for one in drawn]

    def _processors(self, request: Request) -> Any:
        """The masks of the logits, as transformers' list of processors."""
        from transformers import LogitsProcessorList

        schema = _text_of(request.schema)
        if schema is None or not self._enforced:
            return LogitsProcessorList()
        processor = self._compiled(schema)
        processor.reset()
        return LogitsProcessorList([processor])

    def _compile(self, schema: str) -> Any:
        import outlines
        from outlines.types import JsonSchema

        try:
            compact = JsonSchema(schema, whitespace_pattern="")
            return outlines.Generator(self._steered, compact).logits_processor
        except Exception as error:  # outlines' core raises kinds of its own
            raise SetupError(f"outlines cannot enforce this schema: {error}") from error


@contextmanager
def _inference() -> Iterator[None]:
    """Keep no gradients, and translate the engine's lack of memory."""
    import torch

    try:
        with torch.inference_mode():
            yield
    except torch.OutOfMemoryError as error:
        raise RunError(
            "transformers: out of memory; lower settings.concurrency or settings.context"
        ) from error


def _import_torch() -> Any:
    """torch, once everything that this backend needs is found to be there."""
    # Compiling the kernel of outlines' mask takes longer than a small run.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    try:
        import outlines  # noqa: F401
        import torch
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        needed = ("transformers", "outlines", "torch")
        raise MissingExtra("transformers:", "transformers", *needed) from error
    return torch


def _load(model: str, description: Mapping[str, Any], adapter: Path | None) -> tuple[Any, Any]:
    placed = "auto" if description["runtime"]["device"] == "cuda" else None
    dtype = description["dtype"]
    loaded, tokenizer = load(model, dtype=dtype, placed=placed, dense=adapter is not None)
    if adapter is not None:
        loaded = with_adapter(loaded, adapter, merged=dtype == "float32")
    return loaded, tokenizer


def _forget_sampling(model: Any, tokenizer: Any) -> frozenset[int]:
    """Drop the checkpoint's own sampling settings; the tokens that end a reply.

    Many checkpoints bring a repetition penalty or a top-k, which would steer every reply unseen.
    """
    from transformers import GenerationConfig

    known = model.generation_config.eos_token_id
    ends = {known} if isinstance(known, int) else set(known or ())
    ends.add(tokenizer.eos_token_id)  # the one with which outlines ends a reply
    model.generation_config = GenerationConfig(
        eos_token_id=sorted(ends), pad_token_id=tokenizer.pad_token_id
    )
    return frozenset(ends)


def _decoding(request: Request | Draws) -> dict[str, Any]:
    if not request.temperature:  # transformers is greedy of its own accord
        return {"do_sample": False}
    return {
        "do_sample": True,
        "temperature": request.temperature,
        "top_p": 1.0 if request.top_p is None else request.top_p,
        "top_k": 0,  # off; left out it would be 50
    }


def _text_of(schema: Mapping[str, Any] | None) -> str | None:
    """The schema as text, its keys in their order, which is the order of the reply's."""
    return None if schema is None else json.dumps(schema)
