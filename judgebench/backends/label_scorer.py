"""Label probabilities by a transformers model, without generating a token.

Each label is put where it would stand in the reply, and the model says how likely that text is.
The shared beginning of the prompts (system text and rubric) is computed once and kept. With
`independent`, one forward pass then weighs all labels of all metrics (`label_tree`); with
`chained`, one pass per metric continues from the likeliest label of the one before.
"""

from __future__ import annotations

import inspect
import json
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from judgebench.backends.checkpoint import ChatEncoder
from judgebench.backends.contract import Message, Reply, Request
from judgebench.backends.label_tree import (
    CLOSE,
    Floats,
    Ints,
    LabelTree,
    ReplyTokens,
    common_prefix,
    label_texts,
    label_tree,
)
from judgebench.errors import SetupError
from judgebench.records import Usage

_PREFIXES = 16  # as many system texts are kept: `per_metric` judging takes turns with several
_PASSED = {"attention_mask", "position_ids", "past_key_values", "logits_to_keep"}
_MASKED = ("sdpa", "eager")  # ways to attend that take a mask of any shape
_WINDOWED = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
# How far the tree may be from plain passes, in natural logarithms; half precision rounds coarsely.
_ROUNDING = {"torch.float32": 1e-2, "torch.float64": 1e-2}
_COARSE_ROUNDING = 0.5


class LabelScorer:
    """Answers requests that ask for labels, with a model that `reach_of` admits.

    Its first answer is checked against plain passes over whole texts, so that a model which reads
    a mask or positions in a way of its own is reported and never gives a wrong number.
    """

    def __init__(self, model: Any, tokenizer: Any, encoder: ChatEncoder, context: int) -> None:
        self._model = model
        self._encoder = encoder
        self._texts = ReplyTokens(tokenizer, encoder.control)
        self._context = min(context, reach_of(model))
        self._prefixes: OrderedDict[tuple[Message, ...], _Prefix] = OrderedDict()
        self._checked = False

    def reply(self, request: Request) -> Reply:
        """The likeliest labels as a JSON object, and every label's log-probability.

        Raises SetupError for a model that cannot weigh labels so.
        """
        assert request.labels_asked is not None
        import torch

        began = time.perf_counter()
        asked = request.labels_asked
        prompt = self._encoder.text(request)
        found: dict[str, Floats] = {}
        reader: _TreeReader | None = None
        with torch.inference_mode():
            for texts in label_texts(asked, found):
                branches = self._texts.branches(prompt, texts)
                longest = max(len(option) for field in branches for option in field)
                if longest > self._context:
                    told = f"{longest} tokens; the model attends to {self._context} at once"
                    error = f"the prompt and a label have {told}"
                    return Reply(request.key, "", "too_long", error=error)
                try:
                    tree = label_tree(branches)
                except ValueError as error:
                    raise _cannot(str(error)) from error
                reader = reader or _TreeReader(
                    self._model, self._prefix_for(request, tree.trunk.tolist())
                )
                logs = reader.weigh(tree, self._texts.closing)
                keys = [field.key for field in asked.fields][len(found) :]
                found.update(zip(keys, logs, strict=False))
            if not self._checked:
                self._check(branches[-1], logs[-1])
                self._checked = True
        tokens = len(self._texts.ids(prompt))
        return _as_reply(request, found, tokens, time.perf_counter() - began)

    def _prefix_for(self, request: Request, trunk: list[int]) -> _Prefix:
        """What the cache already holds of this text; nothing where the text begins otherwise."""
        # Of what stands before the first question: worked examples after it differ with the answer.
        key = tuple(takewhile(lambda m: m.role != "user", request.messages))
        if key not in self._prefixes:
            self._prefixes[key] = _Prefix.of(self._model, self._shared(request))
            if len(self._prefixes) > _PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(key)
        prefix = self._prefixes[key]
        fits = trunk[: len(prefix.tokens)] == prefix.tokens
        return prefix if fits and len(prefix.tokens) < len(trunk) else _Prefix([], [])

    def _shared(self, request: Request) -> list[int]:
        """The tokens with which every prompt with this system text begins.

        They depend on no answer, or replies would depend on the order of answers. The last is
        left out, for it may grow together with what follows.
        """
        said = [
            tuple(m if m.role != "user" else Message("user", text) for m in request.messages)
            for text in ("0", "A")
        ]
        texts = [self._encoder.text(Request("", messages)) for messages in said]
        return common_prefix([self._texts.ids(text) for text in texts])[:-1]

    def _check(self, field: Sequence[list[int]], logs: Floats) -> None:
        """Whether plain passes over the whole texts of one field's options say the same.

        Raises SetupError where they do not.
        """
        plain = plain_log_probabilities(self._model, field, self._texts.closing)
        apart = float(np.abs(plain - logs).max())
        if not apart <= _ROUNDING.get(str(self._model.dtype), _COARSE_ROUNDING):
            raise _cannot(f"plain passes and the pass over all labels differ by {apart:.3g}")


class _Prefix:
    """Tokens that were read, and the keys and values that each layer keeps of them."""

    def __init__(self, tokens: list[int], states: list[tuple[Any, Any]]) -> None:
        self.tokens = tokens
        self._states = states

    @classmethod
    def of(cls, model: Any, tokens: list[int]) -> _Prefix:
        if not tokens:
            return cls([], [])
        import torch

        cache = cls([], []).cache()
        ids = torch.tensor([tokens], device=model.device)
        model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return cls(tokens, [(layer.keys, layer.values) for layer in cache.layers])

    def cache(self) -> Any:
        """A cache to go on from; going on leaves this one as it is.

        Without the model's configuration no layer drops what slides out of its window.
        """
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer, (keys, values) in enumerate(self._states):
            cache.update(keys, values, layer)
        return cache


class _TreeReader:
    """Reads one text after another that begin alike, from what it has read before."""

    def __init__(self, model: Any, prefix: _Prefix) -> None:
        self._model = model
        self._cache = prefix.cache()
        self._read = list(prefix.tokens)

    def weigh(self, tree: LabelTree, closing: Sequence[int]) -> list[Floats]:
        """Each field's options' log-probabilities, in one forward pass."""
        import torch

        trunk = tree.trunk.tolist()
        # The trunk's last token is read again, for what it predicts is asked for.
        known = min(len(common_prefix([self._read, trunk])), len(trunk) - 1)
        self._forget(len(self._read) - known)
        ids = torch.as_tensor(tree.unread(known), device=self._model.device)
        rows = len(trunk) - known + tree.step_node
        kept, place = np.unique(rows, return_inverse=True)
        output = self._model(
            input_ids=ids[None],
            position_ids=torch.as_tensor(tree.positions(known), device=ids.device)[None],
            attention_mask=_additive(self._model, tree.visible(known)),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=torch.as_tensor(kept, device=ids.device),
        )
        self._read = trunk
        self._forget(len(tree.tokens))
        steps = _step_log_p(output.logits[0], place, tree.step_token, closing)
        return tree.log_probabilities(steps)

    def _forget(self, last: int) -> None:
        """Drop so many tokens from the end of the cache."""
        if last:
            self._cache.crop(-last)


def _step_log_p(logits: Any, rows: Ints, tokens: Ints, closing: Sequence[int]) -> Floats:
    """How likely each token (steps,) is after its row of `logits`, over the whole vocabulary."""
    import torch

    log_p = logits.float().log_softmax(-1)
    found = log_p[torch.as_tensor(rows), torch.as_tensor(np.maximum(tokens, 0))]
    closes = torch.as_tensor(tokens == CLOSE, device=log_p.device)
    together = log_p[:, closing].logsumexp(-1)[torch.as_tensor(rows)]
    return np.asarray(torch.where(closes, together, found).double().cpu().numpy())


def plain_log_probabilities(
    model: Any, field: Sequence[list[int]], closing: Sequence[int]
) -> Floats:
    """The options' log-probabilities by a plain pass over each one's whole text: (options,)."""
    import torch

    shared = len(common_prefix(field))
    totals = []
    for ids in field:
        read = torch.tensor([ids[:-1]], device=model.device)  # the last is only predicted
        logits = model(input_ids=read, logits_to_keep=len(ids) - shared).logits[0]
        steps = _step_log_p(logits, np.arange(len(ids) - shared), np.array(ids[shared:]), closing)
        totals.append(steps.sum())
    return np.asarray(np.array(totals) - np.logaddexp.reduce(totals))


def reach_of(model: Any) -> int:
    """How many tokens may stand in one text, so that each attends to all before it.

    Raises SetupError for a model without a plain cache, or which takes no mask of its own shape.
    """
    config = model.config.get_text_config()
    missing = _PASSED - inspect.signature(model.forward).parameters.keys()
    if missing or getattr(model, "_is_stateful", False):
        raise _cannot("it keeps no keys and values that a text could go on from")
    attends = getattr(config, "_attn_implementation", "eager")
    if attends not in _MASKED:
        raise _cannot(f"its attention ({attends}) takes no mask of a tree")
    kinds = set(getattr(config, "layer_types", None) or ())
    if other := kinds - _WINDOWED.keys() - {"full_attention"}:
        raise _cannot(f"it has layers of the kind {', '.join(sorted(other))}")
    named = [_WINDOWED[kind] for kind in kinds & _WINDOWED.keys()] if kinds else ["sliding_window"]
    windows = [getattr(config, name, None) for name in named]
    return min((int(window) for window in windows if window), default=1 << 30)


def _cannot(why: str) -> SetupError:
    return SetupError(f"transformers: this model cannot weigh labels without writing them: {why}")


def _additive(model: Any, visible: Any) -> Any:
    """The mask (1, 1, rows, columns) that is added to the attention's scores."""
    import torch

    seen = torch.as_tensor(visible, device=model.device)
    hidden = torch.finfo(model.dtype).min
    return torch.zeros(seen.shape, dtype=model.dtype, device=seen.device).masked_fill_(
        ~seen, hidden
    )[None, None]


def _as_reply(request: Request, found: Mapping[str, Floats], tokens: int, seconds: float) -> Reply:
    assert request.labels_asked is not None
    options = {field.key: field.options for field in request.labels_asked.fields}
    chosen = {key: options[key][int(np.argmax(logs))] for key, logs in found.items()}
    return Reply(
        key=request.key,
        text=json.dumps(chosen, ensure_ascii=False, separators=(",", ":")),
        usage=Usage(1, tokens, 0),
        latency=seconds,
        log_probabilities={
            key: dict(zip(options[key], logs.tolist(), strict=True)) for key, logs in found.items()
        },
    )
