"""Reads trees of tokens (`label_tree`) with a transformers model, one forward pass each."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from judgebench.errors import SetupError
from judgebench.models.label_tree import (
    CLOSE,
    Branch,
    Floats,
    Ints,
    TokenTree,
    common_prefix,
    token_tree,
)

_PASSED = {"attention_mask", "position_ids", "past_key_values", "logits_to_keep"}
_MASKED = ("sdpa", "eager")  # ways to attend that take a mask of any shape
_WINDOWED = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
# How far the tree may be from plain passes, in natural logarithms; half precision rounds coarsely.
_ROUNDING = {"torch.float32": 1e-2, "torch.float64": 1e-2}
_COARSE_ROUNDING = 0.5
_STEPS = 1024  # of one pass: a row over the vocabulary each


class Prefix:
    """Tokens that were read, and the keys and values that each layer keeps of them."""

    def __init__(self, tokens: list[int], states: list[tuple[Any, Any]]) -> None:
        self.tokens = tokens
        self._states = states

    @classmethod
    def of(cls, model: Any, tokens: list[int]) -> Prefix:
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


class TreeReader:
    """Reads one text after another that begin alike, from what it has read before."""

    def __init__(self, model: Any, prefix: Prefix) -> None:
        self._model = model
        self._cache = prefix.cache()
        self._read = list(prefix.tokens)

    def read(self, tree: TokenTree, closing: Sequence[int] = ()) -> Floats:
        """Each step's log-probability over the whole vocabulary, in one forward pass. (steps,)"""
        import torch

        trunk = tree.trunk.tolist()
        # What a token predicts is known only where it is read: from the first branch's place on.
        unread = len(trunk) + int(tree.step_node.min())
        known = min(len(common_prefix([self._read, trunk])), unread)
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
        return _step_log_p(output.logits[0], place, tree.step_token, closing)

    def hung(self, trunk: Sequence[int], branches: Sequence[Branch]) -> Floats:
        """Each branch's log-probability. A pass reads the trunk a stretch further, with all that
        hangs there, so that memory is bounded: of a completion, one pass or a few. (branches,)"""
        order = sorted(range(len(branches)), key=lambda i: branches[i].place)
        steps = accumulate(len(branches[i].tokens) for i in order)
        found = np.empty(len(branches))
        for _, group in groupby(zip(order, steps, strict=True), lambda one: one[1] // _STEPS):
            here = [i for i, _ in group]
            tree = token_tree(trunk[: branches[here[-1]].place], [branches[i] for i in here])
            found[here] = tree.totals(self.read(tree))
        return found

    def _forget(self, last: int) -> None:
        """Drop so many tokens from the end of the cache."""
        if last:
            self._cache.crop(-last)


def plain_log_p(model: Any, ids: Sequence[int], start: int, closing: Sequence[int] = ()) -> Floats:
    """How likely each token of `ids` from `start` on is after those before it, by a plain pass."""
    import torch

    read = torch.tensor([ids[:-1]], device=model.device)  # the last is only predicted
    asked = np.array(ids[start:], np.int64)
    with torch.inference_mode():
        logits = model(input_ids=read, logits_to_keep=len(asked)).logits[0]
    return _step_log_p(logits, np.arange(len(asked)), asked, closing)


def _step_log_p(logits: Any, rows: Ints, tokens: Ints, closing: Sequence[int]) -> Floats:
    """How likely each token (steps,) is after its row of `logits`, over the whole vocabulary."""
    import torch

    log_p = logits.float().log_softmax(-1)
    row = torch.as_tensor(rows)
    found = log_p[row, torch.as_tensor(np.maximum(tokens, 0))]
    closes = torch.as_tensor(tokens == CLOSE, device=log_p.device)
    if closes.any():
        found = torch.where(closes, log_p[:, closing].logsumexp(-1)[row], found)
    return np.asarray(found.double().cpu().numpy())


def reach_of(model: Any) -> int:
    """How many tokens may stand in one text, so that each attends to all before it.

    Raises SetupError for a model without a plain cache, or which takes no mask of its own shape.
    """
    config = model.config.get_text_config()
    missing = _PASSED - inspect.signature(model.forward).parameters.keys()
    if missing or getattr(model, "_is_stateful", False):
        raise cannot("it keeps no keys and values that a text could go on from")
    attends = getattr(config, "_attn_implementation", "eager")
    if attends not in _MASKED:
        raise cannot(f"its attention ({attends}) takes no mask of a tree")
    kinds = set(getattr(config, "layer_types", None) or ())
    if other := kinds - _WINDOWED.keys() - {"full_attention"}:
        raise cannot(f"it has layers of the kind {', '.join(sorted(other))}")
    named = [_WINDOWED[kind] for kind in kinds & _WINDOWED.keys()] if kinds else ["sliding_window"]
    windows = [getattr(config, name, None) for name in named]
    return min((int(window) for window in windows if window), default=1 << 30)


def rounding(model: Any) -> float:
    """How far a pass over a tree may be from plain passes, in natural logarithms."""
    return _ROUNDING.get(str(model.dtype), _COARSE_ROUNDING)


def cannot(why: str) -> SetupError:
    """The error for a model that no tree can be put to."""
    return SetupError(f"transformers: this model cannot weigh labels without writing them: {why}")


def _additive(model: Any, visible: Any) -> Any:
    """The mask (1, 1, rows, columns) that is added to the attention's scores."""
    import torch

    seen = torch.as_tensor(visible, device=model.device)
    hidden = torch.finfo(model.dtype).min
    return torch.zeros(seen.shape, dtype=model.dtype, device=seen.device).masked_fill_(
        ~seen, hidden
    )[None, None]
