"""Label probabilities by a transformers model, without generating a token.

Each label is put where it would stand in the reply, and the model says how likely that text is.
The shared beginning of the prompts (system text and rubric) is computed once and kept. With
`independent`, one forward pass then weighs all labels of all metrics (`label_tree`); with
`chained`, one pass per metric continues from the likeliest label of the one before.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from judgebench.models.checkpoint import ChatEncoder
from judgebench.models.contract import Message, Reply, Request
from judgebench.models.label_tree import (
    Floats,
    ReplyTokens,
    common_prefix,
    label_texts,
    label_tree,
    normalised,
)
from judgebench.models.tree_reader import (
    Prefix,
    TreeReader,
    cannot,
    plain_log_p,
    reach_of,
    rounding,
)
from judgebench.records import Usage

_PREFIXES = 16  # as many system texts are kept: `per_metric` judging takes turns with several


class LabelScorer:
    """Answers requests that ask for labels, with a model that `reach_of` admits.

    Its first answer is checked against plain passes over whole texts, so that a model which reads
    a mask or positions in a way of its own is reported and never gives a wrong number.
    """

    def __init__(self, model: Any, encoder: ChatEncoder, context: int) -> None:
        self._model = model
        self._encoder = encoder
        self._texts = ReplyTokens(encoder)
        self._context = min(context, reach_of(model))
        self._prefixes: OrderedDict[tuple[Message, ...], Prefix] = OrderedDict()
        self._checked = False

    def reply(self, request: Request) -> Reply:
        """The likeliest labels as a JSON object, and every label's log-probability.

        Raises SetupError for a model that cannot weigh labels so.
        """
        assert request.labels_asked is not None
        import torch

        began = time.perf_counter()
        asked = request.labels_asked
        prompt = self._encoder.chat(request.messages)
        found: dict[str, Floats] = {}
        reader: TreeReader | None = None
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
                    raise cannot(str(error)) from error
                reader = reader or TreeReader(
                    self._model, self._prefix_for(request, tree.trunk.tolist())
                )
                steps = reader.read(tree, self._texts.closing)
                logs = normalised(tree.totals(steps), [len(field) for field in branches])
                keys = [field.key for field in asked.fields][len(found) :]
                found.update(zip(keys, logs, strict=False))
            if not self._checked:
                self._check(branches[-1], logs[-1])
                self._checked = True
        tokens = len(self._encoder.ids(prompt))
        return _as_reply(request, found, tokens, time.perf_counter() - began)

    def _prefix_for(self, request: Request, trunk: list[int]) -> Prefix:
        """What the cache already holds of this text; nothing where the text begins otherwise."""
        # Of what stands before the first question: worked examples after it differ with the answer.
        key = tuple(takewhile(lambda m: m.role != "user", request.messages))
        if key not in self._prefixes:
            self._prefixes[key] = Prefix.of(self._model, self._shared(request))
            if len(self._prefixes) > _PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(key)
        prefix = self._prefixes[key]
        fits = trunk[: len(prefix.tokens)] == prefix.tokens
        return prefix if fits and len(prefix.tokens) < len(trunk) else Prefix([], [])

    def _shared(self, request: Request) -> list[int]:
        """The tokens with which every prompt with this system text begins.

        They depend on no answer, or replies would depend on the order of answers. The last is
        left out, for it may grow together with what follows.
        """
        said = [
            tuple(m if m.role != "user" else Message("user", text) for m in request.messages)
            for text in ("0", "A")
        ]
        texts = [self._encoder.chat(messages) for messages in said]
        return common_prefix([self._encoder.ids(text) for text in texts])[:-1]

    def _check(self, field: Sequence[list[int]], logs: Floats) -> None:
        """Whether plain passes over the whole texts of one field's options say the same.

        Raises SetupError where they do not.
        """
        shared, closing = len(common_prefix(field)), self._texts.closing
        totals = [plain_log_p(self._model, ids, shared, closing).sum() for ids in field]
        apart = float(np.abs(totals - np.logaddexp.reduce(totals) - logs).max())
        if not apart <= rounding(self._model):
            raise cannot(f"plain passes and the pass over all labels differ by {apart:.3g}")


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
